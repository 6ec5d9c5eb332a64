"""Warnings about training, looked for at a few steps; no other step waits for a device."""

import itertools
import warnings
import weakref
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from torch import Tensor

from fbeta.losses.memory import ordinary
from fbeta.losses.task import Reader, margin
from fbeta.metrics import Confusion

#: The first step at which a loss is looked at; then at twice as many, and so on.
FIRST_LOOK = 250
#: As many positives must be remembered, and so many errors for each of them be left (F₁ is about 0.98 then), before a
#: network is said to fit its rows.
POSITIVES, ERRORS = 20, 0.05


@dataclass(eq=False)
class Watch(ABC):
    """Counts the training steps of a loss, and looks at step 250, 500, 1,000 and so on.

    A compiled graph cannot stop to look. There an operator stands for it that hands the value of the loss on, and
    knows the watch by its number. (A CUDA graph replays kernels alone, so nothing is looked at there.)
    """

    owner: str
    steps: int = field(default=0, init=False)
    next_look: int = field(default=FIRST_LOOK, init=False)

    living: ClassVar[weakref.WeakValueDictionary[int, "Watch"]] = weakref.WeakValueDictionary()
    numbers: ClassVar[Any] = itertools.count()

    def __post_init__(self) -> None:
        self.number = next(Watch.numbers)
        Watch.living[self.number] = self

    def __setstate__(self, state: dict[str, Any]) -> None:
        # A copy looks at another loss: it has a number of its own.
        self.__dict__.update(state)
        self.__post_init__()

    @abstractmethod
    def remark(self, state: Tensor, target: Tensor) -> str | None:
        """What is to be said, if anything, of what the loss shows (logits, or counts) and the targets of a batch."""

    def __call__(self, value: Tensor, state: Tensor, target: Tensor) -> Tensor:
        """See a training step; its value comes back."""
        if not torch.compiler.is_compiling():
            self.step(state, target)
        elif torch.compiler.is_dynamo_compiling() and not torch.compiler.is_exporting():
            value = _seen(value, state.detach(), target, self.number)
        return value

    @torch.no_grad()
    def step(self, state: Tensor, target: Tensor) -> None:
        """Count a step, and look if it is time."""
        self.steps += 1
        if self.steps != self.next_look:
            return
        self.next_look *= 2
        if not ordinary(state, target) or (state.is_cuda and torch.cuda.is_current_stream_capturing()):
            return
        if (remark := self.remark(state, target)) is not None:
            said = f"After {self.steps} steps of {self.owner} {remark} (watch=False: no such warning)."
            warnings.warn(said, RuntimeWarning, stacklevel=7)


@dataclass(eq=False)
class PlateauWatch(Watch):
    """Whether a batch of mostly negative rows is called positive from the first to the last."""

    reader: Reader
    remedy: str

    def remark(self, state: Tensor, target: Tensor) -> str | None:
        """Look at logits."""
        z = margin(state) if self.reader.task == "softmax2" else state
        called, negative = (x.reshape(-1, *self.reader.shape) for x in (z >= 0, target == 0))
        stuck = called.all(0) & (2 * negative.sum(0) >= len(negative))
        if not bool(stuck.any()):
            return None
        where = f" in column {', '.join(str(k) for k, x in enumerate(stuck) if x)}" if stuck.ndim else ""
        return (
            f"every row of a batch is called positive{where}: it seems to be stuck on the plateau where its gradient "
            f"fades. {self.remedy}"
        )


@dataclass(eq=False)
class FitWatch(Watch):
    """Whether a network decides almost all of its training rows right; `rows` are those of an epoch, if known."""

    rows: float | None

    def remark(self, state: Tensor, target: Tensor) -> str | None:
        """Look at running counts, until something was said."""
        c = Confusion(*state.cpu())
        known = (c.positives >= POSITIVES) & (c.negatives > 0)
        rate = ((c.fp + c.fn) / c.positives)[known]
        if not len(rate) or rate.mean() > ERRORS:
            return None
        self.next_look = 0
        if self.rows is not None and self.steps * target.numel() <= self.rows:
            return None  # no row was seen twice, so none was memorised
        return (
            "almost no error is left on the training rows. Where a network has memorised them, costs no longer "
            "move its boundary, and ½ may be far from the best cut for other rows: choose the cut on held-out rows, "
            "fbeta.tune(scores, target, metric)"
        )


@torch.library.custom_op("fbeta::seen", mutates_args=())
def _seen(value: Tensor, state: Tensor, target: Tensor, number: int) -> Tensor:
    if (watch := Watch.living.get(number)) is not None:
        watch.step(state, target)
    return value.clone()


@_seen.register_fake
def _(value: Tensor, state: Tensor, target: Tensor, number: int) -> Tensor:
    return torch.empty_like(value)


_seen.register_autograd(lambda ctx, slope: (slope, None, None, None))
