"""The compiled CPU losses equal the plain ones to rounding, on every machine level, type, size and thread count."""

import hashlib
import importlib.util
import math
import shutil
import subprocess
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace

import mpmath
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fbeta import Accuracy, BalancedAccuracy, Cost, FBeta, GMean, Jaccard, Kappa
from fbeta.losses import kernels, surrogate_loss, tangent_loss
from fbeta.losses.counting import cells, hard_decisions, soft_decisions
from fbeta.losses.kernels import cpu
from fbeta.losses.kernels.cpu import CpuRows
from fbeta.losses.surrogate import SurrogateElements
from fbeta.losses.tangent import TangentElements
from fbeta.losses.task import Reader
from fbeta.metrics import Anchors, AnchorTerm

ROOT = Path(__file__).resolve().parents[1]
COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")


def test_the_library_is_there_wherever_there_is_a_compiler():
    if COMPILER is None and not cpu.available():
        pytest.skip("no C compiler, so no library")
    assert cpu.available(), "build it: python hatch_build.py"
    compiled = cpu._library().fbeta_source().decode()
    sources = b"".join(path.read_bytes() for path in sorted(cpu.LIBRARY.parent.glob("cpu*.[ch]")))
    now = hashlib.sha256(sources).hexdigest()[:16]
    assert compiled == now, "the C sources have changed since they were compiled: python hatch_build.py"


needs_library = pytest.mark.skipif(not cpu.available(), reason="the library was not compiled")

METRICS = [
    *((m, p) for m in (FBeta(0.5), FBeta(1), FBeta(10), Jaccard()) for p in (1e-6, 0.1, 0.9)),
    *((Kappa(), p) for p in (1e-3, 0.1, 0.3, 0.49, 0.5, 0.51, 0.8)),
    *((m, 0.1) for m in (GMean(), Accuracy(), BalancedAccuracy(), Cost(fp=1, fn=20))),
]
SIZES = [0, 1, 2, 3, 15, 16, 17, 255, 257, 1023, 1024, 1025, 2500]


def both(anchors, q=0.0):
    return AnchorTerm.of(anchors, positive=False, q=q), AnchorTerm.of(anchors, positive=True, q=q)


def numbers(*values):
    return torch.tensor(values, dtype=torch.float64)


def ran(rows, elements, soft, factor, grad):
    sums, gradient = rows.run(elements.kernel, elements.numbers, soft, factor, grad)
    return torch.tensor(sums, dtype=torch.float64), gradient


def surrogate(z, y, w, ignore, terms, weights, factor=1.0, grad=True):
    """(Σwℓ, Σw) and the gradient, by the compiled surrogate."""
    elements = SurrogateElements(SimpleNamespace(plain=terms), weights)
    sums, gradient = ran(CpuRows(z, y, w, ignore), elements, False, factor, grad)
    return sums[:2], gradient


def tangent(z, y, w, ignore, costs, factor=1.0, soft=False, grad=True):
    """(Σwℓ, Σw, TP, FP, FN, TN) and the gradient, by the compiled tangent loss at costs (c₀, c₁, q)."""
    return ran(CpuRows(z, y, w, ignore), TangentElements(costs), soft, factor, grad)


def soft_counts(z, y, w, ignore):
    return tangent(z, y, w, ignore, (0.0, 0.0, 1.0), soft=True, grad=False)[0][2:]


def soft_grad(z, y, w, ignore, slopes):
    """w·f(1 − f)·(y·k₁ + (1 − y)·k₀): the gradient of the tangent loss with q = 1 at these slopes."""
    k1, k0 = slopes
    return tangent(z, y, w, ignore, (k0, -k1, 1.0))[1]


def rows(n, seed=0, spread=4.0):
    made = torch.Generator().manual_seed(seed)
    z = torch.randn(n, generator=made) * spread
    y = (torch.rand(n, generator=made) < 0.3).float()
    w = torch.rand(n, generator=made) * 2
    return z, y, w


