"""How results are shown: pages, pictures and text for the terminal, of a comparison and of a metric (`explain`).

A page is one HTML file that needs no network (`shell`). Its pictures are small SVGs (`chart`): they stay in the file
when it is printed or read without scripts, and their colours follow the page from light to dark.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fbeta.report.comparison_page import page as page
    from fbeta.report.comparison_page import write as write
    from fbeta.report.comparison_printout import terminal as terminal

_HOME = {"page": "comparison_page", "terminal": "comparison_printout", "write": "comparison_page"}

__all__ = ["page", "terminal", "write"]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'fbeta.report' has no attribute {name!r}")
    return getattr(importlib.import_module(f"fbeta.report.{_HOME[name]}"), name)
