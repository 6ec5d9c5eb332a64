# mypy: disable-error-code="no-untyped-def"
"""Convolutions of many runs in Triton: one kernel for results and for gradients of inputs, one for weights.

A convolution is a matrix product whose left factor is never written down: a row is an output position, a column a
channel under a tap. `_conv` walks taps and channels; with other numbers it is the gradient of the inputs (the taps
run backwards, and with stride 2 each of the four parities of a position has its own few taps).
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from fbeta_reproduction.engine.kernels.tiling import Tile, Way, backwards, by_position, forwards, tile_of
from fbeta_reproduction.engine.layout import Conv


@triton.jit
def _conv(
    x, w, y, add, alive, scale, shift, seen,
    x_run, w_run, y_run, seen_run, batch,
    X_IMAGE: tl.constexpr, X_ROW: tl.constexpr, X_COL: tl.constexpr,
    HIGH: tl.constexpr, WIDE: tl.constexpr, POS_H: tl.constexpr, POS_W: tl.constexpr,
    STEP_H: tl.constexpr, STEP_W: tl.constexpr, FROM_H: tl.constexpr, FROM_W: tl.constexpr, WAY: tl.constexpr,
    Y_IMAGE: tl.constexpr, Y_ROW: tl.constexpr, Y_COL: tl.constexpr, Y_FROM: tl.constexpr,
    TAPS_H: tl.constexpr, TAPS_W: tl.constexpr,
    TAP_0: tl.constexpr, TAP_H: tl.constexpr, TAP_W: tl.constexpr, W_TAP: tl.constexpr,
    INNER: tl.constexpr, OUTER: tl.constexpr, W_IN: tl.constexpr, W_OUT: tl.constexpr,
    SEEN: tl.constexpr, LINE: tl.constexpr, RELU: tl.constexpr, ADD: tl.constexpr, ALIVE: tl.constexpr,
    BY_POSITION: tl.constexpr, PRECISION: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """Rows are (image, position); a tile has `BM` of them and `BN` output channels."""
    run = tl.program_id(1).to(tl.int64)
    tile_n = tl.program_id(0) % (OUTER // BN)
    tile_m = tl.program_id(0) // (OUTER // BN)
    n = tile_n * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    lane = tl.arange(0, BM)
    if BY_POSITION:
        # All rows of a tile are one position of many images: taps that fall outside are skipped, not masked.
        tiles = tl.cdiv(batch, BM)
        p = (tile_m // tiles) // POS_W
        q = (tile_m // tiles) % POS_W
        image = (tile_m % tiles) * BM + lane
        there = image < batch
        near_h = p * STEP_H + FROM_H
        near_w = q * STEP_W + FROM_W
        if WAY > 0:
            first_h = tl.maximum(0, -near_h)
            last_h = tl.minimum(TAPS_H, HIGH - near_h)
            first_w = tl.maximum(0, -near_w)
            last_w = tl.minimum(TAPS_W, WIDE - near_w)
        else:
            first_h = tl.maximum(0, near_h - HIGH + 1)
            last_h = tl.minimum(TAPS_H, near_h + 1)
            first_w = tl.maximum(0, near_w - WIDE + 1)
            last_w = tl.minimum(TAPS_W, near_w + 1)
        count_h = tl.maximum(last_h - first_h, 0)
        count_w = tl.maximum(last_w - first_w, 0)
    else:
        row = tile_m * BM + lane
        there = row < batch * POS_H * POS_W
        image = row // (POS_H * POS_W)
        p = (row // POS_W) % POS_H
        q = row % POS_W
        near_h = p * STEP_H + FROM_H
        near_w = q * STEP_W + FROM_W
        first_h = 0
        first_w = 0
        count_h = TAPS_H
        count_w = TAPS_W
    x_at = x + run * x_run + image[:, None].to(tl.int64) * X_IMAGE + k[None, :]
    w_at = w + run * w_run + k[:, None] * W_IN + n[None, :] * W_OUT
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    CHUNKS: tl.constexpr = INNER // BK
    for i in range(count_h * count_w * CHUNKS):
        tap = i // CHUNKS
        c = (i % CHUNKS) * BK
        a = first_h + tap // count_w
        b = first_w + tap % count_w
        h = near_h + a * WAY
        v = near_w + b * WAY
        if BY_POSITION:
            left = tl.load(x_at + (h * X_ROW + v * X_COL + c), mask=there[:, None], other=0.0)
        else:
            inside = there & (h >= 0) & (h < HIGH) & (v >= 0) & (v < WIDE)
            left = tl.load(x_at + (h * X_ROW + v * X_COL + c)[:, None], mask=inside[:, None], other=0.0)
        right = tl.load(w_at + (TAP_0 + a * TAP_H + b * TAP_W) * W_TAP + c * W_IN)
        acc = tl.dot(left, right, acc, input_precision=PRECISION)
    where = image[:, None].to(tl.int64) * Y_IMAGE + n[None, :]
    if BY_POSITION:
        where += Y_FROM + p * Y_ROW + q * Y_COL
    else:
        where += (Y_FROM + p * Y_ROW + q * Y_COL)[:, None]
    where += run * y_run
    if LINE:
        acc = acc * tl.load(scale + run * OUTER + n)[None, :] + tl.load(shift + run * OUTER + n)[None, :]
    if ADD:
        extra = tl.load(add + where, mask=there[:, None], other=0.0).to(tl.float32)
        if ALIVE:
            extra = tl.where(tl.load(alive + where, mask=there[:, None], other=0.0) > 0, extra, 0.0)
        acc += extra
    if RELU:
        acc = tl.maximum(acc, 0.0)
    out = acc.to(y.dtype.element_ty)
    tl.store(y + where, out, mask=there[:, None])
    if SEEN:
        # Mean and squares about it, tile by tile: nothing cancels when they are put together.
        rounded = tl.where(there[:, None], out.to(tl.float32), 0.0)
        count = tl.sum(there.to(tl.float32), 0)
        mean = tl.sum(rounded, 0) / count
        apart = tl.where(there[:, None], rounded - mean[None, :], 0.0)
        at = seen + run * seen_run + tile_m * 2 * OUTER + n
        tl.store(at, mean)
        tl.store(at + OUTER, tl.sum(apart * apart, 0))


@triton.jit
def _weight(
    x, d, out, x_run, d_run, out_run, batch,
    X_IMAGE: tl.constexpr, X_ROW: tl.constexpr, X_COL: tl.constexpr,
    HIGH: tl.constexpr, WIDE: tl.constexpr, OUT_H: tl.constexpr, OUT_W: tl.constexpr,
    STRIDE_H: tl.constexpr, STRIDE_W: tl.constexpr, PAD_H: tl.constexpr, PAD_W: tl.constexpr,
    FIRST_H: tl.constexpr, FIRST_W: tl.constexpr, TAPS_W: tl.constexpr,
    INNER: tl.constexpr, OUTER: tl.constexpr, PRECISION: tl.constexpr,
    PIXELS: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """For one tap, sum input × gradient over the images and the positions where the tap meets a pixel."""
    run = tl.program_id(1).to(tl.int64)
    tile = tl.program_id(0)
    tile_n = tile % (OUTER // BN)
    tile_m = (tile // (OUTER // BN)) % (INNER // BM)
    tap = tile // ((OUTER // BN) * (INNER // BM))
    tap_h = tap // TAPS_W
    tap_w = tap % TAPS_W
    dy = FIRST_H + tap_h - PAD_H
    dx = FIRST_W + tap_w - PAD_W
    low_h = tl.maximum(0, (STRIDE_H - 1 - dy) // STRIDE_H)
    low_w = tl.maximum(0, (STRIDE_W - 1 - dx) // STRIDE_W)
    high_h = tl.minimum(OUT_H, (HIGH - dy + STRIDE_H - 1) // STRIDE_H)
    high_w = tl.minimum(OUT_W, (WIDE - dx + STRIDE_W - 1) // STRIDE_W)
    count_h = high_h - low_h
    count_w = high_w - low_w
    rows = batch * count_h * count_w
    m = tile_m * BM + tl.arange(0, BM)
    n = tile_n * BN + tl.arange(0, BN)
    lane = tl.arange(0, BK)
    x_at = x + run * x_run + m[None, :]
    d_at = d + run * d_run + n[None, :]
    ALIGNED: tl.constexpr = (X_IMAGE | X_ROW | X_COL) & -(X_IMAGE | X_ROW | X_COL)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, rows, BK):
        row = start + lane
        there = row < rows
        image = row // (count_h * count_w)
        rest = row % (count_h * count_w)
        p = low_h + rest // count_w
        q = low_w + rest % count_w
        x_row = image * X_IMAGE + (p * STRIDE_H + dy) * X_ROW + (q * STRIDE_W + dx) * X_COL
        # Triton 3.6 loses count through the two remainders above: where pixels are 8 bytes apart it would load 16.
        x_row = tl.multiple_of(x_row, ALIGNED)
        d_row = image * (OUT_H * OUT_W * OUTER) + (p * OUT_W + q) * OUTER
        left = tl.load(x_at + x_row[:, None], mask=there[:, None], other=0.0)
        right = tl.load(d_at + d_row[:, None], mask=there[:, None], other=0.0)
        acc = tl.dot(tl.trans(left), right, acc, input_precision=PRECISION)
    if PIXELS > 0:
        acc = tl.where(((m % 4 < 3) & (m // 4 < PIXELS))[:, None], acc, 0.0)
    tl.store(out + run * out_run + tap * (INNER * OUTER) + m[:, None] * OUTER + n[None, :], acc)


def _precision(dtype: torch.dtype) -> str:
    return "ieee" if dtype == torch.float32 else "tf32"


def _launch(
    x: Tensor, w: Tensor, y: Tensor, c: Conv, rows: Way, cols: Way, *, back: bool,
    seen: Tensor | None = None, line: tuple[Tensor, Tensor] | None = None, relu: bool = False,
    add: Tensor | None = None, alive: Tensor | None = None, tile: Tile | None = None,
) -> None:  # fmt: skip
    runs, batch = x.shape[:2]
    inner, outer = (c.channels_out, c.channels_in) if back else (c.channels_in, c.channels_out)
    steps = (x.stride(1), x.stride(2), x.stride(3)) if back else c.steps
    high, wide = (c.rows.out, c.cols.out) if back else (c.rows.size, c.cols.size)
    positions = rows.positions * cols.positions
    t = tile or tile_of("data" if back else "conv", inner, outer, x.dtype)
    split = by_position(positions)
    tiles = positions * triton.cdiv(batch, t.m) if split else triton.cdiv(batch * positions, t.m)
    scale, shift = line if line is not None else (None, None)
    _conv[(tiles * (outer // t.n), runs)](
        x, w, y, add, alive, scale, shift, seen,
        x.stride(0), w.stride(0), y.stride(0), 0 if seen is None else seen.stride(0), batch,
        *steps, high, wide, rows.positions, cols.positions,
        rows.step, cols.step, rows.start, cols.start, rows.way,
        y.stride(1), y.stride(2) * rows.out_step, y.stride(3) * cols.out_step,
        y.stride(2) * rows.out_first + y.stride(3) * cols.out_first,
        rows.taps, cols.taps,
        rows.tap_first * c.cols.taps + cols.tap_first, rows.tap_step * c.cols.taps, cols.tap_step,
        c.channels_in * c.channels_out, inner, outer,
        *((1, c.channels_out) if back else (c.channels_out, 1)),
        seen is not None, line is not None, relu, add is not None, alive is not None,
        split, _precision(x.dtype), t.m, t.n, t.k, num_warps=t.warps, num_stages=t.stages,
    )  # fmt: skip


class Seen(NamedTuple):
    """What the tiles of a convolution saw of its output: means and squares about them, and how tiles were cut."""

    parts: Tensor
    rows: int
    split: bool


def conv(x: Tensor, w: Tensor, c: Conv, tile: Tile | None = None) -> tuple[Tensor, Seen]:
    """Convolve, and look at every tile of the result while it is at hand."""
    runs, batch = x.shape[:2]
    y = torch.empty(runs, batch, *c.out_shape, dtype=x.dtype, device=x.device)
    positions = c.rows.out * c.cols.out
    t = tile or tile_of("conv", c.channels_in, c.channels_out, x.dtype)
    split = by_position(positions)
    tiles = positions * triton.cdiv(batch, t.m) if split else triton.cdiv(batch * positions, t.m)
    parts = torch.empty(runs, tiles, 2, c.channels_out, device=x.device)
    _launch(x, w, y, c, forwards(c.rows), forwards(c.cols), back=False, seen=parts, tile=t)
    return y, Seen(parts, t.m, split)


def conv_line(x: Tensor, w: Tensor, c: Conv, scale: Tensor, shift: Tensor, around: Tensor | None, relu: bool) -> Tensor:
    """Convolve and apply a line per channel, as a network in evaluation does."""
    y = torch.empty(*x.shape[:2], *c.out_shape, dtype=x.dtype, device=x.device)
    ways = forwards(c.rows), forwards(c.cols)
    _launch(x, w, y, c, *ways, back=False, line=(scale, shift), relu=relu, add=around)
    return y


def conv_back_data(
    d: Tensor, w: Tensor, c: Conv, add: Tensor | None = None, alive: Tensor | None = None,
    onto: Tensor | None = None, tile: Tile | None = None,
) -> Tensor:  # fmt: skip
    """The gradient before a convolution, plus `add` where `alive` is positive; or added `onto` a tensor."""
    ways = [(rows, cols) for rows in backwards(c.rows) for cols in backwards(c.cols)]
    touched = [(rows, cols) for rows, cols in ways if rows.taps * cols.taps > 0]
    shape = (*d.shape[:2], c.rows.size, c.cols.size, c.channels_in)
    if onto is not None:
        out, add = onto, onto
    else:
        # A 1×1 convolution of stride 2 leaves three of four inputs unread.
        make = torch.empty if len(touched) == len(ways) else torch.zeros
        out = make(shape, dtype=d.dtype, device=d.device)
        assert add is None or len(touched) == len(ways)
    for rows, cols in touched:
        _launch(d, w, out, c, rows, cols, back=True, add=add, alive=alive, tile=tile)
    return out


def conv_back_weight(x: Tensor, d: Tensor, c: Conv, out: Tensor, tile: Tile | None = None) -> None:
    """The gradient of the weights, into `out` ``(R, taps, in, out)``; zero where a channel only fills up."""
    t = tile or tile_of("weight", c.channels_in, c.channels_out, x.dtype)
    tiles = c.taps * (c.channels_in // t.m) * (c.channels_out // t.n)
    _weight[(tiles, x.shape[0])](
        x, d, out, x.stride(0), d.stride(0), out.stride(0), x.shape[1],
        *c.steps, c.rows.size, c.cols.size, c.rows.out, c.cols.out,
        c.rows.stride, c.cols.stride, c.rows.pad, c.cols.pad,
        c.rows.first, c.cols.first, c.cols.taps,
        c.channels_in, c.channels_out, _precision(x.dtype), c.pixels,
        t.m, t.n, t.k, num_warps=t.warps, num_stages=t.stages,
    )  # fmt: skip
