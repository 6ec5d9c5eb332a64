"""Many small networks on one table as one tensor program: linear models or MLPs, each with its own rows and loss."""

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
from fbeta.learners.network import Network
from fbeta.losses import Loss
from fbeta.metrics import Metric

#: Losses that begin at the prior's log odds; the others have their gradient around f = ½ and begin there.
FROM_PRIOR = {"asymmetric", "bce", "focal", "ldam", "tangent"}
#: Numbers that a layer of an evaluation may hold at once: what stays in a cache is quicker.
ROOM = 1 << 20


@dataclass(frozen=True, eq=False)
class Run:
    """One network: its rows and loss; equal `start` is equal first weights, equal `order` an equal order of rows."""

    rows: NDArray[np.int64]
    loss: str
    start: tuple[int, ...] = (0,)
    order: tuple[int, ...] = (0,)
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def kind(self) -> tuple[str, str]:
        """Runs of one kind can share a loss module, one column each."""
        return self.loss, repr(sorted(self.options.items()))


class Stack:
    """R networks x ↦ xW₁ + b₁ ↦ max(0, ·)W₂ + b₂ … with K outputs each, on rows of one table.

    A step is a handful of batched matrix products for all runs at once; only ∂L/∂z comes from the loss modules, which
    see the runs of one loss as columns. No number of a run depends on another run.

    - `hidden`: widths between the table and the logits; none is a linear model.
    - `weight`: of each row (2 counts it twice). `pooled`: the K outputs of a run are scored by their pooled counts.
    - `penalty`: λ of a penalty ``λ / 2 · ‖W‖²`` (biases left out), relative to the mean loss over rows and outputs.
    - `dtype`: of the arithmetic.

    Shape: `X` ``(n, d)``, dense or (without hidden layers) SciPy's CSR; `y` ``(n, K)`` of 0 and 1; `weight` ``(n,)``.
    """

    def __init__(
        self,
        X: Any,
        y: NDArray[Any],
        runs: Sequence[Run],
        metric: Metric | str,
        *,
        hidden: Sequence[int] = (),
        weight: NDArray[np.float64] | None = None,
        pooled: bool = False,
        penalty: float = 0.0,
        device: torch.device | str = "cpu",
        dtype: torch.dtype = torch.float32,
    ) -> None:
        self.device, self.dtype = torch.device(device), dtype
        self.sparse = hasattr(X, "tocsr")
        self.X: Any = X.tocsr() if self.sparse else self._tensor(X)
        self.y, self.outputs = self._tensor(y), y.shape[1]
        self.weight = None if weight is None else self._tensor(weight)
        # Runs of one kind lie side by side, so that their logits are columns of one tensor.
        kinds = list(dict.fromkeys(run.kind for run in runs))
        place = sorted(range(len(runs)), key=lambda i: kinds.index(runs[i].kind))
        self.runs = [runs[i] for i in place]
        self._place = {given: here for here, given in enumerate(place)}
        mass = np.ones(len(y)) if weight is None else weight
        self._negatives = np.array([mass[run.rows] @ (1 - y[run.rows]) for run in self.runs])
        self._positives = np.array([mass[run.rows] @ y[run.rows] for run in self.runs])
        self.pooled, self.penalty = pooled, penalty / self.outputs
        self.metric = metric
        self.losses = self._losses()
        self.weights, self.biases = self._start([X.shape[1], *hidden, self.outputs])
        for p in self.parameters:
            p.grad = torch.zeros_like(p)

    @property
    def parameters(self) -> list[Tensor]:
        """All weights, then all biases; the first axis is the run."""
        return [*self.weights, *self.biases]

    def _tensor(self, x: Any) -> Tensor:
        return torch.as_tensor(np.ascontiguousarray(x), device=self.device).to(self.dtype)

    def _losses(self) -> list[tuple[Loss, slice]]:
        """One module for all runs of a kind, and their place in the stack; with several outputs one per run."""
        found, end = [], 0
        keys = [(run.kind, i if self.outputs > 1 else 0) for i, run in enumerate(self.runs)]
        for _, same in itertools.groupby(keys):
            start, end = end, end + len(list(same))
            part, run = slice(start, end), self.runs[start]
            cls = Loss.registry.get(run.loss, Loss)  # an unknown name is refused where the module is made
            found.append((self._loss(run, part, "none" if "none" in cls.reductions else "mean"), part))
        return found

    def _loss(self, run: Run, part: slice, reduction: str) -> Loss:
        average = "each" if self.outputs == 1 else "micro" if self.pooled else "macro"
        counts = (x[part].ravel() for x in (self._negatives, self._positives))
        try:
            loss = losses.get(
                run.loss,
                metric=self.metric,
                task="multilabel",
                num_labels=(part.stop - part.start) * self.outputs,
                average=average,
                class_counts=tuple(counts),
                reduction=reduction,
                check=False,
                sync=False,
                **run.options,
            )
        except TypeError as error:  # an option that the loss does not have, or one that is given here already
            given = dict(run.options)
            raise TypeError(f"loss_options {given} do not fit the loss {run.loss!r}: {error}.") from None
        loss.watch = None  # the course of a run says what went wrong
        return loss.to(self.device)

    def _start(self, sizes: Sequence[int]) -> tuple[list[Tensor], list[Tensor]]:
        """Initial weights: zero for a linear model, which is convex, else He's."""
        runs, dtype = len(self.runs), self.dtype
        weights = [torch.zeros(runs, a, b, dtype=dtype) for a, b in itertools.pairwise(sizes)]
        biases = [torch.zeros(runs, 1, b, dtype=dtype) for b in sizes[1:]]
        for r, run in enumerate(self.runs):
            hit, miss = self._positives[r], self._negatives[r]
            if run.loss in FROM_PRIOR and (hit > 0).all() and (miss > 0).all():
                biases[-1][r, 0] = torch.as_tensor(np.log(hit / miss))
            if len(sizes) == 2:
                continue
            chance = np.random.Generator(np.random.Philox(np.random.SeedSequence(run.start)))
            for i, weight in enumerate(weights):
                spread = math.sqrt((1 if i == len(weights) - 1 else 2) / weight.shape[1])
                weight[r] = torch.from_numpy(spread * chance.standard_normal(weight.shape[1:]))
        return [w.to(self.device) for w in weights], [b.to(self.device) for b in biases]

    def reserve(self, batch: int) -> None:
        """Keep memory for the hidden layers of so many rows: fresh memory would cost more than the products."""
        shapes = [(len(self.runs), batch, w.shape[2]) for w in self.weights[:-1]]
        self._rooms, self._backs = ([self.y.new_empty(shape) for shape in shapes] for _ in range(2))

    def logits(self, x: Tensor) -> Tensor:
        """Logits ``(R, K, B)`` of ``(R, B, d)``, or of ``(B, d)`` for all runs; `differentiate` needs what it keeps."""
        for weight, bias, out in zip(self.weights[:-1], self.biases[:-1], self._rooms, strict=True):
            if x.ndim == 3:
                torch.baddbmm(bias, x, weight, out=out)
            else:
                torch.add(self._product(x, weight).transpose(0, 1), bias, out=out)
            x = out.relu_()
        weight, bias = self.weights[-1], self.biases[-1]
        if x.ndim == 3:  # few outputs: products with few rows are quicker than with few columns
            return torch.baddbmm(bias.mT, weight.mT, x.mT)
        return self._product(x, weight).permute(1, 2, 0) + bias.mT

    def _product(self, x: Tensor, weight: Tensor) -> Tensor:
        """One product of the same rows with all runs' weights: ``(B, R, h)``."""
        wide = weight.permute(1, 0, 2).reshape(weight.shape[1], -1)
        found = torch.sparse.mm(x, wide) if x.is_sparse else x @ wide
        return found.reshape(x.shape[0], *weight.shape[::2])

    def differentiate(self, x: Tensor, slope: Tensor) -> None:
        """Write the gradient of every weight and bias, from ∂L/∂z ``(R, K, B)`` at the last `logits`."""
        inputs, backs, last = [x, *self._rooms], self._backs, len(self._rooms)
        back = slope.mT  # (R, B, K)
        for i in range(last, -1, -1):
            weight, bias = self.weights[i], self.biases[i]
            torch.sum(back, 1, keepdim=True, out=_gradient(bias))
            if inputs[i].ndim == 2:  # the same rows for all runs
                flat = back.transpose(0, 1).reshape(x.shape[0], -1)  # (B, R·h)
                found = torch.sparse.mm(x.t(), flat) if x.is_sparse else x.T @ flat
                _gradient(weight).copy_(found.reshape(weight.shape[1], weight.shape[0], -1).permute(1, 0, 2))
            elif i == last:  # as in `logits`, products with few rows are quicker than with few columns
                torch.bmm(slope, inputs[i], out=_gradient(weight).mT)
            else:
                torch.bmm(inputs[i].mT, back, out=_gradient(weight))
            if self.penalty:
                _gradient(weight).add_(weight, alpha=self.penalty)
            if i:
                if back.shape[2] == 1:
                    torch.mul(back, weight.mT, out=backs[i - 1])
                else:
                    torch.bmm(back, weight.mT, out=backs[i - 1])
                back = torch.ops.aten.threshold_backward.grad_input(backs[i - 1], inputs[i], 0, grad_input=backs[i - 1])

    def slopes(self, z: Tensor, y: Tensor, w: Tensor | None) -> tuple[list[Tensor], Tensor]:
        """The loss of every kind of run, and ∂L/∂z ``(R, K, B)`` of every run's mean loss over its rows and outputs."""
        leaves, values, scales = [], [], []
        for loss, part in self.losses:
            columns, target = (x[part].flatten(0, 1).T.contiguous() for x in (z, y))
            weight = None if w is None else w[part].expand_as(z[part]).flatten(0, 1).T.contiguous()
            leaves.append(columns.requires_grad_())
            values.append(loss(columns, target) if weight is None else loss(columns, target, weight))
            if not values[-1].ndim:  # a mean over columns is not what each run would have alone
                scale = torch.tensor(float(part.stop - part.start), dtype=values[-1].dtype, device=z.device)
            elif weight is None:
                scale = torch.full_like(values[-1], 1 / (z.shape[2] * self.outputs))
            else:
                mass = weight.sum() if self.pooled else weight.sum(0) * self.outputs
                scale = (1 / mass).expand_as(values[-1])
            scales.append(scale)
        found = torch.autograd.grad(values, leaves, scales)
        totals = [(value.detach() * scale).sum() for value, scale in zip(values, scales, strict=True)]
        slope = torch.cat(found, 1).T.to(self.dtype).reshape(z.shape)
        return totals, slope

    @torch.no_grad()
    def scores(self, run: int, rows: NDArray[np.int64] | None = None, models: Sequence[Tensor] | None = None) -> Tensor:
        """Logits ``(m, K)`` of some rows (by default all) by one run, with its weights or others laid out like them."""
        r, layers = self._place[run], len(self.weights)
        parts = [p[r] for p in (self.parameters if models is None else models)]
        X = self.X
        if rows is not None:
            X = X[rows if self.sparse else torch.from_numpy(rows).to(self.device)]
        if self.sparse:
            return torch.from_numpy(X @ parts[0].cpu().numpy()).to(self.device) + parts[1]
        chunk = max(1, ROOM // max(p.shape[-1] for p in parts))
        found = torch.empty(X.shape[0], self.outputs, device=self.device, dtype=self.dtype)
        for begin in range(0, X.shape[0], chunk):
            x = X[begin : begin + chunk]
            for i in range(layers):
                x = torch.addmm(parts[layers + i], x if i == 0 else x.relu_(), parts[i])
            found[begin : begin + chunk] = x
        return found

    def network(self, run: int, models: Sequence[Tensor] | None = None) -> Network:
        """One run as plain arrays."""
        r, layers = self._place[run], len(self.weights)
        parts = [p[r].cpu().numpy().copy() for p in (self.parameters if models is None else models)]
        return Network(tuple(parts[:layers]), tuple(bias[0] for bias in parts[layers:]))

    def loss_of(self, run: int) -> Loss:
        """The module that a run's loss is a part of."""
        r = self._place[run]
        return next(loss for loss, part in self.losses if part.start <= r < part.stop)

    def loss_of_one(self, run: int) -> Loss:
        """A module of its own for a run's loss, to look at what it is on all rows."""
        r = self._place[run]
        return self._loss(self.runs[r], slice(r, r + 1), "mean")


def _gradient(p: Tensor) -> Tensor:
    assert p.grad is not None
    return p.grad
