"""XGBoost and LightGBM of a comparison, by their estimators in `fbeta.boosting`."""

from __future__ import annotations

import importlib.util
import time
from typing import Any

from sklearn.model_selection import PredefinedSplit

from fbeta.comparison.learned import Learned, Task

#: The estimator of each library, and the losses it has.
LIBRARIES = {"xgboost": "XGBMetricClassifier", "lightgbm": "LGBMMetricClassifier"}
LOSSES = ("bce", "tangent", "surrogate")
ROUNDS, PATIENCE = 300, 30


def installed() -> list[str]:
    """The libraries that are here."""
    return [name for name in LIBRARIES if importlib.util.find_spec(name) is not None]


def train(task: Task, library: str, loss: str, threads: int | None = None) -> Learned:
    """Boost one loss on a split, with as many rounds as its out-of-fold rows like best."""
    import fbeta.boosting

    began = time.perf_counter()
    made: Any = getattr(fbeta.boosting, LIBRARIES[library])
    model = made(
        task.metric,
        loss=loss,
        cv=PredefinedSplit(task.fold),
        n_estimators=ROUNDS,
        early_stopping_rounds=PATIENCE,
        n_jobs=threads,
        random_state=task.seed,
    ).fit(task.X[task.train], task.y[task.train])
    at = model.boundary_
    outer = model._log_odds(task.X[task.test])[:, 0] - at
    return Learned(model.out_of_fold_ - at, outer, time.perf_counter() - began, model.n_rounds_)
