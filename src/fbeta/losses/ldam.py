"""LDAM: cross entropy with a margin that is wider for the rarer class."""

import math
from functools import partial
from typing import Any, Unpack

import numpy as np
import torch.nn.functional as F
from torch import Tensor

from fbeta.losses.elements import cast, parts
from fbeta.losses.kernels.plain import Elements
from fbeta.losses.options import Options
from fbeta.losses.per_class import PerClassLoss


def ldam_loss(
    logits: Tensor, target: Tensor, margins: tuple[float | Tensor, float | Tensor], scale: float = 30.0
) -> Tensor:
    r"""Cross entropy of scaled logits with a margin for each class, element by element.

    .. math:: \ell(z, 1) = \log(1 + e^{-s(z - \Delta_1)}), \qquad \ell(z, 0) = \log(1 + e^{s(z + \Delta_0)})

    That is the two-class softmax form −log(e^{s(z_y − Δ_y)} / (e^{s(z_y − Δ_y)} + e^{s z_k})), k the other class,
    written in the difference z = z₁ − z₀, which is what a single logit is.

    Shape: `logits` and `target` ``(*)`` alike, margins (Δ₀, Δ₁) numbers or broadcastable; result ``(*)``.

    >>> import torch
    >>> ldam_loss(torch.tensor([0.5, 0.5]), torch.tensor([1.0, 0.0]), margins=(0.25, 0.5), scale=2.0)
    tensor([0.6931, 1.7014])

    Reference: [cao2019]
    """
    d0, d1 = cast(margins, logits.dtype)
    one, zero = parts(logits, target)
    missed, alarmed = F.logsigmoid(scale * (one.logits - d1)), F.logsigmoid(-scale * (zero.logits + d0))
    return -one.share * missed - zero.share * alarmed


class LDAMLoss(PerClassLoss, name="ldam"):
    r"""Label-distribution-aware margin loss: the rarer class has to win by more.

    .. math:: L = \frac1n \sum_i \log\left(1 + e^{-s (z_{y_i} - z_{1 - y_i} - \Delta_{y_i})}\right), \qquad
              \Delta_y = \frac{C}{n_y^{1/4}},\ z_1 - z_0 = z

    - `class_counts`: needed, the margins come from it (for macro multi-label each label has its own pair).
    - `max_margin`: the margin of the rarer class, which sets C; 0.5 in the authors' code.
    - `scale`: s; their 30 belongs to scores that are cosines (features and weights of the last layer
      normalised). For ordinary logits 1 is the scale of cross entropy.

    Other arguments: see `Loss`. The metric is remembered, not used. The decision stays z ≥ 0.

    Shape: `logits` and `target` as the task says; result ``()``, or the target's shape if reduction is "none".

    >>> import torch
    >>> loss = LDAMLoss(class_counts=(1600, 100), scale=2.0)
    >>> loss(torch.tensor([0.5, 0.5]), torch.tensor([1.0, 0.0]))
    tensor(1.1973)

    Reference: [cao2019]
    """

    tasks = ("binary", "softmax2", "multilabel")

    def __init__(
        self,
        metric: Any = None,
        prevalence: Any = None,
        *,
        max_margin: float = 0.5,
        scale: float = 30.0,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(metric, prevalence, **options)
        if self.class_counts is None:
            raise ValueError(
                "LDAMLoss needs class_counts=(negatives, positives) of the training set: its margins come from "
                "them. Count the targets once, for example (len(y) - y.sum(), y.sum())."
            )
        if not 0 <= max_margin < math.inf:
            raise ValueError(f"max_margin must be finite and zero or more; got {max_margin!r}.")
        if not 0 < scale < math.inf:
            raise ValueError(f"scale must be a finite number above 0; got {scale!r}.")
        n0, n1 = self.class_counts
        rarer = np.minimum(n0, n1)
        self.keep("class_counts", (max_margin * (rarer / n0) ** 0.25, max_margin * (rarer / n1) ** 0.25))
        self.scale = self.steepest = float(scale)

    def elements(self) -> Elements:
        """Cross entropy with margins."""
        return partial(ldam_loss, margins=self.numbers, scale=self.scale)
