"""Gradient-boosted trees for a metric: class costs by the fixed point, as many rounds as held-out rows like best."""

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fbeta.decisions import tune
from fbeta.learners.crossfit import Array, cross_fit, take
from fbeta.learners.fixed_point import Round, cost_weights, costs, solve
from fbeta.learners.learner import Best, Fitted, Goal, Learner, Rows, Tick
from fbeta.learners.machine import Map, shared_out, workers
from fbeta.learners.objectives import Objective
from fbeta.learners.trees import LARGEST
from fbeta.metrics import Confusion
from fbeta.sealed import DAMAGED, in_short

Numbers = NDArray[np.int64]

#: The most a leaf may move log odds, before the learning rate. Where a model is sure, the second derivative of the
#: logistic loss vanishes and Newton's step −g/h goes anywhere: on rare positives both libraries diverge without it.
#: Chosen on tables that docs/boosting.md reports; the page says which of its columns that makes optimistic.
MOST = 3.0


@dataclass(frozen=True, eq=False)
class Booster(ABC):
    """A fitted booster and the score it began with: rows in, log odds ``(n, 1)`` out, 0 is the loss's own boundary.

    - `library`, `file`, `dtype`: its library's name, the file that holds it, and the numbers it computes in.
    - `rewritten`: checks what `dump` gave and writes it anew, so that the library sees nothing else, or ValueError.
    """

    library: ClassVar[str]
    file: ClassVar[str]
    dtype: ClassVar[type]
    rewritten: ClassVar[Any]

    native: Any
    offset: float = 0.0

    def __call__(self, X: Any) -> Array:
        """Scores of rows."""
        return self.margins(X)[:, None] + self.offset

    @abstractmethod
    def margins(self, X: Any) -> Array:
        """Log odds of rows under the costs that it was trained with; shape (n,)."""

    @property
    @abstractmethod
    def inputs(self) -> int:
        """The number of features of a row."""

    @abstractmethod
    def dump(self) -> bytes:
        """As the library writes it."""

    @staticmethod
    @abstractmethod
    def load(data: bytes) -> Any:
        """What the library makes of what `rewritten` gave."""

    def about(self) -> dict[str, Any]:
        """Its library and its first score."""
        return {"kind": self.library, "offset": self.offset}

    def files(self) -> dict[str, bytes]:
        """The library's own file; ValueError if it could not be read back."""
        data = self.dump()
        try:
            self.rewritten(data)
        except DAMAGED as error:
            reason = in_short(error)
            raise ValueError(f"This booster cannot be saved ({reason}); train it with other parameters.") from error
        return {self.file: data}


@dataclass(eq=False)
class Engine(ABC):
    """A boosting library on rows of one table, taken by their numbers: binned data are made once per fold.

    `objective` makes a fresh custom objective; None is the library's own logistic loss, which with class costs as row
    weights is the tangent loss at q = 0. `booster` is what comes of it. Once `stopped`, nothing goes on boosting.
    """

    booster: ClassVar[type[Booster]]

    X: Any
    y: NDArray[Any]
    params: dict[str, Any]
    rounds: int
    objective: Callable[[], Any] | None = None
    folds: dict[int, Any] = field(default_factory=dict)
    lock: Any = field(default_factory=threading.Lock)
    stopped: threading.Event = field(default_factory=threading.Event)

    def fit(self, rows: Numbers, y: NDArray[Any], weight: Array | None) -> Booster:
        """Fit the rows with these numbers."""
        return self.booster(*self.train(rows, np.ones(len(y)) if weight is None else weight))

    def score(self, model: Booster, rows: Numbers) -> Array:
        """Score the rows with these numbers."""
        return model(take(self.X, rows))[:, 0]

    def binned(self, rows: Numbers) -> Any:
        """The library's own form of some rows, made once, by one thread at a time."""
        key = hash(rows.tobytes())
        with self.lock:
            if key not in self.folds:
                self.folds[key] = self.bin(rows)
            return self.folds[key]

    @abstractmethod
    def bin(self, rows: Numbers) -> Any:
        """Bring rows and labels into the library's own form."""

    @abstractmethod
    def train(self, rows: Numbers, weight: Array) -> tuple[Any, float]:
        """Boost for all rounds: the booster, and the score it does not know it began with."""

    @abstractmethod
    def grow(self, rest: Numbers, held: Numbers, weight: Array) -> Iterator[Array]:
        """Boost on some rows, and score others after every round, up to a rising function."""


