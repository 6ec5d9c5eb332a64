"""Splits, the order of rows, crops and flips: random, and the same on every machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fbeta.learners.machine import bits, shuffled

#: Offsets are stored from here on, so that a negative one fits into five bits.
ZERO = 16


@dataclass(frozen=True)
class Holdout:
    """Which rows train and which validate.

    >>> rows = Holdout.draw(10, share=0.1, key=(0,))
    >>> len(rows.train), len(rows.val)
    (9, 1)
    """

    train: NDArray[np.int64]
    val: NDArray[np.int64]

    @classmethod
    def draw(cls, count: int, share: float, key: tuple[int, ...]) -> Holdout:
        """Set a random share of the rows apart."""
        order = shuffled(count, *key)
        held = round(count * share)
        return cls(np.sort(order[held:]), np.sort(order[:held]))


def pack(rows: Any, down: Any = 0, right: Any = 0, flip: Any = 0) -> NDArray[np.int32]:
    """Put a row's number, its offsets (−16 … 15) and its flip into one 31-bit number.

    >>> pack([3]).tolist()
    [553648131]
    """
    rows = np.asarray(rows, dtype=np.int64)
    if rows.size and rows.max() >= 1 << 20:
        raise ValueError(f"At most {1 << 20:,} images fit into the engine; got row {rows.max():,}.")
    packed = rows | (np.asarray(down) + ZERO) << 20 | (np.asarray(right) + ZERO) << 25 | np.asarray(flip) << 30
    result: NDArray[np.int32] = packed.astype(np.int32)
    return result


def epoch(rows: NDArray[np.int64], image: int, size: int, pad: int, *key: int) -> NDArray[np.int32]:
    """One epoch: rows in random order, each with a random crop out of a border of `pad`, and a flip or none.

    Shape: `rows` ``(n,)``; result ``(n,)``, packed.

    >>> epoch(np.arange(3), 28, 32, 4, 0, 1).shape
    (3,)
    """
    words = bits(2 * len(rows), *key)
    order = rows[np.argsort(words[: len(rows)], kind="stable")]
    luck = words[len(rows) :]
    places = np.uint64(image + 2 * pad - size + 1)
    down, right = (luck >> np.uint64(8)) % places, (luck >> np.uint64(32)) % places
    return pack(
        order, down.astype(np.int64) - pad, right.astype(np.int64) - pad, (luck & np.uint64(1)).astype(np.int64)
    )


def centre(rows: NDArray[np.int64], image: int, size: int) -> NDArray[np.int32]:
    """Every row once, cut from the middle.

    >>> (centre(np.arange(1), 28, 32) >> 20 & 31).tolist()
    [14]
    """
    return pack(rows, -((size - image) // 2), -((size - image) // 2))


def pixel_mean(images: NDArray[np.uint8], rows: NDArray[np.int64], size: int) -> NDArray[np.float32]:
    """The mean of centred images, pixel by pixel, in [0, 1]; black where a small image does not reach.

    Shape: `images` ``(N, h, w, C)``; result ``(size, size, C)``.

    >>> pixel_mean(np.full((2, 2, 2, 1), 255, np.uint8), np.array([1]), 4)[:, :, 0].sum()
    np.float32(4.0)
    """
    total = np.zeros(images.shape[1:], dtype=np.int64)
    for part in np.array_split(rows, max(1, len(rows) // 4096)):
        total += images[part].sum(0, dtype=np.int64)  # whole numbers: the same sum in any order
    before = (size - images.shape[1]) // 2
    mean = np.zeros((size, size, images.shape[3]))
    mean[before : before + images.shape[1], before : before + images.shape[2]] = total / (255 * len(rows))
    return mean.astype(np.float32)
