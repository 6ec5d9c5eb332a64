"""The systems that the paper cites: each on a problem where the property shows that its own paper promises."""

import itertools
import math

import pytest
import torch

from catalogue import batch
from fbeta import Confusion, FBeta, GMean, TangentLoss, losses, metric, tune
from fbeta.losses.eban import bound_cells
from fbeta.losses.kar import most_violated

F1 = FBeta(1)


def q_mean(tp, fp, fn, tn):
    """One minus the quadratic mean of both classes' error rates: concave in both rates."""
    return 1 - (((fn / (tp + fn)) ** 2 + (fp / (fp + tn)) ** 2) / 2) ** 0.5


def train(loss, model, x, y, *, epochs, size=None, rate=0.02, seed=0):
    """Adam on batches of `size` rows, or on all rows at once."""
    optimiser = torch.optim.Adam(list(model.parameters()), lr=rate)
    chance = torch.Generator().manual_seed(seed)
    for _ in range(epochs):
        order = torch.randperm(len(x), generator=chance)
        for rows in [order] if size is None else order.split(size):
            optimiser.zero_grad()
            loss(model(x[rows]).squeeze(-1), y[rows]).backward()
            optimiser.step()
    return loss


@torch.no_grad()
def counted(model, x, y):
    return Confusion.from_scores(model(x).squeeze(-1), y, cut=0.0)


def shifted(n, rate, distance, seed):
    """Positives are `distance` further up a line."""
    chance = torch.Generator().manual_seed(seed)
    y = (torch.rand(n, generator=chance) < rate).float()
    return torch.randn(n, 1, generator=chance) + distance * y[:, None], y


def linear():
    model = torch.nn.Linear(1, 1)
    torch.nn.init.zeros_(model.weight)
    torch.nn.init.zeros_(model.bias)
    return model


class Cells(torch.nn.Module):
    """A logit for each kind of row: the most flexible scorer that a finite population has."""

    def __init__(self, count):
        super().__init__()
        self.logit = torch.nn.Parameter(torch.zeros(count))

    def forward(self, x):
        return self.logit[x]


def population(count=40, n=3000):
    """Rows of `count` kinds, and the rate of positives of each row's kind."""
    chance = torch.Generator().manual_seed(0)
    x = torch.randint(count, (n,), generator=chance)
    y = (torch.rand(n, generator=chance) < torch.sigmoid(torch.linspace(-6, 2, count))[x]).float()
    rate = torch.zeros(count).index_add(0, x, y) / torch.bincount(x, minlength=count)
    return x, y, rate[x]


@pytest.mark.parametrize("beta", [0.5, 1, 2])
def test_amp_reaches_the_exact_cut_of_a_finite_population(beta):
    """No other set of rows has a larger F than those above the best cut of their own rates; levels never fall."""
    x, y, rate = population()
    m, model = FBeta(beta), Cells(40)
    loss = losses.get("amp", m, class_counts=(int((y == 0).sum()), int(y.sum())), passes=40)
    levels = []
    for _ in range(5):
        train(loss, model, x, y, epochs=40, rate=0.2)
        levels.append((1 + beta**2) * float(loss.delta))
    best = tune(rate, y, m, kind="probability").score
    assert float(m(counted(model, x, y))) == pytest.approx(best, abs=1e-9)
    assert levels[-1] == pytest.approx(best, abs=1e-6)
    assert all(b >= a - 1e-3 for a, b in itertools.pairwise(levels))
    cross_entropy = Cells(40)
    train(losses.get("bce"), cross_entropy, x, y, epochs=200, rate=0.2)
    assert float(m(counted(cross_entropy, x, y))) <= best


@pytest.mark.parametrize("beta", [1, *(pytest.param(b, marks=pytest.mark.slow) for b in (0.5, 2))])
def test_stamp_reaches_it_from_batches(beta):
    """Within 0.002: the row kinds nearest to the cut are still stepped over it to and fro."""
    x, y, rate = population()
    m, model = FBeta(beta), Cells(40)
    loss = train(losses.get("stamp", m, stage=300), model, x, y, epochs=40, size=100, rate=0.05)
    best = tune(rate, y, m, kind="probability").score
    assert float(m(counted(model, x, y))) == pytest.approx(best, abs=0.002)
    assert float(loss.delta) == pytest.approx(best / (1 + beta**2), abs=0.005)


