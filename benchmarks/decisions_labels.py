"""Labels that learn from each other: rules for a cut by macro F on Mulan's sets, see decisions.py.

How "pooled" works was chosen on splits 100 to 104; those from 0 on judge it.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
from decisions_rows import FOLDS, POSITIVES, probabilities
from decisions_tables import Floats, over_sources
from doc_block import hundredths, table
from joblib import Parallel, delayed
from scipy.stats import rankdata

from fbeta import Decision, FBeta, Metric, tune
from fbeta.decisions import Steps
from fbeta.decisions.steps import count_columns

METRICS: dict[str, Metric] = {"F1": FBeta(1), "F2": FBeta(2)}
#: How many rows are learned from at most.
SIZES: dict[str, int | None] = {"two thirds of the rows": None, "400 rows": 400}
OURS, HALF, COMMON, DECISION = "pooled", "one half", "one common cut", "pooled, calibrated"
#: What is ranked; the decision, which calibrates first, is shown beside it.
RANKED = (HALF, "exact", "plugin", "shrunk", COMMON, OURS)
#: A label with at most so many positives among the rows to learn from is rare.
RARE = 20


def common_cut(p: Floats, y: Any, metric: Metric) -> float:
    """The one cut with the best mean score of all labels; for F it is the score of some positive."""
    cuts = np.unique(p[y == 1])
    total = np.zeros(cuts.size)
    for k in range(p.shape[1]):
        steps = Steps.of(p[:, k], y[:, k])
        total += steps.values(metric)[steps.scores.size - np.searchsorted(steps.scores[::-1], cuts)]
    return float(cuts[total.argmax()])


def ways(data: dict[str, Any], metric: Metric) -> dict[str, Floats]:
    """The score of each label on later rows by every way; NaN for labels that have no positive there."""
    inner, learnt, later = data["O"], data["ytr"], data["T"]
    called = {HALF: later >= 0.5, COMMON: later >= common_cut(inner, learnt, metric)}
    for rule in ("exact", "plugin", "shrunk", OURS):
        called[rule] = tune(inner, learnt, metric, kind="probability", rule=rule).decide(later)
    called[DECISION] = Decision.fit(inner, learnt, metric, kind="probability", rule=OURS).decide(later)
    there = data["yte"].any(0)
    return {
        way: np.where(there, metric(count_columns(called[way], data["yte"])), np.nan) for way in (*RANKED, DECISION)
    }


def judge(path: Path, repeat: int, most: int | None, cache: Path | None) -> dict[str, Any]:
    """Mean scores of all labels and of the rare ones, by metric and way."""
    data = probabilities(path, repeat, cache, most)
    rare = (data["ytr"].sum(0) <= RARE) & data["yte"].any(0)
    found: dict[str, Any] = {"labels": len(rare), "rare": int(rare.sum()), "rows": len(data["ytr"])}
    for name, metric in METRICS.items():
        scores = ways(data, metric)
        found[name] = {
            "all": {way: float(np.nanmean(each)) for way, each in scores.items()},
            "rare": {way: float(np.mean(each[rare])) for way, each in scores.items()} if rare.any() else None,
        }
    return found


def measure(folder: Path, rows: int, repeats: int, cache: Path | None, jobs: int) -> dict[str, Any]:
    """Every rule on every set, with many rows and with few: macro scores of later rows, mean over repeats."""
    del rows
    found: dict[str, Any] = {"repeats": repeats, "sizes": {}}
    paths = sorted(folder.glob("*.npz"))
    for size, most in SIZES.items():
        tasks = [(path, repeat) for path in paths for repeat in range(repeats)]
        each = Parallel(jobs)(delayed(judge)(path, repeat, most, cache) for path, repeat in tasks)
        by_set = defaultdict(list)
        for (path, _), judged in zip(tasks, each, strict=True):
            by_set[path.stem].append(judged)
        about = {
            s: {x: float(np.mean([j[x] for j in by])) for x in ("labels", "rare", "rows")} for s, by in by_set.items()
        }
        found["sizes"][size] = {"sets": about} | {name: _over_sets(by_set, name) for name in METRICS}
        print(size, flush=True)
    return found


def _over_sets(by_set: dict[str, list[Any]], name: str) -> dict[str, Any]:
    """Scores of each set, mean ranks, and by how much ours is better: all labels, and rare ones where there are any."""
    found: dict[str, Any] = {}
    for which in ("all", "rare"):
        kept = {s: [j[name][which] for j in by if j[name][which] is not None] for s, by in by_set.items()}
        scores = {s: {w: float(np.mean([j[w] for j in by])) for w in by[0]} for s, by in kept.items() if by}
        ranks = np.mean([rankdata([-by[way] for way in RANKED]) for by in scores.values()], axis=0)
        found[which] = {
            "scores": scores,
            "rank": dict(zip(RANKED, ranks.tolist(), strict=True)),
            "above": {
                w: over_sources(by[OURS] - by[w] for by in scores.values()) for w in (*RANKED, DECISION) if w != OURS
            },
        }
    return found


def render(found: dict[str, Any]) -> list[str]:
    """For each size: F1 of every set, then ranks and differences for every metric."""
    every = (*RANKED, DECISION)
    lines = [
        "## Labels that learn from each other",
        "",
        f"Mulan's sets, logistic regression per label with at least {POSITIVES} positives, {found['repeats']} random "
        f"splits (67 % to learn from, or 400 rows of these; probabilities out of {FOLDS} folds choose the cuts; 33 % "
        "later judge them). The mean over labels that have a positive among the later rows. `one common cut` has the "
        'best mean on the out-of-fold rows; `pooled, calibrated` is `Decision.fit(…, rule="pooled")`, the others are '
        "`tune`. The rule was designed on other random splits of the same sets (100 to 104). A label is rare with at "
        f"most {RARE} positives among the rows to learn from. Mean ranks are over sets, 1 is best, of the six ways "
        "that have one. `python benchmarks/decisions.py labels FOLDER`",
        "",
    ]
    for size, part in found["sizes"].items():
        for which, labels in (("all", "all labels"), ("rare", "rare labels")):
            lines += [f"### {size[0].upper()}{size[1:]}, {labels}", ""]
            lines += ["| F1 of set (rows, labels) | " + " | ".join(every) + " |", "|---|" + "---|" * len(every)]
            for stem, by in part["F1"][which]["scores"].items():
                about = part["sets"][stem]
                count = about["labels" if which == "all" else "rare"]
                shown = " | ".join(f"{by[way]:.3f}" for way in every)
                lines.append(f"| {stem} ({about['rows']:,.0f}, {count:.0f}) | {shown} |")
            for name in METRICS:
                ranks = part[name][which]["rank"]
                lines.append(
                    f"| mean rank, {name} | "
                    + " | ".join(f"{ranks[w]:.2f}" if w in ranks else "" for w in every)
                    + " |"
                )
            lines += [
                "",
                "| `pooled` above, in hundredths | " + " | ".join(METRICS) + " |",
                "|---|" + "---|" * len(METRICS),
            ]
            for way in every:
                if way != OURS:
                    cells = " | ".join(hundredths(part[name][which]["above"][way]) for name in METRICS)
                    lines.append(f"| {way} | {cells} |")
            lines.append("")
    return lines


def summary(found: dict[str, Any]) -> str:
    """What docs/decisions.md says."""
    whole, few = (found["sizes"][size]["F1"] for size in SIZES)
    parts = {"rare labels, 400 rows": few["rare"], "all labels, 400 rows": few["all"], "all labels": whole["all"]}
    ways = [way for way in RANKED if way != OURS]
    heading = ["above", *(f"{name} ({len(part['scores'])} sets)" for name, part in parts.items())]
    ranks = {way: [f"{part['all']['rank'][way]:.2f}" for part in (few, whole)] for way in (OURS, "plugin")}
    return (
        f"**Measured** on later rows of sets of labels (Mulan), logistic regression per label; hundredths of macro "
        f"F₁ by which `pooled` is better. Rare labels have at most {RARE} positives:\n\n"
        + table(heading, ([way, *(hundredths(part["above"][way]) for part in parts.values())] for way in ways))
        + f"\n\nIts mean rank among these six is {ranks[OURS][0]} with 400 rows and {ranks[OURS][1]} with all; that of "
        f"`plugin` {ranks['plugin'][0]} and {ranks['plugin'][1]}. Among all rows only "
        f"{len(whole['rare']['scores'])} sets have labels that are rare, too few to say much "
        "([decisions-labels.md](../benchmarks/results/decisions-labels.md))."
    )
