"""The pictures of the page: bars of the table, courses of training, ROC, precision and recall, calibration."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from fbeta.comparison.result import Candidate, Comparison, Interval
from fbeta.metrics import Confusion, Metric, divide
from fbeta.report import words
from fbeta.report.chart import Chart
from fbeta.report.levels import Level, level, levels
from fbeta.report.points import Points, scored
from fbeta.report.rows import Pair, window

#: Colours of the style sheet; the first belongs to the baseline's loss. Further ones repeat with another dash.
COLOURS = 7


@dataclass(frozen=True)
class Series:
    """One method in every picture: a colour for its loss and rule, a dash and a shape for its model."""

    index: int
    candidate: Candidate
    points: Points | None
    colour: int
    dash: int
    winner: bool

    @property
    def line(self) -> str:
        """The classes of its lines."""
        return f"s c{self.colour} d{self.dash}{' best' * self.winner}"

    @property
    def dot(self) -> str:
        """The classes of its points."""
        return f"p c{self.colour}{' best' * self.winner}"


def series(comparison: Comparison, made: Sequence[Points | None]) -> list[Series]:
    """All methods with their looks."""
    candidates = comparison.candidates
    first = [c for c in candidates if c.name == comparison.baseline] + list(candidates)
    looks = list(dict.fromkeys((c.loss, c.rule) for c in first))
    models = list(dict.fromkeys(c.model for c in first))
    out = []
    for i, (c, points) in enumerate(zip(candidates, made, strict=True)):
        rounds, colour = divmod(looks.index((c.loss, c.rule)), COLOURS)
        dash = (models.index(c.model) + rounds) % 4
        out.append(Series(i, c, points, colour, dash, c.name == comparison.winner))
    return out


def key(s: Series) -> Markup:
    """A method's sample of line and point, for a legend."""
    chart = Chart("", (0, 1), (0, 1), width=34, height=14, margins=(0, 2, 0, 2))
    chart.line([(0, 0.5), (1, 0.5)], s.line)
    chart.mark((0.5, 0.5), s.dash, s.dot, r=3.5)
    return Markup('<svg class="key" viewBox="0 0 34 14" aria-hidden="true">{}</svg>').format(
        Markup("").join(chart.parts)
    )


def bar(value: Interval, scale: Pair, zero: float | None = None) -> Markup:
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


def roc(
    all_series: Sequence[Series], metric: Metric, prevalence: float, title: str, right: float = 1.0
) -> Markup:
    """ROC curves over lines of equal score, and where each method operates; `right` is the largest FPR shown."""
    chart = Chart(
        f"ROC curves, false against true positive rate, with lines of equal {title}",
        (0, right),
        (0, 1),
        "false positive rate",
        "true positive rate (recall)",
        margins=(22, 32, 38, 46),
        live="roc",
    )
    _levels(chart, levels(metric, prevalence, right), right)
    winner = next((s for s in all_series if s.winner), None)
    if winner is not None and (at := _operates(winner)) is not None and at[0] < right:
        share = scored(metric, _pooled(winner))
        through = level(metric, prevalence, share, right)
        chart.line(through.points, "level own", title=f"{title} {words.fixed(share)}, as the chosen method")
    for s in all_series:
        if s.points is not None:
            curve = [s.points.rates(i) for i in range(len(s.points.points) - 1, -1, -1)]
            chart.line(_until(curve, right), s.line, method=s.index, title=s.candidate.name)
    for s in all_series:
        if (at := _operates(s)) is not None and at[0] <= right:
            here = f"{s.candidate.name} with its cuts: FPR {words.cut(at[0], 3)}, TPR {words.cut(at[1], 3)}"
            chart.mark(at, s.dash, s.dot, r=5 if s.winner else 4, method=s.index, title=here)
    return chart.svg()


def zoom(all_series: Sequence[Series]) -> float:
    """How far to the right the operating points reach, rounded up; 1 where the whole square shows them well.

    A rare class is worth few false alarms, so that its points crowd at the left edge.
    """
    places = [at[0] for s in all_series if (at := _operates(s)) is not None and not s.candidate.collapse]
    reach = 2.5 * max(places, default=1.0)
    fits = [k * 10.0**-e for e in range(6, 0, -1) for k in (1, 2, 5) if k * 10.0**-e >= reach]
    return fits[0] if fits and fits[0] <= 0.2 else 1.0


def precision_recall(all_series: Sequence[Series], prevalence: float) -> Markup:
    """Precision against recall; a dashed line shows the precision of calling every row positive."""
    chart = Chart(
        "precision against recall", (0, 1), (0, 1), "recall", "precision", margins=(22, 32, 38, 46), live="pr"
    )
    chart.line(
        [(0, prevalence), (1, prevalence)],
        "level own",
        title=f"everything positive: {words.fixed(prevalence)}",
    )
    for s in all_series:
        if s.points is not None:
            kept = [p for p in reversed(s.points.points) if p.tp + p.fp > 0]
            curve = [(p.tp / s.points.positives, p.tp / (p.tp + p.fp)) for p in kept]
            chart.line(curve, s.line, method=s.index, title=s.candidate.name)
    for s in all_series:
        c = _pooled(s)
        if s.candidate.outcomes and c.tp + c.fp > 0:
            where = c.tpr, divide(c.tp, c.tp + c.fp)
            rates = f"recall {words.fixed(where[0])}, precision {words.fixed(where[1])}"
            here = f"{s.candidate.name} with its cuts: {rates}"
            chart.mark(where, s.dash, s.dot, r=5 if s.winner else 4, method=s.index, title=here)
    return chart.svg()


