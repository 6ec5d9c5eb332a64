"""Numbers as people write them: $1,200, 1.234,56 €, 45 %, (1,200) for −1,200. A whole column has one reading.

A reading is a text, kept in the model's file: the unit, then how 1234.56 is written, then % for percentages.
"""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import polars as pl

#: How 1234.56 is written; a blank or an apostrophe may set off thousands in both.
STYLES = ("1,234.56", "1.234,56")
_SIGNS = "[-+−]"
_CODES = "EUR|USD|GBP|CHF|JPY|CNY|INR|KRW|CAD|AUD|NZD|SEK|NOK|DKK|PLN|CZK|HUF|RON|BRL|MXN|ZAR|TRY|SGD|HKD|kr|zł|Kč|Ft"
_DOLLARS = r"(?:US|C|A|NZ|HK|R)\$"
_UNIT = rf"(?:{_DOLLARS}|\p{{Sc}}|{_CODES})"
_GROUPS = "|".join(rf"[1-9][0-9]{{0,2}}(?:{sign}[0-9]{{3}})+" for sign in ("[ \u00a0\u202f]", "['’]"))
#: 12,34,567 is how thousands are set off in India.
_DIGITS = {
    "1,234.56": rf"(?:(?:{_GROUPS}|[1-9][0-9]{{0,2}}(?:,[0-9]{{2,3}})*,[0-9]{{3}}|[0-9]+)(?:\.[0-9]*)?|\.[0-9]+)",
    "1.234,56": rf"(?:(?:{_GROUPS}|[1-9][0-9]{{0,2}}(?:\.[0-9]{{3}})+|[0-9]+)(?:,[0-9]*)?|,[0-9]+)",
}
_READING = re.compile(r"(?P<unit>[^0-9%]{0,4})(?P<style>1,234\.56|1\.234,56)(?P<percent>%?)")


class Reading(NamedTuple):
    """How the amounts of a column are written; `unit` is empty where they have none, and may be left out."""

    unit: str
    style: str
    percent: bool

    @classmethod
    def of(cls, text: str) -> "Reading":
        """The reading of a text; ValueError where it is none.

        >>> Reading.of("€1.234,56")
        Reading(unit='€', style='1.234,56', percent=False)
        """
        if not (found := _READING.fullmatch(text)):
            raise ValueError(f"{text!r:.60} is no way to write numbers")
        unit = found["unit"]
        symbol = len(unit) == 1 and unicodedata.category(unit) == "Sc"
        if unit and not symbol and not re.fullmatch(rf"{_CODES}|{_DOLLARS}", unit):
            raise ValueError(f"{unit!r:.60} is no unit of amounts")
        return cls(unit, found["style"], bool(found["percent"]))

    def __str__(self) -> str:
        return f"{self.unit}{self.style}{'%' * self.percent}"

    @property
    def says(self) -> str:
        """What is written so, for a sentence."""
        kind = "percentages" if self.percent else f"amounts in {self.unit}" if self.unit else "numbers"
        return f"{kind} written like {self.style}"


def read_amounts(text: pl.Expr, how: str) -> pl.Expr:
    """The numbers of texts without blanks around them, 45 % as 0.45; null where one is not written so.

    >>> pl.select(read_amounts(pl.lit(pl.Series(["$1,200.50", "(3)", "€3"])), "$1,234.56")).to_series().to_list()
    [1200.5, -3.0, None]
    """
    reading = Reading.of(how)
    form = _form(re.escape(reading.unit), reading.style, reading.percent)
    sign = reading.style[-3]
    number = (
        text.str.replace_all(rf"[^0-9{sign}]", "").str.replace(",", ".", literal=True).cast(pl.Float64, strict=False)
    )
    number = pl.when(text.str.contains("[-−(]")).then(-number).otherwise(number)
    return pl.when(text.str.contains(form)).then(number / 100 if reading.percent else number)


def like_an_amount(text: Any) -> bool:
    """Whether a text could be an amount in some reading."""
    return isinstance(text, str) and _MAYBE.fullmatch(text) is not None


class Written(NamedTuple):
    """The reading of a column; could its separators be understood otherwise, and are dots among them?"""

    how: str
    doubtful: bool
    dotted: bool


def find_readings(stack: pl.LazyFrame, share: float, comma: bool) -> tuple[dict[str, Written], dict[str, list[str]]]:
    """The reading that fits this share of the values of each column, or the most, and the units of those with several.

    `stack` has the `name` of the column and a `value` without blanks around it. A separator that could be of thousands
    or of decimals takes thousands, but for percentages; `comma`: in this file decimals have a comma.
    """
    value = pl.col("value")
    plain, percent = ({style: value.str.contains(_form(_UNIT, style, x)) for style in STYLES} for x in (False, True))
    fits = {f"{style}{'%' * x}": held[style] for x, held in enumerate((plain, percent)) for style in STYLES}
    some = pl.any_horizontal(*fits.values())
    unit = pl.when(some).then(value.str.extract(f"({_UNIT})"))
    counts = [seen.sum().alias(how) for how, seen in fits.items()]
    marks = [(some & value.str.contains(sign, literal=True)).any().alias(sign) for sign in (",", ".")]
    sheets = stack.group_by("name").agg(
        pl.len().alias("rows"), *counts, *marks, unit.drop_nulls().unique().sort().alias("units")
    )
    found, mixed = {}, {}
    for sheet in sheets.collect(engine="streaming").iter_rows(named=True):
        most = max(sheet[how] for how in fits)
        best = [how for how in fits if sheet[how] == most]
        if most < share * sheet["rows"]:
            continue
        if len(sheet["units"]) > 1:
            mixed[sheet["name"]] = sheet["units"]
        else:
            found[sheet["name"]] = _chosen(best, sheet, comma)
    return found, mixed


def _chosen(best: Sequence[str], sheet: Mapping[str, Any], comma: bool) -> Written:
    """One of the readings that fit equally many values: that in which the sign that they have sets off thousands."""
    doubtful = len(best) == 2 and (sheet[","] or sheet["."])
    thousands = STYLES[0] if sheet[","] or not sheet["."] else STYLES[1]
    if best[0].endswith("%") and doubtful:
        thousands = STYLES[1] if thousands == STYLES[0] else STYLES[0]
    if comma:
        thousands = STYLES[1]
    how = next((how for how in best if how.startswith(thousands)), best[0])
    return Written("".join(sheet["units"]) + how, bool(doubtful), sheet["."])


def _form(unit: str, style: str, percent: bool) -> str:
    """A pattern of amounts: a sign before or after the unit, brackets, or a minus behind."""
    digits, sign = _DIGITS[style], f"(?:{_SIGNS} ?)"
    if percent:
        return rf"^(?:{sign}?{digits}[ \u00a0\u202f]?%|\({digits} ?%\)|\({digits}\) ?%)$"
    before, behind = (rf"(?:{unit}[ \u00a0\u202f]?)?", rf"(?:[ \u00a0\u202f]?{unit})?") if unit else ("", "")
    inner = f"{before}{digits}{behind}"
    return rf"^(?:{sign}?{inner}|{before}{sign}{digits}{behind}|\({inner}\)|{before}\({digits}\){behind}|{inner}-)$"


_MAYBE = re.compile(r"(?=.*[0-9])[^\W\d_]{0,3}[^\w.,]{0,4}[0-9.,'’ \u00a0\u202f]+[^\w.,]{0,4}[^\W\d_]{0,3}[^\w]{0,2}")
