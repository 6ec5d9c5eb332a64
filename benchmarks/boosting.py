"""Boosters trained and cut for F½, F₁ and F₂, against the same boosters as people use them today.

    python benchmarks/boosting.py quality --tabular DIR --creditcard DIR    # an hour or two on one core; resumes
    python benchmarks/boosting.py speed                                     # 1M rows, 30 columns, 100 rounds

Every method sees the same rows and, where it has folds, the same five. mammography, page_blocks0 and campaign are
split into five outer folds, one a repeat; creditcard by time, at five dates. Files: NAME.csv.gz with a header and y
last, creditcard_f32.parquet. Tables go to benchmarks/results/boosting.{json,md} unless `--dry`; each command keeps the
other's. Every finished repeat is written at once, and the same command goes on from there; `--again` starts anew.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import boosting_page
import boosting_speed
import doc_block
import lightgbm
import numpy as np
import polars
import xgboost
from numpy.typing import NDArray
from sklearn.metrics import fbeta_score, make_scorer
from sklearn.model_selection import PredefinedSplit, TunedThresholdClassifierCV

from fbeta import Confusion, FBeta
from fbeta.boosting import LGBMMetricClassifier, XGBMetricClassifier
from fbeta.boosting.classifier import BoosterClassifier
from fbeta.learners.booster import MOST, Booster
from fbeta.learners.models.lightgbm import LightGBM
from fbeta.learners.models.xgboost import XGBoost
from fbeta.tables.folds import folds

RESULTS = Path(__file__).parent / "results"
BETAS = (0.5, 1.0, 2.0)
FOLDS = 5
SETS = ("creditcard", "mammography", "page_blocks0", "campaign")
LIBRARIES = ("xgboost", "lightgbm")
#: What our estimator is asked for: the 2×2, both cuts' better halves with the fold models averaged, the paper's loss.
OURS: dict[str, dict[str, Any]] = {
    "bce, own cut": {"loss": "bce", "rule": "own", "ensemble": False},
    "bce, shrunk cut": {"loss": "bce", "ensemble": False},
    "tangent, own cut": {"rule": "own", "ensemble": False},
    "tangent, shrunk cut": {"ensemble": False},
    "bce, shrunk cut, folds averaged": {"loss": "bce", "ensemble": True},
    "tangent, shrunk cut, folds averaged": {"ensemble": True},
    "surrogate, shrunk cut": {"loss": "surrogate", "ensemble": False},
}

Array = NDArray[Any]


class Split(NamedTuple):
    """Rows to learn from and rows to be judged by."""

    X: Array
    y: Array
    test: Array
    truth: Array


def table(folder: Path, name: str) -> tuple[Array, Array]:
    """Read a set: numbers, and y last."""
    data = polars.read_csv(folder / f"{name}.csv.gz")
    return data.drop("y").to_numpy().astype(np.float32), data["y"].to_numpy().astype(int)


def outer_folds(X: Array, y: Array) -> Iterator[Split]:
    """Five splits, every row judged once."""
    fold = folds(y, 5, seed=1)
    for k in range(5):
        yield Split(X[fold != k], y[fold != k], X[fold == k], y[fold == k])


def by_time(folder: Path) -> Iterator[Split]:
    """Five dates: learn from what came before, be judged by the 30 % of rows after it (they overlap)."""
    data = polars.read_parquet(folder / "creditcard_f32.parquet")
    X = data.drop("Time", "Class").to_numpy().astype(np.float32)
    y = data["Class"].to_numpy().astype(int)
    for share in (0.5, 0.55, 0.6, 0.65, 0.7):
        now, end = int(share * len(y)), int((share + 0.3) * len(y))
        yield Split(X[:now], y[:now], X[now:end], y[now:end])


def splits(name: str, tabular: Path, creditcard: Path) -> list[Split]:
    """One set, read and split."""
    return list(by_time(creditcard) if name == "creditcard" else outer_folds(*table(tabular, name)))


#: Models of the split in hand: methods that differ in the cut alone share their fits, which are deterministic.
REMEMBERED: dict[Any, Any] = {}


class RememberingXGB(XGBoost.engine):  # type: ignore[misc, valid-type]
    """XGBoost that fits the same thing once."""

    def fit(self, rows: Any, y: Any, weight: Any) -> Booster:
        """Fit, or remember."""
        return remembered(self, super().fit, rows, y, weight)


class RememberingLGBM(LightGBM.engine):  # type: ignore[misc, valid-type]
    """LightGBM that fits the same thing once."""

    def fit(self, rows: Any, y: Any, weight: Any) -> Booster:
        """Fit, or remember."""
        return remembered(self, super().fit, rows, y, weight)


def remembered(learner: Any, fit: Callable[..., Booster], rows: Any, y: Any, weight: Any) -> Booster:
    """Fit, or give the model of the same rows, weights and loss."""
    w = np.ones(len(y)) if weight is None else weight
    key = type(learner).__name__, str(learner.objective), hash(rows.tobytes()), hash(w.round(12).tobytes())
    if key not in REMEMBERED:
        REMEMBERED[key] = fit(rows, y, w)
    found: Booster = REMEMBERED[key]
    return found


class OnceXGBoost(XGBoost):
    """XGBoost that fits the same thing once, for a metric."""

    engine = RememberingXGB


class OnceLightGBM(LightGBM):
    """LightGBM that fits the same thing once, for a metric."""

    engine = RememberingLGBM


class XGB(XGBMetricClassifier):
    """As users get it, but fitting the same thing once."""

    _learner = OnceXGBoost


class LGBM(LGBMMetricClassifier):
    """As users get it, but fitting the same thing once."""

    _learner = OnceLightGBM


class PlainXGB(xgboost.XGBClassifier):
    """XGBoost's own classifier, fitting the same thing once: the peer asks for the same folds for every β."""

    def fit(self, X: Any, y: Any, *_: Any, **__: Any) -> Any:
        """Fit, or remember."""
        return plain_remembered(self, super().fit, X, y)


