"""Rows of one column whose loss and gradient a compiled kernel computes in one pass: what C and Triton share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import torch
from torch import Tensor

from fbeta.losses.counting import Decisions, soft_decisions
from fbeta.losses.kernels.formula import evaluate
from fbeta.losses.kernels.plain import Beside, Counted, Elements, Rows, SoftScore, Weighed
from fbeta.losses.memory import batched, ordinary
from fbeta.losses.task import convert


class CompiledRows(Rows, ABC):
    """Rows that a compiled kernel reads as they are: logits z, targets y, weights w or None, an ignored target.

    A kernel gives (Σwℓ, Σw, TP, FP, FN, TN) and the gradient of the elements that it knows by name; what it does not
    know, and what asks for a second derivative, goes through plain torch.
    """

    #: Names of elements that there is a kernel for.
    knows: frozenset[str]

    def __init__(self, z: Tensor, y: Tensor, w: Tensor | None, ignore_index: int | None) -> None:
        self.z, self.y, self.w, self.ignore_index = z, y, w, ignore_index
        if w is None and ignore_index is None:
            self.known = float(z.numel())

    @abstractmethod
    def run(self, elements: Any, soft: bool, factor: float, gradient: bool) -> tuple[Any, Tensor | None]:
        """(Σwℓ, Σw, TP, FP, FN, TN), and factor·w·∂ℓ/∂z if a gradient is wanted; counts are `soft` or hard."""

    @abstractmethod
    def soft_counts(self) -> Any:
        """Soft TP, FP, FN and TN: floats where the host has them, else a tensor of double precision."""

    @abstractmethod
    def soft_gradient(self, slopes: Any, scale: Any) -> Tensor:
        """scale·w·f(1 − f)·(y·k₁ + (1 − y)·k₀), given the slopes (k₁, k₀)."""

    @abstractmethod
    def scale_(self, gradient: Tensor, by: Any) -> Tensor:
        """Multiply in place; the usual 1 costs nothing."""

    @property
    def plain(self) -> Rows:
        """The same rows in plain torch."""
        return Rows(convert(self.z, self.y, self.w, ignore_index=self.ignore_index))

    def again(self, z: Tensor, y: Tensor, w: Tensor | None) -> CompiledRows:
        """Rows of the same kind."""
        return type(self)(z, y, w, self.ignore_index)

    @property
    def needs_gradient(self) -> bool:
        """Whether a gradient by the logits is wanted; an evaluation writes none."""
        return self.z.requires_grad and torch.is_grad_enabled()

    def weigh(self, elements: Elements, counting: Decisions | None = None, factor: float = 1.0) -> Weighed:
        """One pass for loss, gradient and counts."""
        if getattr(elements, "kernel", None) not in self.knows:
            return self.plain.weigh(elements, counting, factor)
        soft = counting is soft_decisions
        sums, gradient = self.run(elements, soft, factor, self.needs_gradient)
        return _CompiledWeighed(self, elements, sums, gradient, counting is not None, factor)

    def count(self, squash: Decisions, exact: bool = False) -> Counted:
        """One pass to count; a second one, in the backward pass, for the gradient."""
        if squash is not soft_decisions:
            return self.plain.count(squash, exact)
        return _CompiledCounted(self, self.soft_counts(), exact)

    @property
    def dtype(self) -> torch.dtype:
        """The type of a loss: at least single precision."""
        return torch.promote_types(self.z.dtype, torch.float32)

    def number(self, value: Any) -> Tensor:
        """A loss as a tensor."""
        if isinstance(value, Tensor):
            return value.to(self.dtype)
        return torch.scalar_tensor(value, dtype=self.dtype)


class _Work(ABC):
    """A loss whose value is known, and how its gradient is computed when it is asked for."""

    rows: CompiledRows

    def attach(self, value: Any) -> Tensor:
        """The value as a tensor, with its gradient."""
        rows = self.rows
        number = rows.number(value)
        if not rows.needs_gradient:
            return number
        attached: Tensor = CompiledLoss.apply(rows.z, rows.y, rows.w, number, self)  # type: ignore[no-untyped-call]
        return attached

    @abstractmethod
    def gradient(self, upstream: Any, rows: Any) -> Tensor:
        """`upstream` times the gradient; ``rows()`` gives the rows again, or an error if they have changed."""

    @abstractmethod
    def objective(self, rows: Rows) -> Tensor:
        """The same loss in plain torch, to be differentiated twice."""


class CompiledLoss(torch.autograd.Function):
    """A value that is known already, with the gradient of the work that computed it."""

    @staticmethod
    def forward(ctx: Any, z: Tensor, y: Tensor, w: Tensor | None, value: Tensor, work: _Work) -> Tensor:
        """Hand over the value."""
        ctx.save_for_backward(z, y, w)
        ctx.work = work
        return value

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        """Hand over the gradient, scaled where the incoming one is not 1."""
        work: _Work = ctx.work

        def rows() -> (
            CompiledRows
        ):  # asked for only where it is needed: torch refuses tensors that were changed
            return work.rows.again(*ctx.saved_tensors)

        if torch.is_grad_enabled():  # a second derivative is wanted
            again = rows()
            (gradient,) = torch.autograd.grad(
                work.objective(again.plain), again.z, upstream, create_graph=True
            )
        elif ordinary(upstream) and not batched(upstream):
            gradient = work.gradient(upstream, rows)
        else:
            gradient = work.gradient(torch.ones_like(work.rows.number(0.0)), rows) * upstream
        return gradient, None, None, None, None


class _CompiledWeighed(_Work):
    def __init__(
        self,
        rows: CompiledRows,
        elements: Elements,
        sums: Any,
        gradient: Tensor | None,
        counted: bool,
        factor: float,
    ) -> None:
        self.rows, self.elements, self.written, self.factor = rows, elements, gradient, factor
        self._sums, self._counted = sums, counted
        self.mass: float | Tensor = sums[1] if rows.known is None else rows.known
        self.cells = sums[2:] if counted else None

    @property
    def sums(self) -> Tensor:
        sums = torch.as_tensor(self._sums, dtype=torch.float64)
        return sums if self._counted else sums[:2]

    @property
    def weighted(self) -> Tensor:
        return self.rows.plain.weigh(self.elements).weighted

    def loss(self, scale: float | Tensor) -> Tensor:
        self.scale = scale
        return self.attach(self._sums[0] * scale)

    def gradient(self, upstream: Any, rows: Any) -> Tensor:
        # Handed over, not kept: autograd may then use the buffer itself. A second call makes a new one.
        written, self.written = self.written, None
        if written is None:
            _, written = rows().run(self.elements, False, self.factor, True)
            assert written is not None
        if isinstance(self.scale, Tensor) or self.scale != self.factor:  # not known before the pass
            upstream = upstream * (self.scale / self.factor)
        return self.rows.scale_(written, upstream)

    def objective(self, rows: Rows) -> Tensor:
        return rows.weigh(self.elements).loss(self.scale)


class _CompiledCounted(_Work):
    def __init__(self, rows: CompiledRows, counts: Any, exact: bool) -> None:
        self.rows, self.counts, self.exact = rows, counts, exact

    @property
    def cells(self) -> Tensor:
        return torch.as_tensor(self.counts, dtype=torch.float64)

    def loss(self, score: SoftScore, population: Tensor | None, beside: Beside | None) -> Tensor:
        counts = self.counts if beside is None else self.cells + beside.counts
        try:
            found = evaluate(score, counts, population)
        except (TypeError, AttributeError, ValueError):  # a formula that takes tensors only
            return self.rows.plain.count(soft_decisions, self.exact).loss(score, population, beside)
        self.slopes, self.question = found[1:], (score, population, beside)
        return self.attach(found[0])

    def gradient(self, upstream: Any, rows: Any) -> Tensor:
        _, _, beside = self.question
        return rows().soft_gradient(self.slopes, upstream if beside is None else upstream * beside.lever)  # type: ignore[no-any-return]

    def objective(self, rows: Rows) -> Tensor:
        return rows.count(soft_decisions, self.exact).loss(*self.question)
