"""The examples of classes and maps: their documents show the committed numbers, and they run."""

import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "examples"
NAMES = ["multiclass", "maps"]


@pytest.fixture
def comparison(monkeypatch):
    monkeypatch.syspath_prepend(EXAMPLES)
    return importlib.import_module("comparison")


def committed(name):
    return json.loads((ROOT / "docs" / f"{name}.json").read_text())


@pytest.mark.parametrize("name", NAMES)
def test_document_shows_the_committed_result(comparison, name):
    start, end = importlib.import_module("digits").marks(name)
    block = comparison.PAGE.read_text().split(start)[1].split(end)[0]
    results = committed(name)
    assert block.strip() == comparison.render(results)
    assert all(len(row["values"]) == results["seeds"] for row in results["table"])


@pytest.mark.parametrize(("tested", "reach"), [(0.0, 2.4843), (2 / 3, 4.3027)])
def test_paired_difference_is_students_and_knows_that_splits_overlap(comparison, tested, reach):
    """d = 1, 2, 3: mean 2, standard error √(1/3 + tested), and t is 4.303 at two degrees of freedom."""
    found = comparison.paired([2.0, 4.0, 6.0], [1.0, 2.0, 3.0], tested)
    assert found == pytest.approx((2, 2 - reach, 2 + reach), abs=1e-3)


@pytest.mark.parametrize("name", NAMES)
def test_the_share_tested_is_that_of_the_split(comparison, name):
    """Tiles of maps are images; the rows of the digits are drawn from images of which a third trains, half tests."""
    module = importlib.import_module(name)
    if name == "maps":
        train, _, test = module.load(0)
        assert len(test.y) / len(train.y) == pytest.approx(module.TASKS[0].tested, rel=0.05)
    assert committed(name)["tested"] == module.TASKS[0].tested


@pytest.mark.parametrize(("shift", "word"), [(0.1, "beat"), (-0.1, "lost to"), (0.0, "was within noise of")])
def test_verdict_is_what_the_interval_says(comparison, shift, word):
    values = [0.50, 0.52, 0.54]
    ours = [v + shift + e for v, e in zip(values, (0.001, -0.001, 0.0), strict=True)]
    table = [
        {"score": "F", "method": "cross entropy", "baseline": True, "values": values},
        {"score": "F", "method": "TangentLoss", "baseline": False, "values": ours},
    ]
    assert comparison.verdict({"tested": 0.5, "table": table}) == f"At F TangentLoss {word} cross entropy."


def test_gain_rule_is_no_worse_than_argmax_where_it_was_tuned(comparison):
    torch = importlib.import_module("torch")
    fbeta = importlib.import_module("fbeta")
    generator = torch.Generator().manual_seed(0)
    y = torch.multinomial(torch.tensor([0.9, 0.07, 0.03]), 600, replacement=True, generator=generator)
    logits = torch.randn(600, 3, generator=generator) + torch.eye(3)[y] + torch.tensor([2.0, 0.0, 0.0])
    rule = comparison.GainRule(logits, y, fbeta.FBeta(1))
    plain, tuned = (
        comparison.macro(fbeta.FBeta(1), called, y, 3) for called in (logits.argmax(1), rule.decide(logits))
    )
    assert tuned > plain + 0.02


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_example_runs(name):
    code = f"import {name}; r = {name}.main(seeds=2, epochs=1); import json; print(json.dumps(r))"
    done = subprocess.run([sys.executable, "-c", code], cwd=EXAMPLES, capture_output=True, text=True, check=True)
    table = json.loads(done.stdout.splitlines()[-1])["table"]
    assert [(r["score"], r["method"]) for r in table] == [(r["score"], r["method"]) for r in committed(name)["table"]]
    assert all(0 <= value <= 1 for row in table for value in row["values"])