def calibration(all_series: Sequence[Series]) -> Markup:
    """The share of positives against the predicted probability, in bins; a larger point stands for more rows."""
    c = [s.candidate.calibration for s in all_series]
    top = max([v for x in c for v in (*x.predicted, *x.observed) if math.isfinite(v)], default=1.0)
    top = min(1.0, 1.05 * top) or 1.0
    chart = Chart("calibration", (0, top), (0, top), "predicted probability", "share of positives")
    chart.line([(0, 0), (top, top)], "level own", title="as often as predicted")
    for s in all_series:
        own = s.candidate.calibration
        chart.line(
            zip(own.predicted, own.observed, strict=True), s.line, method=s.index, title=s.candidate.name
        )
        most = max(own.rows, default=1) or 1
        for x, y, n in zip(own.predicted, own.observed, own.rows, strict=True):
            here = f"{s.candidate.name}: predicted {words.fixed(x)}, observed {words.fixed(y)}, {words.count(n)} rows"
            chart.mark((x, y), s.dash, s.dot, r=1.5 + 3 * math.sqrt(n / most), method=s.index, title=here)
    return chart.svg()


def trained(all_series: Sequence[Series]) -> list[Series]:
    """The methods that have epochs to show."""
    return [s for s in all_series if len(_held(s)) > 1]


def courses(all_series: Sequence[Series], title: str) -> tuple[Markup, Markup]:
    """Two pictures: the score on held rows by epoch, and each loss between its own highest and lowest."""
    longest = max(len(_held(s)) for s in all_series)
    across = (1, max(2, longest))
    scores = [v for s in all_series for v in _held(s)]
    score = Chart(f"{title} by epoch", across, window(scores), "epoch", f"{title} on held rows")
    loss = Chart("loss by epoch", across, (-0.03, 1.03), "epoch", "loss, lowest to highest")
    for s in all_series:
        name = s.candidate.name
        score.line(enumerate(_held(s), 1), s.line, method=s.index, title=name)
        kept = [v for v in s.candidate.epochs.loss if math.isfinite(v)]
        low, high = min(kept, default=0.0), max(kept, default=0.0)
        scaled = [(v - low) / (high - low) if high > low else 0.0 for v in s.candidate.epochs.loss]
        loss.line(enumerate(scaled, 1), s.line, method=s.index, title=f"{name}: {low:.4g} to {high:.4g}")
    return score.svg(), loss.svg()


def scatters(all_series: Sequence[Series], title: str) -> list[tuple[Series, Markup, str]]:
    """For each method, loss against score, one point an epoch, and how closely the two go together."""
    every = window([v for s in all_series for v in _held(s)], 0.08)
    out = []
    for s in all_series:
        pairs = [
            p for p in zip(s.candidate.epochs.loss, _held(s), strict=False) if all(map(math.isfinite, p))
        ]
        if len(pairs) < 2:
            continue
        across = window([x for x, _ in pairs], 0.08)
        chart = Chart(
            f"{s.candidate.name}: loss against {title}",
            across,
            every,
            "loss",
            title,
            width=240,
            height=190,
            margins=(8, 14, 34, 44),
        )
        chart.line(pairs, f"s thin c{s.colour}")
        for epoch, p in enumerate(pairs, 1):
            here = f"epoch {epoch}: loss {p[0]:.4g}, {title} {words.fixed(p[1])}"
            chart.mark(p, s.dash, f"p c{s.colour}", r=4.5 if epoch == len(pairs) else 2.5, title=here)
        out.append((s, chart.svg(), _together(pairs)))
    return out


def _together(pairs: list[Pair]) -> str:
    """Correlation of the values, and of their steps: two clusters alone make the first one large."""
    steps = [(b[0] - a[0], b[1] - a[1]) for a, b in itertools.pairwise(pairs)]
    return f"r = {_correlation(pairs)}, of the steps {_correlation(steps)}"


def _correlation(pairs: list[Pair]) -> str:
    try:
        return words.fixed(statistics.correlation(*zip(*pairs, strict=True)), 2)
    except (statistics.StatisticsError, TypeError):
        return words.NONE


def _held(s: Series) -> tuple[float, ...]:
    return s.candidate.epochs.held or s.candidate.epochs.score


def _pooled(s: Series) -> Confusion:
    """The decisions of all splits together, each with its own cut."""
    o = s.candidate.outcomes
    return Confusion(*(sum(getattr(x, cell) for x in o) for cell in ("tp", "fp", "fn", "tn")))


def _operates(s: Series) -> Pair | None:
    c = _pooled(s)
    return (c.fpr, c.tpr) if s.candidate.outcomes and c.positives and c.negatives else None


def _until(curve: list[Pair], right: float) -> list[Pair]:
    """A curve up to the right edge, which it meets between two points."""
    inside = [p for p in curve if p[0] <= right]
    beyond = next((p for p in curve if p[0] > right), None)
    if beyond is None or not inside:
        return inside
    (u, t), (x, y) = inside[-1], beyond
    return [*inside, (right, t + (y - t) * (right - u) / (x - u))]


def _levels(chart: Chart, lines: list[Level], right: float) -> None:
    """Draw lines of equal score, and write the score where a line leaves the window, if there is room."""
    top: list[float] = []
    side: list[float] = []
    for line in lines:
        text = f"{line.score:g}".replace("-", "−")
        chart.line(line.points, "level", title=text)
        u, t = line.points[-1]
        x, y = chart.at(u, t)
        if t > 0.995 and u < 0.97 * right:
            if all(abs(x - other) > 6 + 5 * len(text) for other in top):
                chart.text((u, 1), text, "mid faint", dy=-5)
                top.append(x)
        elif all(abs(y - other) > 11 for other in side):
            chart.text((u, t), text, "faint", dx=3, dy=3.5)
            side.append(y)
