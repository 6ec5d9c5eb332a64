"""Gradients and Hessians of the tangent and the surrogate loss for labelled rows, as a tree booster wants them.

Both losses are, class by class, a price times a function of the distance to an anchor: `fbeta.metrics.distance` has
that function, and says which Hessian is given where the true one is negative.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fbeta.metrics import AnchorTerm

Floats = NDArray[np.float32]


class Gradients:
    """Gradient and Hessian of labelled rows at any scores; the arrays are the same ones at every call.

    `terms` are those of the negative and the positive class, `prices` their weights. Fresh arrays of millions of rows
    in every round would cost as much as the arithmetic.

    Shape: `label` (0 and 1), `weight` and scores ``(n,)``; gradient and Hessian ``(n,)`` in single precision.
    """

    def __init__(
        self,
        label: ArrayLike,
        weight: ArrayLike | None,
        terms: tuple[AnchorTerm, AnchorTerm],
        prices: tuple[float, float],
    ) -> None:
        y = np.asarray(label)
        self.positive = y == 1
        n = len(y)
        self.weight = None if weight is None else np.asarray(weight, dtype=np.float32)
        self.terms = terms
        self.share = float(np.average(self.positive, weights=self.weight))
        self.gradient, self.hessian, self._margin, self._scratch = np.empty((4, n), dtype=np.float32)
        self._sign = np.where(self.positive, np.float32(1.0), np.float32(-1.0))
        # Where the classes differ, all rows are computed as the commoner one and the rarer one's rows again.
        self._rare = bool(2 * np.count_nonzero(self.positive) <= n)
        self._again = None if terms[0] == terms[1] else np.flatnonzero(self.positive == self._rare)
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
            self.terms[0].derivatives(self._margin, g, h, self._scratch, np)
        else:
            some = self._margin[self._again]
            self.terms[not self._rare].derivatives(self._margin, g, h, self._scratch, np)
            first, second, scratch = np.empty((3, len(some)), dtype=np.float32)
            self.terms[self._rare].derivatives(some, first, second, scratch, np)
            g[self._again], h[self._again] = first, second
        g *= self._signed
        h *= self._price
        return g, h
