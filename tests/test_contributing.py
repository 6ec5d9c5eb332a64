"""CONTRIBUTING.md: its recipes are executed as they stand, on a copy of the library in a fresh process."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "CONTRIBUTING.md").read_text()

#: What the text tells a newcomer to write, to try in Python, and to run.
FILES = dict(re.findall(r"^1\. Write `(src/[\w/]+\.py)`.*?^```python\n(.*?)^```", PAGE, re.M | re.S))
EXAMPLES = re.findall(r"^```python\n(>>> .*?)^```", PAGE, re.M | re.S)
COMMANDS = [shlex.split(line)[1:] for line in re.findall(r"^fbeta .+$", PAGE, re.M)]

#: Runs on the copy: doctests of the new files, the page's examples and its commands, and where else names are read.
WALK = """
import doctest, importlib, json, sys
from pathlib import Path
from typer.testing import CliRunner
import fbeta
from fbeta import as_metric, losses
from fbeta.cli import app, parameters
from fbeta.data import load_table
from fbeta.decisions import rules
from fbeta.learners import models
from fbeta.sklearn import MetricClassifier

assert Path(fbeta.__file__).is_relative_to(Path.cwd()), fbeta.__file__
modules, examples, commands = json.loads(Path("recipes.json").read_text())

flags = doctest.NORMALIZE_WHITESPACE
for module in modules:
    assert doctest.testmod(importlib.import_module(module), optionflags=flags).failed == 0, module
runner = doctest.DocTestRunner(optionflags=flags)
for text in examples:
    runner.run(doctest.DocTestParser().get_doctest(text, {}, "CONTRIBUTING.md", None, 0))
assert runner.summarize().failed == 0

load_table("breast-cancer").features.write_csv("new.csv")
commands.append(["predict", "model.fbeta", "new.csv", "--out", "decided.csv"])
said = []
for line in commands:
    done = CliRunner().invoke(app, line)
    assert done.exit_code == 0, (line, done.output, done.exception)
    said.append(done.output)

refused = []
for settings in ({"loss": "tangent"}, {"loss": "bce", "hidden": 3}, {"loss": "bce", "loss_options": {"q": 1}}):
    try:
        MetricClassifier(model="fisher", **settings).fit([[0.0], [1.0]] * 10, [0, 1] * 10)
    except ValueError as error:
        refused.append(str(error))

found = {
    "said": said,
    "refused": refused,
    "spec": str(as_metric("Weighted_Accuracy")),
    "names": [losses.names(), rules.names(), models.names()],
    "completed": [
        parameters.metrics("weighted"), parameters.losses("bce,bri"), parameters.rules("b"), parameters.models("fi")
    ],
}
Path("found.json").write_text(json.dumps(found))
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """A copy of the library with the four new files."""
    folder = tmp_path_factory.mktemp("contributing")
    shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__"))
    for path, code in FILES.items():
        (folder / path).write_text(code)
    return folder


def test_a_metric_a_loss_a_rule_and_a_model_are_one_new_file_each():
    rooms = [str(Path(path).parent.relative_to("src/fbeta")) for path in FILES]
    assert rooms == ["metrics", "losses", "decisions/rules", "learners/models"]
    assert len(EXAMPLES) == 4
    assert len(COMMANDS) == 5


def test_the_new_files_are_in_style(library):
    for how in (["check"], ["format", "--check"]):
        line = [sys.executable, "-m", "ruff", *how, "--config", str(ROOT / "pyproject.toml"), *FILES]
        done = subprocess.run(line, cwd=library, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_the_new_files_have_sound_types(library):
    env = os.environ | {"MYPYPATH": str(library / "src")}
    line = [sys.executable, "-m", "mypy", "--config-file", str(ROOT / "pyproject.toml"), *FILES]
    done = subprocess.run(line, cwd=library, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_recipes_work_as_they_stand(library):
    modules = [".".join(Path(path).with_suffix("").parts[1:]) for path in FILES]
    (library / "recipes.json").write_text(json.dumps([modules, EXAMPLES, COMMANDS]))
    own = {"PYTHONPATH": str(library / "src"), "XDG_CACHE_HOME": str(library / "cache"), "OMP_NUM_THREADS": "1"}
    env = {key: value for key, value in os.environ.items() if key != "FBETA_DATA"} | own
    done = subprocess.run([sys.executable, "-c", WALK], cwd=library, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads((library / "found.json").read_text())

    explained, by_loss, by_rule, by_model, fitted, _ = found["said"]
    assert "weightedaccuracy:weight=9" in explained
    assert "linear, brier" in by_loss
    assert "breakeven cut" in by_rule
    assert re.search(r"F₁ on test rows.* fisher.*\n *bce ", by_model)  # losses by model
    assert "Trained fisher, bce" in fitted
    assert len((library / "decided.csv").read_text().splitlines()) == 570

    assert found["spec"] == "weightedaccuracy:weight=5"
    for name, names in zip(("brier", "breakeven", "fisher"), found["names"], strict=True):
        assert name in names
    assert found["completed"] == [["weightedaccuracy:weight="], ["bce,brier"], ["breakeven"], ["fisher"]]
    assert found["refused"] == [
        "The model 'fisher' is trained with the loss bce; got 'tangent'.",
        "The model 'fisher' has no setting hidden; leave it at its default.",
        "The model 'fisher' has no setting options; leave it at its default.",
    ]
