"""Linear models and MLPs: how they are trained, and what they are once they are fitted, which needs no torch."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from fbeta.learners.learner import Fitted, Goal, Learner, Rows, Tick

WEIGHTS = "weights.safetensors"
Floats = NDArray[np.floating[Any]]


@dataclass(frozen=True, eq=False)
class Network:
    """Layers x ↦ xW + b with max(0, x) between them; weights ``(d, h)`` … ``(h, K)``, biases ``(h,)`` … ``(K,)``."""

    weights: tuple[Floats, ...]
    biases: tuple[Floats, ...]

    def __post_init__(self) -> None:
        shapes = [(w.shape, b.shape) for w, b in zip(self.weights, self.biases, strict=True)]
        if shapes != [((a, b), (b,)) for a, b in itertools.pairwise(self.sizes)]:
            raise ValueError(f"layers of shapes {shapes} do not fit together")

    def __call__(self, X: Any) -> NDArray[np.float64]:
        """Scores of rows, dense or (without hidden layers) sparse."""
        for i, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            X = (np.maximum(X, 0) if i else X) @ weight + bias
        return np.asarray(X).astype(np.float64, copy=False)

    @property
    def sizes(self) -> list[int]:
        """Widths from the features to the scores."""
        return [self.weights[0].shape[0], *(len(b) for b in self.biases)]

    @property
    def inputs(self) -> int:
        """The number of features of a row."""
        return self.sizes[0]

    def unstandardised(self, mean: Floats | None, scale: Floats | None) -> Self:
        """The same network on raw features, where it was trained on (x − mean)/scale."""
        first = self.weights[0] if scale is None else self.weights[0] / scale[:, None]
        bias = self.biases[0] if mean is None else self.biases[0] - mean @ first
        return type(self)((first, *self.weights[1:]), (bias, *self.biases[1:]))

    def about(self) -> dict[str, Any]:
        """Its widths."""
        return {"kind": "network", "sizes": self.sizes}

    def files(self) -> dict[str, bytes]:
        """Weights and biases as safetensors."""
        from safetensors.numpy import save

        parts = {"weight": self.weights, "bias": self.biases}
        named = {f"{name}.{i}": x for name, xs in parts.items() for i, x in enumerate(xs)}
        return {WEIGHTS: save({name: np.ascontiguousarray(x) for name, x in named.items()})}

    @classmethod
    def read(cls, about: Mapping[str, Any], files: Mapping[str, bytes]) -> Self:
        """The network of `about` and `files`; ValueError where they do not hold one."""
        sizes, held = [int(size) for size in about["sizes"]], read_arrays(files, WEIGHTS)
        layers = range(len(sizes) - 1)
        if not layers or set(held) != {f"{name}.{i}" for name in ("weight", "bias") for i in layers}:
            raise ValueError(f"{WEIGHTS} holds {', '.join(sorted(held)) or 'nothing'}")
        if not all(x.dtype in (np.float32, np.float64) and np.isfinite(x).all() for x in held.values()):
            raise ValueError("weights are not all finite real numbers")
        made = cls(tuple(held[f"weight.{i}"] for i in layers), tuple(held[f"bias.{i}"] for i in layers))
        if made.sizes != sizes:
            raise ValueError(f"weights of widths {made.sizes} where {sizes} are said")
        return made


def read_arrays(files: Mapping[str, bytes], name: str) -> dict[str, NDArray[Any]]:
    """The arrays of a safetensors file; ValueError where it is none."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        return dict(load(files[name]))
    except SafetensorError as error:
        raise ValueError(f"{name} is no safetensors file: {error}") from error


@dataclass(frozen=True)
class NetworkLearner(Learner):
    """Linear models and MLPs: what the estimators, `compare` and `fit` all train.

    - `hidden`: the units of each hidden layer. `solver`: "adam" on batches, or "lbfgs" on all rows.
    - `epochs`, `patience`: epochs at most (ten steps each for "lbfgs"), and how many without a better score of the
      held-out rows end the training; None never does, and the last epoch counts.
    - `batch`, `rate`: of Adam; None is a hundred steps per epoch, of 32 to 1,024 rows, and longer steps where there are
      fewer of them. `averaged`: look at running means of the weights, which vary less.
    - `alpha`: the penalty on squared weights, relative to the mean loss; None is 1/n, logistic regression's ``C=1``.
    - `options`: go to the loss. `device`: "cpu", "cuda", or "auto".
    """

    together, draws, files = True, True, (WEIGHTS,)

    hidden: tuple[int, ...] = ()
    solver: str = "adam"
    epochs: int = 30
    patience: int | None = 6
    batch: int | None = None
    rate: float | None = None
    averaged: bool = False
    alpha: float | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    device: str = "cpu"

    @property
    def steps(self) -> int:
        """Epochs."""
        return self.epochs

    read = Network.read

    def fit_folds(
        self, rows: Rows, goal: Goal, losses: Sequence[str], *, seed: int = 0, tick: Tick = lambda done: None
    ) -> dict[str, Fitted]:
        """Train every loss on all rows and on all but each fold, in step."""
        from fbeta.learners.training import train

        return train(self, rows, goal, losses, seed, tick)

    def batch_of(self, rows: int) -> int:
        """The rows in a step on a table of so many."""
        return self.batch or int(np.clip(rows // 100, 32, 1024))

    def rate_of(self, steps: int) -> float:
        """The learning rate: the fewer steps per epoch, the longer they are, up to ten times."""
        return 3e-3 * float(np.clip(100 / steps, 1, 10)) if self.rate is None else self.rate

    def loss_options(self, loss: str, goal: Goal) -> dict[str, Any]:
        """What a loss is made with, besides its metric."""
        options = dict(self.options)
        if loss == "tangent":
            options.setdefault("counts", "given")  # the operating point comes from held-out rows
        if goal.prevalence is not None:
            options["prevalence"] = goal.prevalence
        return options
