"""Numbers at the edge: infinite, huge and subnormal logits and weights give the limit, the same on every path."""

import functools
import math

import pytest
import torch

from catalogue import COSTLY, KINDS, LOSSES, LossCase
from fbeta import Accuracy, FBeta, Kappa, SoftLoss, SurrogateLoss, TangentLoss
from fbeta.losses import kernels

DTYPES = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
#: Stand-ins for infinity in double precision: beyond them nothing but straight lines is left.
FAR, FARTHER = 1e5, 2e5
ELEMENTS = [c for c in LOSSES if c.per_element]
SETS = [c for c in LOSSES if not c.per_element]
SOME_SETS = [c if c.id in KINDS else pytest.param(c, marks=pytest.mark.slow) for c in SETS]
SUBSETS = {
    "all": lambda z, y: z == z,
    "called": lambda z, y: z > 0,
    "left": lambda z, y: z < 0,
    "right": lambda z, y: (z > 0) == (y > 0),
    "wrong": lambda z, y: (z > 0) != (y > 0),
    "infinite": lambda z, y: z.isinf(),
    "plus": lambda z, y: z == math.inf,
    "minus": lambda z, y: z == -math.inf,
}
WEIGHTS = ["none", "zeros", "huge", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("ones", "subnormal"))]


def subnormal(dtype):
    """The smallest number of a type above zero."""
    return torch.finfo(dtype).smallest_normal * torch.finfo(dtype).eps


def edges(dtype):
    """Every logit at the edge, as a negative and as a positive."""
    z = [math.inf, 1e4, 100.0, 88.0, 0.0, subnormal(dtype)]
    z = torch.tensor([s * x for x in z for s in (1, -1)], dtype=torch.float64).to(dtype)
    return z.repeat(2), torch.arange(2).repeat_interleave(len(z)).to(dtype)


def row_weights(kind, n, dtype):
    """Weights of rows, in at least single precision as kernels read them; None if there are none."""
    w = torch.ones(n, dtype=torch.promote_types(dtype, torch.float32))
    if kind == "none":
        return None
    if kind == "zeros":
        w[::3] = 0.0
    return w * {"subnormal": subnormal(w.dtype), "huge": torch.finfo(w.dtype).max / 4}.get(kind, 1.0)


def relative(w):
    """The same weights in double precision, the largest being one."""
    return w.double() / w.double().max()


def slope(loss, z, *rows):
    """A loss, and the gradient of its sum by the logits."""
    z = z.clone().requires_grad_()
    value = loss(z, *rows)
    (gradient,) = torch.autograd.grad(value.sum(), z)
    return value.detach(), gradient


@functools.cache
def limit(case, dtype, subset, zeros=False):
    """Value and gradient in double precision, infinite logits being approached; elements if the loss has any."""
    z, y = edges(dtype)
    z, y = (x[SUBSETS[subset](z, y)].double() for x in (z, y))
    loss = case.make(reduction="none" if case.per_element else "mean").eval()
    w = relative(row_weights("zeros" if zeros else "ones", len(z), torch.float64))
    (near, gradient), (far, _) = (slope(loss, z.clamp(-end, end), y, w) for end in (FAR, FARTHER))
    assert near.isfinite().all()
    assert gradient.isfinite().all()
    return torch.where((far - near).abs() > 1e-3 * FAR, torch.inf * (far - near).sign(), near), gradient


def close(got, wanted, size=1.0):
    """A value or a gradient to the rounding of its type; what its type does not hold is zero or infinite."""
    info = torch.finfo(got.dtype)
    rtol = 2e-6 if got.dtype == torch.float32 else 4 * info.eps
    wanted = torch.where(wanted.abs() > info.max, torch.inf * wanted.sign(), wanted)
    atol = size * max(rtol * 1e-1, info.smallest_normal) + subnormal(got.dtype)
    torch.testing.assert_close(got.double(), wanted, rtol=rtol, atol=atol)


