"""Cross entropy and absolute error, plain and class-balanced, and the generalised cross entropy between the two."""

import math
from functools import partial
from typing import Any, Unpack

import torch
import torch.nn.functional as F

from fbeta.losses.elements import parts
from fbeta.losses.kernels.plain import Elements
from fbeta.losses.options import Options, is_number
from fbeta.losses.per_class import BalancedLoss, PerClassLoss
from fbeta.losses.tangent import TangentElements, tangent_loss
from fbeta.metrics.distance import box_cox, check_q


def bce_loss(
    logits: torch.Tensor, target: torch.Tensor, weights: tuple[float | torch.Tensor, float | torch.Tensor] = (1.0, 1.0)
) -> torch.Tensor:
    r"""Cross entropy of logits, element by element.

    .. math:: \ell(z, y) = -w_1 y \log f - w_0 (1 - y) \log(1 - f), \qquad f = \operatorname{sigmoid}(z)

    Shape: `logits` and `target` ``(*)`` alike, weights (w₀, w₁) numbers or broadcastable; result ``(*)``.

    >>> bce_loss(torch.tensor([0.0, 2.0]), torch.tensor([1.0, 0.0]))
    tensor([0.6931, 2.1269])

    Reference: [lee2021], eq. bce_loss
    """
    return tangent_loss(logits, target, weights, q=0.0)


def mae_loss(
    logits: torch.Tensor, target: torch.Tensor, weights: tuple[float | torch.Tensor, float | torch.Tensor] = (1.0, 1.0)
) -> torch.Tensor:
    r"""Absolute error summed over both class probabilities, element by element.

    .. math:: \ell(z, y) = w_y \lVert e_y - (f_0, f_1) \rVert_1 = w_y (2 - 2 f_y),
              \qquad f_1 = \operatorname{sigmoid}(z) = 1 - f_0

    Shape: `logits` and `target` ``(*)`` alike, weights (w₀, w₁) numbers or broadcastable; result ``(*)``.

    >>> mae_loss(torch.tensor([0.0, 2.0]), torch.tensor([1.0, 0.0]))
    tensor([1.0000, 1.7616])

    Reference: [lee2021], eq. mae_loss; [ghosh2017]
    """
    w0, w1 = weights
    return tangent_loss(logits, target, (2.0 * w0, 2.0 * w1), q=1.0)


def truncated_loss(
    logits: torch.Tensor,
    target: torch.Tensor,
    weights: tuple[float | torch.Tensor, float | torch.Tensor] = (1.0, 1.0),
    q: float = 0.7,
    k: float = 0.5,
) -> torch.Tensor:
    r"""Generalised cross entropy that is constant for f_y ≤ k, element by element: such rows have no gradient.

    .. math:: \ell(z, y) = w_y \min\!\left(\frac{1 - f_y^q}{q}, \frac{1 - k^q}{q}\right),
              \qquad f_1 = \operatorname{sigmoid}(z) = 1 - f_0

    Shape: `logits` and `target` ``(*)`` alike, weights (w₀, w₁) numbers or broadcastable; result ``(*)``.

    >>> truncated_loss(torch.tensor([2.0, -2.0]), torch.tensor([1.0, 1.0]), q=1.0)
    tensor([0.1192, 0.5000])

    Reference: [zhang2018], section 3.3
    """
    one, zero = parts(logits, target, weights)
    right, left = (F.logsigmoid(x).clamp(min=math.log(k)) for x in (one.logits, -zero.logits))
    return -one.share * box_cox(right, q, torch) - zero.share * box_cox(left, q, torch)  # type: ignore[no-any-return]


