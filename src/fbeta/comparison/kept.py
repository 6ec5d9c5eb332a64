"""Finished parts of a comparison on disk, in the same books as the paper's runs.

A run is one method on one split: its file says what it is and how it went, epoch by epoch. Runs that are trained
together are a part, a folder of them with their scores beside; a part is finished when its scores are there.
"""

from __future__ import annotations

import hashlib
import json
import platform
import shutil
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import torch

from fbeta.comparison import boosters, networks
from fbeta.comparison.learned import Learned
from fbeta.comparison.parts import Part
from fbeta.comparison.result import Epochs
from fbeta.decisions.steps import score_cells
from fbeta.metrics import Confusion, Metric
from fbeta.tables import Table
from fbeta.train.checkpoint import load, remove, save
from fbeta.train.ledger import Ledger, read

#: Another version is for another way to get from the same rows and recipes to scores.
PROTOCOL = {"protocol": "fbeta compare", "version": 3}
COLUMNS = ("epoch", "loss", "score", "held")


class Kept:
    """The parts in a ledger's folder. `say` is told of damage, which is mended by training again.

    >>> import tempfile
    >>> from fbeta.comparison.methods import Method
    >>> part = Part((Method("xgboost", "bce"),), split=0, seed=0)
    >>> with Ledger(Path(tempfile.mkdtemp(), "kept"), PROTOCOL) as ledger:
    ...     kept = Kept(ledger)
    ...     if kept.take(part) and kept.resumed(part) is None:
    ...         kept.write(part, {"bce": Learned(np.zeros(3), np.zeros(2), 0.1, 7)}, {"torch": "2"})
    ...     kept.finished(part)["bce"].rounds
    7
    """

    def __init__(self, ledger: Ledger, say: Callable[[str], None] = print) -> None:
        self.ledger, self.say = ledger, say

    def take(self, part: Part) -> bool:
        """Claim a part; False if another process trains it now."""
        wanted = list(part.runs.values())
        held = self.ledger.claim(wanted)
        if held != wanted:
            self.ledger.release(held)
        return held == wanted

    def release(self, part: Part) -> None:
        """Give a part back."""
        self.ledger.release(part.runs.values())

    def finished(self, part: Part) -> dict[str, Learned] | None:
        """A part that somebody finished; None if it is not there, or not whole."""
        try:
            return self._read(part)
        except _DamagedError:
            return None

    def resumed(self, part: Part) -> dict[str, Learned] | None:
        """A part that is claimed, if it is finished; if not, what is damaged of it is out of the way."""
        try:
            found = self._read(part)
            checkpoint = self.checkpoint(part)
            if found is None and checkpoint.exists():
                _whole(checkpoint)
            return found
        except _DamagedError as error:
            self.say(f"{error} is damaged; what it held is trained again.")
            self.forget(part)
            return None

    def has(self, part: Part) -> bool:
        """Whether a part seems to be finished, without reading it."""
        return self._scores(part).exists()

    def forget(self, part: Part) -> None:
        """Delete what there is of a part."""
        shutil.rmtree(self._scores(part).parent, ignore_errors=True)
        remove(self.checkpoint(part))

    def write(self, part: Part, found: dict[str, Learned], machine: dict[str, Any]) -> None:
        """Write a part down: runs first, then the scores, with which it is finished.

        NotHeldError if another process took it over: what that one wrote is not touched.
        """
        for id in part.runs.values():
            self.ledger.check_claim(id)
        shutil.rmtree(
            self._scores(part).parent, ignore_errors=True
        )  # of a process that was killed right here
        tensors, digests = {}, {}
        for loss, id in part.runs.items():
            x = found[loss]
            tensors[f"{loss}.inner"] = torch.from_numpy(np.ascontiguousarray(x.inner))
            tensors[f"{loss}.outer"] = torch.from_numpy(np.ascontiguousarray(x.outer))
            run = {"model": part.model, "loss": loss, "seed": part.seed, "split": part.split}
            end = {"seconds": x.seconds, "rounds": x.rounds, "collapse": x.collapse}
            self.ledger.begin(id, {"run": run, "end": end, "machine": machine}, COLUMNS)
            course = zip(x.course.loss, x.course.score, x.course.held, strict=True)
            rows = [",".join(map(repr, (e, *map(float, row)))) for e, row in enumerate(course, start=1)]
            self.ledger.append(id, rows)
            digests[loss] = _digest(self.ledger.path(id).read_bytes())
        self.ledger.sync()
        save(self._scores(part), tensors, digests)
        remove(self.checkpoint(part))

    def checkpoint(self, part: Part) -> Path:
        """Where a part that is half way may be kept."""
        return self.ledger.checkpoint_path(part.key)

    def _scores(self, part: Part) -> Path:
        return self.ledger.folder / part.key / "scores.safetensors"

    def _read(self, part: Part) -> dict[str, Learned] | None:
        path = self._scores(part)
        if not path.exists():
            return None
        tensors, digests = _whole(path)
        found = {}
        for loss, id in part.runs.items():
            run = self.ledger.path(id)
            # A run's file is text and may be cut off anywhere: it must be the one that was there at the end.
            if not run.exists() or _digest(run.read_bytes()) != digests.get(loss):
                raise _DamagedError(run)
            record = read(run)
            end = record.header["end"]
            found[loss] = Learned(
                tensors[f"{loss}.inner"].numpy(),
                tensors[f"{loss}.outer"].numpy(),
                end["seconds"],
                end["rounds"],
                Epochs(*(tuple(record.columns[name].tolist()) for name in COLUMNS[1:])),
                end["collapse"],
            )
        return found


