"""The systems that are learners: each shows the property that its own paper is about."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array

pytest.importorskip("sklearn")
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedShuffleSplit, TunedThresholdClassifierCV
from sklearn.preprocessing import scale
from sklearn.svm import LinearSVC

from catalogue import METRICS
from fbeta import Accuracy, Confusion, FBeta, Jaccard, Metric, Tversky, as_metric, compare, tune
from fbeta.artifact.model_file import from_bytes, to_bytes
from fbeta.comparison.methods import Method, baseline_of, methods_for
from fbeta.comparison.run import fit
from fbeta.decisions import curve
from fbeta.decisions.calibration import logit, sigmoid
from fbeta.learners import Goal, Rows, cutting_planes, models, solve
from fbeta.learners.contingency import Tables
from fbeta.learners.cutting_planes import MultivariateHinge, Planes, fit_linear, simplex_minimum
from fbeta.learners.forest_trees import ForestTrees
from fbeta.sklearn import MetricClassifier, SVMPerfClassifier, TangentMetaClassifier, ThresholdClassifier, scorer
from fbeta.tables.folds import folds


def bent(tp, fp, fn, tn):
    """A function of the cells that bends both ways along every line of tables."""
    return tp / (tp + fn) - fp / (fp + tn) + 0.2 * np.sin(9 * tp / (tp + fn)) * np.sin(7 * fp / (fp + tn))


SHAPES = [*METRICS, Tversky(0.2, 0.3), Tversky(0.9, 2.0), as_metric(bent)]


def falling(chance, count, high):
    return np.sort(chance.normal(size=count) + high)[::-1]


# --- SVM^perf: the most violated table -------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", SHAPES, ids=str)
@pytest.mark.parametrize("weighted", [False, True], ids=["rows", "weights"])
def test_the_most_violated_table_is_the_one_that_trying_all_finds(metric, weighted):
    chance = np.random.default_rng(0)
    for positives, negatives in ((1, 1), (3, 1), (1, 5), (7, 20), (20, 7), (30, 40), (41, 30), (9, 90)):
        for size in (0.0, 0.1, 1.0, 3.0, 30.0):
            rows = [falling(chance, positives, 0.5), falling(chance, negatives, -0.5)]
            if size == 3.0:
                rows = [f.round() for f in rows]  # ties
            w = [chance.uniform(0.5, 2.0, len(f)) if weighted else np.ones(len(f)) for f in rows]
            a, b = (
                np.append(0, np.cumsum(v * size * f)) / (positives + negatives) for v, f in zip(w, rows, strict=True)
            )
            tables = Tables(metric, *(np.append(0.0, np.cumsum(v)) for v in w))
            i, j = tables.worst(a, b)
            every = a[:, None] + b - tables.scores(*np.ix_(np.arange(len(a)), np.arange(len(b))))
            assert every[i, j] == pytest.approx(every.max(), abs=1e-12)


def test_shapes_of_metrics():
    found = {str(m): Tables(m, np.arange(31.0), np.arange(101.0)).shape for m in SHAPES}
    assert {name for name, shape in found.items() if shape != "fp"} == {"mcc", "gmean", "bent"}
    assert (found["mcc"], found["gmean"], found["bent"]) == ("called", "order", "all")


@pytest.mark.parametrize("metric", [m for m in METRICS if str(m) not in ("steep_f1",)], ids=str)
def test_few_tables_are_scored(metric, monkeypatch):
    """(P + N) log (P + N), where trying all would be P · N."""
    scored = []
    call = type(metric).__call__
    monkeypatch.setattr(type(metric), "__call__", lambda self, c: scored.append(np.size(c.tp)) or call(self, c))
    chance, (positives, negatives) = np.random.default_rng(0), (400, 4000)
    tables = Tables(metric, np.arange(positives + 1.0), np.arange(negatives + 1.0))
    _ = tables.shape
    scored.clear()
    rows = falling(chance, positives, 1.0), falling(chance, negatives, -1.0)
    tables.worst(*(np.append(0, np.cumsum(f)) / 4400 for f in rows))
    assert sum(scored) <= 2.2 * (positives + negatives) * np.log2(positives + negatives) < positives * negatives / 10


@pytest.mark.parametrize("metric", SHAPES, ids=str)
def test_the_hinge_is_the_largest_over_all_ways_to_be_wrong(metric):
    chance, y = np.random.default_rng(1), np.array([1, 0, 0, 1, 0, 0, 1])
    for size in (0.1, 1.0, 10.0):
        f = size * chance.normal(size=len(y))
        value, slope = MultivariateHinge(metric, y)(f)

        def score(c):
            return float(
                metric(Confusion(*map(np.float64, Confusion.from_predictions(np.where(c, 1 - y, y) * 1.0, y))))
            )

        ways = [np.array(c) for c in itertools.product((0, 1), repeat=len(y))]
        every = [score(0 * y) - score(c) - (c * (2 * y - 1) * f).mean() for c in ways]
        assert value == pytest.approx(max(every), abs=1e-12)
        assert value >= score(0 * y) - score(((f >= 0) != y).astype(int)) - 1e-12  # it bounds the loss of its decisions
        for _ in range(20):  # and lies above every plane that touches it
            other = f + size * chance.normal(size=len(y))
            assert MultivariateHinge(metric, y)(other)[0] >= value + slope @ (other - f) - 1e-12


def test_for_accuracy_it_is_the_mean_hinge():
    chance = np.random.default_rng(2)
    y, f, w = chance.integers(0, 2, 50), 2 * chance.normal(size=50), chance.integers(1, 4, 50).astype(float)
    assert MultivariateHinge(Accuracy(), y)(f)[0] == pytest.approx(np.maximum(0, 1 - (2 * y - 1) * f).mean())
    weighted = MultivariateHinge(Accuracy(), y, w)(f)[0]
    assert weighted == pytest.approx(np.average(np.maximum(0, 1 - (2 * y - 1) * f), weights=w))


# --- SVM^perf: the optimum -------------------------------------------------------------------------------------------


def overlapping(n=600, d=8, rate=0.1, seed=0):
    """Rows of two classes that a linear model tells apart with mistakes; the positives are few."""
    chance = np.random.default_rng(seed)
    X = chance.normal(size=(n, d))
    f = X[:, 0] + 0.7 * X[:, 1] + 0.9 * chance.normal(size=n)
    return X, (f > np.quantile(f, 1 - rate)).astype(int)


def ordinary(X, y, w, bias, C, weight=None):
    return (w @ w + bias**2) / 2 + C * np.sum(
        (1 if weight is None else weight) * np.maximum(0, 1 - (2 * y - 1) * (X @ w + bias))
    )


@pytest.mark.parametrize("C", [0.001, 0.03, pytest.param(1.0, marks=pytest.mark.slow)])
@pytest.mark.parametrize("intercept", [True, False])
def test_with_the_error_loss_it_is_the_ordinary_svm(C, intercept):
    X, y = overlapping()
    theirs = LinearSVC(loss="hinge", C=C, fit_intercept=intercept, tol=1e-8, max_iter=10**6).fit(X, y)
    least = ordinary(X, y, theirs.coef_[0], float(np.sum(theirs.intercept_)), C)
    ours = fit_linear(X, y, "accuracy", C=C, intercept=float(intercept), tolerance=1e-6, passes=3000)
    assert ours.objective == pytest.approx(ordinary(X, y, ours.weight, ours.bias, C), rel=1e-9)
    assert least * (1 - 1e-6) <= ours.objective <= least + C * len(y) * 1e-6 + 1e-6 * least
    assert ours.objective - ours.gap * C * len(y) <= least * (1 + 1e-9)  # the bound from below is one
    found = SVMPerfClassifier("accuracy", C, fit_intercept=intercept, tol=1e-6, max_iter=3000, pos_label=1).fit(X, y)
    assert ordinary(X, y, found.coef_[0], float(found.intercept_[0]), C) == pytest.approx(least, rel=1e-3)


def test_sparse_rows_and_weights():
    X, y = overlapping()
    X = np.where(np.abs(X) > 1, X, 0)
    dense, thin = (fit_linear(rows, y, "f1", C=0.1, tolerance=1e-5) for rows in (X, csr_array(X)))
    assert np.allclose(dense.weight, thin.weight)
    times = np.random.default_rng(0).integers(1, 4, len(y))
    twice = fit_linear(np.repeat(X, times, axis=0), np.repeat(y, times), "accuracy", C=0.1, tolerance=1e-6, passes=3000)
    weighted = fit_linear(X, y, "accuracy", times.astype(float), C=0.1, tolerance=1e-6, passes=3000)
    assert weighted.objective == pytest.approx(twice.objective, rel=1e-4)


@pytest.mark.parametrize("metric", ["f1", "fbeta:beta=2", "mcc", "gmean", "kappa"])
def test_it_ends_at_the_least_of_a_convex_function(metric):
    X, y = overlapping(300)
    found, chance = fit_linear(X, y, metric, C=0.05, tolerance=1e-5, passes=3000), np.random.default_rng(0)
    hinge = MultivariateHinge(as_metric(metric), y)

    def objective(w, bias):
        return (w @ w + bias**2) / 2 + 0.05 * len(y) * max(0.0, hinge(X @ w + bias)[0])

    assert objective(found.weight, found.bias) == pytest.approx(found.objective, rel=1e-9)
    for size in (1e-3, 1e-2, 0.1, 1.0):
        for _ in range(20):
            w = found.weight + size * chance.normal(size=X.shape[1])
            assert objective(w, found.bias + size * chance.normal()) >= found.objective - 0.05 * len(y) * 1e-5


def test_passes_do_not_grow_with_the_rows():
    """The paper's theorem, with C · n held: a pass is linear in the rows, so training is."""
    X, y = overlapping(300)
    found = [fit_linear(np.tile(X, (k, 1)), np.tile(y, k), "f1", C=0.1 / k) for k in (1, 2, 8, 32)]
    assert [svm.passes for svm in found] == [found[0].passes] * 4
    assert np.allclose(found[0].weight, found[-1].weight, atol=1e-3)


