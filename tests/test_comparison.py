"""Comparing methods on a table: honest statistics, shared folds, plain data, and kills that lose nothing."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from fbeta import Confusion, FBeta
from fbeta.comparison.methods import baseline, plan
from fbeta.comparison.run import _tasks, compare
from fbeta.comparison.statistics import corrected_t, mean_interval, paired_bootstrap
from fbeta.comparison.words import recommendation
from fbeta.data.tables import read_frame
from fbeta.results import Comparison, Difference

pl = pytest.importorskip("polars")
FEW = {"models": ["linear"], "losses": ["tangent"], "seeds": 2, "folds": 2}


def table(n=400, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.random(n) < 0.2
    x = rng.normal(size=(n, 3)) + 1.2 * y[:, None]
    columns = {f"x{i}": x[:, i] for i in range(3)} | {"shop": rng.choice(["a", "b", "c"], n)}
    frame = pl.DataFrame(columns | {"fraud": np.where(y, "yes", "no")})
    return read_frame(frame, "fraud", "yes", name="shops")


@pytest.fixture(scope="module")
def found():
    return compare(table(), metric="fbeta:beta=2", **FEW)


def timeless(comparison):
    def still(candidate):
        outcomes = tuple(replace(o, seconds=0.0) for o in candidate.outcomes)
        return replace(candidate, outcomes=outcomes)

    return replace(comparison, seconds=0.0, candidates=tuple(still(c) for c in comparison.candidates))


def test_without_overlap_it_is_the_usual_t_test():
    values = [0.03, 0.01, 0.02, -0.01, 0.04]
    usual = stats.ttest_1samp(values, 0.0)
    mine = corrected_t(values, share=0.0)
    assert mine.p == pytest.approx(usual.pvalue)
    assert [mine.low, mine.high] == pytest.approx(list(usual.confidence_interval(0.95)))
    wider = corrected_t(values, share=0.25)
    assert wider.p > mine.p
    # Nadeau and Bengio: the variance is (1/J + share) s² in place of s²/J.
    assert (wider.high - wider.low) / (mine.high - mine.low) == pytest.approx(np.sqrt((0.2 + 0.25) / 0.2))


def test_equal_methods_do_not_differ():
    assert corrected_t([0.0, 0.0, 0.0], share=0.25).p == 1.0
    assert np.isnan(mean_interval([0.5], share=0.25).low)


def test_bootstrap_by_counts_is_bootstrap_by_rows():
    rng = np.random.default_rng(1)
    y = rng.random(500) < 0.2
    one, other = y ^ (rng.random(500) < 0.05), y ^ (rng.random(500) < 0.1)
    metric = FBeta(1)

    def score(decided, target):
        return metric(Confusion.from_predictions(decided * 1.0, target * 1.0))

    drawn = []
    for _ in range(2000):
        rows = rng.integers(0, 500, 500)
        drawn.append(score(one[rows], y[rows]) - score(other[rows], y[rows]))
    mine = paired_bootstrap(metric, y, one, other)
    assert mine.mean == pytest.approx(score(one, y) - score(other, y))
    assert [mine.low, mine.high] == pytest.approx(list(np.quantile(drawn, [0.025, 0.975])), abs=0.012)
    assert paired_bootstrap(metric, y, one, one).p == 1.0


def test_a_comparison_is_plain_data(found):
    assert Comparison.from_json(found.to_json()) == found
    assert json.loads(found.to_json())["table"]["notes"]
    with pytest.raises(ValueError, match="reads up to 1: upgrade"):
        Comparison.from_json(json.dumps({"version": 2}))
    for bad in ("", "[]", "{}", '{"version": 1}', '{"version": 1, "table": 3}'):
        with pytest.raises(ValueError, match=r"no comparison|comparison"):
            Comparison.from_json(bad)


def test_what_it_says_is_in_its_numbers(found):
    assert [c.name for c in found.candidates] == ["linear, bce", "linear, tangent"]
    assert found.baseline == "linear, bce"
    assert found.winner == max(found.candidates, key=lambda c: c.inner).name
    assert found.candidate("linear, bce").difference is None
    for candidate in found.candidates:
        for o in candidate.outcomes:
            assert o.score == pytest.approx(FBeta(2)(Confusion(o.tp, o.fp, o.fn, o.tn)))
        tested = sum(o.tp + o.fp + o.fn + o.tn for o in candidate.outcomes)
        assert candidate.operating.positives + candidate.operating.negatives == tested
        assert sum(candidate.calibration.rows) == tested
        assert candidate.score.mean > 0.5  # it learns
        assert len(candidate.epochs.loss) == len(candidate.epochs.held) > 5


def test_equal_rows_are_never_on_both_sides():
    rng = np.random.default_rng(0)
    some = rng.normal(size=60)
    frame = pl.DataFrame({"x": np.repeat(some, 5), "y": np.repeat(rng.random(60) < 0.3, 5).astype(int)})
    twice = read_frame(frame, "y", "1")
    for task in _tasks(twice, FBeta(1), seeds=3, folds=3, seed=0):
        learned, judged = set(task.X[task.train, 0].tolist()), set(task.X[task.test, 0].tolist())
        assert not learned & judged
        for f in range(3):
            inside = set(task.X[task.train[task.fold == f], 0].tolist())
            assert not inside & set(task.X[task.train[task.fold != f], 0].tolist())


@pytest.mark.parametrize("model", ["linear", "xgboost"])
def test_by_time_the_past_is_learned_from_and_every_row_of_it_is_held_once(model):
    if model == "xgboost":
        pytest.importorskip("xgboost")
    rng = np.random.default_rng(0)
    y = rng.random(600) < 0.2
    frame = pl.DataFrame({"x": rng.normal(size=600) + 1.5 * y, "when": np.arange(600), "y": y.astype(int)})
    dated = read_frame(frame, "y", "1", time="when")
    for task in _tasks(dated, FBeta(1), seeds=5, folds=3, seed=0):
        assert task.train.max() < task.test.min()
        assert sorted(np.unique(task.fold)) == [0, 1, 2]
    asked = {"models": [model], "losses": ["tangent"], "folds": 3}
    found = compare(dated, seeds=2, **asked)
    assert all(0.4 < c.score.mean <= 1 and 0.4 < c.inner <= 1 for c in found.candidates)
    with pytest.raises(ValueError, match="By time there are 5 outer splits"):
        compare(dated, seeds=6, **asked)


def test_a_metric_of_ones_own():
    found = compare(table(), metric=lambda tp, fp, fn, tn: tp / (tp + fp + fn), **FEW)
    same = compare(table(), metric="jaccard", **FEW)
    assert [c.score for c in found.candidates] == [c.score for c in same.candidates]


def test_finished_parts_are_not_run_again_and_change_nothing(found, tmp_path):
    kept = compare(table(), metric="fbeta:beta=2", folder=tmp_path / "f", **FEW)
    assert timeless(kept) == timeless(found)
    again = compare(table(), metric="fbeta:beta=2", folder=tmp_path / "f", **FEW)
    assert again.candidates == kept.candidates  # their seconds, too
    with pytest.raises(ValueError, match="holds another comparison"):
        compare(table(seed=1), metric="fbeta:beta=2", folder=tmp_path / "f", **FEW)


SCRIPT = """
import sys, torch
torch.set_num_threads(1)
sys.path.insert(0, {tests!r})
from test_comparison import FEW, compare, table
from fbeta.comparison import networks
networks.train.__kwdefaults__["every"] = 0.0  # a checkpoint after every epoch
print(compare(table(), metric="fbeta:beta=2", folder={folder!r}, **FEW).to_json())
"""


@pytest.mark.slow
def test_killed_ten_times_it_ends_the_same(found, tmp_path):
    code = SCRIPT.format(tests=os.path.dirname(__file__), folder=str(tmp_path / "f"))
    luck = random.Random(0)
    for _ in range(10):
        process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.DEVNULL)
        time.sleep(luck.uniform(1.5, 7.0))
        process.send_signal(signal.SIGKILL)
        process.wait()
    last = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert timeless(Comparison.from_json(last)).candidates == timeless(found).candidates


def test_words_do_not_oversell(found):
    one, other = found.candidates[1], found.candidates[0]

    def said(mean, p):
        apart = Difference(mean, mean - 0.01, mean + 0.01, p, "test")
        return recommendation("F₂", replace(one, difference=apart), other)

    assert said(0.02, 0.001).startswith("Take linear, tangent")
    assert "within noise" in said(0.02, 0.2)
    assert said(-0.02, 0.001).startswith("Stay with linear, bce")
    assert "none did better" in recommendation("F₂", other, other)


def test_the_plan():
    assert baseline(plan(["mlp", "linear"], None)).name == "linear, bce"
    assert [m.loss for m in plan(["linear"], ["focal"])] == ["bce", "focal"]
    with pytest.raises(ValueError, match="Did you mean 'mlp'"):
        plan(["mpl"], None)
    with pytest.raises(ValueError, match="Did you mean 'tangent'"):
        plan(None, ["tangnet"])


def test_the_command(tmp_path):
    from typer.testing import CliRunner

    from fbeta.cli import app

    file = tmp_path / "shops.csv"
    table().features.with_columns(fraud=pl.Series(np.where(table().y == 1, "yes", "no"))).write_csv(file)
    asked = ["compare", str(file), "--metric", "fbeta:beta=2", "--models", "linear", "--losses", "tangent"]
    asked += ["--seeds", "2", "--folds", "2", "--results", str(tmp_path / "parts")]

    def call(*more):
        return CliRunner().invoke(app, [*asked, *more])

    done = call("--target", "fraud", "--json", "--html", str(tmp_path / "page.html"))
    assert done.exit_code == 0, done.output
    assert Comparison.from_json(done.stdout).title == "F₂"
    assert (tmp_path / "page.html").read_text().startswith("<!doctype html>")
    shown = call("--target", "fraud")
    assert "linear, tangent" in shown.stdout
    assert "positive is fraud 'yes'" in shown.stdout
    for wrong, said in [
        (("--target", "fruad"), "fraud"),
        ((), "--target"),
        (("--target", "fraud", "--models", "mpl"), "Did you mean 'mlp'"),
        (("--target", "fraud", "--metric", "fbeta:beta=x"), "beta"),
        (("--target", "fraud", "--rule", "exakt"), "Did you mean 'exact'"),
        (("--target", "fraud", "--device", "gpu"), "device must be auto, cuda or cpu"),
        (("--target", "fraud", "--html", str(tmp_path / "no" / "page.html")), "cannot write"),
    ]:
        refused = call(*wrong)
        assert refused.exit_code == 2, (wrong, refused.output)
        assert refused.stderr.startswith("fbeta: ")
        assert said in refused.stderr
        assert "Traceback" not in refused.stderr
