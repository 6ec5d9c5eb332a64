"""Models of the folds averaged, against one model fitted again to all rows: see decisions.py.

Every learner of the library is fitted as its estimator fits it: one model per fold and one of all rows. Both ways to
answer get the same calibration and cut (rule "shrunk"), from the same out-of-fold scores. Averaged scores vary less
than those of one model, so that cut may be off for them: what a cut loses to the best one on the later rows, and how
many rows are called positive for each one called out of fold, are measured beside.

The rule for the default, written before the tables were measured: the models of the folds are averaged by default
where the mean of F1 and F2 rises by at least 0.2 hundredths, its interval over sources excludes 0, and the interval of
log loss does not lie above 0; not for less, because prediction takes as many times as long as there are folds, and a
file as many times the room. Boosters are judged by their estimators' own default, the tangent loss; estimators around
any model average only if every learner here does. Averaged are log odds, unless means of probabilities are better by an
interval that excludes 0.
"""

from __future__ import annotations

import itertools
import json
import statistics
import time
import warnings
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from decisions_tables import LEARN, POSITIVES, Floats, over_sources, paths, read, source
from doc_block import hundredths, table
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy.special import expit, logit

from fbeta import Confusion, Decision, FBeta, Metric, tune
from fbeta.decisions import Platt
from fbeta.learners import Goal, Rows, Scorer, models
from fbeta.tables import Encoder
from fbeta.tables.folds import folds

METRICS: dict[str, Metric] = {"F1": FBeta(1), "F2": FBeta(2)}
ESTIMATOR = {"rounds": 100, "patience": None}
#: Model, loss and settings; of plain cross entropy the same models serve both metrics.
LEARNERS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "xgboost": ("xgboost", "bce", ESTIMATOR),
    "lightgbm": ("lightgbm", "bce", ESTIMATOR),
    "logistic": ("linear", "bce", {}),
    "mlp": ("mlp", "bce", {}),
    "xgboost, tangent": ("xgboost", "tangent", ESTIMATOR),
    "lightgbm, tangent": ("lightgbm", "tangent", ESTIMATOR),
}
FOLDS = 5
WAYS = ("refit", "log odds", "probabilities")
#: What is measured of each way, and in what it is shown.
SHOWN = {"F1": "F₁", "F2": "F₂", "F": "mean of both", "log loss": "log loss", "brier": "Brier score"}


def ways(whole: Floats, parts: Sequence[Floats]) -> dict[str, Floats]:
    """Scores of rows by the model of all rows, and by those of the folds, averaged in two ways."""
    mean = expit(parts).mean(0).clip(1e-15, 1 - 1e-15)
    return dict(zip(WAYS, (whole, np.mean(parts, axis=0), logit(mean)), strict=True))


def judged(decision: Decision, scores: Floats, truth: NDArray[np.int64], metric: Metric) -> dict[str, float]:
    """The score of later rows, what the cut loses to the best one, and their probabilities."""
    called, p = decision.decide(scores), decision.probability(scores).clip(1e-12, 1 - 1e-12)
    score = float(metric(Confusion.from_predictions(called * 1.0, truth)))
    best = tune(scores, truth, metric, kind="logit", rule="exact").score
    log_loss = -float(np.mean(np.where(truth == 1, np.log(p), np.log1p(-p))))
    return {
        "score": score,
        "cut": best - score,
        "called": float(called.mean()),
        "log loss": log_loss,
        "brier": float(np.mean((p - truth) ** 2)),
    }


def costs(whole: Scorer, parts: Sequence[Scorer], X: Any) -> dict[str, float]:
    """How many times as long the folds' models take to predict, and as many bytes."""
    seconds = []
    for scorers in ([whole], parts):
        took = []
        for _ in range(3):
            began = time.process_time()
            for scorer in scorers:
                scorer(X)
            took.append(time.process_time() - began)
        seconds.append(min(took))
    sizes = [sum(len(data) for scorer in scorers for data in scorer.files().values()) for scorers in ([whole], parts)]
    return {"time": seconds[1] / max(seconds[0], 1e-9), "bytes": sizes[1] / sizes[0]}


