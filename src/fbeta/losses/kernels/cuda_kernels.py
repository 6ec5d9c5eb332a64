# mypy: disable-error-code="no-untyped-def"
"""Triton kernels over rows: loss and gradient in one pass over the logits, sums in another few bytes.

Every program adds up its share in registers and writes one partial sum, so that the result does not depend on the
order in which programs run. All numbers but sizes come from the device's memory, in double precision.
"""

from __future__ import annotations

import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def _load(z_ptr, y_ptr, w_ptr, i, mask, ignore, HAS_W: tl.constexpr, HAS_IGNORE: tl.constexpr, REAL: tl.constexpr):
    """Logits, targets and weights of a block, in the type of the arithmetic; ignored elements weigh nothing."""
    z = tl.load(z_ptr + i, mask=mask, other=0.0).to(REAL)
    raw = tl.load(y_ptr + i, mask=mask, other=0)
    y = raw.to(REAL)
    w = tl.where(mask, 1.0, 0.0).to(REAL)
    if HAS_W:
        w = tl.load(w_ptr + i, mask=mask, other=0.0).to(REAL)
    if HAS_IGNORE:
        # Integers are compared as they are: a float does not hold every one.
        skip = raw == ignore if raw.dtype.is_int() else y == ignore
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
def _place(BIG: tl.constexpr):
    """Which program this is, and of how many."""
    pid, programs = tl.program_id(0), tl.num_programs(0)
    if BIG:
        pid, programs = pid.to(tl.int64), programs.to(tl.int64)
    return pid, programs


@triton.jit
def _unit(n, MEAN: tl.constexpr, REAL: tl.constexpr):
    """What a gradient is multiplied with: 1/n for a mean over all rows, to all digits of the type."""
    unit = tl.full([], 1.0, REAL)
    if MEAN:
        unit = unit / n
    return unit


@triton.jit
def _share(part, value, INFINITE: tl.constexpr):
    """part·value, where no part of an infinity is nothing; NaN stays NaN."""
    result = part * value
    if INFINITE:
        result = tl.where((part == 0.0) & (value == value), 0.0, result)
    return result


@triton.jit
def _term(
    z, e, one, r, l1, d, signed, scale, q, offset,
    OTHER: tl.constexpr, RELATIVE: tl.constexpr, ZERO: tl.constexpr, POWER: tl.constexpr, REAL: tl.constexpr,
):  # fmt: skip
    """The loss of one class and the size of its slope by z (see `AnchorTerm`), from parts that both classes share.

    e = exp(−|z|), one = 1 + e, r = 1/one and l1 = log(one). What matters is f, or 1 − f if OTHER.
    """
    low = z < 0
    if OTHER:
        low = z > 0
    up = tl.where(low, e, 1.0)  # the probability is up·r
    if RELATIVE:
        near = up * r
        value = libdevice.log1p(near / d)
        slope = e * r * r / (d + near)
    elif ZERO:
        below = tl.minimum(z, 0.0)
        if OTHER:
            below = -tl.maximum(z, 0.0)
        value = below - l1
        slope = tl.where(low, 1.0, e) * r
    else:
        a = up + d * one
        value = _log(a, REAL) - l1
        slope = e * r / a
    if POWER:
        lift = libdevice.expm1(q * value)
        slope = slope * tl.exp(q * value)
        value = lift / q
    return signed * value + offset, scale * slope


@triton.jit
def _numbers(term_ptr, unit, REAL: tl.constexpr):
    """Distance, signed scale, scale of the slope, q and offset of a term."""
    sign, d = tl.load(term_ptr).to(REAL), tl.load(term_ptr + 1).to(REAL)
    scale, q = tl.load(term_ptr + 3).to(REAL), tl.load(term_ptr + 4).to(REAL)
    return d, sign * scale, unit * scale, q, tl.load(term_ptr + 5).to(REAL)


