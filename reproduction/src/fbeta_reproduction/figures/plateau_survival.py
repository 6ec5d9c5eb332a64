"""Survival on the plateau: share of runs that still call everything positive, by epoch."""

from __future__ import annotations

from typing import Any

import numpy as np

from fbeta_reproduction.figures.positive_share import by_beta, legend
from fbeta_reproduction.figures.style import COLOURS, counted, figure, not_a_number, note, plain, ticks
from fbeta_reproduction.naming import dataset_name
from fbeta_reproduction.results.folder import Repeats, Results
from fbeta_reproduction.results.survival import staying


def draw(results: Results, *datasets: str) -> Any:
    """A row for each data set, a panel for each β; steps, with a 95 % band for the surrogate."""
    fig = figure(9.8, 0.5 + 2.35 * len(datasets))
    table = fig.subplots(len(datasets), 5, sharey=True, sharex="row", squeeze=False)
    for dataset, axes in zip(datasets, table, strict=True):
        panels = by_beta(results, dataset)
        longest = max(g.run.epochs for _, found in panels for g in found)
        for ax, (title, found) in zip(axes, panels, strict=True):
            for g in found:
                _steps(ax, g)
            ax.set(xlim=(0, longest), xticks=ticks(longest), ylim=(-0.02, 1.02))
            if dataset == datasets[0]:
                ax.set_title(title, fontsize=10, loc="left")
            counted(ax, (len(g.everyone) for g in found))
            plain(ax)
        axes[0].set_ylabel(f"{dataset_name(dataset)}\nshare on the plateau", fontsize=9)
    legend(fig, panels)
    note(fig, not_a_number([g for dataset in datasets for g in results.main(dataset)]))
    for ax in table[-1]:
        ax.set_xlabel("epoch", fontsize=9)
    return fig


def _steps(ax: Any, g: Repeats) -> None:
    s = staying(g.everyone)
    if not len(s.epochs):  # NaN from the start
        return
    # A step holds from its epoch to the next.
    x = np.append(s.epochs, s.epochs[-1] + 1)
    share, low, high = (np.append(v, v[-1]) for v in (s.share, s.low, s.high))
    if g.run.loss == "surrogate":  # one band per panel: three would hide each other
        ax.fill_between(x, low, high, step="post", color=COLOURS[g.run.loss], alpha=0.18, lw=0)
    ax.step(x, share, where="post", color=COLOURS[g.run.loss], lw=1.7)
