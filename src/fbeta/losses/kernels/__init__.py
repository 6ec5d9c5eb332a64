"""The fused path: loss and gradient in one pass over the logits, on the CPU (C) and on CUDA (Triton).

`choose` says whether kernels take these tensors; the losses call them through the autograd functions here, and
fall back to the plain path wherever they do not: under torch.compile (which fuses the plain path itself), under
functional transforms, in types or layouts that the kernels do not read.
"""

from __future__ import annotations

import functools
import os
import warnings
from collections.abc import Callable
from types import ModuleType
from typing import Any, TypeAlias

import torch
from torch import Tensor

from fbeta.losses.task import keeps
from fbeta.metrics import Confusion

#: From logits, the factor of the gradient and whether it is wanted: sums (Σwℓ, Σw) and the gradient.
Pass: TypeAlias = Callable[[Tensor, float, bool], tuple[Tensor, Tensor | None]]

#: Set FBETA_FUSED=0 to keep to the plain path.
ENABLED = os.environ.get("FBETA_FUSED", "1") != "0"


def choose(z: Tensor, y: Tensor, w: Tensor | None) -> ModuleType | None:
    """The kernels for these tensors, `cpu` or `cuda`, or None for the plain path.

    >>> choose(torch.zeros(3, dtype=torch.float16), torch.zeros(3), None) is None
    True
    """
    if not ENABLED or not ordinary(z, y, w) or z.numel() == 0:
        return None
    if any(x is not None and x.requires_grad for x in (y, w)):
        return None  # the kernels know no gradient by targets or weights
    kernels = _cuda() if z.is_cuda else _cpu() if z.device.type == "cpu" else None
    return kernels if kernels is not None and kernels.supports(z, y, w) else None


def ordinary(*tensors: Tensor | None) -> bool:
    """Whether tensors have memory to point at: fake, functional and subclassed ones have not, nor has a compiler's.

    >>> ordinary(torch.zeros(2), None)
    True
    """
    if torch.compiler.is_compiling() or torch._C._functorch.peek_interpreter_stack() is not None:
        return False
    return all(x is None or type(x) in (Tensor, torch.nn.Parameter) for x in tensors)


def at_hand(*tensors: Tensor | None) -> bool:
    """Whether the host may look at the numbers without waiting for a device.

    >>> at_hand(torch.zeros(2), None)
    True
    """
    return ordinary(*tensors) and all(x is None or x.device.type == "cpu" for x in tensors)


@functools.cache
def _cpu() -> ModuleType | None:
    from fbeta.losses.kernels import cpu

    return cpu if cpu.available() else None


@functools.cache
def _cuda() -> ModuleType | None:
    try:
        from fbeta.losses.kernels import cuda
    except ImportError:
        warnings.warn("Triton is not installed: losses on CUDA take the plain, slower path.", stacklevel=2)
        return None
    return cuda


def mixed(one: Pass, other: Pass, share: float | Tensor) -> Pass:
    """A pass of (1 − share)·ℓ₁ + share·ℓ₂ from those of two row losses; a loss that has no part is not computed.

    >>> def of(loss):
    ...     return lambda z, factor, grad: (torch.tensor([loss, 1.0]), torch.full_like(z, factor * loss))
    >>> mixed(of(1.0), of(3.0), 0.25)(torch.zeros(2), 2.0, True)
    (tensor([1.5000, 1.0000]), tensor([3., 3.]))
    """
    if isinstance(share, float) and share in (0.0, 1.0):
        return other if share else one

    def run(z: Tensor, factor: float, grad: bool) -> tuple[Tensor, Tensor | None]:
        exact = z.to(torch.promote_types(z.dtype, torch.float32))  # the mix is rounded, not its parts
        (sums, gradient), (others, second) = one(exact, factor, grad), other(exact, factor, grad)
        total = (1 - share) * sums + share * others
        if gradient is None or second is None:
            return total, None
        part = share.to(exact.dtype) if isinstance(share, Tensor) else share
        return total, gradient.lerp_(second, part).to(z.dtype)

    return run


