"""Coverage: how often `Threshold.interval` holds the score that the chosen cut has in the population.

Scores are two normals a distance apart, so that the population's confusion at any cut is known. Each draw of rows is
cut by every rule for every metric, as a user would, on the very rows that the interval comes from.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fbeta import Confusion, FBeta, Metric, tune

RULES = ("exact", "shrunk")
BETAS = {"F½": 0.5, "F1": 1.0, "F2": 2.0}


@dataclass(frozen=True)
class Population:
    """Two normals, and what a user knows and does: rounded scores, row weights, another share of positives."""

    distance: float
    rate: float = 0.1
    #: Scores are rounded to multiples of this; 0 leaves them as they are.
    grid: float = 0.0
    #: "none", "rows" (of any size, without regard to the class), "classes" (5 for positives, ½ for negatives), "both".
    weights: str = "none"
    #: The share of positives that the cut is tuned for.
    prevalence: float | None = None

    def draw(self, rng: np.random.Generator, n: int) -> tuple[NDArray[Any], NDArray[np.bool_], NDArray[Any] | None]:
        """Scores, targets and weights of some rows; at least two are positive."""
        y = rng.random(n) < self.rate
        y[:2] |= y.sum() < 2
        scores = rng.normal(size=n) + self.distance * y
        if self.grid:
            scores = np.round(scores / self.grid) * self.grid
        if self.weights == "none":
            return scores, y, None
        weight = np.where(y, 5.0, 0.5) if self.weights != "rows" else np.ones(n)
        return scores, y, weight * (rng.lognormal(size=n) if self.weights != "classes" else 1.0)

    def score(self, metric: Metric, cut: float) -> float:
        """What a cut scores in the population, weights and given share included."""
        if self.grid and math.isfinite(cut):  # the same decisions on scores before they were rounded
            cut = (math.ceil(cut / self.grid - 1e-9) - 0.5) * self.grid
        fpr, tpr = (0.5 * math.erfc((cut - mean) / math.sqrt(2)) for mean in (0.0, self.distance))
        odds = self.rate / (1 - self.rate) * (10.0 if self.weights in ("classes", "both") else 1.0)
        share = odds / (1 + odds) if self.prevalence is None else self.prevalence
        return float(metric(Confusion.from_rates(fpr, tpr, share)))

    def covers(self, rows: tuple[Any, Any, Any], metric: Metric, rule: str) -> bool:
        """Whether the interval of the cut that these rows choose holds what the cut scores in the population."""
        scores, y, weight = rows
        cut = tune(scores, y, metric, weight, rule=rule, prevalence=self.prevalence, kind="score")
        assert cut.interval is not None
        low, high = cut.interval.score
        return low - 1e-12 <= self.score(metric, float(cut.value)) <= high + 1e-12

    @property
    def words(self) -> str:
        """What is special about it."""
        weighted = {"none": "", "rows": "weights of rows", "classes": "weights of classes", "both": "weights of both"}
        ties = f"rounded to {self.grid:g}" if self.grid else ""
        share = f"tuned for {100 * self.prevalence:g} % positive" if self.prevalence is not None else ""
        return ", ".join(filter(None, (ties, weighted[self.weights], share))) or "none"


#: Rows, and their population: 10, 50 and 1,000 positives on average.
CASES = (
    (100, Population(1.0)),
    (100, Population(2.0)),
    (500, Population(1.0)),
    (500, Population(2.0)),
    (10_000, Population(2.0)),
    (500, Population(2.0, grid=0.5)),
    (500, Population(2.0, weights="rows")),
    (500, Population(2.0, weights="classes")),
    (500, Population(2.0, prevalence=0.01)),
    (500, Population(2.0, prevalence=0.5)),
    (500, Population(2.0, grid=0.5, weights="both", prevalence=0.01)),
)


def measure(runs: int, say: Callable[[str], None]) -> dict[str, Any]:
    """The share of draws whose interval holds the truth, for every population, rule and metric."""
    found = []
    for n, population in CASES:
        held = {(rule, name): 0 for rule in RULES for name in BETAS}
        rng = np.random.default_rng(0)
        for _ in range(runs):
            rows = population.draw(rng, n)
            for rule, name in held:
                held[rule, name] += population.covers(rows, FBeta(BETAS[name]), rule)
        row: dict[str, Any] = {"rows": n, "positives": round(n * population.rate), "distance": population.distance}
        row["special"] = population.words
        for rule in RULES:
            row[rule] = {name: held[rule, name] / runs for name in BETAS}
        found.append(row)
        say(str(row))
    return {"runs": runs, "level": 0.95, "rows": found}


def render(found: dict[str, Any]) -> list[str]:
    """One row per population, one column per rule and metric."""
    heads = [f"{rule}, {name}" for rule in RULES for name in BETAS]
    worst = 100 * math.sqrt(found["level"] * (1 - found["level"]) / found["runs"])
    shares = [x for row in found["rows"] for rule in RULES for x in row[rule].values()]
    lines = [
        "## Coverage of the interval",
        "",
        "How often `interval.score` holds the population score of the chosen cut, per cent, at nominal "
        f"{100 * found['level']:.0f} %; {found['runs']:,} draws per row (standard error {worst:.1f}); from "
        f"{100 * min(shares):.1f} to {100 * max(shares):.1f}, {100 * sum(shares) / len(shares):.1f} on average. Scores "
        "are two normals this far apart. `python benchmarks/cuts.py coverage`",
        "",
        "| positives | distance | special | " + " | ".join(heads) + " |",
        "|---|---|---|" + "---|" * len(heads),
    ]
    for row in found["rows"]:
        each = [row[rule][name] for rule in RULES for name in BETAS]
        shown = " | ".join(f"{100 * x:.1f}" for x in each)
        lines.append(f"| {row['positives']:,} of {row['rows']:,} | {row['distance']:g} | {row['special']} | {shown} |")
    return [*lines, ""]
