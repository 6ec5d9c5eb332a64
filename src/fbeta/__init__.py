"""Train for the metric you report, and decide by it.

A confusion-matrix metric is a surface over ROC space; training, thresholding and plotting are three ways to
climb it. Names load on first use, so that ``import fbeta`` costs nothing and decisions never pay for torch.
"""

import importlib
import sys
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from fbeta.comparison import compare as compare
    from fbeta.decisions import *  # noqa: F403
    from fbeta.losses import *  # noqa: F403
    from fbeta.metrics import *  # noqa: F403

__version__ = "0.1.0"

_HOME = {
    "metrics": [
        "Confusion", "Metric", "as_metric", "metric",
        "FBeta", "Jaccard", "Tversky", "Kappa", "MCC", "GMean", "BalancedAccuracy", "Accuracy", "FowlkesMallows",
        "Precision", "Recall", "Specificity", "Cost",
    ],
    "decisions": ["tune", "Threshold", "Decision", "decide_rows"],
    "losses": ["SurrogateLoss", "TangentLoss", "SoftLoss", "RunningConfusion"],
    "comparison": ["compare"],
}  # fmt: skip
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}
#: Rooms that need torch: their names are listed once it is loaded, so that listing them does not load it.
_HEAVY = {"losses", "comparison"}
_MODULES = {
    *_HOME, "artifact", "boosting", "data", "datasets", "learners", "lightning", "report", "sklearn", "tables",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return __dir__()
    if name in _MODULE_OF:
        try:
            value = getattr(importlib.import_module(f"fbeta.{_MODULE_OF[name]}"), name)
        except ImportError as error:
            return _Missing(name, str(error))
    elif name in _MODULES:
        try:
            value = importlib.import_module(f"fbeta.{name}")
        except ImportError as error:
            raise AttributeError(f"fbeta.{name} cannot be used: {error}") from error
    else:
        raise AttributeError(f"module 'fbeta' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    loaded = "torch" in sys.modules
    return sorted(name for name, module in _MODULE_OF.items() if loaded or module not in _HEAVY)


class _Missing:
    """Stands for a name whose packages are not installed: it can be imported and listed, and says so when used."""

    def __init__(self, name: str, why: str) -> None:
        self._name, self._why = name, why
        self.__doc__ = f"Not available: {why}"

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise ImportError(f"fbeta.{self._name}: {self._why}")

    __call__ = __mro_entries__ = __instancecheck__ = _refuse

    def __repr__(self) -> str:
        return f"<fbeta.{self._name}, not available: {self._why}>"
