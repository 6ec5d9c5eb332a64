"""The soft loss: a metric evaluated on soft counts of a batch, or of a running memory and the batch."""

from abc import abstractmethod
from typing import Any, Unpack

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor

from fbeta.losses import ranks
from fbeta.losses.counting import soft_decisions
from fbeta.losses.kernels.plain import Beside, Counted, PlainRows, SoftScore, reported, with_gradient_times
from fbeta.losses.memory import finite
from fbeta.losses.module import Loss, check_formula
from fbeta.losses.options import Options, one_of
from fbeta.losses.running import RunningConfusion
from fbeta.losses.surrogate import AnchorTerms, Terms
from fbeta.losses.task import Batch
from fbeta.losses.watch import PlateauWatch
from fbeta.metrics import Confusion, Metric
from fbeta.metrics.distance import log_add


def soft_loss(counts: Tensor, metric: Metric) -> Tensor:
    r"""One minus the metric on soft counts.

    .. math:: L = 1 - M\!\left(\sum w y f,\ \sum w (1 - y) f,\ \sum w y (1 - f),\ \sum w (1 - y)(1 - f)\right)

    Shape: `counts` ``(4, *)`` in the order TP, FP, FN, TN; result ``(*)``.

    >>> from fbeta import FBeta
    >>> soft_loss(torch.tensor([3.0, 1.0, 1.0, 5.0]), FBeta(1))
    tensor(0.2500)

    Reference: [pastor2013]; 'macro soft F-beta' in [lee2021]
    """
    return SoftScore(metric).value(Confusion(*counts.unbind()))  # type: ignore[no-any-return]


def soft_log_loss(log_means: tuple[Tensor, Tensor, Tensor, Tensor], terms: Terms) -> Tensor:
    r"""Log distance of the mean scores to the metric's anchors: the paper's loss of a whole set.

    .. math:: L = -\log(\operatorname{E}_+[f] - y_0) + \log(\operatorname{E}_-[f] - x_0)

    A strictly falling function of the soft metric at the prevalence of the anchors; where all scores of a
    class are tiny its gradient does not vanish. `log_means` are log E₊[f], log E₋[f], log E₊[1−f], log E₋[1−f].

    Shape: means ``(*)``; result ``(*)``.

    >>> from fbeta import FBeta
    >>> half = torch.tensor(0.5).log()
    >>> soft_log_loss((half, half, half, half), AnchorTerms(FBeta(1), prevalence=0.5)(torch.float32))
    tensor(1.0986)

    Reference: [lee2021], last line of eq. surrogate_cbloss
    """
    one_yes, zero_yes, one_no, zero_no = log_means
    negative, positive = terms
    alarmed = negative.value(_by_sign(negative.sign, zero_yes, zero_no), torch)
    missed = positive.value(_by_sign(positive.sign, one_no, one_yes), torch)
    return alarmed + missed  # type: ignore[no-any-return]


def _by_sign(sign: float | Tensor, wrong: Tensor, right: Tensor) -> Tensor:
    return torch.where(sign > 0, wrong, right) if isinstance(sign, Tensor) else wrong if sign > 0 else right


