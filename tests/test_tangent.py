"""What TangentLoss promises: ½ is the right cut, for every metric with the right slopes."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from catalogue import CURVED, TRAINABLE, batch
from fbeta import MCC, Confusion, FBeta, GMean, Kappa, SoftLoss, SurrogateLoss, TangentLoss, metric
from fbeta.losses import soft_loss, tangent_costs, tangent_loss
from fbeta.losses.counting import cells, soft_decisions
from fbeta.losses.task import Batch, Reader

# A finite population: 40 kinds of rows, each with a probability of being positive and a share of the rows.
ETA = torch.sigmoid(torch.linspace(-5.0, 2.0, 40, dtype=torch.float64))
SHARE = torch.linspace(3.0, 0.2, 40, dtype=torch.float64)
PREVALENCE = ((ETA * SHARE).sum() / SHARE.sum()).item()


def score_at(m, decided):
    return float(m(Confusion.from_predictions(decided.double(), ETA, SHARE)))


def best_score(m):
    return max(score_at(m, ETA >= cut) for cut in [*ETA.tolist(), 2.0])


def train(loss, steps=1200, rate=0.1):
    """Minimise over one free logit a kind of row: the model that can represent everything."""
    z = torch.zeros_like(ETA, requires_grad=True)
    optimiser = torch.optim.Adam([z], lr=rate)
    for _ in range(steps):
        optimiser.zero_grad()
        loss(z, ETA, SHARE).backward()
        optimiser.step()
    return z.detach()


@pytest.mark.parametrize("beta", [0.5, 1, 2, 3])
@pytest.mark.parametrize("q", [0.0, 0.5])
def test_hard_counts_reach_the_bayes_optimum_at_one_half(beta, q):
    z = train(TangentLoss(FBeta(beta), q=q))
    assert score_at(FBeta(beta), z >= 0) == pytest.approx(best_score(FBeta(beta)), abs=1e-9)


@pytest.mark.parametrize(
    "m",
    [m if m in (FBeta(2), Kappa(), MCC(), GMean()) else pytest.param(m, marks=pytest.mark.slow) for m in TRAINABLE],
    ids=str,
)
def test_every_trainable_metric_reaches_its_optimum(m):
    z = train(TangentLoss(m, prevalence=PREVALENCE))
    # Where level lines are curved, a population of atoms may have a second fixed point beside the best.
    assert score_at(m, z >= 0) == pytest.approx(best_score(m), abs=1e-4 if m in CURVED else 1e-9)


@pytest.mark.parametrize("average", ["macro", "each"])
@pytest.mark.parametrize("m", TRAINABLE, ids=str)
def test_few_numbers_are_the_same_in_numpy_and_in_torch(m, average, monkeypatch):
    loss = TangentLoss(m, [0.1, 0.2, 0.3, 0.4], task="multilabel", num_labels=4, average=average)
    # A usual column, one in a corner of ROC space, one without positives, one of few.
    loss.running.set(Confusion(*torch.tensor([[50.0, 60, 0, 2], [20, 0, 5, 9], [30, 0, 0, 3], [400, 300, 95, 80]])))
    found = loss.costs
    monkeypatch.setattr("fbeta.losses.kernels.formula.on_host", lambda *_: False)
    for a, b in zip(found, loss.costs, strict=True):
        assert torch.allclose(a, b, rtol=1e-13, atol=0)


def test_gaps_of_soft_counts_and_of_the_surrogate():
    """Known on this population: soft counts lose a little, the published loss a lot, at every β."""
    gaps = {}
    for beta in (0.5, 1, 2):
        m = FBeta(beta)
        best = best_score(m)
        soft = train(TangentLoss(m, counts="soft"))
        surrogate = train(SurrogateLoss(m, prevalence=PREVALENCE))
        gaps[beta] = (best - score_at(m, soft >= 0), best - score_at(m, surrogate >= 0))
    known = {0.5: (0.0249, 0.1404), 1: (0.0054, 0.0689), 2: (0.0019, 0.0217)}
    for beta, (soft_gap, surrogate_gap) in known.items():
        assert gaps[beta] == (pytest.approx(soft_gap, rel=0.1), pytest.approx(surrogate_gap, rel=0.1))


@pytest.mark.parametrize("q", [0.0, 0.2, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("delta", [0.05, 0.3, 0.5, 0.8])
def test_half_means_eta_at_least_delta(q, delta):
    z = torch.linspace(-15, 15, 6001, dtype=torch.float64)
    one, zero = (tangent_loss(z, torch.full_like(z, y), (delta, 1 - delta), q) for y in (1.0, 0.0))
    for eta in (delta - 0.02, delta + 0.02):
        best = z[(eta * one + (1 - eta) * zero).argmin()]
        assert (best >= 0) == (eta >= delta)


@pytest.mark.parametrize("beta", [0.5, 1, 2])
def test_q_one_with_the_batchs_soft_counts_is_proportional_to_the_soft_metric(beta):
    z, y = batch()
    z.requires_grad_()
    m = FBeta(beta)
    counts = cells(Batch(z, y, torch.ones_like(z)), soft_decisions(z), columns=False)
    by_soft = torch.autograd.grad(soft_loss(counts, m), z)[0]
    c0, c1 = tangent_costs(m, Confusion(*counts.detach()))
    scale = c0 + c1
    by_tangent = torch.autograd.grad(tangent_loss(z, y, (c0 / scale, c1 / scale), 1.0).mean(), z)[0]
    factor = (beta**2 * y.mean() + torch.sigmoid(z).mean()) / (1 + beta**2)
    torch.testing.assert_close(by_tangent, factor * by_soft)


def test_delta_is_f_over_one_plus_beta_squared():
    z, y = batch(1000)
    for beta in (0.5, 1, 3):
        loss = TangentLoss(FBeta(beta), warmup=0)
        loss(z.requires_grad_(), y)
        f = FBeta(beta)(Confusion.from_scores(z.detach(), y, cut=0.0))
        assert loss.delta.item() == pytest.approx(float(f) / (1 + beta**2))


def mean_cost(loss, rate):
    """Of one row, if so many are positive; over columns, too."""
    c0, c1 = loss.costs
    return ((1 - torch.as_tensor(rate)) * c0 + torch.as_tensor(rate) * c1).mean().item()


class TestScale:
    """Costs have mean one over the training rows: a step is as long as that of cross entropy."""

    @pytest.mark.parametrize("rate", [0.3, 0.1, 0.01, 0.001])
    @pytest.mark.parametrize("m", [FBeta(1), FBeta(2), MCC()], ids=str)
    def test_a_fresh_network_has_the_gradient_of_cross_entropy(self, m, rate):
        z = torch.zeros(10_000, dtype=torch.float64, requires_grad=True)
        y = (torch.arange(10_000) < 10_000 * rate).double()
        for known in ({"prevalence": rate}, {"class_counts": (1 - rate, rate)}, {}):
            ours, plain = (
                torch.autograd.grad(value, z)[0].abs().sum().item()
                for value in (TangentLoss(m, **known)(z, y), F.binary_cross_entropy_with_logits(z, y))
            )
            assert ours == pytest.approx(plain, rel=1e-9)

    @pytest.mark.parametrize("m", TRAINABLE, ids=str)
    def test_of_counted_rows(self, m):
        loss = TangentLoss(m)
        assert mean_cost(loss, 0.5) == 1.0, "nothing is known: cross entropy"
        loss(torch.zeros(7, requires_grad=True), torch.zeros(7))
        assert loss.costs == (1.0, 1.0)
        for seed in range(5):  # through the warm-up, and after it
            z, y = batch(60, seed=seed)
            loss(z.requires_grad_(), y)
            assert mean_cost(loss, loss.operating_point.prevalence) == pytest.approx(1)

    @pytest.mark.parametrize("known", [{}, {"class_counts": (60, 40)}])
    def test_of_the_stream_where_a_sampler_changes_it(self, known):
        loss = TangentLoss(FBeta(2), prevalence=0.02, **known)
        assert mean_cost(loss, 0.4 if known else 0.02) == pytest.approx(1)
        z, y = batch(500, rate=0.4)
        loss(z.requires_grad_(), y)
        assert mean_cost(loss, 0.4) == pytest.approx(1)

    @pytest.mark.parametrize("average", ["macro", "micro", "each"])
    @pytest.mark.parametrize("known", [False, True])
    def test_of_several_columns(self, average, known):
        """Macro on average over columns, "each" by itself, micro pooled."""
        y = torch.stack([(torch.arange(400) < n).double() for n in (200, 40, 4)], 1)
        z = batch(1200, seed=1)[0].reshape(400, 3) + y
        rates = y.mean(0) if average != "micro" else y.mean()
        told = {"class_counts": (400 - y.sum(0), y.sum(0))} if known else {}
        loss = TangentLoss(FBeta(1), task="multilabel", num_labels=3, average=average, **told)
        for step in range(3):
            if known or step:
                assert mean_cost(loss, rates) == pytest.approx(1)
                c0, c1 = loss.costs
                alone = ((1 - rates) * c0 + rates * c1 - 1).abs()
                assert (alone.max() < 1e-9) == (average != "macro"), "macro keeps the columns' own scales"
            loss(z.clone().requires_grad_(), y)

    @pytest.mark.parametrize("known", [{}, {"prevalence": [0.4, 0.3, 0.3]}, {"class_counts": [700, 200, 100]}])
    def test_of_classes(self, known):
        rates = torch.tensor([0.7, 0.2, 0.1]).double()
        y = torch.arange(1000) * 10 // 1000
        y = torch.where(y < 7, 0, torch.where(y < 9, 1, 2))
        z = torch.tensor(np.random.default_rng(0).normal(size=(1000, 3))) + F.one_hot(y)
        loss = TangentLoss(FBeta(2), task="multiclass", num_labels=3, **known)
        for _ in range(3):
            loss(z.clone().requires_grad_(), y)
            assert (loss.elements().weights * rates).sum().item() == pytest.approx(1)
            assert loss.elements().weights.max() > 1.01

    def test_a_rare_class_is_said_to_overflow_float16(self):
        z, y = torch.zeros(4, dtype=torch.float16, requires_grad=True), torch.tensor([0.0, 1, 0, 0])
        with pytest.warns(RuntimeWarning, match="float16 logits overflow"):
            TangentLoss(FBeta(1), prevalence=1e-6, epsilon=1e-6, reduction="sum")(z, y)


def test_q_zero_is_weighted_logistic():
    z, y = batch()
    got = tangent_loss(z, y, (0.3, 0.7))
    torch.testing.assert_close(
        got, F.binary_cross_entropy_with_logits(z, y, weight=torch.where(y == 1, 0.7, 0.3), reduction="none")
    )


def test_costs_come_from_before_the_batch():
    z, y = batch()
    loss = TangentLoss(FBeta(1), prevalence=0.1, warmup=0)
    before = loss.costs
    value = loss(z.requires_grad_(), y)
    torch.testing.assert_close(value, tangent_loss(z, y, before).mean())
    assert loss.delta != before[0] / (before[0] + before[1])


def test_fresh_costs_are_those_of_a_fresh_network():
    loss = TangentLoss(FBeta(2), prevalence=0.1)
    f = FBeta(2)(Confusion.from_rates(0.5, 0.5, 0.1))
    assert loss.delta.item() == pytest.approx(f / 5)
    assert TangentLoss(FBeta(2)).delta.item() == 0.5


def test_warmup_moves_from_fresh_to_counted():
    y = torch.tensor([1.0] * 5 + [0.0] * 45)
    z = torch.where(y == 1, 1.0, -1.0).requires_grad_()
    loss = TangentLoss(FBeta(1), prevalence=0.1, warmup=20)
    fresh = loss.delta.item()
    deltas = []
    for _ in range(6):
        loss(z, y)
        deltas.append(loss.delta.item())
    assert fresh < deltas[0] < deltas[2] < deltas[5] == pytest.approx(0.5, abs=1e-6)


def test_delta_stays_off_zero_and_one():
    y = torch.tensor([1.0] * 50 + [0.0] * 50)
    loss = TangentLoss(FBeta(1), epsilon=0.01)
    loss(torch.full((100,), -3.0, requires_grad=True), y)  # nothing predicted positive: F = 0
    assert loss.delta.item() == pytest.approx(0.01)
    for m in TRAINABLE:
        for level in (-50.0, 50.0):
            stuck = TangentLoss(m, prevalence=0.5)
            stuck(torch.full((100,), level, requires_grad=True), y)
            assert 0 < stuck.delta.item() < 1
            assert all(math.isfinite(c.item()) for c in stuck.costs)


def test_two_prevalences_under_a_balanced_sampler():
    """Trained on a balanced stream, told the population's rate: the decision at ½ is the population's best."""
    rate = 0.02
    odds = ETA / (1 - ETA) * (rate / (1 - rate)) / (PREVALENCE / (1 - PREVALENCE))
    eta = odds / (1 + odds)  # η in a population of that rate
    share = SHARE * (ETA * rate / PREVALENCE + (1 - ETA) * (1 - rate) / (1 - PREVALENCE))

    def score(decided):
        return float(FBeta(2)(Confusion.from_predictions(decided.double(), eta, share)))

    best = max(score(eta >= cut) for cut in eta)
    for known in ({}, {"class_counts": (1 - PREVALENCE, PREVALENCE)}):
        z = train(TangentLoss(FBeta(2), prevalence=rate, **known))
        assert score(z >= 0) == pytest.approx(best, abs=1e-9)
    naive = train(TangentLoss(FBeta(2)))
    assert score(naive >= 0) < best - 0.02


@pytest.mark.parametrize("q", [0.0, 0.5])
def test_probability_map(q):
    loss = TangentLoss(FBeta(2), q=q, prevalence=PREVALENCE)
    z = train(loss, steps=2500)
    torch.testing.assert_close(loss.probability(z), ETA, atol=5e-3, rtol=0)


def test_probability_map_between_two_prevalences():
    rate = 0.02
    loss = TangentLoss(FBeta(2), prevalence=rate)
    z = train(loss, steps=2500)
    odds = ETA / (1 - ETA) * (rate / (1 - rate)) / (PREVALENCE / (1 - PREVALENCE))
    torch.testing.assert_close(loss.probability(z), odds / (1 + odds), atol=5e-3, rtol=0)


def test_probability_is_refused_at_q_one():
    with pytest.raises(ValueError, match="q < 1"):
        TangentLoss(FBeta(1), q=1.0).probability(torch.zeros(2))


def test_q_can_be_scheduled():
    z, y = batch()
    loss = TangentLoss(FBeta(1), prevalence=0.1).eval()
    logistic = loss(z, y)
    loss.q = 0.7
    assert loss.q == pytest.approx(0.7)
    torch.testing.assert_close(loss(z, y), TangentLoss(FBeta(1), prevalence=0.1, q=0.7).eval()(z, y))
    assert loss(z, y) != logistic
    with pytest.raises(ValueError, match=r"q must lie in \[0, 1\]"):
        loss.q = 1.5


def test_operating_point_can_be_handed_in():
    z, y = batch()
    loss = TangentLoss(FBeta(1), counts="given")
    loss.operate_at(Confusion(tp=80, fp=20, fn=20, tn=880))
    loss(z.requires_grad_(), y)
    assert loss.delta.item() == pytest.approx(0.4)
    loss.operate_at(Confusion(tp=0.08, fp=0.02, fn=0.02, tn=0.88))  # shares serve as well
    assert loss.delta.item() == pytest.approx(0.4)
    free = TangentLoss(FBeta(1), memory=100)
    free.operate_at(Confusion(tp=80, fp=20, fn=20, tn=880))
    assert free.delta.item() == pytest.approx(0.4)
    for _ in range(100):
        free(z, y)
    assert free.delta.item() == pytest.approx(float(FBeta(1)(Confusion.from_scores(z.detach(), y, 0.0))) / 2, rel=1e-3)


def test_a_point_handed_in_counts_from_the_first_batch_on():
    """Of a stream that showed no positive yet nothing is known, so it is taken for the population."""
    at = Confusion(tp=8, fp=2, fn=4, tn=86)
    delta = FBeta(2)(at.at_prevalence(0.1)) / 5
    loss = TangentLoss(FBeta(2), prevalence=0.1, counts="given")
    loss.operate_at(at)
    assert loss.delta.item() == pytest.approx(delta)
    loss(torch.zeros(7, requires_grad=True), torch.zeros(7))
    assert loss.delta.item() == pytest.approx(delta)


def test_a_point_handed_in_says_nothing_of_the_stream():
    """Validation rows have the population's rate, training rows the sampler's: the stream is still counted."""
    rate = 0.02
    odds = ETA / (1 - ETA) * (rate / (1 - rate)) / (PREVALENCE / (1 - PREVALENCE))
    eta = odds / (1 + odds)
    share = SHARE * (ETA * rate / PREVALENCE + (1 - ETA) * (1 - rate) / (1 - PREVALENCE))
    best = max(float(FBeta(2)(Confusion.from_predictions((eta >= c).double(), eta, share))) for c in eta)
    loss = TangentLoss(FBeta(2), prevalence=rate, counts="given")
    z = torch.zeros_like(ETA, requires_grad=True)
    optimiser = torch.optim.Adam([z], lr=0.1)
    for _ in range(1200):
        optimiser.zero_grad()
        loss(z, ETA, SHARE).backward()
        optimiser.step()
        at = Confusion.from_predictions((z.detach() >= 0).double(), eta, share)
        loss.operate_at(at)
    assert float(FBeta(2)(at)) == pytest.approx(best, abs=1e-9)


@pytest.mark.parametrize(
    ("point", "says"),
    [
        ((1, 2, 3, 4), "takes a Confusion"),
        (Confusion(-5, 1, 2, 3), "finite and zero or more"),
        (Confusion(math.nan, 1, 2, 3), "finite"),
        (Confusion(torch.ones(3), 1, 2, 3), "shape"),
    ],
)
def test_bad_operating_points(point, says):
    with pytest.raises((ValueError, TypeError), match=says):
        TangentLoss(FBeta(1)).operate_at(point)


def test_plain_iteration_of_gmean_oscillates_and_the_damped_state_does_not():
    """Solving the inner problem completely between updates: a stress that gradient steps never reach."""
    eta = torch.cat([torch.linspace(0.01, 0.2, 300), torch.linspace(0.2, 0.9, 20)]).double()

    def deltas(damping):
        loss = TangentLoss(GMean(), memory=1e-9, damping=damping, warmup=0)
        loss.operate_at(Confusion.from_predictions((eta >= 0.7).double(), eta))
        seen = []
        for _ in range(200):
            seen.append(loss.delta.item())
            loss(torch.where(eta >= seen[-1], 1.0, -1.0).double().requires_grad_(), eta)
        return seen

    assert np.ptp(deltas(0.0)[-4:]) > 0.4
    assert np.ptp(deltas(0.9)[-4:]) < 0.05


class TestColumns:
    """Several labels: macro keeps each column's own scale, micro pools."""

    Y = torch.stack([(torch.arange(400) < n).double() for n in (200, 20)], dim=1)
    Z = (2 * Y - 1) * torch.where(torch.arange(400) % 7 == 0, -1.0, 1.0)[:, None].double()

    def test_macro_costs_are_the_gradient_of_macro_f(self):
        z = self.Z.clone().requires_grad_()
        loss = TangentLoss(FBeta(1), task="multilabel", num_labels=2, warmup=0)
        loss(z, self.Y)
        c0, c1 = loss.costs
        expected = [tangent_costs(FBeta(1), Confusion.from_scores(self.Z[:, k], self.Y[:, k], 0.0)) for k in (0, 1)]
        scale = np.mean([(1 - p) * a + p * b for (a, b), p in zip(expected, (0.5, 0.05), strict=True)])
        for k, (a, b) in enumerate(expected):
            assert c0[k].item() == pytest.approx(float(a / scale))
            assert c1[k].item() == pytest.approx(float(b / scale))
        assert c1[1] > 3 * c1[0], "the rare label weighs more"

    def test_macro_equals_binary_losses_up_to_the_columns_scale(self):
        loss = TangentLoss(FBeta(1), task="multilabel", num_labels=2, warmup=0)
        loss(self.Z.clone().requires_grad_(), self.Y)
        for k in (0, 1):
            one = TangentLoss(FBeta(1), warmup=0)
            one(self.Z[:, k].clone().requires_grad_(), self.Y[:, k])
            assert loss.delta[k].item() == pytest.approx(one.delta.item())

    def test_micro_pools_the_counts(self):
        loss = TangentLoss(FBeta(1), task="multilabel", num_labels=2, average="micro", warmup=0)
        loss(self.Z.clone().requires_grad_(), self.Y)
        f = FBeta(1)(Confusion.from_scores(self.Z, self.Y, 0.0))
        assert loss.delta.item() == pytest.approx(float(f) / 2)

    def test_micro_of_one_pool_is_binary(self):
        micro = TangentLoss(FBeta(1), task="multilabel", num_labels=2, average="micro")
        flat = TangentLoss(FBeta(1))
        for _ in range(3):
            a = micro(self.Z.clone().requires_grad_(), self.Y)
            b = flat(self.Z.flatten().requires_grad_(), self.Y.flatten())
        torch.testing.assert_close(a, b)


