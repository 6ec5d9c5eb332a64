"""Checkpoints: tensors and a little JSON in one safetensors file, which executes nothing when it is read.

The format checks its header, not its numbers: a sum over all bytes beside them finds the bit that a disk lost.
"""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fbeta.writing import settle

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
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    # Always the same place, emptied first: what a kill left behind may be gigabytes, and have any name.
    part = _part(path)
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir()
    whole, text = _separate(tensors), json.dumps(dict(meta))
    try:
        save_file(whole, part / "new", metadata={"meta": text, "crc32": _sum(whole, text)})
        settle(part / "new", path)
    except SafetensorError as error:  # a full disk, named in its text only
        code = re.search(r"os error (\d+)", str(error))
        number = int(code[1]) if code else errno.EIO
        raise OSError(number, os.strerror(number), str(path)) from error
    finally:
        shutil.rmtree(part, ignore_errors=True)


def remove(path: Path | str) -> None:
    """Delete a checkpoint, if it is there, and what a kill left of a newer one.

    >>> remove("nothing.safetensors")
    """
    Path(path).unlink(missing_ok=True)
    shutil.rmtree(_part(Path(path)), ignore_errors=True)


def _part(path: Path) -> Path:
    """Where a checkpoint is until it is whole."""
    return path.with_name(f".{path.name}.part")


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
            said = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        if said.get("crc32", found := _sum(tensors, said["meta"])) != found:  # older files have none
            raise ValueError("its numbers are not those that were written")
        return tensors, dict(json.loads(said["meta"]))
    except (SafetensorError, KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"{path} is not a checkpoint, or is damaged ({error}); delete it, and its runs start from the beginning."
        ) from error


def _sum(tensors: Mapping[str, torch.Tensor], text: str) -> str:
    import torch

    found = zlib.crc32(text.encode())
    for name in sorted(tensors):
        x = tensors[name].cpu().reshape(-1)  # a single number has no bytes to view, a row of one has
        found = zlib.crc32(x.view(torch.uint8).numpy().data, zlib.crc32(name.encode(), found))
    return f"{found:08x}"


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
