"""Other processes that take parts off the same list."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

#: What a member of the crew does; it calls its argument now and then, which ends it if the leader is gone.
Job = Callable[[Callable[[], None]], None]


def cores() -> int:
    """How many processes can run at once here.

    >>> cores() >= 1
    True
    """
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def crew(count: int, job: Job) -> Iterator[None]:
    """Let `count` further processes do a job, until it is done or this block ends.

    They are started afresh, not forked: threads do not survive a fork.

    >>> with crew(0, print):
    ...     pass
    """
    start = multiprocessing.get_context("spawn").Process
    members = [start(target=_serve, args=(job, os.getpid()), daemon=True) for _ in range(count)]
    with _deaf():
        for member in members:
            member.start()
    try:
        yield
    finally:
        for member in members:
            member.terminate()
        for member in members:
            member.join()


def reap() -> None:
    """Let members go that have ended: until then it looks as if they still worked on what they claimed.

    >>> reap()
    """
    multiprocessing.active_children()


@contextmanager
def _deaf() -> Iterator[None]:
    """Processes that start here do not hear Ctrl-C, which reaches all of a terminal: the leader answers it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _serve(job: Job, leader: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    import torch

    torch.set_num_threads(1)

    def alive() -> None:
        if os.getppid() != leader:  # killed: whoever goes on from here should find the parts free
            raise SystemExit

    # What is wrong with the folder or the disk the leader meets as well, and says it once.
    with suppress(OSError, ValueError, RuntimeError):
        job(alive)
