"""Named data sets: which there are, and one object for each.

Each is a `Dataset`. Those of this package are listed below; other packages add theirs by entry points
(`fbeta.extensions`).
"""

from typing import Any

from fbeta import extensions
from fbeta.datasets import bundled, creditcard, keel
from fbeta.datasets.dataset import Dataset
from fbeta.datasets.download import DataError
from fbeta.spelling import did_you_mean

_OWN: tuple[Dataset[Any], ...] = (bundled.DIGITS, bundled.BREAST_CANCER, creditcard.DATASET, keel.DATASET)
_SETS = {dataset.name: dataset for dataset in _OWN}


def names() -> list[str]:
    """The names of all data sets, then those of other packages; `keel` is a hundred tables, each loaded as `keel/…`.

    >>> names()[:4]
    ['digits', 'breast-cancer', 'creditcard', 'keel']
    """
    return list(dict.fromkeys([*_SETS, *extensions.names(extensions.DATASETS)]))


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
    if name in _SETS:
        return _SETS[name]
    if name not in names():
        if sentence := extensions.missing(extensions.DATASETS, name):
            raise DataError(sentence)
        known = [f"keel/{table}" for table in keel.NAMES] if family == "keel" else names()
        raise ValueError(f"Unknown data set {name!r}.{did_you_mean(name, known)} Choices: {', '.join(names())}.")
    added: Dataset[Any] = extensions.load(extensions.DATASETS, name)
    return added
