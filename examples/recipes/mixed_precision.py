"""Mixed precision with autocast and GradScaler: the same one line changes.

Losses compute in single precision whatever type the logits have, and give gradients in the logits' type. float16
on CUDA, bfloat16 elsewhere (which would not need the scaler: it is here to show that it does no harm).

Run: python examples/recipes/mixed_precision.py
"""

from __future__ import annotations

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.amp.grad_scaler import GradScaler
from torch.utils.data import DataLoader, TensorDataset, random_split

from fbeta import Confusion, FBeta, TangentLoss

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
HALF = torch.float16 if DEVICE == "cuda" else torch.bfloat16
Rows = torch.utils.data.Dataset[tuple[torch.Tensor, ...]]


def load() -> list[Rows]:
    """Is a digit an '8'? Training and test rows, half each."""
    pixels, digit = load_digits(return_X_y=True)
    x, y = torch.tensor(pixels / 16).float(), torch.tensor(digit == 8).float()
    rows = TensorDataset(x.to(DEVICE), y.to(DEVICE))
    return list(random_split(rows, [0.5, 0.5], torch.Generator().manual_seed(0)))


def without(train: Rows) -> nn.Module:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 1), nn.Flatten(0)).to(DEVICE)
    loss = nn.BCEWithLogitsLoss()
    optimiser, scaler = torch.optim.Adam(model.parameters(), lr=0.02), GradScaler(DEVICE)
    for _ in range(20):
        for x, y in DataLoader(train, batch_size=64, shuffle=True):
            optimiser.zero_grad()
            with torch.autocast(DEVICE, dtype=HALF):
                value = loss(model(x), y)
            scaler.scale(value).backward()
            scaler.step(optimiser)
            scaler.update()
    return model


def with_fbeta(train: Rows) -> nn.Module:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 1), nn.Flatten(0)).to(DEVICE)
    loss = TangentLoss(FBeta(2), prevalence=0.1).to(DEVICE)
    optimiser, scaler = torch.optim.Adam(model.parameters(), lr=0.02), GradScaler(DEVICE)
    for _ in range(20):
        for x, y in DataLoader(train, batch_size=64, shuffle=True):
            optimiser.zero_grad()
            with torch.autocast(DEVICE, dtype=HALF):
                value = loss(model(x), y)
            scaler.scale(value).backward()
            scaler.step(optimiser)
            scaler.update()
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
    print(f"{DEVICE}, {HALF}")
    for name, value in main().items():
        print(f"{name:<22} F2 at ½ on test rows: {value:.3f}")
