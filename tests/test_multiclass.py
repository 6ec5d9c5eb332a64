"""One class of many, rows and maps: the largest score is the best decision for macro F."""

import copy

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from sklearn.metrics import f1_score, fbeta_score

from fbeta import Accuracy, BalancedAccuracy, Confusion, FBeta, RunningConfusion, SoftLoss, SurrogateLoss, TangentLoss
from fbeta.losses import get
from fbeta.losses.argmax import argmax_loss, argmax_rule, pairwise_weights
from fbeta.losses.counting import FEW, cells, soft_decisions
from fbeta.losses.task import convert, one_against_rest
from fbeta.metrics.distance import box_cox
from rank_processes import end_rank, join, run_ranks

C = 3


def data(n=60, seed=0):
    generator = torch.Generator().manual_seed(seed)
    y = torch.multinomial(torch.tensor([0.8, 0.15, 0.05]), n, replacement=True, generator=generator)
    logits = torch.randn(n, C, generator=generator, dtype=torch.float64) + 1.5 * F.one_hot(y, C)
    return logits, y


def macro(m, logits, y):
    return float(m(Confusion.from_predictions(F.one_hot(logits.argmax(-1), C), F.one_hot(y, C), axis=0)).mean())


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
    assert torch.autograd.gradcheck(one_against_rest, torch.randn(4, 3, dtype=torch.float64, requires_grad=True))


@pytest.mark.parametrize("q", [0.0, 0.4, 1.0])
def test_gradcheck(q):
    weights = torch.tensor([1.0, 2.0, 4.0]).double()
    for shape in ((4, C), (1, C, 2, 2)):
        z = torch.randn(shape, dtype=torch.float64, requires_grad=True)
        y = torch.tensor([0, 2, 1, 0]).reshape(shape[:1] + shape[2:])
        assert torch.autograd.gradcheck(lambda z, y=y: argmax_loss(z, y, weights, q), z)
        assert torch.autograd.gradgradcheck(lambda z, y=y: argmax_loss(z, y, weights, q), z)


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


@pytest.mark.parametrize("beta", [pytest.param(1, marks=pytest.mark.slow), 2])
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
    lambda **k: TangentLoss(BalancedAccuracy(), prevalence=[0.8, 0.15, 0.05], task="multiclass", num_labels=C, **k),
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
        (lambda: SurrogateLoss(FBeta(1), prevalence=0.1, task="multiclass", num_labels=3), "3 numbers, one per class"),
        (lambda: EVERY[0]()(torch.zeros(4, 2), torch.zeros(4).long()), r"\(N, 3\) and target"),
        (lambda: EVERY[0]()(torch.zeros(4, 3), torch.zeros(4)), "integer class targets"),
        (lambda: EVERY[0]()(torch.zeros(4, 3), torch.tensor([0, 1, 2, 3])), r"\[0, 2\]; got 3"),
        (lambda: EVERY[0]().probability(torch.zeros(3)), "argmax_rule"),
    ],
)
def test_bad_input(call, says):
    with pytest.raises((ValueError, TypeError), match=says):
        call()


COMPILED = [
    (EVERY[0], {}, False),
    (EVERY[1], {"ignore_index": 0, "q": 0.5}, True),
    *(
        pytest.param(*case, marks=pytest.mark.slow)
        for case in ((EVERY[1], {}, False), (EVERY[2], {}, False), (EVERY[0], {"average": "micro"}, True))
    ),
]


@pytest.mark.parametrize(("make", "options", "maps"), COMPILED)
def test_compiles_and_reads_nothing(make, options, maps):
    torch._dynamo.reset()
    z, y = data()
    if maps:
        z, y = z.reshape(3, 4, 5, C).movedim(-1, 1), y.reshape(3, 4, 5)
    plain = make(**options)
    compiled = torch.compile(copy.deepcopy(plain), fullgraph=True, backend="aot_eager")
    for _ in range(2):
        both = [z.clone().requires_grad_() for _ in range(2)]
        value, expected = compiled(both[0], y), plain(both[1], y)
        torch.testing.assert_close(value, expected)
        value.backward()
        expected.backward()
        torch.testing.assert_close(both[0].grad, both[1].grad)
    for key, state in plain.state_dict().items():
        torch.testing.assert_close(compiled.state_dict()[f"_orig_mod.{key}"], state)


