"""Training the runs of a plan: stacks of as many as fit, results after every epoch, stopped and resumed at will."""

from __future__ import annotations

import hashlib
import json
import platform
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from fbeta.data import load_images
from fbeta.models import ARCHITECTURES, ResNet, initial_weights
from fbeta.paper import measure
from fbeta.paper.objective import loss_of, loss_on, rate_of, start_of
from fbeta.paper.protocol import PROTOCOL, SETTINGS, Run
from fbeta.train.batches import Split
from fbeta.train.checkpoint import remove
from fbeta.train.layers import Network
from fbeta.train.ledger import Ledger
from fbeta.train.loop import resume, train
from fbeta.train.objective import Objective
from fbeta.train.stack import Member, Stack
from fbeta.writing import write

#: The side of the images that the networks see.
SIZE = 32
#: Runs trained together on a CPU: more are not faster there, and fewer stop, resume and share work more finely.
ON_A_CPU = 10
#: What a random stream is for: the first words of its key.
SPLIT, WEIGHTS, ORDER = 0, 1, 2


@dataclass(frozen=True, eq=False)
class Pictures:
    """The images of a data set as the engine takes them: rows to train and validate on, then those to test on."""

    images: NDArray[np.uint8]
    target: NDArray[np.int64]
    trained: int

    @classmethod
    def load(cls, dataset: str) -> Pictures:
        """Read a data set of `SETTINGS` and set one class against the rest."""
        data = load_images(dataset)
        images = np.concatenate([data.train, data.test])
        if images.shape[1] == 8:  # digits: each pixel becomes 4 × 4
            images = images.repeat(4, 1).repeat(4, 2)
        labels = np.concatenate([data.train_labels, data.test_labels])
        return cls(images, (labels == SETTINGS[dataset].positive).astype(np.int64), len(data.train))


def network_of(run: Run) -> Network:
    """The network of a run.

    >>> network_of(Run("cifar10", "bce")).architecture.blocks
    (3, 4, 6, 3)
    """
    setting = SETTINGS[run.dataset]
    return Network(replace(ARCHITECTURES[setting.network], width=setting.width, stem=run.stem), SIZE)


def stacks(runs: Iterable[Run], at_once: int) -> Iterator[list[Run]]:
    """Cut a plan, in its order, into stacks of runs that can be trained together.

    >>> from fbeta.paper.protocol import faithful
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


class _Work:
    """A stack of runs, and what is written down about each."""

    def __init__(self, runs: Sequence[Run], pictures: Pictures, device: torch.device) -> None:
        self.runs, self.pictures = runs, pictures
        self.splits = {
            r: Split.draw(pictures.trained, PROTOCOL["validation"], (SPLIT, r))
            for r in {run.repeat for run in runs}
        }
        self.test = np.arange(pictures.trained, len(pictures.target))
        network = network_of(runs[0])
        weights = {r: _weights(network, r) for r in self.splits}
        members = [
            Member(
                self.splits[run.repeat],
                start_of(run, weights[run.repeat], self.class_counts(run)),
                (ORDER, run.repeat),
                rate_of(run),
            )
            for run in runs
        ]
        objective = Objective([loss_of(run, self.class_counts(run)) for run in runs])
        self.stack = Stack(
            network,
            pictures.images,
            pictures.target,
            members,
            objective,
            precision=runs[0].precision,
            batch=PROTOCOL["batch"],
            device=device,
        )
        self.key = "stack-" + hashlib.sha256(" ".join(run.id for run in runs).encode()).hexdigest()[:16]

    def rows(self, run: Run) -> dict[str, NDArray[np.int64]]:
        split = self.splits[run.repeat]
        return {"train": split.train, "val": split.val, "test": self.test}

    def class_counts(self, run: Run) -> tuple[int, int]:
        y = self.pictures.target[self.splits[run.repeat].train]
        return int((1 - y).sum()), int(y.sum())

    def header(self, run: Run) -> dict[str, Any]:
        parts = {name: self.pictures.target[rows] for name, rows in self.rows(run).items()}
        return {
            "run": run.to_dict(),
            "counts": {name: [len(y), int(y.sum())] for name, y in parts.items()},
            "machine": _machine(self.stack.device) | {"runs at once": len(self.runs)},
        }

    def line(self, i: int, epoch: int, margins: NDArray[np.float32], seconds: float) -> str:
        run, rows = self.runs[i], self.rows(self.runs[i])
        z = {name: margins[i, part] for name, part in rows.items()}
        y = {name: self.pictures.target[part] for name, part in rows.items()}
        loss = loss_on(run, self.class_counts(run), z["train"], y["train"])
        found = measure.row(z, y, loss)
        return measure.fmt({"epoch": epoch, **found, "seconds": seconds / len(self.runs)})


def _weights(network: Network, repeat: int) -> dict[str, torch.Tensor]:
    bits = np.random.Philox(np.random.SeedSequence((WEIGHTS, repeat)))
    return initial_weights(ResNet(network.architecture), np.random.Generator(bits))


def _machine(device: torch.device) -> dict[str, Any]:
    from fbeta import __version__

    name = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.machine()
    return {"device": name, "torch": torch.__version__.partition("+")[0], "fbeta": __version__}


def bytes_per_run(network: Network, batch: int = 100, eval_batch: int = 500) -> int:
    """About what a run takes on a device: weights four times over, and the larger of a step and an evaluation.

    >>> round(bytes_per_run(Network(ARCHITECTURES["resnet18"])) / 2**20)
    93
    """
    stem = network.stem.rows.out * network.stem.cols.out * network.stem.channels_out
    blocks = sum(
        (4 + 2 * (b.around is not None)) * b.conv1.rows.out**2 * b.conv1.channels_out for b in network.blocks
    )
    step = 2 * batch * (3 * stem + blocks + int(np.prod(network.input_shape)))
    look = 2 * eval_batch * (2 * stem + int(np.prod(network.input_shape)))
    return network.kernels * 14 + max(step, look)


def fit_at_once(wanted: int, network: Network, device: torch.device) -> int:
    """How many runs fit into the device's free memory, at most `wanted`."""
    if device.type != "cuda":
        return wanted
    torch.cuda.empty_cache()  # what the stack before has left to PyTorch is free, too
    free = torch.cuda.mem_get_info(device)[0]
    return max(1, min(wanted, int(0.85 * free / bytes_per_run(network))))


