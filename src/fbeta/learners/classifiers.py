"""Any classifier with scikit-learn's interface as a learner: a library's own, and the reader's."""

from __future__ import annotations

import sys
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn, Self

import numpy as np
from numpy.typing import NDArray

from fbeta.decisions.calibration import logit
from fbeta.learners.crossfit import Array
from fbeta.learners.learner import Fitted, Goal, Learner, Rows, Tick


def weight_argument(estimator: Any) -> str | None:
    """The name under which `fit` takes row weights, also through a pipeline or a search; None if it does not."""
    import sklearn
    from sklearn.utils.validation import has_fit_parameter

    if has_fit_parameter(estimator, "sample_weight"):
        return "sample_weight"
    if getattr(estimator, "steps", None):
        name, last = estimator.steps[-1]
        inner = weight_argument(last)
        if inner is None or sklearn.get_config()["enable_metadata_routing"]:
            return inner and "sample_weight"
        return f"{name}__{inner}"
    if hasattr(estimator, "cv") and hasattr(estimator, "estimator"):  # a search passes on what it is given
        return weight_argument(estimator.estimator)
    return None


def response_method(estimator: Any, wanted: str = "auto") -> str:
    """Which method scores: probabilities where there are any."""
    known = ("predict_proba", "decision_function")
    if wanted not in ("auto", *known):
        raise ValueError(f"response_method must be one of auto, {', '.join(known)}; got {wanted!r}.")
    sought = known if wanted == "auto" else (wanted,)
    for name in sought:
        if hasattr(estimator, name):
            return name
    raise TypeError(
        f"{type(estimator).__name__} has no {' or '.join(sought)}, and a cut needs scores; use a classifier that "
        "gives them."
    )


@dataclass(frozen=True, eq=False)
class Unwritten:
    """A fitted classifier of another library, which has no form that a file could hold without code."""

    name: str
    classifier: Any
    inputs: int

    def about(self) -> NoReturn:
        """There is nothing that a file could hold."""
        raise ValueError(unwritten(self.name))

    def files(self) -> NoReturn:
        """As `about`."""
        self.about()


def unwritten(name: str) -> str:
    """Why a model is not in a file, and what to do."""
    return (
        f"{name} cannot be written to a model file, which holds numbers and no code: cut it in Python with "
        "fbeta.sklearn.ThresholdClassifier(estimator, metric=…), or fit a model such as linear, forest or xgboost."
    )


@dataclass(frozen=True, eq=False)
class FittedClassifier(Unwritten):
    """A classifier that scores: log odds of its probabilities, or its margins."""

    def __call__(self, X: Any) -> Array:
        """Scores of rows."""
        method = response_method(self.classifier)
        found = np.asarray(getattr(self.classifier, method)(_taken(self.classifier, X)), dtype=np.float64)
        if found.ndim == 2 and found.shape[1] == 2:
            found = found[:, 1]
        if found.shape != (X.shape[0],):
            raise ValueError(f"{method} gives shape {found.shape} for {X.shape[0]} rows of two classes")
        return np.asarray(logit(found) if method == "predict_proba" else found)[:, None]


@dataclass(frozen=True)
class ClassifierLearner(Learner):
    """A classifier of another library, cross-fitted as it is; its scores are calibrated on out-of-fold rows."""

    files, steps = (), 10

    @abstractmethod
    def classifier(self, seed: int) -> Any:
        """The library's own class, ready to be fitted."""

    @classmethod
    def read(cls, about: Mapping[str, Any], files: Mapping[str, bytes]) -> NoReturn:
        """No file holds one."""
        raise ValueError(f"{cls.name or 'a model of your own'} is never in a model file")

    def fit_folds(
        self, rows: Rows, goal: Goal, losses: Sequence[str], *, seed: int = 0, tick: Tick = lambda done: None
    ) -> dict[str, Fitted]:
        """Fit all rows, and all but each fold."""

        def fit(X: Any, y: NDArray[Any], weight: Array | None) -> FittedClassifier:
            model = self.classifier(seed)
            given, name = {}, weight_argument(model)
            if weight is not None:
                if name is None:
                    raise ValueError("it takes no weights of rows, so leave them out")
                given[name] = weight
            fitted = model.fit(_taken(model, X), y[:, 0].astype(np.int64), **given)
            return FittedClassifier(self.name, model if fitted is None else fitted, X.shape[1])

        try:
            return dict.fromkeys(losses, rows.fitted(fit))
        except Exception as error:
            raise ValueError(f"{self.name} fails: {type(error).__name__}: {error}") from error


