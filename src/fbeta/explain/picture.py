"""An explanation as a PNG: the paper's Figure 1 on the left, ROC space on the right."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

try:
    from matplotlib.figure import Figure
except ImportError as error:
    raise ImportError("A picture needs matplotlib: pip install 'fbeta[plot]'") from error

from fbeta.explain import Explanation
from fbeta.explain.shapes import (
    BLUE,
    ORANGE,
    VERMILION,
    Curve,
    Level,
    exits,
    figure_1,
    is_near,
    levels,
    roc,
    surface,
    title,
    top_of,
    view,
)
from fbeta.explain.words import number
from fbeta.writing import replacing

COLOURS = {"bce": BLUE, "mae": ORANGE, "own": VERMILION, "sibling": "0.72"}


def save(e: Explanation, path: Path) -> None:
    """Draw an explanation into a PNG file, without a display.

    >>> import tempfile
    >>> from fbeta.explain import explain
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(explain("mcc", prevalence=0.1), Path(folder, "mcc.png"))
    ...     Path(folder, "mcc.png").read_bytes()[1:4]
    b'PNG'
    """
    with (
        replacing(path) as part,
        part.open("wb") as file,
    ):  # first: nobody waits for a picture that cannot be written
        # No version inside: the same picture is the same file.
        draw(e).savefig(file, format="png", metadata={"Software": None}, pil_kwargs={"optimize": True})


def draw(e: Explanation) -> Figure:
    """Draw an explanation.

    >>> from fbeta.explain import explain
    >>> len(draw(explain("fbeta:beta=2", prevalence=0.1)).axes)
    3
    """
    figure = Figure(figsize=(10.5, 6.2), dpi=120, layout="constrained")
    axes = figure.subplot_mosaic("ac;bc", width_ratios=[1, 1.62])
    figure.suptitle(f"{_literal(e.spec)} at prevalence {e.prevalence:g}", fontweight="bold", fontsize=13)
    panels = figure_1(e)
    words = "What missed positives cost", "What false alarms cost"
    rates = r"share of positives missed, $\tilde q_0$", r"share of negatives flagged, $\tilde q_1$"
    for key, curves, what, rate in zip("ab", panels, words, rates, strict=True):
        _losses(axes[key], curves, top_of(panels))
        axes[key].set_title(f"({key}) {what}", fontsize=11, loc="left", pad=24)
        axes[key].set(xlabel=rate, ylabel="loss (0 at q = 0)")
    _space(axes["c"], e)
    axes["c"].set_title(f"(c) {title(e)}", fontsize=11, loc="left", pad=22)
    return figure


def _losses(ax: Any, curves: list[Curve], top: float) -> None:
    widths = {"bce": 4.0, "mae": 2.2, "own": 2.0, "sibling": 1.2}
    for c in curves:
        named = {"label": c.label} if c.role != "sibling" else {}
        order = {"sibling": 1, "bce": 2, "mae": 3, "own": 4}[c.role]
        ax.plot(c.x, c.y, color=COLOURS[c.role], lw=widths[c.role], zorder=order, **named)
        at = c.x[c.y <= top][-1], c.y[c.y <= top][-1]
        if c.role == "sibling" and at[0] > 0.15:
            over = {"xytext": (5, -9), "ha": "left"} if at[0] < 0.99 else {"xytext": (4, 0), "va": "center"}
            ax.annotate(c.label, at, textcoords="offset points", fontsize=8, color="0.45", **over)
    if not any(c.role == "own" for c in curves):
        ax.text(
            0.03, 0.9, "no loss trains for this metric", transform=ax.transAxes, fontsize=9, style="italic"
        )
    ax.set(xlim=(0, 1), ylim=(0, top), xticks=[0, 0.5, 1])
    ax.spines[["top", "right"]].set_visible(False)
    row = {"loc": "lower left", "bbox_to_anchor": (0, 1), "ncols": 3, "borderaxespad": 0.2, "borderpad": 0.2}
    ax.legend(fontsize=8.5, frameon=False, handlelength=1.1, handletextpad=0.5, columnspacing=1.2, **row)


def _space(ax: Any, e: Explanation) -> None:
    grid = np.linspace(0, 1, 200)
    u, t = np.meshgrid(grid, grid)
    score = surface(e.metric, u, t, e.prevalence)
    low, high = np.nanmin(score), np.nanmax(score)
    shade = {"vmin": low, "vmax": low + 2.4 * (high - low or 1.0)}
    ax.pcolormesh(u, t, score, cmap="Greys", shading="gouraud", zorder=0, **shade)
    lines = levels(e)
    for line in lines:
        ax.plot(line.x, line.y, color="0.45", lw=0.9, zorder=1)
    _label_levels(ax, lines)
    left, right, bottom, top = view(e)
    if e.pole is not None:
        _pole(ax, e.pole, lines, inside=is_near(e.pole))
    for p, width in zip(e.populations, (1.3, 2.0, 2.8), strict=True):
        ax.plot(*roc(p.separation), color=BLUE, lw=width, zorder=3, label=f"AUC {p.auc:.2f}")
        style: dict[str, Any] = {"zorder": 6, "clip_on": False, "mec": "white", "mew": 1.2}
        ax.plot(p.half.fpr, p.half.tpr, "o", ms=11, color=ORANGE, **style)
        ax.plot(p.best.fpr, p.best.tpr, "D", ms=8, color=VERMILION, **style)
    ax.plot([], [], "D", ms=8, color=VERMILION, label="best cut")
    ax.plot([], [], "o", ms=8, color=ORANGE, label="cut at ½")
    # Inside the square, clear of the scores at its right edge; below it where the pole left room there.
    corner = (ax.transData, (0.985, 0.015)) if bottom > -0.3 else (ax.transAxes, (1.0, 0.02))
    ax.legend(
        loc="lower right",
        fontsize=9,
        framealpha=0.95,
        edgecolor="0.8",
        borderaxespad=0,
        bbox_transform=corner[0],
        bbox_to_anchor=corner[1],
    )
    ax.set(xlim=(left, right), ylim=(bottom, top), xticks=[0, 0.5, 1], yticks=[0, 0.5, 1])
    ax.set_xlabel("false positive rate u", x=(0.5 - left) / (right - left))
    ax.set_ylabel("true positive rate t", y=(0.5 - bottom) / (top - bottom))
    ax.spines[["left", "bottom"]].set_bounds(0, 1)
    ax.spines[["top", "right"]].set_visible(False)


def _pole(ax: Any, pole: tuple[float, float], lines: list[Level], *, inside: bool) -> None:
    x, y = pole
    where = f"pole ({number(x, 3)}, {number(y, 3)})"
    if not inside:
        note = {"ha": "left", "va": "bottom", "fontsize": 9, "zorder": 7}
        ax.text(
            0.03, 0.03, f"{where}, outside the picture", bbox={"fc": "white", "ec": "none", "pad": 2}, **note
        )
        return
    for line in lines:
        end = 0 if x <= 0 else -1
        ax.plot([x, line.x[end]], [y, line.y[end]], color="0.55", lw=0.9, ls=(0, (1, 2)), zorder=1)
    ax.plot(x, y, "o", color="black", ms=8, zorder=7, clip_on=False)
    side = {"xytext": (-4, -18), "ha": "left"} if x <= 0.5 else {"xytext": (4, 10), "ha": "right"}
    ax.annotate(where, pole, textcoords="offset points", fontweight="bold", fontsize=10, **side)


def _label_levels(ax: Any, lines: list[Level]) -> None:
    """Write scores where their lines leave the square; the one with most room says what the number is."""
    over, beside = exits(lines)
    widest = max(
        (x for x, _ in over), key=lambda x: min((abs(x - o) for o, _ in over if o != x), default=1), default=0
    )
    plain = {"textcoords": "offset points", "fontsize": 9, "color": "0.3", "zorder": 2}
    plain["bbox"] = {"fc": "white", "ec": "none", "pad": 0.6, "alpha": 0.85}
    for at, line in over:
        text = ("score " if at == widest else "") + number(line.score, 3)
        ax.annotate(text, (at, 1), xytext=(0, 5), ha="center", **plain)
    for at, line in beside:
        ax.annotate(number(line.score, 3), (line.x[-1], at), xytext=(5, 0), va="center", **plain)


def _literal(text: str, most: int = 60) -> str:
    """A user's string as it is: no mathematics between dollars, no line longer than the picture."""
    short = text if len(text) <= most else text[: most - 1] + "…"
    return short.replace("$", r"\$")
