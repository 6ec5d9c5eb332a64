"""`fbeta fit`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fbeta.cli.answers import answering, echo_json
from fbeta.cli.options import (
    METRIC,
    RULE,
    AsJson,
    Data,
    Device,
    Drop,
    Group,
    Losses,
    Models,
    Positive,
    Seed,
    Target,
    Time,
    columns,
    metrics,
    names,
    rules,
    table_or_demo,
)  # fmt: skip


def fit(
    source: Data = None,
    target: Target = None,
    metric: Annotated[
        str | None,
        typer.Option(help=f"{METRIC} F1, if neither it nor --from is given.", autocompletion=metrics),
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="MODEL", help="The file to write.")] = Path(
        "model.fbeta"
    ),
    positive: Positive = None,
    models: Models = None,
    losses: Losses = None,
    origin: Annotated[
        Path | None,
        typer.Option("--from", metavar="FILE", help="Fit what this `fbeta compare --json` advises."),
    ] = None,
    folds: Annotated[int | None, typer.Option(min=2, help="Folds for the cut; 5 if not given.")] = None,
    rule: Annotated[
        str | None, typer.Option(help=f"{RULE} shrunk if not given.", autocompletion=rules)
    ] = None,
    group: Group = None,
    time: Time = None,
    drop: Drop = None,
    seed: Seed = 0,
    device: Device = "cpu",
    as_json: AsJson = False,
) -> None:
    """Train the chosen method on all rows, or the best of several, with a cut from out-of-fold rows: model.fbeta."""
    with answering():
        from fbeta.artifact import check_output
        from fbeta.comparison import command
        from fbeta.data import load_table

        check_output(out, source, origin)
        console = command.Console(stderr=as_json)
        found = None if origin is None else command.read(origin)
        if found is None:
            goal = metric or "fbeta:beta=1"
            command.check(goal, names(models), names(losses), rule or "shrunk", device)
        else:
            was = found.table
            if source is None and was.name != table_or_demo(None, None)[0]:
                raise ValueError(f"{origin} is about {was.name}: name that table before --from.")
            target, positive, drop = target or was.target, positive or was.positive, drop or list(was.drop)
            group, time = group or was.group, time or was.time
        source, positive = table_or_demo(source, positive)
        table = load_table(source, target, positive, group=group, time=time, drop=columns(drop))
        for note in command.notes(table, found):
            console.print(note, style="dim", highlight=False)
        model = command.fit(
            table,
            out,
            source,
            metric=metric,
            models=names(models),
            losses=names(losses),
            comparison=found,
            folds=folds,
            rule=rule,
            seed=seed,
            device=device,
        )
        if as_json:
            echo_json(command.facts(model) | {"written": str(out)})
        else:
            typer.echo(command.said(model, out))
