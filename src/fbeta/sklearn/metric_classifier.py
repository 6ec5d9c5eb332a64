"""A linear model or a small network, trained with any loss for the metric."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from sklearn.preprocessing import StandardScaler

from fbeta.learners import Goal, Rows, models
from fbeta.learners.crossfit import Array
from fbeta.learners.ensemble import check_ensemble, mean_of
from fbeta.learners.network import WEIGHTS
from fbeta.metrics import as_metric
from fbeta.sklearn.decider import Decider, check_whole

SOLVERS = ("auto", "adam", "lbfgs")
#: What "auto" leaves to the model.
AUTO = "auto"


@dataclass(eq=False, repr=False)
class MetricClassifier(Decider):
    """Train a linear model or a small network for a metric, and cut it where the metric wants it.

    The model of all rows trains in step with one model per fold. The folds' models score the rows they never saw: from
    those scores come the operating point of the tangent loss, the epoch to stop at, the cut, and the calibration of a
    loss that has no probabilities of its own. Features are standardised inside. "linear" and "mlp" are the models that
    `fbeta.compare` and `fbeta fit` train under these names.

    - `metric`: a `Metric`, a spec such as "fbeta:beta=2", or a function of (tp, fp, fn, tn).
    - `model`: "linear", "mlp" with `hidden` units per layer, or another of `fbeta.learners.models` that is fitted to
      plain layers; "over+linear", "smote+mlp" … on resampled rows.
    - `loss`: a name of `fbeta.losses.names()`; `loss_options` go to it, for example ``{"q": 0.3}``. Class weights come
      from the counts of the training rows.
    - `rule`: how the cut is chosen on out-of-fold scores (see `fbeta.decisions`), or "own": the loss's boundary, z = 0.
    - `cv`: the folds; None is five (fewer where the rarest class is small). A splitter with one hold-out part, such as
      `StratifiedShuffleSplit(1)`, makes it a single validation set.
    - `ensemble`: answer by the mean of the folds' models instead of the model of all rows.
    - `average`, `pos_label`: as in `ThresholdClassifier`.
    - `alpha`: the penalty on squared weights, relative to the mean loss; None is 1/n, logistic regression's ``C=1``.
    - `solver`: "lbfgs" on all rows (linear), or "adam" on batches of `batch_size` at `learning_rate` (mlp).
    - `max_epochs`, `patience`: epochs (ten steps each for "lbfgs"), and how many without a better out-of-fold metric
      end the training; None never does, and the last epoch counts.
    - "auto" is what the model has by default: `fbeta.learners.models` says what.
    - `prevalence`: the rate of positives where the model will work, if it is not that of these rows; it moves the
      decision, while probabilities stay those of rows like these.
    - `subject_to`, `confidence`, `abstain`: as in `ThresholdClassifier`.
    - `device`: "cpu", "cuda", or "auto" for a GPU where there is one.

    `predict_proba` is closed form for "bce" and "tangent" with q < 1, a calibration on out-of-fold rows otherwise.

    Fitted: `networks_` (plain arrays: prediction needs no torch), `decision_`, `cuts_`, `n_iter_` (the epoch chosen),
    `history_` (the out-of-fold metric by epoch), `out_of_fold_` (scores of the rows by models that did not see them),
    `classes_`, `positive_`; `coef_` and `intercept_` for a linear model.

    Shape: X ``(n, d)``, sparse too for linear; y ``(n,)``, or ``(n, K)`` for labels.

    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = MetricClassifier(metric="fbeta:beta=2", pos_label=1, random_state=0).fit(X[::2], y[::2])
    >>> model.score(X[1::2], y[1::2]) > 0.97
    True

    Reference: [narasimhan2015], [lee2021]
    """

    metric: Any = "fbeta:beta=1"
    model: str = "linear"
    loss: str = "tangent"
    _: KW_ONLY
    loss_options: dict[str, Any] | None = None
    rule: Any = "shrunk"
    cv: Any = None
    ensemble: bool = False
    average: str = "binary"
    pos_label: Any = None
    hidden: Any = AUTO
    alpha: float | None = None
    solver: str = AUTO
    learning_rate: float | str = AUTO
    batch_size: int | str = AUTO
    max_epochs: int | str = AUTO
    patience: int | str | None = AUTO
    prevalence: float | None = None
    subject_to: Mapping[Any, float] | None = None
    confidence: float | None = None
    abstain: float | str | None = None
    device: str = "cpu"
    random_state: Any = None

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Train; `sample_weight` weighs rows (2 is a row twice), `groups` stay together in a fold."""
        learner = self._learner()
        given = self._read_rows(self._table(X, y), y, sample_weight, groups)
        target, fold, seed = self._divide(given)
        scaler = StandardScaler(with_mean=not hasattr(given.X, "tocsr"))
        scaler.fit(given.X, sample_weight=given.weight)
        rows = Rows(scaler.transform(given.X), target, fold, given.weight)
        own = isinstance(self.rule, str) and self.rule == "own"
        average = "micro" if self.average == "micro" else "macro"
        goal = Goal(as_metric(self.metric), average, self.prevalence, own)
        found = learner.fit_folds(rows, goal, [self.loss], seed=seed)[self.loss]
        if found.model is None:
            raise ValueError(
                f"Training with the loss {self.loss!r} diverged: its scores are not finite. Take another loss, or a "
                "smaller learning_rate."
            )
        chosen = found.of_folds if self.ensemble else (found.model,)
        mean = scaler.mean_ if scaler.with_mean else None
        self.networks_ = [network.unstandardised(mean, scaler.scale_) for network in chosen]
        self.n_iter_, self.history_ = found.rounds, np.array(found.course.held)
        self.out_of_fold_ = found.scores
        self._decide(*rows.held_out(found.scores), found.calibration or "auto")
        return self

    def _table(self, X: Any, y: Any = None) -> Any:
        """The rows, checked; with a target they are those to learn from."""
        sparse = "csr" if self.model == "linear" else False
        return self._checked(X, y, accept_sparse=sparse, dtype=[np.float64, np.float32])

    def _learner(self) -> Any:
        """The model, with all options that are not left to it."""
        try:
            import torch as _torch  # noqa: F401  # needed here, and not to predict
        except ImportError as error:  # pragma: no cover
            raise ImportError("MetricClassifier.fit needs PyTorch: pip install 'fbeta[sklearn]'") from error
        self._check_options()
        given = {
            "hidden": AUTO if self.model == "linear" else _sizes(self.hidden),
            "solver": self.solver,
            "rate": self.learning_rate,
            "batch": self.batch_size,
            "epochs": self.max_epochs,
            "patience": self.patience,
            # What asks nothing of a model: it need not have such a setting.
            "alpha": AUTO if self.alpha is None else self.alpha,
            "options": dict(self.loss_options or {}) or AUTO,
            "device": AUTO if self.device == "cpu" else self.device,
        }
        chosen = {name: value for name, value in given.items() if value != AUTO}
        learner = models.get(self.model)
        if lacking := [name for name in chosen if not hasattr(learner, name)]:
            raise ValueError(
                f"The model {self.model!r} has no setting {' and no '.join(lacking)}; leave it at its default."
            )
        if learner.losses is not None and self.loss not in learner.losses:
            raise ValueError(
                f"The model {self.model!r} is trained with the loss {' or '.join(learner.losses)}; got {self.loss!r}."
            )
        return models.get(self.model, **chosen)

    def _check_options(self) -> None:
        check_ensemble(self.ensemble)
        plain = [name for name in models.names() if models.get(name).files == (WEIGHTS,)]
        inside = self.model.rpartition("+")[2] if isinstance(self.model, str) else self.model
        for name, value, choices in (("model", inside, plain), ("solver", self.solver, SOLVERS)):
            if value not in choices:
                raise ValueError(f"{name} must be one of {', '.join(choices)}; got {value!r}.")
        for name in ("max_epochs", "patience", "batch_size"):
            number = getattr(self, name)
            if number != AUTO and not (number is None and name == "patience"):
                check_whole(name, number, ", or 'auto'")
        sizes = () if self.hidden == AUTO else _sizes(self.hidden)
        if not all(isinstance(size, int | np.integer) and size > 0 for size in sizes):
            raise ValueError(f"hidden must hold the units of each layer, such as (64,); got {self.hidden!r}.")
        for name, missing in (("alpha", None), ("learning_rate", AUTO)):
            size = getattr(self, name)
            if size != missing and not (isinstance(size, int | float | np.number) and 0 <= size < np.inf):
                raise ValueError(f"{name} must be a finite number from 0; got {size!r}.")

    def _scores(self, X: Any) -> Array:
        rows = self._table(X)
        return mean_of([network(rows) for network in self.networks_])

    @property
    def coef_(self) -> Array:
        """Weights of a linear model, one row per column of decisions."""
        return np.asarray(np.mean([network.weights[0].T for network in self._linear()], axis=0))

    @property
    def intercept_(self) -> Array:
        """Intercepts of a linear model."""
        return np.asarray(np.mean([network.biases[0] for network in self._linear()], axis=0))

    def _linear(self) -> Any:
        if self.model != "linear" or not hasattr(self, "networks_"):
            raise AttributeError("Only a fitted linear model has coef_ and intercept_.")
        return self.networks_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.model == "linear"
        return tags


def _sizes(hidden: Any) -> Any:
    if isinstance(hidden, str):
        return hidden
    return tuple(hidden) if hasattr(hidden, "__iter__") else (hidden,)
