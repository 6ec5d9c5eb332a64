"""Any classifier, cut where the metric wants it."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

from sklearn.utils.validation import check_is_fitted

from fbeta.learners import cross_fit
from fbeta.learners.classifiers import response_method
from fbeta.learners.crossfit import Array
from fbeta.learners.ensemble import mean_of
from fbeta.sklearn.clones import Clones, columns_of, is_native
from fbeta.sklearn.decider import Given, MetaDecider


@dataclass(eq=False, repr=False)
class ThresholdClassifier(MetaDecider):
    """Fit any classifier and cut its scores where a metric wants it, by a cut from rows it never saw.

    - `estimator`: a classifier with `predict_proba` or `decision_function`.
    - `metric`: a `Metric`, a spec such as "fbeta:beta=2", or a function of (tp, fp, fn, tn).
    - `rule`: how the cut is chosen ("shrunk", "exact", "plugin", "constant"; "pooled" for several labels): see
      `fbeta.decisions`.
    - `cv`: the folds that give out-of-fold scores: None (five, fewer where the rarest class is small), a number, or
      a splitter; see `inner_folds`. The estimator is then fitted once more, on all rows.
    - `ensemble`: keep the models of the folds and average their scores, instead of that last fit. With a `cv` of a
      single split and the rule "exact" that is the plug-in of one part for the model and one for the cut [koyejo2014].
    - `prefit`: `estimator` is fitted, and stays as it is; `fit` only finds the cut. **You promise that the rows handed
      to `fit` are new to it**: a cut from rows a model was trained on is too high, every time.
    - `average`: "binary", or for more classes and for labels the "macro" mean (for classes also one "weighted" by rows,
      for labels also "micro", and "samples", the mean of row scores). Labels are cut each on its own, for "samples"
      those of a row are decided together; of classes the one is called that is worth most to the metric, see
      `ClassRule`. With two classes the metric is the positive one's, whether `average` is "binary" or "macro". For
      several classes the metric may be ``Cost(matrix=…)`` in the order of ``classes_``, with average="macro".
    - `pos_label`: the positive of two classes; None is the rarer one, and a warning says so where that is not the
      later in order. ``classes_`` stays sorted whichever is positive.
    - `subject_to`, `prevalence`: constraints on the cut, and the rate of positives where it will be used: see `tune`.
      Not for several classes. Probabilities stay those of rows like these.
    - `confidence`: that `subject_to` holds for later rows, not just for these; `abstain`: the share of rows that a
      person decides, or "promise": see `tune`. `asks` says which rows these are. A promise is about the scores that the
      cut was chosen on: exact with `prefit` or a single hold-out as `cv`; out-of-fold scores are of models of the same
      kind, fitted to a little less.
    - `response_method`: "auto" is probabilities where there are any.

    Fitted: `estimator_` (or `models_`, one per fold), `decision_` (a `Decision`), `cuts_` (a `Threshold` of
    probabilities per column, with `.value`, `.score` and `.interval`), `classes_`, `positive_`.

    Shape: X ``(n, d)`` or whatever the estimator takes; y ``(n,)``, or ``(n, K)`` for labels.

    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = make_pipeline(StandardScaler(), LogisticRegression())
    >>> cut = ThresholdClassifier(model, metric="fbeta:beta=2", pos_label=0, random_state=0).fit(X, y)
    >>> 0 < cut.cuts_[0].value < 0.5
    True

    Reference: [lipton2014]
    """

    _: KW_ONLY
    prefit: bool = False

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None, **params: Any) -> Self:
        """Cross-fit, choose the cut on out-of-fold scores, fit once more on all rows.

        `sample_weight` weighs rows for the cut, and for the estimator if it takes weights. `groups` stay together in a
        fold. Other `params` go to the estimator's `fit`.
        """
        rows = self._read(X, y, sample_weight, groups, params)
        if self.prefit and self.ensemble:
            raise ValueError(
                "ensemble=True keeps the models of folds, and prefit=True fits none; leave one of them out."
            )
        self._method = response_method(self.estimator, self.response_method)
        scores, target, weight = self._prefit(rows) if self.prefit else self._cross_fit(rows)
        self._decide(scores, target, weight, "auto" if self._method == "decision_function" else "none")
        return self

    def _cross_fit(self, rows: Given) -> tuple[Array, Array, Array | None]:
        target, fold, _ = self._divide(rows)
        native = is_native(self.estimator, self.labels_)
        clones = Clones(self.estimator, self.labels_, rows, target, self._method, native)
        found = cross_fit(clones.fit, clones.score, clones.numbers, rows.y, fold, rows.weight)
        if self.ensemble:
            self._ask(list(found.models))
        else:
            self._ask([clones.fit(clones.numbers, rows.y, rows.weight)])
        held = found.held
        return found.scores[held], target[held], None if rows.weight is None else rows.weight[held]

    def _prefit(self, rows: Given) -> tuple[Array, Array, Array | None]:
        try:
            check_is_fitted(self.estimator)
        except Exception as error:
            raise type(error)(
                f"prefit=True promises a fitted {type(self.estimator).__name__}, and it is not. Fit it first, or wrap "
                "it in sklearn.frozen.FrozenEstimator where something clones it (a search, cross_val_score)."
            ) from error
        self._read_labels(rows.y, None if rows.y.ndim == 2 else getattr(self.estimator, "classes_", None))
        self.labels_.check_known(rows.y)
        self._ask([[self.estimator]])
        return self._scores(rows.X), self.labels_.columns(rows.y), rows.weight

    def _ask(self, models: list[list[Any]]) -> None:
        self.models_ = models
        if len(models) == 1 and len(models[0]) == 1:
            self.estimator_ = models[0][0]
        self._remember(models[0][0])

    def _scores(self, X: Any) -> Array:
        """Mean score over models, each asked for all its columns."""
        parts = [columns_of(models, X, self.labels_, self._method) for models in self.models_]
        return mean_of(parts, certain=self._method == "predict_proba")
