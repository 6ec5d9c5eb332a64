"""Rules for a cut on real tables, as the scores are and with some far outside: see decisions.py."""

from __future__ import annotations

import itertools
import warnings
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from decisions_tables import LEARNERS, Floats, over_sources, paths, scored, source
from doc_block import hundredths
from joblib import Parallel, delayed
from numpy.typing import NDArray

from fbeta import MCC, Confusion, FBeta, tune
from fbeta.decisions import Platt
from fbeta.decisions.problem import Problem
from fbeta.decisions.rules import Plugin
from fbeta.decisions.rules.exact import Exact
from fbeta.decisions.steps import Steps


@dataclass(frozen=True)
class Line(Plugin):
    """The plug-in of Platt scaling through all scores, which believes whatever it expects."""

    def counts(self, problem: Problem) -> Steps:
        """What the line leads us to count."""
        return problem.observed.expected(Platt.fit(problem.observed)(problem.observed.scores))

    def choose(self, problem: Problem) -> float:
        """The argmax, whatever the rows say."""
        return Exact.choose(self, problem)


METRICS = {"F1": FBeta(1), "F2": FBeta(2), "MCC": MCC()}
RULES = ("exact", "plugin", "shrunk", "line", "constant")
#: Shares of all rows, whatever their class, that get a score far above (half of them) or below all others.
OUTLYING = (0.0, 0.01, 0.05)


def with_outliers(p: Floats, share: float, seed: int) -> Floats:
    """Some scores moved far out, in log odds."""
    rng = np.random.default_rng(seed)
    far: NDArray[np.intp] = rng.choice(p.size, round(share * p.size), False)
    z = np.log(p.clip(1e-9, 1 - 1e-9) / (1 - p).clip(1e-9, 1))
    z[far] = rng.normal(np.where(rng.random(far.size) < 0.5, z.max() + 3, z.min() - 3))
    made: Floats = 1 / (1 + np.exp(-z))
    return made


def one(path: Path, learner: str, repeat: int, rows: int, cache: Path | None) -> dict[tuple[str, str, str], float]:
    """The score of later rows for every share of outlying scores, metric and rule."""
    scores, made = scored(path, learner, repeat, rows, cache), {}
    if scores is None:
        return {}
    for share in OUTLYING:
        inner, later = (with_outliers(p, share, repeat) for p in (scores.inner, scores.later))
        for (name, metric), rule in itertools.product(METRICS.items(), RULES):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                cut = tune(inner, scores.truth, metric, kind="probability", rule=Line() if rule == "line" else rule)
            counts = Confusion.from_predictions(cut.decide(later) * 1.0, scores.later_truth)
            made[f"{share:g}", name, rule] = float(metric(counts))
    return made


def measure(folder: Path, rows: int, repeats: int, cache: Path | None, jobs: int) -> dict[str, Any]:
    """Every rule on every table: the mean over repeats and learners, and the differences to the exact cut by source."""
    seen: dict[str, Any] = defaultdict(lambda: defaultdict(list))
    asked = list(itertools.product(paths(folder), LEARNERS, range(repeats)))
    for (path, *_), made in zip(
        asked, Parallel(jobs, verbose=5)(delayed(one)(*each, rows, cache) for each in asked), strict=True
    ):
        for cell, score in made.items():
            seen[source(path)][cell].append(score)
    cells = [(f"{share:g}", name) for share in OUTLYING for name in METRICS]
    found = {
        f"{share}, {name}": {
            "exact": over_sources(np.mean(s[share, name, "exact"]) for s in seen.values()),
            "above exact": {
                rule: over_sources(
                    np.mean(np.subtract(s[share, name, rule], s[share, name, "exact"])) for s in seen.values()
                )
                for rule in RULES[1:]
            },
        }
        for share, name in cells
    }
    return {"most rows": rows, "repeats": repeats, "sources": len(seen), "cells": found}


def render(found: dict[str, Any]) -> list[str]:
    """One row per share of outlying scores and metric."""
    lines = [
        "## Rules, as the scores are and with some far outside",
        "",
        f"{found['sources']} sources, logistic regression and boosted trees, {found['repeats']} random splits; a share "
        "of rows of either class gets a score far above or below all others, before and after the cut is chosen. "
        "Hundredths above the exact cut, mean over sources with a 95 % interval by t; `line` is the plug-in of Platt "
        "scaling through all scores. `python benchmarks/decisions.py rules FOLDER`",
        "",
        "| outlying, metric | exact | " + " | ".join(RULES[1:]) + " |",
        "|---|---|" + "---|" * len(RULES[1:]),
    ]
    for name, cell in found["cells"].items():
        shown = " | ".join(hundredths(cell["above exact"][rule]) for rule in RULES[1:])
        lines.append(f"| {name} | {100 * cell['exact']['mean']:.2f} | {shown} |")
    return [*lines, ""]


def summary(found: dict[str, Any]) -> str:
    """What docs/cuts.md says."""
    far = found["cells"]["0.05, MCC"]["above exact"]
    shown = {rule: hundredths(far[rule]) for rule in RULES[1:]}
    return (
        f"Scores far outside, 5 % of all, on {found['sources']} sources, MCC, in hundredths against the exact cut "
        f"(mean over sources and 95 % interval): `shrunk` {shown['shrunk']}, `plugin` {shown['plugin']}; a plug-in of "
        f"Platt scaling through all scores {shown['line']}. So where scores have such tails, prefer `exact` or "
        "`shrunk` ([decisions-rules.md](../benchmarks/results/decisions-rules.md))."
    )
