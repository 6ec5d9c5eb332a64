"""The `fbeta` command in a process of its own, and the rule that all its ends are judged by."""

import atexit
import io
import os
import pickle
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attack.processes import Stopwatch

#: Seconds after which a command hangs, and a try of several commands that have this limit.
LIMIT, PATIENCE = 30, 1800
#: It is done; the input was bad, and one sentence says so; it was stopped.
GOOD = {0, 2, 130}


@dataclass(frozen=True)
class Ending:
    """How a command ended: its exit code (below zero: the signal), and what it printed."""

    words: tuple[str, ...]
    code: int
    out: bytes
    err: str

    def judged(self) -> str:
        """The exit code in words; AssertionError where it is none of the three, or the user is told nonsense."""
        said = " ".join(self.err.split())[-200:]
        what = f"{' '.join(self.words)!r:.80} ended with {self.code}: {said}"
        assert self.code in GOOD, what
        assert "Traceback" not in self.err, what
        assert "Warning:" not in self.err, what
        assert "\x1b" not in self.err, what
        if self.code == 2:
            last = self.err.strip().rpartition("\n")[2]
            assert last.startswith("fbeta: "), what
            assert len(last) < 2000, what
        return {0: "done", 2: "refused", 130: "stopped"}[self.code]


def run(
    *words: str,
    folder: Path,
    stdin: Path | str = os.devnull,
    stdout: Path | str = "out",
    before: Callable[[], None] = lambda: None,
    kill: tuple[float, int] | None = None,
    unbuffered: bool = False,
) -> Ending:
    """Run a command in `folder`, where what it prints is kept as `out` and `err`.

    `before` is called in its process. `kill` sends a signal after so many seconds. The process is forked, so this one
    must have no threads (see `aside`), and should have imported what the command needs.
    """
    hung = False
    heard, errors = os.pipe()  # a file would not be told of a full disk
    pid = os.fork()
    if not pid:
        _be(words, folder, stdin, stdout, errors, before, unbuffered)
    os.close(errors)
    os.set_blocking(heard, False)
    began, watch, err = time.monotonic(), Stopwatch(pid), b""
    while not (ended := os.waitpid(pid, os.WNOHANG))[0]:
        if kill is not None and time.monotonic() - began > kill[0]:
            os.kill(pid, kill[1])
            kill = None
        if time.monotonic() - began > LIMIT and watch.read() > LIMIT:
            hung = True
            os.kill(pid, signal.SIGKILL)
        time.sleep(0.002)
        err += _read(heard)
    err += _read(heard)
    os.close(heard)
    (folder / "err").write_bytes(err)
    assert not hung, f"{' '.join(words)!r} took more than {LIMIT} s"
    out = folder / stdout
    printed = out.read_bytes() if out.is_file() else b""
    return Ending(words, os.waitstatus_to_exitcode(ended[1]), printed, err.decode(errors="replace"))


def _read(pipe):
    try:
        return os.read(pipe, 1 << 16)
    except BlockingIOError:
        return b""


def _be(words, folder, stdin, stdout, errors, before, unbuffered):
    """Be that process, as Python would begin and end it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    code = 1
    try:
        os.chdir(folder)
        modes = os.O_RDONLY, os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        for number, (place, mode) in enumerate(((stdin, modes[0]), (stdout, modes[1]))):
            held = os.open(place, mode, 0o666)
            os.dup2(held, number)
            os.close(held)
        os.dup2(errors, 2)
        raw = open(1, "wb", buffering=0, closefd=False)  # noqa: SIM115
        sys.stdout = io.TextIOWrapper(raw if unbuffered else io.BufferedWriter(raw), "utf-8", write_through=unbuffered)
        sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False, buffering=1)  # noqa: SIM115
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
        sys.__stdout__, sys.__stderr__ = sys.stdout, sys.stderr
        warnings.resetwarnings()
        warnings.simplefilter("ignore", DeprecationWarning)  # as Python does for its users
        sys.argv = ["fbeta", *words]
        atexit._clear()  # what the parent has to tidy up is its own
        before()
        from fbeta.cli import main

        try:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            main()
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
        except BaseException:
            traceback.print_exc()
        atexit._run_exitfuncs()
        try:
            sys.stdout.flush()
        except OSError:
            code = 120  # what Python ends with when the last of the output cannot be written
    except BaseException:
        traceback.print_exc()
        code = 99
    finally:
        os._exit(code)


def aside(call: Callable[[], Any]) -> Any:
    """What a function returns that starts threads, called in a forked process: who has them must not fork."""
    here, there = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            with open(there, "wb") as pipe:
                pipe.write(pickle.dumps(call()))
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    os.close(there)
    with open(here, "rb") as pipe:
        found = pipe.read()
    assert os.waitpid(pid, 0)[1] == 0, "see above"
    return pickle.loads(found)


def needs():
    """Import what commands need, once for all processes that are forked later."""
    import filelock  # noqa: F401
    import joblib  # noqa: F401
    import lightgbm  # noqa: F401
    import pooch  # noqa: F401
    import requests  # noqa: F401
    import scipy.stats  # noqa: F401
    import xgboost  # noqa: F401

    import fbeta.artifact.predicting
    import fbeta.boosting
    import fbeta.cli
    import fbeta.comparison.run
    import fbeta.report.comparison_page
    import fbeta.report.comparison_printout
    import fbeta.tables.scored_rows  # noqa: F401
