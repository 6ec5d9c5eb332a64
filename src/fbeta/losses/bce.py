"""Binary cross entropy, plain and class-balanced: what every other loss is compared with."""

from __future__ import annotations

from torch import Tensor

from fbeta.losses.kernels.plain import Elements
from fbeta.losses.module import RowLoss
from fbeta.losses.per_class import BalancedLoss
from fbeta.losses.tangent import TangentElements, tangent_loss


def bce_loss(logits: Tensor, target: Tensor, weights: tuple[float | Tensor, float | Tensor] = (1.0, 1.0)) -> Tensor:
    r"""Cross entropy of logits, element by element.

    .. math:: \ell(z, y) = -w_1 y \log f - w_0 (1 - y) \log(1 - f), \qquad f = \operatorname{sigmoid}(z)

    Shape: `logits` and `target` ``(*)`` alike, weights (w₀, w₁) numbers or broadcastable; result ``(*)``.

    >>> import torch
    >>> bce_loss(torch.tensor([0.0, 2.0]), torch.tensor([1.0, 0.0]))
    tensor([0.6931, 2.1269])

    Reference: [lee2021], eq. bce_loss
    """
    return tangent_loss(logits, target, weights, q=0.0)


class BCELoss(RowLoss, name="bce"):
    r"""Binary cross entropy of logits.

    .. math:: L = -\frac1n \sum_i \log f_{y_i}, \qquad f_1 = \operatorname{sigmoid}(z) = 1 - f_0

    No options of its own: see `Loss`. The metric is remembered, not used.

    Shape: `logits` and `target` as the task says; result ``()``, or the target's shape if reduction is "none".

    >>> import torch
    >>> BCELoss()(torch.tensor([0.0, 2.0]), torch.tensor([1.0, 0.0]))
    tensor(1.4100)

    Reference: [lee2021], eq. bce_loss
    """

    uses_metric = False

    def elements(self) -> Elements:
        """Cross entropy: `bce_loss`."""
        return TangentElements((*self.by_task((1.0, 1.0)), 0.0))


class BalancedBCELoss(BalancedLoss, name="balanced-bce"):
    r"""Binary cross entropy in which both classes have the same total weight.

    .. math:: L = -\frac1n \sum_i \frac{n}{n_{y_i}} \log f_{y_i}

    `weighting`, `effective_beta`: see `BalancedLoss`; other arguments: see `Loss`. It is the surrogate loss of
    the G-mean.

    Shape: `logits` and `target` as the task says; result ``()``, or the target's shape if reduction is "none".

    >>> import torch
    >>> BalancedBCELoss(prevalence=0.1)(torch.tensor([0.0, 2.0]), torch.tensor([1.0, 0.0]))
    tensor(4.6474)

    Reference: [lee2021], eq. bce_cbloss
    """

    def elements(self) -> Elements:
        """Cross entropy under class weights: `bce_loss`."""
        return TangentElements((*self.by_task(self.numbers), 0.0))
