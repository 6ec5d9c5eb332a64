# mypy: disable-error-code="no-untyped-def"
"""Fused kernels for CUDA, in Triton: loss and gradient in one pass over the logits, sums in another few bytes.

Each function has a twin of the same name in `cpu.py`. Nothing here reads a value back to the host: costs, sums
and the incoming gradient stay on the device. Every program adds up its share in registers and writes one partial
sum, so that the result does not depend on the order in which programs run.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton.language.extra import libdevice

from fbeta.losses.kernels import scalar
from fbeta.losses.surrogate import Reach
from fbeta.metrics import Metric

BLOCK = 1024
#: Programs per multiprocessor: enough to hide memory latency, few enough for a short list of partial sums.
WAVES = 8

_PROGRAMS: dict[torch.device, int] = {}


def supports(z: Tensor, y: Tensor, w: Tensor | None) -> bool:
    """Whether the kernels take these tensors as they are.

    Not float16: a mean over many rows has gradients below its smallest number until a scaler multiplies them.
    """
    return (
        z.dtype in (torch.float32, torch.bfloat16, torch.float64)
        and z.is_contiguous()
        and y.is_contiguous()
        and not y.is_complex()
        and (w is None or w.is_contiguous())
    )


def available() -> bool:
    """Whether kernels can be built here (this module imports only where Triton is installed)."""
    return torch.cuda.is_available()


def _grid(z: Tensor) -> int:
    if z.device not in _PROGRAMS:
        count: int = torch.cuda.get_device_properties(z.device).multi_processor_count
        _PROGRAMS[z.device] = WAVES * count
    return max(1, min(-(-z.numel() // BLOCK), _PROGRAMS[z.device]))


@triton.jit
def _load(
    z_ptr, y_ptr, w_ptr, i, mask, ignore, HAS_W: tl.constexpr, HAS_IGNORE: tl.constexpr, REAL: tl.constexpr
):
    """Logits, targets and weights of a block, in the type of the arithmetic; ignored elements weigh nothing."""
    z = tl.load(z_ptr + i, mask=mask, other=0.0).to(REAL)
    y = tl.load(y_ptr + i, mask=mask, other=0).to(REAL)
    w = tl.where(mask, 1.0, 0.0).to(REAL)
    if HAS_W:
        w = tl.load(w_ptr + i, mask=mask, other=0.0).to(REAL)
    if HAS_IGNORE:
        skip = y == ignore
        w = tl.where(skip, 0.0, w)
        y = tl.where(skip, 0.0, y)
        z = tl.where(skip, 0.0, z)
    return z, y, w


@triton.jit
def _log(x, REAL: tl.constexpr):
    """Natural logarithm; in single precision by the hardware's, off by at most 2e-7 near x = 1."""
    if tl.float64 == REAL:
        result = tl.log(x)
    else:
        result = 0.6931471805599453 * tl.inline_asm_elementwise(
            "lg2.approx.f32 $0, $1;", "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1
        )
    return result


@triton.jit
def _log1p(e, one, REAL: tl.constexpr):
    """log(1 + e) for e in [0, 1], given one = 1 + e; a series keeps the digits of a small e."""
    if tl.float64 == REAL:
        result = libdevice.log1p(e)
    else:
        result = tl.where(e < 0.002, e * (1.0 - e * (0.5 - e * 0.33333333)), _log(one, REAL))
    return result


@triton.jit
def _rise(
    z, e, one, r, l1, d, scale, q, offset,
    MIRROR: tl.constexpr, RELATIVE: tl.constexpr, ZERO: tl.constexpr, POWER: tl.constexpr, REAL: tl.constexpr,
):  # fmt: skip
    """Reach.of and its derivative by z (see `fbeta.losses.surrogate.Reach`), from parts that both classes share.

    e = exp(−|z|), one = 1 + e, r = 1/one and l1 = log(one).
    """
    low = z < 0
    if MIRROR:
        low = z > 0
    up = tl.where(low, e, 1.0)  # f = up·r
    if RELATIVE:
        f = up * r
        rise = libdevice.log1p(f / d)
        slope = e * r * r / (d + f)
    elif ZERO:
        near = tl.minimum(z, 0.0)
        if MIRROR:
            near = -tl.maximum(z, 0.0)
        rise = near - l1
        slope = tl.where(low, 1.0, e) * r
    else:
        a = up + d * one
        rise = _log(a, REAL) - l1
        slope = e * r / a
    if POWER:
        lift = libdevice.expm1(q * rise)
        slope = slope * tl.exp(q * rise)
        rise = lift / q
    if MIRROR:
        rise = -rise
    return scale * rise + offset, scale * slope


