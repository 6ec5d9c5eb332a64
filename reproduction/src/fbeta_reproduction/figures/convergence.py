"""Figures 2 and 5: training F₁, validation F₁ and test accuracy by epoch, medians of the repeats."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fbeta_reproduction.figures.style import (
    GREY,
    above,
    beta_handles,
    colour,
    family_handles,
    figure,
    line,
    not_a_number,
    note,
    plain,
    repeats,
    ticks,
    unfinished,
)
from fbeta_reproduction.naming import dataset_name
from fbeta_reproduction.results.folder import Repeats, Results
from fbeta_reproduction.results.run_result import Array, RunResult

MEASURES: list[tuple[str, Callable[[RunResult], Array]]] = [
    ("(a) F₁ on training set", lambda r: r.score("train", 1.0)),
    ("(b) F₁ on validation set", lambda r: r.score("val", 1.0)),
    ("(c) accuracy on test set", lambda r: r.accuracy("test")),
]
COLUMNS = {
    r"surrogate $F_\beta$": ("surrogate",),
    r"macro soft $F_\beta$": ("soft",),
    "balanced BCE, MAE": ("balanced-bce", "balanced-mae"),
    "not in the paper": ("bce", "tangent"),
}
LEGENDS = {
    "balanced BCE, MAE": {"balanced-bce": "balanced BCE", "balanced-mae": "balanced MAE"},
    "not in the paper": {"bce": "plain BCE", "tangent": r"tangent $F_\beta$"},
}


def draw(results: Results, dataset: str) -> Any:
    """Three rows of panels, a column for each family; all panels of a row have one axis."""
    columns = {
        title: [g for loss in losses for g in results.family(dataset, loss)] for title, losses in COLUMNS.items()
    }
    columns = {title: groups for title, groups in columns.items() if groups}
    everything = [g for groups in columns.values() for g in groups]
    fig = figure(2.4 * len(columns) + 0.4, 7.0)
    panels = fig.subplots(3, len(columns), sharex=True, sharey="row", squeeze=False)
    some = everything[0].results[0]
    levels = [("all positive", some.trivial("train")), ("all positive", some.trivial("val")), _base(some)]
    for (measure, values), (what, level), row in zip(MEASURES, levels, panels, strict=True):
        for ax, groups in zip(row, columns.values(), strict=True):
            for g in groups:
                _curves(ax, g, values)
            ax.axhline(level, color="0.3", lw=1.0, ls=(0, (1, 2)), zorder=1)
            plain(ax)
        row[0].set_ylabel(measure, fontsize=9.5)
        row[0].set_ylim(0, 1)
        row[-1].text(
            0.98, 0.03, f"dotted: {what}, {level:.3g}", transform=row[-1].transAxes, fontsize=8, color=GREY, ha="right"
        )
    for ax, (title, groups) in zip(panels[0], columns.items(), strict=True):
        ax.set_title(title, fontsize=10, loc="left", pad=34, fontweight="bold")
        handles = family_handles(LEGENDS[title]) if title in LEGENDS else beta_handles()
        above(ax, handles, ncols=2)
        ax.annotate(
            repeats(groups), (1, 1), xytext=(0, 36), xycoords="axes fraction", textcoords="offset points",
            fontsize=8, color="0.35", ha="right",
        )  # fmt: skip
    longest = max(g.run.epochs for g in everything)
    for ax in panels[2]:
        ax.set_xlabel("epoch", fontsize=9)
        ax.set(xlim=(0, longest), xticks=ticks(longest))
    fig.suptitle(dataset_name(dataset) + unfinished(everything), fontsize=11.5, fontweight="bold", x=0.005, ha="left")
    note(fig, not_a_number(everything))
    return fig


def _curves(ax: Any, g: Repeats, values: Callable[[RunResult], Array]) -> None:
    for r in g.results:
        ax.plot(r.epochs, values(r), color=colour(g.run), lw=0.5, alpha=0.4)
    epochs, (_, middle, _) = g.quantiles(values)
    ax.plot(epochs, middle, color=colour(g.run), ls=line(g.run), lw=1.8)


def _base(r: RunResult) -> tuple[str, float]:
    return "all negative", r.base_rate()
