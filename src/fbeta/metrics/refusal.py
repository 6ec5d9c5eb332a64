"""Why a metric cannot be trained for."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from fbeta.metrics.confusion import Confusion

if TYPE_CHECKING:
    from fbeta.metrics.metric import Metric


def refusal(metric: Metric, prevalence: float | None) -> str | None:
    """Say why no loss can be built on this metric, or None if one can."""
    rates = (0.01, 0.1, 0.5) if prevalence is None else (prevalence,)
    grid = (0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 0.98)
    for p in rates:
        some = Confusion.from_rates(0.2, 0.7, p)
        doubled = some + some
        if not math.isclose(metric(some), metric(doubled), rel_tol=1e-9, abs_tol=1e-12):
            return (
                f"{metric!r} changes when every row is counted twice, so it is no function of rates. "
                "Divide by the number of rows."
            )
        slopes = [(u, t, *metric.slopes(Confusion.from_rates(u, t, p))) for u in grid for t in grid if u <= t]
        steepest = max(max(abs(a), abs(b)) for *_, a, b in slopes)
        noise = 1e-9 * steepest  # what central differences of an opaque formula may be off by
        for u, t, by_t, by_u in slopes:
            if not (by_t >= -noise and by_u >= -noise):
                side = "a right positive" if not by_t >= -noise else "a right negative"
                return (
                    f"{metric!r} has a negative slope: at FPR {u}, TPR {t} and prevalence {p} {side} lowers "
                    "the score. A training target must rise with both; did you swap two cells or forget "
                    "to negate a cost?"
                )
        for side, other, column in (("positive", "negative", 2), ("negative", "positive", 3)):
            if all(abs(row[column]) <= 1e-4 * noise for row in slopes):
                return (
                    f"{metric!r} gives nothing for a right {side}, so 'everything {other}' is already its "
                    "optimum. Use FBeta with a large or small beta, or BalancedAccuracy()."
                )
        pole = metric.pole(p)
        if pole is not None and (pole.x, pole.y) in ((0.0, 0.0), (1.0, 1.0)):
            corner = "one confident positive" if pole.x == 0 else "one confident negative"
            return (
                f"{metric!r} puts its pole on the corner ({pole.x:g}, {pole.y:g}) of ROC space: {corner} "
                "already scores 1, so no loss for it has a useful minimum. Use FBeta(beta=0.1) for "
                "something close to precision, and choose the cut afterwards."
            )
    return None
