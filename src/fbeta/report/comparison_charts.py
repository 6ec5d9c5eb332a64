"""The pictures of a comparison: ROC, precision and recall, calibration, courses of training."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence

from fbeta.metrics import Metric, divide
from fbeta.report import level_lines, numerals
from fbeta.report.chart import Chart, Key, Line, Mark, Pair, window
from fbeta.report.method_rows import MethodRow
from fbeta.report.slider import Slider

Sliders = Mapping[int, Slider]

#: Room around the pictures whose lines have labels at their ends.
MARGINS = (22, 32, 38, 46)


def key(row: MethodRow) -> Key:
    """A method's entry in the legend."""
    best = " best" * row.winner
    line, mark = f"s c{row.colour} d{row.dash}{best}", f"p c{row.colour}{best}"
    return Key(row.name, line, mark, row.dash)


def roc(
    rows: Sequence[MethodRow],
    sliders: Sliders,
    metric: Metric,
    prevalence: float,
    title: str,
    right: float = 1,
) -> Chart:
    """ROC curves over lines of equal score, and where each method operates; `right` is the largest FPR shown."""
    label = f"ROC curves, false against true positive rate, with lines of equal {title}"
    axes = "false positive rate", "true positive rate (recall)"
    chart = Chart(label, (0, right), (0, 1), *axes, margins=MARGINS, live="roc")
    level_lines.add(chart, level_lines.level_lines(metric, prevalence, right), right)
    winner = next((row for row in rows if row.winner), None)
    if winner is not None and (at := winner.operates) is not None and at[0] < right:
        score = float(level_lines.scores(metric, winner.pooled))
        through = level_lines.level_line(metric, prevalence, score, right)
        note = f"{title} {numerals.fixed(score)}, as the chosen method"
        chart.lines.append(Line(through.points, "level own", note))
    for row in rows:
        if row.index in sliders:
            _line(chart, row, sliders[row.index].rates)
        if (at := row.operates) is not None and at[0] <= right:
            rates = f"FPR {numerals.short(at[0], 3)}, TPR {numerals.short(at[1], 3)}"
            _mark(chart, row, at, f" with its cuts: {rates}")
    return chart


def zoom(rows: Sequence[MethodRow]) -> float:
    """How far to the right the operating points reach, rounded up; 1 where the whole square shows them well.

    A rare class is worth few false positives, so its points crowd at the left edge.
    """
    places = [row.operates[0] for row in rows if row.operates is not None and not row.candidate.collapse]
    reach = 2.5 * max(places, default=1.0)
    fits = [k * 10.0**-e for e in range(6, 0, -1) for k in (1, 2, 5) if k * 10.0**-e >= reach]
    return fits[0] if fits and fits[0] <= 0.2 else 1.0


def precision_recall(rows: Sequence[MethodRow], sliders: Sliders, prevalence: float) -> Chart:
    """Precision against recall; a dashed line shows the precision of calling every row positive."""
    axes = "recall", "precision"
    chart = Chart("precision against recall", (0, 1), (0, 1), *axes, margins=MARGINS, live="pr")
    everything = f"everything positive: {numerals.fixed(prevalence)}"
    chart.lines.append(Line([(0, prevalence), (1, prevalence)], "level own", everything))
    for row in rows:
        if row.index in sliders:
            _line(chart, row, sliders[row.index].precisions)
        c = row.pooled
        if row.candidate.outcomes and c.tp + c.fp > 0:
            recall, precision = c.tpr, divide(c.tp, c.tp + c.fp)
            rates = f"recall {numerals.fixed(recall)}, precision {numerals.fixed(precision)}"
            _mark(chart, row, (recall, precision), f" with its cuts: {rates}")
    return chart


