"""Parameters that several commands have, and what the shell completes them by."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fbeta.cli.answers import despite_closed

if TYPE_CHECKING:
    from rich.console import Console

    from fbeta.artifact import Model
    from fbeta.tables import Table

#: What is read where no table is given: scikit-learn's digits, and whether one is an 8.
DEMO, DEMO_POSITIVE = "digits", "8"


def table(source: str | None, **roles: Any) -> Table:
    """Read the table that was asked for, or that of the demo."""
    from fbeta.data import load_table

    if source is None:
        source, roles["positive"] = DEMO, roles["positive"] or DEMO_POSITIVE
    return load_table(source, **roles)


def notes(console: Console, sentences: Iterable[str]) -> None:
    """Say what is to be known about a table before the work begins."""
    from fbeta.report.console import plain

    with despite_closed(console.stderr):
        for sentence in sentences:
            console.print(plain(sentence, "dim"))


def fitted(table: Table, out: Path, **wanted: Any) -> Model:
    """Fit with a bar, and write the model; the checksum of its table's file is kept."""
    from fbeta import artifact, comparison
    from fbeta.comparison.run import digest_of_file
    from fbeta.data import is_path
    from fbeta.report.console import progress

    file = Path(table.source).expanduser()
    kept = digest_of_file(file) if is_path(table.source) and file.is_file() else ""  # a pipe is gone
    with progress("fitting", "steps") as tick:
        model = comparison.fit(table, tick=tick, sha256=kept, **wanted)
    artifact.save(model, out)
    return model


def next_step(model: Path) -> str:
    """What to do with a model that was written."""
    return f"Written: {model}. Next: fbeta predict {model} NEW.csv -o predictions.csv"


def metrics(incomplete: str) -> list[str]:
    """Metrics that begin so; with their first option, where they have some."""
    from fbeta.metrics import Metric

    known = {name: [f.name for f in fields(cls)] for name, cls in sorted(Metric.registry.items())}
    specs = [f"{name}:{options[0]}=" if options else name for name, options in known.items()]
    return [spec for spec in specs if spec.startswith(incomplete)]


def datasets(incomplete: str) -> list[str]:
    """Names of data sets."""
    from fbeta import data

    names = data.names()
    if incomplete.startswith("keel/"):
        from fbeta.datasets import keel

        names = [f"keel/{name}" for name in keel.NAMES]
    return [name for name in sorted(names) if name.startswith(incomplete)]


def tables(incomplete: str) -> list[str]:
    """Files and folders, and data sets."""
    given = Path(incomplete)
    folder = given if incomplete.endswith("/") else given.parent
    try:
        files = sorted(folder.iterdir())
    except OSError:
        files = []
    shown = [f"{file}/" if file.is_dir() else str(file) for file in files if not file.name.startswith(".")]
    return [name for name in shown if name.startswith(incomplete)] + datasets(incomplete)


def losses(incomplete: str) -> list[str]:
    """Losses, as their files name them: importing them would import torch, which takes seconds."""
    files = sorted(Path(__file__).parents[1].glob("losses/*.py"))
    found = [name for file in files for name in re.findall(r"^class .*\bname=\"(.+)\"\):$", file.read_text(), re.M)]
    return _last_of_list(incomplete, sorted(found))


def models(incomplete: str) -> list[str]:
    """Models that are installed."""
    from fbeta.learners import models

    return _last_of_list(incomplete, models.names())


def rules(incomplete: str) -> list[str]:
    """Rules for a cut."""
    from fbeta.decisions import rules

    return _last_of_list(incomplete, rules.names())


def _last_of_list(incomplete: str, choices: list[str]) -> list[str]:
    """Complete the last name of a list that is separated by commas."""
    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in choices if name.startswith(last)]


def names(given: str | None) -> list[str] | None:
    """Names that are separated by commas."""
    return None if given is None else [name.strip() for name in given.split(",") if name.strip()]


