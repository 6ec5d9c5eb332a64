"""Counts of the whole data set from batches: the operating point (u, t) that training stands at."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from numbers import Real
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from fbeta.losses import ranks
from fbeta.losses.task import WIDE, Batch, check_task, convert, keeps, validate
from fbeta.metrics import Confusion

#: Over labels or classes; "each" takes labels for problems of their own.
AVERAGES = ("macro", "micro", "each")
#: Maps of more classes than this are taken apart into rows: across maps a softmax adds up class by class, and with
#: some hundred classes it would lose the sixth digit.
FEW = 64


def decisions(logits: Tensor, *, soft: bool) -> tuple[Tensor, Tensor]:
    """How much of each element is called positive, and how much negative.

    Hard: f ≥ ½ (z ≥ 0). Soft: f and 1 − f, each to full precision.

    >>> decisions(torch.tensor([0.0, -1.0]), soft=False)
    (tensor([1., 0.]), tensor([0., 1.]))
    """
    if soft:
        return torch.sigmoid(logits), torch.sigmoid(-logits)
    yes = (logits >= 0).to(logits.dtype)
    return yes, 1 - yes


def cells(batch: Batch, decided: tuple[Tensor, Tensor], *, columns: bool) -> Tensor:
    r"""Count a batch: TP, FP, FN, TN of decisions.

    Shape: ``(4,)``, or ``(4, K)`` if `columns` keeps the last axis apart. Soft counts carry a gradient.

    >>> b = convert(torch.tensor([2.0, -1.0, 3.0]), torch.tensor([1, 1, 0]))
    >>> cells(b, decisions(b.logits, soft=False), columns=False)
    tensor([1., 1., 1., 0.])
    """
    _, y, w = batch
    yes, no = decided
    hit, miss = w * y, w * (1 - y)
    shape = (-1, *y.shape[-1:]) if columns else (-1,)
    # Summed one by one: a stack of all four would be the largest tensor of a step.
    parts = (hit * yes, miss * yes, hit * no, miss * no)
    return torch.stack([part.reshape(shape).sum(0) for part in parts])


def classes(
    logits: Tensor, target: Tensor, weight: Tensor | None = None, *, ignore_index: int | None = None
) -> Batch:
    """Logits of many classes with integer targets and weights, for decisions by the largest score.

    Shape: ``(N, C, *)`` and ``(N, *)``; maps of more than `FEW` classes come back as rows. Ignored elements have
    weight 0 and harmless contents.

    >>> classes(torch.tensor([[0.0, 2.0]]), torch.tensor([255]), ignore_index=255)
    Batch(logits=tensor([[0., 0.]]), target=tensor([0]), weight=tensor([0.]))
    """
    z = logits.to(torch.promote_types(logits.dtype, torch.float32))
    y = target.long()
    w = torch.ones_like(y, dtype=z.dtype) if weight is None else weight.to(z.dtype)
    if ignore_index is not None:
        kept = keeps(y, ignore_index)
        z, y, w = torch.where(kept.unsqueeze(1), z, 0.0), torch.where(kept, y, 0), torch.where(kept, w, 0.0)
    if z.ndim > 2 and z.shape[1] > FEW:
        return Batch(z.movedim(1, -1).reshape(-1, z.shape[1]), y.flatten(), w.flatten())
    return Batch(z, y, w)


@torch.no_grad()
def class_cells(batch: Batch, *, columns: bool) -> Tensor:
    """Count a batch of `classes`, each against the rest, where the largest score is called: TP, FP, FN, TN.

    Shape: ``(4, C)``, or ``(4,)`` if not `columns`.

    >>> b = classes(torch.tensor([[2.0, 1.0], [3.0, 0.0]]), torch.tensor([0, 1]))
    >>> class_cells(b, columns=True).tolist()
    [[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]]
    """
    z, y, w = batch
    # Each map by itself: on a device all pixels would queue for the few places that they are added to.
    called, y, w = (x.flatten(1) if x.ndim > 1 else x.unsqueeze(0) for x in (_largest(z), y, w.double()))
    hit = called == y
    right, wrong = w * hit, w * ~hit
    none = w.new_zeros(len(y), z.shape[1])
    found = [none.scatter_add(1, k, x).sum(0) for k, x in ((y, right), (called, wrong), (y, wrong))]
    rest = (w.sum() - sum(found)).clamp(min=0)  # rounding must not take it below nothing
    counts = torch.stack([*found, rest])
    return counts if columns else counts.sum(1)


def _largest(scores: Tensor) -> Tensor:
    """The class with the largest score, the first of equals."""
    if scores.ndim == 2:
        return scores.max(1).indices
    # Across maps torch's own goes pixel by pixel, which is slow. Of those on top the first has the largest number, a
    # byte for at most FEW classes. NaN is never on top, and such a pixel is called the last class.
    count = scores.shape[1]
    number = torch.arange(count, 0, -1, dtype=torch.uint8, device=scores.device)
    top = (scores >= scores.amax(1, keepdim=True)) * number.reshape(-1, *[1] * (scores.ndim - 2))
    return count - top.amax(1).clamp(min=1).long()


class Exact(nn.Module):
    """A module whose buffers keep their precision: `.to(device)` moves them, `.half()` does not round them.

    Counts above 65,504 and anchors below 1e-8 do not fit half precision, and a loss must survive `model.half()`.

    >>> RunningConfusion().half().counts.dtype
    torch.float64
    """

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Exact:
        before = {name: buffer for name, buffer in self._buffers.items() if buffer is not None}
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        for name, buffer in before.items():
            moved = self._buffers[name]
            assert moved is not None
            if moved.dtype != buffer.dtype:
                self._buffers[name] = buffer.to(moved.device)
        return self

    # A process group belongs to a live process: copies share it, files do not hold it.
    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | ({"process_group": None} if "process_group" in self.__dict__ else {})

    def __deepcopy__(self, memo: dict[int, Any]) -> Exact:
        twin = self.__class__.__new__(self.__class__)
        memo[id(self)] = twin
        group = self.__dict__.get("process_group")
        if group is not None:
            memo[id(group)] = group
        twin.__dict__.update({name: copy.deepcopy(value, memo) for name, value in self.__dict__.items()})
        return twin


class RunningConfusion(Exact):
    r"""Running counts per column, with a memory measured in positives.

    .. math:: C \leftarrow \max(e^{-P/m},\ \text{damping}) \cdot C + C_\text{step},
              \qquad P = \text{positives in the step},\ m = \text{memory}

    Counts, not rates, are averaged: a batch without positives has no recall, but adds its negatives. With
    ``memory=None`` nothing is forgotten. Calling the module counts a batch in training mode with gradients
    enabled, and otherwise changes nothing; `add` counts always. Under several ranks the counts are summed.

    Shape: inputs as the task says (see `fbeta.losses.task`); cells ``()``, or ``(K,)`` for macro multi-label.

    >>> running = RunningConfusion(memory=None)
    >>> _ = running(torch.tensor([2.0, -1.0, 3.0]), torch.tensor([1, 1, 0]))
    >>> running.confusion.tp.item(), running.confusion.prevalence.item()
    (1.0, 0.6666666666666666)

    Reference: [narasimhan2015] (streaming estimates of the operating point)
    """

    counts: Tensor
    pending: Tensor

    def __init__(
        self,
        *,
        memory: float | None = 500.0,
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
        check_task(task, num_labels)
        one_of("counts", counts, ("hard", "soft"))
        one_of("average", average, AVERAGES if task == "multilabel" else AVERAGES[:2])
        if memory is not None and not (is_number(memory) and memory > 0):
            raise ValueError(
                f"memory is a number of positives above 0, or None for no forgetting; got {memory!r}."
            )
        if not (is_number(damping) and 0 <= damping < 1):
            raise ValueError(f"damping must lie in [0, 1); got {damping!r}.")
        if accumulate is not None and not (type(accumulate) is int and accumulate >= 1):
            raise ValueError(
                f"accumulate is the number of micro-batches in a step, or None to call step(); got {accumulate!r}."
            )
        self.memory, self.damping, self.soft = memory, damping, counts == "soft"
        self.task, self.num_labels, self.ignore_index = task, num_labels, ignore_index
        self.columns = task in WIDE and average != "micro"
        self.check, self.process_group, self.sync, self.accumulate = check, process_group, sync, accumulate
        shape = (4, num_labels or 1) if self.columns else (4,)
        # Double precision: at a prevalence of 1e-6 a few hundred positives come with 1e8 negatives.
        self.register_buffer("counts", torch.zeros(shape, dtype=torch.float64))
        self.register_buffer("pending", torch.zeros(shape, dtype=torch.float64))
        self.waiting = 0

    def forward(self, logits: Tensor, target: Tensor, weight: Tensor | None = None) -> Confusion:
        """Count a batch if training; return the running counts."""
        if self.advancing:
            tensors, ignore = (logits, target, weight), self.ignore_index
            validate(
                *tensors, task=self.task, num_labels=self.num_labels, ignore_index=ignore, check=self.check
            )
            if self.task == "multiclass" and not self.soft:
                found = class_cells(classes(*tensors, ignore_index=ignore), columns=self.columns)
            else:
                batch = convert(*tensors, task=self.task, ignore_index=ignore)
                found = cells(batch, decisions(batch.logits, soft=self.soft), columns=self.columns)
            self.add(ranks.total(found, ranks.group_of(self.process_group, self.sync)))
        return self.confusion

    @property
    def advancing(self) -> bool:
        """Whether a call counts: in training mode, with gradients enabled."""
        return self.training and torch.is_grad_enabled()

    @property
    def confusion(self) -> Confusion:
        """The running counts; zeros before the first step."""
        return Confusion(*self.counts.unbind())

    @torch.no_grad()
    def add(self, found: Tensor) -> None:
        """Add counts (already summed over ranks); the last of `accumulate` micro-batches closes the step.

        A column with a count that is not finite is left out: one overflowed step must not stay for good.
        """
        found = found.to(self.pending.dtype)
        self.pending.add_(torch.where(found.isfinite().all(0), found, 0.0))
        if self.accumulate is None:
            return
        if self.accumulate > 1:
            self.waiting += 1
            if self.waiting < self.accumulate:
                return
            self.waiting = 0
        self.step()

    @torch.no_grad()
    def step(self) -> None:
        """Fold what was counted since the last step into the memory."""
        if self.memory is not None:
            positives = self.pending[0] + self.pending[2]
            keep = torch.exp(-positives / self.memory).clamp(min=self.damping)
            # An empty step forgets nothing: exp(0) = 1.
            self.counts.mul_(keep)
        self.counts.add_(self.pending)
        self.pending.zero_()
        if self.waiting:
            self.waiting = 0

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

    def get_extra_state(self) -> Tensor:
        """The number of micro-batches waiting for their step."""
        return torch.tensor(self.waiting)

    def set_extra_state(self, state: Any) -> None:
        """Restore that number."""
        self.waiting = int(state)


def is_number(x: object) -> bool:
    """Whether x can be compared as a number (strings, None and booleans cannot, in an option).

    >>> is_number(0.5), is_number("500"), is_number(True)
    (True, False, False)
    """
    return isinstance(x, Real) and not isinstance(x, bool)


def one_of(name: str, value: str, choices: Iterable[str]) -> None:
    """Refuse an option that is not among its choices, and list them.

    >>> one_of("counts", "hard", ("hard", "soft"))
    """
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(choices)}; got {value!r}.")
