"""A chart as SVG for a page: its colours are the page's, and every part says its title under the mouse."""

from __future__ import annotations

import math

try:
    from markupsafe import Markup
except ImportError as error:
    raise ImportError("A page needs jinja2: pip install 'fbeta[report]'") from error

from fbeta.comparison.result import Difference, Interval
from fbeta.report.chart import Chart, Key, Line, Mark, Pair, tick, ticks
from fbeta.report.numerals import clean, short

#: How far a line may reach over the frame, so that one along its edge keeps its width.
EDGE = 2


def svg(chart: Chart) -> Markup:
    """Draw a chart.

    >>> chart = Chart("a line", (0, 1), (0, 1))
    >>> chart.lines.append(Line([(0, 0), (1, 1)], "s c0", title="1 < 2"))
    >>> "<title>1 &lt; 2</title>" in svg(chart)
    True
    """
    left, top, width, height = chart.frame
    live = point = Markup("")
    if chart.live:
        window = " ".join(f"{v:.6g}" for v in (*chart.x, *chart.y))
        box = f"{left:g} {top:g} {width:g} {height:g}"
        live = Markup(' data-live="{}" data-window="{}" data-box="{}"').format(chart.live, window, box)
        point = Markup('<g class="live" hidden><circle r="8"/><circle r="2.5"/></g>')
    inside = Markup("").join([*_cells(chart), *(_line(line, chart) for line in chart.lines)])
    clipped = Markup(
        '<svg x="{0:g}" y="{1:g}" width="{2:g}" height="{3:g}" viewBox="{0:g} {1:g} {2:g} {3:g}">{4}</svg>'
    ).format(left - EDGE, top - EDGE, width + 2 * EDGE, height + 2 * EDGE, inside)
    over = [_mark(mark, chart.at(mark.at)) for mark in chart.marks if all(map(math.isfinite, mark.at))]
    for label in chart.labels:
        x, y = chart.at(label.at)
        over.append(_text(label.look, x + label.right, y + label.down, label.text))
    return Markup(
        '<svg class="chart" viewBox="0 0 {:g} {:g}" role="img" aria-label="{}"{}>{}{}{}{}</svg>'
    ).format(
        *(chart.width, chart.height, clean(chart.label), live),
        *(_axes(chart), clipped, Markup("").join(over), point),
    )


def sample(key: Key) -> Markup:
    """The sample of an entry of a legend.

    >>> sample(Key("a", line="s c0")).count("<path")
    1
    """
    chart = Chart("", (0, 34), (14, 0), width=34, height=14, margins=(0, 0, 0, 0))
    line = _line(Line([(2, 7), (32, 7)], key.line), chart) if key.line else ""
    mark = _mark(Mark((17, 7), key.shape, key.mark, r=3.5), (17, 7)) if key.mark else ""
    return Markup('<svg class="key" viewBox="0 0 34 14" aria-hidden="true">{}{}</svg>').format(line, mark)


def bar(value: Interval | Difference, scale: Pair, zero: float | None = None) -> Markup:
    """A mean with its interval as a bar, an arrow where it lies beyond the scale; `zero` is a place to mark."""
    if not all(map(math.isfinite, (value.mean, value.low, value.high))):
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


def _axes(chart: Chart) -> Markup:
    left, top, width, height = chart.frame
    made = []
    for value in ticks(*chart.x):
        x, _ = chart.at((value, 0))
        made.append(_path("grid", f"M{x:.1f} {top + height:.1f}V{top:.1f}"))
        made.append(_text("mid", x, top + height + 14, tick(value)))
    for value in ticks(*chart.y):
        _, y = chart.at((0, value))
        made.append(_path("grid", f"M{left:.1f} {y:.1f}H{left + width:.1f}"))
        made.append(_text("end", left - 5, y + 3.5, tick(value)))
    made.append(_text("mid name", left + width / 2, chart.height - 5, chart.xlabel))
    made.append(_text("mid name", 11, top + height / 2, chart.ylabel, turned=True))
    return Markup("").join(made)


def _cells(chart: Chart) -> list[Markup]:
    n, made = len(chart.surface), []
    scores = [v for row in chart.surface for v in row if math.isfinite(v)] or [0.0]
    low, high = min(scores), max(scores)
    for i, row in enumerate(chart.surface):
        for j, score in enumerate(row):
            if math.isfinite(score):
                (left, top), (right, bottom) = chart.at((j / n, (i + 1) / n)), chart.at(((j + 1) / n, i / n))
                form = f"M{left:.1f} {top:.1f}H{right:.1f}V{bottom:.1f}H{left:.1f}z"
                here = f"u = {(j + 0.5) / n:.2f}, t = {(i + 0.5) / n:.2f}: score {short(score, 3)}"
                made.append(_path("cell", form, here, shade=(score - low) / (high - low or 1.0)))
    return made


def _line(line: Line, chart: Chart) -> Markup:
    """A path; points without a finite place are left out, and those closer than a pixel to the last one."""
    places = [chart.at(p) for p in line.points if all(map(math.isfinite, p))]
    steps = places[:1]
    for place in places[1:]:
        if math.dist(place, steps[-1]) >= 0.7 or place is places[-1]:
            steps.append(place)
    form = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in steps)
    return _path(line.look, form, line.title, line.method) if len(steps) > 1 else Markup("")


def _mark(mark: Mark, at: Pair) -> Markup:
    (x, y), r = at, mark.r
    form = (
        f"M{x - r:.1f} {y:.1f}a{r:.1f} {r:.1f} 0 1 0 {2 * r:.1f} 0a{r:.1f} {r:.1f} 0 1 0 {-2 * r:.1f} 0z",
        f"M{x - 0.9 * r:.1f} {y - 0.9 * r:.1f}h{1.8 * r:.1f}v{1.8 * r:.1f}h{-1.8 * r:.1f}z",
        f"M{x:.1f} {y - 1.3 * r:.1f}l{1.3 * r:.1f} {1.3 * r:.1f}l{-1.3 * r:.1f} {1.3 * r:.1f}"
        f"l{-1.3 * r:.1f} {-1.3 * r:.1f}z",
        f"M{x:.1f} {y - 1.2 * r:.1f}l{1.2 * r:.1f} {2.1 * r:.1f}h{-2.4 * r:.1f}z",
    )[mark.shape % 4]
    return _path(mark.look, form, mark.title, mark.method)


def _path(
    look: str, form: str, title: str = "", method: int | None = None, shade: float | None = None
) -> Markup:
    owner = "" if method is None else Markup(' data-m="{}"').format(method)
    shaded = "" if shade is None else Markup(' fill-opacity="{:.2f}"').format(shade)
    said = Markup("<title>{}</title>").format(clean(title)) if title else ""
    return Markup('<path class="{}"{}{} d="{}">{}</path>').format(look, owner, shaded, form, said)


def _text(look: str, x: float, y: float, text: str, *, turned: bool = False) -> Markup:
    place = 'transform="translate({:.1f} {:.1f}) rotate(-90)"' if turned else 'x="{:.1f}" y="{:.1f}"'
    return Markup(f'<text class="{{}}" {place}>{{}}</text>').format(look, x, y, clean(text))
