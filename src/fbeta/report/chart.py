"""A small chart as SVG text: a frame with axes, and lines, points and words in it. Colours are the page's."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

from markupsafe import Markup, escape

from fbeta.report.rows import Pair
from fbeta.report.words import clean

#: Drawn at about this size on a phone, larger on a screen: letters are legible on both.
WIDTH, HEIGHT = 360.0, 300.0
#: Digits of a number at an axis: it is round, so they are hardly ever needed, but with fewer 0.8525 would say 0.853.
AXIS = 6


@dataclass
class Chart:
    """A window x0 ≤ x ≤ x1, y0 ≤ y ≤ y1 on paper of `width` × `height`, filled by its methods.

    >>> chart = Chart("a line", (0, 1), (0, 1))
    >>> chart.line([(0, 0), (1, 1)], "s c0")
    >>> "<path" in chart.svg()
    True
    """

    label: str
    x: Pair
    y: Pair
    xlabel: str = ""
    ylabel: str = ""
    width: float = WIDTH
    height: float = HEIGHT
    margins: tuple[float, float, float, float] = (12, 18, 38, 46)  # top, right, bottom, left
    live: str = ""
    parts: list[Markup] = field(default_factory=list)

    def __post_init__(self) -> None:
        top, right, bottom, left = self.margins
        if self.ylabel:  # long numbers at the axis must not run into its name
            longest = max((len(tick(value, AXIS)) for value in ticks(*self.y)), default=0)
            self.margins = top, right, bottom, max(left, 18 + 7 * longest)

    def at(self, x: float, y: float) -> Pair:
        """Paper coordinates."""
        top, right, bottom, left = self.margins
        across = (x - self.x[0]) / (self.x[1] - self.x[0])
        up = (y - self.y[0]) / (self.y[1] - self.y[0])
        return left + across * (self.width - left - right), self.height - bottom - up * (
            self.height - top - bottom
        )

    def line(self, points: Iterable[Pair], look: str, *, method: int | None = None, title: str = "") -> None:
        """A line through points; those that would lie on the last drawn one are left out."""
        steps: list[str] = []
        last: Pair | None = None
        finite = [p for p in points if all(map(math.isfinite, p))]
        for i, p in enumerate(finite):
            x, y = self.at(*p)
            if last is None or i == len(finite) - 1 or math.hypot(x - last[0], y - last[1]) >= 0.7:
                steps.append(f"{x:.1f} {y:.1f}")
                last = x, y
        if len(steps) > 1:
            self._add(
                '<path class="{}"{} d="M{}">{}</path>', look, _owner(method), "L".join(steps), _title(title)
            )

    def mark(
        self, p: Pair, shape: int, look: str, *, r: float = 4, method: int | None = None, title: str = ""
    ) -> None:
        """A point: a circle, square, diamond or triangle."""
        if not all(map(math.isfinite, p)):
            return
        x, y = self.at(*p)
        form = (
            f"M{x - r:.1f} {y:.1f}a{r:.1f} {r:.1f} 0 1 0 {2 * r:.1f} 0a{r:.1f} {r:.1f} 0 1 0 {-2 * r:.1f} 0z",
            f"M{x - 0.9 * r:.1f} {y - 0.9 * r:.1f}h{1.8 * r:.1f}v{1.8 * r:.1f}h{-1.8 * r:.1f}z",
            f"M{x:.1f} {y - 1.3 * r:.1f}l{1.3 * r:.1f} {1.3 * r:.1f}l{-1.3 * r:.1f} {1.3 * r:.1f}"
            f"l{-1.3 * r:.1f} {-1.3 * r:.1f}z",
            f"M{x:.1f} {y - 1.2 * r:.1f}l{1.2 * r:.1f} {2.1 * r:.1f}h{-2.4 * r:.1f}z",
        )[shape % 4]
        self._add('<path class="{}"{} d="{}">{}</path>', look, _owner(method), form, _title(title))

    def text(self, p: Pair, text: str, look: str = "", dx: float = 0, dy: float = 0) -> None:
        """Words at a place."""
        x, y = self.at(*p)
        self._add(
            '<text class="{}" x="{}" y="{}">{}</text>', look, f"{x + dx:.1f}", f"{y + dy:.1f}", clean(text)
        )

    def svg(self) -> Markup:
        """The whole picture."""
        top, right, bottom, left = self.margins
        frame = " ".join(f"{v:.6g}" for v in (*self.x, *self.y))
        box = f"{left:g} {top:g} {self.width - left - right:g} {self.height - top - bottom:g}"
        live = (
            Markup('<g class="live" hidden><circle r="8"/><circle r="2.5"/></g>') if self.live else Markup("")
        )
        live_names = Markup(' data-live="{}" data-window="{}" data-box="{}"').format(self.live, frame, box)
        return Markup(
            '<svg class="chart" viewBox="0 0 {} {}" role="img" aria-label="{}"{}>{}{}{}</svg>'
        ).format(
            f"{self.width:g}",
            f"{self.height:g}",
            clean(self.label),
            live_names if self.live else "",
            self._axes(),
            Markup("").join(self.parts),
            live,
        )

    def _axes(self) -> Markup:
        made = []
        for value in ticks(*self.x):
            (x, low), (_, high) = self.at(value, self.y[0]), self.at(value, self.y[1])
            made.append(f'<path class="grid" d="M{x:.1f} {low:.1f}V{high:.1f}"/>')
            made.append(f'<text class="mid" x="{x:.1f}" y="{low + 14:.1f}">{tick(value, AXIS)}</text>')
        for value in ticks(*self.y):
            (left, y), (right, _) = self.at(self.x[0], value), self.at(self.x[1], value)
            made.append(f'<path class="grid" d="M{left:.1f} {y:.1f}H{right:.1f}"/>')
            made.append(f'<text class="end" x="{left - 5:.1f}" y="{y + 3.5:.1f}">{tick(value, AXIS)}</text>')
        middle = self.at(sum(self.x) / 2, sum(self.y) / 2)
        words = Markup('<text class="mid name" x="{}" y="{}">{}</text>').format(
            f"{middle[0]:.1f}", f"{self.height - 5:.1f}", clean(self.xlabel)
        ) + Markup('<text class="mid name" transform="translate({} {}) rotate(-90)">{}</text>').format(
            11, f"{middle[1]:.1f}", clean(self.ylabel)
        )
        return Markup("".join(made)) + words

    def _add(self, form: str, *values: object) -> None:
        self.parts.append(Markup(form).format(*values))


def ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Round numbers from `low` to `high`, at most about `most`.

    >>> ticks(0, 1), ticks(1, 20)
    ([0.0, 0.2, 0.4, 0.6, 0.8, 1.0], [5.0, 10.0, 15.0, 20.0])
    """
    span = high - low
    unit = 10.0 ** math.floor(math.log10(span / most))
    step = next(unit * k for k in (1, 2, 2.5, 5, 10) if span / (unit * k) <= most)
    first = math.ceil(low / step - 1e-9)
    return [float(f"{k * step:.12g}") for k in range(first, math.floor(high / step + 1e-9) + 1)]


def tick(value: float, digits: int = 3) -> str:
    """A number as it is written at an axis.

    >>> tick(0.25), tick(-1.0), tick(0.8525, AXIS)
    ('0.25', '−1', '0.8525')
    """
    return f"{value:.{digits}g}".replace("-", "−")


def _owner(method: int | None) -> Markup:
    return Markup("") if method is None else Markup(' data-m="{}"').format(method)


def _title(text: str) -> Markup:
    return Markup("<title>{}</title>").format(escape(clean(text))) if text else Markup("")
