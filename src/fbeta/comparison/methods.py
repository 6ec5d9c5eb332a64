"""What is compared: models, losses, and the baseline that is fixed before anything is run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fbeta import losses as all_losses
from fbeta.decisions import as_rule
from fbeta.learners import Learner
from fbeta.learners import models as all_models
from fbeta.learners.devices import device_of
from fbeta.metrics import Metric, as_metric
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
        """As tables show it."""
        return f"{self.model}, {self.loss}"

    @property
    def learner(self) -> Learner:
        """The model, with its settings."""
        return all_models.get(self.model)


def methods_for(
    wanted_models: str | Sequence[str] | None,
    wanted_losses: str | Sequence[str] | None,
    metric: Metric,
    *,
    baseline: bool = True,
) -> list[Method]:
    """All pairs of a model and a loss that it can be trained with; with a `baseline`, cross entropy is among them.

    If no loss is asked for, those that refuse the metric are left out.

    >>> from fbeta import as_metric
    >>> [method.name for method in methods_for("linear", ["tangent"], as_metric("f1"))]
    ['linear, bce', 'linear, tangent']
    >>> "linear, surrogate" in [method.name for method in methods_for(["linear"], None, as_metric("mcc"))]
    False
    """
    chosen = list(dict.fromkeys(_several(wanted_models) or all_models.names()))
    for name in chosen:
        all_models.get(name)  # says what is wrong with it
    named, known = _several(wanted_losses), all_losses.names()
    for name in named:
        if name not in known:
            raise ValueError(f"Unknown loss {name!r}.{did_you_mean(name, known)} Choices: {', '.join(known)}.")
    asked = named or [name for name in DEFAULT_LOSSES if _takes(name, metric)]
    asked = list(dict.fromkeys([BASELINE, *asked] if baseline else asked))
    pairs = [Method(model, loss) for model in chosen for loss in asked]
    found = [method for method in pairs if method.loss in (method.learner.losses or known)]
    if not found:
        known = list(all_models.get(chosen[0]).losses or ())
        raise ValueError(
            f"{' and '.join(chosen)} cannot be trained with {', '.join(named)}: it has {', '.join(known)}."
        )
    return found


def check(
    metric: Metric | str,
    models: str | Sequence[str] | None = None,
    losses: str | Sequence[str] | None = None,
    *,
    rule: str = "shrunk",
    device: str = "cpu",
    baseline: bool = True,
) -> tuple[Metric, list[Method]]:
    """Refuse what is misspelt before a large table is read; give the metric and the methods.

    >>> check("mcc", ["linear"], rule="exakt")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ValueError: Unknown rule 'exakt'. Did you mean 'exact'? Choices: ...
    """
    goal = as_metric(metric)
    as_rule(rule)
    device_of(device)
    return goal, methods_for(models, losses, goal, baseline=baseline)


def baseline_of(methods: Sequence[Method]) -> Method:
    """Plain cross entropy of the model that is hardest to beat as a rule."""
    plain = [method for method in methods if method.loss == BASELINE]
    return max(plain, key=lambda method: method.learner.rank)


def _several(names: str | Sequence[str] | None) -> list[str]:
    return [names] if isinstance(names, str) else list(names or ())


def _takes(loss: str, metric: Metric) -> bool:
    try:
        all_losses.get(loss, metric=metric, class_counts=(9, 1))
    except ValueError:
        return False
    return True
