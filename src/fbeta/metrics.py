"""Confusion-matrix metrics: each is one textbook formula, and everything else follows from it.

Score, slopes, pole, anchors and decision rule are methods of `Metric`; a metric adds only `ratio`.

Where a score is 0/0:

=====================================  ==============================  =======================================
metric                                 when                            value
=====================================  ==============================  =======================================
FBeta, Jaccard, Tversky, Precision,    the denominator is zero         0 (scikit-learn)
Recall, Specificity, FowlkesMallows
MCC                                    a margin is zero                0 (scikit-learn)
GMean                                  a class is absent               0 (imbalanced-learn)
BalancedAccuracy                       a class is absent               the other class's recall (scikit-learn)
Kappa                                  all in one cell, TP or TN       0, as MCC (scikit-learn: NaN unless told)
Accuracy, Cost                         no rows                         0
=====================================  ==============================  =======================================
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from typing import Any, ClassVar, overload

from fbeta.dual import Dual
from fbeta.geometry import Anchors, Cell, Confusion, Pole, divide, root
from fbeta.spelling import did_you_mean

#: What some call a metric that has another name here; f1, f2, f0.5 … are read as well.
OTHER_NAMES = {"dice": "fbeta", "iou": "jaccard"}


def _key(name: str) -> str:
    """How a name is looked up: without case, hyphens and underscores."""
    return name.strip().lower().replace("-", "").replace("_", "")


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

    #: Every metric by the name that `metric()` reads, filled as classes are defined.
    registry: ClassVar[dict[str, type[Metric]]] = {}

    #: The formula as one line of text, for people; empty if nobody wrote one.
    formula: ClassVar[str] = ""

    def __init_subclass__(cls, *, register: bool = True, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if not register:
            return
        name = _key(cls.__name__)
        known = Metric.registry.get(name)
        # Running a notebook cell twice defines the class twice; another class must not take the name over.
        if known is not None and (known.__module__, known.__qualname__) != (cls.__module__, cls.__qualname__):
            raise ValueError(f"A metric named {name!r} exists already ({known.__module__}); rename yours.")
        Metric.registry[name] = cls

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
            return self(
                Confusion(s.positives * t, s.negatives * u, s.positives * (1 - t), s.negatives * (1 - u))
            )

        by_t = (score(u, t + h) - score(u, t - h)) / (2 * h)
        by_u = (score(u - h, t) - score(u + h, t)) / (2 * h)
        return divide(by_t, s.positives), divide(by_u, s.negatives)

    def slopes(self, c: Confusion) -> tuple[Cell, Cell]:
        r"""Climb in ROC space: :math:`\partial M/\partial t` and :math:`-\partial M/\partial u` at the point of c.

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

        >>> FBeta(1).anchors(prevalence=0.5)
        Anchors(negative=-1.0, positive=0.0, slope=nan)
        >>> GMean().anchors(prevalence=0.1)
        Anchors(negative=1.0, positive=0.0, slope=nan)
        """
        found = self._anchors(check_prevalence(prevalence))
        if found is None:
            raise ValueError(
                f"{self} has no anchors: its level lines in ROC space are curved and do not separate, so the "
                "surrogate loss does not exist for it. Use TangentLoss or SoftLoss, which take any metric."
            )
        return found[0]

    def pole(self, prevalence: float) -> Pole | None:
        """The point that all level lines pass through, or None where they do not meet in one.

        >>> x, y = FBeta(2).pole(prevalence=0.1)
        >>> round(x, 3), y
        (-0.444, 0.0)
        >>> MCC().pole(prevalence=0.1) is None
        True
        """
        found = self._anchors(check_prevalence(prevalence))
        if found is None or not found[1]:
            return None
        a = found[0]
        return Pole(a.negative, a.positive, a.slope)

    def _anchors(self, prevalence: float) -> tuple[Anchors, bool] | None:
        """Anchors and whether they form a pole (a pencil of lines), or None."""

        def turn(u: float, t: float) -> float:
            try:
                by_t, by_u = self.slopes(Confusion.from_rates(u, t, prevalence))
                return float(by_t) / float(by_u)
            except (ZeroDivisionError, OverflowError):
                return math.inf  # singular here: other points are tried

        # On the edges u = 0 and t = 1 a tiny anchor keeps all its digits. A metric that is singular there, or
        # opaque (differences stay a little inside), gets points and a tolerance of its own.
        for u1, u2, t1, t2, noise, level in (
            (0.0, 0.5, 1.0, 0.5, 1e-14, 1e-10),
            (0.125, 0.5, 0.875, 0.625, 1e-7, 1e-7),
        ):
            across = turn(u1, t1), turn(u2, t1)
            along = turn(u2, t1), turn(u2, t2)
            if not all(map(math.isfinite, across + along)) or 0 in along:
                continue
            if all(math.isclose(*pair, rel_tol=level) for pair in (across, along)):
                anchors, sign = Anchors(math.inf, math.inf, slope=1 / along[0]), 1.0
            else:
                x0, y0 = (
                    _on_edge(_zero_of_line(*line), prevalence, noise)
                    for line in ((u1, across[0], u2, across[1]), (t1, 1 / along[0], t2, 1 / along[1]))
                )
                if math.isinf(x0) or math.isinf(y0) or t1 == y0:
                    continue
                anchors = Anchors(x0, y0)
                sign = math.copysign(1.0, (u2 - x0) / (t1 - y0))
            confirmed = all(
                math.isclose(
                    turn(u, t),
                    1 / anchors.slope
                    if anchors.at_infinity
                    else sign * (u - anchors.negative) / (t - anchors.positive),
                    rel_tol=1e-6,
                    abs_tol=1e-12,
                )
                for u, t in ((0.05, 0.6), (0.25, 0.75), (0.4, 0.95), (0.6, 0.8))
            )
            if confirmed:
                return anchors, sign > 0
        return None

    def refusal(self, prevalence: float | None = None) -> str | None:
        """Say why no loss can be built on this metric, or None if one can.

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
            slopes = [
                (u, t, *self.slopes(Confusion.from_rates(u, t, p))) for u in grid for t in grid if u <= t
            ]
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
        """Write the spec that `metric()` reads."""
        given = ",".join(f"{f.name}={_number(getattr(self, f.name))}" for f in fields(self))
        name = type(self).__name__.lower()
        return f"{name}:{given}" if given else name