def test_for_f1_it_finds_positives_where_the_ordinary_svm_gives_up():
    """What the paper is for: overlapping positives, most of which cost least if they are not called."""
    (X, y), (test, truth) = overlapping(4000), overlapping(4000, seed=1)

    def f1(metric, C):
        svm = fit_linear(X, y, metric, C=C)
        return float(FBeta(1)(Confusion.from_scores(test @ svm.weight + svm.bias, truth, cut=0.0)))

    model = LogisticRegression().fit(X, y)
    reachable = float(np.max(FBeta(1)(curve(model.decision_function(test), truth)[1])))
    assert f1("accuracy", 0.01) == 0
    assert f1("accuracy", 1.0) < 0.8 * reachable
    assert f1("f1", 0.01) > 0.9 * reachable
    assert f1("f1", 1.0) > 0.95 * reachable


def test_where_rows_overlap_too_much_the_bound_says_nothing():
    """The other side of it: F₁ of 0.46 is the best there is, and the least of the bound is at w = 0 for every C."""
    X, y = overlapping(4000, rate=0.03)
    for C in (0.01, 10.0):
        found = fit_linear(X, y, "f1", C=C)
        assert found.gap <= 1e-3
        assert found.gain <= 1e-3
    with pytest.warns(ConvergenceWarning, match="nothing better than w = 0"):
        SVMPerfClassifier("f1", pos_label=1).fit(X, y)


