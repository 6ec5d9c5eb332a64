# mypy: disable-error-code="no-untyped-def"
"""The kernels in Triton: normalisation, pool, head, images and the optimiser's step; convolutions in `convolution`."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from fbeta_reproduction.engine.kernels import EPSILON, MOMENTUM, Learning
from fbeta_reproduction.engine.kernels.convolution import conv, conv_back_data, conv_back_weight, conv_line
from fbeta_reproduction.engine.kernels.reference import Statistics
from fbeta_reproduction.engine.layout import Conv

__all__ = [
    "activate",
    "augment",
    "conv_back_data",
    "conv_back_weight",
    "conv_line",
    "conv_norm",
    "head",
    "head_back",
    "learn",
    "norm_back",
    "pool",
    "pool_back",
]


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
def _statistics(
    seen, gamma, beta, mean, inverse, scale, shift, running,
    seen_run, param_run, running_run, RUNNING: tl.constexpr, EPS: tl.constexpr, MOM: tl.constexpr,
    TILES: tl.constexpr, PADDED: tl.constexpr, BATCH: tl.constexpr, POSITIONS: tl.constexpr,
    C: tl.constexpr, BM: tl.constexpr, SPLIT: tl.constexpr, BC: tl.constexpr,
):  # fmt: skip
    """Put the tiles' means and squares together."""
    run = tl.program_id(1).to(tl.int64)
    c = tl.program_id(0) * BC + tl.arange(0, BC)
    t = tl.arange(0, PADDED)
    if SPLIT:
        rows = tl.minimum(BM, BATCH - (t % ((BATCH + BM - 1) // BM)) * BM)
    else:
        rows = tl.minimum(BM, BATCH * POSITIONS - t * BM)
    there = (t < TILES)[:, None]
    rows = tl.where(t < TILES, rows, 0).to(tl.float32)[:, None]
    at = seen + run * seen_run + t[:, None] * (2 * C) + c[None, :]
    means = tl.load(at, mask=there, other=0.0)
    squares = tl.load(at + C, mask=there, other=0.0)
    count: tl.constexpr = BATCH * POSITIONS
    centre = tl.sum(means * rows, 0) / count
    apart = means - centre[None, :]
    total = tl.sum(squares + apart * apart * rows, 0)
    one = 1.0 / tl.sqrt(total / count + EPS)
    line = tl.load(gamma + run * param_run + c) * one
    tl.store(mean + run * C + c, centre)
    tl.store(inverse + run * C + c, one)
    tl.store(scale + run * C + c, line)
    tl.store(shift + run * C + c, tl.load(beta + run * param_run + c) - centre * line)
    at = running + run * running_run + c
    old = tl.load(at)
    tl.store(at, old + MOM * (centre - old))
    old = tl.load(at + RUNNING)
    tl.store(at + RUNNING, old + MOM * (total / (count - 1) - old))


def conv_norm(x: Tensor, w: Tensor, c: Conv, gamma: Tensor, beta: Tensor, running: Tensor) -> tuple[Tensor, Statistics]:
    """Convolve, and find the result's mean and 1/σ by channel; `running` ``(R, 2, C)`` follows them."""
    h, seen = conv(x, w, c)
    runs, tiles, _, channels = seen.parts.shape
    s = Statistics(*torch.empty(4, runs, channels, device=x.device))
    block = min(channels, 16)
    _statistics[(channels // block, runs)](
        seen.parts, gamma, beta, *s, running,
        seen.parts.stride(0), gamma.stride(0), running.stride(0), running.stride(1), EPSILON, MOMENTUM,
        tiles, triton.next_power_of_2(tiles), x.shape[1], c.rows.out * c.cols.out,
        channels, seen.rows, seen.split, block,
    )  # fmt: skip
    return h, s


@triton.jit
def _activate(
    h, scale, shift, around, around_scale, around_shift, y, count,
    C: tl.constexpr, AROUND: tl.constexpr, LINE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    run = tl.program_id(1).to(tl.int64)
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    there = i < count
    c = run * C + i % C
    at = run * count + i
    out = tl.load(h + at, mask=there, other=0.0).to(tl.float32) * tl.load(scale + c) + tl.load(shift + c)
    if AROUND:
        other = tl.load(around + at, mask=there, other=0.0).to(tl.float32)
        if LINE:
            other = other * tl.load(around_scale + c) + tl.load(around_shift + c)
        out += other
    tl.store(y + at, tl.maximum(out, 0.0).to(y.dtype.element_ty), mask=there)


def activate(h: Tensor, s: Statistics, around: Tensor | None = None, around_s: Statistics | None = None) -> Tensor:
    """relu(scale·h + shift + what goes around)."""
    y = torch.empty_like(h)
    count = h[0].numel()
    line = (None, None) if around_s is None else (around_s.scale, around_s.shift)
    _activate[(triton.cdiv(count, 1024), h.shape[0])](
        h, s.scale, s.shift, around, *line, y, count, h.shape[-1], around is not None, around_s is not None, 1024
    )  # fmt: skip
    return y


@triton.jit
def _pool(
    h, scale, shift, y, which, count, HIGH: tl.constexpr, WIDE: tl.constexpr, C: tl.constexpr,
    OUT_H: tl.constexpr, OUT_W: tl.constexpr, LINE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """The largest of 3×3; of equals the first, as torch has it. `which` is the number in the window, of 9."""
    run = tl.program_id(1).to(tl.int64)
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    there = i < count
    c = i % C
    q = (i // C) % OUT_W
    p = (i // (C * OUT_W)) % OUT_H
    image = i // (C * OUT_W * OUT_H)
    best = tl.full((BLOCK,), float("-inf"), tl.float32)
    first = tl.zeros((BLOCK,), tl.int32)
    for k in tl.static_range(9):
        y_in = 2 * p - 1 + k // 3
        x_in = 2 * q - 1 + k % 3
        inside = there & (y_in >= 0) & (y_in < HIGH) & (x_in >= 0) & (x_in < WIDE)
        at = run * (count // (OUT_H * OUT_W) * (HIGH * WIDE)) + ((image * HIGH + y_in) * WIDE + x_in) * C + c
        value = tl.load(h + at, mask=inside, other=0.0).to(tl.float32)
        if LINE:
            value = value * tl.load(scale + run * C + c) + tl.load(shift + run * C + c)
            # Rounded as the activation would be stored: then ties fall as they do there.
            value = tl.maximum(value, 0.0).to(y.dtype.element_ty).to(tl.float32)
        larger = inside & (value > best)
        best = tl.where(larger, value, best)
        first = tl.where(larger, k, first)
    tl.store(y + run * count + i, best.to(y.dtype.element_ty), mask=there)
    tl.store(which + run * count + i, first.to(tl.int8), mask=there)


def pool(h: Tensor, s: Statistics | None) -> tuple[Tensor, Tensor]:
    """Activate (if statistics are given) and take the largest of 3×3, every second pixel; and which one it was."""
    runs, batch, high, wide, channels = h.shape
    shape = (runs, batch, (high - 1) // 2 + 1, (wide - 1) // 2 + 1, channels)
    y = torch.empty(shape, dtype=h.dtype, device=h.device)
    which = torch.empty(shape, dtype=torch.int8, device=h.device)
    line = (None, None) if s is None else (s.scale, s.shift)
    count = y[0].numel()
    _pool[(triton.cdiv(count, 1024), runs)](
        h, *line, y, which, count, high, wide, channels, shape[2], shape[3], s is not None, 1024
    )  # fmt: skip
    return y, which


@triton.jit
def _pool_back(
    d, which, h, scale, shift, g, count, HIGH: tl.constexpr, WIDE: tl.constexpr, C: tl.constexpr,
    OUT_H: tl.constexpr, OUT_W: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Every pixel looks at the (up to four) windows it lies in: did it win there?"""
    run = tl.program_id(1).to(tl.int64)
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    there = i < count
    c = i % C
    x = (i // C) % WIDE
    y = (i // (C * WIDE)) % HIGH
    image = i // (C * WIDE * HIGH)
    total = tl.zeros((BLOCK,), tl.float32)
    for k in tl.static_range(4):
        p = y // 2 + k // 2
        q = x // 2 + k % 2
        a = y - (2 * p - 1)
        b = x - (2 * q - 1)
        inside = there & (p < OUT_H) & (q < OUT_W) & (a >= 0) & (a < 3) & (b >= 0) & (b < 3)
        at = run * (count // (HIGH * WIDE) * (OUT_H * OUT_W)) + ((image * OUT_H + p) * OUT_W + q) * C + c
        won = tl.load(which + at, mask=inside, other=-1).to(tl.int32) == a * 3 + b
        total += tl.where(won, tl.load(d + at, mask=inside, other=0.0).to(tl.float32), 0.0)
    at = run * count + i
    value = tl.load(h + at, mask=there, other=0.0).to(tl.float32)
    alive = value * tl.load(scale + run * C + c) + tl.load(shift + run * C + c) > 0
    tl.store(g + at, tl.where(alive, total, 0.0).to(g.dtype.element_ty), mask=there)


def pool_back(d: Tensor, where: Tensor, h: Tensor, s: Statistics) -> Tensor:
    """The gradient before the activation, from the one after the pool."""
    g = torch.empty_like(h)
    count = h[0].numel()
    _pool_back[(triton.cdiv(count, 1024), h.shape[0])](
        d, where, h, s.scale, s.shift, g, count, *h.shape[2:], *d.shape[2:4], 1024
    )
    return g


@triton.jit
def _norm_sums(
    d, alive, h, mean, inverse, sums, rows, per, sums_run,
    C: tl.constexpr, ALIVE: tl.constexpr, BM: tl.constexpr, BC: tl.constexpr,
):  # fmt: skip
    """Σ g and Σ g·ĥ over a share of the rows."""
    run = tl.program_id(2).to(tl.int64)
    c = tl.program_id(1) * BC + tl.arange(0, BC)
    centre = tl.load(mean + run * C + c)[None, :]
    one = tl.load(inverse + run * C + c)[None, :]
    total = tl.zeros((BM, BC), tl.float32)
    along = tl.zeros((BM, BC), tl.float32)
    begin = tl.program_id(0) * per
    for start in range(begin, tl.minimum(begin + per, rows), BM):
        row = start + tl.arange(0, BM)
        there = ((row < rows) & (row < begin + per))[:, None]
        at = run * rows * C + row[:, None] * C + c[None, :]
        g = tl.load(d + at, mask=there, other=0.0).to(tl.float32)
        if ALIVE:
            g = tl.where(tl.load(alive + at, mask=there, other=0.0) > 0, g, 0.0)
        hat = (tl.load(h + at, mask=there, other=0.0).to(tl.float32) - centre) * one
        total += g
        along += g * hat
    at = sums + run * sums_run + tl.program_id(0) * (2 * C) + c
    tl.store(at, tl.sum(total, 0))
    tl.store(at + C, tl.sum(along, 0))


@triton.jit
def _norm_finish(
    sums, d_gamma, d_beta, sums_run, grad_run,
    SHARES: tl.constexpr, PADDED: tl.constexpr, C: tl.constexpr, BC: tl.constexpr,
):  # fmt: skip
    run = tl.program_id(1).to(tl.int64)
    c = tl.program_id(0) * BC + tl.arange(0, BC)
    t = tl.arange(0, PADDED)[:, None]
    at = sums + run * sums_run + t * (2 * C) + c[None, :]
    tl.store(d_beta + run * grad_run + c, tl.sum(tl.load(at, mask=t < SHARES, other=0.0), 0))
    tl.store(d_gamma + run * grad_run + c, tl.sum(tl.load(at + C, mask=t < SHARES, other=0.0), 0))


@triton.jit
def _norm_apply(
    d, alive, h, mean, inverse, gamma, d_gamma, d_beta, out, count, param_run, grad_run, share,
    C: tl.constexpr, ALIVE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    run = tl.program_id(1).to(tl.int64)
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    there = i < count
    c = i % C
    at = run * count + i
    g = tl.load(d + at, mask=there, other=0.0).to(tl.float32)
    if ALIVE:
        g = tl.where(tl.load(alive + at, mask=there, other=0.0) > 0, g, 0.0)
    one = tl.load(inverse + run * C + c)
    hat = (tl.load(h + at, mask=there, other=0.0).to(tl.float32) - tl.load(mean + run * C + c)) * one
    level = tl.load(d_beta + run * grad_run + c) * share
    along = tl.load(d_gamma + run * grad_run + c) * share
    inner = (g - level - hat * along) * tl.load(gamma + run * param_run + c) * one
    tl.store(out + at, inner.to(out.dtype.element_ty), mask=there)


def norm_back(
    d: Tensor, alive: Tensor | None, h: Tensor, s: Statistics, gamma: Tensor, d_gamma: Tensor, d_beta: Tensor
) -> Tensor:
    """The gradient before a normalisation; `alive` is the activation after it (positive where it passes)."""
    runs, channels = s.mean.shape
    count = h[0].numel()
    rows = count // channels
    per = max(64, -(-rows // 32))
    shares = -(-rows // per)
    block = min(channels, 64)
    sums = torch.empty(runs, shares, 2, channels, device=h.device)
    _norm_sums[(shares, channels // block, runs)](
        d, alive, h, s.mean, s.inverse, sums, rows, per, sums.stride(0), channels, alive is not None, 32, block
    )  # fmt: skip
    narrow = min(channels, 16)
    _norm_finish[(channels // narrow, runs)](
        sums, d_gamma, d_beta, sums.stride(0), d_gamma.stride(0),
        shares, triton.next_power_of_2(shares), channels, narrow,
    )  # fmt: skip
    out = torch.empty_like(h)
    _norm_apply[(triton.cdiv(count, 1024), runs)](
        d, alive, h, s.mean, s.inverse, gamma, d_gamma, d_beta, out, count,
        gamma.stride(0), d_gamma.stride(0), 1.0 / rows, channels, alive is not None, 1024,
    )  # fmt: skip
    return out


@triton.jit
def _head(
    x, w, b, z, param_run, BATCH: tl.constexpr, POSITIONS: tl.constexpr, C: tl.constexpr, BC: tl.constexpr
):  # fmt: skip
    """One program is one image of one run."""
    which = tl.program_id(0).to(tl.int64)
    run = which // BATCH
    c = tl.arange(0, BC)
    total = tl.zeros((BC,), tl.float32)
    for p in range(POSITIONS):
        total += tl.load(x + (which * POSITIONS + p) * C + c, mask=c < C, other=0.0).to(tl.float32)
    at = w + run * param_run
    margin = tl.load(at + C + c, mask=c < C, other=0.0) - tl.load(at + c, mask=c < C, other=0.0)
    bias = tl.load(b + run * param_run + 1) - tl.load(b + run * param_run)
    tl.store(z + which, tl.sum(total * margin, 0) / POSITIONS + bias)


def head(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    """The margin l₁ − l₀ of a two-column softmax over the mean of all positions: ``(R, B)``."""
    runs, batch, high, wide, channels = x.shape
    z = torch.empty(runs, batch, device=x.device)
    block = triton.next_power_of_2(channels)
    _head[(runs * batch,)](x, w, b, z, w.stride(0), batch, high * wide, channels, block)
    return z


@triton.jit
def _head_back(
    d, x, w, d_w, d_b, out, param_run, BATCH: tl.constexpr, PADDED: tl.constexpr, POSITIONS: tl.constexpr,
    C: tl.constexpr, BC: tl.constexpr,
):  # fmt: skip
    """One program is a block of channels of one run, with the whole batch."""
    run = tl.program_id(1).to(tl.int64)
    c = tl.program_id(0) * BC + tl.arange(0, BC)
    image = tl.arange(0, PADDED)
    there = (image < BATCH)[:, None]
    margin = tl.load(w + run * param_run + C + c) - tl.load(w + run * param_run + c)
    g = tl.load(d + run * BATCH + image, mask=image < BATCH, other=0.0)
    share = (g[:, None] * margin[None, :] / POSITIONS).to(out.dtype.element_ty)
    total = tl.zeros((BC,), tl.float32)
    for p in range(POSITIONS):
        at = ((run * BATCH + image[:, None]) * POSITIONS + p) * C + c[None, :]
        total += tl.sum(g[:, None] * tl.load(x + at, mask=there, other=0.0).to(tl.float32), 0)
        tl.store(out + at, share, mask=there)
    tl.store(d_w + run * param_run + C + c, total / POSITIONS)
    tl.store(d_w + run * param_run + c, -total / POSITIONS)
    if tl.program_id(0) == 0:
        level = tl.sum(g, 0)
        tl.store(d_b + run * param_run + 1, level)
        tl.store(d_b + run * param_run, -level)


def head_back(d: Tensor, x: Tensor, w: Tensor, d_w: Tensor, d_b: Tensor) -> Tensor:
    """The gradient before the head; those of its weights into `d_w` and `d_b`."""
    runs, batch, high, wide, channels = x.shape
    out = torch.empty_like(x)
    block = min(channels, 32)
    _head_back[(channels // block, runs)](
        d, x, w, d_w, d_b, out, w.stride(0), batch, triton.next_power_of_2(batch), high * wide, channels, block
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