class RowSum(torch.autograd.Function):
    """factor·Σwℓ of a row loss whose kernel has made the gradient already, and the kernel's sums.

    `run` gives sums and gradient of the logits, `plain` the differentiable value, for a second derivative.
    """

    @staticmethod
    def forward(
        ctx: Any,
        z: Tensor,
        run: Callable[[Tensor], tuple[Tensor, Tensor | None]],
        plain: Callable[[Tensor], Tensor],
        factor: float,
        kernels: ModuleType,
    ) -> tuple[Tensor, Tensor]:
        """Run the kernel."""
        sums, ctx.gradient = run(z)
        ctx.save_for_backward(z)
        ctx.run, ctx.plain, ctx.kernels = run, plain, kernels
        ctx.mark_non_differentiable(sums)
        return (factor * sums[0]).to(torch.promote_types(z.dtype, torch.float32)), sums

    @staticmethod
    def backward(ctx: Any, upstream: Tensor, _: Any) -> tuple[Tensor | None, ...]:
        """Hand over the gradient, scaled where the incoming one is not 1."""
        (z,) = ctx.saved_tensors
        if torch.is_grad_enabled():  # a second derivative is wanted
            (gradient,) = torch.autograd.grad(ctx.plain(z), z, upstream, create_graph=True)
        else:
            # Handed over, not kept: autograd may then use the buffer itself. A second call makes a new one.
            gradient, ctx.gradient = ctx.gradient, None
            if gradient is None:
                _, gradient = ctx.run(z)
            gradient = ctx.kernels.scale_(gradient, upstream)
        return gradient, None, None, None, None


class SoftCounts(torch.autograd.Function):
    """Soft TP, FP, FN, TN of logits, as numbers with a gradient."""

    @staticmethod
    def forward(
        ctx: Any, z: Tensor, y: Tensor, w: Tensor | None, ignore_index: int | None, kernels: ModuleType
    ) -> Tensor:
        """Count."""
        ctx.save_for_backward(z, y, *(() if w is None else (w,)))
        ctx.ignore_index, ctx.kernels = ignore_index, kernels
        counts: Tensor = kernels.soft_counts(z, y, w, ignore_index)
        return counts

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        """Spread the slopes by the four counts over the rows."""
        z, y, *w = ctx.saved_tensors
        k = torch.stack([upstream[0] - upstream[2], upstream[1] - upstream[3]])
        if torch.is_grad_enabled():
            f = torch.sigmoid(z)
            part = y.to(f.dtype)
            gradient = f * (1 - f) * (part * k[0] + (1 - part) * k[1]).to(f.dtype)
            gradient = gradient * w[0] if w else gradient
            if ctx.ignore_index is not None:
                gradient = torch.where(keeps(y, ctx.ignore_index), gradient, 0.0)
        else:
            gradient = ctx.kernels.soft_grad(z, y, w[0] if w else None, ctx.ignore_index, k)
        return gradient, None, None, None, None


def soft_score(
    z: Tensor,
    y: Tensor,
    w: Tensor | None,
    ignore_index: int | None,
    kernels: ModuleType,
    metric: Any,
    population: Tensor | None,
) -> Tensor | None:
    """1 − M of the batch's soft counts with its slopes from one kernel, or None where there is none."""
    if not kernels.scores(metric):
        return None  # asked before anything is counted: the other way counts for itself
    with torch.no_grad():
        point = kernels.score(metric, kernels.soft_counts(z, y, w, ignore_index), population)
    function: Any = SoftScore.apply
    value: Tensor = function(z, y, w, ignore_index, kernels, point, metric, population)
    return value


class SoftScore(torch.autograd.Function):
    """1 − M of soft counts whose value and slopes (`point`) are known already."""

    @staticmethod
    def forward(
        ctx: Any,
        z: Tensor,
        y: Tensor,
        w: Tensor | None,
        ignore_index: int | None,
        kernels: ModuleType,
        point: Tensor,
        metric: Any,
        population: Tensor | None,
    ) -> Tensor:
        """Hand over the value."""
        ctx.save_for_backward(z, y, *(() if w is None else (w,)))
        ctx.rest = ignore_index, kernels, point, metric, population
        return point[0].to(torch.promote_types(z.dtype, torch.float32))

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        """Spread the slopes over the rows; for a second derivative go through the counts again."""
        z, y, *w = ctx.saved_tensors
        weight = w[0] if w else None
        ignore_index, kernels, point, metric, population = ctx.rest
        if torch.is_grad_enabled():
            count: Any = SoftCounts.apply
            counts = count(z, y, weight, ignore_index, kernels)
            c = Confusion(*counts.unbind())
            loss = 1 - metric(c if population is None else c.at_prevalence(population))
            (gradient,) = torch.autograd.grad(loss, z, upstream.to(loss.dtype), create_graph=True)
        else:
            gradient = kernels.soft_grad(z, y, weight, ignore_index, point[1:] * upstream)
        return gradient, None, None, None, None, None, None, None
