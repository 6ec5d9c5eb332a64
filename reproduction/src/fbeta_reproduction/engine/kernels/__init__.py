"""What a step of many residual networks is made of: in plain PyTorch (`reference`) and in Triton (`accelerated`).

Both modules have the same functions.

Tensors are stacked: the first axis is the run. Images are channels-last, ``(R, B, H, W, C)``. No kernel lets one
run see another, sums are always added up in the same order, and tile sizes do not depend on the number of runs:
so a run gives the same bits alone and beside others.
"""

from __future__ import annotations

from types import ModuleType
from typing import NamedTuple

import torch
from torch import Tensor

#: torch.nn.BatchNorm2d's.
EPSILON = 1e-5
MOMENTUM = 0.1


class Learning(NamedTuple):
    """What torch.optim.SGD needs to take a step: weights ``(R, P)`` and their velocity, a copy of the weights in less
    precision (or None), a rate for every run ``(R,)``, momentum and weight decay.
    """

    weights: Tensor
    velocity: Tensor
    shadow: Tensor | None
    rate: Tensor
    momentum: float
    decay: float


def choose(device: torch.device) -> ModuleType:
    """The kernels for a device.

    >>> choose(torch.device("cpu")).__name__
    'fbeta_reproduction.engine.kernels.reference'
    """
    if device.type == "cuda":
        from fbeta_reproduction.engine.kernels import accelerated

        return accelerated
    from fbeta_reproduction.engine.kernels import reference

    return reference
