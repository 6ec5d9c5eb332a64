"""Outputs that do not fit: every file and the output are whole, or a sentence says that they could not be written.

A limit on the size of files stands for the full disk, for which one needs no rights; the device /dev/full is one.
"""

import os
import resource

from attack import kills
from attack.commands import run

OLD = kills.OLD


def lacking():
    """Why it cannot be tried here."""
    return None if os.path.exists("/dev/full") else "needs /dev/full"


prepare, PATIENCE = kills.prepare, kills.PATIENCE


def attempt(made, luck, folder):
    """One command, with room for so many bytes."""
    name = luck.choice([*kills.COMMANDS, "predict to the output", "predict to a device"])
    kills.put(made["inputs"], folder)
    size = luck.choice([0, 1, 100, 4096, luck.randrange(200_000), luck.randrange(2000), 10**9])

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    unbuffered = luck.random() < 0.5
    if name == "predict to a device":
        ended = run("predict", "m.fbeta", "t.csv", folder=folder, stdout="/dev/full", unbuffered=unbuffered)
        assert ended.judged() == "refused", "nothing can be written there"
        return f"{name}: refused"
    if name == "predict to the output":
        ended = run("predict", "m.fbeta", "t.csv", folder=folder, before=limit, unbuffered=unbuffered)
        if (verdict := ended.judged()) == "done":
            assert ended.out == made["predict"], f"{len(ended.out)} bytes of {len(made['predict'])}"
        return f"{name}: {verdict}"
    words = kills.COMMANDS[name]
    (folder / words[-1]).write_bytes(OLD)
    ended = run(*words, folder=folder, before=limit, unbuffered=unbuffered)
    verdict, there = ended.judged(), (folder / words[-1]).read_bytes()
    if verdict == "done":
        assert kills.outcome(name, folder, ended) == made[name], "it says that it is done"
    elif name != "compare":  # its page may be whole where its JSON is not
        assert there == OLD, "neither the old file nor the new one"
    left = {*os.listdir(folder)} - {*made["inputs"], words[-1], "kept", "out", "err"}
    assert not left, f"{left} are left"
    return f"{name}: {verdict}"