def test_macro_scores_equal_scikit_learn():
    logits, y = data()
    for beta in (0.5, 2):
        expected = fbeta_score(y.numpy(), logits.argmax(-1).numpy(), beta=beta, average="macro")
        assert macro(FBeta(beta), logits, y) == pytest.approx(expected)


def test_losses_of_the_true_class():
    """Cross entropy, absolute error and their kin look at the true class alone, however many there are."""
    logits, y = data()
    f = logits.softmax(-1).gather(1, y[:, None])[:, 0]
    torch.testing.assert_close(get("bce", task="multiclass", num_labels=C)(logits, y), F.cross_entropy(logits, y))
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


def by_columns(loss, logits, y, w=None):
    """The loss by its definition, every class a column against the rest, and the counts it adds to the state."""
    batch = convert(logits, y, w, task="multiclass", ignore_index=loss.ignore_index)
    z, hot, weight = batch
    gain, offset = loss.gain
    c = torch.ones(())
    if loss.columns:
        c = pairwise_weights(gain - offset, offset)
        seen = Confusion(*(loss.seen or loss.running).counts)
        share = stream = seen.prevalence if loss.stream is None else loss.stream
        if loss.prevalence is not None:
            population, known = torch.tensor(loss.prevalence), (stream > 0) & (stream < 1)
            c = c * torch.where(known, population / stream, 1.0)
            share = torch.where(known, stream, population)
        if share.sum() > 0:
            c = c / np.average(c, weights=share)
    elements = weight * c.to(z.dtype) * hot * -box_cox(F.logsigmoid(z), loss.q, torch)
    if loss.counts == "soft":
        decided = soft_decisions(z.detach())
    else:
        called = F.one_hot(z.argmax(-1), z.shape[-1]).to(z.dtype)
        decided = called, 1 - called
    value = elements.sum()
    if loss.reduction == "none":
        value = elements.sum(-1).reshape(y.shape)
    elif loss.reduction == "mean":
        value = value / weight[:, 0].sum().clamp(min=1e-30)
    return value, cells(batch, decided, columns=loss.columns)


