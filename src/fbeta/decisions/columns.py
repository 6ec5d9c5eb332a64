"""Several columns: each cut for itself (macro), or all for the metric of the pooled counts (micro)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from fbeta.decisions.choice import threshold_of, warning
from fbeta.decisions.problem import Constraints, Problem
from fbeta.decisions.rules import Rule
from fbeta.decisions.steps import Steps, read_array
from fbeta.decisions.threshold import Threshold
from fbeta.metrics import Confusion, Metric


def steps_of_columns(scores: Any, target: Any, weight: Any) -> list[Steps]:
    """The counts at every cut of every column.

    Shape: `scores` and `target` ``(n, K)``, `weight` ``(n, K)`` or ``(n,)``.

    >>> [steps.scores.tolist() for steps in steps_of_columns([[0.9, 0.2]], [[1, 0]], None)]
    [[0.9], [0.2]]
    """
    s, y = read_array("scores", scores), read_array("target", target)
    w = None if weight is None else read_array("weight", weight)
    if y.ndim == 1 and s.ndim == 2 and s.shape[:1] == y.shape:
        raise ValueError(
            f"{s.shape[1]} columns of scores need as many of targets; got a vector. For classes 0 … K−1 give "
            "target[:, None] == range(K), which is macro averaging, and for two classes scores[:, 1]."
        )
    if s.shape != y.shape or s.shape[1] == 0 or (w is not None and w.shape not in (s.shape, s.shape[:1])):
        raise ValueError(
            f"scores and target must have one shape (n, K); got {s.shape} and {y.shape}"
            + ("." if w is None else f", and weight {w.shape}, which is (n, K) or (n,).")
        )
    if w is not None and w.ndim == 1:
        w = np.broadcast_to(w[:, None], s.shape)
    given = scores if hasattr(scores, "detach") else s  # a tensor's type says what its cuts must be
    return [Steps.of(given[:, k], y[:, k], None if w is None else w[:, k]) for k in range(s.shape[1])]


def tune_columns(
    columns: Sequence[Steps],
    metric: Metric,
    rule: Rule,
    constraints: Constraints,
    prevalence: Any,
    average: str,
) -> Threshold:
    """Tune the cuts of K columns; `tune` calls it for scores ``(n, K)``."""
    if average == "macro":
        if np.ndim(prevalence) and np.shape(prevalence) != (len(columns),):
            raise ValueError(
                f"prevalence is one number, or one per column; got {np.shape(prevalence)} for {len(columns)} columns."
            )
        rates = [None] * len(columns) if prevalence is None else np.broadcast_to(prevalence, len(columns))
        each = [
            threshold_of(Problem.read(steps, metric, constraints, rate), rule)
            for steps, rate in zip(columns, rates, strict=True)
        ]
        return _together(each, rule, metric, float(np.mean([c.score for c in each])))
    if prevalence is not None:
        raise ValueError("Pooled columns have no one prevalence to move to; use average='macro'.")
    return _micro([Problem(c, c, metric) for c in columns], rule, constraints)


def _together(each: Sequence[Threshold], rule: Rule, metric: Metric, score: float) -> Threshold:
    said = [f"Column {k}: {c.warning}" for k, c in enumerate(each) if c.warning is not None]
    return Threshold(
        np.array([c.value for c in each]),
        score,
        sum(c.n_positive for c in each),
        kind=each[0].kind,
        rule=str(rule),
        metric=metric,
        prevalence=None if each[0].prevalence is None else np.array([c.prevalence for c in each]),
        warning=" ".join(said) or None,
        columns=tuple(each),
    )


def _micro(problems: list[Problem], rule: Rule, constraints: Constraints) -> Threshold:
    metric = problems[0].metric
    chosen = rule.choose_together(problems, constraints)
    cuts = [p.steps.snap(c) for p, c in zip(problems, chosen, strict=True)]
    cells = [p.steps.confusion(p.steps.index(c)) for p, c in zip(problems, cuts, strict=True)]
    pooled = sum(cells[1:], start=cells[0])
    totals = float(pooled.positives), float(pooled.negatives)
    each = []
    for problem, cut, own in zip(problems, cuts, cells, strict=True):
        # A column is judged by the pooled metric, with the other columns' cuts where they are.
        steps = replace(
            problem.steps,
            tp=problem.steps.tp + float(pooled.tp - own.tp),
            fp=problem.steps.fp + float(pooled.fp - own.fp),
            totals=totals,
        )
        among = Problem(steps, steps, metric, constraints.met(steps))
        said = warning(problem.steps, problem.steps.index(cut), str(rule))
        each.append(replace(threshold_of(among, rule, cut), counts=Confusion(*map(float, own)), warning=said))
    made = _together(each, rule, metric, each[0].score)
    return replace(made, counts=Confusion(*map(float, pooled)))
