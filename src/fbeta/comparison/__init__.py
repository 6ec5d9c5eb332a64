"""Which loss and which cut are best on a table, by how much, and is it more than noise?

Names load on first use: what a comparison found (`fbeta.comparison.result`) is plain data and needs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fbeta.comparison.plan import check as check
    from fbeta.comparison.run import compare as compare
    from fbeta.comparison.run import fit as fit

__all__ = ["check", "compare", "fit"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'fbeta.comparison' has no attribute {name!r}")
    try:
        import polars  # noqa: F401
        import sklearn  # noqa: F401
        import torch  # noqa: F401
    except ImportError as error:  # pragma: no cover
        raise ImportError(f"fbeta.compare needs an extra ({error}): pip install 'fbeta[compare]'") from error
    from fbeta.comparison import plan, run

    return {"check": plan.check, "compare": run.compare, "fit": run.fit}[name]
