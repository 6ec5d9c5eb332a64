"""One class of many: what it is worth to the metric to call each class."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from fbeta.decisions.inputs import Vector
from fbeta.decisions.rules import Constant, Exact, Plugin, Shrunk, as_rule
from fbeta.decisions.steps import count_columns
from fbeta.decisions.tuning import tune
from fbeta.metrics import Metric

#: Steps from the largest probability towards the metric's own calls; the best step counts.
STEPS = 20


@dataclass(frozen=True)
class Gains:
    """The value of calling class j at probability η: a_j·η_j − b_j; the largest is called. Shape: ``(K,)`` each."""

    gain: Vector
    offset: Vector

    def __call__(self, p: Vector) -> Vector:
        """Values of all calls."""
        return self.gain * p - self.offset

    def mixed(self, other: "Gains", share: Vector | float) -> "Gains":
        """A share of these and the rest of the others."""
        gain = share * self.gain + (1 - share) * other.gain
        return Gains(gain, share * self.offset + (1 - share) * other.offset)


def best_gains(p: Vector, target: Vector, metric: Metric, weight: Vector | None, rule: Any) -> Gains:
    """Gains for the macro average of a metric over classes that exclude each other: its slopes at the counts found.

    A cut for each class on its own is not the best decision among classes: one row has one call. `rule`: "exact" takes
    the counts of the rows, "plugin" those that the probabilities lead us to expect, "shrunk" the mean of both by the
    number of rows of the class, "constant" the most probable class. Another rule gives each class its cut, and the
    class furthest above its own is called. Reference: [narasimhan2015]

    Shape: `p` (rows sum to 1) and `target` ``(n, K)``, `weight` ``(n,)``.
    """
    chosen, flat = as_rule(rule), Gains(np.ones(p.shape[1]), np.zeros(p.shape[1]))
    if isinstance(chosen, Constant):
        return flat
    if isinstance(chosen, Plugin):
        return _climb(p, p, metric, weight)
    if isinstance(chosen, Exact):
        return _climb(p, target, metric, weight)
    if isinstance(chosen, Shrunk):
        w = np.array([chosen.weight_of_exact(n) for n in target.sum(0)])
        return _climb(p, target, metric, weight).mixed(_climb(p, p, metric, weight), w)
    columns = zip(p.T, target.T, strict=True)
    cuts = [float(tune(*c, metric, weight, kind="probability", rule=chosen).value) for c in columns]
    return Gains(flat.gain, np.clip(cuts, -1.0, 2.0))


def _climb(p: Vector, target: Vector, metric: Metric, weight: Vector | None) -> Gains:
    """Slopes give calls, calls counts, counts slopes; damped, since for some metrics that swings."""
    classes = np.arange(p.shape[1])
    here, best, top = Gains(np.ones(len(classes)), np.zeros(len(classes))), None, -np.inf
    for step in range(STEPS):
        at = count_columns(here(p).argmax(1)[:, None] == classes, target, weight)
        score = float(np.mean(metric(at)))
        if best is None or score > top + 1e-12:
            best, top = here, score
        with np.errstate(divide="ignore", invalid="ignore"):
            g1, g0 = (np.asarray(g, dtype=np.float64) for g in metric.gains(at))
        sound = np.isfinite(g1 + g0) & (g1 + g0 > 0)
        if not sound.any():
            break
        # Only differences between classes count, so the scale is free; a class without a slope keeps its place.
        scale = (g1 + g0)[sound].mean()
        gain, offset = np.where(sound, (g1 + g0) / scale, here.gain), np.where(sound, g0 / scale, here.offset)
        here = here.mixed(Gains(gain, offset), 0.5 if step else 0.0)
    assert best is not None
    return best
