"""Objectives for `xgboost.train` and `lightgbm.train` (and their scikit-learn classes), in NumPy only."""

import math
import re
import weakref
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fbeta.learners.fixed_point import costs as costs_at
from fbeta.learners.fixed_point import without_costs
from fbeta.metrics import AnchorTerm, Confusion, Metric, as_metric, check_prevalence
from fbeta.metrics.distance import CROSS_ENTROPY, FAR, check_q

LOSSES = ("tangent", "surrogate")
Singles = NDArray[np.float32]
#: Of the negative and the positive class.
Prices = tuple[float, float]


class Gradients:
    """Gradient and Hessian of labelled rows at any scores; the arrays are the same ones at every call.

    `terms` are those of the negative and the positive class, `prices` their weights. Fresh arrays of millions of rows
    in every round would cost as much as the arithmetic.

    Both losses are, class by class, a price times a function of the distance to an anchor: `fbeta.metrics.distance` has
    that function, and says which Hessian is given where the true one is negative.

    Shape: `label` (0 and 1), `weight` and scores ``(n,)``; gradient and Hessian ``(n,)`` in single precision.
    """

    def __init__(
        self, label: ArrayLike, weight: ArrayLike | None, terms: tuple[AnchorTerm, AnchorTerm], prices: Prices
    ) -> None:
        self.positive = np.asarray(label) == 1
        n = len(self.positive)
        self.weight = None if weight is None else np.asarray(weight, dtype=np.float32)
        self.terms = terms
        self.share = float(np.average(self.positive, weights=self.weight))
        self.gradient, self.hessian, self._margin, self._scratch = np.empty((4, n), dtype=np.float32)
        self._sign = np.where(self.positive, np.float32(1.0), np.float32(-1.0))
        # Where the classes differ, all rows are computed as the commoner one and the rarer one's rows again.
        self._rare = bool(2 * np.count_nonzero(self.positive) <= n)
        self._again = None if terms[0] == terms[1] else np.flatnonzero(self.positive == self._rare)
        self.set_prices(prices)

    def set_prices(self, prices: Prices) -> None:
        """Weigh the classes anew."""
        self.prices = prices
        self._price = np.where(self.positive, np.float32(prices[1]), np.float32(prices[0]))
        if self.weight is not None:
            self._price *= self.weight
        self._signed = self._price * self._sign

    def __call__(self, scores: NDArray[np.floating]) -> tuple[Singles, Singles]:
        """Differentiate the loss of every row by its score."""
        g, h = self.gradient, self.hessian
        np.multiply(scores, self._sign, out=self._margin, casting="same_kind")
        if self._again is None:
            self.terms[0].derivatives(self._margin, g, h, self._scratch, np)
        else:
            some = self._margin[self._again]
            self.terms[not self._rare].derivatives(self._margin, g, h, self._scratch, np)
            first, second, scratch = np.empty((3, len(some)), dtype=np.float32)
            self.terms[self._rare].derivatives(some, first, second, scratch, np)
            g[self._again], h[self._again] = first, second
        g *= self._signed
        h *= self._price
        return g, h


