"""What the cut decides: test scores at ½ and at the cut that validation rows chose."""

from __future__ import annotations

from typing import Any

from matplotlib.lines import Line2D

from fbeta_reproduction.figures.style import GREY, colour, figure, not_a_number, note, plain, repeats, unfinished
from fbeta_reproduction.naming import dataset_name, loss_name, median, score_name
from fbeta_reproduction.protocol import BETAS
from fbeta_reproduction.results.folder import Results


def draw(results: Results, dataset: str) -> Any:
    """A panel for each score, a row for each loss, two markers on it."""
    groups = results.of(dataset, "faithful", "beside")
    fig = figure(9.8, 1.4 + 0.25 * len(groups))
    panels = fig.subplots(1, len(BETAS), sharey=True, sharex=True)
    for ax, beta in zip(panels, BETAS, strict=True):
        for i, g in enumerate(groups):
            for tuned, offset in ((False, -0.15), (True, 0.15)):
                finals = g.scores("test", beta, tuned=tuned)
                look: dict[str, Any] = {"color": colour(g.run), "zorder": 3}
                ax.plot([min(finals), max(finals)], [i + offset] * 2, lw=1.2, alpha=0.6, color=colour(g.run))
                face = {} if tuned else {"mfc": "white"}
                ax.plot(median(finals), i + offset, "D" if tuned else "o", ms=5, mew=1.3, **face, **look)
        ax.set_title(f"test {score_name(beta)}", fontsize=10, loc="left")
        plain(ax)
        ax.grid(axis="y", visible=False)
        for i in range(0, len(groups), 2):
            ax.axhspan(i - 0.5, i + 0.5, color="0.965", zorder=0, lw=0)
    panels[0].set_yticks(range(len(groups)), [loss_name(g.run) for g in groups], fontsize=9)
    panels[0].set_ylim(len(groups) - 0.5, -0.5)
    panels[0].set(xlim=(-0.03, 1.03), xticks=[0, 0.5, 1], xticklabels=["0", "0.5", "1"])
    handles = [
        Line2D([], [], color=GREY, marker="o", ls="none", mfc="white", ms=5, label="cut ½"),
        Line2D([], [], color=GREY, marker="D", ls="none", ms=5, label="cut of the validation rows"),
    ]
    fig.legend(handles=handles, loc="outside upper right", ncols=2, frameon=False, fontsize=9, borderaxespad=0.1)
    fig.suptitle(
        f"{dataset_name(dataset)} ({repeats(list(groups))}{unfinished(list(groups))})",
        fontsize=10.5,
        fontweight="bold",
        x=0.005,
        ha="left",
    )
    note(fig, not_a_number(list(groups)))
    return fig
