"""What is run: the paper's section 5 as published, other losses, and other readings of its text."""

from fbeta_reproduction.protocol.presets import (
    LOSSES,
    PRESETS,
    Q_REMEDY,
    REMEDIES,
    Kind,
    beside,
    faithful,
    kind,
    plan,
    plateau,
    precision,
    readings,
    remedies,
    whole_plan,
)
from fbeta_reproduction.protocol.runs import BETAS, PAPER, PROTOCOL, SETTINGS, Run, Setting

__all__ = [
    "BETAS",
    "LOSSES",
    "PAPER",
    "PRESETS",
    "PROTOCOL",
    "Q_REMEDY",
    "REMEDIES",
    "SETTINGS",
    "Kind",
    "Run",
    "Setting",
    "beside",
    "faithful",
    "kind",
    "plan",
    "plateau",
    "precision",
    "readings",
    "remedies",
    "whole_plan",
]
