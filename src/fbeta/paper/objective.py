"""The loss of a run: what it trains with, and what its value is on a whole set of rows."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from fbeta import losses
from fbeta.losses import SurrogateLoss, tangent_loss
from fbeta.metrics import Confusion, FBeta, class_costs
from fbeta.paper.protocol import Run
from fbeta.paper.readings import READINGS

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


def loss_of(run: Run, class_counts: tuple[int, int]) -> nn.Module:
    """The module that a run trains with; `class_counts` are (negatives, positives) of its training rows.

    They give the paper's p, and the class weights n/n_y; to macro soft F_β, which is a function of p and of
    averages over each class, they give p alone.

    >>> float(loss_of(Run("digits", "surrogate", beta=2.0), (900, 100)).prevalence)
    0.1
    """
    if run.loss in READINGS:
        return READINGS[run.loss](run.beta, class_counts)
    options: dict[str, Any] = {"class_counts": class_counts}
    if run.beta is not None:
        options["metric"] = FBeta(run.beta)
    if run.q:
        options["q"] = run.q
    if run.loss == "surrogate":
        options["watch"] = False  # the plateau is what is being measured
    schedule = BLENDS.get(run.remedy or "")
    if schedule is not None:
        return Scheduled(SurrogateLoss(blend=schedule(0), **options), schedule)
    return losses.get(run.loss, **options)


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


def loss_on(run: Run, class_counts: tuple[int, int], margins: NDArray[Any], target: NDArray[Any]) -> float:
    """The value of a run's loss on all rows at once, in double precision.

    That of the tangent loss is taken at the operating point of these rows themselves; that of a remedy is the
    published loss without it.

    Shape: `margins` and `target` ``(n,)``.

    >>> loss_on(Run("digits", "bce"), (1, 1), np.zeros(2), np.array([0, 1]))
    0.6931471805599453
    """
    z = torch.from_numpy(np.asarray(margins, dtype=np.float64))
    y = torch.from_numpy(np.asarray(target, dtype=np.float64))
    with torch.no_grad():
        if run.loss == "tangent" and run.beta is not None:
            metric = FBeta(run.beta)
            at = Confusion.from_scores(margins, target, cut=0.0)
            # Where nothing is predicted the metric has no slope, and the loss no value.
            costs = class_costs(metric, at, fresh=(math.nan, math.nan), xp=np)
            return float(tangent_loss(z, y, costs, q=run.q).mean())
        return float(loss_of(replace(run, remedy=None), class_counts).eval()(z, y))
