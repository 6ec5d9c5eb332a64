"""Tables of three to eleven classes, and probabilities of their rows as a user would have them: see decisions.py."""

from __future__ import annotations

import csv
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from decisions_tables import LEARN, Floats, Scores
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

LEARNERS = {
    "logistic": lambda: make_pipeline(StandardScaler(), LogisticRegression(max_iter=300)),
    "forest": lambda: RandomForestClassifier(100, random_state=0),
}
#: KEEL's tables with all their classes.
WHOLE = (
    "contraceptive", "hayes-roth", "iris", "led7digit", "marketing", "optdigits", "penbased", "satimage", "segment",
    "splice", "tae", "texture", "vehicle", "vowel", "wine",
)  # fmt: skip
#: Tables that KEEL has one class against others only: which file names which class positive, and which negative. Rows
#: that no file names are one class.
JOINED: dict[str, tuple[tuple[str, str, str], ...]] = {
    "car": (("car-good", "good", ""), ("car-vgood", "vgood", "")),
    "ecoli": tuple((f"ecoli{k}", str(k), "") for k in (1, 2, 3, 4)),
    "glass": (("glass-0-1-4-6_vs_2", "2", ""), *((f"glass{k}", str(k), "") for k in (0, 1, 4, 5, 6))),
    "winequality-red": (
        ("winequality-red-8_vs_6-7", "8", "7"), ("winequality-red-8_vs_6", "8", "6"), ("winequality-red-4", "4", ""),
    ),
    "yeast": tuple((f"yeast{k}", str(k), "") for k in (1, 3, 4, 5, 6)),
}  # fmt: skip
#: In the long-tailed version the rarest class keeps one row in so many, and no class fewer rows than `FEWEST`.
TAIL, FEWEST = 20, 12


def _plain(text: str) -> str:
    try:
        return f"{float(text):.6g}"
    except ValueError:
        return text


def rows_of(path: Path) -> list[tuple[str, ...]]:
    """The rows of one file, the class last."""
    with path.open() as file:
        return [tuple(x.strip() for x in row) for row in csv.reader(file) if len(row) > 1]


def read(folder: Path, name: str, rows: int) -> tuple[Floats, NDArray[np.int64]]:
    """The rows and their classes, at most so many; words become columns of 0 and 1."""
    if name in WHOLE:
        *table, named = zip(*rows_of(folder / f"balanced/raw/{name}.dat"), strict=True)
    else:
        found: dict[tuple[str, ...], str] = {}
        for file, positive, negative in JOINED[name]:
            for *values, side in rows_of(folder / f"imbalanced/raw/{file}.dat"):
                row = tuple(map(_plain, values))  # the files write numbers in different ways
                found[row] = positive if side == "positive" else negative or found.get(row, "")
        table, named = list(zip(*found, strict=True)), tuple(found.values())
    columns = []
    for column in table:
        try:
            columns.append(np.array(column, dtype=np.float64)[:, None])
        except ValueError:
            columns.append((np.array(column)[:, None] == np.unique(column)).astype(np.float64))
    x, y = np.hstack(columns), np.unique(named, return_inverse=True)[1]
    if len(y) > rows:
        x, _, y, _ = train_test_split(x, y, train_size=rows, stratify=y, random_state=0)
    return x, y


def long_tailed(y: NDArray[np.int64], seed: int) -> NDArray[np.int64]:
    """Rows of which class after class, in random order, there are fewer and fewer."""
    rng, classes = np.random.default_rng(seed), int(y.max()) + 1
    shares = TAIL ** -(rng.permutation(classes) / (classes - 1))
    kept = []
    for k, share in enumerate(shares):
        there = np.flatnonzero(y == k)
        kept.append(rng.permutation(there)[: max(FEWEST, round(share * len(there)))])
    return np.sort(np.concatenate(kept))


def scored(folder: Path, name: str, tail: bool, learner: str, repeat: int, rows: int, cache: Path | None) -> Scores:
    """Divide the rows at random, evenly by class, learn from one part, score both."""
    held = cache / f"{name}.{'tail' if tail else 'whole'}.{learner}.{repeat}.npz" if cache else None
    if held is not None and held.exists():
        return Scores(**np.load(held))
    x, y = read(folder, name, rows)
    if tail:
        kept = long_tailed(y, repeat)
        x, y = x[kept], y[kept]
    first, later = train_test_split(np.arange(len(y)), train_size=LEARN, stratify=y, random_state=repeat)
    model: Any = LEARNERS[learner]()
    inner = np.empty((len(first), int(y.max()) + 1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for fit, rest in StratifiedKFold(5, shuffle=True, random_state=repeat).split(first, y[first]):
            inner[rest] = model.fit(x[first[fit]], y[first[fit]]).predict_proba(x[first[rest]])
        found = Scores(inner, y[first], model.fit(x[first], y[first]).predict_proba(x[later]), y[later])
    if held is not None:
        held.parent.mkdir(parents=True, exist_ok=True)
        np.savez(held, **vars(found))
    return found
