"""Names that people type: registered once, read with their options, and a hint where they are nearly right."""

import difflib
import importlib
import pkgutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any


def did_you_mean(name: str, choices: Iterable[str], most: int = 1, ask: str = "Did you mean") -> str:
    """A question that names what is most similar but for capitals, with a blank before it, or nothing."""
    by_case = {choice.casefold(): choice for choice in choices}
    near = difflib.get_close_matches(str(name).casefold(), by_case, n=most)
    return f" {ask} {' or '.join(repr(by_case[key]) for key in near)}?" if near else ""


def unknown(what: str, name: object, choices: Iterable[str], most: int = 1, more: str = "") -> ValueError:
    """The error of a name that is none of the choices: what may be meant, all of them, and perhaps `more`."""
    known = list(choices)
    hint = did_you_mean(str(name), known, most)
    return ValueError(f"Unknown {what} {name!r:.80}.{hint} Choices: {', '.join(known)}{more}.")


def register(registry: dict[str, Any], name: str, cls: type, what: str) -> None:
    """Enter a class under its name; only the same class, defined again as notebooks do, may take it over."""
    there = registry.get(name)
    if there is not None and (there.__module__, there.__qualname__) != (cls.__module__, cls.__qualname__):
        raise ValueError(f"A {what} named {name!r} exists already ({there.__module__}); rename yours.")
    registry[name] = cls


def import_modules(package: str, folder: Iterable[str]) -> None:
    """Import every module of a package, so that what they define is registered: a new file is enough to be found.

    `folder` is the package's `__path__`.

    >>> import email.mime
    >>> import_modules("email.mime", email.mime.__path__)
    >>> email.mime.text.MIMEText.__name__
    'MIMEText'
    """
    for module in pkgutil.iter_modules(folder):
        importlib.import_module(f"{package}.{module.name}")


def read_options(cls: Any, text: str) -> dict[str, Any]:
    """The options of a spec such as `fp=1, fn=20`, as arguments for a dataclass of numbers."""
    known = {f.name: f for f in fields(cls)}
    found: dict[str, Any] = {}
    for part in filter(None, (p.strip() for p in text.split(","))):
        name, equals, value = (x.strip() for x in part.partition("="))
        if not equals or name not in known:
            takes = ", ".join(known) or "no options"
            raise ValueError(f"{cls.__name__.lower()} takes {takes}; got {part!r}. Write name=value.")
        try:
            read = known[name].metadata.get("read", float)  # what is no number says how it is read
            found[name] = bool(float(value)) if known[name].default is True else read(value)
        except ValueError:
            raise ValueError(f"{name} of {cls.__name__.lower()} must be a number; got {value!r}.") from None
    return found


def on_first_use(
    package: str, homes: Mapping[str, str], needs: Sequence[str] | Mapping[str, Sequence[str]] = (), remedy: str = ""
) -> Any:
    """`__getattr__` and `__dir__` of a package whose names load on first use; `homes` says which module each lives in.

    What it `needs`, or what each name does, is imported first; where one is missing, the error is the `remedy`.
    """

    def load(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        try:
            for library in needs.get(name, ()) if isinstance(needs, Mapping) else needs:
                importlib.import_module(library)
        except ImportError as error:
            raise ImportError(f"{remedy}.") from error
        home = homes[name] if homes[name].startswith("fbeta.") else f"{package}.{homes[name]}"
        return getattr(importlib.import_module(home), name)

    return load, lambda: sorted(homes)
