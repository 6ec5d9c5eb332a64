"""A small chart as plain data: a window with axes, and lines, marks and labels in it; `svg` and `png` draw it.

A look is a list of words that the page's style sheet knows: ``s`` for a line and ``p`` for a mark, ``c0`` to ``c6`` for
a colour, ``d0`` to ``d3`` for a dash, ``thin``, ``wide`` or ``best`` for a width.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from fbeta.numerals import short

Pair = tuple[float, float]


class Line(NamedTuple):
    """A line through points; its title is shown under the mouse, and the page hides it with its method."""

    points: Sequence[Pair]
    look: str
    title: str = ""
    method: int | None = None


class Mark(NamedTuple):
    """A circle, square, diamond or triangle (`shape` 0 to 3) of radius `r`."""

    at: Pair
    shape: int
    look: str
    r: float = 4
    title: str = ""
    method: int | None = None


class Label(NamedTuple):
    """Words that begin at a place, or have their middle (look ``mid``) or end (``end``) there; moved right and down."""

    at: Pair
    text: str
    look: str = ""
    right: float = 0
    down: float = 0


class Key(NamedTuple):
    """An entry of a legend: a sample of a line, of a mark, or of both."""

    label: str
    line: str = ""
    mark: str = ""
    shape: int = 0


@dataclass
class Chart:
    """A window on paper; `surface` shades the unit square, from the bottom; `live` is what the slider moves in it."""

    label: str
    x: Pair
    y: Pair
    xlabel: str = ""
    ylabel: str = ""
    width: float = 360  # about that large on a phone, and larger on a screen: letters are legible on both
    height: float = 300
    margins: tuple[float, float, float, float] = (12, 18, 38, 46)  # top, right, bottom, left
    live: str = ""
    surface: list[list[float]] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)
    labels: list[Label] = field(default_factory=list)
    legend: list[Key] = field(default_factory=list)

    @cached_property
    def frame(self) -> tuple[float, float, float, float]:
        """Left, top, width and height of the window on paper."""
        top, right, bottom, left = self.margins
        if self.ylabel:  # long numbers at the axis (0.8525 needs its digits) must not run into its name
            left = max(left, 18 + 7 * max(len(short(value, 6)) for value in ticks(*self.y)))
        return left, top, self.width - left - right, self.height - top - bottom

    def at(self, p: Pair) -> Pair:
        """A place on paper, to a tenth."""
        left, top, width, height = self.frame
        across = (p[0] - self.x[0]) / (self.x[1] - self.x[0])
        down = (self.y[1] - p[1]) / (self.y[1] - self.y[0])
        return round(left + across * width, 1), round(top + down * height, 1)


def ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Round numbers from `low` to `high`, at most about `most`."""
    span = high - low
    unit = 10.0 ** math.floor(math.log10(span / most))
    step = next(unit * k for k in (1, 2, 2.5, 5, 10) if span / (unit * k) <= most)
    first = math.ceil(low / step - 1e-9)
    return [float(f"{k * step:.12g}") for k in range(first, math.floor(high / step + 1e-9) + 1)]


def window(values: Sequence[float], pad: float = 0.05) -> Pair:
    """The range that finite values fill, a little wider."""
    kept = [v for v in values if math.isfinite(v)]
    low, high = (min(kept), max(kept)) if kept else (0.0, 1.0)
    room = (high - low) * pad if high > low else abs(high) * 0.05 or 1.0
    return low - room, high + room
