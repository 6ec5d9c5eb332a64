"""What calling the likeliest elements of a row is worth: exactly, and to second order; arrays and tensors alike."""

from typing import Any, NamedTuple

import numpy as np

from fbeta.decisions.inputs import Vector
from fbeta.metrics import Confusion, Metric
from fbeta.metrics.confusion import divide

#: Poisson's law is written out so far.
OTHERS = 64


class Sums(NamedTuple):
    """So many elements `called`, from the likeliest on: their expected positives, and the variance of these.

    Shape: ``(n, m)`` each; the last place is all elements, of which there are `size`.
    """

    called: Any
    hits: Any
    noise: Any
    size: int

    @classmethod
    def of(cls, q: Any) -> "Sums":
        """After each element of probabilities ``(n, k)``, the highest first."""
        count = q.shape[1]
        hits, noise = (_zeros(q, count + 1) for _ in range(2))
        hits[:, 1:], noise[:, 1:] = q.cumsum(-1), (q * (1.0 - q)).cumsum(-1)
        return cls((hits == hits).cumsum(-1) - 1.0, hits, noise, count)


def exact_values(q: Any, rest: Any, count: int, metric: Metric, empty: float, sizes: Vector | None) -> Any:
    """Expected scores of calling the first 0, 1, … k elements; `rest` is the law of the positives beyond them."""
    k = q.shape[1]
    after = laws_of_counts(q, rest)
    before, value = _zeros(q, k + 1), _zeros(q, k + 1)
    before[:, 0] = 1.0
    for called in range(k + 1):
        if called:
            add_element(before, q[:, called - 1, None])
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


def law_of_count(p: Any) -> Any:
    """How many elements of each row are positive: probabilities ``(n, k + 1)`` of 0 … k."""
    law = _zeros(p, p.shape[1] + 1)
    law[:, 0] = 1.0
    for i in range(p.shape[1]):
        add_element(law, p[:, i, None])
    return law


def add_element(law: Any, hit: Any) -> None:
    """Turn the law of a count into that with one element more, in place; `hit` ``(n, 1)`` is its probability."""
    law[:, 1:] = law[:, 1:] * (1.0 - hit) + law[:, :-1] * hit
    law[:, :1] *= 1.0 - hit


def laws_of_counts(q: Any, rest: Any) -> Any:
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


def poisson_law(mean: Any) -> Any:
    """Poisson's law of 0 … OTHERS, by which many unlikely elements are counted (to within Σp²: [lecam1960])."""
    law = _zeros(mean[:, None], OTHERS + 1)
    law[:, 0] = np.e**-mean
    for j in range(OTHERS):
        law[:, j + 1] = law[:, j] * mean / (j + 1)
    return law


def second_order(sums: Sums, metric: Metric, empty: float) -> Any:
    r"""Expected scores of calling so many of the likeliest elements, to second order around the expected cells.

    .. math:: \mathbb{E} M \approx M(\mu) + \tfrac12 \sigma_a^2 \partial_a^2 M + \tfrac12 \sigma_b^2 \partial_b^2 M

    a and b, the positives among what is called and among the rest, are independent. Nothing is positive with Poisson's
    probability.
    """
    called, a, noise_a, count = sums
    b, noise_b = a[:, -1:] - a, noise_a[:, -1:] - noise_a

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
    none = (called == 0) * np.e ** -a[:, -1:]
    return (1.0 - none) * value + none * empty


def falling(p: Any) -> Any:
    """Probabilities of each row in double precision, the highest first."""
    return p.double().sort(-1, descending=True)[0] if hasattr(p, "detach") else np.sort(p)[:, ::-1].astype(np.float64)


def _zeros(like: Any, *shape: int) -> Any:
    """Zeros for each row of an array or tensor of double precision."""
    return like.new_zeros(len(like), *shape) if hasattr(like, "detach") else np.zeros((len(like), *shape))


def _least(x: Any, y: Any) -> Any:
    return x - (x - y).clip(0.0)