@dataclass(frozen=True)
class FBeta(Metric):
    r"""F_β: the weighted harmonic mean of precision and recall.

    .. math:: F_\beta = \frac{(1 + \beta^2)\,TP}{(1 + \beta^2)\,TP + \beta^2 FN + FP}

    Its pole is (−β²π/(1−π), 0).

    >>> FBeta(2)(Confusion(tp=8, fp=2, fn=4, tn=86))
    0.6896551724137931

    Reference: [lee2021], eq. fbeta_score_primitive
    """

    formula: ClassVar[str] = "(1+β²)·TP / ((1+β²)·TP + β²·FN + FP)"

    beta: float = 1.0

    def __post_init__(self) -> None:
        _check_number(
            "beta", self.beta, above=0, below=1e100, hint="beta > 1 favours recall, beta < 1 precision"
        )

    def ratio(self, c: Confusion) -> tuple[Cell, Cell]:
        """(1+β²)TP over (1+β²)TP + β²FN + FP."""
        b2 = self.beta**2
        return (1 + b2) * c.tp, (1 + b2) * c.tp + b2 * c.fn + c.fp


@dataclass(frozen=True)
class Jaccard(Metric):
    r"""Jaccard index, intersection over union, critical success index.

    .. math:: J = \frac{TP}{TP + FP + FN}

    It shares the pole of F₁, hence its surrogate loss.

    >>> Jaccard()(Confusion(tp=2, fp=1, fn=1, tn=6))
    0.5

    Reference: [jaccard1912]
    """

    formula: ClassVar[str] = "TP / (TP + FP + FN)"

    def ratio(self, c: Confusion) -> tuple[Cell, Cell]:
        """TP over TP + FP + FN."""
        return c.tp, c.tp + c.fp + c.fn


