"""The shell of every loss: it reads tensors, remembers numbers, sums over ranks and reduces."""

import warnings
from abc import ABC, abstractmethod
from typing import Any, ClassVar, Never

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor

from fbeta.losses import kernels, ranks
from fbeta.losses.counting import Decisions
from fbeta.losses.kernels.plain import Elements, PlainRows, reported
from fbeta.losses.options import unknown_keyword
from fbeta.losses.precise import PreciseModule
from fbeta.losses.rates import read_counts, read_prevalence
from fbeta.losses.task import TASKS, Reader, margin
from fbeta.losses.watch import Watch
from fbeta.metrics import Confusion, Metric, as_metric
from fbeta.spelling import register

REDUCTIONS = ("mean", "sum", "none")


class Loss(PreciseModule, ABC):
    """What the losses share: metric, task, the two prevalences, weights, reduction and ranks.

    Arguments (all losses take them):

    - `metric`: a Metric, a spec such as "fbeta:beta=2", or a function of (tp, fp, fn, tn). A loss that does not
      depend on a metric (cross entropy, focal) takes one too and only remembers it.
    - `prevalence`: the rate of positives in the population that the metric is about; for macro multi-label
      one number, or one per label; for multi-class one per class.
    - `class_counts`: (negatives, positives), or for multi-class one count per class, in the training rows, where
      a sampler changes the rate; a mapping such as Counter(labels) serves too. If only one of `prevalence` and
      `class_counts` is given it serves for both; neither is ever taken from a single batch.
    - `task`, `num_labels`, `average`: see `fbeta.losses.task`; "macro" or "micro" over labels or classes, "each" where
      columns are problems of their own (many runs side by side) and share no scale; "samples" over rows (soft losses).
    - `reduction`: "mean" is Σwℓ/Σw over kept elements, "sum" Σwℓ, "none" the elements wℓ.
    - `ignore_index`: targets of this value are left out.
    - `check`: True looks at every value (and raises on NaN logits), None where that is free, False never.
    - `process_group`, `sync`: sum over these ranks in training; sync=False keeps ranks apart.
    """

    #: Every loss by name, filled as classes are defined.
    registry: ClassVar[dict[str, "type[Loss]"]] = {}
    #: The name that `fbeta.losses.get` reads; an abstract loss has none.
    name: ClassVar[str]
    #: Reductions that make sense: a loss of a set has no elements.
    reductions: ClassVar[tuple[str, ...]] = REDUCTIONS
    #: Tasks the loss can do.
    tasks: ClassVar[tuple[str, ...]] = TASKS
    #: Whether a row of many classes has an element for each of them, or one alone.
    by_class: ClassVar[bool] = True
    #: Whether it can be the mean over rows of a loss that each row has by itself ("samples").
    over_rows: ClassVar[bool] = False
    #: Whether the loss is built from the metric, or only remembers it.
    uses_metric: ClassVar[bool] = True
    #: Looks at training now and then, if the loss has something to watch; None or False switches it off.
    watch: Watch | bool | None = None
    #: The largest |∂ℓ/∂z| of an element before the caller's weight, as far as the host knows.
    steepest: float = 1.0

    def __init_subclass__(cls, *, name: str | None = None, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if name is not None:
            register(Loss.registry, name, cls, "loss")
            cls.name = name

    def __init__(
        self,
        metric: Any = None,
        prevalence: Any = None,
        *,
        class_counts: Any = None,
        reduction: str = "mean",
        task: str = "binary",
        num_labels: int | None = None,
        average: str = "macro",
        ignore_index: int | None = None,
        check: bool | None = None,
        process_group: dist.ProcessGroup | None = None,
        sync: bool = True,
        **unknown: Never,
    ) -> None:
        for keyword in unknown:
            raise TypeError(unknown_keyword(type(self), keyword))
        super().__init__()
        self.reader = Reader(task, num_labels, average, ignore_index, check)
        if reduction not in self.reductions:
            why = " A loss of a whole set has no elements." if reduction == "none" else ""
            raise ValueError(f"reduction must be one of {', '.join(self.reductions)}; got {reduction!r}.{why}")
        if average == "samples" and not self.over_rows:
            raise ValueError(
                f"{type(self).__name__} adds up over elements, so it has no average='samples'; SoftLoss has it."
            )
        if metric is None and self.uses_metric:
            raise ValueError(f"{type(self).__name__} needs a metric, for example FBeta(1) or 'fbeta:beta=2'.")
        if task not in self.tasks:
            raise ValueError(f"{type(self).__name__} cannot do task={task!r}; it can do {', '.join(self.tasks)}.")
        self.metric: Metric | None = None if metric is None else as_metric(metric)
        self.task, self.num_labels, self.average = task, num_labels, average
        self.reduction, self.ignore_index, self.check = reduction, ignore_index, check
        self.process_group, self.sync = process_group, sync
        self.columns = self.reader.columns
        counts = None if class_counts is None else read_counts(class_counts, self.reader)
        rate = None if prevalence is None else read_prevalence(prevalence, self.reader)
        #: (negatives, positives) of the training rows, if told; shape () or (K,).
        self.class_counts = counts
        #: Rate in the population, if known; shape () or (K,).
        self.prevalence = counts[1] / (counts[0] + counts[1]) if rate is None and counts is not None else rate
        if self.uses_metric:
            for p in [None] if self.prevalence is None else np.unique(self.prevalence):
                refusal = self.target_metric.refusal(None if p is None else float(p))
                if refusal is not None:
                    raise ValueError(refusal)

    @property
    def target_metric(self) -> Metric:
        """The metric of a loss that is built from one."""
        assert self.metric is not None
        return self.metric

    @property
    def learning(self) -> bool:
        """Whether a call is a training step, in which state advances: training mode, gradients enabled."""
        return self.training and torch.is_grad_enabled()

    def forward(self, logits: Tensor, target: Tensor, weight: Tensor | None = None) -> Tensor:
        """Loss of a batch of logits against targets; `weight` has the target's shape, and 2 is a row twice."""
        rows = self.rows_of(logits, target, weight)
        group = ranks.group_of(self.process_group, self.sync) if self.learning else None
        if logits.dtype == torch.float16:
            # Only where every element has weight one does the host know what a mean divides by.
            plain = weight is None and self.ignore_index is None and self.reduction == "mean"
            self._warn_overflow(target.numel() if plain else 1, ranks.size(group))
        loss = self.loss_of(rows, group)
        if isinstance(self.watch, Watch) and self.learning:
            loss = self.watch(loss, self.watched(logits), target)
        if self.reduction == "none" and self.task == "multiclass":
            return (loss.mean(-1) if self.by_class else loss).reshape(target.shape)
        return loss

    def watched(self, logits: Tensor) -> Tensor:
        """What `watch` looks at, beside the targets."""
        return logits

    @abstractmethod
    def loss_of(self, rows: PlainRows, group: dist.ProcessGroup | None = None) -> Tensor:
        """The loss of rows that were read, summed over the ranks of `group`; advances state in a training step."""

    def rows_of(self, logits: Tensor, target: Tensor, weight: Tensor | None) -> PlainRows:
        """Check a caller's tensors, and give them to a compiled kernel if it takes them, else to plain torch."""
        if self.reduction != "none" and self.task != "multiclass" and not self.columns:
            usual, z = self.task == "binary" and not self.check, logits
            if not usual:  # else a kernel looks at shapes and values itself
                self.reader.validate(logits, target, weight)
                z = margin(logits) if self.task == "softmax2" else logits
            look = usual and self.check is None
            found = kernels.compiled_rows(z, target, weight, self.ignore_index, check=look)
            if found is not None:
                return found
        return PlainRows(self.reader.read(logits, target, weight), self.columns)

    def _warn_overflow(self, elements: int, size: int) -> None:
        """Warn where a gradient is known not to fit float16 (the host knows the class weights, not the rows)."""
        largest = self.steepest * size / max(elements, 1)
        if largest > torch.finfo(torch.float16).max:
            warnings.warn(
                f"Gradients of float16 logits overflow: a class weight of {self.steepest:g} gives elements up to "
                f"{largest:g}, and float16 ends at 65504. Compute logits in bfloat16 or float32, use "
                "reduction='mean' with larger batches, or smaller class weights.",
                RuntimeWarning,
                stacklevel=4,
            )

    def remember(self, name: str, value: Any) -> None:
        """Keep known numbers as a buffer that moves with the module (and is no part of its state)."""
        tensor = None if value is None else torch.tensor(np.array(value), dtype=torch.float64)
        self.register_buffer(name, tensor, persistent=False)

    def extra_repr(self) -> str:
        """Show what a reader needs to tell two losses apart."""
        rate = "" if self.prevalence is None else f"prevalence={np.asarray(self.prevalence).tolist()}, "
        metric = "" if self.metric is None else f"{self.metric!r}, "
        return f"{metric}{rate}task={self.task!r}, reduction={self.reduction!r}"


class RowLoss(Loss):
    """A loss that is a sum over rows: it says what an element costs, and the shell weighs, sums and reduces.

    >>> class Squared(RowLoss):
    ...     uses_metric = False
    ...     def elements(self):
    ...         return lambda logits, target: (torch.sigmoid(logits) - target) ** 2
    >>> Squared()(torch.zeros(2), torch.tensor([1.0, 0.0]))
    tensor(0.2500)
    """

    #: The decisions whose counts a training step needs, if it needs any.
    counting: Decisions | None = None

    @abstractmethod
    def elements(self) -> Elements:
        """The loss of each element at this step, class weights included: a function of logits and targets."""

    def advance(self, cells: Any) -> None:
        """Take the counts of a training step, of all ranks, into the state; called if `counting` asks for them."""

    def by_task(self, pair: tuple[Any, Any]) -> tuple[Any, Any]:
        """Class weights for elements: of many classes only the true one has a loss (and C times its mean)."""
        return (0.0, (self.num_labels or 1) * pair[1]) if self.task == "multiclass" else pair

    def loss_of(self, rows: PlainRows, group: dist.ProcessGroup | None = None) -> Tensor:
        """Weigh, sum over ranks, count, reduce.

        DDP averages gradients over R ranks, so the gradient of a rank is R times that of its part: the average is then
        the gradient of one process that has all rows. The value is that process's, too, on every rank.
        """
        counting, mean = self.counting if self.learning else None, self.reduction == "mean"
        known = rows.known if mean and group is None else None
        part = rows.weigh(self.elements(), counting, 1.0 / known if known else 1.0)
        mass, cells, totals = part.mass, part.cells, None
        # Which sums ranks exchange depends on the loss alone, never on their rows: or they would wait for each other.
        if group is not None and (counting is not None or self.reduction != "none"):
            totals = ranks.total(part.sums, group)
            mass, cells = totals[1], totals[2:]
        if counting is not None:
            self.advance(cells)
        if self.reduction == "none":
            return part.weighted if part.unit == 1.0 else part.unit * part.weighted
        share: Any = 1.0
        if mean:
            share = 1.0 / (mass + (mass == 0))
        elif self.task == "multiclass" and self.by_class:
            # A row of many classes is one element: its loss is the mean of its columns, as "none" gives it.
            share = 1.0 / (self.num_labels or 1)
        if totals is None:
            return part.loss(share if mean else part.unit * share)
        return reported(part.loss(ranks.size(group) * part.unit * share), totals[0] * share)


@torch.inference_mode(False)
@torch.enable_grad()
def check_formula(metric: Metric) -> None:
    """Refuse a user's formula that cannot take tensors, before it turns a gradient into a wrong number."""
    # A point of each of two columns, and the slopes there by autograd and by the metric itself.
    c = [x.double().requires_grad_() for x in torch.tensor([[0.07, 0.2], [0.2, 0.1], [0.03, 0.1], [0.7, 0.6]])]
    try:
        score = metric(Confusion(*c))
        tp, fp, fn, tn = torch.autograd.grad(score.sum(), c, allow_unused=True, materialize_grads=True)
        slopes = torch.stack([tp - fn, tn - fp])
        wanted = torch.stack([torch.as_tensor(g) for g in metric.gains(Confusion(*(x.detach() for x in c)))])
        sound = score.shape == (2,) and torch.allclose(slopes, wanted, rtol=1e-4, atol=1e-6)
    except (TypeError, ValueError, RuntimeError, AttributeError):
        sound = False
    if not sound:
        raise ValueError(
            f"{metric} cannot be evaluated on tensors with a gradient, which this loss does. Write it in plain "
            "arithmetic: x ** 0.5 in place of math.sqrt or np.sqrt, no `if`, `min` or `float` on a cell "
            "(fbeta.metrics.confusion.divide and root are safe at zero)."
        )
