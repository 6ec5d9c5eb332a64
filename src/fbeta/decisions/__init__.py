"""How to decide by a metric: the exact best cut, rules that do better with few positives, calibrated decisions."""

from fbeta.decisions import rules
from fbeta.decisions.calibration import Calibrator, Platt
from fbeta.decisions.calibration_choice import calibrate
from fbeta.decisions.class_rule import ClassRule
from fbeta.decisions.class_scores import score_table
from fbeta.decisions.decision import Decision
from fbeta.decisions.interval import Interval
from fbeta.decisions.prevalence import Prevalence
from fbeta.decisions.rows import decide_rows, row_scores, size_weights
from fbeta.decisions.rules import Rule, as_rule
from fbeta.decisions.sketch import Sketch
from fbeta.decisions.steps import Steps, curve
from fbeta.decisions.threshold import Threshold
from fbeta.decisions.tuning import tune

__all__ = [
    "Calibrator", "ClassRule", "Decision", "Interval", "Platt", "Prevalence", "Rule", "Sketch", "Steps", "Threshold",
    "as_rule", "calibrate", "curve", "decide_rows", "row_scores", "rules", "score_table", "size_weights", "tune",
]  # fmt: skip