@dataclass(frozen=True)
class Tversky(Metric):
    r"""Tversky index: `alpha` prices false positives, `beta` false negatives.

    .. math:: T = \frac{TP}{TP + \alpha\,FP + \beta\,FN}

    >>> Tversky(alpha=0.5, beta=0.5)(Confusion(tp=2, fp=1, fn=1, tn=6)) == FBeta(1)(Confusion(2, 1, 1, 6))
    True

    Reference: [tversky1977]
    """

    formula: ClassVar[str] = "TP / (TP + α·FP + β·FN)"

    alpha: float = 0.5
    beta: float = 0.5

    def __post_init__(self) -> None:
        _check_number("alpha", self.alpha, above=0, hint="it is the price of a false positive")
        _check_number("beta", self.beta, above=0, hint="it is the price of a false negative")

    def ratio(self, c: Confusion) -> tuple[Cell, Cell]:
        """TP over TP + αFP + βFN."""
        return c.tp, c.tp + self.alpha * c.fp + self.beta * c.fn


@dataclass(frozen=True)
class Kappa(Metric):
    r"""Cohen's κ, the Heidke skill score: agreement beyond chance.

    .. math:: \kappa = \frac{2\,(TP \cdot TN - FP \cdot FN)}{(TP+FP)(FP+TN) + (TP+FN)(FN+TN)}

    Its pole is (c, c) with c = −π/(1−2π), at infinity for π = ½ and on the other side beyond.

    >>> Kappa()(Confusion(tp=20, fp=10, fn=5, tn=15))
    0.4

    Reference: [cohen1960]
    """

    formula: ClassVar[str] = "2·(TP·TN − FP·FN) / ((TP+FP)·(FP+TN) + (TP+FN)·(FN+TN))"

    def ratio(self, c: Confusion) -> tuple[Cell, Cell]:
        """Twice the determinant over the two cross margins."""
        margins = (c.tp + c.fp) * c.negatives + c.positives * (c.fn + c.tn)
        return 2.0 * (c.tp * c.tn - c.fp * c.fn), margins


@dataclass(frozen=True)
class MCC(Metric):
    r"""Matthews correlation coefficient: the correlation of decision and truth.

    .. math:: MCC = \frac{TP \cdot TN - FP \cdot FN}{\sqrt{(TP+FP)(TP+FN)(TN+FP)(TN+FN)}}

    Its level lines are curved, so it has no pole; tangent and soft losses work.

    >>> MCC()(Confusion(tp=1, fp=0, fn=0, tn=1))
    1.0

    Reference: [matthews1975]
    """

    formula: ClassVar[str] = "(TP·TN − FP·FN) / √((TP+FP)·(TP+FN)·(TN+FP)·(TN+FN))"

    def ratio(self, c: Confusion) -> tuple[Cell, Cell]:
        """The determinant over the root of the four margins."""
        # Two roots of two margins: four counts multiplied together overflow single precision.
        margins = root((c.tp + c.fp) * c.positives) * root(c.negatives * (c.tn + c.fn))
        return c.tp * c.tn - c.fp * c.fn, margins


@dataclass(frozen=True)
class GMean(Metric):
    r"""Geometric mean of recall and specificity.

    .. math:: G = \sqrt{\frac{TP}{TP + FN} \cdot \frac{TN}{TN + FP}}

    No pole, but log G = ½ log t + ½ log(1−u) separates: anchors (1, 0), and the surrogate loss is
    class-balanced cross entropy.

    >>> GMean()(Confusion(tp=1, fp=1, fn=1, tn=1))
    0.5

    Reference: [kubat1997]
    """

    formula: ClassVar[str] = "√(TP/(TP+FN) · TN/(TN+FP))"

    def ratio(self, c: Confusion) -> tuple[Cell, Cell]:
        """The root of both recalls."""
        return root(c.tp * c.tn), root(c.positives * c.negatives)


