"""Commands and data sets that other packages add, found by their entry points.

A package names them in its `pyproject.toml`; nothing of it is imported before one of them is asked for::

    [project.entry-points."fbeta.commands"]
    paper = "fbeta_reproduction.commands:app"                            # a typer.Typer: `fbeta paper …`

    [project.entry-points."fbeta.datasets"]
    cifar10 = "fbeta_reproduction.images.cifar10:DATASET"                # a fbeta.datasets.Dataset
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

COMMANDS, DATASETS = "fbeta.commands", "fbeta.datasets"

#: What fbeta-reproduction adds, so that these names can be explained where it is not installed.
_REPRODUCTION = {COMMANDS: ("paper",), DATASETS: ("cifar10", "fashion-mnist")}


@cache
def _found(group: str) -> dict[str, EntryPoint]:
    from importlib.metadata import entry_points  # reads every installed package's metadata: some milliseconds

    return {point.name: point for point in sorted(entry_points(group=group), key=lambda point: point.name)}


def names(group: str) -> list[str]:
    """The names that installed packages add to a group, in alphabetical order."""
    return list(_found(group))


def load(group: str, name: str) -> Any:
    """Import what a package has added under a name."""
    return _found(group)[name].load()


def missing(group: str, name: str) -> str | None:
    """Say how to get what is not installed, or None for a name that no known package adds."""
    if name in names(group) or name not in _REPRODUCTION[group]:
        return None
    return (
        f"{name} comes with the package fbeta-reproduction, which is not installed: "
        "run `pip install ./reproduction` in a clone of fbeta's repository."
    )
