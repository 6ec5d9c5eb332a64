"""Which method to take, by rows that were held out while it learned: the simplest that is as good as the best."""

import math
from collections.abc import Mapping, Sequence

from fbeta.comparison.inference import Calls, Inference
from fbeta.comparison.methods import Method
from fbeta.decisions.steps import score_cells
from fbeta.metrics import Confusion, Metric


def chosen(inference: Inference, held: Mapping[Method, Calls], order: Sequence[Method]) -> Method:
    """The first method in `order` whose score on held-out rows is within one standard error of the best.

    The error is that of the difference to the best on the same rows. What looks best of many mostly looks better than
    it is, and gives way to what is simpler.

    Reference: [breiman1984]
    """
    scores = {method: known(inference.score(held[method]).mean) for method in order}
    best = max(order, key=scores.__getitem__)
    for method in order:
        if method == best:
            break
        if scores[method] > -math.inf:
            found = inference.difference(held[best], held[method])
            if found.mean <= found.error:
                return method
    return best


def simplest_first(methods: Sequence[Method], baseline: Method | None = None) -> list[Method]:
    """The baseline, and then the others: simple models before large ones, losses as they were named."""
    return sorted(methods, key=lambda method: (method != baseline, method.learner.rank))


def better_constant(metric: Metric, positives: float, negatives: float) -> bool:
    """Whether calling all rows positive scores better than calling none so."""
    everything = Confusion(positives, negatives, 0.0, 0.0)
    nothing = Confusion(0.0, 0.0, positives, negatives)
    scores = [known(float(score_cells(metric, c))) for c in (everything, nothing)]
    return scores[0] > scores[1]


def constant_name(everything: bool) -> str:
    """What that is called."""
    return "all rows positive" if everything else "no row positive"


def known(score: float) -> float:
    """A score to choose by: NaN is worse than any."""
    return -math.inf if math.isnan(score) else score
