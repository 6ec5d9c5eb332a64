"""How running counts become the costs of the tangent loss, and for many classes weights."""

from dataclasses import dataclass
from typing import Any

from fbeta.losses.argmax import pairwise_weights
from fbeta.metrics import Confusion, Metric
from fbeta.metrics.costs import class_costs, stream_rate


@dataclass(frozen=True)
class Pricing:
    """How the state becomes costs: formulas of few numbers (see `fbeta.losses.kernels.formula`)."""

    metric: Metric
    warmup: float
    epsilon: float
    shared: bool
    together: bool

    def _costs(self, xp: Any, counts: Any, fresh: Any, **options: Any) -> tuple[Any, Any]:
        own = {"warmup": self.warmup, "shared": self.shared, "together": self.together, "xp": xp}
        return class_costs(self.metric, Confusion(*counts), (fresh[0], fresh[1]), **own, **options)

    def __call__(
        self, xp: Any, counts: Any, seen: Any, fresh: Any, population: Any, stream: Any, q: Any
    ) -> tuple[Any, Any, Any]:
        """Costs c₀ and c₁ within limits, and q, which is handed on."""
        rate = stream_rate(population, stream, Confusion(*seen))
        limits = {"population": population, "stream": rate, "epsilon": self.epsilon}
        return *self._costs(xp, counts, fresh, **limits), q

    def gains(self, xp: Any, counts: Any, fresh: Any, population: Any) -> tuple[Any, Any]:
        """What a right negative and a right positive are worth in the population, without limits."""
        return self._costs(xp, counts, fresh, population=population, epsilon=None)

    def class_weights(
        self, xp: Any, counts: Any, seen: Any, fresh: Any, population: Any, stream: Any, q: Any
    ) -> tuple[Any, Any]:
        """A weight for each of many classes, of mean one over the training rows, and q."""
        wrong, right = self.gains(xp, counts, fresh, population)
        weights, rate = pairwise_weights(right, wrong, xp), stream_rate(population, stream, Confusion(*seen))
        if rate is None:
            rate = Confusion(*seen).prevalence
        else:  # rows of a class that training shows too often or too rarely count as the population has them
            weights = weights * xp.where(rate > 0, population / rate, 1.0)
        share = xp.where(rate.sum() > 0, rate, 1.0)  # nothing is known before the first row
        return weights * share.sum() / (weights * share).sum(), q
