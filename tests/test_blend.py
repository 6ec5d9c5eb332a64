"""Cross entropy mixed into the surrogate loss, and the warning where it is not."""

import warnings

import pytest
import torch

from fbeta import FBeta, SurrogateLoss, losses
from fbeta.losses.surrogate import FIRST_LOOK


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


def test_bad_blends():
    with pytest.raises(ValueError, match="share of cross entropy"):
        SurrogateLoss(FBeta(1), prevalence=0.1, blend=1.5)
    with pytest.raises(ValueError, match="share of cross entropy"):
        SurrogateLoss(FBeta(1), prevalence=0.1, blend="half")
    with pytest.raises(ValueError, match="without blend"):
        SurrogateLoss(FBeta(1), prevalence=0.1).blend = 0.5


def steps(loss, z, y, count):
    for _ in range(count):
        loss(z, y)


@pytest.mark.parametrize("task", ["binary", "softmax2"])
def test_a_plateau_is_said_aloud(task):
    z = torch.full((8,), 3.0, requires_grad=True)
    y = torch.tensor([1.0] + 7 * [0.0])
    loss = SurrogateLoss(FBeta(1), prevalence=0.1, task=task)
    if task == "softmax2":
        z, y = torch.stack([-z, z], 1), y.long()
    steps(loss, z, y, FIRST_LOOK - 1)  # a warning would be an error here
    with pytest.warns(RuntimeWarning, match="After 250 steps .* blend=0.5"):
        loss(z, y)
    steps(loss, z, y, FIRST_LOOK - 1)
    with pytest.warns(RuntimeWarning, match="After 500 steps"):
        loss(z, y)


def test_no_warning_without_a_plateau():
    z, y = batch()
    high, low = torch.full((8,), 3.0, requires_grad=True), torch.ones(8)
    for loss, logits, target in [
        (SurrogateLoss(FBeta(1), prevalence=0.1), z, y),
        (SurrogateLoss(FBeta(1), prevalence=0.1), high, low),  # all positive, and rightly so
        (SurrogateLoss(FBeta(1), prevalence=0.1, watch=False), high, torch.zeros(8)),
        (SurrogateLoss(FBeta(1), prevalence=0.1, blend=0.5), high, torch.zeros(8)),
        (SurrogateLoss(FBeta(1), prevalence=0.1).eval(), high, torch.zeros(8)),
    ]:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            steps(loss, logits, target, FIRST_LOOK)
