"""SVM^perf for F₁ beside scikit-learn's LinearSVC, on sparse rows: seconds per pass, passes, and what comes of it.

    python benchmarks/svmperf.py            # a minute or two; writes benchmarks/results/svmperf.json

A twentieth of the rows are positive; each row has 20 of 1,000 features, as a short text has words. Every time is the
least of three in this process, on one thread, one system after the other.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import doc_block
import numpy as np
import sklearn
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

from fbeta import Confusion, FBeta, tune
from fbeta.learners.cutting_planes import fit_linear

RESULT = Path(__file__).parent / "results" / "svmperf.json"
ROWS, COLUMNS, DENSITY, RATE, TEST = 100_000, 1_000, 0.02, 0.05, 20_000
C = 0.1


def made(rows: int) -> tuple[Any, Any]:
    """Sparse rows, and targets that a linear model tells apart with mistakes."""
    chance = np.random.default_rng(0)
    X = sparse.random(rows, COLUMNS, DENSITY, format="csr", random_state=0)
    X.data = np.abs(chance.normal(size=X.nnz))
    f = X @ chance.normal(size=COLUMNS)
    f = f / f.std() + 0.5 * chance.normal(size=rows)
    return sparse.csr_array(X), (f > np.quantile(f, 1 - RATE)).astype(int)


def timed(fit: Callable[[], Any], times: int = 3) -> tuple[float, Any]:
    """The least seconds, and what came of it."""
    seconds = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # LinearSVC's own limit, as users meet it
        for _ in range(times):
            began = time.perf_counter()
            found = fit()
            seconds.append(time.perf_counter() - began)
    return min(seconds), found


def judged(learn: Any, y: Any, test: Any, truth: Any) -> dict[str, float]:
    """F₁ of test scores at 0, and at the best cut of the learning rows."""
    cuts = 0.0, tune(learn, y, "f1", rule="exact", kind="logit").value
    own, tuned = (float(FBeta(1)(Confusion.from_scores(test, truth, cut))) for cut in cuts)
    return {"f1": round(own, 3), "f1_with_cut": round(tuned, 3)}


def objective(X: Any, y: Any, w: Any, bias: float) -> float:
    """What the ordinary SVM minimises, per row and in units of the hinge."""
    hinge = np.maximum(0, 1 - (2 * y - 1) * (X @ w + bias))
    return float((w @ w + bias**2) / (2 * C * len(y)) + hinge.mean())


def main() -> None:
    """Measure, print and store."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--no-save", action="store_true", help="do not write the result file")
    options = parser.parse_args()
    X, y = made(ROWS + TEST)
    test, truth = X[ROWS:], y[ROWS:]
    sizes = {}
    for count in (ROWS // 8, ROWS // 4, ROWS // 2, ROWS):
        part, labels, found = X[:count], y[:count], {}
        fits: dict[str, Callable[[], Any]] = {
            "SVM^perf, F₁": partial(fit_linear, part, labels, "f1", C=C),
            "SVM^perf, error": partial(fit_linear, part, labels, "accuracy", C=C),
            "LinearSVC, hinge": partial(LinearSVC(loss="hinge", C=C).fit, part, labels),
        }
        for name, fit in fits.items():
            seconds, model = timed(fit)
            theirs = isinstance(model, LinearSVC)
            passes = int(model.n_iter_) if theirs else model.passes
            w, bias = (model.coef_[0], float(model.intercept_[0])) if theirs else (model.weight, model.bias)
            found[name] = {
                "seconds": round(seconds, 2),
                "passes": passes,
                "seconds_per_pass": round(seconds / passes, 4),
                "hinge": round(objective(part, labels, w, bias), 4),
                **judged(part @ w + bias, labels, test @ w + bias, truth),
            }
        sizes[str(count)] = found
        print(count, json.dumps(found, ensure_ascii=False, indent=1), flush=True)
    last = sizes[str(ROWS)]
    result = {
        "columns": COLUMNS,
        "numbers_per_row": int(DENSITY * COLUMNS),
        "positives": RATE,
        "C": C,
        "machine": f"{platform.machine()}, 1 thread of {os.cpu_count()}, scikit-learn {sklearn.__version__}",
        "rows": sizes,
        "ratio": round(last["SVM^perf, F₁"]["seconds"] / last["LinearSVC, hinge"]["seconds"], 2),
    }
    if not options.no_save:
        RESULT.write_text(json.dumps(result, ensure_ascii=False, indent=1) + "\n")
        doc_block.write("systems.md", "svmperf", summary(result))


def summary(result: dict[str, Any]) -> str:
    """The table of the document."""
    lines = [
        "| rows | | seconds | passes | seconds per pass | the ordinary SVM's objective | F₁ at 0 | F₁ with a cut |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for count, found in result["rows"].items():
        for name, x in found.items():
            numbers = (
                f"{x['seconds']:.2f} | {x['passes']} | {x['seconds_per_pass']:.4f} | {x['hinge']:.4f} | {x['f1']:.3f}"
            )
            lines.append(f"| {int(count):,} | {name} | {numbers} | {x['f1_with_cut']:.3f} |")
    most = int(list(result["rows"])[-1])
    ours, theirs = (result["rows"][str(most)][name] for name in ("SVM^perf, F₁", "LinearSVC, hinge"))
    each = ours["seconds"] / ours["passes"] / (theirs["seconds"] / theirs["passes"])
    about = (
        f"{result['columns']:,} columns, {result['numbers_per_row']} numbers per row, "
        f"{100 * result['positives']:.0f} % positives, C = {result['C']}, {result['machine']}; the least of three "
        f"runs. On {most:,} rows SVM^perf for F₁ takes {result['ratio']} times as long as LinearSVC: a pass takes "
        f"{each:.0f} times as long as one of LinearSVC’s, which is one over its dual variables, and of those it needs "
        f"{theirs['passes']:,} (1,000 is its limit, where it stops). The objective is per row: the mean hinge and the "
        "penalty. The cut is the best of the learning rows; F₁ is that of 20,000 other rows."
    )
    return "\n".join([*lines, "", about])


if __name__ == "__main__":
    main()
