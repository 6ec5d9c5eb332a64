"""Data sets by name: `fetch` brings one here, `load` reads it. Same bytes whichever source they came from.

A data set is one file with a `DATASET`, and one line in `_SETS`.
"""

from __future__ import annotations

import difflib
from pathlib import Path

from fbeta.data import cifar10, digits, fashion_mnist
from fbeta.data.cached import root
from fbeta.data.dataset import DataError, Dataset, Images, Progress

__all__ = ["DataError", "Dataset", "Images", "fetch", "get", "load", "names", "path", "root"]

_SETS: dict[str, Dataset[Images]] = {
    dataset.name: dataset for dataset in (digits.DATASET, fashion_mnist.DATASET, cifar10.DATASET)
}


def names() -> list[str]:
    """The names of all data sets.

    >>> names()
    ['digits', 'fashion-mnist', 'cifar10']
    """
    return list(_SETS)


def get(name: str) -> Dataset[Images]:
    """A data set's facts, without its content.

    >>> get("cifar10").shape
    (32, 32, 3)
    """
    if name not in _SETS:
        near = difflib.get_close_matches(name, _SETS, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"Unknown data set {name!r}.{hint} Choices: {', '.join(names())}.")
    return _SETS[name]


def load(name: str) -> Images:
    """Read a data set that is here, verified; DataError says how to fetch it.

    Shape: images (N, height, width, channels) of uint8, labels (N,) of int64.

    >>> digits = load("digits")
    >>> digits.train.shape, digits.test.shape, digits.train.max()
    ((1438, 8, 8, 1), (359, 8, 8, 1), np.uint8(255))
    """
    return get(name).load()


def path(name: str) -> Path:
    """Where a data set lies, verified; DataError says how to fetch it.

    >>> path("digits").name
    'digits.csv.gz'
    """
    return get(name).path()


def fetch(name: str, source: str = "auto", progress: Progress | None = None) -> Path:
    """Bring a data set here from one of its sources, or from the first that works, and say where it is.

    What is here and right is not fetched again. `progress` is told (what, bytes so far, bytes in all or 0).

    >>> fetch("digits").name
    'digits.csv.gz'
    """
    return get(name).fetch(source, progress)
