"""What a stack of runs minimises: every run its own loss, side by side on a GPU."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

#: Streams that losses are spread over: each is a chain of tiny kernels, which would wait for one another in one.
STREAMS = 16


class LossSum(nn.Module):
    """The sum of the runs' losses, one binary loss module per run, exactly as a user would call it.

    Shape: `z` and `y` ``(R, B)``; result ``()``.

    >>> from fbeta import losses
    >>> total = LossSum([losses.get("bce"), losses.get("mae")])
    >>> total(torch.zeros(2, 3), torch.ones(2, 3))
    tensor(1.6931)
    """

    def __init__(self, losses: Sequence[nn.Module]) -> None:
        super().__init__()
        self.losses = nn.ModuleList(losses)
        self._streams: list[torch.cuda.Stream] = []

    def at_epoch(self, epoch: int) -> None:
        """Tell losses with a schedule which epoch begins, counted from 0."""
        for loss in self.losses:
            tell = getattr(loss, "at_epoch", None)
            if tell is not None:
                tell(epoch)

    def forward(self, z: Tensor, y: Tensor) -> Tensor:
        """Add the losses up."""
        pairs = list(zip(self.losses, z.unbind(), y.unbind(), strict=True))
        if not z.is_cuda or len(pairs) == 1:
            return torch.stack([loss(a, b) for loss, a, b in pairs]).sum()
        if not self._streams:
            self._streams = [torch.cuda.Stream(z.device) for _ in range(STREAMS)]  # type: ignore[no-untyped-call]
        main = torch.cuda.current_stream()
        parts: list[Tensor] = []
        for stream in self._streams:
            stream.wait_stream(main)
        for i, (loss, a, b) in enumerate(pairs):
            with torch.cuda.stream(self._streams[i % STREAMS]):
                parts.append(loss(a, b))
        for stream in self._streams:
            main.wait_stream(stream)
        return torch.stack(parts).sum()
