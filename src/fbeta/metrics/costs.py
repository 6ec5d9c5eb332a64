"""What a mistake costs at an operating point, by the slopes of a metric."""

from __future__ import annotations

from fbeta.metrics.confusion import Cell, Confusion
from fbeta.metrics.metric import Metric


def tangent_costs(metric: Metric, at: Confusion, stream: Cell = None) -> tuple[Cell, Cell]:
    r"""The prices (c₀, c₁) of a wrong negative and a wrong positive row at an operating point.

    .. math:: c_1 = \frac{\partial M/\partial t}{\pi_s}, \qquad c_0 = \frac{-\partial M/\partial u}{1 - \pi_s}

    π is the prevalence of `at`, π_s = `stream` that of the training rows (the same if None). For F_β
    c₀/(c₀ + c₁) = F_β/(1 + β²).

    Shape: cells ``(*)``; prices ``(*)``.

    >>> from fbeta import FBeta
    >>> c0, c1 = tangent_costs(FBeta(1), Confusion(tp=0.25, fp=0.25, fn=0.25, tn=0.25))
    >>> c0 / (c0 + c1)
    0.25
    """
    g1, g0 = metric.gains(at)
    if stream is None:
        return g0, g1
    share = at.prevalence
    return g0 * (1 - share) / (1 - stream), g1 * share / stream
