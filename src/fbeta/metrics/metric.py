"""What a metric is: one formula of the four cells, from which score, slopes, pole and decision rule follow."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import Any, ClassVar

from fbeta.metrics.anchors import Anchors, Pole, find_anchors
from fbeta.metrics.confusion import Cell, Confusion, divide
from fbeta.metrics.dual import Dual
from fbeta.spelling import register as enter


@dataclass(frozen=True)
class Metric(ABC):
    r"""A score of the four cells. Subclass it, write `ratio`, and losses, cuts and pictures follow.

    .. math:: M = \frac{N(TP, FP, FN, TN)}{D(TP, FP, FN, TN)}

    Shape: cells of any broadcastable shape; the score has the broadcast shape.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Alarm(Metric):
    ...     "Hits over everything that rang or should have, false alarms counting half."
    ...     def ratio(self, c):
    ...         return c.tp, c.tp + c.fn + 0.5 * c.fp
    >>> Alarm()(Confusion(tp=6, fp=4, fn=2, tn=88))
    0.6
    >>> Alarm().pole(prevalence=0.5)
    Pole(x=-2.0, y=0.0, slope=nan)
    """

    #: Every metric by the name that `as_metric` reads, filled as classes are defined.
    registry: ClassVar[dict[str, "type[Metric]"]] = {}

    #: The formula as one line of text, for people; empty if there is none.
    formula: ClassVar[str] = ""

    def __init_subclass__(cls, *, register: bool = True, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if register:
            enter(Metric.registry, key_of(cls.__name__), cls, "metric")

    @abstractmethod
    def ratio(self, c: Confusion) -> tuple[Cell, Cell]:
        """Numerator and denominator, in arithmetic that works for numbers, arrays and tensors."""

    def __call__(self, c: Confusion) -> Cell:
        """Score the cells."""
        return divide(*self.ratio(Confusion(*map(_real, c))))

    def gains(self, c: Confusion) -> tuple[Cell, Cell]:
        r"""What one more right positive and one more right negative are worth, per share of rows.

        .. math:: g_1 = \partial_{TP} M - \partial_{FN} M, \qquad g_0 = \partial_{TN} M - \partial_{FP} M

        Forward-mode derivatives of the formula; central differences where it does not take dual numbers.

        >>> from fbeta import FBeta
        >>> FBeta(1).gains(Confusion(tp=0.25, fp=0.25, fn=0.25, tn=0.25))
        (1.5, 0.5)
        """
        s = c.shares()
        try:
            # All four cells are duals, so that no formula mixes a dual with an array.
            one = self(Confusion(Dual(s.tp, 1.0), Dual(s.fp), Dual(s.fn, -1.0), Dual(s.tn)))
            zero = self(Confusion(Dual(s.tp), Dual(s.fp, -1.0), Dual(s.fn), Dual(s.tn, 1.0)))
        except (TypeError, AttributeError, ValueError):
            return self._differences(s)
        flat = 0.0 * s.tp
        g1, g0 = (flat + (x.slope if isinstance(x, Dual) else 0.0) for x in (one, zero))
        return g1, g0

    def _differences(self, s: Confusion) -> tuple[Cell, Cell]:
        """Central differences of an opaque formula, a little inside ROC space so that no cell is negative."""
        h = 1e-5
        u, t = _inside(s.fpr, h), _inside(s.tpr, h)

        def score(u: Cell, t: Cell) -> Cell:
            return self(Confusion(s.positives * t, s.negatives * u, s.positives * (1 - t), s.negatives * (1 - u)))

        by_t = (score(u, t + h) - score(u, t - h)) / (2 * h)
        by_u = (score(u - h, t) - score(u + h, t)) / (2 * h)
        return divide(by_t, s.positives), divide(by_u, s.negatives)

    def gradient(self, c: Confusion) -> Confusion:
        r"""What one more row in each cell is worth, per share of rows: the four partial derivatives.

        .. math:: \nabla M = (\partial_{TP} M,\ \partial_{FP} M,\ \partial_{FN} M,\ \partial_{TN} M)

        Forward-mode derivatives of the formula; differences where it does not take dual numbers.

        >>> from fbeta import FBeta
        >>> FBeta(1).gradient(Confusion(tp=0.25, fp=0.25, fn=0.25, tn=0.25))
        Confusion(tp=1.0, fp=-0.5, fn=-0.5, tn=0.0)

        Reference: [griewank2008]
        """
        s = c.shares()
        cells = range(4)
        try:
            duals = [self(Confusion(*(Dual(x, float(i == k)) for i, x in enumerate(s)))) for k in cells]
            return Confusion(*(0.0 * s.tp + (x.slope if isinstance(x, Dual) else 0.0) for x in duals))
        except (TypeError, AttributeError, ValueError):
            h, here = 1e-6, self(s)  # upwards only, so that no cell is negative
            more = [self(Confusion(*(x + h * (i == k) for i, x in enumerate(s)))) for k in cells]
            return Confusion(*((x - here) / h for x in more))

    def slopes(self, c: Confusion) -> tuple[Cell, Cell]:
        r"""Climb in ROC space: :math:`\partial M/\partial t` and :math:`-\partial M/\partial u` at the point of c.

        >>> from fbeta import FBeta
        >>> FBeta(1).slopes(Confusion.from_rates(fpr=0.5, tpr=0.5, prevalence=0.5))
        (0.75, 0.25)
        """
        g1, g0 = self.gains(c)
        # negatives/total, not 1 − prevalence, which loses its digits as prevalence nears one.
        return divide(c.positives, c.total) * g1, divide(c.negatives, c.total) * g0

    def best_cut(self, c: Confusion) -> Cell:
        r"""The probability above which a row is worth calling positive, if c is where the classifier operates.

        .. math:: \delta = \frac{g_0}{g_0 + g_1}, \qquad \text{for } F_\beta:\ \delta = \frac{F_\beta}{1 + \beta^2}

        At the optimum this is the best decision rule of all: η(x) ≥ δ*.

        >>> from fbeta import FBeta
        >>> c = Confusion(tp=8, fp=2, fn=4, tn=86)
        >>> round(FBeta(2).best_cut(c), 12) == round(FBeta(2)(c) / 5, 12)
        True

        Reference: [ye2012], [narasimhan2015]
        """
        g1, g0 = self.gains(c)
        return divide(g0, g0 + g1, undefined=0.5)

    def anchors(self, prevalence: float) -> Anchors:
        r"""Find x₀ and y₀ of the paper's loss for this metric, or say why there are none.

        The ratio of slopes R = (∂M/∂t)/(−∂M/∂u) of a metric with anchors is |u − x₀|/|t − y₀|: affine in u,
        its inverse affine in t. Two points give each anchor, the others confirm it.

        >>> from fbeta import FBeta
        >>> FBeta(1).anchors(prevalence=0.5)
        Anchors(negative=-1.0, positive=0.0, slope=nan)
        >>> from fbeta import GMean
        >>> GMean().anchors(prevalence=0.1)
        Anchors(negative=1.0, positive=0.0, slope=nan)
        """
        found = find_anchors(self, check_prevalence(prevalence))
        if found is None:
            raise ValueError(
                f"{self} has no anchors: its level lines in ROC space are curved and do not separate, so the "
                "surrogate loss does not exist for it. Use TangentLoss or SoftLoss, which take any metric."
            )
        return found[0]

    def pole(self, prevalence: float) -> Pole | None:
        """The point that all level lines pass through, or None where they do not meet in one.

        >>> from fbeta import FBeta
        >>> x, y = FBeta(2).pole(prevalence=0.1)
        >>> round(x, 3), y
        (-0.444, 0.0)
        >>> from fbeta import MCC
        >>> MCC().pole(prevalence=0.1) is None
        True
        """
        found = find_anchors(self, check_prevalence(prevalence))
        if found is None or not found[1]:
            return None
        a = found[0]
        return Pole(a.negative, a.positive, a.slope)

    def refusal(self, prevalence: float | None = None) -> str | None:
        """Say why no loss can be built on this metric, or None if one can.

        >>> from fbeta import Recall
        >>> Recall().refusal(0.1)  # doctest: +ELLIPSIS
        "Recall() gives nothing for a right negative, so 'everything positive' is already its optimum. ..."
        """
        rates = (0.01, 0.1, 0.5) if prevalence is None else (prevalence,)
        grid = (0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 0.98)
        for p in rates:
            some = Confusion.from_rates(0.2, 0.7, p)
            doubled = some + some
            if not math.isclose(self(some), self(doubled), rel_tol=1e-9, abs_tol=1e-12):
                return (
                    f"{self!r} changes when every row is counted twice, so it is no function of rates. "
                    "Divide by the number of rows."
                )
            slopes = [(u, t, *self.slopes(Confusion.from_rates(u, t, p))) for u in grid for t in grid if u <= t]
            steepest = max(max(abs(a), abs(b)) for *_, a, b in slopes)
            noise = 1e-9 * steepest  # what central differences of an opaque formula may be off by
            for u, t, by_t, by_u in slopes:
                if not (by_t >= -noise and by_u >= -noise):
                    side = "a right positive" if not by_t >= -noise else "a right negative"
                    return (
                        f"{self!r} has a negative slope: at FPR {u}, TPR {t} and prevalence {p} {side} lowers "
                        "the score. A training target must rise with both; did you swap two cells or forget "
                        "to negate a cost?"
                    )
            for side, other, column in (("positive", "negative", 2), ("negative", "positive", 3)):
                if all(abs(row[column]) <= 1e-4 * noise for row in slopes):
                    return (
                        f"{self!r} gives nothing for a right {side}, so 'everything {other}' is already its "
                        "optimum. Use FBeta with a large or small beta, or BalancedAccuracy()."
                    )
            pole = self.pole(p)
            if pole is not None and (pole.x, pole.y) in ((0.0, 0.0), (1.0, 1.0)):
                corner = "one confident positive" if pole.x == 0 else "one confident negative"
                return (
                    f"{self!r} puts its pole on the corner ({pole.x:g}, {pole.y:g}) of ROC space: {corner} "
                    "already scores 1, so no loss for it has a useful minimum. Use FBeta(beta=0.1) for "
                    "something close to precision, and choose the cut afterwards."
                )
        return None

    def __str__(self) -> str:
        """Write the spec that `as_metric` reads."""
        given = ",".join(f"{f.name}={_number(getattr(self, f.name))}" for f in fields(self))
        name = type(self).__name__.lower()
        return f"{name}:{given}" if given else name


def check_prevalence(prevalence: Any) -> float:
    """Read a prevalence as a float strictly between 0 and 1, or say what is wrong with it.

    >>> check_prevalence(0.1)
    0.1
    """
    try:
        p = float(prevalence)
    except (TypeError, ValueError):
        p = math.nan
    if not 0.0 < p < 1.0:
        raise ValueError(
            f"prevalence must lie strictly between 0 and 1; got {prevalence!r}. It is the share of positives "
            "in the population that the metric is about, for example y_train.mean()."
        )
    return p


def key_of(name: str) -> str:
    """How a name is looked up: without case, hyphens and underscores."""
    return name.strip().lower().replace("-", "").replace("_", "")


def _real(x: Cell) -> Cell:
    """Counts of an integer type as floats: their products overflow."""
    kind = getattr(x, "dtype", None)
    # Asked of every score, so not by its name, which NumPy takes its time to write.
    if kind is None or getattr(kind, "is_floating_point", False) or getattr(kind, "kind", "") == "f":
        return x
    return x.double() if hasattr(x, "detach") else x * 1.0


def _number(value: Any) -> str:
    return repr(float(value)).removesuffix(".0") if isinstance(value, int | float) else str(value)


def _inside(x: Cell, margin: float) -> Cell:
    """Clip numbers, arrays and tensors to [margin, 1 − margin]."""
    return x.clip(margin, 1 - margin) if hasattr(x, "clip") else min(max(x, margin), 1 - margin)
