"""XGBoost."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fbeta.boosting.classifier import BoosterClassifier
from fbeta.boosting.learner import MOST, Array, Learner, Model, Rows
from fbeta.boosting.objectives import xgboost_objective
from fbeta.decisions.calibration import sigmoid
from fbeta.learners import take

try:
    import xgboost
except ImportError as error:  # pragma: no cover
    raise ImportError("XGBMetricClassifier needs XGBoost: pip install 'fbeta[boosting]'") from error


class XGBLearner(Learner):
    """XGBoost on numbered rows."""

    def bin(self, rows: Rows) -> xgboost.DMatrix:
        """Quantiles for the histogram method (the default), plain rows for others."""
        options = {"label": self.y[rows], "nthread": self.params.get("nthread")}
        trees = self.params.get("tree_method", "hist") in ("hist", "auto")
        if trees and self.params.get("booster", "gbtree") != "gblinear":
            return xgboost.QuantileDMatrix(
                take(self.X, rows), max_bin=self.params.get("max_bin", 256), **options
            )
        return xgboost.DMatrix(take(self.X, rows), **options)

    def train(self, data: xgboost.DMatrix, y: NDArray[Any], weight: Array) -> Model:
        """Boost for all rounds."""
        data.set_weight(weight)
        objective, params = self._start(y, weight)
        return Model(xgboost.train(params, data, self.rounds, obj=objective))

    def _start(self, y: NDArray[Any], weight: Array) -> tuple[Any, dict[str, Any]]:
        """The objective and parameters with the right first score; for its own logistic loss XGBoost finds it."""
        steps = {"max_delta_step": MOST, **self.params}
        if self.objective is None:
            return None, {**steps, "objective": "binary:logistic"}
        objective = self.objective()
        base = float(sigmoid(objective.start(y, weight)))
        # With "binary:logistic" every version reads base_score as a probability; "binary:logitraw" is read both ways.
        return objective, {**steps, "objective": "binary:logistic", "base_score": base}

    def grow(self, rest: Rows, held: Rows, weight: Array) -> Iterator[Array]:
        """Boost on some rows, and score others after every round."""
        data, other = self.binned(rest), xgboost.DMatrix(take(self.X, held))
        data.set_weight(weight)
        objective, params = self._start(self.y[rest], weight)
        booster = xgboost.Booster(params, [data, other])
        for i in range(self.rounds):
            booster.update(data, i, fobj=objective)
            yield booster.predict(other, output_margin=True)

    @staticmethod
    def scores(model: Model, X: Any) -> Array:
        """Log odds."""
        if hasattr(X, "tocsr"):  # prediction in place takes only some kinds of sparse rows
            found = model.booster.predict(xgboost.DMatrix(X), output_margin=True)
        else:
            found = model.booster.inplace_predict(X, predict_type="margin")
        return np.asarray(found, dtype=np.float64)


class XGBMetricClassifier(BoosterClassifier):
    r"""XGBoost, trained and cut for a metric.

    .. math:: c_1 \propto \frac{\partial M/\partial t}{\pi}, \qquad c_0 \propto \frac{-\partial M/\partial u}{1 - \pi}
              \qquad \text{at the out-of-fold operating point}

    - `metric`: a `Metric`, a spec such as "fbeta:beta=2", or a function of (tp, fp, fn, tn).
    - `loss`: "tangent" (XGBoost's own logistic loss with class costs from the fixed point of `fbeta.learners`; with
      `q` > 0 a custom objective), "bce" (no costs: only the cut is the metric's) or "surrogate" (the paper's).
    - `rule`: the cut, from out-of-fold scores: "shrunk", "exact", "plugin", "constant" (see `fbeta.decisions`), or
      "own" for the loss's own cut at log odds 0.
    - `cv`: folds: None (five, fewer where a class is small), a number, or a splitter. `average_folds`: keep the
      models of the folds and average their scores instead of one more fit on all rows; better as a rule, and
      slower to predict.
    - `early_stopping_rounds`: stop where the metric of the out-of-fold rows has not risen for so many rounds;
      `n_estimators` is then the most there may be.
    - `rounds`, `damping`: of the fixed point. `pos_label`: the positive class; None is the later in order.
    - `n_estimators` … `reg_lambda`, `n_jobs`: XGBoost's own, None its defaults; `params`: any others, by its names.
      Only `max_delta_step` is 3, without which rare positives make it diverge.

    Fitted: `classes_`, `costs_` (c₀, c₁), `thresholds_`, `cuts_` (log odds), `n_rounds_`, `models_`, `history_`,
    `out_of_fold_` (log odds of the rows by models that did not see them), `boundary_` (log odds of the loss's own cut).

    Shape: X ``(n, d)``, dense or CSR, NaN is a missing value; y ``(n,)`` with two classes.

    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = XGBMetricClassifier("fbeta:beta=2", n_estimators=20, pos_label=0, n_jobs=1).fit(X, y)
    >>> model.score(X, y) > 0.95, model.predict_proba(X).shape
    (True, (569, 2))

    Reference: [chen2016], [narasimhan2015]
    """

    _library = "xgboost"
    _learner = XGBLearner
    _objective = staticmethod(xgboost_objective)
    _suffix = "json"
    _dtype = np.float32  # what XGBoost computes in

    def __init__(
        self,
        metric: Any = "fbeta:beta=1",
        *,
        loss: str = "tangent",
        q: float = 0.0,
        rule: Any = "shrunk",
        cv: Any = None,
        average_folds: bool = False,
        early_stopping_rounds: int | None = None,
        rounds: int = 5,
        damping: float = 0.5,
        pos_label: Any = None,
        n_estimators: int = 100,
        learning_rate: float | None = None,
        max_depth: int | None = None,
        min_child_weight: float | None = None,
        gamma: float | None = None,
        subsample: float | None = None,
        colsample_bytree: float | None = None,
        reg_alpha: float | None = None,
        reg_lambda: float | None = None,
        n_jobs: int | None = None,
        random_state: Any = 0,
        params: dict[str, Any] | None = None,
    ) -> None:
        self.metric = metric
        self.loss = loss
        self.q = q
        self.rule = rule
        self.cv = cv
        self.average_folds = average_folds
        self.early_stopping_rounds = early_stopping_rounds
        self.rounds = rounds
        self.damping = damping
        self.pos_label = pos_label
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.max_depth = max_depth
        self.min_child_weight = min_child_weight
        self.gamma = gamma
        self.subsample = subsample
        self.colsample_bytree = colsample_bytree
        self.reg_alpha = reg_alpha
        self.reg_lambda = reg_lambda
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.params = params

    def _params(self, seed: int) -> dict[str, Any]:
        given = {
            "learning_rate": self.learning_rate,
            "max_depth": self.max_depth,
            "min_child_weight": self.min_child_weight,
            "gamma": self.gamma,
            "subsample": self.subsample,
            "colsample_bytree": self.colsample_bytree,
            "reg_alpha": self.reg_alpha,
            "reg_lambda": self.reg_lambda,
            "nthread": self.n_jobs,
        }
        return {
            "seed": seed,
            **{name: v for name, v in given.items() if v is not None},
            **(self.params or {}),
        }

    @staticmethod
    def _read_booster(path: Path) -> Any:
        booster = xgboost.Booster()
        booster.load_model(path)
        return booster
