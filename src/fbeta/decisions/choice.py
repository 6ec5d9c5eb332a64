"""From a rule's choice to a `Threshold`: its counts, its score, and what speaks against it."""

from __future__ import annotations

import math

from fbeta.decisions.interval import Evidence
from fbeta.decisions.problem import Problem
from fbeta.decisions.rules import Rule
from fbeta.decisions.steps import Steps, score_cells
from fbeta.decisions.threshold import Threshold
from fbeta.metrics import Confusion

#: With fewer positives a warning says so.
FEW = 20


def threshold_of(problem: Problem, rule: Rule, cut: float | None = None) -> Threshold:
    """Choose by a rule (or take a cut that it chose) and say what came of it."""
    steps = problem.steps
    cut = steps.snap(rule.choose(problem) if cut is None else cut)
    i = steps.index(cut)
    counts = Confusion(*(float(x) for x in steps.confusion(i)))
    return Threshold(
        cut,
        float(score_cells(problem.metric, counts)),
        int(steps.called[i]),
        kind=steps.kind,
        rule=str(rule),
        metric=problem.metric,
        counts=counts,
        prevalence=problem.prevalence,
        warning=warning(problem.observed, i, str(rule)),
        evidence=Evidence.of(
            problem.observed, problem.metric, i, rule.follows(problem), problem.allowed, problem.prevalence
        ),
    )


def warning(steps: Steps, index: int, rule: str = "exact") -> str | None:
    """What speaks against trusting a cut, in plain words.

    >>> warning(Steps.of([0.9, 0.1], [0, 0]), 0)
    'There are no positives among the rows, so nothing is known about finding them; tune on rows of both classes.'
    """
    said = []
    present = steps.positives * steps.rows_per_weight
    for name, mass in (("positives", steps.positives), ("negatives", steps.negatives)):
        if mass == 0:
            said.append(
                f"There are no {name} among the rows, so nothing is known about "
                f"{'finding' if name == 'positives' else 'sparing'} them; tune on rows of both classes."
            )
    if steps.scores.size == 1:
        said.append("All scores are equal, so only all or none can be called positive.")
    elif not said and index in (0, steps.scores.size):
        said.append(
            f"The cut calls {'nothing' if index == 0 else 'everything'} positive: for this metric the scores hardly "
            "tell the classes apart."
        )
    if 0 < present < FEW:
        n = math.floor(present) if present >= 1 else round(present, 2)
        said.append(
            f"Only {n} positive{'' if n == 1 else 's'}: the best cut on such rows is mostly chance; bring more rows"
            + (", or take the rule 'shrunk'." if rule == "exact" else ".")
        )
    return " ".join(said) or None
