"""What a tuned cut saves where the price of a miss and of a false alarm is known: see decisions.py."""

from __future__ import annotations

import itertools
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
from decisions_tables import LEARNERS, over_sources, paths, scored, source
from doc_block import hundredths, table
from joblib import Parallel, delayed

from fbeta import Confusion, Cost, tune

#: What a miss costs, in false alarms.
PRICES = (5, 20)
HALF, THEORY = "one half", "1 / (1 + price)"
RULES = ("exact", "plugin", "shrunk")


def one(path: Path, learner: str, repeat: int, rows: int, cache: Path | None) -> dict[tuple[int, str], float]:
    """What later rows cost, for every price of a miss and every cut."""
    scores, made = scored(path, learner, repeat, rows, cache), {}
    if scores is None:
        return {}
    for price in PRICES:
        metric = Cost(fp=1, fn=price)
        cuts = {HALF: 0.5, THEORY: 1 / (1 + price)}
        for rule in RULES:
            cuts[rule] = float(tune(scores.inner, scores.truth, metric, kind="probability", rule=rule).value)
        for way, cut in cuts.items():
            made[price, way] = -float(metric(Confusion.from_scores(scores.later, scores.later_truth, cut)))
    return made


def measure(folder: Path, rows: int, repeats: int, cache: Path | None, jobs: int) -> dict[str, Any]:
    """The share of a price that the default rule saves, by source: the prices of its tables and learners are added."""
    prices: dict[str, Any] = defaultdict(lambda: defaultdict(float))
    asked = list(itertools.product(paths(folder), LEARNERS, range(repeats)))
    for (path, *_), made in zip(
        asked, Parallel(jobs, verbose=5)(delayed(one)(*each, rows, cache) for each in asked), strict=True
    ):
        for cell, price in made.items():
            prices[source(path)][cell] += price
    cells = {
        str(price): {
            way: over_sources(_saved(each[price, "shrunk"], each[price, way]) for each in prices.values())
            | {"won": sum(each[price, "shrunk"] < each[price, way] for each in prices.values())}
            for way in (HALF, THEORY, "exact", "plugin")
        }
        for price in PRICES
    }
    return {"most rows": rows, "repeats": repeats, "sources": len(prices), "saved": cells}


def _saved(ours: float, theirs: float) -> float:
    """The share of their price that ours does not cost; nothing is saved where nothing is paid."""
    return float(np.clip((theirs - ours) / max(theirs, ours), -1, 1)) if max(theirs, ours) > 0 else 0.0


def render(found: dict[str, Any]) -> list[str]:
    """One row per price of a miss and cut to compare with."""
    lines = [
        "## A price for misses and false alarms",
        "",
        f"{found['sources']} sources, {found['most rows']:,} rows of a table at most, logistic regression and boosted "
        f"trees, random splits: {found['repeats']}; a false alarm costs 1. The cut of `tune` on out-of-fold scores by "
        "the rule `shrunk` against other cuts: what it saves on later rows, in hundredths of the larger of the two "
        "prices, mean over sources with a 95 % interval by t. `python benchmarks/decisions.py costs FOLDER`",
        "",
        "| a miss costs | against | saved | sources where it is cheaper |",
        "|---|---|---|---|",
    ]
    for price, cell in found["saved"].items():
        lines += [f"| {price} | {way} | {hundredths(x)} | {x['won']} |" for way, x in cell.items()]
    return [*lines, ""]


def summary(found: dict[str, Any]) -> str:
    """What docs/decisions.md says."""
    named = {HALF: "½", THEORY: "1/(1 + price), the probabilities as they are", "exact": "the exact cut"}
    rows = (
        [name, *(f"{hundredths(x[way])}, {x[way]['won']}" for x in found["saved"].values())]
        for way, name in named.items()
    )
    return (
        f"**Measured** on later rows of {found['sources']} sources, logistic regression and boosted trees: what the "
        "tuned cut (`shrunk`) saves, in percent of the larger of the two costs, and on how many sources it is "
        "cheaper:\n\n"
        + table(["against", *(f"a miss costs {price}" for price in found["saved"])], rows)
        + "\n\nAll numbers: [decisions-costs.md](../benchmarks/results/decisions-costs.md)."
    )
