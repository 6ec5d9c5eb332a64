"""A cut, and what is known about it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

import numpy as np

from fbeta.decisions.abstention import ASK, Asking
from fbeta.decisions.calibration import Platt, logit, sigmoid
from fbeta.decisions.inputs import read_array
from fbeta.decisions.interval import Evidence, Interval, RowEvidence
from fbeta.decisions.promise import Promise
from fbeta.decisions.steps import score_cells
from fbeta.metrics import Confusion, Metric, as_metric, check_prevalence, title
from fbeta.metrics.confusion import called
from fbeta.plain_data import to_plain
from fbeta.sealed import DAMAGED, in_short


@dataclass(frozen=True, eq=False)
class Threshold:
    """A cut: ``scores >= value`` is positive. ±inf calls all or none.

    `score` is the metric at the cut on the rows that it was tuned on, `n_positive` how many of them it calls
    positive, `kind` what the scores are, `rule` and `metric` what it was tuned by and for, `counts` the four cells (at
    the rate `prevalence`, if one was given), `warning` what speaks against trusting it, in words, or None.

    Shape: `value` is a number; for K columns an array ``(K,)``, and `columns` holds each one's own `Threshold`.

    >>> cut = Threshold(value=0.5, score=0.8, n_positive=3)
    >>> cut.decide([0.4, 0.5])
    array([False,  True])
    """

    value: Any
    score: float
    n_positive: int
    kind: str = field(default="score", repr=False)
    rule: str = field(default="exact", repr=False)
    metric: Metric | None = field(default=None, repr=False)
    counts: Confusion | None = field(default=None, repr=False)
    prevalence: Any = field(default=None, repr=False)
    warning: str | None = field(default=None, repr=False)
    columns: tuple[Threshold, ...] = field(default=(), repr=False)
    evidence: Evidence | RowEvidence | None = field(default=None, repr=False)
    #: What holds in the population, where a promise was asked.
    promise: Promise | None = field(default=None, repr=False)
    #: The rows that a person decides, where that was asked; `score` and `counts` are then those of the others.
    asking: Asking | None = field(default=None, repr=False)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Threshold):
            return NotImplemented
        return np.array_equal(self.value, other.value) and self._rest == other._rest

    def __hash__(self) -> int:
        return hash((np.asarray(self.value).tobytes(), self._rest))

    @property
    def _rest(self) -> tuple[float, int, str, Metric | None]:
        return self.score, self.n_positive, self.rule, self.metric

    def decide(self, scores: Any) -> Any:
        """Apply the cut: booleans, an array for arrays and a tensor for tensors.

        Shape: any; for K columns ``(*, K)``.
        """
        # In double precision: a cut midway between two single-precision scores exists nowhere else.
        tensor = hasattr(scores, "detach")
        s: Any = scores.detach().double() if tensor else read_array("scores", scores, np.float64)
        if bool((s != s).any()):
            raise ValueError("scores hold NaN, which no cut can decide; drop or impute those rows first.")
        value = np.asarray(self.value, dtype=np.float64)
        if value.ndim and tuple(s.shape[-1:]) != value.shape:
            shape = tuple(s.shape)
            raise ValueError(f"There are {value.size} cuts, one per column; got scores of shape {shape}.")
        return called(s, s.new_tensor(value.tolist())) if tensor else np.asarray(called(s, value))

    def outcome(self, scores: Any) -> Any:
        """Decide in three: 1 is positive, 0 negative, and −1 is for a person. `decide` calls positive what is 1.

        Shape: as in `decide`.

        >>> from fbeta import tune
        >>> cut = tune([0.9, 0.8, 0.6, 0.5, 0.3, 0.1], [1, 1, 0, 1, 0, 0], "f1", abstain=0.4)
        >>> cut.outcome([0.85, 0.55, 0.2]).tolist(), cut.score, cut.asking.rows
        ([1, -1, 0], 1.0, 2)
        """
        called = self.decide(scores) * 1
        starts = [cut.asking for cut in self.columns or (self,)]
        if all(asking is None for asking in starts):
            return called
        lowest = np.array([np.inf if asking is None else asking.start for asking in starts])
        lower = replace(self, value=lowest if self.columns else float(lowest[0]))
        return called + ASK * (lower.decide(scores) * (1 - called))

    def remarks(self) -> list[str]:
        """What was promised, whom a person decides, and what speaks against the cut, in words."""
        if self.columns:
            return [f"Column {k}: {text}" for k, cut in enumerate(self.columns) for text in cut.remarks()]
        helped = None if self.metric is None or self.helped is None else (title(self.metric), self.helped)
        asking = self.asking and self.asking.explain(helped)
        promise = self.promise and self.promise.explain()
        return [text for text in (promise, asking, self.warning) if text]

    @property
    def helped(self) -> float | None:
        """The score of all rows where a person decides some and is right; None where no rows are known for one."""
        if self.asking is None or self.counts is None or self.metric is None:
            return None
        return float(score_cells(self.metric, self.asking.helped(self.counts)))

    @cached_property
    def interval(self) -> Interval | None:
        """How sure the cut is, see `Interval`; None if the rows are not known (a cut made by hand).

        For a cut of row scores (samples) rows are the units.
        For columns tuned one by one (macro) the ends of the columns' intervals are averaged: wide enough whatever
        the columns share. For columns tuned together (micro) decisions count as independent also within a row.

        >>> from fbeta import tune
        >>> tune([0.9, 0.8, 0.3, 0.1] * 10, [1, 1, 0, 0] * 10, "fbeta:beta=1").interval.cut
        (0.55, 0.55)
        """
        if self.evidence is not None:
            return self.evidence.interval()
        known = [c.interval for c in self.columns if c.interval is not None]
        if not known or len(known) < len(self.columns):
            return None
        low, high = np.mean([i.score for i in known], axis=0).tolist()
        behind = [c.evidence for c in self.columns if isinstance(c.evidence, Evidence)]
        if self.counts is not None and behind:  # pooled: every column's choice makes the one score look better
            low, high = behind[0].interval(optimism=sum(e.optimism() for e in behind)).score
        below, above = np.transpose([i.cut for i in known])
        return Interval((low, high), (below, above), known[0].level)

    def shift(self, prevalence: float, *, slope: float | None = None) -> Threshold:
        r"""Move the cut to a population with another share of positives, in closed form.

        .. math:: \operatorname{logit} c' = \operatorname{logit} c - \log\frac{\pi'/(1-\pi')}{\pi/(1-\pi)}
                  + \operatorname{logit} \delta' - \operatorname{logit} \delta

        δ is the metric's best rule at the rates of the cut, δ' at the same rates and the new prevalence. It takes
        the scores for calibrated where the cut was tuned, the same model for both, and p(x | y) for unchanged. Then
        it is exact where δ does not depend on the classifier (`Cost`, `Accuracy`, `BalancedAccuracy`); for F_β and
        other ratios of linear forms it is one step of Dinkelbach's iteration, off by the square of the way that the
        rates move; for curved metrics (`MCC`, `GMean`) a first approximation.
        `tune(…, prevalence=…)` needs the rows, and none of these promises.

        `slope`: how much the log odds rise with a unit of the score, for scores that are not probabilities; by
        default from Platt scaling of the rows. `score` is what the rows say at the new cut, or, if they are not
        known, that of the old rates.

        >>> counts = Confusion(25, 5, 5, 65)
        >>> cut = Threshold(0.5, -0.1, 30, "probability", metric=as_metric("cost:fp=1,fn=1"), counts=counts)
        >>> round(cut.shift(0.1).value, 3)
        0.794

        Reference: [saerens2002]
        """
        if self.asking is not None:
            raise ValueError("shift moves one cut, and there are two where a person decides; tune with prevalence=.")
        if self.columns or self.counts is None or self.metric is None or isinstance(self.evidence, RowEvidence):
            raise ValueError("shift moves one cut tuned for a metric; shift each of `columns` on its own.")
        if self.evidence is not None and self.evidence.steps.totals is not None:
            raise ValueError("Pooled columns have no one prevalence to shift to; tune with average='macro'.")
        to = check_prevalence(prevalence)
        there = self.counts.at_prevalence(to)
        here = check_prevalence(self.counts.prevalence)
        moved = float(logit(here) - logit(to))
        moved += float(logit(self.metric.best_cut(there)) - logit(self.metric.best_cut(self.counts)))
        value = self._moved(moved, slope)
        known = (self.counts, self.n_positive) if self.evidence is None else self.evidence.at(value)
        counts = Confusion(*(x * known[0].total for x in known[0].at_prevalence(to)))
        made = replace(
            self, value=value, n_positive=known[1], counts=counts, prevalence=to, evidence=None, promise=None
        )
        return replace(made, score=float(self.metric(counts)))

    def _moved(self, by: float, slope: float | None) -> float:
        value = float(self.value)
        if math.isinf(value):
            return value
        if slope is None and self.kind == "probability":
            return float(sigmoid(logit(value, 1e-300) + by))
        if slope is None and isinstance(self.evidence, Evidence):
            slope = Platt.fit(self.evidence.steps).slope
        elif slope is None and self.kind == "logit":
            slope = 1.0
        if slope is None or not slope > 0:
            raise ValueError(
                f"The cut {value:g} is no probability, and how the log odds rise with the score is not known; "
                "give slope=, or tune with prevalence=."
            )
        return value + by / slope

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; ±inf is written as a string. Rows are not kept, their interval is.

        >>> Threshold(float("-inf"), 0.2, 9).to_dict()["value"]
        '-inf'
        """
        interval = self.interval
        return {f.name: to_plain(getattr(self, f.name)) for f in fields(self) if f.name != "evidence"} | {
            "metric": None if self.metric is None else str(self.metric),
            "counts": None if self.counts is None else [float(x) for x in self.counts],
            "columns": [c.to_dict() for c in self.columns],
            "interval": None if interval is None else to_plain(vars(interval)),
            "promise": None if self.promise is None else self.promise.to_dict(),
            "asking": None if self.asking is None else to_plain(vars(self.asking)),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Threshold:
        """Read `to_dict` back; ValueError for anything else. A metric that is a user's function comes back as None.

        >>> cut = Threshold(float("inf"), 0.0, 0)
        >>> Threshold.from_dict(cut.to_dict()) == cut
        True
        """
        try:
            return cls._read(data)
        except DAMAGED as error:
            raise ValueError(f"this is no cut ({in_short(error)})") from error

    @classmethod
    def _read(cls, data: Mapping[str, Any]) -> Threshold:
        spec, counts, interval = (data.get(name) for name in ("metric", "counts", "interval"))
        promise, asking = data.get("promise"), data.get("asking")
        try:
            metric = None if spec is None else as_metric(str(spec))
        except ValueError:
            metric = None
        value = _number(data["value"])
        if value is None:
            raise ValueError("it has no value")
        made = cls(
            value,
            float(data["score"]),
            int(data["n_positive"]),
            kind=str(data.get("kind", "score")),
            rule=str(data.get("rule", "exact")),
            metric=metric,
            counts=None if counts is None else Confusion(*map(float, counts)),
            prevalence=_number(data.get("prevalence")),
            warning=None if data.get("warning") is None else str(data["warning"]),
            columns=tuple(cls._read(c) for c in data.get("columns", ())),
            promise=None if promise is None else Promise.from_dict(promise),
            asking=None if asking is None else Asking.from_dict(asking),
        )
        if interval is not None:
            (low, high), (below, above) = interval["score"], map(_number, interval["cut"])
            made.__dict__["interval"] = Interval((float(low), float(high)), (below, above), float(interval["level"]))
        return made


def _number(x: Any) -> Any:
    if x is None:
        return None
    return np.array([float(v) for v in x]) if isinstance(x, list) else float(x)
