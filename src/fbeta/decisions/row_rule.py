"""Rows decided one by one or by one common cut: whichever scored more on rows that are known."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from fbeta.decisions.inputs import Vector, read_row_weight
from fbeta.decisions.rows import EXACT, check_empty, decide_rows, row_scores, size_weights
from fbeta.decisions.threshold import Threshold
from fbeta.metrics import Metric, title
from fbeta.numerals import fixed
from fbeta.plain_data import to_plain

#: Weights of sizes are no larger.
LARGEST = 1e100
#: Weights of sizes are judged on rows that they were not learnt from, in so many folds.
FOLDS = 5


@dataclass(frozen=True, eq=False)
class RowRule:
    r"""How rows of several labels are decided where the mean of row scores counts.

    `one_by_one`: each row gets the set with the highest expected score (`decide_rows`, with the weights `sizes`);
    else the common cut decides, because it scored more on the rows at hand. Labels that depend on each other are what
    it wins by. `scores`: the mean row score of the common cut, and of rows decided one by one; `gap`: the standard
    error of the difference.

    Shape: `sizes` ``(K + 1,)``, or None for more labels than sizes are learnt for.
    """

    one_by_one: bool
    empty: float
    sizes: Vector | None
    scores: tuple[float, float]
    gap: float

    @classmethod
    def choose(cls, p: Vector, target: NDArray[Any], metric: Metric, weight: Any, cut: Threshold, empty: float) -> Self:
        """Score both on rows whose probabilities come from models that did not see them, weight ``(n,)``."""
        w = read_row_weight(weight, len(p))
        fold = np.random.default_rng(0).permutation(len(p)) % min(FOLDS, len(p))
        found = np.zeros(p.shape, dtype=bool)
        for held in (fold == name for name in np.unique(fold)):
            sizes = _sizes(p[~held], target[~held], w[~held]) if len(p) > 1 else None
            found[held] = decide_rows(p[held], metric, empty=empty, sizes=sizes)
        share = w / w.sum()
        common, single = (
            np.asarray(row_scores(called, target, metric, empty=empty)) for called in (cut.decide(p), found)
        )
        better = float(share @ (single - common))
        gap = math.sqrt(float(share**2 @ (single - common - better) ** 2))
        scores = float(share @ common), float(share @ single)
        return cls(better > 0, float(empty), _sizes(p, target, w), scores, gap)

    def decide(self, p: Vector, metric: Metric, cut: Threshold) -> NDArray[np.bool_]:
        """The decisions on probabilities ``(*, K)``."""
        if not self.one_by_one or p.size == 0:
            return np.asarray(cut.decide(p))
        rows = p.reshape(-1, p.shape[-1])
        found: NDArray[np.bool_] = decide_rows(rows, metric, empty=self.empty, sizes=self.sizes).reshape(p.shape)
        return found

    def explain(self, metric: Metric, where: str) -> str:
        """What decides, and what the other way would have scored."""
        common, single = map(fixed, self.scores)
        name = f"Mean {title(metric)} per row"
        if self.one_by_one:
            return f"Rows are decided one by one. {name} {single} on the rows at hand; with one common cut {common}."
        return f"One common cut: {where}. {name} {common} on the rows at hand; decided one by one {single}."

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        found: dict[str, Any] = to_plain(vars(self))
        return found

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], columns: int) -> Self:
        """Read `to_dict` back; ValueError for anything else."""
        check_empty(float(data["empty"]))
        sizes = None if data["sizes"] is None else np.array(data["sizes"], dtype=np.float64)
        if sizes is not None and not (
            columns <= EXACT and sizes.shape == (columns + 1,) and (sizes >= 0).all() and 0 < sizes.max() <= LARGEST
        ):
            raise ValueError("the sizes of its rows are no weights")
        common, single = map(float, data["scores"])
        gap = float(data["gap"])
        if not (math.isfinite(common) and math.isfinite(single) and 0 <= gap < math.inf):
            raise ValueError("its mean row scores are no numbers")
        return cls(bool(data["one_by_one"]), float(data["empty"]), sizes, (common, single), gap)


def _sizes(p: Vector, target: NDArray[Any], weight: Vector) -> Vector | None:
    return size_weights(p, target, weight) if p.shape[1] <= EXACT else None
