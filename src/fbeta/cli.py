"""The command line."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, NoReturn

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
    html: Annotated[Path | None, typer.Option(help="Write a page with pictures, one offline file.")] = None,
    png: Annotated[Path | None, typer.Option(help="Write a picture.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the data instead of the text.")] = False,
) -> None:
    """Explain a metric: formula, pole, gradient conditions, best decision rule, and where the cut ½ is wrong."""
    from fbeta import explain as face

    try:
        explanation = face.explain(metric, prevalence)
        if html is not None:
            from fbeta.explain import page

            page.save(explanation, html)
        if png is not None:
            from fbeta.explain import picture

            picture.save(explanation, png)
    except (ValueError, ImportError) as error:
        _stop(str(error))
    except OSError as error:
        _stop(f"cannot write {error.filename}: {error.strerror}.")
    if as_json:
        typer.echo(explanation.to_json())
        return
    from fbeta.explain.terminal import show

    show(explanation)
    for path in filter(None, (html, png)):
        typer.echo(f"Written: {path}")


def _stop(sentence: str) -> NoReturn:
    typer.echo(f"fbeta: {sentence}", err=True)
    raise typer.Exit(2)


def main() -> None:
    """Run the `fbeta` command."""
    app()
