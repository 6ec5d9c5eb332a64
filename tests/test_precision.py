"""Right in every precision: against mpmath, by gradcheck, at extreme logits and in half types."""

import math
import warnings

import mpmath
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from catalogue import ANCHORED, LOSSES, batch
from fbeta import MCC, FBeta, Kappa, SoftLoss, SurrogateLoss, TangentLoss
from fbeta.losses import soft_loss, surrogate_loss, tangent_loss
from fbeta.losses.counting import cells, soft_decisions
from fbeta.losses.surrogate import AnchorTerms
from fbeta.losses.task import Batch

prevalences = st.floats(1e-6, 1 - 1e-6) | st.sampled_from([1e-6, 0.5, 1 - 1e-6])
betas = st.floats(0.1, 10)
extreme = st.lists(st.floats(-1e4, 1e4), min_size=1, max_size=16)
qs = st.floats(1e-9, 1) | st.sampled_from([0.0, 1e-9, 0.5, 1.0])


def exact_sigmoid(z):
    return 1 / (1 + mpmath.exp(-z))


def exact_surrogate(z, y, anchors, q):
    """The definition in 60 digits, for the paper's case of anchors on the near side."""
    with mpmath.workdps(60):
        f = exact_sigmoid(mpmath.mpf(z))
        distance = f - mpmath.mpf(anchors.positive if y else anchors.negative)
        value = mpmath.log(distance) if q == 0 else (distance**q - 1) / q
        return -value if y else value


@settings(max_examples=300)
@given(p=prevalences, beta=betas, logits=extreme, q=qs, y=st.booleans())
def test_single_precision_surrogate_against_mpmath(p, beta, logits, q, y):
    anchors = FBeta(beta).anchors(p)
    z = torch.tensor(logits, dtype=torch.float32)
    got = surrogate_loss(z, torch.full_like(z, float(y)), anchors, q)
    for value, logit in zip(got.double().tolist(), z.double().tolist(), strict=True):
        reference = exact_surrogate(logit, y, anchors, q)
        assert abs(value - reference) <= 1e-6 * max(1, abs(reference))


@settings(max_examples=200)
@given(logits=extreme, q=qs, y=st.booleans(), delta=st.floats(1e-4, 1 - 1e-4))
def test_single_precision_tangent_against_mpmath(logits, q, y, delta):
    z = torch.tensor(logits, dtype=torch.float32)
    got = tangent_loss(z, torch.full_like(z, float(y)), (delta, 1 - delta), q)
    with mpmath.workdps(60):
        for value, logit in zip(got.double().tolist(), z.double().tolist(), strict=True):
            f = exact_sigmoid(mpmath.mpf(logit) * (1 if y else -1))
            reference = (1 - delta if y else delta) * (-mpmath.log(f) if q == 0 else (1 - f**q) / q)
            assert abs(value - reference) <= 1e-6 * max(1, abs(reference))


@settings(max_examples=200)
@given(p=st.floats(0.34, 0.66), logits=st.lists(st.floats(-30, 30), min_size=1), y=st.booleans())
def test_single_precision_kappa_with_far_anchors_against_double(p, logits, y):
    """Far poles are rescaled; a naive log difference would lose all digits in single precision."""
    z = torch.tensor(logits, dtype=torch.float32)
    target = torch.full_like(z, float(y))
    anchors = Kappa().anchors(p)
    low, high = (surrogate_loss(x, target.to(x.dtype), anchors) for x in (z, z.double()))
    assert ((low - high).abs() <= 1e-6 * high.abs().clamp(min=1)).all()


HALVES = [torch.bfloat16, torch.float16, torch.float32, torch.float64]


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@settings(max_examples=30)
@given(p=prevalences, beta=betas, logits=st.lists(st.floats(-1e4, 1e4), min_size=2, max_size=16), q=qs)
def test_loss_and_gradient_are_finite_everywhere(dtype, p, beta, logits, q):
    z = torch.tensor(logits, dtype=dtype)
    y = (torch.arange(len(logits)) % 2).to(dtype)
    m = FBeta(beta)
    # weighting=None: class weights of 1e6 do not fit float16, which has a test of its own
    weighting = None if dtype == torch.float16 else "balanced"
    losses = [
        SurrogateLoss(m, prevalence=p, q=q, weighting=weighting),
        TangentLoss(m, prevalence=p, q=q),
        TangentLoss(m, q=q, counts="soft"),
        SoftLoss(m),
        SoftLoss(MCC(), memory=10),
        SoftLoss(m, prevalence=p, form="log"),
    ]
    for loss in losses:
        zz = z.clone().requires_grad_()
        for _ in range(2):
            value = loss(zz, y)
        value.backward()
        assert value.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
        assert zz.grad.dtype == dtype
        assert value.isfinite(), loss
        assert zz.grad.isfinite().all(), loss


