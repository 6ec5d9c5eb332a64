"""A few numbers from a few numbers, computed where they are: on the host, in one kernel on a device, or by torch."""

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor

from fbeta.losses.kernels.trace import written
from fbeta.losses.memory import on_host, ordinary

#: ``formula(xp, *arguments)`` in arithmetic that NumPy arrays, torch tensors and symbols share; hashable, and equal to
#: another that computes the same.
Formula: TypeAlias = Callable[..., Sequence[Any]]
#: A tensor, numbers that the host has already, or nothing.
Argument: TypeAlias = Tensor | list[float] | float | None


def evaluate(
    formula: Formula, *arguments: Argument, columns: bool = False, out: Tensor | None = None
) -> Sequence[float | Tensor] | Tensor:
    """Evaluate a formula of few numbers: as floats, as NumPy arrays, in a written-out kernel, or by torch.

    Without `columns` arguments are numbers or short vectors, and so are the results: floats where the host has the
    arguments, else a tensor with one entry per result. With `columns` they have one more axis, and results are tensors
    (or floats where they have no axis). `out`, if given, is overwritten with the results.
    """
    tensors = [x for x in arguments if isinstance(x, Tensor)]
    results: Any = None
    if on_host(*tensors):
        if not columns:
            results = _in_floats(formula, [x.tolist() if isinstance(x, Tensor) else x for x in arguments])
        if results is None:
            with np.errstate(all="ignore"):
                # [()] makes a number of an array without axes: quicker.
                given = (None if x is None else np.asarray(x, dtype=np.float64)[()] for x in arguments)
                found = formula(np, *given)
            results = tuple(torch.from_numpy(x) if np.ndim(x) else float(x) for x in found)
        if out is not None:
            out.numpy()[...] = [np.asarray(x) for x in results] if columns else results
        return results  # type: ignore[no-any-return]
    if not columns and tensors[0].is_cuda and ordinary(*tensors):
        sizes = (x.numel() if isinstance(x, Tensor) and x.ndim else None if x is None else 0 for x in arguments)
        run = _device_kernel(formula, tuple(sizes))
        if run is not None:
            stored: Tensor = run(arguments, out)
            return stored
    results = formula(torch, *arguments)
    if out is not None:
        out.copy_(torch.stack(list(results)))
    return results  # type: ignore[no-any-return]


def _in_floats(formula: Formula, values: list[Any]) -> tuple[float, ...] | None:
    sizes = [None if x is None else len(x) if isinstance(x, list) else 0 for x in values]
    function = written(formula, tuple(sizes))
    try:
        return None if function is None else function(*values)
    except (ArithmeticError, ValueError):
        return None  # a user's formula divides by zero: NumPy goes on with infinity or NaN


@functools.lru_cache(maxsize=256)
def _device_kernel(formula: Formula, sizes: tuple[int | None, ...]) -> Any:
    try:
        from fbeta.losses.kernels.cuda_formula import device_kernel
    except ImportError:
        return None  # no Triton, which `kernels` says
    return device_kernel(formula, sizes)
