"""Eight processes that predict with one model file, and four that compare into one folder and write that file anew.

What is predicted is always that of one of the two models whose file it is in turn, every part of the folder is whole,
all that compare find the same numbers, and no process grows.
"""

import os
import random
import shutil
import tempfile
from pathlib import Path

import numpy as np

PREDICTING, COMPARING = 8, 4
WORKERS = PREDICTING + COMPARING
#: Seconds without a word: twelve processes share the machine.
PATIENCE = 300
#: Tries of a process until its memory is that of one that goes on for ever, and MiB that it may grow from there.
WARM, MORE = 10, 64
ASKED = {"models": ["linear"], "losses": ["bce", "tangent"], "seeds": 2, "folds": 2}

_tries = _settled = 0


def prepare():
    """A folder for all of them: a table, the bytes of both models, and what each predicts."""
    from fbeta.artifact import load, predict
    from made_up_model import content, frame

    place = Path(tempfile.mkdtemp(prefix="fbeta-attack-load-"))
    (place / "memory").mkdir()
    frame(500).write_csv(place / "t.csv")
    made = {"place": place, "models": [content("linear", "bce"), content("xgboost", "bce")], "predicted": []}
    for data in made["models"]:
        (place / "m.fbeta").write_bytes(data)
        predict(load(place / "m.fbeta"), place / "t.csv", place / "p.csv")
        made["predicted"].append((place / "p.csv").read_bytes())
    return made


def attempt(made, luck, folder):
    """One prediction, or one comparison that all four do, and another model in the file."""
    worker, turn = int(folder.name) % WORKERS, int(folder.name) // WORKERS
    found = predicted(made, folder) if worker < PREDICTING else compared(made, turn, luck)
    check_memory(made["place"] / "memory", f"{found}-{worker}")
    return found


def predicted(made, folder):
    from fbeta.artifact import load, predict

    predict(load(made["place"] / "m.fbeta"), made["place"] / "t.csv", folder / "p.csv")
    assert (folder / "p.csv").read_bytes() in made["predicted"], "neither of the two models says so"
    return "predicted"


def compared(made, turn, luck):
    from attack.comparisons import timeless
    from fbeta.comparison import compare
    from fbeta.writing import write

    write(made["place"] / "m.fbeta", luck.choice(made["models"]))
    said = []
    found = compare(
        made["place"] / "t.csv", "fraud", **ASKED, seed=turn, folder=made["place"] / "kept", say=said.append
    )
    assert not [sentence for sentence in said if "damaged" in sentence], said
    numbers = repr(timeless(found.to_json())).encode()
    try:
        os.link(_written(made["place"], numbers), made["place"] / f"numbers-{turn}")
    except FileExistsError:
        assert (made["place"] / f"numbers-{turn}").read_bytes() == numbers, f"other numbers in turn {turn}"
    return "compared"


def _written(place, data):
    name = place / f".{os.getpid()}-{random.random()}"
    name.write_bytes(data)
    return name


def check_memory(folder, name):
    """Note how much this process has, which must not grow once it is warm."""
    global _tries, _settled
    _tries += 1
    mib = int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") >> 20
    _settled = mib if _tries <= WARM else _settled
    with open(folder / name, "a") as out:
        out.write(f"{mib}\n")
    assert mib <= _settled + MORE, f"it grew from {_settled} to {mib} MiB"


def said(made):
    """What is left in the folder must be whole; and how memory went."""
    from fbeta.sealed import unseal

    parts = sorted((made["place"] / "kept").glob("*.scores"))
    for part in parts:
        unseal(part.read_bytes())
    turns = len([*made["place"].glob("numbers-*")])
    held = {}
    for path in (made["place"] / "memory").iterdir():
        numbers = np.loadtxt(path, ndmin=1)
        if len(numbers) > WARM:
            held.setdefault(path.name.partition("-")[0], []).append((numbers[WARM], numbers[WARM:].max(), numbers[-1]))
    memory = ", ".join(
        f"{what} with {min(x[0] for x in found):.0f} to {max(x[0] for x in found):.0f} MiB when warm, at most "
        f"{max(x[1] for x in found):.0f}, at the end {max(x[2] for x in found):.0f}"
        for what, found in sorted(held.items())
    )
    shutil.rmtree(made["place"])
    return f"{turns} turns, {len(parts)} parts, all whole; {memory or 'too short to see memory'}"
