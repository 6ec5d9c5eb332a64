"""One class of many: the tangent loss where the decision is the largest score, not f ≥ ½."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from fbeta.losses.surrogate import box_cox


def argmax_loss(
    logits: Tensor, target: Tensor, gain: Tensor, offset: Tensor, q: float | Tensor = 0.0
) -> Tensor:
    r"""Cross entropy against gains: what calling each class would have been worth.

    .. math:: \ell(x, y) = \sum_j \left(a_j\,[j = y] + \max_k b_k - b_j\right) \frac{1 - f_j^q}{q}

    The linearised metric pays :math:`a_j η_j − b_j` for calling class j, where η are the class probabilities,
    a the gain and b the offset. Every class gets the value it would have had as a soft target, so the
    minimiser is :math:`f_j ∝ (a_j η_j − b_j + \max b)^{1/(1-q)}` and the largest score is the best decision.
    With equal gains and offsets (accuracy, micro F) it is cross entropy.

    Shape: `logits` ``(N, C)`` of each class against the rest (`fbeta.task.one_against_rest`), `target` one-hot
    ``(N, C)``, `gain` and `offset` ``(C,)`` or ``()``; result ``(N, C)``, a row's loss being its sum.

    >>> z = torch.zeros(1, 2)
    >>> argmax_loss(z, torch.tensor([[0.0, 1.0]]), torch.ones(2), torch.zeros(2)).sum()
    tensor(0.6931)

    Reference: [narasimhan2015b]
    """
    lost: Tensor = -box_cox(F.logsigmoid(logits), q)
    return (gain * target + offset.max() - offset) * lost


def argmax_rule(probability: Tensor, gain: Tensor, offset: Tensor) -> Tensor:
    r"""The best class at an operating point: :math:`\arg\max_j a_j η_j − b_j`.

    Shape: `probability` ``(N, C)``, `gain` and `offset` ``(C,)``; result ``(N,)``.

    >>> argmax_rule(torch.tensor([[0.7, 0.3]]), gain=torch.tensor([1.0, 4.0]), offset=torch.tensor([0.1, 0.2]))
    tensor([1])
    """
    return torch.argmax(gain * probability - offset, dim=-1)
