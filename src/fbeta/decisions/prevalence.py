"""The share of positives among rows without labels: an estimate, how sure it is, and whether it moved at all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from fbeta.decisions.calibration import logit, sigmoid
from fbeta.decisions.calibration_choice import calibrate
from fbeta.decisions.inputs import Vector
from fbeta.decisions.problem import few_positives
from fbeta.decisions.steps import Binned
from fbeta.numerals import percent
from fbeta.plain_data import to_plain

#: Of fewer rows nothing is said.
LEAST = 50
#: A share has fallen, or risen, if it is so many standard errors away: a fall that is none costs more than a rise.
FALLEN, RISEN = 2.58, 2.0
#: Models of new rows were fitted once more than those of the known ones. That alone moves the mean probability by
#: about this much, divided by the root of the number of known positives (measured by benchmarks/decisions.py).
REFIT = 0.7
#: The same for the number of rows above a cut, asked at those that catch these shares of the positives.
SURE_OF_MISFIT, REFIT_CALLED, CAUGHT = 3.5, 0.2, (0.1, 0.25, 0.5, 0.75, 0.9)
#: If more than `FOREIGN` of the scores lie outside those known, by `MARGIN` times their range, another model made them.
MARGIN, FOREIGN = 1.0, 0.1
#: Half the width of a 95 % interval, in standard errors.
WIDE = 1.96


@dataclass(frozen=True)
class Prevalence:
    """What is known of the share of positives among the rows to decide.

    `known` is the share among the labelled rows, `estimate` (with a 95 % `interval`) that among the new ones, `counted`
    a cross-check: what the confusion matrix of the cut makes of the number of rows called. `moved` says whether the
    estimate differs from the known share by more than chance, `remark` what speaks against it, in words, or None.

    >>> found = Prevalence(0.1, 0.3, (0.2, 0.4), 0.28, moved=True)
    >>> round(found.value, 3), Prevalence(0.1, 0.11, (0.08, 0.15)).value
    (0.247, 0.1)
    """

    known: float
    estimate: float
    interval: tuple[float, float]
    counted: float | None = None
    moved: bool = False
    remark: str | None = None

    @property
    def value(self) -> float:
        """The share of positives to decide by: where it moved, the estimate, drawn to the known share as it is unsure.

        Halfway, in log odds, from the estimate to the end of its interval that is nearer to the known share.
        """
        if not self.moved:
            return self.known
        near = float(np.clip(self.known, *self.interval))
        if near == self.estimate:
            return near
        return float(sigmoid((logit(self.estimate) + logit(near)) / 2))

    @property
    def raised(self) -> float:
        """How much higher than among the labelled rows all log odds are."""
        return float(logit(self.value) - logit(self.known)) if self.moved else 0.0

    def explain(self) -> str:
        """What was found, in words.

        >>> Prevalence(0.1, 0.3, (0.25, 0.35), moved=True).explain()
        'The share of positives moved from 10.00 % to 30.00 % (95 % interval 25.00 % to 35.00 %).'
        """
        ends = " to ".join(map(percent, self.interval))
        there = f"{percent(self.estimate)} (95 % interval {ends})"
        if self.interval[0] == self.interval[1]:
            said = f"The share of positives is taken for {percent(self.estimate)}, as given."
        elif self.moved:
            said = f"The share of positives moved from {percent(self.known)} to {there}."
        else:
            said = f"The share of positives is still {percent(self.known)}, as far as can be told: {there}."
        return said if self.remark is None else f"{said} {self.remark}"

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        found: dict[str, Any] = to_plain(vars(self))
        return found

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read `to_dict` back; ValueError for anything else."""
        low, high = map(float, data["interval"])
        counted, remark = (data[name] for name in ("counted", "remark"))
        known, estimate = float(data["known"]), float(data["estimate"])
        if not (0 < known < 1 and 0 < estimate < 1 and 0 <= low <= high <= 1):
            raise ValueError("its share of positives is none")
        counted = None if counted is None else float(counted)
        return cls(known, estimate, (low, high), counted, bool(data["moved"]), None if remark is None else str(remark))