RATES = [0.7, 0.2, 0.1]
OPTIONS = [
    *({"q": q, "average": average} for q in (0.0, 0.5, 0.7, 1.0) for average in ("macro", "micro")),
    {"counts": "soft"},
    {"counts": "soft", "average": "micro"},
    {"counts": "given", "prevalence": RATES},
    {"prevalence": RATES, "memory": 20},
    {"prevalence": RATES, "class_counts": [30, 30, 40], "q": 0.5},
    {"accumulate": 2, "warmup": 0},
    {"reduction": "sum", "q": 0.7},
    {"reduction": "none", "q": 0.7},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("maps", [False, True])
@pytest.mark.parametrize("ignored", [False, True])
def test_the_true_class_alone_gives_what_columns_give(options, maps, ignored):
    loss = TangentLoss(FBeta(2), task="multiclass", num_labels=C, ignore_index=255 if ignored else None, **options)
    twin = copy.deepcopy(loss)
    for step in range(4):
        logits, y = data(60, seed=step)
        w = None if step == 1 else torch.rand(60, generator=torch.Generator().manual_seed(step)).double()
        if ignored:
            y[::7] = 255
            logits[::7] = torch.tensor([torch.nan, torch.inf, -torch.inf]).double()
        if maps:
            logits = logits.reshape(3, 4, 5, C).movedim(-1, 1)
            y, w = y.reshape(3, 4, 5), None if w is None else w.reshape(3, 4, 5)
        found, wanted = (logits.clone().requires_grad_() for _ in range(2))
        expected, counts = by_columns(twin, wanted, y, w)
        value = loss(found, y, w)
        (twin.seen or twin.running).add(counts)
        torch.testing.assert_close(value, expected)
        value.sum().backward()
        expected.sum().backward()
        torch.testing.assert_close(found.grad, wanted.grad)
        for key, state in twin.state_dict().items():
            torch.testing.assert_close(loss.state_dict()[key], state)
    before = copy.deepcopy(loss.state_dict())
    with torch.no_grad():
        loss(logits, y, w)
    value = loss.eval()(logits, y, w)
    torch.testing.assert_close(value, by_columns(twin, logits, y, w)[0])
    assert all(torch.equal(loss.state_dict()[key], state) for key, state in before.items())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("q", [0.0, 0.5, 0.7, 1.0])
@pytest.mark.parametrize("scale", [1.0, 30.0, 1e4])
@pytest.mark.parametrize("classes", [2, 19, FEW + 100])
def test_sixth_digit_of_rows_and_maps(dtype, q, scale, classes):
    generator = torch.Generator().manual_seed(0)
    maps = (torch.randn(2, classes, 8, 8, generator=generator) * scale).clamp(-1e4, 1e4).to(dtype)
    maps[0, 0, 0, 0] = 1e4
    target = torch.randint(classes, (2, 8, 8), generator=generator)
    loss = TangentLoss(FBeta(1), task="multiclass", num_labels=classes, q=q, reduction="none").eval()
    rows = maps.movedim(1, -1).reshape(-1, classes)
    for logits, y in ((maps, target), (rows, target.flatten())):
        z, exact = logits.clone().requires_grad_(), logits.double().requires_grad_()
        value, (expected, _) = loss(z, y), by_columns(loss, exact, y)
        assert value.dtype == torch.float32
        assert ((value - expected).abs() <= 1e-6 * expected.abs().clamp(min=1)).all()
        value.sum().backward()
        expected.sum().backward()
        assert z.grad.dtype == dtype
        rounding = 1e-6 + torch.finfo(dtype).eps / 2 * exact.grad.abs()
        assert ((z.grad.double() - exact.grad).abs() <= rounding).all()


def test_gradients_of_other_classes_keep_their_digits_where_the_true_one_is_sure():
    logits = torch.tensor([[40.0, 0.0, -20.0]], requires_grad=True)
    TangentLoss(FBeta(1), task="multiclass", num_labels=C)(logits, torch.tensor([0])).backward()
    torch.testing.assert_close(logits.grad[0, 1:].double(), torch.tensor([-40.0, -60.0]).double().exp())


@pytest.mark.parametrize("shape", [(40, 5), (2, 5, 4, 5), (4, 5, 10), (2, FEW + 1, 4, 5), (3, 300, 2, 2)])
def test_the_first_of_equal_scores_is_called(shape):
    generator = torch.Generator().manual_seed(0)
    count = shape[1]
    logits = torch.randint(0, 3, shape, generator=generator).float()
    y = torch.randint(count, shape[:1] + shape[2:], generator=generator)
    c = RunningConfusion(memory=None, task="multiclass", num_labels=count)(logits, y)
    called, hot = (F.one_hot(x.flatten(), count).double() for x in (logits.argmax(1), y))
    expected = Confusion.from_predictions(called, hot, axis=0)
    for found, wanted in zip(c, expected, strict=True):
        assert torch.equal(found, wanted)


def test_a_class_that_is_out_of_the_question():
    """A logit of −∞ for another class is a probability of zero, as in CrossEntropyLoss."""
    logits, y = data()
    logits[y != 2, 2] = -torch.inf
    z, twin = logits.clone().requires_grad_(), logits.clone().requires_grad_()
    value = TangentLoss(FBeta(1), task="multiclass", num_labels=C, average="micro")(z, y)
    expected = F.cross_entropy(twin, y)
    torch.testing.assert_close(value, expected)
    value.backward()
    expected.backward()
    torch.testing.assert_close(z.grad, twin.grad)


def test_transforms():
    """In evaluation the loss is a function: vmap, its gradients and second derivatives."""
    stacked = torch.stack([data(seed=k)[0] for k in range(3)])
    y = torch.stack([data(seed=k)[1] for k in range(3)])
    for q in (0.0, 0.5, 1.0):
        loss = TangentLoss(FBeta(2), RATES, task="multiclass", num_labels=C, q=q, check=False).eval()
        one_by_one = torch.stack([by_columns(loss, a, b)[0] for a, b in zip(stacked, y, strict=True)])
        torch.testing.assert_close(torch.func.vmap(loss)(stacked, y), one_by_one)
        z = stacked.clone().requires_grad_()
        slopes = [torch.autograd.grad(by_columns(loss, a, b)[0], a)[0] for a, b in zip(z, y, strict=True)]
        torch.testing.assert_close(torch.func.vmap(torch.func.grad(loss))(stacked, y), torch.stack(slopes))
        few = stacked[0, :5].clone().requires_grad_()
        assert torch.autograd.gradgradcheck(lambda z, loss=loss: loss(z, y[0, :5]), few)


def test_weights_have_their_gradient():
    logits, y = data()
    loss = TangentLoss(FBeta(1), RATES, task="multiclass", num_labels=C)
    w = torch.rand(60, dtype=torch.float64, requires_grad=True)
    expected = torch.autograd.grad(loss.eval()(logits, y, w), w)[0]
    torch.testing.assert_close(torch.autograd.grad(loss.train()(logits, y, w), w)[0], expected)


@pytest.mark.parametrize("shape", [(0, C), (0, C, 4, 4), (2, C, 0, 4)])
def test_nothing_at_all_is_zero(shape):
    loss = TangentLoss(FBeta(1), task="multiclass", num_labels=C)
    z = torch.zeros(shape, requires_grad=True)
    value = loss(z, torch.zeros(shape[:1] + shape[2:]).long())
    value.backward()
    assert value == 0
    assert z.grad.shape == shape
    assert (loss.running.counts == 0).all()


RANKED = [
    lambda: EVERY[0](),
    lambda: EVERY[1](q=0.5, reduction="sum"),
    lambda: EVERY[0](average="micro", counts="soft"),
]


def steps(loss, part):
    """Three steps with the rows of one rank: values, gradients and state."""
    values, slopes = [], []
    for step in range(3):
        logits, y = data(60, seed=step)
        w = torch.rand(60, generator=torch.Generator().manual_seed(step)).double()
        z = logits.requires_grad_()
        value = loss(z[part], y[part], w[part])
        value.backward()
        values.append(value.detach())
        slopes.append(z.grad)
    return torch.stack(values), torch.stack(slopes), loss.state_dict()


def work(rank, world, folder):
    join(rank, world, folder)
    part = slice(0, 43) if rank == 0 else slice(43, 60)
    torch.save([steps(make(), part) for make in RANKED], f"{folder}/{rank}.pt")
    end_rank()


@pytest.mark.xdist_group("ranks")
def test_two_ranks_are_one_process(tmp_path):
    run_ranks(work, 2, tmp_path)
    ranks = [torch.load(tmp_path / f"{rank}.pt") for rank in range(2)]
    for make, first, second in zip(RANKED, *ranks, strict=True):
        values, slopes, state = steps(make(), slice(None))
        torch.testing.assert_close(first[0], values)  # every rank reports the loss of all rows
        torch.testing.assert_close(second[0], values)
        torch.testing.assert_close((first[1] + second[1]) / 2, slopes)  # DDP takes the average
        for key, wanted in state.items():
            torch.testing.assert_close(first[2][key], wanted)
            torch.testing.assert_close(second[2][key], wanted)
