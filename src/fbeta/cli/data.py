"""`fbeta data`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fbeta.cli.answers import answering, echo_json
from fbeta.cli.parameters import AsJson, datasets

if TYPE_CHECKING:
    from rich.console import Console

    from fbeta.datasets.download import DownloadProgress

app = typer.Typer(help="List, find and fetch the named data sets.", no_args_is_help=True)
_NAME = "A name that `fbeta data list` prints."
_SOURCE = "One of the sources that `fbeta data list` shows for this set; auto tries them in that order."
Name = Annotated[str, typer.Argument(metavar="NAME", help=_NAME, autocompletion=datasets)]


@app.command("list")
def data_list(as_json: AsJson = False) -> None:
    """List the data sets, their sources, and which are on this machine."""
    with answering():
        from fbeta import data

        facts = [data.get(name).facts() for name in data.names()]
        if as_json:
            echo_json(facts)
        else:
            where = f"Data sets are kept in {data.root()}; set FBETA_DATA to use another folder."
            typer.echo(f"{listing(facts)}\n\n{where}")


@app.command("path")
def data_path(name: Name, as_json: AsJson = False) -> None:
    """Verify a data set and print its folder."""
    with answering():
        from fbeta import data

        _show(name, str(data.path(name)), as_json)


@app.command("fetch")
def data_fetch(
    name: Name, source: Annotated[str, typer.Option(help=_SOURCE)] = "auto", as_json: AsJson = False
) -> None:
    """Fetch a data set from the first source that works, verify it and print its folder."""
    with answering("stopped; files that were complete are kept."):
        from fbeta import data

        with meter() as tell:
            folder = data.fetch(name, source, tell)
        _show(name, str(folder), as_json)


def _show(name: str, path: str, as_json: bool) -> None:
    if as_json:
        echo_json({"name": name, "path": path})
    else:
        typer.echo(path)


def listing(facts: Iterable[dict[str, Any]]) -> str:
    """The facts of data sets as a table."""
    rows = [("name", "train", "test", "shape", "classes", "MB", "sources", "here")]
    for f in facts:
        shape, classes = "x".join(map(str, f["shape"])), str(len(f["classes"]))
        shape += {"table": " columns", "tables": " tables"}.get(f["kind"], "")
        megabytes, here = f"{f['bytes'] / 1e6:.1f}", "yes" if f["here"] else "no"
        counts = (f"{f[part]:,}" if f[part] else "–" for part in ("train", "test"))
        rows.append((f["name"], *counts, shape, classes, megabytes, ", ".join(f["sources"]), here))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


@contextlib.contextmanager
def meter(console: Console | None = None) -> Iterator[DownloadProgress]:
    """Show downloads for the time of a `with`: bars on a terminal, and in a log only what has no size."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

    console = console or Console(stderr=True)
    columns = TextColumn("{task.description}", markup=False), BarColumn(), DownloadColumn()
    with Progress(*columns, console=console, disable=not console.is_terminal) as bars:
        tasks: dict[str, Any] = {}

        def tell(what: str, done: int, total: int) -> None:
            if not done:
                console.print(what, markup=False, highlight=False, soft_wrap=True)
                return
            if what not in tasks:
                tasks[what] = bars.add_task(what, total=total or None)
            bars.update(tasks[what], completed=done)

        yield tell
