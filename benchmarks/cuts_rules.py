"""Rules for a cut out of sample, on the imbalanced tables of a folder: see cuts.py."""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from fbeta import Confusion, FBeta, tune
from fbeta.comparison.statistics import mean_interval

BETAS = (0.5, 1.0, 2.0)
RULES = ("exact", "plugin", "plugin:calibrate=0", "shrunk", "constant")
HALVES = (0, 50, 100, 200, 400, 800, 1e9)
FEW = 200
DRAWS = (25, 50, 100, 200)
#: Tables that were made from the same rows count as one source.
SOURCES = dict.fromkeys(("http", "smtp", "kdd_bufferoverflow_vs_back", "nslkdd_train20", "nslkdd_test"), "kddcup99")

Floats = NDArray[np.float64]
Key = tuple[str, str, float, str]  # table, learner, β, rule


@dataclass(frozen=True)
class Table:
    """Numbers and codes of categories, `y` 0 or 1."""

    name: str
    x: Floats
    y: NDArray[np.int64]
    categories: tuple[int, ...]

    @property
    def source(self) -> str:
        """Where the rows come from."""
        name = self.name.partition("@")[0]
        return SOURCES.get(name, name)

    @classmethod
    def read(cls, path: Path) -> Table:
        """Read one file; equal rows are kept once, so that none is on both sides of a split."""
        frame = pl.read_parquet(path) if path.suffix == ".parquet" else pl.read_csv(path, infer_schema_length=None)
        frame = frame.unique(maintain_order=True)
        y = frame["y"].to_numpy().astype(np.int64)
        columns, categories = [], []
        for i, name in enumerate(c for c in frame.columns if c != "y"):
            column = frame[name]
            if column.dtype.is_numeric():
                columns.append(column.cast(pl.Float64).fill_null(float("nan")).to_numpy())
            else:
                categories.append(i)
                text = column.cast(pl.String).fill_null("?").to_numpy().astype(str)
                columns.append(np.unique(text, return_inverse=True)[1].astype(np.float64))
        return cls(path.name.partition(".")[0], np.stack(columns, axis=1), y, tuple(categories))

    def keep(self, positives: int, negatives: int, seed: int, name: str | None = None) -> Table:
        """So many rows of each class, at random."""
        rng = np.random.default_rng(seed)
        i1, i0 = np.flatnonzero(self.y == 1), np.flatnonzero(self.y == 0)
        rows = np.sort(np.r_[rng.choice(i1, positives, False), rng.choice(i0, negatives, False)])
        return Table(name or self.name, self.x[rows], self.y[rows], self.categories)

    def at_most(self, rows: int) -> Table:
        """At the same rate, but with 50 positives where there are so many."""
        if self.y.size <= rows:
            return self
        n1 = int(self.y.sum())
        kept = max(min(n1, 50), round(rows * n1 / self.y.size))
        return self.keep(kept, rows - kept, seed=1)


def tables(folder: Path) -> list[Table]:
    """All tables of a folder, by name."""
    paths = [p for p in sorted(folder.iterdir()) if p.name.endswith((".csv.gz", ".csv", ".parquet"))]
    if not paths:
        raise SystemExit(f"{folder} holds no .csv, .csv.gz or .parquet with a last column y.")
    return [Table.read(path) for path in paths]


def logistic(table: Table) -> Any:
    """Logistic regression on standardised numbers and one-hot categories."""
    numbers = [i for i in range(table.x.shape[1]) if i not in table.categories]
    prepare = make_column_transformer(
        (make_pipeline(SimpleImputer(keep_empty_features=True), StandardScaler()), numbers),
        (OneHotEncoder(handle_unknown="ignore", min_frequency=5), list(table.categories)),
    )
    return make_pipeline(prepare, LogisticRegression(max_iter=300))


def booster(table: Table) -> Any:
    """Gradient-boosted trees."""
    return HistGradientBoostingClassifier(max_iter=100, early_stopping=False, max_leaf_nodes=15)


LEARNERS: dict[str, Callable[[Table], Any]] = {"logistic": logistic, "booster": booster}


def scores(table: Table, learner: str, repeat: int, cache: Path | None) -> dict[str, Floats]:
    """Per outer fold k: out-of-fold scores `s` and labels `y` of the training rows, `t` and `u` of the test rows."""
    path = cache / f"{table.name}.{learner}.{repeat}.npz" if cache else None
    if path is not None and path.exists():
        return dict(np.load(path))
    model, x, y, found = LEARNERS[learner](table), table.x, table.y, {}
    split = StratifiedKFold(5, shuffle=True, random_state=repeat).split
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", "Skipping features without any observed values")
        for k, (train, test) in enumerate(split(x, y)):
            inner = np.empty(train.size)
            for fit, rest in split(x[train], y[train]):
                inner[rest] = model.fit(x[train[fit]], y[train[fit]]).predict_proba(x[train[rest]])[:, 1]
            outer = model.fit(x[train], y[train]).predict_proba(x[test])[:, 1]
            found.update({f"s{k}": inner, f"y{k}": y[train], f"t{k}": outer, f"u{k}": y[test]})
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        np.savez(path, **found)
    return found


