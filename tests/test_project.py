"""The shape of the project: layers, public names, start-up cost, documents that cannot go stale."""

import ast
import importlib
import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import fbeta

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "fbeta"

# Imports point down, or along a line from right to left; never up. `fbeta` itself is lazy and imports nothing.
LAYERS = [
    ["spelling", "plain_data", "writing", "sealed", "extensions", "metrics", "numerals"],
    ["losses", "decisions"],
    ["tables", "datasets", "data"],
    ["learners"],
    ["lightning", "sklearn", "boosting"],
    ["artifact", "comparison", "report"],
    ["cli"],
    ["__main__"],
]
THIRD_PARTY = {
    "spelling": set(),
    "plain_data": set(),
    "writing": set(),
    "sealed": set(),
    "extensions": set(),
    "numerals": set(),
    "metrics": {"numpy"},  # inside a function, for lists
    "decisions": {"numpy"},
    "learners": {
        "numpy",
        "torch",
        "joblib",
        "safetensors",
        "scipy",
        "sklearn",
        "xgboost",
        "lightgbm",
        "imblearn",
        "libauc",
        "catboost",
    },
    "sklearn": {"numpy", "sklearn", "scipy", "torch"},
    "boosting": {"numpy", "sklearn", "xgboost", "lightgbm"},
    "losses": {"torch", "numpy", "triton"},
    "tables": {"numpy", "openpyxl", "polars"},
    "datasets": {"numpy", "polars", "pooch", "requests", "sklearn"},
    "data": set(),
    "lightning": {"lightning", "pytorch_lightning", "torch"},
    "artifact": {"numpy", "polars", "safetensors"},
    "comparison": {"filelock", "joblib", "numpy", "polars", "safetensors", "scipy", "sklearn", "torch"},
    "report": {"jinja2", "markupsafe", "matplotlib", "numpy", "rich"},
    "cli": {"rich", "typer"},
    "__main__": set(),
}


def modules():
    for path in sorted(SOURCE.rglob("*.py")):
        name = path.relative_to(SOURCE).parts[0].removesuffix(".py")
        if name != "__init__":
            yield name, path


