"""The boosters' objectives: gradients against autograd, Hessians that are positive, first scores, both libraries."""

import pickle

import lightgbm
import numpy as np
import pytest
import torch
import xgboost

from fbeta import Accuracy, Confusion, Cost, FBeta, GMean, Kappa
from fbeta.boosting import lightgbm_objective, xgboost_objective
from fbeta.learners.objectives import Gradients
from fbeta.losses.surrogate import surrogate_loss
from fbeta.losses.tangent import tangent_loss
from fbeta.metrics import AnchorTerm

Z = np.concatenate([np.linspace(-12, 12, 97), [-60.0, 60.0]])


def derivatives(loss, z, y):
    """First and second derivatives of an element-wise torch loss, in double precision."""
    logits = torch.tensor(z, dtype=torch.float64, requires_grad=True)
    target = torch.tensor(y, dtype=torch.float64)
    (first,) = torch.autograd.grad(loss(logits, target).sum(), logits, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), logits)
    return first.detach().numpy(), second.numpy()


@pytest.mark.parametrize("q", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("weight", [None, 2.5])
def test_tangent_gradient_is_the_losss(q, weight):
    z, y = np.tile(Z, 2), np.repeat([0, 1], len(Z))
    w = None if weight is None else np.full(len(z), weight)
    costs = (0.3, 0.7)
    gradient, hessian = xgboost_objective("fbeta:beta=2", costs=costs, q=q)(y, z, w)
    first, second = derivatives(lambda a, b: tangent_loss(a, b, costs, q), z, y)
    scale = (weight or 1.0) / np.mean(costs)  # class weights of mean one; half of the rows are positive
    np.testing.assert_allclose(gradient, scale * first, rtol=1e-5, atol=1e-7)
    assert (hessian > 0).all()
    if q == 0.0:
        np.testing.assert_allclose(hessian, np.maximum(scale * second, 1e-16), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("q", [0.0, 0.5])
@pytest.mark.parametrize(
    ("metric", "prevalence"),
    [(FBeta(1), 0.1), (FBeta(2), 0.5), (FBeta(0.5), 0.9), (GMean(), 0.2), (Accuracy(), 0.3), (Cost(1, 9), 0.1)]
    + [(Kappa(), p) for p in (0.1, 0.45, 0.55, 0.9)],
    ids=str,
)
def test_surrogate_gradient_is_the_losss(metric, prevalence, q):
    anchors = metric.anchors(prevalence)
    terms = tuple(AnchorTerm.of(anchors, positive=p, q=q) for p in (False, True))
    for y in (np.repeat([0, 1], [3 * len(Z), len(Z)]), np.repeat([0, 1], [len(Z), 3 * len(Z)])):
        z = np.tile(Z, 4)
        gradient, hessian = Gradients(y, None, terms, (1.0, 1.0))(z)
        first, second = derivatives(lambda a, b: surrogate_loss(a, b, anchors, q=q), z, y)
        np.testing.assert_allclose(gradient, first, rtol=2e-5, atol=1e-7)
        assert (hessian > 0).all()
        assert (hessian >= second - 1e-6).all()  # only a concave part is dropped


def test_the_papers_hessian_is_negative_and_ours_bounds_it():
    a = 1 / 9
    z = np.linspace(-4, 4, 81)
    y = np.zeros(len(z))
    anchors = FBeta(1).anchors(0.1)
    terms = tuple(AnchorTerm.of(anchors, positive=p) for p in (False, True))
    gradient, hessian = (x.astype(float) for x in Gradients(y, None, terms, (1.0, 1.0))(z))
    _, second = derivatives(lambda s, t: surrogate_loss(s, t, anchors), z, y)
    f = 1 / (1 + np.exp(-z))
    root = -a + np.sqrt(a * a + a)
    np.testing.assert_array_equal(second < 0, f > root)
    # log(a + f) = softplus(z + k) − softplus(z) + log a; the Hessian is that of the first part.
    k = np.log((1 + a) / a)

    def loss(x):
        return np.logaddexp(0, x + k) - np.logaddexp(0, x) + np.log(a)

    top = 1 / (1 + np.exp(-z - k))
    np.testing.assert_allclose(hessian, top * (1 - top), rtol=1e-5)
    # With the other part made a line it is an upper bound that touches the loss where it was taken.
    for i in (0, 30, 60, 80):
        line = -np.logaddexp(0, z[i]) - (z - z[i]) * f[i]
        assert (np.logaddexp(0, z + k) + line + np.log(a) >= loss(z) - 1e-12).all()
        assert gradient[i] == pytest.approx(top[i] - f[i], abs=1e-6)


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 6)).astype(np.float32)
    y = (X[:, 0] + X[:, 1] * X[:, 2] + rng.logistic(size=4000) > 2.5).astype(np.float64)
    return X, y, rng.uniform(0.5, 2.0, size=4000)


