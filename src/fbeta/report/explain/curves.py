"""The curves of the paper's Figure 1, for any metric, as arrays."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fbeta.metrics import Anchors, AnchorTerm
from fbeta.report.explain import Explanation
from fbeta.report.explain.sentences import times
from fbeta.report.numerals import short

Array = NDArray[np.float64]
Role = Literal["bce", "mae", "own", "sibling"]


@dataclass(frozen=True)
class Curve:
    """A line with a name and a role, which decides its colour."""

    label: str
    role: Role
    x: Array
    y: Array


def term(anchor: float, q: Array, *, positive: bool, scale: float = 1.0) -> Array:
    r"""One class's part of the class-balanced surrogate as a function of its error rate, 0 at q = 0.

    .. math:: -\log \frac{1 - q - y_0}{1 - y_0} \ \text{(positives)}, \qquad
              \log \frac{q - x_0}{-x_0} \ \text{(negatives)}

    An anchor beyond 1 is the mirror image: distance and sign of the logarithm turn around.

    Shape: `q` ``(n,)``, result ``(n,)``.

    Reference: [lee2021], figure 1
    """
    one = AnchorTerm.at(anchor, positive, scale)
    with np.errstate(divide="ignore"):
        near = np.log(np.append(q, 0.0) if one.sign > 0 else np.append(1 - q, 1.0))
        value = one.value(near, np)
    rise: Array = value[:-1] - value[-1]
    return rise


def figure_1(e: Explanation, n: int = 241) -> tuple[list[Curve], list[Curve]]:
    """Panels (a) and (b) of the paper's Figure 1 for this metric: what each loss makes of the two error rates.

    Every curve is shifted to start at 0. A metric without anchors shows the tangent loss at its best point,
    one that no loss can train for shows the standard losses alone.

    Shape: curves of `n` points.

    Reference: [lee2021], figure 1
    """
    q = 1 - (1 - np.linspace(0, 0.98, n)) ** 2  # closer together where BCE is steep
    standard = [Curve("BCE  −log(1 − q)", "bce", q, -np.log1p(-q)), Curve("MAE  q", "mae", q, q)]
    a, b = list(standard), list(standard)
    if not e.trainable:
        return a, b
    if e.slope is not None:
        for panel, price in ((a, 2 / (1 + e.slope)), (b, 2 * e.slope / (1 + e.slope))):
            panel.append(Curve(f"surrogate  {times(price, 3)}q", "own", q, price * q))
    elif e.anchors is not None:
        x0, y0 = e.anchors
        scale = Anchors(x0, y0).scale
        for beta, x in e.siblings:
            if not math.isclose(x, x0):
                label = f"β = {'½' if beta == 0.5 else short(beta)}"
                b.append(Curve(label, "sibling", q, term(x, q, positive=False)))
        for panel, anchor, positive in ((a, y0, True), (b, x0, False)):
            y = term(anchor, q, positive=positive, scale=scale)
            panel.append(Curve(f"surrogate  {_term_text(anchor, scale, positive)}", "own", q, y))
    elif (cost := e.conditions[0].slope) is not None:
        for panel, price in ((a, 1.0), (b, cost)):
            panel.append(Curve(f"tangent  −{times(price, 3)}log(1 − q)", "own", q, -price * np.log1p(-q)))
    return a, b


def _term_text(anchor: float, scale: float, positive: bool) -> str:
    shrinks = (anchor <= 0) == positive  # the distance to the anchor shrinks with the error
    sign, distance = "−" if shrinks else "+", abs(positive - anchor)
    share = "q" if math.isclose(distance, 1) else f"q/{short(distance, 3)}"
    return f"{'−' * shrinks}{times(scale, 3)}log(1 {sign} {share})"
