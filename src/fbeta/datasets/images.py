"""Images: what a data set of pictures is loaded as."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from fbeta.tables import Table


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
