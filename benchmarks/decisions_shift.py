"""What following the share of positives gains, out of sample, on the tables of a folder: see decisions.py."""

from __future__ import annotations

import itertools
import math
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from decisions_tables import LEARNERS, Floats, Scores, over_sources, paths, scored, source
from doc_block import hundredths, table
from joblib import Parallel, delayed
from numpy.typing import NDArray

from fbeta import Confusion, Decision, FBeta
from fbeta.numerals import percent

#: By how much the odds of a positive move; and draws of each table, learner and split: later rows as they are, too.
FACTORS, DRAWS, UNMOVED = (0.1, 0.3, 1.0, 3.0, 10.0), 2, 5
METRICS = {"F1": FBeta(1), "F2": FBeta(2)}
#: A draw keeps so many positives and so many rows, whatever the factor.
POSITIVES, ROWS = 8, 50
#: Sources with fewer labelled positives than this are counted apart, too.
MANY = 50


@dataclass(frozen=True)
class Draw:
    """Later rows with another share of positives: scores, truth, and by how much the odds moved."""

    factor: float
    score: Floats
    truth: NDArray[np.int64]

    @property
    def share(self) -> float:
        """The true share of positives, which nobody knows; a little inside of 0 and 1."""
        return float(np.clip(self.truth.mean(), 0.5 / self.truth.size, 1 - 0.5 / self.truth.size))


