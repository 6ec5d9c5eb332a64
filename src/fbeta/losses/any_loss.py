"""AnyLoss: a metric on counts of amplified probabilities, which are nearly decisions."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from fbeta.losses.counting import soft_decisions
from fbeta.losses.soft import CountLoss


class AnyLoss(CountLoss, name="anyloss"):
    r"""One minus a metric on counts of amplified probabilities A(f).

    .. math:: L = 1 - M\!\left(\sum w y A,\ \sum w (1 - y) A,\ \ldots\right), \qquad
              A(f) = \frac{1}{1 + e^{-L (f - 1/2)}},\ f = \operatorname{sigmoid}(z)

    `L` > 0: the amplification, 73 in the paper; the larger, the closer the counts to those of f ≥ ½. Other
    arguments: see `SoftLoss`.

    Shape: `logits` and `target` as the task says; result ``()``.

    >>> AnyLoss("fbeta:beta=1", L=2.0)(torch.zeros(2), torch.tensor([1.0, 0.0]))
    tensor(0.5000)

    Reference: [han2024]
    """

    def __init__(self, metric: Any, prevalence: Any = None, *, L: float = 73.0, **options: Any) -> None:
        super().__init__(metric, prevalence, **options)
        if not 0 < L < math.inf:
            raise ValueError(f"L must be a finite number above 0 (73 in the paper); got {L!r}.")
        self.L = float(L)

    def squash(self, logits: Tensor) -> tuple[Tensor, Tensor]:
        """A and 1 − A."""
        # f − ½ = ½ tanh(z/2), with all digits where f is near ½.
        return soft_decisions(self.L / 2 * torch.tanh(logits / 2))
