"""Loss and gradient in one pass on the CPU: the functions of `cpu.c`, compiled when the package is built.

Where the library is missing (no compiler at build time) `available` says no, and the plain path serves.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from ctypes import POINTER, Structure, byref, c_char_p, c_double, c_int, c_int32, c_int64, c_void_p
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

if TYPE_CHECKING:
    from fbeta.losses.surrogate import Reach

#: Where the build puts the library.
LIBRARY = Path(__file__).with_name("_cpu" + {"darwin": ".dylib", "win32": ".dll"}.get(sys.platform, ".so"))

# The codes and structures of cpu.c, field by field.
LOGITS = {torch.float32: 0, torch.bfloat16: 1}
TARGETS = LOGITS | {torch.uint8: 2, torch.bool: 2, torch.int32: 3, torch.int64: 4}


class _Input(Structure):
    _fields_ = [
        *((name, c_void_p) for name in ("z", "y", "w", "grad")),
        *((name, c_int64) for name in ("n", "ignore")),
        *((name, c_int32) for name in ("z_type", "y_type", "has_ignore", "threads")),
    ]


class _Reach(Structure):
    _fields_ = [(name, c_double) for name in ("sign", "distance", "relative", "scale", "q", "offset")]


class _Surrogate(Structure):
    _fields_ = [
        ("negative", _Reach),
        ("positive", _Reach),
        *((name, c_double) for name in ("w0", "w1", "factor")),
    ]


class _Tangent(Structure):
    _fields_ = [*((name, c_double) for name in ("c0", "c1", "q", "factor")), ("soft", c_int32)]


class _SoftGrad(Structure):
    _fields_ = [(name, c_double) for name in ("k1", "k0")]


def available() -> bool:
    """Whether the compiled library is there and loads.

    >>> available() in (True, False)
    True
    """
    return _load(LIBRARY) is not None


def supports(z: Tensor, y: Tensor, w: Tensor | None = None) -> bool:
    """Whether the functions here take these tensors: on the CPU, contiguous, of types that `cpu.c` reads.

    Logits float32 or bfloat16; targets of these types, bool, uint8, int32 or int64; weights float32.

    >>> supports(torch.zeros(3), torch.tensor([True, False, True]))
    True
    >>> supports(torch.zeros(3).double(), torch.zeros(3))
    False
    """
    tensors = [z, y] if w is None else [z, y, w]
    return (
        all(x.device.type == "cpu" and x.layout == torch.strided and x.is_contiguous() for x in tensors)
        and all(x.numel() == z.numel() for x in tensors)
        and z.dtype in LOGITS
        and y.dtype in TARGETS
        and (w is None or w.dtype == torch.float32)
    )


def surrogate(
    z: Tensor,
    y: Tensor,
    w: Tensor | None,
    ignore_index: int | None,
    negative: Reach,
    positive: Reach,
    weights: tuple[float, float],
    factor: float = 1.0,
    grad: bool = True,
) -> tuple[Tensor, Tensor | None]:
    r"""Sums and gradient of `fbeta.losses.surrogate_loss`, with reaches that are plain numbers.

    .. math:: \left(\sum w\ell,\ \sum w\right), \qquad g\,w\,\frac{\partial\ell}{\partial z}

    `weights` are those of the classes (w₀, w₁), `factor` is g; without `grad` the sums alone.

    Shape: `z`, `y`, `w` ``(*)`` alike; sums ``(2,)`` in double precision, gradient like `z`.

    >>> from fbeta import FBeta
    >>> from fbeta.losses.surrogate import Reach
    >>> a = FBeta(1).anchors(prevalence=0.1)
    >>> reaches = Reach.to(a, positive=False), Reach.to(a, positive=True)
    >>> if available():
    ...     sums, _ = surrogate(torch.zeros(2), torch.tensor([1, 0]), None, None, *reaches, (1.0, 1.0))
    ...     assert abs(sums[0] - (0.6931 - 0.4925)) < 1e-4

    Reference: [lee2021]
    """
    sums, g = torch.empty(2, dtype=torch.float64), torch.empty_like(z) if grad else None
    params = _Surrogate(
        _Reach(*map(float, negative)), _Reach(*map(float, positive)), *map(float, weights), factor
    )
    _library().fbeta_surrogate(byref(_input(z, y, w, ignore_index, g)), byref(params), sums.data_ptr())
    return sums, g


def tangent(
    z: Tensor,
    y: Tensor,
    w: Tensor | None,
    ignore_index: int | None,
    costs: Tensor,
    factor: float = 1.0,
    soft: bool = False,
    grad: bool = True,
) -> tuple[Tensor, Tensor | None]:
    r"""Sums, counts and gradient of `fbeta.losses.tangent_loss`.

    .. math:: \left(\sum w\ell,\ \sum w,\ \mathrm{TP},\ \mathrm{FP},\ \mathrm{FN},\ \mathrm{TN}\right), \qquad
              g\,w\,\frac{\partial\ell}{\partial z}

    `costs` are (c₀, c₁, q). Counts are of decisions z ≥ 0, or of the scores themselves if `soft`; `factor` is g.

    Shape: `z`, `y`, `w` ``(*)`` alike; `costs` ``(3,)``; sums ``(6,)`` in double precision, gradient like `z`.

    >>> if available():
    ...     sums, _ = tangent(
    ...         torch.zeros(2), torch.tensor([1, 0]), None, None, torch.tensor([0.25, 0.75, 0.0])
    ...     )
    ...     assert abs(sums[0] - 0.6931) < 1e-4
    ...     assert sums[1:].tolist() == [2, 1, 1, 0, 0]

    Reference: [zhang2018], [narasimhan2015]
    """
    sums, g = torch.empty(6, dtype=torch.float64), torch.empty_like(z) if grad else None
    params = _Tangent(*costs.tolist(), factor, soft)
    _library().fbeta_tangent(byref(_input(z, y, w, ignore_index, g)), byref(params), sums.data_ptr())
    return sums, g


def soft_counts(z: Tensor, y: Tensor, w: Tensor | None, ignore_index: int | None) -> Tensor:
    r"""Soft counts.

    .. math:: \left(\sum w y f,\ \sum w (1 - y) f,\ \sum w y (1 - f),\ \sum w (1 - y)(1 - f)\right)

    Shape: `z`, `y`, `w` ``(*)`` alike; result ``(4,)`` in double precision: TP, FP, FN, TN.

    >>> if available():
    ...     assert soft_counts(torch.zeros(2), torch.tensor([1, 0]), None, None).tolist() == [0.5] * 4
    """
    sums = torch.empty(4, dtype=torch.float64)
    _library().fbeta_soft_counts(byref(_input(z, y, w, ignore_index, None)), sums.data_ptr())
    return sums


def soft_grad(z: Tensor, y: Tensor, w: Tensor | None, ignore_index: int | None, k: Tensor) -> Tensor:
    r"""Gradient of a function of soft counts, from its slopes: k₁ = ∂/∂TP − ∂/∂FN, k₀ = ∂/∂FP − ∂/∂TN.

    .. math:: w f (1 - f) \left(y k_1 + (1 - y) k_0\right)

    Shape: `z`, `y`, `w` ``(*)`` alike; `k` = (k₁, k₀) ``(2,)``; result like `z`.

    >>> if available():
    ...     k = torch.tensor([4.0, 8.0])
    ...     assert soft_grad(torch.zeros(2), torch.tensor([1, 0]), None, None, k).tolist() == [1, 2]
    """
    grad = torch.empty_like(z)
    params = _SoftGrad(*k.tolist())
    _library().fbeta_soft_grad(byref(_input(z, y, w, ignore_index, grad)), byref(params))
    return grad


def scale_(g: Tensor, by: Tensor) -> Tensor:
    """Multiply in place by a number; the usual 1 costs nothing.

    >>> scale_(torch.ones(2), torch.tensor(3.0))
    tensor([3., 3.])
    """
    factor = float(by)
    return g if factor == 1.0 else g.mul_(factor)


def costs(loss: Any) -> None:
    """No kernel for a few numbers: torch is quick enough with them here."""


def advance(running: Any, sums: Tensor) -> bool:
    """Nor for a step of the running counts."""
    return False


def scores(metric: Any) -> bool:
    """Nor for the score of four counts."""
    return False


def _input(z: Tensor, y: Tensor, w: Tensor | None, ignore_index: int | None, grad: Tensor | None) -> _Input:
    ignore = 0 if ignore_index is None else ignore_index
    return _Input(
        z.data_ptr(),
        y.data_ptr(),
        None if w is None else w.data_ptr(),
        None if grad is None else grad.data_ptr(),
        z.numel(),
        ignore,
        LOGITS[z.dtype],
        TARGETS[y.dtype],
        ignore_index is not None,
        torch.get_num_threads(),
    )


def _library() -> Any:
    library = _load(LIBRARY)
    if library is None:
        raise RuntimeError(
            f"The compiled losses are missing ({LIBRARY.name}): build fbeta with a C compiler, or use the plain path."
        )
    return library


@functools.cache
def _load(path: Path) -> ctypes.CDLL | None:
    """The library, with the types of its functions; None where it is missing or does not fit this machine."""
    try:
        library = ctypes.CDLL(str(path))
        signatures = {
            "fbeta_surrogate": (None, [POINTER(_Input), POINTER(_Surrogate), c_void_p]),
            "fbeta_tangent": (None, [POINTER(_Input), POINTER(_Tangent), c_void_p]),
            "fbeta_soft_counts": (None, [POINTER(_Input), c_void_p]),
            "fbeta_soft_grad": (None, [POINTER(_Input), POINTER(_SoftGrad)]),
            "fbeta_source": (c_char_p, []),
            "fbeta_threads": (c_int, []),
            "fbeta_level": (c_int, [c_int]),
        }
        for name, (result, arguments) in signatures.items():
            function = getattr(library, name)
            function.restype, function.argtypes = result, arguments
    except (OSError, AttributeError):
        return None
    return library
