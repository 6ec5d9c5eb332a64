"""`fbeta paper`: run, gradients, status and figures. Heavy modules are imported by the command that needs them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fbeta.cli.answers import answering, echo_json, stop
from fbeta.cli.parameters import AsJson
from fbeta_reproduction.protocol import PRESETS

app = typer.Typer(
    help="The paper, reproduced: train its networks, see how far they are, draw its figures, judge its claims.",
    no_args_is_help=True,
)
Folder = Annotated[Path, typer.Option("--results", metavar="FOLDER", help="The folder of the result files.")]
RESULTS, PICTURES = Path("reproduction/results"), Path("reproduction/pictures")


@app.command("run")
def paper_run(
    dataset: Annotated[
        list[str] | None,
        typer.Option(help="fashion-mnist and cifar10 (both if not given), or digits; may be repeated."),
    ] = None,
    preset: Annotated[
        list[str] | None, typer.Option(help=f"{', '.join(PRESETS)}; may be repeated, faithful if not given.")
    ] = None,
    repeats: Annotated[int | None, typer.Option(min=1, help="Repeats of each run; the preset's if not given.")] = None,
    epochs: Annotated[int | None, typer.Option(min=1, help="Epochs of each run; the preset's if not given.")] = None,
    precision: Annotated[
        str | None, typer.Option(help="bf16, fp32 or fp64; the preset's if not given, and always fp32 on a CPU.")
    ] = None,
    results: Folder = RESULTS,
    device: Annotated[str, typer.Option(help="cuda, cpu, or auto.")] = "auto",
    at_once: Annotated[int, typer.Option(min=1, help="Train at most this many runs together.")] = 50,
    part: Annotated[
        str, typer.Option("--shard", help="Which part of the runs to train; 2/3 is the second of three parts.")
    ] = "1/1",
    minutes: Annotated[
        float | None, typer.Option(min=0, help="Stop after this many minutes; run it again to go on.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Start without a GPU even if it takes days.")] = False,
    as_json: AsJson = False,
) -> None:
    """Train the paper's networks, many at once; stop it at any time and run it again to go on."""
    with answering("stopped; run the same command again to go on."):
        from fbeta_reproduction.runner import session

        plan = session.plan(dataset, preset, repeats, epochs, precision, device)
        done = session.run(plan, results, device, at_once, part, minutes, yes)
        if as_json:
            echo_json({"results": str(results), "runs": len(plan), "done": done})
    if not done:
        raise typer.Exit(3)


@app.command("gradients")
def paper_gradients(
    dataset: Annotated[str, typer.Option(help="fashion-mnist, cifar10 or digits.")] = "fashion-mnist",
    repeats: Annotated[int, typer.Option(min=1, help="Repeats of each of the paper's ten losses.")] = 3,
    epochs: Annotated[int, typer.Option(min=1, help="Epochs of each run.")] = 20,
    results: Folder = RESULTS,
    device: Annotated[str, typer.Option(help="cuda, cpu, or auto.")] = "auto",
    as_json: AsJson = False,
) -> None:
    """Train the paper's losses anew and measure the angles between their gradients and soft F_β's on the way."""
    with answering():
        from fbeta_reproduction.runner import session

        path = session.gradients(dataset, repeats, epochs, results, device)
        if as_json:
            echo_json({"written": str(path)})


@app.command("status")
def paper_status(results: Folder = RESULTS, as_json: AsJson = False) -> None:
    """Show which runs are finished, in training or still to do, and what they score."""
    _need(results)
    with answering():
        from fbeta_reproduction import status
        from fbeta_reproduction.protocol import whole_plan

        rows = status.status(results, whole_plan(status.datasets(results)))
        if as_json:
            echo_json(rows)
        else:
            status.show(rows)


@app.command("figures")
def paper_figures(
    results: Folder = RESULTS,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="The folder for the pictures.")] = PICTURES,
    html: Annotated[Path | None, typer.Option(help="Write a page with everything; it works offline.")] = None,
    doc: Annotated[Path | None, typer.Option(help="Write the claims and their verdicts as Markdown.")] = None,
    as_json: AsJson = False,
) -> None:
    """Draw the paper's figures and ours from the result files, and judge its claims by them."""
    _need(results)
    with answering():
        from fbeta_reproduction import figures
        from fbeta_reproduction.results.folder import read
        from fbeta_reproduction.write_up import contents, html_page

        found = read(results)
        written = figures.save(found, out)
        if html is not None:
            html_page.save(found, html, pictures=out)
            written.append(html)
        if doc is not None:
            contents.write(results, doc, pictures=out)
            written.append(doc)
        if as_json:
            echo_json({"written": [str(path) for path in written]})
            return
        typer.echo(contents.terminal(found))
        typer.echo("\nWritten: " + ", ".join(map(str, written)))


def _need(results: Path) -> None:
    if not results.is_dir():
        stop(f"there is no results folder {results}; train some runs first, or give another with --results.")