@triton.jit
def surrogate(
    z_ptr, y_ptr, w_ptr, g_ptr, part_ptr, term_ptr, weight_ptr, n, ignore,
    HAS_W: tl.constexpr, HAS_IGNORE: tl.constexpr, GRAD: tl.constexpr, MEAN: tl.constexpr,
    REAL: tl.constexpr, BIG: tl.constexpr,
    O0: tl.constexpr, R0: tl.constexpr, Z0: tl.constexpr, P0: tl.constexpr,
    O1: tl.constexpr, R1: tl.constexpr, Z1: tl.constexpr, P1: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """Partial sums of wℓ and w, and the gradient of the surrogate loss; terms ``(2, 6)`` and weights ``(2,)``."""
    pid, programs = _place(BIG)
    w0, w1 = tl.load(weight_ptr).to(REAL), tl.load(weight_ptr + 1).to(REAL)
    unit = _unit(n, MEAN, REAL)
    d0, t0, s0, q0, o0 = _numbers(term_ptr, unit, REAL)
    d1, t1, s1, q1, o1 = _numbers(term_ptr + 6, unit, REAL)
    rows = pid * 0
    loss = tl.zeros([BLOCK], REAL)
    mass = tl.zeros([BLOCK], REAL)
    for start in range(pid * BLOCK, n, programs * BLOCK):
        i = start + tl.arange(0, BLOCK)
        mask = i < n
        rows += tl.minimum(n - start, BLOCK)
        z, y, w = _load(z_ptr, y_ptr, w_ptr, i, mask, ignore, HAS_W, HAS_IGNORE, REAL)
        e = tl.exp(-tl.abs(z))
        one = 1.0 + e
        r = 1.0 / one
        l1 = _log1p(e, one, REAL)
        alarmed, up = _term(z, e, one, r, l1, d0, t0, s0, q0, o0, O0, R0, Z0, P0, REAL)
        missed, down = _term(z, e, one, r, l1, d1, t1, s1, q1, o1, O1, R1, Z1, P1, REAL)
        a, b = w0 * (1.0 - y), w1 * y
        both = _share(a, alarmed, Z0 and not P0) + _share(b, missed, Z1 and not P1)
        loss += _share(w, both, HAS_W and ((Z0 and not P0) or (Z1 and not P1)))
        g = a * up - b * down
        if HAS_W or HAS_IGNORE:
            g = w * g
            mass += w
        if GRAD:
            tl.store(g_ptr + i, g.to(g_ptr.dtype.element_ty), mask=mask)
    tl.store(part_ptr + pid, tl.sum(loss.to(tl.float64), 0))
    tl.store(part_ptr + programs + pid, _mass(rows, mass, HAS_W or HAS_IGNORE))


@triton.jit
def _mass(rows, mass, WEIGHED: tl.constexpr):
    """Σw, which is the number of rows where they have no weights."""
    total = rows.to(tl.float64)
    if WEIGHED:
        total = tl.sum(mass.to(tl.float64), 0)
    return total


@triton.jit
def tangent(
    z_ptr, y_ptr, w_ptr, g_ptr, part_ptr, cost_ptr, n, ignore,
    HAS_W: tl.constexpr, HAS_IGNORE: tl.constexpr, GRAD: tl.constexpr, MEAN: tl.constexpr,
    REAL: tl.constexpr, BIG: tl.constexpr, SOFT: tl.constexpr, LINEAR: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Partial sums of wℓ, w and counts, and the gradient of the tangent loss; costs (c₀, c₁, q).

    LINEAR: q is 1, and either the counts or the gradient are wanted. Of hard decisions three sums give all four counts.
    """
    pid, programs = _place(BIG)
    c0, c1 = tl.load(cost_ptr).to(REAL), tl.load(cost_ptr + 1).to(REAL)
    q = tl.load(cost_ptr + 2).to(REAL)
    unit = _unit(n, MEAN, REAL)
    rows = pid * 0
    loss = tl.zeros([BLOCK], REAL)
    mass = tl.zeros([BLOCK], REAL)
    hit = tl.zeros([BLOCK], REAL)
    alarmed = tl.zeros([BLOCK], REAL)
    missed = tl.zeros([BLOCK], REAL)
    passed = tl.zeros([BLOCK], REAL)
    for start in range(pid * BLOCK, n, programs * BLOCK):
        i = start + tl.arange(0, BLOCK)
        mask = i < n
        rows += tl.minimum(n - start, BLOCK)
        z, y, w = _load(z_ptr, y_ptr, w_ptr, i, mask, ignore, HAS_W, HAS_IGNORE, REAL)
        e = tl.exp(-tl.abs(z))
        one = 1.0 + e
        r = 1.0 / one
        er = e * r
        f = tl.where(z < 0, er, r)
        miss = tl.where(z < 0, r, er)  # 1 − f to full precision
        a, b = c1 * y, c0 * (1.0 - y)
        if LINEAR:
            g = (b - a) * (er * r)
        else:
            l1 = _log1p(e, one, REAL)
            if q < 1e-12:
                part = (a + b) * l1 + _share(tl.where(z > 0, b, a), tl.abs(z), True)
                g = b * f - a * miss
            else:
                log_f, log_miss = tl.minimum(z, 0.0) - l1, -tl.maximum(z, 0.0) - l1
                part = -(a * libdevice.expm1(q * log_f) + b * libdevice.expm1(q * log_miss)) / q
                g = b * tl.exp(q * log_miss) * f - a * tl.exp(q * log_f) * miss
            loss += _share(w, part, HAS_W)
        if not LINEAR or not GRAD:
            positive, negative = w * y, w * (1.0 - y)
            if SOFT:
                hit += positive * f
                alarmed += negative * f
                missed += positive * miss
                passed += negative * miss
            else:
                hit += tl.where(z >= 0, positive, 0.0)
                alarmed += tl.where(z >= 0, negative, 0.0)
                missed += tl.where(z >= 0, 0.0, positive)
        if HAS_W or HAS_IGNORE:
            g = w * g
            mass += w
        if GRAD:
            tl.store(g_ptr + i, (unit * g).to(g_ptr.dtype.element_ty), mask=mask)
    if not LINEAR or not GRAD:
        total = _mass(rows, mass, HAS_W or HAS_IGNORE)
        tp, fp = tl.sum(hit.to(tl.float64), 0), tl.sum(alarmed.to(tl.float64), 0)
        fn, tn = tl.sum(missed.to(tl.float64), 0), tl.sum(passed.to(tl.float64), 0)
        if not SOFT:
            tn = total - tp - fp - fn
        tl.store(part_ptr + pid, tl.sum(loss.to(tl.float64), 0))
        tl.store(part_ptr + programs + pid, total)
        tl.store(part_ptr + 2 * programs + pid, tp)
        tl.store(part_ptr + 3 * programs + pid, fp)
        tl.store(part_ptr + 4 * programs + pid, fn)
        tl.store(part_ptr + 5 * programs + pid, tn)


@triton.jit
def add_up(part_ptr, out_ptr, programs, WIDTH: tl.constexpr):
    """Add up partial sums, a program per row."""
    row, i = tl.program_id(0), tl.arange(0, WIDTH)
    tl.store(out_ptr + row, tl.sum(tl.load(part_ptr + row * programs + i, mask=i < programs, other=0.0), 0))


@triton.jit
def scale(g_ptr, by_ptr, n, BIG: tl.constexpr, BLOCK: tl.constexpr):
    """Multiply in place by a number on the device."""
    by = tl.load(by_ptr)
    # The usual incoming gradient is 1: then nothing is read or written.
    if by != 1.0:
        pid, programs = _place(BIG)
        for start in range(pid * BLOCK, n, programs * BLOCK):
            i = start + tl.arange(0, BLOCK)
            mask = i < n
            g = tl.load(g_ptr + i, mask=mask)
            tl.store(g_ptr + i, (g.to(by.dtype) * by).to(g_ptr.dtype.element_ty), mask=mask)