@pytest.mark.parametrize("name", ["stamp", "amp"])
def test_a_linear_scorer_reaches_the_exact_cut(name):
    x, y = shifted(4000, 0.1, 1.5, seed=0)
    best = tune(x[:, 0], y, F1, kind="score").score
    counts = (int((y == 0).sum()), int(y.sum()))
    options, steps = {"stamp": ({"stage": 200}, {"size": 100}), "amp": ({"passes": 100}, {"rate": 0.05})}[name]
    model = linear()
    train(
        losses.get(name, F1, class_counts=counts, **options), model, x, y, epochs=400 if name == "amp" else 15, **steps
    )
    assert float(F1(counted(model, x, y))) == pytest.approx(best, abs=0.01)


def test_a_level_stays_through_its_stage():
    z, y = batch(40)
    loss = losses.get("stamp", F1, stage=8, growth=2)  # 4 positives in a batch
    found = []
    for _ in range(14):
        found.append(float(loss.delta))
        loss(z.clone().requires_grad_(), y)
        z = z + 0.3
    changes = [i for i, (a, b) in enumerate(itertools.pairwise(found), start=1) if a != b]
    assert changes == [2, 6], "after stages of 8, 16 and 32 positives"


@pytest.mark.parametrize("m", [GMean(), metric(q_mean)], ids=["gmean", "qmean"])
@pytest.mark.parametrize("name", ["spade", "duple"])
def test_concave_scores_come_near_the_best(name, m):
    x, y = shifted(4000, 0.1, 1.5, seed=0)
    best = tune(x[:, 0], y, m, kind="score").score
    model = linear()
    train(losses.get(name, m), model, x, y, epochs=12, size=100)
    assert float(m(counted(model, x, y))) > best - 0.02
    plain = linear()
    train(losses.get("bce"), plain, x, y, epochs=12, size=100)
    assert float(m(counted(plain, x, y))) < best - 0.2


def test_the_dual_step_shrinks():
    """After n positives a step of one moves the rate by step/√n of the way."""
    loss = losses.get("spade", "gmean", step=0.3, watch=False)
    z, y = torch.tensor([3.0, -3.0]).requires_grad_(), torch.tensor([1.0, 0.0])
    for _ in range(2500):
        loss(z, y)
    loss(z - 6, y)
    assert 1 - float(loss.operating_point.tpr) == pytest.approx(0.3 / math.sqrt(2500), rel=0.05)


def test_a_reset_starts_a_first_stage():
    z, y = batch(40)
    loss, fresh = losses.get("stamp", F1, stage=8), losses.get("stamp", F1, stage=8)
    for _ in range(5):
        loss(z.clone().requires_grad_(), y)
    loss.running.reset()
    for a, b in zip(loss.running.buffers(), fresh.running.buffers(), strict=True):
        assert torch.equal(a, b)


def test_duple_averages_all_rewards():
    loss, seen = losses.get("duple", "gmean"), []
    for seed in range(5):
        z, y = batch(seed=seed)
        loss(z.clone().requires_grad_(), y)
        seen.append((torch.sigmoid(z) * y).sum())
    assert float(loss.operating_point.tp) == pytest.approx(float(sum(seen)))
    assert isinstance(loss, TangentLoss)


def rings(n, seed):
    """Positives lie far out, with noise: about one row in fifteen."""
    chance = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 2, generator=chance)
    return x, (x.square().sum(1) + 3 * torch.randn(n, generator=chance) > 7.5).float()


def network(seed):
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Linear(2, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))


@pytest.fixture(scope="module")
def plain_networks():
    found = []
    for seed in range(3):
        model = network(seed)
        train(losses.get("bce"), model, *rings(4000, seed), epochs=8, size=100, rate=0.01)
        found.append(float(F1(counted(model, *rings(20_000, 99)))))
    return found


@pytest.mark.parametrize("name", ["dame", "duple"])
def test_deep_systems_improve_on_cross_entropy_at_one_half(name, plain_networks):
    for seed, plain in enumerate(plain_networks):
        model = network(seed)
        train(losses.get(name, F1), model, *rings(4000, seed), epochs=8, size=100, rate=0.01)
        assert float(F1(counted(model, *rings(20_000, 99)))) > plain + 0.02


