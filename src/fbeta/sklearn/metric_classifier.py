"""A linear model or a small network, trained with any loss for the metric."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from fbeta.metrics import metric as read_metric
from fbeta.sklearn.decision import Decider, calibrate
from fbeta.sklearn.labels import Array, Labels, read_y
from fbeta.sklearn.meta import read_weight
from fbeta.sklearn.recipe import Recipe
from fbeta.sklearn.splitting import inner_folds

MODELS = ("linear", "mlp")
SOLVERS = ("auto", "adam", "lbfgs")


class MetricClassifier(Decider):
    """Train a linear model or a small network for a metric, and cut it where the metric wants it.

    The model of all rows trains in step with one model a fold. The folds' models score the rows they never saw: from
    those scores come the operating point of the tangent loss, the epoch to stop at, the cut, and the calibration of a
    loss that has no probabilities of its own. Features are standardised inside.

    - `metric`: a `Metric`, a spec such as "fbeta:beta=2", or a function of (tp, fp, fn, tn).
    - `model`: "linear", or "mlp" with `hidden` units a layer.
    - `loss`: a name of `fbeta.losses.names()`; `loss_options` go to it, for example ``{"q": 0.3}``. Class weights come
      from the counts of the training rows.
    - `rule`: how the cut is chosen on out-of-fold scores (see `fbeta.decisions`), or "own": the loss's boundary, z = 0.
    - `cv`: the folds; None is five (fewer where the rarest class is small). A splitter with one hold-out part, such as
      `StratifiedShuffleSplit(1)`, makes it a single validation set.
    - `average_folds`: answer by the mean of the folds' models instead of the model of all rows.
    - `average`, `pos_label`: as in `ThresholdClassifier`.
    - `alpha`: the penalty on squared weights, relative to the mean loss; None is 1/n, logistic regression's ``C=1``.
    - `solver`: "lbfgs" on all rows (the default for linear), "adam" on batches of `batch_size` at `learning_rate`.
    - `max_epochs`, `patience`: epochs (ten steps each for "lbfgs"), and how many without a better out-of-fold metric
      end the training; None never does, and the last epoch counts.
    - `prevalence`: the rate of positives where the model will work, if it is not that of these rows; it moves the
      decision, while probabilities stay those of rows like these.
    - `device`: "cpu", "cuda", or "auto" for a GPU where there is one.

    `predict_proba` is closed form for "bce" and "tangent" with q < 1, Platt scaling on out-of-fold rows otherwise.

    Fitted: `networks_` (plain arrays: prediction needs no torch), `thresholds_`, `cuts_`, `n_iter_` (the epoch chosen),
    `history_` (the out-of-fold metric by epoch), `classes_`; `coef_` and `intercept_` for a linear model; `gains_` for
    several classes.

    Shape: X ``(n, d)``, sparse too for linear; y ``(n,)``, or ``(n, K)`` for labels.

    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = MetricClassifier(metric="fbeta:beta=2", random_state=0).fit(X[::2], y[::2])
    >>> model.score(X[1::2], y[1::2]) > 0.97
    True

    Reference: [narasimhan2015], [lee2021]
    """

    def __init__(
        self,
        metric: Any = "fbeta:beta=1",
        model: str = "linear",
        loss: str = "tangent",
        *,
        loss_options: dict[str, Any] | None = None,
        rule: Any = "shrunk",
        cv: Any = None,
        average_folds: bool = False,
        average: str = "binary",
        pos_label: Any = None,
        hidden: tuple[int, ...] = (64,),
        alpha: float | None = None,
        solver: str = "auto",
        learning_rate: float = 0.01,
        batch_size: int | None = None,
        max_epochs: int = 100,
        patience: int | None = 10,
        prevalence: float | None = None,
        device: str = "cpu",
        random_state: Any = 0,
    ) -> None:
        self.metric = metric
        self.model = model
        self.loss = loss
        self.loss_options = loss_options
        self.rule = rule
        self.cv = cv
        self.average_folds = average_folds
        self.average = average
        self.pos_label = pos_label
        self.hidden = hidden
        self.alpha = alpha
        self.solver = solver
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.patience = patience
        self.prevalence = prevalence
        self.device = device
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> MetricClassifier:
        """Train; `sample_weight` weighs rows (2 is a row twice), `groups` stay together in a fold."""
        self._check_options()
        y = y if y is None else read_y(y)
        X, y = validate_data(
            self,
            X,
            y,
            accept_sparse="csr" if self.model == "linear" else False,
            dtype=[np.float64, np.float32],
            multi_output=np.ndim(y) == 2,
        )
        weight = np.ones(len(y)) if sample_weight is None else read_weight(sample_weight, len(y))
        kept = np.flatnonzero(weight > 0)
        if len(kept) < len(y):  # a weight of 0 is no row, for folds as well
            X, y, weight = X[kept], y[kept], weight[kept]
            groups = None if groups is None else np.asarray(groups)[kept]
        self.labels_ = Labels.read(y, self.average, self.pos_label)
        self._for_one_decision(prevalence=self.prevalence)
        self.classes_ = self.labels_.classes
        target = self.labels_.columns(y)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        fold = inner_folds(self.cv, self.labels_.spread(y), X, groups, seed)
        scaler = StandardScaler(with_mean=not hasattr(X, "tocsr")).fit(X, sample_weight=weight)

        from fbeta.sklearn.training import Training  # torch is needed here, and not to predict

        found = Training(scaler.transform(X), target, weight, fold, self._recipe(seed)).run()
        chosen = found.of_folds if self.average_folds else [found.network]
        mean = scaler.mean_ if scaler.with_mean else None
        self.networks_ = [network.unstandardised(mean, scaler.scale_) for network in chosen]
        self.n_iter_ = found.epochs
        self.history_ = np.array(found.history)
        held = fold >= 0
        scores, seen = found.scores[held], None if sample_weight is None else weight[held]
        if found.slope is None or found.offset is None:
            self._slope, self._offset = calibrate(scores, target[held], seen)
        else:
            self._slope, self._offset = np.full(target.shape[1], found.slope), found.offset
        log_odds = self._slope * scores + self._offset
        self._cut(log_odds, target[held], seen, self.rule, own=self._offset, prevalence=self.prevalence)
        return self

    def _check_options(self) -> None:
        for name, value, choices in (("model", self.model, MODELS), ("solver", self.solver, SOLVERS)):
            if value not in choices:
                raise ValueError(f"{name} must be one of {', '.join(choices)}; got {value!r}.")
        for name, number in (
            ("max_epochs", self.max_epochs),
            ("patience", self.patience),
            ("batch_size", self.batch_size),
        ):
            if number is None and name != "max_epochs":
                continue
            if isinstance(number, bool) or not isinstance(number, int | np.integer) or number < 1:
                raise ValueError(f"{name} must be an integer from 1; got {number!r}.")
        if not all(isinstance(size, int | np.integer) and size > 0 for size in _sizes(self.hidden)):
            raise ValueError(
                f"hidden must hold the units of each layer, for example (64,); got {self.hidden!r}."
            )
        for name, size in (("alpha", self.alpha), ("learning_rate", self.learning_rate)):
            if size is None and name == "alpha":
                continue
            if not isinstance(size, int | float | np.number) or not 0 <= size < np.inf:
                raise ValueError(f"{name} must be a finite number from 0; got {size!r}.")
        read_metric(self.metric)
        try:
            import torch as _torch  # noqa: F401
        except ImportError as error:  # pragma: no cover
            raise ImportError("MetricClassifier.fit needs PyTorch: pip install 'fbeta[sklearn]'") from error

    def _recipe(self, seed: int) -> Recipe:
        import torch

        linear = self.model == "linear"
        solver = ("lbfgs" if linear else "adam") if self.solver == "auto" else self.solver
        device = self.device
        if device == "auto":
            device = "cuda" if torch.cuda.is_available() else "cpu"
        try:
            torch.empty(0, device=device)
        except (RuntimeError, AssertionError) as error:
            raise ValueError(
                f"PyTorch has no device {device!r} here; use device='auto', which takes a GPU where there is one."
            ) from error
        return Recipe(
            metric=read_metric(self.metric),
            loss=self.loss,
            loss_options=dict(self.loss_options or {}),
            hidden=() if linear else _sizes(self.hidden),
            average="micro" if self.average == "micro" else "macro",
            own_cut=isinstance(self.rule, str) and self.rule == "own",
            alpha=self.alpha,
            learning_rate=self.learning_rate,
            batch_size=self.batch_size,
            max_epochs=self.max_epochs,
            patience=self.patience,
            solver=solver,
            prevalence=self.prevalence,
            device=device,
            seed=seed,
        )

    def _log_odds(self, X: Any) -> Array:
        check_is_fitted(self)
        X = validate_data(
            self,
            X,
            reset=False,
            accept_sparse="csr" if self.model == "linear" else False,
            dtype=[np.float64, np.float32],
        )
        logits = np.mean([network(X) for network in self.networks_], axis=0)
        result: Array = self._slope * logits + self._offset
        return result

    @property
    def coef_(self) -> Array:
        """Weights of a linear model, one row a column of decisions."""
        mean: Array = np.mean([network.weights[0].T for network in self._linear()], axis=0)
        return mean

    @property
    def intercept_(self) -> Array:
        """Intercepts of a linear model."""
        mean: Array = np.mean([network.biases[0] for network in self._linear()], axis=0)
        return mean

    def _linear(self) -> Any:
        if self.model != "linear" or not hasattr(self, "networks_"):
            raise AttributeError("Only a fitted linear model has coef_ and intercept_.")
        return self.networks_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.model == "linear"
        tags.classifier_tags.multi_class = self.average != "binary"
        tags.classifier_tags.multi_label = self.average != "binary"
        return tags


def _sizes(hidden: Any) -> tuple[Any, ...]:
    return tuple(hidden) if hasattr(hidden, "__iter__") else (hidden,)
