"""`fbeta compare`."""

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from fbeta.cli import own_models
from fbeta.cli import parameters as p
from fbeta.cli.answers import answering, despite_closed, echo_json_text, say


def compare(
    source: p.Data = None,
    target: p.Target = None,
    metric: p.MetricSpec = "fbeta:beta=1",
    positive: p.Positive = None,
    models: p.Models = None,
    losses: p.Losses = None,
    trials: p.Trials = 1,
    splits: Annotated[
        int, typer.Option("--splits", "--seeds", min=1, help="Splits into learning rows and test rows.")
    ] = 5,
    folds: Annotated[int, typer.Option(min=2, help="Folds of the learning rows, for the cut.")] = 5,
    rule: p.RuleSpec = "shrunk",
    margin: Annotated[float, typer.Option(help="A difference of the metric that does not matter.")] = 0.01,
    test: Annotated[str, typer.Option(help="rows: pooled test rows; splits: t-test over splits.")] = "rows",
    subject_to: p.SubjectTo = None,
    confidence: p.Confidence = None,
    abstain: p.Abstain = None,
    ensemble: p.Averaged = None,
    group: p.Group = None,
    time: p.Time = None,
    weight: p.Weight = None,
    drop: p.Drop = None,
    categorical: p.Categorical = None,
    sheet: p.Sheet = None,
    seed: p.Seed = 0,
    device: p.Device = "cpu",
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Processes; if not given, one per core for a small table.")
    ] = None,
    minutes: Annotated[
        float | None, typer.Option(help="Begin nothing after that; the same command goes on from there.")
    ] = None,
    results: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Keep finished parts here, not in the cache.")
    ] = None,
    html: Annotated[Path | None, typer.Option(help="Write a page: one file that needs no network.")] = None,
    fit: Annotated[
        Path | None, typer.Option(metavar="MODEL", help="Fit the advised method on all rows and write it here.")
    ] = None,
    force: p.Force = False,
    every: Annotated[bool, typer.Option("--all", help="Print a line for each method, with its interval.")] = False,
    as_json: p.AsJson = False,
) -> None:
    """Compare losses and cuts on a table: which is best for the metric, by how much, and is it more than noise?"""
    with answering("stopped; finished parts are kept, run the same command again to go on."):
        from rich.console import Console

        from fbeta import comparison, report
        from fbeta.comparison.methods import writable
        from fbeta.comparison.promised import check_limits
        from fbeta.comparison.run import usual_folder
        from fbeta.comparison.verdict import NO_SIGNAL
        from fbeta.learners.classifiers import unwritten
        from fbeta.report.console import progress
        from fbeta.writing import check_outputs

        check_outputs((html, fit), source, results)
        asked: dict[str, Any] = {"metric": metric, "rule": rule, "device": device}
        asked |= {"models": own_models.models(models), "losses": p.names(losses), "trials": trials}
        _, methods = comparison.check(**asked)
        kept = [] if fit is None else writable(methods)
        limits = check_limits(**p.constraints(subject_to, confidence, abstain))
        console = Console(stderr=as_json)
        roles: dict[str, Any] = {"target": target, "positive": positive, "group": group, "time": time, "weight": weight}
        roles |= {"drop": p.columns(drop), "categorical": p.columns(categorical), "sheet": sheet}
        table = p.table(source, **roles)
        p.notes(console, table.notes)
        with progress("training", "epochs") as tick:
            folder = results or usual_folder(table)
            how: dict[str, Any] = {"splits": splits, "folds": folds, "seed": seed, "folder": folder, "jobs": jobs}
            how |= {"margin": margin, "test": test, "minutes": minutes, "ensemble": bool(ensemble)}
            found = comparison.compare(table, **asked, **how, **limits, tick=tick, say=partial(say, err=True))
        if html is not None:
            report.write(found, html)
        if as_json:
            echo_json_text(found.to_json())
        else:
            with despite_closed():
                console.print(report.terminal(found, methods=every))
        if html is not None:
            say(f"Written: {html}", err=as_json)
        if fit is not None and found.verdict == NO_SIGNAL and not force:
            say("Nothing was fitted, because there is no signal; --force fits all the same.", err=as_json)
        elif fit is not None:
            wanted: dict[str, Any] = {"comparison": found}
            advised = found.candidate(found.advised or found.winner).model
            if advised not in kept:
                say(unwritten(advised), f"Fitted instead: the best of {', '.join(kept)}.", err=True)
                wanted = asked | {"models": kept, "folds": folds, "ensemble": ensemble}
            model = p.fitted(table, fit, **wanted | {"seed": seed, "device": device, "force": force}, **limits)
            say("", *model.summary().split("\n"), p.next_step(fit), err=as_json)
