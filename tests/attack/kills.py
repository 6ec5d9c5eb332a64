"""`predict -o`, `fit -o` and `compare` stopped at any moment: what was there stays, or the new is there whole.

Half of them die just before a piece of work on files, the others at a random time, by a signal that may be answered.
After a kill the same command is run to its end, and finds the numbers of one that nobody killed.
"""

import os
import signal

from attack.commands import PATIENCE, aside, run  # noqa: F401
from attack.comparisons import timeless
from waiting import die_at

OLD = b"old\n"
FIT = ("--target", "fraud", "--models", "linear", "--losses", "bce", "--folds", "2")
COMMANDS = {
    "predict": ("predict", "m.fbeta", "t.csv", "-o", "new.csv"),
    "predict to Parquet": ("predict", "m.fbeta", "t.csv", "-o", "new.parquet"),
    "fit": ("fit", "t.csv", *FIT, "-o", "new.fbeta"),
    "compare": (
        "compare",
        "t.csv",
        *FIT,
        "--seeds",
        "2",
        "--jobs",
        "1",
        "--json",
        "--results",
        "kept",
        "--html",
        "new.html",
    ),
}
#: Seconds that a command takes at most, on a machine that has nothing else to do, and its pieces of work on files.
MOMENTS, STEPS = 1.5, 300


def prepare():
    """A table, a model, and what each command writes if nobody kills it."""
    import tempfile
    from pathlib import Path

    made = {"inputs": aside(inputs)}
    for name, words in COMMANDS.items():
        with tempfile.TemporaryDirectory() as place:
            folder = put(made["inputs"], Path(place))
            ended = run(*words, folder=folder)
            assert ended.judged() == "done", ended
            made[name] = outcome(name, folder, ended)
    return made


def inputs():
    from made_up_model import content, frame

    return {"m.fbeta": content("linear", "bce"), "t.csv": frame(2000).write_csv().encode()}


def put(files, folder):
    for name, data in files.items():
        (folder / name).write_bytes(data)
    return folder


def outcome(name, folder, ended):
    """What can be compared of a command's work: bytes, decisions of the model, or numbers."""
    if name.startswith("predict"):
        return (folder / COMMANDS[name][-1]).read_bytes()
    if name == "compare":
        return timeless(ended.out)
    said = run("predict", "new.fbeta", "t.csv", folder=folder)
    assert said.judged() == "done", said
    return said.out


def attempt(made, luck, folder):
    """One kill."""
    name = luck.choice([*COMMANDS])
    words, new = COMMANDS[name], folder / COMMANDS[name][-1]
    put(made["inputs"], folder)
    before = luck.random() < 0.5
    if before:
        new.write_bytes(OLD)
    if luck.random() < 0.5:
        step = luck.randrange(1, STEPS)
        ended, how = run(*words, folder=folder, before=lambda: die_at(step)), "at a step"
    else:
        number = luck.choice([signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
        ended, how = run(*words, folder=folder, kill=(luck.uniform(0, MOMENTS), number)), signal.Signals(number).name
    sent = signal.SIGKILL if how == "at a step" else signal.Signals[how]
    verdict = "killed" if ended.code == -sent else ended.judged()  # one that comes early finds nobody to answer it
    there = new.read_bytes() if new.exists() else None
    assert there is None or there == OLD or len(there) > 100, "half a file"
    if verdict == "done":
        assert there not in (None, OLD), "it says that it is done"
        assert outcome(name, folder, ended) == made[name], "other numbers"
    elif name.startswith("predict"):
        assert there in (OLD if before else None, made[name]), "neither the old file nor the new one"
    else:
        assert (there is None) <= (not before), "the old file is gone"
    left = {*os.listdir(folder)} - {*made["inputs"], new.name, "kept", "out", "err"}
    assert not left, f"{left} are left"
    if verdict != "done":
        again = run(*words, folder=folder)
        assert again.judged() == "done"
        assert "damaged" not in again.err, again.err
        assert outcome(name, folder, again) == made[name], "other numbers after a kill"
    return f"{name}: {verdict}"
