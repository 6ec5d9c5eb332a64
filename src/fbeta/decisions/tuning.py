"""Find a cut, or one per column: each for itself (macro), or all for the metric of the pooled counts (micro)."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike

from fbeta.decisions.class_rule import NO_CUT, ClassRule
from fbeta.decisions.inputs import read_array, read_kind
from fbeta.decisions.problem import Constraints, Problem
from fbeta.decisions.row_cut import cut_rows
from fbeta.decisions.rules import Rule, as_rule
from fbeta.decisions.steps import Steps
from fbeta.decisions.threshold import Threshold
from fbeta.metrics import Confusion, Metric, as_metric


@overload
def tune(
    scores: ArrayLike,
    target: ArrayLike,
    metric: Metric | str | Any,
    weight: ArrayLike | None = None,
    *,
    exclusive: Literal[True],
    kind: str | None = None,
    rule: Rule | str = "exact",
    average: str = "macro",
) -> ClassRule: ...


@overload
def tune(
    scores: ArrayLike,
    target: ArrayLike,
    metric: Metric | str | Any,
    weight: ArrayLike | None = None,
    *,
    exclusive: Literal[False] | None = None,
    kind: str | None = None,
    rule: Rule | str = "exact",
    subject_to: Mapping[Any, float] | None = None,
    budget: float | None = None,
    prevalence: Any = None,
    average: str = "macro",
    empty: float = 1.0,
    confidence: float | None = None,
    abstain: float | str | None = None,
) -> Threshold: ...


def tune(
    scores: ArrayLike,
    target: ArrayLike,
    metric: Metric | str | Any,
    weight: ArrayLike | None = None,
    *,
    exclusive: bool | None = None,
    kind: str | None = None,
    rule: Rule | str = "exact",
    subject_to: Mapping[Any, float] | None = None,
    budget: float | None = None,
    prevalence: Any = None,
    average: str = "macro",
    empty: float = 1.0,
    confidence: float | None = None,
    abstain: float | str | None = None,
) -> Threshold | ClassRule:
    r"""Find a cut for a metric; by default the exact best one: every distinct score is tried, after one sort.

    .. math:: \hat c = \arg\max_c M(\text{counts of } s \ge c)

    Of equal scores the cut with the fewest positives wins. Never tune on rows the model was fitted to.

    - `kind`: what the scores are: "probability", "logit", or "score" for any other number. Rules other than
      "exact" depend on it; if they are not told, a warning says what was assumed.
    - `rule`: "exact", "plugin", "shrunk" (better with few positives), "pooled" (several columns that learn from each
      other), "constant", or a `Rule`; see `fbeta.decisions.rules`.
    - `subject_to`: metrics that must reach a value on these rows, as ``{"recall": 0.9}``.
    - `budget`: at most so many alerts on these rows. A row of weight 2 is two alerts.
    - `prevalence`: the share of positives where the cut will be used, if not that of the rows: positives and
      negatives are weighed so that they have it, for the metric, the constraints and the budget.
    - `average`: for several columns "macro" tunes each one for the metric of its own counts (prevalence and budget are
      each column's; `score` is the mean), "micro" all cuts together for the metric of the pooled counts; "samples"
      finds one cut of all columns for the mean of the scores that rows have by themselves (always "exact", see
      `cut_rows`).
    - `confidence`: `subject_to` holds in the population with this confidence, not just on these rows: see `Share`.
      Metrics that are shares of rows can be promised: recall, precision, specificity, accuracy, Jaccard, F₁; each
      column has a promise of its own. If nothing can be promised, the error says what can.
    - `abstain`: a person decides at most this share of the rows, those between two cuts that cost the metric most;
      "promise" hands over as few as the promise needs. See `Threshold.outcome`.
    - `empty`: what a row without positives scores if nothing is called in it ("samples" only).
    - `exclusive`: the columns are probabilities of K classes, of which each row has exactly one. Then it finds what is
      best among classes, see `ClassRule`: for the metric of each class against the rest, averaged ("macro", or
      "weighted" by the rows of a class), or for ``Cost(matrix=…)``. It is meant, too, where `scores` are ``(n, K)``,
      K > 2, and `target` is ``(n,)``, the number of each row's class. `rule` as in `gains_by_rule`.

    Shape: `scores`, `target`, `weight` ``(n,)``, or ``(n, K)`` for K columns (weight also ``(n,)``).

    >>> tune([0.9, 0.8, 0.3, 0.1], [1, 1, 0, 0], "fbeta:beta=1")
    Threshold(value=0.55, score=1.0, n_positive=2)
    >>> tune([0.9, 0.8, 0.3, 0.1], [1, 0, 1, 0], "precision", subject_to={"recall": 1}).n_positive
    3
    >>> tune([0.9, 0.8, 0.3, 0.1], [1, 0, 1, 0], "recall", budget=1).n_positive
    1
    >>> p = [[0.6, 0.3, 0.1], [0.5, 0.4, 0.1], [0.2, 0.7, 0.1], [0.5, 0.1, 0.4]]
    >>> tune(p, [0, 1, 1, 2], "f1", exclusive=True).decide(p)
    array([0, 1, 1, 2])

    Reference: [lipton2014]
    """
    chosen, goal = as_rule(rule), as_metric(metric)
    constraints = Constraints.read(subject_to, budget, confidence, abstain)
    if exclusive is None:  # two columns and a vector are rather the mistake of scores that were not cut to one
        exclusive = np.ndim(scores) == 2 and np.ndim(target) == 1 and np.shape(scores)[1] > 2
    if exclusive:
        if constraints or prevalence is not None:
            raise ValueError(NO_CUT)
        if kind not in (None, "probability"):
            raise ValueError(
                f"Classes that exclude each other are decided by probabilities; got kind={kind!r}. Give a softmax of "
                "logits, or let Decision.fit(…, exclusive=True) calibrate scores."
            )
        return ClassRule.fit(scores, target, goal, weight, rule=chosen, average=average)
    if average == "samples":
        if constraints or prevalence is not None or str(chosen) != "exact":
            raise ValueError(
                "average='samples' finds the best cut for the mean of row scores: it takes no subject_to, budget, "
                "prevalence, abstain or other rule; use average='macro' or 'micro' for these."
            )
        return cut_rows(scores, target, goal, weight, kind=kind, empty=empty)
    if average not in ("macro", "micro"):
        raise ValueError(f"average must be 'macro', 'micro' or 'samples'; got {average!r}.")
    several = np.ndim(scores) == 2
    columns = _columns(scores, target, weight) if several else [Steps.of(scores, target, weight)]
    low, high = min(c.scores[-1] for c in columns), max(c.scores[0] for c in columns)
    kind = read_kind(kind, low, high, matters=chosen.needs_kind)
    columns = [replace(c, kind=kind) for c in columns]
    if not several:
        return chosen.threshold(Problem.read(columns[0], goal, constraints, prevalence))
    if average == "micro":
        if confidence is not None or abstain is not None:
            raise ValueError("confidence and abstain are about single columns; use average='macro'.")
        if prevalence is not None:
            raise ValueError("Pooled columns have no one prevalence to move to; use average='macro'.")
        return _pooled([Problem(c, c, goal) for c in columns], chosen, constraints)
    if np.ndim(prevalence) and np.shape(prevalence) != (len(columns),):
        raise ValueError(
            f"prevalence is one number, or one per column; got {np.shape(prevalence)} for {len(columns)} columns."
        )
    rates = [None] * len(columns) if prevalence is None else np.broadcast_to(prevalence, len(columns))
    asked = zip(columns, rates, strict=True)
    each = chosen.thresholds([Problem.read(steps, goal, constraints, rate) for steps, rate in asked])
    return _together(each, float(np.mean([c.score for c in each])))


def _columns(scores: Any, target: Any, weight: Any) -> list[Steps]:
    """The counts at every cut of every column; `weight` may be one per row."""
    s, y = read_array("scores", scores), read_array("target", target)
    w = None if weight is None else read_array("weight", weight)
    if y.ndim == 1 and s.ndim == 2 and s.shape[:1] == y.shape:
        raise ValueError(
            f"{s.shape[1]} columns of scores need as many of targets; got a vector. For classes 0 … K−1 that exclude "
            "each other give exclusive=True, and for the cut between two classes scores[:, 1]."
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


def _together(each: Sequence[Threshold], score: float, counts: Confusion | None = None) -> Threshold:
    said = [f"Column {k}: {c.warning}" for k, c in enumerate(each) if c.warning is not None]
    return replace(
        each[0],
        value=np.array([c.value for c in each]),
        score=score,
        n_positive=sum(c.n_positive for c in each),
        counts=counts,
        prevalence=None if each[0].prevalence is None else np.array([c.prevalence for c in each]),
        warning=" ".join(said) or None,
        columns=tuple(each),
        evidence=None,
        asking=None,
    )


def _pooled(problems: list[Problem], rule: Rule, constraints: Constraints) -> Threshold:
    chosen = zip(problems, rule.choose_together(problems, constraints), strict=True)
    cuts = [p.steps.snap(cut) for p, cut in chosen]
    places = [p.steps.index(cut) for p, cut in zip(problems, cuts, strict=True)]
    cells = [p.steps.confusion(i) for p, i in zip(problems, places, strict=True)]
    pooled = sum(cells[1:], start=cells[0])
    totals = float(pooled.positives), float(pooled.negatives)
    each = []
    for problem, cut, place, own in zip(problems, cuts, places, cells, strict=True):
        # A column is judged by the pooled metric, with the other columns' cuts where they are.
        tp = problem.steps.tp + float(pooled.tp - own.tp)
        fp = problem.steps.fp + float(pooled.fp - own.fp)
        steps = replace(problem.steps, tp=tp, fp=fp, totals=totals)
        found = rule.threshold(Problem(steps, steps, problem.metric, constraints.met(steps)), cut)
        said = problem.warning(place, str(rule))
        each.append(replace(found, counts=Confusion(*map(float, own)), warning=said))
    return _together(each, each[0].score, Confusion(*map(float, pooled)))
