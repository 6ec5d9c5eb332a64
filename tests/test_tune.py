"""Exact cuts: against brute force, for users' own metrics, and bad input."""

import math
import os
import subprocess
import sys

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from catalogue import METRICS
from fbeta import Confusion, FBeta, GMean, metric, tune
from fbeta.decisions import Steps, curve

NAMED = [m for m in METRICS if type(m).__name__ != "Custom"]
LEVELS = [0.0, 0.1, 0.5, 0.5000001, 0.9]
#: Cases against brute force; all of them where time is cheap.
CASES = 1000 if os.environ.get("CI") else 250


ANY = st.sampled_from(LEVELS) | st.floats(-1e300, 1e300)


def rows(scores=ANY):
    one = st.tuples(scores, st.booleans(), st.sampled_from([0.0, 0.5, 1.0, 3.0]))
    return st.lists(one, min_size=1, max_size=12)


def brute_force(s, y, w, m, subject_to=(), budget=None, prevalence=None):
    """The best score over all cuts that meet the constraints, each counted from the rows; None if none does."""
    best = None
    for cut in [math.inf, *sorted(set(s), reverse=True)]:
        c = Confusion.from_scores(s, y, cut, w)
        if prevalence is not None:
            c = Confusion(*(c.total * x for x in c.at_prevalence(prevalence)))
        meets = all(other(c) >= least - 1e-12 for other, least in subject_to)
        if meets and (budget is None or c.tp + c.fp <= budget + 1e-9):
            best = m(c) if best is None else max(best, m(c))
    return best


@settings(max_examples=CASES)
@given(
    rows=rows(),
    m=st.sampled_from(NAMED),
    least=st.none() | st.tuples(st.sampled_from(NAMED), st.sampled_from([0.0, 0.3, 0.5, 0.8, 1.0])),
    budget=st.none() | st.sampled_from([0, 0.5, 1, 3, 10]),
    weighted=st.booleans(),
    prevalence=st.none() | st.sampled_from([0.05, 0.5]),
)
def test_exact_equals_brute_force(rows, m, least, budget, weighted, prevalence):
    """Ties, weights, constraints, another prevalence; one class only and constant scores are among the cases."""
    s, y, w = (np.array(x, dtype=float) for x in zip(*rows, strict=True))
    w = w if weighted else None
    mass = np.ones_like(y) if w is None else w
    assume(prevalence is None or 0 < (mass * y).sum() < mass.sum())
    asked = [] if least is None else [least]
    best = brute_force(s, y, w, m, asked, budget, prevalence)
    call = {"subject_to": dict(asked), "budget": budget, "prevalence": prevalence}
    if best is None:
        with pytest.raises(ValueError, match=r"No cut has .* Ask for that or less"):
            tune(s, y, m, w, **call)
        return
    cut = tune(s, y, m, w, **call)
    assert cut.score == pytest.approx(best, abs=1e-9)
    c = Confusion.from_scores(s, y, cut.value, w)
    at = c if prevalence is None else Confusion(*(c.total * x for x in c.at_prevalence(prevalence)))
    assert m(at) == pytest.approx(best, abs=1e-9)
    assert cut.n_positive == cut.decide(s).sum()
    assert all(other(at) >= value - 1e-12 for other, value in asked)
    assert budget is None or at.tp + at.fp <= budget + 1e-9


