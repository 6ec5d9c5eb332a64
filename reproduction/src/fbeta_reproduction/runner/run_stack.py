"""Runs that are trained together: their networks, splits, weights and losses, and the lines of their files."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from fbeta import __version__
from fbeta.learners.machine import bits
from fbeta_reproduction.engine.augmentation import Holdout
from fbeta_reproduction.engine.image_stack import ImageStack, Member
from fbeta_reproduction.engine.layout import Layout
from fbeta_reproduction.engine.loss_sum import LossSum
from fbeta_reproduction.engine.resnet import ARCHITECTURES, ResNet, initial_weights
from fbeta_reproduction.images.binary_images import BinaryImages
from fbeta_reproduction.protocol import PROTOCOL, SETTINGS, Run
from fbeta_reproduction.readings.remedies import rate_of, start_of
from fbeta_reproduction.readings.run_loss import loss_of, loss_on
from fbeta_reproduction.results import measurement

#: The side of the images that the networks see.
SIZE = 32
#: What a random stream is for: the first number of its key.
SPLIT, WEIGHTS, ORDER, NOISE = 0, 1, 2, 3


def layout_of(run: Run) -> Layout:
    """The network of a run, laid out for the engine.

    >>> layout_of(Run("cifar10", "bce")).architecture.blocks
    (3, 4, 6, 3)
    """
    setting = SETTINGS[run.dataset]
    return Layout(replace(ARCHITECTURES[setting.network], width=setting.width, stem=run.stem), SIZE)


class RunStack:
    """Runs that are trained together, and what is written into the file of each."""

    def __init__(self, runs: Sequence[Run], images: BinaryImages, device: torch.device) -> None:
        self.runs, self.images = runs, images
        self.splits = {
            r: Holdout.draw(images.trained, PROTOCOL["validation"], (SPLIT, r)) for r in {run.repeat for run in runs}
        }
        self.test = np.arange(images.trained, len(images.target))
        layout = layout_of(runs[0])
        weights = {r: weights_of(layout, r) for r in self.splits}
        members = [
            Member(
                self.splits[run.repeat],
                start_of(run, weights[run.repeat], self.class_counts(run)),
                (ORDER, run.repeat),
                rate_of(run),
                turned(run, images.trained),
            )
            for run in runs
        ]
        objective = LossSum([loss_of(run, self.class_counts(run)) for run in runs])
        self.stack = ImageStack(
            layout,
            images.images,
            images.target,
            members,
            objective,
            precision=runs[0].precision,
            batch=PROTOCOL["batch"],
            device=device,
        )
        self.key = "stack-" + hashlib.sha256(" ".join(run.id for run in runs).encode()).hexdigest()[:16]

    def rows(self, run: Run) -> dict[str, NDArray[np.int64]]:
        """The rows of each split."""
        split = self.splits[run.repeat]
        return {"train": split.train, "val": split.val, "test": self.test}

    def target(self, run: Run) -> NDArray[np.int64]:
        """The labels that a run sees; those of test rows are true."""
        y = self.images.target.copy()
        wrong = turned(run, self.images.trained)
        y[wrong] = 1 - y[wrong]
        return y

    def class_counts(self, run: Run) -> tuple[int, int]:
        """Negatives and positives of the training rows, by the labels that the run sees."""
        y = self.target(run)[self.splits[run.repeat].train]
        return int((1 - y).sum()), int(y.sum())

    def header(self, run: Run) -> dict[str, Any]:
        """The first line of a run's file, as plain data."""
        target = self.target(run)
        parts = {name: target[rows] for name, rows in self.rows(run).items()}
        return {
            "run": run.to_dict(),
            "counts": {name: [len(y), int(y.sum())] for name, y in parts.items()},
            "machine": machine_of(self.stack.device) | {"runs at once": len(self.runs)},
        }

    def line(self, i: int, epoch: int, margins: NDArray[np.float32], seconds: float) -> str:
        """The line of run `i` after an epoch, from the margins of all runs."""
        run, rows = self.runs[i], self.rows(self.runs[i])
        z = {name: margins[i, part] for name, part in rows.items()}
        target = self.target(run)
        y = {name: target[part] for name, part in rows.items()}
        loss = loss_on(run, self.class_counts(run), z["train"], y["train"])
        found = measurement.row(z, y, loss)
        return measurement.line({"epoch": epoch, **found, "seconds": seconds / len(self.runs)})


def turned(run: Run, trained: int) -> NDArray[np.int64]:
    """The rows whose label is turned around: the same for every loss of a repeat, and more of them with more noise.

    >>> few, many = (turned(Run("digits", "bce", noise=share), 1000) for share in (0.1, 0.4))
    >>> len(few), len(many), set(few) < set(many)
    (116, 394, True)
    """
    luck = bits(trained, NOISE, run.repeat).astype(np.float64) / 2.0**64
    return np.flatnonzero(luck < run.noise)


def weights_of(layout: Layout, repeat: int) -> dict[str, torch.Tensor]:
    """The initial weights of a repeat, the same for every loss and on every machine."""
    bits = np.random.Philox(np.random.SeedSequence((WEIGHTS, repeat)))
    return initial_weights(ResNet(layout.architecture), np.random.Generator(bits))


def machine_of(device: torch.device) -> dict[str, Any]:
    """The device, and the versions that it ran."""
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.machine()
    return {"device": name, "torch": torch.__version__.partition("+")[0], "fbeta": __version__}
