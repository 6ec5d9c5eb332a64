"""LightGBM."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fbeta.boosting.classifier import BoosterClassifier
from fbeta.boosting.learner import MOST, Array, Learner, Model, Rows
from fbeta.boosting.objectives import lightgbm_objective

try:
    import lightgbm
except ImportError as error:  # pragma: no cover
    raise ImportError("LGBMMetricClassifier needs LightGBM: pip install 'fbeta[boosting]'") from error


class LGBMLearner(Learner):
    """LightGBM on numbered rows; the bins are those of the whole table, and every fold takes its rows from there."""

    _whole: Any = None

    def bin(self, rows: Rows) -> lightgbm.Dataset:
        """Take rows of the binned table."""
        if self._whole is None:
            self._whole = lightgbm.Dataset(self.X, label=self.y, params=self.params).construct()
        all_rows = len(rows) == len(self.y)
        found: lightgbm.Dataset = self._whole if all_rows else self._whole.subset(rows, params=self.params)
        return found.construct()

    def train(self, data: lightgbm.Dataset, y: NDArray[Any], weight: Array) -> Model:
        """Boost for all rounds."""
        params, offset = self._start(data, y, weight)
        booster = lightgbm.train(params, data, self.rounds, keep_training_booster=False)
        return Model(booster, offset)

    def _start(self, data: lightgbm.Dataset, y: NDArray[Any], weight: Array) -> tuple[dict[str, Any], float]:
        """Weights and first scores; for its own logistic loss LightGBM finds the score and writes it into a tree."""
        data.set_weight(weight)
        if self.objective is None:
            return {**self.params, "objective": "binary"}, 0.0
        objective = self.objective()
        offset = objective.start(y, weight)
        data.set_init_score(np.full(len(y), offset))
        return {**self.params, "objective": objective}, offset

    def grow(self, rest: Rows, held: Rows, weight: Array) -> Iterator[Array]:
        """Boost on some rows, and score others after every round."""
        data, other = self.binned(rest), self.bin(held)
        params, _ = self._start(data, self.y[rest], weight)
        objective = params["objective"] if callable(params["objective"]) else None
        params = params if objective is None else {**params, "objective": "none"}
        booster = lightgbm.Booster({**params, "metric": "none"}, data).add_valid(other, "held")
        found: list[Array] = []

        def look(scores: Array, _: Any) -> tuple[str, float, bool]:
            found[:] = [scores.copy()]
            return "look", 0.0, True

        for _ in range(self.rounds):
            booster.update(fobj=objective)
            booster.eval_valid(look)
            yield found[0]

    @staticmethod
    def scores(model: Model, X: Any) -> Array:
        """Log odds."""
        with warnings.catch_warnings():
            # It says so for SciPy's newer sparse arrays, and they need not worry anyone.
            warnings.filterwarnings("ignore", "Converting data to scipy sparse matrix")
            found = np.asarray(model.booster.predict(X, raw_score=True), dtype=np.float64)
        return found + model.offset


class LGBMMetricClassifier(BoosterClassifier):
    r"""LightGBM, trained and cut for a metric.

    .. math:: c_1 \propto \frac{\partial M/\partial t}{\pi}, \qquad c_0 \propto \frac{-\partial M/\partial u}{1 - \pi}
              \qquad \text{at the out-of-fold operating point}

    `n_estimators` … `reg_lambda` and `n_jobs` are LightGBM's own, None its defaults; `params`: any others, by its
    names. Only `max_delta_step` is 3, without which rare positives make it diverge. Everything else: see
    `XGBMetricClassifier`.

    Shape: X ``(n, d)``, dense or CSR, NaN is a missing value; y ``(n,)`` with two classes.

    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = LGBMMetricClassifier("fbeta:beta=2", n_estimators=20, pos_label=0, n_jobs=1).fit(X, y)
    >>> model.score(X, y) > 0.95, model.predict_proba(X).shape
    (True, (569, 2))

    Reference: [ke2017], [narasimhan2015]
    """

    _library = "lightgbm"
    _learner = LGBMLearner
    _objective = staticmethod(lightgbm_objective)
    _suffix = "txt"
    _dtype = np.float64

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
        num_leaves: int | None = None,
        max_depth: int | None = None,
        min_child_samples: int | None = None,
        min_child_weight: float | None = None,
        subsample: float | None = None,
        subsample_freq: int | None = None,
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
        self.num_leaves = num_leaves
        self.max_depth = max_depth
        self.min_child_samples = min_child_samples
        self.min_child_weight = min_child_weight
        self.subsample = subsample
        self.subsample_freq = subsample_freq
        self.colsample_bytree = colsample_bytree
        self.reg_alpha = reg_alpha
        self.reg_lambda = reg_lambda
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.params = params

    def _params(self, seed: int) -> dict[str, Any]:
        given = {
            "learning_rate": self.learning_rate,
            "num_leaves": self.num_leaves,
            "max_depth": self.max_depth,
            "min_data_in_leaf": self.min_child_samples,
            "min_sum_hessian_in_leaf": self.min_child_weight,
            "bagging_fraction": self.subsample,
            "bagging_freq": self.subsample_freq,
            "feature_fraction": self.colsample_bytree,
            "lambda_l1": self.reg_alpha,
            "lambda_l2": self.reg_lambda,
            "num_threads": self.n_jobs,
        }
        # The same rows give the same model on any number of threads.
        steady = {
            "seed": seed,
            "deterministic": True,
            "force_row_wise": True,
            "verbosity": -1,
            "max_delta_step": MOST,
        }
        return {**steady, **{name: v for name, v in given.items() if v is not None}, **(self.params or {})}

    @staticmethod
    def _read_booster(path: Path) -> Any:
        return lightgbm.Booster(model_file=path)