@triton.jit
def _surrogate(
    z_ptr, y_ptr, w_ptr, g_ptr, part_ptr, n, ignore, factor, w0, w1,
    d0, s0, q0, o0, d1, s1, q1, o1,
    HAS_W: tl.constexpr, HAS_IGNORE: tl.constexpr, GRAD: tl.constexpr, REAL: tl.constexpr, BIG: tl.constexpr,
    M0: tl.constexpr, R0: tl.constexpr, Z0: tl.constexpr, P0: tl.constexpr,
    M1: tl.constexpr, R1: tl.constexpr, Z1: tl.constexpr, P1: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    pid = tl.program_id(0)
    programs = tl.num_programs(0)
    if BIG:
        pid, programs = pid.to(tl.int64), programs.to(tl.int64)
    loss = tl.zeros([BLOCK], REAL)
    mass = tl.zeros([BLOCK], REAL)
    for start in range(pid * BLOCK, n, programs * BLOCK):
        i = start + tl.arange(0, BLOCK)
        mask = i < n
        z, y, w = _load(z_ptr, y_ptr, w_ptr, i, mask, ignore, HAS_W, HAS_IGNORE, REAL)
        e = tl.exp(-tl.abs(z))
        one = 1.0 + e
        r = 1.0 / one
        l1 = _log1p(e, one, REAL)
        rise, up = _rise(z, e, one, r, l1, d0, s0, q0, o0, M0, R0, Z0, P0, REAL)
        fall, down = _rise(z, e, one, r, l1, d1, s1, q1, o1, M1, R1, Z1, P1, REAL)
        a, b = w0 * (1.0 - y), w1 * y
        part = a * rise - b * fall
        g = factor * (a * up - b * down)
        if HAS_W or HAS_IGNORE:
            part, g = w * part, w * g
            mass += w
        else:
            part = tl.where(mask, part, 0.0)
        loss += part
        if GRAD:
            tl.store(g_ptr + i, g.to(g_ptr.dtype.element_ty), mask=mask)
    tl.store(part_ptr + pid, tl.sum(loss.to(tl.float64), 0))
    tl.store(part_ptr + programs + pid, tl.sum(mass.to(tl.float64), 0))


@triton.jit
def _tangent(
    z_ptr, y_ptr, w_ptr, g_ptr, part_ptr, cost_ptr, n, ignore, factor,
    HAS_W: tl.constexpr, HAS_IGNORE: tl.constexpr, GRAD: tl.constexpr, REAL: tl.constexpr, BIG: tl.constexpr,
    SOFT: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    pid = tl.program_id(0)
    programs = tl.num_programs(0)
    if BIG:
        pid, programs = pid.to(tl.int64), programs.to(tl.int64)
    c0, c1 = tl.load(cost_ptr).to(REAL), tl.load(cost_ptr + 1).to(REAL)
    q = tl.load(cost_ptr + 2).to(REAL)
    loss = tl.zeros([BLOCK], REAL)
    mass = tl.zeros([BLOCK], REAL)
    positive = tl.zeros([BLOCK], REAL)
    called = tl.zeros([BLOCK], REAL)
    hit = tl.zeros([BLOCK], REAL)
    for start in range(pid * BLOCK, n, programs * BLOCK):
        i = start + tl.arange(0, BLOCK)
        mask = i < n
        z, y, w = _load(z_ptr, y_ptr, w_ptr, i, mask, ignore, HAS_W, HAS_IGNORE, REAL)
        e = tl.exp(-tl.abs(z))
        one = 1.0 + e
        r = 1.0 / one
        er = e * r
        f = tl.where(z < 0, er, r)
        miss = tl.where(z < 0, r, er)  # 1 − f to full precision
        l1 = _log1p(e, one, REAL)
        a, b = c1 * y, c0 * (1.0 - y)
        if q < 1e-12:
            part = (a + b) * l1 + b * tl.maximum(z, 0.0) - a * tl.minimum(z, 0.0)
            g = b * f - a * miss
        else:
            log_f, log_miss = tl.minimum(z, 0.0) - l1, -tl.maximum(z, 0.0) - l1
            part = -(a * libdevice.expm1(q * log_f) + b * libdevice.expm1(q * log_miss)) / q
            g = b * tl.exp(q * log_miss) * f - a * tl.exp(q * log_f) * miss
        yes = f if SOFT else tl.where(z >= 0, 1.0, 0.0)
        weighed = w * y
        loss += w * part
        positive += weighed
        called += w * yes
        hit += weighed * yes
        if HAS_W or HAS_IGNORE:
            g = w * g
            mass += w
        if GRAD:
            tl.store(g_ptr + i, (factor * g).to(g_ptr.dtype.element_ty), mask=mask)
    tl.store(part_ptr + pid, tl.sum(loss.to(tl.float64), 0))
    tl.store(part_ptr + programs + pid, tl.sum(mass.to(tl.float64), 0))
    tl.store(part_ptr + 2 * programs + pid, tl.sum(hit.to(tl.float64), 0))
    tl.store(part_ptr + 3 * programs + pid, tl.sum(called.to(tl.float64), 0))
    tl.store(part_ptr + 4 * programs + pid, tl.sum(positive.to(tl.float64), 0))


@triton.jit
def _finish(part_ptr, out_ptr, programs, n, ROWS: tl.constexpr, KNOWN: tl.constexpr, WIDTH: tl.constexpr):
    """Add up partial sums; of a tangent pass turn (hit, called, positive) into the four cells."""
    i = tl.arange(0, WIDTH)
    mask = i < programs
    loss = tl.sum(tl.load(part_ptr + i, mask=mask, other=0.0), 0)
    mass = tl.sum(tl.load(part_ptr + programs + i, mask=mask, other=0.0), 0)
    if KNOWN:
        mass = n.to(tl.float64)
    tl.store(out_ptr, loss)
    tl.store(out_ptr + 1, mass)
    if ROWS == 5:
        hit = tl.sum(tl.load(part_ptr + 2 * programs + i, mask=mask, other=0.0), 0)
        called = tl.sum(tl.load(part_ptr + 3 * programs + i, mask=mask, other=0.0), 0)
        positive = tl.sum(tl.load(part_ptr + 4 * programs + i, mask=mask, other=0.0), 0)
        tl.store(out_ptr + 2, hit)
        tl.store(out_ptr + 3, called - hit)
        tl.store(out_ptr + 4, positive - hit)
        tl.store(out_ptr + 5, mass - positive - called + hit)


@triton.jit
def _add_up(part_ptr, out_ptr, programs, WIDTH: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, WIDTH)
    tl.store(out_ptr + row, tl.sum(tl.load(part_ptr + row * programs + i, mask=i < programs, other=0.0), 0))


@triton.jit
def _soft_counts(
    z_ptr, y_ptr, w_ptr, part_ptr, n, ignore,
    HAS_W: tl.constexpr, HAS_IGNORE: tl.constexpr, REAL: tl.constexpr, BIG: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    pid = tl.program_id(0)
    programs = tl.num_programs(0)
    if BIG:
        pid, programs = pid.to(tl.int64), programs.to(tl.int64)
    tp = tl.zeros([BLOCK], REAL)
    fp = tl.zeros([BLOCK], REAL)
    fn = tl.zeros([BLOCK], REAL)
    tn = tl.zeros([BLOCK], REAL)
    for start in range(pid * BLOCK, n, programs * BLOCK):
        i = start + tl.arange(0, BLOCK)
        mask = i < n
        z, y, w = _load(z_ptr, y_ptr, w_ptr, i, mask, ignore, HAS_W, HAS_IGNORE, REAL)
        e = tl.exp(-tl.abs(z))
        r = 1.0 / (1.0 + e)
        er = e * r
        yes = tl.where(z < 0, er, r)
        no = tl.where(z < 0, r, er)
        a, b = w * y, w * (1.0 - y)
        tp += a * yes
        fp += b * yes
        fn += a * no
        tn += b * no
    tl.store(part_ptr + pid, tl.sum(tp.to(tl.float64), 0))
    tl.store(part_ptr + programs + pid, tl.sum(fp.to(tl.float64), 0))
    tl.store(part_ptr + 2 * programs + pid, tl.sum(fn.to(tl.float64), 0))
    tl.store(part_ptr + 3 * programs + pid, tl.sum(tn.to(tl.float64), 0))


@triton.jit
def _soft_grad(
    z_ptr, y_ptr, w_ptr, g_ptr, k_ptr, n, ignore,
    HAS_W: tl.constexpr, HAS_IGNORE: tl.constexpr, REAL: tl.constexpr, BIG: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    pid = tl.program_id(0)
    if BIG:
        pid = pid.to(tl.int64)
    i = pid * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    k1, k0 = tl.load(k_ptr).to(REAL), tl.load(k_ptr + 1).to(REAL)
    z, y, w = _load(z_ptr, y_ptr, w_ptr, i, mask, ignore, HAS_W, HAS_IGNORE, REAL)
    e = tl.exp(-tl.abs(z))
    one = 1.0 + e
    g = w * (y * k1 + (1.0 - y) * k0) * (e / (one * one))
    tl.store(g_ptr + i, g.to(g_ptr.dtype.element_ty), mask=mask)


@triton.jit
def _scale(g_ptr, by_ptr, n, BIG: tl.constexpr, BLOCK: tl.constexpr):
    by = tl.load(by_ptr)
    # The usual incoming gradient is 1: then nothing is read or written.
    if by != 1.0:
        pid = tl.program_id(0)
        programs = tl.num_programs(0)
        if BIG:
            pid, programs = pid.to(tl.int64), programs.to(tl.int64)
        for start in range(pid * BLOCK, n, programs * BLOCK):
            i = start + tl.arange(0, BLOCK)
            mask = i < n
            g = tl.load(g_ptr + i, mask=mask)
            tl.store(g_ptr + i, (g.to(by.dtype) * by).to(g_ptr.dtype.element_ty), mask=mask)


@triton.jit
def _advance(counts_ptr, sums_ptr, memory, damping, FORGETS: tl.constexpr):
    """One step of RunningConfusion: C ← max(e^(−P/memory), damping)·C + step, unless the step is not finite."""
    i = tl.arange(0, 4)
    found = tl.load(sums_ptr + 2 + i)
    old = tl.load(counts_ptr + i)
    positives = tl.load(sums_ptr + 2) + tl.load(sums_ptr + 4)
    total = tl.sum(found, 0)
    keep = 1.0
    if FORGETS:
        keep = tl.maximum(tl.exp(-positives / memory), damping)
    fine = tl.abs(total) < float("inf")
    tl.store(counts_ptr + i, tl.where(fine, keep * old + found, old))


def _common(z: Tensor, w: Tensor | None, ignore_index: int | None) -> dict[str, Any]:
    return {
        "HAS_W": w is not None,
        "HAS_IGNORE": ignore_index is not None,
        "REAL": tl.float64 if z.dtype == torch.float64 else tl.float32,
        "BIG": z.numel() >= 2**30,  # offsets then need 64 bits
        "BLOCK": BLOCK,
    }


def _total(parts: Tensor, n: int, known: bool, rows: int) -> Tensor:
    sums = torch.empty(2 if rows == 2 else 6, dtype=torch.float64, device=parts.device)
    programs = parts.shape[1]
    width = triton.next_power_of_2(programs)
    _finish[(1,)](parts, sums, programs, n, ROWS=rows, KNOWN=known, WIDTH=width)
    return sums


def surrogate(
    z: Tensor,
    y: Tensor,
    w: Tensor | None,
    ignore_index: int | None,
    negative: Reach,
    positive: Reach,
    weights: tuple[float, float],
    factor: float,
    grad: bool = True,
) -> tuple[Tensor, Tensor | None]:
    """Σwℓ and Σw of the surrogate loss, and factor·w·∂ℓ/∂z; see `surrogate_loss`.

    Shape: `z`, `y`, `w` alike; sums ``(2,)``; gradient as `z`.
    """
    programs = _grid(z)
    parts = torch.empty(2, programs, dtype=torch.float64, device=z.device)
    g = torch.empty_like(z) if grad else None
    flags: dict[str, Any] = {}
    numbers: list[float] = []
    for k, r in enumerate((negative, positive)):
        sign, d, relative, scale, q, offset = (float(x) for x in r)
        numbers += [d, scale, q, offset]
        flags |= {f"M{k}": sign < 0, f"R{k}": relative > 0, f"Z{k}": d == 0, f"P{k}": q >= 1e-12}
    with torch.cuda.device(z.device):
        _surrogate[(programs,)](
            z, y, w, g, parts, z.numel(), ignore_index or 0, factor, *weights, *numbers,
            GRAD=grad, **flags, **_common(z, w, ignore_index),
        )  # fmt: skip
        return _total(parts, z.numel(), w is None and ignore_index is None, 2), g


def tangent(
    z: Tensor,
    y: Tensor,
    w: Tensor | None,
    ignore_index: int | None,
    costs: Tensor,
    factor: float,
    soft: bool,
    grad: bool = True,
) -> tuple[Tensor, Tensor | None]:
    """Σwℓ, Σw, TP, FP, FN, TN under the tangent loss, and factor·w·∂ℓ/∂z; `costs` is (c₀, c₁, q).

    Shape: `z`, `y`, `w` alike; `costs` ``(3,)`` on the device; sums ``(6,)``; gradient as `z`.
    """
    programs = _grid(z)
    parts = torch.empty(5, programs, dtype=torch.float64, device=z.device)
    g = torch.empty_like(z) if grad else None
    with torch.cuda.device(z.device):
        _tangent[(programs,)](
            z, y, w, g, parts, costs, z.numel(), ignore_index or 0, factor,
            GRAD=grad, SOFT=soft, **_common(z, w, ignore_index),
        )  # fmt: skip
        return _total(parts, z.numel(), w is None and ignore_index is None, 5), g


def soft_counts(z: Tensor, y: Tensor, w: Tensor | None, ignore_index: int | None) -> Tensor:
    """Soft TP, FP, FN, TN.

    Shape: `z`, `y`, `w` alike; counts ``(4,)``.
    """
    programs = _grid(z)
    parts = torch.empty(4, programs, dtype=torch.float64, device=z.device)
    with torch.cuda.device(z.device):
        _soft_counts[(programs,)](z, y, w, parts, z.numel(), ignore_index or 0, **_common(z, w, ignore_index))
        sums = torch.empty(4, dtype=torch.float64, device=z.device)
        _add_up[(4,)](parts, sums, programs, WIDTH=triton.next_power_of_2(programs))
    return sums


def soft_grad(z: Tensor, y: Tensor, w: Tensor | None, ignore_index: int | None, k: Tensor) -> Tensor:
    """Gradient of a function of soft counts: w·f(1−f)·(k₁ on positives, k₀ on negatives).

    Shape: `z`, `y`, `w` alike; `k` = (k₁, k₀) ``(2,)`` on the device; gradient as `z`.
    """
    g = torch.empty_like(z)
    with torch.cuda.device(z.device):
        _soft_grad[(max(1, triton.cdiv(z.numel(), BLOCK)),)](
            z, y, w, g, k, z.numel(), ignore_index or 0, **_common(z, w, ignore_index)
        )
    return g


def scale_(g: Tensor, by: Tensor) -> Tensor:
    """Multiply in place by a number on the device; nothing is touched where it is 1."""
    if g.numel():
        with torch.cuda.device(g.device):
            _scale[(_grid(g),)](g, by, g.numel(), BIG=g.numel() >= 2**30, BLOCK=BLOCK)
    return g


def costs(loss: Any) -> Tensor | None:
    """(c₀, c₁, q) of a `TangentLoss` with one operating point, in one kernel; None if its metric is not traced."""
    kernels = scalar.kernels(loss.target_metric)
    if kernels is None:
        return None
    counts = loss.running.counts
    seen = (loss.seen or loss.running).counts
    out = torch.empty(3, dtype=torch.float64, device=counts.device)
    with torch.cuda.device(counts.device):
        kernels["costs_kernel"][(1,)](
            counts, seen, loss.population, loss.stream, loss.fresh, loss._q, out, loss.warmup, loss.epsilon,
            HAS_POPULATION=loss.population is not None, HAS_STREAM=loss.stream is not None,
        )  # fmt: skip
    return out


def advance(running: Any, sums: Tensor) -> bool:
    """Fold the counts of a pass into a `RunningConfusion` in one kernel; False if it waits for more micro-batches."""
    if running.accumulate != 1:
        return False
    with torch.cuda.device(sums.device):
        _advance[(1,)](
            running.counts, sums, running.memory or 1.0, running.damping, FORGETS=running.memory is not None
        )
    return True


def scores(metric: Metric) -> bool:
    """Whether the metric's formula could be traced, so that `score` has a kernel."""
    return scalar.kernels(metric) is not None


def score(metric: Metric, counts: Tensor, population: Tensor | None) -> Tensor:
    """1 − M of soft counts and its slopes (k₁, k₀) by the scores of a row of each class; see `scores`."""
    kernels = scalar.kernels(metric)
    assert kernels is not None
    out = torch.empty(3, dtype=torch.float64, device=counts.device)
    with torch.cuda.device(counts.device):
        kernels["score_kernel"][(1,)](counts, population, out, HAS_POPULATION=population is not None)
    return out
