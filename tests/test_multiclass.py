"""One class of many, rows and maps: the largest score is the best decision for macro F."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from sklearn.metrics import f1_score, fbeta_score

from fbeta import (
    Accuracy,
    BalancedAccuracy,
    Confusion,
    FBeta,
    RunningConfusion,
    SoftLoss,
    SurrogateLoss,
    TangentLoss,
)
from fbeta.losses import get
from fbeta.losses.argmax import argmax_loss, argmax_rule, pairwise_weights
from fbeta.task import one_against_rest

C = 3


def data(n=60, seed=0):
    generator = torch.Generator().manual_seed(seed)
    y = torch.multinomial(torch.tensor([0.8, 0.15, 0.05]), n, replacement=True, generator=generator)
    logits = torch.randn(n, C, generator=generator, dtype=torch.float64) + 1.5 * F.one_hot(y, C)
    return logits, y


def macro(m, logits, y):
    return float(
        m(Confusion.from_predictions(F.one_hot(logits.argmax(-1), C), F.one_hot(y, C), axis=0)).mean()
    )


def test_one_against_rest_is_the_logit_of_softmax():
    logits = torch.randn(20, 5, dtype=torch.float64) * 5
    torch.testing.assert_close(torch.sigmoid(one_against_rest(logits)), logits.softmax(-1))
    torch.testing.assert_close(one_against_rest(logits[:, :2])[:, 1], logits[:, 1] - logits[:, 0])


def test_one_against_rest_keeps_its_digits_and_gradients():
    logits = torch.tensor([[1e4, -1e4, 0.0], [40.0, 0.0, 1.0], [0.0, 0.0, 0.0]], requires_grad=True)
    z = one_against_rest(logits)
    exact = one_against_rest(logits.double())
    assert ((z - exact).abs() <= 1e-6 * exact.abs().clamp(min=1)).all()
    z.sum().backward()
    assert logits.grad.isfinite().all()
    assert torch.autograd.gradcheck(
        one_against_rest, torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    )


@pytest.mark.parametrize("q", [0.0, 0.4, 1.0])
def test_gradcheck(q):
    z = torch.randn(4, C, dtype=torch.float64, requires_grad=True)
    y = F.one_hot(torch.tensor([0, 2, 1, 0]), C).double()
    weights = torch.tensor([1.0, 2.0, 4.0]).double()
    assert torch.autograd.gradcheck(lambda z: argmax_loss(z, y, weights, q), z)
    assert torch.autograd.gradgradcheck(lambda z: argmax_loss(z, y, weights, q), z)


def test_pairwise_weights_are_exact_for_two_classes():
    right, wrong = torch.tensor([3.0, 0.5]).double(), torch.tensor([1.0, 0.2]).double()
    c = pairwise_weights(right, wrong)
    for eta in torch.linspace(0.01, 0.99, 99, dtype=torch.float64):
        p = torch.stack([eta, 1 - eta])
        best = argmax_rule(p, right + wrong, wrong)
        assert torch.argmax(c * p) == best


def test_pairwise_weights_between_cross_entropy_and_inverse_size():
    size = torch.tensor([0.8, 0.15, 0.05]).double()
    perfect = pairwise_weights(1 / size, 1 / size)  # F = 1: r = (2 − F)/D, w = F/D
    torch.testing.assert_close(perfect, torch.ones(3).double())
    poor = pairwise_weights(2 / size, 1e-9 / size)
    torch.testing.assert_close(poor / poor[0], size[0] / size)


def test_equal_gains_are_cross_entropy():
    logits, y = data()
    expected = F.cross_entropy(logits, y)
    for loss in (
        TangentLoss(Accuracy(), task="multiclass", num_labels=C),
        TangentLoss(FBeta(1), task="multiclass", num_labels=C, average="micro"),
    ):
        for _ in range(3):
            torch.testing.assert_close(loss(logits.requires_grad_(), y), expected)


def test_counts_are_those_of_argmax():
    logits, y = data()
    running = RunningConfusion(memory=None, task="multiclass", num_labels=C)
    c = running(logits, y)
    score = f1_score(y.numpy(), logits.argmax(-1).numpy(), average="macro")
    assert float(FBeta(1)(c).mean()) == pytest.approx(score)


def test_gain_is_the_gradient_of_the_macro_metric():
    """Moving a little mass of class k from call i to call j changes macro F by (G[k,j] − G[k,i])/C."""
    rng = np.random.default_rng(0)
    table = rng.random((C, C)) + 2 * np.eye(C)
    table /= table.sum()

    def score(t):
        tp = np.diag(t)
        fp, fn = t.sum(0) - tp, t.sum(1) - tp
        return np.mean(FBeta(2)(Confusion(tp, fp, fn, 1 - tp - fp - fn)))

    loss = TangentLoss(FBeta(2), task="multiclass", num_labels=C, warmup=0)
    tp = np.diag(table)
    fp, fn = table.sum(0) - tp, table.sum(1) - tp
    loss.operate_at(Confusion(*(1000 * x for x in (tp, fp, fn, 1 - tp - fp - fn))))
    a, b = (x.numpy() for x in loss.gain)
    h = 1e-6
    changes, predicted = [], []
    for k in range(C):
        for i, j in ((0, 1), (1, 2), (2, 0)):
            moved = table.copy()
            moved[k, i] -= h
            moved[k, j] += h
            changes.append((score(moved) - score(table)) / h)
            predicted.append((a[j] * (j == k) - b[j]) - (a[i] * (i == k) - b[i]))
    scale = np.dot(changes, predicted) / np.dot(predicted, predicted)
    assert np.allclose(changes, scale * np.array(predicted), atol=1e-4)


# A finite population of 60 kinds of rows with three overlapping, imbalanced classes.
rng = np.random.default_rng(1)
ETA = torch.tensor(rng.dirichlet([4.0, 0.8, 0.3], 60))


def population_score(m, called):
    calls = F.one_hot(called, C).double()
    tp = (calls * ETA).sum(0)
    fp, fn = (calls * (1 - ETA)).sum(0), ((1 - calls) * ETA).sum(0)
    return float(m(Confusion(tp, fp, fn, 60 - tp - fp - fn)).mean())


def best_score(m):
    """The best decisions of all, by greedy exchange from several starts."""
    found = []
    for seed in range(3):
        called = torch.randint(C, (60,), generator=torch.Generator().manual_seed(seed))
        score, before = population_score(m, called), -1.0
        while score > before:
            before = score
            for i in range(60):
                for k in range(C):
                    other = called.clone()
                    other[i] = k
                    if (value := population_score(m, other)) > score:
                        called, score = other, value
        found.append(score)
    return max(found)


def fit(loss, steps=1500):
    logits = torch.zeros(60, C, dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.Adam([logits], lr=0.05)
    rows, classes = torch.meshgrid(torch.arange(60), torch.arange(C), indexing="ij")
    for _ in range(steps):
        optimiser.zero_grad()
        loss(logits[rows.flatten()], classes.flatten(), ETA.flatten()).backward()
        optimiser.step()
    return logits.detach()


@pytest.mark.parametrize("beta", [1, 2])
@pytest.mark.parametrize("q", [0.0, 0.4])
def test_argmax_reaches_the_best_macro_f_and_beats_cross_entropy(beta, q):
    m = FBeta(beta)
    best = best_score(m)
    trained = fit(TangentLoss(m, task="multiclass", num_labels=C, q=q))
    plain = population_score(m, ETA.argmax(-1))
    assert population_score(m, trained.argmax(-1)) == pytest.approx(best, abs=0.02)
    assert best > plain + 0.03, "cross entropy leaves this on the table"


def test_trained_scores_decide_as_the_rule_on_probabilities():
    loss = TangentLoss(FBeta(1), task="multiclass", num_labels=C)
    trained = fit(loss).argmax(-1)
    assert (trained == argmax_rule(ETA, *loss.gain)).double().mean() > 0.95


def test_population_and_stream_differ():
    """Trained on a stream with other class rates, told the population's: its decision, not the stream's."""
    share = torch.tensor([0.2, 1.0, 3.0]).double()  # the stream shows rare classes more often
    rates = (ETA.mean(0)).tolist()
    loss = TangentLoss(FBeta(1), prevalence=rates, task="multiclass", num_labels=C)
    logits = torch.zeros(60, C, dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.Adam([logits], lr=0.05)
    rows, classes = torch.meshgrid(torch.arange(60), torch.arange(C), indexing="ij")
    for _ in range(1500):
        optimiser.zero_grad()
        loss(logits[rows.flatten()], classes.flatten(), (ETA * share).flatten()).backward()
        optimiser.step()
    direct = fit(TangentLoss(FBeta(1), task="multiclass", num_labels=C))
    got, expected = (population_score(FBeta(1), x.detach().argmax(-1)) for x in (logits, direct))
    assert got == pytest.approx(expected, abs=5e-3)


def test_soft_and_surrogate_are_one_against_the_rest():
    logits, y = data()
    f, hot = logits.softmax(-1), F.one_hot(y, C).double()
    expected = 1 - FBeta(2)(Confusion.from_predictions(f, hot, axis=0)).mean()
    torch.testing.assert_close(SoftLoss(FBeta(2), task="multiclass", num_labels=C)(logits, y), expected)
    rates = [0.8, 0.15, 0.05]
    parts = []
    for k, p in enumerate(rates):
        part = -hot[:, k] * f[:, k].log() / p + (1 - hot[:, k]) * (4 * p / (1 - p) + f[:, k]).log() / (1 - p)
        parts.append(part.mean())
    loss = SurrogateLoss(FBeta(2), prevalence=rates, task="multiclass", num_labels=C)
    torch.testing.assert_close(loss(logits, y), sum(parts) / C)
    counted = SurrogateLoss(FBeta(2), class_counts=[80, 15, 5], task="multiclass", num_labels=C)
    torch.testing.assert_close(loss(logits, y), counted(logits, y))


EVERY = [
    lambda **k: TangentLoss(FBeta(2), task="multiclass", num_labels=C, **k),
    lambda **k: TangentLoss(
        BalancedAccuracy(), prevalence=[0.8, 0.15, 0.05], task="multiclass", num_labels=C, **k
    ),
    lambda **k: SoftLoss(FBeta(2), task="multiclass", num_labels=C, **k),
    lambda **k: SoftLoss(FBeta(2), task="multiclass", num_labels=C, memory=50, average="micro", **k),
    lambda **k: SurrogateLoss(FBeta(2), prevalence=[0.8, 0.15, 0.05], task="multiclass", num_labels=C, **k),
]


@pytest.mark.parametrize("make", EVERY)
def test_maps_weights_and_ignored_pixels_are_rows(make):
    logits, y = data(24)
    w = torch.rand(24, dtype=torch.float64)
    rows, maps = make(), make(ignore_index=255)
    for _ in range(3):
        flat = rows(logits.clone().requires_grad_(), y, w)
        extra_l = torch.cat([logits, torch.full((8, C), torch.nan)])
        extra_y, extra_w = torch.cat([y, torch.full((8,), 255)]), torch.cat([w, torch.ones(8)])
        shaped = extra_l.reshape(2, 4, 4, C).movedim(-1, 1).clone().requires_grad_()
        dense = maps(shaped, extra_y.reshape(2, 4, 4), extra_w.reshape(2, 4, 4))
    torch.testing.assert_close(dense, flat)
    dense.backward()
    assert (shaped.grad[1, :, 2:] == 0).all()
    for key, value in rows.state_dict().items():
        torch.testing.assert_close(maps.state_dict()[key], value)


@pytest.mark.parametrize("make", [EVERY[0], EVERY[4]])
def test_reductions(make):
    logits, y = data(24)
    w = torch.rand(24, dtype=torch.float64)
    none, mean, total = (make(reduction=r)(logits, y, w) for r in ("none", "mean", "sum"))
    assert none.shape == (24,)
    torch.testing.assert_close(none.sum() / w.sum(), mean)
    maps = logits.reshape(2, 3, 4, C).movedim(-1, 1)
    assert make(reduction="none")(maps, y.reshape(2, 3, 4)).shape == (2, 3, 4)
    torch.testing.assert_close(total, none.sum())  # as CrossEntropyLoss has it


def test_binary_maps():
    z = torch.randn(2, 5, 5, dtype=torch.float64)
    y = (torch.rand(2, 5, 5) < 0.3).double()
    y[0, 0] = 255
    for make in (lambda **k: TangentLoss(FBeta(1), **k), lambda **k: SoftLoss(FBeta(1), **k)):
        kept = y != 255
        torch.testing.assert_close(make(ignore_index=255)(z, y), make()(z[kept], y[kept]))


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: TangentLoss(FBeta(1), task="multiclass"), "needs num_labels"),
        (lambda: TangentLoss(FBeta(1), task="multiclass", num_labels=1), "from 2"),
        (
            lambda: SurrogateLoss(FBeta(1), prevalence=0.1, task="multiclass", num_labels=3),
            "3 numbers, one a class",
        ),
        (lambda: EVERY[0]()(torch.zeros(4, 2), torch.zeros(4).long()), r"\(N, 3\) and target"),
        (lambda: EVERY[0]()(torch.zeros(4, 3), torch.zeros(4)), "integer class targets"),
        (lambda: EVERY[0]()(torch.zeros(4, 3), torch.tensor([0, 1, 2, 3])), r"\[0, 2\]; got 3"),
        (lambda: EVERY[0]().probability(torch.zeros(3)), "argmax_rule"),
    ],
)
def test_bad_input(call, says):
    with pytest.raises((ValueError, TypeError), match=says):
        call()


def test_compiles_and_reads_nothing():
    torch._dynamo.reset()
    logits, y = data()
    for make in EVERY[:3]:
        plain, compiled = make(), torch.compile(make(), fullgraph=True, backend="aot_eager")
        for _ in range(2):
            torch.testing.assert_close(
                compiled(logits.clone().requires_grad_(), y), plain(logits.clone().requires_grad_(), y)
            )


def test_macro_scores_equal_scikit_learn():
    logits, y = data()
    for beta in (0.5, 2):
        expected = fbeta_score(y.numpy(), logits.argmax(-1).numpy(), beta=beta, average="macro")
        assert macro(FBeta(beta), logits, y) == pytest.approx(expected)


def test_losses_of_the_true_class():
    """Cross entropy, absolute error and their kin look at the true class alone, however many there are."""
    logits, y = data()
    f = logits.softmax(-1).gather(1, y[:, None])[:, 0]
    torch.testing.assert_close(
        get("bce", task="multiclass", num_labels=C)(logits, y), F.cross_entropy(logits, y)
    )
    torch.testing.assert_close(get("mae", task="multiclass", num_labels=C)(logits, y), (2 - 2 * f).mean())
    gce = get("gce", task="multiclass", num_labels=C, q=0.5)
    torch.testing.assert_close(gce(logits, y), ((1 - f**0.5) / 0.5).mean())
    weight = torch.tensor([100 / 80, 100 / 15, 100 / 5]).double()
    balanced = get("balanced-bce", class_counts=[80, 15, 5], task="multiclass", num_labels=C)
    expected = (weight[y] * F.cross_entropy(logits, y, reduction="none")).mean()
    torch.testing.assert_close(balanced(logits, y), expected)
    for name in ("focal", "asymmetric", "ldam"):
        with pytest.raises(ValueError, match="cannot do task='multiclass'; it can do binary"):
            get(name, class_counts=[80, 15, 5], task="multiclass", num_labels=C)
