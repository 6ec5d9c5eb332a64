"""DAME: the alternating method for deep networks, which are not trained to an end between two levels."""

from typing import Any

from fbeta.losses.options import above_zero
from fbeta.losses.pace import PacedLoss, Stages


class DAMELoss(PacedLoss, name="dame"):
    r"""Deep alternate maximisation of a pseudo-linear metric M = N/D, such as F_β, on rewards f_y.

    .. math:: w \leftarrow w + \eta \nabla_w \left[\tilde N(w) - v \tilde D(w)\right] \text{ for a stage}, \qquad
              v \leftarrow \tilde M(w)

    Cells are soft counts, so the reward of a row is the probability of its class and the loss is an absolute error
    under class costs. A network has no minimum that could be waited for: a stage is a few batches long, and the level
    is measured over all of it.

    - `stage`: positives in a stage.
    - `q`: 1 is the sigmoid reward of the paper; less does not fade where a row is far on the wrong side.
    - `counts`: "soft" rewards, or "hard" decisions.

    Other arguments and methods: see `TangentLoss`.

    Shape: `logits` and `target` as the task says; result ``()``, or the target's shape if reduction is "none".

    >>> import torch
    >>> loss = DAMELoss("fbeta:beta=1", stage=1)
    >>> _ = loss(torch.zeros(2, requires_grad=True), torch.tensor([1.0, 0.0]))
    >>> loss.delta  # soft F₁ is one half
    tensor(0.2500, dtype=torch.float64)

    Reference: [sanyal2018], algorithm DAME
    """

    def __init__(
        self,
        metric: Any,
        prevalence: Any = None,
        *,
        stage: float = 50.0,
        q: float = 1.0,
        counts: str = "soft",
        **options: Any,
    ) -> None:
        super().__init__(metric, prevalence, q=q, counts=counts, **options)
        above_zero("stage", stage, "number of positives")
        self.in_stages(stage, Stages(share=1.0, growth=1.0))
