"""Networks on tables: each as it would be alone, as plain PyTorch and scikit-learn would train it, and by one name."""

import itertools

import numpy as np
import polars as pl
import pytest
import torch
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import PredefinedSplit
from sklearn.preprocessing import StandardScaler

from fbeta import FBeta, as_metric, learners, losses
from fbeta.comparison.judging import judge
from fbeta.comparison.parts import LoadedPart
from fbeta.comparison.plan import Part, Split
from fbeta.comparison.run import fit
from fbeta.learners import Goal, Rows, models
from fbeta.learners.models.linear import Linear
from fbeta.learners.models.mlp import MLP
from fbeta.learners.network import Network
from fbeta.learners.solvers import LBFGS, Adam, _stream
from fbeta.learners.stack import Run, Stack
from fbeta.sklearn import MetricClassifier
from fbeta.tables import read_frame
from fbeta.tables import split as deal
from fbeta.tables.folds import folds

N, D = 300, 5
CHANCE = np.random.default_rng(3)
X = CHANCE.normal(size=(N, D)).astype(np.float32)
Y = (X[:, 0] + CHANCE.normal(size=N) > 1.4).astype(np.int64)
WHOLE, SOME = np.arange(N), np.arange(0, N, 2)
F2 = FBeta(2)


def runs():
    made = []
    for seed in range(3):
        for loss in sorted(losses.names()):
            made.append(Run(WHOLE if seed else SOME, loss, (7, seed), (8, seed)))
    return [*made, Run(WHOLE, "tangent", (7, 0), (8, 0), {"q": 0.5})]


def trained(members, epochs, hidden=(), **options):
    stack = Stack(X, Y[:, None], members, F2, hidden=hidden)
    solver = Adam(stack, **{"batch": 32, "steps": 9, "rate": 1e-3, **options})
    for _ in range(epochs):
        solver.epoch()
    return stack, solver


@pytest.mark.parametrize("hidden", [(), (16, 8)])
def test_alone_as_beside_others(hidden):
    together, _ = trained(runs(), 3, hidden)
    for i in range(0, len(runs()), 5):
        alone, _ = trained([runs()[i]], 3, hidden)
        # The library may choose other kernels for one matrix than for many: rounding, nothing more.
        assert torch.allclose(alone.scores(0), together.scores(i), atol=1e-5, rtol=1e-4), runs()[i].kind


@pytest.mark.parametrize("loss", ["bce", "tangent", "surrogate", "soft"])
def test_as_plain_pytorch(loss):
    stack = Stack(X, Y[:, None], [Run(SOME, loss, (1,), (2,))], F2, hidden=(16, 8), penalty=0.1)
    solver = Adam(stack, batch=25, steps=12, rate=1e-2)
    sizes = [D, 16, 8, 1]
    layers = [torch.nn.Linear(a, b) for a, b in itertools.pairwise(sizes)]
    with torch.no_grad():
        for layer, weight, bias in zip(layers, stack.weights, stack.biases, strict=True):
            layer.weight.copy_(weight[0].T)
            layer.bias.copy_(bias[0, 0])
    net = torch.nn.Sequential(layers[0], torch.nn.ReLU(), layers[1], torch.nn.ReLU(), layers[2])
    y = Y[SOME]
    criterion = losses.get(loss, metric=F2, class_counts=((y == 0).sum(), (y == 1).sum()))
    decayed = [{"params": [x.weight for x in layers], "weight_decay": 0.1}, {"params": [x.bias for x in layers]}]
    optimiser = torch.optim.Adam(decayed, lr=1e-2)
    for epoch in range(4):
        solver.epoch()
        for rows in _stream(SOME, epoch * 12 * 25, 12 * 25, (2,)).reshape(12, 25):
            optimiser.zero_grad()
            criterion(net(torch.from_numpy(X[rows]))[:, 0], torch.from_numpy(Y[rows]).float()).backward()
            optimiser.step()
    with torch.no_grad():
        assert torch.allclose(net(torch.from_numpy(X)), stack.scores(0), atol=2e-4, rtol=1e-3)


def test_averaged_weights_are_the_mean_of_an_epoch_and_change_no_step():
    (plain, one), (averaged, mean) = (
        trained([Run(WHOLE, "bce")], 0, batch=50, steps=6, rate=0.1, averaged=a) for a in (False, True)
    )
    seen = []
    for rows in one._order():  # one epoch, step by step
        one._step(rows)
        seen.append(plain.weights[0].clone())
    mean.epoch()
    assert torch.equal(averaged.weights[0], plain.weights[0])
    assert torch.allclose(mean.models[0], torch.stack(seen).mean(0), atol=1e-6)
    assert not torch.allclose(averaged.scores(0, None, mean.models), plain.scores(0), atol=1e-3)


def test_a_stream_takes_every_row_once_per_turn():
    rows = np.array([5, 7, 9])
    found = np.concatenate([_stream(rows, 0, 4, (1,)), _stream(rows, 4, 8, (1,))])
    assert [sorted(found[i : i + 3]) for i in range(0, 12, 3)] == [[5, 7, 9]] * 4
    assert len({tuple(found[i : i + 3]) for i in range(0, 12, 3)}) > 1


