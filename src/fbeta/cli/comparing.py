"""`fbeta compare`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fbeta.cli.answers import answering
from fbeta.cli.options import (
    RULE,
    AsJson,
    Data,
    Device,
    Drop,
    Group,
    Losses,
    MetricSpec,
    Models,
    Positive,
    Seed,
    Target,
    Time,
    columns,
    names,
    rules,
    table_or_demo,
)  # fmt: skip


def compare(
    source: Data = None,
    target: Target = None,
    metric: MetricSpec = "fbeta:beta=1",
    positive: Positive = None,
    models: Models = None,
    losses: Losses = None,
    seeds: Annotated[int, typer.Option(min=1, help="Outer splits.")] = 5,
    folds: Annotated[int, typer.Option(min=2, help="Inner folds.")] = 5,
    rule: Annotated[str, typer.Option(help=RULE, autocompletion=rules)] = "shrunk",
    group: Group = None,
    time: Time = None,
    drop: Drop = None,
    seed: Seed = 0,
    device: Device = "cpu",
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Processes; as many as cores for a small table, if not given.")
    ] = None,
    results: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Keep finished parts here, not in the cache.")
    ] = None,
    html: Annotated[Path | None, typer.Option(help="Write a page for the team, one offline file.")] = None,
    fit: Annotated[
        Path | None, typer.Option(metavar="MODEL", help="Fit what is advised on all rows, and write it here.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compare losses and cuts on a table: which is best for the metric, by how much, and is it more than noise?"""
    with answering("stopped; finished parts are kept, run the same command again to go on."):
        from fbeta import report
        from fbeta.artifact import check_output
        from fbeta.comparison import command
        from fbeta.data import load_table

        for path in filter(None, (html, fit)):
            check_output(path, source)
        command.check(metric, names(models), names(losses), rule, device, alone=False)
        console = command.Console(stderr=as_json)
        source, positive = table_or_demo(source, positive)
        table = load_table(source, target, positive, group=group, time=time, drop=columns(drop))
        found = command.run(
            table,
            metric,
            console,
            results,
            models=names(models),
            losses=names(losses),
            seeds=seeds,
            folds=folds,
            rule=rule,
            seed=seed,
            device=device,
            jobs=jobs,
        )
        if html is not None:
            report.write(found, html)
        if as_json:
            typer.echo(found.to_json())
        else:
            console.print(report.terminal(found))
        if html is not None:
            typer.echo(f"Written: {html}", err=as_json)
        if fit is not None:
            model = command.fit(table, fit, source, comparison=found, seed=seed, device=device)
            typer.echo("\n" + command.said(model, fit), err=as_json)