@pytest.mark.parametrize("rank", [3, 8])
def test_the_quadratic_program_is_solved(rank):
    """By the conditions of its optimum; H is singular with rank 3."""
    chance = np.random.default_rng(rank)
    for _ in range(50):
        root, g = chance.normal(size=(8, rank)), chance.normal(size=8)
        H, start = root @ root.T, np.eye(8)[chance.integers(8)]
        x = simplex_minimum(H, g, start, new=int(chance.integers(8)))
        slope = H @ x + g
        assert x.sum() == pytest.approx(1)
        assert (x >= 0).all()
        assert slope.min() == pytest.approx(slope @ x, abs=1e-8)


def test_idle_planes_are_dropped_and_the_bound_only_rises(monkeypatch):
    bounds, counts = [], []

    class Watched(Planes):
        def add(self, normal, offset):
            super().add(normal, offset)
            bounds.append(self.bound)
            counts.append(len(self.offsets))

    monkeypatch.setattr(cutting_planes, "Planes", Watched)
    monkeypatch.setattr(cutting_planes, "IDLE", 5)
    found = fit_linear(*overlapping(), "accuracy", C=0.3, tolerance=1e-6)
    assert all(b >= a * (1 - 1e-9) for a, b in itertools.pairwise(bounds))
    assert found.gap <= 1e-6
    assert max(counts) < 0.8 * found.passes


