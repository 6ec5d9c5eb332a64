"""The paper's surrogate loss: log distances to a metric's anchors, and its noise-robust q form."""

from dataclasses import dataclass
from typing import Any, ClassVar, Unpack

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from fbeta.losses.elements import Blend, cast, parts
from fbeta.losses.kernels.plain import Elements
from fbeta.losses.memory import on_host
from fbeta.losses.options import Options, is_number
from fbeta.losses.per_class import BalancedLoss, Weighting
from fbeta.losses.precise import PreciseModule
from fbeta.losses.tangent import TangentElements
from fbeta.losses.watch import PlateauWatch
from fbeta.metrics import Anchors, AnchorTerm, Metric
from fbeta.metrics.distance import check_q

Terms = tuple[AnchorTerm, AnchorTerm]


class AnchorTerms(PreciseModule):
    """The terms of the negative and the positive class, for one column or one per label.

    A number that all columns share is a plain one and needs no device; the others are a buffer.
    """

    table: Tensor

    def __init__(self, metric: Metric, prevalence: Any, q: float = 0.0) -> None:
        super().__init__()
        anchors = [metric.anchors(float(p)) for p in np.atleast_1d(prevalence)]
        both = [[AnchorTerm.of(a, positive=one, q=q) for a in anchors] for one in (False, True)]
        table = np.array(both).swapaxes(1, 2)  # (class, field, label)
        #: Both terms, None for a number that columns do not share.
        self.shared = [[x[0].item() if (x == x[0]).all() else None for x in side] for side in table]
        self.plain: Terms | None = None if np.ndim(prevalence) else (both[0][0], both[1][0])
        self.register_buffer("table", torch.tensor(table), persistent=False)

    def forward(self, dtype: torch.dtype) -> Terms:
        """Give both terms in numbers of the logits' type."""
        if self.plain is not None:
            return self.plain
        negative, positive = (
            AnchorTerm(*(own if same is None else same for own, same in zip(side, shared, strict=True)))
            for side, shared in zip(self.table.to(dtype), self.shared, strict=True)
        )
        return negative, positive


def surrogate_loss(
    logits: Tensor,
    target: Tensor,
    anchors: Anchors | Terms,
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
        anchors = AnchorTerm.of(anchors, positive=False, q=q), AnchorTerm.of(anchors, positive=True, q=q)
    negative, positive = anchors
    one, zero = parts(logits, target, weights)
    # The probability of the wrong class matters to a term that rises with it, else that of the right one.
    missed = positive.value(F.logsigmoid(_signed(one.logits, -positive.sign)), torch)
    alarmed = negative.value(F.logsigmoid(_signed(zero.logits, negative.sign)), torch)
    return one.share * missed + zero.share * alarmed  # type: ignore[no-any-return]


def _signed(z: Tensor, sign: float | Tensor) -> Tensor:
    return z if isinstance(sign, float) and sign == 1.0 else z * sign


@dataclass(frozen=True)
class SurrogateElements:
    """`surrogate_loss` under class weights: plain torch calls it, compiled kernels know it by name."""

    kernel: ClassVar[str] = "surrogate"
    terms: AnchorTerms
    weights: tuple[float | Tensor, float | Tensor]

    @property
    def numbers(self) -> tuple[AnchorTerms, tuple[float | Tensor, float | Tensor]]:
        """What a kernel is handed."""
        return self.terms, self.weights

    def __call__(self, logits: Tensor, target: Tensor) -> Tensor:
        """In the type of the logits."""
        w0, w1 = cast(self.weights, logits.dtype)
        return surrogate_loss(logits, target, self.terms(logits.dtype), weights=(w0, w1))


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
      of mostly negative rows that are all called positive raises a warning (`watch=False`: it does not).
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
        self.terms = AnchorTerms(self.target_metric, self.prevalence, self.q)
        if watch and blend is None and self.task != "multiclass":
            self.watch = PlateauWatch("SurrogateLoss", self.reader, "Give blend=0.5, or take TangentLoss")
        share = None if blend is None else torch.tensor(check_blend(blend), dtype=torch.float64)
        self.register_buffer("_blend", share)

    @property
    def blend(self) -> float | None:
        """The share of cross entropy; assign to schedule it (no recompilation, no new graph)."""
        return None if self._blend is None else float(self._blend)

    @blend.setter
    def blend(self, value: float) -> None:
        if self._blend is None:
            raise ValueError("This loss was made without blend; give blend=0.0 at construction to schedule it.")
        self._blend.fill_(check_blend(value))

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        # States were once saved without the share: one of those leaves it as it is.
        if self._blend is not None and "_blend" not in self._non_persistent_buffers_set:
            state_dict.setdefault(f"{prefix}_blend", self._blend)
        super()._load_from_state_dict(state_dict, prefix, *rest)

    def elements(self) -> Elements:
        """Log distances under class weights, with a share of cross entropy under the same weights."""
        paper = SurrogateElements(self.terms, self.numbers)
        if self._blend is None:
            return paper
        # The share as it is now: a number where the host may look, else a copy on the device.
        share = float(self._blend) if on_host(self._blend) else self._blend.clone()
        return Blend(paper, TangentElements((*self.numbers, 0.0)), share)


def check_blend(blend: Any) -> float:
    """Read a share in [0, 1]."""
    if not (is_number(blend) and 0.0 <= blend <= 1.0):
        raise ValueError(f"blend is a share of cross entropy in [0, 1], or None; got {blend!r}.")
    return float(blend)
