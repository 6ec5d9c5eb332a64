"""`fbeta predict` on a large file: rows per second and peak memory, in a process of its own, the worst of three.

    python benchmarks/predict.py                 # 200 MB, a minute; --megabytes 1000 is what the result file has

The file is the rows of `creditcard` again and again (numbers and the target `Class`; --data reads them from a file of
your own), or made-up ones like them where that set is not here; the model is fitted to the first 40,000. The
peak is that of the resident set, Python and all.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import doc_block
import numpy as np
import polars as pl

from fbeta import artifact, data
from fbeta.comparison.run import fit
from fbeta.tables import read_frame

RESULT = Path(__file__).parent / "results" / "predict.json"
PREDICT = """
import json, resource, sys, time
start = time.perf_counter()
from fbeta import artifact
model = artifact.load(sys.argv[1])
done = artifact.predict(model, sys.argv[2], sys.argv[3])
seconds, peak = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
print(json.dumps({"peak": peak / 1e6, "seconds": seconds, "rows": done.rows, "torch": "torch" in sys.modules}))
"""
MODELS = ("linear", "mlp", "xgboost", "lightgbm")


def rows(source: Path | None) -> tuple[str, pl.DataFrame]:
    """The rows that are repeated, and where they come from."""
    if source is not None:
        table = data.load_table(source, "Class", "1", drop=["Time"])
        return source.stem, table.features.with_columns(pl.Series("Class", table.y))
    try:
        table = data.load_table("creditcard")
    except data.DataError:
        rng = np.random.default_rng(0)
        y = rng.random(100_000) < 0.002
        x = rng.normal(size=(len(y), 29)) + y[:, None]
        return "made up", pl.DataFrame({f"V{i}": x[:, i] for i in range(29)} | {"Class": y.astype(int)})
    return "creditcard", table.features.with_columns(pl.Series("Class", table.y))


def write(path: Path, frame: pl.DataFrame, megabytes: float) -> None:
    """Write a CSV of about that size."""
    with open(path, "wb") as out:
        while out.tell() < megabytes * 1e6:
            frame.write_csv(out, include_header=not out.tell())


def measure(model: str, frame: pl.DataFrame, source: Path, folder: Path, ending: str) -> dict[str, float]:
    """The worst of three runs with one model."""
    made = fit(read_frame(frame[:40_000], "Class", "1"), models=model, losses="bce", folds=2)
    artifact.save(made, folder / "model.fbeta")
    asked = [str(folder / "model.fbeta"), str(source), str(folder / f"out{ending}")]
    runs = [json.loads(subprocess.check_output([sys.executable, "-c", PREDICT, *asked], text=True)) for _ in range(3)]
    peak, seconds = (max(run[name] for run in runs) for name in ("peak", "seconds"))
    if model in ("linear", "mlp") and runs[0]["torch"]:
        raise RuntimeError("prediction by a network imported torch")
    return {
        "rows": runs[0]["rows"],
        "peak_MB": round(peak),
        "seconds": round(seconds, 1),
        "rows_per_second": round(runs[0]["rows"] / seconds),
    }


def summary(result: dict[str, Any]) -> str:
    """The result as a table of docs/tables.md."""
    lines = ["| model | rows per second | peak memory |", "|---|---:|---:|"]
    for name, found in result.items():
        if isinstance(found, dict):
            lines.append(f"| {name} | {found['rows_per_second']:,} | {found['peak_MB']} MB |")
    lines.append("")
    lines.append(f"A CSV of {result['file_MB']:.0f} MB, {result['linear']['rows']:,} rows of {result['data']}, ")
    lines[-1] += f"{result['cores']} cores, polars {result['polars']}; the worst of three runs."
    return "\n".join(lines)


def main() -> None:
    """Measure, print and store."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=float, default=200)
    parser.add_argument("--data", type=Path, help="a table with the columns of creditcard")
    parser.add_argument("--models", nargs="+", default=MODELS, choices=MODELS)
    parser.add_argument("--no-save", action="store_true", help="do not write the result file")
    options = parser.parse_args()
    name, frame = rows(options.data)
    with tempfile.TemporaryDirectory() as folder:
        write(source := Path(folder, "new.csv"), frame, options.megabytes)
        result = {
            "data": name,
            "file_MB": round(source.stat().st_size / 1e6, 1),
            "cores": os.cpu_count(),
            "polars": pl.__version__,
            **{model: measure(model, frame, source, Path(folder), ".csv") for model in options.models},
        }
        if "linear" in options.models:
            result["linear, to parquet"] = measure("linear", frame, source, Path(folder), ".parquet")
    print(json.dumps(result, indent=1))
    if not options.no_save:
        RESULT.write_text(json.dumps(result, indent=1) + "\n")
        doc_block.write("tables.md", "predict", summary(result))


if __name__ == "__main__":
    main()
