"""Tables: read from a file of any usual format, split honestly, encoded as numbers.

`read_table` gives a `Table`, `split` its folds, `Encoder` its numbers, `stream` new rows for a model that is there.
"""

from __future__ import annotations

try:
    import polars  # noqa: F401
except ImportError as error:
    raise ImportError("reading tables needs polars: pip install 'fbeta[table]'.") from error

from fbeta.data.tables.encoding import Encoder
from fbeta.data.tables.errors import TableError
from fbeta.data.tables.kinds import Column
from fbeta.data.tables.pictures import from_images
from fbeta.data.tables.reading import read_frame, read_table
from fbeta.data.tables.splitting import Folds, split
from fbeta.data.tables.streaming import stream
from fbeta.data.tables.table import Table

__all__ = [
    "Column",
    "Encoder",
    "Folds",
    "Table",
    "TableError",
    "from_images",
    "read_frame",
    "read_table",
    "split",
    "stream",
]
