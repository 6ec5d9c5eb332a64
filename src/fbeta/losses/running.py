"""Counts of the whole data set from batches: the operating point (u, t) that training stands at."""

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import ArrayLike
from torch import Tensor

from fbeta.losses import ranks
from fbeta.losses.counting import cells, class_cells, classes, hard_decisions, soft_decisions
from fbeta.losses.kernels.formula import evaluate
from fbeta.losses.options import is_number, one_of
from fbeta.losses.precise import PreciseModule
from fbeta.losses.task import Reader
from fbeta.metrics import Confusion

#: What counts remember unless said otherwise, in positives.
MEMORY = 500.0


@dataclass(frozen=True)
class Decay:
    """The formula of one step: what is kept of the counts, and what was found added to it.

    A column with a count that is not finite is left as it was: one overflowed step must not stay for good.
    """

    damping: float

    def __call__(self, xp: Any, counts: Any, found: Any, memory: Any) -> tuple[Any, ...]:
        """New counts."""
        tp, fp, fn, tn = found
        sound = xp.isfinite(tp + fp + fn + tn)
        keep = 1.0
        if memory is not None:
            # A step without positives forgets nothing: exp(0) = 1.
            keep = xp.clip(xp.exp(-(tp + fn) / memory), self.damping, None)
        return tuple(xp.where(sound, keep * c + x, c) for c, x in zip(counts, found, strict=True))


