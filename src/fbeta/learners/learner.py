"""What learns from rows: one protocol for networks, boosters and whatever else is compared or fitted."""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from fbeta.decisions import Platt, tune
from fbeta.decisions.steps import count_columns
from fbeta.learners.crossfit import AnyModel, Array, CrossFit, Fit, Score, cross_fit, take
from fbeta.learners.ensemble import Ensemble
from fbeta.metrics import Metric
from fbeta.spelling import register

#: Is told how many steps are done.
Tick = Callable[[int], None]


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows to learn from, dealt to folds; a row of fold −1 is in every training part, and is never held out.

    `draw`: of the rows that a model may learn from, by number, those that it does, some of them several times; None is
    each once. `ordered`: folds follow one another in time, and the model of a fold learns from those before it only.

    Shape: `X` ``(n, d)``, dense or sparse; `y` ``(n, K)`` of 0 and 1; `fold` ``(n,)``; `weight` ``(n,)`` or None.

    >>> rows = Rows(np.zeros((4, 2)), np.array([[0], [1], [0], [1]]), np.array([0, 0, 1, 1]))
    >>> rows.folds, rows.held.all(), rows.masses
    (2, np.True_, (array([2.]), array([2.])))
    """

    X: Any
    y: NDArray[Any]
    fold: NDArray[np.int64]
    weight: Array | None = None
    draw: Callable[[NDArray[np.int64]], NDArray[np.int64]] | None = None
    ordered: bool = False

    @property
    def parts(self) -> list[NDArray[np.int64]]:
        """The numbers of the rows that the model of all rows may learn from, and that of each fold."""
        rest = (self.fold < f if self.ordered else self.fold != f for f in range(self.folds))
        return [np.arange(len(self.y)), *map(np.flatnonzero, rest)]

    def times(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """How many times a model learns from each of the rows that it may learn from."""
        if self.draw is None:
            return np.ones(len(numbers), dtype=np.int64)
        return np.bincount(self.draw(numbers), minlength=len(self.y))[numbers]

    def drawing(self, fit: Fit[AnyModel]) -> Fit[AnyModel]:
        """A `fit` of numbered rows that learns from those that are drawn: what comes several times weighs as much."""
        if self.draw is None:
            return fit

        def drawn(numbers: NDArray[np.int64], y: NDArray[Any], weight: Array | None) -> AnyModel:
            times = self.times(numbers)
            kept, w = times > 0, np.ones(len(numbers)) if weight is None else weight
            return fit(numbers[kept], y[kept], (times * w)[kept])

        return drawn

    def cross_fit(self, fit: Fit[AnyModel], score: Score[AnyModel]) -> tuple[CrossFit[AnyModel], AnyModel]:
        """Models of all rows but each fold, and the scores they give to it; and the model of all rows."""
        drawn = self.drawing(lambda numbers, y, weight: fit(take(self.X, numbers), y, weight))
        numbers = np.arange(len(self.y))
        given = numbers, self.y, self.fold, self.weight
        found = cross_fit(drawn, lambda model, at: score(model, take(self.X, at)), *given, ordered=self.ordered)
        return found, drawn(numbers, self.y, self.weight)

    def fitted(self, fit: "Fit[Scorer]") -> "Fitted":
        """What comes of fitting all rows, and all but each fold, to models that score rows when they are called."""
        began = time.perf_counter()
        found, model = self.cross_fit(fit, lambda model, X: model(X))
        return Fitted(found.scores, model, found.models, seconds=time.perf_counter() - began)

    @property
    def folds(self) -> int:
        """The number of folds."""
        return int(self.fold.max()) + 1

    @property
    def held(self) -> NDArray[np.bool_]:
        """Which rows some model does not see."""
        return self.fold >= 0

    @property
    def masses(self) -> tuple[Array, Array]:
        """The weight of negatives and of positives in each column."""
        w = np.ones(len(self.y)) if self.weight is None else self.weight
        return w @ (1 - self.y), w @ self.y

    def held_out(self, scores: Array) -> tuple[Array, NDArray[Any], Array | None]:
        """Scores, targets and weights of the rows that have been held out."""
        held = self.held
        return scores[held], self.y[held], None if self.weight is None else self.weight[held]


@dataclass(frozen=True)
class Goal:
    """What is trained for: a metric, averaged over columns ("macro") or of their pooled counts ("micro").

    `prevalence`: the share of positives where the model will work, if it is not that of the rows. `own_cut`: training
    is judged at the loss's own boundary instead of at the best cut.
    """

    metric: Metric
    average: str = "macro"
    prevalence: float | None = None
    own_cut: bool = False

    def held_out_score(self, scores: Array, y: NDArray[Any], weight: Array | None) -> float:
        """The metric on held-out rows ``(n, K)``: at the best cut of each column, or at the loss's own boundary."""
        if not np.isfinite(scores).all():
            return -np.inf
        if self.average == "micro":
            weight = None if weight is None else np.repeat(weight, y.shape[1])
            scores, y = scores.reshape(-1, 1), y.reshape(-1, 1)
        if self.own_cut:
            return float(np.mean(self.metric(count_columns(scores >= 0, y, weight))))
        columns = zip(scores.T, y.T, strict=True)
        return float(np.mean([tune(*column, self.metric, weight, kind="logit").score for column in columns]))


