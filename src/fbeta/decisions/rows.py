"""Decide rows one by one, for scores that are averaged over rows: sets of labels, pixels of an image.

The average of F over rows is no function of pooled counts, so no common cut is best: a row with one likely label wants
that one, a row with none that stands out wants several. With independent labels the best set of each size holds the
likeliest labels, for every metric that rises with right calls; so only its size is to be found.
"""

from typing import Any

import numpy as np

from fbeta.decisions.expected_scores import exact_values, falling, law_of_count
from fbeta.decisions.inputs import Vector, read_array, read_row_weight
from fbeta.decisions.large_rows import LIKELIEST, call_likeliest, decide_large
from fbeta.metrics import Confusion, Metric, as_metric

#: Up to so many labels the expected score is summed over all outcomes.
EXACT = 200
#: Numbers that a step may hold at once.
ROOM = 1 << 23


def decide_rows(probabilities: Any, metric: Metric | str | Any, *, empty: float = 1.0, sizes: Any | None = None) -> Any:
    r"""Find for every row the set with the highest expected score.

    .. math:: \hat S = \arg\max_S \mathbb{E}\, M(Y, S), \qquad Y_j \sim \text{Bernoulli}(p_j),\quad
              P(Y) \propto w_{|Y|} \prod_j p_j^{Y_j} (1 - p_j)^{1 - Y_j}

    Up to 200 labels the expectation is exact. Larger maps take it to second order around the expected counts (the set
    found is worth at most 0.001 less than the best one in `tests/test_rows.py`), and exactly over the likeliest
    elements where fewer than ten positives are expected. Of sets that are worth the same the smaller one is taken.

    - `probabilities`: calibrated ones; `fbeta.Decision` makes them of scores.
    - `metric`: one that rises with right calls.
    - `empty`: what a row without positives scores if nothing is called; if anything is, the metric's own value counts.
    - `sizes`: weights w of 0, 1, … K positives in a row, where labels are not independent: see `size_weights`.

    Shape: arrays or tensors; ``(N, K)`` rows of labels, ``(N, H, W)`` images, ``(N, C, H, W)`` images with a map per
    class, each decided by itself; booleans of the same shape. `sizes` ``(K + 1,)``.

    >>> p = [[0.6, 0.1, 0.1], [0.4, 0.35, 0.3]]
    >>> decide_rows(p, "f1").tolist()
    [[True, False, False], [True, True, True]]
    >>> decide_rows(p, "precision").sum(axis=1).tolist()
    [1, 1]

    Reference: [ye2012], [waegeman2014], [dai2023]
    """
    goal = as_metric(metric)
    p, shape = _read(probabilities)
    n, k = p.shape
    check_empty(empty)
    w = np.ones(k + 1) if sizes is None else read_array("sizes", sizes, np.float64)
    if w.shape != (k + 1,) or not ((w >= 0) & np.isfinite(w)).all() or not w.any():
        raise ValueError(f"sizes are {k + 1} weights, not all 0: of 0, 1, … {k} positives; got shape {w.shape}.")
    if sizes is not None and k > EXACT:
        raise ValueError(f"sizes are for rows of up to {EXACT} labels; got {k}.")
    host = hasattr(p, "detach") and p.device.type == "cpu"
    rows = read_array("probabilities", p) if host else p  # the same memory, and quicker to sort
    decided, room = rows > 1, max(1, ROOM // (k * k if k <= EXACT else max(k, EXACT * LIKELIEST)))
    for i in range(0, n, room):
        part = slice(i, i + room)
        if k > EXACT:
            decided[part] = decide_large(rows[part], goal, empty)
        else:
            q = falling(rows[part])
            decided[part] = call_likeliest(rows[part], q, exact_values(q, None, k, goal, empty, w))
    if host:
        found = p > 1
        found.numpy()[:] = decided
        return found.reshape(shape)
    return decided.reshape(shape)


def size_weights(probabilities: Any, target: Any, weight: Any = None) -> Vector:
    r"""How much more often rows have m positives than independent labels would, for `decide_rows`.

    .. math:: \sum_i \frac{w_m P_i(m)}{\sum_k w_k P_i(k)} = n_m

    n_m is the number of rows with m positives (and half a row more, so that rare sizes stay near 1), P_i the
    distribution of the number of positives of row i under independence. Never take rows that the model was fitted to.

    Shape: `probabilities` and `target` ``(n, K)``, `weight` of rows ``(n,)``; result ``(K + 1,)``.

    >>> p = np.full((100, 2), 0.5)
    >>> y = np.tile([[1, 0], [0, 1]], (50, 1))  # always one of the two
    >>> (size_weights(p, y) > 1).tolist()
    [False, True, False]

    Reference: [deming1940]
    """
    p, y = read_array("probabilities", probabilities, np.float64), read_array("target", target)
    if p.ndim != 2 or p.shape != y.shape or not p.size:
        raise ValueError(f"probabilities and target must be alike, (n, K); got {p.shape} and {y.shape}.")
    if not ((y == 0) | (y == 1)).all():
        raise ValueError("target holds the labels of each row, as 0 and 1: how many a row has is counted.")
    likely = law_of_count(_checked(p))
    rows = read_row_weight(weight, len(p))
    rows = rows * rows.sum() / (rows @ rows)  # as many rows as they stand for
    wanted = np.bincount(np.count_nonzero(y, axis=1), rows, p.shape[1] + 1) + 0.5
    w = np.ones(p.shape[1] + 1)
    for _ in range(100):
        shared = likely * w
        found = rows @ (shared / shared.sum(1, keepdims=True)) + 0.5
        w *= wanted / found
    return w


def row_scores(decided: Any, target: Any, metric: Metric | str | Any, *, empty: float = 1.0) -> Any:
    """Score every row by itself; their mean is what is called "samples", "example-based" or "per image" elsewhere.

    `empty`: what a row without positives scores if nothing is called in it.

    Shape: as in `decide_rows`: ``(N, K)``, ``(N, H, W)`` or ``(N, C, H, W)``; scores ``(N,)`` or ``(N, C)``.

    >>> row_scores([[1, 0, 0], [0, 0, 0]], [[1, 1, 0], [0, 0, 0]], "f1").round(3).tolist()
    [0.667, 1.0]
    """
    tensors = hasattr(decided, "detach") and hasattr(target, "detach")
    d, y = (x if tensors else read_array("decided and target", x) for x in (decided, target))
    if d.shape != y.shape:
        raise ValueError(f"decided and target must have one shape; got {tuple(d.shape)} and {tuple(y.shape)}.")
    outer = d.shape[: 2 if d.ndim == 4 else 1]
    cells = Confusion.from_predictions(d.reshape(*outer, -1), y.reshape(*outer, -1), axis=-1)
    blank = ((cells.tp + cells.fp + cells.fn) == 0) * 1.0
    return (1.0 - blank) * as_metric(metric)(cells) + blank * empty


def check_empty(empty: float) -> None:
    """Refuse a score of empty rows that is none."""
    if not 0 <= empty <= 1:
        raise ValueError(f"empty is what an empty row scores that is left empty, from 0 to 1; got {empty!r}.")


def _read(probabilities: Any) -> tuple[Any, tuple[int, ...]]:
    """Rows ``(n, k)``, checked, and the shape of what came."""
    p = probabilities if hasattr(probabilities, "detach") else read_array("probabilities", probabilities)
    if p.ndim not in (2, 3, 4) or 0 in p.shape:
        raise ValueError(
            f"probabilities must be rows (N, K), images (N, H, W) or maps (N, C, H, W); got {tuple(p.shape)}."
        )
    shape = tuple(p.shape)
    return _checked(p.reshape(shape[0] * shape[1], -1) if p.ndim == 4 else p.reshape(shape[0], -1)), shape


def _checked(p: Any) -> Any:
    if not (bool(p.min() >= 0) and bool(p.max() <= 1)):  # false for NaN, too
        raise ValueError(
            "probabilities must lie in [0, 1]; got values outside (or NaN). Turn logits into probabilities first, for "
            "example by Decision.fit(scores, target, metric, kind='logit').probability(scores)."
        )
    return p
