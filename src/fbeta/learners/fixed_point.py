"""The iteration: costs give models, models an operating point, the point new costs."""

from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fbeta.decisions import Platt
from fbeta.decisions.calibration import logit
from fbeta.learners.crossfit import AnyModel, Array, CrossFit, Fit, Score, cross_fit
from fbeta.learners.machine import Map
from fbeta.metrics import Confusion, Metric, as_metric, check_prevalence, class_costs


def costs(
    metric: Metric | str | Any, confusion: Confusion, stream: Any = None, *, epsilon: float = 1e-4
) -> tuple[Any, Any]:
    r"""The prices (c₀, c₁) of a wrong negative and a wrong positive row at an operating point.

    .. math:: c_1 \propto \frac{\partial M/\partial t}{\pi_s}, \qquad
              c_0 \propto \frac{-\partial M/\partial u}{1 - \pi_s}, \qquad c_0 + c_1 = 1

    π is the prevalence of `confusion`, π_s = `stream` that of the training rows (the same if None). For F_β
    c₀ = F_β/(1 + β²). Both stay inside [ε, 1 − ε], so that either class pulls; where the metric has no slope the
    costs are those of a classifier that knows nothing (u = t = ½), and ½ each where it has none there either.

    Shape: cells ``(*)``; prices ``(*)``.

    >>> from fbeta import FBeta
    >>> costs(FBeta(1), Confusion(tp=8, fp=2, fn=4, tn=86))
    (0.3636363636363636, 0.6363636363636365)

    Reference: [narasimhan2015]
    """
    m = as_metric(metric)
    if not 0 < epsilon < 0.5:
        raise ValueError(f"epsilon must lie in (0, 0.5); got {epsilon!r}.")
    at = Confusion(*(np.asarray(x, dtype=np.float64) for x in confusion))
    rate = None if stream is None else np.asarray(stream)
    with np.errstate(divide="ignore", invalid="ignore"):
        ignorant = Confusion.from_rates(0.5, 0.5, at.prevalence)
        fresh = class_costs(m, ignorant, stream=rate, xp=np)
        c0, c1 = class_costs(m, at, fresh, stream=rate, xp=np)
        delta = np.clip(c0 / (c0 + c1), epsilon, 1 - epsilon)
    return (float(delta), float(1 - delta)) if delta.ndim == 0 else (delta, 1 - delta)


class Round(NamedTuple):
    """One round: trained with δ, the out-of-fold rows scored `score`, and their slopes asked for `wanted`."""

    delta: float
    score: float
    wanted: float


@dataclass(frozen=True)
class FixedPoint(Generic[AnyModel]):
    """Costs and the operating point they lead to.

    `crossfit` holds the models of the last round, trained with exactly these costs, and their out-of-fold scores.

    >>> FixedPoint(delta=0.25, crossfit=None, history=(Round(0.25, 0.5, 0.25),), converged=True).costs
    (0.25, 0.75)
    """

    delta: float
    crossfit: CrossFit[AnyModel] = field(repr=False)
    history: tuple[Round, ...]
    converged: bool

    @property
    def costs(self) -> tuple[float, float]:
        """(c₀, c₁) = (δ, 1 − δ): a row weighs c_y."""
        return self.delta, 1 - self.delta

    @property
    def score(self) -> float:
        """The metric of the out-of-fold rows at the models' own boundary."""
        return self.history[-1].score