def test_it_learns():
    stack, _ = trained([Run(WHOLE, "bce")], 20, (16,), rate=1e-2)
    z, y = stack.scores(0)[:, 0], torch.from_numpy(Y).float()
    prior = torch.logit(y.mean()).expand(N)
    log_loss = torch.nn.functional.binary_cross_entropy_with_logits
    assert log_loss(z, y) < 0.75 * log_loss(prior, y)


def autograd(stack, weight, columns):
    """Gradients of a stack's first run as PyTorch finds them, row weights and all."""
    parameters = [p[0].clone().requires_grad_() for p in stack.parameters]
    layers = len(stack.weights)
    z = torch.from_numpy(X).to(stack.dtype)
    for i in range(layers):
        z = (z.relu() if i else z) @ parameters[i] + parameters[layers + i]
    y = torch.as_tensor(columns, dtype=stack.dtype)
    each = torch.nn.functional.binary_cross_entropy_with_logits(z, y, reduction="none").mean(1)
    loss = (weight * each).sum() / weight.sum()
    loss = loss + stack.penalty / 2 * sum(p.square().sum() for p in parameters[:layers])
    return torch.autograd.grad(loss, parameters), loss


@pytest.mark.parametrize("hidden", [(), (8, 4)])
@pytest.mark.parametrize("outputs", [1, 3])
def test_gradients_of_all_rows_are_pytorchs(hidden, outputs):
    columns = np.stack([Y, 1 - Y, X[:, 1] > 0], axis=1)[:, :outputs].astype(np.int64)
    weight = CHANCE.uniform(0.5, 2, N)
    options = {"hidden": hidden, "weight": weight, "penalty": 0.3, "dtype": torch.float64}
    stack = Stack(X, columns, [Run(WHOLE, "bce", (1,)), Run(SOME, "bce", (1,))], F2, **options)
    solver = LBFGS(stack)
    value = solver._closure()
    wanted, loss = autograd(stack, torch.from_numpy(weight), columns)
    for p, g in zip(stack.parameters, wanted, strict=True):
        assert torch.allclose(p.grad[0].reshape(g.shape), g, atol=1e-12)
    alone = Stack(X, columns, [Run(WHOLE, "bce", (1,))], F2, **options)
    assert LBFGS(alone)._closure() == pytest.approx(loss.item())
    assert value > loss.item()  # the loss of the other run is in it


@pytest.mark.parametrize("solver", ["adam", "lbfgs"])
def test_sparse_rows_are_the_same_rows(solver):
    thin = sparse.csr_array(np.where(np.abs(X) > 0.5, X, 0.0))
    members = [Run(WHOLE, "bce", (1,), (2,)), Run(SOME, "soft", (1,), (3,))]

    def scores(X):
        stack = Stack(X, Y[:, None], members, F2, penalty=0.1, dtype=torch.float64)
        made = Adam(stack, batch=30, steps=10, rate=0.01) if solver == "adam" else LBFGS(stack)
        for _ in range(3):
            made.epoch()
        return stack.scores(0), stack.scores(1, np.arange(7))

    for dense, found in zip(scores(thin.toarray()), scores(thin), strict=True):
        assert torch.allclose(dense, found, atol=1e-8)


def test_a_linear_model_with_cross_entropy_is_logistic_regression():
    weight = CHANCE.uniform(0.5, 2, N)
    rows = Rows(X.astype(np.float64), Y[:, None], folds(Y, 3), weight)
    fitted = Linear().fit_folds(rows, Goal(F2), ["bce"])["bce"]
    other = LogisticRegression(C=1 / (weight.sum() * (1 / weight.sum())), tol=1e-12, max_iter=10_000)
    other.fit(X, Y, sample_weight=weight)
    assert np.allclose(fitted.model.weights[0][:, 0], other.coef_[0], atol=1e-3)
    assert np.allclose(fitted.model.biases[0], other.intercept_, atol=1e-3)
    for f, model in enumerate(fitted.of_folds):
        held = rows.fold == f
        assert np.allclose(model(X[held]), fitted.scores[held], atol=1e-9)


