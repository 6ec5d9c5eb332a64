"""A plain PyTorch loop: one line changes. Is a digit an '8' (one row in ten), judged by F₂?

A linear model on 64 pixels cannot separate the '8', so it has to choose which errors to make.
BCE with a cut tuned on validation rows would be a fairer opponent: ½ is not the cut that it trains for.

Run: python examples/recipes/plain_pytorch.py
"""

from __future__ import annotations

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

from fbeta import Confusion, FBeta, TangentLoss

Rows = torch.utils.data.Dataset[tuple[torch.Tensor, ...]]


def load() -> list[Rows]:
    """Training and test rows, half each."""
    pixels, digit = load_digits(return_X_y=True)
    rows = TensorDataset(torch.tensor(pixels / 16).float(), torch.tensor(digit == 8).float())
    return list(random_split(rows, [0.5, 0.5], torch.Generator().manual_seed(0)))


def without(train: Rows) -> nn.Module:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 1), nn.Flatten(0))
    loss = nn.BCEWithLogitsLoss()
    optimiser = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(20):
        for x, y in DataLoader(train, batch_size=64, shuffle=True):
            optimiser.zero_grad()
            loss(model(x), y).backward()
            optimiser.step()
    return model


def with_fbeta(train: Rows) -> nn.Module:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 1), nn.Flatten(0))
    loss = TangentLoss(FBeta(2), prevalence=0.1)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(20):
        for x, y in DataLoader(train, batch_size=64, shuffle=True):
            optimiser.zero_grad()
            loss(model(x), y).backward()
            optimiser.step()
    return model


@torch.no_grad()
def f2(model: nn.Module, rows: Rows) -> float:
    """F₂ of the decisions at ½ (logit 0)."""
    x, y = next(iter(DataLoader(rows, batch_size=10_000)))
    return float(FBeta(2)(Confusion.from_scores(model(x), y, cut=0.0)))


def main() -> dict[str, float]:
    train, test = load()
    return {"BCE": f2(without(train), test), "TangentLoss(FBeta(2))": f2(with_fbeta(train), test)}


if __name__ == "__main__":
    torch.set_num_threads(1)
    for name, value in main().items():
        print(f"{name:<22} F2 at ½ on test rows: {value:.3f}")
