"""LightGBM."""

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from fbeta.learners.booster import MOST, Booster, BoosterLearner, Engine, Numbers
from fbeta.learners.crossfit import Array
from fbeta.learners.lightgbm_trees import rewritten
from fbeta.learners.machine import threads_for
from fbeta.learners.objectives import LightGBMObjective


class _LightGBMBooster(Booster):
    library, file, dtype = "lightgbm", "booster.txt", np.float64
    rewritten = staticmethod(rewritten)

    def margins(self, X: Any) -> Array:
        with warnings.catch_warnings():
            # It says so for SciPy's newer sparse arrays, and they need not worry anyone.
            warnings.filterwarnings("ignore", "Converting data to scipy sparse matrix")
            threads = threads_for(X.shape[0] * self.native.num_trees()) or 0
            return np.asarray(self.native.predict(X, raw_score=True, num_threads=threads), dtype=np.float64)

    @property
    def inputs(self) -> int:
        return int(self.native.num_feature())

    def dump(self) -> bytes:
        return bytes(self.native.model_to_string().encode())

    @staticmethod
    def load(data: bytes) -> Any:
        import lightgbm

        try:
            return lightgbm.Booster(model_str=data.decode())
        except lightgbm.basic.LightGBMError as error:
            raise ValueError(str(error)) from error


class _LightGBMEngine(Engine):
    """LightGBM on numbered rows; the bins are those of the whole table, and every fold takes its rows from there."""

    booster = _LightGBMBooster
    _whole: Any = None

    def bin(self, rows: Numbers) -> Any:
        import lightgbm

        if self._whole is None:
            self._whole = lightgbm.Dataset(self.X, label=self.y, params=self.params).construct()
        all_rows = len(rows) == len(self.y)
        return (self._whole if all_rows else self._whole.subset(rows, params=self.params)).construct()

    def _prepared(self, rows: Numbers, weight: Array) -> tuple[Any, Any, float]:
        """Weighted rows, custom objective, and first score, which LightGBM finds for its own and keeps in a tree."""
        data = self.binned(rows)
        data.set_weight(weight)
        if self.objective is None:
            return data, None, 0.0
        objective = self.objective()
        offset = objective.start(self.y[rows], weight)
        data.set_init_score(np.full(len(rows), offset))
        return data, objective, offset

    def train(self, rows: Numbers, weight: Array) -> tuple[Any, float]:
        import lightgbm

        def until(now: Any) -> None:
            if self.stopped.is_set():
                raise lightgbm.callback.EarlyStopException(now.iteration, [])

        data, objective, offset = self._prepared(rows, weight)
        params = {**self.params, "objective": objective or "binary"}
        grown = lightgbm.train(params, data, self.rounds, callbacks=[until], keep_training_booster=False)
        return grown, offset

    def grow(self, rest: Numbers, held: Numbers, weight: Array) -> Iterator[Array]:
        import lightgbm

        data, objective, _ = self._prepared(rest, weight)
        params = {**self.params, "objective": "none" if objective else "binary", "metric": "none"}
        booster = lightgbm.Booster(params, data).add_valid(self.bin(held), "held")
        found: list[Array] = []

        def look(scores: Array, _: Any) -> tuple[str, float, bool]:
            found[:] = [scores.copy()]
            return "look", 0.0, True

        for _ in range(self.rounds):
            booster.update(fobj=objective)
            booster.eval_valid(look)
            yield found[0]


@dataclass(frozen=True)
class LightGBM(BoosterLearner):
    """LightGBM, trained for a metric.

    Reference: [ke2017]
    """

    name, package, rank = "lightgbm", "lightgbm", 3
    engine, objective, files = _LightGBMEngine, LightGBMObjective, (_LightGBMBooster.file,)

    @property
    def space(self) -> Mapping[str, Any]:
        """Where a search draws settings from."""
        from scipy.stats import loguniform

        sizes = {
            "num_leaves": [7, 15, 31, 63],
            "min_data_in_leaf": [5, 10, 20, 50],
            "feature_fraction": [0.5, 0.75, 1.0],
        }
        return {"learning_rate": loguniform(0.03, 0.3), "lambda_l2": loguniform(1e-3, 10), **sizes}

    def params_for(self, seed: int, threads: int) -> dict[str, Any]:
        """Its own parameters, and so many threads."""
        # The same rows give the same model on any number of threads.
        steady = {"deterministic": True, "force_row_wise": True, "verbosity": -1, "max_delta_step": MOST}
        return {"seed": seed, "num_threads": threads, **steady, **self.params}
