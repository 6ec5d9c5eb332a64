"""Models of the reader's own, which a command imports: `--model module:object`."""

from __future__ import annotations

import importlib
import inspect
import os
import sys
from typing import Any

from fbeta.cli.parameters import columns
from fbeta.spelling import did_you_mean


def models(given: list[str] | None) -> list[str] | dict[str, Any] | None:
    """The models of a command: names, or a dict with what was imported for those with a colon."""
    named = columns(given)
    if not any(":" in name for name in named):
        return named or None
    return {name: imported(name) if ":" in name else None for name in named}


def imported(spec: str) -> Any:
    """What `module:object` names: an estimator, or what a class or a function gives without arguments.

    Modules of the working directory are found. Whatever the code of the module does, it does.

    >>> imported("sklearn.svm:LinearSVC")
    LinearSVC()
    """
    from fbeta.learners.classifiers import Own

    path, _, name = spec.partition(":")
    here = os.getcwd()
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        module = importlib.import_module(path)
    except (Exception, SystemExit) as error:
        if isinstance(error, ModuleNotFoundError) and error.name and f"{path}.".startswith(f"{error.name}."):
            raise ValueError(
                f"--model {spec}: there is no module {error.name!r} in {here} or among what is installed; write "
                "module:object, as in Python's import, without .py."
            ) from error
        raise ValueError(f"--model {spec}: {path} cannot be imported: {_said(error)}.") from error
    found: Any = module
    for part in name.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            there = [known for known in dir(found) if not known.startswith("_")]
            raise ValueError(f"--model {spec}: {path} has no {part!r}.{did_you_mean(part, there)}") from None
    if isinstance(found, type) or inspect.isroutine(found):
        try:
            found = found()
        except (Exception, SystemExit) as error:
            raise ValueError(f"--model {spec}: {name}() without arguments fails: {_said(error)}.") from error
    try:
        return Own(spec, found).estimator
    except TypeError as error:
        raise ValueError(f"--model {error}") from error


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".rstrip(".: ")