def one(path: Path, name: str, repeat: int, rows: int) -> dict[str, dict[str, float]]:
    """What each way scores on the later rows of one split; empty with too few positives on a side."""
    table = read(path, rows)
    order = np.random.default_rng(repeat).permutation(len(table))
    first, later = np.split(order, [round(LEARN * len(table))])
    y, truth = (table.y[i].astype(np.int64) for i in (first, later))
    if truth.sum() < POSITIVES or y.sum() < 2 * FOLDS:
        return {}
    encoder = Encoder.fit(table.features[first], table.columns)
    X, new = (encoder.transform(table.features[i]) for i in (first, later))
    model, loss, settings = LEARNERS[name]
    learner = models.get(model, **settings)
    dealt = Rows(X, y[:, None], folds(y, FOLDS, seed=repeat))
    found: dict[str, dict[str, float]] = defaultdict(dict)
    kept = None
    for goal, metric in METRICS.items():
        if kept is None or loss != "bce":
            kept = learner.fit_folds(dealt, Goal(metric), [loss], seed=repeat)[loss]
            if kept.model is None:
                return {}
            parts = [scorer(new)[:, 0] for scorer in kept.of_folds]
            scores = ways(kept.model(new)[:, 0], parts)
            found["cost"] = costs(kept.model, kept.of_folds, new)
        inner = kept.scores[:, 0]
        given: Sequence[Platt] | str = "platt" if "boost" in model or "gbm" in model else kept.calibration or "auto"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            decision = Decision.fit(inner, y, metric, kind="logit", calibration=given)
        there = float(decision.decide(inner).mean())
        for way, z in scores.items():
            seen = judged(decision, z, truth, metric)
            found[way][goal] = seen["score"]
            found[way][f"cut, {goal}"] = seen["cut"]
            found[way][f"called, {goal}"] = seen["called"] / max(there, 0.5 / len(y))
            for each in ("log loss", "brier"):
                found[way][each] = found[way].get(each, 0.0) + seen[each] / len(METRICS)
    for way in WAYS:
        found[way]["F"] = float(np.mean([found[way][goal] for goal in METRICS]))
    return dict(found)


def remembered(path: Path, name: str, repeat: int, rows: int, cache: Path | None) -> dict[str, dict[str, float]]:
    """The same, kept in a folder."""
    file = cache / f"{path.name.partition('.')[0]}.{name}.{repeat}.json" if cache else None
    if file is not None and file.exists():
        found: dict[str, dict[str, float]] = json.loads(file.read_text())
        return found
    made = one(path, name, repeat, rows)
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(made))
    return made


def measure(folder: Path, rows: int, repeats: int, cache: Path | None, jobs: int) -> dict[str, Any]:
    """Every learner on every table: means over repeats by source, and intervals over sources."""
    asked = list(itertools.product(range(repeats), paths(folder), LEARNERS))
    work = Parallel(jobs)(delayed(remembered)(path, name, k, rows, cache) for k, path, name in asked)
    seen: dict[str, dict[str, list[Any]]] = {name: defaultdict(list) for name in LEARNERS}
    for (_, path, name), made in zip(asked, work, strict=True):
        if made:
            seen[name][source(path)].append(made)
    return {
        "most rows": rows,
        "repeats": repeats,
        "sources": len(next(iter(seen.values()))),
        "learners": {name: summed(of_source) for name, of_source in seen.items()},
    }


def summed(of_source: dict[str, list[Any]]) -> dict[str, Any]:
    """Means of each source, and over sources: scores of the refit, differences to it, cuts, shares called, costs."""
    by_source = {
        each: {way: {what: float(np.mean([x[way][what] for x in made])) for what in made[0][way]} for way in made[0]}
        for each, made in of_source.items()
    }

    def over(way: str, what: str, against: str | None = None) -> dict[str, Any]:
        return over_sources(x[way][what] - (x[against][what] if against else 0) for x in by_source.values())

    return {
        "refit": {what: over("refit", what) for what in SHOWN},
        "averaged": {way: {what: over(way, what, "refit") for what in SHOWN} for way in WAYS[1:]},
        "probabilities against log odds": over("probabilities", "F", "log odds"),
        "cut loses": {way: {goal: over(way, f"cut, {goal}") for goal in METRICS} for way in WAYS},
        "called": {way: {goal: over(way, f"called, {goal}") for goal in METRICS} for way in WAYS},
        "cost": {what: statistics.median(x["cost"][what] for x in by_source.values()) for what in ("time", "bytes")},
        "by source": by_source,
    }


