"""The engine on a GPU: the plain loop's numbers, bits that do not depend on company, and where it stopped."""

import numpy as np
import pytest
import torch

from fbeta.models import ARCHITECTURES, ResNet
from fbeta.paper.objective import loss_of
from fbeta.paper.protocol import Run, beside, faithful
from fbeta.train import batches
from fbeta.train.layers import Network
from fbeta.train.objective import Objective
from fbeta.train.stack import Stack
from test_stack import member, picture, plain_images

if not torch.cuda.is_available():
    pytest.skip("needs a GPU", allow_module_level=True)

RESNET18 = ARCHITECTURES["resnet18"]
ROWS = 1000
ALL = [*faithful("digits", repeats=1), *beside("digits", repeats=1)][:16]


def engine(runs, precision="bf16"):
    images, target = picture(ROWS + 50)
    members = [member(RESNET18, ROWS, run.repeat) for run in runs]
    objective = Objective([loss_of(run, (675, 225)) for run in runs])
    return Stack(Network(RESNET18), images, target, members, objective, precision=precision, device="cuda")


def test_fp32_is_the_plain_loop_for_50_steps():
    images, target = picture(ROWS + 50)
    one = member(RESNET18, ROWS)
    run = Run("digits", "balanced-bce")
    stack = engine([run], "fp32")
    losses = []
    original = stack.objective.forward

    def forward(z, y):
        value = original(z, y)
        losses.append(value.detach().clone())
        return value

    stack.objective.forward = forward
    torch.backends.cudnn.allow_tf32 = False
    stack._do = lambda name, act, batch: act(batch)  # step by step, to see every loss
    model = ResNet(RESNET18).cuda()
    model.load_state_dict(one.weights, strict=False)
    optimiser = torch.optim.SGD(model.parameters(), lr=one.rate, momentum=0.9, weight_decay=1e-4)
    mean = batches.pixel_mean(images, one.split.train, 32)
    loss = loss_of(run, (675, 225)).cuda()
    y = torch.from_numpy(target).float().cuda()
    plain = []
    for epoch in range(6):
        stack.train_epoch()
        order = batches.epoch(one.split.train, 28, 32, 4, *one.key, epoch)
        for start in range(0, len(order), 100):
            part = order[start : start + 100]
            logits = model(plain_images(images, part, mean).float().cuda())
            value = loss(logits[:, 1] - logits[:, 0], y[part & 0xFFFFF])
            optimiser.zero_grad()
            value.backward()
            optimiser.step()
            plain.append(value.item())
    apart = np.abs(np.array([x.item() for x in losses]) - plain)[:50]
    print("largest difference of a loss in 50 steps:", apart.max(), "losses from", plain[0], "to", plain[49])
    assert len(apart) == 50
    assert apart.max() < 1e-4


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
