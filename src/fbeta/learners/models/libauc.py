"""LibAUC's loss for average precision, as it ships."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fbeta.learners.crossfit import Array
from fbeta.learners.learner import Fitted, Goal, Learner, Rows, Tick
from fbeta.learners.machine import bits, shuffled, threads_for, torch_threads
from fbeta.learners.network import WEIGHTS, Network

#: What random numbers are for: the first words of their keys.
START, POSITIVES, NEGATIVES = 20, 21, 22


@dataclass(frozen=True)
class LibAUC(Learner):
    """A network trained by LibAUC's average-precision loss and its optimiser SOAP; the cut comes from held-out rows.

    Half of every batch are positives, as its sampler has it, and the loss sees probabilities, as in its examples.

    - `hidden`: the units of each hidden layer. `epochs`, `batch`, `rate`: of SOAP.
    - `gamma`, `margin`: of the loss; what its documentation starts from.

    What is used of LibAUC needs PyTorch, scikit-learn and SciPy only: ``pip install --no-deps libauc`` leaves the rest
    out.

    Reference: [qi2021], [yuan2023]
    """

    name, package, rank, usual, draws = "libauc", "libauc", 1, False, False
    losses, files, steps = ("average-precision",), (WEIGHTS,), 30
    read = Network.read

    hidden: tuple[int, ...] = (64, 64)
    epochs: int = 30
    batch: int = 64
    rate: float = 1e-3
    gamma: float = 0.9
    margin: float = 1.0

    def fit_folds(
        self, rows: Rows, goal: Goal, losses: Sequence[str], *, seed: int = 0, tick: Tick = lambda done: None
    ) -> dict[str, Fitted]:
        """Train on all rows, and on all but each fold; the loss takes no weights of rows."""
        if rows.weight is not None:
            raise ValueError("LibAUC's loss takes no weights of rows: leave them out.")
        with torch_threads(threads_for(self.batch * max([rows.X.shape[1], *self.hidden]))):
            found = rows.fitted(partial(self._train, seed))
        return dict.fromkeys(losses, replace(found, rounds=self.epochs))

    def _train(self, seed: int, X: Any, y: NDArray[Any], weight: Array | None) -> Network:
        import torch
        from libauc.losses.auc import AveragePrecisionLoss
        from libauc.optimizers.soap import SOAP

        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(int(bits(1, START, seed)[0] >> np.uint64(1)))
            sizes = [X.shape[1], *self.hidden, y.shape[1]]
            layers = [torch.nn.Linear(a, b) for a, b in itertools.pairwise(sizes)]
        between = [part for layer in layers for part in (layer, torch.nn.ReLU())][:-1]
        network = torch.nn.Sequential(*between, torch.nn.Sigmoid())
        loss = AveragePrecisionLoss(len(y), gamma=self.gamma, margin=self.margin, device="cpu")
        optimiser = SOAP(network.parameters(), lr=self.rate, mode="adam", verbose=False, device="cpu")
        x, target = torch.as_tensor(np.asarray(X, np.float32)), torch.as_tensor(y, dtype=torch.float32)
        for epoch in range(self.epochs):
            for taken in self._batches(y[:, 0], seed, epoch):
                at = torch.from_numpy(taken)
                optimiser.zero_grad()
                loss(network(x[at]), target[at], at).backward()
                optimiser.step()
        parts = [(p.weight.detach().numpy().T.copy(), p.bias.detach().numpy().copy()) for p in layers]
        weights, biases = zip(*parts, strict=True)
        return Network(weights, biases)

    def _batches(self, y: NDArray[Any], seed: int, epoch: int) -> NDArray[np.int64]:
        """Rows of each step of an epoch, half of them positive; the larger class is gone through once."""
        half = self.batch // 2
        classes = [np.flatnonzero(y == k) for k in (1, 0)]
        steps = max(1, max(map(len, classes)) // half)
        columns = []
        for key, rows in zip((POSITIVES, NEGATIVES), classes, strict=True):
            turns = -(-steps * half // len(rows))
            order = np.concatenate([rows[shuffled(len(rows), key, seed, epoch, turn)] for turn in range(turns)])
            columns.append(order[: steps * half].reshape(steps, half))
        return np.concatenate(columns, axis=1)