def find_prevalence(rows: Binned, scores: Vector, weight: Vector | None = None, cut: float = np.inf) -> Prevalence:
    r"""The share of positives among new rows, by maximum likelihood on calibrated probabilities, and its interval.

    .. math:: \hat\pi = \arg\max_\pi \sum_j \log\big(1 + \pi (r_j - 1)\big), \qquad
              r = \frac{p / (1 - p)}{\pi_0 / (1 - \pi_0)} = \frac{f_1}{f_0}

    The likelihood is concave, and its maximum is where the EM algorithm ends. As no calibration is perfect, the slope
    of the likelihood there, ψ = (r − 1) / (1 + π̂ (r − 1)), is taken for a measurement: it has one mean among known
    positives, one among known negatives, and one among the new rows. Where that lies between the two is the estimate;
    for a perfect calibration it is the maximum itself. The interval holds all shares whose mean is within 1.96
    standard errors, those of the known rows included.

    The share moved if the mean of ψ at π₀ is another among the new rows than among the known ones. This test does not
    trust the calibration: its errors are the same on both sides.

    `rows` are the known ones in bins of log odds, `scores` the new ones on the same scale, `weight` how many of each
    there are, `cut` where the confusion matrix of the cross-check is taken.

    Shape: `scores` and `weight` ``(m,)``.

    Reference: [saerens2002], [lipton2018]
    """
    _check(rows, scores, weight)
    mass = np.bincount(rows.place(scores), weight, minlength=rows.scores.size)
    known, new, count = _Known.of(rows), mass / mass.sum(), float(mass.sum())
    ratio = np.exp(logit(calibrate(rows)(rows.scores)) - logit(known.share))
    here, likely = (known.measure(_slope(ratio, q), new, count) for q in (known.share, _most_likely(ratio, new)))
    share = float(np.clip(likely.share, 0.5 / count, 1 - 0.5 / count))
    told_apart = min(here.separation, likely.separation) > RISEN
    away = (here.share - known.share) / here.null_error if here.between > 0 else 0.0
    moved = away > RISEN or away < -FALLEN
    low, high = likely.interval() if told_apart else (0.0, 1.0)
    said = None if told_apart else "The scores hardly tell the classes apart, so they say little of the share."
    remarks = filter(None, [few_positives(rows.positive_rows), said or known.misfit(new, count, share)])
    interval = max(0.0, min(low, share)), min(1.0, max(high, share))
    counted = known.counted(rows.index(cut), new)
    return Prevalence(known.share, share, interval, counted, bool(moved), " ".join(remarks) or None)


def _check(rows: Binned, scores: Vector, weight: Vector | None) -> None:
    """Refuse rows that say nothing of a population."""
    w = np.ones(scores.size) if weight is None else weight
    if np.isnan(scores).any():
        raise ValueError("scores hold NaN, which belongs to neither class; drop or impute those rows first.")
    if w.sum() < LEAST:
        raise ValueError(
            f"A share of positives needs {LEAST} rows at least; got {w.sum():g}. If it is known, give at_prevalence=."
        )
    if not 0 < rows.positives < rows.positives + rows.negatives:  # or one outweighs the other beyond all digits
        raise ValueError("The rows that were decided by are of one class; a share needs scores of both.")
    if np.ptp(scores) == 0:
        raise ValueError(f"All {w.sum():,.0f} scores are equal, so they say nothing of the share of positives.")


def check_seen(seen: Vector, scores: Vector, weight: Vector, kind: str) -> None:
    """Refuse scores too many of which lie outside of those that were seen, of which the least and the largest count."""
    seen, x = (logit(s) if kind == "probability" else s for s in (seen, scores))
    margin = MARGIN * np.ptp(seen)
    far = (x < seen.min() - margin) | (x > seen.max() + margin)
    outside = float(weight[far].sum() / max(weight.sum(), 1.0))
    if outside > FOREIGN:
        raise ValueError(
            f"{percent(outside)} of the scores lie outside of all that were seen when the cut was chosen: are they of "
            "the same model, and of the same kind?"
        )


def _slope(ratio: Vector, share: float) -> Vector:
    """The slope of the log likelihood of a row by the share."""
    found: Vector = (ratio - 1) / (1 + share * (ratio - 1))
    return found


def _most_likely(ratio: Vector, new: Vector) -> float:
    """Where the mean slope is 0: it falls with the share, so halving finds it."""
    low, high = -30.0, 30.0
    for _ in range(60):
        middle = (low + high) / 2
        rising = new @ _slope(ratio, float(sigmoid(middle))) > 0
        low, high = (middle, high) if rising else (low, middle)
    return float(sigmoid((low + high) / 2))


