"""What test rows look like at every cut, and by their probability: curves that pages draw."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fbeta.comparison.result import Calibration, Operating
from fbeta.decisions import curve
from fbeta.decisions.calibration import sigmoid
from fbeta.learners.crossfit import Array

if TYPE_CHECKING:
    from fbeta.comparison.judging import Judged

#: Points of a curve, and bins of a calibration, that are kept.
POINTS, BINS = 400, 10


def operating(parts: Sequence["Judged"]) -> Operating:
    """The confusion of all test rows at falling cuts, thinned to a few hundred."""
    p, y, w = _test_rows(parts)
    cuts, counts = curve(p, y, w)
    cuts, tp, fp = (np.asarray(x, dtype=np.float64) for x in (cuts, counts.tp, counts.fp))
    # Half of them evenly by rank, half by positives caught, where few rows are; and the cuts that were used.
    last, half = len(cuts) - 1, POINTS // 2
    ranks = np.linspace(0, last, half).round().astype(int)
    caught = np.searchsorted(tp, np.linspace(0, tp[-1], half)).clip(max=last)
    used = [0.5, *(x.outcome.cut for x in parts)]
    at = last - np.searchsorted(cuts[::-1], used).clip(max=last)  # cuts fall
    kept = np.unique(np.concatenate([ranks, caught, at]))
    cut, tps, fps = (tuple(x[kept].tolist()) for x in (cuts, tp, fp))
    return Operating(cut, tps, fps, float(w @ y), float(w @ ~y))


def calibration(parts: Sequence["Judged"]) -> Calibration:
    """Test rows by their probability: bins of equal width in log odds hold rare classes apart as well."""
    p, y, w = _test_rows(parts)
    edges = sigmoid(np.linspace(-6, 6, BINS + 1)[1:-1])
    place = np.digitize(p, edges)
    bins = [place == k for k in np.unique(place)]
    predicted, observed = (tuple(float(np.average(x[inside], weights=w[inside])) for inside in bins) for x in (p, y))
    return Calibration(predicted, observed, tuple(int(inside.sum()) for inside in bins))


def _test_rows(parts: Sequence["Judged"]) -> tuple[Array, NDArray[np.bool_], Array]:
    columns = zip(*((x.probability, x.target, x.weight) for x in parts), strict=True)
    p, y, w = map(np.concatenate, columns)
    return p, y, w
