# mypy: disable-error-code="no-untyped-def"
"""From many positions to fewer, in Triton: the largest of 3×3, and the head over the mean of all."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from fbeta_reproduction.engine.kernels.reference import Statistics


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
