"""Any classifier that takes row weights, trained at the metric's own costs."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np

from fbeta.learners import FixedPoint, cost_weights, solve, without_costs
from fbeta.learners.classifiers import response_method, weight_argument
from fbeta.learners.crossfit import Array
from fbeta.learners.ensemble import mean_of
from fbeta.sklearn.clones import Clones, scores_of, takes_columns
from fbeta.sklearn.decider import Given, MetaDecider
from fbeta.sklearn.labels import Labels


@dataclass(eq=False, repr=False)
class TangentMetaClassifier(MetaDecider):
    r"""Train any classifier that takes ``sample_weight`` with the costs at which its own boundary is the metric's best.

    .. math:: c_1 \propto \frac{\partial M/\partial t}{\pi}, \qquad c_0 \propto \frac{-\partial M/\partial u}{1 - \pi}
              \qquad \text{at the out-of-fold operating point}

    Costs give models, models an operating point on rows they never saw, the point new costs: `fbeta.learners`.
    Then the classifier is fitted to all rows with the costs found. Its own boundary is where its weighted probability
    is ½ (or its margin 0), and its probabilities have the costs taken out again: odds · c₀/c₁. A learner without
    `predict_proba` (an SVM) gets probabilities from a calibration on out-of-fold rows.

    - `estimator`: logistic regression, random forest, gradient boosting, SVM, or a pipeline that ends in one.
    - `metric`, `cv`, `ensemble`, `average`, `pos_label`: as in `ThresholdClassifier`.
    - `rule`: a cut of `fbeta.decisions` on out-of-fold scores; or "own", the classifier's own boundary, which the costs
      have brought to about the same place (for several classes boundaries against the rest do not say which to call).
    - `rounds`, `damping`: of the fixed point; each round fits one model per fold. Undamped it is the alternating method
      for pseudo-linear scores, on rows that the models did not see.
    - `prevalence`: the rate of positives where the model will work, if it is not that of these rows.
    - `subject_to`, `confidence`, `abstain`: as in `ThresholdClassifier`.
    - `response_method`: "auto" is probabilities where there are any.

    With several classes or labels there is one classifier, and one fixed point, for each.

    Fitted: `estimators_` (one per column), `fixed_points_`, `costs_` ((c₀, c₁) of each column), `decision_`, `cuts_`,
    `classes_`, `positive_`.

    Shape: X ``(n, d)`` or whatever the estimator takes; y ``(n,)``, or ``(n, K)`` for labels.

    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = make_pipeline(StandardScaler(), LogisticRegression())
    >>> found = TangentMetaClassifier(model, metric="fbeta:beta=2", pos_label=1, random_state=0).fit(X, y)
    >>> round(found.fixed_points_[0].delta, 1)  # F₂/5
    0.2

    Reference: [narasimhan2015]
    """

    _: KW_ONLY
    rounds: int = 5
    damping: float = 0.5

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None, **params: Any) -> Self:
        """Solve the fixed point of every column on out-of-fold rows, then fit to all rows at its costs.

        `sample_weight` multiplies the costs. `groups` stay together in a fold. Other `params` go to the estimator's
        `fit`.
        """
        if self.average == "micro":
            raise ValueError(
                "TangentMetaClassifier finds costs for each label on its own, which is average='macro'; for 'micro' "
                "use ThresholdClassifier or MetricClassifier."
            )
        rows = self._read(X, y, sample_weight, groups, params)
        if takes_columns(self.estimator):
            raise TypeError(
                f"TangentMetaClassifier fits one classifier per label itself; hand it the one inside "
                f"{type(self.estimator).__name__}."
            )
        if weight_argument(self.estimator) is None:
            raise TypeError(
                f"{type(self.estimator).__name__}.fit takes no sample_weight, so costs cannot reach it; use "
                "ThresholdClassifier, which moves the cut instead."
            )
        self._method = response_method(self.estimator, self.response_method)
        target, fold, _ = self._divide(rows)
        solved = [self._solve(rows, column, fold) for column in target.T]
        self.fixed_points_ = [point for point, _ in solved]
        self.estimators_ = [models for _, models in solved]
        self.costs_ = np.array([point.costs for point in self.fixed_points_])
        self._remember(self.estimators_[0][0])
        held = self.fixed_points_[0].crossfit.held
        scores = np.stack([point.crossfit.scores[held] for point in self.fixed_points_], axis=1)
        weight = None if rows.weight is None else rows.weight[held]
        margins = self._method == "decision_function"
        self._decide(scores, target[held], weight, "platt" if margins else list(map(without_costs, self.costs_)))
        return self

    def _solve(self, rows: Given, column: Array, fold: Any) -> tuple[FixedPoint[list[Any]], list[Any]]:
        """The fixed point of one column, and the models that will answer for it."""
        one, truth = self._labels_of_one(), column.astype(int)
        named = rows._replace(y=one.names(column[:, None] - 0.5), weigh=True)
        clones = Clones(self.estimator, one, named, column[:, None], self._method)
        point = solve(
            clones.fit,
            lambda models, numbers: clones.score(models, numbers)[:, 0],
            clones.numbers,
            truth,
            self.metric,
            fold,
            rows.weight,
            rounds=self.rounds,
            damping=self.damping,
            prevalence=self.prevalence,
        )
        if self.ensemble:
            return point, [model for models in point.crossfit.models for model in models]
        return point, clones.fit(clones.numbers, truth, cost_weights(truth, point.delta, rows.weight))

    def _scores(self, X: Any) -> Array:
        one, method = self._labels_of_one(), self._method
        columns = [
            mean_of([scores_of(model, X, one, method) for model in models], certain=method == "predict_proba")
            for models in self.estimators_
        ]
        return np.concatenate(columns, axis=1)

    def _labels_of_one(self) -> Labels:
        # Two classes keep their names, so that the fitted classifier speaks the user's language.
        return self.labels_ if self.labels_.kind == "binary" else Labels("binary", np.array([0, 1]))
