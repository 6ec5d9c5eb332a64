"""The attacks of `make attack`, each with a few tries: nothing dies, hangs, lies or is lost; and the kit finds."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from attack.commands import Ending
from attack.processes import attack

#: Tries of each attack, and verdicts that must be among those that come.
TRIES = {
    "model_files": (
        2000,
        [f"{n}: {v}" for n in ("xgboost", "lightgbm", "linear", "mlp", "forest") for v in ("accepted", "refused")],
    ),
    "tables": (150, ["text, predict: done", "text, predict: refused", "text, tune: done", "npz, tune: refused"]),
    "comparisons": (40, ["its JSON: done", "its JSON: refused", "its parts, bytes: done"]),
    "plain_data": (
        1000,
        [f"{n}: {v}" for n in ("comparison", "decision", "cut", "cuts", "sketch") for v in ("used", "refused")],
    ),
    "kills": (40, ["predict: killed", "compare: killed"]),
    "full_disk": (40, ["predict: refused", "predict to the output: refused", "predict to a device: refused"]),
    "downloads": (40, ["refused"]),
    "kernels": (500, ["float32: the same", "bfloat16: the same", "refused"]),
    "properties": (2, []),
    "load": (12 * 12, ["predicted", "compared"]),
}


@pytest.mark.slow
@pytest.mark.xdist_group("processes")
@pytest.mark.parametrize("name", TRIES)
def test_nothing_is_found(name, tmp_path):
    count, wanted = TRIES[name]
    path = os.pathsep.join([str(Path(__file__).parent), *filter(None, sys.path)])
    command = [sys.executable, "-m", "attack", name, "--seed", "1", "--count", str(count), "--json"]
    done = subprocess.run(
        [*command, "--findings", str(tmp_path)], capture_output=True, text=True, env=os.environ | {"PYTHONPATH": path}
    )
    found = json.loads(done.stdout)[name]
    if why := found.get("skipped"):
        pytest.skip(why)
    assert found["faults"] == []
    assert sum(found["verdicts"].values()) == count
    assert {*wanted} <= {*found["verdicts"]}
    assert found["largest"] < 2000  # MiB


def broken(number):
    """Tries that go wrong, in every way that there is."""
    if number == 1:
        os.kill(os.getpid(), signal.SIGTERM)
    if number == 2:
        time.sleep(60)
    if number == 3:
        raise KeyError("x")
    return "fine"


def test_signals_hangs_and_errors_are_found():
    found = attack(broken, count=6, workers=2, patience=2)
    assert found["verdicts"] == {"fine": 3, "SIGTERM": 1, "hung for 2 s": 1, "fault": 1}
    assert sorted(fault.partition(":")[0] for fault in found["faults"]) == ["1", "2", "3"]


@pytest.mark.parametrize(
    ("code", "err"),
    [
        (1, ""),
        (-11, ""),
        (120, ""),
        (2, "Traceback (most recent call last):\nfbeta: x\n"),
        (2, "no sentence\n"),
        (0, "x.py:3: RuntimeWarning: overflow\n"),
        (2, "fbeta: \x1b[31mred\n"),
    ],
)
def test_ends_that_are_no_good(code, err):
    with pytest.raises(AssertionError, match="ended with"):
        Ending(("predict",), code, b"", err).judged()


def test_ends_that_are_good():
    said = [Ending((), code, b"", err).judged() for code, err in ((0, "a note\n"), (2, "fbeta: x.\n"), (130, "\n"))]
    assert said == ["done", "refused", "stopped"]
