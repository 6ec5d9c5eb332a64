"""From scores to outcomes to a verdict: cut and calibration come from inner rows, the verdict from outer ones."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, astuple, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fbeta.comparison.choosing import better_constant, constant_name, simplest_first
from fbeta.comparison.curves import calibration, operating
from fbeta.comparison.folder import SplitScores
from fbeta.comparison.gains import beside_plain, learned_of, of_picks, path_to, steps
from fbeta.comparison.inference import ByBlocks, ByRows, BySplits, Calls, Inference, JudgedRows, blocks
from fbeta.comparison.methods import Method, baseline_of
from fbeta.comparison.plan import Plan, Split
from fbeta.comparison.result import Candidate, Choice, Comparison, NoSkill, Outcome, TableFacts
from fbeta.comparison.segments import segments
from fbeta.comparison.statistics import reach
from fbeta.comparison.verdict import Findings, judged_together
from fbeta.decisions import Decision, Platt
from fbeta.decisions.abstention import ASK
from fbeta.decisions.steps import score_cells
from fbeta.learners.crossfit import Array
from fbeta.learners.learner import Course
from fbeta.metrics import Confusion, Metric, title
from fbeta.tables import Table


class Judged(NamedTuple):
    """A method on one split: its outcome, the course of its training, and what it made of the test rows.

    `decided` with its cut (1, 0, or −1 for a person), `at_half` without; `held` and `held_half` are the same for
    learning rows that were held out, `held` None if no cut of theirs meets what is asked.
    """

    outcome: Outcome
    course: Course
    probability: Array
    decided: NDArray[np.int64]
    at_half: NDArray[np.bool_]
    held: NDArray[np.bool_] | None
    held_half: NDArray[np.bool_]
    target: NDArray[np.bool_]
    weight: Array


def judge(
    scores: SplitScores,
    y: NDArray[np.int64],
    split: Split,
    metric: Metric,
    rule: str,
    weight: Array | None = None,
    **limits: Any,
) -> Judged:
    """Decide as the out-of-fold rows say, and count the test rows.

    `weight` is of all rows, as `y`. `limits`: `subject_to`, `confidence`, `abstain`.
    """
    learned, fold = scores.inner[split.fold >= 0], split.fold[split.fold >= 0]
    inner, truth = y[split.held], y[split.test]
    mine = None if weight is None else weight[split.held]
    w = np.ones(len(truth)) if weight is None else weight[split.test]
    decision = decision_for(learned, inner, scores.calibration, metric, rule, mine, **limits)
    probability, decided = decision.probability(scores.outer), decision.outcome(scores.outer)
    asked = decided == ASK
    counts = Confusion.from_predictions(decided[~asked] * 1.0, truth[~asked], w[~asked])
    at_half = scores.outer >= 0
    half = Confusion.from_predictions(at_half * 1.0, truth, w)
    held = held_calls(learned, inner, fold, scores.calibration, metric, rule, mine, limits.get("subject_to"))
    inside = math.nan if held is None else score_cells(metric, Confusion.from_predictions(held * 1.0, inner, mine))
    outcome = Outcome(
        seed=split.seed,
        score=float(score_cells(metric, counts)),
        at_half=float(score_cells(metric, half)),
        cut=float(decision.cut.value),
        **{name: float(count) for name, count in asdict(counts).items()},
        inner=float(inside),
        brier=float(np.average((probability - truth) ** 2, weights=w)),
        seconds=scores.seconds,
        epochs=scores.rounds,
        collapse=scores.remark or _collapse(learned, inner),
        asked=float(asked.mean()),
    )
    return Judged(outcome, scores.course, probability, decided, at_half, held, learned >= 0, truth == 1, w)


Known = tuple[Platt, ...] | None


def decision_for(
    scores: Array,
    y: NDArray[np.int64],
    known: Known,
    metric: Metric,
    rule: str,
    weight: Array | None = None,
    **limits: Any,
) -> Decision:
    """How a method decides: its loss may imply probabilities, else these out-of-fold rows calibrate its scores."""
    return Decision.fit(scores, y, metric, weight, kind="logit", rule=rule, calibration=known or "auto", **limits)


def held_calls(
    scores: Array,
    y: NDArray[np.int64],
    fold: NDArray[np.int64],
    known: Known,
    metric: Metric,
    rule: str,
    weight: Array | None = None,
    subject_to: Mapping[Any, float] | None = None,
) -> NDArray[np.bool_] | None:
    """Out-of-fold rows that are called positive, each fold decided as the others say: its own cut is optimistic.

    Methods are chosen by them, so constraints hold on the rows of the cut alone: a promise takes all rows. None where
    no cut of some folds meets them.
    """
    called = np.zeros(len(y), dtype=bool)
    for f in np.unique(fold):
        mine = fold == f
        w = None if weight is None else weight[~mine]
        try:
            decision = decision_for(scores[~mine], y[~mine], known, metric, rule, w, subject_to=subject_to)
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


def compared(
    table: Table,
    plan: Plan,
    judged: Sequence[Mapping[Method, Judged]],
    *,
    margin: float = 0.01,
    test: str = "rows",
    short: str = "",
    **made: Any,
) -> Comparison:
    """Set every method against the one that was fixed beforehand, and say which to take; `judged` is one per split.

    `short`: what there was no time for. `made`: how long it took, and on which machine.
    """
    metric, methods, splits = plan.metric, plan.methods, plan.splits
    base = baseline_of(methods)
    inference = inference_for(table, metric, splits, margin, test)
    decided: dict[Method, Calls] = {method: [found[method].decided for found in judged] for method in methods}
    apart = {m: inference.difference(decided[m], decided[base]) for m in methods if m != base}
    differences = dict(zip(apart, judged_together(list(apart.values())), strict=True))
    beside = beside_plain(inference, decided)
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
            beside.get(method),
        )
    order = simplest_first(methods, base)
    learned = [learned_of(table, metric, [split], [found]) for split, found in zip(splits, judged, strict=True)]
    picks = [rows.chosen(order) for rows in learned]
    picked = of_picks(picks, decided)
    (difference,) = judged_together([inference.difference(picked, decided[base])])
    choice = Choice(tuple(m.name for m in picks), inference.score(picked), difference)
    constant = _constant(table, metric, splits, inference, decided[base], picked)
    winner, baseline = candidates[learned_of(table, metric, splits, judged).chosen(order)], candidates[base]
    own, named, positives = table.roles, title(metric), int(table.y.sum())
    findings = Findings(named, winner, baseline, choice, constant, tuple(differences.values()), positives, margin)
    verdict = findings.verdict
    at_half: dict[Method, Calls] = {method: [found[method].at_half for found in judged] for method in methods}
    path = path_to(picks, learned, decided, at_half, base)
    taken = decided[base] if verdict.advised == base.name else picked
    (gain,) = judged_together([inference.difference(taken, path[0].calls)])
    advised = [calls for method, calls in decided.items() if method.name == verdict.advised]
    facts = len(table), positives, len(table.columns), tuple(table.notes)
    roles = own.group, own.time, own.dropped, own.weight
    return Comparison(
        TableFacts(table.name, table.target, table.positive, *facts, *roles, categorical=own.categorical),
        str(metric),
        named,
        tuple(candidates.values()),
        baseline.name,
        winner.name,
        f"{verdict.recommendation} {short}".rstrip(),
        seeds=len(splits),
        folds=plan.folds,
        choice=choice,
        advised=verdict.advised,
        verdict=verdict.word,
        margin=margin,
        constant=constant,
        steps=steps(inference, path),
        gain=gain if verdict.advised else None,
        segments=segments(table, splits, advised[0]) if advised else (),
        **made,
    )


def inference_for(table: Table, metric: Metric, splits: Sequence[Split], margin: float, test: str) -> Inference:
    """How test rows become estimates: by splits if asked for, by blocks where there are times, else by rows."""
    y = table.y.astype(np.int64)
    within = reach(metric, *masses(table.y, table.weight))
    tested, deal = [split.test for split in splits], [split.deal for split in splits]
    rows = JudgedRows(y, table.group, tested, deal, table.weight)
    if test == "splits":
        # Rows tested per row that is learned from; by time the first split learns from the fewest.
        return BySplits(metric, rows, max(len(s.test) / len(s.train) for s in splits), margin, within)
    if table.time is not None:
        return ByBlocks(metric, replace(rows, unit=blocks(table.time, table.group, tested)), margin)
    held = float(np.mean([len(s.test) / (len(s.test) + len(s.train)) for s in splits]))
    return ByRows(metric, rows, margin, within, held)


def _constant(
    table: Table, metric: Metric, splits: Sequence[Split], inference: Inference, base: Calls, picked: Calls
) -> NoSkill:
    """The better of calling all test rows positive and none, and what decisions add to it."""
    rows = np.concatenate([split.test for split in splits])
    everything = better_constant(metric, *masses(table.y[rows], table.weight_of(rows)))
    called = [np.full(len(split.test), everything) for split in splits]
    beside = judged_together([inference.difference(base, called), inference.difference(picked, called)])
    return NoSkill(constant_name(everything), inference.score(called), *beside)


def masses(y: NDArray[Any], weight: Array | None) -> tuple[float, float]:
    """How much the positives and the negatives among some rows weigh."""
    w = np.ones(len(y)) if weight is None else weight
    return float(w @ y), float(w @ (1 - y))