class Objective:
    """What both libraries call every round; made by `xgboost_objective` and `lightgbm_objective`."""

    def __init__(
        self,
        metric: Metric | str | Any,
        *,
        loss: str = "tangent",
        costs: Prices | None = None,
        at: Confusion | None = None,
        prevalence: float | None = None,
        q: float = 0.0,
    ) -> None:
        self.metric = as_metric(metric)
        if loss not in LOSSES:
            raise ValueError(f"loss must be one of {', '.join(LOSSES)}; got {loss!r}.")
        self.loss, self.q = loss, check_q(q)
        self.prevalence = None if prevalence is None else check_prevalence(prevalence)
        if (refusal := self.metric.refusal(self.prevalence)) is not None:
            raise ValueError(refusal)
        if loss == "surrogate" and (costs is not None or at is not None):
            raise ValueError("The surrogate loss has no operating point; costs and at are the tangent loss's.")
        if costs is not None and at is not None:
            raise ValueError("Give costs, or the operating point at that they follow from; not both.")
        self.costs = (0.5, 0.5) if costs is None else _check_costs(costs)
        self.following = costs is None and at is None
        if at is not None:
            self.operate_at(at)
        self._known: tuple[weakref.ref[Any], Gradients] | None = None

    def operate_at(self, confusion: Confusion) -> None:
        """Take the costs from an operating point, counted on rows that are not being fitted."""
        if not isinstance(confusion, Confusion):
            raise TypeError(f"An operating point is a Confusion; got {type(confusion).__name__}.")
        point = confusion if self.prevalence is None else confusion.at_prevalence(self.prevalence)
        stream = None if self.prevalence is None else confusion.prevalence
        self.costs = costs_at(self.metric, point, stream)

    def __call__(self, first: Any, second: Any, sample_weight: Any = None) -> tuple[Singles, Singles]:
        """Gradient and Hessian, for ``(scores, data set)`` or ``(labels, scores, weights)``.

        The two arrays are written anew by the next call.
        """
        if hasattr(second, "get_label"):
            scores, rows = first, self._rows(second)
        else:
            scores, rows = second, self._gradients(first, sample_weight)
        z = np.asarray(scores)
        if z.shape != rows.gradient.shape:
            raise ValueError(
                f"One score per row is needed: got {z.shape} for {len(rows.gradient)} rows. This objective is for two "
                "classes; train one model per class for more."
            )
        return rows(z)

    def start(self, label: ArrayLike, weight: ArrayLike | None = None) -> float:
        r"""The score to begin with, the same for every row.

        .. math:: z_0 = \frac{1}{1 - q} \log\frac{c_1\, \pi}{c_0\, (1 - \pi)}

        the best constant of the tangent loss. The surrogate loss has its best constant at +∞, where its gradient is
        zero and it would stay: it begins at the log odds of the rows.
        """
        share = _share(label, weight)
        odds = math.log(share) - math.log1p(-share)
        if self.loss == "surrogate":
            return odds
        c0, c1 = self.costs
        # At q = 1 the best constant is one of the two classes; half-way there the gradient still has life in it.
        best = (odds + math.log(c1 / c0)) / max(1.0 - self.q, 0.5)
        return min(max(best, -FAR / 8), FAR / 8)

    def probability(self, scores: ArrayLike) -> NDArray[np.float64]:
        """Probabilities from scores of a model trained with the tangent loss, q < 1 and these costs.

        Shape: any; the same comes back.
        """
        if self.loss == "surrogate" or self.q == 1.0:
            raise ValueError("Only the tangent loss with q < 1 has probabilities in closed form; calibrate the scores.")
        return without_costs(self.costs, self.q)(scores)

    def _score(self, scores: Any, data: Any) -> float:
        """The metric at the loss's own cut, z ≥ 0; rows that are not being fitted move the costs."""
        label, weight = _labels(data)
        at = Confusion(*map(np.float64, Confusion.from_scores(scores, label, 0.0, weight)))
        fitted = self._known is not None and self._known[0]() is data
        if self.following and self.loss == "tangent" and not fitted:
            self.operate_at(at)
        with np.errstate(divide="ignore", invalid="ignore"):  # NaN where a user's formula is 0/0
            return float(self.metric(at if self.prevalence is None else at.at_prevalence(self.prevalence)))

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_known": None}  # rows are not part of what is pickled

    def _rows(self, data: Any) -> Gradients:
        """The rows of a data set, read once, and again if it was given other weights."""
        known = self._known
        if known is None or known[0]() is not data or not _same(known[1].weight, _weight(data)):
            self._known = known = weakref.ref(data), self._gradients(*_labels(data))
        rows = known[1]
        if (prices := self._prices(rows.share)) != rows.prices:
            rows.set_prices(prices)
        return rows

    def _gradients(self, label: Any, weight: Any) -> Gradients:
        anchors, share = CROSS_ENTROPY, _share(label, weight)
        if self.loss == "surrogate":
            anchors = self.metric.anchors(share if self.prevalence is None else self.prevalence)
        negative, positive = (AnchorTerm.of(anchors, positive=one, q=self.q) for one in (False, True))
        rows = Gradients(label, weight, (negative, positive), (1.0, 1.0))
        rows.set_prices(self._prices(rows.share))
        return rows

    def _prices(self, share: float) -> Prices:
        """Class weights of mean one, so that a booster's penalties keep their meaning."""
        c0, c1 = (share, 1 - share) if self.loss == "surrogate" else self.costs  # balanced classes, as published
        mean = (1 - share) * c0 + share * c1
        return c0 / mean, c1 / mean


class XGBoostObjective(Objective):
    """See `xgboost_objective`."""

    def score(self, scores: Any, data: Any) -> tuple[str, float]:
        """For ``custom_metric``: the metric at the loss's own cut. Larger is better."""
        return _name(self.metric), self._score(scores, data)


class LightGBMObjective(Objective):
    """See `lightgbm_objective`."""

    def __deepcopy__(self, memo: Any) -> Self:
        return self  # lightgbm.train copies its parameters, and `score` must move the costs that are used

    def score(self, scores: Any, data: Any) -> tuple[str, float, bool]:
        """For ``feval``: the metric at the loss's own cut. Larger is better."""
        return _name(self.metric), self._score(scores, data), True


