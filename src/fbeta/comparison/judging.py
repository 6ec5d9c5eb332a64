"""From scores to outcomes: the cut and the calibration come from inner rows, the verdict from outer ones."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from fbeta.comparison.folder import Array, SplitScores
from fbeta.comparison.plan import Split
from fbeta.comparison.result import Calibration, Operating, Outcome
from fbeta.decisions import Decision, curve
from fbeta.decisions.calibration import sigmoid
from fbeta.decisions.steps import score_cells
from fbeta.learners.learner import Course
from fbeta.metrics import Confusion, Metric

#: Points of a curve, and bins of a calibration, that are kept.
POINTS, BINS = 400, 10


@dataclass(frozen=True, eq=False)
class Judged:
    """A method on one split: its outcome, the course of its training, and what it made of the test rows."""

    outcome: Outcome
    course: Course
    probability: Array
    decided: NDArray[np.bool_]
    target: NDArray[np.bool_]


def judge(scores: SplitScores, y: NDArray[np.int64], split: Split, metric: Metric, rule: str) -> Judged:
    """Decide as the out-of-fold rows say, and count the test rows."""
    inner, truth = y[split.train], y[split.test]
    decision = Decision.fit(scores.inner, inner, metric, kind="logit", rule=rule)
    probability, decided = decision.probability(scores.outer), decision.decide(scores.outer)
    counts = Confusion.from_predictions(decided * 1.0, truth)
    half = Confusion.from_predictions((scores.outer >= 0) * 1.0, truth)
    outcome = Outcome(
        seed=split.seed,
        score=float(score_cells(metric, counts)),
        at_half=float(score_cells(metric, half)),
        cut=float(decision.cut.value),
        **{name: float(count) for name, count in asdict(counts).items()},
        inner=held_score(scores.inner, inner, split.fold, metric, rule),
        brier=float(np.mean((probability - truth) ** 2)),
        seconds=scores.seconds,
        epochs=scores.rounds,
        collapse=scores.remark or _collapse(scores.inner, inner),
    )
    return Judged(outcome, scores.course, probability, decided, truth == 1)


def held_score(scores: Array, y: NDArray[np.int64], fold: NDArray[np.int64], metric: Metric, rule: str) -> float:
    """The score of out-of-fold rows, the rows of each fold decided as the other folds say: what to choose a method by.

    At a cut that was tuned on the same rows a score is optimistic, and the more so the noisier the scores are.

    Shape: `scores`, `y` and `fold` ``(n,)``.
    """
    called = np.zeros(len(y), dtype=bool)
    for f in np.unique(fold):
        mine = fold == f
        decision = Decision.fit(scores[~mine], y[~mine], metric, kind="logit", rule=rule)
        called[mine] = decision.decide(scores[mine])
    return float(score_cells(metric, Confusion.from_predictions(called * 1.0, y)))


def known(score: float) -> float:
    """A score to choose by: NaN is worse than any."""
    return -math.inf if math.isnan(score) else score


def _collapse(scores: Array, y: NDArray[np.int64]) -> str:
    """What is wrong with scores, whoever made them; in words."""
    if scores[y == 1].mean() <= scores[y == 0].mean():
        return "ranks rows no better than chance"
    for word, stuck in (("everything", scores >= 0), ("nothing", scores < 0)):
        if stuck.all():
            return f"predicts {word} positive"
    return ""


def operating(parts: Sequence[Judged]) -> Operating:
    """The confusion of all test rows at falling cuts, thinned to a few hundred."""
    p, y = _test_rows(parts)
    cuts, counts = curve(p, y)
    cuts, tp, fp = (np.asarray(x, dtype=np.float64) for x in (cuts, counts.tp, counts.fp))
    # Half of them evenly by rank, half by positives caught, where few rows are; and the cuts that were used.
    last, half = len(cuts) - 1, POINTS // 2
    ranks = np.linspace(0, last, half).round().astype(int)
    caught = np.searchsorted(tp, np.linspace(0, tp[-1], half)).clip(max=last)
    used = [0.5, *(x.outcome.cut for x in parts)]
    at = last - np.searchsorted(cuts[::-1], used).clip(max=last)  # cuts fall
    kept = np.unique(np.concatenate([ranks, caught, at]))
    cut, tps, fps = (tuple(x[kept].tolist()) for x in (cuts, tp, fp))
    return Operating(cut, tps, fps, float(y.sum()), float((~y).sum()))


def calibration(parts: Sequence[Judged]) -> Calibration:
    """Test rows by their probability: bins of equal width in log odds hold rare classes apart as well."""
    p, y = _test_rows(parts)
    edges = sigmoid(np.linspace(-6, 6, BINS + 1)[1:-1])
    place = np.digitize(p, edges)
    bins = [place == k for k in np.unique(place)]
    predicted, observed = (tuple(float(x[inside].mean()) for inside in bins) for x in (p, y))
    return Calibration(predicted, observed, tuple(int(inside.sum()) for inside in bins))


def _test_rows(parts: Sequence[Judged]) -> tuple[Array, NDArray[np.bool_]]:
    return np.concatenate([x.probability for x in parts]), np.concatenate([x.target for x in parts])
