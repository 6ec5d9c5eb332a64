"""Figure 1 of the paper, from the package's own geometry: no run is needed."""

from __future__ import annotations

from typing import Any

import numpy as np

from fbeta.metrics import FBeta
from fbeta.report.explain import explain
from fbeta.report.explain.charts import Curve, figure_1, term
from fbeta_reproduction.figures.style import COLOURS, LINES, above, beta_handles, figure, plain
from fbeta_reproduction.protocol import BETAS
from fbeta_reproduction.results.folder import Results

ROLES = {"bce": COLOURS["balanced-bce"], "mae": COLOURS["balanced-mae"], "own": COLOURS["surrogate"]}
P = 0.1


def draw(_: Results) -> Any:
    """The paper's two panels, the second at p = 0.1 for every β, and the loss of a constant network."""
    fig = figure(9.6, 6.8, hspace=0.06, wspace=0.04)
    (a, b), (c, d) = fig.subplots(2, 2)
    missed, flagged = figure_1(explain("fbeta:beta=1", prevalence=0.5))
    for ax, letter, what, curves in (
        (a, "a", "First term: missed positives", missed),
        (b, "b", "Second term: false alarms, β = 1, p = ½", flagged),
    ):
        _curves(ax, curves)
        _title(ax, letter, what)
    a.set(xlabel=r"share of positives missed, $\tilde q_0$", ylabel="loss (0 at q = 0)")
    b.set(xlabel=r"share of negatives flagged, $\tilde q_1$")
    q, s = np.linspace(0, 1, 201), np.linspace(0.02, 1, 200)
    for beta in BETAS:
        pole = FBeta(beta).anchors(P).negative
        look: dict[str, Any] = {"color": COLOURS["surrogate"], "ls": LINES[beta], "lw": 1.8}
        c.plot(q, term(pole, q, positive=False), **look)
        # −log s + log(a + s): both classes get the same probability s.
        constant = np.log(s - pole) - np.log(s)
        d.plot(s, constant - constant[-1], **look)
    _title(c, "c", f"Second term of the surrogate, p = {P:g}")
    c.set(xlabel=r"share of negatives flagged, $\tilde q_1$", ylabel="loss (0 at q = 0)", xlim=(0, 1))
    _title(d, "d", f"Surrogate of one output s for all rows, p = {P:g}")
    d.set(xlabel="output s for every row", ylabel="loss above that at s = 1", xlim=(0, 1), ylim=(0, 3))
    d.annotate(
        "all positive", (1, 0), (0.8, 0.9), fontsize=8.5, ha="center", arrowprops={"arrowstyle": "->", "color": "0.35"}
    )
    for ax in (c, d):
        above(ax, beta_handles())
        ax.set_ylim(bottom=0)
    for ax in (a, b, c, d):
        plain(ax)
        ax.xaxis.label.set_size(9)
        ax.yaxis.label.set_size(9)
    return fig


def _curves(ax: Any, curves: list[Curve]) -> None:
    handles = []
    for curve in curves:
        if curve.role in ROLES:
            width = 4.2 if curve.role == "bce" else 1.9  # wide: the surrogate's first term lies on it
            handles += ax.plot(curve.x, curve.y, color=ROLES[curve.role], lw=width, label=curve.label)
    ax.set(xlim=(0, 1), ylim=(0, 3))
    above(ax, handles, handlelength=1.2)


def _title(ax: Any, letter: str, text: str) -> None:
    ax.set_title(f"({letter}) {text}", fontsize=10, loc="left", pad=21)
