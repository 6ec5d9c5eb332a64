"""Named data sets: which there are, and one object for each.

A data set is a module with a `DATASET`, an object that has a name, facts, `path()`, `fetch()` and `load()`: see
`Dataset`, and `Cached` for one that is downloaded. The modules of this package are listed below; another package adds
its own by entry points of the group `fbeta.datasets`, each of which names a `DATASET`.
"""

from __future__ import annotations

import functools
from importlib.metadata import entry_points
from typing import Any

from fbeta.datasets import breast_cancer, cifar10, creditcard, digits, fashion_mnist, keel
from fbeta.datasets.dataset import Dataset
from fbeta.spelling import did_you_mean

#: The entry points by which other packages add data sets.
GROUP = "fbeta.datasets"
_MODULES = (digits, fashion_mnist, cifar10, breast_cancer, creditcard, keel)


@functools.cache
def _sets() -> dict[str, Dataset[Any]]:
    """All data sets by name, our own first."""
    found = {module.DATASET.name: module.DATASET for module in _MODULES}
    for entry in entry_points(group=GROUP):
        dataset: Dataset[Any] = entry.load()
        found.setdefault(dataset.name, dataset)
    return found


def names() -> list[str]:
    """The names of all data sets; `keel` is a hundred tables, each loaded as `keel/…`.

    >>> {"digits", "breast-cancer", "creditcard", "keel"} <= set(names())
    True
    """
    return list(_sets())


def get(name: str) -> Dataset[Any]:
    """The data set of a name: its facts, and the ways to fetch and to load it.

    >>> get("digits").shape
    (8, 8, 1)
    >>> get("keel/yeast4").name
    'keel/yeast4'
    """
    family, _, table = name.partition("/")
    if family == "keel" and table in keel.NAMES:
        return keel.member(table)
    if name not in _sets():
        known = [f"keel/{table}" for table in keel.NAMES] if family == "keel" else names()
        hint = did_you_mean(name, known)
        raise ValueError(f"Unknown data set {name!r}.{hint} Choices: {', '.join(names())}.")
    return _sets()[name]
