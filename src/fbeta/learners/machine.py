"""A device, threads, and random bits that are the same on every machine."""

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Goes over tasks, as `map` does.
Map = Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]]

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


def cores() -> int:
    """How many cores may be kept busy: what OMP_NUM_THREADS says, as in joblib's processes; one in a thread of its."""
    import joblib
    from joblib.parallel import get_active_backend

    most, said = int(joblib.cpu_count()), os.environ.get("OMP_NUM_THREADS", "")
    if said.isdigit():
        return max(1, min(most, int(said)))
    nested = getattr(get_active_backend()[0], "nesting_level", 0)
    return 1 if nested else most


def shared_out(numbers: int, tasks: int, jobs: int | None = None) -> tuple[int, int]:
    """How many of some tasks on so many numbers run at once, and the threads of each; `jobs` cores, None for all.

    Tasks wait for nothing, threads inside a task wait for each other: tasks come first, threads get what is left, and
    only of large work.

    >>> shared_out(1000, tasks=5, jobs=16), shared_out(SMALL, tasks=5, jobs=16), shared_out(SMALL, tasks=1, jobs=4)
    ((5, 1), (5, 3), (1, 4))
    """
    free = cores() if jobs is None or jobs < 0 else jobs
    at_once = max(1, min(tasks, free))
    return at_once, max(1, free // at_once) if threads_for(numbers) is None else 1


@contextmanager
def workers(at_once: int, stop: Callable[[], Any] = lambda: None) -> Iterator[Map]:
    """A `map` that works on so many tasks at once, in threads: for work that releases Python's lock.

    `stop` is called where something goes wrong, Ctrl-C as well, to end what is being worked on.

    >>> with workers(2) as side_by_side:
    ...     list(side_by_side(abs, [-1, 2, -3]))
    [1, 2, 3]
    """
    if at_once == 1:
        yield map
        return
    with ThreadPoolExecutor(at_once) as pool:
        try:
            yield pool.map
        except BaseException:
            stop()
            raise


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
