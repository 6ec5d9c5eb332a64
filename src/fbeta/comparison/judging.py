"""From scores to outcomes to a verdict: cut and calibration come from inner rows, the verdict from outer ones."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, astuple
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fbeta.comparison.folder import SplitScores
from fbeta.comparison.methods import Method, baseline_of
from fbeta.comparison.plan import Plan, Split
from fbeta.comparison.result import (
    Calibration,
    Candidate,
    Choice,
    Comparison,
    Difference,
    Estimate,
    Operating,
    Outcome,
    TableFacts,
)
from fbeta.comparison.statistics import bootstrap_interval, corrected_t, mean_interval, paired_bootstrap, reach
from fbeta.decisions import Decision, Platt, curve
from fbeta.decisions.abstention import ASK
from fbeta.decisions.calibration import sigmoid
from fbeta.decisions.steps import score_cells
from fbeta.learners.crossfit import Array
from fbeta.learners.learner import Course
from fbeta.metrics import Confusion, Metric, title
from fbeta.numerals import between, fixed, p_value, signed
from fbeta.tables import Table

#: Points of a curve, and bins of a calibration, that are kept.
POINTS, BINS = 400, 10
#: A difference with a p value from here on is called noise.
LEVEL = 0.05


class Judged(NamedTuple):
    """A method on one split: its outcome, the course of its training, and what it made of the test rows."""

    outcome: Outcome
    course: Course
    probability: Array
    decided: NDArray[np.bool_]
    target: NDArray[np.bool_]


def judge(scores: SplitScores, y: NDArray[np.int64], split: Split, metric: Metric, rule: str, **limits: Any) -> Judged:
    """Decide as the out-of-fold rows say, and count the test rows; `limits`: `subject_to`, `confidence`, `abstain`."""
    inner, truth = y[split.train], y[split.test]
    decision = decision_for(scores.inner, inner, scores.calibration, metric, rule, **limits)
    probability, decided = decision.probability(scores.outer), decision.decide(scores.outer)
    asked = decision.outcome(scores.outer) == ASK
    counts = Confusion.from_predictions(decided[~asked] * 1.0, truth[~asked])
    half = Confusion.from_predictions((scores.outer >= 0) * 1.0, truth)
    outcome = Outcome(
        seed=split.seed,
        score=float(score_cells(metric, counts)),
        at_half=float(score_cells(metric, half)),
        cut=float(decision.cut.value),
        **{name: float(count) for name, count in asdict(counts).items()},
        inner=held_score(scores.inner, inner, split.fold, scores.calibration, metric, rule, limits.get("subject_to")),
        brier=float(np.mean((probability - truth) ** 2)),
        seconds=scores.seconds,
        epochs=scores.rounds,
        collapse=scores.remark or _collapse(scores.inner, inner),
        asked=float(asked.mean()),
    )
    return Judged(outcome, scores.course, probability, decided, truth == 1)


Known = tuple[Platt, ...] | None


def decision_for(
    scores: Array, y: NDArray[np.int64], known: Known, metric: Metric, rule: str, **limits: Any
) -> Decision:
    """How a method decides: its loss may imply probabilities, else these out-of-fold rows calibrate its scores."""
    return Decision.fit(scores, y, metric, kind="logit", rule=rule, calibration=known or "auto", **limits)


def held_score(
    scores: Array,
    y: NDArray[np.int64],
    fold: NDArray[np.int64],
    known: Known,
    metric: Metric,
    rule: str,
    subject_to: Mapping[Any, float] | None = None,
) -> float:
    """The score of out-of-fold rows, each fold decided as the others say: a cut of the same rows is optimistic.

    Methods are chosen by it, so constraints hold on the rows of the cut alone: a promise takes all rows. It is NaN
    where no cut meets them.
    """
    called = np.zeros(len(y), dtype=bool)
    for f in np.unique(fold):
        mine = fold == f
        try:
            decision = decision_for(scores[~mine], y[~mine], known, metric, rule, subject_to=subject_to)
        except ValueError:
            if subject_to is None:
                raise
            return math.nan
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


def compared(table: Table, plan: Plan, judged: Sequence[Mapping[Method, Judged]], **made: Any) -> Comparison:
    """Set every method against the one that was fixed beforehand, and say which to take; `judged` is one per split.

    `made`: how long it took, and on which machine.
    """
    metric, methods = plan.metric, plan.methods
    fixed = baseline_of(methods)
    judge = _Judge(table, metric, plan.splits)
    base = [found[fixed] for found in judged]
    candidates = {}
    for method in methods:
        mine = [found[method] for found in judged]
        epochs = min(len(x.course.held) for x in mine)  # as long as all splits went
        courses = [[line[:epochs] for line in astuple(x.course)] for x in mine]
        candidates[method] = Candidate(
            method.name,
            method.model,
            method.loss,
            plan.rule,
            tuple(x.outcome for x in mine),
            judge.score(mine),
            judge.interval([x.outcome.at_half for x in mine]),
            None if method == fixed else judge.difference(mine, base),
            operating(mine),
            calibration(mine),
            Course(*map(tuple, np.mean(courses, axis=0).tolist())),
            any(part.ensemble for part in plan.parts if part.model == method.model),
        )
    winner, baseline = max(candidates.values(), key=lambda c: known(c.inner)), candidates[fixed]
    picks = [max(methods, key=lambda m: known(found[m].outcome.inner)) for found in judged]
    picked = [found[method] for method, found in zip(picks, judged, strict=True)]
    choice = Choice(tuple(m.name for m in picks), judge.score(picked), judge.difference(picked, base))
    roles, named = table.roles, title(metric)
    facts = len(table), int(table.y.sum()), len(table.columns), tuple(table.notes)
    return Comparison(
        TableFacts(table.name, table.target, table.positive, *facts, roles.group, roles.time, roles.dropped),
        str(metric),
        named,
        tuple(candidates.values()),
        baseline.name,
        winner.name,
        recommendation(named, winner, baseline, choice),
        seeds=len(plan.splits),
        folds=plan.folds,
        choice=choice,
        advised=advised(winner, baseline, choice),
        **made,
    )


class _Judge:
    """How sure a number is: by splits where there are several, else by resampling the test rows of the one."""

    def __init__(self, table: Table, metric: Metric, splits: Sequence[Split]) -> None:
        positives = float(table.y.sum())
        self.metric, self.reach = metric, reach(metric, positives, len(table) - positives)
        # Rows tested per row that is learned from; by time the first split learns from the fewest.
        self.share = max(len(s.test) / len(s.train) for s in splits)
        group = table.group[splits[0].test]
        self.group = group if len(np.unique(group)) < len(group) else None

    def score(self, found: Sequence[Judged]) -> Estimate:
        if len(found) > 1:
            return self.interval([x.outcome.score for x in found])
        return bootstrap_interval(self.metric, found[0].target, found[0].decided, self.group)

    def interval(self, values: Sequence[float]) -> Estimate:
        return mean_interval(values, self.share, self.reach)

    def difference(self, found: Sequence[Judged], base: Sequence[Judged]) -> Difference:
        if len(found) > 1:
            apart = [a.outcome.score - b.outcome.score for a, b in zip(found, base, strict=True)]
            return corrected_t(apart, self.share, self.reach)
        one, other = found[0], base[0]
        return paired_bootstrap(self.metric, one.target, one.decided, other.decided, self.group)


def recommendation(title: str, winner: Candidate, baseline: Candidate, choice: Choice) -> str:
    """One sentence: what to take, by how much choosing so was better on rows without a say, and whether that is noise.

    What counts is `choice`, made in each split without a look at its test rows; the winner's own score is too good.
    """
    cut = f"{winner.rule} cut"
    if winner.name == baseline.name:
        return (
            f"Take {baseline.name} with the {cut}, {title} {fixed(winner.score.mean)} on test rows: of the methods "
            f"tried, none did better on the rows that methods are chosen by{_but(winner)}."
        )
    found = choice.difference
    better = f"{title} {fixed(choice.score.mean)} against {fixed(baseline.score.mean)} of {baseline.name}"
    times = choice.picks.count(winner.name)
    if times < len(choice.picks):  # the numbers are not the winner's alone
        better = f"choosing afresh in each split, which took it in {times} of {len(choice.picks)}, gave {better}"
    if found.mean > 0 and found.p < LEVEL:
        return f"Take {winner.name} with the {cut}: {better} on test rows, {_apart(found)}{_but(winner)}."
    if found.mean < 0 and found.p < LEVEL:
        return (
            f"Stay with {baseline.name}: {winner.name} looked best on the rows that methods are chosen by, but on test "
            f"rows it was worse, {better}, {_apart(found)}."
        )
    simple = "take whichever is simpler for you" if found.mean > 0 else f"stay with {baseline.name}"
    return (
        f"{winner.name} looked best on the rows that methods are chosen by, but on test rows its difference to "
        f"{baseline.name} is within noise ({better}, {_apart(found)}): {simple}."
    )


def advised(winner: Candidate, baseline: Candidate, choice: Choice) -> str:
    """The method that the recommendation leaves one with: the baseline where choosing gained nothing on test rows."""
    return winner.name if choice.difference.mean > 0 else baseline.name


def _but(winner: Candidate) -> str:
    """What is odd about a method that is recommended all the same: its cut makes up for it."""
    return f"; without that cut it {winner.collapse}" if winner.collapse else ""


def _apart(found: Difference) -> str:
    p = p_value(found.p)
    ends = between(found.low, found.high, sign=True)
    return f"difference {signed(found.mean)} ({ends}), p {p if p.startswith('<') else f'= {p}'}"