def solve(
    fit: Fit[AnyModel],
    score: Score[AnyModel],
    X: Any,
    y: ArrayLike,
    metric: Metric | str | Any,
    folds: ArrayLike,
    weight: ArrayLike | None = None,
    *,
    rounds: int = 5,
    damping: float = 0.5,
    start: float = 0.5,
    boundary: float = 0.0,
    tolerance: float = 0.1,
    epsilon: float = 1e-4,
    prevalence: float | None = None,
    ordered: bool = False,
    side_by_side: Map = map,
) -> FixedPoint[AnyModel]:
    r"""Solve costs ↔ operating point for a learner that takes row weights, on out-of-fold rows.

    .. math:: \delta \leftarrow d\,\delta + (1 - d)\, \frac{c_0}{c_0 + c_1}\Big|_{\text{out-of-fold counts of models
              trained with } (\delta,\, 1 - \delta)}

    - `fit`, `score`, `ordered`: as `cross_fit`; ``score >= boundary`` is the model's own decision (0 for logits and
      margins, ½ for probabilities). The weights `fit` is handed are ``cost_weights(y, delta, weight)``.
    - `start`: the first δ; ½ is the plain learner. The first step is taken whole, as `start` knows nothing of the
      rows; later ones keep the share `damping` of the old δ, since for some metrics the plain iteration swings; with 0
      it is the alternating method.
    - `tolerance`: it ends when δ wants to move less than this in logit, or after `rounds`.
    - `prevalence`: the rate of positives where the model will work, if it is not that of these rows.
    - `side_by_side`: goes over the folds, as in `cross_fit`.

    Shape: `y` ``(n,)`` of 0 and 1; others as `cross_fit`.

    >>> from fbeta.tables.folds import folds
    >>> rng = np.random.default_rng(0)
    >>> y = np.arange(400) % 8 == 0
    >>> X = rng.normal(size=400) + 1.5 * y
    >>> def fit(X, y, weight):  # Gaussian classes with one spread: log odds by weighted means
    ...     m1, m0 = (np.average(X[y == k], weights=weight[y == k]) for k in (1, 0))
    ...     return m1 - m0, (m0**2 - m1**2) / 2 + np.log(weight[y == 1].sum() / weight[y == 0].sum())
    >>> found = solve(fit, lambda m, X: m[0] * X + m[1], X, y.astype(int), "fbeta:beta=1", folds(y, 5))
    >>> round(found.delta, 2), round(found.history[0].score, 2), round(found.score, 2)
    (0.24, 0.38, 0.51)

    Reference: [narasimhan2015]
    """
    m = as_metric(metric)
    if isinstance(rounds, bool) or not isinstance(rounds, int | np.integer) or rounds < 1:
        raise ValueError(f"rounds must be an integer from 1; got {rounds!r}.")
    if not 0 <= damping < 1:
        raise ValueError(f"damping is the share of the old costs that stays, in [0, 1); got {damping!r}.")
    if not 0 < start < 1:
        raise ValueError(f"start must lie strictly between 0 and 1; got {start!r}.")
    labels = np.asarray(y)
    if labels.ndim != 1 or not np.isin(labels, (0, 1)).all():
        raise ValueError("y must be a vector of 0 and 1 here; solve each class or label of several on its own.")
    population = None if prevalence is None else check_prevalence(prevalence)
    given = None if weight is None else np.asarray(weight, dtype=np.float64)
    if given is not None and (given.shape != labels.shape or not ((given >= 0) & np.isfinite(given)).all()):
        raise ValueError(f"weight must be finite and zero or more, one per row; got shape {given.shape}.")
    rate = float(np.average(labels, weights=given)) if population is None else population
    if 0 < rate < 1 and (refusal := m.refusal(rate)) is not None:
        raise ValueError(refusal)
    delta = float(np.clip(start, epsilon, 1 - epsilon))
    history: list[Round] = []
    while True:
        priced = cost_weights(labels, delta, weight)
        crossfit = cross_fit(fit, score, X, labels, folds, priced, ordered=ordered, side_by_side=side_by_side)
        held = crossfit.held
        seen = None if given is None else given[held]
        counts = Confusion.from_scores(crossfit.scores[held], labels[held], boundary, seen)
        at = Confusion(*map(np.float64, counts))  # NumPy's 0/0 is NaN, Python's an error
        stream = None
        if population is not None:
            at, stream = at.at_prevalence(population), at.prevalence
        wanted = costs(m, at, stream, epsilon=epsilon)[0]
        with np.errstate(divide="ignore", invalid="ignore"):
            history.append(Round(delta, float(m(at)), wanted))
        converged = bool(abs(logit(wanted) - logit(delta)) < tolerance)
        if converged or len(history) == rounds:
            return FixedPoint(delta, crossfit, tuple(history), converged)
        keep = 0.0 if len(history) == 1 else damping
        delta = keep * delta + (1 - keep) * wanted


def cost_weights(y: NDArray[Any], delta: float, weight: ArrayLike | None = None) -> Array:
    """Row weights with the costs (δ, 1 − δ) in them, on the scale of `weight` (or 1) on average.

    The scale matters to a learner with a penalty: it sees as much data as without costs.

    Shape: `y` ``(n,)`` of 0 and 1, `weight` ``(n,)``; result ``(n,)``.

    >>> cost_weights(np.array([1, 0, 0]), delta=0.25)
    array([1.8, 0.6, 0.6])
    """
    w = np.ones(len(y)) if weight is None else np.asarray(weight, dtype=np.float64)
    priced: Array = w * np.where(y == 1, 1 - delta, delta)
    total = priced.sum()
    return priced * (w.sum() / total) if total > 0 else priced


def without_costs(costs: tuple[float, float], q: float = 0.0) -> Platt:
    r"""What turns scores of a model that was trained with costs, by the tangent loss with q < 1, into probabilities.

    .. math:: \operatorname{logit} \eta = (1 - q)\, z - \log\frac{c_1}{c_0}

    >>> float(without_costs((0.25, 0.75))(np.log(3)))
    0.5
    """
    c0, c1 = costs
    return Platt(1 - q, float(np.log(c0 / c1)))
