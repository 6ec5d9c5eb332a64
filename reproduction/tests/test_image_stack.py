"""The engine for many runs: against a plain loop, alone and in company, stopped and resumed."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from fbeta_reproduction.engine import augmentation
from fbeta_reproduction.engine.augmentation import Holdout
from fbeta_reproduction.engine.image_stack import ImageStack, Member
from fbeta_reproduction.engine.layout import Layout
from fbeta_reproduction.engine.resnet import ARCHITECTURES, Architecture, ResNet, initial_weights

SMALL = Architecture((1, 2, 1, 1), width=16)


def objective(z, y):
    # Run by run: vectorised arithmetic rounds the last few elements of a tensor in another way.
    return sum(F.softplus((1 - 2 * b) * a).mean() for a, b in zip(z, y, strict=True))


def picture(rows, image=28, colours=1, seed=0):
    rng = np.random.default_rng(seed)
    target = (np.arange(rows) % 4 == 0).astype(np.int64)
    images = rng.integers(0, 256, (rows, image, image, colours)) // 2 + 60 * target[:, None, None, None]
    return images.astype(np.uint8), target


def member(architecture, rows, seed=0, rate=0.01):
    rng = np.random.Generator(np.random.Philox(seed))
    return Member(Holdout.draw(rows, 0.1, (seed,)), initial_weights(ResNet(architecture), rng), (seed, 1), rate)


def stack(architecture, members, images, target, **options):
    options = {"precision": "fp64", "batch": 20} | options
    return ImageStack(Layout(architecture), images, target, members, objective, **options)


def plain_images(images, order, mean, size=32):
    """What torchvision's transforms would give: pad, crop, flip, subtract the mean, three channels."""
    out = []
    for packed in order:
        row, down, right = packed & 0xFFFFF, ((packed >> 20) & 31) - 16, ((packed >> 25) & 31) - 16
        image = np.pad(images[row], ((16, 16), (16, 16), (0, 0))) / 255
        cut = image[16 + down : 16 + down + size, 16 + right : 16 + right + size]
        cut = cut[:, ::-1] if packed >> 30 & 1 else cut
        out.append(cut - mean)
    x = torch.from_numpy(np.stack(out)).permute(0, 3, 1, 2)
    return x.expand(-1, 3, -1, -1)


def plain_loop(architecture, one, images, target, epochs, batch=20):
    """The same run as anyone would write it; losses of every step, and margins after the last."""
    model = ResNet(architecture).double()
    model.load_state_dict(one.weights, strict=False)
    optimiser = torch.optim.SGD(model.parameters(), lr=one.rate, momentum=0.9, weight_decay=1e-4)
    mean = augmentation.pixel_mean(images, one.split.train, 32)
    y = torch.from_numpy(target).double()
    losses = []
    for epoch in range(epochs):
        order = augmentation.epoch(one.split.train, images.shape[1], 32, 4, *one.key, epoch)
        for start in range(0, len(order), batch):
            part = order[start : start + batch]
            logits = model(plain_images(images, part, mean))
            loss = objective((logits[:, 1] - logits[:, 0])[None], y[part & 0xFFFFF][None])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        logits = model(plain_images(images, augmentation.centre(np.arange(len(images)), images.shape[1], 32), mean))
    return losses, logits[:, 1] - logits[:, 0]


@pytest.mark.parametrize(("colours", "image"), [(1, 28), (3, 32)])
@pytest.mark.parametrize("stem", ["imagenet", "cifar"])
def test_a_run_is_the_plain_loop(colours, image, stem):
    architecture = Architecture((1, 2, 1, 1), width=16 if stem == "imagenet" else 8, stem=stem)
    images, target = picture(120, image, colours)
    members = [member(architecture, 100, seed, rate) for seed, rate in ((3, 0.01), (4, 0.03))]
    engine = stack(architecture, members, images, target)
    engine.train_epoch()
    margins = engine.margins()
    for one, z in zip(members, margins, strict=True):
        _, expected = plain_loop(architecture, one, images, target, epochs=1)
        torch.testing.assert_close(z, expected, rtol=1e-9, atol=1e-9)
        assert expected.std() > 0.01