@pytest.mark.parametrize("model", ["linear", "mlp"])
@pytest.mark.parametrize("loss", ["tangent", "balanced-bce"])
def test_the_same_name_is_the_same_model_everywhere(model, loss):
    table = StandardScaler().fit_transform(X)
    fold = folds(Y, 4)
    estimator = MetricClassifier("f2", model, loss, cv=PredefinedSplit(fold), pos_label=1, random_state=5)
    seed = int(np.random.RandomState(5).randint(2**31 - 1))
    estimator.fit(table, Y)
    split = Split(WHOLE, SOME, fold, seed)
    part = Part(model, (loss,), 0, 0)
    found = LoadedPart(part, table, Y, split, as_metric("f2")).train()[loss]
    assert np.allclose(found.inner, estimator.out_of_fold_[:, 0], atol=1e-4)  # scaled twice, so rounded otherwise
    assert found.rounds == estimator.n_iter_
    assert np.allclose(found.outer, estimator._scores(table[SOME])[:, 0], atol=1e-4)
    decided = judge(found, Y, split, as_metric("f2"), "shrunk")
    assert np.allclose(decided.probability, estimator.predict_proba(table[SOME])[:, 1], atol=1e-4)
    assert decided.outcome.cut == pytest.approx(estimator.cuts_[0].value, abs=1e-4)
    frame = pl.DataFrame({**{f"x{i}": x for i, x in enumerate(table.T)}, "y": Y})
    rows = read_frame(frame, "y", "1")
    dealt = PredefinedSplit(deal(rows, 4, seed + 1000).ids)
    model = fit(rows, metric="f2", models=model, losses=loss, folds=4, seed=seed, force=True)
    estimator.set_params(cv=dealt).fit(table, Y)
    assert np.allclose(model.of_features(rows.features), estimator.predict_proba(table)[:, 1], atol=1e-4)
    assert model.cut.value == pytest.approx(estimator.cuts_[0].value, abs=1e-4)


def test_a_method_does_not_depend_on_its_company():
    rows = Rows(X, Y[:, None], folds(Y, 3))
    for learner in (Linear(epochs=5), MLP(epochs=3, hidden=(8,))):
        together = learner.fit_folds(rows, Goal(F2), ["bce", "soft", "tangent"], seed=1)
        for loss, fitted in together.items():
            alone = learner.fit_folds(rows, Goal(F2), [loss], seed=1)[loss]
            assert np.allclose(alone.scores, fitted.scores, atol=1e-4)
            assert alone.rounds == fitted.rounds


def test_a_rows_own_model_never_scores_it(monkeypatch):
    rows = Rows(X, Y[:, None], folds(Y, 3))
    asked = []
    scores = Stack.scores
    monkeypatch.setattr(
        Stack,
        "scores",
        lambda self, run, part=None, models=None: (
            asked.append((set(self.runs[self._place[run]].rows), None if part is None else set(part))),
            scores(self, run, part, models),
        )[1],
    )
    MLP(epochs=1, hidden=(4,)).fit_folds(rows, Goal(F2), ["bce"])
    held = [(learned, scored) for learned, scored in asked if scored is not None]
    assert len(held) == 3
    assert all(not learned & scored for learned, scored in held)


def test_what_diverges_is_said_and_has_no_model():
    rows = Rows(X * np.float32(1e30), Y[:, None], folds(Y, 3))
    fitted = MLP(epochs=2, rate=1e20).fit_folds(rows, Goal(F2), ["mae"])["mae"]
    assert fitted.model is None
    assert fitted.remark == "diverged: its scores are not finite"
    assert (fitted.scores == 0).all()


def test_a_network_in_files():
    rng = np.random.default_rng(0)
    network = Network((rng.normal(size=(3, 4)), rng.normal(size=(4, 2))), (np.zeros(4), np.ones(2)))
    again = Network.read(network.about(), network.files())
    rows = rng.normal(size=(5, 3))
    assert np.array_equal(again(rows), network(rows))
    assert again(rows).shape == (5, 2)
    with pytest.raises(ValueError, match="do not fit together"):
        Network((np.zeros((2, 1)),), (np.zeros(2),))
    for about, files, words in (
        ({"sizes": [3, 4, 1]}, network.files(), "widths"),
        ({"sizes": [3]}, network.files(), "holds"),
        (network.about(), {"weights.safetensors": b"x"}, "no safetensors"),
        (network.about(), Network((np.full((3, 1), np.nan),), (np.zeros(1),)).files(), "holds"),
    ):
        with pytest.raises(ValueError, match=words):
            Network.read(about, files)


def test_models_are_found_by_name():
    known = models.names()
    assert known.index("linear") < known.index("mlp")
    with pytest.raises(ValueError, match="Unknown model 'liner'. Did you mean 'linear'"):
        models.get("liner")
    with pytest.raises(ValueError, match="A model named 'mlp' exists already"):

        class Other(learners.Learner):
            name = "mlp"


@pytest.mark.parametrize("loss", losses.names())
def test_columns_of_each_are_losses_of_their_own(loss):
    counts = np.array([80, 50, 20]), np.array([20, 50, 80])
    options = {"metric": "fbeta:beta=2", "check": False}
    reduction = "none" if "none" in losses.Loss.registry[loss].reductions else "mean"
    joint = losses.get(
        loss, task="multilabel", num_labels=3, average="each", class_counts=counts, reduction=reduction, **options
    )
    single = [
        losses.get(loss, class_counts=(counts[0][k], counts[1][k]), reduction=reduction, **options) for k in range(3)
    ]
    chance = torch.Generator().manual_seed(0)
    for _ in range(4):  # states move apart
        z = torch.randn(16, 3, generator=chance, dtype=torch.float64)
        y = (torch.rand(16, 3, generator=chance) < torch.tensor([0.2, 0.5, 0.8])).double()
        found = joint(z, y)
        apart = torch.stack([one(z[:, k], y[:, k]) for k, one in enumerate(single)], dim=-1)
        assert torch.allclose(found, apart if reduction == "none" else apart.mean())
