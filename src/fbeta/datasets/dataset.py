"""What every data set has: a name, facts, a place on disk, and a way to fetch and to load it."""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from fbeta.tables import Table

Content = TypeVar("Content", covariant=True)

#: Called with what is being downloaded, the bytes so far and the bytes in all (0: unknown).
DownloadProgress = Callable[[str, int, int], None]


class DataError(RuntimeError):
    """Data that is missing, damaged or out of reach; the message says how to get it."""


def reason(error: OSError) -> str:
    """What an error of the system says, and about which file."""
    return f"{error.filename}: {error.strerror}" if error.filename and error.strerror else str(error)


@dataclass(frozen=True, eq=False, repr=False)
class Images:
    """Images with one class each, in a training and a test part.

    Shape: `train` and `test` are (N, height, width, channels) of uint8, the labels (N,) of int64; a label is an
    index into `classes`.

    >>> from fbeta.data import load
    >>> load("digits")
    Images('digits', 1438 for training and 359 for test of 8x8x1, 10 classes)
    """

    name: str
    train: NDArray[np.uint8]
    train_labels: NDArray[np.int64]
    test: NDArray[np.uint8]
    test_labels: NDArray[np.int64]
    classes: tuple[str, ...]

    def __post_init__(self) -> None:
        for images, labels in ((self.train, self.train_labels), (self.test, self.test_labels)):
            if images.dtype != "uint8" or labels.dtype != "int64":
                raise TypeError(
                    f"{self.name}: images are uint8 and labels int64, not {images.dtype} and {labels.dtype}."
                )
            alike = labels.shape == images.shape[:1] and images.shape[1:] == self.train.shape[1:]
            if images.ndim != 4 or not alike:
                raise ValueError(
                    f"{self.name}: images are (N, height, width, channels) and labels (N,), "
                    f"not {images.shape} and {labels.shape}."
                )
            if len(labels) and not 0 <= labels.min() <= labels.max() < len(self.classes):
                raise ValueError(f"{self.name}: a label lies outside 0 to {len(self.classes) - 1}.")

    def __repr__(self) -> str:
        size = "x".join(map(str, self.train.shape[1:]))
        rows = f"{len(self.train)} for training and {len(self.test)} for test"
        return f"Images({self.name!r}, {rows} of {size}, {len(self.classes)} classes)"

    def table(self, positive: str | None = None, duplicates: bool = True) -> Table:
        """A column for each pixel, training and then test images as rows; one class, or the first, against the rest.

        >>> from fbeta.data import load_images
        >>> load_images("digits").table("8").positive
        '8'
        """
        import numpy as np
        import polars as pl

        from fbeta.tables.reading import read_frame

        pixels = np.concatenate([self.train, self.test])
        labels = np.concatenate([self.train_labels, self.test_labels])
        places = ["-".join(map(str, at)) for at in np.ndindex(*(n for n in pixels.shape[1:] if n > 1))]
        flat = pixels.reshape(len(pixels), -1)
        frame = pl.DataFrame({f"pixel {place}": flat[:, i] for i, place in enumerate(places)})
        frame = frame.with_columns(pl.Series("class", np.array(self.classes, object)[labels], pl.String))
        return read_frame(frame, "class", positive or self.classes[0], duplicates=duplicates, name=self.name)


@dataclass(frozen=True, kw_only=True)
class Dataset(ABC, Generic[Content]):
    """One data set: its facts, and what `fbeta data` does with it. `Content` is the type that it loads as.

    `kind` is images, table or tables; `shape` is that of an image, the number of columns, the number of tables. A
    table comes without a split: all of its rows are in `train`. `read` makes of `path()` what `load` returns.
    """

    name: str
    about: str
    shape: tuple[int, ...]
    classes: tuple[str, ...]
    read: Callable[..., Content]
    kind: str = "images"
    train: int = 0
    test: int = 0

    @property
    @abstractmethod
    def origins(self) -> tuple[str, ...]:
        """Names of the sources, in the order in which they are tried."""

    @property
    @abstractmethod
    def size(self) -> int:
        """Bytes on disk."""

    @abstractmethod
    def here(self) -> bool:
        """Whether it is on this machine, judged without reading its files."""

    @abstractmethod
    def path(self) -> Path:
        """Its folder or file, with the content verified; DataError says how to fetch it."""

    @abstractmethod
    def fetch(self, source: str = "auto", progress: DownloadProgress | None = None) -> Path:
        """Download what is missing or damaged, and return its folder or file."""

    def load(self, **options: Any) -> Content:
        """Read it; a table takes `duplicates`, as `fbeta.data.load_table` does."""
        place = self.path()
        with self.reading():
            return self.read(place, **options)

    def facts(self) -> dict[str, Any]:
        """A line of `fbeta data list`, as plain data."""
        return {
            **{fact: getattr(self, fact) for fact in ("name", "about", "kind", "train", "test")},
            "shape": list(self.shape),
            "classes": list(self.classes),
            "bytes": self.size,
            "sources": list(self.origins),
            "here": self.here(),
        }

    @contextlib.contextmanager
    def reading(self, remedy: str = "fix that and try again") -> Iterator[None]:
        """Turn errors of the system while files are read, for the time of a `with`, into a DataError."""
        try:
            yield
        except OSError as error:
            raise DataError(f"cannot read {self.name} ({reason(error)}): {remedy}.") from error

    def check_source(self, source: str) -> None:
        """Refuse a source that this data set does not have."""
        if source not in ("auto", *self.origins):
            choices = ", ".join(("auto", *self.origins))
            raise ValueError(f"{self.name} has no source {source!r}. Choices: {choices}.")
