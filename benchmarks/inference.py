"""Does the test of `fbeta compare` keep its level, and what does it see? Simulated tables, models that are fitted anew.

    python benchmarks/inference.py                    # all cases; what is done is kept, so that it goes on after a stop
    python benchmarks/inference.py --runs 50 --only 0  # a smoke test of one case; writes no result

In every draw of a table two linear discriminants learn from columns of their own, with inner folds for the cut, on the
very folds of a comparison, so that the chance of training rows, of folds and of cuts is in it. What is tested is not
simulated: it is `fbeta.comparison.inference`.
"""

from __future__ import annotations

import argparse
import json
import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fbeta import as_metric, compare, tune
from fbeta.comparison.inference import ByBlocks, ByRows, BySplits, Inference, JudgedRows, blocks
from fbeta.comparison.statistics import LEVEL
from fbeta.tables import read_frame
from fbeta.tables.folds import folds

RESULTS = Path(__file__).resolve().parent / "results"
FOLDS = 5
MARGIN = 0.01
Rows = NDArray[np.float64]


@dataclass(frozen=True)
class Case:
    """A kind of table, and what is compared on it.

    Both models see four columns that tell the classes apart by `apart`, unless `own`: then each has four of its own;
    and so many `noise` columns of their own. The first has one more column, that tells them apart by `gain`.
    `copies` of a row are a group, alike but for noise.
    """

    name: str
    rows: int = 2000
    rate: float = 0.1
    spec: str = "f1"
    noise: int = 20
    own: bool = False
    gain: float = 0.0
    deals: int = 1
    copies: int = 1
    apart: float = 1.0

    @property
    def key(self) -> str:
        """What its result is kept under."""
        return f"{self.name}; {self.rows} rows; {100 * self.rate:g} %; {self.spec}; {self.deals} deals"


CASES = (
    Case("each with 20 noise columns", rows=1000),
    Case("each with 20 noise columns"),
    Case("each with 2 noise columns", noise=2),
    Case("half positives", rate=0.5, spec="mcc"),
    Case("one more column", gain=0.8),
    Case("2 % positives", rate=0.02, noise=5),
    Case("groups of 4 rows", copies=4, noise=5),
    Case("each with 2 noise columns", noise=2, deals=3),
    Case("one more column", gain=0.8, deals=3),
    Case("each with 4 good columns of its own", own=True, noise=5),
    Case("one more column", rows=500, gain=0.8),
    Case("costs 1 and 10", spec="cost:fp=1,fn=10"),
)


def draw(case: Case, rng: np.random.Generator) -> tuple[list[Rows], NDArray[np.int64], NDArray[np.int64]]:
    """The columns of either model, the targets, and the group of each row."""
    groups = case.rows // case.copies
    of = np.repeat(np.arange(groups), case.copies)
    y = rng.random(groups) < case.rate
    y[:10], y[-10:] = True, False

    def columns(count: int, apart: float) -> Rows:
        found: Rows = (rng.normal(size=(groups, count)) + apart * y[:, None])[of]
        return found + 0.3 * rng.normal(size=found.shape) if case.copies > 1 else found

    shared = columns(4, case.apart)
    both = [columns(4, case.apart) if case.own and k else shared for k in range(2)]
    X = [np.concatenate([x, columns(case.noise, 0.0)], axis=1) for x in both]
    if case.gain:
        X[0] = np.concatenate([X[0], columns(1, case.gain)], axis=1)
    return X, y[of].astype(np.int64), of


def learn(X: Rows, y: NDArray[np.int64]) -> Rows:
    """The direction of a linear discriminant."""
    one, other = X[y == 1], X[y == 0]
    inside = np.concatenate([one - one.mean(0), other - other.mean(0)])
    spread = inside.T @ inside / len(y) + 0.01 * np.eye(X.shape[1])
    found: Rows = np.linalg.solve(spread, one.mean(0) - other.mean(0))
    return found


def decide(
    X: Rows, y: NDArray[np.int64], group: NDArray[np.int64] | None, fold: NDArray[np.int64], goal: Any, seed: int
) -> list[NDArray[np.bool_]]:
    """What a model calls positive in each fold: the cut is tuned on scores out of inner folds."""
    called = []
    for k in range(FOLDS):
        train, test = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
        inner = folds(y[train], FOLDS, None if group is None else group[train], seed=seed + 1000 + k)
        held = np.empty(len(train))
        for f in range(FOLDS):
            held[inner == f] = X[train][inner == f] @ learn(X[train][inner != f], y[train][inner != f])
        cut = float(tune(held, y[train], goal, kind="score").value)
        called.append(X[test] @ learn(X[train], y[train]) >= cut)
    return called


