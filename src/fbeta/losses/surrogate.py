"""The paper's surrogate loss: log distances to a metric's anchors, and its noise-robust q form."""

from __future__ import annotations

import math
import warnings
from types import ModuleType
from typing import Any, NamedTuple, Unpack

import numpy as np
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor

from fbeta.losses import kernels as fused
from fbeta.losses.module import Options
from fbeta.losses.per_class import BalancedLoss
from fbeta.losses.running import Exact, is_number
from fbeta.losses.task import Batch
from fbeta.losses.weighting import Weighting
from fbeta.metrics import Anchors, Metric


class Reach(NamedTuple):
    """How a loss rises with the distance of f from one anchor c; floats, or tensors with one entry a label.

    An anchor c ≥ 1 is the mirror image of 1 − c ≤ 0 with the sign of the logarithm flipped, so `sign` is −1
    and `distance` is that of f = 1 from c. One at infinity is the q = 1 member: distance itself, not its log.
    """

    sign: float | Tensor
    distance: float | Tensor
    relative: float | Tensor  # 1: log((d + f)/d) in place of log(d + f)
    scale: float | Tensor
    q: float | Tensor
    offset: float | Tensor

    @classmethod
    def to(cls, anchors: Anchors, *, positive: bool, q: float = 0.0) -> Reach:
        """Reach the anchor of one class.

        >>> Reach.to(Anchors(-0.25, 0.0), positive=False)
        Reach(sign=1.0, distance=0.25, relative=0.0, scale=1.0, q=0.0, offset=0.0)
        """
        anchor = anchors.positive if positive else anchors.negative
        if anchors.at_infinity:
            # Level lines t = m·u + const: −t + m·u, priced so that the mean price is one.
            price = 2.0 * (1.0 if positive else anchors.slope) / (1.0 + anchors.slope)
            return cls(1.0, 0.0, 0.0, price, 1.0, 0.0 if positive else price)
        if 0.0 < anchor < 1.0:
            raise ValueError(
                f"The anchor {anchor:g} lies inside ROC space, where the log distance is undefined."
            )
        sign = 1.0 if anchor <= 0 else -1.0
        distance = anchors.distances[1 if positive else 0]
        scale = anchors.scale
        if scale == 1.0:
            return cls(sign, distance, 0.0, 1.0, q, 0.0)
        # Far anchors: a perfect prediction costs nothing on either side, so that κ passes through π = ½
        # without a jump.
        full = scale * float(box_cox(math.log1p(1 / distance), q))
        offset = -full if positive and sign > 0 else full if not positive and sign < 0 else 0.0
        return cls(sign, distance, 1.0, scale, q, offset)

    def of(self, log_near: Tensor) -> Tensor:
        """The rising function of f, given log f (log(1 − f) where the sign is −1).

        Far away log1p(f/d) keeps its digits; near by logaddexp(log f, log d) does, down to log 0.
        """
        d, far = self.distance, self.relative
        if isinstance(far, Tensor):
            log_distance = torch.where(far > 0, self._log_far(log_near), self._log_near(log_near))
        else:
            log_distance = self._log_far(log_near) if far else self._log_near(log_near)
        risen = box_cox(log_distance, self.q)
        if not isinstance(d, Tensor) and d > 1 and not self.relative and self.q * math.log(d) > 1:
            # A large distance to a power: by its logarithm it would lose the digits that the logarithm has.
            risen = (torch.pow(d + torch.exp(log_near), self.q) - 1) / self.q
        result: Tensor = self.sign * self.scale * risen + self.offset
        return result

    def _log_far(self, log_near: Tensor) -> Tensor:
        d = self.distance
        return torch.log1p(torch.exp(log_near) / (torch.where(d > 0, d, 1.0) if isinstance(d, Tensor) else d))

    def _log_near(self, log_near: Tensor) -> Tensor:
        d = self.distance
        if isinstance(d, Tensor):
            return torch.logaddexp(log_near, torch.log(d))
        return log_near if d == 0 else torch.logaddexp(log_near, torch.full_like(log_near, math.log(d)))


