"""Losses that take logits and share one first argument, the metric. A file in this folder is found by `get`."""

from typing import Any

try:
    import torch as _torch  # noqa: F401
except ImportError as error:  # pragma: no cover
    raise ImportError("fbeta.losses needs PyTorch: pip install 'fbeta[torch]'") from error

from fbeta.losses.amp import AMPLoss
from fbeta.losses.cross_entropy import (
    BalancedBCELoss,
    BalancedMAELoss,
    BCELoss,
    EffectiveBCELoss,
    GCELoss,
    MAELoss,
    bce_loss,
    mae_loss,
)
from fbeta.losses.dame import DAMELoss
from fbeta.losses.duple import DUPLELoss
from fbeta.losses.eban import EbanLoss
from fbeta.losses.focal import AsymmetricLoss, FocalLoss, asymmetric_loss, focal_loss
from fbeta.losses.kar import KarLoss
from fbeta.losses.ldam import LDAMLoss, ldam_loss
from fbeta.losses.module import Loss, RowLoss
from fbeta.losses.running import RunningConfusion
from fbeta.losses.soft import CountLoss, SoftLoss, soft_log_loss, soft_loss
from fbeta.losses.spade import SPADELoss
from fbeta.losses.squashed import AnyLoss, ScoreOrientedLoss, SigmoidF1Loss
from fbeta.losses.stamp import STAMPLoss
from fbeta.losses.surrogate import SurrogateLoss, surrogate_loss
from fbeta.losses.tangent import TangentLoss, tangent_loss
from fbeta.metrics import tangent_costs
from fbeta.spelling import import_modules, unknown

import_modules(__name__, __path__)

__all__ = [
    "AMPLoss", "AnyLoss", "AsymmetricLoss", "BCELoss", "BalancedBCELoss", "BalancedMAELoss", "CountLoss",
    "DAMELoss", "DUPLELoss", "EbanLoss", "EffectiveBCELoss", "FocalLoss", "GCELoss", "KarLoss", "LDAMLoss", "Loss",
    "MAELoss", "RowLoss", "RunningConfusion", "SPADELoss", "STAMPLoss", "ScoreOrientedLoss", "SigmoidF1Loss",
    "SoftLoss", "SurrogateLoss", "TangentLoss", "asymmetric_loss", "bce_loss", "focal_loss", "get", "ldam_loss",
    "mae_loss", "names", "soft_log_loss", "soft_loss", "surrogate_loss", "tangent_costs", "tangent_loss",
]  # fmt: skip


def names() -> list[str]:
    """The names of all losses.

    >>> {"bce", "focal", "soft", "surrogate", "tangent"} <= set(names())
    True
    """
    return sorted(Loss.registry)


def get(name: str, metric: Any = None, **options: Any) -> Loss:
    """Make a loss by name; `options` go to its class.

    >>> get("surrogate", metric="fbeta:beta=2", prevalence=0.1)
    SurrogateLoss(
      FBeta(beta=2.0), prevalence=0.1, task='binary', reduction='mean'
      (terms): AnchorTerms()
    )
    """
    if name not in Loss.registry:
        raise unknown("loss", name, names(), most=2)
    return Loss.registry[name](metric, **options)
