"""Where a method fails: its decisions of test rows by the groups of each column, and if groups differ beyond chance."""

import itertools
import math
from collections.abc import Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import stats

from fbeta.comparison.inference import Calls
from fbeta.comparison.plan import Split
from fbeta.comparison.result import ColumnSegments, Segment
from fbeta.comparison.statistics import holm
from fbeta.decisions.abstention import ASK
from fbeta.numerals import short
from fbeta.tables import Table
from fbeta.tables.columns import Column
from fbeta.tables.formats import columns_of

#: Groups of a column, of which as many are kept.
GROUPS, KEPT = 4, 6
#: A rate of fewer rows than this says nothing.
FEWEST = 5
#: Table cells of a group: its test rows, and TP, FP, FN and TN.
Cells = NDArray[np.float64]


def segments(table: Table, splits: Sequence[Split], called: Calls) -> tuple[ColumnSegments, ...]:
    """The columns between whose groups recall or precision differs most, with p values that allow for all columns.

    Numbers and dates are cut at quartiles, and of categories the three most frequent stand alone. A p value is the
    smaller of two χ² tests, doubled, and adjusted for the number of columns (Holm).
    """
    rows = np.concatenate([split.test for split in splits])
    calls = np.concatenate(called)
    rows, calls = rows[calls != ASK], calls[calls != ASK]  # what a person decides is no failure
    positive, flagged = table.y[rows] == 1, calls == 1
    cell = np.where(flagged, np.where(positive, 0, 1), np.where(positive, 2, 3))
    deals = len({split.deal for split in splits})
    found = []
    for column, series in zip(table.columns, columns_of(table.features).values(), strict=True):
        names, group = _groups(column, series)
        counts = np.bincount(4 * group[rows] + cell, minlength=4 * len(names)).reshape(-1, 4) / deals
        if (counts.sum(1) > 0).sum() > 1:
            parts = tuple(Segment(n, *c.tolist()) for n, c in zip(names, counts, strict=True) if c.sum() > 0)
            found.append(ColumnSegments(column.name, parts, _p(counts)))
    adjusted = holm([each.p for each in found])
    order = sorted(range(len(found)), key=lambda i: found[i].p)[:KEPT]
    return tuple(ColumnSegments(found[i].column, found[i].segments, adjusted[i]) for i in order if found[i].p < 1)


def _groups(column: Column, series: pl.Series) -> tuple[list[str], NDArray[np.int64]]:
    """The names of the groups of a column, and the group of each row."""
    if column.kind in ("number", "date"):
        values = series.to_physical().cast(pl.Float64).fill_null(math.nan).to_numpy()
        known = np.isfinite(values)
        ordered = series.filter(pl.Series(known)).sort()
        at = [math.ceil(len(ordered) * k / GROUPS) - 1 for k in range(1, GROUPS)] if len(ordered) else []
        written = {float(np.sort(values[known])[i]): _written(ordered[i]) for i in at}
        ends = [end for end in sorted(written) if end < np.max(values[known])]
        group = np.searchsorted(np.array(ends), values)
        said = [written[end] for end in ends]
        names = (
            [f"up to {said[0]}", *(f"{a} to {b}" for a, b in itertools.pairwise(said)), f"above {said[-1]}"]
            if said
            else ["all"]
        )
        group[~known] = len(names)
        return [*names, "missing"], group
    text = series.cast(pl.String).fill_null("missing")
    levels = text.value_counts(sort=True)[series.name].to_list()
    alone = levels if len(levels) <= GROUPS else levels[: GROUPS - 1]
    place = {level: i for i, level in enumerate(alone)}
    return [*alone, "others"], np.array([place.get(x, len(alone)) for x in text], dtype=np.int64)


def _written(value: object) -> str:
    return short(value, 3) if isinstance(value, float) else str(value)


def _p(counts: Cells) -> float:
    """Do recall (of positives) or precision (of flags) differ between groups?"""
    tp, fp, fn, _ = counts.T
    found = []
    for pair in (np.stack([tp, fn], 1), np.stack([tp, fp], 1)):
        kept = pair[pair.sum(1) >= FEWEST]
        if len(kept) > 1 and (kept.sum(0) > 0).all():
            found.append(float(stats.chi2_contingency(kept, correction=False).pvalue))
    return min(1.0, 2 * min(found)) if found else 1.0