def reference(function, z, y, w=None, factor=1.0):
    """Σwℓ, Σw and factor·w·∂ℓ/∂z of a plain function, in double precision."""
    batch = Reader().read(z.double().requires_grad_(), y, None if w is None else w.double())
    weighted = (batch.weight * function(batch.logits, batch.target)).sum()
    (grad,) = torch.autograd.grad(factor * weighted, batch.logits)
    return torch.stack([weighted, batch.weight.sum()]).detach(), grad


def close(got, wanted, z, scale=1.0, soft=False):
    """Sums to the rounding of their terms, gradients to a few units in the last place."""
    (sums, grad), (wanted_sums, wanted_grad) = got, wanted
    assert sums.dtype == torch.float64
    assert grad.dtype == z.dtype
    assert grad.shape == z.shape
    size = scale * max(1.0, float(wanted_sums[1])) * (1 + float(z.abs().max() if z.numel() else 0))
    torch.testing.assert_close(sums[:2], wanted_sums, rtol=1e-6, atol=2e-7 * size)
    # The two parts of a soft target may cancel, so there an element is as exact as its larger part.
    largest = float(wanted_grad.abs().max()) if soft and z.numel() else 1e-24
    torch.testing.assert_close(grad.double(), wanted_grad, rtol=2e-6, atol=1e-6 * largest)


@pytest.fixture(params=[1, 2, 3], ids=["baseline", "avx2", "avx512"])
def level(request):
    """Run on this machine level and the one below, too."""
    library = cpu._library()
    if library.fbeta_level(request.param) != request.param:
        library.fbeta_level(0)
        pytest.skip("this machine does not have it")
    yield request.param
    library.fbeta_level(0)


@pytest.fixture(params=[1, 2])
def threads(request):
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


@needs_library
@pytest.mark.parametrize(("metric", "p"), METRICS, ids=str)
@pytest.mark.parametrize("q", [0.0, 1e-9, 0.3, 1.0])
def test_surrogate_equals_the_plain_function(metric, p, q, level):
    terms = both(metric.anchors(p), q)
    z, y, w = rows(1100)
    for target, weight in ((y, None), (0.7 * y + 0.1, w)):
        got = surrogate(z, target, weight, None, terms, (1.25, 5.0), 0.1)
        wanted = reference(lambda z, y: surrogate_loss(z, y, terms, weights=(1.25, 5.0)), z, target, weight, factor=0.1)
        magnitude = max(abs(float(x)) for r in terms for x in (r.scale, r.offset, r.distance**r.q))
        close(got, wanted, z, 5 * magnitude, soft=target is not y)


@needs_library
@pytest.mark.parametrize("q", [0.0, 1e-13, 1e-9, 0.3, 1.0])
@pytest.mark.parametrize("soft", [False, True])
def test_tangent_equals_the_plain_function(q, soft, level):
    z, y, w = rows(1100)
    for target, weight in ((y, None), (0.7 * y + 0.1, w)):
        sums, grad = tangent(z, target, weight, None, (0.2, 0.8, q), 0.1, soft)
        wanted = reference(lambda z, y: tangent_loss(z, y, (0.2, 0.8), q), z, target, weight, factor=0.1)
        close((sums, grad), wanted, z, soft=target is not y)
        exact = Reader().read(z.double(), target, weight)
        counts = cells(exact, (soft_decisions if soft else hard_decisions)(exact.logits), columns=False)
        torch.testing.assert_close(sums[2:], counts, rtol=2e-7, atol=0)


@needs_library
def test_soft_counts_and_gradient_equal_the_plain_ones(level):
    z, y, w = rows(1100)
    for target, weight in ((y, None), (0.7 * y + 0.1, w)):
        batch = Reader().read(z.double().requires_grad_(), target, None if weight is None else weight.double())
        counts = cells(batch, soft_decisions(batch.logits), columns=False)
        torch.testing.assert_close(soft_counts(z, target, weight, None), counts.detach(), rtol=2e-7, atol=0)
        slopes = numbers(2.0, -0.5, 0.25, 1.0)
        (wanted,) = torch.autograd.grad((slopes * counts).sum(), batch.logits)
        got = soft_grad(z, target, weight, None, numbers(2.0 - 0.25, -0.5 - 1.0))
        torch.testing.assert_close(got.double(), wanted, rtol=2e-6, atol=1e-12)


