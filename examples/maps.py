"""Faint handwriting on photographs, pixel by pixel: which pixels are ink, and of which of two pens?

Three digits of scikit-learn's set are written with faint ink on each tile of its two photographs, so that one
pixel in thirty is ink; one of four digits is written with the second pen. The frame of a tile is ignored.
Half of the tiles trains, a quarter tunes, a quarter tests; all test pixels are counted together.

Run: python examples/maps.py           prints the table
     python examples/maps.py --write   rewrites docs/maps.json and the table in docs/tasks.md
     python examples/maps.py --search  chooses each loss's setting anew first
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from comparison import ClassTask, Task, command_line, run
from digits import Rows
from numpy.typing import NDArray
from sklearn.datasets import load_digits, load_sample_images
from torch import Tensor, nn

from fbeta import Confusion, FBeta, Jaccard, SoftLoss, TangentLoss, tune

CLASSES, IGNORE = 3, 255
TILE, FRAME, DIGITS = 48, 3, 3
INK, PENS, SECOND = 0.6, ((40, 40, 120), (120, 30, 50)), 0.25  # strength, colours, share of the second pen
MEMORY = 6000  # ink pixels of about an epoch: pixels of one tile are too much alike for the default of 500
SEEDS, EPOCHS, WIDTH = 5, 12, 8


def tiles(rng: np.random.Generator) -> Rows:
    """Tiles (N, 3, H, W) of both photographs with writing on them, and maps (N, H, W): 0 paper, 1 and 2 ink."""
    digits = load_digits().images / 16
    photographs = [
        image[i : i + TILE, j : j + TILE]
        for image in load_sample_images().images
        for i in range(0, image.shape[0] - TILE + 1, TILE)
        for j in range(0, image.shape[1] - TILE + 1, TILE)
    ]
    x = np.stack(photographs).astype(np.float32)
    y = np.zeros(x.shape[:3], dtype=np.int64)
    for tile, classes in zip(x, y, strict=True):
        for _ in range(DIGITS):
            write(tile, classes, digits[rng.integers(len(digits))], rng)
    outside = np.ones((TILE, TILE), dtype=bool)
    outside[FRAME:-FRAME, FRAME:-FRAME] = False
    y[:, outside] = IGNORE
    return Rows(torch.tensor(x / 128 - 1).movedim(-1, 1), torch.tensor(y))


def write(tile: NDArray[Any], classes: NDArray[Any], digit: NDArray[Any], rng: np.random.Generator) -> None:
    """Write a digit somewhere on a tile with one of the pens; pixels more than half covered are ink."""
    pen = int(rng.random() < SECOND)
    i, j = rng.integers(FRAME, TILE - FRAME - 8 + 1, 2)
    here = slice(i, i + 8), slice(j, j + 8)
    cover = INK * digit[..., None]
    tile[here] = (1 - cover) * tile[here] + cover * np.array(PENS[pen])
    classes[here][digit > 0.5] = pen + 1


def load(seed: int) -> tuple[Rows, Rows, Rows]:
    rng = np.random.default_rng(seed)
    x, y = tiles(rng)
    order = torch.tensor(rng.permutation(len(y)))
    first, second, third = (Rows(x[i], y[i]) for i in order.tensor_split((len(y) // 2, 3 * len(y) // 4)))
    return first, second, third


class Bce(nn.Module):
    """Binary cross entropy of the pixels that are not ignored: what `ignore_index` spares the other losses."""

    def forward(self, logits: Tensor, target: Tensor) -> Tensor:
        """Mean over kept pixels."""
        kept = target != IGNORE
        return nn.functional.binary_cross_entropy_with_logits(logits[kept], target[kept].float())


class Maps(Task):
    """Three small convolutions on tiles; the logits have a channel for each of `channels`, or none for one."""

    batches = 2, 4
    tested = 1 / 2
    channels: int

    def load(self, seed: int) -> tuple[Rows, Rows, Rows]:
        """Disjoint tiles."""
        return load(seed)

    def network(self, norm: bool) -> nn.Module:
        """See a pixel and its four neighbours each way."""

        def middle() -> list[nn.Module]:
            return [nn.BatchNorm2d(WIDTH), nn.ReLU()] if norm else [nn.ReLU()]

        return nn.Sequential(
            nn.Conv2d(3, WIDTH, 3, padding=1),
            *middle(),
            nn.Conv2d(WIDTH, WIDTH, 3, padding=2, dilation=2),
            *middle(),
            nn.Conv2d(WIDTH, self.channels, 3, padding=1),
            *([nn.Flatten(0, 1)] if self.channels == 1 else []),
        )

    def outputs(self, model: nn.Module, rows: Rows) -> Rows:
        """All pixels that are not ignored."""
        logits, kept = model(rows.x), rows.y != IGNORE
        return Rows((logits if self.channels == 1 else logits.movedim(1, -1))[kept], rows.y[kept])


class Ink(Maps):
    """Ink or paper: maps (N, H, W)."""

    score, metric, channels = "Jaccard", Jaccard(), 1
    decisions = "½", "cut of validation pixels"

    def load(self, seed: int) -> tuple[Rows, Rows, Rows]:
        """Ink of either pen is 1."""
        first, second, third = (Rows(x, torch.where(y == IGNORE, y, y.clamp(max=1))) for x, y in load(seed))
        return first, second, third

    def losses(self, train: Rows) -> dict[str, nn.Module]:
        """BCE, and fbeta's for the Jaccard index."""
        options: Any = {"ignore_index": IGNORE, "memory": MEMORY}
        tangent, soft = TangentLoss(self.metric, **options), SoftLoss(self.metric, **options)
        return {"BCE": Bce(), "TangentLoss": tangent, "SoftLoss": soft}

    def judge(self, rows: Rows, tuned_on: Rows | None = None) -> float:
        """Cut at logit 0, which is probability ½, or where other pixels say."""
        cut = 0.0 if tuned_on is None else tune(*tuned_on, self.metric).value
        return float(self.metric(Confusion.from_scores(*rows, cut=cut)))


class Pens(ClassTask, Maps):
    """Paper, first or second pen: maps (N, C, H, W)."""

    score, metric, channels, classes = "macro F₁", FBeta(1), CLASSES, CLASSES
    decisions = "argmax", "gain rule of validation pixels"

    def losses(self, train: Rows) -> dict[str, nn.Module]:
        """Cross entropy, and fbeta's for macro F₁."""
        options: Any = {"task": "multiclass", "num_labels": CLASSES, "ignore_index": IGNORE, "memory": MEMORY}
        return {
            "cross entropy": nn.CrossEntropyLoss(ignore_index=IGNORE),
            "TangentLoss": TangentLoss(self.metric, **options),
            "SoftLoss": SoftLoss(self.metric, **options),
        }


TASKS = Ink(), Pens()


def main(seeds: int = SEEDS, epochs: int = EPOCHS) -> dict[str, Any]:
    return run("maps", TASKS, seeds, epochs)


if __name__ == "__main__":
    command_line("maps", TASKS, SEEDS, EPOCHS)
