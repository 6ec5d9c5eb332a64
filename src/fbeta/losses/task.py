"""What the caller's tensors mean: one task, one shape, no guessing, nothing broadcast silently."""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from fbeta.losses.memory import finite, on_host
from fbeta.losses.options import one_of

#: "binary": logits and target alike, any shape. "softmax2": logits (N, 2, *), integer target (N, *).
#: "multilabel": logits and target (N, K). "multiclass": logits (N, C, *), integer target (N, *).
TASKS = ("binary", "softmax2", "multilabel", "multiclass")
#: Tasks with a column for each label or class.
WIDE = ("multilabel", "multiclass")
#: Over labels or classes; "each" takes labels for problems of their own, "samples" is the mean over rows or images.
AVERAGES = ("macro", "micro", "each", "samples")


class Batch(NamedTuple):
    """Logits z, targets in [0, 1] and weights of one shape and one type (at least single precision).

    Shape: ``(*)``, or ``(N, K)`` for "multilabel", or ``(rows, C)`` for "multiclass", whose logits are then each
    class's against the rest. Ignored elements have weight 0 and harmless contents.
    """

    logits: Tensor
    target: Tensor
    weight: Tensor


@dataclass(frozen=True)
class Reader:
    """What a caller's tensors are taken for: the task, its columns, a target to ignore, and which values are looked at.

    `check` looks at values as well as shapes: True always (it waits for the device), False never, None where that is
    possible without waiting (on the CPU, outside of compilation and transforms). NaN logits are refused by True
    alone: gradient scaling needs them to pass.
    """

    task: str = "binary"
    num_labels: int | None = None
    average: str = "macro"
    ignore_index: int | None = None
    check: bool | None = None

    def __post_init__(self) -> None:
        task, labels = self.task, self.num_labels
        one_of("task", task, TASKS)
        least = 2 if task == "multiclass" else 1
        if task in WIDE and (labels is None or labels < least):
            raise ValueError(
                f"task={task!r} needs num_labels (the number of labels or classes, from {least}); got {labels!r}. "
                "State must have its shape before load_state_dict."
            )
        if task not in WIDE and labels is not None:
            raise ValueError(f"num_labels belongs to task='multilabel' or 'multiclass'; got it with {task!r}.")
        several = AVERAGES if task == "multilabel" else AVERAGES[:2]
        one_of("average", self.average, several if task in WIDE else (*several, "samples"))

    @property
    def columns(self) -> bool:
        """Whether labels or classes are counted and priced apart."""
        return self.task in WIDE and self.average not in ("micro", "samples")

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one number per column."""
        return (self.num_labels or 1,) if self.columns else ()

    def validate(self, logits: Tensor, target: Tensor, weight: Tensor | None = None) -> None:
        """Refuse tensors that do not fit the task."""
        check_shapes(logits, target, weight, self.task, self.num_labels)
        if self.check or (self.check is None and on_host(target, weight)):
            last = (self.num_labels or 2) - 1 if self.task == "multiclass" else 1
            check_values(logits, target, weight, self.ignore_index, last=last, nan=bool(self.check))

    def read(self, logits: Tensor, target: Tensor, weight: Tensor | None = None) -> Batch:
        """Check tensors and bring them to one form, shape and type."""
        self.validate(logits, target, weight)
        return convert(logits, target, weight, task=self.task, ignore_index=self.ignore_index)


def convert(
    logits: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    *,
    task: str = "binary",
    ignore_index: int | None = None,
) -> Batch:
    """Bring valid tensors to one form, shape and type."""
    # Half precision holds the input, not the arithmetic.
    dtype = torch.promote_types(logits.dtype, torch.float32)
    z = margin(logits) if task == "softmax2" else logits.to(dtype)
    if task == "multiclass":
        z, target = z.movedim(1, -1).reshape(-1, z.shape[1]), target.reshape(-1, 1)
        weight = None if weight is None else weight.reshape(-1, 1)
    kept = None if ignore_index is None else keeps(target, ignore_index)
    if kept is not None:
        zero = torch.zeros((), dtype=dtype, device=z.device)
        z, target = torch.where(kept, z, zero), torch.where(kept, target, torch.zeros_like(target))
    if task == "multiclass":
        z, target = one_against_rest(z), target == torch.arange(z.shape[1], device=z.device)
        weight = None if weight is None else weight.expand(z.shape)
    if weight is None:
        w = torch.ones_like(z)
    else:
        w = weight.to(dtype)
        if not finite(z):  # a row of no weight is left out, even of an infinite loss
            z = z.masked_fill(z.isinf() & (w == 0), 0.0)
    if kept is not None:
        w = torch.where(kept, w, zero)
    return Batch(z, target.to(dtype), w)


def margin(logits: Tensor) -> Tensor:
    """The one logit z = l₁ − l₀ of two softmax columns, in at least single precision."""
    z = logits.to(torch.promote_types(logits.dtype, torch.float32))
    return z[:, 1] - z[:, 0]


def one_against_rest(logits: Tensor) -> Tensor:
    r"""Logits of each class against all others, of a softmax over the last axis.

    .. math:: z_k = \log\frac{f_k}{1 - f_k} = l_k - \log \sum_{j \ne k} e^{l_j}, \qquad f = \operatorname{softmax}(l)

    Shape: ``(*, C)``, C ≥ 2; the same comes back.

    >>> one_against_rest(torch.tensor([1.0, 1.0, 1.0])).exp()
    tensor([0.5000, 0.5000, 0.5000])
    """
    top = torch.nn.functional.one_hot(logits.argmax(-1), logits.shape[-1]).bool()
    # Of the top class 1 − f may round to zero, so the others are summed; of any other class f ≤ ½.
    rest = torch.where(top, -torch.inf, logits).logsumexp(-1, keepdim=True)
    log_f = torch.where(top, -1.0, logits.log_softmax(-1))
    return torch.where(top, logits - rest, log_f - torch.log1p(-torch.exp(log_f)))


def keeps(target: Tensor, ignore_index: int) -> Tensor:
    """Which elements count; compared in 64 bits, for 255 is not −1 though a narrow type may think so.

    >>> keeps(torch.tensor([1, -1], dtype=torch.int8), 255)
    tensor([True, True])
    """
    return (target if target.is_floating_point() else target.long()) != ignore_index


def check_shapes(
    logits: Tensor, target: Tensor, weight: Tensor | None, task: str = "binary", num_labels: int | None = None
) -> None:
    """Refuse tensors whose types or shapes do not fit the task, and say what would."""
    for name, x in (("logits", logits), ("target", target), ("weight", weight)):
        if x is not None and not isinstance(x, Tensor):
            raise TypeError(f"{name} must be a tensor; got {type(x).__name__}. Use torch.as_tensor({name}).")
    if not logits.is_floating_point():
        raise TypeError(f"logits must be floating point; got {logits.dtype}.")
    if target.is_complex():
        raise TypeError(f"target must be real; got {target.dtype}.")
    if weight is not None and not weight.is_floating_point():
        raise TypeError(f"weight must be floating point; got {weight.dtype}. Use weight.float().")
    shape, wanted = tuple(logits.shape), tuple(target.shape)
    if task in ("softmax2", "multiclass"):
        classes = num_labels if task == "multiclass" else 2
        if len(shape) < 2 or shape[1] != classes or wanted != shape[:1] + shape[2:]:
            raise ValueError(
                f"task={task!r} wants logits (N, {classes}) and target (N,), or maps (N, {classes}, H, W) and "
                f"(N, H, W); got {shape} and {wanted}."
                + (" For one logit per row use task='binary'." if shape == wanted else "")
            )
        if target.is_floating_point():
            known = "0 or 1" if classes == 2 else f"0 to {(classes or 0) - 1}"
            raise TypeError(
                f"task={task!r} wants integer class targets ({known}); got {target.dtype}. Use target.long()."
            )
    elif task == "multilabel":
        if len(shape) != 2 or shape != wanted or shape[1] != num_labels:
            maps = len(shape) > 2 and shape == wanted and shape[1] == num_labels
            raise ValueError(
                f"task='multilabel' wants logits and target (N, {num_labels}); got {shape} and {wanted}."
                + (f" A pixel is a row: x.movedim(1, -1).reshape(-1, {num_labels}) of both." if maps else "")
            )
    elif shape != wanted:
        hint = "reshape one to the other"
        if shape[1:2] == (1,) and shape[:1] + shape[2:] == wanted:
            hint = "use logits.squeeze(1)"
        elif wanted[1:2] == (1,) and wanted[:1] + wanted[2:] == shape:
            hint = "use target.squeeze(1)"
        elif shape[1:2] == (2,) and shape[:1] + shape[2:] == wanted:
            hint = "for two softmax columns use task='softmax2'"
        elif len(shape) > 1 and shape[:1] + shape[2:] == wanted:
            hint = f"for classes use task='multiclass', num_labels={shape[1]}"
        raise ValueError(f"task='binary' wants logits and target of one shape; got {shape} and {wanted}: {hint}.")
    if weight is not None and tuple(weight.shape) != wanted:
        raise ValueError(
            f"weight must have the target's shape {wanted}; got {tuple(weight.shape)}. Expand it explicitly."
        )


def check_values(
    logits: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    ignore_index: int | None = None,
    *,
    last: int = 1,
    nan: bool = False,
) -> None:
    """Refuse targets outside [0, last], weights that are not finite and zero or more, and with `nan` NaN logits."""
    if ignore_index is None and not nan and _within(target, last) and (weight is None or _within(weight)):
        return  # the usual case, in one look at each
    kept = torch.ones_like(target, dtype=torch.bool) if ignore_index is None else keeps(target, ignore_index)
    if target.dtype != torch.bool:
        fine = (target >= 0) & (target <= last) | ~kept
        if not bool(fine.all()):
            bad = target[~fine][0].item()
            if bad != bad:
                raise ValueError(
                    "target holds NaN, which is no label: drop those rows, or skip them by a number, "
                    "torch.nan_to_num(target, nan=-1) with ignore_index=-1."
                )
            labels = "0 and 1" if last == 1 else f"0 … {last}"
            raise ValueError(
                f"target must lie in [0, {last}]; got {bad}. Map your labels to {labels}, or name the value to "
                "skip as ignore_index."
            )
    if weight is not None and not bool((((weight >= 0) & (weight < torch.inf)) | ~kept).all()):
        raise ValueError("weight must be finite and zero or more; got a negative number, infinity or NaN.")
    broken = torch.isnan(logits) & (kept if kept.shape == logits.shape else kept.unsqueeze(1)) if nan else None
    if broken is not None and bool(broken.any()):
        count = int(broken.sum())
        raise FloatingPointError(
            f"logits hold {count} NaN of {logits.numel()}. Look for a learning rate too high, or for log(0) or "
            "0/0 in the model; check=False lets them through."
        )


def _within(x: Tensor, last: float = torch.finfo(torch.float32).max) -> bool:
    if x.dtype == torch.bool or x.numel() == 0:
        return True
    low, high = x.aminmax()
    return bool((low >= 0) & (high <= last))  # of NaN neither is true
