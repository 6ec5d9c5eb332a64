"""Other readings of the paper's text, each against its formula in NumPy."""

import numpy as np
import pytest
import torch

from fbeta.paper.objective import loss_of
from fbeta.paper.protocol import readings

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
    "soft-both": (soft(F, Y, TO_SPLIT) + soft(1 - F, 1 - Y, TO_SPLIT)) / 2,
    "soft-batch": soft(F, Y, 1.0),
    "soft-weighted": soft(F, Y, TO_SPLIT * W),
    "twice-bce": bce(TWICE),
    "twice-surrogate": surrogate(TWICE),
    "unclamped-bce": bce(F),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_reading_is_its_formula(name):
    run = next(run for run in readings("digits") if run.loss == name)
    loss = loss_of(run, COUNTS)(torch.from_numpy(Z), torch.from_numpy(Y))
    assert loss.item() == pytest.approx(FORMULAS[name], rel=1e-6)


def test_every_reading_has_a_formula_here():
    own = {run.loss for run in readings("digits")} - {"surrogate", "soft", "balanced-bce"}
    assert own == set(FORMULAS)
