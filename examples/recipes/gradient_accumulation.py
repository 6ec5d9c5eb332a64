"""Gradient accumulation: the loss is told where an optimiser step ends.

The tangent loss takes its costs from the state before a step, so that they must stay the same within it. With
k equal micro-batches say `accumulate=k`; with unequal ones sum, divide by all rows and call `loss.step()`. Either
way weights and counts are those of the whole batch, up to rounding.

Run: python examples/recipes/gradient_accumulation.py
"""

from __future__ import annotations

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

from fbeta import Confusion, FBeta, TangentLoss

Rows = torch.utils.data.Dataset[tuple[torch.Tensor, ...]]


def load() -> list[Rows]:
    """Is a digit an '8'? Training and test rows, half each."""
    pixels, digit = load_digits(return_X_y=True)
    rows = TensorDataset(torch.tensor(pixels / 16).float(), torch.tensor(digit == 8).float())
    return list(random_split(rows, [0.5, 0.5], torch.Generator().manual_seed(0)))


def without(train: Rows, part: int = 25) -> nn.Module:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 1), nn.Flatten(0))
    loss = nn.BCEWithLogitsLoss(reduction="sum")
    optimiser = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(20):
        for x, y in DataLoader(train, batch_size=64, shuffle=True):
            optimiser.zero_grad()
            for i in range(0, len(y), part):  # 25, 25 and 14 rows
                (loss(model(x[i : i + part]), y[i : i + part]) / len(y)).backward()
            optimiser.step()
    return model


def with_fbeta(train: Rows, part: int = 25) -> tuple[nn.Module, TangentLoss]:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 1), nn.Flatten(0))
    loss = TangentLoss(FBeta(2), prevalence=0.1, reduction="sum", accumulate=None)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(20):
        for x, y in DataLoader(train, batch_size=64, shuffle=True):
            optimiser.zero_grad()
            for i in range(0, len(y), part):  # 25, 25 and 14 rows
                (loss(model(x[i : i + part]), y[i : i + part]) / len(y)).backward()
            optimiser.step()
            loss.step()
    return model, loss


def with_equal_parts(train: Rows, k: int = 4) -> tuple[nn.Module, TangentLoss]:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 1), nn.Flatten(0))
    loss = TangentLoss(FBeta(2), prevalence=0.1, accumulate=k)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(20):
        for x, y in DataLoader(train, batch_size=64, shuffle=True, drop_last=True):
            optimiser.zero_grad()
            for part, label in zip(x.chunk(k), y.chunk(k), strict=True):
                (loss(model(part), label) / k).backward()
            optimiser.step()
    return model, loss


@torch.no_grad()
def f2(model: nn.Module, rows: Rows) -> float:
    """F₂ of the decisions at ½ (logit 0)."""
    x, y = next(iter(DataLoader(rows, batch_size=10_000)))
    return float(FBeta(2)(Confusion.from_scores(model(x), y, cut=0.0)))


def main() -> dict[str, float]:
    train, test = load()
    return {
        "BCE": f2(without(train), test),
        "TangentLoss(FBeta(2)), parts of 25": f2(with_fbeta(train)[0], test),
        "TangentLoss(FBeta(2)), whole batches": f2(with_fbeta(train, part=64)[0], test),
    }


if __name__ == "__main__":
    torch.set_num_threads(1)
    for name, value in main().items():
        print(f"{name:<37} F2 at ½ on test rows: {value:.3f}")
