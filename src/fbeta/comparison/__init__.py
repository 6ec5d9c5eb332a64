"""Which loss and which cut are best on a table, by how much, and is it more than noise?"""

try:
    import polars as _polars  # noqa: F401
    import sklearn as _sklearn  # noqa: F401
    import torch as _torch  # noqa: F401
except ImportError as error:  # pragma: no cover
    raise ImportError(f"fbeta.compare needs an extra ({error}): pip install 'fbeta[compare]'") from error

from fbeta.comparison.fitting import fit
from fbeta.comparison.run import compare

__all__ = ["compare", "fit"]
