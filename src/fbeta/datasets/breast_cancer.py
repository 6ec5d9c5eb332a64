"""Breast cancer: 569 tumours, 30 numbers about the nuclei of their cells, from Wisconsin; inside scikit-learn."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from fbeta.datasets.dataset import Bundled, verify

if TYPE_CHECKING:
    from fbeta.tables import Table

#: Of the numbers in double precision and the classes, as bytes in scikit-learn's order.
SHA256 = "3a54a12ffd3db348fbe319a9056329cde28da5b2e5ecc26ff7fb9f54aa7cc9f4"


def read(file: Path, duplicates: bool = True) -> Table:
    """The table with the target `diagnosis`; malignant, the rarer class, is positive."""
    import numpy as np
    import polars as pl
    from sklearn.datasets import load_breast_cancer

    from fbeta.tables import read_frame

    bunch = load_breast_cancer()
    content = bunch.data.astype("<f8").tobytes() + bunch.target.astype(np.uint8).tobytes()
    verify("breast-cancer", content, SHA256)
    columns = {str(name): bunch.data[:, i] for i, name in enumerate(bunch.feature_names)}
    frame = pl.DataFrame(columns | {"diagnosis": bunch.target_names[bunch.target].astype(object)})
    return read_frame(frame, "diagnosis", "malignant", duplicates=duplicates, name="breast-cancer")


DATASET = Bundled(
    name="breast-cancer",
    about="tumours, malignant or benign",
    kind="table",
    train=569,
    shape=(30,),
    classes=("benign", "malignant"),
    file="breast_cancer.csv",
    read=read,
)
