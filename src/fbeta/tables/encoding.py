"""From typed columns to the numbers that a model takes, with everything learnt from training rows only."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fbeta.plain_data import from_plain
from fbeta.sealed import in_short
from fbeta.tables.columns import LEVELS, Column
from fbeta.tables.errors import TableError, listed
from fbeta.tables.formats import columns_of
from fbeta.tables.parsing import is_text

#: What is read off a date; the hour only where dates have one.
_DATE = ("seconds", "year", "month", "weekday", "hour")
#: Larger numbers count as missing. More levels than that were not learnt by anyone, and would take for ever.
MOST, MOST_LEVELS = 1e100, 4096


@dataclass(frozen=True)
class Scaled:
    """A number: missing values are filled with the median, the result is (x − mean) / deviation."""

    name: str
    part: str  # of a date; empty for numbers and booleans
    fill: float
    mean: float
    deviation: float
    marked: bool  # with a feature that is 1 where the value is missing
    flat: bool = False  # the value itself is left out, because it did not vary

    @property
    def features(self) -> list[str]:
        """Names of the features that it makes."""
        value = f"{self.name} {self.part}".strip()
        return [value] * (not self.flat) + [f"{self.name} missing"] * self.marked

    @classmethod
    def fit(cls, name: str, series: pl.Series, part: str = "") -> Self:
        """Learn the median, and the mean and deviation with missing values filled."""
        values = numbers(series, part)
        lost = np.isnan(values)
        if lost.all():
            return cls(name, part, 0.0, 0.0, 1.0, False, flat=True)
        fill = float(np.median(values[~lost]))
        values[lost] = fill
        mean, deviation = float(values.mean()), float(values.std())
        flat = not deviation > 1e-12 * max(1.0, abs(mean)) if values.min() < values.max() else True
        return cls(name, part, fill, mean, 1.0 if flat else deviation, bool(lost.any()), flat)

    def encode(self, series: pl.Series, out: NDArray[np.float32], new: str) -> None:
        """Write the features of some rows."""
        values = numbers(series, self.part)
        lost = np.isnan(values)
        if not self.flat:
            values[lost] = self.fill
            values -= self.mean
            values /= self.deviation
            out[:, 0] = np.clip(values, -1e30, 1e30)  # single precision ends at 3e38
        if self.marked:
            out[:, -1] = lost


@dataclass(frozen=True)
class OneHot:
    """A category: a feature for each of its most frequent levels, one for the others, one for missing values."""

    name: str
    levels: tuple[str, ...]
    other: bool
    missing: bool

    @property
    def features(self) -> list[str]:
        """Names of the features that it makes."""
        more = [f"{self.name} other"] * self.other + [f"{self.name} missing"] * self.missing
        return [f"{self.name} = {level}" for level in self.levels] + more

    @classmethod
    def fit(cls, name: str, series: pl.Series, most: int) -> Self | None:
        """Learn at most so many levels, the most frequent; None where there are not two kinds of rows."""
        levels = series.cast(pl.String).drop_nulls().alias("level")
        counts = levels.value_counts(name="count").sort("count", "level", descending=[True, False])
        missing = series.null_count() > 0
        if counts.height + missing < 2:
            return None
        return cls(name, tuple(counts["level"][:most]), counts.height > most, missing)

    def encode(self, series: pl.Series, out: NDArray[np.float32], new: str) -> None:
        """Write the features of some rows."""
        codes = {level: code for code, level in enumerate(self.levels)}
        text, lost = series.cast(pl.String), series.is_null().to_numpy()
        place = text.replace_strict(codes, default=-1, return_dtype=pl.Int64).fill_null(-1).to_numpy()
        others = (place == -1) & ~lost
        if new == "error" and not self.other and others.any():
            unseen = text.filter(pl.Series(others)).unique(maintain_order=True)
            raise TableError(
                f"column {self.name!r} has new categories ({listed(unseen)}) that the model has not learnt: correct "
                "them, leave them empty, or allow them with new='other' (--new other)."
            )
        out[:] = 0
        rows = np.flatnonzero(place >= 0)
        out[rows, place[rows]] = 1
        if self.other:
            out[others, len(self.levels)] = 1
        if self.missing:
            out[lost, -1] = 1


@dataclass(frozen=True)
class Encoder:
    """Turns typed columns into float32 features. Fit it on training rows, use it on all others.

    Shape: N rows of typed columns become (N, d), d = `len(columns)`.

    >>> import polars as pl
    >>> frame = pl.DataFrame({"age": [20.0, None, 40.0], "land": ["DE", "FR", "DE"]})
    >>> encoder = Encoder.fit(frame, [Column("age", "number"), Column("land", "category")])
    >>> encoder.columns
    ('age', 'age missing', 'land = DE', 'land = FR')
    >>> encoder.transform(frame).round(2).tolist()[1]
    [0.0, 1.0, 0.0, 1.0]
    >>> Encoder.from_dict(encoder.to_dict()) == encoder
    True
    """

    schema: tuple[Column, ...]
    parts: tuple[Scaled | OneHot, ...]
    notes: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the d features, in order."""
        return tuple(name for part in self.parts for name in part.features)

    @classmethod
    def fit(cls, frame: pl.DataFrame, columns: Sequence[Column], levels: int = LEVELS) -> Self:
        """Learn medians, scales and levels. Columns that do not vary in these rows make no feature."""
        if not frame.height:
            raise TableError("an encoder cannot be fitted on no rows.")
        held = _series(frame, columns)
        made = {column.name: _fit(held[column.name], column, levels) for column in columns}
        idle = [name for name, parts in made.items() if not parts]
        if len(idle) == len(made):
            raise TableError(
                f"no column varies in these {frame.height:,} rows ({listed(idle)}): there is nothing to learn from."
            )
        notes = (f"columns that do not vary in the training rows: {listed(idle)} dropped.",) if idle else ()
        return cls(tuple(columns), tuple(part for parts in made.values() for part in parts), notes)

    def transform(self, frame: pl.DataFrame, new: Literal["other", "error"] = "other") -> NDArray[np.float32]:
        """The features of some rows; a new category is one of the others, or a TableError where `new` is "error"."""
        used = {part.name for part in self.parts}
        held = _series(frame, [column for column in self.schema if column.name in used])
        out = np.empty((frame.height, len(self.columns)), np.float32, order="F")
        ends = np.cumsum([len(part.features) for part in self.parts])[:-1]
        for part, features in zip(self.parts, np.split(out, ends, axis=1), strict=True):
            part.encode(held[part.name], features, new)
        return np.ascontiguousarray(out)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return {
            "schema": [column.to_dict() for column in self.schema],
            "parts": [asdict(part) | {"encoding": type(part).__name__} for part in self.parts],
            "notes": list(self.notes),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """The encoder of `to_dict`; TableError where it is none."""
        try:
            schema = tuple(Column.from_dict(column) for column in data["schema"])
            parts = tuple(_part(part) for part in data["parts"])
            _check(schema, parts)
            return cls(schema, parts, from_plain(tuple[str, ...], data["notes"], "notes"))
        except TableError:
            raise
        except (KeyError, TypeError, ValueError) as error:
            raise TableError(
                f"an encoder's description is damaged ({in_short(error)}): fit the model again."
            ) from error


def _check(schema: Sequence[Column], parts: Sequence[Scaled | OneHot]) -> None:
    """Refuse parts that do not fit the kinds of their columns, or are there twice."""
    kinds = {column.name: column.kind for column in schema}
    if len(kinds) < len(schema) or len({(part.name, getattr(part, "part", "")) for part in parts}) < len(parts):
        raise ValueError("it has a column or a part of one twice")
    for part in parts:
        kind = kinds.get(part.name)
        if isinstance(part, OneHot):
            fits = kind == "category"
        else:
            fits = kind == "date" if part.part else kind in ("number", "boolean")
        if not fits:
            raise ValueError(f"a {type(part).__name__} part does not fit the column {part.name!r:.60}")


def _part(data: Mapping[str, Any]) -> Scaled | OneHot:
    if data["encoding"] == "OneHot":
        hot: OneHot = from_plain(OneHot, data, "part")
        if len({*hot.levels}) < len(hot.levels) or len(hot.levels) > MOST_LEVELS:
            raise ValueError(f"{hot.name:.60} has a level twice, or more than {MOST_LEVELS:,}")
        return hot
    part: Scaled = from_plain(Scaled, data, "part")
    largest = np.abs([part.fill, part.mean, part.deviation]).max()
    if part.part not in ("", *_DATE) or not (part.deviation > 0 and largest <= MOST):
        raise ValueError(f"{part.name:.60} cannot be scaled")
    return part


def _series(frame: pl.DataFrame, columns: Sequence[Column]) -> dict[str, pl.Series]:
    """The values of each column, which must be there and of its kind's type."""
    held = columns_of(frame)
    for column in columns:
        if column.name not in held:
            raise TableError(f"the column {column.name!r} that the model learnt from is missing: add it.")
        dtype = held[column.name].dtype
        fits = {
            "number": dtype.is_numeric(),
            "boolean": dtype == pl.Boolean,
            "date": dtype == pl.Datetime,
            "category": is_text(dtype),
        }
        if not fits[column.kind]:
            raise TableError(
                f"the column {column.name!r} is of type {dtype}, but the model learnt a {column.kind} from it."
            )
    return held


def _fit(series: pl.Series, column: Column, levels: int) -> list[Scaled | OneHot]:
    """The parts of one column; none where it does not vary."""
    if column.kind == "category":
        part = OneHot.fit(column.name, series, levels)
        return [] if part is None else [part]
    kinds = _DATE if column.kind == "date" else ("",)
    first, *others = (Scaled.fit(column.name, series, kind) for kind in kinds)
    # one mark of missing dates is enough, and a part that never varies is none
    more = (replace(part, marked=False) for part in others if not part.flat)
    return [first, *more] if first.features else []


def numbers(series: pl.Series, part: str) -> NDArray[np.float64]:
    """A column's numbers, or a part of its dates; missing ones as NaN."""
    if part == "seconds":
        series = series.dt.epoch("us") / 1e6
    elif part:
        series = getattr(series.dt, part)()
    values: NDArray[np.float64] = np.array(series.cast(pl.Float64).to_numpy(), np.float64)
    values[~(np.abs(values) < MOST)] = np.nan  # also what is infinite, or whose square would be
    return values