def calibration(rows: Sequence[MethodRow]) -> Chart:
    """The share of positives against the predicted probability, in bins; a larger point stands for more rows."""
    c = [row.candidate.calibration for row in rows]
    top = max([v for x in c for v in (*x.predicted, *x.observed) if math.isfinite(v)], default=1.0)
    top = min(1.0, 1.05 * top) or 1.0
    chart = Chart("calibration", (0, top), (0, top), "predicted probability", "share of positives")
    chart.lines.append(Line([(0, 0), (top, top)], "level own", "as often as predicted"))
    for row in rows:
        own = row.candidate.calibration
        _line(chart, row, zip(own.predicted, own.observed, strict=True))
        most = max(own.rows, default=1) or 1
        for x, y, n in zip(own.predicted, own.observed, own.rows, strict=True):
            note = f": predicted {numerals.fixed(x)}, observed {numerals.fixed(y)}, {numerals.count(n)} rows"
            _mark(chart, row, (x, y), note, r=1.5 + 3 * math.sqrt(n / most))
    return chart


def trained(rows: Sequence[MethodRow]) -> list[MethodRow]:
    """The methods that have epochs to show."""
    return [row for row in rows if len(row.held) > 1]


def courses(rows: Sequence[MethodRow], title: str) -> tuple[Chart, Chart]:
    """Two pictures: the score on held-out rows by epoch, and each loss between its own highest and lowest."""
    across = (1, max(2, *(len(row.held) for row in rows)))
    held = window([v for row in rows for v in row.held])
    score = Chart(f"{title} by epoch", across, held, "epoch", f"{title} on held-out rows")
    loss = Chart("loss by epoch", across, (-0.03, 1.03), "epoch", "loss, lowest to highest")
    for row in rows:
        _line(score, row, enumerate(row.held, 1))
        losses = row.candidate.epochs.loss
        kept = [v for v in losses if math.isfinite(v)]
        low, high = min(kept, default=0.0), max(kept, default=0.0)
        scaled = [(v - low) / (high - low) if high > low else 0.0 for v in losses]
        _line(loss, row, enumerate(scaled, 1), f": {low:.4g} to {high:.4g}")
    return score, loss


def scatters(rows: Sequence[MethodRow], title: str) -> list[tuple[MethodRow, Chart, str]]:
    """For each method, loss against score, one point per epoch, and how closely the two go together."""
    scores = window([v for row in rows for v in row.held], 0.08)
    out = []
    for row in rows:
        pairs = [
            p for p in zip(row.candidate.epochs.loss, row.held, strict=False) if all(map(math.isfinite, p))
        ]
        if len(pairs) < 2:
            continue
        losses, label = window([x for x, _ in pairs], 0.08), f"{row.name}: loss against {title}"
        chart = Chart(label, losses, scores, "loss", title, width=240, height=190, margins=(8, 14, 34, 44))
        chart.lines.append(Line(pairs, f"s thin c{row.colour}"))
        for epoch, p in enumerate(pairs, 1):
            note = f"epoch {epoch}: loss {p[0]:.4g}, {title} {numerals.fixed(p[1])}"
            size = 4.5 if epoch == len(pairs) else 2.5
            chart.marks.append(Mark(p, row.dash, f"p c{row.colour}", size, note))
        # Two clusters alone make the correlation of the values large, not that of the steps.
        steps = [(b[0] - a[0], b[1] - a[1]) for a, b in itertools.pairwise(pairs)]
        out.append((row, chart, f"r = {_correlation(pairs)}, of the steps {_correlation(steps)}"))
    return out


def _correlation(pairs: list[Pair]) -> str:
    try:
        return numerals.fixed(statistics.correlation(*zip(*pairs, strict=True)), 2)
    except (statistics.StatisticsError, TypeError):
        return numerals.NONE


def _line(chart: Chart, row: MethodRow, points: Iterable[Pair], note: str = "") -> None:
    chart.lines.append(Line(list(points), key(row).line, f"{row.name}{note}", row.index))


def _mark(chart: Chart, row: MethodRow, at: Pair, note: str, r: float | None = None) -> None:
    size = r or (5 if row.winner else 4)
    chart.marks.append(Mark(at, row.dash, key(row).mark, size, f"{row.name}{note}", row.index))