@dataclass(frozen=True)
class BalancedAccuracy(Metric):
    r"""Mean recall of the classes that are there; Youden's J and the true skill statistic are 2·BA − 1.

    .. math:: BA = \tfrac12\left(\frac{TP}{TP + FN} + \frac{TN}{TN + FP}\right)

    >>> BalancedAccuracy()(Confusion(tp=1, fp=1, fn=1, tn=3))
    0.625

    Reference: [brodersen2010]
    """

    formula: ClassVar[str] = "½·(TP/(TP+FN) + TN/(TN+FP))"

    def ratio(self, c: Confusion) -> tuple[Cell, Cell]:
        """The sum of recalls over the number of classes present."""
        present = (c.positives != 0) * 1.0 + (c.negatives != 0) * 1.0
        return divide(c.tp, c.positives) + divide(c.tn, c.negatives), present


@dataclass(frozen=True)
class Accuracy(Metric):
    r"""Share of right decisions.

    .. math:: A = \frac{TP + TN}{n}

    >>> Accuracy()(Confusion(tp=1, fp=1, fn=0, tn=2))
    0.75
    """

    formula: ClassVar[str] = "(TP + TN) / n"

    def ratio(self, c: Confusion) -> tuple[Cell, Cell]:
        """Right decisions over all."""
        return c.tp + c.tn, c.total


@dataclass(frozen=True)
class FowlkesMallows(Metric):
    r"""Geometric mean of precision and recall.

    .. math:: FM = \frac{TP}{\sqrt{(TP + FP)(TP + FN)}}

    >>> FowlkesMallows()(Confusion(tp=2, fp=2, fn=2, tn=4))
    0.5

    Reference: [fowlkes1983]
    """

    formula: ClassVar[str] = "TP / √((TP+FP)·(TP+FN))"

    def ratio(self, c: Confusion) -> tuple[Cell, Cell]:
        """TP over the root of its two margins."""
        return c.tp, root((c.tp + c.fp) * c.positives)


@dataclass(frozen=True)
class Precision(Metric):
    r"""Share of alarms that are right. A score to report or to constrain, not to train for (see `refusal`).

    .. math:: P = \frac{TP}{TP + FP}

    >>> Precision()(Confusion(tp=3, fp=1, fn=5, tn=91))
    0.75
    """

    formula: ClassVar[str] = "TP / (TP + FP)"

    def ratio(self, c: Confusion) -> tuple[Cell, Cell]:
        """TP over TP + FP."""
        return c.tp, c.tp + c.fp


@dataclass(frozen=True)
class Recall(Metric):
    r"""Share of positives that are found; sensitivity, true positive rate.

    .. math:: R = \frac{TP}{TP + FN}

    >>> Recall()(Confusion(tp=3, fp=1, fn=1, tn=95))
    0.75
    """

    formula: ClassVar[str] = "TP / (TP + FN)"

    def ratio(self, c: Confusion) -> tuple[Cell, Cell]:
        """TP over the positives."""
        return c.tp, c.positives


@dataclass(frozen=True)
class Specificity(Metric):
    r"""Share of negatives that are left alone; true negative rate.

    .. math:: S = \frac{TN}{TN + FP}

    >>> Specificity()(Confusion(tp=0, fp=1, fn=0, tn=3))
    0.75
    """

    formula: ClassVar[str] = "TN / (TN + FP)"

    def ratio(self, c: Confusion) -> tuple[Cell, Cell]:
        """TN over the negatives."""
        return c.tn, c.negatives


