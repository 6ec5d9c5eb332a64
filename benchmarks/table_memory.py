"""Peak memory of reading a CSV: MB of memory for a MB of file, in a process of its own, the worst of three.

    python benchmarks/table_memory.py            # 200 MB, a minute; --rows 2200000 is 1 GB

Twenty columns of numbers, four of whole numbers, two of categories, an id, a date and the target.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import polars as pl

RESULT = Path(__file__).parent / "results" / "table_memory.json"
READ = """
import json, resource, sys, time
from fbeta.tables import read_table
start = time.perf_counter()
table = read_table(sys.argv[1], "y")
seconds, peak = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
print(json.dumps({"peak": peak / 1e6, "seconds": seconds, "rows": len(table)}))
"""


def write(path: Path, rows: int, step: int = 100_000) -> None:
    """Write a CSV of that many rows, a piece at a time."""
    rng = np.random.default_rng(0)
    with open(path, "wb") as out:
        for first in range(0, rows, step):
            n = min(step, rows - first)
            columns: dict[str, object] = {f"v{i}": rng.normal(size=n) for i in range(20)}
            columns |= {f"k{i}": rng.integers(0, 1000, n) for i in range(4)}
            columns |= {"city": [f"city{i}" for i in rng.integers(0, 3000, n)]}
            columns |= {"shop": [f"shop {i}" for i in rng.integers(0, 20, n)]}
            columns |= {"id": [f"id-{i:09d}" for i in range(first, first + n)]}
            columns |= {"day": [f"2024-{1 + i % 12:02d}-{1 + i % 28:02d}" for i in rng.integers(0, 365, n)]}
            pl.DataFrame(columns | {"y": rng.random(n) < 0.02}).write_csv(out, include_header=not first)


def main() -> None:
    """Measure, print and store."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=440_000)
    parser.add_argument("--no-save", action="store_true", help="do not write the result file")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        write(path := Path(folder, "table.csv"), options.rows)
        size = path.stat().st_size / 1e6
        runs = [
            json.loads(subprocess.check_output([sys.executable, "-c", READ, str(path)], text=True)) for _ in range(3)
        ]
    worst = max(runs, key=lambda run: run["peak"])
    result = {
        "file_MB": round(size, 1),
        "rows": worst["rows"],
        "cores": os.cpu_count(),
        "polars": pl.__version__,
        "peak_MB": round(worst["peak"]),
        "seconds": round(max(run["seconds"] for run in runs), 1),
        "peak_MB_per_MB": round(worst["peak"] / size, 2),
    }
    print(json.dumps(result, indent=1))
    if not options.no_save:
        held = json.loads(RESULT.read_text()) if RESULT.exists() else {}
        held[f"{options.rows} rows"] = result
        RESULT.write_text(json.dumps(held, indent=1) + "\n")


if __name__ == "__main__":
    main()
