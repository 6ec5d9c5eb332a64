"""The figures of the reproduction: the paper's seven by number, then ours. Listing them needs no matplotlib."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from fbeta.writing import write
from fbeta_reproduction.naming import dataset_name
from fbeta_reproduction.protocol import PAPER
from fbeta_reproduction.results.folder import Results

#: Numbers that the paper gives to (convergence, surrogate scatter, macro soft scatter).
NUMBERS = {"fashion-mnist": (2, 3, 4), "cifar10": (5, 6, 7)}


@dataclass(frozen=True)
class Item:
    """One figure: the file it goes to, what it shows, and the module and arguments that draw it."""

    name: str
    title: str
    caption: str
    module: str
    arguments: tuple[str, ...] = ()

    @property
    def file(self) -> str:
        """The name of its PNG file."""
        return f"{self.name}.png"


def catalogue(results: Results) -> list[Item]:
    """List the figures that there are results for; Figure 1 needs none.

    >>> [item.file for item in catalogue(Results(()))]
    ['figure-1-losses.png']
    """
    return [_LOSSES, *(item for dataset in results.datasets for item in _of(dataset, results)), *_both(results)]


def draw(item: Item, results: Results) -> Any:
    """Draw one figure as a matplotlib figure.

    >>> draw(_LOSSES, Results(())).axes[0].get_xlabel()
    'share of positives missed, $\\\\tilde q_0$'
    """
    return import_module(f"fbeta_reproduction.figures.{item.module}").draw(results, *item.arguments)


def save(results: Results, folder: Path) -> list[Path]:
    """Draw every figure of the catalogue into a folder as PNG files.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     [path.name for path in save(Results(()), Path(folder))]
    ['figure-1-losses.png']
    """
    from fbeta_reproduction.figures.style import png

    paths = []
    for item in catalogue(results):
        paths.append(folder / item.file)
        write(paths[-1], png(draw(item, results)))
    return paths


_LOSSES = Item(
    "figure-1-losses",
    "Figure 1: what each loss makes of the two kinds of error",
    "(a) and (b) as in the paper, β = 1 and p = ½, every curve shifted to start at 0. (c) The second term at "
    "the p of the experiments: with a larger β it rises less, from the start. (d) Why a run falls onto the "
    "plateau: among networks that cannot tell the classes apart the loss is smallest for the one that calls "
    "everything positive, whatever the β.",
    "loss_curves",
)


def _of(dataset: str, results: Results) -> Iterator[Item]:
    name = dataset_name(dataset)
    numbers = NUMBERS.get(dataset)
    files = [f"figure-{n}-" if numbers else "" for n in numbers or (0, 0, 0)]
    titles = [f"Figure {n}: " if numbers else "" for n in numbers or (0, 0, 0)]
    here = (dataset,)
    if results.main(dataset):
        yield Item(
            f"{files[0]}convergence-{dataset}",
            f"{titles[0]}convergence on {name}",
            "At the cut ½. Thick lines: medians of the repeats, as in the paper; thin lines: every run. The "
            "paper draws all losses in one panel and leaves the BCE out on Fashion-MNIST; the right column "
            "is not in the paper.",
            "convergence",
            here,
        )
    for i, family, words in ((1, "surrogate", "surrogate"), (2, "soft", "macro soft")):
        if results.family(dataset, family):
            yield Item(
                f"{files[i]}{family}-{dataset}",
                f"{titles[i]}{words} F_β loss against F_β score on {name}",
                "Training split after each epoch of the first repetition; a panel for each score, a marker "
                "for each β of the loss. Hollow: epochs on the plateau. Bold: the loss with the β of the "
                "score.",
                "scatter",
                (dataset, family),
            )
    if results.main(dataset):
        yield Item(
            f"correlation-{dataset}",
            f"Loss against score on {name}, all repeats",
            "Medians of the repeats that left the plateau. −1: the loss falls exactly as the score rises. "
            "Frames: loss and score have the same β. Steps are the changes from one epoch to the next.",
            "correlation_map",
            here,
        )
        yield Item(
            f"share-{dataset}",
            f"Share predicted positive on {name}",
            "Training split at the cut ½, a line for each run; n in the order of the legend. The dotted line "
            "is the true share; the top edge is the plateau.",
            "positive_share",
            here,
        )
        yield Item(
            f"cuts-{dataset}",
            f"Cut at ½ against the cut of the validation rows on {name}",
            "Test scores, means of the last five epochs; markers are medians of the repeats, lines reach "
            "from lowest to highest.",
            "tuned_cuts",
            here,
        )


def _both(results: Results) -> Iterator[Item]:
    there = [d for d in results.datasets if results.family(d, "surrogate")]
    if there:
        known = [d for d in PAPER if d in there] or there
        yield Item(
            "survival",
            "How long runs stay on the plateau",
            "Share of runs that still call more than 99 % of the training split positive (Kaplan and Meier; "
            "bands: 95 % intervals of the surrogate; n in the order of the legend). A run leaves with the "
            "first of three epochs in a row off the plateau; runs that never were on it leave at epoch 1. A line "
            "ends where none of the runs still on it was trained further.",
            "plateau_survival",
            tuple(known),
        )
