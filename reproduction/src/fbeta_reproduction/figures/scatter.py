"""Figures 3, 4, 6 and 7: the loss of the training split against its score, epoch by epoch."""

from __future__ import annotations

from typing import Any

from matplotlib.lines import Line2D

from fbeta.numerals import fixed
from fbeta_reproduction.figures.style import MARKERS, SHADES, figure, not_a_number, note, plain
from fbeta_reproduction.naming import beta_name, dataset_name, score_name
from fbeta_reproduction.protocol import BETAS
from fbeta_reproduction.results.correlation import pearson
from fbeta_reproduction.results.folder import Results

FAMILIES = {"surrogate": r"Surrogate $F_\beta$ loss", "soft": r"Macro soft $F_\beta$ loss"}


def draw(results: Results, dataset: str, family: str) -> Any:
    """A panel for each score, with the losses of all β in it, from the first repetition."""
    groups = results.family(dataset, family)
    fig = figure(9.6, 7.0, hspace=0.05, wspace=0.03)
    panels = fig.subplots(2, 2, sharex=True)
    for ax, letter, score in zip(panels.flat, "abcd", BETAS, strict=True):
        handles = []
        for g in groups:
            r, beta = g.first, float(g.run.beta or 1.0)
            y, shade = r.score("train", score), SHADES[family][BETAS.index(beta)]
            for hollow, kept in ((True, r.on_plateau), (False, ~r.on_plateau)):
                ax.scatter(
                    r.loss[kept], y[kept], s=17 if not hollow else 26, marker=MARKERS[beta], alpha=0.75,
                    facecolors="none" if hollow else shade, edgecolors=shade if hollow else "none", linewidths=0.9,
                )  # fmt: skip
            look: dict[str, Any] = {"marker": MARKERS[beta], "color": shade, "ls": "none", "ms": 5}
            handles.append(Line2D([], [], label=_label(beta, pearson(r.loss, y)), **look))
        plain(ax)
        ax.set_ylabel(f"{score_name(score)} score", fontsize=9)
        ax.set_title(
            f"({letter}) {FAMILIES[family]} against {score_name(score)}: Pearson’s r", fontsize=10, loc="left", pad=22
        )
        row = {"loc": "lower left", "bbox_to_anchor": (-0.02, 1), "ncols": 4, "borderaxespad": 0.1}
        legend = ax.legend(
            handles=handles, fontsize=8, frameon=False, handletextpad=0, columnspacing=0.7, borderpad=0.2, **row
        )
        for text, g in zip(legend.get_texts(), groups, strict=True):
            if g.run.beta == score:
                text.set_fontweight("bold")
    for ax in panels[1]:
        ax.set_xlabel("loss on the training split", fontsize=9)
    repeat = {g.first.run.repeat for g in groups}
    epochs = max(len(g.first.epochs) for g in groups)
    fig.suptitle(
        f"{dataset_name(dataset)}, repetition {min(repeat) + 1}, {epochs} epochs; hollow: on the plateau",
        fontsize=10.5, fontweight="bold", x=0.005, ha="left",
    )  # fmt: skip
    note(fig, not_a_number(groups))
    return fig


def _label(beta: float, r: float) -> str:
    return f"β={beta_name(beta)}: {fixed(r, 2)}"
