"""Which loss and which cut are best on a table, by how much, and is it more than noise?

Names load on first use: what a comparison found (`fbeta.comparison.result`) is plain data and needs nothing.
"""

from typing import TYPE_CHECKING

from fbeta.spelling import on_first_use

if TYPE_CHECKING:
    from fbeta.comparison.methods import check as check
    from fbeta.comparison.run import compare as compare
    from fbeta.comparison.run import fit as fit

__all__ = ["check", "compare", "fit"]
_REMEDY = "fbeta.compare needs polars, scikit-learn and torch: pip install 'fbeta[compare]'"
_HOME = {"check": "methods", "compare": "run", "fit": "run"}
__getattr__, __dir__ = on_first_use(__name__, _HOME, ["polars", "sklearn", "torch"], _REMEDY)
