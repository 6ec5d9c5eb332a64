"""Charts as a PNG: one large, others small beside it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

try:
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
except ImportError as error:
    raise ImportError("A picture needs matplotlib: pip install 'fbeta[plot]'") from error

import numpy as np

from fbeta.report.chart import Chart, Key
from fbeta.writing import replacing

#: Okabe and Ito's palette, told apart by every kind of colour vision: the colours of the page in its light theme.
BLUE, VERMILION, ORANGE = "#0072B2", "#D55E00", "#E69F00"
COLOURS = {"c0": "0.65", "c1": BLUE, "c2": VERMILION, "c5": ORANGE, "level": "0.45", "pole": "black"}
WIDTHS = {"slim": 1.3, "thin": 1.2, "wide": 4.0, "best": 2.8, "level": 0.9}
SHAPES = "osD^"
STRONG = {"weight": "bold", "size": 10}
FAINT = {"size": 9, "color": "0.3", "bbox": {"fc": "white", "ec": "none", "pad": 0.6, "alpha": 0.85}}


def draw(title: str, large: Chart, small: Sequence[Chart]) -> Figure:
    """Draw charts, the small ones above one another to the left of the large one."""
    figure = Figure(figsize=(10.5, 6.2), dpi=120, layout="constrained")
    figure.suptitle(_literal(title), fontweight="bold", fontsize=13)
    grid = figure.add_gridspec(len(small), 2, width_ratios=[1, 1.62])
    for i, chart in enumerate(small):
        _fill(figure.add_subplot(grid[i, 0]), chart)
    _fill(figure.add_subplot(grid[:, 1]), large)
    return figure


def save(figure: Figure, path: Path) -> None:
    """Write a picture, whole or not at all; the same picture is the same file."""
    with replacing(path) as part, part.open("wb") as file:
        figure.savefig(file, format="png", metadata={"Software": None}, pil_kwargs={"optimize": True})


def _fill(ax: Any, chart: Chart) -> None:
    labelled = any("mid" in label.look for label in chart.labels)  # there the legend is above the labels
    ax.set_title(_literal(chart.label), fontsize=11, loc="left", pad=36 if labelled else 24)
    ax.set(xlim=chart.x, ylim=chart.y, xlabel=chart.xlabel, ylabel=chart.ylabel)
    ax.spines[["top", "right"]].set_visible(False)
    if chart.surface:
        scores = np.array(chart.surface)
        low, high = np.nanmin(scores), np.nanmax(scores)
        shade = {"vmin": low, "vmax": low + 2.4 * (high - low or 1.0), "cmap": "Greys"}
        place: dict[str, Any] = {"origin": "lower", "extent": (0, 1, 0, 1), "aspect": "auto", "zorder": 0}
        ax.imshow(scores, interpolation="bilinear", **place, **shade)
        ax.set(xlim=chart.x, ylim=chart.y)
    for line in chart.lines:
        ax.plot(*zip(*line.points, strict=True), **_line_style(line.look))
    for mark in chart.marks:
        ax.plot(*mark.at, ms=2 * mark.r, zorder=6, clip_on=False, **_mark_style(mark.look, mark.shape))
    for label in chart.labels:
        side = "center" if "mid" in label.look else "right" if "end" in label.look else "left"
        style = STRONG if "strong" in label.look else FAINT
        offset = {"xytext": (label.right, -label.down), "textcoords": "offset points"}
        ax.annotate(label.text, label.at, ha=side, zorder=7, **offset, **style)
    above = {"loc": "lower left", "bbox_to_anchor": (0, 1.03 if labelled else 1), "borderaxespad": 0.2}
    tight = {"handlelength": 1.1, "handletextpad": 0.5, "columnspacing": 1.2, "borderpad": 0.2, "ncols": 5}
    ax.legend(handles=[_sample(key) for key in chart.legend], fontsize=8.5, frameon=False, **above, **tight)


def _sample(key: Key) -> Line2D:
    mark = _mark_style(key.mark, key.shape) | {"ms": 7} if key.mark else {}
    return Line2D([], [], **{"lw": 0} | mark | (_line_style(key.line) if key.line else {}), label=key.label)


def _line_style(look: str) -> dict[str, Any]:
    width = next((WIDTHS[word] for word in look.split() if word in WIDTHS), 2.0)
    dash = (0, (1, 2)) if "dotted" in look else "-"
    return {"color": _colour(look), "lw": width, "ls": dash, "zorder": 1 if "level" in look else 3}


def _mark_style(look: str, shape: int) -> dict[str, Any]:
    return {"color": _colour(look), "marker": SHAPES[shape], "mec": "white", "mew": 1.2}


def _colour(look: str) -> str:
    return next(COLOURS[word] for word in look.split() if word in COLOURS)


def _literal(text: str, most: int = 60) -> str:
    """A user's string as it is: no mathematics between dollars, no line longer than the picture."""
    short = text if len(text) <= most else text[: most - 1] + "…"
    return short.replace("$", r"\$")
