"""The commands of docs/tables.md, run for true: compare, fit, predict and tune on scikit-learn's breast cancer table.

``python examples/walkthrough.py --write`` runs them and puts what they print into docs/tables.md.
"""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import polars as pl
from digits import ROOT, marks

from fbeta.data import load_table

PAGE = ROOT / "docs" / "tables.md"
ASKED = "--target diagnosis --metric fbeta:beta=2"
#: What is run, by the name of its block in the document.
COMMANDS = {
    "walk-compare": [f"fbeta compare old.csv {ASKED} --drop id --models linear --losses tangent,surrogate"],
    "walk-fit": [f"fbeta fit old.csv {ASKED} --drop id --model linear --loss bce,tangent -o model.fbeta"],
    "walk-predict": [
        "fbeta predict model.fbeta new.csv --keep id,diagnosis --score -o decided.csv",
        "head -4 decided.csv",
    ],
    "walk-tune": [f"fbeta tune decided.csv {ASKED} --score probability --budget 60"],
}


def tables(folder: Path) -> None:
    """Rows to learn from, and rows to be decided, as files with an id."""
    table = load_table("breast-cancer")
    words = np.where(table.y == 1, table.positive, table.negative)
    frame = table.features.with_columns(id=pl.int_range(len(table)), diagnosis=pl.Series(words))
    frame.head(400).write_csv(folder / "old.csv")
    frame.tail(len(table) - 400).write_csv(folder / "new.csv")


def walk() -> dict[str, str]:
    """Run all commands one after another, and return what a terminal would show."""
    shown = {}
    # A cache of its own: nothing that was finished before may shorten what is shown.
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tables(folder)
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        around = os.environ | {"PATH": path, "COLUMNS": "100", "FBETA_DATA": str(folder / "cache")}
        for block, commands in COMMANDS.items():
            lines = []
            for command in commands:
                done = subprocess.run(
                    shlex.split(command), cwd=folder, env=around, check=True, capture_output=True, text=True
                )
                printed = [line.rstrip() for line in done.stdout.splitlines() if "━" not in line]
                lines += [f"$ {command}", *printed]
            shown[block] = "\n".join(lines)
    return shown


def main() -> None:
    """Run, print, and write if asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="put the output into docs/tables.md")
    write = parser.parse_args().write
    for block, text in walk().items():
        print(text, end="\n\n")
        if write:
            start, end = marks(block)
            before, rest = PAGE.read_text(encoding="utf-8").split(start)
            after = rest.split(end)[1]
            PAGE.write_text(f"{before}{start}\n```\n{text}\n```\n{end}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
