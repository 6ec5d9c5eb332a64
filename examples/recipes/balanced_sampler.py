"""A balanced sampler: two prevalences. The stream is 50:50, the population has one positive in ten.

Trained on such a stream, cross entropy believes that half of all rows are positive, and calls too many at ½. A
loss that knows the population's rate (`prevalence`) and counts the stream's (or is told: `class_counts`) keeps
½ right for the population.

Run: python examples/recipes/balanced_sampler.py
"""

from __future__ import annotations

import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler

from fbeta import Confusion, FBeta, TangentLoss, tune


def load() -> tuple[TensorDataset, TensorDataset]:
    """Is a digit an '8'? Training and test rows, half each; both have the population's rate."""
    pixels, digit = load_digits(return_X_y=True)
    x, y = torch.tensor(pixels / 16).float(), torch.tensor(digit == 8).float()
    order = torch.randperm(len(y), generator=torch.Generator().manual_seed(0))
    train, test = order.chunk(2)
    return TensorDataset(x[train], y[train]), TensorDataset(x[test], y[test])


def half_and_half(y: Tensor) -> WeightedRandomSampler:
    """Draw both classes equally often."""
    odds = torch.where(y == 1, 1 / y.sum(), 1 / (1 - y).sum())
    return WeightedRandomSampler(odds.tolist(), num_samples=len(y))


def without(train: TensorDataset) -> nn.Module:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 1), nn.Flatten(0))
    loss = nn.BCEWithLogitsLoss()
    optimiser = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(25):
        for x, y in DataLoader(train, batch_size=64, sampler=half_and_half(train.tensors[1])):
            optimiser.zero_grad()
            loss(model(x), y).backward()
            optimiser.step()
    return model


def with_fbeta(train: TensorDataset, prevalence: float = 0.1, class_counts: tuple[int, int] | None = None) -> nn.Module:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 1), nn.Flatten(0))
    loss = TangentLoss(FBeta(1), prevalence=prevalence, class_counts=class_counts)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(25):
        for x, y in DataLoader(train, batch_size=64, sampler=half_and_half(train.tensors[1])):
            optimiser.zero_grad()
            loss(model(x), y).backward()
            optimiser.step()
    return model


@torch.no_grad()
def judge(model: nn.Module, rows: TensorDataset) -> tuple[float, float, float]:
    """F₁ at ½, the share of rows called positive there, and F₁ at the best cut these rows have."""
    x, y = rows.tensors
    c = Confusion.from_scores(model(x), y, cut=0.0)
    return float(FBeta(1)(c)), float(c.predicted), tune(model(x), y, FBeta(1)).score


def main() -> dict[str, tuple[float, float, float]]:
    train, test = load()
    return {
        "BCE": judge(without(train), test),
        "TangentLoss, prevalence=0.1": judge(with_fbeta(train), test),
        "… and class_counts=(1, 1)": judge(with_fbeta(train, class_counts=(1, 1)), test),
        "… told that half is positive": judge(with_fbeta(train, prevalence=0.5), test),
    }


if __name__ == "__main__":
    torch.set_num_threads(1)
    print(f"{'test rows, 10% positive':<30} F1 at ½   called positive   F1 at the best cut of these rows")
    for name, (half, called, best) in main().items():
        print(f"{name:<30} {half:7.3f} {called:17.3f} {best:17.3f}")
