"""Decide rows one by one, for scores that are averaged over rows: sets of labels, pixels of an image.

The average of F over rows is no function of pooled counts, so no common cut is best: a row with one likely label wants
that one, a row with none that stands out wants several. With independent labels the best set of each size holds the
likeliest labels, for every metric that rises with right calls; so only its size is to be found.
"""

from typing import Any

import numpy as np

from fbeta.decisions.inputs import Vector, read_array
from fbeta.metrics import Confusion, Metric, as_metric
from fbeta.metrics.confusion import divide

#: Up to so many labels the expected score is summed over all outcomes.
EXACT = 200
#: A map with fewer expected positives than this is decided exactly over its likeliest elements; the others are counted
#: by Poisson's law.
FEW, LIKELIEST, OTHERS = 10.0, 128, 64
#: What each element more must gain: ties and rounding go to the smaller set.
ROUNDING = 1e-14
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
    decided, room = p > 1, max(1, ROOM // (k * min(k, EXACT)))
    for i in range(0, n, room):
        decided[i : i + room] = _decided(p[i : i + room], goal, empty, w)
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
    likely = _laws(_falling(_checked(p)), None)[:, 0]
    rows = np.ones(len(p)) if weight is None else read_array("weight", weight, np.float64)
    if rows.shape != (len(p),) or not ((rows >= 0) & np.isfinite(rows)).all() or not rows.any():
        raise ValueError(f"weight is one number per row, finite, from 0 and not all 0; got shape {rows.shape}.")
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
    if not bool(((p >= 0) & (p <= 1)).all()):
        raise ValueError(
            "probabilities must lie in [0, 1]; got values outside (or NaN). Turn logits into probabilities first, for "
            "example by Decision.fit(scores, target, metric, kind='logit').probability(scores)."
        )
    return p


def _decided(p: Any, metric: Metric, empty: float, sizes: Vector) -> Any:
    """The best set of each of some rows ``(n, k)``: the likeliest elements, as many as are worth most."""
    q, count = _falling(p), p.shape[1]
    if count <= EXACT:
        value = _exact(q, None, count, metric, empty, sizes)
    else:
        value, few = _second_order(q, metric, empty), q.sum(-1) < FEW
        if bool(few.any()):
            rest = _poisson(q[few, LIKELIEST:].sum(-1))
            value[few, LIKELIEST + 1 :] = -np.inf
            value[few, : LIKELIEST + 1] = _exact(q[few, :LIKELIEST], rest, count, metric, empty, None)
    best = (value - ROUNDING * (value == value).cumsum(-1)).argmax(-1)
    last = q[(best == best).cumsum(0) - 1, best - (best > 0) * 1][:, None]
    last = last.to(p.dtype) if hasattr(p, "detach") else last.astype(p.dtype)
    above, tied = p > last, p == last
    wanted = best[:, None] - above.sum(-1)[:, None]
    return (best > 0)[:, None] & (above | (tied & (tied.cumsum(-1) <= wanted)))


def _exact(q: Any, rest: Any, count: int, metric: Metric, empty: float, sizes: Vector | None) -> Any:
    """Expected scores of calling the first 0, 1, … k elements; `rest` is the law of the positives beyond them."""
    k = q.shape[1]
    after = _laws(q, rest)
    before, value = _zeros(q, k + 1), _zeros(q, k + 1)
    before[:, 0] = 1.0
    for called in range(k + 1):
        if called:
            hit = q[:, called - 1, None]
            before[:, 1:] = before[:, 1:] * (1.0 - hit) + before[:, :-1] * hit
            before[:, :1] *= 1.0 - hit
        tp, fn = np.ogrid[: called + 1, : after.shape[2]]
        cells = np.broadcast_arrays(tp, called - tp, fn, np.maximum(count - called - fn, 0))
        worth = np.array(metric(Confusion(*(c.astype(np.float64) for c in cells))), dtype=np.float64)
        if called == 0:
            worth[0, 0] = empty
        if sizes is not None:
            worth *= sizes[np.minimum(tp + fn, count)]
        worth = q.new_tensor(worth) if hasattr(q, "detach") else worth
        value[:, called] = ((before[:, : called + 1] @ worth) * after[:, called]).sum(-1)
    return value


def _laws(q: Any, rest: Any) -> Any:
    """How many of the elements from the i-th on are positive: probabilities ``(n, k + 1, m)``, i = 0 … k."""
    k = q.shape[1]
    beyond = 1 if rest is None else rest.shape[1]
    law = _zeros(q, k + 1, k + beyond)
    law[:, k, :beyond] = 1.0 if rest is None else rest
    for i in range(k - 1, -1, -1):
        hit = q[:, i, None]
        law[:, i] = law[:, i + 1] * (1.0 - hit)
        law[:, i, 1:] += law[:, i + 1, :-1] * hit
    return law


def _poisson(mean: Any) -> Any:
    """Poisson's law of 0 … OTHERS, by which many unlikely elements are counted (to within Σp²: [lecam1960])."""
    law = _zeros(mean[:, None], OTHERS + 1)
    law[:, 0] = np.e**-mean
    for j in range(OTHERS):
        law[:, j + 1] = law[:, j] * mean / (j + 1)
    return law


def _second_order(q: Any, metric: Metric, empty: float) -> Any:
    r"""Expected scores of calling the first 0, 1, … k elements, to second order around the expected cells.

    .. math:: \mathbb{E} M \approx M(\mu) + \tfrac12 \sigma_a^2 \partial_a^2 M + \tfrac12 \sigma_b^2 \partial_b^2 M

    a and b, the positives among what is called and among the rest, are independent.
    """
    count = q.shape[1]
    a, noise_a = (_zeros(q, count + 1) for _ in range(2))
    a[:, 1:], noise_a[:, 1:] = q.cumsum(-1), (q * (1.0 - q)).cumsum(-1)
    b, noise_b = a[:, -1:] - a, noise_a[:, -1:] - noise_a
    called = (a == a).cumsum(-1) - 1.0

    def worth(da: Any, db: Any) -> Any:
        tp, fn = a + da, b + db
        return metric(Confusion(tp, called - tp, fn, count - called - fn))

    middle = worth(0.0, 0.0)
    value = middle * 1.0
    for mean, noise, most, along in ((a, noise_a, called, (1, 0)), (b, noise_b, count - called, (0, 1))):
        # A step of one standard deviation, or as far as the cells go.
        step = _least(_least(noise.clip(0.0) ** 0.5, mean.clip(0.0)), (most - mean).clip(0.0))
        ahead, back = (worth(s * along[0] * step, s * along[1] * step) for s in (1, -1))
        value += 0.5 * divide(noise, step * step) * (ahead + back - 2.0 * middle)
    none = (1.0 - q).prod(-1)
    value[:, 0] = (1.0 - none) * middle[:, 0] + none * empty
    return value


def _falling(p: Any) -> Any:
    """Probabilities of each row in double precision, the highest first."""
    return p.double().sort(-1, descending=True)[0] if hasattr(p, "detach") else np.sort(p)[:, ::-1].astype(np.float64)


def _zeros(like: Any, *shape: int) -> Any:
    """Zeros for each row of an array or tensor of double precision."""
    return like.new_zeros(len(like), *shape) if hasattr(like, "detach") else np.zeros((len(like), *shape))


def _least(x: Any, y: Any) -> Any:
    return x - (x - y).clip(0.0)
