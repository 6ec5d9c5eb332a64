"""What a column is: numbers, categories, booleans or dates. Decided from all of its values, in one pass."""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import polars as pl

from fbeta.tables.amounts import Reading, Written, find_readings, like_an_amount, read_amounts
from fbeta.tables.columns import FORMATS, ONE_SPELLING, Column
from fbeta.tables.errors import listed
from fbeta.tables.formats import OpenTable, cols, streamed_stack
from fbeta.tables.parsing import boolean, cleaned, date, finite, is_text, parsed, readable
from fbeta.tables.values import WORDS

_LIKE_A_DATE = r"^(\d{4}[-/]\d{1,2}[-/]\d|\d{1,2}[-/.]\w{1,3}[-/.]\d{4})"
#: A text column with more distinct values than this share of its rows names rows; it cannot be learnt from.
ID_SHARE, ID_VALUES = 0.5, 50
#: This share of numbers makes a column one of numbers, if the other texts are at most so many.
NUMBER_SHARE, ODD_TEXTS = 0.95, 20
_SAMPLE = 2_000


@dataclass(frozen=True)
class Facts:
    """What one pass over a column found; `low` and `high` are of its values, texts in alphabetical order.

    Of the `spelt` values, which are yes, no, true or false, `words` are the spellings; `written` says how amounts are,
    `units` are the several that they have.
    """

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
    spelt: int = 0
    words: tuple[str, ...] = ()
    written: Written | None = None
    units: tuple[str, ...] = ()

    @property
    def how(self) -> str:
        """How its amounts are written; empty where numbers are plain."""
        return self.written.how if self.written else ""

    @property
    def numeric(self) -> bool:
        """Whether nearly all values are numbers."""
        return self.numbers + self.infinite >= NUMBER_SHARE * self.present

    @property
    def span(self) -> float:
        """How far apart the numbers lie; 0 where there are none."""
        return 0.0 if self.smallest is None or self.largest is None else self.largest - self.smallest

    def like_amounts(self, comma: bool) -> bool:
        """Whether texts may be amounts that are no plain numbers; `comma`: in their file decimals have a comma."""
        if self.booleans == self.present or self.present in self.dates.values():
            return False
        return (comma or self.numbers < self.present) and any(map(like_an_amount, (self.low, self.high)))

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
        "smallest": lambda number: finite(number).min(),
        "largest": lambda number: finite(number).max(),
    },
    "value": {"present": pl.Expr.count, "low": pl.Expr.min, "high": pl.Expr.max},
    "text": {"distinct": pl.Expr.approx_n_unique},
    "word": {"spelt": pl.Expr.count},
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
    facts |= _with_amounts(source, facts)
    facts |= _with_words(source, facts)
    return facts | _with_odd_texts(source, facts)


def _facts(
    source: OpenTable, names: Sequence[str], dtype: Any, also: Sequence[str] = (), how: str = ""
) -> dict[str, Facts]:
    """Fact sheets of columns of one type, with the views `also` that are worth a look; `how` are amounts written?"""
    raw, views = pl.col("value"), {}
    if is_text(dtype) or dtype.is_numeric():
        views["number"] = parsed(raw, dtype, source.decimal, how)
    if not dtype.is_numeric():
        views["value"] = cleaned(raw, dtype)
    if is_text(dtype):
        views["text"] = views["value"]
        views["word"] = pl.when(views["value"].is_in(WORDS)).then(views["value"])
    views |= {view: boolean(raw) if view == "boolean" else date(raw, dtype, view) for view in also}
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


def _with_amounts(source: OpenTable, facts: Mapping[str, Facts]) -> dict[str, Facts]:
    """The facts on columns of texts that are amounts, in the reading that fits most of them."""
    comma = source.decimal == ","
    names = [name for name, found in facts.items() if is_text(source.dtypes[name]) and found.like_amounts(comma)]
    if not names:
        return {}
    stack = streamed_stack(source.frame.select(cols(names).cast(pl.String)), names)
    texts = stack.select("name", cleaned(pl.col("value"), pl.String()).alias("value")).drop_nulls()
    found, mixed = find_readings(texts, NUMBER_SHARE, comma)
    alike = defaultdict(list)
    for name in (name for name in names if name in found):
        alike[source.dtypes[name], found[name].how].append(name)
    sheets = {name: replace(facts[name], units=tuple(units)) for name, units in mixed.items()}
    for (dtype, how), some in alike.items():
        for name, sheet in _facts(source, some, dtype, how=how).items():
            more = sheet.numbers - facts[name].numbers
            if sheet.numeric and (more > 0 or (comma and not more and found[name].dotted)):
                sheets[name] = replace(sheet, written=found[name])
    return sheets


