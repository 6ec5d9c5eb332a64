"""Score-oriented loss: a metric on the counts expected when the threshold is drawn from a prior."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from fbeta.losses.counting import soft_decisions
from fbeta.losses.options import one_of
from fbeta.losses.soft import CountLoss


class ScoreOrientedLoss(CountLoss, name="score-oriented"):
    r"""One minus a metric on counts expected over a random threshold τ.

    .. math:: L = 1 - M\!\left(\sum w y F(f),\ \sum w (1 - y) F(f),\ \ldots\right), \qquad
              F(f) = \Pr(\tau \le f) = \tfrac12\left(1 + x + \tfrac{\sin \pi x}{\pi}\right),\
              x = \frac{f - \mu}{\delta} \text{ cut to } [-1, 1]

    - `prior`: "cosine" (raised cosine on [μ − δ, μ + δ], above), or "uniform" on [0, 1], where F(f) = f and the
      loss is `SoftLoss`.
    - `mu`, `delta`: centre and half width of the cosine, inside [0, 1]. Rows outside of it have no gradient.

    Other arguments: see `SoftLoss`.

    Shape: `logits` and `target` as the task says; result ``()``.

    >>> loss = ScoreOrientedLoss("fbeta:beta=1")
    >>> loss(torch.tensor([0.0, 3.0, -3.0]), torch.tensor([1.0, 1.0, 0.0]))
    tensor(0.1429)

    Reference: [marchetti2022]
    """

    def __init__(
        self,
        metric: Any,
        prevalence: Any = None,
        *,
        prior: str = "cosine",
        mu: float = 0.5,
        delta: float = 0.1,
        **options: Any,
    ) -> None:
        super().__init__(metric, prevalence, **options)
        one_of("prior", prior, ("cosine", "uniform"))
        if not (delta > 0 and mu - delta >= 0 and mu + delta <= 1):
            raise ValueError(
                "The threshold's prior must lie inside [0, 1]: delta > 0, mu - delta >= 0 and mu + delta <= 1; "
                f"got mu={mu!r}, delta={delta!r}."
            )
        self.prior, self.mu, self.delta = prior, float(mu), float(delta)

    def squash(self, logits: Tensor) -> tuple[Tensor, Tensor]:
        """The probability that a threshold lies below f, and above."""
        if self.prior == "uniform":
            return soft_decisions(logits)
        x = ((torch.sigmoid(logits) - self.mu) / self.delta).clamp(-1, 1)
        lean = x + torch.sin(math.pi * x) / math.pi
        return (1 + lean) / 2, (1 - lean) / 2
