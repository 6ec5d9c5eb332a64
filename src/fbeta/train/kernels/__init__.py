"""What a step of many residual networks is made of, on a CPU (`cpu`) and in Triton (`cuda`): twins by name.

Tensors are stacked: the first axis is the run. Images are channels-last, ``(R, B, H, W, C)``. No kernel lets one
run see another, sums are never added up in an order of chance, and tile sizes do not depend on the number of runs:
so a run gives the same bits alone and in company.
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
    'fbeta.train.kernels.cpu'
    """
    if device.type == "cuda":
        from fbeta.train.kernels import cuda

        return cuda
    from fbeta.train.kernels import cpu

    return cpu
