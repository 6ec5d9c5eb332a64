"""The rows of a batch in plain torch: the protocol of every kernel, and what compiled ones fall back to.

A kernel answers two questions about rows: what they cost (`weigh`, for losses that are sums over rows) and what they
count (`count`, for losses of a whole set). Both answers hold sums that ranks can add up, always in one layout and in
double precision, and turn into a loss with a gradient once the sums of all ranks are known.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Self, TypeAlias

import torch
from torch import Tensor

from fbeta.losses.counting import Decisions, cells
from fbeta.losses.memory import on_host
from fbeta.losses.task import Batch
from fbeta.metrics import Confusion, Metric
from fbeta.metrics.dual import Dual

#: The loss of each element, from logits and targets. One that compiled kernels know has the name of theirs as `kernel`.
Elements: TypeAlias = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class SoftScore:
    """One minus a metric of counts, at the population's prevalence if that is known.

    As a formula (see `fbeta.losses.kernels.formula`) it gives the value, 0 if nothing was counted, and the costs of the
    tangent loss that has its gradient: c₀ = ∂/∂FP − ∂/∂TN, c₁ = ∂/∂FN − ∂/∂TP, and q = 1.
    """

    metric: Metric

    def __call__(self, xp: Any, counts: Any, population: Any) -> tuple[Any, Any, Any, Any]:
        """The value, both slopes by dual numbers, and q."""
        some = sum(counts) != 0
        tp, fp, fn, tn = (xp.where(some, c, 1.0) for c in counts)
        zero = self.value(Confusion(Dual(tp), Dual(fp, 1.0), Dual(fn), Dual(tn, -1.0)), population)
        one = self.value(Confusion(Dual(tp, -1.0), Dual(fp), Dual(fn, 1.0), Dual(tn)), population)
        flat = 0.0 * tp
        return xp.where(some, one.value, 0.0), zero.slope + flat, one.slope + flat, 1.0 + flat

    def value(self, counts: Confusion, population: Any = None) -> Any:
        """One minus the metric, for numbers, tensors or dual numbers."""
        return 1.0 - self.metric(counts if population is None else counts.at_prevalence(population))


class Beside(NamedTuple):
    """Counts of other ranks and of a memory beside a batch's own, and by how much its gradient grows."""

    counts: Tensor
    lever: Tensor


class PlainRows:
    """Rows in plain torch, which differentiates, compiles and transforms them as it does everything."""

    #: Σw, where the host knows it before it has looked at the rows.
    known: float | None = None

    def __init__(self, batch: Batch, columns: bool = False) -> None:
        self.batch, self.columns = batch, columns

    @property
    def plain(self) -> "PlainRows":
        """The same rows in plain torch."""
        return self

    @property
    def dtype(self) -> torch.dtype:
        """The type of a loss: at least single precision."""
        return self.batch.logits.dtype

    def weigh(self, elements: Elements, counting: Decisions | None = None, factor: float = 1.0) -> "Weighed":
        """What the rows cost. `factor` is what the gradient will be multiplied with, as far as that is known."""
        z, y, w = self.batch
        mass = w.detach().sum()
        if not usual(mass):
            rows, unit = self._relative()
            part = rows.weigh(elements, counting)
            part.unit, part.cells = unit, None if part.cells is None else unit * part.cells.double()
            return part
        found = None if counting is None else self.cells_of(counting, z.detach()).detach()
        return Weighed(w * elements(z, y), mass, found)

    def count(self, squash: Decisions, exact: bool = False) -> "Counted":
        """What the rows count, `squash` being how a logit becomes a decision; `exact`: in double precision."""
        rows, unit = self, 1.0
        if exact:
            rows = PlainRows(Batch(*(x.double() for x in self.batch)), self.columns)
        elif not usual(self.batch.weight.detach().sum()):
            rows, unit = self._relative()
        return Counted(rows.batch, rows.cells_of(squash, rows.batch.logits), unit)

    def _relative(self) -> tuple[Self, float]:
        """The same rows, the largest weight being one, and what it was."""
        z, y, w = self.batch
        top = w.detach().amax()
        return type(self)(Batch(z, y, w / top), self.columns), float(top)

    def cells_of(self, decisions: Decisions, logits: Tensor) -> Tensor:
        """TP, FP, FN and TN of decisions."""
        return cells(self.batch, decisions(logits), columns=self.columns)


