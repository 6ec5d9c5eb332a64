"""DUPLE: dual variables for deep networks, from the average of all rewards so far."""

import math
from typing import Any

from fbeta.losses.tangent import TangentLoss


class DUPLELoss(TangentLoss, name="duple"):
    r"""Dual updates for a concave metric Ψ of both classes' rewards, t̃ = E₊[f] and ñ = E₋[1 − f].

    .. math:: (\alpha, \beta)
              = \arg\min_{\alpha, \beta} \left[\alpha \bar t + \beta \bar n - \Psi^*(\alpha, \beta)\right]
              = \nabla \Psi(\bar t, \bar n), \qquad w \leftarrow w + \eta \nabla_w (\alpha \tilde t + \beta \tilde n)

    with averages over all steps so far. Of a concave Ψ the best dual variables are its slopes, so this is
    `TangentLoss` on soft counts and an absolute error; what differs is that nothing is forgotten, as in the paper. With
    a network that moves for long a `memory` is nearer to where it stands.

    - `q`: 1 is the sigmoid reward of the paper; less does not fade where a row is far on the wrong side.
    - `counts`: "soft" rewards, or "hard" decisions. `memory`: None, or the positives to average over.

    The promise is for concave metrics (G-mean, Q-mean, H-mean); others, such as F_β, are priced by their slopes as
    well. Other arguments and methods: see `TangentLoss`.

    Shape: `logits` and `target` as the task says; result ``()``, or the target's shape if reduction is "none".

    >>> import torch
    >>> loss = DUPLELoss("gmean", warmup=0)
    >>> _ = loss(torch.zeros(3, requires_grad=True), torch.tensor([1.0, 0.0, 0.0]))
    >>> [round(float(c), 3) for c in loss.costs]  # both classes weigh the same: twice the negatives
    [0.75, 1.5]

    Reference: [sanyal2018], algorithm DUPLE
    """

    def __init__(
        self,
        metric: Any,
        prevalence: Any = None,
        *,
        q: float = 1.0,
        counts: str = "soft",
        memory: float | None = None,
        **options: Any,
    ) -> None:
        super().__init__(
            metric, prevalence, q=q, counts=counts, **options | {"memory": math.inf if memory is None else memory}
        )
