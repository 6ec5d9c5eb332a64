r"""The loss of one class as a function of its distance to an anchor: value, gradient and curvature.

The surrogate loss of a row depends on its margin m (z for positives, −z for negatives) through the probability of
its right class, v = sigmoid(m), or of the wrong one, r = 1 − v. A class is of one of two kinds:

    falls:  −s·B(v + d)    cross entropy (d = 0), the positives of F_β
    rises:  +s·B(r + d)    the negatives of F_β, where d = β²π/(1−π)

with B(x) = (x^q − 1)/q, the logarithm at q = 0. Everything here works on NumPy arrays and on torch tensors; `xp` is
the library that they belong to.

Reference: [lee2021], [yuille2003]
"""

import math
from typing import Any, NamedTuple, Self

from fbeta.metrics.anchors import Anchors, outside

#: Cross entropy is the log distance to the corner of ROC space where every call is right.
CROSS_ENTROPY = Anchors(1.0, 0.0)
#: Beyond this margin single precision has no 1 − f left, and its exponential overflows soon after.
FAR = 80.0
#: The smallest curvature of a row: a booster divides by sums of them.
LEAST = 1e-16


def log_add(a: Any, b: Any, xp: Any) -> Any:
    """log(eᵃ + eᵇ), one of them finite: torch's own has no second derivative where they are far apart.

    >>> import numpy as np
    >>> log_add(np.log(2.0), np.log(3.0), np).round(4) == np.log(5.0).round(4)
    np.True_
    """
    return xp.maximum(a, b) + xp.log1p(xp.exp(-xp.abs(a - b)))


