"""Many small models side by side: those of all folds and the final one take every step together."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from fbeta.sklearn.networks import Network


class Stack(nn.Module):
    """`models` networks with `columns` outputs each, on the same rows.

    All begin alike, so that what a fold's rows show about the number of epochs holds for the model of all rows.

    Shape: rows ``(n, d)``, dense or (without hidden layers) sparse; logits ``(n, models, columns)``.

    >>> Stack(3, [2, 5, 1], torch.Generator().manual_seed(0))(torch.zeros(4, 2)).shape
    torch.Size([4, 3, 1])
    """

    def __init__(self, models: int, sizes: list[int], generator: torch.Generator) -> None:
        super().__init__()
        self.models, self.sizes = models, sizes
        weights, biases = [], []
        for i, (wide, narrow) in enumerate(itertools.pairwise(sizes)):
            one = torch.zeros(wide, narrow)  # a linear model is convex and begins at zero
            if len(sizes) > 2:
                last = i == len(sizes) - 2
                spread = math.sqrt((1 if last else 2) / wide)
                one = spread * torch.randn(wide, narrow, generator=generator)
            weights.append(nn.Parameter(one.expand(models, wide, narrow).clone()))
            biases.append(nn.Parameter(torch.zeros(models, 1, narrow)))
        self.weights, self.biases = nn.ParameterList(weights), nn.ParameterList(biases)

    def forward(self, rows: Tensor) -> Tensor:
        """Logits of all models."""
        weight, bias = self.weights[0], self.biases[0]
        wide = weight.permute(1, 0, 2).reshape(weight.shape[1], -1)  # one product for all models
        x = torch.sparse.mm(rows, wide) if rows.is_sparse else rows @ wide
        x = x.reshape(rows.shape[0], self.models, -1).transpose(0, 1) + bias
        for weight, bias in zip(list(self.weights)[1:], list(self.biases)[1:], strict=True):
            x = torch.baddbmm(bias, x.relu(), weight)
        logits: Tensor = x.transpose(0, 1)
        return logits

    def penalty(self) -> Tensor:
        """Half the squared norm of all weights, biases left out."""
        total = torch.zeros((), dtype=self.weights[0].dtype, device=self.weights[0].device)
        for weight in self.weights:
            total = total + weight.square().sum()
        return total / 2

    def network(self, model: int) -> Network:
        """One model as plain arrays."""
        weights = tuple(_numpy(w[model]) for w in self.weights)
        return Network(weights, tuple(_numpy(b[model, 0]) for b in self.biases))


def _numpy(x: Tensor) -> Any:
    return x.detach().cpu().numpy().astype(np.float64)
