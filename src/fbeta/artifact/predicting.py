"""Predict a file larger than memory: a piece is read, checked, scored and written before the next one is read."""

import contextlib
import itertools
import sys
import tempfile
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import polars as pl
from polars.io.plugins import register_io_source

from fbeta.artifact.model import Model, New
from fbeta.data import get, is_path, load_table
from fbeta.decisions import Prevalence, Sketch
from fbeta.decisions.abstention import ASK
from fbeta.learners.crossfit import Array
from fbeta.metrics import Confusion
from fbeta.sealed import in_short
from fbeta.tables import TableError, stream
from fbeta.tables.formats import stamp
from fbeta.tables.new_rows import NewRows
from fbeta.tables.parsing import cleaned, readable
from fbeta.tables.values import class_names
from fbeta.writing import OutputError, buffered, check_output, is_device, nameless, naming, replacing

#: Endings of outputs, and how pieces of a table become one file of each.
SINKS: dict[str, Callable[[pl.LazyFrame, Path], Any]] = {
    ".parquet": pl.LazyFrame.sink_parquet,
    ".arrow": pl.LazyFrame.sink_ipc,
    ".feather": pl.LazyFrame.sink_ipc,
}
TEXT = (".csv", ".tsv", "")
#: The delimiter of a text file, the sheet of a workbook, where these are not to be found out.
Layout = Mapping[str, str | None]
PROBABILITY, DECISION = "probability", "decision"


class Predicted(NamedTuple):
    """What was written: rows, and those that were called positive; `counts` where the target was there to compare.

    `asked` are rows that a person decides, which `counts` leaves out.

    `notes` say what is unusual about the file that was read.
    `population`: the share of positives that was decided for, where that was asked.

    >>> Predicted(rows=10, positives=2).counts is None
    True
    """

    rows: int
    positives: int
    counts: Confusion | None = None
    notes: tuple[str, ...] = ()
    population: Prevalence | None = None
    asked: int = 0


def predict(
    model: Model,
    source: str | Path,
    out: str | Path | None = None,
    *,
    keep: Sequence[str] = (),
    new: New = "error",
    cut: float | None = None,
    score: bool = False,
    adapt: bool | float = False,
    delimiter: str | None = None,
    sheet: str | None = None,
    tick: Callable[[int], None] = lambda rows: None,
) -> Predicted:
    """Write the probability and the decision of every row of a table, in its order, and the columns in `keep` before.

    `source` is a file of any format that `fbeta.data` reads, or the name of a set. `out` is a file ending in .csv,
    .tsv, .parquet, .arrow or .feather, there whole or not at all; None is the standard output. `cut` is a probability
    to decide at in place of the model's own. With `score` the decisions are compared with the model's target in the
    same file. With `adapt` the model first follows the population (see `Decision.adapt`): to a share of positives that
    is given, or to what a first pass over the rows finds, which takes no more memory. `tick` is told how many rows are
    done.

    >>> import tempfile
    >>> from fbeta.comparison.run import fit
    >>> model = fit("breast-cancer", models="linear", losses="bce", folds=2)
    >>> predict(model, "breast-cancer", Path(tempfile.mkdtemp(), "out.csv")).rows
    569
    """
    taken = [name for name in (PROBABILITY, DECISION) if name in keep]
    if taken:
        raise TableError(f"a kept column is called {taken[0]!r}, as one of the results: rename it.")
    if cut is not None and not 0 <= cut <= 1:
        raise ValueError(f"the cut is a probability, from 0 to 1; got {cut:g}.")
    to = None if out is None else Path(out).expanduser()
    if to is not None:
        if to.suffix.casefold() not in (*SINKS, *TEXT):
            raise OutputError(f"cannot write {to}: end its name in {', '.join([*TEXT[:2], *SINKS])}.")
        check_output(to, source if is_path(source) else None)
    layout = {"delimiter": delimiter, "sheet": sheet}
    population, before = None, stamp(source)
    if adapt is not False:
        model = _adapted(model, source, adapt, new, layout)
        (population,) = model.decision.prevalences
    notes: list[str] = []
    pieces = _pieces(model, source, tuple(dict.fromkeys(keep)), score, layout, notes.append)
    with contextlib.closing(pieces), naming(to or "the standard output"), _writer(to) as write:
        rows, positives, asked, counts = 0, 0, 0, np.zeros(4)
        seen = NewRows(model.encoder)
        for features, kept, truth in pieces:
            p = model.of_features(features, new)
            seen.add(features)
            outcome = model.cut.outcome(p) if cut is None else (p >= cut) * 1
            called, ask = outcome == 1, outcome == ASK
            words = pl.Series(DECISION, [*model.labels, model.ask], pl.String)
            names = words.gather(np.where(ask, 2, called).astype(np.int64))
            write(pl.DataFrame([*kept.get_columns(), pl.Series(PROBABILITY, p), names]))
            rows, positives, asked = rows + len(p), positives + int(called.sum()), asked + int(ask.sum())
            if truth is not None:
                held = ~(np.isnan(truth) | ask)
                counts += [float(x) for x in Confusion.from_predictions(called[held] * 1.0, truth[held])]
            tick(rows)
        if adapt is True and stamp(source) != before:
            raise TableError(f"{source} was changed between its two readings: predict it again when it stays as it is.")
    matrix = Confusion(*counts.tolist()) if score else None
    return Predicted(rows, positives, matrix, (*notes, *seen.notes()), population, asked)


