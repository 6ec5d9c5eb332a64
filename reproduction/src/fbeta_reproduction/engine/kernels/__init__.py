"""What a step of many residual networks is made of: in plain PyTorch (`reference`) and in Triton (`accelerated`).

Tensors are stacked: the first axis is the run. Images are channels-last, ``(R, B, H, W, C)``. No kernel lets one
run see another, sums are always added up in the same order, and tile sizes do not depend on the number of runs:
so a run gives the same bits alone and beside others.
"""

from __future__ import annotations

import torch

from fbeta_reproduction.engine.kernels import reference
from fbeta_reproduction.engine.kernels.reference import EPSILON as EPSILON
from fbeta_reproduction.engine.kernels.reference import Learning as Learning
from fbeta_reproduction.engine.kernels.reference import Statistics as Statistics


class Kernels:
    """The kernels of a step and of an evaluation, in plain PyTorch; a subclass has them for other devices."""

    augment = staticmethod(reference.augment)
    conv_norm = staticmethod(reference.conv_norm)
    conv_line = staticmethod(reference.conv_line)
    activate = staticmethod(reference.activate)
    pool = staticmethod(reference.pool)
    head = staticmethod(reference.head)
    head_back = staticmethod(reference.head_back)
    pool_back = staticmethod(reference.pool_back)
    norm_back = staticmethod(reference.norm_back)
    conv_back_data = staticmethod(reference.conv_back_data)
    conv_back_weight = staticmethod(reference.conv_back_weight)
    learn = staticmethod(reference.learn)


def choose(device: torch.device) -> Kernels:
    """The kernels for a device.

    >>> type(choose(torch.device("cpu"))).__name__
    'Kernels'
    """
    if device.type == "cuda":
        from fbeta_reproduction.engine.kernels.accelerated import TritonKernels

        return TritonKernels()
    return Kernels()
