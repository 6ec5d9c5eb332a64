# mypy: disable-error-code="no-untyped-def"
"""Batch normalisation of many runs in Triton: its statistics while a convolution is at hand, its line, its gradient."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from fbeta_reproduction.engine.kernels.convolution import conv
from fbeta_reproduction.engine.kernels.reference import EPSILON, MOMENTUM, Statistics
from fbeta_reproduction.engine.layout import Conv


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
