"""Models that can be compared and fitted, one per file; a new file here is found by the name of its learner."""

import importlib.util
from typing import Any

from fbeta.learners.learner import Learner
from fbeta.spelling import import_modules, unknown


def names() -> list[str]:
    """The models that can be trained here; those that are hardest to beat come last."""
    return [name for name, cls in _known().items() if importlib.util.find_spec(cls.package)]


def get(name: str, **settings: Any) -> Learner:
    """Make a learner by name; `settings` go to its class."""
    known = _known()
    if name not in known:
        raise unknown("model", name, known)
    if importlib.util.find_spec(known[name].package) is None:
        raise ValueError(f"{name} needs {known[name].package}: pip install {known[name].package}.")
    return known[name](**settings)


def _known() -> dict[str, type[Learner]]:
    import_modules(__name__, __path__)
    return dict(sorted(Learner.registry.items(), key=lambda item: item[1].rank))
