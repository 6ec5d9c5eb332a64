"""Rows of one column whose loss and gradient a compiled kernel computes in one pass: what C and Triton share."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from fbeta.losses.counting import Decisions, soft_decisions
from fbeta.losses.kernels.formula import evaluate
from fbeta.losses.kernels.plain import Beside, Counted, Elements, PlainRows, SoftScore, Weighed, usual
from fbeta.losses.memory import batched, ordinary
from fbeta.losses.task import convert

#: Costs beyond this are computed with in double precision.
LARGEST = 1e30


class CompiledRows(PlainRows, ABC):
    """Rows that a compiled kernel reads as they are: logits z, targets y, weights w or None, an ignored target.

    A kernel computes elements that it knows by name; others, and second derivatives, go through plain torch. `check`
    asks the same pass whether targets and weights are valid, where that costs nothing: on the CPU.
    """

    #: Names of elements that there is a kernel for.
    knows: frozenset[str]

    def __init__(self, z: Tensor, y: Tensor, w: Tensor | None, ignore_index: int | None, check: bool = False) -> None:
        self.z, self.y, self.w, self.ignore_index, self.check = z, y, w, ignore_index, check
        if w is None and ignore_index is None:
            self.known = float(z.numel())

    @staticmethod
    @abstractmethod
    def reads(z: Tensor, y: Tensor, w: Tensor | None) -> bool:
        """Whether the kernels know the types of these tensors."""

    @classmethod
    def supports(cls, z: Tensor, y: Tensor, w: Tensor | None = None) -> bool:
        """Whether the kernels take these tensors as they are: known types, one device and shape, no gaps."""
        if not cls.reads(z, y, w):
            return False
        for x in (z, y) if w is None else (z, y, w):
            if x.device != z.device or x.layout != torch.strided or x.shape != z.shape or not x.is_contiguous():
                return False
        return True

    @abstractmethod
    def run(self, kernel: str, numbers: Any, soft: bool, factor: float, gradient: bool) -> tuple[Any, Tensor | None]:
        """(Σwℓ, Σw, TP, FP, FN, TN), and factor·w·∂ℓ/∂z if a gradient is wanted; counts are `soft` or hard.

        "linear" is the tangent loss at q = 1, of which either the counts or the gradient are wanted. Sums are floats
        where the host has them, else a tensor of double precision.
        """

    @abstractmethod
    def scale_(self, gradient: Tensor, by: Any) -> Tensor:
        """Multiply in place; the usual 1 costs nothing."""

    @property
    def plain(self) -> PlainRows:
        """The same rows in plain torch."""
        return PlainRows(convert(self.z, self.y, self.w, ignore_index=self.ignore_index))

    @property
    def dtype(self) -> torch.dtype:
        """The type of a loss: at least single precision."""
        return torch.promote_types(self.z.dtype, torch.float32)

    @property
    def needs_gradient(self) -> bool:
        """Whether a gradient by the logits is wanted; an evaluation writes none."""
        return self.z.requires_grad and torch.is_grad_enabled()

    def weigh(self, elements: Elements, counting: Decisions | None = None, factor: float = 1.0) -> Weighed:
        """One pass for loss, gradient and counts."""
        if getattr(elements, "kernel", None) not in self.knows:
            return self.plain.weigh(elements, counting, factor)
        soft, numbers = counting is soft_decisions, elements.numbers  # type: ignore[attr-defined]
        sums, gradient = self.run(elements.kernel, numbers, soft, factor, self.needs_gradient)  # type: ignore[attr-defined]
        if not usual(sums[1]):
            return self.plain.weigh(elements, counting, factor)
        return _CompiledWeighed(self, elements, sums, gradient, counting is not None, factor)

    def count(self, squash: Decisions, exact: bool = False) -> Counted:
        """One pass to count; a second one, in the backward pass, for the gradient."""
        if squash is not soft_decisions:
            return self.plain.count(squash, exact)
        sums, _ = self.run("linear", (0.0, 0.0, 1.0), True, 1.0, False)
        if not usual(sums[1]):
            return self.plain.count(squash, exact)
        return _CompiledCounted(self, sums[2:], exact)

    def attach(self, value: Any, work: "_CompiledWeighed | _CompiledCounted") -> Tensor:
        """A loss that is known already, with the gradient of the work that computed it."""
        dtype = self.dtype
        loss = value.to(dtype) if isinstance(value, Tensor) else torch.scalar_tensor(value, dtype=dtype)
        if self.needs_gradient:
            loss = CompiledLoss.apply(self.z, self.y, self.w, loss, work)  # type: ignore[no-untyped-call]
        return loss


class CompiledLoss(torch.autograd.Function):
    """A loss whose value is known, and whose gradient is known or computed when it is asked for."""

    @staticmethod
    def forward(ctx: Any, z: Tensor, y: Tensor, w: Tensor | None, value: Tensor, work: Any) -> Tensor:
        """Hand over the value."""
        ctx.save_for_backward(z, y, w)
        ctx.work = work
        return value

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        """Hand over the gradient, scaled where the incoming one is not 1."""
        rows = ctx.work.rows

        # Only where it is needed: torch refuses tensors that were changed in place.
        def again() -> CompiledRows:
            return type(rows)(*ctx.saved_tensors, rows.ignore_index)  # type: ignore[no-any-return]

        if torch.is_grad_enabled():  # a second derivative is wanted
            same = again()
            loss = ctx.work.plain_loss(same.plain)
            (gradient,) = torch.autograd.grad(loss, same.z, upstream.to(loss.dtype), create_graph=True)
        elif ordinary(upstream) and not batched(upstream):
            gradient = ctx.work.gradient(upstream, again)
        else:
            gradient = ctx.work.gradient(torch.ones((), device=rows.z.device), again) * upstream
        return gradient, None, None, None, None


class _CompiledWeighed(Weighed):
    def __init__(
        self, rows: CompiledRows, elements: Any, sums: Any, gradient: Any, counted: bool, factor: float
    ) -> None:
        self.rows, self.elements, self.factor = rows, elements, factor
        self.found, self.written = sums, gradient
        self.mass: Any = sums[1] if rows.known is None else rows.known
        self.cells = sums[2:] if counted else None

    @property
    def sums(self) -> Tensor:
        sums = torch.as_tensor(self.found, dtype=torch.float64)
        return sums[:2] if self.cells is None else sums

    def loss(self, scale: float | Tensor) -> Tensor:
        self.scale = scale
        return self.rows.attach(self.found[0] * scale, self)

    def gradient(self, upstream: Tensor, again: Callable[[], CompiledRows]) -> Tensor:
        # Handed over, not kept: autograd may then use the buffer itself. A second call makes a new one.
        written, self.written = self.written, None
        if written is None:
            _, written = again().run(self.elements.kernel, self.elements.numbers, False, self.factor, True)
        if isinstance(self.scale, Tensor) or self.scale != self.factor:  # not known before the pass
            upstream = upstream * (self.scale / self.factor)
        return self.rows.scale_(written, upstream)

    def plain_loss(self, rows: PlainRows) -> Tensor:
        return rows.weigh(self.elements).loss(self.scale)


class _CompiledCounted(Counted):
    def __init__(self, rows: CompiledRows, counts: Any, exact: bool) -> None:
        self.rows, self.counts, self.exact = rows, counts, exact

    @property
    def cells(self) -> Tensor:
        return torch.as_tensor(self.counts, dtype=torch.float64)

    def loss(self, score: SoftScore, population: Tensor | None, beside: Beside | None) -> Tensor:
        self.question = score, population, beside
        try:
            found = evaluate(score, self.counts if beside is None else self.cells + beside.counts, population)
        except (TypeError, AttributeError, ValueError):  # a formula that takes tensors only
            return self.plain_loss(self.rows.plain)
        self.costs = found[1:]
        if not isinstance(self.costs[0], Tensor) and max(map(abs, self.costs)) > LARGEST:
            return self.plain_loss(self.rows.plain)  # a class that weighs next to nothing
        return self.rows.attach(found[0], self)

    def gradient(self, upstream: Tensor, again: Callable[[], CompiledRows]) -> Tensor:
        costs, beside = self.costs, self.question[2]
        by: Any = upstream if beside is None else upstream * beside.lever
        if isinstance(costs, Tensor):
            costs = costs * by
        else:
            by = by if isinstance(costs[0], Tensor) else float(by)
            costs = (costs[0] * by, costs[1] * by, costs[2])
        # The gradient of a metric of soft counts is that of the tangent loss with q = 1 at its slopes.
        _, gradient = again().run("linear", costs, True, 1.0, True)
        assert gradient is not None
        return gradient

    def plain_loss(self, rows: PlainRows) -> Tensor:
        return rows.count(soft_decisions, self.exact).loss(*self.question)
