"""The shell of every loss: it reads tensors, remembers numbers, sums over ranks and reduces."""

from __future__ import annotations

import inspect
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from types import ModuleType
from typing import Any, ClassVar, Never, TypedDict

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor

from fbeta.losses import kernels as fused
from fbeta.losses import ranks
from fbeta.losses.running import AVERAGES, Exact, one_of
from fbeta.losses.task import TASKS, WIDE, Batch, check_task, convert, validate
from fbeta.metrics import Confusion, Metric, check_prevalence
from fbeta.metrics import metric as read_metric
from fbeta.spelling import did_you_mean

REDUCTIONS = ("mean", "sum", "none")
#: What people know from PyTorch's losses, and what says the same here; weights of classes see `unknown_keyword`.
ELSEWHERE = {
    "num_classes": "the number of classes is num_labels, with task='multiclass' (or 'multilabel')",
    "label_smoothing": "targets of binary tasks may be soft instead, in [0, 1], as target * (1 - s) + s / 2 is",
    "size_average": "use reduction='mean' or 'sum'",
    "reduce": "use reduction='mean', 'sum' or 'none'",
}


class Options(TypedDict, total=False):
    """What every loss takes besides its own arguments; see `Loss`."""

    class_counts: Any
    reduction: str
    task: str
    num_labels: int | None
    average: str
    ignore_index: int | None
    check: bool | None
    process_group: dist.ProcessGroup | None
    sync: bool


