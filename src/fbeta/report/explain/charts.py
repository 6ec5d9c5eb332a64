"""The pictures of an explanation, ROC space and the paper's Figure 1, and the page and the figure that hold them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from fbeta.decisions.steps import score_cells
from fbeta.learners.crossfit import Array
from fbeta.metrics import Anchors, AnchorTerm, Confusion
from fbeta.numerals import short
from fbeta.report import level_lines
from fbeta.report.chart import Chart, Key, Label, Line, Mark
from fbeta.report.explain import Explanation
from fbeta.report.explain.population import roc
from fbeta.report.explain.sentences import times

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Cells of ROC space across, each with its score.
CELLS = 32
#: How curves look, those drawn first before the others.
LOOKS = {"sibling": "s thin c0", "bce": "s wide c1", "mae": "s c5", "own": "s c2"}
#: How ROC curves look, from the hardest classes to the easiest.
CURVES = ("s c1 slim", "s c1", "s c1 best")
#: Shape and look of a point.
CUTS = {"best cut": (2, "p c2"), "cut at ½": (0, "p c5")}
#: What equal scores lie on, where that is not curves.
STRAIGHT = {"pencil": "lines through the pole", "parallel": "parallel lines"}


class Curve(NamedTuple):
    """A line with a name and a role, one of `LOOKS`."""

    label: str
    role: str
    x: Array
    y: Array


def roc_space(e: Explanation) -> Chart:
    """The score over ROC space, its level lines, and ROC curves of known populations with their best cut and ½."""
    pole = e.pole if e.pole is not None and all(-0.8 <= x <= 1.8 for x in e.pole) else None
    where = "" if e.pole is None else f"pole ({short(e.pole[0], 3)}, {short(e.pole[1], 3)})"
    u, t = pole or (0.5, 0.5)  # the window is the unit square with a little room, and the pole where it is near
    x, y = (min(-0.03, u - 0.1), max(1.03, u + 0.1)), (min(-0.03, t - 0.12), max(1.0, t + 0.1))
    one_sided = f"{e.level_lines.partition(':')[0]} lines" if e.kind == "one-sided" else ""
    title = f"Equal scores lie on {one_sided or STRAIGHT.get(e.kind, 'curves, without a pole')}"
    axes = "false positive rate u", "true positive rate t"
    chart = Chart(title, x, y, *axes, height=330, margins=(22, 32, 38, 46))
    middles = (np.arange(CELLS) + 0.5) / CELLS
    cells = Confusion.from_rates(*np.meshgrid(middles, middles), e.prevalence)
    chart.surface = score_cells(e.metric, cells).tolist()
    lines = level_lines.level_lines(e.metric, e.prevalence)
    level_lines.add(chart, lines)
    for p, look in zip(e.populations, CURVES, strict=True):
        name = f"AUC {p.auc:.2f}"
        chart.lines.append(Line(roc(p.separation), look, f"{name}, d′ = {p.separation:g}"))
        chart.legend.append(Key(name, look))
        for what, cut, at in (("cut at ½", 0.5, p.half), ("best cut", p.cut, p.best)):
            note = f"{what} ({short(cut, 3)}), {name}: score {short(at.score, 3)}"
            chart.marks.append(Mark((at.fpr, at.tpr), *CUTS[what], r=5, title=note))
    chart.legend += [Key(what, "", look, shape) for what, (shape, look) in CUTS.items()]
    if pole is not None:
        near = 0 if pole[0] <= 0 else -1
        chart.lines += [Line([pole, line.points[near]], "level dotted") for line in lines]
        chart.marks.append(Mark(pole, 0, "p pole", r=4.5, title=where))
        left = pole[0] < 0.5
        chart.labels.append(Label(pole, where, "strong" if left else "strong end", down=17 if left else -10))
    elif where:
        chart.labels.append(Label((0.03, 0.03), f"{where}, outside the picture"))
    return chart


def loss_panels(e: Explanation) -> list[Chart]:
    """Panels (a) and (b) of the paper's Figure 1 for this metric."""
    missed, flagged = figure_1(e)
    # The axes reach as high as the metric's own curves at q = 0.96, within reason; BCE has no top.
    own = [float(np.interp(0.96, c.x, c.y)) for c in missed + flagged if c.role == "own"]
    top = min(6.5, max(1.6, *own)) if own else 3.2
    return [
        _losses("Cost of false negatives", "share of positives missed, q₀", missed, top),
        _losses("Cost of false positives", "share of negatives flagged, q₁", flagged, top),
    ]


