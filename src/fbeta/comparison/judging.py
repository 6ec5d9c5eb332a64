"""From scores to outcomes: the cut and the calibration come from inner rows, the verdict from outer ones."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fbeta.comparison.plan import Split
from fbeta.comparison.result import Calibration, Operating, Outcome
from fbeta.comparison.scores import Array, Scores
from fbeta.decisions import Decision, curve
from fbeta.decisions.calibration import sigmoid
from fbeta.decisions.steps import score_cells
from fbeta.metrics import Confusion, Metric

#: Points of a curve, and bins of a calibration, that are kept.
POINTS, BINS = 400, 10


@dataclass(frozen=True, eq=False)
class Judged:
    """An outcome, with the probabilities and decisions of the test rows behind it."""

    outcome: Outcome
    probability: Array
    decided: NDArray[np.bool_]
    target: NDArray[np.bool_]


def judge(scores: Scores, y: NDArray[np.int64], split: Split, metric: Metric, rule: str) -> Judged:
    """Decide as the out-of-fold rows say, and count the test rows."""
    inner, truth = y[split.train], y[split.test]
    decision = Decision.fit(scores.inner, inner, metric, kind="logit", rule=rule)
    probability, decided = decision.probability(scores.outer), decision.decide(scores.outer)
    counts = Confusion.from_predictions(decided * 1.0, truth)
    half = Confusion.from_predictions((scores.outer >= 0) * 1.0, truth)
    return Judged(
        Outcome(
            seed=split.seed,
            score=float(score_cells(metric, counts)),
            at_half=float(score_cells(metric, half)),
            cut=float(decision.cut.value),
            tp=float(counts.tp),
            fp=float(counts.fp),
            fn=float(counts.fn),
            tn=float(counts.tn),
            inner=held_score(scores.inner, inner, split.fold, metric, rule),
            brier=float(np.mean((probability - truth) ** 2)),
            seconds=scores.seconds,
            epochs=scores.rounds,
            collapse=scores.remark or _collapse(scores.inner, inner),
        ),
        probability,
        decided,
        truth == 1,
    )


def held_score(
    scores: Array, y: NDArray[np.int64], fold: NDArray[np.int64], metric: Metric, rule: str
) -> float:
    """The score of out-of-fold rows, the rows of each fold decided as the other folds say: what to choose a method by.

    At a cut that was tuned on the same rows a score is optimistic, and the more so the noisier the scores are.

    Shape: `scores`, `y` and `fold` ``(n,)``.

    >>> from fbeta import FBeta
    >>> scores, y = np.array([2.0, 1.0, -1.0, -2.0] * 2), np.array([1, 1, 0, 0] * 2)
    >>> held_score(scores, y, np.repeat([0, 1], 4), FBeta(1), "exact")
    1.0
    """
    called = np.zeros(len(y), dtype=bool)
    for f in np.unique(fold):
        mine = fold == f
        decision = Decision.fit(scores[~mine], y[~mine], metric, kind="logit", rule=rule)
        called[mine] = decision.decide(scores[mine])
    return float(score_cells(metric, Confusion.from_predictions(called * 1.0, y)))


def known(score: float) -> float:
    """A score to choose by: none is worse than any.

    >>> known(0.5), known(float("nan"))
    (0.5, -inf)
    """
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
    p = np.concatenate([x.probability for x in parts])
    y = np.concatenate([x.target for x in parts])
    cuts, counts = curve(p, y)
    kept = _few(cuts, np.asarray(counts.tp), [0.5, *(x.outcome.cut for x in parts)])
    n1 = float(y.sum())
    return Operating(
        tuple(float(x) for x in np.asarray(cuts)[kept]),
        tuple(float(x) for x in np.asarray(counts.tp)[kept]),
        tuple(float(x) for x in np.asarray(counts.fp)[kept]),
        n1,
        float(len(y) - n1),
    )


def _few(cuts: Array, tp: Array, also: Sequence[float]) -> Any:
    """A few hundred cuts: half evenly by rank, half by positives caught, where few rows are; and those asked for."""
    half = POINTS // 2
    ranks = np.linspace(0, len(cuts) - 1, half).round().astype(int)
    caught = np.searchsorted(tp, np.linspace(0, tp[-1], half)).clip(max=len(cuts) - 1)
    asked = len(cuts) - 1 - np.searchsorted(cuts[::-1], also).clip(max=len(cuts) - 1)  # cuts fall
    return np.unique(np.concatenate([ranks, caught, asked]))


def calibration(parts: Sequence[Judged]) -> Calibration:
    """Test rows by their probability: bins of equal width in log odds hold rare classes apart as well."""
    p = np.concatenate([x.probability for x in parts])
    y = np.concatenate([x.target for x in parts])
    edges = sigmoid(np.linspace(-6, 6, BINS + 1)[1:-1])
    place = np.digitize(p, edges)
    found = [(p[place == k].mean(), y[place == k].mean(), int((place == k).sum())) for k in np.unique(place)]
    predicted, observed, rows = zip(*found, strict=True)
    return Calibration(
        tuple(float(x) for x in predicted), tuple(float(x) for x in observed), tuple(int(x) for x in rows)
    )
