"""Row losses that hold one number for each class: a weight, or a margin."""

from typing import Any, Unpack

import numpy as np
from torch import Tensor

from fbeta.losses.module import RowLoss
from fbeta.losses.options import Options
from fbeta.losses.rates import per_column
from fbeta.losses.weighting import Weighting, class_weights


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