@dataclass(frozen=True)
class BoosterLearner(Learner):
    """A booster trained for a metric; `engine` is the library, `objective` its custom objective.

    - `rounds`, `patience`: trees at most, and how many without a better score of the held-out rows end the growing;
      None grows them all.
    - `iterations`, `damping`: of the fixed point of class costs, for the tangent loss. `q`: of tangent and surrogate.
    - `refit`: fit once more on all rows; without, only the models of the folds are made.
    - `jobs`: how many cores to keep busy; None is all of them. Folds are trained at once, and trees get several threads
      where the table is large; the numbers are the same for any.
    - `params`: the library's own.
    """

    losses = ("tangent", "bce", "surrogate")
    draws = True
    steps = 10  # as much as ten epochs of a network
    engine: ClassVar[type[Engine]]
    objective: ClassVar[type[Objective]]

    rounds: int = 300
    patience: int | None = 30
    iterations: int = 5
    damping: float = 0.5
    q: float = 0.0
    refit: bool = True
    jobs: int | None = None
    params: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def read(cls, about: Mapping[str, Any], files: Mapping[str, bytes]) -> Booster:
        """A fitted booster from its `about()` and `files()`."""
        offset = float(about["offset"])
        if not abs(offset) <= LARGEST:
            raise ValueError("the first score of the booster is not finite, or absurd")
        made = cls.engine.booster
        return made(made.load(made.rewritten(files[made.file])), offset)

    @abstractmethod
    def params_for(self, seed: int, threads: int) -> dict[str, Any]:
        """The library's parameters for a random seed and so many threads."""

    def fit_folds(
        self, rows: Rows, goal: Goal, losses: Sequence[str], *, seed: int = 0, tick: Tick = lambda done: None
    ) -> dict[str, Fitted]:
        """Train every loss on all rows and on all but each fold."""
        return {loss: self._fit(rows, goal, loss, seed) for loss in losses}

    def _fit(self, rows: Rows, goal: Goal, loss: str, seed: int) -> Fitted:
        began = time.perf_counter()
        (y,) = rows.y.T.astype(np.int64)
        numbers = int(np.prod(rows.X.shape))
        at_once, threads = shared_out(numbers, rows.folds, self.jobs)
        engine = self.engine(rows.X, y, self.params_for(seed, threads), self.rounds, self._custom(goal, loss, rows))
        start = 0.5
        history: tuple[Round, ...] = ()
        fit = rows.drawing(engine.fit)
        given = fit, engine.score, np.arange(len(y)), y
        with workers(at_once, engine.stopped.set) as side_by_side:
            how: dict[str, Any] = {"ordered": rows.ordered, "side_by_side": side_by_side}
            if self.patience is not None:
                engine.rounds, at = self._stop_early(engine, rows, goal, side_by_side)
                start = costs(goal.metric, at)[0]
            if loss == "tangent":
                how |= {"rounds": self.iterations, "damping": self.damping, "start": start}
                point = solve(*given, goal.metric, rows.fold, rows.weight, **how)
                found, delta, history = point.crossfit, point.delta, point.history
            else:
                found, delta = cross_fit(*given, rows.fold, rows.weight, **how), 0.5
        model = None
        if self.refit:
            engine.folds.clear()  # all rows need their room
            engine.params = self.params_for(seed, shared_out(numbers, 1, self.jobs)[1])
            model = fit(np.arange(len(y)), y, cost_weights(y, delta, rows.weight))
        extra = {"costs": (delta, 1 - delta), "history": history}
        scores, seconds = found.scores[:, None], time.perf_counter() - began
        return Fitted(scores, model, found.models, rounds=engine.rounds, seconds=seconds, extra=extra)

    def _custom(self, goal: Goal, loss: str, rows: Rows) -> Callable[[], Any] | None:
        """A custom objective only where the library's own logistic loss is another model."""
        if loss == "surrogate":
            share = float(np.average(rows.y[:, 0], weights=rows.weight))
            return lambda: self.objective(goal.metric, loss="surrogate", prevalence=share, q=self.q)
        if loss == "tangent" and self.q > 0:  # the row weights hold the costs
            return lambda: self.objective(goal.metric, costs=(0.5, 0.5), q=self.q)
        return None

    def _stop_early(self, engine: Engine, rows: Rows, goal: Goal, side_by_side: Map = map) -> tuple[int, Confusion]:
        """Boost all folds side by side; after which round do the held-out rows score best, and where?

        One number for all folds: a stop of each fold's own would make the scores optimistic that the cut comes from.
        """
        weight = cost_weights(engine.y, 0.5, rows.weight)
        parts = [(rest, np.flatnonzero(rows.fold == k)) for k, rest in enumerate(rows.parts[1:])]
        scores = np.zeros((len(rows.y), 1))
        taken = scores.copy()
        best = Best(self.patience)
        times = [rows.times(rest) for rest, _ in parts]
        runs = [
            engine.grow(rest[n > 0], held, (n * weight[rest])[n > 0])
            for (rest, held), n in zip(parts, times, strict=True)
        ]
        for done in range(1, engine.rounds + 1):
            for (_, held), part in zip(parts, side_by_side(next, runs), strict=True):
                scores[held, 0] = part
            if best.see(done, (goal.held_out_score(*rows.held_out(scores)),)):
                taken[:] = scores
            elif best.ended(done + 1):
                break
        z, y, w = rows.held_out(taken)
        counts = tune(z[:, 0], y[:, 0], goal.metric, w, kind="logit").counts
        assert counts is not None
        return best.epoch, counts
