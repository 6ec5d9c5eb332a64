"""Which tensors have memory that can be pointed at, and which numbers the host may look at."""

from __future__ import annotations

import torch
from torch import Tensor

_functorch = torch._C._functorch


def ordinary(*tensors: Tensor | None) -> bool:
    """Whether tensors have memory: fake, batched and subclassed ones have none, nor has a compiler's.

    >>> ordinary(torch.zeros(2), None)
    True
    """
    if torch.compiler.is_compiling() or _functorch.peek_interpreter_stack() is not None:
        return False
    return all(x is None or type(x) in (Tensor, torch.nn.Parameter) for x in tensors)


def on_host(*tensors: Tensor | None) -> bool:
    """Whether the host may look at the numbers without waiting for a device.

    >>> on_host(torch.zeros(2), None)
    True
    """
    return ordinary(*tensors) and all(x is None or x.is_cpu for x in tensors)


def batched(tensor: Tensor) -> bool:
    """Whether a gradient stands for several, as in `torch.autograd.grad(..., is_grads_batched=True)`.

    >>> batched(torch.zeros(2))
    False
    """
    return bool(_functorch.is_legacy_batchedtensor(tensor))