class AnchorTerm(NamedTuple):
    """One class's loss as a function of its distance to an anchor; fields are floats, or arrays with one per label.

    An anchor beyond 1 is the mirror image of one below 0, so a single `distance` from the square is enough. One at
    infinity is the q = 1 member of the family: the distance itself, not its logarithm.

    >>> AnchorTerm.of(Anchors(-0.25, 0.0), positive=False)
    AnchorTerm(sign=1.0, distance=0.25, relative=0.0, scale=1.0, q=0.0, offset=0.0)
    >>> AnchorTerm.of(CROSS_ENTROPY, positive=False) == AnchorTerm.of(CROSS_ENTROPY, positive=True)
    True
    """

    sign: Any  # 1: rises with the wrong probability, −1: falls with the right one
    distance: Any
    relative: Any  # 1: log((d + x)/d) instead of log(d + x)
    scale: Any
    q: Any
    offset: Any

    @classmethod
    def of(cls, anchors: Anchors, *, positive: bool, q: float = 0.0) -> Self:
        """The term of the positive or the negative class of a metric with these anchors."""
        if anchors.at_infinity:
            # Level lines t = m·u + const: m·u − t, priced so that the mean price is one.
            price = 2.0 * (1.0 if positive else anchors.slope) / (1.0 + anchors.slope)
            return cls(-1.0, 0.0, 0.0, price, 1.0, 0.0) if positive else cls(1.0, 0.0, 0.0, price, 1.0, price)
        return cls.at(anchors.positive if positive else anchors.negative, positive, anchors.scale, q)

    @classmethod
    def at(cls, anchor: float, positive: bool, scale: float = 1.0, q: float = 0.0) -> Self:
        """The term of a class with one finite anchor; a `scale` other than 1 belongs to far anchors.

        >>> AnchorTerm.at(2.0, positive=True)
        AnchorTerm(sign=1.0, distance=1.0, relative=0.0, scale=1.0, q=0.0, offset=0.0)
        """
        if 0.0 < anchor < 1.0:
            raise ValueError(f"The anchor {anchor:g} lies inside ROC space, where the log distance is undefined.")
        sign = 1.0 if positive == (anchor > 0) else -1.0
        distance = outside(anchor)
        if scale == 1.0:
            return cls(sign, distance, 0.0, 1.0, q, 0.0)
        # Far anchors: a perfect prediction costs nothing on either side, so that κ passes through π = ½
        # without a jump.
        full = 0.0 if sign > 0 else scale * box_cox(math.log1p(1 / distance), q)
        return cls(sign, distance, 1.0, scale, q, full)

    def value(self, log_near: Any, xp: Any) -> Any:
        """The loss, given log x of the probability that matters: the wrong class's if `sign` is 1, else the right's.

        Far away log1p(x/d) keeps its digits; near by log(d + x) does, down to log 0.

        Shape: `log_near` ``(*)``, or ``(*, K)`` for fields with one entry per label; the same comes back.

        >>> import numpy as np
        >>> AnchorTerm.of(Anchors(-1.0, 0.0), positive=False).value(np.log([0.5, 1.0]), np).round(4)
        array([0.4055, 0.6931])
        """
        d, far = self.distance, self.relative
        if not isinstance(far, float):
            distance = xp.where(far > 0, self._log_far(log_near, xp), self._log_near(log_near, xp))
        else:
            distance = self._log_far(log_near, xp) if far else self._log_near(log_near, xp)
        risen = box_cox(distance, self.q, xp)
        if isinstance(d, float) and d > 1 and not far and self.q * math.log(d) > 1:
            # A large distance to a power: through its logarithm it would lose the digits that the logarithm has.
            risen = ((d + xp.exp(log_near)) ** self.q - 1) / self.q
        return self.sign * self.scale * risen + self.offset

    def _log_far(self, log_near: Any, xp: Any) -> Any:
        d = self.distance
        return xp.log1p(xp.exp(log_near) / (d if isinstance(d, float) else xp.where(d > 0, d, 1.0)))

    def _log_near(self, log_near: Any, xp: Any) -> Any:
        d = self.distance
        if not isinstance(d, float):
            # Where d is 0 the sum is the probability itself; log 0 + log 0 would have no slope.
            some = log_add(log_near, xp.log(xp.where(d > 0, d, 1.0)), xp)
            return xp.where(d > 0, some, log_near)
        return log_near if d == 0 else log_add(log_near, xp.full_like(log_near, math.log(d)), xp)

    def derivatives(self, margin: Any, gradient: Any, curvature: Any, scratch: Any, xp: Any) -> None:
        r"""Write the first derivative by the margin m, and a positive second one, as a booster divides by it.

        The gradient is exact. The true second derivative of a rising term, r·v·(d − 2dr − r²)/(d + r)², is negative
        for r > −d + √(d² + d), 0.24 for F₁ at π = 0.1. But log(r + d) is a difference of two convex functions, and
        what is written is the second derivative of the convex one: at q = 0 that is Newton's step on an upper bound
        of the loss, tangent to it here (the concave-convex procedure). For cross entropy nothing is dropped.

        Shape: all ``(n,)`` of one type, without autograd; `margin` is overwritten.

        >>> import numpy as np
        >>> m, g, h, s = np.zeros((4, 1), dtype=np.float32)
        >>> AnchorTerm.of(CROSS_ENTROPY, positive=True).derivatives(m, g, h, s, np)
        >>> g.tolist(), h.tolist()
        ([-0.5], [0.25])
        """
        falls, d, q = self.sign < 0, self.distance, self.q
        # ((d + x)/d)^q differs from (d + x)^q by a factor.
        scale = self.scale * d**-q if self.relative else self.scale
        xp.clip(margin, -FAR, FAR, out=margin)
        right = xp.exp(margin, out=margin)
        wrong = xp.add(right, 1.0, out=scratch)
        xp.reciprocal(wrong, out=wrong)
        right *= wrong
        both = xp.multiply(right, wrong, out=curvature)
        near = right if falls else wrong
        if falls and d == 0.0:
            # r·v/v = r: the shortest way, and the exact curvature at q = 0.
            xp.multiply(wrong, -scale, out=gradient)
            if scale != 1.0:
                both *= scale
        else:
            near += d
            xp.divide(both, near, out=gradient)  # |∂ log(near)/∂m|
            if not falls:
                # d(1 + d)·r·v/(d + r)², and q·(∂ log)² for the power.
                xp.divide(gradient, near, out=both)
                both *= d * (1.0 + d)
                if q:
                    both += q * gradient * gradient
            gradient *= -scale
            if scale != 1.0:
                both *= scale
        if q:
            lift = xp.log(near, out=near)  # x^q by exp(q log x): NumPy's power is ten times slower
            lift *= q
            xp.exp(lift, out=lift)
            gradient *= lift
            both *= lift
        xp.clip(curvature, LEAST, None, out=curvature)


def box_cox(log_x: Any, q: Any, xp: Any = None) -> Any:
    r"""Turn log x into (x^q − 1)/q, and leave it as it is at q = 0.

    .. math:: \frac{x^q - 1}{q} = \frac{\operatorname{expm1}(q \log x)}{q} \to \log x

    Shape: a float (then `xp` is not needed), or an array of any shape; an array `q` broadcasts.

    Reference: [zhang2018]
    """
    if isinstance(q, float | int):
        if q < 1e-12:  # below that the limit is exact, and q itself may underflow
            return log_x
        return (math.expm1(q * log_x) if isinstance(log_x, float) else _expm1(q * log_x, xp)) / q
    none = q < 1e-12
    some = xp.where(none, 1.0, q)
    return xp.where(none, log_x, _expm1(some * log_x, xp) / some)


def check_q(q: Any) -> float:
    """Read q in [0, 1]."""
    if isinstance(q, str) or not 0.0 <= q <= 1.0:
        raise ValueError(f"q must lie in [0, 1] (0: logarithm, 1: absolute error); got {q!r}.")
    return float(q)


def _expm1(x: Any, xp: Any) -> Any:
    """expm1 whose derivative keeps its digits far below zero, where torch computes it as (e^x − 1) + 1."""
    far = x < -0.5
    return xp.where(far, xp.exp(x) - 1, xp.expm1(xp.where(far, 0.0, x)))
