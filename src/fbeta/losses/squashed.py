"""Other losses of soft counts: they differ from the soft loss in how a logit becomes a part of a decision."""

import math
from typing import Any

import torch
from torch import Tensor

from fbeta.losses.counting import soft_decisions
from fbeta.losses.options import one_of
from fbeta.losses.soft import CountLoss


class AnyLoss(CountLoss, name="anyloss"):
    r"""One minus a metric on counts of amplified probabilities A(f), which are nearly decisions.

    .. math:: L = 1 - M\!\left(\sum w y A,\ \sum w (1 - y) A,\ \ldots\right), \qquad
              A(f) = \frac{1}{1 + e^{-L (f - 1/2)}},\ f = \operatorname{sigmoid}(z)

    `L` > 0: the amplification, 73 in the paper; the larger, the closer the counts to those of f ≥ ½. Other
    arguments: see `SoftLoss`.

    Shape: `logits` and `target` as the task says; result ``()``.

    >>> AnyLoss("fbeta:beta=1", L=2.0)(torch.zeros(2), torch.tensor([1.0, 0.0]))
    tensor(0.5000)

    Reference: [han2024]
    """

    def __init__(self, metric: Any, prevalence: Any = None, *, L: float = 73.0, **options: Any) -> None:
        super().__init__(metric, prevalence, **options)
        if not 0 < L < math.inf:
            raise ValueError(f"L must be a finite number above 0 (73 in the paper); got {L!r}.")
        self.L = float(L)

    def squash(self, logits: Tensor) -> tuple[Tensor, Tensor]:
        """A and 1 − A."""
        # f − ½ = ½ tanh(z/2), with all digits where f is near ½.
        return soft_decisions(self.L / 2 * torch.tanh(logits / 2))


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


class SigmoidF1Loss(CountLoss, name="sigmoid-f1"):
    r"""One minus a metric on counts of S(z), a steep sigmoid; with ``FBeta(1)`` the published sigmoidF1.

    .. math:: L = 1 - M\!\left(\sum w y S,\ \sum w (1 - y) S,\ \ldots\right), \qquad
              S(z) = \frac{1}{1 + e^{-b (z + \eta)}}

    - `slope`: b > 0. `offset`: η, so that z ≥ −η is the decision that goes with it. Both act on the logit itself,
      not on a probability, and want tuning. 10 and 1 are the settings in the authors' TensorFlow code (S = −10,
      E = 1); 1 and 0 give `SoftLoss`.

    Other arguments: see `SoftLoss`. The paper's macro F1 is task "multilabel".

    Shape: `logits` and `target` as the task says; result ``()``.

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