def test_the_paper_s_network_for_a_step():
    images, target = picture(24)
    one = member(ARCHITECTURES["resnet18"], 20)
    engine = stack(ARCHITECTURES["resnet18"], [one], images, target, batch=18)
    engine.train_epoch()
    _, expected = plain_loop(ARCHITECTURES["resnet18"], one, images, target, epochs=1, batch=18)
    torch.testing.assert_close(engine.margins()[0], expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("precision", ["fp64", "fp32", "bf16"])
def test_a_run_is_the_same_alone_and_in_company(precision):
    images, target = picture(60)
    members = [member(SMALL, 50, seed) for seed in range(4)]
    together = stack(SMALL, members, images, target, precision=precision)
    alone = stack(SMALL, members[2:3], images, target, precision=precision)
    for engine in (together, alone):
        engine.train_epoch()
    assert torch.equal(together.params[2], alone.params[0])
    assert torch.equal(together.margins()[2], alone.margins()[0])


def test_it_goes_on_where_it_stopped():
    images, target = picture(60)
    members = [member(SMALL, 50, seed) for seed in range(2)]
    whole = stack(SMALL, members, images, target)
    whole.train_epoch()
    kept = {k: v.clone() for k, v in whole.state().items()}
    whole.train_epoch()
    later = stack(SMALL, members, images, target)
    later.restore(kept)
    later.epoch = 1
    later.train_epoch()
    assert torch.equal(whole.params, later.params)
    with pytest.raises(ValueError, match="another stack"):
        later.restore({"params": later.params})


def test_runs_of_a_stack_have_equally_many_rows():
    images, target = picture(60)
    with pytest.raises(ValueError, match="equally many"):
        stack(SMALL, [member(SMALL, 50), member(SMALL, 40)], images, target)


def test_dead_taps_have_no_gradient():
    """What the engine leaves out, the plain network never uses."""
    model = ResNet(ARCHITECTURES["resnet18"])
    model(torch.randn(4, 3, 32, 32)).sum().backward()
    live = sum(int((p.grad != 0).sum()) for p in model.parameters() if p.ndim == 4)
    kept = sum(c.size for c in Layout(ARCHITECTURES["resnet18"]).convs())
    assert live <= kept
    gradient = model.layer4[1].conv1.weight.grad.clone()
    assert gradient[..., 1, 1].abs().sum() > 0
    gradient[..., 1, 1] = 0
    assert (gradient == 0).all()


@pytest.mark.slow
def test_50_steps_are_those_of_the_plain_loop():
    """At the paper's rate two plain loops that round differently part within ten steps, by more than 1: the network
    is chaotic. In double precision there is room for that, and the engine stays with the plain loop.
    """
    images, target = picture(1112)
    one = member(ARCHITECTURES["resnet18"], 1110)
    engine = stack(ARCHITECTURES["resnet18"], [one], images, target, batch=20)
    engine.train_epoch()
    losses, expected = plain_loop(ARCHITECTURES["resnet18"], one, images, target, epochs=1)
    assert len(losses) == 50
    apart = (engine.margins()[0] - expected).abs().max().item()
    print(f"margins after 50 steps differ by {apart:.1e}, of {expected.abs().max():.1f}")
    assert apart < 1e-4


def follow(engine, one, images, target, epochs):
    """Take every step of an engine's path with plain PyTorch too; the largest difference of a new weight.

    From the engine's own weights each time, so that chaos does not add up.
    """
    architecture, device = engine.layout.architecture, engine.device
    mean = augmentation.pixel_mean(images, one.split.train, 32)
    model = ResNet(architecture).to(device)
    model.load_state_dict(one.weights, strict=False)
    y = torch.from_numpy(target).float().to(device)
    apart, steps = 0.0, 0
    for epoch in range(epochs):
        order = augmentation.epoch(one.split.train, images.shape[1], 32, 4, *one.key, epoch)
        engine.order.copy_(torch.from_numpy(order)[None])
        engine.rate.fill_(one.rate)
        engine.cursor.zero_()
        for start in range(0, len(order), engine.batch):
            part = order[start : start + engine.batch]
            before = engine.velocity.clone().cpu(), engine.small_velocity.clone().cpu()
            with torch.no_grad():
                engine._step(engine.batch)
            logits = model(plain_images(images, part, mean).float().to(device))
            loss = objective((logits[:, 1] - logits[:, 0])[None], y[part & 0xFFFFF][None])
            optimiser = torch.optim.SGD(model.parameters(), lr=one.rate, weight_decay=1e-4)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            packed = engine.layout.pack({n: p.detach().cpu() for n, p in model.named_parameters()})
            for mine, theirs, velocity in zip((engine.params, engine.small), packed, before, strict=True):
                momentum = one.rate * 0.9 * velocity[0]  # what it adds to a plain step
                apart = max(apart, (mine[0].cpu() - (theirs - momentum)).abs().max().item())
            model.load_state_dict(engine.layout.unpack(engine.params[0], engine.small[0], model), strict=False)
            steps += 1
    return apart, steps


def test_every_step_of_single_precision_is_the_plain_one():
    images, target = picture(120)
    one = member(SMALL, 100)
    engine = stack(SMALL, [one], images, target, batch=18, precision="fp32")
    apart, steps = follow(engine, one, images, target, epochs=10)
    assert steps == 50
    assert apart < 1e-4
