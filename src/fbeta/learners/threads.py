"""How many threads a piece of work deserves."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

#: Numbers in the arrays of a step below which a second thread gains little; on a busy machine, where threads wait for
#: each other, it costs a lot.
SMALL = 1 << 20


def threads_for(numbers: int) -> int | None:
    """How many threads a step on so many numbers deserves: one, or None for all.

    >>> threads_for(1000), threads_for(10_000_000)
    (1, None)
    """
    return 1 if numbers < SMALL else None


@contextmanager
def torch_threads(count: int | None) -> Iterator[None]:
    """Let PyTorch have so many threads for a while; None changes nothing.

    >>> import torch
    >>> with torch_threads(1):
    ...     torch.get_num_threads()
    1
    """
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(count or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)
