"""The training loop of a stack: epochs, evaluation, checkpoints, and a stop before a deadline."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from fbeta_reproduction.engine.image_stack import ImageStack
from fbeta_reproduction.records.checkpoint import load, save

#: Is told of every epoch: its number from 1, all margins ``(R, N)``, and the device's seconds for all runs.
Report = Callable[[int, NDArray[np.float32], float], None]


class _Clock:
    """Seconds of the device between two moments, without waiting for it."""

    def __init__(self, device: torch.device) -> None:
        self.event = None
        self.now = time.perf_counter()
        if device.type == "cuda":
            self.event = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
            self.event.record()

    def until(self, later: _Clock) -> float:
        if self.event is not None and later.event is not None:
            later.event.synchronize()
            return float(self.event.elapsed_time(later.event)) / 1000
        return later.now - self.now


def train(
    stack: ImageStack,
    epochs: int,
    report: Report,
    *,
    checkpoint: Path | None = None,
    settle: Callable[[], None] = lambda: None,
    every: float = 300.0,
    deadline: float | None = None,
) -> bool:
    """Train until `epochs`, or until `deadline` (of time.monotonic) is near; True if all epochs are done.

    The margins of an epoch are reported in order from another thread while the next one trains. A checkpoint is
    written every so many seconds and where the deadline ends the loop; all epochs before it have been reported by
    then, and `settle` is called to make sure of them. However near the deadline, one epoch is trained: so every call
    gets further. An existing checkpoint is not read here: see `resume`.
    """
    pending: Future[None] | None = None
    saved = time.monotonic()
    with ThreadPoolExecutor(1) as reporter:
        while stack.epoch < epochs:
            begun = time.monotonic()
            start = _Clock(stack.device)
            stack.train_epoch()
            margins = stack.margins()
            end = _Clock(stack.device)
            # Waits for the device: by then the epoch before has been reported, on the processor.
            host = margins.cpu().numpy() if margins.is_cuda else margins.numpy().copy()
            if pending is not None:
                pending.result()
            pending = reporter.submit(report, stack.epoch, host, start.until(end))
            now = time.monotonic()
            # Another epoch like this one, and a checkpoint, must fit.
            late = deadline is not None and now + 1.5 * (now - begun) + 10 > deadline
            if checkpoint is not None and stack.epoch < epochs and (late or now - saved > every):
                pending.result()
                settle()
                save(checkpoint, stack.state(), {"epoch": stack.epoch})
                saved = time.monotonic()
            if late:
                break
        if pending is not None:
            pending.result()
    return stack.epoch >= epochs


def resume(stack: ImageStack, checkpoint: Path) -> int:
    """Go on from a checkpoint if there is one; the result is the epochs that it holds."""
    if checkpoint.exists():
        tensors, meta = load(checkpoint)
        stack.restore(tensors)
        stack.epoch = int(meta["epoch"])
    return stack.epoch
