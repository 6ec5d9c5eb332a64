"""Cross entropy mixed into the surrogate loss, and the warning where it is not."""

import pytest
import torch

from fbeta import FBeta, GMean, Kappa, SurrogateLoss, losses
from fbeta.losses import kernels
from fbeta.losses.kernels import cpu

needs_library = pytest.mark.skipif(not cpu.available(), reason="the library was not compiled")


def batch(rows=64):
    generator = torch.Generator().manual_seed(0)
    z = 3 * torch.randn(rows, generator=generator)
    return z.requires_grad_(), (torch.rand(rows, generator=generator) < 0.3).float()


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_a_blend_is_a_mean_of_two_losses(share):
    z, y = batch()
    paper = SurrogateLoss(FBeta(2), prevalence=0.1)(z, y)
    entropy = losses.get("balanced-bce", prevalence=0.1)(z, y)
    mixed = SurrogateLoss(FBeta(2), prevalence=0.1, blend=share)(z, y)
    torch.testing.assert_close(mixed, (1 - share) * paper + share * entropy)


def test_a_blend_pulls_where_the_paper_s_loss_does_not():
    """Everything far on the positive side: there the gradient of the published loss is gone."""
    z = torch.full((10,), 12.0, requires_grad=True)
    y = torch.zeros(10)
    (paper,) = torch.autograd.grad(SurrogateLoss(FBeta(1), prevalence=0.1)(z, y), z)
    (mixed,) = torch.autograd.grad(SurrogateLoss(FBeta(1), prevalence=0.1, blend=0.5)(z, y), z)
    assert paper.abs().max() < 1e-5
    assert mixed.min() > 0.01


def test_a_blend_can_be_scheduled():
    z, y = batch()
    loss = SurrogateLoss(FBeta(1), prevalence=0.1, blend=1.0)
    first = loss(z, y)
    loss.blend = 0.0
    assert loss.blend == 0.0
    torch.testing.assert_close(loss(z, y), SurrogateLoss(FBeta(1), prevalence=0.1)(z, y))
    assert first != loss(z, y)


def by_plain_path(loss, monkeypatch, z, *rest):
    with monkeypatch.context() as patch:
        patch.setattr(kernels, "ENABLED", False)
        value = loss(z, *rest)
        (gradient,) = torch.autograd.grad(value, z)
    return value, gradient


@needs_library
@pytest.mark.parametrize("share", [0.0, 1e-3, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("m", [FBeta(2), GMean(), Kappa()], ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("kind", ["rows", "weighted", "soft", "ignored", "sum"])
def test_the_fused_path_of_a_blend_is_the_plain_one(share, m, dtype, kind, monkeypatch):
    z, y = batch(3000)
    z = z.detach().to(dtype).requires_grad_()
    options = {"sum": {"reduction": "sum"}, "ignored": {"ignore_index": -1}}.get(kind, {})
    rest = [torch.rand(3000, generator=torch.Generator().manual_seed(1))] if kind == "weighted" else []
    if kind == "soft":
        y = 0.8 * y + 0.1
    if kind == "ignored":
        y[::3] = -1
    loss = SurrogateLoss(m, prevalence=0.4, blend=share, **options)
    value = loss(z, y, *rest)
    if kind in ("rows", "soft"):
        assert value.grad_fn.name() == "CompiledLossBackward"
    (gradient,) = torch.autograd.grad(value, z)
    plain, expected = by_plain_path(loss, monkeypatch, z, y, *rest)
    torch.testing.assert_close(value, plain, rtol=1e-5, atol=1e-6)
    assert gradient.dtype == dtype
    # A part of a step of the type itself: the mix is rounded once.
    close = {"rtol": 2**-7, "atol": 0.0} if dtype == torch.bfloat16 else {"rtol": 1e-5, "atol": 0.0}
    if kind == "soft":  # its two parts may cancel
        close["atol"] = 1e-5 * float(expected.abs().max())
    torch.testing.assert_close(gradient, expected, **close)
    with torch.no_grad():
        torch.testing.assert_close(loss(z, y, *rest), value)


@needs_library
@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_infinite_logits_on_the_right_side_cost_nothing(share):
    """A part of weight zero is left out, where 0 · ∞ would be no number."""
    z = torch.tensor([torch.inf, 0.0], requires_grad=True)
    value = SurrogateLoss(FBeta(1), prevalence=0.1, blend=share, weighting=None)(z, torch.ones(2))
    (gradient,) = torch.autograd.grad(value, z)
    assert value.item() == pytest.approx(0.5 * 0.693147, rel=1e-5)
    assert gradient.tolist() == [0.0, -0.25]


def test_second_derivatives_of_a_blend():
    z, y = batch(12)
    loss = SurrogateLoss(FBeta(2), prevalence=0.1, blend=0.3)
    hessian = torch.autograd.functional.hessian(lambda z: loss(z, y), z.detach())
    exact = torch.autograd.functional.hessian(lambda z: loss(z, y.double()), z.detach().double())
    torch.testing.assert_close(hessian.double(), exact, rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["fused", "plain"])
@pytest.mark.parametrize("twice", [False, True], ids=["again", "second derivative"])
def test_a_new_share_is_for_the_next_batch(dtype, twice):
    """A backward pass, or its repetition, belongs to the share of its forward pass."""
    z, y = batch()
    z = z.detach().to(dtype).requires_grad_()
    loss = SurrogateLoss(FBeta(1), prevalence=0.1, blend=0.5)
    value = loss(z, y)
    if not twice:
        (first,) = torch.autograd.grad(value, z, retain_graph=True)
    loss.blend = 1.0
    (second,) = torch.autograd.grad(value, z, create_graph=twice)
    loss.blend = 0.5
    torch.testing.assert_close(second, torch.autograd.grad(loss(z, y), z)[0])
    if not twice:
        torch.testing.assert_close(first, second)


def test_a_share_on_a_device_is_mixed_there(monkeypatch):
    """The host never asks for it, so nothing is left out, and nothing waits."""
    monkeypatch.setattr("fbeta.losses.surrogate.on_host", lambda *_: False)
    monkeypatch.setattr(kernels, "ENABLED", False)
    z, y = batch()
    for share in (0.0, 0.3, 1.0):
        loss = SurrogateLoss(FBeta(2), prevalence=0.1, blend=share)
        assert isinstance(loss.elements().share, torch.Tensor)
        paper = SurrogateLoss(FBeta(2), prevalence=0.1)(z, y)
        entropy = losses.get("balanced-bce", prevalence=0.1)(z, y)
        torch.testing.assert_close(loss(z, y), (1 - share) * paper + share * entropy)


def test_bad_blends():
    with pytest.raises(ValueError, match="share of cross entropy"):
        SurrogateLoss(FBeta(1), prevalence=0.1, blend=1.5)
    with pytest.raises(ValueError, match="share of cross entropy"):
        SurrogateLoss(FBeta(1), prevalence=0.1, blend="half")
    with pytest.raises(ValueError, match="without blend"):
        SurrogateLoss(FBeta(1), prevalence=0.1).blend = 0.5
