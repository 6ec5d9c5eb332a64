"""STAMP: a metric's level, measured at the ends of growing stages, prices the rows of the next stage."""

from typing import Any

from fbeta.losses.options import above_zero, is_number
from fbeta.losses.pace import PacedLoss, Stages


class STAMPLoss(PacedLoss, name="stamp"):
    r"""Stochastic alternate maximisation of a pseudo-linear metric M = N/D, such as F_β.

    .. math:: w_{e+1} \approx \arg\max_w \left[N(w) - v_e D(w)\right], \qquad v_{e+1} = M(w_{e+1})

    with N and D linear in the cells: for a level v the first is cost-sensitive, and its costs are those of the tangent
    loss at an operating point of this level; for F_β c₀ : c₁ = v : (1 + β² − v). `TangentLoss` measures the level at
    every step, over a memory; here it is measured at the end of a stage and stays through the next one, and stages
    grow, so that both are known ever better.

    - `stage`: positives in the first stage. `growth`: by how much each is longer than the one before.
    - `counts`: the level is that of "hard" decisions in the second half of a stage, or of "soft" ones; training goes
      on meanwhile (the paper sets rows aside for it).

    Before the first level is known the costs are those of a network that knows nothing. Other arguments and methods,
    `delta` and `probability` among them: see `TangentLoss`. Metrics that are not pseudo-linear are priced by their
    slopes, without the paper's promise.

    Shape: `logits` and `target` as the task says; result ``()``, or the target's shape if reduction is "none".

    >>> import torch
    >>> loss = STAMPLoss("fbeta:beta=1", stage=2)
    >>> logits, target = torch.tensor([2.0, 1.0, -1.0, -2.0]), torch.tensor([1.0, 0.0, 1.0, 0.0])
    >>> for _ in range(2):
    ...     _ = loss(logits.requires_grad_(), target)
    >>> loss.delta  # F₁ is one half
    tensor(0.2500, dtype=torch.float64)

    Reference: [narasimhan2015], algorithm STAMP
    """

    def __init__(
        self, metric: Any, prevalence: Any = None, *, stage: float = 100.0, growth: float = 1.5, **options: Any
    ) -> None:
        super().__init__(metric, prevalence, **options)
        above_zero("stage", stage, "number of positives")
        if not (is_number(growth) and growth >= 1):
            raise ValueError(f"growth is a factor from 1; got {growth!r}.")
        self.in_stages(stage, Stages(share=0.5, growth=growth))
