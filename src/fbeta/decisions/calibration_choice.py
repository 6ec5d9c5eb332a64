"""Calibrations of more freedom than a line, and which one rows ask for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from fbeta.decisions.calibration import FLAT, MOST, Calibrator, LabelledRows, Platt, fit_platt, logit, most_likely
from fbeta.decisions.inputs import Vector
from fbeta.decisions.steps import Steps

#: The choice goes by at most so many parts of the rows, and by the log loss of so many folds.
PARTS, FOLDS = 1000, 5
#: How many rows the rarer class has, from which on a bent line, and a curve of any form, is looked at.
BENT, CURVED = 50, 200


@dataclass(frozen=True)
class Beta(Calibrator):
    r"""Beta calibration: log odds with one slope far below ½ and another one far above.

    .. math:: \operatorname{logit} p = a \log s - b \log(1 - s) + c = a x + (b - a) \log(1 + e^x) + c, \qquad
              x = \operatorname{logit} s

    a is `slope`, b `upper` and c `offset`; a = b is Platt scaling. For logits s = sigmoid(x).

    >>> bool(Beta(1.0, 1.0, 0.0, of_logits=True)(0.3).round(12) == 0.3)
    True

    Reference: [kull2017]
    """

    slope: float
    upper: float
    offset: float

    def curve(self, x: Vector) -> Vector:
        """Two slopes and a bend between them."""
        return self.slope * x + (self.upper - self.slope) * np.logaddexp(0.0, x) + self.offset

    def raised(self, by: float) -> Self:
        """A higher offset."""
        return replace(self, offset=self.offset + by)

    def check(self) -> None:
        """Both slopes are 0 at least."""
        if not (0 <= min(self.slope, self.upper) <= max(self.slope, self.upper) <= MOST >= abs(self.offset)):
            raise ValueError("its calibration has no two rising slopes")


@dataclass(frozen=True)
class Isotonic(Calibrator):
    r"""The rising curve that fits best, whatever its form: steps of pooled rows, joined by lines.

    .. math:: \max_{p_1 \le p_2 \le \dots} \sum_i y_i \log p_i + (1 - y_i) \log (1 - p_i)

    `at` are the places of the steps (mean score of the rows pooled), `odds` their log odds.

    >>> Isotonic((0.0, 1.0), (-1.0, 1.0)).log_odds([0.5, 1.0]).round(3)
    array([0., 1.])

    Reference: [zadrozny2002]
    """

    at: tuple[float, ...]
    odds: tuple[float, ...]

    def __post_init__(self) -> None:
        for name, end in (("low", self.at[:1]), ("high", self.at[-1:])):
            object.__setattr__(self, name, *end)

    def curve(self, x: Vector) -> Vector:
        """Lines between the steps, a little steeper than flat: equal log odds would be ties."""
        return np.interp(x, self.at, self.odds) + FLAT * (x - self.low) / self._width

    def raised(self, by: float) -> Self:
        """All steps higher."""
        return replace(self, odds=tuple(z + by for z in self.odds))

    def check(self) -> None:
        """Places and log odds rise, and there are as many of both."""
        at, odds = np.array(self.at), np.array(self.odds)
        sound = at.size == odds.size > 0 and np.abs([at, odds]).max() <= MOST
        if not (sound and (np.diff(at) > 0).all() and (np.diff(odds) >= 0).all()):
            raise ValueError("its calibration is no rising curve")


def calibrate(steps: Steps) -> Calibrator:
    """The calibration that rows ask for, by the log loss of rows held out.

    Platt scaling of all scores, or of those that have enough of their class beside them (a few outlying ones would
    bend the line for all); beta calibration and an isotonic curve where there are rows enough for them.

    >>> calibrate(Steps.of([0.9, 0.8, 0.3, 0.1] * 9, [1, 1, 0, 0] * 9, kind="probability"))([0.1, 0.9]).round()
    array([0., 1.])
    """
    rows = LabelledRows.of(steps, PARTS)
    fits: list[Callable[[LabelledRows], Calibrator]] = [fit_platt, lambda part: fit_platt(part, part.limits)]
    if rows.rarer >= BENT and rows.kind != "score":  # a bend at 0 means something for logits only
        fits.append(fit_beta)
    if rows.rarer >= CURVED:
        fits.append(fit_isotonic)
    if rows.rarer < 2 * FOLDS:
        return fits[1](rows)
    folds = deal(rows)
    losses = [sum(log_loss(held, fit(known)) for known, held in folds) for fit in fits]
    return fits[int(np.argmin(losses))](rows)


def calibrate_columns(
    calibration: str | Sequence[Calibrator],
    s: Vector,
    y: NDArray[Any],
    w: NDArray[Any] | None,
    kind: str,
    auto: Callable[[Iterable[Steps]], Iterable[Calibrator]],
) -> tuple[Calibrator, ...]:
    """What `Decision.fit` is asked for: "auto" (what that means), "platt", "none", or one known for each column.

    Shape: `s` and `y` ``(n, K)``, `w` ``(n,)``.
    """
    of_logits = kind == "probability"
    if not isinstance(calibration, str):
        return tuple(replace(curve, of_logits=of_logits) for curve in calibration)
    if calibration == "none":
        if kind == "score":
            raise ValueError("Scores of kind 'score' are no probabilities yet; use calibration='auto'.")
        return (Platt(1.0, 0.0, of_logits=of_logits),) * len(s.T)
    if calibration not in ("auto", "platt"):
        raise ValueError(f"calibration must be 'auto', 'platt', 'none' or one per column; got {calibration!r}.")
    columns = (Steps.of(column, target, w, kind=kind) for column, target in zip(s.T, y.T, strict=True))
    found = []
    for column, curve in zip(s.T, auto(columns) if calibration == "auto" else map(Platt.fit, columns), strict=True):
        if isinstance(curve, Platt):
            spread = float(np.std(logit(column) if of_logits else column))
            curve = replace(curve, slope=max(curve.slope, FLAT / max(spread, FLAT)))
        found.append(curve)
    return tuple(found)


def deal(rows: LabelledRows) -> list[tuple[LabelledRows, LabelledRows]]:
    """Most rows to learn from, and the others; dealt at random, but the same every time."""
    rng, parts = np.random.default_rng(0), []
    for mass in (rows.hit, rows.miss):
        dealt = rng.multinomial(np.clip(np.rint(mass), 1, 2**53).astype(np.int64), [1 / FOLDS] * FOLDS)
        parts.append((mass[:, None] * dealt / dealt.sum(1, keepdims=True)).T)
    each = zip(*parts, strict=True)
    return [(replace(rows, hit=rows.hit - a, miss=rows.miss - b), replace(rows, hit=a, miss=b)) for a, b in each]


def log_loss(rows: LabelledRows, calibration: Calibrator) -> float:
    """What the rows cost, in all."""
    z = replace(calibration, of_logits=False).log_odds(rows.x)
    return float(rows.hit @ np.logaddexp(0.0, -z) + rows.miss @ np.logaddexp(0.0, z))


def fit_beta(rows: LabelledRows) -> Calibrator:
    """Two slopes within the limits; where one of them falls, the line."""
    low, high = rows.limits
    x = np.clip(rows.x, low, high)
    bend = np.logaddexp(0.0, x)
    a, change, c = most_likely(rows, np.stack([x, bend, np.ones_like(x)]))
    if not (a >= 0 and a + change >= 0):
        return fit_platt(rows, (low, high))
    return Beta(*map(float, (a, a + change, c)), of_logits=rows.kind == "probability", low=low, high=high)


def fit_isotonic(rows: LabelledRows) -> Isotonic:
    """Pool neighbours that do not rise; a pool's share is drawn to all rows' by one row."""
    mass = rows.hit + rows.miss
    pools: list[list[float]] = []  # rows, positives, sum of scores
    for x, hit, n in zip(rows.x[::-1].tolist(), rows.hit[::-1].tolist(), mass[::-1].tolist(), strict=True):
        if n <= 0:
            continue
        pools.append([n, hit, n * x])
        while len(pools) > 1 and pools[-2][1] * pools[-1][0] >= pools[-1][1] * pools[-2][0]:
            last = pools.pop()
            pools[-1] = [a + b for a, b in zip(pools[-1], last, strict=True)]
    n, hit, total = np.array(pools).T
    p = (hit + rows.hit.sum() / mass.sum()) / (n + 1)
    odds = np.maximum.accumulate(logit(p))
    at = total / n
    kept = np.append(True, np.diff(at) > 0)
    of_logits = rows.kind == "probability"
    return Isotonic(tuple(at[kept].tolist()), tuple(odds[kept].tolist()), of_logits=of_logits)
