"""Compare: outer splits, inner folds shared by all methods, one part of the work after another."""

from __future__ import annotations

import hashlib
import json
import platform
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from fbeta.comparison import boosters, judging, networks
from fbeta.comparison.learned import Learned, Task
from fbeta.comparison.methods import Method, baseline, plan
from fbeta.comparison.statistics import corrected_t, mean_interval, paired_bootstrap
from fbeta.comparison.words import recommendation, title
from fbeta.data import load_table
from fbeta.data.tables import Encoder, Table, split
from fbeta.metrics import Metric
from fbeta.metrics import metric as read_metric
from fbeta.results import Candidate, Comparison, Epochs
from fbeta.results import Table as Described
from fbeta.train.checkpoint import load, save
from fbeta.train.devices import device_of
from fbeta.train.record import write

#: Outer splits are folds of one deal, then of the next: so each row is judged about as often as any other.
OUTER = 5
PROTOCOL = {"protocol": "fbeta compare", "version": 1}


def compare(
    data: Any,
    target: str | None = None,
    *,
    metric: Metric | str | Any = "fbeta:beta=1",
    models: Sequence[str] | None = None,
    losses: Sequence[str] | None = None,
    seeds: int = 5,
    folds: int = 5,
    rule: str = "shrunk",
    seed: int = 0,
    device: str = "cpu",
    folder: Path | str | None = None,
    tick: Callable[[int, int], None] = lambda done, of: None,
    **options: Any,
) -> Comparison:
    """Compare losses and cuts on a table: which is best, by how much, and is that more than noise?

    - `data`: a `Table`, a path, or the name of a set; `options` are those of `fbeta.data.load_table`.
    - `models`, `losses`: names; those installed and a sensible six unless given.
    - `seeds`: outer splits. `folds`: inner folds, shared by all methods. `rule`: how the cut is chosen.
    - `folder`: keeps finished parts, so that a killed comparison goes on and ends with the same numbers.
    - `tick`: is told how many of how many parts are done.

    >>> from fbeta.data import load_table
    >>> found = compare(load_table("breast-cancer"), models=["linear"], losses=["tangent"], seeds=2, folds=2)
    >>> [candidate.name for candidate in found.candidates], found.baseline
    (['linear, bce', 'linear, tangent'], 'linear, bce')

    Reference: [nadeau2003]
    """
    began = time.perf_counter()
    table = data if isinstance(data, Table) else load_table(data, target, **options)
    goal, on = read_metric(metric), device_of(device)
    if table.time is not None and seeds > OUTER:
        raise ValueError(
            f"By time there are {OUTER} outer splits, and chance makes no more; ask for {OUTER} seeds at most."
        )
    methods = plan(models, losses)
    keep = None if folder is None else _Folder(Path(folder), fingerprint(table, goal, folds))
    groups = _groups(methods)
    done, total = 0, seeds * len(groups)
    tick(done, total)
    parts: dict[str, list[tuple[Learned, judging.Judged]]] = {m.name: [] for m in methods}
    share = 0.0
    for task in _tasks(table, goal, seeds, folds, seed):
        share = max(
            share, len(task.test) / len(task.train)
        )  # by time the first split learns from the fewest rows
        for group in groups:
            for method, learned in _learn(task, group, on, keep).items():
                parts[method.name].append((learned, judging.judge(task, learned, rule)))
            done += 1
            tick(done, total)
    return _compared(table, goal, methods, parts, rule, share, folds, time.perf_counter() - began)


