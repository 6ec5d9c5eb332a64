"""What is known about a cut: warnings, JSON, decisions."""

import doctest
import json
import math
import pickle
from pathlib import Path

import numpy as np
import pytest

from catalogue import tune
from fbeta import FBeta, Threshold, metric


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


def test_a_cut_made_by_hand_has_no_interval():
    assert Threshold(0.5, 0.8, 3).interval is None


@pytest.mark.parametrize("name", ["cuts.md", "decisions.md"])
def test_the_pages_about_decisions_run(name):
    page = Path(__file__).resolve().parents[1] / "docs" / name
    failed, tried = doctest.testfile(str(page), module_relative=False)
    assert failed == 0
    assert tried > 10