class GCELoss(PerClassLoss, name="gce"):
    r"""Generalised cross entropy; `tangent_loss` with equal costs is its function of elements.

    .. math:: L = \frac1n \sum_i \frac{1 - f_{y_i}^q}{q}, \qquad f_1 = \operatorname{sigmoid}(z) = 1 - f_0

    `q` in [0, 1]: 0 is cross entropy (the limit), 1 half the paper's absolute error, 0.7 what [zhang2018] uses
    throughout. `truncate`: the k of `truncated_loss`, 0.5 in [zhang2018], or 0 for none. A row on the wrong side of k
    no longer teaches, so let a network learn first, as they do, and assign ``loss.truncate = 0.5`` after some epochs.
    Other arguments: see `Loss`. The metric is remembered, not used.

    Shape: `logits` and `target` as the task says; result ``()``, or the target's shape if reduction is "none".

    >>> GCELoss(q=0.5)(torch.tensor([0.0, 2.0]), torch.tensor([1.0, 0.0]))
    tensor(0.9476)

    Reference: [zhang2018]
    """

    def __init__(
        self,
        metric: Any = None,
        prevalence: Any = None,
        *,
        q: float = 0.7,
        truncate: float = 0.0,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(metric, prevalence, **options)
        self.q, self.truncate = check_q(q), truncate

    @property
    def truncate(self) -> float:
        """The probability of its class below which a row has no gradient; 0 for none. Assign to schedule it."""
        return self._truncate

    @truncate.setter
    def truncate(self, value: float) -> None:
        if not (is_number(value) and 0 <= value < 1):
            raise ValueError(f"truncate is a probability in [0, 1), 0 for none; got {value!r}.")
        self._truncate = float(value)

    def elements(self) -> Elements:
        """The tangent loss with equal costs, or its truncated form."""
        costs = self.by_task((1.0, 1.0))
        if self.truncate:
            return partial(truncated_loss, weights=costs, q=self.q, k=self.truncate)
        return TangentElements((*costs, self.q))


class BCELoss(PerClassLoss, name="bce"):
    r"""Binary cross entropy of logits.

    .. math:: L = -\frac1n \sum_i \log f_{y_i}, \qquad f_1 = \operatorname{sigmoid}(z) = 1 - f_0

    No options of its own: see `Loss`. The metric is remembered, not used.

    Shape: `logits` and `target` as the task says; result ``()``, or the target's shape if reduction is "none".

    >>> BCELoss()(torch.tensor([0.0, 2.0]), torch.tensor([1.0, 0.0]))
    tensor(1.4100)

    Reference: [lee2021], eq. bce_loss
    """

    def elements(self) -> Elements:
        """Cross entropy under class weights, if there are any: `bce_loss`."""
        return TangentElements((*self.by_task(self.numbers), 0.0))


class BalancedBCELoss(BalancedLoss, BCELoss, name="balanced-bce"):
    r"""Binary cross entropy in which both classes have the same total weight.

    .. math:: L = -\frac1n \sum_i \frac{n}{n_{y_i}} \log f_{y_i}

    `weighting`, `effective_beta`: see `BalancedLoss`; other arguments: see `Loss`. It is the surrogate loss of
    the G-mean.

    Shape: `logits` and `target` as the task says; result ``()``, or the target's shape if reduction is "none".

    >>> BalancedBCELoss(prevalence=0.1)(torch.tensor([0.0, 2.0]), torch.tensor([1.0, 0.0]))
    tensor(4.6474)

    Reference: [lee2021], eq. bce_cbloss
    """


class EffectiveBCELoss(BalancedBCELoss, name="effective-bce"):
    r"""Binary cross entropy under the class weights of the effective numbers of rows.

    .. math:: L = -\frac1n \sum_i w_{y_i} \log f_{y_i}, \qquad w_y \propto \frac{1 - b}{1 - b^{n_y}},\ w_0 + w_1 = 2

    `class_counts`: needed, they are the n_y. `effective_beta`: b, 0.9 to 0.9999 in [cui2019]: near 1 it balances the
    classes, at 0 it is cross entropy. It is ``BalancedBCELoss(weighting="effective")``; other arguments: see `Loss`.

    Shape: `logits` and `target` as the task says; result ``()``, or the target's shape if reduction is "none".

    >>> loss = EffectiveBCELoss(class_counts=(900, 100), effective_beta=0.99)
    >>> loss(torch.tensor([0.0, 2.0]), torch.tensor([1.0, 0.0]))
    tensor(1.2495)

    Reference: [cui2019]
    """

    def __init__(
        self, metric: Any = None, prevalence: Any = None, *, effective_beta: float = 0.9999, **options: Unpack[Options]
    ) -> None:
        super().__init__(metric, prevalence, weighting="effective", effective_beta=effective_beta, **options)


class MAELoss(PerClassLoss, name="mae"):
    r"""Mean absolute error of the class probabilities, as the paper counts it (twice \|y − f\|).

    .. math:: L = \frac1n \sum_i (2 - 2 f_{y_i}), \qquad f_1 = \operatorname{sigmoid}(z) = 1 - f_0

    No options of its own: see `Loss`. The metric is remembered, not used. It is the surrogate loss of accuracy.

    Shape: `logits` and `target` as the task says; result ``()``, or the target's shape if reduction is "none".

    >>> MAELoss()(torch.tensor([0.0, 2.0]), torch.tensor([1.0, 0.0]))
    tensor(1.3808)

    Reference: [lee2021], eq. mae_loss; [ghosh2017]
    """

    def elements(self) -> Elements:
        """Absolute error under class weights, if there are any: `mae_loss`."""
        w0, w1 = self.numbers
        return TangentElements((*self.by_task((2.0 * w0, 2.0 * w1)), 1.0))


class BalancedMAELoss(BalancedLoss, MAELoss, name="balanced-mae"):
    r"""Mean absolute error in which both classes have the same total weight.

    .. math:: L = \frac1n \sum_i \frac{n}{n_{y_i}} (2 - 2 f_{y_i})

    `weighting`, `effective_beta`: see `BalancedLoss`; other arguments: see `Loss`. It is twice the surrogate
    loss of balanced accuracy.

    Shape: `logits` and `target` as the task says; result ``()``, or the target's shape if reduction is "none".

    >>> BalancedMAELoss(prevalence=0.1)(torch.tensor([0.0, 2.0]), torch.tensor([1.0, 0.0]))
    tensor(5.9787)

    Reference: [lee2021], eq. mae_cbloss
    """
