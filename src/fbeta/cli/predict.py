"""`fbeta predict`."""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from fbeta.cli.answers import answering, echo_json, say, stop
from fbeta.cli.parameters import AsJson, Sheet, columns, tables

_OUT = "Ends in csv, tsv, parquet, arrow, feather; - is the standard output."


def predict(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model that `fbeta fit` wrote.")],
    source: Annotated[
        str,
        typer.Argument(
            metavar="DATA", help="A file of new rows, of any size; - is the standard input.", autocompletion=tables
        ),
    ],
    out: Annotated[str, typer.Option("--out", "-o", metavar="FILE", help=_OUT)] = "-",
    keep: Annotated[
        str | None, typer.Option(help="Columns of DATA to copy, such as an id; separated by commas.")
    ] = None,
    new: Annotated[
        Literal["error", "other"], typer.Option(help="What to do with a category that training did not have.")
    ] = "error",
    cut: Annotated[
        float | None,
        typer.Option(help="Decide at this probability instead of the model's own cut, as found by `fbeta tune`."),
    ] = None,
    adapt: Annotated[
        bool,
        typer.Option(
            "--adapt", help="Adapt to the share of positives among these rows, estimated without their target."
        ),
    ] = False,
    at_prevalence: Annotated[
        float | None, typer.Option(help="Adapt to a share of positives that is known, such as 0.02.")
    ] = None,
    score: Annotated[
        bool, typer.Option("--score", help="Score the decisions against the target column of DATA.")
    ] = False,
    sheet: Sheet = None,
    as_json: AsJson = False,
) -> None:
    """Write a probability and a decision per row; files larger than memory are streamed."""
    if as_json and out == "-":
        stop("--json takes the standard output: say with -o where the predictions go.")
    if adapt and at_prevalence is not None:
        stop("--adapt finds the share of positives that --at-prevalence gives: leave one of them out.")
    with answering():
        from fbeta import artifact
        from fbeta.metrics import title
        from fbeta.numerals import cells, fixed
        from fbeta.report.console import progress

        to, kept = None if out == "-" else out, columns([keep] if keep else None)
        if to is not None:
            artifact.check_output(to, model)
        held = artifact.load(model)
        with progress("predicting", "rows") as tick:
            share = adapt if at_prevalence is None else at_prevalence
            how: dict[str, Any] = {"keep": kept, "new": new, "cut": cut, "score": score, "adapt": share, "sheet": sheet}
            done = artifact.predict(held, source, to, **how, tick=lambda rows: tick(rows, 0))
        facts: dict[str, Any] = {"rows": done.rows, "positives": done.positives, "written": out}
        facts["notes"] = list(done.notes)
        said = [*done.notes, f"{done.rows:,} rows, {done.positives:,} called {held.target} {held.positive!r}."]
        promise = held.cut.promise if cut is None else None
        if done.asked:
            facts["asked"] = done.asked
            said.append(f"{done.asked:,} rows are for a person: their decision is {held.ask!r}.")
        if promise is not None:
            facts["promise"] = promise.to_dict()
            said.append(promise.explain())
        if done.counts is not None:
            counts = done.counts
            value = float(held.metric(counts))
            facts |= {"metric": str(held.metric), "score": value, "counts": [float(x) for x in counts]}
            said.append(f"{title(held.metric)} {fixed(value)}: {cells(counts)}.")
        if done.population is not None:
            facts["population"] = done.population.to_dict()
            said.append(done.population.explain())
        if as_json:
            echo_json(facts)
            return
        if to is not None:
            said.append(f"Written: {out}")
        say(*said, err=to is None)
