"""Linear models that minimise a convex bound of one minus a metric, by cutting planes: SVM^perf."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fbeta.learners.contingency import Tables
from fbeta.learners.crossfit import Array
from fbeta.metrics import Metric, as_metric

#: Passes without a share in the solution after which a plane is dropped.
IDLE = 50


@dataclass(eq=False)
class MultivariateHinge:
    r"""A convex bound of a metric's loss on rows at once, which no row has a share of its own in.

    .. math:: R(f) = \max_{c \in \{0, 1\}^n} \; M(\text{all right}) - M(c)
              - \frac{1}{\sum_i w_i} \sum_i w_i\, c_i\, (2 y_i - 1)\, f_i

    c says which rows are called wrongly. Of all c with one contingency table the worst calls the lowest positives and
    the highest negatives wrongly, so that after sorting the maximum is one over `Tables`. For accuracy R is the mean
    hinge. Rows of different weights are called wrongly whole, the lowest or highest first: that is exact for metrics
    linear in the cells, and for others a little less than the maximum.

    Shape: `y` (0 and 1) and `weight` ``(n,)``; called with scores ``(n,)`` it gives R and its slope ``(n,)``.

    >>> from fbeta import Accuracy, FBeta
    >>> f, y = np.array([2.0, 0.5, -3.0]), np.array([1, 1, 0])
    >>> value, slope = MultivariateHinge(Accuracy(), y)(f)
    >>> round(value, 12) == round((0 + 0.5 + 0) / 3, 12), slope.round(2).tolist()
    (True, [0.0, -0.33, 0.0])
    >>> value, slope = MultivariateHinge(FBeta(1), y)(f)  # the second row missed: F₁ would be ⅔
    >>> round(value, 12) == round(1 - 2 / 3 - 0.5 / 3, 12)
    True

    Reference: [joachims2005]
    """

    metric: Metric
    y: NDArray[Any]
    weight: Array | None = None
    _tables: Tables | None = field(default=None, repr=False)

    def __call__(self, scores: Array) -> tuple[float, Array]:
        """The value, and the slope by every score."""
        rows = [np.flatnonzero(self.y == k) for k in (1, 0)]
        positive, negative = (part[np.argsort(-scores[part])] for part in rows)
        w = np.ones(len(self.y)) if self.weight is None else self.weight
        if self._tables is None or self.weight is not None:
            self._tables = Tables(self.metric, _sums(w[positive]), _sums(w[negative]))
        share = w / w.sum()
        caught, alarms = _sums((share * scores)[positive]), _sums((share * scores)[negative])
        i, j = self._tables.worst(caught, alarms)
        perfect, there = self._tables.scores(np.array([-1, i]), np.array([0, j]))
        slope = np.zeros(len(w))
        slope[positive[i:]] = -share[positive[i:]]
        slope[negative[:j]] = share[negative[:j]]
        return float(perfect - there + caught[i] - caught[-1] + alarms[j]), slope


@dataclass(frozen=True, eq=False)
class LinearSVM:
    """A linear model x ↦ x·w + b and its objective ½‖w‖² + C·n·R.

    In units of R, `gap` is how far that is from the least at most, and `gain` how much less than at w = 0.
    """

    weight: Array
    bias: float
    objective: float
    gap: float
    gain: float
    passes: int


def fit_linear(
    X: Any,
    y: NDArray[Any],
    metric: Metric | str | Any,
    weight: Array | None = None,
    *,
    C: float = 1.0,
    intercept: float = 1.0,
    tolerance: float = 1e-3,
    passes: int = 1000,
) -> LinearSVM:
    r"""Minimise ½‖w‖² + C·n·R(Xw): each pass adds a plane, where the hinge touches at the last solution.

    .. math:: \min_{w,\ \xi \ge 0} \tfrac12 \lVert w \rVert^2 + C n\, \xi \quad \text{so that} \quad
              \xi \ge R(f_k) + \langle \nabla R(f_k),\, Xw - f_k \rangle \quad \text{for every pass } k

    With accuracy this is the ordinary SVM, ``LinearSVC(loss="hinge", C=C)``, its intercept included: that is the
    weight of a column of the number `intercept` (0: none), and has the same penalty as the others. A pass is two
    products with X and a sort, so its time is linear in the rows but for a logarithm; how many there are depends on C·n
    and on `tolerance`, in units of R, and otherwise not on the rows.

    Shape: `X` ``(n, d)``, dense or sparse; `y` ``(n,)`` of 0 and 1; `weight` ``(n,)``, n their sum.

    >>> X, y = np.array([[3.0], [2.0], [-1.0], [-2.0]]), np.array([1, 1, 0, 0])
    >>> found = fit_linear(X, y, "f1", C=10)
    >>> (X @ found.weight + found.bias > 0).tolist()
    [True, True, False, False]

    Reference: [joachims2005], [joachims2006]
    """
    X = X if X.dtype == np.float64 else X.astype(np.float64)
    hinge = MultivariateHinge(as_metric(metric), y, weight)
    price = C * (len(y) if weight is None else float(weight.sum()))
    planes, best = Planes(X.shape[1] + 1, price), np.zeros(X.shape[1] + 1)
    objectives: list[float] = []
    for _ in range(passes):
        # Half way to the best solution: the solution of the planes alone oscillates, and takes more passes.
        w = (planes.solution + best) / 2
        scores = X @ w[:-1] + intercept * w[-1]
        value, slope = hinge(scores)
        objectives.append(float(w @ w / 2 + price * max(value, 0.0)))
        least = min(objectives)
        if objectives[-1] == least:
            best = w
        gap = (least - planes.bound) / price
        if gap <= tolerance:
            break
        planes.add(np.append(X.T @ slope, intercept * slope.sum()), value - float(slope @ scores))
    gain = (objectives[0] - least) / price
    return LinearSVM(best[:-1], float(intercept * best[-1]), least, gap, gain, len(objectives))


class Planes:
    r"""Planes below a convex function: what ½‖w‖² + price·max(0, offset + normal·w) is at least, and where.

    The dual is a quadratic program over the simplex, with a plane of zeros for ξ ≥ 0. It is solved anew, to the
    digits of the numbers, from the last solution; planes that had no share in it for long are dropped.

    >>> planes = Planes(1, price=10.0)
    >>> planes.add(np.array([-1.0]), 1.0)
    >>> planes.solution.round(9).tolist(), round(planes.bound, 9)
    ([1.0], 0.5)
    """

    def __init__(self, size: int, price: float) -> None:
        self.price = price
        self.normals, self.offsets = np.zeros((1, size)), np.zeros(1)
        self.share, self.idle = np.ones(1), np.zeros(1, np.int64)
        self._products = np.zeros((1, 1))

    @property
    def solution(self) -> Array:
        """The w that is best as far as the planes tell."""
        found: Array = -self.price * (self.share @ self.normals)
        return found

    @property
    def bound(self) -> float:
        """The least that the objective can be."""
        w = self.solution
        return float(self.price * (self.share @ self.offsets) - w @ w / 2)

    def add(self, normal: Array, offset: float) -> None:
        """Add a plane, and solve."""
        keep = self.idle < IDLE
        keep[0] = True
        self.normals = np.vstack([self.normals[keep], normal])
        products = self.normals @ normal
        inner = np.column_stack([self._products[np.ix_(keep, keep)], products[:-1]])
        self._products = np.vstack([inner, products])
        self.offsets = np.append(self.offsets[keep], offset)
        self.share = simplex_minimum(
            self.price * self._products, -self.offsets, np.append(self.share[keep], 0.0), new=len(self.offsets) - 1
        )
        self.idle = np.where(self.share > 0, 0, np.append(self.idle[keep], 0) + 1)


def simplex_minimum(H: Array, g: Array, start: Array, new: int) -> Array:
    r"""Minimise ½ xᵀHx + gᵀx over the simplex by an active set, from a point of it where `new` may enter.

    Shape: `H` ``(k, k)``, positive semidefinite; `g`, `start` and the result ``(k,)``.

    >>> simplex_minimum(np.eye(2), np.array([0.0, -0.5]), np.array([1.0, 0.0]), new=1)
    array([0.25, 0.75])
    """
    x, free = start.copy(), start > 0
    free[new] = True
    noise = 1e-12 * max(1e-300, np.abs(g).max(), np.abs(H).max())
    for _ in range(100 * len(g)):  # each turn frees or binds a variable; this many are a cycle of rounding errors
        at = np.flatnonzero(free)
        k = len(at)
        system = np.ones((k + 1, k + 1))
        system[:k, :k], system[k, k] = H[np.ix_(at, at)], 0.0
        system[np.arange(k), np.arange(k)] += noise
        wanted = np.zeros(len(x))
        wanted[at] = np.linalg.solve(system, np.append(-g[at], 1.0))[:k]
        if (wanted[at] >= 0).all():
            x = wanted
            slope = H @ x + g
            level = slope @ x
            slope[at] = np.inf
            out = int(slope.argmin())
            if slope[out] >= level - noise:
                break
            free[out] = True
            continue
        falls = at[wanted[at] < 0]
        steps = x[falls] / (x[falls] - wanted[falls])
        bound = falls[steps <= steps.min()]
        x = x + steps.min() * (wanted - x)
        x[bound], free[bound] = 0.0, False
    found: Array = x / x.sum()
    return found


def _sums(values: Array) -> Array:
    sums: Array = np.append(0.0, np.cumsum(values))
    return sums
