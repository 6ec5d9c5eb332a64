"""What a mistake costs at an operating point: by the slopes of a metric, and within limits that training needs.

Everything here is plain arithmetic on numbers, NumPy arrays, torch tensors, or the symbols that `fbeta.losses` traces
formulas with; `xp` is the library that has `where`, `clip` and `isfinite` for them. Conditions are combined by ``*``,
which all of these know.
"""

from typing import Any

from fbeta.metrics.confusion import Cell, Confusion
from fbeta.metrics.metric import Metric


def tangent_costs(metric: Metric, at: Confusion, stream: Cell = None) -> tuple[Cell, Cell]:
    r"""The costs (c₀, c₁) of a wrong negative and a wrong positive row at an operating point.

    .. math:: c_1 = \frac{\partial M/\partial t}{\pi_s}, \qquad c_0 = \frac{-\partial M/\partial u}{1 - \pi_s}

    π is the prevalence of `at`, π_s = `stream` that of the training rows (the same if None). For F_β
    c₀/(c₀ + c₁) = F_β/(1 + β²).

    Shape: cells ``(*)``; costs ``(*)``.

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


def class_costs(
    metric: Metric,
    counted: Confusion,
    fresh: tuple[Cell, Cell] = (0.5, 0.5),
    *,
    population: Cell = None,
    stream: Cell = None,
    warmup: float = 0.0,
    epsilon: float | None = 0.0,
    shared: bool = False,
    together: bool = False,
    xp: Any,
) -> tuple[Cell, Cell]:
    r"""The costs (c₀, c₁) that training uses: from `fresh` ones to those of the counts, within limits, of mean one.

    .. math:: c = (1 - \tau)\, c^\text{fresh} + \tau\, \frac{c(\text{counts})}{\sum c(\text{counts})}, \qquad
              \tau = \min(1,\ P/\text{warmup}), \qquad \varepsilon \le \frac{c_0}{c_0 + c_1} \le 1 - \varepsilon

    and then divided by :math:`(1 - \pi_s)\, c_0 + \pi_s\, c_1`, the mean over the training rows: a step is as long as
    that of cross entropy, however rare the positives are.

    - `counted`: counts of an operating point, taken to the prevalence `population` if that is given; `stream` is
      π_s, the rate of positives in the training rows (that of `counted` if None). P is the number of positives.
    - `fresh`: what serves before both classes were seen, and where the metric has no slope, as in a corner of ROC
      space; of sum one.
    - `epsilon`: None for neither limits nor the last scale.
    - `shared`: columns keep their own scales, relative to the mean of all: a macro average weighs rare labels more.
      `together`: all are trusted as much as the one that is trusted least (classes compete).

    Shape: cells ``(*)``, or ``(K,)`` if `shared`; costs the same, of mean one over rows (and columns if `shared`).

    >>> import numpy as np
    >>> from fbeta import FBeta
    >>> c0, c1 = class_costs(FBeta(1), Confusion(tp=8.0, fp=2.0, fn=4.0, tn=86.0), xp=np)
    >>> round(float(c0), 4), round(float(c1), 4)
    (0.9174, 1.6055)
    >>> round(0.88 * float(c0) + 0.12 * float(c1), 4)
    1.0

    Reference: [narasimhan2015]
    """
    at = counted if population is None else counted.at_prevalence(population)
    c0, c1 = tangent_costs(metric, at, stream)
    total, positives = c0 + c1, counted.positives
    known = xp.isfinite(total) * (total > 0) * (positives > 0) * (counted.negatives > 0)
    if shared:  # both on the scale of one on average over columns, so that they can be mixed
        total = xp.where(known, total, 0.0).sum() / known.sum().clip(1)
    total = xp.where(total > 0, total, 1.0)
    trust = xp.clip(positives / warmup, None, 1.0) if warmup else 1.0
    if together and warmup:
        trust = xp.where(known, trust, 1.0).min()
    c0, c1 = (xp.where(known, trust * (c / total) + (1 - trust) * f, f) for c, f in zip((c0, c1), fresh, strict=True))
    if epsilon is None:
        return c0, c1
    size = c0 + c1
    delta = xp.clip(c0 / size, epsilon, 1 - epsilon)
    rate = counted.prevalence if stream is None else stream
    mean = (1 - rate) * delta + rate * (1 - delta)
    size = size / (size * mean).mean() if shared else 1 / mean
    return delta * size, (1 - delta) * size


def stream_rate(population: Cell, told: Cell, seen: Confusion) -> Cell:
    """The rate of positives in the training rows: told, else counted, else the population's.

    Counts serve once both classes were seen. None where the population's rate is unknown: the rows are the population.
    """
    if population is None or told is not None:
        return None if population is None else told
    rate = seen.prevalence
    known = ((rate > 0) * (rate < 1)) * 1.0
    return known * rate + (1.0 - known) * population