class _DamagedError(Exception):
    """A file of a part is not what was written."""


def _whole(path: Path) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
    try:
        return load(path)
    except ValueError as error:
        raise _DamagedError(path) from error


def fingerprint(table: Table, metric: Metric, folds: int) -> dict[str, Any]:
    """What finished parts depend on, besides their own names: rows, splits, metric, folds and recipes.

    Not the rule of the cut, which is applied to them; nor the machine, which is noted with every run.
    """
    recipes = {name: asdict(recipe) for name, recipe in networks.RECIPES.items()}
    trees = {"rounds": boosters.ROUNDS, "patience": boosters.PATIENCE}
    return {
        **PROTOCOL,
        "data": rows_digest(table),
        "metric": str(metric),
        "scores": _digest(_probed(metric)),
        "folds": folds,
        "recipes": recipes | dict.fromkeys(boosters.LIBRARIES, trees),
    }


def rows_digest(table: Table) -> str:
    """A digest of all that a table hands to training: columns and their kinds, values, classes, groups and times.

    It does not depend on the version of a library, as polars' own hashes do.

    >>> from fbeta.data import load_table
    >>> table = load_table("breast-cancer")
    >>> rows_digest(table) == rows_digest(table.take(np.arange(569))) != rows_digest(table.take(np.arange(568)))
    True
    """
    found = hashlib.sha256(json.dumps([column.to_dict() for column in table.columns]).encode())
    _, group = np.unique(table.group, return_inverse=True)
    times = [] if table.time is None else [table.time.astype(np.float64)]
    for column in (table.y.astype(np.int8), group.astype(np.int64), *times):
        found.update(np.ascontiguousarray(column).data)
    for column in table.columns:
        series = table.features[column.name]
        if column.kind == "category":
            levels = series.cast(pl.String).drop_nulls().unique().sort()
            found.update(json.dumps(levels.to_list()).encode())
            series = series.cast(pl.String).cast(pl.Enum(levels)).to_physical()
        elif column.kind == "date":
            series = series.to_physical()
        values = series.cast(pl.Float64).fill_null(float("nan")).to_numpy()
        found.update(np.ascontiguousarray(values).data)
    return found.hexdigest()[:32]


def _probed(metric: Metric) -> bytes:
    """What a metric says of some cells: a function of one's own has no better name."""
    cells = np.random.default_rng(0).integers(1, 1000, (4, 64)).astype(np.float64)
    return json.dumps([f"{x:.9g}" for x in score_cells(metric, Confusion(*cells))]).encode()


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:32]


def machine(device: torch.device) -> dict[str, Any]:
    """What trains here, for the books.

    >>> machine(torch.device("cpu"))["device"] == platform.machine()
    True
    """
    from fbeta import __version__

    name = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.machine()
    return {
        "device": name,
        "threads": torch.get_num_threads(),
        "torch": torch.__version__.partition("+")[0],
        "fbeta": __version__,
    }
