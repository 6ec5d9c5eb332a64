"""Coverage: how often `Threshold.interval` holds the score that the chosen cut has in the population.

Scores are two normals a distance apart, so that the population's confusion at any cut is known. Each draw of rows is
cut by every rule for every metric, as a user would, on the very rows that the interval comes from.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from fbeta import Confusion, FBeta, tune

RULES = ("exact", "shrunk")
BETAS = {"F½": 0.5, "F1": 1.0, "F2": 2.0}
RATE = 0.1
#: Rows, and how far apart the classes are: 10, 50 and 1,000 positives on average.
CASES = ((100, 1.0), (100, 2.0), (500, 1.0), (500, 2.0), (10_000, 2.0))


def measure(runs: int, say: Callable[[str], None]) -> dict[str, Any]:
    """The share of draws whose interval holds the truth, for every size, distance, rule and metric."""
    found = []
    for n, distance in CASES:
        held = {(rule, name): 0 for rule in RULES for name in BETAS}
        rng = np.random.default_rng(0)
        for _ in range(runs):
            y = rng.random(n) < RATE
            y[:2] |= y.sum() < 2
            scores = rng.normal(size=n) + distance * y
            for rule, name in held:
                held[rule, name] += covers(scores, y, FBeta(BETAS[name]), rule, distance)
        row: dict[str, Any] = {"rows": n, "positives": round(n * RATE), "distance": distance}
        for rule in RULES:
            row[rule] = {name: held[rule, name] / runs for name in BETAS}
        found.append(row)
        say(str(row))
    return {"runs": runs, "level": 0.95, "rows": found}


def covers(scores: Any, y: Any, metric: FBeta, rule: str, distance: float) -> bool:
    """Whether the interval of a cut holds what the cut scores in the population."""
    cut = tune(scores, y, metric, rule=rule)
    fpr, tpr = (0.5 * math.erfc((cut.value - mean) / math.sqrt(2)) for mean in (0.0, distance))
    truth = float(metric(Confusion.from_rates(fpr, tpr, RATE)))
    assert cut.interval is not None
    low, high = cut.interval.score
    return low - 1e-12 <= truth <= high + 1e-12


def render(found: dict[str, Any]) -> list[str]:
    """One row a size and distance, one column a rule and metric."""
    heads = [f"{rule}, {name}" for rule in RULES for name in BETAS]
    worst = 100 * math.sqrt(found["level"] * (1 - found["level"]) / found["runs"])
    shares = [x for row in found["rows"] for rule in RULES for x in row[rule].values()]
    lines = [
        "## Coverage of the interval",
        "",
        "How often `interval.score` holds the population score of the chosen cut, per cent, at nominal "
        f"{100 * found['level']:.0f} %; {found['runs']:,} draws a row of the table (standard error {worst:.1f}); from "
        f"{100 * min(shares):.1f} to {100 * max(shares):.1f}, {100 * sum(shares) / len(shares):.1f} on average. Scores "
        f"are two normals this far apart, {100 * RATE:.0f} % are positive. `python benchmarks/cuts.py coverage`",
        "",
        "| positives | distance | " + " | ".join(heads) + " |",
        "|---|---|" + "---|" * len(heads),
    ]
    for row in found["rows"]:
        each = [row[rule][name] for rule in RULES for name in BETAS]
        shown = " | ".join(f"{100 * x:.1f}" for x in each)
        lines.append(f"| {row['positives']:,} of {row['rows']:,} | {row['distance']:g} | {shown} |")
    return [*lines, ""]
