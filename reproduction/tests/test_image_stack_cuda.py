"""The engine on a GPU: the plain loop's numbers, bits that do not depend on company, and where it stopped."""

import pytest
import torch

from fbeta_reproduction.engine.image_stack import ImageStack
from fbeta_reproduction.engine.layout import Layout
from fbeta_reproduction.engine.loss_sum import LossSum
from fbeta_reproduction.engine.resnet import ARCHITECTURES
from fbeta_reproduction.protocol import beside, faithful
from fbeta_reproduction.readings.run_loss import loss_of
from test_image_stack import follow, member, objective, picture

if not torch.cuda.is_available():
    pytest.skip("needs a GPU", allow_module_level=True)

RESNET18 = ARCHITECTURES["resnet18"]
ROWS = 1000
ALL = [*faithful("digits", repeats=1), *beside("digits", repeats=1)][:16]


def engine(runs, precision="bf16"):
    images, target = picture(ROWS + 50)
    members = [member(RESNET18, ROWS, run.repeat) for run in runs]
    losses = LossSum([loss_of(run, (675, 225)) for run in runs])
    return ImageStack(Layout(RESNET18), images, target, members, losses, precision=precision, device="cuda")


def test_every_step_of_single_precision_is_the_plain_one(monkeypatch):
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)
    images, target = picture(ROWS + 50)
    one = member(RESNET18, ROWS)
    single = ImageStack(Layout(RESNET18), images, target, [one], objective, precision="fp32", device="cuda")
    apart, steps = follow(single, one, images, target, epochs=6)
    print(f"largest difference of a weight in {steps} steps: {apart:.1e}")
    assert steps == 54
    assert apart < 1e-4


@pytest.mark.parametrize("precision", ["bf16", "fp32"])
def test_a_run_has_the_same_bits_alone_and_beside_fifteen_others(precision):
    together = engine(ALL, precision)
    for _ in range(2):
        together.train_epoch()
    margins = together.margins().clone()
    for i in (0, 5, 9, 12):
        alone = engine(ALL[i : i + 1], precision)
        for _ in range(2):
            alone.train_epoch()
        assert torch.equal(alone.params[0], together.params[i]), ALL[i].label
        assert torch.equal(alone.margins()[0], margins[i]), ALL[i].label


def test_it_goes_on_where_it_stopped():
    whole = engine(ALL[:3] + ALL[-2:])
    whole.train_epoch()
    kept = {k: v.clone() for k, v in whole.state().items()}
    whole.train_epoch()
    later = engine(ALL[:3] + ALL[-2:])
    later.restore(kept)
    later.epoch = 1
    later.train_epoch()
    assert torch.equal(whole.params, later.params)