@dataclass(frozen=True, eq=False)
class Own(ClassifierLearner):
    """A model of the reader's own: clones of an estimator, also of a pipeline, each with the random seed of its split.

    - `called`: its name. `estimator`: has `fit`, and `predict_proba` or `decision_function`.
    - `distributions`: of its parameters, as `RandomizedSearchCV` takes them: where a search draws from.

    It has no file, and one loss: its own. What resamples rows belongs into a pipeline of imbalanced-learn's, which does
    it to learning rows only.

    >>> from sklearn.linear_model import LogisticRegression
    >>> learner = Own("mine", LogisticRegression(C=0.1))
    >>> learner.losses, learner.classifier(seed=3).random_state, learner.cached
    (('own',), 3, True)
    """

    package, rank, usual = "sklearn", 3, False
    losses = ("own",)

    called: str
    estimator: Any
    distributions: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", self.called)
        if isinstance(self.estimator, type):
            raise TypeError(f"{self.called} is a class: give an object, {self.estimator.__name__}(…).")
        if not hasattr(self.estimator, "fit") or not _scores(self.estimator):
            raise TypeError(
                f"{self.called} ({type(self.estimator).__name__}) is no classifier with fit, and predict_proba or "
                "decision_function. A sampler goes before one in a pipeline of imbalanced-learn's."
            )

    @property
    def settings(self) -> dict[str, Any]:
        """The class, its version and all parameters."""
        try:
            return {"estimator": plain(self.estimator)}
        except TypeError:
            return {"estimator": repr(self.estimator)}

    @property
    def cached(self) -> bool:  # type: ignore[override]
        """Whether its parameters say all: what a function or an unknown object does may have changed."""
        try:
            plain(self.estimator)
        except TypeError:
            return False
        return True

    @property
    def space(self) -> Mapping[str, Any]:
        """What the reader gave."""
        return self.distributions

    def having(self, settings: Mapping[str, Any]) -> Self:
        """With other parameters."""
        from sklearn.base import clone

        return replace(self, estimator=clone(self.estimator, safe=False).set_params(**settings))

    def classifier(self, seed: int) -> Any:
        """A clone, with the seed wherever it leaves chance open."""
        from sklearn.base import clone

        made = clone(self.estimator, safe=False)
        if hasattr(made, "get_params") and hasattr(made, "set_params"):
            names = [name for name, value in made.get_params(deep=True).items() if value is None]
            chance = {name: seed for name in names if name.rpartition("__")[2] in ("random_state", "random_seed")}
            if chance:
                made.set_params(**chance)
        return made


def _scores(estimator: Any) -> bool:
    return any(hasattr(estimator, name) for name in ("predict_proba", "decision_function"))


def _taken(estimator: Any, X: Any) -> Any:
    """Rows as an estimator takes them: dense, where it does not say that it takes sparse ones."""
    if not hasattr(X, "toarray"):
        return X
    from sklearn.utils import get_tags

    return X if hasattr(estimator, "__sklearn_tags__") and get_tags(estimator).input_tags.sparse else X.toarray()


def plain(value: Any) -> Any:
    """Plain data that changes whenever a parameter or a package does; TypeError for what cannot say that."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return {"array": str(value.dtype), "values": plain(value.tolist())}
    if isinstance(value, Mapping):
        return [[plain(key), plain(x)] for key, x in value.items()]
    if isinstance(value, list | tuple):
        return [plain(x) for x in value]
    if hasattr(value, "dist") and hasattr(value, "kwds"):  # a distribution of SciPy's
        return {"distribution": value.dist.name, "args": plain(value.args), "kwds": plain(value.kwds)}
    kind = value if isinstance(value, type) else type(value)
    version = getattr(sys.modules.get(kind.__module__.partition(".")[0]), "__version__", None)
    named = {"class": f"{kind.__module__}.{kind.__qualname__}", "version": version}
    if version is not None and isinstance(value, type):
        return named
    if version is not None and hasattr(value, "get_params"):
        return named | {"params": plain(value.get_params(deep=False))}
    raise TypeError(f"{value!r} is no plain data")
