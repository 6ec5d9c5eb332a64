"""Data by name or by path: `fetch` brings a named set here, `load` reads a set or a file of one's own."""

from fbeta.datasets import (
    DataError,
    Dataset,
    Images,
    fetch,
    get,
    is_path,
    load,
    load_images,
    load_table,
    names,
    path,
    root,
)

__all__ = [
    "DataError",
    "Dataset",
    "Images",
    "fetch",
    "get",
    "is_path",
    "load",
    "load_images",
    "load_table",
    "names",
    "path",
    "root",
]
