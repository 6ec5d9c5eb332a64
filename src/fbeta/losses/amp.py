"""The alternating method for pseudo-linear metrics: whole passes for a level, a whole pass to measure the next."""

from typing import Any

from fbeta.losses.options import is_number
from fbeta.losses.pace import PacedLoss, Stages


class AMPLoss(PacedLoss, name="amp"):
    r"""Alternate maximisation of a pseudo-linear metric M = N/D on a finite set of rows.

    .. math:: w_{e+1} = \arg\max_w \left[N(w) - v_e D(w)\right], \qquad v_{e+1} = M(w_{e+1}) \ge v_e

    Dinkelbach's method, of which `STAMPLoss` is the stochastic form: a level is kept for `passes` passes over the
    training rows, in one batch or many, and the last of them measures the next. Give the optimiser passes enough to
    come near the minimum, and levels rise until they rest.

    - `class_counts`: needed, they say how long a pass is.
    - `counts`: the level is that of "hard" decisions, whose fixed point is the best cut, or of "soft" ones.

    Other arguments and methods: see `TangentLoss`.

    Shape: `logits` and `target` as the task says; result ``()``, or the target's shape if reduction is "none".

    >>> import torch
    >>> loss = AMPLoss("fbeta:beta=1", class_counts=(2, 2), passes=3)
    >>> logits, target = torch.tensor([2.0, 1.0, -1.0, -2.0]), torch.tensor([1.0, 0.0, 1.0, 0.0])
    >>> for _ in range(3):
    ...     _ = loss(logits.requires_grad_(), target)
    >>> loss.delta  # F₁ is one half
    tensor(0.2500, dtype=torch.float64)

    Reference: [narasimhan2015], algorithm AMP; [dinkelbach1967]
    """

    def __init__(self, metric: Any, prevalence: Any = None, *, passes: int = 10, **options: Any) -> None:
        super().__init__(metric, prevalence, **options)
        if self.class_counts is None:
            raise ValueError(
                "AMPLoss needs class_counts=(negatives, positives) of the training rows: they say how long a pass is. "
                "Where rows are a stream, take STAMPLoss."
            )
        if not (is_number(passes) and passes >= 1 and int(passes) == passes):
            raise ValueError(f"passes is a whole number from 1; got {passes!r}.")
        self.in_stages(passes * sum(self.class_counts), Stages(share=1.0 / passes, growth=1.0, rows=True))
