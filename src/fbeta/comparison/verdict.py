"""From outcomes of all methods on all splits to what is said about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fbeta.comparison import judging
from fbeta.comparison.judging import Judged, known
from fbeta.comparison.methods import Method, baseline_of
from fbeta.comparison.plan import Split
from fbeta.comparison.recommendation import advised, recommendation
from fbeta.comparison.result import Candidate, Choice, Comparison, Difference, Epochs, Interval
from fbeta.comparison.result import Table as Described
from fbeta.comparison.statistics import (
    bootstrap_interval,
    corrected_t,
    mean_interval,
    paired_bootstrap,
    reach,
)
from fbeta.learners.learner import Course
from fbeta.metrics import Metric, title
from fbeta.tables import Table


@dataclass(frozen=True, eq=False)
class Trial:
    """A method on one split: how training went, and how it was judged."""

    course: Course
    judged: Judged


def compared(
    table: Table,
    metric: Metric,
    methods: Sequence[Method],
    trials: Sequence[Mapping[str, Trial]],
    splits: Sequence[Split],
    rule: str,
) -> Comparison:
    """Set every method against the one that was fixed beforehand, and say which to take; `trials` are one per split."""
    results = {m.name: [found[m.name] for found in trials] for m in methods}
    fixed = baseline_of(methods)
    judge = _Judge(table, metric, splits)
    base = [x.judged for x in results[fixed.name]]
    candidates = []
    for method in methods:
        mine = [x.judged for x in results[method.name]]
        candidates.append(
            Candidate(
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
                _course([x.course for x in results[method.name]]),
            )
        )
    winner = max(candidates, key=lambda c: known(c.inner))
    picks = [
        max(methods, key=lambda m: known(results[m.name][k].judged.outcome.inner)).name
        for k in range(len(splits))
    ]
    picked = [results[name][k].judged for k, name in enumerate(picks)]
    choice = Choice(tuple(picks), judge.score(picked), judge.difference(picked, base))
    named = title(metric)
    against = next(c for c in candidates if c.name == fixed.name)
    return Comparison(
        Described(
            table.name,
            table.target,
            table.positive,
            len(table),
            int(table.y.sum()),
            len(table.columns),
            tuple(table.notes),
            table.roles.group,
            table.roles.time,
            table.roles.dropped,
        ),
        str(metric),
        named,
        tuple(candidates),
        fixed.name,
        winner.name,
        recommendation(named, winner, against, choice),
        seeds=len(splits),
        choice=choice,
        advised=advised(winner, against, choice),
    )


@dataclass(frozen=True, eq=False)
class _Judge:
    """How sure a number is: by splits where there are several, else by resampling the test rows of the one."""

    table: Table
    metric: Metric
    splits: Sequence[Split]

    @property
    def share(self) -> float:
        """Rows tested for one that is learned from; by time the first split learns from the fewest."""
        return max(len(s.test) / len(s.train) for s in self.splits)

    @property
    def group(self) -> NDArray[np.int64] | None:
        """Which test rows of the only split belong together, if any do."""
        found = self.table.group[self.splits[0].test]
        return found if len(np.unique(found)) < len(found) else None

    def score(self, found: Sequence[Judged]) -> Interval:
        if len(found) > 1:
            return self.interval([x.outcome.score for x in found])
        return bootstrap_interval(self.metric, found[0].target, found[0].decided, self.group)

    @property
    def reach(self) -> tuple[float, float]:
        """What the metric goes from and to."""
        positives = float(self.table.y.sum())
        return reach(self.metric, positives, len(self.table) - positives)

    def interval(self, values: Sequence[float]) -> Interval:
        return mean_interval(values, self.share, self.reach)

    def difference(self, found: Sequence[Judged], base: Sequence[Judged]) -> Difference:
        if len(found) > 1:
            apart = [a.outcome.score - b.outcome.score for a, b in zip(found, base, strict=True)]
            return corrected_t(apart, self.share, self.reach)
        one, other = found[0], base[0]
        return paired_bootstrap(self.metric, one.target, one.decided, other.decided, self.group)


def _course(courses: Sequence[Course]) -> Epochs:
    """The mean over splits, as long as all of them went."""
    length = min(len(x.held) for x in courses)

    def mean(name: str) -> tuple[float, ...]:
        rows = np.array([getattr(x, name)[:length] for x in courses])
        return tuple(float(v) for v in rows.mean(axis=0)) if length else ()

    return Epochs(mean("loss"), mean("score"), mean("held"))