COSTS = (0.2, 0.8)


def priced(y, w):
    prices = np.where(y == 1, COSTS[1], COSTS[0])
    return w * prices / np.average(prices, weights=w)


def test_xgboost_with_fixed_costs_is_its_own_logistic_loss_with_weights(rows):
    X, y, w = rows
    data = xgboost.QuantileDMatrix(X, y)  # the weights it is made with would move its bins
    objective = xgboost_objective("fbeta:beta=2", costs=COSTS)
    data.set_weight(w)
    ours = xgboost.train({"nthread": 1, "base_score": objective.start(y, w)}, data, 20, obj=objective)
    data.set_weight(priced(y, w))
    theirs = xgboost.train({"nthread": 1, "objective": "binary:logistic"}, data, 20)
    np.testing.assert_allclose(ours.inplace_predict(X), theirs.inplace_predict(X, predict_type="margin"), atol=2e-3)


def test_lightgbm_with_fixed_costs_is_its_own_logistic_loss_with_weights(rows):
    X, y, w = rows
    quiet = {"num_threads": 1, "verbosity": -1, "deterministic": True, "force_row_wise": True}
    objective = lightgbm_objective("fbeta:beta=2", costs=COSTS)
    start = objective.start(y, w)
    data = lightgbm.Dataset(X, y, weight=w, init_score=np.full(len(y), start))
    ours = lightgbm.train({**quiet, "objective": objective}, data, 20)
    data = lightgbm.Dataset(X, y, weight=priced(y, w))
    theirs = lightgbm.train({**quiet, "objective": "binary"}, data, 20)
    np.testing.assert_allclose(ours.predict(X) + start, theirs.predict(X, raw_score=True), atol=2e-3)


def test_probabilities_undo_the_costs(rows):
    X, y, _ = rows
    objective = xgboost_objective("fbeta:beta=2", costs=COSTS)
    booster = xgboost.train(
        {"nthread": 1, "max_depth": 3, "base_score": objective.start(y)},
        xgboost.DMatrix(X[:3000], y[:3000]),
        30,
        obj=objective,
    )
    z = booster.inplace_predict(X[3000:])
    p, raw = objective.probability(z), 1 / (1 + np.exp(-z))
    rate = y[3000:].mean()
    assert abs(p.mean() - rate) < 0.03 < abs(raw.mean() - rate)
    assert np.mean((p - y[3000:]) ** 2) < np.mean((raw - y[3000:]) ** 2)
    with pytest.raises(ValueError, match="closed form"):
        xgboost_objective("fbeta:beta=1", loss="surrogate").probability(np.zeros(1))


@pytest.mark.parametrize("loss", ["tangent", "surrogate"])
def test_a_constant_model_begins_where_the_loss_is_level(loss):
    y = np.repeat([0, 1], [900, 100])
    objective = lightgbm_objective("fbeta:beta=1", loss=loss)
    gradient, _ = objective(y, np.full(1000, objective.start(y)))
    if loss == "tangent":
        assert abs(gradient.sum()) < 1e-3
    else:  # its best constant is +∞; it begins at the log odds and is pulled up
        assert objective.start(y) == pytest.approx(np.log(1 / 9))
        assert gradient.sum() < 0


def test_costs_follow_rows_that_are_not_fitted(rows):
    X, y, _ = rows
    train, held = xgboost.DMatrix(X[:3000], y[:3000]), xgboost.DMatrix(X[3000:], y[3000:])
    objective = xgboost_objective("fbeta:beta=2")
    params = {"nthread": 1, "base_score": objective.start(y[:3000]), "disable_default_eval_metric": 1}
    log: dict = {}
    booster = xgboost.train(
        params,
        train,
        15,
        evals=[(train, "train"), (held, "held")],
        obj=objective,
        custom_metric=objective.score,
        evals_result=log,
        verbose_eval=False,
    )
    at = Confusion.from_scores(booster.predict(held), y[3000:], 0.0)
    assert objective.costs[0] == pytest.approx(FBeta(2)(at) / 5)
    assert log["held"]["fbeta-beta-2"][-1] == pytest.approx(FBeta(2)(at), abs=1e-5)
    only_train = xgboost_objective("fbeta:beta=2")
    xgboost.train(
        params, train, 2, evals=[(train, "train")], obj=only_train, custom_metric=only_train.score,
        verbose_eval=False,
    )  # fmt: skip
    assert only_train.costs == (0.5, 0.5)


