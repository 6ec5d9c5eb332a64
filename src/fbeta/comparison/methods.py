"""What can be compared: models, each with the losses it can be trained with, by name."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from fbeta import losses as all_losses
from fbeta.decisions import as_rule
from fbeta.learners import Learner
from fbeta.learners import models as all_models
from fbeta.learners.machine import device_of
from fbeta.metrics import Metric, as_metric
from fbeta.spelling import unknown

#: What users name: one, several, or None for those that are there.
Names = str | Sequence[str] | None
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


def methods_for(models: Names, losses: Names, metric: Metric, *, baseline: bool = True) -> list[Method]:
    """All pairs of a model and a loss it can be trained with; by default only losses that take the metric."""
    named, known = _several(losses), all_losses.names()
    usual = [name for name in all_models.names() if all_models.get(name).usual]
    chosen = list(dict.fromkeys(_several(models) or usual))
    takes = {name: all_models.get(name).losses or known for name in chosen}  # says what is wrong with a name
    own = {name: [loss for loss in takes[name] if loss not in known] for name in chosen}
    choices = list(dict.fromkeys([*known, *itertools.chain(*own.values())]))
    for name in named:
        if name not in choices:
            raise unknown("loss", name, choices, most=2)
    asked = named or [name for name in DEFAULT_LOSSES if _takes(name, metric)]
    asked = list(dict.fromkeys([BASELINE, *asked] if baseline else asked))
    # A model that takes none of them, but has losses of its own, is trained with those.
    of = {model: [loss for loss in asked if loss in takes[model]] or own[model] for model in chosen}
    found = [Method(model, loss) for model in chosen for loss in of[model]]
    if not found:
        raise ValueError(
            f"{' and '.join(chosen)} cannot be trained with {', '.join(named)}: it has {', '.join(takes[chosen[0]])}."
        )
    return found


def check(
    metric: Metric | str,
    models: Names = None,
    losses: Names = None,
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
    """Plain cross entropy of the model that is hardest to beat as a rule; its own loss if no model takes that."""
    return max(plain_of(methods), key=lambda method: method.learner.rank)


def plain_of(methods: Sequence[Method]) -> list[Method]:
    """Each model with plain cross entropy, or where it does not take that, with its own first loss."""
    found = {model: [m for m in methods if m.model == model] for model in dict.fromkeys(m.model for m in methods)}
    plain = {model: next((m for m in own if m.loss == BASELINE), None) for model, own in found.items()}
    if not any(plain.values()):
        return [own[0] for own in found.values()]
    return [method for method in plain.values() if method is not None]


def _several(names: Names) -> list[str]:
    return [names] if isinstance(names, str) else list(names or ())


def _takes(loss: str, metric: Metric) -> bool:
    try:
        all_losses.get(loss, metric=metric, class_counts=(9, 1))
    except ValueError:
        return False
    return True


def trained_together(methods: Sequence[Method]) -> list[tuple[str, tuple[str, ...]]]:
    """Each model with the losses that train as one."""
    groups: list[tuple[str, tuple[str, ...]]] = []
    for model in dict.fromkeys(m.model for m in methods):
        same = tuple(m.loss for m in methods if m.model == model)
        groups += [(model, same)] if all_models.get(model).together else [(model, (x,)) for x in same]
    return groups
