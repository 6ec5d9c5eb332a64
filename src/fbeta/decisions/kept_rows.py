"""What a decision keeps of the rows that it was fitted on: enough to choose its cuts again for another population."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from fbeta.decisions.calibration import MOST, logit, sigmoid
from fbeta.decisions.inputs import Vector
from fbeta.decisions.interval import Evidence
from fbeta.decisions.prevalence import Prevalence, find_prevalence
from fbeta.decisions.problem import Constraints, Problem
from fbeta.decisions.rules import as_rule
from fbeta.decisions.steps import Binned
from fbeta.decisions.threshold import Threshold
from fbeta.plain_data import to_plain

#: The rows of each column are kept in about so many parts.
PARTS = 256
#: Infinite scores are as far out as this.
FARTHEST = 1e9


@dataclass(frozen=True)
class KeptRows:
    """Labelled rows of each column in parts by log odds, the range of their scores, and constraints on the cut."""

    rows: tuple[Binned, ...]
    seen: tuple[tuple[float, float], ...]
    constraints: Constraints = field(default_factory=Constraints)

    @classmethod
    def of(cls, scores: Vector, cuts: Sequence[Threshold], constraints: Mapping[str, Any]) -> Self | None:
        """The rows behind cuts of probabilities, whose scores were ``(n, K)``; None where there are none."""
        behind = [cut.evidence for cut in cuts if isinstance(cut.evidence, Evidence)]
        asked = Constraints.read(*(constraints.get(name) for name in ("subject_to", "budget", "confidence", "abstain")))
        if not behind or len(behind) < len(cuts):
            return None
        seen = tuple(zip(scores.min(0).tolist(), scores.max(0).tolist(), strict=True))
        return cls(tuple(_as_logits(evidence.parts(PARTS)) for evidence in behind), seen, asked)

    def share(self, column: int) -> float:
        """The share of positives among the rows of a column."""
        rows = self.rows[column]
        return rows.positives / (rows.positives + rows.negatives)

    def given(self, column: int, prevalence: float) -> Prevalence:
        """A population whose share is known."""
        known = self.share(column)
        return Prevalence(known, prevalence, (prevalence, prevalence), moved=prevalence != known)

    def find(self, column: int, log_odds: Vector, weight: Vector | None, cut: Threshold, raised: float) -> Prevalence:
        """The population that rows without labels come from; their log odds and the cut are raised by so much."""
        at = float(logit(cut.value, 1e-300)) if np.isfinite(cut.value) else float(cut.value)
        return find_prevalence(self.rows[column], np.clip(log_odds - raised, -FARTHEST, FARTHEST), weight, at - raised)

    def cuts(self, populations: Sequence[Prevalence], old: Sequence[Threshold]) -> list[Threshold]:
        """The cuts of all columns by the same rules, for probabilities of other populations."""
        problems = [self._problem(k, *each) for k, each in enumerate(zip(populations, old, strict=True))]
        found = list(old)
        for rule in dict.fromkeys(cut.rule for cut in old):
            mine = [k for k, cut in enumerate(old) if cut.rule == rule]
            for k, cut in zip(mine, as_rule(rule).thresholds([problems[k] for k in mine]), strict=True):
                found[k] = cut
        return found

    def _problem(self, column: int, population: Prevalence, old: Threshold) -> Problem:
        """What a rule is asked for a column of another population."""
        rows, share = self.rows[column], population.value
        totals = rows.positives, rows.negatives
        there = rows.at_prevalence(share)
        # Another share brings no rows: those at hand are as many as before.
        each = zip(totals, (there.positives, there.negatives), rows.rows_per_weight, strict=True)
        with np.errstate(over="ignore"):  # made-up files have any numbers
            hits, misses = (min(before / now * per, MOST) for before, now, per in each)
        scores, ends = sigmoid(rows.scores + population.raised), sigmoid(rows.ends + population.raised)
        moved = replace(there, scores=scores, ends=ends, kind="probability", rows_per_weight=(hits, misses))
        return Problem.read(moved, old.metric, self.constraints, share)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        names = ("scores", "tp", "fp", "called", "rows_per_weight")
        rows = [{name: getattr(r, name) for name in names} | {"ends": r.ends[:-1]} for r in self.rows]
        at_least = [(str(metric), value) for metric, value in self.constraints.at_least]
        asked = {name: getattr(self.constraints, name) for name in ("budget", "confidence", "abstain")}
        asked |= {"subject_to": at_least}
        found: dict[str, Any] = to_plain({"rows": rows, "seen": self.seen, **asked})
        return found

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read `to_dict` back; ValueError for anything else."""
        asked = dict(data["subject_to"]), data["budget"], data.get("confidence"), data.get("abstain")
        constraints = Constraints.read(*asked)
        rows, seen = tuple(map(_read_rows, data["rows"])), tuple((float(a), float(b)) for a, b in data["seen"])
        if len(seen) != len(rows) or not all(-MOST <= a <= b <= MOST for a, b in seen):
            raise ValueError("the rows it kept have no range")
        return cls(rows, seen, constraints)


def _as_logits(rows: Binned) -> Binned:
    """Parts of probabilities by their log odds; a part's score is the middle of its ends."""
    ends = logit(rows.ends, 1e-300)
    ends[-1] = -np.inf
    first, last = (float(logit(rows.scores[i], 1e-300)) for i in (0, -1))
    sides = np.concatenate([[first], ends[:-1], [last]])
    return replace(rows, scores=(sides[1:] + sides[:-1]) / 2, ends=ends, kind="logit")


def _read_rows(data: Mapping[str, Any]) -> Binned:
    scores, ends, tp, fp, called = (
        np.array(data[name], dtype=np.float64) for name in ("scores", "ends", "tp", "fp", "called")
    )
    hits, misses = map(float, data["rows_per_weight"])
    n = scores.size
    sound = scores.shape == (n,) and ends.shape == (n - 1,) and tp.shape == fp.shape == called.shape == (n + 1,)
    if not (sound and n and all(np.abs(x).max(initial=0.0) <= MOST for x in (scores, ends, tp, fp, called))):
        raise ValueError("the rows it kept have no such shape")
    rising = (np.diff(x).min(initial=0.0) >= 0 and x[0] == 0 for x in (tp, fp, called))
    falling = np.diff(scores).max(initial=0.0) <= 0 and np.diff(ends).max(initial=0.0) <= 0
    positive = 0 < hits <= MOST and 0 < misses <= MOST
    few = max(called[-1], float(tp[-1]) * hits, float(fp[-1]) * misses) <= 2**53
    if not (all(rising) and falling and positive and few):
        raise ValueError("the counts of the rows it kept do not rise")
    counts = tp, fp, called.astype(np.int64)
    return Binned(scores, *counts, (hits, misses), kind="logit", ends=np.append(ends, -np.inf))
