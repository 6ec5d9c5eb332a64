"""Digits: 1,797 handwritten digits of 8x8 pixels that come with scikit-learn."""

from __future__ import annotations

from pathlib import Path

from fbeta.datasets.dataset import Bundled, verify
from fbeta.datasets.images import Images

#: Of the pixels 0 to 16 and the labels, as bytes in scikit-learn's order.
SHA256 = "87ff0c9e40dc7e2c0e34e7257799c2e3f3aec1a016363bb11cad869ec428a826"


def read(file: Path) -> Images:
    """Scale 0 to 16 up to 0 to 255; of each digit, in file order, image 2, 7, 12, … is a test image."""
    import numpy as np
    from sklearn.datasets import load_digits

    bunch = load_digits()
    pixels, labels = bunch.images.astype(np.uint8), bunch.target.astype(np.int64)
    verify("digits", pixels.tobytes() + labels.astype(np.uint8).tobytes(), SHA256)
    images = ((pixels.astype(np.uint16) * 255 + 8) // 16).astype(np.uint8)[..., None]
    test = np.zeros(len(labels), dtype=bool)
    for digit in range(10):
        test[np.flatnonzero(labels == digit)[2::5]] = True
    return Images("digits", images[~test], labels[~test], images[test], labels[test], DATASET.classes)


DATASET = Bundled(
    name="digits",
    about="handwritten digits",
    train=1438,
    test=359,
    shape=(8, 8, 1),
    classes=tuple("0123456789"),
    file="digits.csv.gz",
    read=read,
)