def test_softmax2_equals_binary():
    z, y = batch()
    two = torch.stack([torch.zeros_like(z) + 0.3, z + 0.3], dim=1)
    for make in (TangentLoss, SurrogateLoss, SoftLoss):
        one = make(FBeta(2), prevalence=0.1)(z, y)
        torch.testing.assert_close(make(FBeta(2), prevalence=0.1, task="softmax2")(two, y.long()), one)


def test_memory_is_measured_in_positives():
    z, y = batch(200, rate=0.1)
    loss = TangentLoss(MCC(), memory=100)
    for _ in range(60):
        loss(z.requires_grad_(), y)
    c = loss.operating_point
    assert float(c.positives) == pytest.approx(20 / (1 - math.exp(-20 / 100)), rel=1e-3)
    assert float(c.prevalence) == pytest.approx(0.1)


class TestMemory:
    """Of an epoch where its size is known, and of each column by itself."""

    @pytest.mark.parametrize(
        ("counts", "memory"),
        [
            (None, 500),
            ((9000, 1000), 500),
            ((900, 100), 100),
            ((900, 3), 20),  # the warm-up must be able to end
            ((0.9, 0.1), 500),  # shares tell no size
        ],
    )
    def test_an_epoch_of_positives_at_most(self, counts, memory):
        assert TangentLoss(FBeta(1), class_counts=counts).running.memory == memory
        assert TangentLoss(FBeta(1), class_counts=counts, memory=77).running.memory == 77

    def test_every_column_has_its_own(self):
        y = torch.stack([(torch.arange(400) % k == 0).double() for k in (2, 10)], 1)
        z = torch.tensor(np.random.default_rng(0).normal(size=(400, 2))) + y
        counts = 400 - y.sum(0), y.sum(0)
        loss = TangentLoss(FBeta(1), class_counts=counts, task="multilabel", num_labels=2)
        assert loss.running.memory.tolist() == [200, 40]
        alone = [TangentLoss(FBeta(1), class_counts=(a, b)) for a, b in zip(*counts, strict=True)]
        for rows in torch.arange(400).repeat(3).split(40):
            loss(z[rows].requires_grad_(), y[rows])
            for k in (0, 1):
                alone[k](z[rows, k].clone().requires_grad_(), y[rows, k])
                assert loss.running.counts[:, k].tolist() == pytest.approx(alone[k].running.counts.tolist())

    def test_a_network_that_changes_is_followed(self):
        """Ten epochs in which all rows were wrong, then one in which all are right: e^(−1/memory in epochs) remains."""
        y = (torch.arange(500) % 10 == 0).double()
        told, plain = TangentLoss(FBeta(1), class_counts=(450, 50)), TangentLoss(FBeta(1), prevalence=0.1)
        for loss in (told, plain):
            for epoch in range(11):
                for rows in torch.arange(500).split(50):
                    z = (2 * y[rows] - 1) * (1.0 if epoch == 10 else -1.0)
                    loss(z.requires_grad_(), y[rows])
        for loss, memory in ((told, 1.0), (plain, 10.0)):
            wrong = math.exp(-1 / memory) * (1 - math.exp(-10 / memory))
            right = 1 - math.exp(-1 / memory)
            f1 = 2 * right / (2 * right + 10 * wrong)  # nine false alarms and one miss for every positive
            assert float(loss.delta) == pytest.approx(f1 / 2, rel=1e-6)

    @pytest.mark.parametrize("memory", ["500", True, [1.0, 2.0], -1, math.nan, [1.0, 0.0, 1.0]])
    def test_what_is_no_memory(self, memory):
        with pytest.raises(ValueError, match="memory is a number of positives above 0"):
            TangentLoss(FBeta(1), memory=memory, task="multilabel", num_labels=3)


def test_a_users_metric_trains():
    mine = metric(lambda tp, fp, fn, tn: 2 * tp / (2 * tp + fp + fn))
    z = train(TangentLoss(mine))
    assert score_at(FBeta(1), z >= 0) == pytest.approx(best_score(FBeta(1)), abs=1e-9)
    torch.testing.assert_close(
        TangentLoss(mine, prevalence=0.1)(*batch()), TangentLoss(FBeta(1), prevalence=0.1)(*batch())
    )


def test_read_is_what_losses_see():
    z, y = batch(10)
    b = Reader().read(z.float(), y.bool())
    assert b.logits.dtype == b.target.dtype == b.weight.dtype == torch.float32
