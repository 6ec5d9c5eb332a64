"""How long a booster trains with our objectives, against its own logistic loss."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from typing import Any

import lightgbm
import numpy as np
import xgboost

from fbeta.boosting import lightgbm_objective, xgboost_objective

COLUMNS = 30


class Timed:
    """An objective that counts its own seconds: the rest of a ratio is other trees, which take other times."""

    def __init__(self, objective: Any) -> None:
        self.objective, self.seconds = objective, 0.0

    def __call__(self, scores: Any, data: Any) -> Any:
        """Gradient and Hessian."""
        began = time.perf_counter()
        found = self.objective(scores, data)
        self.seconds += time.perf_counter() - began
        return found

    def __deepcopy__(self, memo: Any) -> Timed:
        return self  # lightgbm.train copies its parameters


CASES = ("built-in", "tangent", "surrogate")


def rows(n: int) -> tuple[Any, Any]:
    """A table with 8 % positives that a booster can learn for a hundred rounds."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, COLUMNS)).astype(np.float32)
    y = (X[:, :5].sum(1) + rng.logistic(size=n) > 4).astype(np.float32)
    return X, y


def xgboost_cases(X: Any, y: Any, rounds: int, threads: int) -> dict[str, Callable[[], float]]:
    """Train on one binned table."""
    data = xgboost.QuantileDMatrix(X, y, nthread=threads)
    params: dict[str, Any] = {"nthread": threads}

    def plain() -> float:
        xgboost.train({**params, "objective": "binary:logistic"}, data, rounds)
        return 0.0

    def own(loss: str) -> float:
        objective = xgboost_objective("fbeta:beta=2", loss=loss)
        timed = Timed(objective)
        xgboost.train({**params, "base_score": objective.start(y)}, data, rounds, obj=timed)
        return timed.seconds

    return {"built-in": plain, "tangent": lambda: own("tangent"), "surrogate": lambda: own("surrogate")}


def lightgbm_cases(X: Any, y: Any, rounds: int, threads: int) -> dict[str, Callable[[], float]]:
    """Train on one binned table, with and without first scores."""
    params: dict[str, Any] = {"num_threads": threads, "verbosity": -1, "force_row_wise": True}
    start = lightgbm_objective("fbeta:beta=2").start(y)
    data = lightgbm.Dataset(X, y, params=params, free_raw_data=False).construct()
    begun = lightgbm.Dataset(X, y, params=params, init_score=np.full(len(y), start), reference=data)
    begun.construct()

    def plain() -> float:
        lightgbm.train({**params, "objective": "binary"}, data, rounds)
        return 0.0

    def own(loss: str) -> float:
        timed = Timed(lightgbm_objective("fbeta:beta=2", loss=loss))
        lightgbm.train({**params, "objective": timed}, begun, rounds)
        return timed.seconds

    return {"built-in": plain, "tangent": lambda: own("tangent"), "surrogate": lambda: own("surrogate")}


def measure(n: int, rounds: int, repeats: int, threads: int) -> dict[str, Any]:
    """Cases take turns within a repeat, and a ratio is taken inside it, so that a busy machine slows both."""
    X, y = rows(n)
    found: dict[str, Any] = {}
    load = os.getloadavg()[0]
    for library, make in (("xgboost", xgboost_cases), ("lightgbm", lightgbm_cases)):
        cases = make(X, y, rounds, threads)
        seconds: dict[str, list[float]] = {name: [] for name in CASES}
        inside: dict[str, list[float]] = {name: [] for name in CASES}
        for _ in range(repeats):
            for name, run in cases.items():
                began = time.perf_counter()
                inside[name].append(run())
                seconds[name].append(time.perf_counter() - began)
            print(library, {name: round(s[-1], 1) for name, s in seconds.items()}, flush=True)
        base = seconds["built-in"]
        found[library] = {
            name: {
                "seconds": s,
                "inside": inside[name],
                "ratio": statistics.median(a / b for a, b in zip(s, base, strict=True)),
                "ratios": [a / b for a, b in zip(s, base, strict=True)],
            }
            for name, s in seconds.items()
        }
    return {
        "rows": n,
        "columns": COLUMNS,
        "rounds": rounds,
        "repeats": repeats,
        "threads": threads,
        "load": load,
        "libraries": found,
    }