class PlainLGBM(lightgbm.LGBMClassifier):
    """LightGBM's own classifier, fitting the same thing once."""

    def fit(self, X: Any, y: Any, *_: Any, **__: Any) -> Any:
        """Fit, or remember."""
        return plain_remembered(self, super().fit, X, y)


def plain_remembered(model: Any, fit: Callable[..., Any], X: Any, y: Any) -> Any:
    """Fit, or take over what a model with the same settings learned from the same rows."""
    key = type(model).__name__, repr(model.get_params()), hash(X.tobytes()), hash(y.tobytes())
    if key not in REMEMBERED:
        REMEMBERED[key] = fit(X, y)
    model.__dict__.update(REMEMBERED[key].__dict__)
    return model


def plain(library: str, **options: Any) -> Any:
    """The library's own classifier; defaults, but for the options given."""
    if library == "xgboost":
        return PlainXGB(n_jobs=1, random_state=0, **options)
    return PlainLGBM(n_jobs=1, random_state=0, verbosity=-1, deterministic=True, force_row_wise=True, **options)


def balanced(library: str, y: Array) -> dict[str, Any]:
    """How each library weighs classes."""
    if library == "xgboost":
        return {"scale_pos_weight": float((y == 0).sum() / y.sum())}
    return {"class_weight": "balanced"}


def score(predicted: Array, truth: Array, beta: float) -> float:
    """F_β of decisions."""
    return float(FBeta(beta)(Confusion.from_predictions(predicted, truth)))


def judge(library: str, split: Split, repeat: int) -> dict[str, dict[str, list[float]]]:
    """F_β for every β, and the Brier score under "brier", of every method."""
    REMEMBERED.clear()
    fold = folds(split.y, FOLDS, seed=repeat)
    inner = PredefinedSplit(fold)
    own: type[BoosterClassifier] = XGB if library == "xgboost" else LGBM
    found: dict[str, dict[str, list[float]]] = {}

    def note(method: str, model: Any, betas: tuple[float, ...]) -> None:
        predicted = model.predict(split.test)
        p = model.predict_proba(split.test)[:, 1]
        brier = float(np.mean((p - split.truth) ** 2))
        for beta in betas:
            found.setdefault(method, {})[f"{beta:g}"] = [score(predicted, split.truth, beta), brier]

    def peer(method: str, beta: float, **options: Any) -> None:
        scoring = make_scorer(fbeta_score, beta=beta, zero_division=0)
        tuned = TunedThresholdClassifierCV(plain(library, **options), scoring=scoring, cv=inner)
        try:
            tuned.fit(split.X, split.y)
        except ValueError as error:
            if "constant predictions" not in str(error):
                raise
            tuned = plain(library, **options).fit(split.X, split.y)  # no split in any tree: all it can say
        note(method, tuned, (beta,))

    # The step that our estimators take by default, for the peer too: what is left is loss and cut.
    same = {"max_delta_step": MOST}
    note("default", plain(library).fit(split.X, split.y), BETAS)
    note("default, our step", plain(library, **same).fit(split.X, split.y), BETAS)
    note("balanced", plain(library, **balanced(library, split.y)).fit(split.X, split.y), BETAS)
    for beta in BETAS:
        peer("TunedThresholdClassifierCV", beta)
        peer("TunedThresholdClassifierCV, our step", beta, **same)
        for method, options in OURS.items():
            model = own(FBeta(beta), cv=inner, n_jobs=1, **options)
            note(method, model.fit(split.X, split.y), (beta,))
    return found


