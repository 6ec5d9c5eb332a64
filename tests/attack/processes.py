"""Tries in processes of their own, which may die, hang, or take all memory; every try is known by its number."""

import contextlib
import itertools
import os
import resource
import select
import signal
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable

#: Seconds without a word after which a process is held to hang.
PATIENCE = 60
#: Bytes that a process may ask for; who asks for more gets a MemoryError, not the machine.
MEMORY = 16 << 30


class Stopwatch:
    """The time of a process, without what it waited for processors that were busy with others (where Linux says it)."""

    def __init__(self, pid: int) -> None:
        self.pid, self.delays = pid, {}
        self.start()

    def start(self) -> None:
        """Begin anew."""
        self.seconds = 0.0
        self.began, self.before = time.monotonic(), self._waited()

    def read(self) -> float:
        """Seconds since the start."""
        self.seconds = max(self.seconds, time.monotonic() - self.began - (self._waited() - self.before))
        return self.seconds

    def _waited(self) -> float:
        """Seconds in a queue, over all threads that it has or had."""
        with contextlib.suppress(OSError):
            for task in os.listdir(folder := f"/proc/{self.pid}/task"):
                with contextlib.suppress(OSError), open(f"{folder}/{task}/schedstat") as said:
                    self.delays[task] = int(said.read().split()[1])
        return sum(self.delays.values()) / 1e9


def attack(
    attempt: Callable[[int], str],
    count: int | None = None,
    seconds: float | None = None,
    workers: int = 2,
    *,
    patience: float = PATIENCE,
    tell: Callable[[int, int], None] = lambda tries, faults: None,
) -> dict:
    """Try the numbers 0, 1, …, so many or for so long: how often each verdict came, and what went wrong.

    `attempt` takes a number and returns a verdict; whatever it raises is a fault, as are a signal and a hang. `largest`
    is the most memory that a process had, in MiB. `tell` hears now and then how many tries and faults there are.
    """
    until = None if seconds is None else time.monotonic() + seconds
    going = {}  # the end of a pipe that is read: process, number in work, time since it was last heard of
    verdicts, faults, largest = Counter(), [], 0

    def start(numbers):
        pipe, pid = _fork(attempt, numbers, until)
        going[pipe] = [pid, None, Stopwatch(pid), b""]

    for worker in range(workers):
        start(itertools.count(worker, workers) if count is None else range(worker, count, workers))
    while going:
        ready, _, _ = select.select([*going], [], [], 1.0)
        tell(sum(verdicts.values()), len(faults))
        for pipe in [*going]:
            pid, number, silent, rest = going[pipe]
            if pipe not in ready:
                if silent.read() > patience:
                    os.kill(pid, signal.SIGKILL)
                continue
            data = os.read(pipe, 1 << 16)
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                word, _, verdict = line.decode().partition(" ")
                number = None if verdict else int(word)
                if verdict:
                    verdicts[verdict.partition("!")[0]] += 1
                    faults += [f"{word}: {verdict}"] * ("!" in verdict)
            silent.start()
            going[pipe] = [pid, number, silent, rest]
            if not data:
                del going[pipe]
                os.close(pipe)
                _, status, used = os.wait4(pid, 0)
                largest = max(largest, used.ru_maxrss >> 10)
                if number is not None:
                    how = signal.Signals(status).name if 0 < status < 65 else f"exit status {status}"
                    how = f"hung for {patience} s" if how == "SIGKILL" else how
                    verdicts[how] += 1
                    faults.append(f"{number}: {how}")
                    left = itertools.count(number + workers, workers) if count is None else None
                    start(range(number + workers, count, workers) if left is None else left)
    return {"verdicts": dict(verdicts), "faults": faults, "largest": largest}


def _fork(attempt, numbers, until):
    pipe, out = os.pipe()
    pid = os.fork()
    if pid:
        os.close(out)
        return pipe, pid
    try:
        for stream in (1, 2):  # a library may talk to the terminal before it dies
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, resource.getrlimit(resource.RLIMIT_AS)[1]))
        warnings.simplefilter("error")
        for number in itertools.takewhile(lambda _: until is None or time.monotonic() < until, numbers):
            os.write(out, f"{number}\n".encode())
            try:
                verdict = attempt(number)
            except BaseException as error:
                place = traceback.extract_tb(error.__traceback__)[-1]
                said = " ".join(str(error).split())[:300]
                verdict = f"fault! {type(error).__name__} at {place.filename}:{place.lineno}: {said}"
            os.write(out, f"{number} {verdict}\n".encode())
    finally:
        os._exit(0)
