"""Rows on the CPU by the functions of `cpu.c`, compiled when the package is built.

Where the library is missing (no compiler at build time) `available` says no, and plain torch serves.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from ctypes import POINTER, Structure, byref, c_char_p, c_double, c_int, c_int32, c_int64, c_void_p
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from fbeta.losses.kernels.compiled import CompiledRows
from fbeta.losses.task import check_values
from fbeta.metrics import AnchorTerm

#: Where the build puts the library.
LIBRARY = Path(__file__).with_name("_cpu" + {"darwin": ".dylib", "win32": ".dll"}.get(sys.platform, ".so"))

# The codes and structures of cpu.c, field by field.
LOGITS = {torch.float32: 0, torch.bfloat16: 1}
TARGETS = LOGITS | {torch.uint8: 2, torch.bool: 2, torch.int32: 3, torch.int64: 4}


class _Input(Structure):
    _fields_ = [
        *((name, c_void_p) for name in ("z", "y", "w", "grad")),
        *((name, c_int64) for name in ("n", "ignore")),
        *((name, c_int32) for name in ("z_type", "y_type", "has_ignore", "check", "threads")),
    ]


class _Term(Structure):
    _fields_ = [(name, c_double) for name in AnchorTerm._fields]


class _Surrogate(Structure):
    _fields_ = [
        ("negative", _Term),
        ("positive", _Term),
        *((name, c_double) for name in ("w0", "w1", "factor")),
    ]


class _Tangent(Structure):
    _fields_ = [*((name, c_double) for name in ("c0", "c1", "q", "factor")), ("soft", c_int32)]


class _SoftGrad(Structure):
    _fields_ = [(name, c_double) for name in ("k1", "k0")]


#: Σwℓ, Σw, TP, FP, FN, TN, and how many targets or weights are not valid.
_Sums = c_double * 7


class CpuRows(CompiledRows):
    """Contiguous float32 or bfloat16 logits on the CPU; targets also bool, uint8, int32 or int64; weights float32.

    The same pass looks whether targets and weights are valid, if `check` asks for it.

    >>> z, y = torch.zeros(3), torch.tensor([True, False, True])
    >>> CpuRows.supports(z, y), CpuRows.supports(z.double(), y)
    (True, False)
    """

    knows = frozenset({"tangent", "surrogate", "blend"})

    def __init__(
        self, z: Tensor, y: Tensor, w: Tensor | None, ignore_index: int | None, check: bool = False
    ) -> None:
        super().__init__(z, y, w, ignore_index)
        self.check = check

    @staticmethod
    def supports(z: Tensor, y: Tensor, w: Tensor | None = None) -> bool:
        """Whether `cpu.c` reads these tensors."""
        return (
            z.dtype in LOGITS
            and y.dtype in TARGETS
            and z.is_cpu
            and y.is_cpu
            and z.shape == y.shape
            and z.layout == y.layout == torch.strided
            and z.is_contiguous()
            and y.is_contiguous()
            and (w is None or (w.dtype == torch.float32 and w.is_cpu and w.shape == z.shape))
            and (w is None or (w.layout == torch.strided and w.is_contiguous()))
        )

    def run(
        self, elements: Any, soft: bool, factor: float, gradient: bool
    ) -> tuple[list[float], Tensor | None]:
        """(Σwℓ, Σw, TP, FP, FN, TN) as floats, and the gradient."""
        if elements.kernel == "blend":
            return self._blend(elements, soft, factor, gradient)
        grad = torch.empty_like(self.z) if gradient else None
        params: Any
        if elements.kernel == "tangent":
            c0, c1, q = map(float, elements.costs)
            function, params = _library().fbeta_tangent, _Tangent(c0, c1, q, factor, soft)
        else:
            negative, positive = elements.terms.plain
            params = _Surrogate(_Term(*negative), _Term(*positive), *elements.weights, factor)
            function = _library().fbeta_surrogate
        return self._call(function, grad, params)[:6], grad

    def _blend(
        self, blend: Any, soft: bool, factor: float, gradient: bool
    ) -> tuple[list[float], Tensor | None]:
        """Two passes, mixed; elements that have no share are not computed."""
        share = float(blend.share)
        if share in (0.0, 1.0):
            return self.run(blend.second if share else blend.first, soft, factor, gradient)
        exact = CpuRows(
            self.z.float(), self.y, self.w, self.ignore_index, self.check
        )  # the mix is rounded, not its parts
        (one, grad), (other, more) = (
            exact.run(part, soft, factor, gradient) for part in (blend.first, blend.second)
        )
        sums = [(1 - share) * one[0] + share * other[0], *one[1:]]
        if grad is None or more is None:
            return sums, None
        return sums, grad.lerp_(more, share).to(self.z.dtype)

    def soft_counts(self) -> list[float]:
        """Soft TP, FP, FN and TN."""
        return self._call(_library().fbeta_soft_counts, None)[2:6]

    def soft_gradient(self, slopes: Any, scale: Any) -> Tensor:
        """By one pass over logits and targets."""
        k1, k0 = slopes
        by, grad = float(scale), torch.empty_like(self.z)
        self._call(_library().fbeta_soft_grad, grad, _SoftGrad(k1 * by, k0 * by))
        return grad

    def scale_(self, gradient: Tensor, by: Any) -> Tensor:
        """Multiply in place, unless by 1."""
        factor = float(by)
        return gradient if factor == 1.0 else gradient.mul_(factor)

    def _call(self, function: Any, grad: Tensor | None, params: Structure | None = None) -> list[float]:
        z, y, w, ignore = self.z, self.y, self.w, self.ignore_index
        sums, given = _Sums(), () if params is None else (byref(params),)
        rows = _Input(
            z.data_ptr(),
            y.data_ptr(),
            None if w is None else w.data_ptr(),
            None if grad is None else grad.data_ptr(),
            z.numel(),
            0 if ignore is None else ignore,
            LOGITS[z.dtype],
            TARGETS[y.dtype],
            ignore is not None,
            self.check,
            torch.get_num_threads(),
        )
        function(byref(rows), *given, sums)
        if sums[6]:
            check_values(z, y, w, ignore)  # says what is wrong
        return list(sums)


def available() -> bool:
    """Whether the compiled library is there and loads.

    >>> available() in (True, False)
    True
    """
    return _load(LIBRARY) is not None


def _library() -> Any:
    library = _load(LIBRARY)
    if library is None:
        raise RuntimeError(
            f"The compiled losses are missing ({LIBRARY.name}): build fbeta with a C compiler, or set FBETA_FUSED=0."
        )
    return library


@functools.cache
def _load(path: Path) -> ctypes.CDLL | None:
    """The library, with the types of its functions; None where it is missing or does not fit this machine."""
    try:
        library = ctypes.CDLL(str(path))
        signatures = {
            "fbeta_surrogate": (None, [POINTER(_Input), POINTER(_Surrogate), c_double * 7]),
            "fbeta_tangent": (None, [POINTER(_Input), POINTER(_Tangent), c_double * 7]),
            "fbeta_soft_counts": (None, [POINTER(_Input), c_double * 7]),
            "fbeta_soft_grad": (None, [POINTER(_Input), POINTER(_SoftGrad), c_double * 7]),
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