@pytest.mark.parametrize("kind", ["logistic", "hinge"])
def test_bounds_bound(kind):
    """Whatever the parameters: cells, F_β, precision and recall; at ties, soft targets and weights, too."""
    chance = torch.Generator().manual_seed(0)
    for scale in (0.0, 0.1, 1.0, 10.0, 100.0):
        for shift in (-3.0, 0.0, 3.0):
            z = scale * torch.randn(50, generator=chance).double() + shift
            y, w = (torch.rand(50, generator=chance) < 0.3).double(), torch.rand(50, generator=chance).double()
            bound, real = Confusion(*bound_cells(z, y, w, kind)), Confusion.from_scores(z, y, 0.0, w)
            assert (bound.tp <= real.tp + 1e-12) & (bound.tn <= real.tn + 1e-12)
            assert (bound.fp >= real.fp - 1e-12) & (bound.fn >= real.fn - 1e-12)
            assert float(bound.positives) == pytest.approx(float(real.positives))
            for beta in (0.5, 1.0, 2.0):
                if bound.tp >= 0:
                    assert FBeta(beta)(bound) <= FBeta(beta)(real) + 1e-12


@pytest.mark.parametrize("bound", ["logistic", "hinge"])
@pytest.mark.parametrize("at", [{"recall": 0.8}, {"precision": 0.6}, None], ids=str)
def test_the_lagrangian_is_a_bound_at_every_step(at, bound):
    """At any multiplier no network that meets the constraint has more than what the Lagrangian allows."""
    z, y = batch(100)
    z = 3 * z + 2
    c = Confusion(*bound_cells(z, y, torch.ones_like(z), bound))
    loss, real = losses.get("eban", None if at else F1, at=at, bound=bound), Confusion.from_scores(z, y, cut=0.0)
    for price in (1e-3, 0.1, 0.7, 3.0, 50.0):
        gap = loss.bargain.gap(price, c.tp, c.fp, c.fn)
        if at is None:  # a level that the bound reaches is reached
            assert not gap > 0 or F1(real) > price
        elif "recall" in at:
            assert not gap <= 0 or real.tpr >= 0.8
            assert not gap <= 0 or c.fp + price * gap * c.positives <= c.fp >= real.fp
        else:
            assert not gap <= 0 or real.tp / (real.tp + real.fp) >= 0.6


@pytest.mark.parametrize("bound", ["logistic", "hinge"])
@pytest.mark.parametrize("at", [{"recall": 0.8}, {"precision": 0.6}, None], ids=str)
def test_training_moves_below_what_it_bounds(at, bound):
    """After every step, at the multiplier trained alongside: the Lagrangian of bounds against that of counts."""
    x, y = rings(1000, 0)
    model, loss = network(0), losses.get("eban", None if at else F1, at=at, bound=bound)
    optimiser, found = torch.optim.Adam(model.parameters(), lr=0.02), set()
    for rows in torch.arange(1000).repeat(3).split(50):
        optimiser.zero_grad()
        loss(model(x[rows]).squeeze(1), y[rows]).backward()
        optimiser.step()
        z, price = model(x).squeeze(1).detach(), float(loss.multiplier)
        both = Confusion(*bound_cells(z, y, torch.ones(1000), bound)), Confusion.from_scores(z, y, cut=0.0)
        if at is None:  # to be as large as can be: (1 + β²)TP − λ(β²P + TP + FP)
            least, real = (float(2 * c.tp - price * (c.positives + c.tp + c.fp)) for c in both)
        elif "recall" in at:
            real, least = (float(c.fp + price * (c.fn - 0.2 * c.positives)) for c in both)
        else:
            real, least = (float(c.fn + price * (0.6 * c.fp - 0.4 * c.tp)) for c in both)
        assert least <= real + 1e-6 * abs(real)
        if at is None and both[0].tp >= 0:
            assert F1(both[0]) <= F1(both[1])
        found.add(round(price, 6))
    assert len(found) > 10, "the multiplier moves"


@pytest.mark.parametrize("counts", ["bound", "hard"])
def test_a_recall_is_kept_with_more_precision_than_cross_entropy_has(counts):
    """Positives are many, so cross entropy calls more of them than 0.9; the bound keeps to the safe side of it."""
    rows, test = shifted(4000, 0.7, 2.2, seed=0), shifted(20_000, 0.7, 2.2, seed=1)
    model, plain = linear(), linear()
    train(losses.get("eban", at={"recall": 0.9}, counts=counts), model, *rows, epochs=12, size=100)
    train(losses.get("bce"), plain, *rows, epochs=12, size=100)
    found, without = counted(model, *test), counted(plain, *test)
    assert float(found.tpr) > 0.9 - 3 * math.sqrt(0.9 * 0.1 / 2800)  # the sampling error of the training rows
    if counts == "hard":
        assert found.tp / (found.tp + found.fp) > without.tp / (without.tp + without.fp) + 0.005
        assert without.tpr > found.tpr
    else:
        assert found.tpr > 0.95


