"""From scores to outcomes to a verdict: cut and calibration come from inner rows, the verdict from outer ones."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, astuple
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fbeta.comparison.choosing import better_constant, chosen, constant_name, simplest_first
from fbeta.comparison.folder import SplitScores
from fbeta.comparison.inference import ByBlocks, ByRows, BySplits, Calls, Inference, JudgedRows, blocks
from fbeta.comparison.methods import Method, baseline_of
from fbeta.comparison.plan import Plan, Split
from fbeta.comparison.result import Calibration, Candidate, Choice, Comparison, NoSkill, Operating, Outcome, TableFacts
from fbeta.comparison.statistics import reach
from fbeta.comparison.verdict import Findings, judged_together
from fbeta.decisions import Decision, Platt, curve
from fbeta.decisions.abstention import ASK
from fbeta.decisions.calibration import sigmoid
from fbeta.decisions.steps import score_cells
from fbeta.learners.crossfit import Array
from fbeta.learners.learner import Course
from fbeta.metrics import Confusion, Metric, title
from fbeta.tables import Table

#: Points of a curve, and bins of a calibration, that are kept.
POINTS, BINS = 400, 10


class Judged(NamedTuple):
    """A method on one split: its outcome, the course of its training, and what it made of the test rows.

    `decided` with its cut (1, 0, or −1 for a person), `at_half` without; `held` are its decisions of the learning rows
    that were held out, None if no cut of theirs meets what is asked.
    """

    outcome: Outcome
    course: Course
    probability: Array
    decided: NDArray[np.int64]
    at_half: NDArray[np.bool_]
    held: NDArray[np.bool_] | None
    target: NDArray[np.bool_]


def judge(scores: SplitScores, y: NDArray[np.int64], split: Split, metric: Metric, rule: str, **limits: Any) -> Judged:
    """Decide as the out-of-fold rows say, and count the test rows; `limits`: `subject_to`, `confidence`, `abstain`."""
    learned, fold = scores.inner[split.fold >= 0], split.fold[split.fold >= 0]
    inner, truth = y[split.held], y[split.test]
    decision = decision_for(learned, inner, scores.calibration, metric, rule, **limits)
    probability, decided = decision.probability(scores.outer), decision.outcome(scores.outer)
    asked = decided == ASK
    counts = Confusion.from_predictions(decided[~asked] * 1.0, truth[~asked])
    at_half = scores.outer >= 0
    half = Confusion.from_predictions(at_half * 1.0, truth)
    held = held_calls(learned, inner, fold, scores.calibration, metric, rule, limits.get("subject_to"))
    outcome = Outcome(
        seed=split.seed,
        score=float(score_cells(metric, counts)),
        at_half=float(score_cells(metric, half)),
        cut=float(decision.cut.value),
        **{name: float(count) for name, count in asdict(counts).items()},
        inner=math.nan if held is None else float(score_cells(metric, Confusion.from_predictions(held * 1.0, inner))),
        brier=float(np.mean((probability - truth) ** 2)),
        seconds=scores.seconds,
        epochs=scores.rounds,
        collapse=scores.remark or _collapse(learned, inner),
        asked=float(asked.mean()),
    )
    return Judged(outcome, scores.course, probability, decided, at_half, held, truth == 1)


Known = tuple[Platt, ...] | None


def decision_for(
    scores: Array, y: NDArray[np.int64], known: Known, metric: Metric, rule: str, **limits: Any
) -> Decision:
    """How a method decides: its loss may imply probabilities, else these out-of-fold rows calibrate its scores."""
    return Decision.fit(scores, y, metric, kind="logit", rule=rule, calibration=known or "auto", **limits)


def held_calls(
    scores: Array,
    y: NDArray[np.int64],
    fold: NDArray[np.int64],
    known: Known,
    metric: Metric,
    rule: str,
    subject_to: Mapping[Any, float] | None = None,
) -> NDArray[np.bool_] | None:
    """Out-of-fold rows that are called positive, each fold decided as the others say: its own cut is optimistic.

    Methods are chosen by them, so constraints hold on the rows of the cut alone: a promise takes all rows. None where
    no cut of some folds meets them.
    """
    called = np.zeros(len(y), dtype=bool)
    for f in np.unique(fold):
        mine = fold == f
        try:
            decision = decision_for(scores[~mine], y[~mine], known, metric, rule, subject_to=subject_to)
        except ValueError:
            if subject_to is None:
                raise
            return None
        called[mine] = decision.decide(scores[mine])
    return called


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


def compared(
    table: Table,
    plan: Plan,
    judged: Sequence[Mapping[Method, Judged]],
    *,
    margin: float = 0.01,
    test: str = "rows",
    **made: Any,
) -> Comparison:
    """Set every method against the one that was fixed beforehand, and say which to take; `judged` is one per split.

    `made`: how long it took, and on which machine.
    """
    metric, methods, splits = plan.metric, plan.methods, plan.splits
    base = baseline_of(methods)
    inference = inference_for(table, metric, splits, margin, test)
    decided: dict[Method, Calls] = {method: [found[method].decided for found in judged] for method in methods}
    apart = {m: inference.difference(decided[m], decided[base]) for m in methods if m != base}
    differences = dict(zip(apart, judged_together(list(apart.values())), strict=True))
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
            inference.score(decided[method]),
            inference.score([x.at_half for x in mine]),
            differences.get(method),
            operating(mine),
            calibration(mine),
            Course(*map(tuple, np.mean(courses, axis=0).tolist())),
            any(part.ensemble for part in plan.parts if part.model == method.model),
        )
    order = simplest_first(methods, base)
    picks = [_pick(table, metric, [split], [found], order) for split, found in zip(splits, judged, strict=True)]
    picked = [found[method].decided for method, found in zip(picks, judged, strict=True)]
    (difference,) = judged_together([inference.difference(picked, decided[base])])
    choice = Choice(tuple(m.name for m in picks), inference.score(picked), difference)
    constant = _constant(table, metric, splits, inference, decided[base], picked)
    winner, baseline = candidates[_pick(table, metric, splits, judged, order)], candidates[base]
    roles, named, positives = table.roles, title(metric), int(table.y.sum())
    findings = Findings(named, winner, baseline, choice, constant, tuple(differences.values()), positives, margin)
    verdict = findings.verdict
    facts = len(table), positives, len(table.columns), tuple(table.notes)
    return Comparison(
        TableFacts(
            table.name, table.target, table.positive, *facts, roles.group, roles.time, roles.dropped, roles.categorical
        ),
        str(metric),
        named,
        tuple(candidates.values()),
        baseline.name,
        winner.name,
        verdict.recommendation,
        seeds=len(splits),
        folds=plan.folds,
        choice=choice,
        advised=verdict.advised,
        verdict=verdict.word,
        margin=margin,
        constant=constant,
        **made,
    )


def inference_for(table: Table, metric: Metric, splits: Sequence[Split], margin: float, test: str) -> Inference:
    """How test rows become estimates: by splits if asked for, by blocks where there are times, else by rows."""
    positives, y = float(table.y.sum()), table.y.astype(np.int64)
    within = reach(metric, positives, len(table) - positives)
    tested, deal = [split.test for split in splits], [split.deal for split in splits]
    rows = JudgedRows(y, table.group, tested, deal)
    if test == "splits":
        # Rows tested per row that is learned from; by time the first split learns from the fewest.
        return BySplits(metric, rows, max(len(s.test) / len(s.train) for s in splits), margin, within)
    if table.time is not None:
        return ByBlocks(metric, JudgedRows(y, blocks(table.time, table.group, tested), tested, deal), margin)
    held = float(np.mean([len(s.test) / (len(s.test) + len(s.train)) for s in splits]))
    return ByRows(metric, rows, margin, within, held)


def _pick(
    table: Table,
    metric: Metric,
    splits: Sequence[Split],
    judged: Sequence[Mapping[Method, Judged]],
    order: Sequence[Method],
) -> Method:
    """The method to take by the learning rows of some splits, each decided by models that did not see it."""
    learned = JudgedRows(table.y.astype(np.int64), table.group, [s.held for s in splits], [0] * len(splits))
    held = {m: [called for found in judged if (called := found[m].held) is not None] for m in order}
    able = [m for m in order if len(held[m]) == len(judged)]  # to meet what is asked
    return chosen(ByRows(metric, learned), held, able) if able else order[0]


def _constant(
    table: Table, metric: Metric, splits: Sequence[Split], inference: Inference, base: Calls, picked: Calls
) -> NoSkill:
    """The better of calling all test rows positive and none, and what decisions add to it."""
    target = np.concatenate([table.y[split.test] for split in splits])
    everything = better_constant(metric, float(target.sum()), float(len(target) - target.sum()))
    called = [np.full(len(split.test), everything) for split in splits]
    beside = judged_together([inference.difference(base, called), inference.difference(picked, called)])
    return NoSkill(constant_name(everything), inference.score(called), *beside)
