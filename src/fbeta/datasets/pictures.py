"""Images as a table: a column for each pixel, one class against the rest."""

from __future__ import annotations

import numpy as np
import polars as pl

from fbeta.datasets.dataset import Images
from fbeta.tables.reading import read_frame
from fbeta.tables.table import Table


def from_images(images: Images, positive: str | None = None, duplicates: bool = True) -> Table:
    """The training and then the test images as rows, with the class `positive`, or the first, against the rest.

    >>> from fbeta.data import load_images
    >>> from_images(load_images("digits"), "8").positive
    '8'
    """
    pixels = np.concatenate([images.train, images.test])
    labels = np.concatenate([images.train_labels, images.test_labels])
    places = ["-".join(map(str, place)) for place in np.ndindex(*(n for n in pixels.shape[1:] if n > 1))]
    flat = pixels.reshape(len(pixels), -1)
    frame = pl.DataFrame({f"pixel {place}": flat[:, i] for i, place in enumerate(places)})
    target = pl.Series("class", np.array(images.classes, object)[labels], pl.String)
    frame, positive = frame.with_columns(target), positive or images.classes[0]
    return read_frame(frame, "class", positive, duplicates=duplicates, name=images.name)