@settings(max_examples=CASES // 5)
@given(rows=rows(st.floats(-10, 10, width=32)), dtype=st.sampled_from(["float32", "float64"]))
def test_labels_and_weights_of_one_count_alike(rows, dtype):
    """Rows of weight one take a path of their own, which sorts values instead of positions."""
    s, y, _ = (np.array(x) for x in zip(*rows, strict=True))
    s = s.astype(dtype)
    for labels in (y, y.astype(int), y.astype(float)):
        a, b = Steps.of(s, labels), Steps.of(s, labels, np.ones(len(s)))
        for name in ("scores", "tp", "fp", "called"):
            np.testing.assert_array_equal(getattr(a, name), getattr(b, name), err_msg=name)
    cut = tune(s, y, FBeta(1))
    assert cut.n_positive == cut.decide(s).sum() == (s >= cut.value).sum()


def test_neighbouring_floats_can_be_told_apart():
    s = np.array([1.0, np.nextafter(1.0, 0)])
    cut = tune(s, [1, 0], FBeta(1))
    assert cut.decide(s).tolist() == [True, False]
    s = s.astype(np.float32)
    s[1] = np.nextafter(np.float32(1), np.float32(0))
    assert tune(s, [1, 0], FBeta(1)).decide(s).tolist() == [True, False]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("rule", ["exact", "plugin", "shrunk", "constant:at=0.7"])
def test_the_cut_is_a_number_of_the_scores_own_precision(dtype, rule):
    """NumPy compares single-precision scores with a cut in single precision: it must not round to another set."""
    rng = np.random.default_rng(0)
    step = np.finfo(dtype).eps
    for start in (0.25, 0.6999):
        for _ in range(20):
            s = (dtype(start) + rng.integers(0, 30, 40).astype(dtype) * dtype(step)).astype(dtype)
            y = rng.random(40) < 0.4
            cut = tune(s, y, FBeta(1), rule=rule, kind="probability")
            np.testing.assert_array_equal(s >= cut.value, cut.decide(s))
            assert cut.decide(s).sum() == cut.n_positive
            for weight in (None, rng.random(40)):
                cuts, c = curve(s, y, weight)
                assert [(s >= x).sum() for x in cuts.tolist()[1:]] == np.cumsum(
                    np.unique(s, return_counts=True)[1][::-1]
                ).tolist()
                assert c.tp.shape == cuts.shape


def test_floats_wider_than_double_are_read_as_double():
    s = np.array([1, 1], dtype=np.longdouble) + np.array([0, 1e-18], dtype=np.longdouble)
    assert tune(s, [0, 1], FBeta(1)).value == -math.inf  # no double lies between them: they are one score


def test_curve_ends_in_nothing_and_everything():
    cuts, c = curve([3.0, 1.0, 2.0], [1, 0, 0])
    assert (cuts[0], cuts[-1]) == (math.inf, -math.inf)
    assert c.tp.tolist() == [0, 1, 1, 1]
    assert c.tn.tolist() == [2, 2, 1, 0]


def test_curve_takes_infinite_scores():
    cuts, c = curve([math.inf, 1.0, -math.inf], [1, 0, 1])
    assert cuts.tolist() == [math.inf, math.inf, 1.0, -math.inf]
    assert c.tp.tolist() == [0, 1, 1, 2]
    assert curve([math.inf, -math.inf], [1, 0])[1].tp.tolist() == [0, 1, 1]


def test_curve_takes_soft_targets():
    _, c = curve([0.8, 0.4], [0.8, 0.4])
    np.testing.assert_allclose(c.tp, [0, 0.8, 1.2])
    np.testing.assert_allclose(c.fp, [0, 0.2, 0.8])


def test_tensors_are_read():
    z = torch.tensor([0.9, 0.8, 0.3, 0.1], requires_grad=True)
    assert tune(z, torch.tensor([1, 1, 0, 0]), FBeta(1)).score == 1


def test_torch_is_not_imported():
    code = "import sys, fbeta.decisions; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


# Users' own metrics


def test_nan_never_wins():
    cut = tune(
        [0.9, 0.8, 0.3, 0.1], [1, 1, 0, 0], lambda tp, fp, fn, tn: np.divide(tp, np.where(tp + fp, tp + fp, np.nan))
    )
    assert cut.score == 1.0
    with pytest.raises(ValueError, match="NaN at every cut"):
        tune([0.9, 0.8], [1, 0], lambda tp, fp, fn, tn: tp * np.nan)


def test_a_formula_may_be_zero_over_zero_at_some_cuts():
    def precision(tp, fp, fn, tn):
        return tp / (tp + fp)

    def stubborn(tp, fp, fn, tn):
        return math.sqrt(tp / (tp + fp))

    def pure(tp, fp, fn, tn):  # Python's own numbers raise where NumPy's give NaN
        return float(tp) / float(tp + fp)

    s, y = [0.1, 0.2, 0.3, 0.4], [0, 1, 0, 1]
    for own in (precision, stubborn, pure):
        for rule in ("exact", "plugin", "shrunk"):
            cut = tune(s, y, own, rule=rule, kind="probability")
            assert cut.n_positive >= 1
            assert np.isfinite(cut.interval.score).all()
        nothing = tune(s, y, own, rule="constant", kind="probability")
        assert np.isnan(nothing.score)
        assert nothing.n_positive == 0
    only_here = tune(s, y, lambda tp, fp, fn, tn: np.where(tp == 1, 1.0, np.nan))
    assert only_here.interval.score == (-math.inf, math.inf)
    assert tune(s, y, lambda tp, fp, fn, tn: 1).interval.score == (1.0, 1.0)


def test_a_formula_may_divide_by_zero_or_take_only_numbers():
    def plain(tp, fp, fn, tn):
        return 2 * tp / (2 * tp + fp + fn)

    def stubborn(tp, fp, fn, tn):
        return math.sqrt(tp / (tp + fp + fn)) if tp > 0 else 0.0

    rng = np.random.default_rng(0)
    y = rng.random(60) < 0.3
    s = rng.normal(size=60) + y
    expected = tune(s, y, FBeta(1))
    for own in (plain, stubborn):
        cut = tune(s, y, own)
        assert (cut.value, cut.n_positive) == (expected.value, expected.n_positive)
        assert cut.interval is not None


# Bad input


@pytest.mark.parametrize(
    ("s", "y", "w", "says"),
    [
        ([math.nan], [1], None, "scores hold NaN"),
        ([math.inf, 1.0], [1, 0], None, "scores hold infinity"),
        ([], [], None, "no scores"),
        ([1.0], [2], None, "target must lie"),
        ([1.0, 2.0, 3.0], [0, 1, 2], None, "more than two classes.*one column of scores .* per class"),
        ([1.0, 2.0], ["no", "yes"], None, "target must hold numbers.*Map your labels"),
        ([1.0], [1, 0], None, "one length"),
        ([1.0], [1], [-1], "weight"),
        ([1.0], [1], [math.inf], "weight"),
        ([1.0, 2.0], [1, 0], [1e300, 1e300], "weight sums to 2e.300.*divide all weights by the largest"),
        ([1.0, 2.0], [1, 0], [1e308, 1e308], "weight sums to inf"),
        ([1.0, 2.0], [1, 0], [1e-300, 1e-300], "weight sums to 2e-300"),
        ([[[1.0]]], [[[1]]], None, "vectors"),
        ([[1.0, 2.0]], [1], None, r"2 columns of scores need as many of targets.*scores\[:, 1\]"),
        ([[1.0, 2.0]], [[1]], None, "one shape"),
        ([[1.0]], [[1]], [1, 2], "weight"),
    ],
)
def test_bad_input(s, y, w, says):
    with pytest.raises(ValueError, match=says):
        tune(s, y, FBeta(1), w)


def test_bad_options():
    s, y = [0.9, 0.1], [1, 0]
    with pytest.raises(ValueError, match="Unknown metric 'fbeto'. Did you mean 'fbeta'"):
        tune(s, y, "fbeto:beta=1")
    with pytest.raises(ValueError, match="beta of fbeta must be a number"):
        tune(s, y, "fbeta:beta=two")
    with pytest.raises(ValueError, match="average must be"):
        tune(s, y, FBeta(1), average="weighted")
    with pytest.raises(ValueError, match="strictly between 0 and 1"):
        tune(s, y, FBeta(1), prevalence=0)
    with pytest.raises(ValueError, match="holds only one"):
        tune(s, [1, 1], FBeta(1), prevalence=0.1)


def test_one_class_is_tuned_and_said():
    assert tune([0.2, 0.9], [1, 1], FBeta(1)).score == 1
    assert tune([0.2, 0.9], [0, 0], metric("accuracy")).score == 1
    assert tune([0.2, 0.9], [0, 0], GMean()).warning is not None
