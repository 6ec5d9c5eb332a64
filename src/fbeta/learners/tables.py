"""Many small networks on one table, trained as one stacked tensor program: a linear model or an MLP each."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fbeta import losses
from fbeta.learners.adam import Adam, gradient
from fbeta.learners.random_bits import shuffled
from fbeta.losses import Loss
from fbeta.metrics import Metric

#: Losses that begin at the prior's log odds; the others have their gradient around f = ½ and begin there.
FROM_PRIOR = {"asymmetric", "bce", "focal", "ldam", "tangent"}
#: Numbers that a layer of an evaluation may hold at once: what stays in a cache is quicker.
ROOM = 1 << 20


@dataclass(frozen=True, eq=False)
class TableMember:
    """One run: the rows it learns from, its loss, and the keys of its chance.

    Members with the same `start` begin with the same weights, with the same `order` see their rows in the same order.
    """

    rows: NDArray[np.int64]
    loss: str
    metric: Metric | str
    start: tuple[int, ...] = (0,)
    order: tuple[int, ...] = (0,)
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def kind(self) -> str:
        """Members of one kind can share a loss module, a column each."""
        return f"{self.loss} {self.metric} {sorted(self.options.items())}"


class TableStack:
    r"""R networks x ↦ xW₁ + b₁ ↦ max(0, ·)W₂ + b₂ … on rows of one table, each with its own weights, rows and loss.

    A step is a handful of batched matrix products for all runs at once; only ∂L/∂z comes from the loss modules, which
    see the runs of one loss as columns. No number of a run depends on another run.

    - `hidden`: widths between the table and the logit; none is a linear model.
    - `batch`: rows in a step. `steps`: steps that are called an epoch, from the size of the table unless given; a
      run takes its rows in random order, and in another one when they are used up, in the middle of a batch or not.
    - `rate`, `decay`: of Adam, and of weights (not biases) by a penalty ``decay / 2 · ‖W‖²``.
    - `averaged`: the models that are looked at are running means of the weights over about an epoch, which jump about
      less than the weights themselves.

    Shape: `X` ``(n, d)`` float32, `y` ``(n,)`` 0 or 1; `margins` ``(R, n)``.

    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 3)).astype("float32")
    >>> y = (X[:, 0] > 1).astype("int64")
    >>> whole, half = np.arange(200), np.arange(100)
    >>> runs = [TableMember(whole, "bce", "fbeta:beta=1"), TableMember(half, "tangent", "fbeta:beta=2")]
    >>> stack = TableStack(X, y, runs, hidden=(8,), batch=20)
    >>> stack.train_epoch()
    >>> stack.epoch, stack.margins().shape
    (1, torch.Size([2, 200]))

    Reference: [kingma2015], [polyak1992]
    """

    def __init__(
        self,
        X: NDArray[np.float32],
        y: NDArray[Any],
        members: Sequence[TableMember],
        *,
        hidden: Sequence[int] = (),
        batch: int = 128,
        steps: int | None = None,
        rate: float = 1e-3,
        decay: float = 0.0,
        averaged: bool = False,
        device: torch.device | str = "cpu",
    ) -> None:
        self.device = torch.device(device)
        self.members, self.batch, self.epoch = list(members), batch, 0
        self.steps = max(1, len(y) // batch) if steps is None else steps
        self.X = torch.as_tensor(np.ascontiguousarray(X), dtype=torch.float32, device=self.device)
        self.y = torch.as_tensor(y, dtype=torch.float32, device=self.device)
        self._target = np.asarray(y)
        # Runs of one kind lie side by side, so that their logits are columns of one tensor.
        kinds = list(dict.fromkeys(m.kind for m in self.members))
        self._place = sorted(range(len(self.members)), key=lambda i: kinds.index(self.members[i].kind))
        self._sorted = [self.members[i] for i in self._place]
        self.losses = list(self._losses())
        sizes = [self.X.shape[1], *hidden, 1]
        self.weights, self.biases = self._start(sizes)
        for p in (*self.weights, *self.biases):
            p.grad = torch.zeros_like(p)
        rows = torch.empty(len(self.members), batch, sizes[0], device=self.device)
        self._inputs, self._slopes = [rows, *self._hidden(batch)], self._hidden(batch)
        self.averaged = averaged
        #: The models to look at, layer by layer: weights, then biases.
        self.models = self.weights, self.biases
        if averaged:
            self.models = [w.clone() for w in self.weights], [b.clone() for b in self.biases]
        self.adams = [Adam(self.weights, rate, decay), Adam(self.biases, rate)]

    @property
    def numbers(self) -> int:
        """The size of the largest array of a step."""
        return len(self.members) * self.batch * max(w.shape[1] for w in self.weights)

    def _losses(self) -> list[tuple[Loss, slice]]:
        """One module for all runs of a kind, and their place in the stack."""
        found, end = [], 0
        for _, same in itertools.groupby(self._sorted, key=lambda m: m.kind):
            group = list(same)
            start, end = end, end + len(group)
            y = [self._target[m.rows] for m in group]
            counts = np.array([(y == 0).sum() for y in y]), np.array([(y == 1).sum() for y in y])
            one = group[0]
            reduction = "none" if "none" in Loss.registry[one.loss].reductions else "mean"
            loss = losses.get(
                one.loss,
                metric=one.metric,
                task="multilabel",
                num_labels=len(group),
                average="each",
                class_counts=counts,
                reduction=reduction,
                check=False,
                sync=False,
                **one.options,
            )
            found.append((loss.to(self.device), slice(start, end)))
        return found

    def _start(self, sizes: Sequence[int]) -> tuple[list[Tensor], list[Tensor]]:
        """Initial weights: zero for a linear model, which is convex, else He's."""
        weights = [torch.zeros(len(self._sorted), a, b) for a, b in itertools.pairwise(sizes)]
        biases = [torch.zeros(len(self._sorted), 1, b) for b in sizes[1:]]
        for r, member in enumerate(self._sorted):
            y = self._target[member.rows]
            if member.loss in FROM_PRIOR and 0 < y.sum() < len(y):
                biases[-1][r] = math.log(y.sum() / (len(y) - y.sum()))
            if len(sizes) == 2:
                continue
            chance = np.random.Generator(np.random.Philox(np.random.SeedSequence(member.start)))
            for i, weight in enumerate(weights):
                spread = math.sqrt((1 if i == len(weights) - 1 else 2) / weight.shape[1])
                weight[r] = torch.from_numpy(spread * chance.standard_normal(weight.shape[1:]))
        return [w.to(self.device) for w in weights], [b.to(self.device) for b in biases]

    def train_epoch(self) -> None:
        """Take all steps of an epoch."""
        order = self._order()
        for step in range(self.steps):
            self._step(order[step])
            if self.averaged:
                share = 1 / min(self.steps, self.epoch * self.steps + step + 1)
                for mean, part in zip(self.models, (self.weights, self.biases), strict=True):
                    torch._foreach_lerp_(mean, part, share)
        self.epoch += 1

    def _order(self) -> Tensor:
        """Which rows each run takes in each step of this epoch: ``(steps, R, batch)``."""
        wanted = self.steps * self.batch
        order = np.empty((len(self._sorted), wanted), dtype=np.int64)
        made: dict[Any, NDArray[np.int64]] = {}
        for r, member in enumerate(self._sorted):
            key = member.order, id(member.rows)
            if key not in made:
                made[key] = _stream(member.rows, self.epoch * wanted, wanted, member.order)
            order[r] = made[key]
        cut = order.reshape(len(self._sorted), self.steps, self.batch).transpose(1, 0, 2)
        return torch.from_numpy(np.ascontiguousarray(cut)).to(self.device)

    def _step(self, rows: Tensor) -> None:
        x, *hidden = self._inputs
        torch.index_select(self.X, 0, rows.flatten(), out=x.view(-1, x.shape[2]))
        slope = self._slope(_forward(self.weights, self.biases, x, hidden), self.y[rows])[:, :, None]
        # One output: products of matrices with one row are quicker than with one column, or by hand.
        last = self.weights[-1].mT
        torch.bmm(slope.mT, self._inputs[-1], out=gradient(self.weights[-1]).mT)
        torch.sum(slope, 1, keepdim=True, out=gradient(self.biases[-1]))
        for i in range(len(hidden) - 1, -1, -1):
            back = self._slopes[i]
            if i == len(hidden) - 1:
                torch.mul(slope, last, out=back)
            else:
                torch.bmm(slope, self.weights[i + 1].mT, out=back)
            slope = torch.ops.aten.threshold_backward.grad_input(back, hidden[i], 0, grad_input=back)
            torch.bmm(self._inputs[i].mT, slope, out=gradient(self.weights[i]))
            torch.sum(slope, 1, keepdim=True, out=gradient(self.biases[i]))
        for adam in self.adams:
            adam.step()

    def _hidden(self, rows: int) -> list[Tensor]:
        """Room for what the layers between hold of so many rows: fresh memory would cost more than the products."""
        shape = len(self._sorted), rows
        return [torch.empty(*shape, w.shape[2], device=self.device) for w in self.weights[:-1]]

    def _slope(self, z: Tensor, y: Tensor) -> Tensor:
        """∂L/∂z of every run's mean loss over its batch: ``(R, batch)``."""
        columns, target = z.T.contiguous(), y.T.contiguous()
        leaves, values, scales = [], [], []
        for loss, part in self.losses:
            leaves.append(columns[:, part].requires_grad_())
            values.append(loss(leaves[-1], target[:, part]))
            # A mean over columns is not what each run would have alone.
            scale = 1 / self.batch if values[-1].ndim else part.stop - part.start
            scales.append(torch.full_like(values[-1], scale))
        return torch.cat(torch.autograd.grad(values, leaves, scales), 1).T

    @torch.no_grad()
    def margins(self) -> Tensor:
        """Logits of all rows by all runs, in the order of `members`."""
        widest = max(w.shape[2] for w in self.weights)
        chunk = min(len(self.X), max(1, ROOM // (len(self._sorted) * widest)))
        found = torch.empty(len(self._sorted), len(self.X), device=self.device)
        hidden = self._hidden(chunk)
        for begin in range(0, len(self.X), chunk):
            x = self.X[begin : begin + chunk].expand(len(self._sorted), -1, -1)
            z = _forward(*self.models, x, [room[:, : x.shape[1]] for room in hidden])
            found[self._place, begin : begin + chunk] = z
        return found

    def state(self) -> dict[str, Tensor]:
        """All that training goes on from, besides the number of the epoch."""
        found: dict[str, Tensor] = {}
        for kind, adam in zip(("weight", "bias"), self.adams, strict=True):
            found.update({f"{kind}.{name}": p for name, p in adam.state().items()})
        if self.averaged:
            found.update({f"mean.{i}": p for i, p in enumerate(itertools.chain(*self.models))})
        for i, (loss, _) in enumerate(self.losses):
            found.update({f"loss.{i}.{name}": value for name, value in loss.state_dict().items()})
        return found

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Go on from a state of the same members."""
        for kind, adam in zip(("weight", "bias"), self.adams, strict=True):
            for name, p in adam.state().items():
                p.copy_(state[f"{kind}.{name}"])
        for i, p in enumerate(itertools.chain(*self.models) if self.averaged else ()):
            p.copy_(state[f"mean.{i}"])
        for i, (loss, _) in enumerate(self.losses):
            prefix = f"loss.{i}."
            loss.load_state_dict(
                {k.removeprefix(prefix): v for k, v in state.items() if k.startswith(prefix)}
            )


def _forward(
    weights: Sequence[Tensor], biases: Sequence[Tensor], x: Tensor, hidden: Sequence[Tensor]
) -> Tensor:
    """Logits ``(R, rows)``; what each layer hands on is left in `hidden`."""
    for weight, bias, out in zip(weights, biases, hidden, strict=False):
        x = torch.baddbmm(bias, x, weight, out=out).relu_()
    return torch.baddbmm(biases[-1], weights[-1].mT, x.mT)[:, 0]


def _stream(rows: NDArray[np.int64], begin: int, count: int, key: tuple[int, ...]) -> NDArray[np.int64]:
    """A stretch of an endless stream of rows: all of them in random order, then in another, and so on."""
    found = []
    while count:
        turn, at = divmod(begin, len(rows))
        part = rows[shuffled(len(rows), *key, turn)[at : at + count]]
        found.append(part)
        begin, count = begin + len(part), count - len(part)
    return np.concatenate(found)
