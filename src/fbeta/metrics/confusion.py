"""The four cells of a confusion matrix, and arithmetic that is safe at zero.

Throughout, ``t`` is the true positive rate (recall), ``u`` the false positive rate and ``π`` the prevalence,
so that TP = πt, FN = π(1−t), FP = (1−π)u and TN = (1−π)(1−u). Nothing here imports NumPy or torch up front.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

#: A float, a NumPy array or a torch tensor: whatever has arithmetic.
Cell: TypeAlias = Any


@dataclass(frozen=True)
class Confusion:
    r"""The four cells, as counts or as shares; floats, arrays and tensors broadcast.

    .. math:: TP = \sum_i w_i y_i \hat y_i, \quad FP = \sum_i w_i (1 - y_i) \hat y_i, \quad
              FN = \sum_i w_i y_i (1 - \hat y_i), \quad TN = \sum_i w_i (1 - y_i)(1 - \hat y_i)

    Shape: each cell is a number or an array; all four broadcast against each other.

    >>> c = Confusion(tp=8, fp=2, fn=4, tn=86)
    >>> c.prevalence, round(c.tpr, 4), round(c.fpr, 4)
    (0.12, 0.6667, 0.0227)

    Reference: [lee2021], section 3.1
    """

    tp: Cell
    fp: Cell
    fn: Cell
    tn: Cell

    @classmethod
    def from_predictions(
        cls, predicted: Cell, target: Cell, weight: Cell | None = None, *, axis: int | None = None
    ) -> Confusion:
        """Count decisions in [0, 1] (0 and 1, or soft) against targets in [0, 1].

        Shape: `predicted`, `target` and `weight` alike; the cells have that shape without `axis`
        (``axis=0`` keeps the columns of a multi-label problem apart), or are numbers if `axis` is None.

        >>> Confusion.from_predictions([1, 1, 0, 0], [1, 0, 1, 0], weight=[1, 1, 2, 1])
        Confusion(tp=1.0, fp=1.0, fn=2.0, tn=1.0)
        """
        predicted, target, weight = _alike(predicted=predicted, target=target, weight=weight)
        for name, values in (("predicted", predicted), ("target", target)):
            if not bool(((values >= 0) & (values <= 1)).all()):
                raise ValueError(
                    f"{name} must lie in [0, 1]; got values outside (or NaN). "
                    "Map your labels to 0 and 1 first; for scores use Confusion.from_scores."
                )
        if weight is not None and not bool(((weight >= 0) & (weight < math.inf)).all()):
            raise ValueError("weight must be finite and zero or more; got a negative number, infinity or NaN.")
        w = 1.0 if weight is None else weight
        hit, miss = w * target, w * (1.0 - target)
        cells = (hit * predicted, miss * predicted, hit * (1.0 - predicted), miss * (1.0 - predicted))
        sums = [x.sum(axis=axis) if axis is not None else x.sum() for x in cells]
        if not hasattr(predicted, "detach") and axis is None:
            sums = [float(x) for x in sums]
        return cls(*sums)

    @classmethod
    def from_scores(
        cls, scores: Cell, target: Cell, cut: Any, weight: Cell | None = None, *, axis: int | None = None
    ) -> Confusion:
        """Count the decisions ``scores >= cut``: 0.5 for probabilities, 0 for logits, or what `tune` found.

        Shape: as `from_predictions`; `cut` is a number, a `Threshold`, or one number per column.

        >>> Confusion.from_scores([0.9, 0.5, 0.2], [1, 0, 0], cut=0.5)
        Confusion(tp=1.0, fp=1.0, fn=0.0, tn=1.0)
        """
        scores, target, weight = _alike(scores=scores, target=target, weight=weight)
        cut = _cut_for(scores, cut)
        if bool((scores != scores).any()):
            raise ValueError("scores hold NaN, which no cut can decide; drop or impute those rows first.")
        return cls.from_predictions(called(scores, cut) * 1.0, target, weight, axis=axis)

    @classmethod
    def from_rates(cls, fpr: Cell, tpr: Cell, prevalence: Cell) -> Confusion:
        """Place a point (u, t) of ROC space at a prevalence; the cells are shares that sum to one.

        >>> Confusion.from_rates(fpr=0.0, tpr=0.5, prevalence=0.5)
        Confusion(tp=0.25, fp=0.0, fn=0.25, tn=0.5)
        """
        rest = 1.0 - prevalence
        return cls(prevalence * tpr, rest * fpr, prevalence * (1.0 - tpr), rest * (1.0 - fpr))

    @property
    def positives(self) -> Cell:
        """TP + FN."""
        return self.tp + self.fn

    @property
    def negatives(self) -> Cell:
        """FP + TN."""
        return self.fp + self.tn

    @property
    def total(self) -> Cell:
        """The sum of all four cells."""
        return self.positives + self.negatives

    @property
    def prevalence(self) -> Cell:
        """π: the share of positives (0 for an empty matrix)."""
        return divide(self.positives, self.total)

    @property
    def tpr(self) -> Cell:
        """t: the true positive rate, recall (0 without positives)."""
        return divide(self.tp, self.positives)

    @property
    def fpr(self) -> Cell:
        """u: the false positive rate (0 without negatives)."""
        return divide(self.fp, self.negatives)

    @property
    def predicted(self) -> Cell:
        """The share predicted positive (0 for an empty matrix)."""
        return divide(self.tp + self.fp, self.total)

    def shares(self) -> Confusion:
        """Divide by the total, so that the cells sum to one (an empty matrix stays zero)."""
        one = divide(1.0, self.total)
        return Confusion(one * self.tp, one * self.fp, one * self.fn, one * self.tn)

    def at_prevalence(self, prevalence: Cell) -> Confusion:
        """Keep the rates (u, t), change the share of positives: the same classifier elsewhere.

        >>> Confusion(tp=1, fp=1, fn=1, tn=3).at_prevalence(0.5)
        Confusion(tp=0.25, fp=0.125, fn=0.25, tn=0.375)
        """
        return Confusion.from_rates(self.fpr, self.tpr, prevalence)

    def __add__(self, other: Confusion) -> Confusion:
        return Confusion(self.tp + other.tp, self.fp + other.fp, self.fn + other.fn, self.tn + other.tn)

    def __iter__(self) -> Iterator[Cell]:
        return iter((self.tp, self.fp, self.fn, self.tn))


def called(scores: Cell, cut: Cell) -> Cell:
    """Which scores a cut calls positive: those at or above it, and none, however large, at a cut of +inf."""
    return (scores >= cut) & (cut < math.inf)


def divide(numerator: Cell, denominator: Cell, undefined: float = 0.0) -> Cell:
    """Divide numbers, arrays, tensors or duals; `undefined` where the denominator is zero.

    The derivative there is zero, so no gradient turns into NaN.

    >>> divide(1.0, 4.0), divide(0.0, 0.0), divide(0.0, 0.0, undefined=1.0)
    (0.25, 0.0, 1.0)
    """
    blank = (denominator == 0) * 1.0
    found = numerator / (denominator + blank) * (1.0 - blank)
    return found + undefined * blank if undefined else found


def root(x: Cell) -> Cell:
    """Square root of numbers, arrays, tensors or duals, with derivative zero (not infinite) at zero.

    >>> root(0.25), root(0.0)
    (0.5, 0.0)
    """
    blank = (x == 0) * 1.0
    return (x + blank) ** 0.5 * (1.0 - blank)


def _cut_for(scores: Cell, cut: Any) -> Cell:
    """Read a cut, or one per column, as what can be compared with these scores."""
    cut = getattr(cut, "value", cut)
    if getattr(cut, "ndim", 0) == 0 and not isinstance(cut, list | tuple):
        if cut != cut:
            raise ValueError("cut is NaN; give a number, or ±inf for none or all.")
        return float(cut)
    if tuple(scores.shape[-1:]) != (len(cut),):
        raise ValueError(f"There are {len(cut)} cuts, one per column; got scores of shape {tuple(scores.shape)}.")
    each = [_cut_for(scores, c) for c in cut]
    if hasattr(scores, "detach"):
        return scores.new_tensor(each)
    import numpy as np

    return np.array(each)


def _alike(**named: Cell | None) -> tuple[Any, ...]:
    """Bring arrays to one kind (all tensors, or all NumPy) in double precision and compare shapes."""
    given = {name: x for name, x in named.items() if x is not None}
    # Duck typing instead of isinstance: a tensor in hand means torch is loaded, its absence must not load it.
    if all(hasattr(x, "detach") for x in given.values()):
        read = {name: x.double() for name, x in given.items()}
    else:
        import numpy as np

        try:
            read = {
                name: np.asarray(x.detach().cpu().resolve_neg() if hasattr(x, "detach") else x, dtype=np.float64)
                for name, x in given.items()
            }
        except (TypeError, ValueError) as error:
            raise TypeError(f"{', '.join(given)} must hold numbers; {error}.") from error
    shapes = {name: tuple(x.shape) for name, x in read.items()}
    if len(set(shapes.values())) > 1:
        got = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
        raise ValueError(f"All inputs must have one shape; got {got}.")
    return tuple(read.get(name) for name in named)
