"""Scores that do not fit one machine: a histogram of them in constant memory, which merges in any order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fbeta.decisions.calibration import sigmoid
from fbeta.decisions.inputs import LARGEST, Vector, read_rows
from fbeta.decisions.prevalence import Prevalence, check_seen, find_prevalence
from fbeta.decisions.problem import Constraints, Problem
from fbeta.decisions.rules import Rule, as_rule
from fbeta.decisions.steps import Binned, rows_per_weight, score_cells
from fbeta.decisions.threshold import Threshold
from fbeta.metrics import Confusion, as_metric
from fbeta.sealed import in_short

#: The rows of a sketch's counts: weight of positives, of negatives, rows, squared weights of positives, of negatives.
_PARTS = 5
#: Bins of a sketch at most: 640 MiB.
MOST = 1 << 24


@dataclass(frozen=True, eq=False)
class Sketch:
    r"""Counts of positives and negatives in fixed bins of the logit: constant memory, merged by adding.

    .. math:: b_k = \operatorname{sigmoid}\!\big(\text{low} + k\,\tfrac{\text{high} - \text{low}}{\text{bins} - 2}\big)

    Only the ends of bins can cut. The best cut of all scores lies in some bin, from (TP, FP) = (TP_k, FP_k) above it
    to (TP_{k+1}, FP_{k+1}) below, so for a metric that rises with TP and falls with FP the score lost is at most

    .. math:: \max_k M(TP_{k+1}, FP_k) - \max_k M(TP_k, FP_k)

    which `lost` computes from the sketch alone. 4,096 bins (160 kB) resolve 1 % of the odds between 2e-9 and 1 − 2e-9;
    what lies beyond is one bin at each end. Without weights, and with targets 0 and 1, merging is exact: associative
    and commutative to the bit. `kind` is "probability", or "logit" for logits (and any numbers from `low` to `high`).

    Randomised quantile sketches (KLL, t-digest) adapt to the scores, but merge in an order-dependent way and bound
    ranks, not the score: for a metric of rare positives that says little.

    >>> a = Sketch().add([0.9, 0.8], [1, 1])
    >>> b = Sketch().add([0.3, 0.1], [0, 0])
    >>> a.merge(b).tune("fbeta:beta=1").score, a.merge(b).lost("fbeta:beta=1")
    (1.0, 0.0)
    """

    bins: int = 4096
    low: float = -20.0
    high: float = 20.0
    kind: str = "probability"
    counts: Vector = field(default_factory=lambda: np.empty((_PARTS, 0)), repr=False)

    def __post_init__(self) -> None:
        if isinstance(self.bins, bool) or not isinstance(self.bins, int | np.integer) or not 4 <= self.bins <= MOST:
            raise ValueError(f"bins must be a whole number from 4 to {MOST:,}; got {self.bins!r:.30}.")
        if not (np.isfinite(self.low) and np.isfinite(self.high) and self.low < self.high):
            raise ValueError(f"low < high must be finite logits; got {self.low!r} and {self.high!r}.")
        if self.kind not in ("probability", "logit"):
            raise ValueError(f"kind must be 'probability' or 'logit'; got {self.kind!r}.")
        counts = np.asarray(self.counts, dtype=np.float64)
        if counts.size == 0:
            counts = np.zeros((_PARTS, self.bins))
        sound = counts.shape == (_PARTS, self.bins) and (np.isfinite(counts) & (counts >= 0)).all()
        if not sound or counts[2].sum() > 2**53:
            raise ValueError(f"counts must be from 0, of shape {(_PARTS, self.bins)}; got {counts.shape}.")
        object.__setattr__(self, "counts", counts)

    @cached_property
    def edges(self) -> Vector:
        """The scores at which bins begin, all but the lowest bin's, which has no end."""
        x = np.linspace(self.low, self.high, self.bins - 1)
        edges: Vector = x if self.kind == "logit" else sigmoid(x)
        return edges

    def add(self, scores: ArrayLike, target: ArrayLike | None = None, weight: ArrayLike | None = None) -> Sketch:
        """A sketch with these rows as well; without a target for `adapt`, which looks at scores alone.

        Shape: inputs ``(n,)``.
        """
        target = np.zeros(np.shape(scores)) if target is None else target
        s, y, w = read_rows(scores, target, weight)
        if self.kind == "probability" and not ((s >= 0) & (s <= 1)).all():
            raise ValueError("Scores outside [0, 1] are not probabilities; for logits use Sketch(kind='logit').")
        at = np.searchsorted(self.edges, s.astype(np.float64, copy=False), side="right")
        v = np.ones(s.size) if w is None else w
        parts = v * y, v * (1 - y), np.ones(s.size), v * v * y, v * v * (1 - y)
        added = [np.bincount(at, part, minlength=self.bins) for part in parts]
        return replace(self, counts=self.counts + np.stack(added))

    def merge(self, *others: Sketch) -> Sketch:
        """One sketch of all rows; the grids must be the same."""
        total = self.counts
        for other in others:
            if other._grid != self._grid:
                raise ValueError(f"Only sketches with the same bins merge; got {self} and {other}.")
            total = total + other.counts
        return replace(self, counts=total)

    __add__ = merge

    def tune(
        self,
        metric: Any,
        *,
        rule: Rule | str = "exact",
        subject_to: Mapping[Any, float] | None = None,
        budget: float | None = None,
        prevalence: float | None = None,
        confidence: float | None = None,
        abstain: float | str | None = None,
    ) -> Threshold:
        """The cut by a rule among the ends of bins; arguments as in `fbeta.tune`."""
        constraints = Constraints.read(subject_to, budget, confidence, abstain)
        return as_rule(rule).threshold(Problem.read(self.steps, metric, constraints, prevalence))

    def adapt(self, new: Sketch, cut: float = np.inf) -> Prevalence:
        """The share of positives among new rows, from their scores alone: see `find_prevalence`.

        ``tune(…, prevalence=whole.adapt(new).value)`` is the cut for them. `cut`, of the same scores as those in
        the sketch, gives the cross-check by its confusion matrix.

        >>> rng = np.random.default_rng(0)
        >>> whole = Sketch(kind="logit").add(rng.normal(3 * (np.arange(2000) < 200)), np.arange(2000) < 200)
        >>> whole.adapt(Sketch(kind="logit").add(rng.normal(3 * (np.arange(2000) < 800)))).moved
        True
        """
        if new._grid != self._grid:
            raise ValueError(f"Only sketches with the same bins can be compared; got {self} and {new}.")
        scores, rows = new.rows
        check_seen(self.steps.scores, scores, rows, self.kind)
        return find_prevalence(self.steps, scores, rows, cut)

    @property
    def rows(self) -> tuple[Vector, Vector]:
        """The middles of the bins that hold rows, and how many rows each holds."""
        if not self.counts[2].any():
            return np.empty(0), np.empty(0)
        steps = self.steps
        return steps.scores, np.diff(steps.called).astype(np.float64)

    def lost(self, metric: Any) -> float:
        """At most so much more would the best cut of all scores have scored than the best end of a bin.

        NaN for a metric that does not rise with TP and fall with FP: then nothing is promised.
        """
        wanted, steps = as_metric(metric), self.steps
        with np.errstate(divide="ignore", invalid="ignore"):
            gains = np.concatenate([np.ravel(g) for g in wanted.gains(steps.confusion())])
        gains = gains[~np.isnan(gains)]
        tp, fp = steps.tp[1:], steps.fp[:-1]
        hoped = score_cells(wanted, Confusion(tp, fp, steps.positives - tp, steps.negatives - fp))
        values = steps.values(wanted)
        # Against the largest: an opaque formula has differences for slopes, and those have noise.
        falls = gains.size == 0 or gains.min() < -1e-6 * np.abs(gains).max()
        if falls or np.isnan(hoped).all() or np.isnan(values).all():
            return float("nan")
        return max(0.0, float(np.nanmax(hoped)) - float(np.nanmax(values)))

    @property
    def steps(self) -> Binned:
        """The bins that hold rows, from the top."""
        hit, miss, rows = self.counts[:3, ::-1]
        filled = np.flatnonzero(rows)
        if filled.size == 0:
            raise ValueError("The sketch holds no rows; add some first.")
        ends = np.concatenate([self.edges[::-1], [-np.inf]])
        x = np.linspace(self.low, self.high, self.bins - 1)
        middles = np.concatenate([[x[0]], x[1:] / 2 + x[:-1] / 2, [x[-1]]])[::-1]
        scores = (middles if self.kind == "logit" else sigmoid(middles))[filled]
        tp, fp, called = (np.append(0.0, np.cumsum(part[filled])) for part in (hit, miss, rows))
        share = rows_per_weight((tp[-1], fp[-1]), tuple(self.counts[3:].sum(axis=1).tolist()))
        return Binned(scores, tp, fp, called.astype(np.int64), share, kind=self.kind, ends=ends[filled])

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON: the grid, and the bins that hold rows."""
        filled = np.flatnonzero(self.counts[2])
        return {**self._grid, "filled": filled.tolist(), "counts": self.counts[:, filled].tolist()}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Sketch:
        """Read `to_dict` back.

        >>> a = Sketch().add([0.9, 0.8], [1, 0])
        >>> bool((Sketch.from_dict(a.to_dict()).counts == a.counts).all())
        True
        """
        try:
            made = cls(int(data["bins"]), float(data["low"]), float(data["high"]), str(data["kind"]))
            counts = np.zeros_like(made.counts)
            filled, found = np.array(data["filled"], dtype=np.int64), np.array(data["counts"], dtype=float)
            if found.shape != (_PARTS, filled.size):
                raise ValueError(f"counts of shape {found.shape} for {filled.size} bins")
            hit, miss, rows, *squares = found
            with np.errstate(all="ignore"):  # a sum's square is at most the number of rows times the sum of squares
                sound = (np.square([hit, miss]) <= rows * np.array(squares) * (1 + 1e-6) + 1e-300).all()
            if not (sound and rows.all() and found.max(initial=0.0) <= LARGEST**2):
                raise ValueError("weights that no rows have")
            counts[:, filled] = found
            return replace(made, counts=counts)
        except (KeyError, IndexError, TypeError, ValueError, OverflowError) as error:
            raise ValueError(f"This is not what Sketch.to_dict wrote ({in_short(error)}); write it again.") from error

    @property
    def _grid(self) -> dict[str, Any]:
        low, high = float(self.low), float(self.high)
        return {"bins": int(self.bins), "low": low, "high": high, "kind": self.kind}
