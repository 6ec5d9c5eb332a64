"""Costs, folds, cross-fitting and the fixed point between costs and operating point."""

import subprocess
import sys
import time

import joblib
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fbeta import MCC, Accuracy, Confusion, Cost, FBeta, GMean, Kappa, Precision, tune
from fbeta.learners import CrossFit, cost_weights, costs, cross_fit, machine, solve
from fbeta.tables.folds import folds

METRICS = [FBeta(0.5), FBeta(1), FBeta(2), Kappa(), MCC(), GMean(), Accuracy(), Cost(fp=1, fn=20)]


def logistic(X, y, weight):
    """Weighted logistic regression by Newton steps, with a little penalty."""
    A = np.column_stack([X, np.ones(len(X))])
    w = np.ones(len(y)) if weight is None else weight
    beta = np.zeros(A.shape[1])
    for _ in range(15):
        p = 1 / (1 + np.exp(-A @ beta))
        slope = A.T @ (w * (y - p)) - 1e-3 * beta
        beta += np.linalg.solve((A.T * (w * p * (1 - p))) @ A + 1e-3 * np.eye(len(beta)), slope)
    return beta


def linear(beta, X):
    return np.column_stack([X, np.ones(len(X))]) @ beta


def two_gaussians(n=4000, rate=0.1, seed=0):
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < rate).astype(int)
    return rng.normal(size=(n, 2)) + np.outer(y, [1.5, 0.5]), y


@pytest.mark.parametrize("metric", METRICS, ids=str)
@pytest.mark.parametrize("stream", [None, 0.5])
def test_costs_are_the_tangent_losss(metric, stream):
    torch = pytest.importorskip("torch")
    from fbeta.losses import tangent_costs

    at = Confusion(tp=0.07, fp=0.05, fn=0.03, tn=0.85)
    c0, c1 = tangent_costs(metric, Confusion(*map(torch.tensor, at)), stream)
    got = costs(metric, at, stream)
    assert got[0] == pytest.approx(float(c0 / (c0 + c1)), rel=1e-5)
    assert sum(got) == pytest.approx(1)


@pytest.mark.parametrize("beta", [0.5, 1, 2])
def test_costs_of_f_beta(beta):
    at = Confusion(tp=8, fp=2, fn=4, tn=86)
    assert costs(FBeta(beta), at)[0] == pytest.approx(FBeta(beta)(at) / (1 + beta**2))


def test_costs_stay_inside_and_fall_back():
    nothing_called = Confusion(tp=0, fp=0, fn=10, tn=90)
    assert costs(FBeta(1), nothing_called) == (1e-4, 1 - 1e-4)
    # G-mean has no slope where nothing is called: the ignorant classifier's costs serve.
    assert costs(GMean(), nothing_called) == pytest.approx((0.1, 0.9))
    assert costs(lambda tp, fp, fn, tn: tp * 0.0, nothing_called) == (0.5, 0.5)
    with pytest.raises(ValueError, match="epsilon"):
        costs(FBeta(1), nothing_called, epsilon=0.7)


def test_costs_of_columns():
    c0, c1 = costs(FBeta(1), Confusion(*np.array([[8, 0], [2, 0], [4, 10], [86, 90.0]])))
    assert c0.tolist() == pytest.approx([8 / 22, 1e-4])
    assert (c0 + c1).tolist() == [1, 1]


@given(
    counts=st.lists(st.integers(10, 60), min_size=2, max_size=4),
    n=st.integers(2, 5),
    seed=st.one_of(st.none(), st.integers(0, 99)),
)
@settings(max_examples=60)
def test_folds_hold_every_class_evenly(counts, n, seed):
    y = np.repeat(np.arange(len(counts)), counts)
    fold = folds(y, n, seed=seed)
    assert set(fold) == set(range(n))
    for k in range(len(counts)):
        sizes = np.bincount(fold[y == k], minlength=n)
        assert sizes.max() - sizes.min() <= 1
    sizes = np.bincount(fold)
    assert sizes.max() - sizes.min() <= len(counts)
    assert (fold == folds(y, n, seed=seed)).all()


