"""Rules for a cut on real tables, as the scores are and with some far outside: see decisions.py."""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from decisions_tables import LEARNERS, Floats, hundredths, over_sources, paths, scored, source
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


def measure(folder: Path, rows: int, repeats: int, cache: Path | None, say: Callable[[str], None]) -> dict[str, Any]:
    """Every rule on every table: the mean over repeats and learners, and the differences to the exact cut by source."""
    seen: dict[str, Any] = defaultdict(lambda: defaultdict(list))
    for path in paths(folder):
        for learner in LEARNERS:
            for repeat in range(repeats):
                scores = scored(path, learner, repeat, rows, cache)
                for share in OUTLYING if scores is not None else ():
                    inner, later = (with_outliers(p, share, repeat) for p in (scores.inner, scores.later))
                    for (name, metric), rule in ((m, r) for m in METRICS.items() for r in RULES):
                        with warnings.catch_warnings():
                            warnings.simplefilter("ignore")
                            cut = tune(inner, scores.truth, metric, kind="probability", rule=rule)
                        counts = Confusion.from_predictions(cut.decide(later) * 1.0, scores.later_truth)
                        seen[source(path)][f"{share:g}", name, rule].append(float(metric(counts)))
        say(path.name)
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
    return (
        f"A few scores far outside do not fool the plug-in: on {found['sources']} sources, MCC, with 5 % of the scores "
        f"outlying, `shrunk` is {hundredths(far['shrunk'])} and `plugin` {hundredths(far['plugin'])} hundredths above "
        f"the exact cut, a plug-in of Platt scaling through all scores {hundredths(far['line'])} "
        "([decisions-rules.md](../benchmarks/results/decisions-rules.md))."
    )
