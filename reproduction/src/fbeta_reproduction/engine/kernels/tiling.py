"""How the Triton convolution is cut: into tiles of a matrix product, and along an axis into positions and taps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch

from fbeta_reproduction.engine.layout import Window


class Tile(NamedTuple):
    """Rows, columns and depth of a tile, warps, and loads in flight."""

    m: int
    n: int
    k: int
    warps: int
    stages: int


class Way(NamedTuple):
    """One axis of a launch of `_conv`: positions, where a position starts to read, and its taps."""

    positions: int
    step: int
    start: int
    way: int
    taps: int
    tap_first: int
    tap_step: int
    out_first: int
    out_step: int


def forwards(a: Window) -> Way:
    """Outputs read input o·stride + tap − pad.

    >>> forwards(Window.of(size=8, kernel=3, stride=1, pad=1)).start
    -1
    """
    return Way(a.out, a.stride, a.first - a.pad, 1, a.taps, 0, 1, 0, 1)


def backwards(a: Window) -> Iterator[Way]:
    """Inputs of each parity read output (i + pad − tap)/stride, where that is whole.

    >>> [w.taps for w in backwards(Window.of(size=8, kernel=3, stride=2, pad=1))]
    [1, 2]
    """
    for parity in range(a.stride):
        first = next((t for t in range(a.taps) if (parity + a.pad - a.first - t) % a.stride == 0), a.taps)
        taps = len(range(first, a.taps, a.stride))
        start = (parity + a.pad - a.first - first) // a.stride if taps else 0
        positions = -(-(a.size - parity) // a.stride)
        yield Way(positions, 1, start, -1, taps, first, a.stride, parity, a.stride)


def tile_of(kind: str, inner: int, outer: int, dtype: torch.dtype) -> Tile:
    """The tile of a launch: chosen by measurement on an H200, whatever the number of runs."""
    if dtype == torch.float32:
        return Tile(min(inner, 64) if kind == "weight" else 64, min(outer, 64), min(inner, 32), 4, 2)
    if kind == "weight":
        if min(inner, outer) >= 128:
            return Tile(128, 128, 32, 4, 3)
        return Tile(min(inner, 64), min(outer, 64), 128 if inner < 64 else 64, 4, 3)
    return Tile(128, min(outer, 128), min(inner, 64), 4, 3)


def by_position(positions: int) -> bool:
    """Whether a tile holds one position of many images: with few positions many taps fall outside."""
    return positions <= 16