def test_folds_of_labels():
    rng = np.random.default_rng(0)
    y = (rng.random((300, 3)) < [0.05, 0.2, 0.5]).astype(int)
    fold = folds(y, 5)
    for column in y.T:
        held = np.bincount(fold[column == 1], minlength=5)
        assert held.min() >= 2
        assert held.max() - held.min() <= 0.25 * column.sum()
    with pytest.raises(ValueError, match=r"labels in \{0, 1\}"):
        folds(y + 1, 5)


def test_groups_stay_together():
    rng = np.random.default_rng(0)
    group = rng.integers(0, 60, 400)
    y = (rng.random(400) < 0.2).astype(int)
    fold = folds(y, 5, groups=group)
    assert all(len(set(fold[group == g])) == 1 for g in set(group))
    held = np.bincount(fold[y == 1], minlength=5)
    assert held.max() <= 2 * held.min()
    with pytest.raises(ValueError, match="3 groups cannot fill 5 folds"):
        folds(y, 5, groups=np.arange(400) % 3)
    with pytest.raises(ValueError, match="fewer folds or smaller groups"):
        folds(y, 5, groups=np.where(y == 1, 0, 1 + np.arange(400) % 9))
    with pytest.raises(ValueError, match="one group per row"):
        folds(y, 5, groups=[1, 2])


@pytest.mark.parametrize("seed", [None, 3])
def test_groups_with_labels_are_dealt_evenly(seed):
    chance = np.random.default_rng(0)
    y = (chance.random((2000, 3)) < [0.1, 0.3, 0.6]).astype(int)
    group = chance.integers(400, size=2000)
    fold = folds(y, 5, group, seed=seed)
    assert all(len(set(fold[group == g])) == 1 for g in set(group))
    positives = np.stack([y[fold == k].sum(0) for k in range(5)])
    assert (np.ptp(positives, axis=0) <= 0.1 * positives.mean(0)).all()


def test_too_few_positives_say_what_would_do():
    y = np.array([1] * 7 + [0] * 50)
    with pytest.raises(ValueError, match="7 rows, too few for 5 folds with 2 in each: use at most 3 folds"):
        folds(y, 5)
    assert folds(y, 3).max() == 2
    with pytest.raises(ValueError, match="1 row, too few .* bring at least 4 such rows"):
        folds([1, 0, 0, 0, 0, 0], 2)
    with pytest.raises(ValueError, match="one class only"):
        folds([1, 1, 1, 1], 2)
    with pytest.raises(ValueError, match="integer from 2"):
        folds(y, 1)
    with pytest.raises(ValueError, match="no rows"):
        folds([], 2)


def test_no_model_scores_a_row_it_saw():
    y = np.array([0, 1] * 20)
    X = np.arange(40)
    found = cross_fit(lambda X, y, w: set(X), lambda seen, X: [float(x in seen) for x in X], X, y, folds(y, 4))
    assert found.scores.max() == 0
    assert len(found.models) == 4
    assert all(len(model) == 30 for model in found.models)


def test_a_hold_out_is_fold_zero_against_minus_one():
    X, y = np.arange(6.0), np.array([0, 0, 0, 1, 1, 1])
    found = cross_fit(lambda X, y, w: X.tolist(), lambda m, X: X, X, y, [0, -1, -1, 0, -1, -1])
    assert found.models == ([1.0, 2.0, 4.0, 5.0],)
    assert found.held.tolist() == [True, False, False, True, False, False]
    assert np.isnan(found.scores[1])