def test_a_formula_that_is_zero_over_zero_scores_nan():
    data = xgboost.DMatrix(np.zeros((4, 1)), np.array([1, 0, 0, 0]))
    objective = xgboost_objective(lambda tp, fp, fn, tn: 0.5 * tp / (tp + fp) + 0.5 * tp / (tp + fn), costs=(1, 1))
    assert np.isnan(objective.score(np.full(4, -1.0), data)[1])


def test_lightgbm_stops_early_on_the_metric(rows):
    X, y, _ = rows
    objective = lightgbm_objective("fbeta:beta=1")
    quiet = {"num_threads": 1, "verbosity": -1, "objective": objective, "metric": "none"}
    start = objective.start(y[:3000])
    train = lightgbm.Dataset(X[:3000], y[:3000], init_score=np.full(3000, start))
    held = lightgbm.Dataset(X[3000:], y[3000:], init_score=np.full(1000, start), reference=train)
    stop = lightgbm.early_stopping(10, verbose=False)
    booster = lightgbm.train(quiet, train, 500, valid_sets=[held], feval=objective.score, callbacks=[stop])
    assert booster.best_iteration < 490
    assert 0 < objective.costs[0] < 0.5
    # LightGBM copies its parameters; the costs that training used must be those that moved.
    assert objective._known[0]() is train
    assert objective._known[1].prices[1] > 1


def test_the_scikit_learn_classes_take_them(rows):
    X, y, w = rows
    for objective, cls in ((xgboost_objective, xgboost.XGBClassifier), (lightgbm_objective, lightgbm.LGBMClassifier)):
        quiet = {"verbosity": 0} if cls is xgboost.XGBClassifier else {"verbosity": -1}
        given = objective("fbeta:beta=1", loss="surrogate")
        model = cls(n_estimators=5, n_jobs=1, objective=given, **quiet).fit(X, y.astype(int), sample_weight=w)
        raw = {"output_margin": True} if cls is xgboost.XGBClassifier else {"raw_score": True}
        assert np.isfinite(model.predict(X, **raw)).all()


@pytest.mark.parametrize("make", [xgboost_objective, lightgbm_objective])
def test_bad_input(make):
    for bad, message in (
        ({"metric": "fbta"}, "Did you mean"),
        ({"metric": "precision"}, "pole on the corner"),
        ({"metric": "fbeta:beta=1", "loss": "hinge"}, "tangent, surrogate"),
        ({"metric": "fbeta:beta=1", "q": 2}, "q must lie"),
        ({"metric": "fbeta:beta=1", "costs": (0, 1)}, "positive and finite"),
        ({"metric": "fbeta:beta=1", "costs": 3}, "pair"),
        ({"metric": "fbeta:beta=1", "costs": (1, 1), "at": Confusion(1, 1, 1, 1)}, "not both"),
        ({"metric": "fbeta:beta=1", "loss": "surrogate", "costs": (1, 1)}, "no operating point"),
        ({"metric": "fbeta:beta=1", "prevalence": 1.5}, "strictly between"),
    ):
        with pytest.raises(ValueError, match=message):
            make(**bad)
    with pytest.raises(ValueError, match="no anchors"):
        make("mcc", loss="surrogate")(np.array([0, 1]), np.zeros(2))
    with pytest.raises(TypeError, match="is a Confusion"):
        make("mcc", at=(1, 2, 3, 4))
    objective = make("fbeta:beta=1")
    for label, message in (([0, 2], "0 and 1"), ([1, 1], "one class only")):
        with pytest.raises(ValueError, match=message):
            objective(np.array(label), np.zeros(2))
    with pytest.raises(ValueError, match="two classes"):
        objective(np.array([0, 1]), np.zeros((2, 3)))


def test_other_weights_are_noticed_and_rows_are_not_pickled():
    data = xgboost.DMatrix(np.zeros((4, 1)), np.array([1, 0, 0, 0]))
    objective = xgboost_objective("fbeta:beta=1")
    before = objective(np.zeros(4), data)[0].copy()
    data.set_weight([1, 1, 1, 5])
    after = objective(np.zeros(4), data)[0]
    assert after[3] == pytest.approx(5 * before[3])
    again = pickle.loads(pickle.dumps(objective))
    assert again._known is None
    np.testing.assert_array_equal(again(np.zeros(4), data)[0], after)
