import pytest
import torch

from catalogue import ANCHORED, TRAINABLE, batch
from fbeta import MCC, Confusion, FBeta, Kappa, Metric, SoftLoss
from fbeta.losses import surrogate_loss


@pytest.mark.parametrize("m", TRAINABLE, ids=str)
def test_plain_form_is_one_minus_the_metric_of_soft_counts(m: Metric):
    z, y = batch()
    f = torch.sigmoid(z)
    expected = 1 - m(Confusion.from_predictions(f, y))
    torch.testing.assert_close(SoftLoss(m)(z, y), expected)


def test_macro_soft_fbeta_of_the_paper():
    """Its formula in p_n, q̃₀ and q̃₁."""
    z, y = batch()
    f = torch.sigmoid(z)
    p, q0, q1 = y.mean(), (1 - f)[y == 1].mean(), f[y == 0].mean()
    for beta in (0.5, 1, 2, 3):
        score = (1 + beta**2) * p * (1 - q0) / (p * (beta**2 + 1 - q0 - q1) + q1)
        torch.testing.assert_close(SoftLoss(FBeta(beta))(z, y), 1 - score)


@pytest.mark.parametrize("m", ANCHORED, ids=str)
@pytest.mark.parametrize("prevalence", [0.1, 0.5, 0.8])
def test_log_form_of_constant_scores_is_the_surrogate(m, prevalence):
    """With one score a class the logarithm and the mean commute."""
    y = (torch.arange(20) < 5).double()
    z = torch.where(y == 1, 0.7, -1.1).double()
    elements = surrogate_loss(z, y, m.anchors(prevalence))
    expected = elements[y == 1].mean() + elements[y == 0].mean()
    torch.testing.assert_close(SoftLoss(m, prevalence=prevalence, form="log")(z, y), expected)


@pytest.mark.parametrize("m", [FBeta(1), Kappa()], ids=str)
@pytest.mark.parametrize("prevalence", [0.1, 0.7])
def test_log_form_falls_as_the_soft_metric_rises(m, prevalence):
    plain, log = SoftLoss(m, prevalence=prevalence), SoftLoss(m, prevalence=prevalence, form="log")
    pairs = []
    for seed in range(30):
        z, y = batch(seed=seed)
        pairs.append((plain(z, y).item(), log(z, y).item()))
    assert sorted(range(30), key=lambda i: pairs[i][0]) == sorted(range(30), key=lambda i: pairs[i][1])


def test_prevalence_moves_the_rates_not_the_counts():
    z, y = batch(rate=0.5)
    f = torch.sigmoid(z)
    u, t = f[y == 0].mean(), f[y == 1].mean()
    expected = 1 - FBeta(1)(Confusion.from_rates(u, t, 0.01))
    torch.testing.assert_close(SoftLoss(FBeta(1), prevalence=0.01)(z, y), expected)


def test_columns():
    y = torch.stack([(torch.arange(100) < n).double() for n in (40, 5)], dim=1)
    z = torch.randn(100, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    parts = [SoftLoss(MCC())(z[:, k], y[:, k]) for k in (0, 1)]
    macro = SoftLoss(MCC(), task="multilabel", num_labels=2)
    torch.testing.assert_close(macro(z, y), sum(parts) / 2)
    total = SoftLoss(MCC(), task="multilabel", num_labels=2, reduction="sum")
    torch.testing.assert_close(total(z, y), sum(parts))
    micro = SoftLoss(MCC(), task="multilabel", num_labels=2, average="micro")
    torch.testing.assert_close(micro(z, y), SoftLoss(MCC())(z.flatten(), y.flatten()))
    rates = (0.4, 0.7)
    log = SoftLoss(Kappa(), prevalence=rates, form="log", task="multilabel", num_labels=2)
    parts = [SoftLoss(Kappa(), prevalence=r, form="log")(z[:, k], y[:, k]) for k, r in enumerate(rates)]
    torch.testing.assert_close(log(z, y), sum(parts) / 2)


def gradient(loss, x, y, theta):
    theta = theta.clone().requires_grad_()
    loss(x @ theta, y).backward()
    return theta.grad


@pytest.mark.parametrize("form", ["plain", pytest.param("log", marks=pytest.mark.slow)])
def test_memory_points_where_the_data_set_does(form):
    """Batches of 32 at 1 % positives: most have no positive, and on their own point nowhere."""
    generator = torch.Generator().manual_seed(0)
    n, d = 64_000, 8
    y = (torch.rand(n, generator=generator) < 0.01).double()
    x = torch.randn(n, d, generator=generator, dtype=torch.float64)
    x[:, 0] += 1.5 * y
    x[:, -1] = 1
    theta = torch.randn(d, generator=generator, dtype=torch.float64) * 0.3
    theta[-1] = -2.0
    at = {"prevalence": 0.01} if form == "log" else {}
    whole = gradient(SoftLoss(FBeta(1), form=form, **at), x, y, theta)

    def mean_gradient(loss):
        for xs, ys in zip(x.split(32)[:400], y.split(32)[:400], strict=True):
            loss((xs @ theta).requires_grad_(), ys)  # fill the memory
        return torch.stack(
            [gradient(loss, xs, ys, theta) for xs, ys in zip(x.split(32), y.split(32), strict=True)]
        ).mean(0)

    remembered = mean_gradient(SoftLoss(FBeta(1), memory=200, form=form, **at))
    alone = mean_gradient(SoftLoss(FBeta(1), form=form, **at))

    def error(g):
        return ((g - whole).norm() / whole.norm()).item()

    print(f"\n{form}: relative error of the mean gradient {error(remembered):.3f}, without memory {error(alone):.3f}")
    assert error(remembered) < 0.05
    assert error(alone) > 0.15


def test_memory_of_nothing_is_the_batch():
    z, y = batch()
    for at in ({}, {"prevalence": 0.1, "form": "log"}):
        a, b = (z.clone().requires_grad_() for _ in range(2))
        SoftLoss(FBeta(1), memory=100, **at)(a, y).backward()
        SoftLoss(FBeta(1), **at)(b, y).backward()
        torch.testing.assert_close(a.grad, b.grad)


def test_evaluation_looks_at_the_batch_alone():
    z, y = batch()
    loss = SoftLoss(FBeta(1), memory=100)
    for seed in range(5):
        zz, yy = batch(seed=seed)
        loss(zz.requires_grad_(), yy)
    torch.testing.assert_close(loss.eval()(z, y), SoftLoss(FBeta(1))(z, y))


def test_micro_batches_of_a_set_loss_differ_and_by_how_much(record_property):
    """The documented exception: the mean of the parts' soft F is not the soft F of the whole."""
    z, y = batch(1000, seed=3)
    whole = SoftLoss(FBeta(1))(z, y)
    parts = torch.stack([SoftLoss(FBeta(1))(a, b) for a, b in zip(z.split(50), y.split(50), strict=True)]).mean()
    difference = (parts - whole).abs().item()
    record_property("difference", difference)
    print(f"\nsoft F1 loss: 20 micro-batches of 50 average {parts:.4f}, the whole gives {whole:.4f}")
    assert 1e-3 < difference < 0.1


@pytest.mark.parametrize("form", ["plain", "log"])
@pytest.mark.parametrize("memory", [None, 50])
def test_batches_without_a_class(form, memory):
    for fill in (0.0, 1.0):
        z = torch.randn(16, dtype=torch.float64, requires_grad=True)
        value = SoftLoss(FBeta(1), prevalence=0.1, form=form, memory=memory)(z, torch.full((16,), fill).double())
        value.backward()
        assert value.isfinite()
        assert z.grad.isfinite().all()
