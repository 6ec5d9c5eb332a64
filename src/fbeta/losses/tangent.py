"""The tangent loss: the metric's slopes at the running operating point, on a loss that does not saturate."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any, Unpack

import numpy as np
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor

from fbeta.losses import kernels as fused
from fbeta.losses import ranks
from fbeta.losses.argmax import argmax_loss, pairwise_weights
from fbeta.losses.module import Loss, Options, check_tensors
from fbeta.losses.running import RunningConfusion, cells, class_cells, classes, decisions, is_number, one_of
from fbeta.losses.surrogate import box_cox, check_q
from fbeta.losses.task import Batch, convert
from fbeta.metrics import Confusion, tangent_costs


def tangent_loss(
    logits: Tensor, target: Tensor, costs: tuple[float | Tensor, float | Tensor], q: float | Tensor = 0.0
) -> Tensor:
    r"""Cost-weighted generalised cross entropy, element by element.

    .. math:: \ell(z, y) = c_y\, \frac{1 - f_y^q}{q} \xrightarrow{q \to 0} c_y \log(1 + e^{-sz}),
              \qquad f_1 = \operatorname{sigmoid}(z) = 1 - f_0,\ s = \pm 1

    For every q in [0, 1] its minimiser has f ≥ ½ exactly where Pr(y=1|x) ≥ c₀/(c₀ + c₁).

    Shape: `logits` and `target` ``(*)`` alike, costs (c₀, c₁) numbers or broadcastable; result ``(*)``.

    >>> tangent_loss(torch.zeros(2), torch.tensor([1.0, 0.0]), costs=(0.25, 0.75))
    tensor([0.5199, 0.1733])

    Reference: [zhang2018], [narasimhan2015]
    """
    c0, c1 = costs
    missed: Tensor = -box_cox(F.logsigmoid(logits), q)
    alarmed: Tensor = -box_cox(F.logsigmoid(-logits), q)
    return c1 * target * missed + c0 * (1 - target) * alarmed


class TangentLoss(Loss, name="tangent"):
    r"""Train any differentiable metric so that the threshold ½ is the right one.

    .. math:: L = \frac1n \sum_i c(y_i)\, \frac{1 - f_{y_i}^q}{q}, \qquad
              c(1) \propto \frac{\partial M/\partial t}{\pi},\quad c(0) \propto \frac{-\partial M/\partial u}{1 - \pi}

    with the slopes taken at the running operating point, without a gradient through it. For F_β
    c(0) = δ and c(1) = 1 − δ with δ = F_β/(1 + β²): f ≥ ½ ⇔ η ≥ δ, at the fixed point the best rule there is.

    - `q`: 0 logistic (convex, probabilities) … 1 absolute error; assign ``loss.q`` to schedule it (it is part of
      the state, so a loaded state brings its own).
    - `counts`: what feeds the operating point: "hard" decisions of the training rows (the default; its fixed
      point is the optimum), "soft" ones, or "given": only what `operate_at` is handed, from validation or
      out-of-fold rows.
    - `memory`, `damping`: see `RunningConfusion`. `warmup`: until so many positives were seen the costs move
      from those of a fresh network (u = t = ½ at the prevalence, or equal costs if that is unknown).
    - `epsilon`: δ stays inside [ε, 1 − ε], so that both classes always pull.
    - `accumulate`: micro-batches in a step; None if you call `step` yourself.

    Other arguments: see `Loss`. Macro multi-label keeps each column's own slope scale, micro pools. Multi-class
    decides by the largest score: see `pairwise_weights`, and `gain` for the exact rule on probabilities.

    Shape: `logits` and `target` as the task says; result ``()``, or the target's shape if reduction is "none".

    >>> loss = TangentLoss("fbeta:beta=2", prevalence=0.1)
    >>> logits = torch.zeros(10, requires_grad=True)
    >>> loss(logits, (torch.arange(10) == 0).float()).backward()
    >>> loss.delta.item() < 0.5
    True

    Reference: [narasimhan2015] (STAMP), [lee2021] (the gradient condition)
    """

    by_class = False
    _q: Tensor
    fresh: Tensor
    stream: Tensor | None
    population: Tensor | None

    def __init__(
        self,
        metric: Any,
        prevalence: Any = None,
        *,
        q: float = 0.0,
        counts: str = "hard",
        memory: float = 500.0,
        warmup: float = 20.0,
        damping: float = 0.5,
        epsilon: float = 1e-4,
        accumulate: int | None = 1,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(metric, prevalence, **options)
        one_of("counts", counts, ("hard", "soft", "given"))
        if not (is_number(epsilon) and 0 < epsilon < 0.5):
            raise ValueError(f"epsilon must lie in (0, 0.5); got {epsilon!r}.")
        if not (is_number(warmup) and warmup >= 0):
            raise ValueError(f"warmup is a number of positives from 0; got {warmup!r}.")
        self.counts, self.warmup, self.epsilon = counts, warmup, epsilon
        check_tensors(self.target_metric)

        def counter() -> RunningConfusion:
            return RunningConfusion(
                memory=memory,
                damping=damping,
                task=self.task,
                num_labels=self.num_labels,
                average=self.average,
                accumulate=accumulate,
            )

        self.running = counter()
        # A point that is handed in says nothing of the training stream: that is counted beside it.
        self.seen = counter() if counts == "given" else None
        self.register_buffer("_q", torch.tensor(check_q(q), dtype=torch.float64))
        n0, n1 = self.class_counts or (None, None)
        stream = None if n1 is None else n1 / (n0 + n1)
        self.remember("population", self.prevalence)
        self.remember("stream", stream)
        exclusive = self.task == "multiclass"
        if self.prevalence is None:
            # Nothing known: cross entropy, which for classes means no price on a wrong call of its own.
            fresh = np.array([0.0, 1.0] if exclusive else [0.5, 0.5])
            fresh = np.stack([fresh] * (self.num_labels or 1), axis=1) if self.columns else fresh
        else:
            # A fresh network calls half of everything positive, or every class equally often.
            called = 1 / (self.num_labels or 2) if exclusive else 0.5
            start = Confusion.from_rates(called, called, self.prevalence)
            fresh = np.stack(
                np.broadcast_arrays(*tangent_costs(self.target_metric, start, None if exclusive else stream))
            )
        scale = fresh.sum(0)
        self.remember("fresh", fresh / (scale if self.average == "each" else scale.mean()))

    @property
    def q(self) -> float:
        """The member of the q family; assign to schedule it (no recompilation, no new graph)."""
        return float(self._q)

    @q.setter
    def q(self, value: float) -> None:
        self._q.fill_(check_q(value))

    def _power(self, dtype: torch.dtype) -> float | Tensor:
        """q as a number where the host may look, which spares the branch that is not taken; else as a tensor."""
        return self.q if fused.at_hand(self._q) else self._q.to(dtype)

    @property
    def operating_point(self) -> Confusion:
        """The running counts that the costs are taken at."""
        return self.running.confusion

    @torch.no_grad()
    def operate_at(self, confusion: Confusion) -> None:
        """Hand in an operating point, for example of validation or out-of-fold rows; counts or shares.

        It stands for a full memory. With ``counts="given"`` it stays; otherwise training moves on from it.
        """
        if not isinstance(confusion, Confusion):
            raise TypeError(f"operate_at takes a Confusion; got {type(confusion).__name__}.")
        like = self.running.counts
        try:
            c = torch.stack([torch.as_tensor(x).to(like).expand(like.shape[1:]) for x in confusion])
        except RuntimeError as error:
            raise ValueError(
                f"The cells must be numbers or have shape {tuple(like.shape[1:])}; {error}"
            ) from None
        if not bool((c.isfinite() & (c >= 0)).all()):
            raise ValueError(
                f"The cells of an operating point must be finite and zero or more; got {confusion}."
            )
        point, counted = Confusion(*c), self.running.confusion
        if self.seen is None and self.population is not None and bool((counted.positives > 0).all()):
            point = point.at_prevalence(counted.prevalence)  # the stream goes on being the stream's
        positives = torch.where(point.positives > 0, point.positives, 1.0)
        full = (self.running.memory or 1.0) / positives
        self.running.set(Confusion(*(full * x for x in point)))

    def step(self) -> None:
        """Close an optimiser step of several micro-batches (with ``accumulate=None``)."""
        for counter in (self.running, self.seen):
            if counter is not None:
                counter.step()

    def _prices(self) -> Tensor:
        """(c₀, c₁) at the running operating point of the population."""
        return _quickly(self._mixed, self.running.counts, self.fresh, self.population, None)

    def _mixed(self, xp: Any, counts: Any, fresh: Any, population: Any, stream: Any) -> Any:
        """(c₀, c₁), from a fresh network's to the counted ones, in arrays of `xp`: NumPy or torch."""
        counted = Confusion(*counts)
        at = counted if population is None else counted.at_prevalence(population)
        found = xp.stack(tangent_costs(self.target_metric, at, stream))
        total, positives = found.sum(0), counted.positives
        # At a corner of ROC space a metric may have no slope at all; there a fresh network's costs serve.
        sound = xp.isfinite(found).all(0) & (total > 0)
        known = sound & (positives > 0) & (counted.negatives > 0)
        # Both on the scale of one on average over columns, so that they can be mixed.
        if self.average != "each":
            total = xp.where(known, total, 0.0).sum() / known.sum().clip(1)
        found = found / xp.where(total > 0, total, 1.0)
        trust = (positives / self.warmup).clip(None, 1.0) if self.warmup else known * 1.0
        if self.task == "multiclass":  # classes compete: they are trusted together
            trust = xp.where(known, trust, 1.0).min()
        return xp.where(known, trust * found + (1 - trust) * fresh, fresh)

    def _stream(self) -> Tensor | None:
        """The rate of positives in the training stream, where it may differ from the population's."""
        rate: Tensor | None = _rate(self.population, self.stream, (self.seen or self.running).counts)
        return rate

    @property
    def costs(self) -> tuple[Tensor, Tensor]:
        """The prices (c₀, c₁) that the next batch is weighed with; they sum to one (on average over columns)."""
        c0, c1 = self._costs()
        return c0, c1

    def _costs(self) -> Tensor:
        known = self.running.counts, self.fresh, self.population, self.stream
        return _quickly(self._kept_inside, *known, (self.seen or self.running).counts)

    def _kept_inside(self, xp: Any, counts: Any, fresh: Any, population: Any, stream: Any, seen: Any) -> Any:
        """Prices with δ in [ε, 1 − ε], on a scale of one."""
        prices = self._mixed(xp, counts, fresh, population, _rate(population, stream, seen))
        scale = prices.sum(0)
        delta = (prices[0] / scale).clip(self.epsilon, 1 - self.epsilon)
        both = xp.stack([delta, 1 - delta])
        # A macro average needs each column's own scale: dropping it would drop the weight on rare labels.
        return both if self.average == "each" else both * (scale / scale.mean())

    @property
    def delta(self) -> Tensor:
        """δ: the probability (in the training stream) from which f ≥ ½; F_β/(1 + β²) for F_β."""
        c0, c1 = self.costs
        return c0 / (c0 + c1)

    @property
    def gain(self) -> tuple[Tensor, Tensor]:
        """Gain a and offset b of each class (multi-class): call the class with the largest a·η − b."""
        b, right = self._prices()
        a = b + right
        return a / a.mean(), b / a.mean()

    def _class_weights(self) -> Tensor:
        """A weight for each class (multi-class)."""
        if not self.columns:  # pooled over classes, a wrong call costs the same whatever it is
            return self._q.new_ones(self.num_labels or 1)
        known = self.running.counts, self.fresh, self.population, self.stream
        return _quickly(self._weighed, *known, (self.seen or self.running).counts)

    def _weighed(self, xp: Any, counts: Any, fresh: Any, population: Any, stream: Any, seen: Any) -> Any:
        wrong, right = self._mixed(xp, counts, fresh, population, None)
        weights, rate = pairwise_weights(right, wrong, xp), _rate(population, stream, seen)
        # Rows of a class that the stream shows too often or too rarely count as the population has them.
        return weights if rate is None else weights * xp.where(rate > 0, population / rate, 1.0)

    def probability(self, logits: Tensor) -> Tensor:
        r"""Turn logits of a model trained with this loss into probabilities of the population (q < 1).

        .. math:: \operatorname{logit} \eta = (1 - q)\,z - \log\frac{c_1}{c_0}
                  + \log\frac{\pi}{1 - \pi} - \log\frac{\pi_s}{1 - \pi_s}

        Shape: any for one operating point, ``(N, K)`` for macro multi-label; the same comes back. For "softmax2"
        ``(N, 2)`` gives ``(N,)``, and maps ``(N, 2, H, W)`` give ``(N, H, W)``.

        >>> loss = TangentLoss("fbeta:beta=1", prevalence=0.5)
        >>> loss.probability(torch.zeros(1)) == loss.delta
        tensor([True])
        """
        if self.task == "multiclass":
            raise ValueError(
                "probability is for one column a decision; for classes use `gain` and argmax_rule."
            )
        if self.q == 1.0:
            raise ValueError(
                "At q = 1 the loss is linear in f and its logits hold no probability; use q < 1."
            )
        if self.task == "softmax2":
            if logits.ndim < 2 or logits.shape[1] != 2:
                raise ValueError(f"logits must be (N, 2) or (N, 2, H, W); got {tuple(logits.shape)}.")
            logits = logits[:, 1] - logits[:, 0]
        if self.columns and logits.shape[-1:] != (self.num_labels,):
            raise ValueError(f"logits must have {self.num_labels} columns; got {tuple(logits.shape)}.")
        c0, c1 = self.costs
        shift = torch.log(c0) - torch.log(c1)
        stream = self._stream()
        if self.population is not None and stream is not None:
            moved = torch.logit(self.population) - torch.logit(stream)
            # Before the first batch nothing is known of the stream.
            shift = shift + torch.where(moved.isfinite(), moved, 0.0)
        dtype = torch.promote_types(logits.dtype, torch.float32)
        return torch.sigmoid((1 - self._q).to(dtype) * logits.to(dtype) + shift.to(dtype))

    def fused_loss(
        self,
        kernels: ModuleType,
        logits: Tensor,
        target: Tensor,
        weight: Tensor | None,
        group: dist.ProcessGroup | None,
    ) -> Tensor | None:
        """One pass for loss, gradient and counts."""
        self.same_device(self.running.counts, logits)
        costs = kernels.costs(self)
        if costs is None:
            costs = torch.cat([self._costs(), self._q.reshape(1)])
        soft = self.counts == "soft"

        def run(z: Tensor, factor: float, grad: bool) -> tuple[Tensor, Tensor | None]:
            sums, gradient = kernels.tangent(
                z, target, weight, self.ignore_index, costs, factor, soft, grad=grad
            )
            return sums, gradient

        def plain(batch: Batch) -> Tensor:
            c0, c1, q = costs.to(batch.logits.dtype)
            return tangent_loss(batch.logits, batch.target, (c0, c1), q)

        value, sums = self.row_sum(kernels, (logits, target, weight), run, plain, group)
        counter = self.seen or self.running
        if self.training and torch.is_grad_enabled() and not kernels.advance(counter, sums):
            counter.add(sums[2:])
        return value

    def batch_of(self, logits: Tensor, target: Tensor, weight: Tensor | None) -> Batch:
        """For many classes no columns: the largest score needs the true class's alone."""
        if self.task == "multiclass":
            return classes(logits, target, weight, ignore_index=self.ignore_index)
        return super().batch_of(logits, target, weight)

    def loss_of(self, batch: Batch, group: dist.ProcessGroup | None) -> Tensor:
        """Weigh the batch with the costs of the state before it, then count it."""
        z, y, w = batch
        self.same_device(self.running.counts, z)
        if self.task == "multiclass":
            elements = argmax_loss(z, y, self._class_weights().to(z.dtype), self._power(z.dtype))
        else:
            c0, c1 = (c.to(z.dtype) for c in self.costs)
            elements = tangent_loss(z, y, (c0, c1), self._power(z.dtype))
        total = w.detach().sum()
        if self.training and torch.is_grad_enabled():
            found = self._count(batch)
            sums = ranks.total(torch.cat([total.to(found.dtype).reshape(1), found.flatten()]), group)
            (self.seen or self.running).add(sums[1:].reshape(found.shape))
            total = sums[0]
        return self.reduce(elements, w, total, group)

    def _count(self, batch: Batch) -> Tensor:
        """The cells of a batch, by the decisions that feed the operating point."""
        soft = self.counts == "soft"
        if self.task == "multiclass":
            if not soft:
                return class_cells(batch, columns=self.columns)
            batch = convert(batch.logits.detach(), batch.target, batch.weight, task=self.task)
        return cells(batch, decisions(batch.logits.detach(), soft=soft), columns=self.columns)


def _rate(population: Any, stream: Any, seen: Any) -> Any:
    """The rate of positives in the stream, told or counted; None where told nothing: it is the population's."""
    if population is None:
        return None
    if stream is not None:
        return stream
    rate = Confusion(*seen).prevalence
    known = ((rate > 0) & (rate < 1)) * 1.0
    return known * rate + (1.0 - known) * population  # until both classes were seen it is the population's


def _quickly(compute: Callable[..., Any], *numbers: Tensor | None) -> Tensor:
    """Compute with NumPy where the host has the numbers, which is done before torch has begun; else with torch."""
    if not fused.at_hand(*numbers):
        found: Tensor = compute(torch, *numbers)
        return found
    with np.errstate(divide="ignore", invalid="ignore"):
        # [()] makes a number of an array without axes: quicker still.
        return torch.from_numpy(compute(np, *(x if x is None else x.numpy()[()] for x in numbers)))
