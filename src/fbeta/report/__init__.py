"""What a comparison found, for people: one HTML file that needs no network, or a table for the terminal.

The page's pictures are small SVGs written here, not plotly's: the points are few, so a picture is a few kilobytes
where plotly's script alone is megabytes, they stay in the file when it is printed or read without scripts, and their
colours follow the page from light to dark. The script (`page.js`) only sorts, hides, and moves a mark.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fbeta.writing import replacing

if TYPE_CHECKING:
    from rich.console import RenderableType

    from fbeta.comparison.result import Comparison
    from fbeta.metrics import Metric

__all__ = ["page", "terminal", "write"]


def page(comparison: Comparison, metric: Metric | Callable[..., Any] | None = None) -> str:
    """Compose the page of a comparison: one HTML file, nothing fetched, every name from the data escaped.

    `metric` is needed only for a metric of one's own that no spec can name.

    >>> from fbeta.comparison.result import Comparison, Table
    >>> table = Table("fraud", "is_fraud", "1", 1000, 20, 5)
    >>> page(Comparison(table, "fbeta:beta=2", "F₂", (), "", "", "Nothing was run."))[:15]
    '<!doctype html>'
    """
    from fbeta.report.document import document

    return document(comparison, metric)


def write(
    comparison: Comparison, path: str | Path, metric: Metric | Callable[..., Any] | None = None
) -> None:
    """Write the page of a comparison to a file, whole or not at all.

    >>> import tempfile
    >>> from fbeta.comparison.result import Comparison, Table
    >>> comparison = Comparison(Table("t", "y", "1", 9, 2, 1), "mcc", "MCC", (), "", "", "Nothing was run.")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write(comparison, Path(folder, "page.html"))
    ...     [file.name for file in Path(folder).iterdir()]
    ['page.html']
    """
    text = page(comparison, metric)
    with replacing(Path(path)) as part:
        part.write_text(text, encoding="utf-8")


def terminal(comparison: Comparison) -> RenderableType:
    """Lay out a comparison for a terminal of 100 columns; print it with rich's `Console`.

    >>> from rich.console import Console
    >>> from fbeta.comparison.result import Comparison, Table
    >>> table = Table("fraud", "is_fraud", "1", 1000, 20, 5)
    >>> shown = terminal(Comparison(table, "fbeta:beta=2", "F₂", (), "", "", "Nothing was run."))
    >>> Console(width=100).print(shown)
    fraud by F₂
    1,000 rows, 5 columns; is_fraud = 1 in 20 of them (2.00 %)
    <BLANKLINE>
    Nothing was run.
    """
    from fbeta.report.console import layout

    return layout(comparison)
