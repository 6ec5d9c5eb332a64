"""Bounds of F_β, of precision at a recall and of recall at a precision, with the multiplier trained alongside."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Unpack

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor

from fbeta.losses import ranks
from fbeta.losses.counting import hard_decisions
from fbeta.losses.elements import cast, parts
from fbeta.losses.kernels.formula import evaluate
from fbeta.losses.kernels.plain import Elements, PlainRows
from fbeta.losses.module import RowLoss
from fbeta.losses.options import Options, above_zero, is_number, one_of
from fbeta.losses.pace import PacedConfusion
from fbeta.losses.running import Decay
from fbeta.losses.tangent import TangentElements
from fbeta.metrics import Confusion, FBeta

#: The bounds of false negatives, and of false positives: cross entropy of one class, in bits.
MISSED, ALARMED = TangentElements((0.0, 1 / math.log(2), 0.0)), TangentElements((1 / math.log(2), 0.0, 0.0))
#: Multipliers stay between this and its inverse, so that both classes always pull.
LEAST = 1e-4


def bound_cells(logits: Tensor, target: Tensor, weight: Tensor, kind: str = "logistic", axis: int | None = None) -> Any:
    r"""Bounds of the four cells of the decisions z ≥ 0: TP and TN from below, FP and FN from above.

    .. math:: \overline{FN} = \sum_i w_i y_i \ell(z_i), \quad \overline{FP} = \sum_i w_i (1 - y_i) \ell(-z_i), \qquad
              \ell(z) = \log_2(1 + e^{-z}) \text{ or } \max(0, 1 - z), \text{ both} \ge [z \le 0]

    Shape: inputs ``(*)``; result ``(4,)``, or ``(4, K)`` with the last axis kept by ``axis=0``, in double precision.

    >>> bound_cells(torch.tensor([1.0, -1.0]), torch.tensor([1.0, 0.0]), torch.ones(2), "hinge")
    tensor([1., 0., 0., 1.], dtype=torch.float64)

    Reference: [eban2017]
    """
    one, zero = weight * target, weight * (1 - target)
    if kind == "hinge":
        missed, alarmed = F.relu(1 - logits), F.relu(1 + logits)
    else:
        missed, alarmed = F.softplus(-logits) / math.log(2), F.softplus(logits) / math.log(2)
    # A part of zero is left out, even of an infinite loss.
    missed, alarmed = (torch.where(part == 0, part, part * loss) for part, loss in ((one, missed), (zero, alarmed)))
    shape = (-1,) if axis is None else (-1, target.shape[-1])
    one, zero, missed, alarmed = (x.reshape(shape).sum(0, dtype=torch.float64) for x in (one, zero, missed, alarmed))
    return torch.stack([one - missed, alarmed, missed, zero - alarmed])


@dataclass(frozen=True)
class HingeElements:
    """The hinge under class costs (c₀, c₁)."""

    costs: tuple[float | Tensor, float | Tensor]

    def __call__(self, logits: Tensor, target: Tensor) -> Tensor:
        """In the type of the logits."""
        c0, c1 = cast(self.costs, logits.dtype)
        one, zero = parts(logits, target, (c0, c1))
        return one.share * F.relu(1 - one.logits) + zero.share * F.relu(1 + zero.logits)


@dataclass(frozen=True)
class Bargain:
    """What is maximised and what is kept: class costs at a multiplier λ, and which way λ has to move.

    `kind` is "recall" (kept at `level`, precision is maximised), "precision" (the other way round), or "fbeta", where
    `level` is β² and λ the score that is reached.
    """

    kind: str
    level: float

    def __call__(self, xp: Any, state: Any) -> tuple[Any, Any, Any]:
        """Costs (c₀, c₁), with mean one over the rows that were counted, and q = 0."""
        tp, fp, fn, tn, price = state
        if self.kind == "recall":
            c0, c1 = 1.0 + 0.0 * price, price
        elif self.kind == "precision":
            c0, c1 = price * self.level, 1.0 + price * (1.0 - self.level)
        else:
            c0, c1 = price, 1.0 + self.level - price
        seen = tp + fp + fn + tn
        share = xp.where(seen > 0, tp + fn, 0.5) / xp.where(seen > 0, seen, 1.0)
        mean = share * c1 + (1.0 - share) * c0
        return c0 / mean, c1 / mean, 0.0 * price

    def gap(self, price: Any, tp: Any, fp: Any, fn: Any) -> Any:
        """How much is lacking, as a share: above 0 the multiplier has to rise."""
        positives = tp + fn
        if self.kind == "recall":
            return fn / positives - (1.0 - self.level)
        if self.kind == "precision":
            return (self.level * fp - (1.0 - self.level) * tp) / (positives + fp)
        reached = self.level * positives + tp + fp
        # A bound of TP may be far below zero: then no level is reached.
        known = (reached > 0) * 1.0
        return (1.0 + self.level) * tp * known / (reached * known + 1.0 - known) - price


@dataclass(frozen=True)
class Ascent:
    r"""A step of the running counts, and then of the multiplier: λ ← λ exp(η gap), η = 1 − exp(−P_step/patience)."""

    bargain: Bargain
    decay: Decay
    memory: float
    patience: float

    def __call__(self, xp: Any, state: Any, found: Any) -> tuple[Any, ...]:
        """Counts, and the multiplier."""
        tp, fp, fn, tn = self.decay(xp, state[:4], found, self.memory)
        price, positives, fresh = state[4], tp + fn, found[0] + found[2]
        some = xp.isfinite(found[0] + found[1] + found[2] + found[3]) * (positives > 0)
        lacking = self.bargain.gap(price, tp, fp, xp.where(some, fn, 1.0 - tp))
        eager = 1.0 - xp.exp(-xp.where(some, fresh, 0.0) / self.patience)
        most = 1.0 + self.bargain.level - LEAST if self.bargain.kind == "fbeta" else 1.0 / LEAST
        moved = xp.clip(price * xp.exp(eager * xp.clip(lacking, -1.0, 1.0)), LEAST, most)
        return tp, fp, fn, tn, xp.where(some, moved, price)


class EbanLoss(RowLoss, name="eban"):
    r"""A bound of F_β, of precision at a recall, or of recall at a precision, and the Lagrange multiplier λ with it.

    .. math:: \text{recall} \ge b: \ \min_w \max_{\lambda \ge 0} \ \overline{FP}
              + \lambda\left(\overline{FN} - (1 - b) P\right), \qquad
              \text{precision} \ge a: \ \overline{FN} + \lambda\left(a \overline{FP} - (1 - a) \underline{TP}\right)

    with the cells of `bound_cells`, so that what holds of the bounds holds of the decisions. For F_β it is the level λ
    that the bound reaches,

    .. math:: (1 + \beta^2)\,\underline{TP} - \lambda\left(\beta^2 P + \underline{TP} + \overline{FP}\right) = 0, \qquad
              F_\beta \ge \lambda

    At each λ the loss is cross entropy under two class costs (their mean over the rows is one; what of the Lagrangian
    does not depend on the network is left out). λ is part of the state and rises in training steps by itself, so any
    optimiser will do, and none has to know that one parameter goes up where the others go down.

    - `at`: {"recall": b} maximises precision, {"precision": a} recall; None bounds the metric, an F_β.
    - `bound`: "logistic" or "hinge".
    - `counts`: what λ follows: the "bound", as published, or "hard" decisions, which leave nothing in reserve: a
      bound of a logistic loss meets a recall of 0.9 with far more than that [cotter2019].
    - `memory`, `accumulate`: see `RunningConfusion`. `patience`: positives in which λ moves by a factor of e at most.

    Other arguments: see `Loss`. With `at` the metric is remembered, not used.

    Shape: `logits` and `target` as the task says; result ``()``, or the target's shape if reduction is "none".

    >>> loss = EbanLoss(at={"recall": 0.9})
    >>> value = loss(torch.zeros(4, requires_grad=True), torch.tensor([1.0, 0.0, 0.0, 0.0]))
    >>> round(value.item(), 4), round(loss.multiplier.item(), 4)  # a missed positive will cost more
    (0.6931, 1.009)

    Reference: [eban2017]
    """

    tasks = ("binary", "softmax2", "multilabel")

    def __init__(
        self,
        metric: Any = None,
        prevalence: Any = None,
        *,
        at: Mapping[str, float] | None = None,
        bound: str = "logistic",
        counts: str = "bound",
        memory: float = 200.0,
        patience: float = 100.0,
        accumulate: int | None = 1,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(FBeta(1) if metric is None and at is not None else metric, prevalence, **options)
        one_of("bound", bound, ("logistic", "hinge"))
        one_of("counts", counts, ("bound", "hard"))
        above_zero("patience", patience, "number of positives")
        self.bargain, self.bound, self.counts = self._bargain(at), bound, counts
        self.counting = hard_decisions if counts == "hard" else None
        pace = Ascent(self.bargain, Decay(0.5), memory, patience)
        self.running = PacedConfusion.like(self.reader, memory=memory, pace=pace, start=(1.0,), accumulate=accumulate)
        if at is None:
            self.running.beside.fill_((1 + self.bargain.level) / 2)  # equal costs: cross entropy

    def _bargain(self, at: Mapping[str, float] | None) -> Bargain:
        if at is None:
            if not isinstance(self.metric, FBeta):
                raise ValueError(
                    f"EbanLoss bounds an F_β, precision or recall; got {self.metric!r}. Use FBeta(beta), or "
                    "at={'recall': 0.9} or at={'precision': 0.9}; for other metrics take TangentLoss."
                )
            return Bargain("fbeta", self.metric.beta**2)
        kind, level = next(iter(at.items())) if isinstance(at, Mapping) and len(at) == 1 else ("", None)
        if kind not in ("recall", "precision") or not is_number(level) or not 0 < level < 1:  # type: ignore[operator]
            raise ValueError(f"at is {{'recall': b}} or {{'precision': a}} with a level in (0, 1); got {at!r}.")
        return Bargain(kind, float(level))  # type: ignore[arg-type]

    @property
    def multiplier(self) -> Tensor:
        """λ: the price of what is lacking, or the level of F_β; one per column."""
        return self.running.beside[0].clone()

    @property
    def operating_point(self) -> Confusion:
        """The running bounds of the four cells, or the counts if those are "hard"."""
        return self.running.confusion

    def step(self) -> None:
        """Close an optimiser step of several micro-batches (with ``accumulate=None``)."""
        self.running.step()

    def rows_of(self, logits: Tensor, target: Tensor, weight: Tensor | None) -> PlainRows:
        """Rows, on the device of the state."""
        self.running.near(logits, type(self).__name__)
        return super().rows_of(logits, target, weight)

    def elements(self) -> Elements:
        """Cross entropy or the hinge, at the costs of the multiplier before this batch."""
        numbers = evaluate(self.bargain, self.running.state, columns=self.columns)
        return HingeElements((numbers[0], numbers[1])) if self.bound == "hinge" else TangentElements(numbers)

    def advance(self, cells: Any) -> None:
        """Count the rows of a step, and move the multiplier."""
        self.running.add(cells)

    def loss_of(self, rows: PlainRows, group: dist.ProcessGroup | None = None) -> Tensor:
        """The loss of the rows; then their bounds, of all ranks, move the multiplier."""
        loss = super().loss_of(rows, group)
        if self.learning and self.counts == "bound":
            found = self._bounds(rows)
            self.advance(found if group is None else ranks.total(torch.as_tensor(found, dtype=torch.float64), group))
        return loss

    @torch.no_grad()
    def _bounds(self, rows: PlainRows) -> Any:
        """The bounds of the cells; of one column by the kernels that compute the loss."""
        if self.columns or self.bound == "hinge":
            return bound_cells(*rows.plain.batch, self.bound, 0 if self.columns else None)
        missed, alarmed = rows.weigh(MISSED, hard_decisions).sums, rows.weigh(ALARMED).sums
        found = evaluate(_from_sums, missed, alarmed)
        if isinstance(found, Tensor):
            return found
        return list(found) if isinstance(found[0], float) else torch.stack(list(found))  # type: ignore[arg-type]


def _from_sums(xp: Any, missed: Any, alarmed: Any) -> tuple[Any, ...]:
    """Bounds of the cells, from sums of losses (first) and counts (from the third on) of both classes."""
    tp, fp, fn, tn = missed[2:]
    return tp + fn - missed[0], alarmed[0], missed[0], fp + tn - alarmed[0]
