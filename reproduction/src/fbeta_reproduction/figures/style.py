"""One look for all figures: a colour for each family of losses, a line and a marker for each β."""

from __future__ import annotations

import io
from collections.abc import Iterable
from typing import Any

try:
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from PIL import Image
except ImportError as error:
    raise ImportError("Figures need matplotlib: pip install 'fbeta[plot]'") from error

from fbeta.report.png import BLUE, ORANGE, VERMILION
from fbeta_reproduction.naming import beta_name, dataset_name, loss_name
from fbeta_reproduction.protocol import BETAS, Run
from fbeta_reproduction.results.folder import Repeats

#: Okabe and Ito's palette; BCE, MAE and surrogate as in `fbeta explain`.
COLOURS = {
    "surrogate": VERMILION,
    "soft": "#009E73",
    "balanced-bce": BLUE,
    "balanced-mae": ORANGE,
    "bce": "#56B4E9",
    "tangent": "#CC79A7",
}
LINES: dict[float, Any] = {0.5: (0, (1, 1.1)), 1.0: "-", 2.0: (0, (5, 1.6)), 3.0: (0, (5, 1.2, 1, 1.2))}
MARKERS = {0.5: "o", 1.0: "s", 2.0: "^", 3.0: "D"}
#: Light to dark within a family, where only β tells series apart.
SHADES: dict[str, tuple[str, ...]] = {
    "surrogate": ("#F4A582", "#E8743B", "#B03A06", "#5E1B00"),
    "soft": ("#7FD6B8", "#22A87F", "#00704F", "#00382A"),
}
GREY = "0.35"


def colour(run: Run) -> str:
    """The colour of a run's family; black for a reading of the text."""
    return COLOURS.get(run.loss, "black")


def line(run: Run) -> Any:
    """The line style of a run's β; solid without one."""
    return LINES.get(run.beta if run.beta is not None else 1.0, "-")


def figure(width: float, height: float, **gaps: float) -> Figure:
    """An empty figure, in inches of a page about ten wide; `hspace` and `wspace` lie between its panels."""
    fig = Figure(figsize=(width, height), dpi=150)
    fig.set_layout_engine("constrained", **gaps)
    return fig


def plain(ax: Any) -> None:
    """No box, a faint grid."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(labelsize=8.5)
    ax.grid(True, color="0.92", lw=0.6)
    ax.set_axisbelow(True)


def ticks(longest: int) -> list[int]:
    """Epochs to write under an axis: four, of which the last is the end.

    >>> ticks(120), ticks(7)
    ([0, 40, 80, 120], [0, 7])
    """
    return [0, longest // 3, 2 * longest // 3, longest] if longest % 3 == 0 else [0, longest]


def above(ax: Any, handles: list[Any], **more: Any) -> None:
    """A legend in a row over the panel, where no data are."""
    row = {"loc": "lower left", "bbox_to_anchor": (0, 1), "ncols": 4, "borderaxespad": 0.1, "borderpad": 0.2}
    look = {"fontsize": 8, "frameon": False, "handlelength": 1.9, "handletextpad": 0.5, "columnspacing": 1.0}
    ax.legend(handles=handles, **(row | look | more))


def beta_handles() -> list[Any]:
    """Legend entries of the four line styles."""
    return [Line2D([], [], color=GREY, lw=1.8, ls=LINES[b], label=f"β = {beta_name(b)}") for b in BETAS]


def family_handles(names: dict[str, str], **look: Any) -> list[Any]:
    """Legend entries of families: loss name → text."""
    return [Line2D([], [], color=COLOURS[k], label=text, **({"lw": 2.2} | look)) for k, text in names.items()]


def counted(ax: Any, sizes: Iterable[int]) -> None:
    """How many runs each line of a panel stands for, at its upper right."""
    text = "n = " + (", ".join(map(str, sizes)) or "0")
    ax.set_title(text, fontsize=8, color=GREY, loc="right")


def repeats(groups: list[Repeats]) -> str:
    """How many repeats a figure is based on.

    >>> repeats([])
    'n = 0'
    """
    n = sorted({len(g.results) for g in groups}) or [0]
    return f"n = {n[0]}" if len(n) == 1 else f"n = {n[0]} to {n[-1]}"


def unfinished(groups: list[Repeats]) -> str:
    """How far the runs are if they are not finished; else nothing.

    >>> unfinished([])
    ''
    """
    if all(r.finished for g in groups for r in g.results):
        return ""
    return f", not finished: epoch {min(g.reached for g in groups)} of {max(g.run.epochs for g in groups)}"


def not_a_number(groups: list[Repeats]) -> str:
    """Say which runs went NaN, and when; empty if none did."""
    said = []
    for g in groups:
        if since := g.nan_epochs:
            name = f"{dataset_name(g.run.dataset)}, {loss_name(g.run)}"
            said.append(f"{name}: NaN loss in {len(since)} of {len(g.results)} runs, from epoch {min(since)}")
    return "; ".join(said)


def note(fig: Figure, text: str) -> None:
    """A sentence under the panels."""
    if text:
        fig.supxlabel(text, fontsize=8.5, color=VERMILION, style="italic")


def png(fig: Figure) -> bytes:
    """A figure as the bytes of a PNG file: the same picture is the same file.

    >>> png(figure(1, 1))[1:4]
    b'PNG'
    """
    raw, packed = io.BytesIO(), io.BytesIO()
    fig.savefig(raw, format="png")
    # 128 colours are enough for lines and letters, and a third of the bytes; this method keeps rare ones too.
    whole = Image.open(raw).convert("RGB")
    few = whole.quantize(128, method=Image.Quantize.MAXCOVERAGE, kmeans=1, dither=Image.Dither.NONE)
    few.save(packed, format="PNG", optimize=True)
    return packed.getvalue()
