"""Ten digits with a long tail: macro F₁ and F₂ of cross entropy, with and without help, and of fbeta's losses.

A '0' comes fifty times as often as a '9', the others in between. A row is a digit of scikit-learn's set, moved
by up to one pixel each way. A third of the images trains, a sixth tunes, half tests.

Run: python examples/multiclass.py           prints the table
     python examples/multiclass.py --write   rewrites docs/multiclass.json and the table in docs/tasks.md
     python examples/multiclass.py --search  chooses each loss's setting anew first
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from comparison import ClassTask, command_line, run
from digits import Rows
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn

from fbeta import FBeta, Metric, SoftLoss, TangentLoss

CLASSES, IMBALANCE, HIDDEN = 10, 50, 64
SEEDS, EPOCHS = 10, 12
SIZES = {"train": 4000, "validation": 2000, "test": 8000}


def draw(rng: np.random.Generator, images: Any, digit: Any, n: int) -> Rows:
    """Rows of the long tail: a class by its share, an image of that class, a move."""
    share = float(IMBALANCE) ** (-np.arange(CLASSES) / (CLASSES - 1))
    y = rng.choice(CLASSES, n, p=share / share.sum())
    pools = [np.flatnonzero(digit == k) for k in range(CLASSES)]
    chosen = np.array([rng.choice(pools[k]) for k in y])
    padded = np.pad(images[chosen], ((0, 0), (1, 1), (1, 1)))
    (down, right), eight = rng.integers(0, 3, (2, n, 1, 1)), np.arange(8)
    moved = padded[np.arange(n)[:, None, None], down + eight[:, None], right + eight]
    x = torch.tensor(moved.reshape(n, -1) / 16 - 0.3, dtype=torch.float32)  # 0.3 is the mean of all pixels
    return Rows(x, torch.tensor(y))


def load(seed: int) -> tuple[Rows, Rows, Rows]:
    digits = load_digits()
    seen, test = train_test_split(
        np.arange(len(digits.target)), test_size=1 / 2, stratify=digits.target, random_state=seed
    )
    train, validation = train_test_split(seen, test_size=1 / 3, stratify=digits.target[seen], random_state=seed)
    rng = np.random.default_rng(seed)
    first, second, third = (
        draw(rng, digits.images[i], digits.target[i], n)
        for i, n in zip((train, validation, test), SIZES.values(), strict=True)
    )
    return first, second, third


class Digits(ClassTask):
    """Which digit, by a macro average."""

    decisions = "argmax", "gain rule of validation rows"
    batches = 100, 200
    tested = 3 / 2
    rates = 0.01, 0.03, 0.1
    classes = CLASSES

    def __init__(self, score: str, metric: Metric) -> None:
        self.score, self.metric = score, metric

    def load(self, seed: int) -> tuple[Rows, Rows, Rows]:
        """Rows of disjoint images."""
        return load(seed)

    def network(self, norm: bool) -> nn.Module:
        """One hidden layer."""
        middle = [nn.BatchNorm1d(HIDDEN)] if norm else []
        return nn.Sequential(nn.Linear(64, HIDDEN), *middle, nn.ReLU(), nn.Linear(HIDDEN, CLASSES))

    def losses(self, train: Rows) -> dict[str, nn.Module]:
        """Cross entropy with and without class weights, and fbeta's for this metric."""
        n = torch.bincount(train.y, minlength=CLASSES)
        options: Any = {"task": "multiclass", "num_labels": CLASSES}
        return {
            "cross entropy": nn.CrossEntropyLoss(),
            "cross entropy with class weights": nn.CrossEntropyLoss(len(train.y) / n.clamp(min=1)),
            "TangentLoss": TangentLoss(self.metric, **options),
            "SoftLoss": SoftLoss(self.metric, memory=500, **options),
        }


TASKS = Digits("macro F₁", FBeta(1)), Digits("macro F₂", FBeta(2))


def main(seeds: int = SEEDS, epochs: int = EPOCHS) -> dict[str, Any]:
    return run("multiclass", TASKS, seeds, epochs)


if __name__ == "__main__":
    command_line("multiclass", TASKS, SEEDS, EPOCHS)
