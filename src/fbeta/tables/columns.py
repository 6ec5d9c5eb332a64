"""What a column is: numbers, categories, booleans or dates. Decided from all of its values, in one pass."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Self

import polars as pl

from fbeta.plain_data import from_plain
from fbeta.sealed import in_short
from fbeta.tables.errors import TableError, listed
from fbeta.tables.formats import OpenTable, cols, stack, streamed_stack
from fbeta.tables.values import FALSE, MISSING, TRUE

KINDS = ("number", "category", "boolean", "date")
#: The first that fits all values is taken; a day before a month only where the other order does not fit.
FORMATS = tuple(
    day + time
    for day in ("%Y-%m-%d", "%Y/%m/%d", "%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y", "%d-%b-%Y")
    for time in ("", " %H:%M", " %H:%M:%S%.f", "T%H:%M:%S%.f", "T%H:%M:%S%.fZ", "T%H:%M:%S%.f%:z")
)
_LIKE_A_DATE = r"^(\d{4}[-/]\d{1,2}[-/]\d|\d{1,2}[-/.]\w{1,3}[-/.]\d{4})"
#: A text column with more distinct values than this share of its rows names rows; it cannot be learnt from.
ID_SHARE, ID_VALUES = 0.5, 50
#: Levels of a category that get a feature of their own; the rest share one.
LEVELS = 32
#: This share of numbers makes a column one of numbers, if the other texts are at most so many.
NUMBER_SHARE, ODD_TEXTS = 0.95, 20
_SAMPLE = 2_000


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
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """The column of `to_dict`; TableError where it is none."""
        try:
            made: Self = from_plain(cls, data, "column")
        except ValueError as error:
            raise TableError(f"a column's description is damaged ({in_short(error)}): fit the model again.") from error
        name, kind, form = made.name, made.kind, made.format
        if kind not in KINDS:
            raise TableError(f"column {name!r:.60} is of the unknown kind {kind!r:.60}: fit the model again.")
        if form and (kind != "date" or form not in FORMATS):
            raise TableError(f"column {name!r:.60} has the unknown format {form!r:.60}: fit the model again.")
        return made

    def read(self, raw: pl.Expr, dtype: Any, decimal: str = ".") -> pl.Expr:
        """Values in the type that the column's kind has, from one or more columns of type `dtype`."""
        if self.kind == "number":
            return _finite(parsed(raw, dtype, decimal)).cast(pl.Float64 if self.wide else pl.Float32)
        if self.kind == "boolean":
            return raw if dtype == pl.Boolean else _boolean(raw)
        if self.kind == "date":
            return _date(raw, dtype, self.format)
        return cleaned(raw, dtype).cast(pl.String).cast(pl.Categorical)


def alike(columns: Iterable[Column], source: OpenTable) -> list[tuple[Column, Any, list[str]]]:
    """Columns that are read in the same way, and so at once: how, from which type, and their names."""
    found = defaultdict(list)
    for column in columns:
        found[column.kind, column.format, column.wide, source.dtypes[column.name]].append(column.name)
    return [(Column("", kind, form, wide=wide), dtype, names) for (kind, form, wide, dtype), names in found.items()]


def read_columns(piece: pl.DataFrame, columns: Sequence[Column], source: OpenTable) -> pl.DataFrame:
    """The values of columns in the types that their kinds have, from a piece of a table."""
    found: dict[str, pl.Series] = {}
    for how, dtype, names in alike(columns, source):
        read = stack(piece, names).lazy().select(how.read(pl.col("value"), dtype, source.decimal))
        values, rows = read.collect(engine="streaming").to_series().rechunk(), piece.height
        found |= {name: values.slice(i * rows, rows).alias(name) for i, name in enumerate(names)}
    return pl.DataFrame({column.name: found[column.name] for column in columns})


@dataclass(frozen=True)
class Facts:
    """What one pass over a column found; `low` and `high` are of its values, texts in alphabetical order."""

    rows: int
    present: int
    low: Any = None
    high: Any = None
    numbers: int = 0
    infinite: int = 0
    smallest: float | None = None
    largest: float | None = None
    distinct: int = 0
    booleans: int = 0
    dates: Mapping[str, int] = field(default_factory=dict)
    odd: tuple[str, ...] = ()

    @property
    def numeric(self) -> bool:
        """Whether nearly all values are numbers."""
        return self.numbers + self.infinite >= NUMBER_SHARE * self.present

    @property
    def span(self) -> float:
        """How far apart the numbers lie; 0 where there are none."""
        return 0.0 if self.smallest is None or self.largest is None else self.largest - self.smallest

    @property
    def like_ids(self) -> bool:
        """Whether texts differ from row to row, so that nothing can be learnt from them."""
        return self.distinct > max(ID_VALUES, ID_SHARE * self.present)

    @property
    def empty(self) -> bool:
        """Whether there is no value: infinite ones are as good as missing."""
        return self.present == self.infinite

    @property
    def constant(self) -> bool:
        """Whether all rows have the same value; 1 and 1.0 are the same number."""
        if self.present < self.rows or self.infinite:
            return False
        return bool(self.smallest == self.largest if self.numbers == self.present else self.low == self.high)