def test_a_function_that_divides_by_zero():
    """Precision, as somebody writes it: 0/0 where nothing is called."""
    X, y = overlapping(200)
    assert np.isfinite(fit_linear(X, y, lambda tp, fp, fn, tn: tp / (tp + fp), C=0.1).objective)


# --- SVM^perf: estimator and model -----------------------------------------------------------------------------------


def test_the_estimator():
    X, y = load_breast_cancer(return_X_y=True)
    X = scale(X)
    model = SVMPerfClassifier("f1", 0.1, pos_label=0).fit(X[::2], y[::2])
    assert model.score(X[1::2], y[1::2]) > 0.93
    assert np.array_equal(model.predict(X) == 0, (X @ model.coef_[0] + model.intercept_[0]) >= 0)  # its own boundary
    thin = SVMPerfClassifier("f1", 0.1, pos_label=0).fit(csr_array(X[::2]), y[::2])
    assert np.allclose(thin.coef_, model.coef_)
    same = models.get("svm-perf", C=0.1).fit_columns(FBeta(1), X[::2], 1 - y[::2, None], None)
    assert np.allclose(same[0].weight, model.coef_[0])
    with pytest.warns(ConvergenceWarning, match="stopped after 2 passes, .* A larger max_iter"):
        SVMPerfClassifier("f1", 10.0, max_iter=2, pos_label=0).fit(X, y)
    for bad in ({"C": 0}, {"tol": np.nan}, {"max_iter": 0}):
        with pytest.raises(ValueError, match=f"{next(iter(bad))} must be"):
            SVMPerfClassifier(**bad).fit(X, y)


def test_compare_and_fit_know_it_by_name(tmp_path):
    found = compare("breast-cancer", models=["linear", "svm-perf"], losses=["bce"], seeds=2, folds=2)
    names = [candidate.name for candidate in found.candidates]
    assert names == ["linear, bce", "svm-perf, multivariate-hinge", "svm-perf, hinge"]
    assert all(candidate.score.mean > 0.9 for candidate in found.candidates)
    assert found.baseline == "linear, bce"
    model = fit("breast-cancer", models="svm-perf", losses="multivariate-hinge", folds=2)
    again = from_bytes(to_bytes(model), "x.fbeta")
    rows = np.random.default_rng(0).normal(size=(20, 30))
    assert np.array_equal(again.scorer(rows), model.scorer(rows))
    assert again.name == "svm-perf, multivariate-hinge"


def test_losses_that_are_a_models_own():
    def named(*given):
        return [method.name for method in methods_for(*given, FBeta(1))]

    assert named("svm-perf", None) == ["svm-perf, multivariate-hinge", "svm-perf, hinge"]
    assert named("svm-perf", "hinge") == ["svm-perf, hinge"]
    assert not {"svm-perf", "forest", "tuned-threshold"} & {name.split(",")[0] for name in named(None, "bce")}
    assert baseline_of([Method("svm-perf", "hinge")]) == Method("svm-perf", "hinge")
    with pytest.raises(ValueError, match="Unknown loss 'hinges'. Did you mean 'hinge'"):
        named("svm-perf", "hinges")
    with pytest.raises(ValueError, match="Unknown loss 'hinge'"):
        named("linear", "hinge")


# --- Koyejo et al.: the plug-in with its own estimation split --------------------------------------------------------


def drawn(n, seed):
    """Rows whose probability is known: log odds 2x − 2."""
    chance = np.random.default_rng(seed)
    x = chance.normal(size=n)
    return x[:, None], (chance.random(n) < sigmoid(2 * x - 2)).astype(int)


def two_parts(seed, metric="f1"):
    """One half of the rows for η, the other for the cut."""
    parts = StratifiedShuffleSplit(1, test_size=0.5, random_state=seed)
    model = LogisticRegression(C=1e6)
    return ThresholdClassifier(model, metric, rule="exact", cv=parts, ensemble=True, pos_label=1), parts


