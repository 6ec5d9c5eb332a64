import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalogue import METRICS
from fbeta import Confusion, FBeta, tune
from fbeta.threshold import curve

rows = st.lists(
    st.tuples(
        st.sampled_from([0.0, 0.1, 0.5, 0.5000001, 0.9]) | st.floats(-1e300, 1e300),
        st.booleans(),
        st.sampled_from([0.0, 0.5, 1.0, 3.0]),
    ),
    min_size=1,
    max_size=12,
)


@settings(max_examples=300, deadline=None)
@given(rows=rows, m=st.sampled_from([m for m in METRICS if type(m).__name__ != "Custom"]))
def test_tune_equals_brute_force(rows, m):
    s, y, w = (np.array(x, dtype=float) for x in zip(*rows, strict=True))
    cut = tune(s, y, m, w)
    candidates = [-math.inf, *s, math.inf]
    best = max(m(Confusion.from_scores(s, y, c, w)) for c in candidates)
    assert cut.score == pytest.approx(best, abs=1e-9)
    assert m(Confusion.from_scores(s, y, cut.value, w)) == pytest.approx(best, abs=1e-9)
    assert cut.n_positive == cut.decide(s).sum()


def test_neighbouring_floats_can_be_told_apart():
    s = np.array([1.0, np.nextafter(1.0, 0)])
    cut = tune(s, [1, 0], FBeta(1))
    assert cut.decide(s).tolist() == [True, False]


def test_curve_ends_in_nothing_and_everything():
    cuts, c = curve([3.0, 1.0, 2.0], [1, 0, 0])
    assert (cuts[0], cuts[-1]) == (math.inf, -math.inf)
    assert c.tp.tolist() == [0, 1, 1, 1]
    assert c.tn.tolist() == [2, 2, 1, 0]


@pytest.mark.parametrize(
    ("s", "y", "w", "says"),
    [
        ([math.nan], [1], None, "NaN"),
        ([], [], None, "no scores"),
        ([1.0], [2], None, "target must lie"),
        ([1.0], [1, 0], None, "one length"),
        ([1.0], [1], [-1], "weight"),
        ([[1.0]], [[1]], None, "vectors"),
    ],
)
def test_bad_input(s, y, w, says):
    with pytest.raises(ValueError, match=says):
        tune(s, y, FBeta(1), w)


def test_nan_never_wins():
    cut = tune(
        [0.9, 0.8, 0.3, 0.1],
        [1, 1, 0, 0],
        lambda tp, fp, fn, tn: np.divide(tp, np.where(tp + fp, tp + fp, np.nan)),
    )
    assert cut.score == 1.0
    with pytest.raises(ValueError, match="NaN at every cut"):
        tune([0.9, 0.8], [1, 0], lambda tp, fp, fn, tn: tp * np.nan)
