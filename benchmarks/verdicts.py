"""Do the verdicts of `fbeta compare` hold? Ten tables, several deals of the folds, against 200 fresh splits.

    python benchmarks/verdicts.py FOLDER --cache CACHE          # some two hours; after a stop it goes on
    python benchmarks/verdicts.py FOLDER --cache CACHE --render  # write the page from what is kept

FOLDER holds tables whose column y is 1 for the rare class. Of each, at most 1,500 rows are compared by linear models
and XGBoost with bce and tangent, in six comparisons that differ in their seed alone. What they say is held against the
score over 40 more deals of five folds of the same rows.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from decisions_tables import paths, source

from fbeta import compare
from fbeta.comparison.result import Comparison
from fbeta.comparison.verdict import BETTER, EQUIVALENT, NO_SIGNAL, UNDECIDED
from fbeta.data import load_table
from fbeta.tables import Table

RESULTS = Path(__file__).resolve().parent / "results"
TABLES = (
    *("abalone19", "campaign", "letter_z", "mammography", "nslkdd_train20"),
    *("optdigits_8", "page_blocks0", "satimage_4", "winequality_red_4", "yeast_me2"),
)
WORDS = (BETTER, EQUIVALENT, UNDECIDED, NO_SIGNAL)
ROWS, SEEDS, FRESH, FIRST_FRESH = 1500, 6, 200, 10_000
ASKED: dict[str, Any] = {"models": ["linear", "xgboost"], "losses": ["bce", "tangent"]}


def read(path: Path) -> Table:
    """At most so many rows of a table, at its own rate, but with 60 positives if it has them."""
    table, rng = load_table(path, "y"), np.random.default_rng(0)
    if len(table) <= ROWS:
        return table
    positive, negative = (rng.permutation(np.flatnonzero(table.y == k)) for k in (1, 0))
    kept = min(len(positive), max(60, round(ROWS * len(positive) / len(table))))
    return table.take(np.sort(np.concatenate([positive[:kept], negative[: ROWS - kept]])))


def means(found: Comparison) -> dict[str, float]:
    """The score of every method, and of the constant."""
    scores = {c.name: c.score.mean for c in found.candidates}
    assert found.constant is not None
    return scores | {"constant": found.constant.score.mean}


def measure(path: Path, metric: str, cache: Path) -> dict[str, Any]:
    """What comparisons of a table say, and what fresh splits do."""
    table, how = read(path), {"metric": metric, "folder": cache, **ASKED}
    said = [compare(table, seed=100 * k, **how) for k in range(SEEDS)]
    fresh = means(compare(table, seed=FIRST_FRESH, splits=FRESH, **how))
    verdicts = []
    for found in said:
        assert found.choice is not None
        verdict: dict[str, Any] = {"verdict": found.verdict, "winner": found.winner, "advised": found.advised}
        verdict |= {"difference": found.choice.difference.mean, "fresh": fresh[found.winner] - fresh[found.baseline]}
        verdicts.append(verdict)
    about = {"rows": len(table), "positives": int(table.y.sum()), "baseline": said[0].baseline, "scores": fresh}
    return about | {"detectable": float(np.median([x.detectable for x in said])), "verdicts": verdicts}


def each(found: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """All verdicts."""
    for one in found.values():
        yield from one["verdicts"]


def render(found: dict[str, Any]) -> str:
    """One row per table and metric."""
    counts = Counter(v["verdict"] for v in each(found))
    better = [v for v in each(found) if v["verdict"] == BETTER]
    kept = sum(v["fresh"] > 0 for v in better)
    equal = [abs(v["fresh"]) for v in each(found) if v["verdict"] == EQUIVALENT]
    lines = [
        "# Verdicts, and what fresh splits say",
        "",
        f"{len({key.split()[0] for key in found})} tables, at most {ROWS:,} rows each; linear models and XGBoost with "
        f"bce and tangent; {SEEDS} comparisons per line, each of one deal of five folds with another seed, against the "
        f"mean over {FRESH} fresh splits of the same rows. `python benchmarks/verdicts.py FOLDER --cache CACHE`",
        "",
        f"{sum(counts.values())} verdicts: {', '.join(f'{counts[word]} {word}' for word in WORDS)}. "
        + (f"Of {len(better)} 'better', {kept} are better over the fresh splits." if better else "None is 'better'.")
        + (f" Of {len(equal)} 'equivalent', the largest fresh difference is {max(equal):.3f}." if equal else ""),
        "",
        "| table | metric | rows | positives | baseline | could be shown | verdicts | winners, over fresh splits |",
        "|---|---|---:|---:|---|---:|---|---|",
    ]
    for key, one in found.items():
        name, metric = key.split()
        words = Counter(v["verdict"] for v in one["verdicts"])
        said = ", ".join(f"{n} {word}" for word, n in words.items())
        winners = {v["winner"]: v["fresh"] for v in one["verdicts"] if v["winner"] != one["baseline"]}
        fresh = ", ".join(f"{winner} {x:+.3f}" for winner, x in winners.items()) or "the baseline"
        about = f"{one['rows']:,} | {one['positives']} | {one['baseline']} | {one['detectable']:.3f}"
        lines.append(f"| {name} | {metric} | {about} | {said} | {fresh} |")
    return "\n".join([*lines, ""])


def main() -> None:
    """Measure what is not there yet, and write it down."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--cache", type=Path, required=True, help="finished parts are kept here")
    parser.add_argument("--render", action="store_true", help="write the page again from what is kept")
    asked = parser.parse_args()
    kept = RESULTS / "verdicts.json"
    found = json.loads(kept.read_text()) if kept.exists() else {}
    tables = [path for path in paths(asked.folder) if source(path) in TABLES or path.name.split(".")[0] in TABLES]
    for metric in () if asked.render else ("f1", "f2"):
        for path in tables:
            key = f"{path.name.split('.')[0]} {metric}"
            if key not in found:
                found[key] = measure(path, metric, asked.cache)
                kept.write_text(json.dumps(found, indent=1) + "\n")
                print(key, Counter(v["verdict"] for v in found[key]["verdicts"]), flush=True)
    (RESULTS / "verdicts.md").write_text(render(found))


if __name__ == "__main__":
    main()
