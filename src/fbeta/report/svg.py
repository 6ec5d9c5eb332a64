"""A chart as SVG for a page: its colours are the page's, and every part says its title under the mouse."""

import math
from collections.abc import Iterable, Iterator

from fbeta.comparison.result import Difference, Estimate
from fbeta.numerals import short
from fbeta.report.chart import Chart, Key, Line, Pair, ticks
from fbeta.report.shell import Markup, fill, resource

#: Circle, square, diamond and triangle around (0, 0).
SHAPES = (
    "M-1 0a1 1 0 1 0 2 0a1 1 0 1 0 -2 0z",
    "M-.9 -.9h1.8v1.8h-1.8z",
    "M0 -1.3l1.3 1.3l-1.3 1.3l-1.3 -1.3z",
    "M0 -1.2l1.2 2.1h-2.4z",
)


def svg(chart: Chart) -> Markup:
    """Draw a chart."""
    tools = {"cells": _cells, "finite": _finite, "places": _places, "shapes": SHAPES, "short": short, "ticks": ticks}
    return fill(resource("chart.html"), c=chart, **tools)


def sample(key: Key) -> Markup:
    """The sample of an entry of a legend."""
    line = f'<path class="{key.line}" d="M2 7H32"/>' if key.line else ""
    place = 'transform="translate(17 7) scale(3.5)"'
    mark = f'<path class="{key.mark}" {place} d="{SHAPES[key.shape]}"/>' if key.mark else ""
    return Markup(f'<svg class="key" viewBox="0 0 34 14" aria-hidden="true">{line}{mark}</svg>')


def bar(value: Estimate | Difference, scale: Pair, zero: float | None = None) -> Markup:
    """A mean with its interval as a bar, an arrow where it lies beyond the scale; `zero` is a place to mark."""
    if not _finite((value.mean, value.low, value.high)):
        return Markup("")

    def across(v: float) -> float:
        return 4 + 92 * min(1.0, max(0.0, (v - scale[0]) / (scale[1] - scale[0])))

    side = "" if zero is None else " up" if value.low > zero else " down" if value.high < zero else ""
    mark = "" if zero is None else f'<path class="zero" d="M{across(zero):.1f} 0V12"/>'
    if value.mean < scale[0]:
        shape = '<path class="beyond" d="M2 6l7 -5v10z"/>'
    elif value.mean > scale[1]:
        shape = '<path class="beyond" d="M98 6l-7 -5v10z"/>'
    else:
        reach = f"M{across(value.low):.1f} 6H{across(value.high):.1f}"
        shape = f'<path class="range" d="{reach}"/><circle cx="{across(value.mean):.1f}" cy="6" r="3"/>'
    return Markup(f'<svg class="bar{side}" viewBox="0 0 100 12" aria-hidden="true">{mark}{shape}</svg>')


def axis(scale: Pair) -> Markup:
    """The axis of a column of bars."""
    if not _finite(scale) or scale[1] <= scale[0]:
        return Markup("")
    fewest = next((found for most in range(3, 9) if len(found := ticks(*scale, most)) > 1), ticks(*scale))
    marks = [(4 + 92 * (x - scale[0]) / (scale[1] - scale[0]), short(x, 3)) for x in fewest[:: 1 + len(fewest) // 4]]
    drawn = "".join(
        f'<path class="grid" d="M{x:.1f} 0V4"/><text class="mid" x="{x:.1f}" y="14">{t}</text>' for x, t in marks
    )
    return Markup(
        f'<svg class="bar axis" viewBox="0 0 100 16" aria-hidden="true"><path class="grid" d="M4 .5H96"/>{drawn}</svg>'
    )


def _finite(values: Iterable[float]) -> bool:
    return all(map(math.isfinite, values))


def _cells(chart: Chart) -> Iterator[tuple[Pair, Pair, float, str]]:
    """Two corners, shade and title of each cell of the surface that has a score."""
    n = len(chart.surface)
    scores = [v for row in chart.surface for v in row if math.isfinite(v)] or [0.0]
    low, span = min(scores), max(scores) - min(scores) or 1.0
    for i, row in enumerate(chart.surface):
        for j, score in enumerate(row):
            if math.isfinite(score):
                title = f"u = {(j + 0.5) / n:.2f}, t = {(i + 0.5) / n:.2f}: score {short(score, 3)}"
                yield (chart.at((j / n, i / n)), chart.at(((j + 1) / n, (i + 1) / n)), (score - low) / span, title)


def _places(line: Line, chart: Chart) -> list[Pair]:
    """Where a line goes on paper; points without a finite place are left out, and those close to the last one."""
    places = [chart.at(p) for p in line.points if _finite(p)]
    kept = places[:1]
    for place in places[1:]:
        if math.dist(place, kept[-1]) >= 0.7 or place is places[-1]:
            kept.append(place)
    return kept