def _tasks(table: Table, metric: Metric, seeds: int, folds: int, seed: int) -> Iterator[Task]:
    y = table.y.astype(np.int64)
    for k in range(seeds):
        outer = split(table, OUTER, seed + k // OUTER)
        train, test = outer.train(k % OUTER), outer.test(k % OUTER)
        # By time only outside: all of these rows are the past, and each must be held once.
        inner = split(replace(table.take(train), time=None), folds, seed + 1000 + k)
        X = Encoder.fit(table.features[train], table.columns).transform(table.features)
        yield Task(X, y, train, test, inner.ids, metric, seed + k)


def _groups(methods: Sequence[Method]) -> list[list[Method]]:
    """What is trained, kept and resumed as one: networks of one family train together, boosters one by one."""
    found: list[list[Method]] = []
    for model in dict.fromkeys(m.model for m in methods):
        same = [m for m in methods if m.model == model]
        found += [same] if model in networks.RECIPES else [[m] for m in same]
    return found


def _learn(
    task: Task, group: Sequence[Method], device: torch.device, keep: _Folder | None
) -> dict[Method, Learned]:
    """Train a group on a split, or read what is there."""
    model, names = group[0].model, [m.loss for m in group]
    digest = hashlib.sha256(" ".join(names).encode()).hexdigest()[:8]
    key = f"{model}-{names[0] if len(names) == 1 else digest}-{task.seed}"
    found = None if keep is None else keep.read(key)
    if found is None:
        found = _train(task, model, names, device, None if keep is None else keep.checkpoint(key))
        if keep is not None:
            keep.write(key, found)
    return {method: found[method.loss] for method in group}


def _train(
    task: Task, model: str, names: list[str], device: torch.device, checkpoint: Path | None
) -> dict[str, Learned]:
    if model in networks.RECIPES:
        recipe = networks.RECIPES[model]
        return networks.train(task, names, recipe, device=device, checkpoint=checkpoint)
    return {name: boosters.train(task, model, name) for name in names}


def _compared(
    table: Table,
    metric: Metric,
    methods: Sequence[Method],
    parts: dict[str, list[tuple[Learned, judging.Judged]]],
    rule: str,
    share: float,
    folds: int,
    seconds: float,
) -> Comparison:
    fixed = baseline(methods).name
    candidates = []
    for method in methods:
        judged = [j for _, j in parts[method.name]]
        outcomes = tuple(j.outcome for j in judged)
        difference = None
        if method.name != fixed:
            others = [j for _, j in parts[fixed]]
            apart = [a.outcome.score - b.outcome.score for a, b in zip(judged, others, strict=True)]
            if len(apart) > 1:
                difference = corrected_t(apart, share)
            else:
                one, other = judged[0], others[0]
                difference = paired_bootstrap(metric, one.target == 1, one.decided, other.decided)
        candidates.append(
            Candidate(
                method.name,
                method.model,
                method.loss,
                rule,
                outcomes,
                mean_interval([o.score for o in outcomes], share),
                mean_interval([o.at_half for o in outcomes], share),
                difference,
                judging.operating(judged),
                judging.calibration(judged),
                _course([learned for learned, _ in parts[method.name]]),
            )
        )
    winner = max(candidates, key=lambda c: c.inner)
    base = next(c for c in candidates if c.name == fixed)
    name = title(metric)
    return Comparison(
        Described(
            table.name,
            table.target,
            table.positive,
            len(table),
            int(table.y.sum()),
            len(table.columns),
            tuple(table.notes),
        ),
        str(metric),
        name,
        tuple(candidates),
        fixed,
        winner.name,
        recommendation(name, winner, base),
        seeds=len(base.outcomes),
        folds=folds,
        seconds=seconds,
        machine=f"{platform.machine()}, {torch.get_num_threads()} threads, torch {torch.__version__.partition('+')[0]}",
    )


def _course(learned: Sequence[Learned]) -> Epochs:
    """The mean over splits, as long as all of them went."""
    length = min(len(x.course.held) for x in learned)

    def mean(name: str) -> tuple[float, ...]:
        rows = np.array([getattr(x.course, name)[:length] for x in learned])
        return tuple(float(v) for v in rows.mean(axis=0)) if length else ()

    return Epochs(mean("loss"), mean("score"), mean("held"))


def fingerprint(table: Table, metric: Metric, folds: int) -> dict[str, Any]:
    """What finished parts depend on, besides their own names: the rows, the metric and the folds."""
    rows = np.concatenate([table.features.hash_rows(seed=0).to_numpy(), table.y.astype(np.uint64)])
    digest = hashlib.sha256(np.ascontiguousarray(rows).tobytes()).hexdigest()
    return {**PROTOCOL, "data": digest, "metric": str(metric), "folds": folds}


class _Folder:
    """Finished parts of a comparison on disk."""

    def __init__(self, path: Path, wanted: dict[str, Any]) -> None:
        self.path = path
        path.mkdir(parents=True, exist_ok=True)
        note = path / "protocol.json"
        if note.exists() and json.loads(note.read_text()) != wanted:
            raise ValueError(f"{path} holds another comparison; give another folder, or delete it.")
        if not note.exists():
            write(note, (json.dumps(wanted, indent=1) + "\n").encode())

    def checkpoint(self, key: str) -> Path:
        return self.path / f"{key}.half.safetensors"

    def read(self, key: str) -> dict[str, Learned] | None:
        path = self.path / f"{key}.safetensors"
        if not path.exists():
            return None
        tensors, meta = load(path)
        return {
            name: Learned(
                tensors[f"{name}.inner"].numpy(),
                tensors[f"{name}.outer"].numpy(),
                facts["seconds"],
                facts["rounds"],
                Epochs(*(tuple(row) for row in facts["course"])),
                facts["collapse"],
            )
            for name, facts in meta.items()
        }

    def write(self, key: str, found: dict[str, Learned]) -> None:
        tensors, meta = {}, {}
        for name, x in found.items():
            tensors[f"{name}.inner"] = torch.from_numpy(np.ascontiguousarray(x.inner))
            tensors[f"{name}.outer"] = torch.from_numpy(np.ascontiguousarray(x.outer))
            course = [x.course.loss, x.course.score, x.course.held]
            meta[name] = {
                "seconds": x.seconds,
                "rounds": x.rounds,
                "course": course,
                "collapse": x.collapse,
            }
        save(self.path / f"{key}.safetensors", tensors, meta)
        self.checkpoint(key).unlink(missing_ok=True)
