"""The soft loss: a metric evaluated on soft counts of a batch, or of a running memory and the batch."""

from __future__ import annotations

from abc import abstractmethod
from types import ModuleType
from typing import Any, Unpack

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor

from fbeta.losses import kernels as fused
from fbeta.losses import ranks
from fbeta.losses.module import Loss, Options, check_tensors
from fbeta.losses.running import RunningConfusion, cells, decisions, one_of
from fbeta.losses.surrogate import Reach, Reaches
from fbeta.losses.task import Batch
from fbeta.metrics import Confusion, Metric


def soft_loss(counts: Tensor, metric: Metric) -> Tensor:
    r"""One minus the metric on soft counts.

    .. math:: L = 1 - M\!\left(\sum w y f,\ \sum w (1 - y) f,\ \sum w y (1 - f),\ \sum w (1 - y)(1 - f)\right)

    Shape: `counts` ``(4, *)`` in the order TP, FP, FN, TN; result ``(*)``.

    >>> from fbeta import FBeta
    >>> soft_loss(torch.tensor([3.0, 1.0, 1.0, 5.0]), FBeta(1))
    tensor(0.2500)

    Reference: [pastor2013]; 'macro soft F-beta' in [lee2021]
    """
    return 1.0 - metric(Confusion(*counts.unbind()))  # type: ignore[no-any-return]


def soft_log_loss(log_means: tuple[Tensor, Tensor, Tensor, Tensor], reaches: tuple[Reach, Reach]) -> Tensor:
    r"""Log distance of the mean scores to the metric's anchors: the paper's loss of a whole set.

    .. math:: L = -\log(\operatorname{E}_+[f] - y_0) + \log(\operatorname{E}_-[f] - x_0)

    A strictly falling function of the soft metric at the prevalence of the anchors; where all scores of a
    class are tiny its gradient does not vanish. `log_means` are log E₊[f], log E₋[f], log E₊[1−f], log E₋[1−f].

    Shape: means ``(*)``; result ``(*)``.

    >>> from fbeta import FBeta
    >>> a = FBeta(1).anchors(prevalence=0.5)
    >>> half = torch.tensor(0.5).log()
    >>> soft_log_loss((half, half, half, half), (Reach.to(a, positive=False), Reach.to(a, positive=True)))
    tensor(1.0986)

    Reference: [lee2021], last line of eq. surrogate_cbloss
    """
    one_yes, zero_yes, one_no, zero_no = log_means
    negative, positive = reaches
    rise = negative.of(_by_sign(negative.sign, zero_yes, zero_no))
    fall = positive.of(_by_sign(positive.sign, one_yes, one_no))
    return rise - fall


def _by_sign(sign: float | Tensor, yes: Tensor, no: Tensor) -> Tensor:
    return torch.where(sign > 0, yes, no) if isinstance(sign, Tensor) else yes if sign > 0 else no


