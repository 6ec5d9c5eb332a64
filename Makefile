# `make demo` and `make test` need python3, make and gcc; everything else they set up in .venv.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
TESTS := $(if $(CI),,-m "not slow")

MINUTES ?= 2

.PHONY: test attack demo docs lint constraints clean

test: .venv/ready lint
	$(BIN)/python -m pytest -n 2 --dist loadgroup -q $(TESTS)

attack: .venv/ready  ## look for what breaks it: make attack MINUTES=20 SEED=7 ONLY="tables kills"
	PYTHONPATH=tests $(BIN)/python -m attack $(ONLY) --minutes $(MINUTES) $(if $(SEED),--seed $(SEED))

demo: .venv/ready  ## compare losses on digits: the README's table, and the page build/demo.html
	mkdir -p build
	$(BIN)/fbeta compare --html build/demo.html

docs: .venv/ready  ## rewrite the pictures and tables that the README and docs/ show
	$(BIN)/python examples/demo.py --write
	$(BIN)/python examples/walkthrough.py --write
	$(BIN)/python examples/digits.py --write
	$(BIN)/python examples/multiclass.py --write
	$(BIN)/python examples/maps.py --write
	$(BIN)/python examples/decision_pictures.py --write
	$(BIN)/fbeta explain --metric fbeta:beta=2 --prevalence 0.1 --png docs/explain-fbeta2.png
	$(BIN)/fbeta paper figures --doc reproduction/report.md

lint: .venv/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# torch is pinned in constraints.txt: without the pin pip would fetch gigabytes of CUDA libraries.
# The install compiles the C sources, so it is done again when they change. The reproduction of the paper is a package of its own.
.venv/ready: pyproject.toml reproduction/pyproject.toml constraints.txt hatch_build.py $(wildcard src/fbeta/losses/kernels/cpu*.[ch])
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(PIP) install -q -c constraints.txt hatchling editables
	$(PIP) install -q -c constraints.txt --no-build-isolation -e '.[dev]' -e ./reproduction
	touch $@

constraints: .venv/ready
	(sed -n '/^#/p' constraints.txt; $(PIP) freeze --exclude-editable | sed 's/+cpu//') > constraints.new
	mv constraints.new constraints.txt

clean:
	rm -rf .venv build dist