@dataclass(frozen=True)
class Cost(Metric):
    r"""A business metric: minus the mean price of a row.

    .. math:: C = -\frac{c_{fp} FP + c_{fn} FN + c_{tp} TP + c_{tn} TN}{n}

    Gains are negative prices. Its level lines are parallel: the pole is at infinity.

    >>> Cost(fp=1, fn=20)(Confusion(tp=5, fp=10, fn=1, tn=84))
    -0.3
    >>> round(Cost(fp=1, fn=19).best_cut(Confusion(tp=5, fp=10, fn=1, tn=84)), 6)
    0.05
    """

    formula: ClassVar[str] = "−(fp·FP + fn·FN + tp·TP + tn·TN) / n"

    fp: float = 1.0
    fn: float = 1.0
    tp: float = 0.0
    tn: float = 0.0

    def __post_init__(self) -> None:
        for f in fields(self):
            _check_number(f.name, getattr(self, f.name))

    def ratio(self, c: Confusion) -> tuple[Cell, Cell]:
        """Minus the bill over the number of rows."""
        return -(self.fp * c.fp + self.fn * c.fn + self.tp * c.tp + self.tn * c.tn), c.total


@dataclass(frozen=True)
class Custom(Metric, register=False):
    """A plain function of the four cells as a metric; made by `metric(function)`."""

    function: Callable[[Any, Any, Any, Any], Any]

    def ratio(self, c: Confusion) -> tuple[Cell, Cell]:
        """The function's value over one."""
        return self.function(c.tp, c.fp, c.fn, c.tn), 1.0

    def __call__(self, c: Confusion) -> Cell:
        """Score the cells by the user's own function, 0/0 and all."""
        return self.function(c.tp, c.fp, c.fn, c.tn)

    def __str__(self) -> str:
        """Name the function (there is no spec to read back)."""
        return getattr(self.function, "__name__", repr(self.function))

    def __repr__(self) -> str:
        """As it was made, by the function's name: errors and modules show it."""
        return f"metric({self})"


@overload
def metric(spec: Metric) -> Metric: ...
@overload
def metric(spec: str) -> Metric: ...
@overload
def metric(spec: Callable[[Any, Any, Any, Any], Any]) -> Metric: ...
def metric(spec: Metric | str | Callable[[Any, Any, Any, Any], Any]) -> Metric:
    """Read a metric: an instance, a spec such as "fbeta:beta=2" or "f2", or a function of (tp, fp, fn, tn).

    >>> metric("fbeta:beta=2")
    FBeta(beta=2.0)
    >>> metric("f0.5"), metric("dice"), metric("iou")
    (FBeta(beta=0.5), FBeta(beta=1.0), Jaccard())
    >>> metric("balanced-accuracy")
    BalancedAccuracy()
    >>> metric(lambda tp, fp, fn, tn: tp / (tp + 3 * fn + fp))(Confusion(3, 0, 1, 6))
    0.5
    """
    if isinstance(spec, Metric):
        return spec
    if isinstance(spec, type) and issubclass(spec, Metric):
        raise TypeError(
            f"metric expects an instance; got the class {spec.__name__}. Write {spec.__name__}()."
        )
    if callable(spec):
        return Custom(spec)
    if not isinstance(spec, str):
        raise TypeError(
            f"A metric is a Metric, a spec such as 'fbeta:beta=2', or a function of (tp, fp, fn, tn); got {spec!r}."
        )
    name, _, options = spec.strip().partition(":")
    key = _key(name)
    if key not in Metric.registry:
        short = re.fullmatch(r"f(\d*\.?\d+)", key)
        if short and not options:
            return FBeta(float(short[1]))
        key = OTHER_NAMES.get(key, key)
    if key not in Metric.registry:
        hint = did_you_mean(key, Metric.registry)
        raise ValueError(
            f"Unknown metric {name!r}.{hint} Choices: {', '.join(sorted(Metric.registry))}; options follow a colon, "
            "as in fbeta:beta=2."
        )
    cls = Metric.registry[key]
    return cls(**dict(_options(cls, options)))


