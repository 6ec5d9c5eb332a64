"""The pictures of a comparison: ROC, precision and recall, calibration, courses of training."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence

from fbeta.metrics import Metric
from fbeta.report import level_lines
from fbeta.report.chart import Chart, Key, Line, Mark, Pair, window
from fbeta.report.method_rows import MethodRow
from fbeta.report.numerals import NONE, count, fixed, short
from fbeta.report.slider import Slider

Rows = Sequence[MethodRow]
Sliders = Mapping[int, Slider]

#: Room around the pictures whose lines have labels at their ends.
MARGINS = (22, 32, 38, 46)


def key(row: MethodRow) -> Key:
    """A method's entry in the legend."""
    look = f"c{row.colour}{' best' * row.winner}"
    return Key(row.name, f"s d{row.dash} {look}", f"p {look}", row.dash)


def roc(rows: Rows, sliders: Sliders, metric: Metric, prevalence: float, title: str, right: float = 1) -> Chart:
    """ROC curves over lines of equal score, and where each method operates; `right` is the largest FPR shown."""
    label = f"ROC curves, false against true positive rate, with lines of equal {title}"
    axes = "false positive rate", "true positive rate (recall)"
    chart = Chart(label, (0, right), (0, 1), *axes, margins=MARGINS, live="roc")
    level_lines.add(chart, level_lines.level_lines(metric, prevalence, right), right)
    for row in rows:
        _line(chart, row, sliders[row.index].rates)
        if row.operates is None or row.operates[0] > right:
            continue
        fpr, tpr = row.operates
        _mark(chart, row, (fpr, tpr), f" with its cuts: FPR {short(fpr, 3)}, TPR {short(tpr, 3)}")
        if row.winner and fpr < right:
            score = float(level_lines.scores(metric, row.pooled))
            through = level_lines.level_line(metric, prevalence, score, right)
            note = f"{title} {fixed(score)}, as the chosen method"
            chart.lines.insert(0, Line(through.points, "level own", note))
    return chart


def zoom(rows: Rows) -> float:
    """How far to the right the operating points reach, rounded up; 1 where the whole square shows them well.

    A rare class is worth few false positives, so its points crowd at the left edge.
    """
    places = [row.operates[0] for row in rows if row.operates is not None and not row.candidate.collapse]
    reach = 2.5 * max(places, default=1.0)
    steps = [k * 10.0**-e for e in range(6, 0, -1) for k in (1, 2, 5)]
    return next((step for step in steps if reach <= step <= 0.2), 1.0)


def precision_recall(rows: Rows, sliders: Sliders, prevalence: float) -> Chart:
    """Precision against recall; a dashed line shows the precision of calling every row positive."""
    axes = "recall", "precision"
    chart = Chart("precision against recall", (0, 1), (0, 1), *axes, margins=MARGINS, live="pr")
    everything = f"everything positive: {fixed(prevalence)}"
    chart.lines.append(Line([(0, prevalence), (1, prevalence)], "level own", everything))
    for row in rows:
        _line(chart, row, sliders[row.index].precisions)
        c = row.pooled
        if c.tp + c.fp > 0:
            recall, precision = c.tpr, c.tp / (c.tp + c.fp)
            rates = f"recall {fixed(recall)}, precision {fixed(precision)}"
            _mark(chart, row, (recall, precision), f" with its cuts: {rates}")
    return chart


def calibration(rows: Rows) -> Chart:
    """The share of positives against the predicted probability, in bins; a larger point stands for more rows."""
    bins = [row.candidate.calibration for row in rows]
    _, top = window([v for x in bins for v in (0.0, *x.predicted, *x.observed)])
    top = min(1.0, top)
    chart = Chart("calibration", (0, top), (0, top), "predicted probability", "share of positives")
    chart.lines.append(Line([(0, 0), (top, top)], "level own", "as often as predicted"))
    for row, own in zip(rows, bins, strict=True):
        _line(chart, row, zip(own.predicted, own.observed, strict=True))
        most = max(own.rows, default=1) or 1
        for x, y, n in zip(own.predicted, own.observed, own.rows, strict=True):
            note = f": predicted {fixed(x)}, observed {fixed(y)}, {count(n)} rows"
            _mark(chart, row, (x, y), note, r=1.5 + 3 * math.sqrt(n / most))
    return chart


def trained(rows: Rows) -> list[MethodRow]:
    """The methods that have epochs to show."""
    return [row for row in rows if len(row.held) > 1]


def courses(rows: Rows, title: str) -> tuple[Chart, Chart]:
    """Two pictures: the score on held-out rows by epoch, and each loss between its own highest and lowest."""
    across = (1, max(2, *(len(row.held) for row in rows)))
    held = window([v for row in rows for v in row.held])
    score = Chart(f"{title} by epoch", across, held, "epoch", f"{title} on held-out rows")
    loss = Chart("loss by epoch", across, (-0.03, 1.03), "epoch", "loss, lowest to highest")
    for row in rows:
        _line(score, row, enumerate(row.held, 1))
        losses = row.candidate.epochs.loss
        kept = [v for v in losses if math.isfinite(v)] or [0.0]
        low, high = min(kept), max(kept)
        scaled = [(v - low) / (high - low or 1.0) for v in losses]
        _line(loss, row, enumerate(scaled, 1), f": {low:.4g} to {high:.4g}")
    return score, loss


def scatters(rows: Rows, title: str) -> list[tuple[MethodRow, Chart, str]]:
    """For each method, loss against score, one point per epoch, and how closely the two go together."""
    scores = window([v for row in rows for v in row.held], 0.08)
    out = []
    for row in rows:
        epochs = zip(row.candidate.epochs.loss, row.held, strict=False)
        pairs = [p for p in epochs if all(map(math.isfinite, p))]
        if len(pairs) < 2:
            continue
        losses, label = window([x for x, _ in pairs], 0.08), f"{row.name}: loss against {title}"
        chart = Chart(label, losses, scores, "loss", title, width=240, height=190, margins=(8, 14, 34, 44))
        chart.lines.append(Line(pairs, f"s thin c{row.colour}"))
        for epoch, (loss, score) in enumerate(pairs, 1):
            note = f"epoch {epoch}: loss {loss:.4g}, {title} {fixed(score)}"
            size = 4.5 if epoch == len(pairs) else 2.5
            chart.marks.append(Mark((loss, score), row.dash, f"p c{row.colour}", size, note))
        # Two clusters alone make the correlation of the values large, not that of the steps.
        steps = [(b[0] - a[0], b[1] - a[1]) for a, b in itertools.pairwise(pairs)]
        out.append((row, chart, f"r = {_correlation(pairs)}, of the steps {_correlation(steps)}"))
    return out


def _correlation(pairs: list[Pair]) -> str:
    try:
        return fixed(statistics.correlation(*zip(*pairs, strict=True)), 2)
    except statistics.StatisticsError:
        return NONE


def _line(chart: Chart, row: MethodRow, points: Iterable[Pair], note: str = "") -> None:
    chart.lines.append(Line(list(points), key(row).line, f"{row.name}{note}", row.index))


def _mark(chart: Chart, row: MethodRow, at: Pair, note: str, r: float | None = None) -> None:
    size = r or (5 if row.winner else 4)
    chart.marks.append(Mark(at, row.dash, key(row).mark, size, f"{row.name}{note}", row.index))