def seconds_per_epoch(run: Run, pictures: Pictures, device: torch.device) -> float:
    """An honest guess from one step and one small evaluation of a single run."""
    few = Pictures(pictures.images[:120], pictures.target[:120], trained=111)  # 100 to train on: one batch
    work = _Work([run], few, device)
    work.stack.train_epoch()
    begun = time.perf_counter()
    work.stack.train_epoch()
    step = time.perf_counter() - begun
    begun = time.perf_counter()
    work.stack.margins()
    look = time.perf_counter() - begun
    return step * 0.9 * pictures.trained / 100 + look * len(pictures.target) / 120


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
    pictures: dict[str, Pictures] = {}
    finished: set[str] = set()
    done: bool | None
    with Ledger(results, PROTOCOL) as ledger:
        while left := _left(ledger, plan, finished, tick):
            fits = fit_at_once(size, network_of(left[0]), device)
            if fits < min(size, len(left)):
                say(f"The GPU's free memory is enough for {_at_once(fits)}, not {min(size, len(left))}.")
                size = fits
            runs = _claim(ledger, left, size)
            if not runs:
                say(
                    f"Others train the last {len(left)} runs now; if they stop, the same command goes on with them."
                )
                return False
            if not pictures and device.type == "cuda":
                say("The GPU's kernels are built first; that takes a minute or so, once on a machine.")
            if runs[0].dataset not in pictures:
                pictures = {runs[0].dataset: Pictures.load(runs[0].dataset)}
            try:
                done = _train_stack(runs, pictures[runs[0].dataset], ledger, device, deadline, tick)
            except torch.cuda.OutOfMemoryError:
                done = None  # and out of this block, where the error would keep the stack's memory
            if done is None:
                size = _fewer(runs, ledger, say)
            elif done:
                finished |= {run.id for run in runs}
            ledger.release([run.id for run in runs])
            late = deadline is not None and time.monotonic() > deadline
            if done is False or (late and len(finished) < len(plan)):
                say("The time limit is reached; the same command goes on from here.")
                return False
    return True


def _left(ledger: Ledger, plan: Sequence[Run], finished: set[str], tick: Callable[[int], None]) -> list[Run]:
    """What is not finished, by whomever."""
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
        raise ValueError("the GPU's memory is not enough for one run; free some, or take --device cpu.")
    torch.cuda.empty_cache()
    _forget(ledger, runs)
    say(f"The GPU's memory was not enough; going on with {_at_once(len(runs) // 2)}.")
    return len(runs) // 2


def _at_once(runs: int) -> str:
    return f"{runs} run{'s'[: runs > 1]} at once"


def _notes(ledger: Ledger) -> Iterator[tuple[Path, list[str]]]:
    """Which runs a checkpoint holds is written beside it."""
    for note in sorted(ledger.checkpoint_path("any").parent.glob("stack-*.json")):
        with suppress(FileNotFoundError):  # who trains it has just finished
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
    pictures: Pictures,
    ledger: Ledger,
    device: torch.device,
    deadline: float | None,
    tick: Callable[[int], None],
) -> bool:
    work = _Work(runs, pictures, device)
    checkpoint = ledger.checkpoint_path(work.key)
    note = checkpoint.with_suffix(".json")
    _forget(ledger, runs, but=note)
    start = resume(work.stack, checkpoint)
    for run in runs:
        ledger.begin(run.id, work.header(run), measure.columns())
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