def everything(z, y, w, ignore_index):
    """All functions on one input: (sums, gradient) of each, the plain functions beside them."""
    cases = []
    for terms in (both(FBeta(2).anchors(0.1)), both(Kappa().anchors(0.4)), both(GMean().anchors(0.1), 0.3)):
        cases.append(
            (
                surrogate(z, y, w, ignore_index, terms, (1.25, 5.0), 0.5),
                lambda z, y, terms=terms: surrogate_loss(z, y, terms, weights=(1.25, 5.0)),
            )
        )
    for q in (0.0, 0.4):
        for soft in (False, True):
            sums, grad = tangent(z, y, w, ignore_index, (0.2, 0.8, q), 0.5, soft)
            cases.append(((sums, grad), lambda z, y, q=q: tangent_loss(z, y, (0.2, 0.8), q)))
    return cases


@needs_library
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("weighted", [False, True])
def test_every_size_and_type(n, weighted, level):
    z, y, w = rows(n, seed=n)
    w = w if weighted else None
    types = (torch.bool, torch.uint8, torch.int32, torch.int64, torch.float32, torch.bfloat16)
    first = None
    for dtype in types:
        target = y.to(dtype)
        assert CpuRows.supports(z, target, w)
        cases = everything(z, target, w, None)
        counts = soft_counts(z, target, w, None)
        flat = [x for (sums, grad), _ in cases for x in (sums, grad)] + [counts]
        for got, function in cases:
            close(got, reference(function, z, y, w, factor=0.5), z, 20)
        first = first or flat
        # The type of the target changes no bit.
        assert all(torch.equal(a, b) for a, b in zip(first, flat, strict=True))


@needs_library
@pytest.mark.parametrize("n", [1, 17, 1025, 2500])
@pytest.mark.parametrize(
    ("dtype", "ignore"),
    [
        (torch.int64, -100),
        (torch.int64, 2**40 + 1),
        (torch.int32, -1),
        (torch.uint8, 255),
        (torch.uint8, -1),
        (torch.float32, -1),
        (torch.bfloat16, -100),
        (torch.bool, 1),
        (torch.bool, -100),
        (torch.int32, 2**32),
    ],
    ids=str,
)
def test_ignored_elements_count_nowhere(n, dtype, ignore, level):
    z, y, w = rows(n, seed=n)
    target = y.to(dtype)
    skip = torch.rand(n, generator=torch.Generator().manual_seed(1)) < 0.3
    if dtype == torch.bool:
        skip = target == ignore
    elif ignore == 2**32 or (dtype, ignore) == (torch.uint8, -1):
        skip = torch.zeros_like(skip)  # no value of this type
    else:
        target[skip] = ignore
    z[skip] = math.nan  # what is ignored may hold anything
    for weight in (None, w):
        for (sums, grad), function in everything(z, target, weight, ignore):
            kept = reference(function, z[~skip], target[~skip], None if weight is None else weight[~skip], factor=0.5)
            close((sums, grad[~skip]), kept, z[~skip], 20)
            assert (grad[skip] == 0).all()
        counts = soft_counts(z, target, weight, ignore)
        alone = soft_counts(z[~skip], target[~skip], None if weight is None else weight[~skip], None)
        torch.testing.assert_close(counts, alone, rtol=1e-14, atol=0)
        got = soft_grad(z, target, weight, ignore, numbers(2.0, -1.0))
        assert (got[skip] == 0).all()
        assert (got[~skip].isfinite()).all()


