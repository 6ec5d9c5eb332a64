"""Fitted table models as plain arrays: they predict without torch and pickle small."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fbeta.sklearn.labels import Array


@dataclass(frozen=True)
class Network:
    """Layers x ↦ xW + b with max(0, x) between them; one layer is a linear model.

    Shape: rows ``(n, d)``; logits ``(n, K)``.

    >>> Network((np.array([[2.0]]),), (np.array([-1.0]),))(np.array([[3.0]]))
    array([[5.]])
    """

    weights: tuple[Array, ...]
    biases: tuple[Array, ...]

    def __call__(self, X: Any) -> Array:
        """Logits of rows, in double precision."""
        for i, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            X = (X if i == 0 else np.maximum(X, 0)) @ weight + bias
        return np.asarray(X)

    def unstandardised(self, mean: Array | None, scale: Array | None) -> Network:
        """The same network on raw features, where it was trained on (x − mean)/scale."""
        first = self.weights[0] if scale is None else self.weights[0] / scale[:, None]
        bias = self.biases[0] if mean is None else self.biases[0] - mean @ first
        return Network((first, *self.weights[1:]), (bias, *self.biases[1:]))
