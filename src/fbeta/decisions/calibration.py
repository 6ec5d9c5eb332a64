"""Probabilities from scores: what a calibration is, and Platt scaling."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import KW_ONLY, asdict, dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fbeta.decisions.inputs import Vector
from fbeta.decisions.steps import Steps
from fbeta.spelling import register

#: Probabilities are kept this far from 0 and 1 before they are calibrated: a score of 0 must not outweigh all others.
MARGIN = 1e-9
#: Platt scaling of more distinct scores than this goes by so many parts of them.
PARTS = 4000
#: What rising scores are worth at least, in log odds per standard deviation: scores without any use keep their order.
FLAT = 1e-6
#: No slope and no offset that was learnt comes near; log odds stay finite.
MOST = 1e100
#: Scores further out than this share of their class, and than so many rows of it, count as the last that are not.
TAIL, SUPPORT = 0.05, 5


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
class Calibrator(ABC):
    """How scores become probabilities: a rising curve of log odds, as plain data.

    `of_logits`: the scores are probabilities, and the curve is one of their logits. Scores beyond `low` and `high`
    hardly count for more than these: so far out there were too few rows to learn from.
    """

    registry: ClassVar[dict[str, type[Calibrator]]] = {}

    _: KW_ONLY
    of_logits: bool = False
    low: float = -np.inf
    high: float = np.inf

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        register(Calibrator.registry, cls.__name__.lower(), cls, "calibration")

    @abstractmethod
    def curve(self, x: Vector) -> Vector:
        """Log odds of scores (or their logits) from `low` to `high`."""

    @abstractmethod
    def raised(self, by: float) -> Self:
        """The same curve, all log odds higher by a number: for a population with other odds of positives."""

    @abstractmethod
    def check(self) -> None:
        """Refuse numbers that make no rising curve: ValueError."""

    def log_odds(self, scores: Any) -> Vector:
        """Calibrated log odds."""
        x: Any = np.asarray(scores, dtype=np.float64)
        x = logit(x) if self.of_logits else x
        inside = np.clip(x, self.low, self.high)
        beyond = np.subtract(x, inside, out=np.zeros_like(x), where=x != inside)
        with np.errstate(over="ignore"):  # infinitely sure
            found: Vector = self.curve(inside) + FLAT * beyond / self._width
        return found

    @property
    def _width(self) -> float:
        return max(self.high - self.low, np.finfo(np.float64).tiny)

    def __call__(self, scores: ArrayLike) -> NDArray[np.float64]:
        """Probabilities of scores."""
        p: Vector = sigmoid(self.log_odds(scores))
        return p

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; what `low` and `high` do not limit is left out."""
        data = asdict(self) | {"name": type(self).__name__.lower()}
        return {name: value for name, value in data.items() if value not in (np.inf, -np.inf)}

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> Calibrator:
        """Read `to_dict` back; ValueError for anything else."""
        options = {name: _plain(value) for name, value in data.items() if name not in ("name", "of_logits")}
        made = Calibrator.registry[str(data.get("name", "platt"))](
            **options, of_logits=bool(data.get("of_logits", False))
        )
        made.check()
        limits = np.array([made.low, made.high])
        if not (np.isfinite(limits).all() or np.array_equal(limits, [-np.inf, np.inf])):
            raise ValueError("its calibration has no two limits")
        return made


@dataclass(frozen=True)
class Platt(Calibrator):
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

    def curve(self, x: Vector) -> Vector:
        """The line."""
        return self.slope * x + self.offset

    def raised(self, by: float) -> Self:
        """A higher offset."""
        return replace(self, offset=self.offset + by)

    def check(self) -> None:
        """The slope is 0 at least."""
        if not (0 <= self.slope <= MOST and abs(self.offset) <= MOST):
            raise ValueError("its calibration is no rising line")

    @classmethod
    def fit(cls, steps: Steps) -> Platt:
        """Maximise the likelihood by Newton steps, halved until they help."""
        return fit_platt(LabelledRows.of(steps, PARTS))


