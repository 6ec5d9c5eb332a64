"""The identities of the paper, each under the name of its equation. f = sigmoid(z), a = β²π/(1−π)."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from catalogue import batch
from fbeta import Accuracy, BalancedAccuracy, Confusion, FBeta, GMean, Kappa, SoftLoss, SurrogateLoss
from fbeta.losses import surrogate_loss
from fbeta.metrics import Anchors, AnchorTerm

BETAS = [0.5, 1, 2, 3]


def smoothed(z, y):
    """q̃₀ and q̃₁ of eq. smoothed_sample_proportion."""
    f = torch.sigmoid(z)
    return (1 - f)[y == 1].mean(), f[y == 0].mean()


def population(seed=0, n=400):
    """Two overlapping classes in the plane."""
    rng = np.random.default_rng(seed)
    y = (np.arange(n) < n // 10).astype(float)
    x = rng.normal(size=(n, 2)) + 2.0 * y[:, None] * np.array([1.0, 0.4])
    return torch.tensor(x), torch.tensor(y)


def score(x, theta):
    """A model with an interior optimum: a direction and a shift at a fixed steepness.

    With a free steepness every set-level loss runs off to infinity, where all gradients vanish.
    """
    angle, shift = theta
    return 2 * (torch.cos(angle) * x[:, 0] + torch.sin(angle) * x[:, 1]) + shift


def minimise(objective, x):
    theta = torch.tensor([0.0, -2.0], dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.LBFGS(
        [theta], max_iter=500, tolerance_grad=1e-13, tolerance_change=1e-18, line_search_fn="strong_wolfe"
    )

    def closure():
        optimiser.zero_grad()
        value = objective(score(x, theta))
        value.backward()
        return value

    optimiser.step(closure)
    assert theta[1].abs() < 5, "an interior optimum"
    return theta


def condition(x, y, theta, denominator):
    """Both sides of a gradient condition: −q̃₀'/(1−q̃₀) and q̃₁'/denominator(q̃₁)."""
    theta = theta.detach().requires_grad_()
    q0, q1 = smoothed(score(x, theta), y)
    left = -torch.autograd.grad(q0, theta, retain_graph=True)[0] / (1 - q0)
    right = torch.autograd.grad(q1, theta)[0] / denominator(q1)
    return left.detach(), right.detach()


@pytest.mark.parametrize("beta", BETAS)
@pytest.mark.parametrize("p", [0.01, 0.1, 0.5])
def test_gradient_fbeta_is_the_level_line_of_fbeta(beta, p):
    """−q₀'/(1−q₀) = q₁'/(β²p/(1−p) + q₁) exactly where F_β does not change."""
    a = beta**2 * p / (1 - p)
    for q0, q1 in ((0.1, 0.05), (0.4, 0.2), (0.7, 0.6)):
        q1_slope = 1.0
        q0_slope = -(1 - q0) / (a + q1) * q1_slope
        by_t, by_u = FBeta(beta).slopes(Confusion.from_rates(q1, 1 - q0, p))
        change = -by_t * q0_slope - by_u * q1_slope
        assert abs(change) < 1e-12 * (by_t + by_u) * (1 + abs(q0_slope))


def test_gradient_mae_holds_exactly():
    """The class-balanced MAE is 2q̃₀ + 2q̃₁, so its gradient vanishes exactly where −q̃₀' = q̃₁'."""
    x, y = population()
    mae = SurrogateLoss(BalancedAccuracy(), prevalence=0.1)
    theta = torch.tensor([0.3, -1.0], dtype=torch.float64, requires_grad=True)
    z = score(x, theta)
    q0, q1 = smoothed(z, y)
    loss = 2 * mae(z, y)
    assert loss.item() == pytest.approx((2 * q0 + 2 * q1).item(), rel=1e-12)
    by_loss = torch.autograd.grad(loss, theta, retain_graph=True)[0]
    by_q = torch.autograd.grad(2 * q0 + 2 * q1, theta)[0]
    torch.testing.assert_close(by_loss, by_q, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize(
    ("metric", "denominator"),
    [(GMean(), lambda q1: 1 - q1), (FBeta(1), lambda q1: 1 / 9 + q1), (FBeta(2), lambda q1: 4 / 9 + q1)],
    ids=["gradient_bce", "gradient_surrogate_f1", "gradient_surrogate_f2"],
)
def test_gradient_condition_holds_for_the_set_and_not_per_sample(metric, denominator, record_property):
    x, y = population()
    set_level = SoftLoss(metric, prevalence=0.1, form="log")
    left, right = condition(x, y, minimise(lambda z: set_level(z, y), x), denominator)
    assert (left - right).norm() <= 1e-6 * left.norm(), "the condition of the set-level loss"

    per_sample = SurrogateLoss(metric, prevalence=0.1)
    theta = minimise(lambda z: per_sample(z, y), x)
    left, right = condition(x, y, theta, denominator)
    violation = ((left - right).norm() / left.norm()).item()
    record_property("violation", violation)
    print(f"\n{metric}: at the per-sample minimum the two sides differ by {violation:.0%} of the left one")
    assert violation > 0.05, "Jensen's step is not free: the published condition is only approximate"


@pytest.mark.parametrize("beta", BETAS)
def test_jensen_gaps_have_opposite_signs(beta):
    """So the surrogate is neither an upper nor a lower bound of the set-level loss."""
    z, y = batch()
    anchors = FBeta(beta).anchors(0.1)
    elements = surrogate_loss(z, y, anchors)
    f, a = torch.sigmoid(z), beta**2 / 9
    positives = elements[y == 1].mean() + torch.log(f[y == 1].mean())
    negatives = elements[y == 0].mean() - torch.log(a + f[y == 0].mean())
    assert positives > 1e-3
    assert negatives < -1e-3


def test_published_values():
    """π = 0.1, β = 1, z = 0: positives log 2, negatives log(11/18)."""
    z = torch.zeros(2, dtype=torch.float64)
    got = surrogate_loss(z, torch.tensor([1.0, 0.0], dtype=torch.float64), FBeta(1).anchors(0.1))
    assert got.tolist() == pytest.approx([0.6931471805599453, np.log(11 / 18)], abs=1e-12)


@pytest.mark.parametrize("beta", BETAS)
@pytest.mark.parametrize("p", [0.01, 0.1, 0.5, 0.9])
def test_surrogate_is_the_papers_formula(beta, p):
    z, y = batch()
    f = torch.sigmoid(z)
    per_sample = -y * torch.log(f) + (1 - y) * torch.log(beta**2 * p / (1 - p) + f)
    weight = y / p + (1 - y) / (1 - p)
    torch.testing.assert_close(SurrogateLoss(FBeta(beta), prevalence=p)(z, y), (weight * per_sample).mean())
    for q in (0.3, 1.0):
        general = y * (1 - f**q) / q + (1 - y) * ((beta**2 * p / (1 - p) + f) ** q - 1) / q
        torch.testing.assert_close(SurrogateLoss(FBeta(beta), prevalence=p, q=q)(z, y), (weight * general).mean())


def test_surrogate_of_gmean_is_class_balanced_bce():
    z, y = batch()
    weight = y / 0.2 + (1 - y) / 0.8
    torch.testing.assert_close(
        SurrogateLoss(GMean(), prevalence=0.2)(z, y), F.binary_cross_entropy_with_logits(z, y, weight=weight)
    )


def test_surrogate_of_accuracies_is_mae():
    z, y = batch()
    f = torch.sigmoid(z)
    mae = 2 * y * (1 - f) + 2 * (1 - y) * f
    weight = y / 0.2 + (1 - y) / 0.8
    torch.testing.assert_close(2 * SurrogateLoss(BalancedAccuracy(), prevalence=0.2)(z, y), (weight * mae).mean())
    torch.testing.assert_close(SurrogateLoss(Accuracy(), prevalence=0.2)(z, y), mae.mean())


@pytest.mark.parametrize("c", [1.0, 4 / 3, 25.5])
def test_mirror_rule(c):
    """rise(z, c) = −rise(−z, 1−c): an anchor beyond 1 is the mirror image with the sign of the log flipped."""
    z = torch.linspace(-5, 5, 101, dtype=torch.float64)

    def rise(z, anchor):
        return surrogate_loss(z, torch.zeros_like(z), Anchors(anchor, 0.0))

    torch.testing.assert_close(rise(z, c), -rise(-z, 1 - c))
    torch.testing.assert_close(rise(z, c)[:60], -torch.log(c - torch.sigmoid(z))[:60])


@pytest.mark.parametrize("p", [0.2, 0.5, 0.8, 0.99])
def test_loss_of_kappa_falls_as_kappa_rises(p):
    n = 1000
    y = (torch.arange(n) < p * n).double()
    loss = SurrogateLoss(Kappa(), prevalence=p)
    kappas, losses = [], []
    for wrong in (400, 200, 100, 20, 0):
        z = 6 * (2 * y - 1)
        z[:: max(1, n // wrong) if wrong else n + 1] *= -1
        kappas.append(Kappa()(Confusion.from_scores(z, y, cut=0.0)).item())
        losses.append(loss(z, y).item())
    assert kappas == sorted(kappas)
    assert losses == sorted(losses, reverse=True)


def test_kappa_is_continuous_at_one_half():
    y = (torch.arange(200) % 2).double()
    z = batch(200)[0]

    def at(p):
        zz = z.clone().requires_grad_()
        elements = surrogate_loss(zz, y, Kappa().anchors(p))
        elements.sum().backward()
        return elements.detach(), zz.grad

    for gap, tolerance in ((0.01, 0.02), (1e-4, 2e-4), (1e-6, 1e-5)):
        for p in (0.5 - gap, 0.5 + gap):
            for near, middle in zip(at(p), at(0.5), strict=True):
                torch.testing.assert_close(near, middle, atol=tolerance, rtol=0)


def test_kappa_at_one_half_is_balanced_mae():
    z, y = batch()
    torch.testing.assert_close(
        SurrogateLoss(Kappa(), prevalence=0.5)(z, y), SurrogateLoss(BalancedAccuracy(), prevalence=0.5)(z, y)
    )


@pytest.mark.parametrize("beta", BETAS)
def test_set_level_log_form_is_a_monotone_transform_of_soft_fbeta(beta):
    p = 0.1
    log_form, plain = SoftLoss(FBeta(beta), prevalence=p, form="log"), SoftLoss(FBeta(beta))
    for seed in range(20):
        z, y = batch(rate=p, seed=seed)
        score = 1 - plain(z, y)
        r = torch.exp(-log_form(z, y)) * p / (1 - p)
        torch.testing.assert_close(score, (1 + beta**2) * r / (1 + r))


def test_q_limits():
    z, y = batch()
    f = torch.sigmoid(z)
    anchors = FBeta(1).anchors(0.5)
    torch.testing.assert_close(
        surrogate_loss(z, y, anchors, q=1e-9), surrogate_loss(z, y, anchors), rtol=1e-7, atol=1e-7
    )
    # q = 1, β = 1, p = ½ is half of the paper's MAE, element by element
    torch.testing.assert_close(surrogate_loss(z, y, anchors, q=1.0), y * (1 - f) + (1 - y) * f)


def test_q_form_forgets_beta_at_one():
    """The derivative of a + f is 1 whatever a is: the published q form loses β as q → 1."""
    z, y = batch()
    gradients = []
    for beta in (0.5, 3):
        zz = z.clone().requires_grad_()
        SurrogateLoss(FBeta(beta), prevalence=0.1, q=1.0)(zz, y).backward()
        gradients.append(zz.grad)
    torch.testing.assert_close(*gradients)


def test_best_constant_is_all_positive_and_its_gradient_dies():
    """The plateau: −log s + log(a + s) falls for every s, and flattens at s = 1."""
    y = (torch.arange(100) < 10).double()
    loss = SurrogateLoss(FBeta(1), prevalence=0.1)
    values, slopes = [], []
    for level in torch.linspace(-8, 12, 50, dtype=torch.float64):
        z = level.clone().requires_grad_()
        value = loss(z.expand(100), y)
        value.backward()
        values.append(value.item())
        slopes.append(z.grad.item())
    assert values == sorted(values, reverse=True)
    assert all(s < 0 for s in slopes)
    assert abs(slopes[-1]) < 1e-6 < abs(slopes[20])


def test_pointwise_minimiser_is_not_calibrated():
    """f* ≥ ½ from η = π/(1 + 2β²π), far below the optimal rule F*/(1 + β²)."""
    p, beta = 0.1, 1.0
    z = torch.linspace(-12, 12, 4801, dtype=torch.float64)
    one, zero = (surrogate_loss(z, torch.full_like(z, y), FBeta(beta).anchors(p)) for y in (1.0, 0.0))

    def decides_positive(eta):
        return z[(eta / p * one + (1 - eta) / (1 - p) * zero).argmin()] >= 0

    edge = p / (1 + 2 * beta**2 * p)
    assert not decides_positive(edge - 1e-3)
    assert decides_positive(edge + 1e-3)


def test_a_term_refuses_an_anchor_inside_the_square():
    with pytest.raises(ValueError, match="inside ROC space"):
        AnchorTerm.of(Anchors(0.5, 0.0), positive=False)