def title(metric: Metric) -> str:
    """The name of a metric, short.

    >>> title(FBeta(2)), title(FBeta(0.5)), title(FBeta(1.5))
    ('F₂', 'F½', 'F(β=1.5)')
    """
    if not isinstance(metric, FBeta):
        return str(metric)
    short = {0.5: "½"} | {float(i): "₀₁₂₃₄₅₆₇₈₉"[i] for i in range(1, 10)}
    return f"F{short.get(float(metric.beta), f'(β={metric.beta:g})')}"


def tangent_costs(metric: Metric, at: Confusion, stream: Cell = None) -> tuple[Cell, Cell]:
    r"""The prices (c₀, c₁) of a wrong negative and a wrong positive row at an operating point.

    .. math:: c_1 = \frac{\partial M/\partial t}{\pi_s}, \qquad c_0 = \frac{-\partial M/\partial u}{1 - \pi_s}

    π is the prevalence of `at`, π_s = `stream` that of the training rows (the same if None). For F_β
    c₀/(c₀ + c₁) = F_β/(1 + β²).

    Shape: cells ``(*)``; prices ``(*)``.

    >>> c0, c1 = tangent_costs(FBeta(1), Confusion(tp=0.25, fp=0.25, fn=0.25, tn=0.25))
    >>> c0 / (c0 + c1)
    0.25
    """
    g1, g0 = metric.gains(at)
    if stream is None:
        return g0, g1
    share = at.prevalence
    return g0 * (1 - share) / (1 - stream), g1 * share / stream


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


def _options(cls: type[Metric], text: str) -> Iterator[tuple[str, float]]:
    names = [f.name for f in fields(cls)]
    for part in filter(None, (p.strip() for p in text.split(","))):
        name, equals, value = (x.strip() for x in part.partition("="))
        if not equals or name not in names:
            takes = ", ".join(names) or "no options"
            raise ValueError(f"{cls.__name__.lower()} takes {takes}; got {part!r}. Write name=value.")
        try:
            yield name, float(value)
        except ValueError:
            raise ValueError(f"{name} of {cls.__name__.lower()} must be a number; got {value!r}.") from None


def _check_number(
    name: str, value: Any, above: float | None = None, below: float = math.inf, hint: str = ""
) -> None:
    bad = isinstance(value, bool | str) or not _is_finite(value) or (above is not None and value <= above)
    bad = bad or value >= below
    if bad:
        bound = "" if above is None else f" above {above:g}"
        raise ValueError(
            f"{name} must be a finite number{bound}; got {value!r}." + (f" ({hint}.)" if hint else "")
        )


def _real(x: Cell) -> Cell:
    """Counts of an integer type as floats: their products overflow."""
    kind = getattr(x, "dtype", None)
    # Asked of every score, so not by its name, which NumPy takes its time to write.
    if kind is None or getattr(kind, "is_floating_point", False) or getattr(kind, "kind", "") == "f":
        return x
    return x.double() if hasattr(x, "detach") else x * 1.0


def _is_finite(value: Any) -> bool:
    try:
        return math.isfinite(value)
    except TypeError:
        return False


def _number(value: Any) -> str:
    return repr(float(value)).removesuffix(".0") if isinstance(value, int | float) else str(value)


def _inside(x: Cell, margin: float) -> Cell:
    """Clip numbers, arrays and tensors to [margin, 1 − margin]."""
    return x.clip(margin, 1 - margin) if hasattr(x, "clip") else min(max(x, margin), 1 - margin)


def _zero_of_line(x1: float, v1: float, x2: float, v2: float) -> float:
    """Where the line through (x1, v1) and (x2, v2) crosses zero; infinite if it is level."""
    rise = v2 - v1
    if rise == 0:
        return math.inf
    return (x1 * v2 - x2 * v1) / rise


def _on_edge(anchor: float, prevalence: float, noise: float) -> float:
    """Snap an anchor to 0 or 1 where it differs by rounding only: it must not slip inside the square.

    Cells of the rarer class drown in the sum with those of the other, hence the tolerances.
    """
    for edge, share in ((0.0, 1.0 - prevalence), (1.0, prevalence)):
        if abs(anchor - edge) < noise / share:
            return edge
    return anchor
