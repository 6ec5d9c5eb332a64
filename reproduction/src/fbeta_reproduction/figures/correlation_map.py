"""Loss against score in numbers: every loss, every score, three readings of 'correlated'."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.patches import Rectangle

from fbeta.numerals import fixed
from fbeta_reproduction.figures.style import colour, figure, not_a_number, note, unfinished
from fbeta_reproduction.naming import dataset_name, loss_name, median, score_name
from fbeta_reproduction.protocol import BETAS
from fbeta_reproduction.results.correlation import CORRELATIONS, table
from fbeta_reproduction.results.folder import Results


def draw(results: Results, dataset: str) -> Any:
    """A square for each loss and score, dark where the loss falls as the score rises."""
    groups = results.of(dataset, "faithful", "beside")
    fig = figure(9.6, 1.3 + 0.29 * len(groups))
    panels = fig.subplots(1, len(CORRELATIONS), sharey=True)
    for ax, name in zip(panels, CORRELATIONS, strict=True):
        values = np.array([[median(cell) for cell in table(g, name)] for g in groups])
        # Shaded by r², the share of the variance that a line explains: 0.9 and 1 look different.
        ax.imshow(np.sign(values) * values**2, cmap="RdBu_r", vmin=-1.2, vmax=1.2, aspect="auto")
        for (i, j), r in np.ndenumerate(values):
            dark = abs(r) > 0.85
            ax.text(j, i, fixed(r, 2), ha="center", va="center", fontsize=8.5, color="white" if dark else "black")
            if groups[i].run.beta == BETAS[j]:
                box = Rectangle((j - 0.46, i - 0.44), 0.92, 0.88, fill=False, ec="black", lw=1.6)
                ax.add_patch(box)
        ax.set_xticks(range(len(BETAS)), [score_name(b) for b in BETAS], fontsize=9)
        ax.tick_params(length=0, top=False)
        ax.set_title(name, fontsize=10)
        ax.spines[:].set_visible(False)
    labels = [f"{loss_name(g.run)}  ({g.left}/{len(g.results)})" for g in groups]
    panels[0].set_yticks(range(len(groups)), labels, fontsize=9)
    for tick, g in zip(panels[0].get_yticklabels(), groups, strict=True):
        tick.set_color(colour(g.run))
    name = dataset_name(dataset) + unfinished(list(groups))
    words = f"{name}: training loss against training score (runs that left the plateau / runs)"
    fig.suptitle(words, fontsize=10.5, fontweight="bold", x=0.005, ha="left")
    note(fig, not_a_number(list(groups)))
    return fig
