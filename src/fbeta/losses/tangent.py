"""The tangent loss: the metric's slopes at the running operating point, on a loss that does not saturate."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Unpack

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import ArrayLike
from torch import Tensor

from fbeta.losses.argmax import ArgmaxElements, ClassRows
from fbeta.losses.counting import classes, hard_decisions, soft_decisions
from fbeta.losses.elements import cast, parts
from fbeta.losses.kernels.formula import evaluate
from fbeta.losses.kernels.plain import Elements, PlainRows
from fbeta.losses.memory import on_host
from fbeta.losses.module import RowLoss, check_formula
from fbeta.losses.options import Options, is_number, one_of
from fbeta.losses.pricing import Pricing
from fbeta.losses.running import MEMORY, RunningConfusion
from fbeta.losses.watch import FitWatch
from fbeta.metrics import Confusion
from fbeta.metrics.costs import stream_rate, tangent_costs
from fbeta.metrics.distance import box_cox, check_q


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
    one, zero = parts(logits, target, costs)
    missed = box_cox(F.logsigmoid(one.logits), q, torch)
    alarmed = box_cox(F.logsigmoid(-zero.logits), q, torch)
    return -one.share * missed - zero.share * alarmed  # type: ignore[no-any-return]


@dataclass(frozen=True)
class TangentElements:
    """`tangent_loss` at costs (c₀, c₁, q): plain torch calls it, compiled kernels know it by name."""

    kernel: ClassVar[str] = "tangent"
    numbers: Sequence[float | Tensor] | Tensor

    def __call__(self, logits: Tensor, target: Tensor) -> Tensor:
        """In the type of the logits."""
        c0, c1, q = cast(self.numbers, logits.dtype)
        return tangent_loss(logits, target, (c0, c1), q)


class TangentLoss(RowLoss, name="tangent"):
    r"""Train any differentiable metric so that the threshold ½ is the right one.

    .. math:: L = \frac1n \sum_i c(y_i)\, \frac{1 - f_{y_i}^q}{q}, \qquad
              c(1) \propto \frac{\partial M/\partial t}{\pi},\quad c(0) \propto \frac{-\partial M/\partial u}{1 - \pi}

    with the slopes taken at the running operating point, without a gradient through it, and on a scale such that
    the mean of c over the training rows is 1: penalties and moderate learning rates of cross entropy suit this, too
    (where positives are rare, a few rows weigh much, and a high rate is too high).
    f ≥ ½ ⇔ η ≥ δ = c(0)/(c(0) + c(1)); for F_β δ = F_β/(1 + β²), at the fixed point the best rule there is.

    - `q`: 0 logistic (convex, probabilities) … 1 absolute error; assign ``loss.q`` to schedule it (it is part of
      the state, so a loaded state brings its own).
    - `counts`: what feeds the operating point: "hard" decisions of the training rows (the default; its fixed
      point is the optimum), "soft" ones, or "given": only what `operate_at` is handed, from validation or
      out-of-fold rows.
    - `memory`, `damping`: see `RunningConfusion`; the memory is 500 positives, or those of an epoch if `class_counts`
      say that these are fewer: tell them for small sets. `warmup`: until so many positives were seen the costs move
      from those of a fresh network (u = t = ½ at the prevalence, or equal costs if that is unknown).
    - `epsilon`: δ stays inside [ε, 1 − ε], so that both classes always pull.
    - `accumulate`: micro-batches in a step; None if you call `step` yourself.
    - `watch`: a network that has memorised its training rows has no errors left for costs to weigh, and then ½
      may be far from the best cut for other rows. After 250 training steps, 500, 1,000 and so on it is looked whether
      almost no error is left, and one warning says to `tune` the cut on held-out rows (False: it does not).

    Counts advance in training mode with gradients enabled alone. Other arguments: see `Loss`. Macro multi-label keeps
    each column's own slope scale, micro pools. Multi-class decides by the largest score: see `pairwise_weights`, and
    `gain` for the exact rule on probabilities.

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
        memory: float | ArrayLike | None = None,
        warmup: float = 20.0,
        damping: float = 0.5,
        epsilon: float = 1e-4,
        accumulate: int | None = 1,
        watch: bool = True,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(metric, prevalence, **options)
        one_of("counts", counts, ("hard", "soft", "given"))
        if not (is_number(epsilon) and 0 < epsilon < 0.5):
            raise ValueError(f"epsilon must lie in (0, 0.5); got {epsilon!r}.")
        if not (is_number(warmup) and warmup >= 0):
            raise ValueError(f"warmup is a number of positives from 0; got {warmup!r}.")
        self.counts = counts
        # Classes compete: they are trusted together.
        self.pricing = Pricing(
            self.target_metric,
            warmup,
            epsilon,
            shared=self.columns and self.average != "each",
            together=self.task == "multiclass",
        )
        self.counting = soft_decisions if counts == "soft" else hard_decisions
        check_formula(self.target_metric)

        if memory is None:
            memory = self._memory(max(warmup, 1.0))
        memories = {"memory": memory, "damping": damping, "accumulate": accumulate}
        self.running = RunningConfusion.like(self.reader, **memories)
        # A point that is handed in says nothing of the training rows: those are counted beside it.
        self.seen = RunningConfusion.like(self.reader, **memories) if counts == "given" else None
        self.register_buffer("_q", torch.tensor(check_q(q), dtype=torch.float64))
        n0, n1 = self.class_counts or (None, None)
        stream = None if n1 is None else n1 / (n0 + n1)
        self.remember("population", self.prevalence)
        self.remember("stream", stream)
        self.remember("fresh", self._fresh(stream))
        if self.task != "multiclass":
            self.steepest = max(float(c.max()) for c in self.costs)
            if watch and counts != "given":
                total = 0.0 if n1 is None else float(np.sum(n0 + n1))
                self.watch = FitWatch(type(self).__name__, total if total > 2 else None)

    def _memory(self, least: float) -> Any:
        """The positives of an epoch, if that is known: more would be stale, and many need no more than `MEMORY`."""
        if self.class_counts is None:
            return MEMORY
        n0, n1 = self.class_counts
        return np.where(n0 + n1 > 2, np.clip(n1, least, MEMORY), MEMORY)  # shares tell no size

    def _fresh(self, stream: Any) -> Any:
        """The costs of a network that knows nothing yet."""
        exclusive = self.task == "multiclass"
        if self.prevalence is None:
            # Nothing known: cross entropy, which for classes means no price on a wrong call of its own.
            fresh = np.array([0.0, 1.0] if exclusive else [0.5, 0.5])
            fresh = np.stack([fresh] * (self.num_labels or 1), axis=1) if self.columns else fresh
        else:
            # It calls half of everything positive, or every class equally often.
            called = 1 / (self.num_labels or 2) if exclusive else 0.5
            start = Confusion.from_rates(called, called, self.prevalence)
            fresh = np.stack(
                np.broadcast_arrays(*tangent_costs(self.target_metric, start, None if exclusive else stream))
            )
        scale = fresh.sum(0)
        return fresh / (scale if self.average == "each" else scale.mean())

    @property
    def q(self) -> float:
        """The member of the q family; assign to schedule it (no recompilation, no new graph)."""
        return float(self._q)

    @q.setter
    def q(self, value: float) -> None:
        self._q.fill_(check_q(value))

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
            raise ValueError(f"The cells must be numbers or have shape {tuple(like.shape[1:])}; {error}") from None
        if not bool((c.isfinite() & (c >= 0)).all()):
            raise ValueError(f"The cells of an operating point must be finite and zero or more; got {confusion}.")
        point, counted = Confusion(*c), self.running.confusion
        if self.seen is None and self.population is not None and bool((counted.positives > 0).all()):
            point = point.at_prevalence(counted.prevalence)  # the training rows keep their own rate
        positives = torch.where(point.positives > 0, point.positives, 1.0)
        full = (1.0 if self.running.memory is None else self.running.memory) / positives
        self.running.set(Confusion(*(full * x for x in point)))

    def step(self) -> None:
        """Close an optimiser step of several micro-batches (with ``accumulate=None``)."""
        for counter in (self.running, self.seen):
            if counter is not None:
                counter.step()

    def _evaluate(self, formula: Any) -> Any:
        """Costs, or class weights, and q: from what the state holds now."""
        counts, seen, own = self.running.counts, self.seen, self._buffers
        rows = counts if seen is None else seen.counts
        numbers = counts, rows, own["fresh"], own["population"], own["stream"], own["_q"]
        return evaluate(formula, *numbers, columns=self.columns)

    @property
    def costs(self) -> tuple[Tensor, Tensor]:
        """The costs (c₀, c₁) that the next batch is weighed with: of mean one over the training rows (and columns)."""
        c0, c1, _ = (torch.as_tensor(c, dtype=torch.float64) for c in self._evaluate(self.pricing))
        return c0, c1

    @property
    def delta(self) -> Tensor:
        """δ: the probability (in the training rows) from which f ≥ ½; F_β/(1 + β²) for F_β."""
        c0, c1 = self.costs
        return c0 / (c0 + c1)

    @property
    def gain(self) -> tuple[Tensor, Tensor]:
        """Gain a and offset b of each class (multi-class): call the class with the largest a·η − b."""
        numbers = self.running.counts, self.fresh, self.population
        b, right = (torch.as_tensor(x) for x in evaluate(self.pricing.gains, *numbers, columns=self.columns))
        a = b + right
        return a / a.mean(), b / a.mean()

    def probability(self, logits: Tensor) -> Tensor:
        r"""Turn logits of a model trained with this loss into probabilities of the population (q < 1).

        .. math:: \operatorname{logit} \eta = (1 - q)\,z - \log\frac{c_1}{c_0}
                  + \log\frac{\pi}{1 - \pi} - \log\frac{\pi_s}{1 - \pi_s}

        Where the host cannot look at q (in an exported program) q = 1 gives NaN instead of an error.

        Shape: any for one operating point, ``(N, K)`` for macro multi-label; the same comes back. For "softmax2"
        ``(N, 2)`` gives ``(N,)``, and maps ``(N, 2, H, W)`` give ``(N, H, W)``.

        >>> loss = TangentLoss("fbeta:beta=1", prevalence=0.5)
        >>> loss.probability(torch.zeros(1)) == loss.delta
        tensor([True])
        """
        if self.task == "multiclass":
            raise ValueError("probability is for decisions of one column each; for classes use `gain` and argmax_rule.")
        if on_host(self._q) and self.q == 1.0:
            raise ValueError("At q = 1 the loss is linear in f and its logits hold no probability; use q < 1.")
        if self.task == "softmax2":
            if logits.ndim < 2 or logits.shape[1] != 2:
                raise ValueError(f"logits must be (N, 2) or (N, 2, H, W); got {tuple(logits.shape)}.")
            logits = logits[:, 1] - logits[:, 0]
        if self.columns and logits.shape[-1:] != (self.num_labels,):
            raise ValueError(f"logits must have {self.num_labels} columns; got {tuple(logits.shape)}.")
        c0, c1 = self.costs
        shift = torch.log(c0) - torch.log(c1)
        stream = stream_rate(self.population, self.stream, Confusion(*(self.seen or self.running).counts.unbind()))
        if stream is not None and self.population is not None:
            moved = torch.logit(self.population) - torch.logit(stream)
            # Before the first batch nothing is known of the training rows.
            shift = shift + torch.where(moved.isfinite(), moved, 0.0)
        dtype = torch.promote_types(logits.dtype, torch.float32)
        slope = torch.where(self._q < 1, 1 - self._q, torch.nan)
        return torch.sigmoid(slope.to(dtype) * logits.to(dtype) + shift.to(dtype))

    def rows_of(self, logits: Tensor, target: Tensor, weight: Tensor | None) -> PlainRows:
        """For many classes no columns: the largest score needs the true class's alone."""
        if self.task == "multiclass":
            self.reader.validate(logits, target, weight)
            batch = classes(logits, target, weight, ignore_index=self.ignore_index)
            rows: PlainRows = ClassRows(batch, self.columns)
        else:
            rows = super().rows_of(logits, target, weight)
        self.running.near(logits, type(self).__name__)
        return rows

    def watched(self, logits: Tensor) -> Tensor:
        """The counts of these rows and those before."""
        return self.running.counts

    def elements(self) -> Elements:
        """Cross entropy of the q family, at the costs of the state before this batch."""
        if self.task != "multiclass":
            return TangentElements(self._evaluate(self.pricing))
        if not self.columns:  # pooled over classes, a wrong call costs the same whatever it is
            q = self.q if on_host(self._q) else self._q
            return ArgmaxElements(self._q.new_ones(self.num_labels or 1), q)
        return ArgmaxElements(*self._evaluate(self.pricing.class_weights))

    def advance(self, cells: Any) -> None:
        """Count the rows of a step."""
        (self.seen or self.running).add(cells)
