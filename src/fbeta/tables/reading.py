"""From a file to a `Table`: two streamed passes, one that looks at every value and one that keeps what is needed."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fbeta.tables.columns import CODE, LEVELS, Column, read_columns
from fbeta.tables.drift import drift_notes
from fbeta.tables.errors import LISTED, TableError, listed
from fbeta.tables.folds import dense, joined
from fbeta.tables.formats import READER_ERRORS, OpenTable, col, cols, columns_of, need_column, opened, pieces, unused
from fbeta.tables.leaks import leak_notes
from fbeta.tables.parsing import cleaned, readable
from fbeta.tables.profile import Facts, amounts_notes, infer, profile
from fbeta.tables.table import Roles, Table
from fbeta.tables.target import Classes, choose_classes
from fbeta.tables.weights import checked_weight, weight_numbers


def read_table(
    path: str | Path,
    target: str,
    positive: str | None = None,
    *,
    group: str | None = None,
    time: str | None = None,
    weight: str | None = None,
    drop: Sequence[str] = (),
    categorical: Sequence[str] = (),
    delimiter: str | None = None,
    sheet: str | None = None,
    duplicates: bool = True,
    name: str | None = None,
) -> Table:
    """Read a table of CSV, TSV, JSON lines (also .gz), Excel, Parquet, Arrow, Feather or NPZ, its target as 0 and 1.

    `positive` is the value of the target that counts as 1, else the rarer one. Rows equal in the column `group`
    stay together in a split, and so do rows of equal features unless `duplicates` is False; `time` makes a split
    train on earlier rows, and `weight` says how much each counts. None of these is learnt from, nor are columns in
    `drop`. Numbers of columns in `categorical` are codes, as zip codes are. `sheet` is one of a workbook, else the
    first. What was done is in `notes`.

    Shape: N is the number of rows that have a target.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder, "shop.csv")
    ...     _ = file.write_text("amount,land,fraud\\n1.5,DE,no\\n?,FR,no\\n9,DE,yes\\n")
    ...     table = read_table(file, "fraud")
    >>> table
    Table('shop.csv', 3 rows, 2 columns, 1 (33.3 %) of fraud 'yes')
    >>> table.notes[0]
    "positive is fraud 'yes', the rarer value: 1 of 3 rows."
    """
    roles = Roles(target, group=group, time=time, dropped=_names(drop), weight=weight, categorical=_names(categorical))
    text = [name for name in (target, group, *roles.categorical) if name is not None]
    with opened(path, delimiter, text, sheet) as source:
        table = _table(source, roles, positive, duplicates, name or source.path.name)
    return replace(table, source=str(path))


def read_frame(
    frame: Any,
    target: str,
    positive: str | None = None,
    *,
    group: str | None = None,
    time: str | None = None,
    weight: str | None = None,
    drop: Sequence[str] = (),
    categorical: Sequence[str] = (),
    duplicates: bool = True,
    name: str = "table",
) -> Table:
    """A table from a frame of polars or pandas that is in memory, treated as a file with this content is.

    >>> import polars as pl
    >>> read_frame(pl.DataFrame({"x": [1, 2, 4], "y": ["a", "b", "a"]}), "y")
    Table('table', 3 rows, 1 column, 1 (33.3 %) of y 'b')
    """
    if not isinstance(frame, pl.DataFrame):
        values = {str(n): frame[n].astype(object).where(frame[n].notna(), None) for n in frame.columns}
        frame = pl.DataFrame({n: column.to_list() for n, column in values.items()}, strict=False)
    source = OpenTable(Path(name), frame.lazy(), tuple(frame.columns))
    roles = Roles(target, group=group, time=time, dropped=_names(drop), weight=weight, categorical=_names(categorical))
    return _table(source, roles, positive, duplicates, name)


def _names(given: Sequence[str]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


def _table(source: OpenTable, roles: Roles, positive: str | None, duplicates: bool, name: str) -> Table:
    _check(source, roles)
    source = source.with_texts(roles.categorical)
    given = {roles.target, roles.group, *roles.dropped}
    names = [n for n in source.names if n not in given]
    try:
        try:
            facts = profile(source, names)
        except READER_ERRORS:
            if source.text is None:
                raise
            source = source.as_text()  # a text stands below numbers
            facts = profile(source, names)
        classes, notes = target_classes(source, roles.target, positive)
        columns = _columns(source, roles, facts, notes)
        frame, own = _collect(source, roles, columns, classes, facts)
    except READER_ERRORS as error:
        raise source.fault(error) from error
    target, group, time = own["y"].to_numpy().astype(np.int8), own.get("group"), own.get("time")
    if counting := _row_numbers(frame, columns, facts):
        notes.append(f"{_count_of(counting)} that only counts the rows: {listed(counting)} dropped.")
        columns = [column for column in columns if column.name not in counting]
    if not columns:
        raise TableError(f"{source.path} has no column to learn from: {' '.join(notes[1:]) or 'add features.'}")
    frame = frame[:, [column.name for column in columns]]
    _say_missing(frame, notes)
    notes += leak_notes(frame, target)
    if time is not None and (missing := time.null_count()):
        raise TableError(f"{roles.time!r} is missing in {missing:,} of {len(time):,} rows: fill it, or leave them out.")
    times = None if time is None else time.to_numpy().astype(np.float64)
    if times is not None:
        notes += drift_notes(frame, times)
    weight = None if roles.weight is None else checked_weight(own["weight"], target, roles.weight, notes)
    groups = _groups(frame, target, group, roles, duplicates, notes)
    roles = replace(roles, positive=classes.positive, negative=classes.negative)
    return Table(name, frame, tuple(columns), target, roles, groups, times, tuple(notes), weight=weight)


def _check(source: OpenTable, roles: Roles) -> None:
    special = {"target": roles.target, "group": roles.group, "time": roles.time, "weight": roles.weight}
    taken = [name for name in special.values() if name is not None]
    for what, name in special.items():
        need_column(source, [name], f"{what} column")
    need_column(source, roles.dropped, "dropped column")
    need_column(source, roles.categorical, "categorical column")
    taken += [*{*roles.dropped}, *{*roles.categorical}]
    if len({*taken}) < len(taken):
        raise TableError(f"target, group, time, weight, dropped and categorical columns must differ: {listed(taken)}.")


def _collect(
    source: OpenTable, roles: Roles, columns: Sequence[Column], classes: Classes, facts: Mapping[str, Facts]
) -> tuple[pl.DataFrame, dict[str, pl.Series]]:
    """The values of all columns that are needed, and of y, group and time, of the rows that have a target."""
    label = target_text(source, roles.target)
    wanted = {"y": label.is_in(classes.spellings)}
    if roles.group is not None:
        wanted["group"] = cleaned(col(roles.group), source.dtypes[roles.group])
    if roles.time is not None:
        wanted["time"] = _time(source, roles.time, facts.get(roles.time))
    if roles.weight is not None:
        wanted["weight"] = weight_numbers(source, roles.weight, facts.get(roles.weight))
    own = {name: unused(source.names, name) for name in wanted}
    raw = cols([column.name for column in columns])
    kept = source.frame.filter(label.is_not_null()).select(raw, *(wanted[name].alias(own[name]) for name in wanted))
    frame = pl.concat(
        piece.select(cols(own.values())).with_columns(read_columns(piece, columns, source))
        for piece in pieces(kept, len(columns) + len(own))
    )
    return frame, {name: frame.drop_in_place(place) for name, place in own.items()}


def target_text(source: OpenTable, target: str) -> pl.Expr:
    """The values of a target as text, null where there is none."""
    return cleaned(col(target), source.dtypes[target]).cast(pl.String)


def target_classes(source: OpenTable, target: str, positive: str | None) -> tuple[Classes, list[str]]:
    """The classes of a target, and the first notes on a table: which is positive, how many rows have no value."""
    values = source.frame.select(target_text(source, target).alias("value"))
    counted = values.group_by("value").len().collect(engine="streaming")
    counts = dict(sorted(counted.drop_nulls().iter_rows()))
    classes = choose_classes(target, counts, positive)
    notes = [classes.note, *source.notes]
    if without := int(counted["len"].sum()) - sum(counts.values()):
        notes.append(f"rows without a value of {target!r} were left out: {without:,}.")
    return classes, notes


def _columns(source: OpenTable, roles: Roles, facts: Mapping[str, Facts], notes: list[str]) -> list[Column]:
    """The columns to learn from; why others are not is added to `notes`."""
    empty, constant, ids, columns = [], [], [], []
    for name, found in facts.items():
        if name in (roles.time, roles.weight):
            continue
        if found.empty:
            empty.append(name)
        elif found.constant:
            constant.append(name)
        elif (column := _column(name, source, roles, found, notes)).kind == "category" and found.like_ids:
            ids.append(name)
        else:
            columns.append(column)
            if column.kind == "category" and found.distinct > LEVELS:
                notes.append(
                    f"{name!r} has about {found.distinct:,} values: the {LEVELS} most frequent count, "
                    "the others are one."
                )
    used = {column.name for column in columns if column.kind == "number"}
    notes += amounts_notes({name: found for name, found in facts.items() if name in used})
    given = {roles.target, roles.group, roles.time, roles.weight}
    strange = [n for n, t in source.dtypes.items() if n not in facts and n not in given and not readable(t)]
    for names, why in (
        (empty, "without any value"),
        (constant, "with one value only"),
        (ids, "of text that differs from row to row, like a name or an id"),
        (strange, "of a type that cannot be learnt from"),
    ):
        if names:
            notes.append(f"{_count_of(names)} {why}: {listed(names)} dropped.")
    return columns


def _column(name: str, source: OpenTable, roles: Roles, found: Facts, notes: list[str]) -> Column:
    if name in roles.categorical:
        return Column(name, "category", CODE)
    return infer(name, source.dtypes[name], found, notes)


def _count_of(names: Sequence[str]) -> str:
    return "a column" if len(names) == 1 else f"{len(names)} columns"


def _time(source: OpenTable, name: str, found: Facts | None) -> pl.Expr:
    """Time as a number that grows: as it stands, or seconds since 1970."""
    raw, dtype = col(name), source.dtypes[name]
    column = infer(name, dtype, found, []) if found and not found.empty else Column(name, "category")
    if column.kind == "date":
        return column.read(raw, dtype).dt.epoch("us") / 1e6
    if column.kind == "number":
        return replace(column, wide=True).read(raw, dtype, source.decimal)
    raise TableError(
        f"{name!r} is neither a date nor a number ({found.low if found else dtype!r}): write times like "
        "2024-12-31 18:00:00."
    )


def _row_numbers(frame: pl.DataFrame, columns: Sequence[Column], facts: Mapping[str, Facts]) -> list[str]:
    """The columns that are 1, 2, 3, … or so, from row to row."""
    found, held = [], columns_of(frame)
    for column in columns:
        if column.kind == "number" and facts[column.name].span == frame.height - 1 > 1:
            steps = held[column.name].diff().drop_nulls()
            if len(steps) == frame.height - 1 and (steps == 1).all():
                found.append(column.name)
    return found


def _say_missing(frame: pl.DataFrame, notes: list[str]) -> None:
    share = {n: c / frame.height for n, c in zip(frame.columns, frame.null_count().row(0), strict=True) if c}
    if share:
        most = sorted(share, key=lambda n: -share[n])[:LISTED]
        said = ", ".join(f"{n!r} {'< 1' if share[n] < 0.01 else f'{100 * share[n]:.0f}'} %" for n in most)
        more = f" and {len(share) - LISTED} more" if len(share) > LISTED else ""
        notes.append(
            f"values are missing in {len(share)} of {frame.width} columns ({said}{more}): each is filled, "
            "and marked as missing."
        )


def _groups(
    frame: pl.DataFrame, y: NDArray[np.int8], given: pl.Series | None, roles: Roles, duplicates: bool, notes: list[str]
) -> NDArray[np.int64]:
    # 64 bits: among 10 million different rows two meet by chance once in 370,000 tables, and share a fold then
    equal = dense(frame.hash_rows(seed=0).to_numpy())
    size, positives = np.bincount(equal), np.bincount(equal, y)
    copies = int(size[size > 1].sum())
    if copies and duplicates:
        notes.append(f"{copies:,} rows have the same features as another: a split keeps them together.")
    if mixed := int(size[(positives > 0) & (positives < size)].sum()):
        notes.append(f"{mixed:,} rows have the features of a row of the other class: no model gets them all right.")
    own = equal if duplicates else np.arange(len(y))
    if given is None:
        return own
    codes = given.rank("dense").cast(pl.Int64).fill_null(0).to_numpy()
    alone = codes == 0
    if alone.any():
        notes.append(f"rows without a value of {roles.group!r} are groups of their own: {int(alone.sum()):,}.")
    ids = np.where(alone, codes.max(initial=0) + 1 + np.arange(len(codes)), codes)
    return joined(dense(ids), own) if duplicates else dense(ids)
