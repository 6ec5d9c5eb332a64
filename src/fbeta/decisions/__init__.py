"""Cuts: the exact best threshold of any metric by one sort, and rules that do better with few positives."""

from fbeta.decisions.calibration import Platt
from fbeta.decisions.choice import Constant, Exact, Plugin, Rule, Shrunk, rule, rules
from fbeta.decisions.cut import Threshold
from fbeta.decisions.evidence import Interval
from fbeta.decisions.sketch import Sketch
from fbeta.decisions.steps import Steps, curve
from fbeta.decisions.tuning import tune

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