def test_the_model_sees_one_part_and_the_cut_comes_from_the_other():
    X, y = drawn(400, 0)
    found, parts = two_parts(0)
    found.fit(X, y)
    ((train, rest),) = parts.split(X, y)
    alone = LogisticRegression(C=1e6).fit(X[train], y[train])
    assert np.array_equal(found.estimator_.coef_, alone.coef_)
    cut = tune(alone.predict_proba(X[rest])[:, 1], y[rest], "f1", rule="exact", kind="probability")
    assert found.cuts_[0].value == pytest.approx(cut.value)


@pytest.mark.parametrize("metric", ["f1", "fbeta:beta=2", "jaccard", "mcc"])
def test_it_is_consistent(metric):
    """The regret goes to zero as rows are added: the theorem of the paper."""
    goal, x = as_metric(metric), np.linspace(-5, 5, 20_001)
    mass, eta = np.exp(-(x**2) / 2), sigmoid(2 * x - 2)
    hits, alarms = (np.cumsum((mass * p)[::-1])[::-1] / mass.sum() for p in (eta, 1 - eta))
    values = goal(Confusion(hits, alarms, hits[0] - hits, alarms[0] - alarms))
    regret = []
    for n in (200, 2_000, 20_000):
        lost = []
        for seed in range(6):
            found = two_parts(seed, metric)[0].fit(*drawn(n, seed))
            at = np.searchsorted(found.decision_function(x[:, None]) > 0, True)
            lost.append(values.max() - values[min(at, len(x) - 1)])
        regret.append(np.mean(lost))
    assert regret[0] > regret[1] > regret[2]
    assert regret[2] < 0.005


def test_the_plug_in_by_name_is_that_estimator():
    X, y = drawn(600, 0)
    rows = Rows(X, y[:, None], folds(y, 3))
    learner = models.get("plug-in", C=1e6)
    found = learner.fit_folds(rows, Goal(FBeta(2)), ["bce"], seed=4)["bce"]
    same = two_parts(4, "fbeta:beta=2")[0].fit(X, y)
    assert np.array_equal(found.model(X)[:, 0] == 1, same.predict(X) == 1)
    assert set(np.unique(found.scores)) == {-1.0, 1.0}
    assert [c.name for c in compare("breast-cancer", models=["linear", "plug-in"], losses="bce", seeds=2).candidates]
    with pytest.raises(ValueError, match="halves are rows of one weight: leave them out"):
        learner.fit_folds(replace(rows, weight=1.0 + y), Goal(FBeta(2)), ["bce"])
    few = Rows(np.eye(6), np.array([[1, 1, 0, 0, 0, 0]]).T, np.array([0, 1, 0, 1, 0, 1]))
    with pytest.raises(ValueError, match="two rows of each class in every training part"):
        learner.fit_folds(few, Goal(FBeta(1)), ["bce"])


# --- Narasimhan, Kar and Jain: the alternating method ----------------------------------------------------------------


def population(seed, kinds=12):
    """Kinds of rows with known shares of positives, each written out; twice, so that one half speaks for the other."""
    chance = np.random.default_rng(seed)
    n = chance.integers(20, 200, kinds)
    hits = (n * chance.beta(0.6, 2.0, kinds)).astype(int)
    kind = np.tile(np.repeat(np.arange(kinds), n), 2)
    y = np.tile(np.concatenate([np.arange(m) < h for m, h in zip(n, hits, strict=True)]), 2).astype(int)
    return kind, y, np.arange(len(y)) // n.sum(), hits / n


def best_by_kind(kind, y, weight):
    """The exact minimum of weighted errors: the weighted share of each kind, as log odds."""
    w = np.ones(len(y)) if weight is None else weight
    hit, all_of_it = np.bincount(kind, w * y), np.bincount(kind, w)
    return logit(hit / all_of_it)


@pytest.mark.parametrize("metric", [FBeta(0.5), FBeta(1), FBeta(2), Jaccard()], ids=str)
@pytest.mark.parametrize("seed", range(8))
def test_the_fixed_point_reaches_the_exact_cut_of_a_finite_population(metric, seed):
    kind, y, fold, share = population(seed)
    found = solve(
        best_by_kind, lambda model, rows: model[rows], kind, y, metric, fold, rounds=50, damping=0.0, tolerance=1e-6
    )
    best = tune(share[kind], y, metric, rule="exact", kind="probability").score
    assert found.converged
    assert found.score == pytest.approx(best)
    values = [turn.score for turn in found.history]
    assert all(b >= a - 1e-12 for a, b in itertools.pairwise(values[1:]))  # alternation never goes back
    assert found.delta == pytest.approx(
        float(best / (1 + metric.beta**2) if hasattr(metric, "beta") else best / (1 + best))
    )