@needs_library
def test_bfloat16_logits_are_read_as_they_are(level):
    z, y, w = rows(2500)
    low = z.bfloat16()
    for (sums, grad), (same_sums, same_grad) in zip(
        *([got for got, _ in everything(x, y, w, None)] for x in (low, low.float())), strict=True
    ):
        assert torch.equal(sums, same_sums)
        assert torch.equal(grad, same_grad.bfloat16())
    assert torch.equal(
        soft_grad(low, y, w, None, numbers(1, 2)), soft_grad(low.float(), y, w, None, numbers(1, 2)).bfloat16()
    )
    assert torch.equal(soft_counts(low, y, w, None), soft_counts(low.float(), y, w, None))


@needs_library
def test_threads_change_rounding_only_and_runs_nothing(threads):
    z, y, w = rows(100_003)
    first = everything(z, y, w, None)
    counts = soft_counts(z, y, w, None)
    for got, function in first:
        close(got, reference(function, z, y, w, factor=0.5), z, 20)
    for _ in range(3):
        for (got, _), (again, _) in zip(first, everything(z, y, w, None), strict=True):
            assert torch.equal(got[0], again[0])
            assert torch.equal(got[1], again[1])
        assert torch.equal(counts, soft_counts(z, y, w, None))
    torch.set_num_threads(1)
    for (got, _), (alone, _) in zip(first, everything(z, y, w, None), strict=True):
        torch.testing.assert_close(got[0], alone[0], rtol=1e-12, atol=1e-9)
        assert torch.equal(got[1], alone[1])


@needs_library
def test_threads_are_torchs_own():
    assert cpu._library().fbeta_threads() == 1, "no OpenMP runtime found: calls run on one thread"


@needs_library
@pytest.mark.parametrize("place", [0, 5, 40])
def test_nan_reaches_loss_and_gradient_of_its_element_alone(place, level):
    z, y, w = rows(50)
    y[place] = 1.0
    clean = everything(z, y, w, None)
    z[place] = math.nan
    for ((sums, grad), _), ((_, before), _) in zip(everything(z, y, w, None), clean, strict=True):
        assert sums[0].isnan()
        assert sums[1].isfinite()
        assert grad[place].isnan()
        others = torch.arange(50) != place
        assert torch.equal(grad[others], before[others])
    assert soft_counts(z, y, w, None).isnan().any()
    assert soft_grad(z, y, w, None, numbers(1.0, 2.0)).isnan().sum() == 1


@needs_library
def test_infinite_logits_give_the_limit(level):
    """Also in places where the plain path multiplies infinity by a weight of zero."""
    z = torch.tensor([math.inf, -math.inf] * 20)
    for y in (torch.ones(40), torch.zeros(40), (torch.arange(40) % 2 == 0).float()):
        sums, grad = tangent(z, y, None, None, (0.2, 0.8, 0.0), 1.0)
        right = bool(((z > 0) == (y > 0)).all())
        assert sums[0] == (0.0 if right else math.inf)
        assert torch.equal(grad, torch.where(y > 0, torch.where(z > 0, 0.0, -0.8), torch.where(z > 0, 0.2, 0.0)))
        sums, grad = tangent(z, y, None, None, (0.2, 0.8, 0.5), 1.0)
        wrong = ((z > 0) != (y > 0)).double() * torch.where(y > 0, 0.8, 0.2) / 0.5
        torch.testing.assert_close(sums[0], wrong.sum(), rtol=1e-6, atol=0)
        assert grad.isfinite().all()
        sums, grad = surrogate(z, y, None, None, both(FBeta(1).anchors(0.1)), (1.0, 1.0))
        assert not sums[0].isnan()
        assert sums[0].isfinite() == (not bool(((z < 0) & (y > 0)).any()))
        assert grad.isfinite().all()
        for terms in (both(GMean().anchors(0.1)), both(Kappa().anchors(0.4)), both(Accuracy().anchors(0.1))):
            sums, grad = surrogate(z, y, None, None, terms, (1.0, 1.0))
            assert not sums[0].isnan()
            assert grad.isfinite().all()
        assert soft_counts(z, y, None, None).tolist() == [
            float(((z > 0) == called).logical_and((y > 0) == actual).sum())
            for called, actual in ((True, True), (True, False), (False, True), (False, False))
        ]
        assert (soft_grad(z, y, None, None, numbers(1.0, 2.0)) == 0).all()


