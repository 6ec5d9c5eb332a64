"""The page of a comparison: what it says, handed to a template that escapes every string."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fbeta import numerals
from fbeta.comparison.result import Comparison
from fbeta.metrics import Confusion, Cost, Metric, as_metric
from fbeta.report import advice, method_rows, shell, svg
from fbeta.report import comparison_charts as charts
from fbeta.report.method_rows import MethodRow

#: With more methods than this the pictures start with a few of them.
CROWD = 7


def page(comparison: Comparison, metric: Metric | Callable[..., Any] | None = None) -> str:
    """Compose the page of a comparison: one HTML file, nothing fetched, every name from the data escaped.

    `metric` is needed only for a metric of one's own that no spec can name.

    >>> from fbeta.comparison.result import Comparison, TableFacts
    >>> table = TableFacts("fraud", "is_fraud", "1", 1000, 20, 5)
    >>> page(Comparison(table, "fbeta:beta=2", "F₂", (), "", "", "Nothing was run."))[:15]
    '<!doctype html>'
    """
    own, title = _metric(comparison, metric), comparison.title
    rows = method_rows.method_rows(comparison)
    digits = method_rows.digits(rows)
    sliders = {row.index: made for row in rows if (made := charts.slider(row, own)) is not None}
    live = [row for row in rows if row.index in sliders]
    chosen = next((row for row in live if row.advised), live[0] if live else None)
    s = sliders[chosen.index] if chosen else None
    prevalence = s.positives / (s.positives + s.negatives) if s else math.nan
    tools = {"charts": charts, "first": advice, "draw": svg, "method_rows": method_rows, "numerals": numerals}
    methods = {"rows": rows, "digits": digits, "shown": _shown_first(rows), "trained": charts.trained(rows)}
    cuts = {"live": live, "sliders": sliders, "chosen": chosen, "prevalence": prevalence}
    notes = {"costs": _costs(title, own, chosen, s), "pole": _pole(own, prevalence)}
    template = shell.resource("comparison.html")
    body = shell.fill(template, c=comparison, metric=own, **methods, **cuts, **notes, **tools)
    machine = f" on {comparison.machine}" if comparison.machine else ""
    took = f"Took {numerals.duration(comparison.seconds)}{machine}." if comparison.seconds else ""
    data = {"digits": digits, "methods": {i: _data(s, rows[i], own, digits) for i, s in sliders.items()}}
    heading, script = f"{comparison.table.name} by {title}", shell.resource("comparison.js")
    return shell.page(heading, body, footer=took, script=script, data=data)


def write(comparison: Comparison, path: str | Path, metric: Metric | Callable[..., Any] | None = None) -> None:
    """Write the page of a comparison to a file, whole or not at all."""
    shell.write(page(comparison, metric), path)


def _metric(comparison: Comparison, metric: Metric | Callable[..., Any] | None) -> Metric:
    if metric is not None:
        return as_metric(metric)
    try:
        return as_metric(comparison.metric)
    except ValueError as error:
        raise ValueError(
            f"The comparison's metric is not known here: {error} Give your own as report.page(comparison, metric=…)."
        ) from None


def _data(s: charts.Slider, row: MethodRow, metric: Metric, digits: int) -> dict[str, Any]:
    """What the script needs of a method: counts as they are, scores as they are shown, cuts as text."""
    scored = row.pooled
    decided = (
        {} if scored is None else {"tp": scored.tp, "fp": scored.fp, "score": _round(float(metric(scored)), digits)}
    )
    lowest, highest = (numerals.cut(end, 3) for end in (min(row.cuts), max(row.cuts)))
    cuts = lowest if lowest == highest else f"{lowest} to {highest}"
    return s._asdict() | {
        "name": numerals.clean(row.name),
        "scored": decided | {"cut": cuts},
        "cut": [numerals.cut(x) for x in s.cut],
        # Rounded once, here: the page can only show what Python would.
        "score": [_round(x, digits) for x in s.score],
    }


def _round(x: float, digits: int) -> float | None:
    return round(x, digits) if math.isfinite(x) else None


def _shown_first(rows: list[MethodRow]) -> set[int]:
    """The methods that pictures show first: all, or of many the best on out-of-fold rows and the baseline."""
    if len(rows) <= CROWD:
        return {row.index for row in rows}
    order = method_rows.ranked(rows)
    named = [row for row in rows if row.advised or row.baseline]
    learned = charts.trained(order)  # of which the courses of training show at least some
    return {row.index for row in [*named, *order[: CROWD - 4], *learned[:2]]}


def _costs(title: str, metric: Metric, chosen: MethodRow | None, s: charts.Slider | None) -> tuple[float, float, str]:
    """Costs of a false positive and a false negative to start with, and why: the metric's own where it operates."""
    if isinstance(metric, Cost):
        return metric.fp, metric.fn, "The metric's own costs."
    if chosen is None or s is None:
        return 1, 1, ""
    tp, fp = s.tp[s.own], s.fp[s.own]
    delta = float(metric.best_cut(Confusion(tp, fp, s.positives - tp, s.negatives - fp)))
    if not 1e-4 < delta < 1 - 1e-4:
        return 1, 1, ""
    ratio = float(f"{(1 - delta) / delta:.2g}")
    note = (
        f"The costs start at the trade-off that {title} itself makes at the cut of {chosen.name}: one false negative "
        f"weighs as much as {ratio:g} false positives. Enter your own."
    )
    return 1, ratio, note


def _pole(metric: Metric, prevalence: float) -> str:
    """What the lines of equal score are like, in words."""
    pole = metric.pole(prevalence) if 0 < prevalence < 1 else None
    if pole is None:
        return "which are curved"
    if pole.at_infinity:
        return f"which are parallel, of slope {numerals.short(pole.slope, 3)}"
    return f"all from the pole ({numerals.short(pole.x, 3)}, {numerals.short(pole.y, 3)})"
