"""Other readings of the paper's text, each against its formula in NumPy; and remedies."""

import numpy as np
import pytest
import torch

from fbeta import FBeta, SurrogateLoss
from fbeta_reproduction.engine.loss_sum import LossSum
from fbeta_reproduction.protocol import noise, readings, weighted
from fbeta_reproduction.readings.alternatives import READINGS
from fbeta_reproduction.readings.remedies import Scheduled
from fbeta_reproduction.readings.run_loss import loss_of

COUNTS = (810, 90)
RNG = np.random.default_rng(3)
Z, Y = 2 * RNG.normal(size=60), (np.arange(60) % 5 == 0).astype(float)
F = 1 / (1 + np.exp(-Z))
#: n/n_y of the training split.
W = np.where(Y == 1, 900 / 90, 900 / 810)
#: What turns the batch's classes into the training split's.
TO_SPLIT = np.where(Y == 1, 90 / Y.sum(), 810 / (1 - Y).sum())


def soft(f, y, weights):
    """One minus F₁ of weighted soft counts."""
    tp, fp, fn = ((weights * part).sum() for part in (y * f, (1 - y) * f, y * (1 - f)))
    return 1 - 2 * tp / (2 * tp + fp + fn)


def bce(f, weights=W):
    return -(weights * np.where(Y == 1, np.log(f), np.log(1 - f))).mean()


def surrogate(f):
    return (W * np.where(Y == 1, -np.log(f), np.log(1 / 9 + f))).mean()


TWICE = 1 / (1 + np.exp(-np.tanh(Z / 2)))  # the second softmax is given (f, 1 − f)
FORMULAS = {
    "balanced-gce": (W * (1 - np.where(Y == 1, F, 1 - F) ** 0.7) / 0.7).mean(),
    "soft-both": (soft(F, Y, TO_SPLIT) + soft(1 - F, 1 - Y, TO_SPLIT)) / 2,
    "soft-batch": soft(F, Y, 1.0),
    "soft-weighted": soft(F, Y, TO_SPLIT * W),
    "twice-bce": bce(TWICE),
    "twice-surrogate": surrogate(TWICE),
    "unclamped-bce": bce(F),
}


def planned():
    runs = [*readings("digits"), *weighted("digits"), *noise("digits")]
    return [run for run in runs if run.loss in READINGS]


@pytest.mark.parametrize("name", FORMULAS)
def test_reading_is_its_formula(name):
    run = next(run for run in planned() if run.loss == name and run.beta in (1.0, None))
    loss = loss_of(run, COUNTS)(torch.from_numpy(Z), torch.from_numpy(Y))
    assert loss.item() == pytest.approx(FORMULAS[name], rel=1e-6)


def test_every_reading_has_a_formula_here():
    assert {run.loss for run in planned()} == set(FORMULAS) == set(READINGS)


def test_scheduled_losses_of_many_runs():
    """The epoch says the share: a checkpoint holds none, so older ones still fit."""
    z, y = torch.from_numpy(Z).float(), torch.from_numpy(Y).float()
    made = {s: SurrogateLoss(FBeta(1), prevalence=0.1, blend=s) for s in (0.0, 0.25)}
    runs = LossSum(
        [
            Scheduled(SurrogateLoss(FBeta(1), prevalence=0.1, blend=0.0), lambda epoch: epoch / 4),
            SurrogateLoss(FBeta(1), prevalence=0.1),
        ]
    )
    for epoch, share in enumerate(made):
        runs.at_epoch(epoch)
        expected = made[share](z, y) + made[0.0](z, y)
        torch.testing.assert_close(runs(torch.stack([z, z]), torch.stack([y, y])), expected)
    assert runs.state_dict() == {}
    runs.load_state_dict({})
