"""Rows of many elements, such as the pixels of an image: how many of the likeliest are called, without sorting all."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fbeta.decisions.expected_scores import Sums, exact_values, falling, poisson_law, second_order
from fbeta.decisions.inputs import Vector
from fbeta.metrics import Metric

#: A row with fewer expected positives than this is decided exactly over its likeliest elements; the others are counted
#: by Poisson's law.
FEW, LIKELIEST = 10.0, 128
#: What each element more must gain: ties and rounding go to the smaller set.
ROUNDING = 1e-14
#: Probabilities whose upper bits are alike share a bin: 64 bins for each factor of two.
LOWER_BITS, SIGN = 17, 0x7FFFFFFF


def decide_large(p: Any, metric: Metric, empty: float) -> Any:
    """The best set of each row, for arrays and tensors ``(n, k)``."""
    if not hasattr(p, "detach"):
        return np.stack([_decide_row(x, metric, empty) for x in p])
    q = falling(p)
    value, few = second_order(Sums.of(q), metric, empty), q.sum(-1) < FEW
    if bool(few.any()):
        value[few, LIKELIEST + 1 :] = -np.inf
        value[few, : LIKELIEST + 1] = _of_few(q[few, :LIKELIEST], q[few, LIKELIEST:].sum(-1), p.shape[1], metric, empty)
    return call_likeliest(p, q, value)


def call_likeliest(p: Any, q: Any, value: Any) -> Any:
    """Call the likeliest elements of each row, as many as score best; q is p sorted, the highest first."""
    best = (value - ROUNDING * (value == value).cumsum(-1)).argmax(-1)
    last = q[(best == best).cumsum(0) - 1, best - (best > 0) * 1][:, None]
    last = last.to(p.dtype) if hasattr(p, "detach") else last.astype(p.dtype)
    above, tied = p > last, p == last
    wanted = best[:, None] - above.sum(-1)[:, None]
    return (best > 0)[:, None] & (above | (tied & (tied.cumsum(-1) <= wanted)))


def _decide_row(x: NDArray[Any], metric: Metric, empty: float) -> NDArray[np.bool_]:
    """The same for one row ``(k,)``, sorting only what lies near the best place."""
    count, expected = x.size, float(x.sum(dtype=np.float64))
    if expected < FEW:
        q = falling(np.partition(x, count - LIKELIEST)[None, count - LIKELIEST :])
        value = _of_few(q, np.maximum(expected - q.sum(-1), 0.0), count, metric, empty)[0]
        best = _best(value, np.arange(float(len(value))))
        last = q[0, best - 1]
    else:
        best, last = _search(x, metric, empty)
    if best == 0:
        return np.zeros(count, dtype=bool)
    found: NDArray[np.bool_] = x >= last
    if (extra := int(np.count_nonzero(found)) - best) > 0:  # of equal elements the first ones are called
        found[np.flatnonzero(x == last)[-extra:]] = False
    return found


def _search(x: NDArray[Any], metric: Metric, empty: float) -> tuple[int, float]:
    """How many to call, and the last of them: among bins of like elements, then among the elements of two bins."""
    place = ((x.astype(np.float32, copy=False).view(np.uint32) & SIGN) >> LOWER_BITS).astype(np.intp)
    number, hits = np.bincount(place).astype(np.float64), np.bincount(place, x)
    bins = np.flatnonzero(number)[::-1]
    number, hits = number[bins], hits[bins]
    # Within a bin the elements are as good as alike.
    sums = Sums(_running(number), _running(hits), _running(hits - hits**2 / number), x.size)
    at = _best(second_order(sums, metric, empty)[0], sums.called[0])
    first = max(at - 1, 0)
    high, low = bins[first], bins[min(at, len(bins) - 1)]
    q = np.sort(x[(place <= high) & (place >= low)])[::-1].astype(np.float64)
    parts = zip((q**0, q, q * (1 - q)), sums[:3], strict=True)
    called, found, noise = (np.append(total[:, [first]] + _running(part), total[:, -1:], 1) for part, total in parts)
    fine = Sums(called, found, noise, x.size)
    value = second_order(fine, metric, empty)[0, : q.size + 1]
    skipped = 1 if at else 0
    best = skipped + _best(value[skipped:], fine.called[0, skipped : q.size + 1])
    return int(fine.called[0, best]), float(q[best - 1])


def _running(part: NDArray[Any]) -> Vector:
    """Sums from 0 on, as a row."""
    total: Vector = np.append(0.0, np.cumsum(part))[None]
    return total


def _of_few(top: Any, rest: Any, count: int, metric: Metric, empty: float) -> Any:
    """Expected scores where few positives are expected, most of them among the likeliest elements."""
    return exact_values(top, poisson_law(rest), count, metric, empty, None)


def _best(value: Vector, called: Vector) -> int:
    return int(np.argmax(value - ROUNDING * called))