#: The facts that are found in each view of a column: its numbers, its values, the booleans among them.
_FACTS: Mapping[str, Mapping[str, Callable[[pl.Expr], pl.Expr]]] = {
    "number": {
        "numbers": lambda number: number.is_finite().sum(),
        "infinite": lambda number: number.is_infinite().sum(),
        "smallest": lambda number: _finite(number).min(),
        "largest": lambda number: _finite(number).max(),
    },
    "value": {"present": pl.Expr.count, "low": pl.Expr.min, "high": pl.Expr.max},
    "text": {"distinct": pl.Expr.approx_n_unique},
    "boolean": {"booleans": pl.Expr.count},
}


def profile(source: OpenTable, names: Collection[str]) -> dict[str, Facts]:
    """One streamed pass over the columns of each type, with a fact sheet for each that can be learnt from."""
    of_type, alike = defaultdict(list), defaultdict(list)
    for name in names:
        if readable(dtype := source.dtypes[name]):
            of_type[dtype].append(name)
    for dtype, some in of_type.items():
        views = _candidates(source, some) if is_text(dtype) else {}
        for name in some:
            alike[dtype, views.get(name, ())].append(name)
    sheets: dict[str, Facts] = {}
    for (dtype, also), some in alike.items():
        sheets |= _facts(source, some, dtype, also)
    facts = {name: sheets[name] for name in names if name in sheets}
    return facts | _with_odd_texts(source, facts)


def _facts(source: OpenTable, names: Sequence[str], dtype: Any, also: Sequence[str]) -> dict[str, Facts]:
    """Fact sheets of columns of one type, with the views `also` that are worth a look."""
    raw, views = pl.col("value"), {}
    if is_text(dtype) or dtype.is_numeric():
        views["number"] = parsed(raw, dtype, source.decimal)
    if not dtype.is_numeric():
        views["value"] = cleaned(raw, dtype)
    if is_text(dtype):
        views["text"] = views["value"]
    views |= {view: _boolean(raw) if view == "boolean" else _date(raw, dtype, view) for view in also}
    facts = [
        aggregate(pl.col(view)).alias(fact)
        for view in views
        for fact, aggregate in _FACTS.get(view, {view: pl.Expr.count}).items()
    ]
    seen = streamed_stack(source.frame, names).select("name", *(value.alias(view) for view, value in views.items()))
    sheets = {}
    for name, sheet in _by_name(seen, pl.len().alias("rows"), *facts).items():
        dates = {form: sheet.pop(form) for form in also if form in FORMATS}
        if "present" not in sheet:  # in a column of numbers only a number is a value
            sheet["present"] = sheet["numbers"] + sheet["infinite"]
        sheets[name] = Facts(dates=dates, **sheet)
    return {name: sheets.get(name) or Facts(0, 0) for name in names}


def _by_name(stack: pl.LazyFrame, *facts: pl.Expr) -> dict[str, dict[str, Any]]:
    """What is true of each of the columns in a stack."""
    found = stack.group_by("name").agg(*facts).collect(engine="streaming")
    return {sheet.pop("name"): sheet for sheet in found.iter_rows(named=True)}


def _with_odd_texts(source: OpenTable, facts: Mapping[str, Facts]) -> dict[str, Facts]:
    """The facts on columns of numbers with texts among them, and those texts, or the first of very many."""
    names = [name for name, found in facts.items() if found.numeric and found.infinite + found.numbers < found.present]
    if not names:
        return {}
    raw, text = pl.col("value"), pl.String()
    stack = streamed_stack(source.frame.select(cols(names).cast(text)), names)
    odd = stack.filter(parsed(raw, text, source.decimal).is_null()).select("name", cleaned(raw, text)).drop_nulls()
    first = raw.unique().sort().head(ODD_TEXTS + 1)
    return {name: replace(facts[name], odd=tuple(sheet["value"])) for name, sheet in _by_name(odd, first).items()}


