"""Digits: 1,797 handwritten digits of 8x8 pixels that come with scikit-learn."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from fbeta.data.dataset import DataError, Dataset, Images, Progress

#: Of the pixels 0 to 16 and the labels, as bytes in scikit-learn's order.
SHA256 = "87ff0c9e40dc7e2c0e34e7257799c2e3f3aec1a016363bb11cad869ec428a826"


@dataclass(frozen=True, kw_only=True)
class Digits(Dataset[Images]):
    """Lies inside scikit-learn, so there is nothing to fetch."""

    @property
    def origins(self) -> tuple[str, ...]:  # noqa: D102
        return ("scikit-learn",)

    @property
    def size(self) -> int:  # noqa: D102
        file = self._file()
        return file.stat().st_size if file else 0

    def here(self) -> bool:  # noqa: D102
        return self._file() is not None

    def path(self) -> Path:  # noqa: D102
        file = self._file()
        if file is None:
            raise DataError(
                "digits lies inside scikit-learn, which is not installed: pip install 'fbeta[data]'."
            )
        return file

    def fetch(self, source: str = "auto", progress: Progress | None = None) -> Path:  # noqa: D102
        self.check_source(source)
        return self.path()

    def load(self) -> Images:
        """Scale 0 to 16 up to 0 to 255; of each digit, in file order, image 2, 7, 12, … is a test image."""
        self.path()
        import numpy as np
        from sklearn.datasets import load_digits

        bunch = load_digits()
        pixels, labels = bunch.images.astype(np.uint8), bunch.target.astype(np.int64)
        if hashlib.sha256(pixels.tobytes() + labels.astype(np.uint8).tobytes()).hexdigest() != SHA256:
            raise DataError(
                "the digits of this scikit-learn are not those of 1.9.1: pip install scikit-learn==1.9.1."
            )
        images = ((pixels.astype(np.uint16) * 255 + 8) // 16).astype(np.uint8)[..., None]
        test = np.zeros(len(labels), dtype=bool)
        for digit in range(10):
            test[np.flatnonzero(labels == digit)[2::5]] = True
        return Images(self.name, images[~test], labels[~test], images[test], labels[test], self.classes)

    @staticmethod
    def _file() -> Path | None:
        spec = find_spec("sklearn")  # finds it without the second that its import takes
        if spec is None or not spec.submodule_search_locations:
            return None
        file = Path(spec.submodule_search_locations[0]) / "datasets" / "data" / "digits.csv.gz"
        return file if file.is_file() else None


DATASET = Digits(
    name="digits",
    about="handwritten digits",
    train=1438,
    test=359,
    shape=(8, 8, 1),
    classes=tuple("0123456789"),
)
