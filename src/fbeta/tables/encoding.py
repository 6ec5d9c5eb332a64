"""From typed columns to the numbers that a model takes, with everything learnt from training rows only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fbeta.tables.errors import TableError, listed
from fbeta.tables.kinds import LEVELS, Column

#: What is read off a date; the hour only where dates have one.
_DATE = ("seconds", "year", "month", "weekday", "hour")


@dataclass(frozen=True)
class Scaled:
    """A number: missing values are filled with the median, the result is (x − mean) / deviation.

    `part` is what is taken of a date, empty for numbers and booleans; `marked` adds a feature that is 1 where the
    value is missing; `flat` leaves the value itself out, because it did not vary.
    """

    name: str
    part: str
    fill: float
    mean: float
    deviation: float
    marked: bool
    flat: bool = False

    @property
    def features(self) -> list[str]:
        """Names of the features that it makes."""
        value = f"{self.name} {self.part}".strip()
        return [value] * (not self.flat) + [f"{self.name} missing"] * self.marked


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
    """

    schema: tuple[Column, ...]
    parts: tuple[Scaled | OneHot, ...]
    notes: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the d features, in order."""
        return tuple(name for part in self.parts for name in part.features)

    @classmethod
    def fit(cls, frame: pl.DataFrame, columns: Sequence[Column], levels: int = LEVELS) -> Encoder:
        """Learn medians, scales and levels. Columns that do not vary in these rows make no feature."""
        if not frame.height:
            raise TableError("an encoder cannot be fitted on no rows.")
        parts: list[Scaled | OneHot] = []
        idle = []
        for column in columns:
            _need(frame, column)
            made = _fit(frame[column.name], column, levels)
            parts += made
            if not made:
                idle.append(column.name)
        if not parts:
            raise TableError(
                f"no column varies in these {frame.height:,} rows ({listed(idle)}): there is nothing to learn from."
            )
        notes = (f"columns that do not vary in the training rows: {listed(idle)} dropped.",) if idle else ()
        return cls(tuple(columns), tuple(parts), notes)

    def transform(self, frame: pl.DataFrame, new: Literal["other", "error"] = "other") -> NDArray[np.float32]:
        """The features of some rows.

        A category that was not there in training is one of the others (all features 0 if there were none), or a
        TableError where `new` is "error".
        """
        out = np.empty((frame.height, len(self.columns)), np.float32, order="F")
        kinds = {column.name: column for column in self.schema}
        at = 0
        for part in self.parts:
            _need(frame, kinds[part.name])
            width = len(part.features)
            piece = out[:, at : at + width]
            if isinstance(part, OneHot):
                _one_hot(frame[part.name], part, new, piece)
            else:
                _scale(frame[part.name], part, piece)
            at += width
        return np.ascontiguousarray(out)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return {
            "schema": [column.to_dict() for column in self.schema],
            "parts": [asdict(part) | {"encoding": type(part).__name__} for part in self.parts],
            "notes": list(self.notes),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Encoder:
        """The encoder of `to_dict`; TableError where it is none.

        >>> import polars as pl
        >>> encoder = Encoder.fit(pl.DataFrame({"x": [1.0, 3.0]}), [Column("x", "number")])
        >>> Encoder.from_dict(encoder.to_dict()) == encoder
        True
        """
        try:
            schema = tuple(Column.from_dict(column) for column in data["schema"])
            parts = tuple(_part(dict(part)) for part in data["parts"])
            if not {part.name for part in parts} <= {column.name for column in schema}:
                raise ValueError("its parts name columns that it has not")
            return cls(schema, parts, tuple(map(str, data["notes"])))
        except TableError:
            raise
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise TableError(
                f"an encoder's description is damaged ({error!r}): fit the model again."
            ) from error


def _part(data: dict[str, Any]) -> Scaled | OneHot:
    if data.pop("encoding") == "OneHot":
        return OneHot(
            str(data["name"]), tuple(map(str, data["levels"])), bool(data["other"]), bool(data["missing"])
        )
    numbers = {key: float(data[key]) for key in ("fill", "mean", "deviation")}
    if data["part"] not in ("", *_DATE) or not (
        numbers["deviation"] > 0 and np.isfinite([*numbers.values()]).all()
    ):
        raise ValueError(f"{data['name']} cannot be scaled")
    return Scaled(
        str(data["name"]), data["part"], marked=bool(data["marked"]), flat=bool(data["flat"]), **numbers
    )


def _need(frame: pl.DataFrame, column: Column) -> None:
    if column.name not in frame.columns:
        raise TableError(f"the column {column.name!r} that the model learnt from is missing: add it.")
    dtype = frame.schema[column.name]
    fits = {
        "number": dtype.is_numeric(),
        "boolean": dtype == pl.Boolean,
        "date": dtype == pl.Datetime,
        "category": dtype in (pl.String, pl.Categorical, pl.Enum),
    }
    if not fits[column.kind]:
        raise TableError(
            f"the column {column.name!r} is of type {dtype}, but the model learnt a {column.kind} from it."
        )


def _fit(series: pl.Series, column: Column, levels: int) -> list[Scaled | OneHot]:
    if column.kind == "category":
        return _fit_levels(series, levels)
    if column.kind != "date":
        return [part for part in [_fit_scale(series, "")] if part.features]
    parts = [_fit_scale(series, part) for part in _DATE]
    if parts[0].flat and not parts[0].marked:
        return []
    # one mark of missing dates is enough, and a part that never varies is none
    return [parts[0], *(_unmarked(part) for part in parts[1:] if not part.flat)]


def _unmarked(part: Scaled) -> Scaled:
    return Scaled(part.name, part.part, part.fill, part.mean, part.deviation, False)


def _fit_scale(series: pl.Series, part: str) -> Scaled:
    values = _values(series, part)
    lost = np.isnan(values)
    if lost.all():
        return Scaled(series.name, part, 0.0, 0.0, 1.0, False, flat=True)
    fill = float(np.median(values[~lost]))
    values[lost] = fill
    mean, deviation = float(values.mean()), float(values.std())
    flat = not deviation > 1e-12 * max(1.0, abs(mean)) if values.min() < values.max() else True
    return Scaled(series.name, part, fill, mean, 1.0 if flat else deviation, bool(lost.any()), flat)


def _fit_levels(series: pl.Series, levels: int) -> list[Scaled | OneHot]:
    counts = (
        series.cast(pl.String)
        .drop_nulls()
        .value_counts(name="n")
        .sort("n", series.name, descending=[True, False])
    )
    missing = series.null_count() > 0
    if counts.height + missing < 2:
        return []
    kept = tuple(counts[series.name][:levels].to_list())
    return [OneHot(series.name, kept, counts.height > len(kept), missing)]


def _values(series: pl.Series, part: str) -> NDArray[np.float64]:
    """A column's numbers, missing ones as NaN."""
    if part == "seconds":
        series = series.dt.epoch("us") / 1e6
    elif part:
        series = getattr(series.dt, part)()
    values: NDArray[np.float64] = np.array(series.cast(pl.Float64).to_numpy(), np.float64)
    values[~(np.abs(values) < 1e100)] = np.nan  # also what is infinite, or whose square would be
    return values


