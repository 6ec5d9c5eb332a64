"""Two choices of this library on tables that had no part in them: the rule `shrunk`, and a bound on a booster's step.

    fbeta data fetch keel
    python benchmarks/held_out.py          # some ten minutes; writes results/held_out.{json,md}
    python benchmarks/held_out.py --dry
    python benchmarks/held_out.py --page   # write the page and what docs/ quotes again from the numbers

`shrunk` (half = 200) was chosen on the tables of cuts.py, `max_delta_step=3` on seven tables, four of them those of
boosting.py. Here are KEEL's tables of other sources, fixed by this list before the first run: all whose name does not
begin like a source seen before, with 15 positives or more. One value for each source, and Student's t over them.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import cuts_rules
import doc_block
import numpy as np
from cuts_rules import BETAS, Table, compare, judge
from rich.progress import track

from fbeta.data import load_table
from fbeta.datasets import keel
from fbeta.tables import Encoder

RESULTS = Path(__file__).parent / "results"
#: How names of tables begin whose sources the two choices have seen.
SEEN = (
    *("abalone", "car", "ecoli", "flare", "kddcup", "kr-vs-k", "letter", "page-blocks", "shuttle", "vowel"),
    *("winequality", "yeast"),
)
FEWEST = 15
RULES = ("exact", "plugin", "constant", "shrunk")
STEPS = ("default", "step 3")


def source_of(name: str) -> str:
    """What a table was made from.

    >>> source_of("glass-0-1-6_vs_2"), source_of("new-thyroid1")
    ('glass', 'new-thyroid')
    """
    words = [word for word in name.split("-") if not word[0].isdigit() and "_vs_" not in word]
    return "-".join(words[:2] if words[0] == "new" else words[:1]).rstrip("0123456789")


def read(name: str) -> Table:
    """One of KEEL's tables as numbers."""
    table = load_table(f"keel/{name}")
    X = Encoder.fit(table.features, table.columns).transform(table.features).astype(np.float64)
    rows = np.unique(np.c_[X, table.y], axis=0)  # equal rows are kept once
    return Table(name, rows[:, :-1], rows[:, -1].astype(np.int64), ())


def _xgboost(step: float) -> Any:
    from xgboost import XGBClassifier

    return XGBClassifier(n_estimators=100, max_delta_step=step, n_jobs=1)


def _lightgbm(step: float) -> Any:
    from lightgbm import LGBMClassifier

    return LGBMClassifier(n_estimators=100, max_delta_step=step, n_jobs=1, verbosity=-1)


def _made(booster: Callable[[float], Any], step: float, table: Table) -> Any:
    return booster(step)


def _learners() -> None:
    """The two boosters with their defaults and with a bound, beside the learners of the cuts."""
    for library, made in (("xgboost", _xgboost), ("lightgbm", _lightgbm)):
        for name, step in zip(STEPS, (0.0, 3.0), strict=True):
            cuts_rules.LEARNERS[f"{library}, {name}"] = partial(_made, made, step)


def measure(repeats: int) -> dict[str, Any]:
    """Both questions on every table."""
    _learners()
    names = [name for name in keel.NAMES if not name.startswith(SEEN)]
    tables = [table for table in map(read, names) if table.y.sum() >= FEWEST]
    rules: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    steps: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for table in track(tables, "Tables"):
        source = source_of(table.name)
        for repeat in range(repeats):
            for learner in ("logistic", "booster"):
                found = cuts_rules.scores(table, learner, repeat, None)
                for beta in BETAS:
                    for rule in RULES:
                        rules[source][rule].append(judge(found, beta, rule))
            for library in ("xgboost", "lightgbm"):
                for step in STEPS:
                    found = cuts_rules.scores(table, f"{library}, {step}", repeat, None)
                    for beta in BETAS:
                        steps[source][f"{library}, {step}"].append(judge(found, beta, "shrunk"))

    def apart(of: dict[str, dict[str, list[float]]], one: str, other: str) -> dict[str, Any]:
        return compare({source: float(np.mean(v[one]) - np.mean(v[other])) for source, v in of.items()})

    return {
        "tables": {t.name: {"rows": t.y.size, "positives": int(t.y.sum())} for t in tables},
        "sources": sorted(rules),
        "repeats": repeats,
        "shrunk minus": {rule: apart(rules, "shrunk", rule) for rule in RULES if rule != "shrunk"},
        "step 3 minus default": {
            name: apart(steps, f"{name}, step 3", f"{name}, default") for name in ("xgboost", "lightgbm")
        },
    }


