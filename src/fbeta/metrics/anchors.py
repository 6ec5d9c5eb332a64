"""The points that a metric's level lines turn around, and how they are found from its slopes alone."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fbeta.metrics.confusion import Cell, Confusion

if TYPE_CHECKING:
    from fbeta.metrics.metric import Metric


@dataclass(frozen=True)
class Anchors:
    r"""The points x₀ (for negatives) and y₀ (for positives) that the level lines of a metric turn around.

    .. math:: \frac{\partial M/\partial t}{-\partial M/\partial u} = \frac{|u - x_0|}{|t - y_0|}

    so the level lines of M are those of −log|t − y₀| ± log|u − x₀|, and that is the paper's loss.
    Where both are infinite the level lines are parallel, and `slope` is their dt/du.

    >>> Anchors(negative=-1 / 9, positive=0.0).scale
    1.0

    Reference: [lee2021], eqs. gradient_fbeta and surrogate_cbloss
    """

    negative: float
    positive: float
    slope: float = math.nan

    @property
    def at_infinity(self) -> bool:
        """Whether the level lines are parallel."""
        return math.isinf(self.negative) and math.isinf(self.positive)

    @property
    def scale(self) -> float:
        """1 for the paper's loss; the harmonic mean of the distances once both are far away.

        A log distance flattens as its anchor recedes: log(d + f) − log d ≈ f/d. Multiplied by this scale
        it tends to the mean absolute error instead of to nothing (Cohen's κ near π = ½).
        """
        near, far = sorted((outside(self.negative), outside(self.positive)))
        if near <= 0 or math.isinf(near):
            return 1.0
        return max(1.0, 2 * near / (1 + near / far))


@dataclass(frozen=True)
class Pole:
    r"""The one point of the (u, t) plane that all level lines of a metric pass through.

    .. math:: M = g\!\left(\frac{t - y_0}{u - x_0}\right)

    At infinity the level lines are parallel and `slope` is their dt/du; elsewhere it is NaN.

    >>> x, y = Pole(-0.25, 0.0)
    >>> x, y
    (-0.25, 0.0)
    >>> Pole(-0.25, 0.0).ray(u=0.25, t=0.5)
    1.0
    """

    x: float
    y: float
    slope: float = math.nan

    @property
    def at_infinity(self) -> bool:
        """Whether the level lines are parallel."""
        return math.isinf(self.x)

    def ray(self, u: Cell, t: Cell) -> Cell:
        """Give the coordinate that the metric depends on: the slope seen from the pole.

        At infinity it is the height t − slope·u of the parallel.
        """
        return t - self.slope * u if self.at_infinity else (t - self.y) / (u - self.x)

    def __iter__(self) -> Iterator[float]:
        return iter((self.x, self.y))


def find_anchors(metric: Metric, prevalence: float) -> tuple[Anchors, bool] | None:
    """Anchors and whether they form a pole (a pencil of lines), or None."""

    def turn(u: float, t: float) -> float:
        try:
            by_t, by_u = metric.slopes(Confusion.from_rates(u, t, prevalence))
            return float(by_t) / float(by_u)
        except (ZeroDivisionError, OverflowError):
            return math.inf  # singular here: other points are tried

    # On the edges u = 0 and t = 1 a tiny anchor keeps all its digits. A metric that is singular there, or
    # opaque (differences stay a little inside), gets points and a tolerance of its own.
    for u1, u2, t1, t2, noise, level in ((0.0, 0.5, 1.0, 0.5, 1e-14, 1e-10), (0.125, 0.5, 0.875, 0.625, 1e-7, 1e-7)):
        across = turn(u1, t1), turn(u2, t1)
        along = turn(u2, t1), turn(u2, t2)
        if not all(map(math.isfinite, across + along)) or 0 in along:
            continue
        if all(math.isclose(*pair, rel_tol=level) for pair in (across, along)):
            anchors, sign = Anchors(math.inf, math.inf, slope=1 / along[0]), 1.0
        else:
            x0 = _zero_of_line(u1, across[0], u2, across[1], prevalence, noise)
            y0 = _zero_of_line(t1, 1 / along[0], t2, 1 / along[1], prevalence, noise)
            if math.isinf(x0) or math.isinf(y0) or t1 == y0:
                continue
            anchors = Anchors(x0, y0)
            sign = math.copysign(1.0, (u2 - x0) / (t1 - y0))
        confirmed = all(
            math.isclose(
                turn(u, t),
                1 / anchors.slope if anchors.at_infinity else sign * (u - anchors.negative) / (t - anchors.positive),
                rel_tol=1e-6,
                abs_tol=1e-12,
            )
            for u, t in ((0.05, 0.6), (0.25, 0.75), (0.4, 0.95), (0.6, 0.8))
        )
        if confirmed:
            return anchors, sign > 0
    return None


def outside(anchor: float) -> float:
    """How far an anchor lies outside [0, 1]."""
    return max(0.0, -anchor, anchor - 1.0)


def _zero_of_line(x1: float, v1: float, x2: float, v2: float, prevalence: float, noise: float) -> float:
    """Where the line through (x1, v1) and (x2, v2) crosses zero; infinite if it is level."""
    if v1 == v2:
        return math.inf
    anchor = (x1 * v2 - x2 * v1) / (v2 - v1)
    # Where it differs from an edge by rounding only, it must not slip inside the square. Cells of the rarer class drown
    # in the sum with those of the other, hence the tolerances.
    for edge, share in ((0.0, 1.0 - prevalence), (1.0, prevalence)):
        if abs(anchor - edge) < noise / share:
            return edge
    return anchor