def _candidates(source: OpenTable, names: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Which columns of text have booleans or dates of a format only, as far as their first values tell."""

    def counts(names: Sequence[str], views: Mapping[str, pl.Expr]) -> dict[str, dict[str, Any]]:
        first = streamed_stack(source.frame.head(_SAMPLE), names).select("name", cleaned(text, pl.String()))
        return _by_name(first, text.count().alias("present"), *(seen.count().alias(v) for v, seen in views.items()))

    found: dict[str, tuple[str, ...]] = {}
    text, dated = pl.col("value"), []
    like_a_date = pl.when(text.str.contains(_LIKE_A_DATE)).then(text)
    for name, sheet in counts(names, {"boolean": _boolean(text), "date": like_a_date}).items():
        if sheet["boolean"] == sheet["present"]:
            found[name] = ("boolean",)
        elif sheet["date"] == sheet["present"]:
            dated.append(name)
    if dated:
        forms = {form: _date(text, pl.String(), form) for form in FORMATS}
        for name, sheet in counts(dated, forms).items():
            found[name] = tuple(form for form in FORMATS if sheet[form] == sheet["present"])
    return found


def infer(name: str, dtype: Any, facts: Facts, notes: list[str]) -> Column:
    """The kind of a column that has values, with what is unusual about it added to `notes`."""
    if dtype == pl.Boolean or (facts.booleans == facts.present and is_text(dtype)):
        return Column(name, "boolean")
    if dtype in (pl.Date, pl.Datetime):
        return Column(name, "date")
    fits = [form for form, count in facts.dates.items() if count == facts.present]
    if fits and facts.numbers < facts.present:
        if {"%m/%d", "%d/%m"} <= {form[:5] for form in fits}:
            notes.append(f"{name!r} has dates like {facts.low!r}, read as month/day/year; write 2024-12-31 to be sure.")
        return Column(name, "date", fits[0])
    if facts.infinite:
        notes.append(f"infinite values of {name!r} count as missing: {facts.infinite:,}.")
    if not facts.numeric or len(facts.odd) > ODD_TEXTS:
        return Column(name, "category")
    if facts.odd:
        notes.append(f"{name!r} has texts among its numbers ({listed(facts.odd)}): they count as missing.")
    # Single precision, good for seven digits, must not lose much of what tells values apart.
    size = max(abs(facts.smallest or 0), abs(facts.largest or 0))
    wide = size > 3e38 or size > 1e4 * facts.span or size >= 2**24
    return Column(name, "number", missing=facts.odd, wide=wide)


def readable(dtype: Any) -> bool:
    """Whether a type of column can be learnt from: lists, structures, bytes and times of day cannot."""
    return bool(is_text(dtype) or dtype.is_numeric() or dtype in (pl.Boolean, pl.Date, pl.Datetime, pl.Null))


def is_text(dtype: Any) -> bool:
    """Whether a type of column is text."""
    return dtype in (pl.String, pl.Categorical, pl.Enum)


def cleaned(raw: pl.Expr, dtype: Any) -> pl.Expr:
    """Values without the blanks around them; what stands for no value is null."""
    if dtype.is_float():
        return _finite(raw)
    if is_text(dtype):
        text = raw.cast(pl.String).str.strip_chars()
        return pl.when(~text.is_in(MISSING)).then(text)
    plain = dtype.is_numeric() or dtype in (pl.Boolean, pl.Date, pl.Datetime)
    return raw if plain else raw.cast(pl.String)


def parsed(raw: pl.Expr, dtype: Any, decimal: str) -> pl.Expr:
    """Numbers, also infinite ones; whatever else stands there is null."""
    if is_text(dtype):
        raw = raw.cast(pl.String).str.strip_chars()
        raw = raw.str.replace(",", ".", literal=True) if decimal == "," else raw
    return raw.cast(pl.Float64, strict=False)


def _finite(number: pl.Expr) -> pl.Expr:
    return pl.when(number.is_finite()).then(number)


def _boolean(raw: pl.Expr) -> pl.Expr:
    lower = raw.cast(pl.String).str.strip_chars().str.to_lowercase()
    return pl.when(lower.is_in((*TRUE, *FALSE))).then(lower.is_in(TRUE))  # replace() costs a pass per column


def _date(raw: pl.Expr, dtype: Any, form: str) -> pl.Expr:
    """Dates as microseconds without a time zone: that of the file's, or UTC where times have an offset."""
    if is_text(dtype):
        raw = raw.cast(pl.String).str.strip_chars().str.to_datetime(form, strict=False, time_unit="us")
        return raw.dt.replace_time_zone(None) if form.endswith("%:z") else raw
    if dtype == pl.Datetime and dtype.time_zone:
        raw = raw.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
    return raw.cast(pl.Datetime("us"))
