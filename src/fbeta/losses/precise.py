"""Modules whose numbers keep their precision, whatever the model around them is cast to."""

import copy
from collections.abc import Callable
from typing import Any, Self

from torch import Tensor, nn


class PreciseModule(nn.Module):
    """A module whose buffers keep their type: `.to(device)` moves them, `.half()` does not round them.

    Counts above 65,504 and anchors below 1e-8 do not fit half precision, and a loss must survive `model.half()`.
    """

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        before = {name: buffer for name, buffer in self._buffers.items() if buffer is not None}
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        for name, buffer in before.items():
            moved = self._buffers[name]
            assert moved is not None
            if moved.dtype != buffer.dtype:
                self._buffers[name] = buffer.to(moved.device)
        return self

    # A process group belongs to a live process: copies share it, files do not hold it.
    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | ({"process_group": None} if "process_group" in self.__dict__ else {})

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        twin = self.__class__.__new__(self.__class__)
        memo[id(self)] = twin
        group = self.__dict__.get("process_group")
        if group is not None:
            memo[id(group)] = group
        twin.__dict__.update({name: copy.deepcopy(value, memo) for name, value in self.__dict__.items()})
        return twin
