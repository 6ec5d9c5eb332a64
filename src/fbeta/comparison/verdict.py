"""From outcomes of all methods on all splits to what is said about them, which may not oversell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from fbeta.comparison import judging
from fbeta.comparison.judging import Judged, known
from fbeta.comparison.methods import Method, baseline_of
from fbeta.comparison.plan import Split
from fbeta.comparison.result import Candidate, Choice, Comparison, Difference, Interval
from fbeta.comparison.result import Table as Described
from fbeta.comparison.statistics import bootstrap_interval, corrected_t, mean_interval, paired_bootstrap, reach
from fbeta.learners.learner import Course
from fbeta.metrics import Metric, title
from fbeta.tables import Table

#: A difference with a p value from here on is called noise.
LEVEL = 0.05


def compared(
    table: Table,
    metric: Metric,
    methods: Sequence[Method],
    judged: Sequence[Mapping[Method, Judged]],
    splits: Sequence[Split],
    rule: str,
) -> Comparison:
    """Set every method against the one that was fixed beforehand, and say which to take; `judged` is one per split."""
    fixed = baseline_of(methods)
    judge = _Judge(table, metric, splits)
    base = [found[fixed] for found in judged]
    candidates = {}
    for method in methods:
        mine = [found[method] for found in judged]
        candidates[method] = Candidate(
            method.name,
            method.model,
            method.loss,
            rule,
            tuple(x.outcome for x in mine),
            judge.score(mine),
            judge.interval([x.outcome.at_half for x in mine]),
            None if method == fixed else judge.difference(mine, base),
            judging.operating(mine),
            judging.calibration(mine),
            _mean_course([x.course for x in mine]),
        )
    winner, baseline = max(candidates.values(), key=lambda c: known(c.inner)), candidates[fixed]
    picks = [max(methods, key=lambda m: known(found[m].outcome.inner)) for found in judged]
    picked = [found[method] for method, found in zip(picks, judged, strict=True)]
    choice = Choice(tuple(m.name for m in picks), judge.score(picked), judge.difference(picked, base))
    roles, named = table.roles, title(metric)
    facts = len(table), int(table.y.sum()), len(table.columns), tuple(table.notes)
    return Comparison(
        Described(table.name, table.target, table.positive, *facts, roles.group, roles.time, roles.dropped),
        str(metric),
        named,
        tuple(candidates.values()),
        baseline.name,
        winner.name,
        recommendation(named, winner, baseline, choice),
        seeds=len(splits),
        choice=choice,
        advised=advised(winner, baseline, choice),
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

    def score(self, found: Sequence[Judged]) -> Interval:
        if len(found) > 1:
            return self.interval([x.outcome.score for x in found])
        return bootstrap_interval(self.metric, found[0].target, found[0].decided, self.group)

    def interval(self, values: Sequence[float]) -> Interval:
        return mean_interval(values, self.share, self.reach)

    def difference(self, found: Sequence[Judged], base: Sequence[Judged]) -> Difference:
        if len(found) > 1:
            apart = [a.outcome.score - b.outcome.score for a, b in zip(found, base, strict=True)]
            return corrected_t(apart, self.share, self.reach)
        one, other = found[0], base[0]
        return paired_bootstrap(self.metric, one.target, one.decided, other.decided, self.group)


def _mean_course(courses: Sequence[Course]) -> Course:
    """The mean over splits, as long as all of them went."""
    length = min(len(x.held) for x in courses)
    mean = np.mean([[x.loss[:length], x.score[:length], x.held[:length]] for x in courses], axis=0)
    return Course(*(tuple(values.tolist()) for values in mean))


def recommendation(title: str, winner: Candidate, baseline: Candidate, choice: Choice) -> str:
    """One sentence: what to take, by how much choosing so was better on rows without a say, and whether that is noise.

    The winner is chosen on out-of-fold rows of all splits, which are test rows of one another: its own test score is a
    little too good. So what counts is `choice`, made afresh in each split without a look at its test rows.
    """
    cut = f"{winner.rule} cut"
    if winner.name == baseline.name:
        return (
            f"Take {baseline.name} with the {cut}, {title} {winner.score.mean:.3f} on test rows: of the methods tried, "
            f"none did better on the rows that methods are chosen by{_but(winner)}."
        )
    found = choice.difference
    better = f"{title} {choice.score.mean:.3f} against {baseline.score.mean:.3f} of {baseline.name}"
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
    said = f"difference {found.mean:+.3f} ({found.low:+.3f} to {found.high:+.3f}), p = {found.p:.2g}"
    return said.replace("-", "−")
