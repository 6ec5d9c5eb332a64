"""Cuts: how long the exact one takes, which rule is best on rows that had no say in it, how far intervals hold.

    python benchmarks/cuts.py speed                     # 10 million scores, beside np.argsort on them
    python benchmarks/cuts.py rules FOLDER              # every table in FOLDER: .csv, .csv.gz, .parquet, last column y
    python benchmarks/cuts.py rules FOLDER --subsets    # and draws of 25 to 200 positives from the larger tables
    python benchmarks/cuts.py coverage                  # how often intervals hold the population score (3 minutes)
    python benchmarks/cuts.py page                      # write the page and what docs/ quotes again from the numbers

Speed: all cases take turns within a round and a ratio is taken inside it, so that a busy machine slows both.
Rules: five outer folds; the cut comes from inner out-of-fold scores of the training rows, the model is fitted again
on all of them, F is that of all test rows together. One value per source: tables made from the same rows count once.
Numbers are kept in benchmarks/results/cuts.json, the page beside it, unless `--dry`.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import doc_block
import numpy as np
from numpy.typing import NDArray

from fbeta import FBeta, tune
from fbeta.decisions import Sketch

RESULTS = Path(__file__).parent / "results"
#: Cuts that scikit-learn's fbeta_score is timed at; a thousand of them are extrapolated.
TIMED = 2


def cases(n: int, dtype: type, rate: float) -> dict[str, Callable[[], object]]:
    """What is timed, on the same scores and labels."""
    from sklearn.metrics import fbeta_score, precision_recall_curve

    rng = np.random.default_rng(0)
    scores: NDArray[Any] = rng.random(n).astype(dtype)
    target = (rng.random(n) < rate).astype(np.int64)
    weight = rng.random(n)
    return {
        "np.argsort": lambda: np.argsort(scores),
        "tune": lambda: tune(scores, target, FBeta(1)),
        "tune, weighted": lambda: tune(scores, target, FBeta(1), weight),
        "tune, shrunk": lambda: tune(scores, target, FBeta(1), rule="shrunk"),
        "Sketch.add and tune": lambda: Sketch().add(scores, target).tune(FBeta(1)),
        "sklearn precision_recall_curve": lambda: precision_recall_curve(target, scores),
        "sklearn fbeta_score at 1,000 cuts": lambda: [
            fbeta_score(target, scores >= cut, beta=1) for cut in np.linspace(0.2, 0.8, TIMED)
        ],
    }


def speed(n: int, repeats: int) -> dict[str, Any]:
    """Median seconds and median ratio to np.argsort of every case."""
    found = []
    for dtype, rate in ((np.float64, 0.01), (np.float64, 0.5), (np.float32, 0.1)):
        timed = cases(n, dtype, rate)
        taken: dict[str, list[float]] = {name: [] for name in timed}
        for _ in range(repeats):
            for name, run in timed.items():
                start = time.perf_counter()
                run()
                seconds = time.perf_counter() - start
                taken[name].append(seconds * (1000 / TIMED if "1,000 cuts" in name else 1))
        for name, each in taken.items():
            ratios = [a / b for a, b in zip(each, taken["np.argsort"], strict=True)]
            row = {"scores": np.dtype(dtype).name, "positives": rate, "case": name}
            found.append({**row, "seconds": statistics.median(each), "ratio": statistics.median(ratios)})
            print(found[-1], flush=True)
    return {"n": n, "repeats": repeats, "machine": machine(), "load": round(os.getloadavg()[0], 1), "rows": found}


def machine() -> str:
    """The processor, and the versions that matter."""
    import sklearn

    model = platform.processor() or platform.machine()
    if Path("/proc/cpuinfo").exists():
        lines = [line.partition(":") for line in Path("/proc/cpuinfo").read_text().splitlines()]
        model = {a.strip(): b.strip() for a, _, b in lines}.get("model name", model)
    versions = f"Python {platform.python_version()}, NumPy {np.__version__}, scikit-learn {sklearn.__version__}"
    return f"{model}, {os.cpu_count()} cores; {versions}"


def render(result: dict[str, Any]) -> str:
    """All numbers as one page."""
    lines = ["# Cuts, measured", ""]
    if "speed" in result:
        lines += render_speed(result["speed"])
    if "rules" in result:
        lines += render_rules(result["rules"])
    if "coverage" in result:
        import cuts_coverage

        lines += cuts_coverage.render(result["coverage"])
    return "\n".join(lines)


def render_speed(found: dict[str, Any]) -> list[str]:
    """One row per case, one column per kind of scores."""
    kinds = list(dict.fromkeys((r["scores"], r["positives"]) for r in found["rows"]))
    lines = [
        "## Speed",
        "",
        f"{found['n']:,} scores; {found['machine']}; load {found['load']} after; median of {found['repeats']} rounds. "
        "× is the ratio to `np.argsort` on the same scores within a round. `python benchmarks/cuts.py speed`",
        "",
        "| case | " + " | ".join(f"{s}, {p:.0%} positive" for s, p in kinds) + " |",
        "|---|" + "---|" * len(kinds),
    ]
    for case in dict.fromkeys(r["case"] for r in found["rows"]):
        rows = [r for r in found["rows"] if r["case"] == case]
        lines.append(f"| {case} | " + " | ".join(f"{r['seconds']:.2f} s, {r['ratio']:.2f} ×" for r in rows) + " |")
    return [*lines, ""]


def render_rules(found: dict[str, Any]) -> list[str]:
    """Per group: differences to the exact cut, and the shrunk cut against the others with the spread."""
    lines = [
        "## Rules, out of sample",
        "",
        f"At most {found['most rows']:,} rows a table, equal rows once; {found['repeats']} repeats of five-fold "
        "cross-validation for sets with under 200 positives, a third of that for others. One value per source; 'sd' is "
        "the spread over sources, the 95 % interval Student's t over them. "
        "`python benchmarks/cuts.py rules FOLDER --subsets`",
        "",
    ]
    titles = {"few": "Sets with under 200 positives", "many": "Sets with 200 positives or more"}
    for name, group in found["groups"].items():
        title = titles.get(name) or f"Larger tables with only {name.split()[0]} positives drawn"
        lines += [
            f"### {title} ({group['sets']} sets, {group['sources']} sources)",
            "",
            "Hundredths of F above the exact cut:",
            "",
            "| rule | " + " | ".join(group["minus exact"]) + " | all |",
            "|---|" + "---|" * (len(group["minus exact"]) + 1),
        ]
        for rule, mean in group["mean"].items():
            each = [cell[rule] for cell in group["minus exact"].values()]
            shown = " | ".join(f"{100 * x:+.2f}" for x in (*each, mean - group["mean"]["exact"]))
            lines.append(f"| {rule.replace('1e+09', '∞')} | {shown} |")
        lines += ["", "| shrunk minus | mean | sd | 95 % | wins–losses |", "|---|---|---|---|---|"]
        for rule, x in group["shrunk minus"].items():
            low, high = x["interval"]
            lines.append(
                f"| {rule} | {100 * x['mean']:+.2f} | {100 * x['sd']:.2f} | {100 * low:+.2f} to {100 * high:+.2f} "
                f"| {x['wins']}–{x['losses']} |"
            )
        lines.append("")
    lines += ["### Every set: F of exact / plugin / shrunk / constant", ""]
    sets = {name: row for name, row in found["sets"].items() if "@" not in name}
    cells = [key for key in next(iter(sets.values())) if ", F" in key]
    lines += ["| set | positives | " + " | ".join(cells) + " |", "|---|---|" + "---|" * len(cells)]
    for name, row in sets.items():
        scored = [" / ".join(f"{row[c][r]:.3f}" for r in ("exact", "plugin", "shrunk", "constant")) for c in cells]
        lines.append(f"| {name} | {row['positives']} of {row['rows']:,} | " + " | ".join(scored) + " |")
    return [*lines, ""]


def half(result: dict[str, Any]) -> str:
    """What docs/decisions.md says of cuts against one half."""
    groups = {"under 200": result["rules"]["groups"]["few"], "200 or more": result["rules"]["groups"]["many"]}
    gains = {name: group["shrunk minus"]["constant"] for name, group in groups.items()}
    rows = (
        [name, doc_block.hundredths(x), groups[name]["sources"], x["wins"], x["losses"]] for name, x in gains.items()
    )
    return (
        f"**Measured** on later rows of {sum(group['sets'] for group in groups.values())} imbalanced tables, logistic "
        "regression and boosted trees, F½, F₁ and F₂; hundredths of F by which a tuned cut (`shrunk`) is above ½:\n\n"
        + doc_block.table(["positives", "gain", "sources", "better on", "worse on"], rows)
        + "\n\nAll tables: [cuts.md](../benchmarks/results/cuts.md)."
    )


def few(result: dict[str, Any]) -> str:
    """What docs/decisions.md says of rules for few positives."""
    groups = result["rules"]["groups"]
    sizes = {f"{n} drawn": f"{n}, drawn from larger sources" for n in (25, 50, 100, 200)}
    sizes |= {"few": "under 200, all there are", "many": "200 or more"}
    rows = (
        [name, *(doc_block.hundredths(groups[key]["shrunk minus"][rule]) for rule in ("exact", "plugin")),
         groups[key]["sources"]]
        for key, name in sizes.items()
    )  # fmt: skip
    return (
        "**Measured** on the same tables; hundredths of F by which `shrunk` is above the others:\n\n"
        + doc_block.table(["positives", "above `exact`", "above `plugin`", "sources"], rows)
        + "\n\nIts one number was chosen on these tables, and is not critical "
        "([cuts.md](../benchmarks/results/cuts.md))."
    )


def summary(result: dict[str, Any]) -> str:
    """What docs/cuts.md says."""
    speed, coverage = result["speed"], result["coverage"]
    rows = [r for r in speed["rows"] if r["case"] in ("tune", "sklearn precision_recall_curve")]
    tune_ratio, peer_ratio = (
        [r["ratio"] for r in rows if r["case"] == case] for case in ("tune", "sklearn precision_recall_curve")
    )
    shares = [x for row in coverage["rows"] for rule in ("exact", "shrunk") for x in row[rule].values()]
    return (
        f"The exact cut of {speed['n'] // 10**6} million scores takes {min(tune_ratio):.2f} to {max(tune_ratio):.2f} "
        f"times as long as `np.argsort` on them; scikit-learn's `precision_recall_curve` {min(peer_ratio):.2f} to "
        f"{max(peer_ratio):.2f} times. The interval holds the score that the cut has in the population in "
        f"{100 * min(shares):.1f} to {100 * max(shares):.1f} % of {coverage['runs']} draws at nominal 95 % (10 to "
        "1,000 positives; ties, weights and another share of positives included; `benchmarks/cuts.py coverage`). All "
        "numbers: [benchmarks/results/cuts.md](../benchmarks/results/cuts.md)."
    )


def main() -> None:
    """Measure, and write numbers and page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--dry", action="store_true", help="write nothing")
    parts = parser.add_subparsers(dest="part", required=True)
    timing = parts.add_parser("speed")
    timing.add_argument("--rows", type=int, default=10_000_000)
    timing.add_argument("--repeats", type=int, default=5)
    rules = parts.add_parser("rules")
    rules.add_argument("folder", type=Path)
    rules.add_argument("--rows", type=int, default=8000, help="at most so many rows of a table")
    rules.add_argument("--repeats", type=int, default=3)
    rules.add_argument("--subsets", action="store_true", help="also draw 25 to 200 positives (slow)")
    rules.add_argument("--cache", type=Path, help="keep the scores of all models here")
    covering = parts.add_parser("coverage")
    covering.add_argument("--runs", type=int, default=500)
    parts.add_parser("page")
    given = parser.parse_args()
    path = RESULTS / "cuts.json"
    found: dict[str, Any] = {}
    if given.part == "speed":
        found["speed"] = speed(given.rows, given.repeats)
    elif given.part == "coverage":
        import cuts_coverage

        found["coverage"] = cuts_coverage.measure(given.runs, lambda line: print(line, flush=True))
    elif given.part == "rules":
        import cuts_rules

        found["rules"] = cuts_rules.measure(
            given.folder, given.rows, given.repeats, given.subsets, given.cache, lambda line: print(line, flush=True)
        )
    # Read only now: other parts may have been measured meanwhile.
    result: dict[str, Any] = {**(json.loads(path.read_text()) if path.exists() else {}), **found}
    text = render(result)
    print(text)
    if not given.dry:
        RESULTS.mkdir(exist_ok=True)
        path.write_text(json.dumps(result, indent=1) + "\n")
        path.with_suffix(".md").write_text(text)
        if {"speed", "rules", "coverage"} <= set(result):
            doc_block.write("cuts.md", "cuts", summary(result))
            doc_block.write("decisions.md", "half", half(result))
            doc_block.write("decisions.md", "few", few(result))


if __name__ == "__main__":
    main()