def _with_words(source: OpenTable, facts: Mapping[str, Facts]) -> dict[str, Facts]:
    """The facts on columns of text in which yes, no, true or false stand among others, and how they are spelled."""
    names = [name for name, found in facts.items() if found.spelt and found.booleans < found.present]
    if not names:
        return {}
    stack = streamed_stack(source.frame.select(cols(names).cast(pl.String)), names)
    text = cleaned(pl.col("value"), pl.String())
    words = stack.select("name", text.alias("value")).filter(pl.col("value").is_in(WORDS)).unique()
    sheets = _by_name(words, pl.col("value").sort())
    return {name: replace(facts[name], words=tuple(sheet["value"])) for name, sheet in sheets.items()}


def _with_odd_texts(source: OpenTable, facts: Mapping[str, Facts]) -> dict[str, Facts]:
    """The facts on columns of numbers with texts among them, and those texts, or the first of very many."""
    hows, sheets = defaultdict(list), dict[str, dict[str, Any]]()
    for name, found in facts.items():
        if found.numeric and found.infinite + found.numbers < found.present:
            hows[found.how].append(name)
    raw, text = pl.col("value"), pl.String()
    for how, names in hows.items():
        stack = streamed_stack(source.frame.select(cols(names).cast(text)), names)
        unread = parsed(raw, text, source.decimal, how).is_null()
        odd = stack.filter(unread).select("name", cleaned(raw, text)).drop_nulls()
        sheets |= _by_name(odd, raw.unique().sort().head(ODD_TEXTS + 1))
    return {name: replace(facts[name], odd=tuple(sheet["value"])) for name, sheet in sheets.items()}


def _candidates(source: OpenTable, names: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Which columns of text have booleans or dates of a format only, as far as their first values tell."""

    def counts(names: Sequence[str], views: Mapping[str, pl.Expr]) -> dict[str, dict[str, Any]]:
        first = streamed_stack(source.frame.head(_SAMPLE), names).select("name", cleaned(text, pl.String()))
        return _by_name(first, text.count().alias("present"), *(seen.count().alias(v) for v, seen in views.items()))

    found: dict[str, tuple[str, ...]] = {}
    text, dated = pl.col("value"), []
    like_a_date = pl.when(text.str.contains(_LIKE_A_DATE)).then(text)
    for name, sheet in counts(names, {"boolean": boolean(text), "date": like_a_date}).items():
        if sheet["boolean"] == sheet["present"]:
            found[name] = ("boolean",)
        elif sheet["date"] == sheet["present"]:
            dated.append(name)
    if dated:
        forms = {form: date(text, pl.String(), form) for form in FORMATS}
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
        if facts.units:
            notes.append(f"{name!r} has amounts in several units ({listed(facts.units)}): convert them to one.")
        if len(facts.words) > len({word.lower() for word in facts.words}):
            notes.append(f"{name!r} spells words in several ways ({listed(facts.words)}): yes, Yes and YES are one.")
        return Column(name, "category", ONE_SPELLING if facts.words else "")
    if facts.odd:
        notes.append(f"{name!r} has texts among its numbers ({listed(facts.odd)}): they count as missing.")
    # Single precision, good for seven digits, must not lose much of what tells values apart.
    size = max(abs(facts.smallest or 0), abs(facts.largest or 0))
    wide = size > 3e38 or size > 1e4 * facts.span or size >= 2**24
    return Column(name, "number", facts.how, facts.odd, wide)


def amounts_notes(facts: Mapping[str, Facts]) -> list[str]:
    """How the amounts of columns were read; a note for all that are written alike."""
    alike = defaultdict(list)
    for name, found in facts.items():
        if found.written:
            alike[found.written].append(name)
    notes = []
    for written, names in alike.items():
        ends = pl.Series([facts[names[0]].low, facts[names[0]].high])
        numbers = pl.select(read_amounts(pl.lit(ends), written.how)).to_series()
        text, number = next((t, n) for t, n in zip(ends, numbers, strict=True) if n is not None)
        reading = Reading.of(written.how)
        doubt = "; that its separator sets off thousands is a guess" if written.doubtful and not reading.percent else ""
        doubt = "; that its separator is of decimals is a guess" if written.doubtful and reading.percent else doubt
        notes.append(
            f"{listed(names)} {'has' if len(names) == 1 else 'have'} {reading.says}: {text!r} is {number:g}{doubt}."
        )
    return notes
