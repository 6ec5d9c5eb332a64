"""The structural surrogate of F_β on a batch and a buffer of rows."""

import math
from typing import Any, NamedTuple, Unpack

import torch
import torch.distributed as dist
from torch import Tensor

from fbeta.losses.kernels.plain import PlainRows
from fbeta.losses.module import Loss
from fbeta.losses.options import Options
from fbeta.metrics import FBeta

#: Beyond this a logit is as good as infinite; sums of such numbers keep ten digits after the point.
FAR = 1e6


class Labelling(NamedTuple):
    """How much of each positive is called negative, and of each negative positive; and 1 − F of it."""

    missed: Tensor
    alarmed: Tensor
    lost: Tensor


def most_violated(logits: Tensor, positive: Tensor, negative: Tensor, beta: float) -> Labelling:
    r"""The labelling ŷ that violates the margin of F_β most, found exactly in O(n log n).

    .. math:: \max_{\hat y \in [0, 1]^n} P \left[1 - F_\beta(y, \hat y)\right] + \sum_i w_i (\hat y_i - y_i) z_i,
              \qquad P = \sum_i w_i y_i

    With A positives called negative, those of the lowest scores, and B negatives called positive, those of the highest,
    1 − F_β is convex in A, so that A ends at a row, and concave in B, so that for each A the best B is where the slope
    changes its sign: bisection over the sorted rows, and a closed form between two of them. Differentiable in the
    logits.

    Shape: `logits`, and the weights wy and w(1 − y) of both classes, ``(n, K)``, column by column; results ``(n, K)``
    and ``(K,)``.

    >>> z, y = torch.tensor([[2.0], [0.3], [-3.0]]), torch.tensor([[1.0], [0.0], [0.0]])
    >>> [x.flatten().tolist() for x in most_violated(z, y, 1 - y, beta=1.0)]
    [[0.0, 0.0, 0.0], [1.0, 1.0, 0.0], [0.3333333134651184]]

    Reference: [kar2014]; for the set as a whole the multivariate hinge of an F_β
    """
    b, n = beta**2, logits.shape[0]
    with torch.no_grad():
        order = logits.detach().clamp(-FAR, FAR).argsort(0)
        places = torch.zeros_like(order).scatter(
            0, order, torch.arange(n, device=order.device)[:, None].expand_as(order)
        )
    z, p = (x.gather(0, order) for x in (logits.clamp(-FAR, FAR), positive))
    # From the top down: what negatives have been called, and what that adds.
    down, m = z.flip(0), negative.gather(0, order).flip(0)
    A, B, missed, alarmed = (_sums(x) for x in (p, m, -p * z, m * down))
    P = A[-1:]
    with torch.no_grad():
        weight, edge = P * (1 + b) * (P - A), (1 + b) * P - A  # P(1 − F) has the slope weight/(edge + B)² in B
        low, high = torch.zeros_like(A, dtype=torch.long), torch.full_like(A, n, dtype=torch.long)
        for _ in range(max(1, math.ceil(math.log2(n + 1)))):
            middle = (low + high).div(2, rounding_mode="floor").clamp(max=n - 1)
            reach = (edge + B.gather(0, middle + 1)).clamp(min=1e-300)
            enough = weight / reach**2 + down.gather(0, middle) <= 0
            low, high = torch.where(enough | (low == high), low, middle + 1), torch.where(enough, middle, high)
        best = _at(low, A, B, missed, alarmed, down, P, b)[0].argmax(0, keepdim=True)
        last = low.gather(0, best)
    fewer = [x.gather(0, best) for x in (A, missed)]
    _, called, lost = _at(last, fewer[0], B, fewer[1], alarmed, down, P, b)
    from_top = n - 1 - places
    whole, part = (from_top < last).to(z.dtype), from_top == last
    mass = m.gather(0, last.clamp(max=n - 1))
    between = (called - B.gather(0, last)) / torch.where(mass > 0, mass, 1.0)
    return Labelling((places < best).to(z.dtype), torch.where(part, between, whole), lost[0])


def _sums(x: Tensor) -> Tensor:
    """Sums of the first 0, 1, …, n rows."""
    return torch.cat([torch.zeros_like(x[:1]), x.cumsum(0)])


