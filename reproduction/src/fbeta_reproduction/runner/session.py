"""`fbeta paper run` and `gradients`: a guess of the time before anything starts, and a bar while it runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from rich.console import Console

from fbeta import data
from fbeta.learners.machine import device_of
from fbeta.report.console import bar
from fbeta_reproduction import protocol
from fbeta_reproduction.engine.image_stack import PRECISIONS
from fbeta_reproduction.images.binary_images import BinaryImages
from fbeta_reproduction.protocol import PROTOCOL, Run
from fbeta_reproduction.records.ledger import NotHeldError, check, read, shard
from fbeta_reproduction.results.gradients import save
from fbeta_reproduction.runner.capacity import seconds_per_epoch
from fbeta_reproduction.runner.execution import execute
from fbeta_reproduction.runner.gradient_paths import follow
from fbeta_reproduction.runner.run_stack import machine_of

#: Seconds; a longer guess needs --yes.
LONG = 1800.0


def plan(
    datasets: Sequence[str] | None,
    presets: Sequence[str] | None,
    repeats: int | None,
    epochs: int | None,
    precision: str | None,
    device: str,
) -> list[Run]:
    """The runs of some presets, in the precision that suits the device.

    >>> {run.precision for run in plan(["cifar10"], None, 1, None, None, "cpu")}
    {'fp32'}
    """
    if precision not in (None, *PRECISIONS):
        raise ValueError(f"precision must be one of {', '.join(PRECISIONS)}; got {precision!r}.")
    if device_of(device).type == "cpu":
        precision = "fp32"  # numbers of 16 bits save memory traffic on a GPU, and nothing here
    return protocol.plan(datasets, presets, repeats, epochs, precision)


def run(runs: list[Run], results: Path, device: str, at_once: int, part: str, minutes: float | None, yes: bool) -> bool:
    """Train a plan, or a part of it, with a progress bar; True if it is done."""
    chosen = set(shard([run.id for run in runs], part))
    runs = [run for run in runs if run.id in chosen]
    on = device_of(device)
    for dataset in sorted({run.dataset for run in runs}):
        data.path(dataset)  # says how to fetch what is missing, now rather than after the first data set
    if on.type == "cpu" and not yes:
        _warn_of_days(runs, results, on)
    check(results, PROTOCOL)  # before a bar is drawn
    console = Console(stderr=True, highlight=False, markup=False, soft_wrap=True)
    with bar("epochs", console) as shown:
        task = shown.add_task(f"{len(runs)} runs", total=sum(run.epochs for run in runs))
        try:
            done = execute(
                runs,
                results,
                on,
                at_once=at_once,
                limit=None if minutes is None else 60 * minutes,
                say=console.print,
                tick=lambda epochs: shown.advance(task, epochs),
            )
        except NotHeldError as error:
            raise ValueError(f"{error} Start again to go on with what is left.") from error
        except OSError as error:
            raise ValueError(f"cannot keep results in {results} ({error}).") from error
    console.print(f"Results: {results}. See `fbeta paper status` and `fbeta paper figures`.")
    return done


def gradients(dataset: str, repeats: int, epochs: int, results: Path, device: str) -> Path:
    """Train the paper's losses on a data set and write down where their gradients point; the result is the file."""
    on = device_of(device)
    runs = plan([dataset], None, repeats, epochs, None, device)
    data.path(dataset)
    check(results, PROTOCOL)
    images = BinaryImages.load(dataset)
    console = Console(stderr=True, highlight=False, markup=False, soft_wrap=True)
    with bar("epochs", console) as shown:
        task = shown.add_task(f"{len(runs)} runs", total=sum(run.epochs for run in runs))
        points = follow(runs, images, on, tick=lambda epochs: shown.advance(task, epochs))
    return save(results, dataset, epochs, machine_of(on) | {"runs at once": len(runs)}, points)


def _warn_of_days(runs: list[Run], results: Path, device: torch.device) -> None:
    """Refuse to start what takes long; a run that was stopped counts in full."""
    left = [run for run in runs if not _done(run, results)]
    guess = 0.0
    for dataset, stem in sorted({(run.dataset, run.stem) for run in left}):
        mine = [run for run in left if (run.dataset, run.stem) == (dataset, stem)]
        guess += seconds_per_epoch(mine[0], BinaryImages.load(dataset), device) * sum(run.epochs for run in mine)
    if guess > LONG:
        raise ValueError(
            f"without a GPU these {len(left)} runs take about {_span(guess)} here (a step of each network was "
            "timed). Choose fewer with --dataset, --repeats and --epochs (--dataset digits --epochs 3 needs a "
            "minute), or add --yes to start."
        )


def _done(run: Run, results: Path) -> bool:
    path = results / f"{run.id}.csv"
    return path.exists() and read(path).epochs >= run.epochs


def _span(seconds: float) -> str:
    for unit, length in (("days", 86400.0), ("hours", 3600.0)):
        if seconds > 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds / 60:.0f} minutes"
