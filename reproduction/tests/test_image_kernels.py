"""The Triton kernels against their plain twins: on a GPU, or in Triton's interpreter (TRITON_INTERPRET=1)."""

import os

import numpy as np
import pytest
import torch

from fbeta_reproduction.engine import augmentation
from fbeta_reproduction.engine.kernels import Kernels, Learning, Statistics
from fbeta_reproduction.engine.layout import Layout
from fbeta_reproduction.engine.resnet import Architecture

pytest.importorskip("triton")
INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
if not (INTERPRETED or torch.cuda.is_available()):
    pytest.skip("needs a GPU, or TRITON_INTERPRET=1", allow_module_level=True)

from fbeta_reproduction.engine.kernels.accelerated import TritonKernels  # noqa: E402

PLAIN, TRITON = Kernels(), TritonKernels()
DEVICE = "cpu" if INTERPRETED else "cuda"
RUNS, BATCH = 2, 5
NETWORK = Layout(Architecture((1, 2, 1, 1), width=16))
CIFAR = Layout(Architecture((1, 1, 1, 1), width=16, stem="cifar"), image=8)
CONVS = [(net, c) for net in (NETWORK, CIFAR) for c in net.convs()]
convs = pytest.mark.parametrize(("net", "c"), CONVS, ids=[f"{n.architecture.stem}-{c.name}" for n, c in CONVS])


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


def near(result, expected, tolerance=1e-5):
    torch.testing.assert_close(result.cpu(), expected.cpu(), rtol=tolerance, atol=tolerance)


def inputs(net, c):
    shape = net.input_shape if c is net.stem else (c.rows.size, c.cols.size, c.channels_in)
    return torch.randn(RUNS, BATCH, *shape), 0.1 * torch.randn(RUNS, c.taps, c.channels_in, c.channels_out)


def line(channels):
    return Statistics(*(torch.rand(RUNS, channels) - 0.3 for _ in range(4)))


def to(thing):
    if isinstance(thing, Statistics):
        return Statistics(*(t.to(DEVICE) for t in thing))
    return thing.to(DEVICE) if isinstance(thing, torch.Tensor) else thing


def both(name, *args, **kwargs):
    """Results of the twins, and what they wrote into their arguments."""
    results = []
    for kernels, device in ((PLAIN, "cpu"), (TRITON, DEVICE)):
        own = [to(a) if device == DEVICE else a for a in args]
        own = [a.clone() if isinstance(a, torch.Tensor) else a for a in own]
        extra = {k: v.to(device).clone() for k, v in kwargs.items()}
        results.append((getattr(kernels, name)(*own, **extra), own))
    return results


def test_there_are_all():
    names = [name for name in vars(Kernels) if not name.startswith("_")]
    assert len(names) == 12
    assert all(getattr(TRITON, name) is not getattr(PLAIN, name) for name in names)


@convs
def test_conv_norm(net, c):
    x, w = inputs(net, c)
    gamma, beta = torch.rand(RUNS, c.channels_out), torch.rand(RUNS, c.channels_out)
    running = torch.rand(RUNS, 2, c.channels_out)
    ((h, s), own), ((h2, s2), own2) = both("conv_norm", x, w, c, gamma, beta, running)
    near(h2, h)
    for a, b in zip(s2, s, strict=True):
        near(a, b, 1e-4)
    near(own2[-1], own[-1])


@convs
def test_conv_line(net, c):
    x, w = inputs(net, c)
    s = line(c.channels_out)
    around = torch.randn(RUNS, BATCH, *c.out_shape)
    (y, _), (y2, _) = both("conv_line", x, w, c, s.scale, s.shift, around, True)
    near(y2, y)
    (y, _), (y2, _) = both("conv_line", x, w, c, s.scale, s.shift, None, False)
    near(y2, y)


@convs
def test_conv_back(net, c):
    x, w = inputs(net, c)
    d = torch.randn(RUNS, BATCH, *c.out_shape)
    (_, own), (_, own2) = both("conv_back_weight", x, d, c, torch.zeros_like(w))
    near(own2[-1], own[-1], 1e-4)
    if c is net.stem:
        return
    (g, _), (g2, _) = both("conv_back_data", d, w, c)
    near(g2, g)
    (g, _), (g2, _) = both("conv_back_data", d, w, c, onto=x)
    near(g2, g)
    if c.taps > 1 or c.rows.stride == 1:
        (g, _), (g2, _) = both("conv_back_data", d, w, c, x, torch.randn_like(x))
        near(g2, g)