def quality(kept: dict[str, Any], tabular: Path, creditcard: Path, repeats: int, save: Callable[[], None]) -> None:
    """Judge every method on every set, repeat by repeat; `save` after each."""
    about, results = kept.setdefault("sets", {}), kept.setdefault("results", {})
    kept.setdefault("seconds", 0.0)
    kept["machine"] = machine()
    for name in SETS:
        made = splits(name, tabular, creditcard)[:repeats]
        first = made[0]
        about[name] = {
            "rows": [len(first.y), len(first.truth)],
            "positives": [int(first.y.sum()), int(first.truth.sum())],
            "columns": first.X.shape[1],
        }
        for library in LIBRARIES:
            done = results.setdefault(library, {}).setdefault(name, [])
            for i in range(len(done), len(made)):
                began = time.perf_counter()
                done.append(judge(library, made[i], i))
                kept["seconds"] += time.perf_counter() - began
                print(f"{name}, {library}, repeat {i + 1}: {time.perf_counter() - began:.0f} s", flush=True)
                save()


def complete(kept: dict[str, Any]) -> bool:
    """Whether both libraries have judged all sets, with as many repeats each."""
    counts = {len(found.get(name, ())) for found in kept["results"].values() for name in SETS}
    return len(kept["results"]) == len(LIBRARIES) and len(counts) == 1 and 0 not in counts


def machine() -> dict[str, str]:
    """What it ran on."""
    return {
        "processor": platform.processor() or platform.machine(),
        "python": platform.python_version(),
        "xgboost": xgboost.__version__,
        "lightgbm": lightgbm.__version__,
        "numpy": np.__version__,
    }


def main() -> None:
    """Measure, print, and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    judged = commands.add_parser("quality")
    judged.add_argument("--tabular", type=Path, required=True)
    judged.add_argument("--creditcard", type=Path, required=True)
    judged.add_argument("--repeats", type=int, default=5)
    judged.add_argument("--again", action="store_true", help="forget finished repeats")
    timed = commands.add_parser("speed")
    timed.add_argument("--rows", type=int, default=1_000_000)
    timed.add_argument("--rounds", type=int, default=100)
    timed.add_argument("--repeats", type=int, default=5)
    timed.add_argument("--threads", type=int, default=2)
    shown = commands.add_parser("show")
    for command in (judged, timed, shown):
        command.add_argument("--dry", action="store_true", help="write no table")
    given = parser.parse_args()
    path = RESULTS / "boosting.json"
    kept: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}

    def save() -> None:
        if not given.dry:
            RESULTS.mkdir(exist_ok=True)
            path.write_text(json.dumps(kept, indent=1) + "\n")
            path.with_suffix(".md").write_text(boosting_page.render(kept))
            if "speed" in kept and "quality" in kept and complete(kept["quality"]):
                doc_block.write("boosting.md", "boosting", boosting_page.summary(kept))
                doc_block.write("boosting.md", "rare", boosting_page.rare(kept))

    # LightGBM's own classifier names columns of arrays and then misses the names.
    warnings.filterwarnings("ignore", "X does not have valid feature names")
    if given.command == "quality":
        part = {} if given.again else kept.get("quality", {})
        kept["quality"] = part
        quality(part, given.tabular, given.creditcard, given.repeats, save)
    elif given.command == "speed":
        found = boosting_speed.measure(given.rows, given.rounds, given.repeats, given.threads)
        kept["speed"] = found | {"machine": machine()}
    save()
    print(boosting_page.render(kept), end="")


if __name__ == "__main__":
    main()
