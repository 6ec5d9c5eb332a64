"""SPADE: a concave metric by primal and dual steps at once."""

from typing import Any

from fbeta.losses.options import above_zero
from fbeta.losses.pace import PacedLoss, ShrinkingStep


class SPADELoss(PacedLoss, name="spade"):
    r"""Stochastic primal–dual steps for a concave metric Ψ of both classes' rates, t (TPR) and n (TNR).

    .. math:: \Psi(t, n) = \min_{\alpha, \beta} \left[\alpha t + \beta n - \Psi^*(\alpha, \beta)\right]

    The network takes a step up at costs (α, β), the dual variables one down. They are kept as the rates (t̂, n̂) that
    they are the slopes of, and stepped in the geometry of Ψ itself, so that no conjugate has to be known:

    .. math:: \hat t \leftarrow \hat t + \eta_k (t_k - \hat t),\quad \hat n \leftarrow \hat n + \eta_k (n_k - \hat n),
              \qquad (\alpha, \beta) = \nabla \Psi(\hat t, \hat n), \qquad \eta_k = \frac{\text{step}}{\sqrt k}

    (mirror descent with −Ψ*; k counts positives). `TangentLoss` has a constant step instead, and `DUPLELoss` 1/k.

    - `step`: the dual step at the first positive.
    - `counts`: the rates are those of "hard" decisions, or "soft" ones. (In the paper they are rewards of a hinge,
      which can be negative, where Ψ is not defined.)

    The promise is for concave metrics: G-mean, H-mean, Q-mean. Other arguments and methods: see `TangentLoss`.

    Shape: `logits` and `target` as the task says; result ``()``, or the target's shape if reduction is "none".

    >>> import torch
    >>> loss = SPADELoss("gmean", warmup=0)
    >>> logits = torch.tensor([2.0, -2.0, -2.0]).requires_grad_()
    >>> _ = loss(logits, torch.tensor([1.0, 0.0, 0.0]))
    >>> [round(float(c), 3) for c in loss.costs]  # both classes weigh the same: twice the negatives
    [0.75, 1.5]

    Reference: [narasimhan2015], algorithm SPADE
    """

    def __init__(
        self, metric: Any, prevalence: Any = None, *, step: float = 0.1, warmup: float = 20.0, **options: Any
    ) -> None:
        super().__init__(metric, prevalence, warmup=warmup, **options)
        above_zero("step", step)
        self.follow(ShrinkingStep(step, damping=0.5), (0.0,))
