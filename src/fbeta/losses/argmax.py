"""One class of many: the tangent loss where the decision is the largest score, not f ≥ ½.

The exact rule can be trained for with its values as soft targets, too. It was tried and dropped: at a 50 : 1
imbalance almost all of the target is offset, the same for every row, and little is left to learn from.
"""

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from fbeta.losses.counting import Decisions, cells, class_cells, soft_decisions
from fbeta.losses.elements import cast
from fbeta.losses.kernels.plain import PlainRows
from fbeta.losses.task import convert
from fbeta.metrics.distance import box_cox


def argmax_loss(logits: Tensor, target: Tensor, weights: Tensor, q: float | Tensor = 0.0) -> Tensor:
    r"""Generalised cross entropy of the true class under a weight for each class.

    .. math:: \ell(x, y) = c_y\, \frac{1 - f_y^q}{q}

    Its minimiser is :math:`f_j ∝ (c_j η_j)^{1/(1-q)}`, so the largest score is the largest :math:`c_j η_j`.

    Shape: `logits` ``(N, C, *)``, f being their softmax, `target` classes ``(N, *)``, `weights` ``(C,)``; result
    ``(N, *)``.

    Reference: [zhang2018]
    """
    # Not nll_loss: of maps on CUDA it refuses torch.use_deterministic_algorithms.
    log_f = F.log_softmax(logits, 1).gather(1, target.unsqueeze(1)).squeeze(1)
    lost: Tensor = -box_cox(log_f, q, torch)
    return weights.index_select(0, target.flatten()).reshape(target.shape) * lost


@dataclass(frozen=True)
class ArgmaxElements:
    """`argmax_loss` at given weights and q."""

    weights: Tensor
    q: float | Tensor

    def __call__(self, logits: Tensor, target: Tensor) -> Tensor:
        """In the type of the logits."""
        (q,) = cast((self.q,), logits.dtype)
        return argmax_loss(logits, target, self.weights.to(logits.dtype), q)


class ClassRows(PlainRows):
    """Rows of many classes, counted by the largest score."""

    def cells_of(self, decisions: Decisions, logits: Tensor) -> Tensor:
        """TP, FP, FN and TN of each class against the rest."""
        if decisions is not soft_decisions:
            return class_cells(self.batch, columns=self.columns)
        batch = convert(logits, *self.batch[1:], task="multiclass")
        return cells(batch, decisions(batch.logits), columns=self.columns)


def pairwise_weights(right: Any, wrong: Any, xp: Any = torch) -> Any:
    r"""Weights c under which the largest :math:`c_j η_j` comes nearest to the best call.

    .. math:: \log c_k = \frac1C \sum_j \log \frac{r_k + w_j}{r_j + w_k}

    Calling class j is worth :math:`(r_j + w_j) η_j − w_j`, where r is the gain of a right positive and w that of a
    right negative of the class. Between two classes that share a row's probability the best call changes where
    :math:`η_k / η_j = (r_j + w_k)/(r_k + w_j)`; no weights give all these ratios at once, and these are the least
    squares fit of their logarithms (exact for two classes). At a perfect score they are equal, which is cross
    entropy; at a poor one they go with the inverse size of a class.

    Shape: `right`, `wrong` ``(C,)``; result ``(C,)``, with mean one. Arrays are those of `xp`: torch or NumPy.

    >>> pairwise_weights(torch.tensor([1.0, 4.0]), torch.tensor([1.0, 4.0]))
    tensor([1., 1.])

    Reference: [narasimhan2015b]
    """
    ratios = (right[:, None] + wrong) / (right + wrong[:, None])
    c = xp.exp(xp.log(ratios).mean(-1))
    return c / c.mean()


def argmax_rule(probability: Tensor, gain: Tensor, offset: Tensor) -> Tensor:
    r"""The best class at an operating point: :math:`\arg\max_j a_j η_j − b_j`.

    Shape: `probability` ``(N, C)``, `gain` and `offset` ``(C,)``; result ``(N,)``.
    """
    return torch.argmax(gain * probability - offset, dim=-1)
