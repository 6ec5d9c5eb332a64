"""How tests wait and kill: for a condition and at a counted moment, so that a busy machine changes nothing."""

import os
import signal
import sys
import time

#: Seconds after which a test hangs, on the busiest of machines.
HANG = 900.0
#: What Python tells of work on files.
ON_FILES = {"open", "os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.truncate", "os.utime", "shutil.rmtree"}


def until(true):
    """Wait until `true()` is, and give what it is."""
    hung = time.monotonic() + HANG
    while not (found := true()):
        assert time.monotonic() < hung, "it hangs"
        time.sleep(0.002)
    return found


def die_at(step):
    """Kill this process just before it does its work on files number `step`, counted from 1 and from now."""

    def count(event, arguments):
        nonlocal step
        if event in ON_FILES:
            step -= 1
            if not step:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(count)
