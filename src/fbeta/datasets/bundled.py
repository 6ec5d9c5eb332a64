"""The data sets that lie inside scikit-learn: digits, and breast cancer from Wisconsin."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from fbeta.datasets.dataset import Content, Dataset, Source
from fbeta.datasets.download import DataError, DownloadProgress
from fbeta.datasets.images import Images

if TYPE_CHECKING:
    from fbeta.tables import Table

#: Of pixels 0 to 16, or numbers in double precision, and the classes, as bytes in scikit-learn's order.
SHA256 = {
    "digits": "87ff0c9e40dc7e2c0e34e7257799c2e3f3aec1a016363bb11cad869ec428a826",
    "breast-cancer": "3a54a12ffd3db348fbe319a9056329cde28da5b2e5ecc26ff7fb9f54aa7cc9f4",
}


@dataclass(frozen=True, kw_only=True)
class Bundled(Dataset[Content]):
    """A data set in one file of scikit-learn's, so that there is nothing to fetch."""

    file: str
    sources: Mapping[str, Source] = field(default_factory=lambda: {"scikit-learn": lambda job: None})

    @property
    def size(self) -> int:  # noqa: D102
        return self.path().stat().st_size if self.here() else 0

    def here(self) -> bool:  # noqa: D102
        return self._file() is not None

    def path(self) -> Path:  # noqa: D102
        if (file := self._file()) is None:
            raise DataError(f"{self.name} lies inside scikit-learn, which is not installed: pip install 'fbeta[data]'.")
        return file

    def fetch(self, source: str = "auto", progress: DownloadProgress | None = None) -> Path:  # noqa: D102
        super().fetch(source)  # no file of its own is missing, but the source may be unknown
        return self.path()

    def _file(self) -> Path | None:
        spec = find_spec("sklearn")  # finds it without the second that its import takes
        if spec is None or not spec.submodule_search_locations:
            return None
        file = Path(spec.submodule_search_locations[0], "datasets", "data", self.file)
        return file if file.is_file() else None


def _verify(name: str, content: bytes) -> None:
    """Refuse content of another scikit-learn: the same name must mean the same rows everywhere."""
    if hashlib.sha256(content).hexdigest() != SHA256[name]:
        raise DataError(f"{name} of this scikit-learn is not that of 1.9.1: pip install scikit-learn==1.9.1.")


def _digits(file: Path) -> Images:
    """Scale 0 to 16 up to 0 to 255; of each digit, in file order, image 2, 7, 12, … is a test image."""
    import numpy as np
    from sklearn.datasets import load_digits

    bunch = load_digits()
    pixels, labels = bunch.images.astype(np.uint8), bunch.target.astype(np.int64)
    _verify("digits", pixels.tobytes() + labels.astype(np.uint8).tobytes())
    images = ((pixels.astype(np.uint16) * 255 + 8) // 16).astype(np.uint8)[..., None]
    test = np.zeros(len(labels), dtype=bool)
    for digit in range(10):
        test[np.flatnonzero(labels == digit)[2::5]] = True
    return Images("digits", images[~test], labels[~test], images[test], labels[test], DIGITS.classes)


def _breast_cancer(file: Path, duplicates: bool = True) -> Table:
    """569 tumours by 30 numbers about the nuclei of their cells; malignant, the rarer class, is positive."""
    import numpy as np
    import polars as pl
    from sklearn.datasets import load_breast_cancer

    from fbeta.tables import read_frame

    bunch = load_breast_cancer()
    _verify("breast-cancer", bunch.data.astype("<f8").tobytes() + bunch.target.astype(np.uint8).tobytes())
    columns = {str(name): bunch.data[:, i] for i, name in enumerate(bunch.feature_names)}
    frame = pl.DataFrame(columns | {"diagnosis": bunch.target_names[bunch.target].astype(object)})
    return read_frame(frame, "diagnosis", "malignant", duplicates=duplicates, name="breast-cancer")


DIGITS = Bundled(
    name="digits",
    about="handwritten digits",
    train=1438,
    test=359,
    shape=(8, 8, 1),
    classes=tuple("0123456789"),
    file="digits.csv.gz",
    read=_digits,
)
BREAST_CANCER = Bundled(
    name="breast-cancer",
    about="tumours, malignant or benign",
    kind="table",
    train=569,
    shape=(30,),
    classes=("benign", "malignant"),
    file="breast_cancer.csv",
    read=_breast_cancer,
)
