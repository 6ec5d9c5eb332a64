"""sigmoidF1: a metric on counts of a steepened and shifted sigmoid of the logit."""

from __future__ import annotations

import math
from typing import Any

from torch import Tensor

from fbeta.losses.counting import soft_decisions
from fbeta.losses.soft import CountLoss


class SigmoidF1Loss(CountLoss, name="sigmoid-f1"):
    r"""One minus a metric on counts of S(z); with ``FBeta(1)`` the published sigmoidF1.

    .. math:: L = 1 - M\!\left(\sum w y S,\ \sum w (1 - y) S,\ \ldots\right), \qquad
              S(z) = \frac{1}{1 + e^{-b (z + \eta)}}

    - `slope`: b > 0. `offset`: η, so that z ≥ −η is the decision that goes with it. Both act on the logit itself,
      not on a probability, and want tuning. 10 and 1 are the settings in the authors' TensorFlow code (S = −10,
      E = 1); 1 and 0 give `SoftLoss`.

    Other arguments: see `SoftLoss`. The paper's macro F1 is task "multilabel".

    Shape: `logits` and `target` as the task says; result ``()``.

    >>> import torch
    >>> SigmoidF1Loss("fbeta:beta=1")(torch.tensor([0.0, -1.0]), torch.tensor([1.0, 0.0]))
    tensor(0.2000)

    Reference: [benedict2022]
    """

    def __init__(
        self, metric: Any, prevalence: Any = None, *, slope: float = 10.0, offset: float = 1.0, **options: Any
    ) -> None:
        super().__init__(metric, prevalence, **options)
        if not 0 < slope < math.inf:
            raise ValueError(
                f"slope must be a finite number above 0 (the authors' S has the other sign); got {slope!r}."
            )
        if not math.isfinite(offset):
            raise ValueError(f"offset must be a finite number that is added to the logit; got {offset!r}.")
        self.slope, self.offset = float(slope), float(offset)

    def squash(self, logits: Tensor) -> tuple[Tensor, Tensor]:
        """S and 1 − S."""
        return soft_decisions(self.slope * (logits + self.offset))
