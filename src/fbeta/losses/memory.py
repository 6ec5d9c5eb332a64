"""Which tensors have memory that can be pointed at, and which numbers the host may look at."""

import math

import torch
from torch import Tensor

_functorch = torch._C._functorch
_ORDINARY = (Tensor, torch.nn.Parameter)


def ordinary(*tensors: Tensor | None) -> bool:
    """Whether tensors have memory: fake, batched and subclassed ones have none, nor has a compiler's."""
    if torch.compiler.is_compiling() or _functorch.peek_interpreter_stack() is not None:
        return False
    for x in tensors:  # noqa: SIM110  # this is asked several times per step, and a generator takes three times as long
        if x is not None and type(x) not in _ORDINARY:
            return False
    return True


def on_host(*tensors: Tensor | None) -> bool:
    """Whether the host may look at the numbers without waiting for a device."""
    for x in tensors:
        if x is not None and not x.is_cpu:
            return False
    return ordinary(*tensors)


def finite(x: Tensor) -> bool:
    """Whether the host sees at a glance that no number is infinite or NaN."""
    return on_host(x) and math.isfinite(x.detach().sum())


def batched(tensor: Tensor) -> bool:
    """Whether a gradient stands for several, as in `torch.autograd.grad(..., is_grads_batched=True)`."""
    return bool(_functorch.is_legacy_batchedtensor(tensor))
