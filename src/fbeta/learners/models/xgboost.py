"""XGBoost."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from fbeta.decisions.calibration import sigmoid
from fbeta.learners.booster import MOST, Booster, BoosterLearner, Engine, Numbers
from fbeta.learners.crossfit import Array, take
from fbeta.learners.objectives import XGBoostObjective
from fbeta.learners.xgboost_trees import rewritten


class _XGBoostBooster(Booster):
    library, file, dtype = "xgboost", "booster.json", np.float32
    rewritten = staticmethod(rewritten)

    def margins(self, X: Any) -> Array:
        import xgboost

        if hasattr(X, "tocsr"):  # prediction in place takes only some kinds of sparse rows
            found = self.native.predict(xgboost.DMatrix(X), output_margin=True)
        else:
            found = self.native.inplace_predict(X, predict_type="margin")
        return np.asarray(found, dtype=np.float64)

    @property
    def inputs(self) -> int:
        return int(self.native.num_features())

    def dump(self) -> bytes:
        return bytes(self.native.save_raw("json"))

    @staticmethod
    def load(data: bytes) -> Any:
        import xgboost

        return xgboost.Booster(model_file=bytearray(data))


class _XGBoostEngine(Engine):
    """XGBoost on numbered rows."""

    booster = _XGBoostBooster

    def bin(self, rows: Numbers) -> Any:
        """Quantiles for the histogram method (the default), plain rows for others."""
        import xgboost

        options = {"label": self.y[rows], "nthread": self.params.get("nthread")}
        trees = self.params.get("tree_method", "hist") in ("hist", "auto")
        if trees and self.params.get("booster", "gbtree") != "gblinear":
            most = self.params.get("max_bin", 256)
            return xgboost.QuantileDMatrix(take(self.X, rows), max_bin=most, **options)
        return xgboost.DMatrix(take(self.X, rows), **options)

    def _prepared(self, rows: Numbers, weight: Array) -> tuple[Any, Any, dict[str, Any]]:
        """Weighted rows, custom objective, and parameters; for its own logistic loss XGBoost finds the first score."""
        data = self.binned(rows)
        data.set_weight(weight)
        params = {"max_delta_step": MOST, **self.params, "objective": "binary:logistic"}
        if self.objective is None:
            return data, None, params
        objective = self.objective()
        # With "binary:logistic" every version reads base_score as a probability; "binary:logitraw" is read both ways.
        params["base_score"] = float(sigmoid(objective.start(self.y[rows], weight)))
        return data, objective, params

    def train(self, rows: Numbers, weight: Array) -> tuple[Any, float]:
        import xgboost

        class Until(xgboost.callback.TrainingCallback):
            """Ends the boosting once it is stopped."""

            def after_iteration(_, model: Any, epoch: int, evals_log: Any) -> bool:  # noqa: N805
                return self.stopped.is_set()

        data, objective, params = self._prepared(rows, weight)
        return xgboost.train(params, data, self.rounds, obj=objective, callbacks=[Until()]), 0.0

    def grow(self, rest: Numbers, held: Numbers, weight: Array) -> Iterator[Array]:
        import xgboost

        data, objective, params = self._prepared(rest, weight)
        other = xgboost.DMatrix(take(self.X, held))
        booster = xgboost.Booster(params, [data, other])
        for i in range(self.rounds):
            booster.update(data, i, fobj=objective)
            yield booster.predict(other, output_margin=True)


@dataclass(frozen=True)
class XGBoost(BoosterLearner):
    """XGBoost, trained for a metric.

    Reference: [chen2016]
    """

    name, package, rank = "xgboost", "xgboost", 2
    engine, objective, files = _XGBoostEngine, XGBoostObjective, (_XGBoostBooster.file,)

    @property
    def space(self) -> Mapping[str, Any]:
        """Where a search draws settings from."""
        from scipy.stats import loguniform

        sizes = {"max_depth": [2, 3, 4, 6, 8], "subsample": [0.6, 0.8, 1.0], "colsample_bytree": [0.5, 0.75, 1.0]}
        return {"eta": loguniform(0.03, 0.3), "min_child_weight": loguniform(0.5, 20), **sizes}

    def params_for(self, seed: int, threads: int) -> dict[str, Any]:
        """Its own parameters, and so many threads."""
        return {"seed": seed, "nthread": threads, **self.params}