@dataclass(frozen=True)
class _Measured:
    """Means and variances of a function of the score among positives, negatives and new rows, and how many they are."""

    means: Vector
    variances: Vector
    counts: tuple[float, float, float]
    known_share: float

    @property
    def between(self) -> float:
        """How far the means of the classes are apart."""
        return float(self.means[0] - self.means[1])

    @property
    def share(self) -> float:
        """Where the mean of the new rows lies between those of the classes."""
        return float(self.means[2] - self.means[1]) / self.between if self.between else self.known_share

    @property
    def separation(self) -> float:
        """How many standard errors the classes are apart."""
        error = np.sqrt(sum(v / n for v, n in zip(self.variances[:2], self.counts[:2], strict=True)))
        return float(self.between / error) if error > 0 else float(np.inf * self.between)

    @property
    def null_error(self) -> float:
        """The standard error of the share, if new rows and known ones are alike: their variance is pooled."""
        n1, n0, m = self.counts
        pooled = (self._mixed(self.known_share) * (n1 + n0) + self.variances[2] * m) / (n1 + n0 + m)
        # ψ at the known share is the probability by so much: (p − π) / (π (1 − π)).
        refit = REFIT / np.sqrt(n1) / (1 - self.known_share)
        return float(np.hypot(np.sqrt(pooled * (1 / (n1 + n0) + 1 / m)), refit) / self.between)

    def _mixed(self, q: Any) -> Any:
        """The variance of a mixture."""
        v1, v0, _ = self.variances
        return q * v1 + (1 - q) * v0 + q * (1 - q) * self.between**2

    def interval(self) -> tuple[float, float]:
        """All shares whose mean is near enough: a quadratic inequality, as in Wilson's interval of a proportion."""
        (v1, v0, _), (n1, n0, m), b = self.variances, self.counts, self.between
        gap = self.means[2] - self.means[1]
        # (gap − q b)² ≤ z² (variance of the mixture / m + q² v₁ / n₁ + (1 − q)² v₀ / n₀), by powers of q
        z = WIDE**2
        square = b**2 - z * (v1 / n1 + v0 / n0 - b**2 / m)
        middle = gap * b + z * ((v1 - v0 + b**2) / m / 2 - v0 / n0)
        rest = gap**2 - z * v0 * (1 / m + 1 / n0)
        root = middle**2 - square * rest
        if square <= 0 or root < 0:  # the classes are hardly apart: no share is too far
            return 0.0, 1.0
        return float((middle - np.sqrt(root)) / square), float((middle + np.sqrt(root)) / square)


@dataclass(frozen=True)
class _Known:
    """How the labelled rows divide among bins: of positives `hit`, of negatives `miss`, each summing to one."""

    hit: Vector
    miss: Vector
    share: float
    positives: float
    negatives: float

    @classmethod
    def of(cls, rows: Binned) -> Self:
        rate = rows.positives / (rows.positives + rows.negatives)
        counts = rows.positives * rows.rows_per_weight[0], rows.negatives * rows.rows_per_weight[1]
        return cls(np.diff(rows.tp) / rows.positives, np.diff(rows.fp) / rows.negatives, rate, *counts)

    def measure(self, values: Vector, new: Vector, count: float) -> _Measured:
        parts = self.hit, self.miss, new
        means = np.array([part @ values for part in parts])
        variances = np.array([part @ (values - mean) ** 2 for part, mean in zip(parts, means, strict=True)])
        return _Measured(means, variances, (self.positives, self.negatives, count), self.share)

    def counted(self, index: int, new: Vector) -> float | None:
        """The share by the confusion matrix of a cut."""
        tpr, fpr, called = (float(part[:index].sum()) for part in (self.hit, self.miss, new))
        return float(np.clip((called - fpr) / (tpr - fpr), 0.0, 1.0)) if tpr > fpr else None

    def misfit(self, new: Vector, count: float, share: float) -> str | None:
        """A sentence, if at some cut too many or too few rows are called for a mixture of the known classes."""
        tpr, fpr, called = (np.cumsum(part) for part in (self.hit, self.miss, new))
        at = np.unique(np.searchsorted(tpr, np.multiply(CAUGHT, tpr[-1])))
        tpr, fpr, called = tpr[at], fpr[at], called[at]
        expected = share * tpr + (1 - share) * fpr
        variance = expected * (1 - expected) / count + share**2 * tpr * (1 - tpr) / self.positives
        variance += (1 - share) ** 2 * (fpr * (1 - fpr) + 1 / self.negatives) / self.negatives
        away = np.abs(called - expected) / np.sqrt(variance + (REFIT_CALLED * expected) ** 2)
        worst = int(np.argmax(away))
        if away[worst] <= SURE_OF_MISFIT:
            return None
        return (
            "More than the share of positives changed: above the cut that catches "
            f"{percent(tpr[worst])} of the positives are {percent(called[worst])} of these rows, where such a share "
            f"alone would put {percent(expected[worst])}."
        )
