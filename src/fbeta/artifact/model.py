"""A fitted model: typed rows in, probabilities and decisions out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from fbeta.artifact.scorers import Floats, Scorer
from fbeta.decisions import Platt, Threshold
from fbeta.metrics import Metric

if TYPE_CHECKING:
    import polars as pl

    from fbeta.tables import Column, Encoder

New = Literal["other", "error"]
#: Rows that are encoded and scored at once.
CHUNK = 1 << 16


class ArtifactError(ValueError):
    """A model file that cannot be used; the message says why, and what to do.

    >>> raise ArtifactError("model.fbeta is truncated or damaged: copy it again, or fit the model again.")
    Traceback (most recent call last):
    fbeta.artifact.model.ArtifactError: model.fbeta is truncated or damaged: copy it again, or fit the model again.
    """


@dataclass(frozen=True, eq=False, repr=False)
class Model:
    """What `fit` gives and a file holds: encoder, scorer, calibration and cut, and where they come from.

    `cut` is of probabilities; its score and interval are of out-of-fold rows. `negative` are all other values of the
    target. `provenance` is plain data: the table, the protocol, the date, the versions.

    >>> from fbeta.comparison.fitting import fit
    >>> model = fit("breast-cancer", metric="fbeta:beta=2", models="linear", losses="bce", folds=2)
    >>> model
    Model('linear, bce' for 'fbeta:beta=2', 30 columns, diagnosis 'malignant')
    """

    encoder: Encoder
    scorer: Scorer
    calibration: Platt
    cut: Threshold
    metric: Metric
    target: str
    positive: str
    negative: tuple[str, ...]
    model: str
    loss: str
    provenance: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.scorer.inputs != len(self.encoder.columns):
            raise ValueError(
                f"the model takes {self.scorer.inputs} features, and the encoder makes {len(self.encoder.columns)}"
            )

    def __repr__(self) -> str:
        what = f"{self.target} {self.positive!r}"
        return f"Model({self.name!r} for {str(self.metric)!r}, {len(self.columns)} columns, {what})"

    @property
    def name(self) -> str:
        """The method, as tables show it."""
        return f"{self.model}, {self.loss}"

    def facts(self) -> dict[str, Any]:
        """What it decides and how, as plain data."""
        return {
            "model": self.model,
            "loss": self.loss,
            "metric": str(self.metric),
            "target": self.target,
            "positive": self.positive,
            "negative": list(self.negative),
            "cut": self.cut.to_dict(),
        }

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """The columns that new rows must have: those that a feature is made of."""
        used = {part.name for part in self.encoder.parts}
        return tuple(column for column in self.encoder.schema if column.name in used)

    @property
    def labels(self) -> tuple[str, str]:
        """The texts of a negative and a positive decision."""
        return self.negative[0] if len(self.negative) == 1 else f"not {self.positive}", self.positive

    def probability(self, frame: pl.DataFrame, new: New = "error") -> Floats:
        """The probability of the positive class, calibrated on out-of-fold rows.

        Columns are found by name and checked by type; a category that training did not have is a TableError, or one of
        the others where `new` is "other".

        Shape: ``(n,)``.
        """
        from fbeta.tables.streaming import typed

        features = typed(frame, self.columns)
        parts = [self.of_features(features[i : i + CHUNK], new) for i in range(0, features.height, CHUNK)]
        return np.concatenate(parts) if parts else np.empty(0)

    def of_features(self, features: pl.DataFrame, new: New = "error") -> Floats:
        """Probabilities of rows that are typed already, as `stream` and `Table.features` have them."""
        return self.calibration(self.scorer(self.encoder.transform(features, new)))

    def decide(self, frame: pl.DataFrame, new: New = "error") -> NDArray[np.str_]:
        """The decision, as the text of a class.

        Shape: ``(n,)``.
        """
        return self.named(self.probability(frame, new))

    def named(self, probability: Floats) -> NDArray[np.str_]:
        """Decisions of probabilities."""
        return np.array(self.labels)[self.cut.decide(probability).astype(np.int64)]