def figure(e: Explanation) -> Figure:
    """All three for a PNG: the paper's Figure 1 on the left, ROC space on the right."""
    from fbeta.report.png import draw

    return draw(f"{e.spec} at prevalence {e.prevalence:g}", roc_space(e), loss_panels(e))


def page(e: Explanation) -> str:
    """All three on a page, one HTML file that needs no network, with text and tables; every string is escaped."""
    from fbeta.report import shell, svg
    from fbeta.report.explain.printout import sections

    charts, template = [roc_space(e), *loss_panels(e)], shell.resource("explanation.html")
    body = shell.fill(template, e=e, sections=sections(e), charts=charts, draw=svg, shell=shell)
    return shell.page(f"{e.spec} at prevalence {e.prevalence:g}", body)


def term(anchor: float, q: Array, *, positive: bool, scale: float = 1.0) -> Array:
    """One class's part of the class-balanced surrogate as a function of its error rate q, shifted to 0 at q = 0."""
    one = AnchorTerm.at(anchor, positive, scale)
    with np.errstate(divide="ignore"):
        near = np.log(np.append(q, 0.0) if one.sign > 0 else np.append(1 - q, 1.0))
        value = one.value(near, np)
    rise: Array = value[:-1] - value[-1]
    return rise


def figure_1(e: Explanation, n: int = 241) -> tuple[list[Curve], list[Curve]]:
    """Panels (a) and (b) of the paper's Figure 1 for this metric: the losses of each error rate [lee2021]."""
    q = 1 - (1 - np.linspace(0, 0.98, n)) ** 2  # closer together where BCE is steep
    standard = [Curve("BCE  −log(1 − q)", "bce", q, -np.log1p(-q)), Curve("MAE  q", "mae", q, q)]
    a, b = list(standard), list(standard)
    if not e.trainable:
        return a, b
    if e.slope is not None:
        parallel = Anchors(math.inf, math.inf, e.slope)
        for panel, positive in ((a, True), (b, False)):
            price = AnchorTerm.of(parallel, positive=positive).scale
            panel.append(Curve(f"surrogate  {times(price, 3)}q", "own", q, price * q))
    elif e.anchors is not None:
        x0, y0 = e.anchors
        scale = Anchors(x0, y0).scale
        for beta, x in e.siblings:
            if not math.isclose(x, x0):
                label = f"β = {'½' if beta == 0.5 else short(beta)}"
                b.append(Curve(label, "sibling", q, term(x, q, positive=False)))
        for panel, anchor, positive in ((a, y0, True), (b, x0, False)):
            y = term(anchor, q, positive=positive, scale=scale)
            panel.append(Curve(f"surrogate  {_term_text(anchor, scale, positive)}", "own", q, y))
    elif (cost := e.conditions[0].slope) is not None:
        for panel, price in ((a, 1.0), (b, cost)):
            panel.append(Curve(f"tangent  −{times(price, 3)}log(1 − q)", "own", q, -price * np.log1p(-q)))
    return a, b


def _losses(label: str, rate: str, curves: list[Curve], top: float) -> Chart:
    chart = Chart(label, (0, 1), (0, top), rate, "loss (0 at q = 0)", margins=(12, 36, 38, 46))
    chart.legend = [Key(c.label, LOOKS[c.role]) for c in curves if c.role != "sibling"]
    for c in sorted(curves, key=lambda c: list(LOOKS).index(c.role)):
        points = list(zip(c.x.tolist(), c.y.tolist(), strict=True))
        chart.lines.append(Line(points, LOOKS[c.role], c.label))
        at = max(p for p in points if p[1] <= top)
        if c.role == "sibling" and at[0] > 0.15:
            chart.labels.append(Label(at, c.label, "faint", right=4, down=10 if at[0] < 0.99 else 3.5))
    if not any(c.role == "own" for c in curves):
        chart.labels.append(Label((0.03, 0.9 * top), "no loss trains for this metric"))
    return chart


def _term_text(anchor: float, scale: float, positive: bool) -> str:
    shrinks = (anchor <= 0) == positive  # the distance to the anchor shrinks with the error
    sign, distance = "−" if shrinks else "+", abs(positive - anchor)
    share = "q" if math.isclose(distance, 1) else f"q/{short(distance, 3)}"
    return f"{'−' * shrinks}{times(scale, 3)}log(1 {sign} {share})"
