"""Find a cut."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fbeta.decisions.choice import threshold_of
from fbeta.decisions.columns import steps_of_columns, tune_columns
from fbeta.decisions.kinds import read_kind
from fbeta.decisions.problem import Constraints, Problem
from fbeta.decisions.rules import Rule, as_rule
from fbeta.decisions.steps import Steps
from fbeta.decisions.threshold import Threshold
from fbeta.metrics import Metric, as_metric


def tune(
    scores: ArrayLike,
    target: ArrayLike,
    metric: Metric | str | Any,
    weight: ArrayLike | None = None,
    *,
    kind: str | None = None,
    rule: Rule | str = "exact",
    subject_to: Mapping[Any, float] | None = None,
    budget: float | None = None,
    prevalence: Any = None,
    average: str = "macro",
) -> Threshold:
    r"""Find a cut for a metric; by default the exact best one: every distinct score is tried, after one sort.

    .. math:: \hat c = \arg\max_c M(\text{counts of } s \ge c)

    Of equal scores the cut with the fewest positives wins. Never tune on rows the model was fitted to.

    - `kind`: what the scores are: "probability", "logit", or "score" for any other number. Rules other than
      "exact" depend on it; if it is not said, a warning tells what was assumed.
    - `rule`: "exact", "plugin", "shrunk" (better with few positives), "constant", or a `Rule`; see
      `fbeta.decisions.rules`.
    - `subject_to`: metrics that must reach a value on these rows, as ``{"recall": 0.9}``.
    - `budget`: at most so many alerts on these rows. A row of weight 2 is two alerts.
    - `prevalence`: the share of positives where the cut will be used, if not that of the rows: positives and
      negatives are weighed so that they have it, for the metric, the constraints and the budget.
    - `average`: for several columns "macro" tunes each one for itself (prevalence and budget are each column's;
      `score` is the mean), "micro" all cuts together for the metric of the pooled counts, see `tune_columns`.

    Shape: `scores`, `target`, `weight` ``(n,)``, or ``(n, K)`` for K columns (weight also ``(n,)``).

    >>> tune([0.9, 0.8, 0.3, 0.1], [1, 1, 0, 0], "fbeta:beta=1")
    Threshold(value=0.55, score=1.0, n_positive=2)
    >>> tune([0.9, 0.8, 0.3, 0.1], [1, 0, 1, 0], "precision", subject_to={"recall": 1}).n_positive
    3
    >>> tune([0.9, 0.8, 0.3, 0.1], [1, 0, 1, 0], "recall", budget=1).n_positive
    1

    Reference: [lipton2014]
    """
    chosen, goal = as_rule(rule), as_metric(metric)
    constraints = Constraints.read(subject_to, budget)
    if average not in ("macro", "micro"):
        raise ValueError(f"average must be 'macro' or 'micro'; got {average!r}.")
    several = np.ndim(scores) == 2
    columns = steps_of_columns(scores, target, weight) if several else [Steps.of(scores, target, weight)]
    low, high = min(c.scores[-1] for c in columns), max(c.scores[0] for c in columns)
    kind = read_kind(kind, low, high, matters=chosen.needs_kind)
    columns = [replace(c, kind=kind) for c in columns]
    if several:
        return tune_columns(columns, goal, chosen, constraints, prevalence, average)
    return threshold_of(Problem.read(columns[0], goal, constraints, prevalence), chosen)
