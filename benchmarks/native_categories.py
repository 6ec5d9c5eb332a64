"""Categories as boosters take them natively, against a feature per level: which ranks test rows better?

    python benchmarks/native_categories.py FOLDER    # some minutes

FOLDER holds tables whose column y is 1 for the rare class. Each is split into five folds, of which one is tested at a
time; XGBoost and LightGBM learn 200 trees at their own settings, with codes of categories (every level that learning
rows have) or with the 32 most frequent levels, as `fbeta` encodes them. The score is average precision; a table is one
unit, and the interval of the mean difference is Student's t over tables.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import stats
from sklearn.metrics import average_precision_score

from fbeta.tables import Encoder, Table, read_table, split

RESULTS = Path(__file__).resolve().parent / "results"
#: Tables that have categories, with the columns whose numbers are codes.
TABLES: dict[str, tuple[str, ...]] = {
    "car_vgood.csv.gz": ("f0", "f1", "f2", "f3", "f4", "f5"),
    "census_income_kdd.parquet": ("att3", "att4"),
    "krkopt_zero.csv.gz": tuple(
        f"{who}_{axis}" for who in ("White_King", "White_Rook", "Black_King") for axis in ("file", "rank")
    ),
    "nslkdd_test.csv.gz": (),
    "nslkdd_train20.csv.gz": (),
    "solar_flare_f.csv.gz": ("f0", "f1"),
}
ROWS, FOLDS, TREES = 30_000, 5, 200


def coded(table: Table, learned: NDArray[np.int64]) -> tuple[NDArray[np.float64], list[int]]:
    """Numbers as they are, categories as codes of the levels of learning rows; a new level is missing."""
    columns, categories = [], []
    for i, (column, series) in enumerate(zip(table.columns, table.features.get_columns(), strict=True)):
        if column.kind == "category":
            levels = series[learned].cast(pl.String).drop_nulls().unique().sort()
            codes = {level: float(code) for code, level in enumerate(levels)}
            series = series.cast(pl.String).replace_strict(codes, default=None, return_dtype=pl.Float64)
            categories.append(i)
        columns.append(series.cast(pl.Float64).fill_null(np.nan).to_numpy())
    return np.stack(columns, axis=1), categories


def lightgbm(X: Any, y: Any, test: Any, categories: list[int]) -> Any:
    """Scores of test rows."""
    import lightgbm as lgb

    data = lgb.Dataset(X, y, categorical_feature=categories, params={"verbose": -1})
    return lgb.train({"objective": "binary", "verbose": -1, "num_threads": 1}, data, TREES).predict(test)


def xgboost(X: Any, y: Any, test: Any, categories: list[int]) -> Any:
    """The same."""
    import xgboost as xgb

    kinds = ["c" if i in categories else "float" for i in range(X.shape[1])]
    made = [xgb.DMatrix(x, label, feature_types=kinds, enable_categorical=True) for x, label in ((X, y), (test, None))]
    return xgb.train({"objective": "binary:logistic", "nthread": 1}, made[0], TREES).predict(made[1])


def measure(path: Path) -> dict[str, Any]:
    """Average precision of both models with both encodings, each over all test rows of five folds."""
    table = read_table(path, "y", "1", categorical=TABLES[path.name])
    if len(table) > ROWS:
        table = table.take(np.sort(np.random.default_rng(0).permutation(len(table))[:ROWS]))
    folds, scores = split(table, FOLDS), dict[str, NDArray[np.float64]]()
    for k in range(FOLDS):
        train, test = folds.train(k), folds.test(k)
        encoder = Encoder.fit(table.features[train], table.columns)
        levels = encoder.transform(table.features).astype(np.float64)
        codes, places = coded(table, train)
        for name, fit in (("lightgbm", lightgbm), ("xgboost", xgboost)):
            for how, X, some in (("levels", levels, []), ("native", codes, places)):
                scored = scores.setdefault(f"{name} {how}", np.zeros(len(table)))
                scored[test] = stats.rankdata(fit(X[train], table.y[train], X[test], some)) / len(test)
    found = {name: float(average_precision_score(table.y, score)) for name, score in scores.items()}
    categories = [column.name for column in table.columns if column.kind == "category"]
    most = max(table.features[name].n_unique() for name in categories)
    return {"rows": len(table), "positives": int(table.y.sum()), "categories": len(categories), "levels": most, **found}


def render(found: dict[str, Any]) -> str:
    """A row per table, and the mean differences."""
    lines = [
        "# Categories: native, or a feature per level",
        "",
        f"Average precision over the test rows of {FOLDS} folds, {TREES} trees; at most {ROWS:,} rows. "
        "`python benchmarks/native_categories.py FOLDER`",
        "",
        "| table | rows | positives | categories | most levels | LightGBM, levels | native "
        "| XGBoost, levels | native |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    kinds = [f"{name} {how}" for name in ("lightgbm", "xgboost") for how in ("levels", "native")]
    for name, one in found.items():
        about = f"{one['rows']:,} | {one['positives']:,} | {one['categories']} | {one['levels']}"
        lines.append(f"| {name.split('.')[0]} | {about} | {' | '.join(f'{one[kind]:.3f}' for kind in kinds)} |")
    said = []
    for model in ("lightgbm", "xgboost"):
        more = np.array([one[f"{model} native"] - one[f"{model} levels"] for one in found.values()])
        half = stats.t.ppf(0.975, len(more) - 1) * more.std(ddof=1) / np.sqrt(len(more))
        said.append(f"{model} {more.mean():+.3f} ({more.mean() - half:+.3f} to {more.mean() + half:+.3f})")
    lines += ["", f"Native less levels, mean over {len(found)} tables with its 95 % interval: {'; '.join(said)}.", ""]
    return "\n".join(lines)


def main() -> None:
    """Measure all tables, and write them down."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("folder", type=Path)
    asked = parser.parse_args()
    found = {name: measure(asked.folder / name) for name in TABLES}
    (RESULTS / "native-categories.json").write_text(json.dumps(found, indent=1) + "\n")
    (RESULTS / "native-categories.md").write_text(render(found))


if __name__ == "__main__":
    main()
