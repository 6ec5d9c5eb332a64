"""Focal loss: cross entropy that fades on rows the model is already sure of."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, Unpack

import torch
import torch.nn.functional as F
from torch import Tensor

from fbeta.losses.elements import parts
from fbeta.losses.kernels.plain import Elements
from fbeta.losses.module import RowLoss
from fbeta.losses.options import Options


def focal_loss(logits: Tensor, target: Tensor, gamma: float = 2.0, alpha: float | None = None) -> Tensor:
    r"""Focal loss, element by element.

    .. math:: \ell(z, y) = -\alpha_y (1 - f_y)^\gamma \log f_y, \qquad f_1 = \operatorname{sigmoid}(z) = 1 - f_0

    with α₁ = α and α₀ = 1 − α, or both 1 if `alpha` is None.

    Shape: `logits` and `target` ``(*)`` alike; result ``(*)``.

    >>> focal_loss(torch.tensor([0.0, 2.0]), torch.tensor([1.0, 0.0]))
    tensor([0.1733, 1.6501])

    Reference: [lin2017], eqs. 4 and 5
    """
    a0, a1 = (1.0, 1.0) if alpha is None else (1.0 - alpha, alpha)
    one, zero = parts(logits, target, (a0, a1))
    missed, alarmed = focused(one.logits, zero.logits, gamma, gamma)
    return one.share * missed + zero.share * alarmed


def focused(one: Tensor, zero: Tensor, gamma_pos: float, gamma_neg: float) -> tuple[Tensor, Tensor]:
    r"""Cross entropy of positives and negatives under their focus, (1 − f)^γ₊ and f^γ₋, from the logits of each.

    The power is exp(γ log(1 − p)): no power of zero, whose slope is infinite for γ < 1.

    >>> focused(torch.tensor(0.0), torch.tensor(0.0), gamma_pos=1.0, gamma_neg=0.0)
    (tensor(0.3466), tensor(0.6931))
    """

    def under(log_right: Tensor, log_wrong: Tensor, gamma: float) -> Tensor:
        return -torch.exp(gamma * log_wrong) * log_right if gamma else -log_right

    log_f, log_rest = F.logsigmoid(one), F.logsigmoid(-one)
    missed = under(log_f, log_rest, gamma_pos)
    if zero is not one:
        log_f, log_rest = F.logsigmoid(zero), F.logsigmoid(-zero)
    return missed, under(log_rest, log_f, gamma_neg)


class FocalLoss(RowLoss, name="focal"):
    r"""Focal loss: rows with f_y near 1 count less, by (1 − f_y)^γ.

    .. math:: L = -\frac1n \sum_i \alpha_{y_i} (1 - f_{y_i})^\gamma \log f_{y_i},
              \qquad f_1 = \operatorname{sigmoid}(z) = 1 - f_0

    - `gamma`: from 0 (cross entropy); 2 in [lin2017].
    - `alpha`: None, or the weight of positives in [0, 1] (negatives have 1 − α); 0.25 goes with γ = 2 there.

    Other arguments: see `Loss`. The metric is remembered, not used. The mean is over elements; detectors that
    divide by the number of positives take reduction "sum".

    Shape: `logits` and `target` as the task says; result ``()``, or the target's shape if reduction is "none".

    >>> FocalLoss(alpha=0.25)(torch.tensor([0.0, 2.0]), torch.tensor([1.0, 0.0]))
    tensor(0.6404)

    Reference: [lin2017]
    """

    tasks = ("binary", "softmax2", "multilabel")

    uses_metric = False

    def __init__(
        self,
        metric: Any = None,
        prevalence: Any = None,
        *,
        gamma: float = 2.0,
        alpha: float | None = None,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(metric, prevalence, **options)
        if alpha is not None and not 0 <= alpha <= 1:
            raise ValueError(f"alpha is the weight of positives in [0, 1], or None for equal weights; got {alpha!r}.")
        self.gamma, self.alpha = check_gamma("gamma", gamma), alpha

    def elements(self) -> Elements:
        """Cross entropy under focus."""
        return partial(focal_loss, gamma=self.gamma, alpha=self.alpha)


def check_gamma(name: str, gamma: float) -> float:
    """Read a focusing power from 0.

    >>> check_gamma("gamma", 2)
    2.0
    """
    if not 0 <= gamma < math.inf:
        raise ValueError(f"{name} must be finite and zero or more (0: cross entropy); got {gamma!r}.")
    return float(gamma)
