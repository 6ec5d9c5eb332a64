"""Remedies for the plateau: cross entropy mixed in by a schedule, a slow start, and another first bias."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from fbeta.losses import SurrogateLoss
from fbeta_reproduction.protocol import Run

#: Shares of cross entropy in the surrogate loss, by remedy and by epoch (from 0).
BLENDS: dict[str, Callable[[int], float]] = {
    "mix": lambda epoch: 0.5,
    "warm-start": lambda epoch: 1.0 if epoch < 5 else 0.0,
    "anneal": lambda epoch: max(0.0, 1.0 - epoch / 20),
}
#: Epochs over which the learning rate rises under the remedy "rate-warm-up".
WARM_UP = 5


class Scheduled(nn.Module):
    """A surrogate loss whose share of cross entropy follows the epochs."""

    def __init__(self, loss: SurrogateLoss, schedule: Callable[[int], float]) -> None:
        super().__init__()
        self.loss, self.schedule = loss, schedule
        # The epoch says the share, so a checkpoint need not.
        loss.register_buffer("_blend", loss._blend, persistent=False)

    def at_epoch(self, epoch: int) -> None:
        """Set the share."""
        self.loss.blend = self.schedule(epoch)

    def forward(self, z: Tensor, y: Tensor) -> Tensor:
        """The loss as it stands."""
        value: Tensor = self.loss(z, y)
        return value


def rate_of(run: Run) -> float | Callable[[int], float]:
    """The learning rate of a run, or that of each epoch.

    >>> rate_of(Run("digits", "surrogate", 1.0, remedy="rate-warm-up"))(0)
    0.002
    """
    if run.remedy == "rate-warm-up":
        return lambda epoch: run.learning_rate * min(1.0, (epoch + 1) / WARM_UP)
    return run.learning_rate


def start_of(run: Run, weights: dict[str, Tensor], class_counts: tuple[int, int]) -> dict[str, Tensor]:
    """The initial weights of a run; the remedy "prior-bias" starts from the odds of the classes.

    >>> start_of(Run("digits", "bce", remedy="prior-bias"), {"fc.bias": torch.zeros(2)}, (9, 1))["fc.bias"]
    tensor([ 1.0986, -1.0986])
    """
    if run.remedy != "prior-bias":
        return weights
    half = 0.5 * math.log(class_counts[1] / class_counts[0])
    return weights | {"fc.bias": torch.tensor([-half, half])}