class ByKind(LogisticRegression):
    """A classifier that knows the share of every kind of rows exactly, with weights."""

    def fit(self, X, y, sample_weight=None):
        self.classes_ = np.unique(y)
        self.table_ = best_by_kind(X[:, 0].astype(int), y, sample_weight)
        return self

    def predict_proba(self, X):
        p = sigmoid(self.table_[X[:, 0].astype(int)])
        return np.stack([1 - p, p], 1)


@pytest.mark.parametrize("seed", range(4))
def test_so_does_the_estimator(seed):
    kind, y, fold, share = population(seed)
    halves = [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in (0, 1)]
    meta = TangentMetaClassifier(ByKind(), "f1", rule="own", cv=halves, rounds=30, damping=0.0, pos_label=1)
    best = tune(share[kind], y, "f1", rule="exact", kind="probability").score
    # It stops where costs move by less than a tenth in log odds, and a kind of rows may lie in between.
    assert meta.fit(kind[:, None], y).score(kind[:, None], y) == pytest.approx(best, abs=1e-3)


# --- Resampling ------------------------------------------------------------------------------------------------------


def rare(n=400, d=5, seed=0):
    X, y = overlapping(n, d, seed=seed)
    return Rows(X.astype(np.float32), y[:, None], folds(y, 3))


@pytest.mark.parametrize("sampler", ["over", "under", "smote"])
def test_each_training_part_is_balanced_and_held_out_rows_stay_out(sampler):
    pytest.importorskip("imblearn")
    rows, count = rare(), 400
    table = models.get(f"{sampler}+linear")._drawn(rows, 0)
    assert np.array_equal(table.X[:count], rows.X)
    assert (table.fold[count:] == -1).all()
    for held in (None, 0, 1, 2):
        part = np.flatnonzero(table.fold != (9 if held is None else held))
        times = table.times(part)
        learned = np.repeat(part, times)
        assert held is None or not (table.fold[learned] == held).any()
        counts = np.bincount(table.y[learned, 0])
        assert counts[0] == counts[1]
        natural = np.flatnonzero(rows.fold != (9 if held is None else held))
        if sampler == "under":
            assert counts[1] == rows.y[natural].sum()
        new = learned[learned >= count]
        assert (len(new) > 0) == (sampler == "smote")
        seen = rows.X[natural][rows.y[natural, 0] == 1].astype(float)
        for x in table.X[new[:50]].astype(float):  # on the line between two positives of this very part
            a, b = x - seen, seen[:, None] - seen
            t = np.einsum("id,jid->ji", a, b) / np.maximum((b**2).sum(-1), 1e-12)
            off = ((a[None] - t[..., None].clip(0, 1) * b) ** 2).sum(-1)
            assert off.min() < 1e-9


def test_new_rows_of_sparse_and_weighted_tables():
    pytest.importorskip("imblearn")
    rows = rare()
    weighted = replace(rows, weight=np.where(rows.y[:, 0] == 1, 3.0, 1.0))
    learner = models.get("smote+linear", epochs=20)
    table = learner._drawn(weighted, 0)
    assert (table.weight[400:] == 3.0).all()
    dense, thin = (
        learner.fit_folds(replace(weighted, X=X), Goal(FBeta(1)), ["bce"])["bce"] for X in (rows.X, csr_array(rows.X))
    )
    assert np.allclose(dense.scores, thin.scores, atol=1e-4)
    assert dense.scores.shape == (400, 1)


def test_oversampled_logistic_regression_is_that_of_imbalanced_learn():
    sampling = pytest.importorskip("imblearn.over_sampling")
    rows = rare()
    found = models.get("over+linear", epochs=300).fit_folds(rows, Goal(FBeta(1)), ["bce"], seed=3)["bce"]
    again = sampling.RandomOverSampler(random_state=3).fit_resample(rows.X, rows.y[:, 0])
    theirs = LogisticRegression(C=1.0, tol=1e-8, max_iter=10_000).fit(*again)
    assert np.allclose(found.model.weights[0][:, 0], theirs.coef_[0], atol=2e-3)
    for k, model in enumerate(found.of_folds):
        mine = rows.fold == k
        assert np.allclose(model(rows.X[mine]), found.scores[mine], atol=1e-6)


