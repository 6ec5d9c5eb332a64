"""Running counts that move at another pace than that of a memory: in stages, or by a step that shrinks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fbeta.losses.kernels.formula import Formula, evaluate
from fbeta.losses.options import one_of
from fbeta.losses.running import RunningConfusion
from fbeta.losses.tangent import TangentLoss

#: Sums of weights are rounded: so near to its end a stage is over.
NEARLY = 1 + 1e-9


@dataclass(frozen=True)
class Stages:
    """The level is measured at the end of each stage, over its last `share`, and stays until the next one ends.

    Beside the counts of the level it keeps what this stage has counted, how long it has been, and how long it is to
    be: in positives, or in `rows`, and `growth` times as long as the one before.
    """

    share: float
    growth: float
    rows: bool = False

    def __call__(self, xp: Any, state: Any, found: Any) -> tuple[Any, ...]:
        """Counts of the level, and of the stage."""
        level, counted, done, length = state[:4], state[4:8], state[8], state[9]
        tp, fp, fn, tn = found
        sound = xp.isfinite(tp + fp + fn + tn)  # one overflowed step must not stay for good
        done = xp.where(sound, done + tp + fn + (fp + tn if self.rows else 0.0), done)
        late = done > (1.0 - self.share) * length * NEARLY
        counted = [xp.where(late * sound, c + x, c) for c, x in zip(counted, found, strict=True)]
        over = done * NEARLY >= length
        level = [xp.where(over, new, old) for new, old in zip(counted, level, strict=True)]
        counted = [xp.where(over, 0.0, c) for c in counted]
        return *level, *counted, xp.where(over, 0.0, done), xp.where(over, self.growth * length, length)


@dataclass(frozen=True)
class ShrinkingStep:
    r"""Averages that move by step/√n per positive, after n of them: a memory of √n/step positives.

    Beside the counts it keeps n.
    """

    step: float
    damping: float

    def __call__(self, xp: Any, state: Any, found: Any) -> tuple[Any, ...]:
        """Counts, and the positives seen."""
        *counts, seen = state
        tp, fp, fn, tn = found
        sound = xp.isfinite(tp + fp + fn + tn)
        seen = xp.where(sound, seen + tp + fn, seen)
        keep = xp.clip(xp.exp(-(tp + fn) * self.step / xp.clip(seen, 1.0, None) ** 0.5), self.damping, None)
        return *(xp.where(sound, keep * c + x, c) for c, x in zip(counts, found, strict=True)), seen


class PacedConfusion(RunningConfusion):
    """Running counts, and a few numbers beside them (per column), that one formula moves at every step.

    `pace` is called with (counts, numbers beside them) and the counts of a step, and returns both anew. `start` holds
    the first numbers.

    >>> running = PacedConfusion(pace=Stages(share=1.0, growth=2.0), start=(0.0, 0.0, 0.0, 0.0, 0.0, 2.0))
    >>> for _ in range(3):
    ...     running.add([1.0, 0.0, 0.0, 4.0])
    ...     print(running.confusion.tn.item())
    0.0
    8.0
    8.0
    """

    beside: Tensor

    def __init__(self, *, pace: Formula, start: Any, **options: Any) -> None:
        super().__init__(**options)
        self.pace, self.start = pace, start
        shape = self.counts.shape[1:]
        first = np.stack([np.broadcast_to(x, shape) for x in start])
        self.register_buffer("beside", torch.tensor(first, dtype=torch.float64))

    @property
    def state(self) -> Tensor:
        """Counts, and what is beside them, in new memory.

        Compiled, torch may compute again in the backward pass what was a product of a buffer in the forward pass, from
        the buffer as it then is; what is joined is kept.
        """
        return torch.cat([self.counts, self.beside])

    def _fold(self, found: Tensor | list[float]) -> None:
        """The one place where counts and what is beside them advance."""
        counts, beside = self.counts, self.beside
        if isinstance(found, Tensor):
            found = found.to(counts.dtype).reshape(counts.shape)
        state = self.state
        evaluate(self.pace, state, found, columns=counts.ndim > 1, out=state)
        counts.copy_(state[:4])
        beside.copy_(state[4:])

    @torch.no_grad()
    def reset(self) -> None:
        """Forget everything, and start anew."""
        super().reset()
        for row, value in zip(self.beside, self.start, strict=True):
            row.copy_(torch.as_tensor(value))


class PacedLoss(TangentLoss):
    """A tangent loss whose operating point moves at a pace of its own, not by a memory.

    `counts` is "hard" or "soft"; `memory` and `damping` have no meaning here.
    """

    def __init__(
        self, metric: Any, prevalence: Any = None, *, counts: str = "hard", warmup: float = 0.0, **options: Any
    ) -> None:
        one_of("counts", counts, ("hard", "soft"))
        for keyword in {"memory", "damping"} & options.keys():
            raise TypeError(f"{type(self).__name__} takes no {keyword}: its operating point moves by its own rule.")
        super().__init__(metric, prevalence, counts=counts, warmup=warmup, **options)

    def follow(self, pace: Formula, start: Any) -> None:
        """Count by a formula, from these numbers on."""
        self.running = PacedConfusion.like(self.reader, pace=pace, start=start, accumulate=self.running.accumulate)

    def in_stages(self, length: Any, stages: Stages) -> None:
        """Count in stages, the first of them of this length."""
        self.follow(stages, (0.0, 0.0, 0.0, 0.0, 0.0, length))