def _adapted(model: Model, source: str | Path, adapt: bool | float, new: New, layout: Layout) -> Model:
    """The model for the share of positives of some rows; all that is kept of them is a sketch of probabilities."""
    if adapt is not True:
        return replace(model, decision=model.decision.adapt(at_prevalence=adapt))
    if str(source) == "-" or is_device(Path(source).expanduser()):
        what = "the standard input" if str(source) == "-" else f"the pipe {source}"
        raise TableError(f"adapting reads the rows twice, which {what} does not allow: name a file.")
    sketch = Sketch()
    with contextlib.closing(_pieces(model, source, (), False, layout, lambda note: None)) as pieces:
        for features, _, _ in pieces:
            sketch = sketch.add(model.of_features(features, new))
    return replace(model, decision=model.decision.adapt(sketch))


def _pieces(
    model: Model, source: str | Path, keep: tuple[str, ...], score: bool, layout: Layout, tell: Callable[[str], None]
) -> Generator[tuple[pl.DataFrame, pl.DataFrame, Any]]:
    """Typed features, kept columns, and whether each row is positive (NaN: it does not say), where that is asked."""
    if not is_path(source):
        pictures = get(str(source)).kind == "images"  # any class of theirs can be the positive one
        table = load_table(source, positive=model.positive if pictures else None)
        rest = [name for name in keep if name not in table.features.columns]
        if rest:
            raise TableError(f"{source} has no kept column {rest[0]!r}.")
        if score and (table.target, table.positive) != (model.target, model.positive):
            raise TableError(f"{source} has the target {table.target!r}, but the model learned {model.target!r}.")
        yield table.features, table.features[:, list(keep)], table.y.astype(float) if score else None
        return
    wanted = dict.fromkeys([*keep, *([model.target] if score else [])])
    how: dict[str, Any] = {"keep": list(wanted), "tell": tell, **layout}
    with contextlib.closing(stream(source, model.columns, **how)) as pieces:
        for features, held in pieces:
            yield features, held[:, list(keep)], _truth(model, held[model.target], source) if score else None


def _truth(model: Model, column: pl.Series, source: str | Path) -> Array:
    if not readable(column.dtype):
        raise TableError(f"{source}: the target {model.target!r} is of type {column.dtype}: leave --score out.")
    text = pl.select(cleaned(pl.lit(column.alias("truth")), column.dtype).cast(pl.String)).to_series()
    classes = (model.positive, *model.negative)
    names = class_names([*text.drop_nulls().unique(), *classes])
    own = {names[name]: name for name in classes}
    known = {value: own.get(names[value], value) for value in text.drop_nulls().unique()}
    strange = sorted(set(known.values()) - {*classes})
    if strange:
        raise TableError(
            f"{source}: the target {model.target!r} is {strange[0]!r} in some row, which is none of the classes "
            f"that the model learned: leave --score out, or correct it."
        )
    positive = {value: float(name == model.positive) for value, name in known.items()}
    return text.replace_strict(positive, default=None, return_dtype=pl.Float64).fill_null(np.nan).to_numpy()


@contextlib.contextmanager
def _writer(to: Path | None) -> Iterator[Callable[[pl.DataFrame], None]]:
    """A function that takes pieces of the result; the file is there when all of them are."""
    if to is None:
        with buffered(sys.stdout.buffer) as stream:
            yield _rows_into(stream, ",")
        return
    ending = to.suffix.casefold()
    with replacing(to) as part:
        if ending not in SINKS:
            with part.open("wb") as stream:
                yield _rows_into(stream, "\t" if ending == ".tsv" else ",")
            return
        # Pieces beside the output, which are then streamed into one file: polars knows no other way to go on.
        folder = Path(tempfile.gettempdir()) if is_device(to) else to.parent
        with nameless(folder) as heap, heap.open("w+b") as pieces:
            lengths: list[int] = []
            schema: dict[str, Any] = {}

            def write(piece: pl.DataFrame) -> None:
                schema.update(piece.schema)
                lengths.append(pieces.write(piece.write_ipc(None).getbuffer()))

            def again(*_: Any) -> Iterator[pl.DataFrame]:
                pieces.seek(0)
                return (pl.read_ipc(pieces.read(length)) for length in lengths)

            yield write
            try:
                SINKS[ending](register_io_source(again, schema=schema), part)
            except pl.exceptions.PolarsError as error:
                raise OutputError(f"cannot write {to}: {error}.") from error


def _rows_into(stream: IO[bytes], delimiter: str) -> Callable[[pl.DataFrame], None]:
    header = itertools.chain([True], itertools.repeat(False))  # above the first piece alone

    def write(piece: pl.DataFrame) -> None:
        try:
            text = piece.write_csv(separator=delimiter, include_header=next(header))
        except pl.exceptions.PolarsError as error:
            why = in_short(error)
            raise OutputError(
                f"a kept column is no text ({why}): leave it out, or end the output in .parquet."
            ) from error
        stream.write(text.encode())

    return write
