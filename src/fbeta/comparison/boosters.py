"""XGBoost and LightGBM of a comparison, by their estimators in `fbeta.boosting`."""

from __future__ import annotations

import importlib.util
import time
from typing import Any

import numpy as np
import torch
from sklearn.model_selection import PredefinedSplit

from fbeta.artifact import Booster
from fbeta.comparison.learned import Learned, Task
from fbeta.learners.devices import threads_for

#: The estimator of each library, and the losses it has.
LIBRARIES = {"xgboost": "XGBMetricClassifier", "lightgbm": "LGBMMetricClassifier"}
LOSSES = ("bce", "tangent", "surrogate")
ROUNDS, PATIENCE = 300, 30


def installed() -> list[str]:
    """The libraries that are here."""
    return [name for name in LIBRARIES if importlib.util.find_spec(name) is not None]


def train(task: Task, library: str, loss: str) -> Learned:
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
        n_jobs=threads_for(task.X.size) or torch.get_num_threads(),
        random_state=task.seed,
    ).fit(task.X[task.train], task.y[task.train])
    kept = booster(library, model)
    outer = kept(task.X[task.test]) if len(task.test) else np.empty(0)
    inner = model.out_of_fold_ - model.boundary_
    return Learned(inner, outer, time.perf_counter() - began, model.n_rounds_, model=kept)


def booster(library: str, model: Any) -> Booster:
    """What a fitted estimator scores with, as the library writes it; 0 is the loss's own boundary."""
    (one,) = model.models_
    raw = one.booster.save_raw("json") if library == "xgboost" else one.booster.model_to_string().encode()
    return Booster(library, bytes(raw), float(model._slope[0]), float(one.offset))
