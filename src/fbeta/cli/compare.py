"""`fbeta compare`."""

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from fbeta.cli import options as o
from fbeta.cli.answers import answering, echo_json_text, say, unheard


def compare(
    source: o.Data = None,
    target: o.Target = None,
    metric: o.MetricSpec = "fbeta:beta=1",
    positive: o.Positive = None,
    models: o.Models = None,
    losses: o.Losses = None,
    seeds: Annotated[int, typer.Option(min=1, help="Outer splits.")] = 5,
    folds: Annotated[int, typer.Option(min=2, help="Inner folds.")] = 5,
    rule: o.RuleSpec = "shrunk",
    group: o.Group = None,
    time: o.Time = None,
    drop: o.Drop = None,
    seed: o.Seed = 0,
    device: o.Device = "cpu",
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
    as_json: o.AsJson = False,
) -> None:
    """Compare losses and cuts on a table: which is best for the metric, by how much, and is it more than noise?"""
    with answering("stopped; finished parts are kept, run the same command again to go on."):
        from rich.console import Console

        from fbeta import comparison, report
        from fbeta.comparison.run import usual_folder
        from fbeta.report.console import progress
        from fbeta.writing import check_outputs

        check_outputs((html, fit), source, results)
        asked: dict[str, Any] = {"metric": metric, "rule": rule, "device": device}
        asked |= {"models": o.names(models), "losses": o.names(losses)}
        comparison.check(**asked)
        console = Console(stderr=as_json)
        table = o.table(source, target=target, positive=positive, drop=o.columns(drop), group=group, time=time)
        o.notes(console, table.notes)
        with progress("training", "epochs") as tick:
            folder = results or usual_folder(table)
            how: dict[str, Any] = {"seeds": seeds, "folds": folds, "seed": seed, "folder": folder, "jobs": jobs}
            found = comparison.compare(table, **asked, **how, tick=tick, say=partial(say, err=True))
        if html is not None:
            report.write(found, html)
        if as_json:
            echo_json_text(found.to_json())
        else:
            with unheard():
                console.print(report.terminal(found))
        if html is not None:
            say(f"Written: {html}", err=as_json)
        if fit is not None:
            model = o.fitted(table, fit, comparison=found, seed=seed, device=device)
            say("", *model.summary().split("\n"), o.next_step(fit), err=as_json)
