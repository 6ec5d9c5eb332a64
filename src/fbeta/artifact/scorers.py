"""What gives rows their scores: a network as plain arrays, or a booster as its library's own text."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Rows = NDArray[np.float32]
#: The file of each library: XGBoost's JSON, LightGBM's text.
BOOSTERS = {"xgboost": "booster.json", "lightgbm": "booster.txt"}
WEIGHTS = "weights.safetensors"


class Scorer(Protocol):
    """Scores of encoded rows, positive at or above 0 by the loss's own boundary.

    Shape: rows ``(n, d)`` float32; scores ``(n,)``.
    """

    def __call__(self, X: Rows) -> Floats:
        """Scores of rows."""

    @property
    def inputs(self) -> int:
        """How many features a row has."""

    def about(self) -> dict[str, Any]:
        """What `read` needs besides the files, as plain data."""

    def files(self) -> dict[str, bytes]:
        """Its files by name."""


@dataclass(frozen=True, eq=False)
class Network:
    """Layers x ↦ xW + b with max(0, x) between them, in single precision; one layer is a linear model.

    Shape: weights ``(d, h)``, …, ``(h, 1)``; biases ``(h,)``, …, ``(1,)``.

    >>> one = np.ones((2, 1), np.float32)
    >>> Network((one,), (np.zeros(1, np.float32),))(np.array([[1.0, 2.0]], np.float32))
    array([3.])
    """

    weights: tuple[Rows, ...]
    biases: tuple[Rows, ...]

    def __post_init__(self) -> None:
        sizes = self.sizes
        shapes = [(w.shape, b.shape) for w, b in zip(self.weights, self.biases, strict=True)]
        if shapes != [((a, b), (b,)) for a, b in itertools.pairwise(sizes)] or sizes[-1] != 1:
            raise ValueError(f"layers of shapes {shapes} do not fit together")
        if not all(x.dtype == np.float32 and np.isfinite(x).all() for x in (*self.weights, *self.biases)):
            raise ValueError("weights are not all finite numbers of single precision")

    def __call__(self, X: Rows) -> Floats:
        """Logits of rows."""
        for i, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            X = (np.maximum(X, 0) if i else X) @ weight + bias
        return X[:, 0].astype(np.float64)

    @property
    def sizes(self) -> list[int]:
        """Widths from the features to the logit."""
        return [self.weights[0].shape[0], *(len(b) for b in self.biases)]

    @property
    def inputs(self) -> int:
        """How many features a row has."""
        return self.sizes[0]

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
    def read(cls, about: Mapping[str, Any], files: Mapping[str, bytes]) -> Network:
        """The network of `about` and `files`."""
        from safetensors import SafetensorError
        from safetensors.numpy import load

        sizes = [int(size) for size in about["sizes"]]
        try:
            held = load(files[WEIGHTS])
        except SafetensorError as error:
            raise ValueError(f"{WEIGHTS} is no safetensors file: {error}") from error
        layers = range(len(sizes) - 1)
        if set(held) != {f"{name}.{i}" for name in ("weight", "bias") for i in layers}:
            raise ValueError(f"{WEIGHTS} holds {', '.join(sorted(held)) or 'nothing'}")
        made = cls(tuple(held[f"weight.{i}"] for i in layers), tuple(held[f"bias.{i}"] for i in layers))
        if made.sizes != sizes:
            raise ValueError(f"weights of widths {made.sizes} where {sizes} are said")
        return made


@dataclass(frozen=True, eq=False)
class Booster:
    """A booster as its library writes it; its log odds, from `offset` on, are multiplied by `slope`.

    >>> Booster("xgboost", b"{}").about()
    {'kind': 'xgboost', 'slope': 1.0, 'offset': 0.0}
    """

    library: str
    data: bytes
    slope: float = 1.0
    offset: float = 0.0

    def __call__(self, X: Rows) -> Floats:
        """Scores of rows."""
        learner, booster = self._loaded
        from fbeta.boosting.learner import Model

        scores: Floats = self.slope * learner.scores(Model(booster, self.offset), X)
        return scores

    @cached_property
    def _loaded(self) -> tuple[Any, Any]:
        """The library's own booster, and who scores with it."""
        if self.library == "xgboost":
            from fbeta.boosting.xgb import XGBLearner  # first: it says how to install what is missing

            import xgboost  # isort: skip

            return XGBLearner, xgboost.Booster(model_file=bytearray(self.data))
        from fbeta.boosting.lgbm import LGBMLearner

        import lightgbm  # isort: skip

        try:
            return LGBMLearner, lightgbm.Booster(model_str=self.data.decode())
        except lightgbm.basic.LightGBMError as error:
            raise ValueError(str(error)) from error

    @property
    def inputs(self) -> int:
        """How many features a row has."""
        booster = self._loaded[1]
        return int(booster.num_features() if self.library == "xgboost" else booster.num_feature())

    def about(self) -> dict[str, Any]:
        """Its library and the two numbers."""
        return {"kind": self.library, "slope": self.slope, "offset": self.offset}

    def files(self) -> dict[str, bytes]:
        """The library's own file."""
        return {BOOSTERS[self.library]: self.data}

    @classmethod
    def read(cls, about: Mapping[str, Any], files: Mapping[str, bytes]) -> Booster:
        """The booster of `about` and `files`."""
        numbers = float(about["slope"]), float(about["offset"])
        if not np.isfinite(numbers).all():
            raise ValueError("slope and offset of the booster are not finite")
        return cls(about["kind"], files[BOOSTERS[about["kind"]]], *numbers)


def names(about: Mapping[str, Any]) -> list[str]:
    """The files that a scorer needs.

    >>> names({"kind": "lightgbm"})
    ['booster.txt']
    """
    if about["kind"] == "network":
        return [WEIGHTS]
    if about["kind"] not in BOOSTERS:
        raise ValueError(f"there is no kind of model {about['kind']!r:.40}")
    return [BOOSTERS[about["kind"]]]


def read(about: Mapping[str, Any], files: Mapping[str, bytes]) -> Scorer:
    """A scorer from what `about` and `files` gave; ValueError where it is none."""
    return Network.read(about, files) if about["kind"] == "network" else Booster.read(about, files)
