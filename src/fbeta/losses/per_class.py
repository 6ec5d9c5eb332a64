"""Row losses that hold one number for each class, a weight or a margin; class weights from numbers of rows."""

from collections.abc import Sequence
from typing import Any, TypeAlias, Unpack

import numpy as np
from torch import Tensor

from fbeta.losses.module import RowLoss
from fbeta.losses.options import Options
from fbeta.losses.rates import per_column

#: "balanced", "effective", None, or the weights of the negative and the positive class.
Weighting: TypeAlias = str | Sequence[Any] | None


class PerClassLoss(RowLoss):
    """A row loss with a number for negatives and one for positives; for macro multi-label one pair per label.

    A single pair is plain numbers and needs no device; several are a buffer.
    """

    uses_metric = False
    pair: tuple[float, float] | None = (1.0, 1.0)
    table: Tensor

    def keep(self, name: str, numbers: tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]) -> None:
        """Keep the numbers of negatives and positives; `name` is what an error calls them."""
        n0, n1 = (per_column(name, n, self.reader) for n in numbers)
        self.pair = None if self.columns else (float(n0), float(n1))
        self.remember("table", np.stack([n0, n1]))

    @property
    def numbers(self) -> tuple[float | Tensor, float | Tensor]:
        """Both numbers: floats, or tensors with one entry per label."""
        if self.pair is not None:
            return self.pair
        n0, n1 = self.table
        return n0, n1


class BalancedLoss(PerClassLoss):
    """A row loss under class weights n/n_y.

    `weighting`: "balanced", "effective" (with `class_counts` and `effective_beta`), None, or a pair
    (negatives, positives), as in `SurrogateLoss`.
    """

    def __init__(
        self,
        metric: Any = None,
        prevalence: Any = None,
        *,
        weighting: Weighting = "balanced",
        effective_beta: float = 0.9999,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(metric, prevalence, **options)
        if weighting == "balanced" and self.prevalence is None:
            raise ValueError(
                f"{type(self).__name__} needs class_counts (or prevalence): they set its class weights. Give the "
                "(negatives, positives) of the training set, or for example prevalence=y_train.mean()."
            )
        known = {"prevalence": self.prevalence, "class_counts": self.class_counts}
        self.keep("weighting", class_weights(weighting, effective_beta=effective_beta, **known))
        self.steepest = float(self.table.max())


def class_weights(
    weighting: Weighting, *, prevalence: Any = None, class_counts: Any = None, effective_beta: float = 0.9999
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    r"""Weights (w₀, w₁) of negatives and positives.

    .. math:: \text{balanced: } w_y = \frac{n}{n_y}, \qquad
              \text{effective: } w_y \propto \frac{1 - b}{1 - b^{n_y}},\ w_0 + w_1 = 2

    Shape: numbers above 0, or one per label where `prevalence` or `class_counts` has one per label.

    >>> [round(float(w), 4) for w in class_weights("balanced", prevalence=0.1)]
    [1.1111, 10.0]
    >>> [round(float(w), 4) for w in class_weights("effective", class_counts=(900, 100), effective_beta=0.99)]
    [0.776, 1.224]

    Reference: [cui2019]
    """
    if weighting is None:
        return np.array(1.0), np.array(1.0)
    if not isinstance(weighting, str):
        try:
            pair = tuple(np.asarray(w, dtype=np.float64) for w in weighting)
        except (TypeError, ValueError, RuntimeError):
            pair = ()
        sound = len(pair) == 2 and all(np.isfinite(w).all() and (w >= 0).all() for w in pair)
        if not sound or not any(w.any() for w in pair):
            raise ValueError(
                "An explicit weighting is a pair (negatives, positives) of finite numbers from 0, not both 0; got "
                f"{weighting!r}."
            )
        return pair[0], pair[1]
    if weighting == "balanced":
        # Only the shares matter here, so a prevalence will do where no counts are given.
        shares = (1.0 - np.asarray(prevalence), np.asarray(prevalence)) if class_counts is None else class_counts
        n0, n1 = (np.asarray(n, dtype=np.float64) for n in shares)
        return (n0 + n1) / n0, (n0 + n1) / n1
    if weighting == "effective":
        if class_counts is None:
            raise ValueError("weighting='effective' needs class_counts=(negatives, positives), not rates alone.")
        if not 0.0 <= effective_beta < 1.0:
            raise ValueError(f"effective_beta must lie in [0, 1); got {effective_beta!r}.")
        n0, n1 = (np.asarray(n, dtype=np.float64) for n in class_counts)
        if not ((n0 >= 1).all() and (n1 >= 1).all()):
            raise ValueError(f"weighting='effective' needs numbers of rows, not rates; got {class_counts!r}.")
        w0, w1 = ((1 - effective_beta) / (1 - effective_beta**n) for n in (n0, n1))
        return 2 * w0 / (w0 + w1), 2 * w1 / (w0 + w1)
    raise ValueError(
        f"weighting must be 'balanced', 'effective', None or a pair (negatives, positives); got {weighting!r}."
    )
