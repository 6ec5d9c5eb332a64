"""What the pictures show, as arrays: the paper's Figure 1, and level lines and curves in ROC space."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fbeta.explain import Explanation
from fbeta.explain.population import rates
from fbeta.explain.words import number, times
from fbeta.metrics import Anchors, AnchorTerm, Confusion, Metric

Array = NDArray[np.float64]
Role = Literal["bce", "mae", "own", "sibling"]

#: Okabe and Ito's palette: told apart by every kind of colour vision.
BLUE, VERMILION, ORANGE = "#0072B2", "#D55E00", "#E69F00"

ACROSS = np.linspace(0, 1, 201)


@dataclass(frozen=True)
class Curve:
    """A line with a name and a role, which decides its colour."""

    label: str
    role: Role
    x: Array
    y: Array


@dataclass(frozen=True)
class Level:
    """A line of equal score, its points from left to right."""

    score: float
    x: Array
    y: Array


def term(anchor: float, q: Array, *, positive: bool, scale: float = 1.0) -> Array:
    r"""One class's part of the class-balanced surrogate as a function of its error rate, 0 at q = 0.

    .. math:: -\log \frac{1 - q - y_0}{1 - y_0} \ \text{(positives)}, \qquad
              \log \frac{q - x_0}{-x_0} \ \text{(negatives)}

    An anchor beyond 1 is the mirror image: distance and sign of the logarithm turn around.

    Shape: `q` ``(n,)``, result ``(n,)``.

    >>> term(-1.0, np.array([0.0, 1.0]), positive=False).round(4)
    array([0.    , 0.6931])

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

    >>> from fbeta.explain import explain
    >>> a, b = figure_1(explain("fbeta:beta=1", prevalence=0.5))
    >>> [c.label for c in b if c.role != "sibling"]
    ['BCE  −log(1 − q)', 'MAE  q', 'surrogate  log(1 + q)']

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
            label = f"β = {number(beta)}" if beta != 0.5 else "β = ½"
            if not math.isclose(x, x0):
                b.append(Curve(label, "sibling", q, term(x, q, positive=False)))
        for panel, anchor, positive in ((a, y0, True), (b, x0, False)):
            y = term(anchor, q, positive=positive, scale=scale)
            panel.append(Curve(f"surrogate  {_term_text(anchor, scale, positive)}", "own", q, y))
    elif (cost := e.conditions[0].slope) is not None:
        for panel, price in ((a, 1.0), (b, cost)):
            panel.append(Curve(f"tangent  −{times(price, 3)}log(1 − q)", "own", q, -price * np.log1p(-q)))
    return a, b


def top_of(panels: tuple[list[Curve], list[Curve]]) -> float:
    """How high the loss axes reach: the metric's own curves up to q = 0.96, within reason; BCE has no top.

    >>> from fbeta.explain import explain
    >>> round(top_of(figure_1(explain("kappa", prevalence=0.3))), 4)
    1.6
    """
    own = [float(np.interp(0.96, c.x, c.y)) for panel in panels for c in panel if c.role == "own"]
    return min(6.5, max(1.6, *own)) if own else 3.2


def surface(metric: Metric, u: Array, t: Array, prevalence: float) -> Array:
    """Score every point of a grid; NaN where the formula has no value.

    Shape: `u` and `t` alike; result the same.

    >>> from fbeta.metrics import Accuracy
    >>> surface(Accuracy(), np.array([0.0, 1.0]), np.array([1.0, 1.0]), 0.25)
    array([1.  , 0.25])
    """
    with np.errstate(all="ignore"):
        try:
            score: Any = metric(Confusion.from_rates(u, t, prevalence))
            return np.broadcast_to(np.asarray(score, dtype=np.float64), u.shape)
        except (TypeError, ValueError):  # written for single numbers, with math.sqrt or an if
            flat = [_scalar(metric, x, y, prevalence) for x, y in zip(u.flat, t.flat, strict=True)]
            return np.array(flat).reshape(u.shape)


def levels(e: Explanation, n: int = 9) -> list[Level]:
    """Lines of equal score, spread evenly over the square whatever the prevalence.

    Their scores are those met on the way from the perfect corner to the opposite one, rounded.

    Shape: a level has at most 201 points.

    >>> from fbeta.explain import explain
    >>> [level.score for level in levels(explain("accuracy", prevalence=0.5), 4)]
    [0.9, 0.6, 0.4, 0.1]
    """
    way = (np.arange(n) + 0.5) / n
    met = surface(e.metric, way, 1 - way, e.prevalence)
    grids: dict[bool, tuple[Array, Array]] = {}
    lines = []
    for score in dict.fromkeys(_rounded(met)):
        for steep in (False, True):  # a line too steep for the columns of a grid crosses its rows
            if steep not in grids:
                grids[steep] = _grid(e, steep)
            x, y = _crossings(e, score, *grids[steep], steep=steep)
            if len(x) >= 12:
                break
        if len(x) > 1:
            lines.append(Level(score, x, y))
    return lines


