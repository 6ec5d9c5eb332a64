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
CASES = ("built-in", "tangent", "surrogate")


def rows(n: int) -> tuple[Any, Any]:
    """A table with 8 % positives that a booster can learn for a hundred rounds."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, COLUMNS)).astype(np.float32)
    y = (X[:, :5].sum(1) + rng.logistic(size=n) > 4).astype(np.float32)
    return X, y


def xgboost_cases(X: Any, y: Any, rounds: int, threads: int) -> dict[str, Callable[[], Any]]:
    """Train on one binned table."""
    data = xgboost.QuantileDMatrix(X, y, nthread=threads)
    params: dict[str, Any] = {"nthread": threads}

    def own(loss: str) -> Any:
        objective = xgboost_objective("fbeta:beta=2", loss=loss)
        return xgboost.train({**params, "base_score": objective.start(y)}, data, rounds, obj=objective)

    return {
        "built-in": lambda: xgboost.train({**params, "objective": "binary:logistic"}, data, rounds),
        "tangent": lambda: own("tangent"),
        "surrogate": lambda: own("surrogate"),
    }


def lightgbm_cases(X: Any, y: Any, rounds: int, threads: int) -> dict[str, Callable[[], Any]]:
    """Train on one binned table, with and without first scores."""
    params: dict[str, Any] = {"num_threads": threads, "verbosity": -1, "force_row_wise": True}
    start = lightgbm_objective("fbeta:beta=2").start(y)
    data = lightgbm.Dataset(X, y, params=params, free_raw_data=False).construct()
    begun = lightgbm.Dataset(X, y, params=params, init_score=np.full(len(y), start), reference=data)
    begun.construct()

    def own(loss: str) -> Any:
        objective = lightgbm_objective("fbeta:beta=2", loss=loss)
        return lightgbm.train({**params, "objective": objective}, begun, rounds)

    return {
        "built-in": lambda: lightgbm.train({**params, "objective": "binary"}, data, rounds),
        "tangent": lambda: own("tangent"),
        "surrogate": lambda: own("surrogate"),
    }


def measure(n: int, rounds: int, repeats: int, threads: int) -> dict[str, Any]:
    """Cases take turns within a repeat, and a ratio is taken inside it, so that a busy machine slows both."""
    X, y = rows(n)
    found: dict[str, Any] = {}
    load = os.getloadavg()[0]
    for library, make in (("xgboost", xgboost_cases), ("lightgbm", lightgbm_cases)):
        cases = make(X, y, rounds, threads)
        seconds: dict[str, list[float]] = {name: [] for name in CASES}
        for _ in range(repeats):
            for name, run in cases.items():
                began = time.perf_counter()
                run()
                seconds[name].append(time.perf_counter() - began)
            print(library, {name: round(s[-1], 1) for name, s in seconds.items()}, flush=True)
        base = seconds["built-in"]
        found[library] = {
            name: {
                "seconds": s,
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
