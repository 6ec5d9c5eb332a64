"""What is compared: models, losses, and the baseline that is fixed before anything is run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fbeta import losses
from fbeta.comparison import boosters
from fbeta.comparison.networks import RECIPES
from fbeta.metrics import Metric
from fbeta.spelling import did_you_mean

#: What people use, the paper's loss, ours, and the metric on soft counts.
DEFAULT_LOSSES = ("bce", "balanced-bce", "focal", "soft", "surrogate", "tangent")
BASELINE = "bce"


@dataclass(frozen=True)
class Method:
    """A model trained with a loss."""

    model: str
    loss: str

    @property
    def name(self) -> str:
        """As tables show it.

        >>> Method("mlp", "tangent").name
        'mlp, tangent'
        """
        return f"{self.model}, {self.loss}"


def models() -> list[str]:
    """The models that can be trained here."""
    return [*RECIPES, *boosters.installed()]


def plan(
    wanted_models: str | Sequence[str] | None,
    wanted_losses: str | Sequence[str] | None,
    metric: Metric | None = None,
) -> list[Method]:
    """All pairs of a model and a loss that it can be trained with; cross entropy is always among them.

    If no loss is asked for, those that refuse the metric are left out.

    >>> [method.name for method in plan("linear", ["tangent"])]
    ['linear, bce', 'linear, tangent']
    >>> from fbeta import metric
    >>> "linear, surrogate" in [method.name for method in plan(["linear"], None, metric("mcc"))]
    False
    """
    chosen = list(dict.fromkeys(several(wanted_models) or models()))
    for name in chosen:
        if name in boosters.LIBRARIES and name not in models():
            raise ValueError(f"{name} is not installed: pip install 'fbeta[boosting]'.")
        _known("model", name, models())
    usual = [name for name in DEFAULT_LOSSES if metric is None or _takes(name, metric)]
    asked = list(dict.fromkeys([BASELINE, *(several(wanted_losses) or usual)]))
    for name in asked:
        _known("loss", name, losses.names())
    return [
        Method(model, loss)
        for model in chosen
        for loss in asked
        if model not in boosters.LIBRARIES or loss in boosters.LOSSES
    ]


def several(names: str | Sequence[str] | None) -> Sequence[str]:
    """Names, of which a single one may be given by itself.

    >>> several("bce"), several(None)
    (['bce'], [])
    """
    return [names] if isinstance(names, str) else names or []


def baseline(methods: Sequence[Method]) -> Method:
    """Plain cross entropy of the last model that was asked for: boosters come last, and are the hardest to beat."""
    return [method for method in methods if method.loss == BASELINE][-1]


def _takes(loss: str, metric: Metric) -> bool:
    try:
        losses.get(loss, metric=metric, class_counts=(9, 1))
    except ValueError:
        return False
    return True


def _known(what: str, name: str, choices: Sequence[str]) -> None:
    if name not in choices:
        hint = did_you_mean(name, choices)
        raise ValueError(f"Unknown {what} {name!r}.{hint} Choices: {', '.join(choices)}.")
