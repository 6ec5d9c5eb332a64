"""Other readings of the paper's text, as losses: each could explain a claim that the plain one does not support."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from fbeta.losses import SoftLoss, get, tangent_loss
from fbeta.losses.per_class import class_weights
from fbeta.metrics import FBeta
from fbeta_reproduction.protocol import Run

Counts = tuple[int, int]


class UnclampedBCE(nn.Module):
    r"""Class-balanced cross entropy as its formula stands, on a softmax, with nothing to keep the logarithm finite.

    .. math:: -\frac1n \sum_i w_{y_i} \left[y_i \log f_i + (1 - y_i) \log(1 - f_i)\right]

    Once f rounds to 1 in single precision, 0 · log 0 is NaN, and the network with it.

    Shape: `z` and `y` ``(n,)``; result ``()``.

    >>> UnclampedBCE((9, 1))(torch.tensor([0.0, 30.0]), torch.tensor([0.0, 1.0]))
    tensor(nan)
    """

    def __init__(self, class_counts: Counts) -> None:
        super().__init__()
        self.pair = [float(w) for w in class_weights("balanced", class_counts=class_counts)]

    def forward(self, z: Tensor, y: Tensor) -> Tensor:
        """The mean over rows."""
        f = torch.softmax(torch.stack([torch.zeros_like(z), z]), 0)[1]
        w0, w1 = self.pair
        return (-w1 * y * f.log() - w0 * (1 - y) * (1 - f).log()).mean()


class SoftBoth(nn.Module):
    r"""Macro soft F_β as a mean over both columns of the softmax: the rest against the class counts as much.

    .. math:: 1 - \tfrac12 (\tilde F_\beta^{(1)} + \tilde F_\beta^{(0)})

    Shape: `z` and `y` ``(n,)``; result ``()``.

    >>> SoftBoth(1.0, (1, 1))(torch.tensor([-9.0, 9.0]), torch.tensor([0.0, 1.0])) < 0.01
    tensor(True)
    """

    def __init__(self, beta: float, class_counts: Counts) -> None:
        super().__init__()
        n0, n1 = class_counts
        self.one = SoftLoss(FBeta(beta), class_counts=(n0, n1))
        self.rest = SoftLoss(FBeta(beta), class_counts=(n1, n0))

    def forward(self, z: Tensor, y: Tensor) -> Tensor:
        """The mean of both columns."""
        value: Tensor = (self.one(z, y) + self.rest(-z, 1 - y)) / 2
        return value


class BalancedGCE(nn.Module):
    r"""Generalised cross entropy under class weights n/n_y: what the q form of the surrogate loss is compared with.

    .. math:: \frac1n \sum_i \frac{n}{n_{y_i}} \frac{1 - f_{y_i}^q}{q}

    Shape: `z` and `y` ``(n,)``; result ``()``.

    >>> BalancedGCE(0.5, (9, 1))(torch.zeros(10), torch.ones(10))
    tensor(5.8579)
    """

    def __init__(self, q: float, class_counts: Counts) -> None:
        super().__init__()
        w0, w1 = class_weights("balanced", class_counts=class_counts)
        self.pair, self.q = (float(w0), float(w1)), q

    def forward(self, z: Tensor, y: Tensor) -> Tensor:
        """The mean over rows."""
        return tangent_loss(z, y, self.pair, self.q).mean()


class Twice(nn.Module):
    r"""A loss on a softmax of the softmax: its margin f₁ − f₀ = tanh(z/2) never leaves (−1, 1).

    Shape: `z` and `y` ``(n,)``; result ``()``.

    >>> Twice(get("bce"))(torch.tensor([100.0]), torch.tensor([1.0]))
    tensor(0.3133)
    """

    def __init__(self, loss: nn.Module) -> None:
        super().__init__()
        self.loss = loss

    def forward(self, z: Tensor, y: Tensor) -> Tensor:
        """The loss of the squeezed margin."""
        value: Tensor = self.loss(torch.tanh(z / 2), y)
        return value


def _twice(name: str) -> Callable[[Run, Counts], nn.Module]:
    def make(run: Run, counts: Counts) -> nn.Module:
        options: dict[str, Any] = {} if run.beta is None else {"metric": FBeta(run.beta)}
        return Twice(get(name, class_counts=counts, **options))

    return make


def _beta(run: Run) -> float:
    if run.beta is None:
        raise ValueError("This reading needs a β.")
    return run.beta


#: Readings by the name that a run has for its loss.
READINGS: dict[str, Callable[[Run, Counts], nn.Module]] = {
    "unclamped-bce": lambda run, counts: UnclampedBCE(counts),
    "balanced-gce": lambda run, counts: BalancedGCE(run.q, counts),
    "soft-both": lambda run, counts: SoftBoth(_beta(run), counts),
    "soft-batch": lambda run, counts: SoftLoss(FBeta(_beta(run))),
    # Weights n/n_y on the counts make both classes as large.
    "soft-weighted": lambda run, counts: SoftLoss(FBeta(_beta(run)), class_counts=(1, 1)),
    "twice-surrogate": _twice("surrogate"),
    "twice-bce": _twice("balanced-bce"),
}
