"""Focal loss, cross entropy that fades on rows the model is already sure of, and its asymmetric form."""

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
    return _focused(logits, target, gamma, gamma, weights=(1.0, 1.0) if alpha is None else (1 - alpha, alpha))


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
    return _focused(logits, target, gamma_neg, gamma_pos, clip)


def _focused(
    logits: Tensor,
    target: Tensor,
    gamma_neg: float,
    gamma_pos: float,
    clip: float = 0.0,
    weights: tuple[float, float] = (1.0, 1.0),
) -> Tensor:
    one, zero = parts(logits, target, weights)
    log_f, log_rest = F.logsigmoid(one.logits), F.logsigmoid(-one.logits)
    infinite = one.logits is not zero.logits
    missed = _fading(log_f, log_rest, gamma_pos, infinite)
    if clip:
        shifted = torch.sigmoid(zero.logits) - clip
        easy = shifted <= 0
        # Easy negatives get a harmless number first: a slope of log 0 would be NaN even where it is not taken.
        some = torch.where(easy, 0.5, shifted)
        alarmed = torch.where(easy, 0.0, _fading(torch.log1p(-some), torch.log(some), gamma_neg))
    else:
        if infinite:
            log_f, log_rest = F.logsigmoid(zero.logits), F.logsigmoid(-zero.logits)
        alarmed = _fading(log_rest, log_f, gamma_neg, infinite)
    return one.share * missed + zero.share * alarmed


def _fading(log_right: Tensor, log_wrong: Tensor, gamma: float, infinite: bool = False) -> Tensor:
    """Cross entropy times (1 − p)^γ, as exp(γ log(1 − p)): a power of zero has an infinite slope for γ < 1."""
    if not gamma:
        return -log_right
    focus = torch.exp(gamma * log_wrong)
    if infinite:  # the focus is flat there: its slope of 0 times an infinite loss is 0
        focus = focus.masked_fill(log_right == -torch.inf, 1.0)
    return -focus * log_right


class _FocusedLoss(RowLoss):
    tasks = ("binary", "softmax2", "multilabel")
    uses_metric = False


class FocalLoss(_FocusedLoss, name="focal"):
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
        self.gamma, self.alpha = _check_gamma("gamma", gamma), alpha

    def elements(self) -> Elements:
        """Cross entropy under focus."""
        return partial(focal_loss, gamma=self.gamma, alpha=self.alpha)


class AsymmetricLoss(_FocusedLoss, name="asymmetric"):
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
        self.gamma_neg = _check_gamma("gamma_neg", gamma_neg)
        self.gamma_pos, self.clip = _check_gamma("gamma_pos", gamma_pos), float(clip)

    def elements(self) -> Elements:
        """Cross entropy under the focus of each class."""
        return partial(asymmetric_loss, gamma_neg=self.gamma_neg, gamma_pos=self.gamma_pos, clip=self.clip)


def _check_gamma(name: str, gamma: float) -> float:
    if not 0 <= gamma < math.inf:
        raise ValueError(f"{name} must be finite and zero or more (0: cross entropy); got {gamma!r}.")
    return float(gamma)
