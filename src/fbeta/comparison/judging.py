"""From scores to outcomes: the cut and the calibration come from inner rows, the verdict from outer ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fbeta.comparison.learned import Floats, Learned, Task, decision, held_score
from fbeta.comparison.result import Calibration, Operating, Outcome
from fbeta.decisions import curve
from fbeta.decisions.calibration import sigmoid
from fbeta.decisions.steps import score_cells
from fbeta.metrics import Confusion

#: Points of a curve, and bins of a calibration, that are kept.
POINTS, BINS = 400, 10


@dataclass(frozen=True, eq=False)
class Judged:
    """An outcome, with the probabilities and decisions of the test rows behind it."""

    outcome: Outcome
    probability: Floats
    decided: NDArray[np.bool_]
    target: NDArray[np.bool_]


def judge(task: Task, learned: Learned, rule: str) -> Judged:
    """Cut where the out-of-fold rows say, and count the test rows."""
    y, truth = task.y[task.train], task.y[task.test]
    platt, cut = decision(learned.inner, y, task.metric, rule)
    outer = platt(learned.outer)
    decided = outer >= cut.value
    counts = Confusion.from_predictions(decided * 1.0, truth)
    half = Confusion.from_predictions((learned.outer >= 0) * 1.0, truth)
    return Judged(
        Outcome(
            seed=task.seed,
            score=float(score_cells(task.metric, counts)),
            at_half=float(score_cells(task.metric, half)),
            cut=float(cut.value),
            tp=float(counts.tp),
            fp=float(counts.fp),
            fn=float(counts.fn),
            tn=float(counts.tn),
            inner=held_score(learned.inner, y, task.fold, task.metric, rule),
            brier=float(np.mean((outer - truth) ** 2)),
            seconds=learned.seconds,
            epochs=learned.rounds,
            collapse=learned.collapse or _collapse(learned, platt.slope),
        ),
        outer,
        decided,
        truth == 1,
    )


def _collapse(learned: Learned, slope: float) -> str:
    """What is wrong with scores, whoever made them; in words."""
    if slope == 0:
        return "ranks rows no better than chance"
    for word, stuck in (("everything", learned.inner >= 0), ("nothing", learned.inner < 0)):
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


def _few(cuts: Floats, tp: Floats, also: Sequence[float]) -> Any:
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
