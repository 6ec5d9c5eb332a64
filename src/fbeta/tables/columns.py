"""A column as it was learnt from, and how its values are read."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

import polars as pl

from fbeta.plain_data import from_plain
from fbeta.sealed import in_short
from fbeta.tables.amounts import Reading
from fbeta.tables.errors import TableError
from fbeta.tables.formats import OpenTable, stack
from fbeta.tables.parsing import boolean, cleaned, date, finite, one_spelling, parsed

KINDS = ("number", "category", "boolean", "date")
#: The first that fits all values is taken; a day before a month only where the other order does not fit.
FORMATS = tuple(
    day + time
    for day in ("%Y-%m-%d", "%Y/%m/%d", "%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y", "%d-%b-%Y")
    for time in ("", " %H:%M", " %H:%M:%S%.f", "T%H:%M:%S%.f", "T%H:%M:%S%.fZ", "T%H:%M:%S%.f%:z")
)
#: Levels of a category that get a feature of their own; the rest share one.
LEVELS = 32
#: Of a category: yes and YES are one word; or a number that is a code, 7.0 as 7.
ONE_SPELLING, CODE = "one spelling", "code"


@dataclass(frozen=True)
class Column:
    """A column as it was learnt from: its kind, and how its values are read.

    `format` is a date's, or says how amounts are written (see `tables.amounts`) or categories spelled, empty where that
    is plain; `missing` are texts among numbers that count as missing; `wide` keeps double precision, where single would
    merge values.

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
        try:
            known = not form or form in {"date": FORMATS, "category": (ONE_SPELLING, CODE)}.get(kind, ())
            known = known or (kind == "number" and bool(Reading.of(form)))
        except ValueError:
            known = False
        if not known:
            raise TableError(f"column {name!r:.60} has the unknown format {form!r:.60}: fit the model again.")
        return made

    def read(self, raw: pl.Expr, dtype: Any, decimal: str = ".") -> pl.Expr:
        """Values in the type that the column's kind has, from one or more columns of type `dtype`."""
        if self.kind == "number":
            return finite(parsed(raw, dtype, decimal, self.format)).cast(pl.Float64 if self.wide else pl.Float32)
        if self.kind == "boolean":
            return raw if dtype == pl.Boolean else boolean(raw)
        if self.kind == "date":
            return date(raw, dtype, self.format)
        text = cleaned(raw, dtype).cast(pl.String)
        if self.format == ONE_SPELLING:
            text = one_spelling(text)
        elif self.format == CODE:
            text = text.str.replace(r"^([+-]?[0-9]+)\.0*$", "$1")
        return text.cast(pl.Categorical)


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