@dataclass
class Best:
    """The best epoch so far; `patience` epochs without a better one are the end (None: never, and the last counts)."""

    patience: int | None
    epoch: int = 0
    key: tuple[float, ...] = ()

    def see(self, epoch: int, key: tuple[float, ...]) -> bool:
        """Look at an epoch; whether it is to be taken. Later parts of the key decide between equal earlier ones."""
        if self.patience is not None and (self.ended(epoch) or (self.key and key <= self.key)):
            return False
        self.epoch, self.key = epoch, key
        return True

    def ended(self, epoch: int) -> bool:
        """Whether there was no progress for long enough before this epoch."""
        return self.patience is not None and self.epoch > 0 and epoch > self.epoch + self.patience


class Scorer(Protocol):
    """A fitted model as plain data: scores of rows, at or above 0 where its loss would call them positive.

    Shape: rows ``(n, d)``; scores ``(n, K)``.
    """

    def __call__(self, X: Any) -> Array:
        """Scores of rows."""

    @property
    def inputs(self) -> int:
        """The number of features of a row."""

    def about(self) -> dict[str, Any]:
        """What reading it back needs besides its files, as plain data."""

    def files(self) -> dict[str, bytes]:
        """Its files by name."""


@dataclass(frozen=True)
class Course:
    """How training went, epoch by epoch: loss and score at ½ on learning rows, best score on held-out ones."""

    loss: tuple[float, ...] = ()
    score: tuple[float, ...] = ()
    held: tuple[float, ...] = ()


@dataclass(frozen=True, eq=False)
class Fitted:
    """What came of one loss: scores of every row by models that did not see it, and the models.

    `model` learned from all rows (None if training diverged), `of_folds` from all but a fold each. `calibration` is
    known where the loss implies probabilities. `rounds` is the number of epochs or trees taken; `remark` says in words
    what went wrong.

    Shape: `scores` ``(n, K)``, NaN for rows of fold −1.
    """

    scores: Array
    model: Scorer | None
    of_folds: tuple[Scorer, ...] = ()
    calibration: tuple[Platt, ...] | None = None
    rounds: int = 0
    course: Course = field(default_factory=Course)
    seconds: float = 0.0
    remark: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)

    def answering(self, ensemble: bool) -> Scorer | None:
        """What scores new rows: the model of all rows, or the mean of the folds' models; None if training diverged."""
        return Ensemble(self.of_folds) if ensemble and self.of_folds else self.model


class Learner(ABC):
    """A kind of model that learns from rows with a loss, and a dataclass of its settings.

    A file in `learners/models/` makes it known by its name.

    - `name`: as `compare` and `fit` call it. `losses`: those it can be trained with, of `fbeta.losses` or its own; None
      for all of `fbeta.losses`.
    - `together`: all losses of a comparison are trained as one program, which is quicker than one by one.
    - `package`: what must be installed. `files`: those that hold one of its fitted models.
    - `rank`: how hard it is to beat as a rule; comparisons list the hardest last. `usual`: whether a comparison takes
      it where no models are named. `draws`: whether it learns from the rows that `Rows.draw` gives.
    - `cached`: whether `settings` and the version of `package` say all that its results depend on.
    """

    registry: ClassVar[dict[str, "type[Learner]"]] = {}
    name: ClassVar[str] = ""
    losses: ClassVar[tuple[str, ...] | None] = None
    together: ClassVar[bool] = False
    package: ClassVar[str] = ""
    files: ClassVar[tuple[str, ...]] = ()
    rank: ClassVar[int] = 0
    usual: ClassVar[bool] = True
    draws: ClassVar[bool] = False
    cached: ClassVar[bool] = True

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "name" in cls.__dict__:
            register(Learner.registry, cls.name, cls, "model")

    @property
    @abstractmethod
    def steps(self) -> int:
        """How many steps a progress bar shows for a fit, at the most."""

    @property
    def settings(self) -> dict[str, Any]:
        """What its results depend on, as plain data: all its fields but the device and how many work at once."""
        assert is_dataclass(self)
        return {name: value for name, value in asdict(self).items() if name not in ("device", "jobs")}

    @property
    def space(self) -> Mapping[str, Any]:
        """Where a search draws settings from: lists, or distributions of SciPy's; of fields or of `params`."""
        return {}

    def having(self, settings: Mapping[str, Any]) -> Self:
        """The same model with other settings."""
        known = {part.name for part in fields(self)}  # type: ignore[arg-type]
        own = {name: value for name, value in settings.items() if name in known}
        if more := {name: value for name, value in settings.items() if name not in known}:
            own["params"] = {**self.settings["params"], **more}
        return replace(self, **own)  # type: ignore[type-var]

    @classmethod
    @abstractmethod
    def read(cls, about: Mapping[str, Any], files: Mapping[str, bytes]) -> Scorer:
        """A fitted model from its `about()` and `files()`; ValueError where they do not hold one."""

    @abstractmethod
    def fit_folds(
        self, rows: Rows, goal: Goal, losses: Sequence[str], *, seed: int = 0, tick: Tick = lambda done: None
    ) -> dict[str, Fitted]:
        """Train every loss on all rows and on all but each fold; what came of each, by name."""
