"""How a metric is named: from a spec such as "fbeta:beta=2" to the metric, and back to a short title."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fbeta.metrics.confusion import Cell, Confusion
from fbeta.metrics.formulas import Cost, FBeta
from fbeta.metrics.metric import Metric, key_of
from fbeta.spelling import read_options, unknown

#: What some call a metric that has another name here; f1, f2, f0.5 … are read as well.
OTHER_NAMES = {"dice": "fbeta", "iou": "jaccard"}


@dataclass(frozen=True)
class Custom(Metric, register=False):
    """A plain function of the four cells as a metric; made by `as_metric(function)`."""

    function: Callable[[Any, Any, Any, Any], Any]

    def ratio(self, c: Confusion) -> tuple[Cell, Cell]:
        """The function's value over one."""
        return self.function(c.tp, c.fp, c.fn, c.tn), 1.0

    def __call__(self, c: Confusion) -> Cell:
        """Score the cells by the user's own function, 0/0 and all."""
        return self.function(c.tp, c.fp, c.fn, c.tn)

    def __str__(self) -> str:
        """Name the function (there is no spec to read back)."""
        return getattr(self.function, "__name__", repr(self.function))

    def __repr__(self) -> str:
        """As it was made, by the function's name: errors and modules show it."""
        return f"as_metric({self})"


def as_metric(spec: Metric | str | Callable[[Any, Any, Any, Any], Any]) -> Metric:
    """Read a metric: an instance, a spec such as "fbeta:beta=2" or "f2", or a function of (tp, fp, fn, tn).

    >>> as_metric("fbeta:beta=2")
    FBeta(beta=2.0)
    >>> as_metric("f0.5"), as_metric("dice"), as_metric("iou")
    (FBeta(beta=0.5), FBeta(beta=1.0), Jaccard())
    >>> as_metric("balanced-accuracy")
    BalancedAccuracy()
    >>> as_metric(lambda tp, fp, fn, tn: tp / (tp + 3 * fn + fp))(Confusion(3, 0, 1, 6))
    0.5
    """
    if isinstance(spec, Metric):
        return spec
    if isinstance(spec, type) and issubclass(spec, Metric):
        raise TypeError(f"A metric is an instance; got the class {spec.__name__}. Write {spec.__name__}().")
    if callable(spec):
        return Custom(spec)
    if not isinstance(spec, str):
        raise TypeError(
            f"A metric is a Metric, a spec such as 'fbeta:beta=2', or a function of (tp, fp, fn, tn); got {spec!r}."
        )
    name, _, options = spec.strip().partition(":")
    key = key_of(name)
    if key not in Metric.registry:
        short = re.fullmatch(r"f(\d+(?:\.\d+)?|\.\d+)", key)  # in one way only: long names must not take for ever
        if short and not options:
            return FBeta(float(short[1]))
        key = OTHER_NAMES.get(key, key)
    if key not in Metric.registry:
        raise unknown("metric", name, sorted(Metric.registry), more="; options follow a colon, as in fbeta:beta=2")
    cls = Metric.registry[key]
    return cls(**read_options(cls, options))


def title(metric: Metric) -> str:
    """The name of a metric, short.

    >>> from fbeta import FBeta
    >>> title(FBeta(2)), title(FBeta(0.5)), title(FBeta(1.5))
    ('F₂', 'F½', 'F(β=1.5)')
    """
    if isinstance(metric, Cost) and metric.matrix is not None:
        return "minus the mean price"
    if not isinstance(metric, FBeta):
        return str(metric)
    short = {0.5: "½"} | {float(i): "₀₁₂₃₄₅₆₇₈₉"[i] for i in range(1, 10)}
    return f"F{short.get(float(metric.beta), f'(β={metric.beta:g})')}"
