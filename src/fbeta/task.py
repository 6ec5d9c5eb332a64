"""What the caller's tensors mean: one task, one shape, no guessing, nothing broadcast silently."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

#: "binary": logits and target alike, any shape. "softmax2": logits (N, 2, *), integer target (N, *).
#: "multilabel": logits and target (N, K).
TASKS = ("binary", "softmax2", "multilabel")


class Batch(NamedTuple):
    """Logits z, targets in [0, 1] and weights of one shape and one type (at least single precision).

    Shape: ``(*)``, or ``(N, K)`` for "multilabel". Ignored elements have weight 0 and harmless contents.
    """

    logits: Tensor
    target: Tensor
    weight: Tensor


def read(
    logits: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    *,
    task: str = "binary",
    num_labels: int | None = None,
    ignore_index: int | None = None,
    check: bool | None = None,
) -> Batch:
    """Bring a caller's tensors to one form.

    `check` looks at values as well as shapes: True always (it waits for the device), False never, None where
    it costs no wait (on the CPU, outside compilation), and then NaN logits pass through, as gradient
    scaling needs them to.

    >>> read(torch.tensor([[0.0, 2.0]]), torch.tensor([1]), task="softmax2")
    Batch(logits=tensor([2.]), target=tensor([1.]), weight=tensor([1.]))
    """
    _check_shapes(logits, target, weight, task, num_labels)
    free = target.device.type == "cpu" and not torch.compiler.is_compiling()
    if check or (check is None and free):
        _check_values(logits, target, weight, ignore_index, nan=bool(check))
    # Half precision holds the input, not the arithmetic.
    dtype = torch.promote_types(logits.dtype, torch.float32)
    z = logits.to(dtype)
    if task == "softmax2":
        z = z[:, 1] - z[:, 0]
    w = torch.ones_like(z) if weight is None else weight.to(dtype)
    y = target.to(dtype)
    if ignore_index is not None:
        kept = target != ignore_index
        zero = torch.zeros((), dtype=dtype, device=z.device)
        z, y, w = (torch.where(kept, x, zero) for x in (z, y, w))
    return Batch(z, y, w)


def check_task(task: str, num_labels: int | None) -> None:
    """Refuse an unknown task, or a multi-label one of unknown width.

    >>> check_task("multilabel", 3)
    """
    if task not in TASKS:
        raise ValueError(f"task must be one of {', '.join(TASKS)}; got {task!r}.")
    if task == "multilabel" and (num_labels is None or num_labels < 1):
        raise ValueError(
            f"task='multilabel' needs num_labels (the number of columns K); got {num_labels!r}. "
            "State must have its shape before load_state_dict."
        )
    if task != "multilabel" and num_labels is not None:
        raise ValueError(f"num_labels belongs to task='multilabel'; got it with task={task!r}.")


def _check_shapes(
    logits: Tensor, target: Tensor, weight: Tensor | None, task: str, num_labels: int | None
) -> None:
    if not logits.is_floating_point():
        raise TypeError(f"logits must be floating point; got {logits.dtype}.")
    if target.is_complex() or (weight is not None and not weight.is_floating_point()):
        raise TypeError("target and weight must be real, and weight floating point.")
    shape, wanted = tuple(logits.shape), tuple(target.shape)
    if task == "softmax2":
        if len(shape) < 2 or shape[1] != 2 or wanted != shape[:1] + shape[2:]:
            raise ValueError(
                f"task='softmax2' wants logits (N, 2) and target (N,); got {shape} and {wanted}."
                + (" For one logit a row use task='binary'." if shape == wanted else "")
            )
        if target.is_floating_point():
            raise TypeError(
                f"task='softmax2' wants integer class targets (0 or 1); got {target.dtype}. Use target.long()."
            )
    elif task == "multilabel":
        if len(shape) != 2 or shape != wanted or shape[1] != num_labels:
            raise ValueError(
                f"task='multilabel' wants logits and target (N, {num_labels}); got {shape} and {wanted}."
            )
    elif shape != wanted:
        hint = "reshape one to the other"
        if shape[:1] == wanted and shape[1:] == (1,):
            hint = "use logits.squeeze(1)"
        elif shape[:1] == wanted and shape[1:] == (2,):
            hint = "for two softmax columns use task='softmax2'"
        raise ValueError(
            f"task='binary' wants logits and target of one shape; got {shape} and {wanted}: {hint}."
        )
    if weight is not None and tuple(weight.shape) != wanted:
        raise ValueError(
            f"weight must have the target's shape {wanted}; got {tuple(weight.shape)}. Expand it explicitly."
        )


def _check_values(
    logits: Tensor, target: Tensor, weight: Tensor | None, ignore_index: int | None, *, nan: bool
) -> None:
    kept = torch.ones_like(target, dtype=torch.bool) if ignore_index is None else target != ignore_index
    if target.dtype != torch.bool:
        low, high = ((target >= 0) | ~kept).all(), ((target <= 1) | ~kept).all()
        if not bool(low & high):
            bad = target[kept & ~((target >= 0) & (target <= 1))][0].item()
            raise ValueError(
                f"target must lie in [0, 1]; got {bad}. Map your labels to 0 and 1, or name the value to skip "
                "as ignore_index."
            )
    if weight is not None and not bool(((weight >= 0) & (weight < torch.inf)).all()):
        raise ValueError("weight must be finite and zero or more; got a negative number, infinity or NaN.")
    if nan and bool(torch.isnan(logits).any()):
        count = int(torch.isnan(logits).sum())
        raise FloatingPointError(
            f"logits hold {count} NaN of {logits.numel()}. Look for a learning rate too high, or for log(0) or "
            "0/0 in the model; check=False lets them through."
        )
