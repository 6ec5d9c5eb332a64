"""How much each row counts, by a column of its own."""

from dataclasses import replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fbeta.tables.errors import TableError
from fbeta.tables.formats import OpenTable, col
from fbeta.tables.profile import Facts, infer


def weight_numbers(source: OpenTable, name: str, found: Facts | None) -> pl.Expr:
    """Weights as numbers."""
    raw, dtype = col(name), source.dtypes[name]
    if found and not found.empty and (column := infer(name, dtype, found, [])).kind == "number":
        return replace(column, wide=True).read(raw, dtype, source.decimal)
    raise TableError(f"{name!r} holds no numbers ({found.low if found else dtype!r}): a weight is one above 0.")


def checked_weight(series: pl.Series, y: NDArray[np.int8], name: str, notes: list[str]) -> NDArray[np.float64]:
    """Weights of a mean of 1, all above 0."""
    weight = series.cast(pl.Float64).fill_null(np.nan).to_numpy()
    if wrong := int((~((weight > 0) & (weight < np.inf))).sum()):
        raise TableError(
            f"{name!r} is missing, or not above 0, in {wrong:,} of {len(weight):,} rows: leave out rows that shall not "
            "count."
        )
    found: NDArray[np.float64] = weight / weight.mean()
    share = f"{float(found @ y) / len(y):.1%}".replace("%", " %")
    spread = f"from {found.min():.3g} to {found.max():.3g}"
    notes.append(f"rows are weighed by {name!r}, with a mean of 1 ({spread}): positives have {share} of the weight.")
    return found