def test_a_precision_is_kept_on_rare_positives():
    rows, test = shifted(8000, 0.05, 2.2, seed=0), shifted(40_000, 0.05, 2.2, seed=1)
    model, plain = linear(), linear()
    train(losses.get("eban", at={"precision": 0.5}, counts="hard"), model, *rows, epochs=12, size=100)
    train(losses.get("bce"), plain, *rows, epochs=12, size=100)
    found, without = counted(model, *test), counted(plain, *test)
    assert found.tp / (found.tp + found.fp) > 0.45
    assert found.tpr > without.tpr + 0.1


def test_the_level_of_f_is_trained_alongside():
    rows = shifted(4000, 0.3, 2.2, seed=0)
    model = linear()
    loss = train(losses.get("eban", F1), model, *rows, epochs=12, size=100)
    bound = Confusion(*bound_cells(model(rows[0]).squeeze(1).detach(), rows[1], torch.ones(4000)))
    assert float(loss.multiplier) == pytest.approx(float(F1(bound)), abs=0.03)
    assert float(loss.multiplier) < float(F1(counted(model, *rows)))


def test_eban_starts_as_cross_entropy():
    z, y = batch()
    for options in ({"at": {"recall": 0.9}}, {"metric": F1}):
        torch.testing.assert_close(losses.get("eban", **options)(z, y), losses.get("bce")(z, y))


@pytest.mark.parametrize("beta", [0.5, 1, 2])
def test_the_most_violated_labelling_is_found_exactly(beta):
    """Against every labelling of seven rows."""
    chance = torch.Generator().manual_seed(0)
    for _ in range(20):
        z, y = 2 * torch.randn(7, generator=chance).double(), (torch.rand(7, generator=chance) < 0.4).double()
        value = losses.get("kar", FBeta(beta), buffer=0)(z, y) * 7
        every = torch.tensor(list(itertools.product([0.0, 1.0], repeat=7))).double()
        f = FBeta(beta)(Confusion.from_predictions(every, y.expand(128, 7), axis=1))
        objective = y.sum() * (1 - f) + ((every - y) * z).sum(1)
        assert float(objective.max()) <= float(value) + 1e-9
        real = y.sum() * (1 - FBeta(beta)(Confusion.from_scores(z, y, cut=0.0)))
        assert float(real) <= float(value) + 1e-9, "a surrogate bounds what it stands for"
        found = most_violated(z[:, None], y[:, None], (1 - y)[:, None], beta)
        yes = y * (1 - found.missed[:, 0]) + (1 - y) * found.alarmed[:, 0]
        whole = (yes == yes.round()).all()
        assert not whole or float(objective.max()) == pytest.approx(float(value))


@pytest.mark.parametrize(
    "parameters",
    [[2.0, -4.5], *(pytest.param(p, marks=pytest.mark.slow) for p in ([1.0, -2.0], [4.0, -8.0], [8.0, -16.0]))],
    ids=str,
)
def test_a_buffer_makes_small_batches_point_where_the_data_do(parameters):
    """Of 16 rows, where half of the batches have no positive: the mean gradient of batches against that of all rows."""
    x, y = shifted(4000, 0.04, 2.2, seed=0)
    p = torch.tensor(parameters, requires_grad=True)

    def gradient(loss, rows):
        return torch.autograd.grad(loss(p[0] * x[rows, 0] + p[1], y[rows]), p)[0]

    wanted, error = gradient(losses.get("kar", F1, buffer=0), slice(None)), {}
    for buffer in (0, 256):
        loss = losses.get("kar", F1, buffer=buffer)
        parts = torch.randperm(4000, generator=torch.Generator().manual_seed(0)).split(16)
        found = torch.stack([gradient(loss, rows) for rows in parts]).mean(0)
        error[buffer] = float((found - wanted).norm() / wanted.norm())
    assert error[256] < 0.5 * error[0], error
    assert error[256] < 0.3