def _scale(series: pl.Series, part: Scaled, out: NDArray[np.float32]) -> None:
    values = _values(series, part.part)
    lost = np.isnan(values)
    if not part.flat:
        values[lost] = part.fill
        values -= part.mean
        values /= part.deviation
        out[:, 0] = np.clip(values, -1e30, 1e30)  # single precision ends at 3e38
    if part.marked:
        out[:, -1] = lost


def _one_hot(series: pl.Series, part: OneHot, new: str, out: NDArray[np.float32]) -> None:
    codes = {level: code for code, level in enumerate(part.levels)}
    known = series.cast(pl.String).replace_strict(codes, default=-1, return_dtype=pl.Int64)
    lost = series.is_null().to_numpy()
    place = np.where(lost, -2, known.fill_null(-2).to_numpy())
    if new == "error" and not part.other and (place == -1).any():
        unseen = series.cast(pl.String).filter(pl.Series(place == -1)).unique(maintain_order=True).to_list()
        raise TableError(
            f"column {part.name!r} has new categories ({listed(unseen)}) that the model has not learnt: correct "
            "them, leave them empty, or allow them with new='other' (--new other)."
        )
    out[:] = 0
    rows = np.flatnonzero(place >= 0)
    out[rows, place[rows]] = 1
    if part.other:
        out[place == -1, len(part.levels)] = 1
    if part.missing:
        out[lost, -1] = 1
