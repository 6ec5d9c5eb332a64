"""Run attacks, one after the other: `python -m attack tables kills --minutes 5 --seed 7`.

All that goes wrong is kept in a folder of its own: what the try wrote, what came of it, and the line that repeats it.
"""

import argparse
import functools
import importlib
import json
import os
import random
import shutil
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.table import Table

from attack import commands, processes
from fbeta.report.console import bar

NAMES = (
    "model_files", "tables", "comparisons", "plain_data", "kills", "full_disk", "downloads", "kernels", "properties",
    "load",
)  # fmt: skip


def attempt(name, made, seed, scratch, number):
    """One try, in an empty folder that stays where the try does not end well."""
    module = importlib.import_module(f"attack.{name}")
    folder = scratch / str(number)
    folder.mkdir()
    verdict = module.attempt(made, random.Random(f"{seed}/{number}"), folder)
    shutil.rmtree(folder, ignore_errors=True)
    return verdict


def run(name, seed, *, count=None, seconds=None, findings, tell=lambda tries, faults: None):
    """An attack with so many tries, or for so long: verdicts, faults, and where the faults are kept."""
    module = importlib.import_module(f"attack.{name}")
    if why := getattr(module, "lacking", lambda: None)():
        return {"verdicts": {}, "faults": [], "largest": 0, "skipped": why}
    with tempfile.TemporaryDirectory(prefix="fbeta-attack-", ignore_cleanup_errors=True) as place:
        made = commands.aside(module.prepare)
        one = functools.partial(attempt, name, made, seed, Path(place))
        workers, patience = getattr(module, "WORKERS", 2), getattr(module, "PATIENCE", processes.PATIENCE)
        found = processes.attack(one, count, seconds, workers, patience=patience, tell=tell)
        found["said"] = getattr(module, "said", lambda made: "")(made)
        for fault in found["faults"]:
            keep(name, seed, fault, Path(place), findings)
    return found


def keep(name, seed, fault, place, findings):
    """A finding: the folder of its try, what came of it, and the line that repeats it."""
    number = fault.partition(":")[0]
    folder = findings / f"{name}-{seed}-{number}"
    shutil.rmtree(folder, ignore_errors=True)
    if (place / number).is_dir():
        shutil.copytree(place / number, folder, symlinks=True, ignore_dangling_symlinks=True)
    folder.mkdir(parents=True, exist_ok=True)
    again = f"PYTHONPATH=tests {os.path.relpath(sys.executable)} -m attack {name} --seed {seed} --number {number}"
    (folder / "finding.txt").write_text(f"{fault}\n\nAgain, from the root of the repository:\n{again}\n")


def again(name, seed, number):
    """One try once more, here and with its traceback; its folder stays."""
    place = Path(tempfile.mkdtemp(prefix="fbeta-attack-"))
    print(f"in {place / str(number)}")
    print(attempt(name, commands.aside(importlib.import_module(f"attack.{name}").prepare), seed, place, number))


def main():
    """Run what is asked for, and end with 1 if anything was found."""
    options = argparse.ArgumentParser(prog="python -m attack", description=__doc__)
    options.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)}; all if none")
    options.add_argument("--minutes", type=float, default=2.0, help="for all attacks together; a try that began ends")
    options.add_argument("--count", type=int, help="tries of each attack, instead of minutes")
    options.add_argument(
        "--seed", default=str(random.SystemRandom().randrange(10**6)), help="a random one if not given"
    )
    options.add_argument("--number", type=int, help="one try once more, as a finding says")
    options.add_argument("--findings", type=Path, default=Path("build", "attack"), metavar="FOLDER")
    options.add_argument("--json", action="store_true", help="print data")
    given = options.parse_args()
    names = given.names or NAMES
    if unknown := {*names} - {*NAMES}:
        options.error(f"there is no attack {', '.join(sorted(unknown))}; there are {', '.join(NAMES)}")
    console = Console(stderr=True)
    console.print(f"seed {given.seed}")
    commands.needs()
    if given.number is not None:
        again(names[0], given.seed, given.number)
        return
    found = {}
    seconds = None if given.count is not None else 60 * given.minutes / len(names)
    shown = bar("tries", console)
    shown.live.auto_refresh = False  # a thread, and who forks has none
    shown.disable = not console.is_terminal
    with shown:
        for name in names:
            task = shown.add_task(name, total=given.count)
            how = {"count": given.count, "seconds": seconds, "findings": given.findings}

            def tell(tries, faults, name=name, task=task):
                shown.update(task, completed=tries, description=f"{name}: {faults} found" if faults else name)
                shown.refresh()

            found[name] = run(name, given.seed, **how, tell=tell)
            tell(sum(found[name]["verdicts"].values()), len(found[name]["faults"]))
            if shown.disable:  # whoever reads a log sees how far it is
                console.print(
                    f"{name}: {sum(found[name]['verdicts'].values())} tries, {len(found[name]['faults'])} found"
                )
    if given.json:
        print(json.dumps({"seed": given.seed, **found}, indent=1))
    else:
        console.print(summary(found), soft_wrap=True)
        for name, one in found.items():
            console.print(*(f"{name} {fault}" for fault in one["faults"][:5]), sep="\n", end="", markup=False)
    faults = sum(len(one["faults"]) for one in found.values())
    console.print(f"{faults} findings in {given.findings}" if faults else "nothing found")
    sys.exit(1 if faults else 0)


def summary(found):
    """A table: attack, tries, what became of them."""
    table = Table("attack", "tries", "found", "MiB", "what became of them", box=None, pad_edge=False)
    for name, one in found.items():
        verdicts = {k: n for k, n in one["verdicts"].items() if k != "fault"}
        ends = ", ".join(f"{n} {verdict}" for verdict, n in sorted(verdicts.items(), key=lambda x: -x[1]))
        tries, faults = str(sum(one["verdicts"].values())), str(len(one["faults"]))
        said = one.get("skipped") or "; ".join(filter(None, [ends, one["said"]]))
        table.add_row(name, tries, faults, str(one["largest"]), said)
    return table


if __name__ == "__main__":
    os.environ["OMP_NUM_THREADS"] = "1"
    main()
