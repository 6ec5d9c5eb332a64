"""`fbeta fit`."""

from pathlib import Path
from typing import Annotated, Any

import typer

from fbeta.cli import own_models
from fbeta.cli import parameters as p
from fbeta.cli.answers import answering, echo_json, say


def fit(
    source: p.Data = None,
    target: p.Target = None,
    metric: Annotated[
        str | None, typer.Option(help=f"{p.METRIC} f1 if neither it nor --from is given.", autocompletion=p.metrics)
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="MODEL", help="The file to write.")] = Path("model.fbeta"),
    positive: p.Positive = None,
    categorical: p.Categorical = None,
    sheet: p.Sheet = None,
    models: p.Models = None,
    losses: p.Losses = None,
    origin: Annotated[
        Path | None, typer.Option("--from", metavar="FILE", help="Fit what this `fbeta compare --json` advises.")
    ] = None,
    trials: p.Trials = 1,
    folds: Annotated[int | None, typer.Option(min=2, help="Folds for the cut; 5 if not given.")] = None,
    rule: Annotated[str | None, typer.Option(help=f"{p.RULE} shrunk if not given.", autocompletion=p.rules)] = None,
    subject_to: p.SubjectTo = None,
    confidence: p.Confidence = None,
    abstain: p.Abstain = None,
    ensemble: p.Averaged = None,
    group: p.Group = None,
    time: p.Time = None,
    weight: p.Weight = None,
    drop: p.Drop = None,
    seed: p.Seed = 0,
    device: p.Device = "cpu",
    force: p.Force = False,
    as_json: p.AsJson = False,
) -> None:
    """Train a method, or the best of several, on all rows, with a cut from out-of-fold rows, and write model.fbeta."""
    with answering():
        from rich.console import Console

        from fbeta import artifact, comparison
        from fbeta.comparison.methods import writable
        from fbeta.comparison.promised import check_limits
        from fbeta.comparison.result import Comparison

        artifact.check_output(out, source, origin)
        limits = check_limits(**p.constraints(subject_to, confidence, abstain))
        asked: dict[str, Any] = {"models": own_models.models(models), "losses": p.names(losses), "device": device}
        found = None if origin is None else Comparison.read(origin)
        if found is None:
            asked["trials"] = trials
            _, methods = comparison.check(metric or "fbeta:beta=1", **asked, rule=rule or "shrunk", baseline=False)
            writable(methods, wanted=len({method.model for method in methods}))
        else:
            was = found.table
            if source is None and was.name != p.DEMO:
                raise ValueError(f"{origin} is about {was.name}: name that table before --from.")
        roles: dict[str, Any] = {"target": target, "positive": positive, "group": group, "time": time}
        roles |= {"weight": weight, "drop": p.columns(drop), "categorical": p.columns(categorical)}
        table = p.table(source, **(roles if found is None else found.reading(**roles)), sheet=sheet)
        p.notes(Console(stderr=as_json), [*table.notes, *(found.told_of(table) if found else ())])
        how: dict[str, Any] = {
            "folds": folds,
            "rule": rule,
            "ensemble": ensemble,
            "seed": seed,
            "force": force,
            **limits,
        }
        model = p.fitted(table, out, metric=metric, comparison=found, **asked, **how)
        if as_json:
            echo_json(model.facts() | {"written": str(out)})
        else:
            say(*model.summary().split("\n"), p.next_step(out))