def test_float16_gradients_fit_or_are_warned_about():
    z = torch.tensor([-1.0, 1.0, 0.5], dtype=torch.float16, requires_grad=True)
    y = torch.tensor([1.0, 0.0, 0.0], dtype=torch.float16)
    fits = SurrogateLoss(FBeta(1), prevalence=1e-4, reduction="sum")
    fits(z, y).backward()
    exact = torch.autograd.grad(fits(z.double(), y.double()), z)[0]
    torch.testing.assert_close(z.grad, exact)
    assert z.grad.isfinite().all()
    beyond = SurrogateLoss(FBeta(1), prevalence=1e-6, reduction="sum")
    with pytest.warns(RuntimeWarning, match=r"float16 logits overflow: a class weight of 1e\+06"):
        beyond(z, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        beyond(z.float(), y.float())
        beyond(z.bfloat16(), y.bfloat16())


@pytest.mark.parametrize("case", LOSSES, ids=str)
def test_half_inputs_equal_the_rounded_single_result(case):
    z, y = batch(64, dtype=torch.float32)
    for dtype in (torch.bfloat16, torch.float16):
        rounded = z.to(dtype)
        torch.testing.assert_close(case.make()(rounded, y.to(dtype)), case.make()(rounded.float(), y))


@pytest.mark.parametrize("m", ANCHORED, ids=str)
@pytest.mark.parametrize("p", [0.1, 0.5, 0.8])
@pytest.mark.parametrize("q", [0.0, 0.5, 1.0])
def test_gradcheck_surrogate(m, p, q):
    z, y = batch(8)
    z.requires_grad_()
    anchors = m.anchors(p)

    def function(z):
        return surrogate_loss(z, y, anchors, q)

    assert torch.autograd.gradcheck(function, z)
    assert torch.autograd.gradgradcheck(function, z)


def test_gradcheck_surrogate_with_a_column_of_every_kind():
    """Near, far, beyond and at infinity, side by side."""
    z = torch.randn(5, 6, dtype=torch.float64, requires_grad=True)
    y = (torch.rand(5, 6) < 0.4).double()
    terms = AnchorTerms(Kappa(), prevalence=[0.001, 0.3, 0.49, 0.5, 0.51, 0.9])(torch.float64)
    assert torch.autograd.gradcheck(lambda z: surrogate_loss(z, y, terms), z)
    assert torch.autograd.gradgradcheck(lambda z: surrogate_loss(z, y, terms), z)
    for k, p in enumerate([0.001, 0.3, 0.49, 0.5, 0.51, 0.9]):
        alone = surrogate_loss(z[:, k], y[:, k], Kappa().anchors(p))
        torch.testing.assert_close(surrogate_loss(z, y, terms)[:, k], alone)


@pytest.mark.parametrize("q", [0.0, 0.3, 1.0, torch.tensor(0.0).double(), torch.tensor(0.3).double()], ids=str)
def test_gradcheck_tangent(q):
    z, y = batch(8)
    z.requires_grad_()
    soft = 0.8 * y + 0.1
    assert torch.autograd.gradcheck(lambda z: tangent_loss(z, soft, (0.3, 0.7), q), z)
    assert torch.autograd.gradgradcheck(lambda z: tangent_loss(z, soft, (0.3, 0.7), q), z)


@pytest.mark.parametrize("m", [FBeta(2), MCC(), Kappa()], ids=str)
def test_gradcheck_soft(m):
    z, y = batch(8)
    z.requires_grad_()

    def plain(z):
        return soft_loss(cells(Batch(z, y, torch.ones_like(y)), soft_decisions(z), columns=False), m)

    assert torch.autograd.gradcheck(plain, z)
    assert torch.autograd.gradgradcheck(plain, z)
    if not isinstance(m, MCC):
        log = SoftLoss(m, prevalence=0.1, form="log")
        assert torch.autograd.gradcheck(lambda z: log(z, y), z)
        assert torch.autograd.gradgradcheck(lambda z: log(z, y), z)


def test_gradient_survives_where_scores_vanish():
    """The log form and the tangent loss still pull on positives at z = −1e4; plain soft F does not."""
    z = torch.tensor([-1e4, -1e4, -5.0, -6.0], requires_grad=True)
    y = torch.tensor([1.0, 1.0, 0.0, 0.0])
    for loss, alive in (
        (SoftLoss(FBeta(1), prevalence=0.1, form="log"), True),
        (TangentLoss(FBeta(1)), True),
        (SurrogateLoss(FBeta(1), prevalence=0.1), True),
        (SoftLoss(FBeta(1)), False),
    ):
        (gradient,) = torch.autograd.grad(loss(z, y), z)
        assert (gradient[0] < 0) == alive


@pytest.mark.parametrize("case", LOSSES, ids=str)
def test_nan_logits_propagate_unless_checked(case):
    z, y = batch(20)
    z[3] = math.nan
    loss = case.make()
    assert loss(z.requires_grad_(), y).isnan()
    with pytest.raises(FloatingPointError, match="logits hold 1 NaN of 20"):
        case.make(check=True)(z, y)
    # one broken step must not stay in the state
    clean = batch(20)
    assert loss(clean[0].requires_grad_(), clean[1]).isfinite()
