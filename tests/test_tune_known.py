"""What is known about a cut: warnings, intervals with their coverage, JSON."""

import doctest
import json
import math
import pickle
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm

from catalogue import tune
from fbeta import MCC, Confusion, FBeta, Threshold, metric
from fbeta.decisions import rules


def test_warnings_in_plain_words():
    rng = np.random.default_rng(0)
    y = np.arange(200) < 60
    s = rng.normal(size=200) + 2 * y
    assert tune(s, y, FBeta(1)).warning is None
    assert "Only 6 positives" in tune(s[54:], y[54:], FBeta(1)).warning
    assert "no positives" in tune(s, np.zeros(200), FBeta(1)).warning
    assert "no negatives" in tune(s, np.ones(200), FBeta(1)).warning
    assert "All scores are equal" in tune(np.ones(200), y, FBeta(1)).warning
    assert "calls everything positive" in tune(-s, y, FBeta(2)).warning
    assert "calls nothing positive" in tune(-s, y, metric("accuracy")).warning
    assert "Only 6 positives" in tune(s[54:], y[54:], FBeta(1), np.full(146, 7.0)).warning  # weight is no evidence


def test_json_keeps_infinity_and_what_is_known():
    y = np.arange(50) < 25
    for cut in (
        tune(np.arange(50.0), ~y, FBeta(1)),
        tune(np.ones(50), y, FBeta(1)),
        tune(np.ones(50), y, metric("accuracy"), prevalence=0.1),
        tune(np.stack([np.arange(50.0), -np.ones(50)], 1), np.stack([~y, y], 1), FBeta(1)),
        tune(np.arange(50.0), ~y, lambda tp, fp, fn, tn: tp - fp),
    ):
        text = json.dumps(cut.to_dict(), allow_nan=False)
        back = Threshold.from_dict(json.loads(text))
        np.testing.assert_array_equal(back.value, cut.value)
        assert (back.score, back.n_positive, back.warning, back.rule) == (
            cut.score,
            cut.n_positive,
            cut.warning,
            cut.rule,
        )
        assert back.interval.score == pytest.approx(cut.interval.score)
        np.testing.assert_array_equal(back.interval.cut, cut.interval.cut)
        if not callable(getattr(cut.metric, "function", None)):
            assert back.metric == cut.metric
            assert json.dumps(back.to_dict(), allow_nan=False) == text


def test_a_cut_can_be_pickled_and_compared():
    cut = tune([0.9, 0.8, 0.3, 0.1], [1, 1, 0, 0], FBeta(1))
    again = pickle.loads(pickle.dumps(cut))
    assert again == cut
    assert again.interval == cut.interval
    assert hash(again) == hash(cut)
    s, y = np.random.default_rng(0).random((30, 2)), np.arange(60).reshape(30, 2) % 3 == 0
    assert tune(s, y, FBeta(1)) == tune(s, y, FBeta(1)) != tune(s, y, FBeta(2))


def test_decide():
    assert Threshold(math.inf, 0.0, 0).decide([math.inf, 1e300]).tolist() == [False, False]
    assert Threshold(-math.inf, 0.0, 0).decide([-math.inf]).tolist() == [True]
    with pytest.raises(ValueError, match="NaN"):
        Threshold(0.5, 0.0, 0).decide([math.nan])
    with pytest.raises(ValueError, match="2 cuts, one per column"):
        Threshold(np.array([0.5, 0.6]), 0.0, 0).decide([0.5, 0.6, 0.7])


def coverage(m, d, n, rate, rule, runs, seed=0):
    """How often the interval holds the score that the chosen cut has in a population of two normals."""
    rng = np.random.default_rng(seed)
    held = 0
    for _ in range(runs):
        y = rng.random(n) < rate
        y[:2] |= y.sum() < 2
        cut = tune(rng.normal(size=n) + d * y, y, m, rule=rule)
        true = m(Confusion.from_rates(norm.sf(cut.value), norm.sf(cut.value - d), rate))
        low, high = cut.interval.score
        held += low - 1e-12 <= true <= high + 1e-12
    return held / runs


