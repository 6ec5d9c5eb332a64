"""Values as expressions of polars: what stands for none, numbers, booleans and dates of texts and of real types."""

from typing import Any

import polars as pl

from fbeta.tables.amounts import read_amounts
from fbeta.tables.values import FALSE, MISSING, TRUE, WORDS


def readable(dtype: Any) -> bool:
    """Whether a type of column can be learnt from: lists, structures, bytes and times of day cannot."""
    return bool(is_text(dtype) or dtype.is_numeric() or dtype in (pl.Boolean, pl.Date, pl.Datetime, pl.Null))


def is_text(dtype: Any) -> bool:
    """Whether a type of column is text."""
    return dtype in (pl.String, pl.Categorical, pl.Enum)


def cleaned(raw: pl.Expr, dtype: Any) -> pl.Expr:
    """Values without the blanks around them; what stands for no value is null."""
    if dtype.is_float():
        return finite(raw)
    if is_text(dtype):
        text = raw.cast(pl.String).str.strip_chars()
        return pl.when(~text.is_in(MISSING)).then(text)
    plain = dtype.is_numeric() or dtype in (pl.Boolean, pl.Date, pl.Datetime)
    return raw if plain else raw.cast(pl.String)


def one_spelling(text: pl.Expr) -> pl.Expr:
    """Texts, but yes, no, true and false in small letters, where they are written as usual."""
    return pl.when(text.is_in(WORDS)).then(text.str.to_lowercase()).otherwise(text)


def parsed(raw: pl.Expr, dtype: Any, decimal: str, how: str = "") -> pl.Expr:
    """Numbers, also infinite ones, or amounts that are written so; whatever else stands there is null."""
    if is_text(dtype):
        raw = raw.cast(pl.String).str.strip_chars()
        if how:
            return read_amounts(raw, how)
        raw = raw.str.replace(",", ".", literal=True) if decimal == "," else raw
    return raw.cast(pl.Float64, strict=False)


def finite(number: pl.Expr) -> pl.Expr:
    """Numbers; infinite ones are missing."""
    return pl.when(number.is_finite()).then(number)


def boolean(raw: pl.Expr) -> pl.Expr:
    """True and false; whatever else stands there is null."""
    lower = raw.cast(pl.String).str.strip_chars().str.to_lowercase()
    return pl.when(lower.is_in((*TRUE, *FALSE))).then(lower.is_in(TRUE))  # replace() costs a pass per column


def date(raw: pl.Expr, dtype: Any, form: str) -> pl.Expr:
    """Dates as microseconds without a time zone: that of the file's, or UTC where times have an offset."""
    if is_text(dtype):
        raw = raw.cast(pl.String).str.strip_chars().str.to_datetime(form, strict=False, time_unit="us")
        return raw.dt.replace_time_zone(None) if form.endswith("%:z") else raw
    if dtype == pl.Datetime and dtype.time_zone:
        raw = raw.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
    return raw.cast(pl.Datetime("us"))
