"""What a column is: numbers, categories, booleans or dates. Decided from all of its values, in one pass."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Self

import polars as pl
import polars.selectors as cs

from fbeta.tables.errors import TableError, listed
from fbeta.tables.formats import OpenTable, cols
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
            name, kind, form = (str(data[key]) for key in ("name", "kind", "format"))
            missing, wide = tuple(map(str, data["missing"])), bool(data["wide"])
        except (KeyError, TypeError) as error:
            raise TableError(f"a column's description is damaged ({error!r}): fit the model again.") from error
        if kind not in KINDS:
            raise TableError(f"column {name!r:.60} is of the unknown kind {kind!r:.60}: fit the model again.")
        if form and (kind != "date" or form not in FORMATS):
            raise TableError(f"column {name!r:.60} has the unknown format {form!r:.60}: fit the model again.")
        return cls(name, kind, form, missing, wide)

    def read(self, raw: pl.Expr, dtype: Any, decimal: str = ".") -> pl.Expr:
        """Values in the type that the column's kind has, from one or more columns of type `dtype`."""
        if self.kind == "number":
            return _finite(parsed(raw, dtype, decimal)).cast(pl.Float64 if self.wide else pl.Float32)
        if self.kind == "boolean":
            return raw if dtype == pl.Boolean else _boolean(raw)
        if self.kind == "date":
            return _date(raw, dtype, self.format)
        return cleaned(raw, dtype).cast(pl.String).cast(pl.Categorical)


def alike(columns: Iterable[Column], source: OpenTable) -> dict[tuple[Column, Any], list[str]]:
    """Names of the columns that are read in the same way, and so by one expression: how, and from which type."""
    found = defaultdict(list)
    for column in columns:
        found[replace(column, name="", missing=()), source.dtypes[column.name]].append(column.name)
    return found


def read_columns(columns: Iterable[Column], source: OpenTable) -> list[pl.Expr]:
    """The values of columns in the types that their kinds have; in another order than theirs."""
    return [how.read(cols(names), dtype, source.decimal) for (how, dtype), names in alike(columns, source).items()]


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


#: The facts that are found in each view of a column: its numbers, its values, the dates and booleans among them.
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
    **{form: {form: pl.Expr.count} for form in FORMATS},
}


def profile(source: OpenTable, names: Collection[str]) -> dict[str, Facts]:
    """One streamed pass over a table, with a fact sheet for each column that can be learnt from."""
    dtypes = {name: source.dtypes[name] for name in names if readable(source.dtypes[name])}
    text = [name for name, dtype in dtypes.items() if is_text(dtype)]
    of_type, views = defaultdict(list), defaultdict(list)
    for name, dtype in dtypes.items():
        of_type[dtype].append(name)
    for dtype, those in of_type.items():  # columns of one type share an expression: there may be very many
        raw = cols(those)
        if is_text(dtype) or dtype.is_numeric():
            views["number"].append(parsed(raw, dtype, source.decimal))
        if not dtype.is_numeric():
            views["value"].append(cleaned(raw, dtype))
    views["text"] = [cleaned(cols(text), pl.String())]
    for view, those in _candidates(source, text).items():
        views[view] = [_boolean(cols(those)) if view == "boolean" else _date(cols(those), pl.String(), view)]
    values = [value.name.suffix(f"\0{view}") for view, some in views.items() for value in some]
    facts = [
        aggregate(cs.ends_with(f"\0{view}").as_expr()).name.suffix(f"\0{fact}")
        for view in views
        for fact, aggregate in _FACTS[view].items()
    ]
    row = source.frame.select(values).select(pl.len().alias("\0"), *facts).collect(engine="streaming")
    sheets: dict[str, dict[str, Any]] = {name: {"dates": {}} for name in dtypes}
    (rows, *found), places = row.row(0), row.columns[1:]
    for place, value in zip(places, found, strict=True):
        name, view, fact = place.rsplit("\0", 2)
        (sheets[name]["dates"] if view == fact else sheets[name])[fact] = value
    for sheet in sheets.values():
        if "present" not in sheet:  # in a column of numbers only a number is a value
            sheet["present"] = sheet["numbers"] + sheet["infinite"]
    facts_by_name = {name: Facts(rows, **sheet) for name, sheet in sheets.items()}
    return facts_by_name | _with_odd_texts(source, facts_by_name)


def _with_odd_texts(source: OpenTable, facts: Mapping[str, Facts]) -> dict[str, Facts]:
    """The facts on columns of numbers with texts among them, and those texts, or the first of very many."""
    names = [name for name, found in facts.items() if found.numeric and found.infinite + found.numbers < found.present]
    if not names:
        return {}
    raw, text = cols(names), pl.String()
    odd = source.frame.select(pl.when(parsed(raw, text, source.decimal).is_null()).then(cleaned(raw, text)))
    held = odd.filter(pl.any_horizontal(pl.all().is_not_null())).collect(engine="streaming")
    texts = zip(held.columns, held, strict=True)
    return {n: replace(facts[n], odd=tuple(sorted({*column.drop_nulls()})[: ODD_TEXTS + 1])) for n, column in texts}


def _candidates(source: OpenTable, names: Sequence[str]) -> dict[str, list[str]]:
    """Which columns of text have booleans or dates of a format only, as far as their first values tell."""
    if not names:
        return {}
    sample = source.frame.select(cols(names)).head(_SAMPLE).collect()
    clean = sample.select(cleaned(cols(names), pl.String()))

    def counts(kept: pl.Expr) -> dict[str, int]:
        found = clean.select(kept.count())
        return dict(zip(found.columns, found.row(0) if found.width else (), strict=True))

    present = counts(pl.all())
    booleans = [name for name, count in counts(_boolean(pl.all())).items() if count == present[name]]
    like = counts(pl.when(pl.all().str.contains(_LIKE_A_DATE)).then(pl.all()))
    dated = [name for name, count in like.items() if 0 < count == present[name]]
    found = {"boolean": booleans}
    for form in FORMATS if dated else ():
        fits = counts(_date(cols(dated), pl.String(), form))
        found[form] = [name for name in dated if fits[name] == present[name]]
    return {view: some for view, some in found.items() if some}


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
    return Column(name, "number", missing=facts.odd, wide=_wide(facts))


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


def _wide(facts: Facts) -> bool:
    """Whether single precision, good for seven digits, would lose much of what tells values apart."""
    size = max(abs(facts.smallest or 0), abs(facts.largest or 0))
    return size > 3e38 or size > 1e4 * facts.span or size >= 2**24
