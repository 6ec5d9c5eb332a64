"""Gradients and Hessians of the tangent and the surrogate loss, in NumPy, as a tree booster wants them.

Both losses are, class by class, a price times the log distance of f = sigmoid(z) from an anchor (see
`fbeta.losses.surrogate`, whose values these match; a test compares them). Written in r and v = 1 − r, the
probabilities of the wrong and the right class, a class is of one of two kinds:

    falls:  −w·B(v + d)    cross entropy (d = 0), the positives of F_β
    rises:  +w·B(r + d)    the negatives of F_β, where d = β²π/(1−π)

with B(x) = (x^q − 1)/q, the logarithm at q = 0. The gradient is exact. The Hessian is not always positive, and a
booster divides by it: log(r + d) is a difference of two convex functions, and the Hessian given is that of
the convex one. At q = 0 that is Newton's step on an upper bound of the loss, tangent to it here (the concave-convex
procedure). The true one, r·v·(d − 2dr − r²)/(d + r)², is negative for r > −d + √(d² + d), 0.24 for F₁ at π = 0.1.
For cross entropy nothing is dropped.

Reference: [lee2021], [yuille2003]
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fbeta.metrics import Anchors

Floats = NDArray[np.float32]

#: Beyond this margin single precision has no 1 − f left, and its exponential overflows soon after.
FAR = 80.0
#: The smallest Hessian of a row: a booster divides by sums of them.
LEAST = 1e-16


@dataclass(frozen=True)
class Side:
    """How the loss of one class depends on r, the probability of the wrong class.

    >>> Side.of(Anchors(-0.25, 0.0), positive=False)
    Side(falls=False, distance=0.25, scale=1.0, q=0.0)
    >>> Side.of(Anchors(1.0, 0.0), positive=False).falls  # cross entropy falls on both sides
    True
    """

    falls: bool
    distance: float
    scale: float
    q: float

    @classmethod
    def of(cls, anchors: Anchors, *, positive: bool, q: float = 0.0) -> Side:
        """Read the side of one class off a metric's anchors."""
        anchor = anchors.positive if positive else anchors.negative
        if anchors.at_infinity:
            # Level lines t = m·u + const: the distance itself (q = 1), priced so that the mean price is one.
            price = 2.0 * (1.0 if positive else anchors.slope) / (1.0 + anchors.slope)
            return cls(positive, 0.0, price, 1.0)
        falls = positive == (anchor <= 0)
        distance = anchors.distances[1 if positive else 0]
        # Far anchors (κ near π = ½) are rescaled, and measured relative to their distance.
        scale = anchors.scale
        return cls(falls, distance, scale if scale == 1.0 else scale * distance**-q, q)

    def derivatives(self, margin: Floats, gradient: Floats, hessian: Floats, scratch: Floats) -> None:
        """Write the first and second derivative by the margin m (z for positives, −z for negatives).

        Shape: all ``(n,)`` of single precision; `margin` is overwritten.
        """
        np.clip(margin, -FAR, FAR, out=margin)
        right = np.exp(margin, out=margin)
        wrong = np.add(right, 1.0, out=scratch)
        np.reciprocal(wrong, out=wrong)
        right *= wrong
        both = np.multiply(right, wrong, out=hessian)
        d, q = self.distance, self.q
        near = right if self.falls else wrong
        if self.falls and d == 0.0:
            # r·v/v = r: the shortest way, and the exact Hessian at q = 0.
            np.multiply(wrong, -self.scale, out=gradient)
            if self.scale != 1.0:
                both *= self.scale
        else:
            near += d
            np.divide(both, near, out=gradient)  # |∂ log(near)/∂m|
            if not self.falls:
                # d(1 + d)·r·v/(d + r)², and q·(∂ log)² for the power.
                np.divide(gradient, near, out=both)
                both *= d * (1.0 + d)
                if q:
                    both += q * gradient * gradient
            gradient *= -self.scale
            if self.scale != 1.0:
                both *= self.scale
        if q:
            lift = np.log(near, out=near)  # x^q by exp(q log x): NumPy's power is ten times slower
            lift *= q
            np.exp(lift, out=lift)
            gradient *= lift
            both *= lift
        np.maximum(hessian, LEAST, out=hessian)


class Gradients:
    """Gradient and Hessian of labelled rows at any scores; the arrays are the same ones at every call.

    `sides` are those of the negative and the positive class, `prices` their weights. Fresh arrays of millions of rows
    every round would cost as much as the arithmetic.

    Shape: `label` (0 and 1), `weight` and scores ``(n,)``; gradient and Hessian ``(n,)`` in single precision.

    >>> entropy = Side.of(Anchors(1.0, 0.0), positive=True)
    >>> gradient, hessian = Gradients([1, 0], None, (entropy, entropy), (0.5, 1.5))(np.zeros(2))
    >>> gradient.tolist(), hessian.tolist()
    ([-0.75, 0.25], [0.375, 0.125])
    """

    def __init__(
        self,
        label: ArrayLike,
        weight: ArrayLike | None,
        sides: tuple[Side, Side],
        prices: tuple[float, float],
    ) -> None:
        y = np.asarray(label)
        self.positive = y == 1
        n = len(y)
        self.weight = None if weight is None else np.asarray(weight, dtype=np.float32)
        self.sides = sides
        self.share = float(np.average(self.positive, weights=self.weight))
        self.gradient, self.hessian, self._margin, self._scratch = np.empty((4, n), dtype=np.float32)
        self._sign = np.where(self.positive, np.float32(1.0), np.float32(-1.0))
        # Where the classes differ, all rows are computed as the commoner one and the rarer one's rows again.
        self._rare = bool(2 * np.count_nonzero(self.positive) <= n)
        self._again = None if sides[0] == sides[1] else np.flatnonzero(self.positive == self._rare)
        self.set_prices(prices)

    def set_prices(self, prices: tuple[float, float]) -> None:
        """Weigh the classes anew."""
        self.prices = prices
        self._price = np.where(self.positive, np.float32(prices[1]), np.float32(prices[0]))
        if self.weight is not None:
            self._price *= self.weight
        self._signed = self._price * self._sign

    def __call__(self, scores: NDArray[np.floating]) -> tuple[Floats, Floats]:
        """Differentiate the loss of every row by its score."""
        g, h = self.gradient, self.hessian
        np.multiply(scores, self._sign, out=self._margin, casting="same_kind")
        if self._again is None:
            self.sides[0].derivatives(self._margin, g, h, self._scratch)
        else:
            some = self._margin[self._again]
            self.sides[not self._rare].derivatives(self._margin, g, h, self._scratch)
            first, second, scratch = np.empty((3, len(some)), dtype=np.float32)
            self.sides[self._rare].derivatives(some, first, second, scratch)
            g[self._again], h[self._again] = first, second
        g *= self._signed
        h *= self._price
        return g, h
