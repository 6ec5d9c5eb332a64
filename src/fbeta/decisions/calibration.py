"""Platt scaling: probabilities from scores, by two numbers."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fbeta.decisions.inputs import Vector
from fbeta.decisions.steps import Steps

#: Probabilities are kept this far from 0 and 1 before they are calibrated: a score of 0 must not outweigh all others.
MARGIN = 1e-9
#: Platt scaling of more distinct scores than this goes by so many parts of them.
PARTS = 4000


def logit(p: Any, margin: float = MARGIN) -> Any:
    """Log odds, finite at 0 and 1."""
    p = np.clip(p, margin, 1 - max(margin, 2.0**-53))
    return np.log(p) - np.log1p(-p)


def sigmoid(z: Any) -> Any:
    """The inverse of `logit`, without overflow and to the last digits of a small probability."""
    z = np.asarray(z, dtype=np.float64)
    small = np.exp(-np.abs(z))
    return np.where(z >= 0, 1.0, small) / (1.0 + small)


@dataclass(frozen=True)
class Platt:
    r"""A calibrated probability of a score: p = sigmoid(slope·x + offset), rising in the score.

    .. math:: p = \frac1{1 + e^{-(a x + b)}}, \qquad x = s, \text{ or } \operatorname{logit} s
              \text{ for scores that are probabilities}

    The targets are smoothed as Platt proposed, (n₁ + 1)/(n₁ + 2) and 1/(n₀ + 2), so that separable scores keep a
    finite slope. Scores that fall where they should rise get slope 0: they carry no usable order.

    >>> Platt.fit(Steps.of([2.0, 1.0, 0.0, -1.0], [1, 0, 1, 0], kind="logit")).slope > 0
    True

    Reference: [platt1999]
    """

    slope: float
    offset: float
    of_logits: bool = False

    def __call__(self, scores: ArrayLike) -> NDArray[np.float64]:
        """Probabilities of scores."""
        x = np.asarray(scores, dtype=np.float64)
        p: Vector = sigmoid(self.slope * (logit(x) if self.of_logits else x) + self.offset)
        return p

    @classmethod
    def fit(cls, steps: Steps) -> Self:
        """Maximise the likelihood by Newton steps, halved until they help."""
        of_logits = steps.kind == "probability"
        steps = steps.at_knots(steps.knots(PARTS))
        x = logit(steps.scores) if of_logits else steps.scores
        # In rows, not in weight: weights that sum to one are not one row, and must not be smoothed as such.
        # One number of rows for both classes: two would shift the odds.
        hit, miss = np.diff(steps.tp), np.diff(steps.fp)
        squares = hit.sum() / steps.rows_per_weight[0] + miss.sum() / steps.rows_per_weight[1]
        rows = (hit.sum() + miss.sum()) / squares if squares > 0 else 1.0
        hit, miss = hit * rows, miss * rows
        n1, n0 = hit.sum(), miss.sum()
        mass = hit + miss
        goal = hit * (n1 + 1) / (n1 + 2) + miss / (n0 + 2)
        base = float(logit(goal.sum() / mass.sum())) if mass.sum() > 0 else 0.0
        centre = float((mass * x).sum() / max(mass.sum(), 1e-300))
        with np.errstate(over="ignore"):  # scores whose squares no float holds get slope 0
            spread = float(np.sqrt((mass * (x - centre) ** 2).sum() / max(mass.sum(), 1e-300)))
        if spread <= 0 or not np.isfinite(spread):
            return cls(0.0, base, of_logits)
        z = (x - centre) / spread
        design = np.stack([z, np.ones_like(z)])

        def loss(at: Vector) -> float:
            f = at @ design
            return float((mass * np.logaddexp(0.0, f) - goal * f).sum())

        here = np.array([0.0, base])
        found = loss(here)
        for _ in range(50):
            p = sigmoid(here @ design)
            slope = design @ (goal - mass * p)
            curvature = (design * (mass * p * (1 - p))) @ design.T + 1e-10 * mass.sum() * np.eye(2)
            step = np.linalg.solve(curvature, slope)
            for _ in range(30):
                there = here + step
                after = loss(there)
                if after <= found:
                    break
                step = step / 2
            if found - after <= 1e-10 * (1 + abs(found)):
                here = there if after <= found else here
                break
            here, found = there, after
        a, b = here
        if a <= 0:
            return cls(0.0, base, of_logits)
        return cls(float(a / spread), float(b - a * centre / spread), of_logits)
