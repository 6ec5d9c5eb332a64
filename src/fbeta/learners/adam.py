"""The optimiser of stacked tables."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


class Adam:
    """Adam on tensors whose gradients are written by hand.

    `torch.optim.Adam` does the same, and imports PyTorch's compiler first, which takes longer than a small table.

    >>> p = torch.ones(1)
    >>> p.grad = torch.ones(1)
    >>> Adam([p], rate=0.1).step()
    >>> p
    tensor([0.9000])

    Reference: [kingma2015]
    """

    def __init__(self, params: Sequence[Tensor], rate: float, decay: float = 0.0) -> None:
        self.params, self.rate, self.decay = list(params), rate, decay
        self.first, self.second = ([torch.zeros_like(p) for p in self.params] for _ in range(2))
        self.taken = [torch.zeros((), device=p.device) for p in self.params]

    def step(self) -> None:
        """Go one step down the gradients."""
        torch._foreach_add_(self.taken, 1)
        torch._fused_adam_(
            self.params,
            [gradient(p) for p in self.params],
            self.first,
            self.second,
            [],
            self.taken,
            lr=self.rate,
            beta1=0.9,
            beta2=0.999,
            weight_decay=self.decay,
            eps=1e-8,
            amsgrad=False,
            maximize=False,
        )

    def state(self) -> dict[str, Tensor]:
        """Parameters, moments and the number of steps, by name."""
        parts = {"": self.params, ".first": self.first, ".second": self.second, ".taken": self.taken}
        return {f"{i}{name}": p for name, part in parts.items() for i, p in enumerate(part)}


def gradient(p: Tensor) -> Tensor:
    """The gradient that somebody has put there.

    >>> p = torch.ones(2)
    >>> p.grad = torch.zeros(2)
    >>> gradient(p)
    tensor([0., 0.])
    """
    assert p.grad is not None
    return p.grad
