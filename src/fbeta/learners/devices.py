"""Where to train."""

from __future__ import annotations

import torch


def device_of(name: str) -> torch.device:
    """Read a device's name; "auto" is the GPU if there is one.

    >>> device_of("cpu")
    device(type='cpu')
    """
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if name not in ("cpu", "cuda"):
        raise ValueError(f"device must be auto, cuda or cpu; got {name!r}.")
    if name == "cuda" and not torch.cuda.is_available():
        raise ValueError("there is no GPU that PyTorch can use here; take the device cpu, or auto.")
    return torch.device(name)