#: Paths and types: compiled kernels take single precision and bfloat16.
PLACES = [("fused", torch.float32), ("plain", torch.float32)]
OTHERS = [("fused", torch.bfloat16), *(("plain", t) for t in DTYPES if t != torch.float32)]


def _named(place):
    return "-".join(map(str, place))


@pytest.fixture(params=[*PLACES, *(pytest.param(p, marks=pytest.mark.slow) for p in OTHERS)], ids=_named)
def dtype(request, monkeypatch):
    """The type of logits, on a path with or without compiled kernels."""
    monkeypatch.setattr(kernels, "ENABLED", request.param[0] == "fused")
    return request.param[1]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("case", ELEMENTS, ids=str)
def test_every_element_is_the_limit(case, dtype):
    """As elements, one row at a time (compiled where there is a kernel), under a transform, and in columns."""
    z, y = edges(dtype)
    value, gradient = limit(case, dtype, "all")
    found = {"none": slope(case.make(reduction="none"), z, y)}
    loss = case.make(reduction="sum").eval()
    alone = [slope(loss, z[i : i + 1], y[i : i + 1]) for i in range(len(z))]
    found["alone"] = torch.stack([v for v, _ in alone]), torch.cat([g for _, g in alone])
    elements, high = case.make().elements(), torch.promote_types(dtype, torch.float32)
    by_row = torch.func.vmap(torch.func.grad_and_value(lambda z, y: elements(z.to(high), y.to(high))))
    found["transformed"] = by_row(z, y)[::-1]
    columns = case.make(reduction="none", task="multilabel", num_labels=2)
    found["columns"] = tuple(x.T.flatten() for x in slope(columns, z.reshape(2, -1).T, y.reshape(2, -1).T))
    for got in found.values():
        close(got[0], value)
        close(got[1], gradient)


@pytest.mark.parametrize("kind", WEIGHTS)
@pytest.mark.parametrize("case", ELEMENTS, ids=str)
def test_weighted_rows_reduce_to_the_limit(case, kind, dtype):
    """A row of no weight is left out, even of an infinite loss; a mean has no scale of weights."""
    z, y = edges(dtype)
    every, slopes = limit(case, dtype, "all")
    for kept in (every.isfinite(), every == every):
        given = row_weights(kind, int(kept.sum()), dtype)
        w, unit = (kept[kept].double(), 1.0) if given is None else (relative(given), float(given.max()))
        value, gradient = torch.where(w == 0, 0.0, w * every[kept]), w * slopes[kept]
        size = float(value.nan_to_num(posinf=0).abs().sum())
        rows = (z[kept], y[kept]) if given is None else (z[kept], y[kept], given)
        got = slope(case.make(reduction="mean"), *rows)
        close(got[0], value.sum() / w.sum(), size=size / w.sum())
        close(got[1], gradient / w.sum())
        got = slope(case.make(reduction="none"), *rows)
        close(got[0], unit * value, size=unit)
        if kind != "huge":  # else sums, and a weight times a class weight, are beyond the type
            close(got[1], unit * gradient, size=unit)
            got = slope(case.make(reduction="sum"), *rows)
            close(got[0], unit * value.sum(), size=unit * size)
            close(got[1], unit * gradient, size=unit)


@pytest.mark.parametrize("kind", WEIGHTS)
@pytest.mark.parametrize("case", SOME_SETS, ids=str)
def test_sets_have_the_limit(case, kind, dtype):
    """Of all rows, and of those that are called positive, negative, right or wrong."""
    if dtype == torch.float64 and "memory" in case.id and kind in ("subnormal", "huge"):
        pytest.skip("a memory counts rows in double precision, which ends here")
    z, y = edges(dtype)
    for subset, pick in SUBSETS.items():
        kept = pick(z, y)
        given = row_weights(kind, int(kept.sum()), dtype)
        value, gradient = limit(case, dtype, subset, kind == "zeros")
        got = slope(case.make(), z[kept], *((y[kept],) if given is None else (y[kept], given)))
        close(got[0], value)
        close(got[1], gradient)


