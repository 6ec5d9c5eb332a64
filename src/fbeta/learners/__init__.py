"""What learns from rows: networks and boosters behind one protocol, cross-fitting, class costs by the fixed point.

A model that is trained with the prices (c₀, c₁) of its two mistakes operates somewhere in ROC space; the metric's
slopes there give new prices. Where the two agree, the model's own boundary is the metric's best rule. The point
never comes from the rows a model was fitted to: a model that has memorised its rows makes no mistakes on them.
"""

from fbeta.learners.crossfit import CrossFit, cross_fit, take
from fbeta.learners.fixed_point import FixedPoint, Round, cost_weights, costs, solve, without_costs
from fbeta.learners.learner import Fitted, Goal, Learner, Rows, Scorer

__all__ = [
    "CrossFit", "Fitted", "FixedPoint", "Goal", "Learner", "Round", "Rows", "Scorer", "cost_weights", "costs",
    "cross_fit", "solve", "take", "without_costs",
]  # fmt: skip
