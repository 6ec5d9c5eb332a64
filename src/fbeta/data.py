"""Data by name or by path: `fetch` brings a named set here, `load` reads a set or a file of one's own."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fbeta.datasets import get, names
from fbeta.datasets.dataset import Dataset, root
from fbeta.datasets.download import DataError, DownloadProgress
from fbeta.datasets.images import Images

if TYPE_CHECKING:
    from fbeta.tables import Table

__all__ = ["DataError", "Dataset", "Images", "fetch", "get", "is_path", "load", "load_images", "load_table", "names"]
__all__ += ["path", "root"]


def load(source: str | Path, target: str | None = None, positive: str | None = None, **options: Any) -> Images | Table:
    """Read a data set that is here, verified, or a table of one's own; DataError says how to fetch a set.

    A set of images is `Images` unless a target or a positive class is asked for; see `load_images` and `load_table`.

    >>> digits = load("digits")
    >>> digits.train.shape, digits.test.shape, digits.train.max()
    ((1438, 8, 8, 1), (359, 8, 8, 1), np.uint8(255))
    >>> load("digits", positive="0")
    Table('digits', 1,797 rows, 61 columns, 178 (9.9 %) of class '0')
    """
    if not is_path(source) and get(str(source)).kind == "images" and not (target or positive or options):
        return load_images(str(source))
    return load_table(source, target, positive, **options)


def load_images(name: str) -> Images:
    """Read a set of images that is here, verified.

    Shape: images (N, height, width, channels) of uint8, labels (N,) of int64.

    >>> load_images("digits").classes[:3]
    ('0', '1', '2')
    """
    images = get(name).load()
    if not isinstance(images, Images):
        raise ValueError(f"{name} is a table, not images: use load_table.")
    return images


def load_table(
    source: Any,
    target: str | None = None,
    positive: str | None = None,
    *,
    group: str | None = None,
    time: str | None = None,
    weight: str | None = None,
    drop: Sequence[str] = (),
    categorical: Sequence[str] = (),
    delimiter: str | None = None,
    sheet: str | None = None,
    duplicates: bool = True,
) -> Table:
    """Read a table: a file by its path (see `tables.read_table`), a set by its name, or a data frame in memory.

    A set has its own target. One of images is a table of pixels, with the class `positive` (the first, if none is
    given) against the rest.

    >>> table = load_table("breast-cancer")
    >>> table.notes[0]
    "positive is diagnosis 'malignant', as asked: 212 of 569 rows."
    """
    try:
        from fbeta.tables import TableError, read_frame, read_table
    except ImportError as error:  # images do not need polars, tables do
        raise DataError(str(error)) from error
    dropped = (drop,) if isinstance(drop, str) else tuple(drop)
    codes = (categorical,) if isinstance(categorical, str) else tuple(categorical)
    options: dict[str, Any] = {"group": group, "time": time, "weight": weight, "drop": dropped, "categorical": codes}
    options |= {"delimiter": delimiter, "sheet": sheet}
    if hasattr(source, "columns"):
        del options["delimiter"], options["sheet"]
        return read_frame(source, target or "", positive, duplicates=duplicates, **options)
    if is_path(source):
        if target is None:
            raise TableError(f"which column of {source} is the target? Name it: target='…' (--target).")
        return read_table(source, target, positive, duplicates=duplicates, **options)
    dataset = get(str(source))
    if dataset.kind == "images":
        table: Table = dataset.load().table(positive, duplicates)
    else:
        table = dataset.load(duplicates=duplicates)
    own = table.roles
    held = {
        "group": own.group,
        "time": own.time,
        "weight": own.weight,
        "drop": own.dropped,
        "categorical": own.categorical,
    }
    if given := [option for option, asked in options.items() if asked and asked != held.get(option)]:
        raise TableError(f"{source} has its own columns and split: leave {', '.join(given)} out.")
    if target not in (None, own.target):
        raise TableError(f"{source} has its own target, {own.target!r}: leave target out.")
    if positive not in (None, own.positive):
        raise TableError(f"{source} has its own positive class, {own.positive!r}: leave positive out.")
    return replace(table, source=str(source))


def path(name: str) -> Path:
    """Where a data set lies, verified; DataError says how to fetch it.

    >>> path("digits").name
    'digits.csv.gz'
    """
    return get(name).path()


def fetch(name: str, source: str = "auto", progress: DownloadProgress | None = None) -> Path:
    """Bring a data set here from one of its sources, or from the first that works, and say where it is.

    What is here and right is not fetched again. `progress` is told (what, bytes so far, bytes in all or 0).

    >>> fetch("digits").name
    'digits.csv.gz'
    """
    return get(name).fetch(source, progress)


def is_path(source: str | Path) -> bool:
    """Whether this is a file: the name of a set has neither an ending nor, but for KEEL's, a folder before it.

    >>> is_path("fraud.csv"), is_path("-"), is_path("keel/yeast4"), is_path("digits")
    (True, True, False, False)
    """
    if isinstance(source, Path):
        return True
    if source in names() or source.startswith("keel/"):
        return False
    return source == "-" or os.sep in source or bool(Path(source).suffix) or os.path.exists(source)