def xgboost_objective(metric: Metric | str | Any, **options: Any) -> XGBoostObjective:
    r"""An objective for `xgboost.train` (``obj=``) and `xgboost.XGBModel` (``objective=``).

    .. math:: \text{tangent: } c_y\, \frac{1 - f_y^q}{q}, \qquad
              \text{surrogate: } w_y\,[-y \log(f - y_0) + (1 - y) \log(f - x_0)]

    - `loss`: "tangent" if not given, or "surrogate" (the paper's, classes balanced), each with its `q` form (0).
    - `costs` (c₀, c₁), or `at`, an operating point counted on rows that are not being fitted: what the tangent
      loss is taken at. With neither it begins as the plain logistic loss and, given ``custom_metric=objective.score``
      and an evaluation set, moves with the counts of those rows; make a new one for each training.
    - `prevalence`: the rate of positives where the model will work, if it is not that of the training rows.

    Give XGBoost ``base_score=objective.start(y)``; without it every custom objective begins at a score of its own.
    With q = 0 and fixed costs the built-in ``binary:logistic`` with row weights c_y is the same model and faster still;
    this objective is for costs that move, q > 0 and the surrogate. Hessians are positive: `fbeta.metrics.distance`
    says how.

    Shape: scores, labels and weights ``(n,)``; gradient and Hessian ``(n,)``.

    >>> objective = xgboost_objective("fbeta:beta=2", costs=(0.2, 0.8))
    >>> gradient, hessian = objective(np.array([1, 0, 0, 0]), np.zeros(4))
    >>> [f"{g:.3f}" for g in gradient]
    ['-1.143', '0.286', '0.286', '0.286']
    >>> round(objective.start([1, 0, 0, 0]), 4)
    0.2877

    Reference: [narasimhan2015], [lee2021]
    """
    return XGBoostObjective(metric, **options)


def lightgbm_objective(metric: Metric | str | Any, **options: Any) -> LightGBMObjective:
    """An objective for `lightgbm.train` (``params["objective"]``) and `lightgbm.LGBMModel` (``objective=``).

    Losses and arguments: see `xgboost_objective`; ``feval=objective.score`` moves the costs. LightGBM has no base score
    for a custom objective: give the data set ``init_score=np.full(n, objective.start(y))``, and add the same number to
    what the model predicts (it does not).

    Shape: scores, labels and weights ``(n,)``; gradient and Hessian ``(n,)``.

    >>> objective = lightgbm_objective("fbeta:beta=1", loss="surrogate")
    >>> gradient, hessian = objective(np.array([1, 0, 0, 0]), np.zeros(4))
    >>> [f"{g:.3f}" for g in gradient], bool((hessian > 0).all())
    (['-1.000', '0.200', '0.200', '0.200'], True)

    Reference: [narasimhan2015], [lee2021]
    """
    return LightGBMObjective(metric, **options)


def _labels(data: Any) -> tuple[NDArray[Any], NDArray[Any] | None]:
    """Labels and weights of a DMatrix or a Dataset; XGBoost says 'no weights' with an empty array."""
    return np.asarray(data.get_label()), _weight(data)


def _weight(data: Any) -> NDArray[Any] | None:
    weight = data.get_weight()
    return None if weight is None or len(weight) == 0 else np.asarray(weight)


def _same(known: NDArray[Any] | None, now: NDArray[Any] | None) -> bool:
    if known is None or now is None:
        return known is now
    return np.array_equal(known, now.astype(np.float32, copy=False))


def _share(label: ArrayLike, weight: ArrayLike | None) -> float:
    y = np.asarray(label)
    if y.ndim != 1 or not np.isin(y, (0, 1)).all():
        raise ValueError(
            "Labels must be 0 and 1, one per row; map yours first, or use XGBMetricClassifier or LGBMMetricClassifier, "
            "which take any two labels."
        )
    w = None if weight is None or len(np.asarray(weight)) == 0 else np.asarray(weight, dtype=np.float64)
    share = float(np.average(y, weights=w))
    if not 0 < share < 1:
        raise ValueError("The labels hold one class only, and nothing can be learned from them.")
    return share


def _check_costs(costs: Prices) -> Prices:
    try:
        c0, c1 = (float(c) for c in costs)
    except (TypeError, ValueError):
        raise ValueError(f"costs is a pair (c0, c1) of numbers; got {costs!r}.") from None
    if not (0 < c0 < math.inf and 0 < c1 < math.inf):
        raise ValueError(f"Both costs must be positive and finite; got {costs!r}.")
    return c0 / (c0 + c1), c1 / (c0 + c1)


def _name(metric: Metric) -> str:
    """A name without the colons and blanks that XGBoost splits its reports at."""
    return re.sub(r"[^\w.]+", "-", str(metric)).strip("-")
