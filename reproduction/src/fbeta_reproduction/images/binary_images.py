"""The images of a data set as the engine takes them: one class against the rest."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fbeta.data import load_images
from fbeta_reproduction.protocol import SETTINGS


@dataclass(frozen=True, eq=False)
class BinaryImages:
    """Images with targets 0 and 1: `trained` rows to train and validate on, then those to test on.

    Shape: `images` ``(N, height, width, channels)`` of uint8, `target` ``(N,)``.

    >>> digits = BinaryImages.load("digits")
    >>> digits.images.shape, digits.trained, int(digits.target.sum())
    ((1797, 32, 32, 1), 1438, 178)
    """

    images: NDArray[np.uint8]
    target: NDArray[np.int64]
    trained: int

    @classmethod
    def load(cls, dataset: str) -> BinaryImages:
        """Read a data set of `SETTINGS` and set its positive class against the rest."""
        data = load_images(dataset)
        images = np.concatenate([data.train, data.test])
        if images.shape[1] == 8:  # digits: each pixel becomes 4 × 4
            images = images.repeat(4, 1).repeat(4, 2)
        labels = np.concatenate([data.train_labels, data.test_labels])
        return cls(images, (labels == SETTINGS[dataset].positive).astype(np.int64), len(data.train))
