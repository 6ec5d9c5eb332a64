"""The command line: one file per command. What is heavy is imported by the command that needs it."""

from __future__ import annotations

from typing import Annotated

import typer

from fbeta.cli.added import CommandGroup
from fbeta.cli.compare import compare
from fbeta.cli.data import app as data_app
from fbeta.cli.explain import explain
from fbeta.cli.fit import fit
from fbeta.cli.predict import predict
from fbeta.cli.tune import tune

__all__ = ["app", "main"]

app = typer.Typer(
    name="fbeta",
    cls=CommandGroup,
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


for command in (compare, fit, predict, tune, explain):
    app.command()(command)
app.add_typer(data_app, name="data")


def main() -> None:
    """Run the `fbeta` command."""
    app()
