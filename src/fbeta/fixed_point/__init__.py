"""Costs and operating point: each gives the other, and out-of-fold rows keep the pair honest.

A model that is trained with the prices (c₀, c₁) of its two mistakes operates somewhere in ROC space; the metric's
slopes there give new prices. Where the two agree, the model's own boundary is the metric's best rule. The point
never comes from the rows a model was fitted to: a model that knows its rows by heart makes no mistakes on them.

Needs NumPy only; a learner comes in as two functions, ``fit(X, y, weight) -> model`` and
``score(model, X) -> scores``.
"""

from fbeta.fixed_point.crossfit import CrossFit, cross_fit, take
from fbeta.fixed_point.iterate import FixedPoint, Round, class_weights, costs, solve
from fbeta.fixed_point.splits import deal_groups, folds

__all__ = [
    "CrossFit",
    "FixedPoint",
    "Round",
    "class_weights",
    "costs",
    "cross_fit",
    "deal_groups",
    "folds",
    "solve",
    "take",
]
