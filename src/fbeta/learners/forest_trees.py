"""A random forest as plain arrays, which needs no scikit-learn to score rows and no code in a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fbeta.decisions.calibration import logit
from fbeta.learners.crossfit import Array
from fbeta.learners.network import read_arrays
from fbeta.learners.trees import check_splits, check_trees

TREES = "trees.safetensors"


@dataclass(frozen=True, eq=False)
class ForestTrees:
    """Trees whose leaves hold the share of positives, one after another: rows in, log odds of the mean share out.

    A row goes left where its feature is at most the threshold. `left` and `right` number the nodes within their tree,
    −1 at a leaf.

    Shape: `size` ``(T,)``, the nodes of each tree; the others ``(Σ size,)``. Rows ``(n, d)``; scores ``(n, 1)``.

    >>> one = ForestTrees(1, *map(np.array, ([3], [1, -1, -1], [2, -1, -1], [0, 0, 0], [0.5, 0, 0], [0.5, 0.2, 0.5])))
    >>> one(np.array([[0.0], [1.0]])).round(3).tolist()
    [[-1.386], [0.0]]
    """

    inputs: int
    size: NDArray[np.int64]
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    feature: NDArray[np.int64]
    threshold: Array
    share: Array

    def __post_init__(self) -> None:
        nodes = {(int(self.size.sum()),)}
        if {x.shape for x in (self.left, self.right, self.feature, self.threshold, self.share)} != nodes:
            raise ValueError("the arrays of a forest are of several lengths")
        check_trees(self.size, self.left, self.right)
        leaf = self.left == -1
        check_splits(self.feature[~leaf], self.inputs, self.share)
        if not (np.isfinite(self.threshold).all() and ((self.share >= 0) & (self.share <= 1)).all()):
            raise ValueError("a threshold is not finite, or a share of positives not from 0 to 1")

    @classmethod
    def of(cls, forest: Any) -> ForestTrees:
        """The arrays of a fitted forest of scikit-learn, of two classes 0 and 1."""
        trees = [one.tree_ for one in forest.estimators_]
        value = np.concatenate([tree.value[:, 0] for tree in trees])
        names = ("children_left", "children_right", "feature", "threshold")
        left, right, feature, threshold = (np.concatenate([getattr(tree, name) for tree in trees]) for name in names)
        size = np.array([tree.node_count for tree in trees], np.int64)
        share = value[:, -1] / value.sum(1)
        return cls(forest.n_features_in_, size, left, right, np.maximum(feature, 0), threshold, share)

    def __call__(self, X: Any) -> Array:
        """Log odds of rows, dense or sparse."""
        rows = np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float32)
        total, every = np.zeros(len(rows)), np.arange(len(rows))
        for root in np.cumsum(self.size) - self.size:
            at = np.full(len(rows), root)
            inner = every
            while len(inner := inner[self.left[at[inner]] != -1]):
                here = at[inner]
                goes = rows[inner, self.feature[here]] <= self.threshold[here]
                at[inner] = root + np.where(goes, self.left[here], self.right[here])
            total += self.share[at]
        return np.asarray(logit(total / len(self.size)))[:, None]

    def about(self) -> dict[str, Any]:
        """The number of its features."""
        return {"kind": "forest", "inputs": self.inputs}

    def files(self) -> dict[str, bytes]:
        """Its arrays as safetensors."""
        from safetensors.numpy import save

        return {TREES: save({name: x for name, x in asdict(self).items() if name != "inputs"})}

    @classmethod
    def read(cls, about: Mapping[str, Any], files: Mapping[str, bytes]) -> ForestTrees:
        """The forest of `about` and `files`; ValueError where they do not hold one."""
        held = read_arrays(files, TREES)
        real = {"threshold", "share"}
        if set(held) != {"size", "left", "right", "feature"} | real:
            raise ValueError(f"{TREES} holds {', '.join(sorted(held)) or 'nothing'}")
        if any(x.dtype != (np.float64 if name in real else np.int64) or x.ndim != 1 for name, x in held.items()):
            raise ValueError("the arrays of a forest are of other types")
        return cls(int(about["inputs"]), **held)
