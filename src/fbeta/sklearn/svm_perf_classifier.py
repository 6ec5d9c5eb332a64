"""SVM^perf as an estimator."""

import warnings
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from fbeta.learners import Goal, Rows
from fbeta.learners.crossfit import Array
from fbeta.learners.models.svm_perf import SVMPerf
from fbeta.learners.network import Network
from fbeta.metrics import as_metric
from fbeta.sklearn.decider import Decider, check_whole


@dataclass(eq=False, repr=False)
class SVMPerfClassifier(Decider):
    """A linear support vector machine trained for a metric of all rows at once: SVM^perf.

    It minimises ½‖w‖² + C·n·R, where R bounds one minus the metric: see `fbeta.learners.cutting_planes`. With the
    metric "accuracy" it is ``LinearSVC(loss="hinge", C=C)``. Features are taken as they are, so scale them first. Where
    classes overlap so much that no model reaches about half of the metric, the least of the bound is at w = 0, whatever
    C is; then it warns, and a cut on another model is the better way.

    - `metric`: a `Metric`, a spec such as "fbeta:beta=2", or a function of (tp, fp, fn, tn).
    - `C`: what one row's hinge costs, as in `LinearSVC`.
    - `rule`: "own" is the boundary that was trained, z = 0; or a cut on out-of-fold scores: see `fbeta.decisions`.
    - `fit_intercept`: the intercept is the weight of a column of ones, as in `LinearSVC`.
    - `tol`: how far from the optimum it may end, in units of the metric; `max_iter`: passes over the rows at most.
    - `cv`: the folds that give out-of-fold scores, for the cut and for the probabilities (Platt scaling).
    - `average`, `pos_label`: as in `ThresholdClassifier`. Of several classes or labels each is trained on its own.

    Fitted: `coef_`, `intercept_`, `n_iter_`, `decision_`, `cuts_`, `classes_`, `positive_`.

    Shape: X ``(n, d)``, dense or sparse; y ``(n,)``, or ``(n, K)`` for labels.

    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X = scale(X)
    >>> SVMPerfClassifier("f1", C=0.1, pos_label=0).fit(X[::2], y[::2]).score(X[1::2], y[1::2]) > 0.9
    True

    Reference: [joachims2005]
    """

    metric: Any = "fbeta:beta=1"
    C: float = 1.0
    _: KW_ONLY
    rule: Any = "own"
    fit_intercept: bool = True
    tol: float = 1e-3
    max_iter: int = 1000
    cv: Any = None
    average: str = "binary"
    pos_label: Any = None
    random_state: Any = None

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Train; `sample_weight` weighs rows (2 is a row twice), `groups` stay together in a fold."""
        for name, size in (("C", self.C), ("tol", self.tol)):
            if not (isinstance(size, int | float | np.number) and 0 < size < np.inf):
                raise ValueError(f"{name} must be a finite number above 0; got {size!r}.")
        check_whole("max_iter", self.max_iter)
        given = self._read_rows(self._table(X, y), y, sample_weight, groups)
        target, fold, _ = self._divide(given)
        rows = Rows(given.X, target, fold, given.weight)
        learner = SVMPerf(self.C, float(self.fit_intercept), self.tol, self.max_iter)
        found = learner.fit_folds(rows, Goal(as_metric(self.metric)), ["multivariate-hinge"])["multivariate-hinge"]
        if found.remark:
            warnings.warn(
                f"SVMPerfClassifier {found.remark}. A larger max_iter or tol, another C or metric may help.",
                ConvergenceWarning,
                stacklevel=2,
            )
        assert isinstance(found.model, Network)
        self.coef_, self.intercept_, self.n_iter_ = found.model.weights[0].T, found.model.biases[0], found.rounds
        self._decide(*rows.held_out(found.scores), "platt")
        return self

    def _table(self, X: Any, y: Any = None) -> Any:
        """The rows, checked; with a target they are those to learn from."""
        return self._checked(X, y, accept_sparse="csr", dtype=np.float64)

    def _scores(self, X: Any) -> Array:
        return np.asarray(self._table(X) @ self.coef_.T + self.intercept_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