def columns(given: list[str] | None) -> list[str]:
    """Names that are separated by commas, or given one by one; one with a comma or blanks around it is in quotes."""
    return [name for text in given or () for name in (next(csv.reader([text])) if '"' in text else names(text) or ())]


def constraints(subject_to: list[str] | None, confidence: float | None, abstain: str | None) -> dict[str, Any]:
    """What is asked of a cut besides the metric, as the library takes it; what was not asked is None."""
    share: float | str | None = abstain
    with suppress(TypeError, ValueError):
        share = float(abstain)  # type: ignore[arg-type]
    return {"subject_to": dict(map(_constraint, subject_to or ())) or None, "confidence": confidence, "abstain": share}


def _constraint(text: str) -> tuple[str, float]:
    name, _, value = text.rpartition("=")
    try:
        return name.strip(), float(value)
    except ValueError:
        raise ValueError(f"--subject-to is a metric and a number, as recall=0.9; got {text!r}.") from None


_DATA = "A file, - for the standard input, or a name of `fbeta data list`; digits if none."
Data = Annotated[str | None, typer.Argument(metavar="DATA", help=_DATA, autocompletion=tables)]
Target = Annotated[str | None, typer.Option(help="The column to predict.")]
Positive = Annotated[str | None, typer.Option(help="The positive class; the rarer one if not given.")]
METRIC = (
    "What to optimise: f1, f2, f0.5, mcc, kappa, gmean, jaccard, balanced-accuracy, cost:fp=1,fn=20, fbeta:beta=3, …; "
    "an unknown name lists all."
)
MetricSpec = Annotated[str, typer.Option(help=METRIC, autocompletion=metrics)]
_MODELS = "Names such as linear,xgboost, or module:object of your own; all that are installed if not given."
Models = Annotated[
    list[str] | None, typer.Option("--models", "--model", metavar="NAMES", help=_MODELS, autocompletion=models)
]
_LOSSES = "Names such as bce,tangent; six common ones if not given."
Losses = Annotated[str | None, typer.Option("--losses", "--loss", help=_LOSSES, autocompletion=losses)]
Group = Annotated[str | None, typer.Option(help="Rows with the same value in this column stay together.")]
Time = Annotated[
    str | None, typer.Option(help="A column of times: compare learns from the past only; fit leaves it out.")
]
Trials = Annotated[int, typer.Option(min=1, help="Settings that each model is tried with, drawn at random.")]
Weight = Annotated[str | None, typer.Option(help="A column that says how much each row counts.")]
Drop = Annotated[list[str] | None, typer.Option(help="Leave out columns, separated by commas; may be repeated.")]
_CATEGORICAL = "Columns of numbers that are codes, such as zip codes; separated by commas, may be repeated."
Categorical = Annotated[list[str] | None, typer.Option(metavar="COL,…", help=_CATEGORICAL)]
_SHEET = "The sheet of an Excel workbook; the first if not given."
Sheet = Annotated[str | None, typer.Option(metavar="NAME", help=_SHEET)]
Seed = Annotated[int, typer.Option(min=0, help="Random seed.")]
Device = Annotated[str, typer.Option(help="cpu, cuda, or auto.")]
RULE = "How cuts are chosen, such as shrunk or exact; an unknown name lists all."
RuleSpec = Annotated[str, typer.Option(help=RULE, autocompletion=rules)]
Force = Annotated[bool, typer.Option("--force", help="Fit even without a signal.")]
SubjectTo = Annotated[
    list[str] | None, typer.Option(help="A metric and the least it must reach, such as recall=0.9; may be repeated.")
]
Confidence = Annotated[
    float | None, typer.Option(help="--subject-to shall hold for later rows, too, with this confidence, such as 0.95.")
]
Abstain = Annotated[
    str | None,
    typer.Option(help="A person decides this share of the rows, such as 0.05; or 'promise': as few as needed."),
]
_ENSEMBLE = "Take the mean of the folds' models, not one model of all rows."
Averaged = Annotated[bool | None, typer.Option("--ensemble/--no-ensemble", help=_ENSEMBLE)]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
