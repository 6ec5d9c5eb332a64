"""Options that several commands have, and what the shell completes them by."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

#: What could be asked, without the imports that asking costs; a test holds them against the real ones.
LOSSES = (
    *("anyloss", "asymmetric", "balanced-bce", "balanced-mae", "bce", "focal", "gce", "ldam", "mae"),
    *("score-oriented", "sigmoid-f1", "soft", "surrogate", "tangent"),
)
MODELS = ("linear", "mlp", "xgboost", "lightgbm")
RULES = ("shrunk", "exact", "plugin", "constant")


def table_or_demo(source: str | None, positive: str | None) -> tuple[str, str | None]:
    """What to read, and its positive class: without a table it is scikit-learn's digits, and whether one is an 8.

    >>> table_or_demo(None, None), table_or_demo("fraud.csv", None)
    (('digits', '8'), ('fraud.csv', None))
    """
    return ("digits", positive or "8") if source is None else (source, positive)


def metrics(incomplete: str) -> list[str]:
    """Metrics that begin so; with their first option, where they have some."""
    from dataclasses import fields

    from fbeta.metrics import Metric

    known = {name: [f.name for f in fields(cls)] for name, cls in sorted(Metric.registry.items())}
    specs = [f"{name}:{options[0]}=" if options else name for name, options in known.items()]
    return [spec for spec in specs if spec.startswith(incomplete)]


def losses(incomplete: str) -> list[str]:
    """Losses, the last of a list that is separated by commas."""
    return _listed(incomplete, LOSSES)


def models(incomplete: str) -> list[str]:
    """Models, likewise."""
    return _listed(incomplete, MODELS)


def rules(incomplete: str) -> list[str]:
    """Rules for a cut."""
    return [name for name in RULES if name.startswith(incomplete)]


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


def _listed(incomplete: str, choices: tuple[str, ...]) -> list[str]:
    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in choices if name.startswith(last)]


def names(given: str | None) -> list[str] | None:
    """Names that are separated by commas.

    >>> names("linear, mlp")
    ['linear', 'mlp']
    """
    return None if given is None else [name.strip() for name in given.split(",") if name.strip()]


def columns(given: list[str] | None) -> list[str]:
    """Names that are separated by commas, or given one by one.

    >>> columns(["id,day", "note"]), columns(None)
    (['id', 'day', 'note'], [])
    """
    return [name for text in given or () for name in names(text) or ()]


Data = Annotated[
    str | None,
    typer.Argument(
        metavar="DATA",
        help="A file, or a name of `fbeta data list`; digits if none.",
        autocompletion=tables,
    ),
]
Target = Annotated[str | None, typer.Option(help="The column to predict.")]
Positive = Annotated[str | None, typer.Option(help="The positive class; the rarer one if not given.")]
METRIC = "A spec such as fbeta:beta=2; an unknown name lists them."
MetricSpec = Annotated[str, typer.Option(help=METRIC, autocompletion=metrics)]
Models = Annotated[
    str | None,
    typer.Option(
        "--models",
        "--model",
        help="linear, mlp, xgboost, lightgbm; those installed if not given.",
        autocompletion=models,
    ),
]
Losses = Annotated[
    str | None,
    typer.Option(
        "--losses", "--loss", help="Names of losses; a sensible six if not given.", autocompletion=losses
    ),
]
Group = Annotated[str | None, typer.Option(help="Rows with one value of this column stay together.")]
Time = Annotated[
    str | None, typer.Option(help="A column of times: compare learns from the past only; fit leaves it out.")
]
Drop = Annotated[list[str] | None, typer.Option(help="Leave columns out; with commas between, or repeated.")]
Seed = Annotated[int, typer.Option(min=0, help="Where chance begins.")]
Device = Annotated[str, typer.Option(help="cpu, cuda, or auto.")]
RULE = "How cuts are chosen: shrunk, exact, plugin, constant."
AsJson = Annotated[bool, typer.Option("--json", help="Print the data instead of the text.")]