def test_folds_at_once_are_folds_one_by_one():
    X, y = np.arange(60.0), np.arange(60) % 3 == 0
    fold = np.arange(60) % 7

    def fit(rows, labels, weight):
        time.sleep(float(rows[0]) / 1000)  # the first may end last
        return rows.sum()

    one = cross_fit(fit, lambda model, rows: model - rows, X, y, fold)
    with machine.workers(3) as side_by_side:
        two = cross_fit(fit, lambda model, rows: model - rows, X, y, fold, side_by_side=side_by_side)
    assert np.array_equal(one.scores, two.scores)
    assert one.models == two.models

    def diverge(model, rows):
        return rows * np.nan

    told = []
    with (
        pytest.raises(ValueError, match="The model of fold 0 gave scores"),
        machine.workers(3, lambda: told.append("stop")) as side_by_side,
    ):
        cross_fit(fit, diverge, X, y, fold, side_by_side=side_by_side)
    assert told == ["stop"]


def test_cores_are_shared_out(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(joblib, "cpu_count", lambda: 8)
    assert machine.cores() == 8
    inside = joblib.Parallel(2, prefer="threads")(joblib.delayed(machine.cores)() for _ in range(2))
    assert inside == [1, 1]  # they share the cores already
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    assert machine.cores() == 2
    assert machine.shared_out(machine.SMALL, tasks=5) == (2, 1)
    assert machine.shared_out(machine.SMALL, tasks=1) == (1, 2)
    assert machine.shared_out(machine.SMALL - 1, tasks=1) == (1, 1)


def test_cross_fit_refuses():
    X, y = np.arange(4.0), np.array([0, 1, 0, 1])
    with pytest.raises(ValueError, match="no rows to fit on"):
        cross_fit(lambda *_: None, lambda m, X: X, X, y, [0, 0, 0, 0])
    with pytest.raises(ValueError, match="one fold per row"):
        cross_fit(lambda *_: None, lambda m, X: X, X, y, [0, 1])
    with pytest.raises(ValueError, match="folds must be whole numbers"):
        cross_fit(lambda *_: None, lambda m, X: X, X, y, [0.0, 1.0, np.nan, 1.0])
    with pytest.raises(ValueError, match="fold 0 gave scores"):
        cross_fit(lambda *_: None, lambda m, X: X * np.nan, X, y, [0, 1, 0, 1])


def test_data_frames_and_sparse_rows():
    sparse = pytest.importorskip("scipy.sparse")
    X, y = two_gaussians(200, 0.3)
    fold = folds(y, 3)
    plain = cross_fit(logistic, linear, X, y, fold).scores
    assert cross_fit(lambda X, y, w: X, lambda m, X: [float(x in m) for x in X], list("abcd"), y[:4], [0, 1, 0, 1])
    frame = type("Frame", (), {"iloc": X})()  # what pandas offers
    assert (cross_fit(logistic, linear, frame, y, fold).scores == plain).all()
    dense = cross_fit(
        lambda X, y, w: logistic(X.toarray(), y, w), lambda b, X: linear(b, X.toarray()), sparse.csr_array(X), y, fold
    )
    assert np.allclose(dense.scores, plain)


def regret(found, metric):
    """What the first model loses on fresh rows by its own boundary against the best cut there."""
    X, y = two_gaussians(40000, seed=99)
    scores = linear(found.crossfit.models[0], X)
    return tune(scores, y, metric).score - metric(Confusion.from_scores(scores, y, 0.0))


@pytest.mark.parametrize("beta", [0.5, 1, 2])
def test_the_fixed_point_is_the_optimum(beta):
    X, y = two_gaussians(8000)
    found = solve(logistic, linear, X, y, FBeta(beta), folds(y, 5), rounds=10, tolerance=0.02)
    assert found.converged
    assert found.delta == pytest.approx(found.score / (1 + beta**2), rel=0.03)
    assert regret(found, FBeta(beta)) < 0.01


@pytest.mark.parametrize("metric", [MCC(), GMean(), Kappa(), Cost(fp=1, fn=5)], ids=str)
@pytest.mark.parametrize("start", [0.02, 0.5, 0.98])
def test_other_metrics_settle_from_any_start(metric, start):
    X, y = two_gaussians(3000)
    found = solve(logistic, linear, X, y, metric, folds(y, 3), start=start, rounds=12)
    assert found.converged
    assert regret(found, metric) < 0.015


def test_the_point_never_comes_from_fitted_rows():
    """A model that knows its rows by heart is perfect on them, and useless elsewhere."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 1)), (rng.random(400) < 0.2).astype(int)

    def fit(X, y, weight):
        return dict(zip(X[:, 0], y, strict=True)), weight[y == 1].sum() > weight[y == 0].sum()

    def score(model, X):
        known, otherwise = model
        return [float(known.get(x, otherwise)) - 0.5 for x in X[:, 0]]

    found = solve(fit, score, X, y, FBeta(1), folds(y, 4))
    assert found.delta < 0.25  # of the fitted rows it would be ½


def test_weights_are_rows_written_twice():
    X, y = two_gaussians(400, 0.2)
    fold = folds(y, 4)
    twice = np.arange(400) % 3 == 0
    weighted = solve(logistic, linear, X, y, "fbeta:beta=2", fold, weight=1.0 + twice)
    rows = np.concatenate([np.arange(400), np.flatnonzero(twice)])
    written = solve(logistic, linear, X[rows], y[rows], "fbeta:beta=2", fold[rows])
    assert weighted.delta == pytest.approx(written.delta, rel=1e-6)
    assert weighted.score == pytest.approx(written.score)


def test_a_rate_elsewhere():
    X, y = two_gaussians(6000, 0.3)
    fold = folds(y, 3)
    rare = solve(logistic, linear, X, y, FBeta(1), fold, prevalence=0.02)
    Z, t = two_gaussians(60000, 0.02, seed=1)
    at_home = solve(logistic, linear, X, y, FBeta(1), fold)

    def elsewhere(found):
        return FBeta(1)(Confusion.from_scores(linear(found.crossfit.models[0], Z), t, 0.0))

    assert elsewhere(rare) > elsewhere(at_home) + 0.05


def test_solve_refuses():
    X, y = two_gaussians(100, 0.3)
    fold = folds(y, 3)
    with pytest.raises(ValueError, match="pole on the corner"):
        solve(logistic, linear, X, y, Precision(), fold)
    with pytest.raises(ValueError, match="vector of 0 and 1"):
        solve(logistic, linear, X, y + 1, FBeta(1), fold)
    for weight in (-np.ones(100), np.full(100, np.nan), np.ones(3)):
        with pytest.raises(ValueError, match="weight must be finite and zero or more, one per row"):
            solve(logistic, linear, X, y, FBeta(1), fold, weight)
    for name, value in (("rounds", 0), ("damping", 1.0), ("start", 0.0), ("prevalence", 2.0)):
        with pytest.raises(ValueError, match=name):
            solve(logistic, linear, X, y, FBeta(1), fold, **{name: value})


def test_a_formula_that_is_zero_over_zero_at_the_point_is_nan_there():
    def mean_of_precision_and_recall(tp, fp, fn, tn):
        return 0.5 * tp / (tp + fp) + 0.5 * tp / (tp + fn)

    X, y = two_gaussians(300, 0.2)
    never = solve(
        lambda X, y, w: None, lambda m, X: np.full(len(X), -1.0), X, y, mean_of_precision_and_recall, folds(y, 3)
    )
    assert np.isnan(never.score)
    assert 0 < never.delta < 1


def test_class_weights_keep_the_total():
    y = np.array([1, 0, 0, 0])
    w = cost_weights(y, 0.2, [1, 2, 3, 4])
    assert w.sum() == pytest.approx(10)
    assert w[0] / w[1] == pytest.approx(0.8 / (2 * 0.2))


def test_crossfit_shows_little():
    assert repr(CrossFit(np.zeros(1), ("model",), np.zeros(1, dtype=int))) == "CrossFit(scores=array([0.]))"


def test_no_torch():
    code = "import sys, fbeta.learners; print('torch' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "False"
