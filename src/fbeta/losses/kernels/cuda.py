"""Rows on CUDA by Triton kernels. Nothing here reads a value back to the host: a step can be part of a CUDA graph."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from fbeta.losses.kernels import cuda_kernels as device
from fbeta.losses.kernels.compiled import CompiledRows

BLOCK = 1024
#: Programs per multiprocessor: enough to hide memory latency, few enough for a short list of partial sums.
WAVES = 8


class CudaRows(CompiledRows):
    """Contiguous float32, bfloat16 or float64 logits on CUDA, with targets and weights of any real type.

    Not float16: a mean over many rows has gradients below its smallest number until a scaler multiplies them.
    """

    knows = frozenset({"tangent", "surrogate", "linear"})

    @staticmethod
    def reads(z: Tensor, y: Tensor, w: Tensor | None) -> bool:
        """Whether the kernels know the types of these tensors, of which there must be elements."""
        known = z.dtype in (torch.float32, torch.bfloat16, torch.float64) and not y.is_complex()
        return known and z.numel() > 0 and (w is None or w.is_floating_point())

    def run(self, kernel: str, numbers: Any, soft: bool, factor: float, gradient: bool) -> tuple[Tensor, Tensor | None]:
        """(Σwℓ, Σw, TP, FP, FN, TN), of the surrogate loss (Σwℓ, Σw) alone, and the gradient."""
        z, n, summing = self.z, self.z.numel(), kernel != "linear" or not gradient
        programs = _programs(z) if summing else -(-n // BLOCK)
        grad = torch.empty_like(z) if gradient else None
        count = 2 if kernel == "surrogate" else 6
        parts = torch.empty(count, programs if summing else 0, dtype=torch.float64, device=z.device)
        sums = torch.empty(count, dtype=torch.float64, device=z.device)
        rows = z, self.y, self.w, grad, parts
        flags: dict[str, Any] = {
            "HAS_W": self.w is not None,
            "HAS_IGNORE": self.ignore_index is not None,
            "GRAD": gradient,
            "MEAN": factor != 1.0,  # then it is 1/n, which the kernel knows to all digits
            "REAL": tl.float64 if z.dtype == torch.float64 else tl.float32,
            "BIG": n >= 2**30,  # offsets then need 64 bits
            "BLOCK": BLOCK,
        }
        with torch.cuda.device(z.device):
            if kernel == "surrogate":
                terms, weights = numbers
                tables = terms.table, _on_device(weights, z.device)
                flags |= _term_flags(terms.plain)
                device.surrogate[(programs,)](*rows, *tables, n, self.ignore_index or 0, **flags)
            else:
                costs = _on_device(numbers, z.device)
                flags |= {"SOFT": soft, "LINEAR": kernel == "linear"}
                device.tangent[(programs,)](*rows, costs, n, self.ignore_index or 0, **flags)
            if summing:
                device.add_up[(count,)](parts, sums, programs, WIDTH=triton.next_power_of_2(programs))
        return sums, grad

    def scale_(self, gradient: Tensor, by: Any) -> Tensor:
        """Multiply in place by a number on the device; nothing is touched where it is 1."""
        n = gradient.numel()
        with torch.cuda.device(gradient.device):
            device.scale[(_programs(gradient),)](gradient, by, n, BIG=n >= 2**30, BLOCK=BLOCK)
        return gradient


def _term_flags(terms: Sequence[Any]) -> dict[str, bool]:
    """What the compiler may know of both terms: which probability matters, and the form of its distance."""
    flags: dict[str, bool] = {}
    for k, term in enumerate(terms):
        flags |= {
            f"O{k}": (term.sign < 0) == (k == 0),  # 1 − f: a falling negative, a rising positive
            f"R{k}": term.relative > 0,
            f"Z{k}": term.distance == 0,
            f"P{k}": term.q >= 1e-12,
        }
    return flags


def _on_device(numbers: Any, device: torch.device) -> Tensor:
    """A few numbers as one tensor of double precision."""
    if isinstance(numbers, Tensor):
        return numbers
    if all(isinstance(x, float) for x in numbers):
        return _constants(tuple(numbers), device)
    return torch.stack([torch.as_tensor(x, dtype=torch.float64, device=device) for x in numbers])


@functools.lru_cache(maxsize=256)
def _constants(numbers: tuple[float, ...], device: torch.device) -> Tensor:
    """Numbers that do not change, copied once: a CUDA graph cannot copy from the host."""
    return torch.tensor(numbers, dtype=torch.float64, device=device)


@functools.cache
def _most(device: torch.device) -> int:
    count: int = torch.cuda.get_device_properties(device).multi_processor_count
    return WAVES * count


def _programs(x: Tensor) -> int:
    return min(-(-x.numel() // BLOCK), _most(x.device))
