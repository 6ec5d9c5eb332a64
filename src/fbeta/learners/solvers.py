"""How a stack of networks is trained, epoch by epoch: Adam on batches, or L-BFGS on all rows."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fbeta.learners.machine import shuffled
from fbeta.learners.stack import Stack

#: Steps of L-BFGS in an epoch.
STEPS = 10


class Adam:
    """Adam on batches: every run takes its own rows in random order, and in another order when they are used up.

    `averaged`: the models to look at are running means of the weights over about an epoch, which vary less.
    Reference: [kingma2015], [polyak1992]
    """

    def __init__(self, stack: Stack, *, batch: int, steps: int, rate: float, averaged: bool = False) -> None:
        self.stack, self.batch, self.steps, self.averaged = stack, batch, steps, averaged
        self.taken = 0
        self.models = [p.clone() for p in stack.parameters] if averaged else stack.parameters
        self._optimiser = torch.optim.Adam(stack.parameters, lr=rate, fused=True)
        stack.reserve(batch)
        if not stack.sparse:
            self._x: Tensor = stack.X.new_empty(len(stack.runs), batch, stack.X.shape[1])

    def epoch(self) -> bool:
        """Take all steps of an epoch; whether `models`, the weights to look at, still move."""
        for rows in self._order():
            self._step(rows)
            self.taken += 1
            if self.averaged:
                torch._foreach_lerp_(self.models, self.stack.parameters, 1 / min(self.steps, self.taken))
        return True

    def _order(self) -> Tensor:
        """Which rows each run takes in each step of this epoch: ``(steps, R, batch)``."""
        wanted, runs = self.steps * self.batch, self.stack.runs
        keys = [(run.order, id(run.rows)) for run in runs]
        once = dict(zip(keys, runs, strict=True))  # runs of one key see their rows in the same order
        made = {key: _stream(run.rows, self.taken * self.batch, wanted, run.order) for key, run in once.items()}
        order = np.stack([made[key] for key in keys])
        cut = order.reshape(len(runs), self.steps, self.batch).transpose(1, 0, 2)
        return torch.from_numpy(np.ascontiguousarray(cut)).to(self.stack.device)

    def _step(self, rows: Tensor) -> None:
        stack = self.stack
        y = stack.y[rows].mT
        w = None if stack.weight is None else stack.weight[rows][:, None, :]
        if stack.sparse:
            x, weight, bias = self._block(rows), stack.weights[0], stack.biases[0]
            z = torch.sparse.mm(x, weight.flatten(0, 1)).reshape(*rows.shape, stack.outputs)
            _, slope = stack.slopes((z + bias).mT, y, w)
            found = torch.sparse.mm(x.t(), slope.mT.reshape(-1, slope.shape[1])).reshape(weight.shape)
            weight.grad = found.add_(weight, alpha=stack.penalty)
            bias.grad = slope.sum(2)[:, None, :]
        else:
            torch.index_select(stack.X, 0, rows.flatten(), out=self._x.view(-1, self._x.shape[2]))
            _, slope = stack.slopes(stack.logits(self._x), y, w)
            stack.differentiate(self._x, slope)
        self._optimiser.step()

    def _block(self, rows: Tensor) -> Tensor:
        """Every run's own sparse rows, as blocks ``(R·B, R·d)``."""
        part = self.stack.X[rows.flatten().cpu().numpy()].tocoo()
        columns = self.stack.X.shape[1]
        block = part.col + part.row // self.batch * columns
        return _sparse(part.row, block, part.data, (part.shape[0], len(self.stack.runs) * columns), self.stack)


class LBFGS:
    """L-BFGS on all rows [liu1989]: a few steps make an epoch. All runs of the stack share one line search."""

    def __init__(self, stack: Stack) -> None:
        self.stack, self.models = stack, stack.parameters
        for loss, _ in stack.losses:
            loss.eval()  # the same point must have the same loss, however often it is asked for
        self._x = stack.X
        if stack.sparse:
            part = stack.X.tocoo()
            self._x = _sparse(part.row, part.col, part.data, part.shape, stack).coalesce()
        n = len(stack.y)
        stack.reserve(n)
        # A row that a run does not learn from has no weight there.
        self._w = stack.y.new_zeros(len(stack.runs), 1, n)
        for r, run in enumerate(stack.runs):
            self._w[r, 0] = torch.from_numpy(np.bincount(run.rows, minlength=n))
        if stack.weight is not None:
            self._w = self._w * stack.weight
        options: dict[str, Any] = {"max_iter": STEPS, "tolerance_grad": 1e-7, "tolerance_change": 1e-10}
        self._optimiser = torch.optim.LBFGS(stack.parameters, line_search_fn="strong_wolfe", **options)

    def epoch(self) -> bool:
        """Take a few steps; whether they led anywhere."""
        before = [p.clone() for p in self.models]
        self._optimiser.step(self._closure)  # type: ignore[no-untyped-call]
        return any(bool((a - b).abs().max() >= 1e-3) for a, b in zip(self.models, before, strict=True))

    def _closure(self) -> float:
        stack = self.stack
        z = stack.logits(self._x)
        totals, slope = stack.slopes(z, stack.y.T.expand_as(z), self._w)
        stack.differentiate(self._x, slope)
        squares = sum(float(w.square().sum()) for w in stack.weights)
        return float(sum(map(float, totals)) + stack.penalty / 2 * squares)


def _sparse(row: Any, column: Any, values: Any, shape: tuple[int, ...], stack: Stack) -> Tensor:
    where, what = torch.from_numpy(np.stack([row, column])).long(), torch.from_numpy(values).to(stack.dtype)
    return torch.sparse_coo_tensor(where, what, shape, device=stack.device, check_invariants=False)


def _stream(rows: NDArray[np.int64], begin: int, count: int, key: tuple[int, ...]) -> NDArray[np.int64]:
    """A stretch of an endless stream of rows: all of them in random order, then in another, and so on."""
    found = []
    while count:
        turn, at = divmod(begin, len(rows))
        part = rows[shuffled(len(rows), *key, turn)[at : at + count]]
        found.append(part)
        begin, count = begin + len(part), count - len(part)
    return np.concatenate(found)
