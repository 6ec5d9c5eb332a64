"""Names that are nearly right."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def did_you_mean(name: str, choices: Iterable[str], most: int = 1, ask: str = "Did you mean") -> str:
    """A question that names what is most similar but for capitals, with a blank before it, or nothing.

    >>> did_you_mean("tangnet", ["bce", "tangent"])
    " Did you mean 'tangent'?"
    >>> did_you_mean("IS_FRUAD", ["amount", "is_fraud"], ask="Is it")
    " Is it 'is_fraud'?"
    >>> did_you_mean("x", ["bce", "tangent"])
    ''
    """
    by_case = {choice.casefold(): choice for choice in choices}
    near = difflib.get_close_matches(name.casefold(), by_case, n=most)
    return f" {ask} {' or '.join(repr(by_case[key]) for key in near)}?" if near else ""
