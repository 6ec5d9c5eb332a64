"""Share predicted positive by epoch: who is on the plateau, run by run."""

from __future__ import annotations

from typing import Any

from fbeta_reproduction.figures.style import (
    COLOURS,
    counted,
    family_handles,
    figure,
    not_a_number,
    note,
    plain,
    ticks,
    unfinished,
)
from fbeta_reproduction.naming import LOSS_NAMES, beta_name, dataset_name
from fbeta_reproduction.protocol import BETAS
from fbeta_reproduction.results.folder import Repeats, Results

#: Families with a β, and those without.
WITH = ("surrogate", "soft", "tangent")
WITHOUT = ("balanced-bce", "balanced-mae", "bce")


def by_beta(results: Results, dataset: str) -> list[tuple[str, list[Repeats]]]:
    """Five panels: the losses of each β, and those that have none."""
    panels = [(f"β = {beta_name(b)}", [results.find(dataset, loss, b) for loss in WITH]) for b in BETAS]
    panels.append(("without β", [results.find(dataset, loss) for loss in WITHOUT]))
    return [(title, [g for g in groups if g is not None]) for title, groups in panels]


def legend(fig: Any, panels: list[tuple[str, list[Repeats]]], text: str = "") -> None:
    """Which colour is which family, in a row over all panels."""
    there = {g.run.loss for _, groups in panels for g in groups}
    found = {k: LOSS_NAMES[k] for k in (*WITH, *WITHOUT) if k in there}
    look = {"frameon": False, "fontsize": 8.5, "handlelength": 1.6, "columnspacing": 1.2, "borderaxespad": 0.1}
    fig.legend(handles=family_handles(found), loc="outside upper right", ncols=6, **look)
    fig.suptitle(text, fontsize=10.5, fontweight="bold", x=0.005, ha="left")


def draw(results: Results, dataset: str) -> Any:
    """A line for each run of the paper's losses, and of those beside them."""
    panels = by_beta(results, dataset)
    fig = figure(9.8, 2.9)
    axes = fig.subplots(1, len(panels), sharey=True)
    groups = [g for _, found in panels for g in found]
    longest = max(g.run.epochs for g in groups)
    rows, positives = groups[0].results[0].counts["train"]
    for ax, (title, found) in zip(axes, panels, strict=True):
        for g in found:
            for r in g.results:
                ax.plot(r.epochs, r.share("train"), color=COLOURS[g.run.loss], lw=1.1, alpha=0.8)
        ax.axhline(positives / rows, color="0.3", lw=1.0, ls=(0, (1, 2)))
        ax.set_title(title, fontsize=10, loc="left")
        ax.set_xlabel("epoch", fontsize=9)
        ax.set(xlim=(0, longest), xticks=ticks(longest), ylim=(0, 1.03))
        counted(ax, (len(g.results) for g in found))
        plain(ax)
    axes[0].set_ylabel("share predicted positive", fontsize=9)
    legend(fig, panels, dataset_name(dataset) + unfinished(groups))
    note(fig, not_a_number(groups))
    return fig
