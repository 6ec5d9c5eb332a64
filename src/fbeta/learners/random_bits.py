"""Random numbers that are the same on every machine: counter-based bits that depend on their key alone."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def bits(count: int, *key: int) -> NDArray[np.uint64]:
    """Random 64-bit words that depend on the key alone, not on how NumPy turns them into numbers.

    >>> bool((bits(3, 1, 2) == bits(3, 1, 2)).all()), bool((bits(3, 1, 2) == bits(3, 1, 3)).any())
    (True, False)
    """
    return np.random.Philox(np.random.SeedSequence(key)).random_raw(count)


def shuffled(count: int, *key: int) -> NDArray[np.int64]:
    """The numbers 0 to `count` − 1 in a random order.

    >>> sorted(shuffled(4, 7).tolist())
    [0, 1, 2, 3]
    """
    return np.argsort(bits(count, *key), kind="stable")
