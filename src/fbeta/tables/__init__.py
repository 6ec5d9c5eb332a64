"""Tables: read from a file of any usual format, split honestly, encoded as numbers.

`read_table` gives a `Table`, `split` its folds, `Encoder` its numbers, `stream` new rows for a model that is there.
Names load on first use: folds need NumPy alone, tables need polars.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fbeta.tables.columns import Column as Column
    from fbeta.tables.encoding import Encoder as Encoder
    from fbeta.tables.errors import TableError as TableError
    from fbeta.tables.folds import Folds as Folds
    from fbeta.tables.folds import split as split
    from fbeta.tables.reading import read_frame as read_frame
    from fbeta.tables.reading import read_table as read_table
    from fbeta.tables.streaming import stream as stream
    from fbeta.tables.table import Roles as Roles
    from fbeta.tables.table import Table as Table

_HOME = {
    "Column": "columns", "Encoder": "encoding", "Folds": "folds", "Roles": "table", "Table": "table",
    "TableError": "errors", "read_frame": "reading", "read_table": "reading", "split": "folds", "stream": "streaming",
}  # fmt: skip

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'fbeta.tables' has no attribute {name!r}")
    try:
        import polars  # noqa: F401
    except ImportError as error:
        raise ImportError("reading tables needs polars: pip install 'fbeta[table]'.") from error
    return getattr(importlib.import_module(f"fbeta.tables.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return __all__