def wins(found: dict[str, Any]) -> bool:
    """Whether the rule makes averaging the default."""
    gain, log_loss = (found["averaged"]["log odds"][what] for what in ("F", "log loss"))
    return bool(gain["mean"] >= 0.002 and gain["interval"][0] > 0 and log_loss["interval"][0] <= 0)


def render(found: dict[str, Any]) -> list[str]:
    """What averaging gains, whether the cut still fits, and what it costs."""
    lines = [
        "## Models of the folds, averaged, against one fitted again to all rows",
        "",
        f"{found['sources']} sources, {found['most rows']:,} rows of a table at most, {found['repeats']} random "
        "splits; five folds, calibration and cut (shrunk) from the same out-of-fold scores. Hundredths, mean over "
        "sources with a 95 % interval by t. Networks stop by F₁. `python benchmarks/decisions.py ensemble FOLDER`",
        "",
        "| learner | | refit | mean of log odds | mean of probabilities |",
        "|---|---|---|---|---|",
    ]
    for name, x in found["learners"].items():
        for what, words in SHOWN.items():
            shown = " | ".join(hundredths(x["averaged"][way][what]) for way in WAYS[1:])
            lines.append(f"| {name} | {words} | {100 * x['refit'][what]['mean']:.2f} | {shown} |")
    lines += [
        "",
        "What the cut loses to the best cut on the later rows, in hundredths, and how many times the share that was "
        "called positive out of fold is called of the later rows; means over sources.",
        "",
        "| learner | | "
        + " | ".join(f"{way}: loses" for way in WAYS)
        + " | "
        + " | ".join(f"{w}: calls" for w in WAYS)
        + " |",
        "|---|---|" + "---|" * 2 * len(WAYS),
    ]
    for (name, x), goal in itertools.product(found["learners"].items(), METRICS):
        loses = " | ".join(f"{100 * x['cut loses'][way][goal]['mean']:.2f}" for way in WAYS)
        called = " | ".join(f"{x['called'][way][goal]['mean']:.3f}" for way in WAYS)
        lines.append(f"| {name} | {goal} | {loses} | {called} |")
    lines += [
        "",
        "| learner | times as long to predict | times the bytes | averaged by the rule |",
        "|---|---|---|---|",
    ]
    for name, x in found["learners"].items():
        cost = x["cost"]
        lines.append(f"| {name} | {cost['time']:.1f} | {cost['bytes']:.1f} | {'yes' if wins(x) else 'no'} |")
    return [*lines, ""]


def summary(found: dict[str, Any]) -> str:
    """What docs/decisions.md says."""
    learners = found["learners"]
    gains = ([name, hundredths(x["averaged"]["log odds"]["F"])] for name, x in learners.items())
    chosen = [name for name, x in learners.items() if wins(x)]

    def called(way: str) -> str:
        shares = [x["called"][way][goal]["mean"] for x in learners.values() for goal in METRICS]
        return f"{min(shares):.2f} to {max(shares):.2f}"

    return (
        f"**Measured, and nothing sure.** {found['sources']} sources, hundredths of F (mean of F₁ and F₂) by which the "
        "mean log odds of the folds' models are better than one model fitted again to all rows:\n\n"
        + table(["learner", "gain"], gains)
        + "\n\nBy a rule written beforehand (at least 0.2, an interval above 0, log loss not worse), because "
        f"prediction takes five times as long, it is the default of {', '.join(chosen) or 'none of them'}. Of later "
        f"rows it calls "
        f"{called('log odds')} times the share that was called out of fold, one model {called('refit')}, the mean of "
        f"probabilities {called('probabilities')} "
        "([decisions-ensemble.md](../benchmarks/results/decisions-ensemble.md))."
    )
