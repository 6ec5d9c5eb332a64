"""Arguments that the losses share: their types, their checks, and what to say of one that a loss does not take."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from numbers import Real
from typing import TYPE_CHECKING, Any, TypedDict

import torch.distributed as dist

from fbeta.spelling import did_you_mean

if TYPE_CHECKING:
    from fbeta.losses.module import Loss

#: Arguments of PyTorch's losses, and what does the same here; for weights of classes see `unknown_keyword`.
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


def is_number(x: object) -> bool:
    """Whether x is a number, as an option needs it: strings, None and booleans are not."""
    return isinstance(x, Real) and not isinstance(x, bool)


def above_zero(name: str, value: Any, what: str = "number") -> None:
    """Refuse an option that is no number above 0; `what` says of what it is one."""
    if not (is_number(value) and value > 0):
        raise ValueError(f"{name} is a {what} above 0; got {value!r}.")


def one_of(name: str, value: Any, choices: Iterable[str]) -> None:
    """Refuse an option that is not among its choices, and list them."""
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(choices)}; got {value!r}.")


def unknown_keyword(loss: type[Loss], keyword: str) -> str:
    """What to say of a keyword that a loss does not take: what serves instead, or the nearest name."""
    if keyword in ELSEWHERE:
        return f"{loss.__name__} takes no {keyword}: {ELSEWHERE[keyword]}."
    makers = [inspect.signature(cls) for cls in loss.__mro__ if hasattr(cls, "uses_metric")]
    known = [p.name for make in makers for p in make.parameters.values() if p.kind is not p.VAR_KEYWORD]
    choices = sorted({*known} - {"self"})
    if keyword in ("weight", "pos_weight"):
        say = "weighting=(1, w) of BalancedBCELoss or SurrogateLoss counts a positive w times"
        if "weighting" in choices:
            say = "weighting=(1, w) counts a positive w times"
        elif loss.uses_metric:
            say = "class_counts=(negatives, positives) and the metric, for example FBeta(2), weigh the classes"
        if keyword == "weight":
            say = f"rows are weighed in the call, loss(logits, target, weight), and {say}"
        return f"{loss.__name__} takes no {keyword}: {say}."
    hint = did_you_mean(keyword, choices)
    return f"{loss.__name__} takes no {keyword!r}.{hint} Choices: {', '.join(choices)}."
