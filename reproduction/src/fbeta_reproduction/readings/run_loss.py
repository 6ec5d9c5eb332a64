"""The loss of a run: what it trains with, and what its value is on a whole set of rows."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from fbeta import losses
from fbeta.losses import Loss, SurrogateLoss, tangent_loss
from fbeta.metrics import Confusion, FBeta, class_costs
from fbeta_reproduction.protocol import Run
from fbeta_reproduction.readings.alternatives import READINGS
from fbeta_reproduction.readings.remedies import BLENDS, Scheduled


def loss_of(run: Run, class_counts: tuple[int, int]) -> nn.Module:
    """The module that a run trains with; `class_counts` are (negatives, positives) of its training rows.

    They give the paper's p, and the class weights n/n_y; to macro soft F_β, which is a function of p and of
    averages over each class, they give p alone.

    >>> float(loss_of(Run("digits", "surrogate", beta=2.0), (900, 100)).prevalence)
    0.1
    """
    made = _made(run, class_counts)
    for loss in made.modules():
        if isinstance(loss, Loss):
            loss.watch = None  # the plateau is what is being measured
    return made


def _made(run: Run, class_counts: tuple[int, int]) -> nn.Module:
    if run.loss in READINGS:
        return READINGS[run.loss](run, class_counts)
    options: dict[str, Any] = {"class_counts": class_counts}
    if run.beta is not None:
        options["metric"] = FBeta(run.beta)
    if run.q:
        options["q"] = run.q
    schedule = BLENDS.get(run.remedy or "")
    if schedule is not None:
        return Scheduled(SurrogateLoss(blend=schedule(0), **options), schedule)
    return losses.get(run.loss, **options)


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
