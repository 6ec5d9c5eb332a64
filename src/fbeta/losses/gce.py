"""Generalised cross entropy: between cross entropy and absolute error, for labels with noise."""

from __future__ import annotations

from typing import Any, Unpack

from fbeta.losses.kernels.plain import Elements
from fbeta.losses.module import RowLoss
from fbeta.losses.options import Options, check_q
from fbeta.losses.tangent import TangentElements


class GCELoss(RowLoss, name="gce"):
    r"""Generalised cross entropy; `tangent_loss` with equal costs is its function of elements.

    .. math:: L = \frac1n \sum_i \frac{1 - f_{y_i}^q}{q}, \qquad f_1 = \operatorname{sigmoid}(z) = 1 - f_0

    `q` in [0, 1]: 0 is cross entropy (the limit), 1 half the paper's absolute error, 0.7 what [zhang2018] uses
    throughout. Other arguments: see `Loss`. The metric is remembered, not used.

    Shape: `logits` and `target` as the task says; result ``()``, or the target's shape if reduction is "none".

    >>> import torch
    >>> GCELoss(q=0.5)(torch.tensor([0.0, 2.0]), torch.tensor([1.0, 0.0]))
    tensor(0.9476)

    Reference: [zhang2018]
    """

    uses_metric = False

    def __init__(
        self, metric: Any = None, prevalence: Any = None, *, q: float = 0.7, **options: Unpack[Options]
    ) -> None:
        super().__init__(metric, prevalence, **options)
        self.q = check_q(q)

    def elements(self) -> Elements:
        """Generalised cross entropy: `tangent_loss` with equal costs."""
        return TangentElements((*self.by_task((1.0, 1.0)), self.q))