# ---- accuracy against mpmath ----

prevalences = st.floats(1e-6, 1 - 1e-6) | st.sampled_from([1e-6, 0.5, 1 - 1e-6])
logits = st.floats(-1e4, 1e4) | st.floats(-30, 30) | st.sampled_from([-1e4, -87.5, -0.0, 0.0, 87.5, 1e4])
qs = st.floats(1e-9, 1) | st.sampled_from([0.0, 1e-9, 0.5, 1.0])


def per_element(sums, count):
    return float(sums[0]) / count


def exact_sigmoid(z):
    return 1 / (1 + mpmath.exp(-mpmath.mpf(z)))


@needs_library
@settings(max_examples=400)
@given(p=prevalences, beta=st.floats(0.1, 10), logit=logits, q=qs, y=st.booleans(), count=st.sampled_from([1, 33]))
def test_surrogate_against_mpmath(p, beta, logit, q, y, count):
    anchors = FBeta(beta).anchors(p)
    z = torch.full((count,), logit)
    sums, grad = surrogate(z, torch.full_like(z, float(y)), None, None, both(anchors, q), (1.0, 1.0))
    with mpmath.workdps(60):
        f = exact_sigmoid(z[0].item())
        distance = f - mpmath.mpf(anchors.positive if y else anchors.negative)
        value = mpmath.log(distance) if q == 0 else (distance**q - 1) / q
        wanted = -value if y else value
        slope = f * (1 - f) / distance * distance**q * (-1 if y else 1)
        assert abs(per_element(sums, count) - wanted) <= 1e-6 * max(1, abs(wanted))
        assert abs(grad[-1].item() - slope) <= 1e-6 * abs(slope) + 1e-30
        assert (grad == grad[0]).all()


@needs_library
@settings(max_examples=300)
@given(logit=logits, q=qs, y=st.booleans(), delta=st.floats(1e-4, 1 - 1e-4), count=st.sampled_from([1, 33]))
def test_tangent_against_mpmath(logit, q, y, delta, count):
    z = torch.full((count,), logit)
    sums, grad = tangent(z, torch.full_like(z, float(y)), None, None, (delta, 1 - delta, q))
    with mpmath.workdps(60):
        f = exact_sigmoid(z[0].item() * (1 if y else -1))
        cost = mpmath.mpf(1 - delta if y else delta)
        wanted = cost * (-mpmath.log(f) if q == 0 else (1 - f**q) / q)
        slope = cost * f**q * (1 - f) * (-1 if y else 1)
        assert abs(per_element(sums, count) - wanted) <= 1e-6 * max(1, abs(wanted))
        assert abs(grad[-1].item() - slope) <= 2e-6 * abs(slope) + 1e-30


@needs_library
@settings(max_examples=200)
@given(
    x0=st.floats(-1e6, -1e-6) | st.floats(1 + 1e-6, 1e6),
    y0=st.floats(-1e6, -1e-6) | st.floats(1 + 1e-6, 1e6),
    logit=logits,
    q=qs,
    y=st.booleans(),
)
def test_every_kind_of_anchor_against_double(x0, y0, logit, q, y):
    """Near, far, on either side: the definition in double precision is the plain path's."""
    terms = both(Anchors(x0, y0), q)
    z = torch.full((9,), logit)
    target = torch.full_like(z, float(y))
    got = surrogate(z, target, None, None, terms, (1.0, 1.0))
    sums, grad = reference(lambda z, y: surrogate_loss(z, y, terms), z, target)
    assert abs(got[0][0] - sums[0]) <= 9e-6 * max(1.0, abs(float(sums[0]) / 9))
    torch.testing.assert_close(got[1].double(), grad, rtol=2e-6, atol=1e-30)


