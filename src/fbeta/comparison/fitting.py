"""Fit the chosen or the best method on all rows; calibration and cut come from out-of-fold ones."""

from __future__ import annotations

import datetime
import hashlib
import importlib.metadata
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

import fbeta
from fbeta.artifact import Model
from fbeta.comparison import boosters
from fbeta.comparison.learned import Learned, Task, decision, held_score, known
from fbeta.comparison.methods import Method, plan, several
from fbeta.comparison.parts import Tick, parts
from fbeta.comparison.result import Comparison
from fbeta.data import load_table
from fbeta.decisions import Threshold
from fbeta.decisions import rule as read_rule
from fbeta.learners.devices import device_of
from fbeta.metrics import Metric, title
from fbeta.metrics import metric as read_metric
from fbeta.tables import Encoder, Table, split


def fit(
    data: Any,
    target: str | None = None,
    *,
    metric: Metric | str | Any = None,
    models: str | Sequence[str] | None = None,
    losses: str | Sequence[str] | None = None,
    comparison: Comparison | None = None,
    folds: int | None = None,
    rule: str | None = None,
    seed: int = 0,
    device: str = "cpu",
    sha256: str = "",
    tick: Tick = lambda done, of: None,
    **options: Any,
) -> Model:
    """Train on all rows of a table, and cut where the out-of-fold rows say.

    - `data`: a `Table`, a path, or the name of a set; `options` are those of `fbeta.data.load_table`.
    - `models`, `losses`: what to train. Of several methods the one with the best out-of-fold score is kept.
    - `comparison`: take the method it advises instead, with its metric, rule and folds unless others are given.
    - `folds`: 5, for calibration, cut and early stopping. `rule`: how the cut is chosen, "shrunk".
    - `sha256`: of the file that the rows come from, to be kept in the model. `tick`: is told how far it is.

    >>> model = fit("breast-cancer", metric="fbeta:beta=2", models="linear", losses="tangent", folds=2)
    >>> model.name, model.cut.score > 0.9
    ('linear, tangent', True)
    """
    began = time.perf_counter()
    if comparison is not None:
        metric, models, losses, rule, folds = _asked(comparison, metric, models, losses, rule, folds)
    goal, rule, folds = read_metric(metric or "fbeta:beta=1"), rule or "shrunk", folds or 5
    read_rule(rule)
    methods, on = chosen(models, losses, goal), device_of(device)
    table = data if isinstance(data, Table) else load_table(data, target, **options)
    # By time only outside, as in a comparison: each row must be held once.
    inner = split(replace(table, time=None), folds, seed + 1000)
    encoder = Encoder.fit(table.features, table.columns)
    rows = np.arange(len(table))
    y = table.y.astype(np.int64)
    task = Task(encoder.transform(table.features), y, rows, rows[:0], inner.ids, goal, seed)
    best: tuple[Method, Learned, float] | None = None
    for method, learned in _learn(task, methods, on, tick).items():
        if learned.model is None:
            continue
        held = known(held_score(learned.inner, y, inner.ids, goal, rule))
        if best is None or held > best[-1]:
            best = method, learned, held
    if best is None:
        raise ValueError(
            f"training diverged ({', '.join(m.name for m in methods)}): its scores are no numbers; choose another "
            "model or loss."
        )
    method, learned, _ = best
    platt, cut = decision(learned.inner, y, goal, rule)
    assert learned.model is not None
    facts = _provenance(
        table, method, methods, learned, cut, folds, seed, sha256, time.perf_counter() - began
    )
    return Model(
        encoder, learned.model, platt, cut, goal, table.target, table.positive, table.negative, method.model,
        method.loss, facts,
    )  # fmt: skip


def chosen(
    models: str | Sequence[str] | None, losses: str | Sequence[str] | None, metric: Metric
) -> list[Method]:
    """The methods that are asked for, and nothing beside them.

    >>> [method.name for method in chosen("linear", "tangent", read_metric("mcc"))]
    ['linear, tangent']
    """
    some, named = several(models), several(losses)
    found = [m for m in plan(some, named, metric) if not named or m.loss in named]
    if not found:
        raise ValueError(
            f"{' and '.join(some)} cannot be trained with {', '.join(named)}: it has "
            f"{', '.join(boosters.LOSSES)}."
        )
    return found


def digest(path: Path | str) -> str:
    """The SHA-256 of a file.

    >>> digest("/dev/null")[:8]
    'e3b0c442'
    """
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _asked(
    comparison: Comparison, metric: Any, models: Any, losses: Any, rule: str | None, folds: int | None
) -> tuple[Any, str, str, str, int]:
    if models or losses:
        raise ValueError("a comparison says which method is fitted: leave models and losses out.")
    if metric is not None and read_metric(metric) != read_metric(comparison.metric):
        raise ValueError(
            f"the comparison is about {comparison.metric}, not {read_metric(metric)}: leave the metric out, or compare "
            "again."
        )
    try:
        best = comparison.candidate(comparison.advised or comparison.winner)
    except KeyError as error:
        raise ValueError("the comparison advises no method: compare again.") from error
    given = metric if metric is not None else comparison.metric
    return given, best.model, best.loss, rule or best.rule, folds or comparison.folds or 5


def _learn(task: Task, methods: Sequence[Method], device: torch.device, tick: Tick) -> dict[Method, Learned]:
    """Train all methods, in the order in which they were asked for."""
    todo = parts(methods, 1, task.seed)
    found: dict[Method, Learned] = {}
    done, total = 0, sum(part.steps for part in todo)
    tick(done, total)
    for part in todo:
        learned = part.train(task, device, tick=partial(_ahead, tick, done, total))
        found |= {method: learned[method.loss] for method in part.methods}
        done += part.steps  # also where it stopped before
        tick(done, total)
    return {method: found[method] for method in methods}


def _ahead(tick: Tick, before: int, total: int, epoch: int) -> None:
    tick(before + epoch, total)


def _provenance(
    table: Table,
    method: Method,
    methods: Sequence[Method],
    learned: Learned,
    cut: Threshold,
    folds: int,
    seed: int,
    sha256: str,
    seconds: float,
) -> dict[str, Any]:
    """Where a model comes from, as plain data."""
    interval = cut.interval
    library = {"linear": "torch", "mlp": "torch"}.get(method.model, method.model)
    packages = dict.fromkeys(["numpy", "polars", "torch", library])
    return {
        "data": table.name,
        "sha256": sha256,
        "rows": len(table),
        "positives": int(table.y.sum()),
        "title": title(cut.metric) if cut.metric is not None else "",
        "score": float(cut.score),
        "interval": None if interval is None else [float(x) for x in interval.score],
        "rule": cut.rule,
        "folds": folds,
        "seed": seed,
        "tried": [m.name for m in methods],
        "epochs": learned.rounds,
        "collapse": learned.collapse,
        "seconds": round(seconds, 1),
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "versions": {"fbeta": fbeta.__version__} | {name: _version(name) for name in packages},
        "notes": list(table.notes),
    }


def _version(package: str) -> str:
    for name in (package, f"{package}-cpu"):  # xgboost has a package without CUDA
        try:
            return importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return ""