KINDS = "over+xgboost", "smote+linear", "under+forest"
OTHER_KINDS = "under+lightgbm", "under+mlp", "smote+xgboost", "over+forest"


@pytest.mark.parametrize("name", [*KINDS, *(pytest.param(name, marks=pytest.mark.slow) for name in OTHER_KINDS)])
def test_resampled_odds_are_calibrated_on_rows_as_they_are(name):
    pytest.importorskip("imblearn")
    pytest.importorskip("xgboost")
    X, y = overlapping(900, 4)
    model = models.get(name, **({"trees": 20} if "forest" in name else {"epochs": 5} if "mlp" in name else {}))
    rows = Rows(X.astype(np.float32), y[:, None], folds(y, 3))
    found = model.fit_folds(rows, Goal(FBeta(1)), ["bce"])["bce"]
    assert found.scores.shape == (900, 1)
    assert found.calibration is None
    p = sigmoid(found.scores[:, 0])
    assert p.mean() > 1.3 * y.mean()  # as if half of the rows were positive
    from fbeta import Decision

    decision = Decision.fit(found.scores[:, 0], y, "f1", kind="logit")
    assert decision.probability(found.scores[:, 0]).mean() == pytest.approx(y.mean(), abs=0.01)


def test_resampled_models_in_comparisons_estimators_and_files():
    pytest.importorskip("imblearn")
    found = compare("breast-cancer", models=["linear", "over+linear", "smote+linear"], losses="bce", seeds=2, folds=2)
    assert [c.name for c in found.candidates] == ["linear, bce", "over+linear, bce", "smote+linear, bce"]
    assert found.baseline == "linear, bce"
    model = fit("breast-cancer", models="under+linear", losses="bce", folds=2)
    assert from_bytes(to_bytes(model), "x.fbeta").name == "under+linear, bce"
    X, y = load_breast_cancer(return_X_y=True)
    assert MetricClassifier("f1", "under+linear", "bce", pos_label=0).fit(X[::2], y[::2]).score(X[1::2], y[1::2]) > 0.9


def test_what_cannot_be_resampled():
    pytest.importorskip("imblearn")
    for name, words in (
        ("over+svm-perf", "not trained with cross entropy"),
        ("over+balanced-forest", "cannot be resampled"),
        ("ovre+linear", "Unknown sampler 'ovre'. Did you mean 'over'"),
        ("over+liner", "Unknown model 'liner'"),
    ):
        with pytest.raises(ValueError, match=words):
            models.get(name)
    rows = rare()
    with pytest.raises(ValueError, match="two classes; got 2 columns"):
        models.get("over+linear").fit_folds(replace(rows, y=np.tile(rows.y, 2)), Goal(FBeta(1)), ["bce"])
    few = Rows(np.eye(8), np.array([[1, 1, 0, 0, 0, 0, 0, 0]]).T, np.array([0, 1, 0, 1, 0, 1, 0, 1]))
    with pytest.raises(ValueError, match="a training part has 1 of the rarer class"):
        models.get("smote+linear").fit_folds(few, Goal(FBeta(1)), ["bce"])


# --- Forests ---------------------------------------------------------------------------------------------------------


def test_a_forest_as_arrays_says_what_the_library_says():
    X, y = overlapping(500)
    theirs = RandomForestClassifier(25, random_state=0).fit(X, y)
    ours = ForestTrees.of(theirs)
    rows = np.random.default_rng(1).normal(size=(300, 8))
    assert np.allclose(sigmoid(ours(rows)[:, 0]), theirs.predict_proba(rows)[:, 1], atol=1e-8)
    again = ForestTrees.read(ours.about(), ours.files())
    assert np.array_equal(again(rows), ours(rows))
    assert np.array_equal(ours(csr_array(rows)), ours(rows))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"left": np.array([1, -1])}, "several lengths"),
        ({"left": np.array([0, -1, -1])}, "outside its tree"),
        ({"feature": np.array([7, 0, 0])}, "beyond the 2 columns"),
        ({"threshold": np.array([np.nan, 0, 0])}, "not finite"),
        ({"share": np.array([0.5, 0.5, 1.5])}, "share of positives"),
    ],
)
def test_a_strange_forest_is_refused(change, words):
    parts = {
        "left": [1, -1, -1],
        "right": [2, -1, -1],
        "feature": [0, 0, 0],
        "threshold": [0.0, 0, 0],
        "share": [0.5, 0, 1],
    }
    sound = {name: np.array(x, np.float64 if name in ("threshold", "share") else np.int64) for name, x in parts.items()}
    ForestTrees(2, np.array([3]), **sound)
    with pytest.raises(ValueError, match=words):
        ForestTrees(2, np.array([3]), **(sound | change))