@needs_library
def test_functions_are_accurate_over_their_whole_range(level):
    """log(1 + e^−z), log(d + f), f(1 − f) and f^q at a million logits of every size: a few ulp."""
    made = torch.Generator().manual_seed(0)
    z = torch.cat([torch.linspace(-86, 86, 800_001), 10 ** (torch.rand(200_000, generator=made) * 11.9 - 10)])
    x = z.double()
    ones = torch.ones_like(z)
    # The gradient of the tangent loss at y = 1 is −(1 − f) f^q, so one call shows exp, log1p and expm1 at once.
    for q in (0.0, 0.3, 1.0):
        _, grad = tangent(z, ones, None, None, (0.0, 1.0, q))
        wanted = -torch.sigmoid(-x) * torch.sigmoid(x) ** q
        error = ((grad.double() - wanted) / wanted).abs().max()
        assert error < 4e-7 + 1e-5 * q, (q, error)  # log f^q goes to 86 q, with its own rounding
    grad = soft_grad(z, ones, None, None, numbers(1.0, 0.0))
    wanted = torch.sigmoid(x) * torch.sigmoid(-x)
    assert ((grad.double() - wanted) / wanted).abs().max() < 5e-7


# ---- what is missing or refused ----


def test_supports_names_what_it_reads():
    z = torch.zeros(4)
    assert CpuRows.supports(z, z, z)
    assert CpuRows.supports(z.bfloat16(), z.bool())
    assert not CpuRows.supports(z.half(), z)
    assert not CpuRows.supports(z, z.double())
    assert not CpuRows.supports(z, z, z.double())
    assert not CpuRows.supports(torch.zeros(8)[::2], z)
    assert not CpuRows.supports(z, torch.zeros(3))
    assert not CpuRows.supports(z.to("meta"), z)


def hook():
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_build_without_a_compiler_goes_on(tmp_path, monkeypatch, capfd):
    pytest.importorskip("hatchling")
    build = hook()
    folder = tmp_path / build.FUSED
    folder.mkdir(parents=True)
    shutil.copy(ROOT / build.FUSED / "cpu.c", folder)
    (tmp_path / build.LIBRARY).write_bytes(b"old")
    for compiler, why in (("false", "exit status 1"), ("/no/such/cc", "No such file")):
        monkeypatch.setenv("CC", compiler)
        assert not build.compile_fused(tmp_path)
        said = capfd.readouterr().err
        assert said.count("\n") == 1
        assert "plain ones will serve" in said
        assert why in said
    monkeypatch.delenv("CC")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert not build.compile_fused(tmp_path)
    assert "no C compiler was found" in capfd.readouterr().err
    assert not (tmp_path / build.LIBRARY).exists()
    assert [x.name for x in folder.iterdir()] == ["cpu.c"]


@needs_library
def test_the_first_call_compiles_nothing():
    code = """
import subprocess, sys, torch
from fbeta.losses.kernels.cpu import CpuRows
def refuse(*_, **__):
    raise AssertionError("a process was started")
subprocess.Popen.__init__ = refuse
z, before = torch.zeros(1000), set(sys.modules)
CpuRows(z, z, None, None).run("tangent", (0.5, 0.5, 0.0), False, 1.0, True)
assert not {name for name in set(sys.modules) - before if name.startswith(("torch", "triton"))}
"""
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.skipif(importlib.util.find_spec("triton") is not None, reason="Triton is installed")
def test_a_missing_triton_is_said_once():
    kernels._cuda.cache_clear()
    with pytest.warns(UserWarning, match="Triton is not installed"):
        assert kernels._cuda() is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert kernels._cuda() is None
    kernels._cuda.cache_clear()


def test_an_evaluation_writes_no_gradient():
    z, y = torch.randn(1000), (torch.rand(1000) < 0.2).float()
    terms = both(FBeta(1).anchors(0.1))
    costs = (0.3, 0.7, 0.0)
    for call in (
        lambda grad: surrogate(z, y, None, None, terms, (1.0, 1.0), grad=grad),
        lambda grad: tangent(z, y, None, None, costs, grad=grad),
    ):
        (sums, gradient), (with_, some) = call(False), call(True)
        assert gradient is None
        assert some is not None
        assert torch.equal(sums, with_)
