"""The page of a comparison: what it says, handed to a template that escapes every string."""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections.abc import Callable
from importlib.resources import files
from typing import Any

try:
    from jinja2 import Environment
    from markupsafe import Markup
except ImportError as error:
    raise ImportError("A page needs jinja2: pip install 'fbeta[report]'") from error

from fbeta.comparison.result import Comparison
from fbeta.metrics import Cost, Metric
from fbeta.metrics import metric as read_metric
from fbeta.report import pictures, words
from fbeta.report.chart import tick
from fbeta.report.points import Points, points
from fbeta.report.rows import about, beforehand, rows, scale, tests

#: With more methods than this the pictures start with a few of them.
CROWD = 7


def document(comparison: Comparison, metric: Metric | Callable[..., Any] | None = None) -> str:
    """Compose the page.

    >>> from fbeta.comparison.result import Table
    >>> table = Table("<b>", "y", "1", 9, 2, 1)
    >>> "&lt;b&gt; by MCC" in document(Comparison(table, "mcc", "MCC", (), "", "", "Nothing was run."))
    True
    """
    own = _metric(comparison, metric)
    made = [points(c, own) for c in comparison.candidates]
    lines = rows(comparison)
    digits = words.digits_for(x for row in lines for x in (row.score.mean, row.at_half.mean))
    series = pictures.series(comparison, made)
    live = [s for s in series if s.points is not None]
    trained = pictures.trained(series)
    style, script = _file("page.css"), _file("page.js")
    chosen = next((s for s in live if s.winner), live[0] if live else None)
    prevalence = _prevalence(chosen.points) if chosen and chosen.points else math.nan
    price, price_words = _price(comparison, own, chosen)
    zoom = pictures.zoom(live)
    few = _few(comparison, series)
    html: str = _template().render(
        c=comparison,
        about=about(comparison),
        beforehand=beforehand(comparison),
        formula=own.formula,
        rows=lines,
        digits=digits,
        keys=[pictures.key(s) for s in series],
        scale=scale(lines, lambda row: (row.score, row.at_half)),
        difference_scale=scale(lines, lambda row: (row.difference,), 0.0),
        bar=pictures.bar,
        tests=tests(comparison),
        series=series,
        shown=few,
        live=live,
        chosen=chosen,
        price=price,
        price_words=price_words,
        pole=_pole(own, prevalence),
        roc=pictures.roc(live, own, prevalence, comparison.title) if live else None,
        roc_zoom=pictures.roc(live, own, prevalence, comparison.title, zoom) if live and zoom < 1 else None,
        zoom=zoom,
        pr=pictures.precision_recall(live, prevalence) if live else None,
        calibration=pictures.calibration(series)
        if any(s.candidate.calibration.rows for s in series)
        else None,
        courses=pictures.courses(trained, comparison.title) if trained else None,
        scatters=pictures.scatters(trained, comparison.title),
        words=words,
        style=Markup(style),
        script=Markup(script),
        data=_json(_data(live, digits)),
        policy=f"default-src 'none'; img-src data:; script-src {_hash(script)}; style-src {_hash(style)}",
    )
    return html


def _template() -> Any:
    environment = Environment(
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        # Markup is ours; any other text may come from the data.
        finalize=lambda x: words.clean(x) if isinstance(x, str) and not isinstance(x, Markup) else x,
    )
    return environment.from_string(_file("page.html"))


def _file(name: str) -> str:
    return files("fbeta.report").joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """What a browser compares before it runs or applies our text; it refuses any other."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _json(value: Any) -> Markup:
    """JSON that can stand in a script element: it holds nothing that could end one."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return Markup(text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e"))


def _metric(comparison: Comparison, metric: Metric | Callable[..., Any] | None) -> Metric:
    if metric is not None:
        return read_metric(metric)
    try:
        return read_metric(comparison.metric)
    except ValueError as error:
        raise ValueError(
            f"The comparison's metric is not known here: {error} Give your own as report.page(comparison, metric=…)."
        ) from None


def _data(live: list[pictures.Series], digits: int) -> dict[str, Any]:
    """What the script needs: counts as they are, scores as they are shown, cuts as text."""
    methods = {}
    for s in live:
        assert s.points is not None
        p = s.points
        methods[s.index] = {
            "name": words.clean(s.candidate.name),
            "cut": [words.cut(x.cut) for x in p.points],
            "tp": [_short(x.tp) for x in p.points],
            "fp": [_short(x.fp) for x in p.points],
            # Rounded once, here: the page can only show what Python would.
            "score": [round(x.score, digits) if math.isfinite(x.score) else None for x in p.points],
            "positives": _short(p.positives),
            "negatives": _short(p.negatives),
            "own": p.own,
            "half": p.half,
        }
    return {"digits": digits, "methods": methods}


def _short(x: float) -> float:
    return int(x) if x == int(x) else x


def _prevalence(p: Points) -> float:
    return p.positives / (p.positives + p.negatives)


def _few(comparison: Comparison, series: list[pictures.Series]) -> set[int]:
    """The methods that pictures show first: all, or of many the best on out-of-fold rows and the baseline."""
    if len(series) <= CROWD:
        return {s.index for s in series}
    order = sorted(series, key=lambda s: -s.candidate.inner if s.candidate.outcomes else math.inf)
    named = [s for s in series if s.candidate.name in (comparison.winner, comparison.baseline)]
    learnt = pictures.trained(order)  # of which the courses of training show at least some
    return {s.index for s in [*named, *order[: CROWD - 4], *learnt[:2]]}


def _price(
    comparison: Comparison, metric: Metric, chosen: pictures.Series | None
) -> tuple[tuple[str, str], str]:
    """Costs of a false alarm and a miss to start with: the metric's own where it operates."""
    if isinstance(metric, Cost):
        return (f"{metric.fp:g}", f"{metric.fn:g}"), "The metric's own prices."
    if chosen is None or chosen.points is None:
        return ("1", "1"), ""
    delta = float(metric.best_cut(chosen.points.confusion(chosen.points.own)))
    if not 1e-4 < delta < 1 - 1e-4:
        return ("1", "1"), ""
    ratio = float(f"{(1 - delta) / delta:.2g}")
    return ("1", f"{ratio:g}"), (
        f"To start with, a miss costs {ratio:g} false alarms: so {comparison.title} itself prices them "
        f"at the cut of {chosen.candidate.name}. Put in your own."
    )


def _pole(metric: Metric, prevalence: float) -> str:
    """Where the lines of equal score come from, in words."""
    pole = metric.pole(prevalence) if 0 < prevalence < 1 else None
    if pole is None:
        return "They are curved."
    if pole.at_infinity:
        return f"They are parallel, of slope {tick(pole.slope)}."
    return f"All from one point, the pole ({tick(pole.x)}, {tick(pole.y)})."
