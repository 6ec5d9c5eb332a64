"""A device, threads, and random bits that are the same on every machine."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Numbers in the arrays of a step below which a second thread gains little; on a busy machine, where threads wait for
#: each other, it costs a lot.
SMALL = 1 << 20


def device_of(name: str) -> Any:
    """Read the name of a PyTorch device; "auto" is the GPU if there is one."""
    import torch

    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if name not in ("cpu", "cuda"):
        raise ValueError(f"device must be auto, cuda or cpu; got {name!r}.")
    if name == "cuda" and not torch.cuda.is_available():
        raise ValueError("there is no GPU that PyTorch can use here; take the device cpu, or auto.")
    return torch.device(name)


def threads_for(numbers: int) -> int | None:
    """How many threads a step on so many numbers deserves: one, or None for all."""
    return 1 if numbers < SMALL else None


@contextmanager
def torch_threads(count: int | None) -> Iterator[None]:
    """Let PyTorch have so many threads for a while; None changes nothing."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(count or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def bits(count: int, *key: int) -> NDArray[np.uint64]:
    """Random 64-bit words that depend on the key alone, not on how NumPy turns them into numbers."""
    return np.random.Philox(np.random.SeedSequence(key)).random_raw(count)


def shuffled(count: int, *key: int) -> NDArray[np.int64]:
    """The numbers 0 to `count` − 1 in a random order that depends on the key alone."""
    return np.argsort(bits(count, *key), kind="stable")
