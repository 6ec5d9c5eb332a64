"""What a column is: numbers, categories, booleans or dates. Decided from all of its values, in one pass."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import polars as pl

from fbeta.tables.delimited import MISSING
from fbeta.tables.errors import TableError, listed
from fbeta.tables.formats import Source

KINDS = ("number", "category", "boolean", "date")
TRUE, FALSE = ("true", "yes", "t", "y"), ("false", "no", "f", "n")
#: The first that fits all values is taken; a day before a month only where the other order does not fit.
FORMATS = tuple(
    day + time
    for day in ("%Y-%m-%d", "%Y/%m/%d", "%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y", "%d-%b-%Y")
    for time in ("", " %H:%M", " %H:%M:%S%.f", "T%H:%M:%S%.f", "T%H:%M:%S%.fZ", "T%H:%M:%S%.f%:z")
)
#: A text column with more distinct values than this share of its rows names rows; it cannot be learnt from.
ID_SHARE, ID_VALUES = 0.5, 50
#: Levels of a category that get a feature of their own; the rest share one.
LEVELS = 32
#: This share of numbers makes a column one of numbers, if the other texts are at most so many.
NUMBER_SHARE, ODD_TEXTS = 0.95, 20
_SAMPLE = 2_000
_Aggregates = dict[str, Callable[[pl.Expr], pl.Expr]]


@dataclass(frozen=True)
class Column:
    """A column as it was learnt from: its kind, and how its values are read.

    `format` is a date's, empty where the file has real dates; `missing` are texts among numbers that count as
    missing; `wide` keeps double precision, where single would merge values.

    >>> Column("age", "number").to_dict()
    {'name': 'age', 'kind': 'number', 'format': '', 'missing': [], 'wide': False}
    """

    name: str
    kind: str
    format: str = ""
    missing: tuple[str, ...] = ()
    wide: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return asdict(self) | {"missing": list(self.missing)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Column:
        """The column of `to_dict`; TableError where it is none.

        >>> Column.from_dict(Column("day", "date", "%Y-%m-%d").to_dict()).format
        '%Y-%m-%d'
        """
        try:
            column = cls(
                str(data["name"]),
                str(data["kind"]),
                str(data["format"]),
                tuple(map(str, data["missing"])),
                bool(data["wide"]),
            )
        except (KeyError, TypeError) as error:
            raise TableError(
                f"a column's description is damaged ({error!r}): fit the model again."
            ) from error
        if column.kind not in KINDS:
            raise TableError(
                f"column {column.name!r} is of the unknown kind {column.kind!r}: fit the model again."
            )
        return column

    def read(self, dtype: pl.DataType, decimal: str = ".") -> pl.Expr:
        """The column's values in the type that its kind has, from a column of type `dtype`."""
        raw = pl.col(self.name)
        if self.kind == "number":
            value = _number(raw, dtype, decimal)
            return value.cast(pl.Float64 if self.wide else pl.Float32).alias(self.name)
        if self.kind == "boolean":
            return (raw if dtype == pl.Boolean else _boolean(cleaned(raw, dtype))).alias(self.name)
        if self.kind == "date":
            return _date(raw, dtype, self.format).alias(self.name)
        return cleaned(raw, dtype).cast(pl.String).cast(pl.Categorical).alias(self.name)


@dataclass(frozen=True)
class Facts:
    """What one pass over a column found; `low` and `high` are of its values, texts in alphabetical order."""

    rows: int
    present: int
    numbers: int
    infinite: int
    booleans: int
    dates: Mapping[str, int]
    distinct: int
    low: Any
    high: Any
    smallest: float | None
    largest: float | None


def profile(source: Source, names: Collection[str]) -> dict[str, Facts]:
    """One streamed pass over a table, with a fact sheet for each column that can be learnt from."""
    dtypes = dict(source.frame.collect_schema())
    sample = source.frame.head(_SAMPLE).collect()
    values, facts = [], [pl.len().alias("rows")]
    tried: dict[str, list[str]] = {}
    for name in names:
        dtype = dtypes[name]
        if not readable(dtype):
            continue
        raw, tried[name] = pl.col(name), []
        found: _Aggregates = {"present": pl.Expr.count, "low": pl.Expr.min, "high": pl.Expr.max}
        views: dict[str, tuple[pl.Expr, _Aggregates]] = {"value": (cleaned(raw, dtype), found)}
        if _is_text(dtype):
            found["distinct"] = pl.Expr.approx_n_unique
            tried[name] = _formats(sample[name])  # the first values rule out what need not be tried on all
            views |= {fmt: (_date(raw, dtype, fmt), {fmt: pl.Expr.count}) for fmt in tried[name]}
            boolean = _boolean(cleaned(raw, dtype))
            if sample.select(boolean.count() == cleaned(raw, dtype).count()).item():
                views["boolean"] = boolean, {"booleans": pl.Expr.count}
        if _is_text(dtype) or dtype.is_numeric():
            views["parsed"] = parsed(raw, dtype, source.decimal), {"infinite": _infinite}
            numbers: _Aggregates = {"numbers": pl.Expr.count, "smallest": pl.Expr.min, "largest": pl.Expr.max}
            views["number"] = _number(raw, dtype, source.decimal), numbers
        for view, (expression, aggregates) in views.items():
            values.append(expression.alias(f"{name}\0{view}"))
            facts += [f(pl.col(f"{name}\0{view}")).alias(f"{name}\0{fact}") for fact, f in aggregates.items()]
    row = source.frame.select(values).select(facts).collect(engine="streaming").row(0, named=True)
    return {
        name: Facts(
            row["rows"],
            row[f"{name}\0present"],
            row.get(f"{name}\0numbers") or 0,
            row.get(f"{name}\0infinite") or 0,
            row.get(f"{name}\0booleans") or 0,
            {fmt: row[f"{name}\0{fmt}"] for fmt in formats},
            row.get(f"{name}\0distinct") or 0,
            row[f"{name}\0low"],
            row[f"{name}\0high"],
            row.get(f"{name}\0smallest"),
            row.get(f"{name}\0largest"),
        )
        for name, formats in tried.items()
    }