def _at(
    row: Tensor, A: Tensor, B: Tensor, missed: Tensor, alarmed: Tensor, down: Tensor, P: Tensor, b: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Where B ends inside a row, counted from the top, for every A: the objective, B itself, and 1 − F."""
    n = len(down)
    slope, start, end = (down.gather(0, row.clamp(max=n - 1)), B.gather(0, row), B.gather(0, (row + 1).clamp(max=n)))
    falls = (slope < 0) & (row < n)
    edge, weight = (1 + b) * P - A, P * (1 + b) * (P - A)
    inside = torch.where(falls & (weight > 0), weight / torch.where(falls, -slope, 1.0), 1.0) ** 0.5 - edge
    called = torch.where(falls & (weight > 0), torch.minimum(torch.maximum(inside, start), end), start)
    whole = edge + called
    lost = 1 - (1 + b) * (P - A) / torch.where(whole > 0, whole, 1.0)
    return P * lost + missed + alarmed.gather(0, row) + slope * (called - start), called, lost


class KarLoss(Loss, name="kar"):
    r"""The structural surrogate of F_β (a multivariate hinge) on the rows of a batch and a buffer of rows.

    .. math:: L = \max_{\hat y} \frac Pn \left[1 - F_\beta(y, \hat y)\right] + \frac1n \sum_i (\hat y_i - y_i)\, z_i
              \ \ge\ \frac Pn \left[1 - F_\beta(y, z \ge 0)\right]

    It is convex in the logits, and a loss of a set: stochastic steps on it, batch by batch, are the paper's. Where
    positives are rare a small batch has none, and says nothing of F_β; so a buffer stands beside it, in which positives
    have a place of their own. In the union each class counts as much as in the rows seen so far.

    - `buffer`: how many rows of each class it holds; 0 for the batch alone.

    In the paper (1PMB, and 2PMB, whose first pass samples positives with replacement) the buffer holds rows, which are
    scored anew. A loss sees logits, so the buffer holds those that the last rows of each class had when they were seen:
    they move the labelling ŷ, and only rows of the batch have a gradient. It is filled in training steps alone and
    belongs to the state. Under several ranks each has a buffer and a labelling of its own, and DDP averages their
    gradients. The metric must be an F_β.

    Shape: `logits` and `target` as the task says; result ``()``.

    >>> loss = KarLoss("fbeta:beta=1", buffer=0)
    >>> loss(torch.tensor([2.0, 0.3, -3.0]), torch.tensor([1.0, 0.0, 0.0]))
    tensor(0.2111)

    Reference: [kar2014]
    """

    tasks = ("binary", "softmax2", "multilabel")
    reductions = ("mean", "sum")
    kept: Tensor
    seen: Tensor

    def __init__(
        self, metric: Any = None, prevalence: Any = None, *, buffer: int = 256, **options: Unpack[Options]
    ) -> None:
        super().__init__(metric, prevalence, **options)
        if not isinstance(self.metric, FBeta):
            raise ValueError(f"KarLoss is for an F_β; got {self.metric!r}. For other metrics take TangentLoss.")
        if not (type(buffer) is int and buffer >= 0):
            raise ValueError(f"buffer is a number of rows of each class, or 0 for none; got {buffer!r}.")
        self.buffer, columns = buffer, self.reader.shape[0] if self.columns else 1
        # Of negatives and positives: logits and weights of the last rows, the latest first; and all weights so far.
        self.register_buffer("kept", torch.zeros(2, 2, buffer, columns, dtype=torch.float64))
        self.register_buffer("seen", torch.zeros(2, columns, dtype=torch.float64))

    def loss_of(self, rows: PlainRows, group: dist.ProcessGroup | None = None) -> Tensor:
        """Find the labelling that violates the margin most; its loss, column by column."""
        width = self.kept.shape[3]
        z, y, w = (x.reshape(-1, width).double() for x in rows.plain.batch)
        if not len(z):
            return rows.plain.batch.logits.sum()
        top = w.amax(0)  # first, as sums of huge weights would overflow
        there = top > 0
        w = w / torch.where(there, top, 1.0)
        mass = torch.where(there, w.sum(0), 1.0)
        w, mass = w / mass, top * mass
        one, zero = w * y, w * (1 - y)
        learning = self.learning and self.buffer > 0
        if learning:
            classes = mass * torch.stack([zero, one])
            found = self._with_buffer(z, classes.detach())
            self._keep(z, classes)
        else:
            found = most_violated(z, one, zero, self.beta)
        # What is not called wrong has no part, even of an infinite logit.
        parts = torch.where(found.missed * one == 0, 0.0, -found.missed * one * z) + torch.where(
            found.alarmed * zero == 0, 0.0, found.alarmed * zero * z
        )
        losses = torch.where(z.isnan().any(0), torch.nan, one.sum(0) * found.lost + parts.sum(0)).to(rows.dtype)
        total = torch.where(there | losses.isnan(), losses, 0.0).sum()
        return total if self.reduction == "sum" else total / there.sum().clamp(min=1)

    @property
    def beta(self) -> float:
        """The β of the metric."""
        assert isinstance(self.metric, FBeta)
        return self.metric.beta

    def _with_buffer(self, z: Tensor, classes: Tensor) -> Labelling:
        """The labelling of the rows of a batch beside the buffer; `classes` are the weights w(1 − y) and wy."""
        n, (old, weight) = len(z), self.kept.unbind(1)
        total = self.seen + classes.sum(1)
        shares = total / total.sum(0).clamp(min=torch.finfo(total.dtype).tiny)
        known = classes.sum(1) + weight.sum(1)
        unit = (shares / torch.where(known > 0, known, 1.0))[:, None]
        # Rows of the batch, then negatives and positives of the buffer, each with weight in its own class.
        zero, one = unit * torch.cat([classes, weight, weight], 1)
        zero[n + self.buffer :], one[n : n + self.buffer] = 0.0, 0.0
        found = most_violated(torch.cat([z, *old]), one, zero, self.beta)
        return Labelling(*(x.detach() for x in (found.missed[:n], found.alarmed[:n], found.lost)))

    @torch.no_grad()
    def _keep(self, z: Tensor, classes: Tensor) -> None:
        """Put the rows of a step in front of those kept, class by class, and let the oldest go."""
        sound = z.isfinite() & classes.isfinite().all(0)
        weight = torch.where(sound, classes, 0.0)
        fresh = torch.stack([torch.where(weight != 0, z, 0.0), weight], 1)  # a row of no weight leaves nothing behind
        every = torch.cat([fresh, self.kept], 2)
        first = (every[:, 1:] == 0).to(torch.uint8).argsort(dim=2, stable=True)[:, :, : self.buffer]
        self.kept.copy_(every.gather(2, first.expand(-1, 2, -1, -1)))
        self.seen.add_(fresh[:, 1].sum(1))