def usual(mass: float | Tensor) -> bool:
    """Whether sums of weights of this size, their parts and inverses fit single precision, if the host may look."""
    if isinstance(mass, Tensor):
        if not on_host(mass):
            return True
        mass = float(mass)
    return mass == 0 or not (mass < 1e-18 or mass > 1e27)  # NaN passes through


class Weighed:
    """What rows cost: the elements wℓ and Σw, both in units of `unit`, and the counts of decisions if asked for."""

    unit: float = 1.0

    def __init__(self, weighted: Tensor, mass: Tensor, found: Tensor | None) -> None:
        self.weighted, self.mass, self.cells = weighted, mass, found

    @property
    def sums(self) -> Tensor:
        """Σwℓ, Σw and the cells, flat, in double precision and without gradient: what ranks add up."""
        both = self.unit * torch.stack([self.weighted.detach().sum(), self.mass]).double()
        return both if self.cells is None else torch.cat([both, self.cells.flatten().double()])

    def loss(self, scale: float | Tensor) -> Tensor:
        """`scale` times Σwℓ, with its gradient."""
        total = self.weighted.sum()
        return total * (scale.to(total.dtype) if isinstance(scale, Tensor) else scale)


class Counted:
    """What rows count: soft TP, FP, FN and TN with a gradient, in units of `unit`, and the batch they come from."""

    def __init__(self, batch: Batch, counts: Tensor, unit: float = 1.0) -> None:
        self.batch, self.counts, self.unit = batch, counts, unit

    @property
    def cells(self) -> Tensor:
        """The counts in double precision, without gradient: what ranks add up."""
        return self.unit * self.counts.detach().double()

    def loss(self, score: SoftScore, population: Tensor | None, beside: Beside | None) -> Tensor:
        """The score of these counts and those beside them, of each column, with its gradient; 0 without counts."""
        mine = self.counts
        if beside is not None:
            mine = with_gradient_times(self.unit * mine.double(), beside.lever) + beside.counts
        # A few numbers from here on: in double precision 1 − π keeps its digits, however rare the negatives.
        counts = mine.double()
        some = counts.detach().sum(0) != 0
        counts = torch.where(some, counts, 1.0)  # where nothing was counted any counts will do
        if population is not None:
            # As `Confusion.at_prevalence`, for positives and negatives at once.
            called, left = counts[:2], counts[2:]
            mass, share = called + left, torch.stack([population, 1 - population])
            rate = called / torch.where(mass == 0, 1.0, mass)
            counts = torch.cat([share * rate, share * (1 - rate)])
        return torch.where(some, score.value(Confusion(*counts.unbind())), 0.0)


def with_gradient_times(x: Tensor, lever: Tensor) -> Tensor:
    """The value of x with `lever` times its gradient."""
    # ∞ − ∞ is no number; any number of times ∞ is ∞.
    return torch.where(x.isinf(), lever * x, x.detach() + lever * (x - x.detach()))


def reported(mine: Tensor, value: Tensor) -> Tensor:
    """A value with the gradient of another: what a rank reports, and what it trains with."""
    found: Tensor = _Reported.apply(mine, value)  # type: ignore[no-untyped-call]
    return found


class _Reported(torch.autograd.Function):
    # Not value + (mine − mine.detach()): an infinite loss has a finite gradient.
    generate_vmap_rule = True

    @staticmethod
    def forward(mine: Tensor, value: Tensor) -> Tensor:
        return value.to(mine.dtype, copy=True)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor, None]:
        return upstream, None

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor, _: Any) -> Tensor:
        return tangent.view_as(tangent)
