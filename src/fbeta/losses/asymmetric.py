"""Asymmetric loss: focal loss with a focus of its own for negatives, of which the easiest are dropped."""

from __future__ import annotations

from functools import partial
from typing import Any, Unpack

import torch
from torch import Tensor

from fbeta.losses.elements import parts
from fbeta.losses.focal import check_gamma, focused
from fbeta.losses.kernels.plain import Elements
from fbeta.losses.module import RowLoss
from fbeta.losses.options import Options


def asymmetric_loss(
    logits: Tensor, target: Tensor, gamma_neg: float = 4.0, gamma_pos: float = 1.0, clip: float = 0.05
) -> Tensor:
    r"""Asymmetric loss, element by element.

    .. math:: \ell(z, 1) = -(1 - f)^{\gamma_+} \log f, \qquad
              \ell(z, 0) = -f_m^{\gamma_-} \log(1 - f_m), \qquad f_m = \max(f - m, 0)

    with f = sigmoid(z) and m = `clip`. The gradient flows through the focus too, as the formula has it (the
    authors' code can stop it there).

    Shape: `logits` and `target` ``(*)`` alike; result ``(*)``.

    >>> asymmetric_loss(torch.tensor([0.0, 2.0]), torch.tensor([1.0, 0.0]))
    tensor([0.3466, 0.8464])

    Reference: [ridnik2021]
    """
    one, zero = parts(logits, target)
    missed, alarmed = focused(one.logits, zero.logits, gamma_pos, gamma_neg)
    if clip:
        shifted = torch.sigmoid(zero.logits) - clip
        easy = shifted <= 0
        # Easy negatives get a harmless number first: a slope of log 0 would be NaN even where it is not taken.
        some = torch.where(easy, 0.5, shifted)
        alarmed = torch.where(easy, 0.0, -torch.exp(gamma_neg * torch.log(some)) * torch.log1p(-some))
    return one.share * missed + zero.share * alarmed


class AsymmetricLoss(RowLoss, name="asymmetric"):
    r"""Asymmetric loss (ASL): negatives are focused on harder than positives, and dropped where f ≤ m.

    .. math:: L = -\frac1n \sum_i \left[y_i (1 - f_i)^{\gamma_+} \log f_i
              + (1 - y_i) f_{m,i}^{\gamma_-} \log(1 - f_{m,i})\right], \qquad f_m = \max(f - m, 0)

    - `gamma_neg`, `gamma_pos`: powers from 0; 4 and 1 are the defaults of the authors' code, whose recipe for
      MS-COCO takes gamma_pos=0.
    - `clip`: the shift m in [0, 1) of a negative's probability; 0 leaves it.

    Other arguments: see `Loss`. The metric is remembered, not used. The authors take reduction "sum".

    Shape: `logits` and `target` as the task says; result ``()``, or the target's shape if reduction is "none".

    >>> AsymmetricLoss()(torch.tensor([0.0, 2.0]), torch.tensor([1.0, 0.0]))
    tensor(0.5965)

    Reference: [ridnik2021]
    """

    tasks = ("binary", "softmax2", "multilabel")

    uses_metric = False

    def __init__(
        self,
        metric: Any = None,
        prevalence: Any = None,
        *,
        gamma_neg: float = 4.0,
        gamma_pos: float = 1.0,
        clip: float = 0.05,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(metric, prevalence, **options)
        if not 0 <= clip < 1:
            raise ValueError(f"clip is taken off a probability and must lie in [0, 1); got {clip!r}.")
        self.gamma_neg, self.gamma_pos = (check_gamma("gamma_neg", gamma_neg), check_gamma("gamma_pos", gamma_pos))
        self.clip = float(clip)

    def elements(self) -> Elements:
        """Cross entropy under the focus of each class."""
        return partial(asymmetric_loss, gamma_neg=self.gamma_neg, gamma_pos=self.gamma_pos, clip=self.clip)
