"""Cuts: the exact best threshold of any metric by one sort, and rules that do better with few positives."""

from fbeta.threshold.calibration import Platt
from fbeta.threshold.choice import Constant, Exact, Plugin, Rule, Shrunk, rule, rules
from fbeta.threshold.cut import Threshold
from fbeta.threshold.evidence import Interval
from fbeta.threshold.sketch import Sketch
from fbeta.threshold.steps import Steps, curve
from fbeta.threshold.tuning import tune

__all__ = [
    "Constant",
    "Exact",
    "Interval",
    "Platt",
    "Plugin",
    "Rule",
    "Shrunk",
    "Sketch",
    "Steps",
    "Threshold",
    "curve",
    "rule",
    "rules",
    "tune",
]
