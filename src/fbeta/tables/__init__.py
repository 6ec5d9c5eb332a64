"""Tables: read from a file of any usual format, split honestly, encoded as numbers.

`read_table` gives a `Table`, `split` its folds, `Encoder` its numbers, `stream` new rows for a model that is there.
Names load on first use: folds need NumPy alone, tables need polars.
"""

from typing import TYPE_CHECKING

from fbeta.spelling import on_first_use

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
__getattr__, __dir__ = on_first_use(
    __name__, _HOME, ["polars"], "fbeta.tables needs polars: pip install 'fbeta[table]'"
)