def curvature(loss, z, *rows):
    """The second derivative of a loss, summed over the logits: plain torch's, on every path."""
    z = z.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(loss(z, *rows).sum(), z, create_graph=True)
    return torch.autograd.grad(gradient.sum(), z)[0]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("case", COSTLY, ids=str)
def test_second_derivatives_are_the_limit(case, dtype):
    z, y = edges(dtype)
    for pick in SUBSETS.values():
        kept = pick(z, y)
        for reduction in ("none", "mean") if case.per_element else ("mean",):
            loss = case.make(reduction=reduction).eval()
            wanted = curvature(loss, z[kept].double().clamp(-FAR, FAR), y[kept].double())
            assert wanted.isfinite().all()
            close(curvature(loss, z[kept], y[kept]), wanted, size=10)


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_a_loss_without_a_share_is_left_out(share):
    """Of a blend, even where that loss is infinite."""
    case = LossCase("blend", lambda **k: SurrogateLoss(Accuracy(), prevalence=0.1, blend=share, **k))
    z, y = edges(torch.float32)
    for got in (slope(case.make(reduction="none"), z, y), slope(case.make(reduction="sum"), z[:1], y[:1])):
        for found, wanted in zip(got, limit(case, torch.float32, "all"), strict=True):
            close(found, wanted if found.shape == wanted.shape else wanted[:1].reshape(found.shape))


def test_columns_have_limits_of_their_own():
    """Anchors that are near, far, beyond or at infinity, side by side."""
    z, y = edges(torch.float32)
    rates = [0.001, 0.3, 0.49, 0.5, 0.51, 0.9]
    together = SurrogateLoss(Kappa(), rates, task="multilabel", num_labels=6, reduction="none")
    value, gradient = slope(together, *(x[:, None].repeat(1, 6) for x in (z, y)))
    for k, p in enumerate(rates):
        case = LossCase(f"kappa-{p}", lambda p=p, **options: SurrogateLoss(Kappa(), p, **options))
        wanted = limit(case, torch.float32, "all")
        close(value[:, k], wanted[0], size=10)
        close(gradient[:, k], wanted[1])


@pytest.mark.parametrize("kind", WEIGHTS)
def test_every_path_counts_the_same(kind):
    """Also weights that single precision cannot add up."""
    z, y = edges(torch.float32)
    w = row_weights(kind, len(z), torch.float32)
    counts = []
    for compiled in (True, False):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(kernels, "ENABLED", compiled)
            loss = TangentLoss(FBeta(1))
            loss(z.clone().requires_grad_(), y, w)
            counts.append(loss.running.counts)
    torch.testing.assert_close(*counts, rtol=1e-6, atol=0)
    assert counts[0].sum().item() == pytest.approx(len(z) if w is None else w.double().sum().item(), rel=1e-6)


@pytest.mark.parametrize("case", LOSSES, ids=str)
def test_nan_stays_nan_even_without_weight(case, dtype):
    """Gradient scaling relies on seeing it."""
    z, y = edges(dtype)
    z[3], w = math.nan, torch.ones(len(z))
    w[3] = 0.0
    assert case.make()(z, y, w).isnan()


@pytest.mark.parametrize("least", [1e-30, 1e-36, 1e-41])
def test_a_class_that_weighs_next_to_nothing_is_the_same_on_both_paths(least, monkeypatch):
    """At a told prevalence its slope is one over its weight: beyond 1e38 single precision has no number for it."""
    y = (torch.arange(33) < 4).float()
    weight, found = torch.where(y == 1, least, 0.5), []
    for fused in ("1", "0"):
        monkeypatch.setenv("FBETA_FUSED", fused)
        z = torch.linspace(-3, 3, 33, requires_grad=True)
        SoftLoss(FBeta(1), prevalence=0.1)(z, y, weight).backward()
        found.append(z.grad)
    assert least < 1e-38 or found[0].isfinite().all()
    torch.testing.assert_close(*found, rtol=1e-4, atol=1e-7, equal_nan=True)