def render(found: dict[str, Any]) -> str:
    """The result as a page."""
    lines = [
        "# Choices on tables that had no part in them",
        "",
        f"{len(found['tables'])} of KEEL's tables from {len(found['sources'])} sources "
        f"({', '.join(found['sources'])}), {found['repeats']} repeats of five-fold cross-validation, F½, F₁ and F₂; "
        "hundredths of F, mean over sources and its 95 % interval (Student's t over them). `python "
        "benchmarks/held_out.py`",
        "",
        "| | mean | 95 % | sources won–lost |",
        "|---|---|---|---|",
    ]
    rows = {f"`shrunk` minus `{rule}`": x for rule, x in found["shrunk minus"].items()}
    rows |= {f"{name}, `max_delta_step=3` minus its default": x for name, x in found["step 3 minus default"].items()}
    for name, x in rows.items():
        low, high = (100 * end for end in x["interval"])
        lines.append(
            f"| {name} | {100 * x['mean']:+.2f} | {low:+.2f} to {high:+.2f} | {x['wins']}–{x['losses']} |".replace(
                "-", "−"
            )
        )
    return "\n".join([*lines, "", *by_source(rows)])


def by_source(rows: dict[str, Any]) -> list[str]:
    """What the intervals are made of, if it was kept."""
    heads = [name for name, x in rows.items() if "by source" in x]
    if not heads:
        return []
    lines = ["Every source:", "", f"| source | {' | '.join(heads)} |", "|---" * (1 + len(heads)) + "|"]
    for source in rows[heads[0]]["by source"]:
        cells = (f"{100 * x['by source'][source]:+.2f}".replace("-", "−") for x in rows.values())
        lines.append(f"| {source} | {' | '.join(cells)} |")
    return [*lines, ""]


def rule_summary(found: dict[str, Any]) -> str:
    """What docs/decisions.md says."""
    above = [f"{doc_block.hundredths(x)} above `{rule}`" for rule, x in found["shrunk minus"].items()]
    return (
        f"On {_tables(found)}, `shrunk` is, in hundredths of F, {', '.join(above[:-1])} and {above[-1]} "
        "([held_out.md](../benchmarks/results/held_out.md))."
    )


def step_summary(found: dict[str, Any]) -> str:
    """What docs/boosting.md says."""
    sizes = [table["rows"] for table in found["tables"].values()]
    rarity = [table["rows"] / table["positives"] for table in found["tables"].values()]
    changes = [f"{doc_block.hundredths(x)} with {name}" for name, x in found["step 3 minus default"].items()]
    return (
        f"On {_tables(found)}, with {max(sizes):,} rows at most and, in the median, one positive in "
        f"{np.median(rarity):.0f}, the bound changes F against the libraries' defaults by {' and '.join(changes)}, in "
        "hundredths ([held_out.md](../benchmarks/results/held_out.md))."
    )


def _tables(found: dict[str, Any]) -> str:
    return f"{len(found['tables'])} tables from {len(found['sources'])} sources that had no part in the choice"


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--dry", action="store_true", help="write nothing")
    parser.add_argument("--page", action="store_true", help="measure nothing")
    given = parser.parse_args()
    path = RESULTS / "held_out.json"
    found = json.loads(path.read_text()) if given.page else measure(given.repeats)
    print(render(found))
    if not given.dry:
        path.write_text(json.dumps(found, indent=1) + "\n")
        path.with_suffix(".md").write_text(render(found))
        doc_block.write("decisions.md", "held-out", rule_summary(found))
        doc_block.write("boosting.md", "held-out", step_summary(found))


if __name__ == "__main__":
    main()
