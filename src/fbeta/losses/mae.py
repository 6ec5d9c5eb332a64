"""Absolute error of the class probabilities, plain and class-balanced: bounded, so robust to wrong labels."""

from __future__ import annotations

from torch import Tensor

from fbeta.losses.kernels.plain import Elements
from fbeta.losses.module import RowLoss
from fbeta.losses.per_class import BalancedLoss
from fbeta.losses.tangent import TangentElements, tangent_loss


def mae_loss(logits: Tensor, target: Tensor, weights: tuple[float | Tensor, float | Tensor] = (1.0, 1.0)) -> Tensor:
    r"""Absolute error summed over both class probabilities, element by element.

    .. math:: \ell(z, y) = w_y \lVert e_y - (f_0, f_1) \rVert_1 = w_y (2 - 2 f_y),
              \qquad f_1 = \operatorname{sigmoid}(z) = 1 - f_0

    Shape: `logits` and `target` ``(*)`` alike, weights (w₀, w₁) numbers or broadcastable; result ``(*)``.

    >>> import torch
    >>> mae_loss(torch.tensor([0.0, 2.0]), torch.tensor([1.0, 0.0]))
    tensor([1.0000, 1.7616])

    Reference: [lee2021], eq. mae_loss; [ghosh2017]
    """
    w0, w1 = weights
    return tangent_loss(logits, target, (2.0 * w0, 2.0 * w1), q=1.0)


class MAELoss(RowLoss, name="mae"):
    r"""Mean absolute error of the class probabilities, as the paper counts it (twice \|y − f\|).

    .. math:: L = \frac1n \sum_i (2 - 2 f_{y_i}), \qquad f_1 = \operatorname{sigmoid}(z) = 1 - f_0

    No options of its own: see `Loss`. The metric is remembered, not used. It is the surrogate loss of accuracy.

    Shape: `logits` and `target` as the task says; result ``()``, or the target's shape if reduction is "none".

    >>> import torch
    >>> MAELoss()(torch.tensor([0.0, 2.0]), torch.tensor([1.0, 0.0]))
    tensor(1.3808)

    Reference: [lee2021], eq. mae_loss; [ghosh2017]
    """

    uses_metric = False

    def elements(self) -> Elements:
        """Absolute error: `mae_loss`."""
        return TangentElements((*self.by_task((2.0, 2.0)), 1.0))


class BalancedMAELoss(BalancedLoss, name="balanced-mae"):
    r"""Mean absolute error in which both classes have the same total weight.

    .. math:: L = \frac1n \sum_i \frac{n}{n_{y_i}} (2 - 2 f_{y_i})

    `weighting`, `effective_beta`: see `BalancedLoss`; other arguments: see `Loss`. It is twice the surrogate
    loss of balanced accuracy.

    Shape: `logits` and `target` as the task says; result ``()``, or the target's shape if reduction is "none".

    >>> import torch
    >>> BalancedMAELoss(prevalence=0.1)(torch.tensor([0.0, 2.0]), torch.tensor([1.0, 0.0]))
    tensor(5.9787)

    Reference: [lee2021], eq. mae_cbloss
    """

    def elements(self) -> Elements:
        """Absolute error under class weights: `mae_loss`."""
        w0, w1 = self.numbers
        return TangentElements((*self.by_task((2.0 * w0, 2.0 * w1)), 1.0))
