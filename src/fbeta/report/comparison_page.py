"""The page of a comparison: what it says, handed to a template that escapes every string."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from fbeta.comparison.result import Comparison
from fbeta.metrics import Confusion, Cost, Metric, as_metric
from fbeta.report import comparison_charts as charts
from fbeta.report import method_rows, numerals, shell
from fbeta.report.method_rows import MethodRow
from fbeta.report.slider import Slider, slider
from fbeta.report.svg import bar, sample, svg

#: With more methods than this the pictures start with a few of them.
CROWD = 7


def page(comparison: Comparison, metric: Metric | Callable[..., Any] | None = None) -> str:
    """Compose the page.

    >>> from fbeta.comparison.result import TableFacts
    >>> table = TableFacts("<b>", "y", "1", 9, 2, 1)
    >>> "&lt;b&gt; by MCC" in page(Comparison(table, "mcc", "MCC", (), "", "", "Nothing was run."))
    True
    """
    own, title = _metric(comparison, metric), comparison.title
    rows = method_rows.method_rows(comparison)
    digits = method_rows.digits(rows)
    sliders = {row.index: made for row in rows if (made := slider(row, own)) is not None}
    live = [row for row in rows if row.index in sliders]
    chosen = next((row for row in live if row.winner), live[0] if live else None)
    chosen_slider = sliders[chosen.index] if chosen else None
    prevalence = chosen_slider.prevalence if chosen_slider else math.nan
    body = shell.fill(
        shell.resource("comparison.html"),
        c=comparison,
        metric=own,
        rows=rows,
        digits=digits,
        shown=_shown_first(rows),
        live=live,
        sliders=sliders,
        chosen=chosen,
        prevalence=prevalence,
        costs=_costs(title, own, chosen, chosen_slider),
        pole=_pole(own, prevalence),
        trained=charts.trained(rows),
        charts=charts,
        method_rows=method_rows,
        numerals=numerals,
        bar=bar,
        svg=svg,
        sample=sample,
    )
    machine = f" on {comparison.machine}" if comparison.machine else ""
    took = f"Took {numerals.duration(comparison.seconds)}{machine}." if comparison.seconds else ""
    return shell.page(
        f"{comparison.table.name} by {title}",
        body,
        footer=took,
        script=shell.resource("comparison.js"),
        data={"digits": digits, "methods": {i: _data(s, rows[i].name, digits) for i, s in sliders.items()}},
    )


def _metric(comparison: Comparison, metric: Metric | Callable[..., Any] | None) -> Metric:
    if metric is not None:
        return as_metric(metric)
    try:
        return as_metric(comparison.metric)
    except ValueError as error:
        raise ValueError(
            f"The comparison's metric is not known here: {error} Give your own as report.page(comparison, metric=…)."
        ) from None


def _data(s: Slider, name: str, digits: int) -> dict[str, Any]:
    """What the script needs of a method: counts as they are, scores as they are shown, cuts as text."""
    return asdict(s) | {
        "name": numerals.clean(name),
        "cut": [numerals.cut(x) for x in s.cut],
        # Rounded once, here: the page can only show what Python would.
        "score": [round(x, digits) if math.isfinite(x) else None for x in s.score],
    }


def _shown_first(rows: list[MethodRow]) -> set[int]:
    """The methods that pictures show first: all, or of many the best on out-of-fold rows and the baseline."""
    if len(rows) <= CROWD:
        return {row.index for row in rows}
    order = method_rows.ranked(rows)
    named = [row for row in rows if row.winner or row.baseline]
    learnt = charts.trained(order)  # of which the courses of training show at least some
    return {row.index for row in [*named, *order[: CROWD - 4], *learnt[:2]]}


def _costs(title: str, metric: Metric, chosen: MethodRow | None, s: Slider | None) -> tuple[float, float, str]:
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