def test_the_buffer_holds_the_last_rows_of_each_class():
    loss = losses.get("kar", F1, buffer=3)
    for k in range(3):
        loss(torch.tensor([float(k), 10.0 + k, -1.0 - k]).requires_grad_(), torch.tensor([1.0, 1.0, 0.0]))
    assert loss.kept[:, 0].flatten().tolist() == [-3.0, -2.0, -1.0, 2.0, 12.0, 1.0]
    assert loss.seen.flatten().tolist() == [3.0, 6.0]
    before = loss.state_dict()["kept"].clone()
    loss.eval()(torch.ones(2), torch.ones(2))
    assert torch.equal(loss.kept, before)
    fresh = losses.get("kar", F1, buffer=3)
    fresh.load_state_dict(loss.state_dict())
    z, y = torch.tensor([0.3, -1.0, 2.0]).requires_grad_(), torch.zeros(3)
    assert fresh(z, y) == loss.train()(z, y) > 0


def test_truncated_entropy_withstands_wrong_labels():
    """40 % of the labels turned over: cross entropy learns them by heart, the truncated form drops the rows."""
    chance = torch.Generator().manual_seed(0)
    x = torch.randn(400, 10, generator=chance)
    direction = torch.randn(10, generator=chance)
    clean = (x @ direction > 0).float()
    noisy = torch.where(torch.rand(400, generator=chance) < 0.4, 1 - clean, clean)
    fresh = torch.randn(4000, 10, generator=chance)
    right = (fresh @ direction > 0).float()
    accuracy = {}
    for name in ("bce", "gce"):
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(10, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
        loss = losses.get(name)
        for part in range(2):
            if part and name == "gce":
                loss.truncate = 0.5
            train(loss, model, x, noisy, epochs=15 + 45 * part, size=50, rate=0.01, seed=part)
        accuracy[name] = float(((model(fresh).squeeze(1) >= 0) == (right == 1)).float().mean())
    assert accuracy["gce"] > accuracy["bce"] + 0.05, accuracy


def test_a_truncated_row_has_no_gradient():
    z = torch.tensor([-2.0, -0.1, 0.1, 2.0]).requires_grad_()
    losses.get("gce", truncate=0.5, reduction="sum")(z, torch.ones(4)).backward()
    assert (z.grad[:2] == 0).all()
    assert (z.grad[2:] < 0).all()
    same = losses.get("gce", truncate=0.2)(z[2:], torch.ones(2))
    torch.testing.assert_close(same, losses.get("gce")(z[2:], torch.ones(2)))


@pytest.mark.parametrize(
    ("name", "options", "says"),
    [
        ("stamp", {"stage": 0}, "stage is a number of positives above 0; got 0"),
        ("stamp", {"growth": 0.5}, "growth is a factor from 1; got 0.5"),
        ("stamp", {"counts": "given"}, "counts must be one of hard, soft; got 'given'"),
        ("amp", {}, r"AMPLoss needs class_counts=\(negatives, positives\).*take STAMPLoss"),
        ("amp", {"class_counts": (9, 1), "passes": 1.5}, "passes is a whole number from 1; got 1.5"),
        ("dame", {"stage": "x"}, "stage is a number of positives"),
        ("spade", {"step": -1}, "step is a number above 0; got -1"),
        ("eban", {"metric": "mcc"}, r"EbanLoss bounds an F_β, precision or recall; got MCC\(\).*at="),
        ("eban", {"at": {"recall": 1.5}}, r"at is \{'recall': b\} or .* level in \(0, 1\); got"),
        ("eban", {"at": {"f1": 0.5}}, r"at is \{'recall': b\}"),
        ("eban", {"at": {"recall": 0.5, "precision": 0.5}}, r"at is \{'recall': b\}"),
        ("eban", {"patience": 0}, "patience is a number of positives above 0; got 0"),
        ("eban", {"bound": "square"}, "bound must be one of logistic, hinge"),
        ("eban", {"counts": "soft"}, "counts must be one of bound, hard"),
        ("kar", {"metric": "mcc"}, r"KarLoss is for an F_β; got MCC\(\)"),
        ("kar", {"buffer": -1}, "buffer is a number of rows of each class, or 0 for none; got -1"),
        ("gce", {"truncate": 1.0}, r"truncate is a probability in \[0, 1\), 0 for none; got 1.0"),
    ],
)
def test_bad_options(name, options, says):
    with pytest.raises(ValueError, match=says):
        losses.get(name, **{"metric": F1, **options})


@pytest.mark.parametrize("name", ["stamp", "amp", "dame", "spade"])
def test_a_rule_of_its_own_has_no_memory(name):
    with pytest.raises(TypeError, match="takes no memory: its operating point moves by its own rule"):
        losses.get(name, F1, class_counts=(9, 1), memory=5)
