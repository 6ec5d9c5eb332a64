"""Tails of the binomial distribution, to about ten digits, for arrays of counts; NumPy alone."""

from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fbeta.decisions.inputs import Vector

#: Terms of the continued fraction; it needs about the root of the number of trials.
TERMS = 100_000
#: The series of Stirling begins to be exact so far out.
FAR_OUT = 8


def binomial_tail(successes: ArrayLike, trials: ArrayLike, share: float) -> Vector:
    r"""The chance of at least so many successes.

    .. math:: P(X \ge k) = \sum_{j \ge k} \binom nj q^j (1 - q)^{n - j} = I_q(k, n - k + 1)

    Shape: counts broadcast to the shape of the result.

    >>> binomial_tail([3, 2, 0], 3, 0.5).round(12).tolist()
    [0.125, 0.5, 1.0]

    Reference: [clopper1934]
    """
    k, n = (np.array(x, dtype=np.float64) for x in np.broadcast_arrays(successes, trials))
    inside = (k > 0) & (k <= n)
    if not 0 < share < 1:
        return np.where(k <= (n if share >= 1 else 0), 1.0, 0.0)
    a, b = np.where(inside, k, 1.0), np.where(inside, n - k + 1, 1.0)
    flipped = share > (a + 1) / (a + b + 2)  # there the other side converges fast
    a, b = np.where(flipped, b, a), np.where(flipped, a, b)
    q = np.where(flipped, 1 - share, share)
    front = np.exp(log_gamma(a + b) - log_gamma(a) - log_gamma(b) + a * np.log(q) + b * np.log1p(-q)) / a
    found = front * _fraction(a, b, q)
    found = np.clip(np.where(flipped, 1 - found, found), 0.0, 1.0)
    return np.where(inside, found, np.where(k <= 0, 1.0, 0.0))


def least_successes(trials: float, share: float, chance: float) -> float:
    """So many successes that at least as many have at most this chance; one more than trials where none are enough.

    >>> least_successes(29, 0.9, 0.05), least_successes(28, 0.9, 0.05)
    (29.0, 29.0)
    """
    spread, most = np.sqrt(trials * share * (1 - share)), float(trials) + 1
    guess = np.floor(trials * share + NormalDist().inv_cdf(1 - chance) * spread)
    step = max(2.0, np.floor(spread / 20))
    low, high = (float(np.clip(guess + way, 0.0, most)) for way in (-step, step))
    while high < most and binomial_tail(high, trials, share) > chance:
        low, high = high, min(2 * high - low, most)
    while low > 0 and binomial_tail(low, trials, share) <= chance:
        low, high = max(2 * low - high, 0.0), low
    while high - low > 1:
        middle = float(np.floor((low + high) / 2))
        low, high = (low, middle) if binomial_tail(middle, trials, share) <= chance else (middle, high)
    return high


def log_gamma(x: Any) -> Vector:
    """The logarithm of Γ by the series of Stirling, for numbers above 0.

    >>> bool(abs(log_gamma(5.0) - np.log(24)) < 1e-12)
    True
    """
    x = np.asarray(x, dtype=np.float64)
    shift = np.ones_like(x)
    for k in range(FAR_OUT):
        shift = shift * (x + k)
    z = x + FAR_OUT
    square = 1 / z**2
    series = (1 / 12 - square * (1 / 360 - square * (1 / 1260 - square * (1 / 1680 - square / 1188)))) / z
    found: Vector = (z - 0.5) * np.log(z) - z + np.log(2 * np.pi) / 2 + series - np.log(shift)
    return found


def _fraction(a: Vector, b: Vector, q: Vector) -> Vector:
    """The continued fraction of the incomplete beta function, by Lentz's method."""
    tiny = 1e-300
    c, d = np.ones_like(a), 1 - (a + b) * q / (a + 1)
    d = 1 / np.where(np.abs(d) < tiny, tiny, d)
    found = d.copy()
    for m in range(1, TERMS):
        even = m * (b - m) * q / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * q / ((a + 2 * m) * (a + 2 * m + 1))
        for step in (even, odd):
            d, c = 1 + step * d, 1 + step / c
            d, c = (np.where(np.abs(x) < tiny, tiny, x) for x in (d, c))
            d = 1 / d
            found = found * c * d
        if np.all(np.abs(c * d - 1) < 1e-13):
            break
    return found