def draws(scores: Scores, seed: int) -> Iterable[Draw]:
    """Thin one class of the later rows; unmoved: all of them, and halves at random."""
    rng = np.random.default_rng(seed)
    i1, i0 = (np.flatnonzero(scores.later_truth == k) for k in (1, 0))
    for factor in FACTORS:
        for number in range(UNMOVED if factor == 1 else DRAWS):
            ones, zeros = i1, i0
            if factor < 1:
                ones = rng.choice(i1, max(POSITIVES, round(factor * i1.size)), False)
            if factor > 1:
                zeros = rng.choice(i0, max(ROWS - i1.size, round(i0.size / factor), 20), False)
            rows = np.r_[ones, zeros]
            if factor == 1 and number:
                rows = rng.choice(rows, rows.size // 2, False)
            yield Draw(factor, scores.later[rows], scores.later_truth[rows])


def peer(scores: Scores) -> Callable[[Floats], dict[str, float]]:
    """QuaPy's EMQ on the same probabilities, as they are and calibrated as it advises (bias-corrected temperatures)."""
    try:
        from abstention.calibration import TempScaling
        from quapy.method.aggregative import EMQ
    except ImportError:
        return lambda later: {}

    def two(p: Floats) -> Floats:
        return np.stack([1 - p, p], axis=1).clip(1e-9, 1)

    calibrate = TempScaling(bias_positions="all", verbose=False)(
        two(scores.inner), np.eye(2)[scores.truth], posterior_supplied=True
    )
    rate = scores.truth.mean()

    def found(later: Floats) -> dict[str, float]:
        ways = {"EMQ": two(later), "EMQ, calibrated": calibrate(two(later))}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return {name: float(EMQ.EM(np.array([1 - rate, rate]), p)[0][1]) for name, p in ways.items()}

    return found


def judge(scores: Scores, seed: int) -> Iterable[dict[str, Any]]:
    """One row per draw: the scores of every way to decide, and what was estimated."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = {
            name: Decision.fit(scores.inner, scores.truth, metric, kind="probability", calibration="none")
            for name, metric in METRICS.items()
        }
    others = peer(scores)
    for draw in draws(scores, seed):
        edge = 0.5 / draw.score.size
        shares = {name: float(np.clip(q, edge, 1 - edge)) for name, q in others(draw.score).items()}
        row: dict[str, Any] = {"factor": draw.factor}
        for name, decision in fitted.items():
            adapted = decision.adapt(draw.score)
            ways = {"fixed": decision, "adapted": adapted, "known": decision.adapt(at_prevalence=draw.share)}
            ways |= {way: decision.adapt(at_prevalence=q) for way, q in shares.items()}
            for way, each in ways.items():
                counts = Confusion.from_predictions(each.decide(draw.score) * 1.0, draw.truth)
                row[f"{way}, {name}"] = float(METRICS[name](counts))
        (found,) = adapted.prevalences
        low, high = found.interval
        row |= {"moved": found.moved, "held": low <= draw.truth.mean() <= high}
        row["misfit"] = found.remark is not None and "More than" in found.remark
        for way, q in {"adapted": float(np.clip(found.estimate, edge, 1 - edge)), **shares}.items():
            row[f"error, {way}"] = abs(math.log(q / (1 - q) / draw.share * (1 - draw.share)))
        yield row


def one(path: Path, learner: str, repeat: int, rows: int, cache: Path | None) -> tuple[list[dict[str, Any]], int]:
    """All draws of one split, and its labelled positives."""
    scores = scored(path, learner, repeat, rows, cache)
    return ([], 0) if scores is None else (list(judge(scores, repeat)), int(scores.truth.sum()))


def measure(folder: Path, rows: int, repeats: int, cache: Path | None, jobs: int) -> dict[str, Any]:
    """Every draw of every table, learner and split, and what they say together."""
    seen: dict[str, list[dict[str, Any]]] = defaultdict(list)
    positives: dict[str, list[int]] = defaultdict(list)
    asked = list(itertools.product(paths(folder), LEARNERS, range(repeats)))
    found = Parallel(jobs, verbose=5)(delayed(one)(*each, rows, cache) for each in asked)
    for (path, *_), (rows_of, count) in zip(asked, found, strict=True):
        if rows_of:
            seen[source(path)] += rows_of
            positives[source(path)].append(count)
    many = {name: draws for name, draws in seen.items() if np.mean(positives[name]) >= MANY}
    return {
        "most rows": rows,
        "repeats": repeats,
        "all": summarise(seen),
        "many": summarise(many),
        "sources": {
            name: {"positives": round(float(np.mean(positives[name])), 1), **gains_of(draws)}
            for name, draws in seen.items()
        },
    }


def gains_of(draws: list[dict[str, Any]]) -> dict[str, Any]:
    """Of one source: what adapting gains, and what knowing the share does, for every factor and metric."""
    return {
        f"{metric}, {factor:g}": {way: round(mean(draws, factor, way, metric), 4) for way in ("adapted", "known")}
        for metric in METRICS
        for factor in FACTORS
    }


def mean(draws: list[dict[str, Any]], factor: float, way: str, metric: str) -> float:
    """The mean gain over the fixed cut."""
    return float(np.mean([d[f"{way}, {metric}"] - d[f"fixed, {metric}"] for d in draws if d["factor"] == factor]))


def summarise(seen: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """Gains by factor and metric, the share of what knowing would gain, alarms, intervals, errors of estimates."""
    every = [d for draws in seen.values() for d in draws]
    ways = [name.removesuffix(", F1") for name in every[0] if name.endswith(", F1") and not name.startswith("fixed")]
    gains = {
        metric: {
            f"{factor:g}": {
                way: over_sources(mean(draws, factor, way, metric) for draws in seen.values()) for way in ways
            }
            for factor in FACTORS
        }
        for metric in METRICS
    }
    shifted = [f"{factor:g}" for factor in FACTORS if factor != 1]
    kept = {
        metric: {
            way: sum(found[f][way]["mean"] for f in shifted) / sum(found[f]["known"]["mean"] for f in shifted)
            for way in ways
        }
        for metric, found in gains.items()
    }

    def rate(name: str, factor: float) -> float:
        return float(np.mean([d[name] for d in every if d["factor"] == factor]))

    def error(way: str, factor: float) -> float:
        each = [[d[f"error, {way}"] for d in draws if d["factor"] == factor] for draws in seen.values()]
        return float(np.mean([np.mean(x) for x in each]))

    errors = [name.removeprefix("error, ") for name in every[0] if name.startswith("error, ")]
    return {
        "sources": len(seen),
        "draws": len(every),
        "gains": gains,
        "share of what knowing gains": kept,
        "moved": {f"{factor:g}": rate("moved", factor) for factor in FACTORS},
        "interval held": {f"{factor:g}": rate("held", factor) for factor in FACTORS},
        "said to misfit": {f"{factor:g}": rate("misfit", factor) for factor in FACTORS},
        "error in log odds": {way: {f"{factor:g}": error(way, factor) for factor in FACTORS} for way in errors},
    }


def render(found: dict[str, Any]) -> list[str]:
    """The page: gains, alarms, errors, every source."""
    lines = [
        "## The share of positives moves",
        "",
        f"At most {found['most rows']:,} rows a table, {found['repeats']} random splits: {LEARN_WORDS}. The odds of a "
        "positive among later rows are moved by leaving out rows of one class (at least 8 positives and 50 rows stay). "
        "Hundredths of F above the cut as it was fitted, mean over sources with a 95 % interval by t. "
        "`python benchmarks/decisions.py shift FOLDER`",
        "",
    ]
    for title, part in (("All sources", found["all"]), (f"With {MANY} labelled positives or more", found["many"])):
        lines += [f"### {title} ({part['sources']}; {part['draws']:,} draws)", ""]
        ways = [*part["error in log odds"], "known"]
        lines += ["| metric | odds × | " + " | ".join(ways) + " |", "|---|---|" + "---|" * len(ways)]
        for metric, by_factor in part["gains"].items():
            for factor, row in by_factor.items():
                shown = " | ".join(hundredths(row[way]) for way in ways)
                lines.append(f"| {metric} | {factor} | {shown} |")
        kept = {metric: x["adapted"] for metric, x in part["share of what knowing gains"].items()}
        lines += [
            "",
            "Of what knowing the share gains, `adapt` keeps "
            + ", ".join(f"{percent(x)} ({metric})" for metric, x in kept.items())
            + f". Unmoved, it says 'moved' in {percent(part['moved']['1'])} of draws.",
            "",
            "| odds × | said to have moved | interval holds the share | said to misfit | "
            + " | ".join(f"error of {way}" for way in part["error in log odds"])
            + " |",
            "|---|---|---|---|" + "---|" * len(part["error in log odds"]),
        ]
        for factor in part["moved"]:
            rates = " | ".join(percent(part[name][factor]) for name in ("moved", "interval held", "said to misfit"))
            errors = " | ".join(f"{x[factor]:.3f}" for x in part["error in log odds"].values())
            lines.append(f"| {factor} | {rates} | {errors} |")
        lines += ["", "Errors are mean absolute differences of log odds between the estimate and the true share.", ""]
    lines += ["### Every source: hundredths that adapting / knowing gains", ""]
    cells = [name for name in next(iter(found["sources"].values())) if name != "positives"]
    lines += ["| source | positives | " + " | ".join(cells) + " |", "|---|---|" + "---|" * len(cells)]
    for name, row in found["sources"].items():
        shown = " | ".join(f"{100 * row[c]['adapted']:+.1f} / {100 * row[c]['known']:+.1f}" for c in cells)
        lines.append(f"| {name} | {row['positives']:g} | {shown} |")
    return [*lines, ""]


LEARN_WORDS = "60 % to learn from (logistic regression or boosted trees, out-of-fold scores, a shrunk cut), 40 % later"


def summary(found: dict[str, Any]) -> str:
    """What docs/decisions.md says."""
    part, many = found["all"], found["many"]
    kept, more = (
        " and ".join(percent(x["share of what knowing gains"][name]["adapted"]) for name in METRICS)
        for x in (part, many)
    )
    gains = {factor: [part["gains"][name][factor]["adapted"] for name in METRICS] for factor in part["moved"]}
    return (
        f"**Measured** on later rows of {part['sources']} sources, logistic regression and boosted trees; hundredths "
        "of F by which `adapt` is above the cut as it was fitted:\n\n"
        + table(["odds of a positive ×", "F₁", "F₂"], ([f, *map(hundredths, cells)] for f, cells in gains.items()))
        + f"\n\nThat is {kept} (F₁ and F₂) of what knowing the share gains; on the {many['sources']} sources with "
        f"{MANY} labelled positives or more {more}. Where nothing moved it says so in "
        f"{percent(1 - part['moved']['1'])} of draws. With fewer positives most moves cannot be told "
        "from chance, and nothing changes "
        "([decisions-shift.md](../benchmarks/results/decisions-shift.md))."
    )