class CountLoss(Loss):
    r"""A loss of soft counts: 1 − M on decisions that `squash` makes differentiable.

    Batch, memory, prevalence, ranks and columns are handled here; a loss adds how a logit becomes a decision.
    """

    reductions = ("mean", "sum")
    population: Tensor | None

    def __init__(
        self,
        metric: Any,
        prevalence: Any = None,
        *,
        memory: float | None = None,
        damping: float = 0.5,
        accumulate: int | None = 1,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(metric, prevalence, **options)
        check_tensors(self.target_metric)
        self.running = None
        if memory is not None:
            self.running = RunningConfusion(
                memory=memory,
                damping=damping,
                counts="soft",
                task=self.task,
                num_labels=self.num_labels,
                average=self.average,
                accumulate=accumulate,
            )
        self.remember("population", self.prevalence)

    @abstractmethod
    def squash(self, logits: Tensor) -> tuple[Tensor, Tensor]:
        """How much of each element counts as called positive, and how much as called negative."""

    def step(self) -> None:
        """Close an optimiser step of several micro-batches (with a memory and ``accumulate=None``)."""
        if self.running is not None:
            self.running.step()

    def loss_of(self, batch: Batch, group: dist.ProcessGroup | None) -> Tensor:
        """Count softly, add what other ranks and the memory hold, evaluate."""
        dtype = batch.logits.dtype
        if self.running is not None:
            # A memory must tell 1e-40 from nothing, or the log form would forget scores that it still pulls on.
            batch = Batch(*(x.double() for x in batch))
        mine = cells(batch, self.squash(batch.logits), columns=self.columns)
        return self.loss_of_counts(mine, batch, group).to(dtype)

    def loss_of_counts(self, mine: Tensor, batch: Batch | None, group: dist.ProcessGroup | None) -> Tensor:
        """Add what other ranks and the memory hold to this batch's counts, evaluate and reduce."""
        everyone = ranks.total(mine.double(), group)
        training = self.training and torch.is_grad_enabled()
        rows = everyone.sum(0)
        there = rows != 0
        beside = None
        if group is not None or (self.running is not None and training):
            rest = torch.zeros_like(everyone) if group is None else everyone - mine.detach().double()
            if self.running is not None and training:
                self.same_device(self.running.counts, mine)
                rest = rest + self.running.counts
                self.running.add(everyone)
            # The gradient of the batch's mean, not of its small share in the memory; and R times for DDP's average.
            lever = ranks.size(group) * (mine.detach().sum(0) + rest.sum(0)) / torch.where(there, rows, 1.0)
            beside = rest.clamp(min=0).to(mine.dtype), lever.to(mine.dtype)
        losses = self.of_counts(batch, mine, beside)
        # An empty column (or batch) is no column.
        total = torch.where(there, losses, 0.0).sum()
        return total if self.reduction == "sum" else total / there.sum().clamp(min=1)

    def of_counts(self, batch: Batch | None, mine: Tensor, beside: tuple[Tensor, Tensor] | None) -> Tensor:
        """The loss of each column, from this batch's counts.

        `beside`: the counts of the memory and the other ranks, and how much the gradient of this batch's is to grow.
        """
        counts = mine if beside is None else levered(mine, beside[1]) + beside[0]
        # A few numbers from here on: in double precision 1 − π keeps its digits, however rare the negatives.
        counts = counts.double()
        # Where nothing was counted any counts will do; the caller drops the column.
        counts = torch.where(counts.detach().sum(0) != 0, counts, 1.0)
        if self.population is not None:
            # As `Confusion.at_prevalence`, for positives and negatives at once.
            called, left = counts[:2], counts[2:]
            mass, share = called + left, torch.stack([self.population, 1 - self.population])
            rate = called / torch.where(mass == 0, 1.0, mass)
            counts = torch.cat([share * rate, share * (1 - rate)])
        return soft_loss(counts, self.target_metric)


class SoftLoss(CountLoss, name="soft"):
    r"""Any metric on soft counts: 1 − M̃, or the log distance to its anchors.

    .. math:: \tilde M = M\!\left(\sum w y f,\ \sum w (1 - y) f,\ \ldots\right)

    - `form`: "plain" (1 − M̃; macro soft F_β is ``SoftLoss(FBeta(b))``), or "log" for a metric with anchors,
      whose gradient survives scores near 0; it needs `prevalence`.
    - `memory`: None takes the batch alone. A number of positives evaluates the metric at the running counts
      plus the batch, with the gradient of the batch's rows alone and at full size, so that a batch of 32 at
      1 % positives still points where the data set does. In evaluation the batch stands alone.
    - `prevalence`: if given, the rates are taken to that prevalence; else the counts are used as they come.

    The loss of a set is no sum over rows, so there is no reduction "none", and micro-batches give another
    (and noisier) gradient than their union: prefer a memory where batches are small. "mean" and "sum" are
    over the columns of a macro average. Other arguments: see `Loss`, `TangentLoss`.

    Shape: `logits` and `target` as the task says; result ``()``.

    >>> loss = SoftLoss("fbeta:beta=1")
    >>> loss(torch.tensor([100.0, 100.0, -100.0]), torch.tensor([1.0, 0.0, 0.0]))
    tensor(0.3333)

    Reference: [pastor2013], [lee2021]
    """

    def __init__(
        self,
        metric: Any,
        prevalence: Any = None,
        *,
        form: str = "plain",
        memory: float | None = None,
        damping: float = 0.5,
        accumulate: int | None = 1,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(metric, prevalence, memory=memory, damping=damping, accumulate=accumulate, **options)
        one_of("form", form, ("plain", "log"))
        self.form = form
        self.reaches = None
        if form == "log":
            if self.prevalence is None:
                raise ValueError(
                    "SoftLoss(form='log') needs prevalence (or class_counts): it places the anchors."
                )
            self.reaches = Reaches(self.target_metric, self.prevalence)

    def squash(self, logits: Tensor) -> tuple[Tensor, Tensor]:
        """The scores f and 1 − f themselves."""
        return decisions(logits, soft=True)

    def of_counts(self, batch: Batch | None, mine: Tensor, beside: tuple[Tensor, Tensor] | None) -> Tensor:
        """One minus the metric of the counts, or the log distance of the mean scores to its anchors."""
        if self.form == "plain":
            return super().of_counts(batch, mine, beside)
        assert batch is not None
        return self._log_losses(batch, beside)

    def fused_loss(
        self,
        kernels: ModuleType,
        logits: Tensor,
        target: Tensor,
        weight: Tensor | None,
        group: dist.ProcessGroup | None,
    ) -> Tensor | None:
        """One pass to count, one for the gradient."""
        if self.form == "log":
            return None  # its sums live in the log domain
        if group is None and self.running is None:
            value = fused.soft_score(
                logits, target, weight, self.ignore_index, kernels, self.target_metric, self.population
            )
            if value is not None:
                return value
        count: Any = fused.SoftCounts.apply
        mine = count(logits, target, weight, self.ignore_index, kernels)
        loss = self.loss_of_counts(mine, None, group)
        return loss.to(torch.promote_types(logits.dtype, torch.float32))

    def _log_losses(self, batch: Batch, beside: tuple[Tensor, Tensor] | None) -> Tensor:
        """The log form, in the log domain throughout: scores near 0 keep their gradient."""
        z, y, w = batch
        axis = -2 if self.columns else None
        weights = torch.stack([w * y, w * (1 - y)])
        masses = weights.flatten(1, -2).sum(1) if self.columns else weights.flatten(1).sum(1)
        sums = [
            _log_sum(log_f, weight, axis)
            for log_f in (F.logsigmoid(z), F.logsigmoid(-z))
            for weight in weights
        ]
        if beside is not None:
            rest, lever = beside
            masses = masses + rest[:2] + rest[2:]
            sums = [torch.logaddexp(levered(x, lever), torch.log(r)) for x, r in zip(sums, rest, strict=True)]
        # Of TP, FP, FN, TN. A class that was never seen has no mean; its term is a constant without gradient.
        means = [
            torch.where(mass > 0, log_sum - torch.log(mass), 0.0)
            for log_sum, mass in zip(sums, (*masses, *masses), strict=True)
        ]
        assert self.reaches is not None
        one_yes, zero_yes, one_no, zero_no = means
        return soft_log_loss((one_yes, zero_yes, one_no, zero_no), self.reaches(z.dtype))


def levered(x: Tensor, lever: Tensor) -> Tensor:
    """The value of x with `lever` times its gradient."""
    return x.detach() + lever * (x - x.detach())


def _log_sum(log_x: Tensor, weight: Tensor, axis: int | None) -> Tensor:
    """log Σ w x, given log x; a large negative number, without gradient, where there is no weight."""
    if axis is None:
        log_x, weight, axis = log_x.flatten(), weight.flatten(), 0
    some = (weight > 0).any(axis)
    w = torch.where(some, weight, 1.0)
    return torch.where(some, torch.logsumexp(log_x + torch.log(w), axis), -1e30)