class Reaches(Exact):
    """The reaches of the negative and of the positive class, for one column or one a label.

    A number that all columns share is a plain one and needs no device; the others are a buffer.

    >>> from fbeta import FBeta
    >>> negative, positive = Reaches(FBeta(1), prevalence=0.5)(torch.float32)
    >>> negative.distance, positive.distance
    (1.0, 0.0)
    """

    table: Tensor

    def __init__(self, metric: Metric, prevalence: Any, q: float = 0.0) -> None:
        super().__init__()
        anchors = [metric.anchors(float(p)) for p in np.atleast_1d(prevalence)]
        both = [[Reach.to(a, positive=side, q=q) for a in anchors] for side in (False, True)]
        table = np.array(both).swapaxes(1, 2)  # (class, field, label)
        #: Both reaches, None for a number that columns do not share.
        self.shared = [[x[0].item() if (x == x[0]).all() else None for x in side] for side in table]
        self.plain = None if np.ndim(prevalence) else (both[0][0], both[1][0])
        self.register_buffer("table", torch.tensor(table), persistent=False)

    def forward(self, dtype: torch.dtype) -> tuple[Reach, Reach]:
        """Give both reaches in numbers of the logits' type."""
        if self.plain is not None:
            return self.plain
        negative, positive = (
            Reach(*(own if same is None else same for own, same in zip(side, shared, strict=True)))
            for side, shared in zip(self.table.to(dtype), self.shared, strict=True)
        )
        return negative, positive


def box_cox(log_x: Any, q: float | Tensor) -> Any:
    r"""Turn log x into (x^q − 1)/q, and leave it as it is at q = 0.

    .. math:: \frac{x^q - 1}{q} = \frac{\operatorname{expm1}(q \log x)}{q} \to \log x

    Shape: any; a tensor `q` broadcasts.

    >>> box_cox(torch.tensor(0.5).log(), 1.0)
    tensor(-0.5000)

    Reference: [zhang2018]
    """
    if isinstance(q, Tensor):
        none = q < 1e-12  # below that the limit is exact, and q itself may underflow
        some = torch.where(none, 1.0, q)
        return torch.where(none, log_x, _expm1(some * log_x) / some)
    if q < 1e-12:
        return log_x
    return (math.expm1(q * log_x) if isinstance(log_x, float) else _expm1(q * log_x)) / q


def _expm1(x: Tensor) -> Tensor:
    """expm1 whose derivative keeps its digits far below zero, where torch computes it as (e^x − 1) + 1."""
    far = x < -0.5
    return torch.where(far, torch.exp(x) - 1, torch.expm1(torch.where(far, 0.0, x)))


def surrogate_loss(
    logits: Tensor,
    target: Tensor,
    anchors: Anchors | tuple[Reach, Reach],
    q: float = 0.0,
    weights: tuple[float | Tensor, float | Tensor] = (1.0, 1.0),
) -> Tensor:
    r"""Log distance to a metric's anchors, element by element.

    .. math:: \ell(z, y) = -w_1 y \log(f - y_0) + w_0 (1 - y) \log(f - x_0), \qquad f = \operatorname{sigmoid}(z)

    and with log d replaced by (d^q − 1)/q for 0 < q ≤ 1. For F_β that is the paper's
    −y log f + (1−y) log(β²p/(1−p) + f).

    Shape: `logits` and `target` ``(*)`` alike; result ``(*)``.

    >>> from fbeta import FBeta
    >>> surrogate_loss(torch.zeros(2), torch.tensor([1.0, 0.0]), FBeta(1).anchors(prevalence=0.1))
    tensor([ 0.6931, -0.4925])

    Reference: [lee2021], eqs. surrogate_fbeta_loss and generalized_surrogate_fbeta_loss
    """
    if isinstance(anchors, Anchors):
        anchors = Reach.to(anchors, positive=False, q=q), Reach.to(anchors, positive=True, q=q)
    negative, positive = anchors
    rise, fall = (r.of(F.logsigmoid(_signed(logits, r.sign))) for r in (negative, positive))
    w0, w1 = weights
    # A soft target has a part in both classes, so each part takes its own class weight.
    return w0 * (1 - target) * rise - w1 * target * fall