@pytest.mark.skipif(INTERPRETED, reason="the interpreter knows no alignment")
@pytest.mark.parametrize("stem", ["imagenet", "cifar"])
def test_gradient_of_the_stem_in_mixed_precision(stem):
    # The pixels of the small stem are 8 bytes apart: loads of 16 would stop the GPU.
    net = Layout(Architecture((1, 1, 1, 1), width=64, stem=stem))
    x, w = inputs(net, net.stem)
    x[..., 3] = 0  # a pixel has three colours
    x, d = (t.bfloat16() for t in (x, torch.randn(RUNS, BATCH, *net.stem.out_shape)))
    expected, result = torch.zeros_like(w), torch.zeros_like(w, device=DEVICE)
    PLAIN.conv_back_weight(x.float(), d.float(), net.stem, expected)
    TRITON.conv_back_weight(to(x), to(d), net.stem, result)
    assert (result.cpu() - expected).abs().max() < 1e-3 * expected.abs().max()


def test_activate():
    h, around = torch.randn(2, RUNS, BATCH, 4, 4, 16)
    s, around_s = line(16), line(16)
    for extra in ((), (around,), (around, around_s)):
        (y, _), (y2, _) = both("activate", h, s, *extra)
        near(y2, y)


@pytest.mark.parametrize("size", [16, 7])
def test_pool(size):
    h = torch.randn(RUNS, BATCH, size, size, 16)
    s = line(16)
    (y, _), (y2, _) = both("pool", h, None)
    near(y2[0], y[0])
    ((y, where), _), ((y2, where2), _) = both("pool", h, s)
    near(y2, y)
    d = torch.randn_like(y)
    near(TRITON.pool_back(to(d), where2, to(h), to(s)), PLAIN.pool_back(d, where, h, s))


@pytest.mark.parametrize("size", [8, 1])
def test_norm_back(size):
    h, d, alive = torch.randn(3, RUNS, BATCH, size, size, 32)
    s = line(32)
    grads = torch.zeros(2, RUNS, 32)
    for a in (None, alive):
        (g, own), (g2, own2) = both("norm_back", d, a, h, s, torch.rand(RUNS, 32), *grads)
        near(g2, g)
        near(own2[-1], own[-1], 1e-4)
        near(own2[-2], own[-2], 1e-4)


@pytest.mark.parametrize("size", [1, 2])
def test_head(size):
    x = torch.randn(RUNS, BATCH, size, size, 64)
    flat = torch.randn(RUNS, 2 * 64 + 2)
    w, b = flat[:, :128].unflatten(1, (2, 64)), flat[:, 128:]
    near(TRITON.head(to(x), to(flat)[:, :128].unflatten(1, (2, 64)), to(flat)[:, 128:]), PLAIN.head(x, w, b))
    d = torch.randn(RUNS, BATCH)
    grads = [torch.zeros_like(flat), to(torch.zeros_like(flat))]
    views = [(g[:, :128].unflatten(1, (2, 64)), g[:, 128:]) for g in grads]
    near(
        TRITON.head_back(to(d), to(x), to(flat)[:, :128].unflatten(1, (2, 64)), *views[1]),
        PLAIN.head_back(d, x, w, *views[0]),
    )
    near(grads[1], grads[0])


@pytest.mark.parametrize(("image", "colours"), [(28, 1), (32, 3)])
def test_augment(image, colours):
    images = torch.randint(0, 256, (9, image, image, colours), dtype=torch.uint8)
    mean = torch.rand(RUNS, 32, 32, colours)
    order = np.stack([augmentation.epoch(np.arange(BATCH), image, 32, 4, run) for run in range(RUNS)])
    args = (images, torch.from_numpy(order), mean, NETWORK.input_shape, 3, torch.float32)
    (x, _), (x2, _) = both("augment", *args)
    near(x2, x)


def test_learn():
    gradient, p, v = torch.randn(3, RUNS, 5000)
    rate = torch.tensor([0.01, 0.1])
    for shadow in (None, p.to(torch.bfloat16)):
        mine = Learning(p.clone(), v.clone(), shadow, rate, 0.9, 1e-4)
        theirs = Learning(*(to(t).clone() if isinstance(t, torch.Tensor) else t for t in mine))
        PLAIN.learn(gradient, mine)
        TRITON.learn(to(gradient), theirs)
        near(theirs.weights, mine.weights)
        near(theirs.velocity, mine.velocity)
        if shadow is not None:
            near(theirs.shadow, mine.shadow, 1e-2)  # the interpreter cuts bits off where a GPU rounds
