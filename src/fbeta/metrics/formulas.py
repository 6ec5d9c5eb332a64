"""Confusion-matrix metrics: each is one textbook formula, and everything else follows from it.

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

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

from fbeta.metrics.confusion import Cell, Confusion, divide, root
from fbeta.metrics.metric import Metric


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
        _check_number("beta", self.beta, above=0, below=1e100, hint="beta > 1 favours recall, beta < 1 precision")

    def ratio(self, c: Confusion) -> tuple[Cell, Cell]:
        b2 = self.beta**2
        return (1 + b2) * c.tp, (1 + b2) * c.tp + b2 * c.fn + c.fp


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
        return c.tp, c.tp + self.alpha * c.fp + self.beta * c.fn


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
        margins = (c.tp + c.fp) * c.negatives + c.positives * (c.fn + c.tn)
        return 2.0 * (c.tp * c.tn - c.fp * c.fn), margins


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
        # Two roots of two margins: four counts multiplied together overflow single precision.
        margins = root((c.tp + c.fp) * c.positives) * root(c.negatives * (c.tn + c.fn))
        return c.tp * c.tn - c.fp * c.fn, margins


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
        return root(c.tp * c.tn), root(c.positives * c.negatives)


class BalancedAccuracy(Metric):
    r"""Mean recall of the classes that are there; Youden's J and the true skill statistic are 2·BA − 1.

    .. math:: BA = \tfrac12\left(\frac{TP}{TP + FN} + \frac{TN}{TN + FP}\right)

    >>> BalancedAccuracy()(Confusion(tp=1, fp=1, fn=1, tn=3))
    0.625

    Reference: [brodersen2010]
    """

    formula: ClassVar[str] = "½·(TP/(TP+FN) + TN/(TN+FP))"

    def ratio(self, c: Confusion) -> tuple[Cell, Cell]:
        present = (c.positives != 0) * 1.0 + (c.negatives != 0) * 1.0
        return divide(c.tp, c.positives) + divide(c.tn, c.negatives), present


class Accuracy(Metric):
    r"""Share of right decisions.

    .. math:: A = \frac{TP + TN}{n}

    >>> Accuracy()(Confusion(tp=1, fp=1, fn=0, tn=2))
    0.75
    """

    formula: ClassVar[str] = "(TP + TN) / n"

    def ratio(self, c: Confusion) -> tuple[Cell, Cell]:
        return c.tp + c.tn, c.total


class FowlkesMallows(Metric):
    r"""Geometric mean of precision and recall.

    .. math:: FM = \frac{TP}{\sqrt{(TP + FP)(TP + FN)}}

    >>> FowlkesMallows()(Confusion(tp=2, fp=2, fn=2, tn=4))
    0.5

    Reference: [fowlkes1983]
    """

    formula: ClassVar[str] = "TP / √((TP+FP)·(TP+FN))"

    def ratio(self, c: Confusion) -> tuple[Cell, Cell]:
        return c.tp, root((c.tp + c.fp) * c.positives)


class Precision(Metric):
    r"""Share of alarms that are right. A score to report or to constrain, not to train for (see `refusal`).

    .. math:: P = \frac{TP}{TP + FP}

    >>> Precision()(Confusion(tp=3, fp=1, fn=5, tn=91))
    0.75
    """

    formula: ClassVar[str] = "TP / (TP + FP)"

    def ratio(self, c: Confusion) -> tuple[Cell, Cell]:
        return c.tp, c.tp + c.fp


class Recall(Metric):
    r"""Share of positives that are found; sensitivity, true positive rate.

    .. math:: R = \frac{TP}{TP + FN}

    >>> Recall()(Confusion(tp=3, fp=1, fn=1, tn=95))
    0.75
    """

    formula: ClassVar[str] = "TP / (TP + FN)"

    def ratio(self, c: Confusion) -> tuple[Cell, Cell]:
        return c.tp, c.positives


class Specificity(Metric):
    r"""Share of negatives that are left alone; true negative rate.

    .. math:: S = \frac{TN}{TN + FP}

    >>> Specificity()(Confusion(tp=0, fp=1, fn=0, tn=3))
    0.75
    """

    formula: ClassVar[str] = "TN / (TN + FP)"

    def ratio(self, c: Confusion) -> tuple[Cell, Cell]:
        return c.tn, c.negatives


@dataclass(frozen=True)
class Cost(Metric):
    r"""A business metric: minus the mean price of a row.

    .. math:: C = -\frac{c_{fp} FP + c_{fn} FN + c_{tp} TP + c_{tn} TN}{n}

    Gains are negative prices. Its level lines are parallel: the pole is at infinity.

    `matrix` has the prices of K classes that exclude each other, in place of these four: row i, column j is what it
    costs to call class j where class i is true, as `sklearn.metrics.confusion_matrix` counts them. The call of least
    expected cost is made by ``tune(…, exclusive=True)``, `Decision` and `ThresholdClassifier`. Of two classes the
    second, for estimators the second of `classes_`, is the positive one: [[tn, fp], [fn, tp]].

    >>> Cost(fp=1, fn=20)(Confusion(tp=5, fp=10, fn=1, tn=84))
    -0.3
    >>> round(Cost(fp=1, fn=19).best_cut(Confusion(tp=5, fp=10, fn=1, tn=84)), 6)
    0.05
    >>> Cost(matrix=[[0, 1], [20, 0]])(Confusion(tp=5, fp=10, fn=1, tn=84))
    -0.3

    Reference: [elkan2001]
    """

    formula: ClassVar[str] = "−(fp·FP + fn·FN + tp·TP + tn·TN) / n"

    fp: float = 1.0
    fn: float = 1.0
    tp: float = 0.0
    tn: float = 0.0
    matrix: Any = field(default=None, metadata={"read": str})

    def __post_init__(self) -> None:
        if self.matrix is not None:
            object.__setattr__(self, "matrix", _read_prices(self.matrix))
            if len(self.matrix) == 2:
                (tn, fp), (fn, tp) = self.matrix
                for name, price in {"fp": fp, "fn": fn, "tp": tp, "tn": tn}.items():
                    object.__setattr__(self, name, price)
        for name in ("fp", "fn", "tp", "tn"):
            _check_number(name, getattr(self, name))

    def __str__(self) -> str:
        """Write the spec that `as_metric` reads, such as cost:fp=1,fn=20,tp=0,tn=0 or cost:matrix=0 1;20 0."""
        if self.matrix is None:
            return f"cost:fp={_plain(self.fp)},fn={_plain(self.fn)},tp={_plain(self.tp)},tn={_plain(self.tn)}"
        return "cost:matrix=" + ";".join(" ".join(map(_plain, row)) for row in self.matrix)

    def ratio(self, c: Confusion) -> tuple[Cell, Cell]:
        if self.matrix is not None and len(self.matrix) > 2:
            raise ValueError(
                f"The cost matrix is of {len(self.matrix)} classes, so four cells do not have a cost. Decide among "
                "classes: tune(…, exclusive=True), Decision.fit(…, exclusive=True) or ThresholdClassifier."
            )
        return -(self.fp * c.fp + self.fn * c.fn + self.tp * c.tp + self.tn * c.tn), c.total


def _plain(price: float) -> str:
    return repr(float(price)).removesuffix(".0")


def _read_prices(matrix: Any) -> tuple[tuple[float, ...], ...]:
    rows = matrix.to_numpy() if hasattr(matrix, "to_numpy") else matrix
    rows = [row.split() for row in rows.split(";")] if isinstance(rows, str) else rows
    try:
        found = tuple(tuple(float(price) for price in row) for row in rows)
    except (TypeError, ValueError):
        found = ()
    if len(found) < 2 or not all(len(row) == len(found) and all(map(math.isfinite, row)) for row in found):
        raise ValueError(
            "matrix holds a finite price for each true class (rows) and each called class (columns), so it is square, "
            f"from 2 classes on; got {matrix!r:.80}."
        )
    return found


def _check_number(name: str, value: Any, above: float = -math.inf, below: float = math.inf, hint: str = "") -> None:
    try:
        finite = math.isfinite(value)
    except TypeError:
        finite = False
    if isinstance(value, bool) or not finite or not above < value < below:
        bound = f" above {above:g}" if math.isfinite(above) else ""
        hint = f" ({hint}.)" if hint else ""
        raise ValueError(f"{name} must be a finite number{bound}; got {value!r}.{hint}")
