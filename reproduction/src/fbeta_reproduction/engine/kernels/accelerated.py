# mypy: disable-error-code="no-untyped-def"
"""All kernels in Triton; images and the optimiser's step are here, the others in the modules beside."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from fbeta_reproduction.engine.kernels import Kernels, Learning, convolution, normalisation, pooling


@triton.jit
def _augment(
    images, order, mean, out,
    HIGH: tl.constexpr, WIDE: tl.constexpr, COLOURS: tl.constexpr, SIZE: tl.constexpr, BORDER: tl.constexpr,
    OUT_H: tl.constexpr, OUT_W: tl.constexpr, BATCH: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """One program is a part of one image of one run; its numbers are (row, column, colour of four)."""
    which = tl.program_id(0).to(tl.int64)
    run = which // BATCH
    packed = tl.load(order + which)
    i = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    colour = i % 4
    y = (i // 4) // OUT_W - BORDER
    x = (i // 4) % OUT_W - BORDER
    drawn = (y >= 0) & (y < SIZE) & (x >= 0) & (x < SIZE) & (colour < 3)
    source = tl.where(((packed >> 30) & 1) > 0, SIZE - 1 - x, x) + ((packed >> 25) & 31) - 16
    line = y + ((packed >> 20) & 31) - 16
    inside = drawn & (line >= 0) & (line < HIGH) & (source >= 0) & (source < WIDE)
    shade = tl.minimum(colour, COLOURS - 1)
    row = (packed & 0xFFFFF).to(tl.int64)
    pixel = tl.load(
        images + row * (HIGH * WIDE * COLOURS) + (line * WIDE + source) * COLOURS + shade, mask=inside, other=0
    )
    centre = tl.load(mean + run * (SIZE * SIZE * COLOURS) + (y * SIZE + x) * COLOURS + shade, mask=drawn, other=0.0)
    bright = pixel.to(tl.float32) / 255.0 - centre
    bright = tl.where(drawn, bright, 0.0)
    tl.store(out + which * (OUT_H * OUT_W * 4) + i, bright.to(out.dtype.element_ty), mask=i < OUT_H * OUT_W * 4)


def augment(
    images: Tensor, order: Tensor, mean: Tensor, shape: tuple[int, int, int], border: int, dtype: torch.dtype
) -> Tensor:
    """Cut, flip and centre images, and lay them out for the stem."""
    runs, batch = order.shape
    out = torch.empty(runs, batch, *shape, dtype=dtype, device=images.device)
    grid = (runs * batch, triton.cdiv(shape[0] * shape[1] * 4, 1024))
    _augment[grid](
        images, order, mean, out, *images.shape[1:], mean.shape[1], border, shape[0], shape[1], batch, 1024
    )  # fmt: skip
    return out


@triton.jit
def _learn(
    gradient, weights, velocity, shadow, rate, count, MOMENTUM: tl.constexpr, DECAY: tl.constexpr,
    SHADOW: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    run = tl.program_id(1).to(tl.int64)
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    there = i < count
    at = run * count + i
    p = tl.load(weights + at, mask=there)
    v = tl.load(velocity + at, mask=there) * MOMENTUM + (tl.load(gradient + at, mask=there) + DECAY * p)
    p -= tl.load(rate + run) * v
    tl.store(velocity + at, v, mask=there)
    tl.store(weights + at, p, mask=there)
    if SHADOW:
        tl.store(shadow + at, p.to(shadow.dtype.element_ty), mask=there)


def learn(gradient: Tensor, step: Learning) -> None:
    """One step of torch.optim.SGD, every run with its own rate."""
    runs, count = gradient.shape
    _learn[(triton.cdiv(count, 2048), runs)](
        gradient, step.weights, step.velocity, step.shadow, step.rate, count, step.momentum, step.decay,
        step.shadow is not None, 2048,
    )  # fmt: skip


class TritonKernels(Kernels):
    """The kernels for a GPU.

    >>> TritonKernels().learn is learn
    True
    """

    augment = staticmethod(augment)
    conv_norm = staticmethod(normalisation.conv_norm)
    conv_line = staticmethod(convolution.conv_line)
    activate = staticmethod(normalisation.activate)
    pool = staticmethod(pooling.pool)
    head = staticmethod(pooling.head)
    head_back = staticmethod(pooling.head_back)
    pool_back = staticmethod(pooling.pool_back)
    norm_back = staticmethod(normalisation.norm_back)
    conv_back_data = staticmethod(convolution.conv_back_data)
    conv_back_weight = staticmethod(convolution.conv_back_weight)
    learn = staticmethod(learn)