class Loss(Exact, ABC):
    """What the losses share: metric, task, the two prevalences, weights, reduction and ranks.

    Arguments (all losses take them):

    - `metric`: a Metric, a spec such as "fbeta:beta=2", or a function of (tp, fp, fn, tn). A loss that does not
      depend on a metric (cross entropy, focal) takes one too and only remembers it.
    - `prevalence`: the rate of positives in the population that the metric is about; for macro multi-label
      one number, or one a label; for multi-class one a class.
    - `class_counts`: (negatives, positives), or for multi-class one count a class, in the training stream, where
      a sampler changes the rate. If only one of the two is given it serves for both; neither is ever taken from
      a single batch.
    - `task`, `num_labels`, `average`: see `fbeta.losses.task`; "macro" or "micro" over labels or classes, "each" where
      columns are problems of their own (many runs side by side) and share no scale.
    - `reduction`: "mean" is Σwℓ/Σw over kept elements, "sum" Σwℓ, "none" the elements wℓ.
    - `ignore_index`: targets of this value are left out.
    - `check`: True looks at every value (and raises on NaN logits), None where that is free, False never.
    - `process_group`, `sync`: sum over these ranks in training; sync=False keeps ranks apart.
    """

    #: Every loss by name, filled as classes are defined.
    registry: ClassVar[dict[str, type[Loss]]] = {}
    #: The name that `fbeta.losses.get` reads; an abstract loss has none.
    name: ClassVar[str]
    #: Reductions that make sense: a loss of a set has no elements.
    reductions: ClassVar[tuple[str, ...]] = REDUCTIONS
    #: Tasks the loss can do.
    tasks: ClassVar[tuple[str, ...]] = TASKS
    #: Whether a row of many classes has an element for each of them, or one alone.
    by_class: ClassVar[bool] = True
    #: Whether the loss is built from the metric, or only remembers it.
    uses_metric: ClassVar[bool] = True
    #: The largest |∂ℓ/∂z| of an element before the caller's weight, as far as the host knows.
    steepest: float = 1.0

    def __init_subclass__(cls, *, name: str | None = None, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if name is not None:
            cls.name = name
            Loss.registry[name] = cls

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
        check_task(task, num_labels)
        one_of("average", average, AVERAGES if task == "multilabel" else AVERAGES[:2])
        if reduction not in self.reductions:
            why = " A loss of a whole set has no elements." if reduction == "none" else ""
            raise ValueError(
                f"reduction must be one of {', '.join(self.reductions)}; got {reduction!r}.{why}"
            )
        if metric is None and self.uses_metric:
            raise ValueError(f"{type(self).__name__} needs a metric, for example FBeta(1) or 'fbeta:beta=2'.")
        self.metric: Metric | None = None if metric is None else read_metric(metric)
        self.task, self.num_labels, self.average = task, num_labels, average
        self.reduction, self.ignore_index, self.check = reduction, ignore_index, check
        self.process_group, self.sync = process_group, sync
        self.columns = task in WIDE and average != "micro"
        if task not in self.tasks:
            raise ValueError(
                f"{type(self).__name__} cannot do task={task!r}; it can do {', '.join(self.tasks)}."
            )
        counts = None if class_counts is None else self._read_counts(class_counts)
        rate = None if prevalence is None else self._read_prevalence(prevalence)
        #: (negatives, positives) of the training stream, if told; shape () or (K,).
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

    def forward(self, logits: Tensor, target: Tensor, weight: Tensor | None = None) -> Tensor:
        """Loss of a batch of logits against targets; `weight` has the target's shape, and 2 is a row twice."""
        validate(
            logits,
            target,
            weight,
            task=self.task,
            num_labels=self.num_labels,
            ignore_index=self.ignore_index,
            check=self.check,
        )
        training = self.training and torch.is_grad_enabled()
        group = ranks.group_of(self.process_group, self.sync) if training else None
        if logits.dtype == torch.float16:
            # Only where every element has weight one does the host know what a mean divides by.
            plain = weight is None and self.ignore_index is None and self.reduction == "mean"
            self._warn_overflow(target.numel() if plain else 1, ranks.size(group))
        pooled = self.task == "binary" or (self.task == "multilabel" and not self.columns)
        if pooled and self.reduction != "none":
            kernels = fused.choose(logits, target, weight)
            value = None if kernels is None else self.fused_loss(kernels, logits, target, weight, group)
            if value is not None:
                return value
        loss = self.loss_of(self.batch_of(logits, target, weight), group)
        if self.reduction == "none" and self.task == "multiclass":
            return (loss.mean(-1) if self.by_class else loss).reshape(target.shape)
        return loss

    def batch_of(self, logits: Tensor, target: Tensor, weight: Tensor | None) -> Batch:
        """What `loss_of` is given: logits, targets and weights of one shape."""
        return convert(logits, target, weight, task=self.task, ignore_index=self.ignore_index)

    def _warn_overflow(self, elements: int, size: int) -> None:
        """Warn where a gradient is known not to fit float16 (the host knows the class weights, not the rows)."""
        largest = self.steepest * size / max(elements, 1)
        if largest > torch.finfo(torch.float16).max:
            warnings.warn(
                f"Gradients of float16 logits overflow: a class weight of {self.steepest:g} gives elements up to "
                f"{largest:g}, and float16 ends at 65504. Compute logits in bfloat16 or float32, use "
                "reduction='mean' with larger batches, or smaller class weights.",
                RuntimeWarning,
                stacklevel=3,
            )

    @abstractmethod
    def loss_of(self, batch: Batch, group: dist.ProcessGroup | None) -> Tensor:
        """The loss of a batch that was read, summed over `group`."""

    def fused_loss(
        self,
        kernels: ModuleType,
        logits: Tensor,
        target: Tensor,
        weight: Tensor | None,
        group: dist.ProcessGroup | None,
    ) -> Tensor | None:
        """The same as `loss_of` by fused kernels, or None where they cannot."""
        return None

    def row_sum(
        self,
        kernels: ModuleType,
        tensors: tuple[Tensor, Tensor, Tensor | None],
        run: fused.Pass,
        plain: Callable[[Batch], Tensor],
        group: dist.ProcessGroup | None,
    ) -> tuple[Tensor, Tensor]:
        """Reduce a fused row loss: `run` gives its sums and gradient, `plain` its elements."""
        z, y, w = tensors
        size, factor = ranks.size(group), 1.0
        known = w is None and self.ignore_index is None and group is None
        if self.reduction == "sum":
            factor = float(size)
        elif known:
            factor = 1.0 / z.numel()

        def differentiable(z: Tensor) -> Tensor:
            batch = convert(z, y, w, task="binary", ignore_index=self.ignore_index)
            return factor * (batch.weight * plain(batch)).sum()

        needed = z.requires_grad and torch.is_grad_enabled()  # an evaluation writes no gradient
        function: Any = fused.RowSum.apply
        value, sums = function(z, lambda z: run(z, factor, needed), differentiable, factor, kernels)
        sums = ranks.total(sums, group)
        if self.reduction == "mean" and not known:
            total = sums[1]
            value = value * (size / (total + (total == 0))).to(value.dtype)
        return value, sums

    def reduce(
        self, elements: Tensor, weight: Tensor, total: Tensor, group: dist.ProcessGroup | None
    ) -> Tensor:
        """Reduce elements; `total` is Σw over all ranks.

        DDP averages gradients over R ranks, so a rank returns R times its part: the average over ranks is
        then the loss, and the gradient, of one process that has all rows.
        """
        weighted = weight * elements
        if self.reduction == "none":
            return weighted
        part = weighted.sum() * ranks.size(group)
        if self.reduction == "sum":
            # A row of many classes is one element: its loss is the mean of its columns, as "none" gives it.
            return part / (self.num_labels or 1) if self.task == "multiclass" and self.by_class else part
        return part / (total + (total == 0)).to(part.dtype)

    def remember(self, name: str, value: Any) -> None:
        """Keep known numbers as a buffer that moves with the module (and is no part of its state)."""
        tensor = None if value is None else torch.tensor(np.array(value), dtype=torch.float64)
        self.register_buffer(name, tensor, persistent=False)

    def same_device(self, state: Tensor, logits: Tensor) -> None:
        """Say how to bring state and logits together where they are apart."""
        if state.device != logits.device:
            raise RuntimeError(
                f"{type(self).__name__} keeps its counts on {state.device}, the logits are on {logits.device}: "
                f"call loss.to({str(logits.device)!r}) once."
            )

    def _read_counts(self, class_counts: Any) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        try:
            if self.task == "multiclass":  # one count a class: each against the rest
                n1 = _numbers(class_counts)
                n0 = n1.sum() - n1
            else:
                n0, n1 = (_numbers(n) for n in class_counts)
        except (TypeError, ValueError) as error:
            raise ValueError(
                "class_counts is a pair (negatives, positives), each a number or one a label (for multi-class one "
                f"number a class); got {class_counts!r}."
            ) from error
        if not (np.isfinite(n0).all() and np.isfinite(n1).all() and (n0 >= 0).all() and (n1 >= 0).all()):
            raise ValueError(f"class_counts must be finite and zero or more; got {class_counts!r}.")
        for name, n in (("negatives", n0), ("positives", n1)):
            if (n == 0).any():
                raise ValueError(
                    f"class_counts has no {name}: a class without rows has neither a rate nor a weight. "
                    "Count the whole training set."
                )
        if self.task in WIDE and self.average == "micro":
            self._one_or_all("class_counts", n0, n1)
            return n0.sum(), n1.sum()
        return self._per_column("class_counts", n0), self._per_column("class_counts", n1)

    def _read_prevalence(self, prevalence: Any) -> np.ndarray[Any, Any]:
        try:
            rates = _numbers(prevalence)
        except (TypeError, ValueError):
            check_prevalence(prevalence)
            raise
        for p in rates.flat:
            check_prevalence(p.item())
        if self.task in WIDE and self.average == "micro":
            self._one_or_all("prevalence", rates)
            return rates.mean()  # type: ignore[no-any-return]
        return self._per_column("prevalence", rates)

    def _one_or_all(self, name: str, *values: np.ndarray[Any, Any]) -> None:
        for x in values:
            if x.size not in (1, self.num_labels):
                raise ValueError(
                    f"{name} must be one number or {self.num_labels} (one a label); got {x.size}."
                )

    def _per_column(self, name: str, values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """A number for one column; for several a number each."""
        shape = (self.num_labels or 1,) if self.columns else ()
        if self.task == "multiclass" and values.ndim == 0 and self.columns:
            raise ValueError(f"{name} of a multi-class problem needs {self.num_labels} numbers, one a class.")
        if values.ndim and values.shape != shape:
            wants = f"a number or {self.num_labels} of them (one a label)" if self.columns else "one number"
            raise ValueError(f"{name} must be {wants} here; got {values.size} numbers.")
        return np.broadcast_to(values, shape)

    def extra_repr(self) -> str:
        """Show what a reader needs to tell two losses apart."""
        rate = "" if self.prevalence is None else f"prevalence={np.asarray(self.prevalence).tolist()}, "
        metric = "" if self.metric is None else f"{self.metric!r}, "
        return f"{metric}{rate}task={self.task!r}, reduction={self.reduction!r}"


class RowLoss(Loss):
    """A loss that is a sum over rows: it gives elements, and the shell weighs and reduces them."""

    @abstractmethod
    def elements(self, logits: Tensor, target: Tensor) -> Tensor:
        """The loss of each element, class weights included; shape of the logits."""

    def by_task(self, pair: tuple[Any, Any]) -> tuple[Any, Any]:
        """Class weights for elements: of many classes only the true one has a loss (and C times its mean)."""
        return (0.0, (self.num_labels or 1) * pair[1]) if self.task == "multiclass" else pair

    def loss_of(self, batch: Batch, group: dist.ProcessGroup | None) -> Tensor:
        """Weigh and reduce the elements."""
        z, y, w = batch
        # Only a mean needs to know what the other ranks hold.
        total = ranks.total(w.sum(), group if self.reduction == "mean" else None)
        return self.reduce(self.elements(z, y), w, total, group)


def unknown_keyword(loss: type[Loss], keyword: str) -> str:
    """What to say of a keyword that a loss does not take: what serves here, or the nearest name.

    >>> unknown_keyword(Loss, "reduce")
    "Loss takes no reduce: use reduction='mean', 'sum' or 'none'."
    """
    if keyword in ELSEWHERE:
        return f"{loss.__name__} takes no {keyword}: {ELSEWHERE[keyword]}."
    makers = [inspect.signature(cls.__init__) for cls in loss.__mro__ if issubclass(cls, Loss)]
    known = [p.name for make in makers for p in make.parameters.values() if p.kind is not p.VAR_KEYWORD]
    choices = sorted({*known} - {"self"})
    if keyword in ("weight", "pos_weight"):
        rows = (
            "rows are weighed in the call, loss(logits, target, weight), and " if keyword == "weight" else ""
        )
        if "weighting" in choices:
            classes = "weighting=(1, w) counts a positive w times"
        elif loss.uses_metric:
            classes = (
                "class_counts=(negatives, positives) and the metric, for example FBeta(2), weigh the classes"
            )
        else:
            classes = "weighting=(1, w) of BalancedBCELoss or SurrogateLoss counts a positive w times"
        return f"{loss.__name__} takes no {keyword}: {rows}{classes}."
    hint = did_you_mean(keyword, choices)
    return f"{loss.__name__} takes no {keyword!r}.{hint} Choices: {', '.join(choices)}."


@torch.enable_grad()
def check_tensors(metric: Metric) -> None:
    """Refuse a user's formula that cannot take tensors, before it turns a gradient into a wrong number.

    >>> check_tensors(read_metric("mcc"))
    """
    # A point of each of two columns, and the slopes there by autograd and by the metric itself.
    c = [
        x.double().requires_grad_() for x in torch.tensor([[0.07, 0.2], [0.2, 0.1], [0.03, 0.1], [0.7, 0.6]])
    ]
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


def _numbers(x: Any) -> np.ndarray[Any, Any]:
    return np.asarray(x.detach().cpu() if isinstance(x, Tensor) else x, dtype=np.float64)
