"""The pictures of a comparison: ROC, precision and recall, calibration, courses of training; the cuts of its slider."""

import itertools
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from fbeta.decisions.steps import score_cells
from fbeta.metrics import Confusion, Metric
from fbeta.numerals import NONE, count, fixed, short
from fbeta.report import level_lines
from fbeta.report.chart import Chart, Line, Mark, Pair, window
from fbeta.report.method_rows import MethodRow

#: Room around the pictures whose lines have labels at their ends.
MARGINS = (22, 32, 38, 46)


class Slider(NamedTuple):
    """At or above ``cut[i]``, which rises, lie ``tp[i]`` and ``fp[i]``; `own` and `half` are positions of two cuts."""

    cut: list[float]
    tp: list[float]
    fp: list[float]
    score: list[float]
    positives: float
    negatives: float
    own: int
    half: int


MethodRows = Sequence[MethodRow]
Sliders = Mapping[int, Slider]


def slider(row: MethodRow, metric: Metric, most: int = 400) -> Slider | None:
    """A method's test rows at about `most` cuts, with exact counts; None where a class is missing."""
    o = row.candidate.operating
    if not o.cut or not (o.positives > 0 and o.negatives > 0):
        return None
    cut, tp, fp = np.array([o.cut, o.tp, o.fp])[:, ::-1]
    if tp[-1] + fp[-1] > 0:  # calling nothing positive is a choice too
        cut, tp, fp = np.append(cut, np.inf), np.append(tp, 0), np.append(fp, 0)
    # The first position whose cut is that or more: its positives are the rows at or above the cut.
    marked = np.minimum(np.searchsorted(cut, [row.cut, 0.5]), len(cut) - 1)
    kept = np.arange(len(cut))
    if len(cut) > most:
        # Even along the ROC curve and the log number of alerts: users of a rare class look at its first few alerts.
        alerts = np.log1p(tp + fp) / np.log1p(o.positives + o.negatives)
        way = tp / o.positives + fp / o.negatives + 2 * alerts
        _, spread = np.unique(np.floor(way * most / 4), return_index=True)
        kept = np.union1d(spread, [0, *marked, len(cut) - 1])
    tp, fp = tp[kept], fp[kept]
    found = score_cells(metric, Confusion(tp, fp, o.positives - tp, o.negatives - fp))
    own, half = np.searchsorted(kept, marked).tolist()
    return Slider(cut[kept].tolist(), tp.tolist(), fp.tolist(), found.tolist(), o.positives, o.negatives, own, half)


def roc(rows: MethodRows, sliders: Sliders, metric: Metric, prevalence: float, title: str, right: float = 1) -> Chart:
    """ROC curves over lines of equal score, and where each method operates; `right` is the largest FPR shown."""
    label = f"ROC curves, false against true positive rate, with lines of equal {title}"
    axes = "false positive rate", "true positive rate (recall)"
    chart = Chart(label, (0, right), (0, 1), *axes, margins=MARGINS, live="roc")
    level_lines.add(chart, level_lines.level_lines(metric, prevalence, right), right)
    for row in rows:
        s = sliders[row.index]
        _line(chart, row, [(fp / s.negatives, tp / s.positives) for tp, fp in zip(s.tp, s.fp, strict=True)])
        if row.pooled is None or row.pooled.fpr > right:
            continue
        fpr, tpr = row.pooled.fpr, row.pooled.tpr
        _mark(chart, row, (fpr, tpr), f" with its cuts: FPR {short(fpr, 3)}, TPR {short(tpr, 3)}")
        if row.advised and fpr < right:
            score = float(score_cells(metric, row.pooled))
            through = level_lines.level_line(metric, prevalence, score, right)
            note = f"{title} {fixed(score)}, as the chosen method"
            chart.lines.insert(0, Line(through.points, "level own", note))
    return chart


def zoom(rows: MethodRows) -> float:
    """How far right the operating points reach, rounded up (of a rare class, not far); 1 where no zoom is needed."""
    places = [row.pooled.fpr for row in rows if row.pooled is not None and not row.remark]
    reach = 2.5 * max(places, default=1.0)
    steps = [k * 10.0**-e for e in range(6, 0, -1) for k in (1, 2, 5)]
    return next((step for step in steps if reach <= step <= 0.2), 1.0)


def precision_recall(rows: MethodRows, sliders: Sliders, prevalence: float) -> Chart:
    """Precision against recall; a dashed line shows the precision of calling every row positive."""
    axes = "recall", "precision"
    chart = Chart("precision against recall", (0, 1), (0, 1), *axes, margins=MARGINS, live="pr")
    everything = f"everything positive: {fixed(prevalence)}"
    chart.lines.append(Line([(0, prevalence), (1, prevalence)], "level own", everything))
    for row in rows:
        s, c = sliders[row.index], row.pooled
        called = [(tp, fp) for tp, fp in zip(s.tp, s.fp, strict=True) if tp + fp > 0]
        _line(chart, row, [(tp / s.positives, tp / (tp + fp)) for tp, fp in called])
        if c is not None and c.tp + c.fp > 0:
            recall, precision = c.tpr, c.tp / (c.tp + c.fp)
            rates = f"recall {fixed(recall)}, precision {fixed(precision)}"
            _mark(chart, row, (recall, precision), f" with its cuts: {rates}")
    return chart


def calibration(rows: MethodRows) -> Chart:
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


def trained(rows: MethodRows) -> list[MethodRow]:
    """The methods that have epochs to show."""
    return [row for row in rows if len(row.held) > 1]


def courses(rows: MethodRows, title: str) -> tuple[Chart, Chart]:
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


def scatters(rows: MethodRows, title: str) -> list[tuple[MethodRow, Chart, str]]:
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
        chart.lines.append(Line(pairs, f"s thin {row.colour}"))
        for epoch, (loss, score) in enumerate(pairs, 1):
            note = f"epoch {epoch}: loss {loss:.4g}, {title} {fixed(score)}"
            size = 4.5 if epoch == len(pairs) else 2.5
            chart.marks.append(Mark((loss, score), row.key.shape, f"p {row.colour}", size, note))
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
    chart.lines.append(Line(list(points), row.key.line, f"{row.name}{note}", row.index))


def _mark(chart: Chart, row: MethodRow, at: Pair, note: str, r: float | None = None) -> None:
    size = r or (5 if row.advised else 4)
    chart.marks.append(Mark(at, row.key.shape, row.key.mark, size, f"{row.name}{note}", row.index))
