"""Trees as plain arrays, and their checks before a native library, which checks nothing, reads them."""

from array import array
from collections.abc import Iterable
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

Whole = NDArray[np.int64]
Reals = NDArray[np.float64]

#: Levels of a tree at most, a power of two: the libraries recurse, and must not run out of stack.
DEEPEST = 1 << 12
#: The largest leaf: sums of very many stay finite in single precision.
LARGEST = 1e30


def whole(lists: Iterable[Any], low: int, high: int, what: str) -> Whole:
    """The integers of all lists, one after another, within bounds; ValueError or TypeError for anything else."""
    found = np.array(array("q", chain.from_iterable(lists)), np.int64)
    if ((found < low) | (found > high)).any():
        raise ValueError(f"{what} is not from {low} to {high}")
    return found


def reals(lists: Iterable[Any], high: float, what: str) -> Reals:
    """The numbers of all lists, one after another, none larger than `high`; as `whole` otherwise."""
    found = np.array(array("d", chain.from_iterable(lists)), np.float64)
    if not (np.abs(found) <= high).all():
        raise ValueError(f"{what} is not finite, or larger than {high:.3g}")
    return found


def check_splits(feature: Whole, columns: int, leaf: Reals) -> None:
    """ValueError unless splits are by columns that are there, and leaves are of a sane size."""
    if ((feature < 0) | (feature >= columns)).any():
        raise ValueError(f"a split is by a feature beyond the {columns} columns")
    if not (np.abs(leaf) <= LARGEST).all():
        raise ValueError(f"a leaf is larger than {LARGEST:g}")


def check_trees(sizes: Whole, left: Whole, right: Whole, dropped: Any = False) -> Whole:
    """The parent of every node, −1 of a root; ValueError unless all nodes of a tree hang from its first one.

    Nodes are numbered within their tree. A leaf has −1 on both sides; `dropped` nodes belong to no tree any more.

    Shape: `sizes` ``(T,)``, the nodes of each tree; everything else ``(Σ sizes,)``.

    >>> check_trees(np.array([3, 1]), np.array([1, -1, -1, -1]), np.array([2, -1, -1, -1])).tolist()
    [-1, 0, 0, -1]
    >>> check_trees(np.array([3]), np.array([1, 2, -1]), np.array([2, 1, -1]))
    Traceback (most recent call last):
    ValueError: a node of a tree has two parents, or none
    """
    if sizes.min(initial=1) < 1:
        raise ValueError("a tree has no node")
    roots = np.cumsum(sizes) - sizes
    root, size = np.repeat(roots, sizes), np.repeat(sizes, sizes)
    inner = np.flatnonzero(left != -1)
    if not np.array_equal(inner, np.flatnonzero(right != -1)):
        raise ValueError("a node of a tree has one child")
    parent, local = np.tile(inner, 2), np.concatenate([left[inner], right[inner]])
    if ((local < 1) | (local >= size[parent])).any():
        raise ValueError("a child of a node lies outside its tree")
    child = local + root[parent]
    hangs = np.broadcast_to(~np.asarray(dropped), root.shape).copy()
    if not hangs[roots].all():
        raise ValueError("a tree has no root")
    hangs[roots] = False
    if (np.bincount(child, minlength=len(root)) != hangs).any():
        raise ValueError("a node of a tree has two parents, or none")
    up = np.arange(len(root))
    up[child] = parent
    above = np.where(up == np.arange(len(root)), -1, up - root)
    for _ in range(DEEPEST.bit_length() - 1):  # 1, 2, 4, … levels up
        up = up[up]
    if (up != root)[hangs].any():
        raise ValueError(f"a tree has a cycle, or more than {DEEPEST:,} levels: train with a smaller max_depth")
    return above
