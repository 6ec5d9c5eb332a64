"""What can be compared: models, by name or the reader's own, each with the losses it can be trained with."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fbeta import losses as all_losses
from fbeta.decisions import as_rule
from fbeta.learners import Learner
from fbeta.learners import models as all_models
from fbeta.learners.classifiers import Own, unwritten
from fbeta.learners.machine import device_of
from fbeta.learners.searched import Searched
from fbeta.metrics import Metric, as_metric
from fbeta.spelling import unknown

#: What users name: one, several, or None for those that are there.
Names = str | Sequence[str] | None
#: Models by name, or under names of the reader's: an estimator each, or it and distributions of its parameters; None
#: is the model that is known by the name.
ModelChoice = Names | Mapping[str, Any]
#: What people use, the paper's loss, ours, and the metric on soft counts.
DEFAULT_LOSSES = ("bce", "balanced-bce", "focal", "soft", "surrogate", "tangent")
BASELINE = "bce"


@dataclass(frozen=True)
class Method:
    """A model trained with a loss; `given` is what learns, if it is not the model that is known by the name."""

    model: str
    loss: str
    given: Learner | None = field(default=None, compare=False, repr=False)

    @property
    def name(self) -> str:
        """As tables show it."""
        return f"{self.model}, {self.loss}"

    @property
    def learner(self) -> Learner:
        """The model, with its settings."""
        return self.given or all_models.get(self.model)


def learners_for(models: ModelChoice, trials: int = 1) -> dict[str, Learner]:
    """What learns, by name: the models that are named, the reader's own, or the usual ones that are installed.

    With more than one of the `trials`, those that have settings to draw are searched.
    """
    if not trials >= 1:
        raise ValueError(f"trials must be 1 (settings as they are) or more; got {trials!r}.")
    found = _learners(models)
    if trials == 1:
        return found
    return {name: Searched(learner, trials) if learner.space else learner for name, learner in found.items()}


def _learners(models: ModelChoice) -> dict[str, Learner]:
    if isinstance(models, Mapping):
        return {name: all_models.get(name) if own is None else _own(name, own) for name, own in models.items()}
    named = _several(models, "models")
    return {name: all_models.get(name) for name in named} or {
        name: learner for name in all_models.names() if (learner := all_models.get(name)).usual
    }


def _own(name: str, estimator: Any) -> Own:
    if not isinstance(name, str) or not name.strip() or "," in name:
        raise ValueError(f"A model needs a name without a comma; got {name!r}.")
    if name.partition("+")[2] or name in all_models.names():
        raise ValueError(f"{name!r} is the name of another model already: call yours something else.")
    return Own(name, *estimator) if isinstance(estimator, tuple) and len(estimator) == 2 else Own(name, estimator)


def methods_for(
    models: ModelChoice, losses: Names, metric: Metric, *, baseline: bool = True, trials: int = 1
) -> list[Method]:
    """All pairs of a model and a loss it can be trained with; by default only losses that take the metric."""
    named, known = _several(losses, "losses"), all_losses.names()
    chosen = learners_for(models, trials)
    takes = {name: learner.losses or known for name, learner in chosen.items()}
    own = {name: [loss for loss in takes[name] if loss not in known] for name in chosen}
    choices = list(dict.fromkeys([*known, *itertools.chain(*own.values())]))
    for name in named:
        if name not in choices:
            raise unknown("loss", name, choices, most=2)
    asked = named or [name for name in DEFAULT_LOSSES if _takes(name, metric)]
    asked = list(dict.fromkeys([BASELINE, *asked] if baseline else asked))
    # A model that takes none of them, but has losses of its own, is trained with those.
    of = {model: [loss for loss in asked if loss in takes[model]] or own[model] for model in chosen}
    found = [Method(model, loss, learner) for model, learner in chosen.items() for loss in of[model]]
    if not found:
        has = ", ".join(next(iter(takes.values())))
        raise ValueError(f"{' and '.join(chosen)} cannot be trained with {', '.join(named)}: it has {has}.")
    return found


def check(
    metric: Metric | str,
    models: ModelChoice = None,
    losses: Names = None,
    *,
    rule: str = "shrunk",
    device: str = "cpu",
    baseline: bool = True,
    trials: int = 1,
) -> tuple[Metric, list[Method]]:
    """Refuse what is misspelt before a large table is read; give the metric and the methods.

    >>> check("mcc", ["linear"], rule="exakt")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ValueError: Unknown rule 'exakt'. Did you mean 'exact'? Choices: ...
    """
    goal = as_metric(metric)
    as_rule(rule)
    device_of(device)
    return goal, methods_for(models, losses, goal, baseline=baseline, trials=trials)


def writable(methods: Sequence[Method], wanted: int = 1) -> list[str]:
    """The models that a file can hold; ValueError if these are fewer than `wanted`."""
    models = {method.model: method.learner for method in methods}
    found = [model for model, learner in models.items() if learner.files]
    if len(found) < wanted:
        raise ValueError(unwritten(next(model for model in models if model not in found)))
    return found


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


def _several(names: Any, what: str) -> list[str]:
    found = [names] if isinstance(names, str) else names or ()
    if not isinstance(found, Sequence) or not all(isinstance(name, str) for name in found):
        raise TypeError(f"{what} are names; models of your own come with one: models={{'mine': estimator}}.")
    return list(dict.fromkeys(found))


def _takes(loss: str, metric: Metric) -> bool:
    try:
        all_losses.get(loss, metric=metric, class_counts=(9, 1))
    except ValueError:
        return False
    return True


def trained_together(methods: Sequence[Method]) -> list[list[Method]]:
    """The methods of each model: all of them where its losses train as one, else one by one."""
    groups: list[list[Method]] = []
    for model in dict.fromkeys(m.model for m in methods):
        same = [m for m in methods if m.model == model]
        groups += [same] if same[0].learner.together else [[m] for m in same]
    return groups
