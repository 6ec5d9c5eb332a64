"""The command line."""

from __future__ import annotations

from typing import Annotated

import typer

app = typer.Typer(
    name="fbeta",
    help="Train for the metric you report.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
)


def _version(show: bool) -> None:
    if show:
        from fbeta import __version__

        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def door(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Train for the metric you report: F-beta and any confusion-matrix score."""


@app.command()
def explain(
    metric: Annotated[
        str, typer.Option(help="A spec such as fbeta:beta=2; an unknown name lists them.")
    ] = "fbeta:beta=1",
    prevalence: Annotated[float, typer.Option(help="Share of positives in the population.")] = 0.1,
) -> None:
    """Show what a metric looks like in ROC space: its pole, and what a loss can do with it."""
    from fbeta.metrics import check_prevalence
    from fbeta.metrics import metric as read

    try:
        m, p = read(metric), check_prevalence(prevalence)
    except ValueError as error:
        typer.echo(f"fbeta: {error}", err=True)
        raise typer.Exit(2) from None
    typer.echo(f"{m} at prevalence {p:g}")
    pole = m.pole(p)
    if pole is None:
        typer.echo("pole: none (its level lines do not meet in one point)")
    elif pole.at_infinity:
        typer.echo(f"pole: at infinity (parallel level lines of slope {pole.slope:.4g})")
    else:
        typer.echo(f"pole: ({pole.x:.4g}, {pole.y:.4g})")
    typer.echo(f"training: {m.refusal(p) or 'TangentLoss and SoftLoss' + _surrogate(m, p)}")


def _surrogate(m: object, p: float) -> str:
    from fbeta.metrics import Metric

    assert isinstance(m, Metric)
    try:
        a = m.anchors(p)
    except ValueError:
        return " (no anchors, so no SurrogateLoss)"
    return f", and SurrogateLoss with anchors {a.negative:.4g} (negatives) and {a.positive:.4g} (positives)"


def main() -> None:
    """Run the `fbeta` command."""
    app()
