"""Checkpoints: tensors and a little JSON in one safetensors file, which executes nothing when it is read."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch


def save(path: Path | str, tensors: Mapping[str, torch.Tensor], meta: Mapping[str, Any]) -> None:
    """Write tensors and what JSON can say about them, whole or not at all.

    >>> import tempfile, torch
    >>> path = Path(tempfile.mkdtemp(), "bce-r0.safetensors")
    >>> save(path, {"weight": torch.ones(2)}, {"epoch": 3})
    >>> load(path)
    ({'weight': tensor([1., 1.])}, {'epoch': 3})
    """
    from safetensors.torch import save_file

    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    # Always the same place, emptied first: what a kill left behind may be gigabytes, and have any name.
    part = path.with_name(f".{path.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir()
    save_file(_separate(tensors), part / "new", metadata={"meta": json.dumps(dict(meta))})
    with (part / "new").open("rb") as file:
        os.fsync(file.fileno())
    os.replace(part / "new", path)
    part.rmdir()


def load(path: Path | str, device: str = "cpu") -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
    """Read tensors and meta data; a damaged file is an error that says so.

    >>> load("nothing.safetensors")
    Traceback (most recent call last):
    ...
    FileNotFoundError: There is no checkpoint nothing.safetensors.
    """
    from safetensors import SafetensorError, safe_open

    if not Path(path).exists():
        raise FileNotFoundError(f"There is no checkpoint {path}.")
    try:
        with safe_open(str(path), "pt", device=device) as file:
            meta = json.loads(file.metadata()["meta"])
            return {name: file.get_tensor(name) for name in file.keys()}, dict(meta)  # noqa: SIM118
    except (SafetensorError, KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"{path} is no checkpoint, or a damaged one ({error}); delete it, and its runs start from the beginning."
        ) from error


def _separate(tensors: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The tensors as memory of their own on the CPU: the format knows no views."""
    seen: set[int] = set()
    separate = {}
    for name, tensor in tensors.items():
        x = tensor.detach().cpu().contiguous()
        storage = x.untyped_storage()
        if storage.data_ptr() in seen or storage.nbytes() != x.nbytes:
            x = x.clone()
        seen.add(x.untyped_storage().data_ptr())
        separate[name] = x
    return separate