CASES = [
    (m, d, n, rate)
    for m in (FBeta(0.5), FBeta(1), FBeta(2), MCC())
    for d in (1.0, 2.0)
    for n, rate in ((100, 0.1), (400, 0.05), (200, 0.25))  # 10, 20 and 50 positives
]


@pytest.mark.parametrize(("m", "d", "n", "rate"), CASES[::8], ids=str)
def test_interval_covers_the_population_score(m, d, n, rate):
    assert 0.90 <= coverage(m, d, n, rate, "exact", 200) <= 0.98


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["exact", "shrunk", "plugin"])
@pytest.mark.parametrize(("m", "d", "n", "rate"), CASES, ids=str)
def test_interval_covers_the_population_score_everywhere(m, d, n, rate, rule):
    assert 0.90 <= coverage(m, d, n, rate, rule, 500) <= 0.985


@pytest.mark.slow
@pytest.mark.parametrize("d", [3.5, 5.0])
def test_interval_errs_on_the_wide_side_where_classes_are_all_but_apart(d):
    """With ten positives and a score near 1 the four cells cannot do better than a wide interval."""
    assert 0.90 <= coverage(FBeta(1), d, 100, 0.1, "exact", 400)


def test_interval_shrinks_with_rows_and_holds_the_score_of_other_rows():
    rng = np.random.default_rng(0)
    widths = []
    for n in (200, 20_000, 2_000_000):
        y = rng.random(n) < 0.2
        cut = tune(rng.normal(size=n) + 2 * y, y, FBeta(1))
        low, high = cut.interval.score
        assert low < cut.score
        below, above = cut.interval.cut
        assert below <= cut.value <= above
        widths.append((high - low, above - below))
    assert widths[0][0] > 5 * widths[1][0] > 25 * widths[2][0]
    assert widths[0][1] > widths[1][1] > widths[2][1]


def test_interval_under_weights_constraints_and_prevalence():
    rng = np.random.default_rng(0)
    y = rng.random(500) < 0.2
    s = rng.normal(size=500) + 2 * y
    plain, heavy = tune(s, y, FBeta(1)), tune(s, y, FBeta(1), np.full(500, 10.0))
    np.testing.assert_allclose(plain.interval.score, heavy.interval.score, atol=0.01)  # weight is no evidence
    rough = tune(s, y, FBeta(1), rng.choice([0.1, 10.0], 500)).interval.score
    assert rough[1] - rough[0] > 1.2 * (plain.interval.score[1] - plain.interval.score[0])
    cut = tune(s, y, metric("precision"), subject_to={"recall": 0.9})
    assert cut.interval.cut[1] <= np.quantile(s[y], 0.12)
    moved = tune(s, y, FBeta(1), prevalence=0.02)
    assert moved.interval.score[0] < moved.score < plain.score
    assert all(0 <= end <= 1 for end in (*moved.interval.score, *plain.interval.score))


@pytest.mark.parametrize("rule", rules.names())
@pytest.mark.parametrize("y", [[0, 0, 0], [1, 1, 1], [1, 0, 1]])
@pytest.mark.parametrize("s", [[0.5, 0.5, 0.5], [0.1, 0.2, 0.3]])
def test_interval_of_hardly_any_rows(s, y, rule):
    low, high = tune(s, y, FBeta(1), rule=rule).interval.score
    assert 0 <= low <= high <= 1


def test_a_cut_made_by_hand_has_no_interval():
    assert Threshold(0.5, 0.8, 3).interval is None


def test_the_page_about_cuts_runs():
    page = Path(__file__).resolve().parents[1] / "docs" / "cuts.md"
    failed, tried = doctest.testfile(str(page), module_relative=False)
    assert failed == 0
    assert tried > 10
