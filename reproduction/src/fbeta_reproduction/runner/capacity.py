"""How many runs fit into a device's memory, and how long an epoch takes there."""

from __future__ import annotations

import time

import numpy as np
import torch

from fbeta_reproduction.engine.layout import Layout
from fbeta_reproduction.images.binary_images import BinaryImages
from fbeta_reproduction.protocol import Run
from fbeta_reproduction.runner.run_stack import RunStack


def bytes_per_run(layout: Layout, batch: int = 100, eval_batch: int = 500) -> int:
    """About how many bytes a run takes: weights four times over, and the larger of a step and an evaluation.

    >>> from fbeta_reproduction.engine.resnet import ARCHITECTURES
    >>> round(bytes_per_run(Layout(ARCHITECTURES["resnet18"])) / 2**20)
    93
    """
    stem = layout.stem.rows.out * layout.stem.cols.out * layout.stem.channels_out
    blocks = sum((4 + 2 * (b.around is not None)) * b.conv1.rows.out**2 * b.conv1.channels_out for b in layout.blocks)
    step = 2 * batch * (3 * stem + blocks + int(np.prod(layout.input_shape)))
    look = 2 * eval_batch * (2 * stem + int(np.prod(layout.input_shape)))
    return layout.kernels * 14 + max(step, look)


def fit_at_once(wanted: int, layout: Layout, device: torch.device) -> int:
    """How many runs fit into the device's free memory, at most `wanted`."""
    if device.type != "cuda":
        return wanted
    torch.cuda.empty_cache()  # what the stack before has left to PyTorch is free, too
    free = torch.cuda.mem_get_info(device)[0]
    return max(1, min(wanted, int(0.85 * free / bytes_per_run(layout))))


def seconds_per_epoch(run: Run, images: BinaryImages, device: torch.device) -> float:
    """A guess from one timed step and one small evaluation of a single run."""
    few = BinaryImages(images.images[:120], images.target[:120], trained=111)  # 100 to train on: one batch
    work = RunStack([run], few, device)
    work.stack.train_epoch()
    begun = time.perf_counter()
    work.stack.train_epoch()
    step = time.perf_counter() - begun
    begun = time.perf_counter()
    work.stack.margins()
    look = time.perf_counter() - begun
    return step * 0.9 * images.trained / 100 + look * len(images.target) / 120