def infer(source: Source, name: str, facts: Facts, notes: list[str]) -> Column:
    """The kind of a column that has values, with what is unusual about it added to `notes`."""
    dtype = dict(source.frame.collect_schema())[name]
    if dtype == pl.Boolean or (facts.booleans == facts.present and _is_text(dtype)):
        return Column(name, "boolean")
    if dtype in (pl.Date, pl.Datetime):
        return Column(name, "date")
    fits = [fmt for fmt, count in facts.dates.items() if count == facts.present]
    if fits and facts.numbers < facts.present:
        if any(fmt.startswith("%m/%d") for fmt in fits) and any(fmt.startswith("%d/%m") for fmt in fits):
            notes.append(
                f"{name!r} has dates like {facts.low!r}, read as month/day/year; write 2024-12-31 to be sure."
            )
        return Column(name, "date", fits[0])
    if facts.infinite:
        notes.append(f"infinite values of {name!r} count as missing: {facts.infinite:,}.")
    if facts.numbers + facts.infinite >= NUMBER_SHARE * facts.present:
        odd = _odd(source, name, dtype) if facts.numbers + facts.infinite < facts.present else ()
        if len(odd) <= ODD_TEXTS:
            if odd:
                notes.append(f"{name!r} has texts among its numbers ({listed(odd)}): they count as missing.")
            return Column(name, "number", missing=odd, wide=_wide(facts))
    return Column(name, "category")


def readable(dtype: Any) -> bool:
    """Whether a type of column can be learnt from: lists, structures, bytes and times of day cannot."""
    return bool(_is_text(dtype) or dtype.is_numeric() or dtype in (pl.Boolean, pl.Date, pl.Datetime, pl.Null))


def _is_text(dtype: Any) -> bool:
    return dtype in (pl.String, pl.Categorical, pl.Enum)


def cleaned(raw: pl.Expr, dtype: Any) -> pl.Expr:
    """Values without the blanks around them; what stands for no value is null."""
    if dtype.is_float():
        return pl.when(raw.is_finite()).then(raw)
    if not _is_text(dtype):
        return (
            raw if dtype.is_numeric() or dtype in (pl.Boolean, pl.Date, pl.Datetime) else raw.cast(pl.String)
        )
    text = raw.cast(pl.String).str.strip_chars()
    return pl.when(~text.is_in(MISSING)).then(text)


def parsed(raw: pl.Expr, dtype: Any, decimal: str) -> pl.Expr:
    """Numbers, also infinite ones; whatever else stands there is null."""
    if _is_text(dtype):
        raw = raw.cast(pl.String).str.strip_chars()
        raw = raw.str.replace(",", ".", literal=True) if decimal == "," else raw
    return raw.cast(pl.Float64, strict=False)


def _number(raw: pl.Expr, dtype: Any, decimal: str) -> pl.Expr:
    """Finite numbers; the rest is null."""
    value = parsed(raw, dtype, decimal)
    return pl.when(value.is_finite()).then(value)


def _infinite(number: pl.Expr) -> pl.Expr:
    return number.is_infinite().sum()


def _boolean(clean: pl.Expr) -> pl.Expr:
    lower = clean.cast(pl.String).str.to_lowercase()
    return pl.when(lower.is_in(TRUE)).then(True).when(lower.is_in(FALSE)).then(False)


def _date(raw: pl.Expr, dtype: Any, fmt: str) -> pl.Expr:
    """Dates as microseconds without a time zone: that of the file's, or UTC where times have an offset."""
    if _is_text(dtype):
        raw = raw.cast(pl.String).str.strip_chars().str.to_datetime(fmt, strict=False, time_unit="us")
        return raw.dt.replace_time_zone(None) if fmt.endswith("%:z") else raw
    if dtype == pl.Datetime and dtype.time_zone:
        raw = raw.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
    return raw.cast(pl.Datetime("us"))


def _formats(sample: pl.Series) -> list[str]:
    """Formats of dates that fit all of the first values."""
    name = sample.name
    values = sample.to_frame().select(cleaned(pl.col(name), sample.dtype)).drop_nulls()
    if (
        values.is_empty()
        or not values[name].str.contains(r"^(\d{4}[-/]\d{1,2}[-/]\d|\d{1,2}[-/.]\w{1,3}[-/.]\d{4})").all()
    ):
        return []
    counts = {fmt: values.select(_date(pl.col(name), pl.String(), fmt).count()).item() for fmt in FORMATS}
    return [fmt for fmt, count in counts.items() if count == len(values)]


def _odd(source: Source, name: str, dtype: Any) -> tuple[str, ...]:
    clean = cleaned(pl.col(name), dtype)
    odd = source.frame.select(clean.filter(parsed(pl.col(name), dtype, source.decimal).is_null()).alias(name))
    found = odd.drop_nulls().unique().head(ODD_TEXTS + 1).collect(engine="streaming")[name]
    return tuple(sorted(found.to_list()))


def _wide(facts: Facts) -> bool:
    """Whether single precision, good for seven digits, would lose much of what tells values apart."""
    if facts.smallest is None or facts.largest is None:
        return False
    size = max(abs(facts.smallest), abs(facts.largest))
    return size > 3e38 or size > 1e4 * (facts.largest - facts.smallest) or size >= 2**24
