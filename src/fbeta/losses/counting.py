"""Counts of a batch: from decisions to TP, FP, FN and TN, for columns and for the largest of many scores."""

from collections.abc import Callable
from typing import TypeAlias

import torch
from torch import Tensor

from fbeta.losses.task import Batch, keeps

#: From logits: how much of each element is called positive, and how much negative.
Decisions: TypeAlias = Callable[[Tensor], tuple[Tensor, Tensor]]
#: Maps of more classes than this are taken apart into rows: across maps a softmax adds up class by class, and with
#: some hundred classes it would lose the sixth digit.
FEW = 64


def hard_decisions(logits: Tensor) -> tuple[Tensor, Tensor]:
    """Call f ≥ ½ (z ≥ 0) positive, and the rest negative."""
    yes = (logits >= 0).to(logits.dtype)
    return yes, 1 - yes


def soft_decisions(logits: Tensor) -> tuple[Tensor, Tensor]:
    """The scores f and 1 − f themselves, each to full precision."""
    return torch.sigmoid(logits), torch.sigmoid(-logits)


def cells(batch: Batch, decided: tuple[Tensor, Tensor], *, columns: bool) -> Tensor:
    r"""Count a batch: TP, FP, FN, TN of decisions.

    Shape: ``(4,)``, or ``(4, K)`` if `columns` keeps the last axis apart. Soft counts carry a gradient.
    """
    _, y, w = batch
    yes, no = decided
    positive, negative = w * y, w * (1 - y)
    shape = (-1, *y.shape[-1:]) if columns else (-1,)
    # Summed one by one: a stack of all four would be the largest tensor of a step.
    parts = (positive * yes, negative * yes, positive * no, negative * no)
    return torch.stack([part.reshape(shape).sum(0) for part in parts])


def classes(logits: Tensor, target: Tensor, weight: Tensor | None = None, *, ignore_index: int | None = None) -> Batch:
    """Logits of many classes with integer targets and weights, for decisions by the largest score.

    Shape: ``(N, C, *)`` and ``(N, *)``; maps of more than `FEW` classes come back as rows. Ignored elements have
    weight 0 and harmless contents.
    """
    z = logits.to(torch.promote_types(logits.dtype, torch.float32))
    y = target.long()
    w = torch.ones_like(y, dtype=z.dtype) if weight is None else weight.to(z.dtype)
    if ignore_index is not None:
        kept = keeps(y, ignore_index)
        z, y, w = torch.where(kept.unsqueeze(1), z, 0.0), torch.where(kept, y, 0), torch.where(kept, w, 0.0)
    if z.ndim > 2 and z.shape[1] > FEW:
        return Batch(z.movedim(1, -1).reshape(-1, z.shape[1]), y.flatten(), w.flatten())
    return Batch(z, y, w)


@torch.no_grad()
def class_cells(batch: Batch, *, columns: bool) -> Tensor:
    """Count a batch of `classes`, each against the rest, where the largest score is called: TP, FP, FN, TN.

    Shape: ``(4, C)``, or ``(4,)`` if not `columns`.
    """
    z, y, w = batch
    # Each map by itself: on a device all pixels would queue for the few places that they are added to.
    called, y, w = (x.flatten(1) if x.ndim > 1 else x.unsqueeze(0) for x in (_largest(z), y, w.double()))
    hit = called == y
    right, wrong = w * hit, w * ~hit
    none = w.new_zeros(len(y), z.shape[1])
    found = [none.scatter_add(1, k, x).sum(0) for k, x in ((y, right), (called, wrong), (y, wrong))]
    rest = (w.sum() - sum(found)).clamp(min=0)  # rounding must not take it below zero
    counts = torch.stack([*found, rest])
    return counts if columns else counts.sum(1)


def _largest(scores: Tensor) -> Tensor:
    """The class with the largest score, the first of equals."""
    if scores.ndim == 2:
        return scores.max(1).indices
    # Across maps torch's own goes pixel by pixel, which is slow. Of those on top the first has the largest number, a
    # byte for at most FEW classes. NaN is never on top, and such a pixel is called the last class.
    count = scores.shape[1]
    number = torch.arange(count, 0, -1, dtype=torch.uint8, device=scores.device)
    top = (scores >= scores.amax(1, keepdim=True)) * number.reshape(-1, *[1] * (scores.ndim - 2))
    return count - top.amax(1).clamp(min=1).long()
