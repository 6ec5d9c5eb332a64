"""Names that are nearly right."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def did_you_mean(name: str, choices: Iterable[str], most: int = 1) -> str:
    """A question that names what is most similar, with a blank before it, or nothing.

    >>> did_you_mean("tangnet", ["bce", "tangent"])
    " Did you mean 'tangent'?"
    >>> did_you_mean("x", ["bce", "tangent"])
    ''
    """
    near = difflib.get_close_matches(name, list(choices), n=most)
    return f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
