"""Who computes with the rows of a batch: plain torch, C on the CPU, or Triton on CUDA, behind one protocol.

`PlainRows` is the protocol and its plain implementation; `CompiledRows` is what C (`cpu`) and Triton (`cuda`)
share: loss and gradient in one pass over the logits. `compiled_rows` says which tensors they take; torch.compile (which
fuses for itself), functional transforms and other types or layouts are left to plain torch.
"""

import functools
import os
import warnings

from torch import Tensor
from torch.autograd import forward_ad

from fbeta.losses.kernels.compiled import CompiledRows
from fbeta.losses.memory import ordinary

#: Set FBETA_FUSED=0 to stay with plain torch.
ENABLED = os.environ.get("FBETA_FUSED", "1") != "0"


def compiled_rows(
    z: Tensor, y: Tensor, w: Tensor | None, ignore_index: int | None = None, *, check: bool = False
) -> CompiledRows | None:
    """Rows that a compiled kernel takes as they are, or None for plain torch.

    `check` looks at the values of targets and weights where that costs nothing, which is on the CPU.
    """
    if not ENABLED or not ordinary(z, y, w) or forward_ad._current_level >= 0:
        return None
    if y.requires_grad or (w is not None and w.requires_grad):
        return None  # kernels know no gradient by targets or weights
    if z.is_neg() or y.is_neg() or (w is not None and w.is_neg()):
        return None  # torch's negative bit: memory says the opposite
    rows = _cpu() if z.is_cpu else _cuda() if z.is_cuda else None
    return rows(z, y, w, ignore_index, check) if rows is not None and rows.supports(z, y, w) else None


@functools.cache
def _cpu() -> type[CompiledRows] | None:
    from fbeta.losses.kernels.cpu import CpuRows, available

    return CpuRows if available() else None


@functools.cache
def _cuda() -> type[CompiledRows] | None:
    try:
        from fbeta.losses.kernels.cuda import CudaRows
    except ImportError:
        warnings.warn("Triton is not installed: losses on CUDA run in plain torch, which is slower.", stacklevel=2)
        return None
    return CudaRows
