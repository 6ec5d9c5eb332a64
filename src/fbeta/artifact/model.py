"""A fitted model: typed rows in, probabilities and decisions out."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fbeta.decisions import Decision, Threshold
from fbeta.learners import Scorer
from fbeta.learners.crossfit import Array
from fbeta.metrics import Metric
from fbeta.tables import Column, Encoder
from fbeta.tables.streaming import typed

New = Literal["other", "error"]
#: Numbers that are encoded and scored at once.
CHUNK = 1 << 26


class ArtifactError(ValueError):
    """A model file that cannot be used; the message says why, and what to do."""


@dataclass(frozen=True, eq=False, repr=False)
class Model:
    """What `fit` gives and a file holds: encoder, scorer and decision, and where they come from.

    The decision was fitted on out-of-fold rows. `negative` are all other values of the target. `provenance` is plain
    data: the table, the protocol, the date, the versions.

    >>> from fbeta.comparison.run import fit
    >>> model = fit("breast-cancer", metric="fbeta:beta=2", models="linear", losses="bce", folds=2)
    >>> model
    Model('linear, bce' for 'fbeta:beta=2', 30 columns, diagnosis 'malignant')
    """

    encoder: Encoder
    scorer: Scorer
    decision: Decision
    metric: Metric
    target: str
    positive: str
    negative: tuple[str, ...]
    model: str
    loss: str
    provenance: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        takes, makes = self.scorer.inputs, len(self.encoder.columns)
        if not 0 < takes == makes:
            raise ValueError(f"the model takes {takes} features, and the encoder makes {makes}")

    def __repr__(self) -> str:
        what = f"{self.target} {self.positive!r}"
        return f"Model({self.name!r} for {str(self.metric)!r}, {len(self.columns)} columns, {what})"

    @property
    def name(self) -> str:
        """The method, as tables show it."""
        return f"{self.model}, {self.loss}"

    @property
    def cut(self) -> Threshold:
        """The cut, in probabilities; its score and interval are of out-of-fold rows."""
        return self.decision.cut

    def facts(self) -> dict[str, Any]:
        """What it decides and how, as plain data."""
        return {
            **{fact: getattr(self, fact) for fact in ("model", "loss", "target", "positive")},
            "metric": str(self.metric),
            "negative": list(self.negative),
            "cut": self.cut.to_dict(),
            "columns": [column.name for column in self.columns],
            "provenance": dict(self.provenance),
        }

    def summary(self) -> str:
        """What was trained, and how good it looked on which rows."""
        about, tried = self.provenance, self.provenance["tried"]
        best = f", chosen among {len(tried)} methods by out-of-fold rows" if len(tried) > 1 else ""
        chose = "the method and " if len(tried) > 1 else ""
        mean = f", the mean of {about['folds']} models that each left out a fold" if about.get("ensemble") else ""
        lines = [
            f"Trained {self.name}{best}, on all {about['rows']:,} rows of {about['data']}{mean}.",
            self.decision.explain(),
            f"These out-of-fold rows also chose {chose}when to stop, so the score is a little optimistic; what "
            "`fbeta compare` says comes from rows that had no part in any choice.",
            about["collapse"] and f"Without that cut it {about['collapse']}.",
        ]
        return "\n".join(line for line in lines if line)

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """The columns that new rows must have: those that a feature is made of."""
        used = {part.name for part in self.encoder.parts}
        return tuple(column for column in self.encoder.schema if column.name in used)

    @property
    def ask(self) -> str:
        """The text of a decision that is a person's: "ask", or with a mark where a class is called so."""
        said = "ask"
        while said in (*self.labels, *self.negative):
            said += "?"
        return said

    @property
    def labels(self) -> tuple[str, str]:
        """The texts of a negative and a positive decision."""
        return self.negative[0] if len(self.negative) == 1 else f"not {self.positive}", self.positive

    def probability(self, frame: pl.DataFrame, new: New = "error") -> Array:
        """The probability of the positive class, calibrated on out-of-fold rows: ``(n,)``.

        Columns are found by name and checked by type; a category that training did not have is a TableError, or one of
        the others where `new` is "other".
        """
        return self.of_features(typed(frame, self.columns), new)

    def of_features(self, features: pl.DataFrame, new: New = "error") -> Array:
        """Probabilities of rows that are typed already, as `stream` and `Table.features` have them."""
        rows = max(1, CHUNK // self.scorer.inputs)
        pieces = (self.encoder.transform(features[i : i + rows], new) for i in range(0, features.height, rows))
        with np.errstate(over="ignore", invalid="ignore"):  # weights of a damaged file may be anything
            scores = np.concatenate([np.empty(0), *(self.scorer(piece)[:, 0] for piece in pieces)])
            p = self.decision.probability(scores)
        if np.isnan(p).any():
            raise ArtifactError("the model gives no probability for some of these rows: fit it again.")
        return p

    def decide(self, frame: pl.DataFrame, new: New = "error") -> NDArray[np.str_]:
        """The decision, as the text of a class, or `ask` for a row that a person decides: ``(n,)``."""
        outcome = self.cut.outcome(self.probability(frame, new)).astype(np.int64)
        named: NDArray[np.str_] = np.array([*self.labels, self.ask])[outcome]  # −1 is the last
        return named
