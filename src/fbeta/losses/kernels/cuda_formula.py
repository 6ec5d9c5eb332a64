"""A traced formula as one Triton kernel: a single program that loads, computes in double precision and stores."""

from __future__ import annotations

import itertools
import linecache
from collections.abc import Callable, Sequence
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from fbeta.losses.kernels.trace import trace

_HEAD = """
@triton.jit
def flag(condition):
    return tl.where(condition, 1.0, 0.0).to(tl.float64)

@triton.jit
def where(condition, yes, no):
    return tl.where(condition, yes, no)

@triton.jit
def sqrt(x):
    return tl.sqrt(x)

@triton.jit
def exp(x):
    return tl.exp(x)

@triton.jit
def power(x, by):
    return tl.exp(by * tl.log(x))

@triton.jit
def kernel({arguments}):
    {body}
"""

_NUMBERS = itertools.count()


def source(formula: Callable[..., Any], sizes: tuple[int | None, ...]) -> tuple[str, int]:
    """The kernel's source, and how many numbers it stores."""
    arguments, lines, results = trace(formula, sizes)
    loads = []
    for i, names in enumerate(arguments):
        if isinstance(names, list):
            loads += [f"{name} = tl.load(p{i} + {j})" for j, name in enumerate(names)]
        elif names is not None:
            loads.append(f"{names} = tl.load(p{i})")
    stores = [f"tl.store(out + {i}, {name})" for i, name in enumerate(results)]
    pointers = [f"p{i}" for i, names in enumerate(arguments) if names is not None]
    body = "\n    ".join([*loads, *lines, *stores])
    return _HEAD.replace("{arguments}", ", ".join([*pointers, "out"])).replace("{body}", body), len(results)


def device_kernel(formula: Callable[..., Any], sizes: tuple[int | None, ...]) -> Any:
    """A function of tensors of double precision (and Nones) on one device; None if the formula cannot be traced."""
    try:
        text, count = source(formula, sizes)
    except (TypeError, ValueError, AttributeError, ZeroDivisionError):
        return None
    kernel = compiled(text)

    def run(arguments: Sequence[Any], out: Tensor | None = None) -> Tensor:
        given = [x for x in arguments if x is not None]
        stored = torch.empty(count, dtype=torch.float64, device=given[0].device) if out is None else out
        with torch.cuda.device(stored.device):
            kernel[(1,)](*given, stored)
        return stored

    return run


def compiled(text: str) -> Any:
    """The kernel of a source; Triton reads the source of what it compiles, so it goes into the line cache."""
    name = f"<fbeta formula {next(_NUMBERS)}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    space: dict[str, Any] = {"triton": triton, "tl": tl, "__name__": "fbeta.losses.kernels.formula"}
    exec(compile(text, name, "exec"), space)
    return space["kernel"]