def judge(found: dict[str, Floats], beta: float, rule: str) -> float:
    """F_β of all test rows together, each fold cut where its own training rows say."""
    total = Confusion(0.0, 0.0, 0.0, 0.0)
    for k in range(5):
        cut = tune(found[f"s{k}"], found[f"y{k}"], FBeta(beta), rule=rule)
        total += Confusion.from_scores(found[f"t{k}"], found[f"u{k}"], cut.value)
    return float(FBeta(beta)(total))


def plan(given: list[Table], rows: int, repeats: int, subsets: bool) -> Iterator[tuple[str, Table, int]]:
    """What to measure: group, table and repeat. Small sets are repeated more often, they vary more."""
    for table in given:
        kept = table.at_most(rows)
        small = int(kept.y.sum()) < FEW
        for repeat in range(repeats if small else -(-repeats // 3)):
            yield ("few" if small else "many"), kept, repeat
    for table in given if subsets else ():
        n1, n0 = int(table.y.sum()), int((table.y == 0).sum())
        for draw in DRAWS if n1 >= 450 else ():
            for repeat in range(3):
                drawn = table.keep(draw, min(draw * n0 // n1, n0, 4000), 100 + repeat, f"{table.name}@{draw}")
                yield f"{draw} drawn", drawn, repeat


def measure(
    folder: Path, rows: int, repeats: int, subsets: bool, cache: Path | None, say: Callable[[str], None]
) -> dict[str, Any]:
    """Every rule on every table: the mean over repeats, and the comparison by source."""
    seen: dict[str, dict[Key, list[float]]] = defaultdict(lambda: defaultdict(list))
    sets: dict[str, dict[str, Any]] = {}
    rules = (*RULES, *(f"shrunk:half={h:g}" for h in HALVES))
    for group, table, repeat in plan(tables(folder), rows, repeats, subsets):
        for learner in LEARNERS:
            found = scores(table, learner, repeat, cache)
            for beta in BETAS:
                for rule in rules:
                    seen[group][(table.name, learner, beta, rule)].append(judge(found, beta, rule))
        n1 = int(table.y.sum())
        sets[table.name] = {"group": group, "source": table.source, "rows": table.y.size, "positives": n1}
        say(f"{table.name}: {table.y.size} rows, {n1} positives, repeat {repeat}")
    for (name, learner, beta, rule), values in (item for group in seen.values() for item in group.items()):
        if rule in RULES and "@" not in name:
            sets[name].setdefault(f"{learner}, F{beta:g}", {})[rule] = round(float(np.mean(values)), 4)
    return {
        "most rows": rows,
        "repeats": repeats,
        "groups": {name: summary(values, sets) for name, values in seen.items()},
        "sets": sets,
    }


def summary(values: dict[Key, list[float]], sets: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Mean F of every rule, its difference to the exact cut, and the shrunk cut against the others, by source."""
    rules = list(dict.fromkeys(rule for *_, rule in values))
    cells = list(dict.fromkeys((learner, beta) for _, learner, beta, _ in values))

    names = list(dict.fromkeys(key[0] for key in values))
    sources = list(dict.fromkeys(sets[name]["source"] for name in names))

    def by_source(rule: str, of: Iterable[tuple[str, float]]) -> Floats:
        found: dict[str, list[Any]] = defaultdict(list)
        for name in names:
            found[sets[name]["source"]] += [np.mean(values[(name, learner, beta, rule)]) for learner, beta in of]
        return np.array([np.mean(found[source]) for source in sources])

    def apart(one: str, other: str) -> dict[str, Any]:
        return compare(dict(zip(sources, by_source(one, cells) - by_source(other, cells), strict=True)))

    made: dict[str, Any] = {
        "sets": len(names),
        "sources": len(sources),
        "mean": {rule: float(by_source(rule, cells).mean()) for rule in rules},
        "minus exact": {
            f"{learner}, F{beta:g}": {
                rule: float((by_source(rule, [(learner, beta)]) - by_source("exact", [(learner, beta)])).mean())
                for rule in rules
            }
            for learner, beta in cells
        },
        "shrunk minus": {rule: apart("shrunk", rule) for rule in RULES if rule != "shrunk"},
    }
    return made


def compare(difference: Mapping[str, float]) -> dict[str, Any]:
    """Mean, spread, the 95 % interval of Student's t over sources, wins and losses, and the value of each source.

    Ten or twelve values are too few to resample: the percentiles of their resampled means lie too close together.
    """
    values = np.array(list(difference.values()))
    over = mean_interval(values.tolist(), 0.0)
    return {
        "mean": over.mean,
        "sd": float(values.std(ddof=1)) if values.size > 1 else 0.0,
        "interval": [over.low, over.high],
        "wins": int((values > 1e-9).sum()),
        "losses": int((values < -1e-9).sum()),
        "by source": {source: round(float(value), 5) for source, value in difference.items()},
    }