def _grid(e: Explanation, steep: bool) -> tuple[Array, Array]:
    """Places along which the score rises (t upwards, or u downwards), and the score at them in each line."""
    # Most rows are crossed near u = 0, so that is where places are dense.
    along = np.linspace(1, 0, 601) ** 2 if steep else np.linspace(0, 1, 601)[1:]
    across, rising = np.meshgrid(ACROSS, along, indexing="ij")
    u, t = (rising, across) if steep else (across, rising)
    return along, surface(e.metric, u, t, e.prevalence)


def _crossings(
    e: Explanation, score: float, along: Array, height: Array, *, steep: bool
) -> tuple[Array, Array]:
    """Where a line of equal score crosses the columns of a grid, or its rows if it is steep."""
    met = (height[:, 0] <= score) & (score <= height[:, -1]) & (height[:, 0] < height[:, -1])
    places = np.array([np.interp(score, row, along) for row in height[met]])
    if steep:
        return places, ACROSS[met]
    x = ACROSS[met]
    if met.any() and not met[-1]:  # the line leaves through the upper edge, between two columns
        u = np.linspace(x[-1], min(1.0, x[-1] + 0.005), 501)
        edge = surface(e.metric, u, np.ones_like(u), e.prevalence)
        return np.append(x, np.interp(-score, -edge, u)), np.append(places, 1.0)
    return x, places


def exits(lines: list[Level]) -> tuple[list[tuple[float, Level]], list[tuple[float, Level]]]:
    """Where scores can be written without touching: u of lines leaving through the top, t of those at the side.

    >>> from fbeta.explain import explain
    >>> over, beside = exits(levels(explain("fbeta:beta=2", prevalence=0.1)))
    >>> [level.score for _, level in over], [level.score for _, level in beside]
    ([0.9, 0.7, 0.5, 0.4], [0.3, 0.2, 0.1, 0.07, 0.02])
    """
    over: list[tuple[float, Level]] = []
    beside: list[tuple[float, Level]] = []
    for line in lines:
        x, y = float(line.x[-1]), float(line.y[-1])
        row, at = (over, x) if y > 0.995 and x < 0.97 else (beside, y)
        room = 0.02 + 0.025 * len(number(line.score, 3)) if row is over else 0.045
        if all(abs(at - other) >= room for other, _ in row):
            row.append((at, line))
    return over, beside


def roc(separation: float, n: int = 301) -> tuple[Array, Array]:
    """False and true positive rates of two normal classes, from 'none' to 'all'.

    Shape: two vectors of `n`.

    >>> u, t = roc(2.0, n=3)
    >>> t.round(4).tolist()
    [0.0, 0.8413, 1.0]
    """
    cuts = np.linspace(separation + 6, -6, n)
    pairs = np.array([rates(float(s), separation) for s in cuts])
    return pairs[:, 0], pairs[:, 1]


def is_near(pole: tuple[float, float]) -> bool:
    """Whether a pole lies near enough to the square to be drawn with it."""
    return all(-0.8 <= x <= 1.8 for x in pole)


def view(e: Explanation) -> tuple[float, float, float, float]:
    """Left, right, bottom and top of the ROC picture: the square, and the pole where it is near.

    >>> from fbeta.explain import explain
    >>> [round(x, 2) for x in view(explain("kappa", prevalence=0.1))]
    [-0.23, 1.03, -0.24, 1.0]
    """
    left, right, bottom, top = -0.03, 1.03, -0.03, 1.0
    if e.pole is not None and is_near(e.pole):
        x, y = e.pole
        left, right = min(left, x - 0.1), max(right, x + 0.1)
        bottom, top = min(bottom, y - 0.12), max(top, y + 0.1)
    return left, right, bottom, top


def title(e: Explanation) -> str:
    """What the ROC picture shows, in plain words."""
    return {
        "pencil": "The score is constant along lines through the pole",
        "parallel": "The score is constant along parallel lines",
        "separable": "Lines of equal score are curved: no pole",
        "curved": "Lines of equal score are curved: no pole",
        "one-sided": f"Lines of equal score are {e.level_lines.partition(':')[0]}",
    }[e.kind]


def _scalar(metric: Metric, u: float, t: float, prevalence: float) -> float:
    try:
        return float(metric(Confusion.from_rates(float(u), float(t), prevalence)))
    except (ArithmeticError, ValueError):
        return math.nan


def _rounded(values: Array) -> list[float]:
    """As few digits as keep the values apart, no more than three."""
    kept = [float(v) for v in values if np.isfinite(v)]
    for digits in (1, 2):
        short = [float(f"{v:.{digits}g}") for v in kept]
        if len(set(short)) == len(kept):
            return short
    return [float(f"{v:.3g}") for v in kept]


def _term_text(anchor: float, scale: float, positive: bool) -> str:
    front = times(scale, 3)
    start = 1.0 if positive else 0.0
    d = abs(start - anchor)
    if math.isclose(d, 1):
        shrinks = (anchor <= 0) == positive
        return f"−{front}log(1 − q)" if shrinks else f"{front}log(1 + q)"
    sign = "−" if (anchor <= 0) == positive else "+"
    return f"{'−' if sign == '−' else ''}{front}log(1 {sign} q/{number(d, 3)})"
