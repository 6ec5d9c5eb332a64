"""What row losses are made of: the parts of both classes, numbers in the type of the logits, mixtures of two losses."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor

from fbeta.losses.kernels.plain import Elements
from fbeta.losses.memory import finite


class ClassPart(NamedTuple):
    """A class's part in each element, and the logits that its loss is a function of."""

    share: Tensor
    logits: Tensor


def parts(logits: Tensor, target: Tensor, weights: Any = (1.0, 1.0)) -> tuple[ClassPart, ClassPart]:
    r"""The parts of positives and negatives, w₁y and w₀(1 − y): a soft target has a part in both classes.

    A part of zero is left out, even of an infinite loss: a logit of +∞ costs a positive nothing. So where a class has
    no part, its loss sees 0 in place of an infinite logit. Where nothing is infinite both have the same logits.

    Shape: `logits` and `target` ``(*)``, weights (w₀, w₁) broadcastable; both parts ``(*)``.
    """
    w0, w1 = weights
    one, zero = w1 * target, w0 * (1 - target)
    if finite(logits):
        return ClassPart(one, logits), ClassPart(zero, logits)
    # Only where 0 · ∞ would be NaN: elsewhere both keep their gradient, by the target too.
    infinite = logits.isinf()
    return (
        ClassPart(one, logits.masked_fill(infinite & (one == 0), 0.0)),
        ClassPart(zero, logits.masked_fill(infinite & (zero == 0), 0.0)),
    )


def cast(numbers: Iterable[float | Tensor], dtype: torch.dtype) -> tuple[float | Tensor, ...]:
    """Numbers as they are, and tensors of numbers in the type of the logits."""
    return tuple(x.to(dtype) if isinstance(x, Tensor) else x for x in numbers)


@dataclass(frozen=True)
class Blend:
    """A mixture of two losses, (1 − share)·ℓ₁ + share·ℓ₂."""

    kernel: ClassVar[str] = "blend"
    first: Elements
    second: Elements
    share: float | Tensor

    @property
    def numbers(self) -> tuple[Elements, Elements, float | Tensor]:
        """What a kernel is handed."""
        return self.first, self.second, self.share

    def __call__(self, logits: Tensor, target: Tensor) -> Tensor:
        """The mixture; a loss without a share is left out, even where it is infinite."""
        if isinstance(self.share, float) and self.share in (0.0, 1.0):
            return (self.second if self.share else self.first)(logits, target)
        (share,) = cast((self.share,), logits.dtype)
        return (1 - share) * self.first(logits, target) + share * self.second(logits, target)
