"""Columns that are not as they were: in the newest rows of a table with times, or in rows that come later."""

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fbeta.tables.errors import LISTED
from fbeta.tables.formats import columns_of

#: The share of rows that is newest, and rows that both parts have at least.
NEWEST, _ROWS = 0.2, 50
#: The population stability index from which a distribution is commonly said to have changed.
CHANGED = 0.25
#: Deciles of numbers, the most frequent levels of categories; missing values and others are parts, too.
_PARTS, _LEVELS = 10, 20


def drift_notes(features: pl.DataFrame, time: NDArray[np.float64]) -> list[str]:
    """What to say of columns whose newest values are distributed otherwise than older ones."""
    cut = np.quantile(time, 1 - NEWEST, method="higher")
    later = time >= cut if (time >= cut).mean() < 0.5 else time > cut
    if min(later.sum(), (~later).sum()) < _ROWS:
        return []
    old, new = (columns_of(features.filter(pl.Series(rows))) for rows in (~later, later))
    found = {name: index for name in old if (index := stability_index(old[name], new[name])) > CHANGED}
    if not found:
        return []
    most = sorted(found, key=lambda name: -found[name])
    said = ", ".join(f"{name!r:.40} ({found[name]:.2f})" for name in most[:LISTED])
    more = f" and {len(found) - LISTED} more" if len(found) > LISTED else ""
    what = "a column is" if len(found) == 1 else f"{len(found)} columns are"
    newest = f"the newest {100 * later.mean():.0f} % of the rows"
    return [
        f"{what} distributed otherwise in {newest} than before (population stability index above {CHANGED}): "
        f"{said}{more}; what was learned from them may not hold."
    ]


def stability_index(old: pl.Series, new: pl.Series) -> float:
    r"""The population stability index of two samples of a column, less what chance alone would give.

    .. math:: \sum_k (p_k - q_k) \log \frac{p_k}{q_k}

    over the shares of K parts. Where n and m rows are alike it is (1/n + 1/m) times a χ² of K − 1 degrees of freedom,
    whose mean and four deviations are taken off.

    >>> stability_index(pl.Series(range(1000)), pl.Series(range(500, 1500))) > 1
    True
    """
    before, after = _counts(old, new)
    n, m, parts = before.sum(), after.sum(), len(before)
    p, q = (before + 0.5) / (n + 0.5 * parts), (after + 0.5) / (m + 0.5 * parts)
    chance = (1 / n + 1 / m) * (parts - 1 + 4 * np.sqrt(2 * (parts - 1)))
    return float((p - q) @ np.log(p / q) - chance)


def _counts(old: pl.Series, new: pl.Series) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """How many values of each sample lie in each part."""
    if old.dtype.is_numeric() or old.dtype.is_temporal():
        values = [series.to_physical().drop_nulls().to_numpy() for series in (old, new)]
        cuts = np.unique(np.quantile(values[0], np.arange(1, _PARTS) / _PARTS)) if len(values[0]) else np.zeros(0)
        count = len(cuts) + 1
        places = [np.searchsorted(cuts, held, side="right") for held in values]
    else:
        texts = [series.cast(pl.String).alias("level").drop_nulls() for series in (old, new)]
        counted = texts[0].value_counts(name="count").sort("count", "level", descending=[True, False])
        levels = {level: i for i, level in enumerate(counted["level"][:_LEVELS])}
        count = len(levels) + 1
        places = [text.replace_strict(levels, default=count - 1, return_dtype=pl.Int64).to_numpy() for text in texts]
    lost = [series.null_count() for series in (old, new)]
    before, after = (
        np.append(np.bincount(held, minlength=count), gone) for held, gone in zip(places, lost, strict=True)
    )
    held = before + after > 0
    return before[held].astype(np.float64), after[held].astype(np.float64)
