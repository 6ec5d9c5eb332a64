"""What was asked of every cut in a comparison, and what became of it on test rows."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fbeta.comparison.result import Candidate, Comparison
from fbeta.decisions.problem import Constraints
from fbeta.decisions.promise import Share
from fbeta.decisions.steps import score_cells
from fbeta.metrics import Confusion, Metric, as_metric
from fbeta.numerals import fixed, percent, series


def check_limits(
    subject_to: Mapping[Any, float] | None = None, confidence: float | None = None, abstain: float | str | None = None
) -> dict[str, Any]:
    """What is asked of cuts, as `Decision.fit` takes it; refused here, before anything is trained."""
    asked = Constraints.read(subject_to, None, confidence, abstain)
    for metric, least in asked.at_least if confidence is not None else ():
        Share.of(metric, least)
    limits = {"subject_to": subject_to or None, "confidence": confidence, "abstain": abstain}
    return {name: value for name, value in limits.items() if value is not None}


def for_one_of(methods: Sequence[Any], limits: Mapping[str, Any]) -> dict[str, Any]:
    """What is asked where the best of several methods is taken: each must promise more, so that this one holds."""
    if "confidence" not in limits:
        return dict(limits)
    return {**limits, "confidence": 1 - (1 - limits["confidence"]) / len(methods)}


def told(found: Comparison, limits: Mapping[str, Any]) -> str:
    """What was asked of every cut, and what it is on the test rows of all splits together; empty if nothing was.

    >>> from fbeta.comparison import compare
    >>> found = compare("breast-cancer", models="linear", losses="bce", seeds=2, folds=2, subject_to={"recall": 0.9})
    >>> found.promise[:61]
    'Asked of every cut: recall ≥ 0.9 on the rows that choose it. '
    """
    asked = [(as_metric(metric), least) for metric, least in limits.get("subject_to", {}).items()]
    candidates = [found.candidate(name) for name in dict.fromkeys([found.advised or found.winner, found.baseline])]
    said = []
    if asked:
        what = series([f"{metric} ≥ {least:g}" for metric, least in asked])
        sure = limits.get("confidence")
        where = "on the rows that choose it" if sure is None else f"in the population, with {100 * sure:g} % confidence"
        each = [f"{candidate.name} has {_scores(candidate, asked)}" for candidate in candidates]
        said.append(f"Asked of every cut: {what} {where}. On the test rows of all splits {'; '.join(each)}.")
    if "abstain" in limits:
        shares = [percent(float(np.mean([o.asked for o in c.outcomes]))) for c in candidates]
        each = [f"{share} with {candidate.name}" for share, candidate in zip(shares, candidates, strict=True)]
        said.append(f"A person decides some test rows, {series(each)}; scores are of the others.")
    return " ".join(said)


def _scores(candidate: Candidate, asked: Sequence[tuple[Metric, float]]) -> str:
    cells = np.sum([(o.tp, o.fp, o.fn, o.tn) for o in candidate.outcomes], axis=0)
    scores = ((metric, float(score_cells(metric, Confusion(*cells.tolist())))) for metric, _ in asked)
    return series([f"{metric} {fixed(score)}" for metric, score in scores])
