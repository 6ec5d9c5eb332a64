"""Losses that share one first argument, the metric, and take logits. One file each."""

from __future__ import annotations

import difflib
from typing import Any

try:
    import torch as _torch  # noqa: F401
except ImportError as error:  # pragma: no cover
    raise ImportError("fbeta.losses needs PyTorch: pip install 'fbeta[torch]'") from error

from fbeta.losses.module import Loss, RowLoss
from fbeta.losses.soft import SoftLoss, soft_log_loss, soft_loss
from fbeta.losses.surrogate import SurrogateLoss, surrogate_loss
from fbeta.losses.tangent import TangentLoss, tangent_costs, tangent_loss

__all__ = [
    "Loss",
    "RowLoss",
    "SoftLoss",
    "SurrogateLoss",
    "TangentLoss",
    "get",
    "names",
    "soft_log_loss",
    "soft_loss",
    "surrogate_loss",
    "tangent_costs",
    "tangent_loss",
]


def names() -> list[str]:
    """The names of all losses.

    >>> names()
    ['soft', 'surrogate', 'tangent']
    """
    return sorted(Loss.registry)


def get(name: str, metric: Any = None, **options: Any) -> Loss:
    """Make a loss by name; `options` go to its class.

    >>> get("surrogate", metric="fbeta:beta=2", prevalence=0.1)
    SurrogateLoss(
      FBeta(beta=2.0), prevalence=0.1, task='binary', reduction='mean'
      (reaches): Reaches()
    )
    """
    if name not in Loss.registry:
        near = difflib.get_close_matches(name, Loss.registry, n=2)
        hint = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
        raise ValueError(f"Unknown loss {name!r}.{hint} Choices: {', '.join(names())}.")
    return Loss.registry[name](metric, **options)
