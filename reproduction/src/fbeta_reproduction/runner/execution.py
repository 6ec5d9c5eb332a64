"""Training the runs of a plan: stacks of as many as fit, results after every epoch, stopped and resumed at will."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from fbeta.writing import write
from fbeta_reproduction.engine.loop import resume, train
from fbeta_reproduction.images.binary_images import BinaryImages
from fbeta_reproduction.protocol import PROTOCOL, Run
from fbeta_reproduction.records.checkpoint import remove
from fbeta_reproduction.records.ledger import Ledger
from fbeta_reproduction.results import measurement
from fbeta_reproduction.runner.capacity import fit_at_once
from fbeta_reproduction.runner.run_stack import RunStack, layout_of

#: Runs trained together on a CPU: more are not faster there, and fewer stop, resume and share work more finely.
ON_A_CPU = 10


def stacks(runs: Iterable[Run], at_once: int) -> Iterator[list[Run]]:
    """Cut a plan, in its order, into stacks of runs that can be trained together.

    >>> from fbeta_reproduction.protocol import faithful
    >>> [len(part) for part in stacks(faithful("digits"), at_once=20)]
    [20, 20, 10]
    """
    alike: dict[tuple[Any, ...], list[Run]] = {}
    for run in runs:
        alike.setdefault(_kind(run), []).append(run)
    for same in alike.values():
        yield from (same[i : i + at_once] for i in range(0, len(same), at_once))


def _kind(run: Run) -> tuple[Any, ...]:
    return run.dataset, run.stem, run.precision, run.epochs


def execute(
    plan: Sequence[Run],
    results: Path,
    device: torch.device,
    *,
    at_once: int = 50,
    limit: float | None = None,
    say: Callable[[str], None] = print,
    tick: Callable[[int], None] = lambda epochs: None,
) -> bool:
    """Train what is left of a plan and write every epoch into the results folder; True if all of it is done.

    Stopped at any moment it goes on from its last checkpoint, or from the start of a stack. Processes and machines
    that share a folder divide the stacks among them. `limit` is in seconds; `tick` is told of epochs, those that are
    there already included.
    """
    deadline = None if limit is None else time.monotonic() + limit
    size = at_once if device.type == "cuda" else min(at_once, ON_A_CPU)
    images: dict[str, BinaryImages] = {}
    finished: set[str] = set()
    done: bool | None
    with Ledger(results, PROTOCOL) as ledger:
        while left := _left(ledger, plan, finished, tick):
            fits = fit_at_once(size, layout_of(left[0]), device)
            if fits < min(size, len(left)):
                say(f"The GPU's free memory is enough for {_at_once(fits)}, not {min(size, len(left))}.")
                size = fits
            runs = _claim(ledger, left, size)
            if not runs:
                runs_are = "run is" if len(left) == 1 else f"{len(left)} runs are"
                say(f"The last {runs_are} being trained by others; if they stop, run the same command again to go on.")
                return False
            if not images and device.type == "cuda":
                say("The GPU's kernels are built first; that takes a minute or so, once on a machine.")
            if runs[0].dataset not in images:
                images = {runs[0].dataset: BinaryImages.load(runs[0].dataset)}
            try:
                done = _train_stack(runs, images[runs[0].dataset], ledger, device, deadline, tick)
            except torch.cuda.OutOfMemoryError:
                done = None  # and out of this block, where the error would keep the stack's memory
            if done is None:
                size = _fewer(runs, ledger, say)
            elif done:
                finished |= {run.id for run in runs}
            ledger.release([run.id for run in runs])
            late = deadline is not None and time.monotonic() > deadline
            if done is False or (late and len(finished) < len(plan)):
                say("The time limit is reached; run the same command again to go on.")
                return False
    return True


def _left(ledger: Ledger, plan: Sequence[Run], finished: set[str], tick: Callable[[int], None]) -> list[Run]:
    """The runs that nobody has finished yet."""
    left = []
    for run in plan:
        if run.id in finished:
            continue
        if ledger.done(run.id, run.epochs):
            finished.add(run.id)
            tick(run.epochs)
        else:
            left.append(run)
    return left


def _claim(ledger: Ledger, left: Sequence[Run], size: int) -> list[Run]:
    """Claim a stack that was stopped half way, or else the next one; nothing if others train all that is left."""
    for runs in _begun(ledger, left):
        if _hold(ledger, runs) == runs:
            return runs
        ledger.release([run.id for run in runs])
    return next(filter(None, (_hold(ledger, runs) for runs in stacks(left, size))), [])


def _hold(ledger: Ledger, runs: list[Run]) -> list[Run]:
    """Claim runs; the result is those that nobody else trains, nor has finished since we looked."""
    held = set(ledger.claim([run.id for run in runs]))
    mine = [run for run in runs if run.id in held and not ledger.done(run.id, run.epochs)]
    ledger.release(held - {run.id for run in mine})
    return mine


def _fewer(runs: Sequence[Run], ledger: Ledger, say: Callable[[str], None]) -> int:
    """Say that memory was not enough for a stack, and how many to try next."""
    if len(runs) == 1:
        raise ValueError("the GPU's memory is not enough for one run; free some, or use --device cpu.")
    torch.cuda.empty_cache()
    _forget(ledger, runs)
    say(f"The GPU's memory was not enough; going on with {_at_once(len(runs) // 2)}.")
    return len(runs) // 2


def _at_once(runs: int) -> str:
    return f"{runs} run{'s'[: runs > 1]} at once"


def _notes(ledger: Ledger) -> Iterator[tuple[Path, list[str]]]:
    """The checkpoints' notes: which runs each of them holds."""
    for note in sorted(ledger.checkpoint_path("any").parent.glob("stack-*.json")):
        with suppress(FileNotFoundError):  # whoever trains it has just finished
            yield note, json.loads(note.read_bytes())


