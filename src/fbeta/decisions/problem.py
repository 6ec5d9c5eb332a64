"""What a rule is asked: steps, a metric, the rate it is meant for, and the cuts that constraints leave."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from fbeta.decisions.abstention import Ends, check_abstain, promised_ends
from fbeta.decisions.inputs import Vector
from fbeta.decisions.promise import Promise, Trial, check_confidence, counted
from fbeta.decisions.steps import Steps, score_cells
from fbeta.metrics import Confusion, Metric, as_metric, check_prevalence

#: With fewer positives a warning says so.
FEW = 20


@dataclass(frozen=True)
class Constraints:
    """Metrics that must reach a value, and at most so many alerts; what a person may decide.

    With a `confidence` metrics must reach their values in the population, else on the rows.
    """

    at_least: tuple[tuple[Metric, float], ...] = ()
    budget: float | None = None
    confidence: float | None = None
    abstain: float | str | None = None

    @classmethod
    def read(
        cls,
        subject_to: Mapping[Any, float] | None,
        budget: float | None,
        confidence: float | None = None,
        abstain: float | str | None = None,
    ) -> Self:
        """Read what a user writes."""
        if subject_to is not None and not isinstance(subject_to, Mapping):
            raise TypeError(f"subject_to maps metrics to values, as {{'recall': 0.9}}; got {subject_to!r:.60}.")
        asked = tuple((as_metric(spec), _number(f"the least {spec}", v)) for spec, v in (subject_to or {}).items())
        if budget is not None and _number("budget", budget) < 0:
            raise ValueError(f"budget is a number of alerts, zero or more; got {budget!r:.60}.")
        if confidence is not None:
            check_confidence(confidence)
            if not asked:
                raise ValueError(
                    "confidence is that of subject_to: say what is to hold, as subject_to={'recall': 0.9}."
                )
        if abstain is not None:
            check_abstain(abstain, confidence, budget)
        return cls(asked, None if budget is None else float(budget), confidence, abstain)

    def __bool__(self) -> bool:
        return bool(self.at_least) or self.budget is not None or self.abstain is not None

    def promised(self, observed: Steps, prevalence: float | None) -> Ends | None:
        """Where cuts may lie so that everything holds in the population; None where no promise is asked."""
        if self.confidence is None:
            return None
        trial = Trial.of(self.at_least, self.confidence, prevalence, observed)
        return promised_ends(trial, counted(observed), self.abstain)

    @property
    def promise(self) -> Promise | None:
        """What is promised of a cut that was found."""
        if self.confidence is None:
            return None
        asked = tuple((str(metric), least) for metric, least in self.at_least)
        return Promise(asked, self.confidence, self.abstain is not None)

    def met(self, steps: Steps) -> NDArray[np.bool_] | None:
        """Which cuts meet everything on the rows, perhaps none; None if nothing is asked."""
        measured = self._measure(steps)
        return np.logical_and.reduce([_gap(*x[1:]) <= 0 for x in measured]) if measured else None

    def kept(self, c: Confusion) -> Any:
        """Whether cells of rows meet what is asked of these rows; a promise is none of them."""
        if self.confidence is not None:
            return True
        return np.logical_and.reduce([_gap(score_cells(metric, c), least) <= 0 for metric, least in self.at_least])

    def shortfall(self, steps: Steps) -> Vector:
        """How far each cut is from meeting everything: 0 where it does."""
        total: Vector = np.sum([np.maximum(_gap(*x[1:]), 0.0) for x in self._measure(steps)], axis=0)
        return np.where(np.isnan(total), np.inf, total)

    def nearest(self, steps: Steps) -> str:
        """What is asked, and, as no cut meets all of it, how near each comes while the others are met."""
        measured = self._measure(steps)
        met = np.array([_gap(values, least) <= 0 for _, values, least in measured])
        asked, advice = [], []
        for k, (metric, values, least) in enumerate(measured):
            asked.append(f"{metric} ≥ {least:g}" if metric else f"at most {-least:g} alerts")
            reachable = values[np.delete(met, k, axis=0).all(axis=0)]
            if not np.isnan(reachable).all():
                best = float(np.nanmax(reachable))
                # Rounded down, so that asking for the printed number succeeds.
                rounded = f"{np.floor(best * 1e4) / 1e4:.10g}"
                near = f"{metric} reaches {rounded}" if metric else f"alerts go down to {-best:g}"
                advice.append(f"{near} while the rest is met" if len(measured) > 1 else near)
        nearest = ", ".join(advice) or "no two of them can be met together"
        return f"{' and '.join(asked)}: {nearest}. Ask for that or less."

    def _measure(self, steps: Steps) -> list[tuple[str, Vector, float]]:
        """Each constraint: its metric (none for a budget), the value at every cut and the least it must be."""
        asked = [(str(metric), steps.values(metric), least) for metric, least in self.at_least]
        return asked if self.budget is None else [*asked, ("", -(steps.tp + steps.fp), -self.budget)]


def _gap(values: Vector, least: float) -> Vector:
    """How much is missing, relative to what is asked; at most 0 where nothing is."""
    scale = max(1.0, abs(least))
    # A share that was meant to be met exactly must not fail by a rounding error.
    return (least - 1e-12 * scale - values) / scale


@dataclass(frozen=True)
class Problem:
    """One column to cut: `steps` at the rate that the metric is judged at, `observed` the same before that."""

    steps: Steps
    observed: Steps
    metric: Metric
    allowed: NDArray[np.bool_] | None = None
    prevalence: float | None = None
    #: What is asked besides the metric, and, where it is promised, where a person's rows may end.
    constraints: Constraints = field(default_factory=Constraints)
    ends: Ends | None = None

    @classmethod
    def read(cls, steps: Steps, metric: Any, constraints: Constraints, prevalence: float | None = None) -> Self:
        """Bring steps to a rate and find what constraints leave."""
        rate = None if prevalence is None else check_prevalence(prevalence)
        there = steps if rate is None else steps.at_prevalence(rate)
        ends = constraints.promised(steps, rate)
        if constraints.abstain is not None:  # two cuts meet what one may not
            return cls(there, steps, as_metric(metric), None, rate, constraints, ends)
        allowed = constraints.met(there)
        if allowed is not None and not allowed.any():
            raise ValueError(f"No cut has {constraints.nearest(there)}")
        if ends is not None and allowed is not None:
            allowed = allowed & ends.high
            if not allowed.any():
                raise ValueError("No cut that can be promised keeps the budget: ask for less, or allow more alerts.")
        return cls(there, steps, as_metric(metric), allowed, rate, constraints)

    def best(self, steps: Steps) -> int:
        """The index of the best allowed cut of some counts; of equals the one with the fewest positives."""
        return argbest(steps.values(self.metric), self.allowed, self.metric)

    def warning(self, index: int, rule: str) -> str | None:
        """What speaks against trusting the cut that a rule chose, in plain words."""
        steps, said = self.observed, []
        classes = ("positives", "finding", steps.positives), ("negatives", "sparing", steps.negatives)
        for name, doing, mass in classes:
            if mass == 0:
                said.append(
                    f"There are no {name} among the rows, so nothing is known about {doing} them; "
                    "tune on rows of both classes."
                )
        if steps.scores.size == 1:
            said.append("All scores are equal, so only all or none can be called positive.")
        elif not said and index in (0, steps.scores.size):
            said.append(
                f"The cut calls {'everything' if index else 'nothing'} positive: for this metric the scores hardly "
                "tell the classes apart."
            )
        if few := few_positives(steps.positive_rows, rule):
            said.append(few)
        return " ".join(said) or None


def few_positives(present: float, rule: str = "") -> str | None:
    """The warning that all decisions on few positives have."""
    if not 0 < present < FEW:
        return None
    n = math.floor(present) if present >= 1 else round(present, 2)
    more = ", or take the rule 'shrunk'." if rule == "exact" else "."
    return (
        f"Only {n} positive{'' if n == 1 else 's'}: the best cut on such rows is mostly chance; bring more rows{more}"
    )


def argbest(values: Vector, allowed: NDArray[np.bool_] | None, metric: Metric) -> int:
    """The first of the largest allowed values that are numbers."""
    if allowed is not None:
        values = np.where(allowed, values, np.nan)
    first = int(np.argmax(values))  # the first NaN, if there is one
    if not np.isnan(values[first]):
        return first
    if np.isnan(values).all():
        where = "" if allowed is None else " that the constraints leave"
        raise ValueError(f"{metric} is NaN at every cut{where}; make it give a number where it divides by 0.")
    return int(np.nanargmax(values))


def _number(name: str, value: Any) -> float:
    if isinstance(value, bool | str) or not np.isscalar(value) or not np.isfinite(float(value)):  # type: ignore[arg-type]
        raise ValueError(f"{name} must be a finite number; got {value!r:.60}.")
    return float(value)  # type: ignore[arg-type]