class RunningConfusion(PreciseModule):
    r"""Running counts per column, with a memory measured in positives.

    .. math:: C \leftarrow \max(e^{-P/m},\ \text{damping}) \cdot C + C_\text{step},
              \qquad P = \text{positives in the step},\ m = \text{memory}

    Counts, not rates, are averaged: a batch without positives has no recall, but adds its negatives. Calling the
    module counts a batch, in training as in evaluation; with ``memory=None`` nothing is forgotten, which is how a
    validation set is counted. (Inside a loss it is the loss that counts, in training steps alone.) `memory` is one
    number, or one per column.

    Under several ranks the counts of a training step are summed. In evaluation (`eval()` or `no_grad`) each rank
    counts its own rows, as one may have fewer batches than another: ``dist.all_reduce(running.counts)`` sums them at
    the end.

    Shape: inputs as the task says (see `fbeta.losses.task`); cells ``()``, or ``(K,)`` for macro multi-label.

    >>> running = RunningConfusion(memory=None)
    >>> with torch.no_grad():
    ...     _ = running(torch.tensor([2.0, -1.0, 3.0]), torch.tensor([1, 1, 0]))
    >>> running.confusion.tp.item(), running.confusion.prevalence.item()
    (1.0, 0.6666666666666666)

    Reference: [narasimhan2015] (streaming estimates of the operating point)
    """

    counts: Tensor
    pending: Tensor
    memory: Tensor | None

    def __init__(
        self,
        *,
        memory: float | ArrayLike | None = MEMORY,
        damping: float = 0.5,
        counts: str = "hard",
        task: str = "binary",
        num_labels: int | None = None,
        average: str = "macro",
        ignore_index: int | None = None,
        check: bool | None = None,
        process_group: dist.ProcessGroup | None = None,
        sync: bool = True,
        accumulate: int | None = 1,
    ) -> None:
        super().__init__()
        self.reader = Reader(task, num_labels, average, ignore_index, check)
        one_of("counts", counts, ("hard", "soft"))
        shape = self.reader.shape
        endless = memory is None or (is_number(memory) and memory == math.inf)
        span = None if endless else read_memory(memory, shape)
        if not (is_number(damping) and 0 <= damping < 1):
            raise ValueError(f"damping must lie in [0, 1); got {damping!r}.")
        if accumulate is not None and not (type(accumulate) is int and accumulate >= 1):
            raise ValueError(
                f"accumulate is the number of micro-batches in a step, or None to call step(); got {accumulate!r}."
            )
        self.decay, self.soft = Decay(damping), counts == "soft"
        self.process_group, self.sync, self.accumulate = process_group, sync, accumulate
        # Double precision: at a prevalence of 1e-6 a few hundred positives come with 1e8 negatives.
        self.register_buffer("counts", torch.zeros((4, *shape), dtype=torch.float64))
        self.register_buffer("pending", torch.zeros((4, *shape), dtype=torch.float64))
        self.register_buffer("memory", span, persistent=False)
        self.waiting = 0

    @classmethod
    def like(cls, reader: Reader, **options: Any) -> Self:
        """Counts in the columns that a reader keeps apart."""
        return cls(task=reader.task, num_labels=reader.num_labels, average=reader.average, **options)

    @torch.no_grad()
    def count(self, logits: Tensor, target: Tensor, weight: Tensor | None = None) -> Tensor:
        """TP, FP, FN and TN of one batch: ``(4,)``, or ``(4, K)``; the running counts stay as they are."""
        columns = self.reader.columns
        if self.reader.task == "multiclass" and not self.soft:
            self.reader.validate(logits, target, weight)
            batch = classes(logits, target, weight, ignore_index=self.reader.ignore_index)
            return class_cells(batch, columns=columns)
        batch = self.reader.read(logits, target, weight)
        decisions = soft_decisions if self.soft else hard_decisions
        return cells(batch, decisions(batch.logits), columns=columns)

    def forward(self, logits: Tensor, target: Tensor, weight: Tensor | None = None) -> Confusion:
        """Count a batch; return the running counts."""
        learning = self.training and torch.is_grad_enabled()
        group = ranks.group_of(self.process_group, self.sync) if learning else None
        self.add(ranks.total(self.count(logits, target, weight), group))
        return self.confusion

    @property
    def confusion(self) -> Confusion:
        """The running counts; zeros before the first step."""
        return Confusion(*self.counts.unbind())

    def add(self, found: Tensor | list[float]) -> None:
        """Add counts, of all ranks and without gradient; the last of `accumulate` micro-batches closes the step."""
        if self.accumulate == 1 and not self.waiting:
            self._fold(found)
            return
        new = torch.as_tensor(found).to(self.pending).reshape(self.pending.shape)
        self.pending.add_(torch.where(new.isfinite().all(0), new, 0.0))
        if self.accumulate is None:
            return
        self.waiting += 1
        if self.waiting >= self.accumulate:
            self.step()

    def step(self) -> None:
        """Fold what was counted since the last step into the memory."""
        self._fold(self.pending)
        self.pending.zero_()
        if self.waiting:
            self.waiting = 0

    def _fold(self, found: Tensor | list[float]) -> None:
        """The one place where running counts advance."""
        counts = self.counts
        if isinstance(found, Tensor):
            found = found.to(counts.dtype).reshape(counts.shape)
        evaluate(self.decay, counts, found, self.memory, columns=counts.ndim > 1, out=counts)

    @torch.no_grad()
    def set(self, confusion: Confusion) -> None:
        """Put counts in place of the running ones."""
        for row, value in zip(self.counts, confusion, strict=True):
            row.copy_(torch.as_tensor(value, dtype=row.dtype, device=row.device))
        self.pending.zero_()
        self.waiting = 0

    def reset(self) -> None:
        """Forget everything."""
        self.set(Confusion(0.0, 0.0, 0.0, 0.0))

    def near(self, logits: Tensor, owner: str) -> None:
        """Say how to bring state and logits together where they are on two devices."""
        if self.counts.device != logits.device:
            raise RuntimeError(
                f"{owner} keeps its counts on {self.counts.device}, the logits are on {logits.device}: "
                f"call loss.to({str(logits.device)!r}) once."
            )

    def get_extra_state(self) -> Tensor:
        """The number of micro-batches waiting for their step."""
        return torch.tensor(self.waiting)

    def set_extra_state(self, state: Any) -> None:
        """Restore that number."""
        self.waiting = int(state)


def read_memory(memory: Any, shape: tuple[int, ...]) -> Tensor:
    """Read a memory: one number of positives, or one per column."""
    try:
        found = np.array(memory, dtype=np.float64)
        sound = found.shape in ((), shape) and bool((found > 0).all()) and not isinstance(memory, bool | str)
    except (TypeError, ValueError):
        sound = False
    if not sound:
        each = f" (or {shape[0]} of them, one per column)" if shape else ""
        raise ValueError(f"memory is a number of positives above 0{each}, or None for no forgetting; got {memory!r}.")
    return torch.from_numpy(found)