@dataclass(frozen=True)
class LabelledRows:
    """What a calibration learns from: scores from the top (or their logits), and how many rows of each class they are.

    In rows, not in weight: weights that sum to one are not one row, and must not be smoothed as such. One number of
    rows per weight for both classes: two would shift the odds.

    Shape: three times ``(m,)``.
    """

    x: Vector
    hit: Vector
    miss: Vector
    kind: str

    @classmethod
    def of(cls, steps: Steps, parts: int) -> Self:
        """At most about so many parts of the rows behind some steps."""
        steps = steps.at_knots(steps.knots(parts))
        hit, miss = np.diff(steps.tp), np.diff(steps.fp)
        squares = hit.sum() / steps.rows_per_weight[0] + miss.sum() / steps.rows_per_weight[1]
        rows = (hit.sum() + miss.sum()) / squares if squares > 0 else 1.0
        x = logit(steps.scores) if steps.kind == "probability" else steps.scores
        return cls(x, hit * rows, miss * rows, steps.kind)

    @property
    def rarer(self) -> float:
        """How many rows the rarer class has."""
        return float(min(self.hit.sum(), self.miss.sum()))

    @property
    def limits(self) -> tuple[float, float]:
        """Between which scores there are rows enough: of negatives below the one, of positives above the other."""
        ends = []
        for mass in (self.miss[::-1], self.hit):
            n = float(mass.sum())
            ends.append(int(np.searchsorted(np.cumsum(mass), min(max(TAIL * n, SUPPORT), n / 4))))
        low, high = float(self.x[::-1][ends[0]]), float(self.x[ends[1]])
        return (low, high) if low < high else (-np.inf, np.inf)


def fit_platt(rows: LabelledRows, limits: tuple[float, float] = (-np.inf, np.inf)) -> Platt:
    """A line through the log odds; scores beyond the limits count as these."""
    x = np.clip(rows.x, *limits)
    common: Any = {"of_logits": rows.kind == "probability", "low": limits[0], "high": limits[1]}
    mass = rows.hit + rows.miss
    total = max(float(mass.sum()), 1e-300)
    centre = float(mass @ x) / total
    with np.errstate(over="ignore"):  # scores whose squares no float holds get slope 0
        spread = float(np.sqrt(mass @ (x - centre) ** 2 / total))
    flat = most_likely(rows, np.ones((1, x.size)))[0]
    if spread <= 0 or not np.isfinite(spread):
        return Platt(0.0, float(flat), **common)
    a, b = most_likely(rows, np.stack([(x - centre) / spread, np.ones_like(x)]))
    if a <= 0:
        return Platt(0.0, float(flat), **common)
    return Platt(float(a / spread), float(b - a * centre / spread), **common)


def most_likely(rows: LabelledRows, design: Vector, prior: tuple[Vector, Vector] | None = None) -> Vector:
    """The log odds, linear in the design, that are most likely: Newton steps, halved until they help.

    `prior`: mean and precision of the coefficients, if something is known of them.
    """
    hit, miss = rows.hit, rows.miss
    n1, n0, mass = hit.sum(), miss.sum(), hit + miss
    goal = hit * (n1 + 1) / (n1 + 2) + miss / (n0 + 2)
    expected, sure = (np.zeros(len(design)), np.zeros(2 * [len(design)])) if prior is None else prior
    here = np.zeros(len(design))
    here[-1] = float(logit(goal.sum() / mass.sum())) if mass.sum() > 0 else 0.0

    def loss(at: Vector) -> float:
        f = at @ design
        return float((mass * np.logaddexp(0.0, f) - goal * f).sum() + (at - expected) @ sure @ (at - expected) / 2)

    if len(design) == 1:
        return here
    found = loss(here)
    for _ in range(50):
        p = sigmoid(here @ design)
        slope = design @ (goal - mass * p) - sure @ (here - expected)
        curvature = (design * (mass * p * (1 - p))) @ design.T + 1e-10 * mass.sum() * np.eye(len(design)) + sure
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
    return here


def _plain(value: Any) -> Any:
    return tuple(map(float, value)) if isinstance(value, list | tuple) else float(value)