def _begun(ledger: Ledger, left: Sequence[Run]) -> list[list[Run]]:
    """Stacks that were stopped half way and can go on as they were."""
    by_id = {run.id: run for run in left}
    found = [[by_id[id] for id in ids] for _, ids in _notes(ledger) if all(id in by_id for id in ids)]
    return [runs for runs in found if len({_kind(run) for run in runs}) == 1]


def _forget(ledger: Ledger, runs: Sequence[Run], but: Path | None = None) -> None:
    """Delete checkpoints of stacks that can never go on, because runs of theirs start afresh in another."""
    for note, ids in _notes(ledger):
        if note != but and not {run.id for run in runs}.isdisjoint(ids):
            note.unlink(missing_ok=True)
            remove(note.with_suffix(".safetensors"))


def _train_stack(
    runs: Sequence[Run],
    images: BinaryImages,
    ledger: Ledger,
    device: torch.device,
    deadline: float | None,
    tick: Callable[[int], None],
) -> bool:
    work = RunStack(runs, images, device)
    checkpoint = ledger.checkpoint_path(work.key)
    note = checkpoint.with_suffix(".json")
    _forget(ledger, runs, but=note)
    start = resume(work.stack, checkpoint)
    for run in runs:
        ledger.begin(run.id, work.header(run), measurement.columns())
        ledger.truncate(run.id, start)
    told = 0
    with ThreadPoolExecutor() as pool:

        def report(epoch: int, margins: NDArray[np.float32], seconds: float) -> None:
            nonlocal told
            lines = pool.map(lambda i: work.line(i, epoch, margins, seconds), range(len(runs)))
            for run, line in zip(runs, lines, strict=True):
                ledger.append(run.id, line)
            tick((epoch - told) * len(runs))
            told = epoch

        def settle() -> None:
            ledger.sync()
            write(note, json.dumps([run.id for run in runs]).encode())

        epochs = runs[0].epochs
        done = train(work.stack, epochs, report, checkpoint=checkpoint, settle=settle, deadline=deadline)
    if done:
        ledger.sync()
        _forget(ledger, runs)
    return done