def _signed(z: Tensor, sign: float | Tensor) -> Tensor:
    return z if isinstance(sign, float) and sign == 1.0 else z * sign


#: Cross entropy is the surrogate loss of the G-mean: log distances to the corner where all is right.
CROSS_ENTROPY = Anchors(1.0, 0.0)
#: The first step at which SurrogateLoss looks whether it is stuck; then at twice as many, and so on.
FIRST_LOOK = 250


class SurrogateLoss(BalancedLoss, name="surrogate"):
    r"""The paper's loss for every metric with anchors: F_β and its kin, κ, G-mean, accuracies, costs.

    .. math:: L = \frac1n \sum_i w_{y_i} \left[-y_i \log(f_i - y_0) + (1 - y_i) \log(f_i - x_0)\right],
              \qquad w_y = \frac{n}{n_y}

    Faithful, and with the faults that theory and measurement find in it: from f ≈ ½ it may slide onto
    'everything positive' and stay there, and f ≥ ½ is not its best decision. TangentLoss has neither.

    - `weighting`: "balanced" (the paper), "effective" (with `class_counts` and `effective_beta`), None, or a
      pair (negatives, positives). `q` in [0, 1] is the noise-robust form.
    - `blend` in [0, 1] mixes in that share of cross entropy under the same class weights, whose gradient does not
      fade on the plateau: (1 − blend)·L + blend·CE. Of six remedies a constant 0.5 was the best on the paper's
      data sets (docs/reproduction.md); assign ``loss.blend`` to schedule it (it is part of the state, so a loaded
      state brings its own). None is the paper's loss; then, after 250 training steps, 500, 1,000 and so on, a batch
      that is called positive from the first row to the last raises a warning (`watch=False`: it does not).
    - Other arguments: see `Loss`.

    Shape: `logits` and `target` as the task says; result ``()``, or the target's shape if reduction is "none".

    >>> loss = SurrogateLoss("fbeta:beta=1", prevalence=0.5)
    >>> loss(torch.zeros(2), torch.tensor([1.0, 0.0]))
    tensor(1.0986)

    Reference: [lee2021], eq. surrogate_cbloss
    """

    uses_metric = True
    _blend: Tensor | None

    def __init__(
        self,
        metric: Any,
        prevalence: Any = None,
        *,
        weighting: Weighting = "balanced",
        q: float = 0.0,
        blend: float | None = None,
        watch: bool = True,
        effective_beta: float = 0.9999,
        **options: Unpack[Options],
    ) -> None:
        if prevalence is None and options.get("class_counts") is None:
            raise ValueError(
                "SurrogateLoss needs prevalence (or class_counts): it places the anchors. Give the share of "
                "positives in the population, for example prevalence=y_train.mean()."
            )
        super().__init__(metric, prevalence, weighting=weighting, effective_beta=effective_beta, **options)
        self.q = check_q(q)
        self.reaches = Reaches(self.target_metric, self.prevalence, self.q)
        self.watch = watch and blend is None
        self._steps, self._next_look = 0, FIRST_LOOK
        share = None if blend is None else torch.tensor(check_blend(blend), dtype=torch.float64)
        self.register_buffer("_blend", share)

    @property
    def blend(self) -> float | None:
        """The share of cross entropy; assign to schedule it (no recompilation, no new graph)."""
        return None if self._blend is None else float(self._blend)

    @blend.setter
    def blend(self, value: float) -> None:
        if self._blend is None:
            raise ValueError(
                "This loss was made without blend; give blend=0.0 at construction to schedule it."
            )
        self._blend.fill_(check_blend(value))

    def _share(self) -> float | Tensor | None:
        """The share as it is now: a number where the host may look, else a copy on the device."""
        if self._blend is None:
            return None
        return float(self._blend) if fused.at_hand(self._blend) else self._blend.clone()

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        # States were once saved without the share: one of those leaves it as it is.
        if self._blend is not None and "_blend" not in self._non_persistent_buffers_set:
            state_dict.setdefault(f"{prefix}_blend", self._blend)
        super()._load_from_state_dict(state_dict, prefix, *rest)

    def forward(self, logits: Tensor, target: Tensor, weight: Tensor | None = None) -> Tensor:
        """Loss of a batch of logits against targets; `weight` has the target's shape, and 2 is a row twice."""
        value = super().forward(logits, target, weight)
        if self.watch and self.training and torch.is_grad_enabled() and not torch.compiler.is_compiling():
            self._steps += 1
            # Now and then only: to look, the host must wait for the device.
            if self._steps == self._next_look:
                self._next_look *= 2
                self._look(logits, target)
        return value

    @torch.no_grad()
    def _look(self, logits: Tensor, target: Tensor) -> None:
        if self.task not in ("binary", "softmax2"):
            return
        if logits.is_cuda and torch.cuda.is_current_stream_capturing():
            return
        z = logits if self.task == "binary" else logits[:, 1] - logits[:, 0]
        if bool((z >= 0).all()) and bool((target == 0).any()):
            warnings.warn(
                f"After {self._steps} steps of SurrogateLoss every row of a batch is called positive: it seems to be "
                "stuck on the plateau where its gradient fades. Give blend=0.5, or take TangentLoss (watch=False: "
                "no such warning).",
                RuntimeWarning,
                stacklevel=4,
            )

    def fused_loss(
        self,
        kernels: ModuleType,
        logits: Tensor,
        target: Tensor,
        weight: Tensor | None,
        group: dist.ProcessGroup | None,
    ) -> Tensor | None:
        """One pass for loss and gradient; a second one for the cross entropy of a blend."""
        assert self.reaches.plain is not None
        assert self.pair is not None
        reaches, pair, share = self.reaches.plain, self.pair, self._share()
        if share is not None and (logits.device.type != "cpu" or self.table.device != logits.device):
            return None  # two passes have been tried on the CPU only
        rows = target, weight, self.ignore_index

        def paper(z: Tensor, factor: float, grad: bool) -> tuple[Tensor, Tensor | None]:
            sums, gradient = kernels.surrogate(z, *rows, *reaches, pair, factor, grad=grad)
            return sums, gradient

        def entropy(z: Tensor, factor: float, grad: bool) -> tuple[Tensor, Tensor | None]:
            # Under class weights it is also the tangent loss at such costs, which has the quicker kernel.
            costs = F.pad(self.table, (0, 1))
            sums, gradient = kernels.tangent(z, *rows, costs, factor, False, grad=grad)
            return sums[:2], gradient

        def plain(batch: Batch) -> Tensor:
            return self._mixed(batch.logits, batch.target, share)

        run = paper if share is None else fused.mixed(paper, entropy, share)
        return self.row_sum(kernels, (logits, target, weight), run, plain, group)[0]

    def elements(self, logits: Tensor, target: Tensor) -> Tensor:
        """Log distances under class weights."""
        return self._mixed(logits, target, self._share())

    def _mixed(self, logits: Tensor, target: Tensor, share: float | Tensor | None) -> Tensor:
        weights = self.numbers(logits.dtype)
        loss = surrogate_loss(logits, target, self.reaches(logits.dtype), weights=weights)
        if share is None:
            return loss
        if isinstance(share, Tensor):
            share = share.to(logits.dtype)
        return (1 - share) * loss + share * surrogate_loss(logits, target, CROSS_ENTROPY, weights=weights)


def check_blend(blend: Any) -> float:
    """Read a share in [0, 1].

    >>> check_blend(0.5)
    0.5
    """
    if not (is_number(blend) and 0.0 <= blend <= 1.0):
        raise ValueError(f"blend is a share of cross entropy in [0, 1], or None; got {blend!r}.")
    return float(blend)


def check_q(q: Any) -> float:
    """Read q in [0, 1].

    >>> check_q(0.5)
    0.5
    """
    if isinstance(q, str) or not 0.0 <= q <= 1.0:
        raise ValueError(f"q must lie in [0, 1] (0: logarithm, 1: absolute error); got {q!r}.")
    return float(q)
