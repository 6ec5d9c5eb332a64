"""How results are shown: pages, pictures and text for the terminal, of a comparison and of a metric (`explain`).

A page is one HTML file that needs no network (`shell`). Its pictures are small SVGs (`chart`): they stay in the file
when it is printed or read without scripts, and their colours follow the page from light to dark.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import RenderableType

    from fbeta.comparison.result import Comparison
    from fbeta.metrics import Metric

    Formula = Callable[..., Any]

__all__ = ["page", "terminal", "write"]


def page(comparison: Comparison, metric: Metric | Formula | None = None) -> str:
    """Compose the page of a comparison: one HTML file, nothing fetched, every name from the data escaped.

    `metric` is needed only for a metric of one's own that no spec can name.

    >>> from fbeta.comparison.result import Comparison, TableFacts
    >>> table = TableFacts("fraud", "is_fraud", "1", 1000, 20, 5)
    >>> page(Comparison(table, "fbeta:beta=2", "F₂", (), "", "", "Nothing was run."))[:15]
    '<!doctype html>'
    """
    from fbeta.report import comparison_page

    return comparison_page.page(comparison, metric)


def write(comparison: Comparison, path: str | Path, metric: Metric | Formula | None = None) -> None:
    """Write the page of a comparison to a file, whole or not at all."""
    from fbeta.report import shell

    shell.write(page(comparison, metric), path)


def terminal(comparison: Comparison) -> RenderableType:
    """Lay out a comparison for a terminal of 100 columns; print it with rich's `Console`.

    >>> from rich.console import Console
    >>> from fbeta.comparison.result import Comparison, TableFacts
    >>> table = TableFacts("fraud", "is_fraud", "1", 1000, 20, 5)
    >>> comparison = Comparison(table, "fbeta:beta=2", "F₂", (), "", "", "Nothing was run.")
    >>> Console(width=100).print(terminal(comparison))
    fraud by F₂
    1,000 rows, 5 columns; is_fraud = 1 in 20 of them (2.00 %)
    <BLANKLINE>
    Nothing was run.
    """
    from fbeta.report.comparison_printout import layout

    return layout(comparison)
