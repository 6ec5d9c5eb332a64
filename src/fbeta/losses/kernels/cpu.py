"""Rows on the CPU by the functions of `cpu.c`, compiled when the package is built.

Where the library is missing (no compiler at build time) or is not what was built, `available` says no, with a warning,
and plain torch serves.
"""

import ctypes
import functools
import hashlib
import sys
import warnings
from ctypes import POINTER, Structure, byref, c_char_p, c_double, c_int, c_int32, c_int64, c_void_p
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from fbeta.losses.kernels.compiled import CompiledRows
from fbeta.losses.task import check_values

#: Where the build puts the library.
LIBRARY = Path(__file__).with_name("_cpu" + {"darwin": ".dylib", "win32": ".dll"}.get(sys.platform, ".so"))

# The codes and the structure of rows in cpu_rows.h; parameters are plain doubles, in the order of its structures.
LOGITS = {torch.float32: 0, torch.bfloat16: 1}
TARGETS = LOGITS | {torch.uint8: 2, torch.bool: 2, torch.int32: 3, torch.int64: 4}
#: Σwℓ, Σw, TP, FP, FN, TN, and how many targets or weights are not valid.
SUMS = c_double * 7


class _Input(Structure):
    _fields_ = [
        *((name, c_void_p) for name in ("z", "y", "w", "grad")),
        *((name, c_int64) for name in ("n", "ignore")),
        *((name, c_int32) for name in ("z_type", "y_type", "has_ignore", "check", "threads")),
    ]


class CpuRows(CompiledRows):
    """Contiguous float32 or bfloat16 logits on the CPU; targets also bool, uint8, int32 or int64; weights float32."""

    knows = frozenset({"tangent", "surrogate", "blend", "linear"})

    @staticmethod
    def reads(z: Tensor, y: Tensor, w: Tensor | None) -> bool:
        """Whether `cpu.c` knows the types of these tensors."""
        return z.dtype in LOGITS and y.dtype in TARGETS and (w is None or w.dtype == torch.float32)

    def run(
        self, kernel: str, numbers: Any, soft: bool, factor: float, gradient: bool
    ) -> tuple[list[float], Tensor | None]:
        """(Σwℓ, Σw, TP, FP, FN, TN) as floats, and the gradient."""
        if kernel == "blend":
            first, second, share = numbers
            return self._blend(first, second, float(share), soft, factor, gradient)
        grad = torch.empty_like(self.z) if gradient else None
        if kernel == "surrogate":
            terms, weights = numbers
            negative, positive = terms.plain
            function, parameters = _library().fbeta_surrogate, (*negative, *positive, *weights, factor)
        else:
            counts = 2 if kernel == "linear" else soft
            function, parameters = _library().fbeta_tangent, (*numbers, factor, counts)
        z, y, w, ignore = self.z, self.y, self.w, self.ignore_index
        sums = SUMS()
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
        function(byref(rows), (c_double * len(parameters))(*parameters), sums)
        if sums[6]:
            check_values(z, y, w, ignore)  # says what is wrong
        return sums[:6], grad

    def _blend(
        self, first: Any, second: Any, share: float, soft: bool, factor: float, gradient: bool
    ) -> tuple[list[float], Tensor | None]:
        """Two passes, mixed; elements that have no share are not computed."""
        if share in (0.0, 1.0):
            one = second if share else first
            return self.run(one.kernel, one.numbers, soft, factor, gradient)
        # Only the mix is rounded.
        exact = CpuRows(self.z.float(), self.y, self.w, self.ignore_index, self.check)
        (sums, grad), (others, more) = (
            exact.run(part.kernel, part.numbers, soft, factor, gradient) for part in (first, second)
        )
        sums[0] = (1 - share) * sums[0] + share * others[0]
        return sums, None if grad is None or more is None else grad.lerp_(more, share).to(self.z.dtype)

    def scale_(self, gradient: Tensor, by: Any) -> Tensor:
        """Multiply in place, unless by 1."""
        factor = float(by)
        return gradient if factor == 1.0 else gradient.mul_(factor)


def available() -> bool:
    """Whether the compiled library is there, whole, and loads; a warning says once why not."""
    return _load(LIBRARY) is not None


def _library() -> Any:
    if (library := _load(LIBRARY)) is None:
        raise RuntimeError(f"The compiled losses are missing ({LIBRARY.name}): build fbeta with a C compiler.")
    return library


@functools.cache
def _load(path: Path) -> ctypes.CDLL | None:
    """The library, with the types of its functions; None where it is missing or does not fit this machine."""
    numbers = POINTER(c_double)
    try:
        # A library that was cut short kills the process that maps it, and an old one takes other structures.
        built = b"".join(file.read_bytes() for file in [*sorted(path.parent.glob("cpu*.[ch]")), path])
        if path.with_suffix(".sha256").read_bytes() != hashlib.sha256(built).hexdigest().encode():
            raise OSError(f"{path} is not what was built from the sources beside it")
        library = ctypes.CDLL(str(path))
        for function in (library.fbeta_surrogate, library.fbeta_tangent):
            function.restype, function.argtypes = None, [POINTER(_Input), numbers, numbers]
        library.fbeta_source.restype = c_char_p
        library.fbeta_level.argtypes = [c_int]
    except (OSError, AttributeError) as error:
        warnings.warn(
            f"The compiled losses cannot be used ({error}): losses on the CPU run in plain torch, which is slower. "
            "Install fbeta again with a C compiler at hand, or set FBETA_FUSED=0 to do without.",
            stacklevel=2,
        )
        return None
    return library
