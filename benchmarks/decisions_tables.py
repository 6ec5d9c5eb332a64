"""Scores of real tables, out of fold and of later rows, as a user would have them: see decisions.py."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold

from fbeta.data import load_table
from fbeta.tables import Encoder, Table

#: Tables that were made from the same rows count as one source.
SOURCES = dict.fromkeys(("http", "smtp", "kdd_bufferoverflow_vs_back", "nslkdd_train20", "nslkdd_test"), "kddcup99")
LEARNERS: dict[str, Callable[[], Any]] = {
    "logistic": lambda: LogisticRegression(max_iter=300),
    "trees": lambda: HistGradientBoostingClassifier(max_iter=100, early_stopping=False, max_leaf_nodes=15),
}
#: The share of rows to learn from; both halves need so many positives.
LEARN, POSITIVES = 0.6, 8

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Scores:
    """Probabilities: of the rows to learn from, each by a model that did not see it, and of later rows."""

    inner: Floats
    truth: NDArray[np.int64]
    later: Floats
    later_truth: NDArray[np.int64]


def paths(folder: Path) -> list[Path]:
    """All tables of a folder, by name."""
    found = [p for p in sorted(folder.iterdir()) if p.name.endswith((".csv.gz", ".csv", ".parquet"))]
    if not found:
        raise SystemExit(f"{folder} holds no .csv, .csv.gz or .parquet with a column y.")
    return found


def source(path: Path) -> str:
    """Where the rows of a table come from."""
    name = path.name.partition(".")[0]
    return SOURCES.get(name, name)


def read(path: Path, rows: int) -> Table:
    """Read a table; equal rows are kept once, and at most so many at the same rate, but 60 positives if it has them."""
    table = load_table(path, "y", "1")
    table = table.take(np.sort(np.unique(table.group, return_index=True)[1]))
    if len(table) <= rows:
        return table
    rng = np.random.default_rng(0)
    i1, i0 = np.flatnonzero(table.y == 1), np.flatnonzero(table.y == 0)
    n1 = max(min(i1.size, 60), round(rows * i1.size / len(table)))
    return table.take(np.sort(np.r_[rng.choice(i1, n1, False), rng.choice(i0, rows - n1, False)]))


def scored(path: Path, learner: str, repeat: int, rows: int, cache: Path | None) -> Scores | None:
    """Divide the rows at random, learn from one part, score both; None with too few positives on a side."""
    held = cache / f"{path.name.partition('.')[0]}.{learner}.{repeat}.npz" if cache else None
    if held is not None and held.exists():
        return Scores(**np.load(held))
    table = read(path, rows)
    order = np.random.default_rng(repeat).permutation(len(table))
    first, later = np.split(order, [round(LEARN * len(table))])
    y, u = (table.y[i].astype(np.int64) for i in (first, later))
    if min(y.sum(), u.sum()) < POSITIVES:
        return None
    encoder = Encoder.fit(table.features[first], table.columns)
    x, t = (encoder.transform(table.features[i]) for i in (first, later))
    model, inner = LEARNERS[learner](), np.empty(y.size)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for fit, rest in StratifiedKFold(5, shuffle=True, random_state=repeat).split(x, y):
            inner[rest] = model.fit(x[fit], y[fit]).predict_proba(x[rest])[:, 1]
        found = Scores(inner, y, model.fit(x, y).predict_proba(t)[:, 1], u)
    if held is not None:
        held.parent.mkdir(parents=True, exist_ok=True)
        np.savez(held, **vars(found))
    return found


def over_sources(values: Iterable[float]) -> dict[str, Any]:
    """A mean over sources and its 95 % interval by Student's t."""
    x = np.array(list(values))
    half = float(t.ppf(0.975, x.size - 1) * x.std(ddof=1) / math.sqrt(x.size)) if x.size > 1 else math.nan
    return {"mean": float(x.mean()), "interval": [float(x.mean()) - half, float(x.mean()) + half]}
