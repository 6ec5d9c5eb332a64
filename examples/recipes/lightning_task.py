"""Lightning: `MetricTask` in place of a module of one's own, with the cut tuned at the end of validation.

The file is not called lightning.py: run as a script it would then import itself.

Run: python examples/recipes/lightning_task.py
"""

from __future__ import annotations

import logging
from typing import Any

import lightning as L
import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset, random_split

from fbeta import Confusion, FBeta
from fbeta.lightning import MetricTask

Rows = DataLoader[tuple[Tensor, ...]]


def load() -> list[Rows]:
    """Is a digit an '8'? Training, validation and test rows."""
    pixels, digit = load_digits(return_X_y=True)
    rows = TensorDataset(torch.tensor(pixels / 16).float(), torch.tensor(digit == 8).float())
    train, *others = random_split(rows, [0.4, 0.3, 0.3], torch.Generator().manual_seed(0))
    return [DataLoader(train, batch_size=64, shuffle=True), *(DataLoader(r, batch_size=256) for r in others)]


def adam(parameters: Any) -> torch.optim.Optimizer:
    return torch.optim.Adam(parameters, lr=0.02)


def trainer() -> L.Trainer:
    off = ("logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary")
    quiet: dict[str, Any] = dict.fromkeys(off, False)
    return L.Trainer(max_epochs=20, accelerator="cpu", devices=1, **quiet)


class Plain(L.LightningModule):
    """What one writes without `fbeta`."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model, self.loss = model, nn.BCEWithLogitsLoss()
        self.found = Confusion(0, 0, 0, 0)

    def training_step(self, batch: list[Tensor], batch_idx: int) -> Tensor:
        """Cross entropy of a batch."""
        return self.loss(self.model(batch[0]), batch[1])  # type: ignore[no-any-return]

    def validation_step(self, batch: list[Tensor], batch_idx: int) -> None:
        """F₂ of a batch, averaged over batches: not the F₂ of the rows, a common mistake."""
        c = Confusion.from_scores(self.model(batch[0]), batch[1], cut=0.0)
        self.log("val_fbeta_2", FBeta(2)(c))

    def test_step(self, batch: list[Tensor], batch_idx: int) -> None:
        """F₂ of all rows, by counts."""
        c = Confusion.from_scores(self.model(batch[0]), batch[1], cut=0.0)
        self.found = Confusion(*(a + b for a, b in zip(self.found, c, strict=True)))

    def on_test_epoch_end(self) -> None:
        """Log it."""
        self.log("test_fbeta_2", FBeta(2)(self.found))

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Adam, as in the other variant."""
        return adam(self.parameters())


def without(train: Rows, validation: Rows, test: Rows) -> dict[str, float]:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 1), nn.Flatten(0))
    task = Plain(model)
    loop = trainer()
    loop.fit(task, train, validation)
    return dict(loop.test(task, test, verbose=False)[0])


def with_fbeta(train: Rows, validation: Rows, test: Rows) -> dict[str, float]:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 1), nn.Flatten(0))
    positives = sum(int(y.sum()) for _, y in train)
    counts = len(train.dataset) - positives, positives  # type: ignore[arg-type]
    task = MetricTask(model, FBeta(2), class_counts=counts, optimizer=adam)
    loop = trainer()
    loop.fit(task, train, validation)
    return dict(loop.test(task, test, verbose=False)[0])


def main() -> dict[str, float]:
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    rows = load()
    plain, ours = without(*rows), with_fbeta(*rows)
    return {
        "BCE, cut at ½": plain["test_fbeta_2"],
        "MetricTask, cut at ½": ours["test_fbeta_2"],
        "MetricTask, tuned cut": ours["test_fbeta_2_tuned"],
    }


if __name__ == "__main__":
    torch.set_num_threads(1)
    for name, value in main().items():
        print(f"{name:<22} F2 on test rows: {value:.3f}")
