"""Where to train."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

#: Numbers in the arrays of a step below which a second thread gains little; on a busy machine, where threads wait for
#: each other, it costs a lot.
SMALL = 1 << 20


def device_of(name: str) -> torch.device:
    """Read a device's name; auto is the GPU if there is one.

    >>> device_of("cpu")
    device(type='cpu')
    """
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if name not in ("cpu", "cuda"):
        raise ValueError(f"device must be auto, cuda or cpu; got {name!r}.")
    if name == "cuda" and not torch.cuda.is_available():
        raise ValueError("there is no GPU that PyTorch can use here; take --device cpu, or leave it out.")
    return torch.device(name)


def threads_for(numbers: int) -> int | None:
    """How many threads a step on so many numbers deserves: one, or None for all.

    >>> threads_for(1000), threads_for(10_000_000)
    (1, None)
    """
    return 1 if numbers < SMALL else None


@contextmanager
def threads(count: int | None) -> Iterator[None]:
    """Let PyTorch have so many threads for a while.

    >>> with threads(1):
    ...     torch.get_num_threads()
    1
    """
    before = torch.get_num_threads()
    torch.set_num_threads(count or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)