@pytest.mark.parametrize("name", ["forest", "balanced-forest"])
def test_forests_of_rare_positives_and_their_files(name):
    pytest.importorskip("imblearn")
    X, y = overlapping(600, 4)
    found = models.get(name, trees=30).fit_folds(Rows(X, y[:, None], folds(y, 3)), Goal(FBeta(1)), ["bce"])["bce"]
    share = float((found.scores[:, 0] >= 0).mean())
    assert (share > 1.3 * y.mean()) == (name == "balanced-forest")  # a balanced one calls more
    best = tune(found.scores[:, 0], y, "f1", rule="exact", kind="logit").score
    assert best > 0.4  # 0.12 is what calling all of them would give
    again = models.get(name).read(found.model.about(), found.model.files())
    assert np.array_equal(again(X), found.model(X))


# --- Peers as they ship ----------------------------------------------------------------------------------------------


def test_tuned_threshold_decides_as_it_does_alone():
    X, y = overlapping(600, 4)
    rows = Rows(X, y[:, None], folds(y, 3))
    found = models.get("tuned-threshold").fit_folds(rows, Goal(FBeta(2)), ["bce"], seed=0)["bce"]
    alone = TunedThresholdClassifierCV(
        LogisticRegression(max_iter=1000), scoring=scorer("fbeta:beta=2", pos_label=1), random_state=0
    )
    assert np.array_equal(found.model(X)[:, 0] == 1, alone.fit(X, y).predict(X) == 1)
    assert set(np.unique(found.scores)) == {-1.0, 1.0}
    with pytest.raises(ValueError, match="only by metadata routing"):
        models.get("tuned-threshold").fit_folds(replace(rows, weight=1.0 + y), Goal(FBeta(2)), ["bce"])
    for part in (found.model.about, found.model.files):
        with pytest.raises(ValueError, match="cannot be written to a model file, which holds numbers and no code"):
            part()
    assert found.model.inputs == 4
    with pytest.raises(ValueError, match="never in a model file"):
        models.get("tuned-threshold").read({}, {})


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning", "ignore::SyntaxWarning")
def test_libaucs_loss_ranks_positives_first():
    pytest.importorskip("libauc")
    from sklearn.metrics import average_precision_score

    X, y = overlapping(600, 4)
    rows = Rows(X, y[:, None], folds(y, 3))
    learner = models.get("libauc", epochs=10)
    found = learner.fit_folds(rows, Goal(FBeta(1)), ["average-precision"])["average-precision"]
    assert average_precision_score(y, found.scores[:, 0]) > 0.5  # 0.1 is what chance would give
    same = learner.fit_folds(rows, Goal(FBeta(1)), ["average-precision"])["average-precision"]
    assert np.array_equal(same.scores, found.scores)
    with pytest.raises(ValueError, match="takes no weights"):
        learner.fit_folds(replace(rows, weight=np.ones(600)), Goal(FBeta(1)), ["average-precision"])


def test_a_model_whose_package_is_missing_says_what_to_install(monkeypatch):
    monkeypatch.setattr(models.importlib.util, "find_spec", lambda package: None)
    for name, words in (
        ("over+linear", "The model 'over.linear' is not installed: pip install imbalanced-learn[.]$"),
        ("balanced-forest", "pip install imbalanced-learn[.]$"),
        ("plug-in", "pip install scikit-learn[.]$"),
        ("xgboost", "pip install xgboost[.]$"),
        ("libauc", "pip install --no-deps libauc[.]$"),
    ):
        with pytest.raises(ValueError, match=words):
            models.get(name)
    assert issubclass(type(FBeta(1)), Metric)
