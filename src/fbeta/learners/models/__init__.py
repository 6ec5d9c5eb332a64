"""Models that can be compared and fitted, one per file; a new file here is found by the name of its learner."""

import importlib.util
from typing import Any

from fbeta.learners.learner import Learner
from fbeta.learners.resampled import SAMPLERS, Resampled
from fbeta.spelling import import_modules, unknown

#: What pip calls a package that is imported by another name, or that needs none of its own requirements here.
INSTALLED_AS = {"imblearn": "imbalanced-learn", "sklearn": "scikit-learn", "libauc": "--no-deps libauc"}


def names() -> list[str]:
    """The models that can be trained here; those that are hardest to beat come last."""
    return [name for name, cls in _known().items() if importlib.util.find_spec(cls.package)]


def get(name: str, **settings: Any) -> Learner:
    """Make a learner by name, resampled where a sampler comes before it ("over+linear"); `settings` go to its class."""
    sampler, plus, inside = name.partition("+")
    if plus:
        if sampler not in SAMPLERS:
            raise unknown("sampler", sampler, SAMPLERS)
        _need("imblearn", name)
        return Resampled(sampler, get(inside, **settings))
    known = _known()
    if name not in known:
        raise unknown("model", name, known)
    _need(known[name].package, name)
    return known[name](**settings)


def _need(package: str, name: str) -> None:
    if importlib.util.find_spec(package) is None:
        raise ValueError(f"The model {name!r} is not installed: pip install {INSTALLED_AS.get(package, package)}.")


def _known() -> dict[str, type[Learner]]:
    import_modules(__name__, __path__)
    return dict(sorted(Learner.registry.items(), key=lambda item: (item[1].rank, item[0])))