def imported(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: absolute imports only"
            if node.module == "fbeta":
                yield from (f"fbeta.{alias.name}" for alias in node.names)
            else:
                yield node.module


@pytest.mark.parametrize(("name", "path"), list(modules()), ids=lambda x: getattr(x, "name", x))
def test_imports_point_down(name, path):
    order = {module: (i, j) for i, layer in enumerate(LAYERS) for j, module in enumerate(layer)}
    assert name in order, f"{name} has no layer: add it to LAYERS"
    for target in imported(path):
        top, _, rest = target.partition(".")
        if top == "fbeta":
            below = rest.split(".")[0]
            if below and below != name and below in order:
                assert order[below] < order[name], f"{name} imports {below}, which lies above it"
        elif top not in sys.stdlib_module_names:
            assert top in THIRD_PARTY[name], f"{name} imports {top}"


def test_the_library_knows_the_reproduction_by_entry_points_only():
    for _, path in modules():
        assert "fbeta_reproduction" not in {name.partition(".")[0] for name in imported(path)}, path


def test_a_name_means_one_thing():
    """No module, class or type is called as another one is; the file of a command is called as the command."""
    homes = {}
    for path in SOURCE.rglob("*.py"):
        module = path.relative_to(SOURCE)
        names = [path.parent.name if path.stem == "__init__" else path.stem]
        if module.parent.name == "cli" and path.stem in {"compare", "data", "explain", "fit", "predict", "tune"}:
            names = []
        for node in ast.parse(path.read_text()).body:
            targets = [node] if isinstance(node, ast.ClassDef) else getattr(node, "targets", [])
            found = [getattr(target, "name", getattr(target, "id", "")) for target in targets]
            names += [name for name in found if name.strip("_")[:1].isupper() and not name.isupper()]
        for name in names:
            homes.setdefault(name, set()).add(str(module))
    assert {name: sorted(where) for name, where in homes.items() if len(where) > 1} == {}


def test_no_two_places_share_twelve_lines():
    places = {}
    for path in SOURCE.rglob("*.*"):
        if path.suffix in {".py", ".c", ".h", ".js", ".css", ".html"}:
            lines = [line.strip() for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
            for i in range(len(lines) - 11):
                places.setdefault(tuple(lines[i : i + 12]), []).append(f"{path.relative_to(SOURCE)}: {lines[i]}")
    assert [where for where in places.values() if len(where) > 1] == []


def test_public_names():
    assert set(fbeta.__all__) == set(dir(fbeta))
    for name in fbeta.__all__:
        value = getattr(fbeta, name)
        assert value.__doc__, name
        assert value.__module__.startswith("fbeta"), name
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = fbeta.nonsense


def test_modules_load_by_attribute():
    code = """
import fbeta
print(fbeta.lightning.MetricTask.__name__, fbeta.losses.names()[0], fbeta.report.__name__)
print(fbeta.sklearn.MetricClassifier.__name__, fbeta.boosting.xgboost_objective.__name__, fbeta.learners.__name__)
"""
    assert fresh(code).split() == [
        "MetricTask",
        "amp",
        "fbeta.report",
        "MetricClassifier",
        "xgboost_objective",
        "fbeta.learners",
    ]


def test_pinned_names_are_there():
    import torch  # noqa: F401  # names that need it are listed once it is loaded

    pinned = """Confusion Metric as_metric metric FBeta Jaccard Tversky Kappa MCC GMean BalancedAccuracy Accuracy
    FowlkesMallows Precision Recall Specificity Cost SurrogateLoss TangentLoss SoftLoss RunningConfusion
    tune Threshold Decision decide_rows compare"""
    assert set(pinned.split()) == set(fbeta.__all__)


def test_public_functions_and_classes_have_a_doctest():
    for name in fbeta.__all__:
        assert ">>>" in getattr(fbeta, name).__doc__ or name == "Metric", name


def fresh(code, *arguments):
    line = [sys.executable, "-c", code, *arguments]
    return subprocess.run(line, capture_output=True, text=True, check=True).stdout


HEAVY = {"numpy", "torch", "polars", "sklearn", "scipy", "matplotlib", "joblib", "xgboost", "lightgbm", "rich.table"}


COMMAND = "from typer.testing import CliRunner; from fbeta.cli import app\n"


@pytest.mark.parametrize(
    ("code", "allowed"),
    [
        ("import fbeta", set()),
        ("import fbeta; dir(fbeta)", set()),
        ("from fbeta import FBeta, Confusion; FBeta(2)(Confusion(8, 2, 4, 86))", set()),
        ("from fbeta import tune, Decision; tune([0.9, 0.1], [1, 0], 'f1')", {"numpy"}),
        ("from fbeta import *; FBeta(2), tune", {"numpy"}),
        ("import fbeta, contextlib, io\nwith contextlib.redirect_stdout(io.StringIO()): help(fbeta)", {"numpy"}),
        (f"{COMMAND}CliRunner().invoke(app, ['--help'])", set()),
        (f"{COMMAND}CliRunner().invoke(app, ['fit', '--help'])", set()),
    ],
)  # fmt: skip
def test_nothing_is_paid_for_that_is_not_used(code, allowed):
    loaded = set(fresh(f"{code}\nimport sys; print(*sys.modules)").split())
    shown = {"rich.table"} if "--help" in code else set()  # typer lays its help out with it
    assert loaded & HEAVY <= allowed | shown


def test_a_missing_extra_breaks_nothing_else():
    code = """
import sys, io, contextlib
for name in ("torch", "polars", "sklearn", "joblib", "lightning"): sys.modules[name] = None
import fbeta
from fbeta import *
with contextlib.redirect_stdout(io.StringIO()): help(fbeta)
print(hasattr(fbeta, "compare"), hasattr(fbeta, "lightning"), hasattr(fbeta, "sklearn"), FBeta(2))
from fbeta import TangentLoss, compare
def own():
    class Own(TangentLoss): pass
for use in (compare, TangentLoss, own, lambda: isinstance(1, TangentLoss)):
    try:
        use()
    except ImportError as error:
        print(error)
"""
    first, *rest = fresh(code).splitlines()
    assert first == "True False False fbeta:beta=2"
    assert "pip install 'fbeta[" in rest[0]
    assert rest[1:] == ["fbeta.TangentLoss: fbeta.losses needs PyTorch: pip install 'fbeta[torch]'"] * 3


@pytest.mark.parametrize(
    "room", ["artifact", "boosting.XGBMetricClassifier", "lightning", "losses", "sklearn", "tables.Table"]
)
def test_a_room_whose_packages_are_missing_names_its_extra(room):
    code = """
import sys
for name in ("torch", "polars", "sklearn", "xgboost"): sys.modules[name] = None
module, _, name = sys.argv[1].partition(".")
try:
    room = __import__(f"fbeta.{module}", fromlist=["a"])
    getattr(room, name or "__name__")
except ImportError as error:
    print(error)
"""
    said = fresh(code, room)
    assert re.fullmatch(rf"fbeta\.{room.partition('.')[0]} needs [\w\-, ]+: pip install 'fbeta\[\w+\]'\.?\n", said), (
        said
    )


def test_a_command_looks_for_other_packages_only_if_it_is_not_the_librarys_own():
    code = """
import sys
from fbeta import extensions
from fbeta.cli import app
app([*sys.argv[1:], "--help"], standalone_mode=False)
print(extensions._found.cache_info().currsize)
"""
    assert fresh(code, "explain").split()[-1] == "0"
    assert fresh(code).split()[-1] == "1"


def test_readme_table_is_the_committed_result():
    spec = importlib.util.spec_from_file_location("digits", ROOT / "examples" / "digits.py")
    digits = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(digits)
    block = (ROOT / "README.md").read_text().split(digits.START)[1].split(digits.END)[0]
    assert block.strip() == digits.render(json.loads((ROOT / "docs" / "digits.json").read_text()))


RESULTS = [  # page, block, module of benchmarks/, what writes the block, result
    ("boosting.md", "boosting", "boosting_page", "summary", "boosting"),
    ("boosting.md", "rare", "boosting_page", "rare", "boosting"),
    ("decisions.md", "ensemble", "decisions_ensemble", "summary", "decisions-ensemble"),
    ("boosting.md", "threads", "boosting_threads", "summary", "boosting-threads"),
    ("boosting.md", "held-out", "held_out", "step_summary", "held_out"),
    ("cuts.md", "cuts", "cuts", "summary", "cuts"),
    ("decisions.md", "half", "cuts", "half", "cuts"),
    ("decisions.md", "few", "cuts", "few", "cuts"),
    ("decisions.md", "held-out", "held_out", "rule_summary", "held_out"),
    ("decisions.md", "shift", "decisions_shift", "summary", "decisions-shift"),
    ("cuts.md", "rules", "decisions_rules", "summary", "decisions-rules"),
    ("decisions.md", "promises", "decisions_promises", "summary", "decisions-promises"),
    ("decisions.md", "person", "decisions_promises", "person", "decisions-promises"),
    ("decisions.md", "costs", "decisions_costs", "summary", "decisions-costs"),
    ("decisions.md", "labels", "decisions_labels", "summary", "decisions-labels"),
    ("decisions.md", "rows", "decisions_rows", "summary", "decisions-rows"),
    ("decisions.md", "maps", "decisions_maps", "summary", "decisions-maps"),
    ("decisions.md", "classes", "decisions_classes", "summary", "decisions-classes"),
    ("losses.md", "tangent", "tangent", "summary", "tangent"),
    ("systems.md", "svmperf", "svmperf", "summary", "svmperf"),
    ("tables.md", "predict", "predict", "summary", "predict"),
    ("tables.md", "creditcard", "compare_creditcard", "summary", "compare_creditcard"),
]
#: What examples write: the walk below, and `test_task_examples.py`.
EXAMPLES = {"walk-compare", "walk-fit", "walk-predict", "walk-tune", "multiclass", "maps"}


@pytest.mark.parametrize(("page", "name", "module", "summary", "stored"), RESULTS)
def test_tables_in_the_docs_are_the_committed_results(page, name, module, summary, stored, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    block = importlib.import_module("doc_block")
    result = json.loads((ROOT / "benchmarks" / "results" / f"{stored}.json").read_text())
    assert block.read(page, name) == getattr(importlib.import_module(module), summary)(result)


def test_every_block_of_the_docs_is_compared_with_its_result():
    for page in (ROOT / "docs").glob("*.md"):
        blocks = set(re.findall(r"<!-- (\S+):start -->", page.read_text()))
        assert blocks - EXAMPLES <= {name for where, name, *_ in RESULTS if where == page.name}, page.name


def test_the_readme_shows_the_demo(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "examples")
    demo = importlib.import_module("demo")
    start, end = demo.marks("compare")
    shown = demo.README.read_text().split(start)[1].split(end)[0]
    kept = demo.KEPT.read_text()
    assert shown.strip() == demo.block(demo.Comparison.from_json(kept))
    for picture in (demo.FIRST, demo.CUT, demo.EXPLAINED):  # whose pixels are Chromium's business
        assert 10_000 < picture.stat().st_size < 300_000


def test_every_case_has_a_picture_that_says_what_is_seen(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "examples")
    drawn = importlib.import_module("decision_pictures").PICTURES
    page = (ROOT / "docs" / "decisions.md").read_text()
    seen = {name: words for words, name in re.findall(r"!\[([^\]]*)\]\(decisions/(\S+)\.png\)", page)}
    assert list(seen) == list(drawn)
    assert len(seen) == len(re.findall(r"^## \d+\. ", page, re.M))
    for name, words in seen.items():
        assert len(words.split()) > 15, name
        assert (ROOT / "docs" / "decisions" / f"{name}.png").stat().st_size < 60_000, name


@pytest.mark.slow
def test_the_pictures_of_the_cases_can_be_drawn(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(ROOT / "examples")
    pictures = importlib.import_module("decision_pictures")
    for name, draw in pictures.PICTURES.items():
        pictures.save(draw(), tmp_path / f"{name}.png")
        assert (tmp_path / f"{name}.png").stat().st_size > 10_000, name


@pytest.mark.slow
def test_the_walk_through_the_commands_is_what_they_print(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "examples")
    walkthrough = importlib.import_module("walkthrough")
    page = walkthrough.PAGE.read_text()

    def words(text):
        # Another processor may round otherwise: numbers, and the bars drawn from them, are left out.
        return re.sub(r"[\s\d.,+−★├┤─●]+", " ", text)

    for name, text in walkthrough.walk().items():
        start, end = walkthrough.marks(name)
        assert words(page.split(start)[1].split(end)[0]).split("```")[1].strip() == words(text).strip(), name


def test_readme_snippet_runs():
    snippet = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S).group(1)
    at_half, tuned = map(
        float, fresh(f"import torch; torch.manual_seed(0); torch.set_num_threads(1)\n{snippet}").split()
    )
    assert 0.4 < at_half < 1
    assert 0.4 < tuned < 1


@pytest.mark.parametrize(
    "path",
    [path for folder in (".", "docs", "reproduction") for path in sorted((ROOT / folder).glob("*.md"))],
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_links_lead_somewhere(path):
    for link, anchor in re.findall(r"\]\(([^)#]*)(?:#([^)]*))?\)", path.read_text()):
        if not link.startswith("http"):
            there = path.parent / link if link else path
            assert there.exists(), f"{path.name} links to {link}"
            if anchor and there.suffix == ".md":
                titles = re.findall(r"^#+ (.*)$", there.read_text(), re.M)
                known = {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}
                assert anchor in known, f"{path.name} links to {link}#{anchor}"


def test_references_are_in_the_bibliography():
    known = set(re.findall(r"@\w+\{(\w+),", (ROOT / "references.bib").read_text()))
    for path in (*SOURCE.rglob("*.py"), *(ROOT / "reproduction" / "src").rglob("*.py")):
        for key in re.findall(r"\[([a-z]+\d{4})\]", path.read_text()):
            assert key in known, f"{path.name} cites {key}"


def test_version_is_the_packages():
    assert f'version = "{fbeta.__version__}"' in (ROOT / "pyproject.toml").read_text()
    assert f"version: {fbeta.__version__}" in (ROOT / "CITATION.cff").read_text()
    assert f"## {fbeta.__version__}" in (ROOT / "CHANGELOG.md").read_text()