class CountLoss(Loss):
    r"""A loss of soft counts: 1 − M on decisions that `squash` makes differentiable.

    Batch, memory, prevalence, ranks and columns are handled here; a loss adds how a logit becomes a decision.
    """

    reductions, over_rows = ("mean", "sum"), True
    population: Tensor | None

    def __init__(
        self,
        metric: Any,
        prevalence: Any = None,
        *,
        memory: float | None = None,
        damping: float = 0.5,
        accumulate: int | None = 1,
        watch: bool = True,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(metric, prevalence, **options)
        check_formula(self.target_metric)
        if self.average == "samples" and (memory is not None or self.prevalence is not None):
            raise ValueError(
                "average='samples' scores each row by itself: it takes no memory, prevalence or class_counts."
            )
        if watch and self.task != "multiclass":
            remedy = "Begin with some epochs of cross entropy, or take TangentLoss"
            self.watch = PlateauWatch(type(self).__name__, self.reader, remedy)
        self.running = None
        if memory is not None:
            memories = {"memory": memory, "damping": damping, "accumulate": accumulate}
            self.running = RunningConfusion.like(self.reader, counts="soft", **memories)
        self.remember("population", self.prevalence)

    @abstractmethod
    def squash(self, logits: Tensor) -> tuple[Tensor, Tensor]:
        """How much of each element counts as called positive, and how much as called negative."""

    def step(self) -> None:
        """Close an optimiser step of several micro-batches (with a memory and ``accumulate=None``)."""
        if self.running is not None:
            self.running.step()

    def rows_of(self, logits: Tensor, target: Tensor, weight: Tensor | None) -> PlainRows:
        """As every loss; for "samples" a row or an image is a column of its own."""
        if self.average != "samples":
            return super().rows_of(logits, target, weight)
        batch = self.reader.read(logits, target, weight)
        if batch.logits.dim() < 2:
            shape = tuple(logits.shape)
            raise ValueError(f"average='samples' wants rows of several elements, (N, K) or (N, H, W); got {shape}.")
        return PlainRows(Batch(*(x.flatten(1).T for x in batch)), columns=True)

    def loss_of(self, rows: PlainRows, group: dist.ProcessGroup | None = None) -> Tensor:
        """Count softly, add what other ranks and the memory hold, evaluate."""
        # A memory must tell 1e-40 from nothing, or the log form would forget scores that it still pulls on.
        counted = rows.count(self.squash, exact=self.running is not None)
        if self.average == "samples":
            return self._over_rows(self.of_counts(counted, None).to(rows.dtype), counted.cells.sum(0) != 0, group)
        running = self.running if self.learning else None
        if group is None and running is None and not self.columns:
            return self.of_counts(counted, None).to(rows.dtype)
        everyone, beside = ranks.total(counted.cells, group), None
        if group is not None or running is not None:
            beside = self._beside(counted.cells, everyone, running, group)
        losses, there = self.of_counts(counted, beside).to(rows.dtype), everyone.sum(0) != 0
        total = torch.where(there, losses, 0.0).sum()  # an empty column (or batch) is no column
        return total if self.reduction == "sum" else total / there.sum().clamp(min=1)

    def _over_rows(self, losses: Tensor, there: Tensor, group: dist.ProcessGroup | None) -> Tensor:
        """The mean (or sum) over rows that hold something, of all ranks."""
        mine = torch.where(there, losses, 0.0).sum()
        total, rows = ranks.total(torch.stack([mine.detach().double(), there.sum().double()]), group)
        share = (1.0 if self.reduction == "sum" else 1.0 / rows.clamp(min=1)) * torch.ones_like(mine)
        return (
            mine * share
            if group is None
            else reported(ranks.size(group) * mine * share, (total * share).to(mine.dtype))
        )

    def _beside(
        self, mine: Tensor, everyone: Tensor, running: RunningConfusion | None, group: dist.ProcessGroup | None
    ) -> Beside:
        """What other ranks and the memory hold; the memory then takes this step in."""
        rest = torch.zeros_like(everyone) if group is None else everyone - mine
        if running is not None:
            running.near(mine, type(self).__name__)
            rest = rest + running.counts
            running.add(everyone)
        # The gradient of the batch's mean, not of its small share in the memory; and R times for DDP's average.
        rows = everyone.sum(0)
        lever = ranks.size(group) * (mine + rest).sum(0) / torch.where(rows != 0, rows, 1.0)
        return Beside(rest.clamp(min=0), lever)

    def of_counts(self, counted: Counted, beside: Beside | None) -> Tensor:
        """The loss of each column, from this batch's counts and those beside them; 0 where nothing was counted."""
        return counted.loss(SoftScore(self.target_metric), self.population, beside)


class SoftLoss(CountLoss, name="soft"):
    r"""Any metric on soft counts: 1 − M̃, or the log distance to its anchors.

    .. math:: \tilde M = M\!\left(\sum w y f,\ \sum w (1 - y) f,\ \ldots\right)

    - `form`: "plain" (1 − M̃; macro soft F_β is ``SoftLoss(FBeta(b))``), or "log" for a metric with anchors,
      whose gradient survives scores near 0; it needs `prevalence`.
    - `memory`: None takes the batch alone. A number of positives evaluates the metric at the running counts
      plus the batch, with the gradient of the batch's rows alone and at full size, so that a batch of 32 at
      1 % positives still points where the data set does. In evaluation the batch stands alone.
    - `prevalence`: if given, the rates are taken to that prevalence; else the counts are used as they come.
    - `average`: "samples" is the mean of the losses that rows of labels ``(N, K)``, or images ``(N, H, W)``, have by
      themselves, such as the soft Dice loss of each image. A row without positives has loss 1 by F_β, and no gradient:
      add some cross entropy.
    - `watch`: as `SurrogateLoss` it can get stuck where everything is called positive. After 250 training steps, 500,
      1,000 and so on a batch of mostly negative rows that are all called positive raises a warning (False: none).

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
        watch: bool = True,
        **options: Unpack[Options],
    ) -> None:
        own: dict[str, Any] = {"memory": memory, "damping": damping, "accumulate": accumulate, "watch": watch}
        super().__init__(metric, prevalence, **own, **options)
        one_of("form", form, ("plain", "log"))
        self.form, self.terms = form, None
        if form == "log":
            if self.prevalence is None:
                raise ValueError("SoftLoss(form='log') needs prevalence (or class_counts): it places the anchors.")
            self.terms = AnchorTerms(self.target_metric, self.prevalence)

    squash = staticmethod(soft_decisions)

    def loss_of(self, rows: PlainRows, group: dist.ProcessGroup | None = None) -> Tensor:
        """Count softly, add what other ranks and the memory hold, evaluate."""
        return super().loss_of(rows if self.terms is None else rows.plain, group)

    def of_counts(self, counted: Counted, beside: Beside | None) -> Tensor:
        """One minus the metric of the counts, or the log distance of the mean scores to its anchors."""
        if self.terms is None:
            return super().of_counts(counted, beside)
        # In the log domain throughout: scores near 0 keep their gradient.
        z, y, w = counted.batch
        axis = -2 if self.columns else None
        weights = torch.stack([w * y, w * (1 - y)])
        masses = weights.flatten(1, -2).sum(1) if self.columns else weights.flatten(1).sum(1)
        logs, infinite = (F.logsigmoid(z), F.logsigmoid(-z)), not finite(z)
        sums = torch.stack([_log_sum(log_f, weight, axis, infinite) for log_f in logs for weight in weights])
        if beside is not None:
            rest, lever = (x.to(z.dtype) for x in (beside.counts / counted.unit, beside.lever))
            masses = masses + rest[:2] + rest[2:]
            sums, some = with_gradient_times(sums, lever), rest > 0
            # With nothing to add it stays as it is: log 0 + log 0 would have no slope.
            sums = torch.where(some, log_add(sums, torch.log(torch.where(some, rest, 1.0)), torch), sums)
        # Of TP, FP, FN, TN. A class that was never seen has no mean; its term is a constant without gradient.
        both = torch.cat([masses, masses])
        one_yes, zero_yes, one_no, zero_no = torch.where(both != 0, sums - torch.log(both), 0.0).unbind()
        losses = soft_log_loss((one_yes, zero_yes, one_no, zero_no), self.terms(z.dtype))
        return torch.where(masses.sum(0) != 0, losses, 0.0)


def _log_sum(log_x: Tensor, weight: Tensor, axis: int | None, infinite: bool) -> Tensor:
    """log Σ w x, given log x; a large negative number, without gradient, where there is no weight."""
    if axis is None:
        log_x, weight, axis = log_x.flatten(), weight.flatten(), 0
    some = (weight > 0).any(axis)
    w = torch.where(some, weight, 1.0)
    parts = log_x + torch.log(w)
    if not infinite:
        return torch.where(some, torch.logsumexp(parts, axis), -1e30)
    # Where every x with a weight is 0, they are alike: then the mean of their logarithms has the slope of the sum's.
    none = (parts == -torch.inf).all(axis)
    mean = (w * log_x.masked_fill(w == 0, 0.0)).sum(axis) / w.sum(axis)
    found = torch.logsumexp(parts.masked_fill(none.unsqueeze(axis), 0.0), axis)
    return torch.where(some, torch.where(none, mean, found), -1e30)
