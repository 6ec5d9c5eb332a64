"""What learns from rows: cross-fitting, and costs and operating point, each of which gives the other.

A model that is trained with the prices (c₀, c₁) of its two mistakes operates somewhere in ROC space; the metric's
slopes there give new prices. Where the two agree, the model's own boundary is the metric's best rule. The point
never comes from the rows a model was fitted to: a model that knows its rows by heart makes no mistakes on them.

Needs NumPy only; a learner comes in as two functions, ``fit(X, y, weight) -> model`` and
``score(model, X) -> scores``.
"""

from fbeta.learners.crossfit import CrossFit, cross_fit, take
from fbeta.learners.fixed_point import FixedPoint, Round, class_weights, costs, solve

__all__ = [
    "CrossFit",
    "FixedPoint",
    "Round",
    "class_weights",
    "costs",
    "cross_fit",
    "solve",
    "take",
]