def try_once(case: Case, number: int) -> dict[str, tuple[float, ...]]:
    """One table: difference, error, p, p of equivalence, and what could be shown, of either test."""
    X, y, group = draw(case, np.random.default_rng(number))
    goal = as_metric(case.spec)
    together = group if case.copies > 1 else None
    tested, calls = [], ([], [])  # type: ignore[var-annotated]
    for deal in range(case.deals):
        fold = folds(y, FOLDS, together, seed=number * case.deals + deal)
        tested += [np.flatnonzero(fold == k) for k in range(FOLDS)]
        for mine, x in zip(calls, X, strict=True):
            mine += decide(x, y, together, fold, goal, number + deal)
    rows = JudgedRows(y, group, tested, [k // FOLDS for k in range(len(tested))])
    ways: dict[str, Inference] = {
        "rows": ByRows(goal, rows, MARGIN, held=1 / FOLDS),
        "splits": BySplits(goal, rows, 1 / (FOLDS - 1), MARGIN),
    }
    found = {name: way.difference(*calls) for name, way in ways.items()}
    return {name: (d.mean, d.error, d.p, d.equal, d.detectable, d.low, d.high) for name, d in found.items()}


def measure(case: Case, runs: int, say: Callable[[str], None]) -> dict[str, Any]:
    """How often either test finds a difference, how sure it thinks it is, and how sure it may be."""
    tries = [try_once(case, number) for number in range(runs)]
    truth = 0.0 if not case.gain else float(np.mean([t["rows"][0] for t in tries]))
    found: dict[str, Any] = {"name": case.name, "rows": case.rows, "rate": case.rate, "metric": case.spec}
    found |= {"deals": case.deals, "difference": truth, "runs": runs}
    found["tests"] = {}
    for way in ("rows", "splits"):
        mean, error, p, equal, shown, low, high = np.array([t[way] for t in tries]).T
        found["tests"][way] = {
            "found": float(np.mean(p < 1 - LEVEL)),
            "equivalent": float(np.mean(equal < 1 - LEVEL)),
            "covered": float(np.mean((low <= truth) & (truth <= high))),
            "said": float(np.sqrt(np.mean(error**2))),
            "spread": float(np.std(mean, ddof=1)),
            "detectable": float(np.median(shown)),
        }
    say(json.dumps(found))
    return found


def by_time(runs: int, length: int = 20, rows: int = 3000) -> dict[str, Any]:
    """Errors that come in stretches of rows: how often rows alone, and blocks of them, find what is not there."""
    goal, rates = as_metric("f1"), {"rows": 0, "blocks": 0}
    for number in range(runs):
        rng = np.random.default_rng(number)
        y = (rng.random(rows) < 0.1).astype(np.int64)
        calls = []
        for _ in range(2):
            weather = np.repeat(rng.normal(size=rows // length), length)
            calls.append([rng.normal(size=rows) + 0.7 * weather + 1.8 * y > 1.3])
        time, tested = np.arange(rows, dtype=np.float64), [np.arange(rows)]
        alone = JudgedRows(y, np.arange(rows), tested, [0])
        block = JudgedRows(y, blocks(time, np.arange(rows), tested), tested, [0])
        rates["rows"] += ByRows(goal, alone).difference(*calls).p < 1 - LEVEL
        rates["blocks"] += ByBlocks(goal, block).difference(*calls).p < 1 - LEVEL
    return {"rows": rows, "length": length, "runs": runs, "found": {k: float(v) / runs for k, v in rates.items()}}


def noise(tables: int, positives: int, rows: int, apart: float, spec: str) -> dict[str, Any]:
    """What is said of tables of four columns that know nothing, or hardly anything, of the target."""
    words: Counter[str] = Counter()
    without_hits = 0
    for number in range(tables):
        rng = np.random.default_rng(number)
        y = rng.permutation(np.arange(rows) < positives)
        X = rng.normal(size=(rows, 4)) + apart * y[:, None]
        frame = pl.DataFrame({f"x{i}": column for i, column in enumerate(X.T)} | {"y": y.astype(int)})
        table = read_frame(frame, "y", "1")
        found = compare(table, metric=spec, models=["linear"], losses=["bce", "tangent"], folds=3)
        words[found.verdict] += 1
        without_hits += bool(found.advised) and not sum(o.tp for o in found.candidate(found.advised).outcomes)
    about = {"rows": rows, "positives": positives, "apart": apart, "metric": spec, "tables": tables}
    return about | {"verdicts": dict(words), "without_hits": without_hits}


def render(found: dict[str, Any]) -> str:
    """Two tables: nothing to find, and something to find; and rows that follow one another in time."""
    cases = [found["cases"][case.key] for case in CASES]
    runs = max(c["runs"] for c in cases)
    heads = "| table | rows | positives | metric | deals | {} |"
    null, true = ([c for c in cases if bool(c["difference"]) == there] for there in (False, True))
    lines = [
        "# How sure a comparison is, simulated",
        "",
        "Two linear discriminants on columns of their own, fitted anew in every fold of each draw, cut by inner folds; "
        f"{runs:,} tables per line (standard error of a share of 5 %: {100 * math.sqrt(0.05 * 0.95 / runs):.1f} %). "
        "'rows': pooled test rows and the influence of each, which is what `fbeta compare` does; 'splits': the "
        "corrected resampled t-test over splits (`--test splits`). Nominal level 5 %. `python benchmarks/inference.py`",
        "",
        "## Nothing to find",
        "",
        "How often a difference was found, per cent, and the error that was said over the spread that there was.",
        "",
        heads.format("found, rows | found, splits | said ÷ spread, rows"),
        "|---|---:|---:|---|---:|---:|---:|---:|",
    ]
    for c in null:
        rows = c["tests"]["rows"]
        lines.append(f"{_about(c)} {_found(c)} | {rows['said'] / rows['spread']:.2f} |")
    average = 100 * float(np.mean([c["tests"]["rows"]["found"] for c in null]))
    lines += ["", f"On average {average:.1f} % by rows.", "", "## Something to find", ""]
    lines += [
        heads.format("difference | found, rows | found, splits | interval holds it | could be shown, rows | splits")
    ]
    lines += ["|---|---:|---:|---|---:|---:|---:|---:|---:|---:|---:|"]
    for c in true:
        rows, splits = c["tests"]["rows"], c["tests"]["splits"]
        shown = f"{rows['detectable']:.3f} | {splits['detectable']:.3f}"
        lines.append(f"{_about(c)} {c['difference']:+.3f} | {_found(c)} | {100 * rows['covered']:.1f} | {shown} |")
    t = found["time"]
    by_rows, by_blocks = (100 * t["found"][way] for way in ("rows", "blocks"))
    lines += [
        "",
        "## Neighbours in time",
        "",
        f"Two sets of decisions that are equally good, with errors that come in stretches of {t['length']} of "
        f"{t['rows']:,} rows: a difference was found in {by_rows:.1f} % of {t['runs']:,} draws by the influence of "
        f"rows, and in {by_blocks:.1f} % by the bootstrap of blocks that tables with times get.",
        "",
    ]
    lines += [
        "## Nothing to learn",
        "",
        "What `fbeta compare` says of tables of four columns that know nothing of the target, or hardly anything (the "
        "classes are so far apart in each); linear models with bce and tangent.",
        "",
        "| rows | positives | apart | metric | tables | verdicts | advised without a hit |",
        "|---:|---:|---:|---|---:|---|---:|",
    ]
    for x in found["noise"]:
        said = ", ".join(f"{count} {word}" for word, count in sorted(x["verdicts"].items()))
        about = f"| {x['rows']} | {x['positives']} | {x['apart']:g} | {x['metric']} | {x['tables']} |"
        lines.append(f"{about} {said} | {x['without_hits']} |")
    return "\n".join([*lines, ""])


def _about(c: dict[str, Any]) -> str:
    return f"| {c['name']} | {c['rows']:,} | {100 * c['rate']:g} % | {c['metric']} | {c['deals']} |"


def _found(c: dict[str, Any]) -> str:
    return " | ".join(f"{100 * c['tests'][way]['found']:.1f}" for way in ("rows", "splits"))


def main() -> None:
    """Measure what is not there yet, and write it down."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--render", action="store_true", help="write the page again from what is kept")
    parser.add_argument("--only", type=int, nargs="*", help="numbers of cases; writes no result")
    asked = parser.parse_args()
    if asked.only is not None:
        for i in asked.only:
            measure(CASES[i], asked.runs, print)
        return
    path = RESULTS / "inference.json"
    found = json.loads(path.read_text()) if path.exists() else {"cases": {}}
    if asked.render:
        (RESULTS / "inference.md").write_text(render(found))
        return
    for case in CASES:
        if found["cases"].get(case.key, {}).get("runs") != asked.runs:
            found["cases"][case.key] = measure(case, asked.runs, print)
            path.write_text(json.dumps(found, indent=1) + "\n")
    found["time"] = by_time(asked.runs)
    cases = ((60, 300, 0.0, "f1"), (20, 400, 0.4, "f1"))
    found["noise"] = [noise(100, *case) for case in cases]
    path.write_text(json.dumps(found, indent=1) + "\n")
    (RESULTS / "inference.md").write_text(render(found))


if __name__ == "__main__":
    main()
