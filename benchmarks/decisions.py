"""Decisions, measured on real tables: what following the share of positives gains.

    python benchmarks/decisions.py shift FOLDER     # every table in FOLDER: .csv, .csv.gz, .parquet, with a column y
    python benchmarks/decisions.py page             # write the pages and docs/cuts.md again from the numbers

Sources are the units: tables made from the same rows count once, and intervals are Student's t over sources. Numbers
are kept in benchmarks/results/decisions-PART.json, the page beside it, unless `--dry`. With QuaPy installed its EMQ is
measured on the same rows.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import decisions_shift
import doc_block

RESULTS = Path(__file__).parent / "results"


def keep(part: str, result: dict[str, Any]) -> None:
    """Write the numbers and the page of a part, and what the documents say of it."""
    (RESULTS / f"decisions-{part}.json").write_text(json.dumps(result, indent=1) + "\n")
    (RESULTS / f"decisions-{part}.md").write_text(
        "\n".join(["# Decisions, measured", "", *decisions_shift.render(result)])
    )
    doc_block.write("cuts.md", "shift", decisions_shift.summary(result))


def main() -> None:
    """Measure a part, or write the pages again."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=["shift", "page"])
    parser.add_argument("folder", nargs="?", type=Path, help="a folder of tables")
    parser.add_argument("--rows", type=int, default=12_000, help="at most so many of a table")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--cache", type=Path, help="a folder for scores, which take most of the time")
    parser.add_argument("--dry", action="store_true", help="print, keep nothing")
    given = parser.parse_args()
    if given.part == "page":
        keep("shift", json.loads((RESULTS / "decisions-shift.json").read_text()))
        return
    if given.folder is None:
        parser.error("name the folder with the tables")
    result = decisions_shift.measure(given.folder, given.rows, given.repeats, given.cache, print)
    print("\n".join(decisions_shift.render(result)))
    if not given.dry:
        keep("shift", result)


if __name__ == "__main__":
    main()
