"""The Triton kernels against plain torch; runs where there is a GPU, and says so where there is none."""

import math
import warnings

import pytest
import torch

from catalogue import LOSSES, TRAINABLE, batch
from fbeta import Accuracy, FBeta, GMean, Kappa, RunningConfusion, SoftLoss, TangentLoss, metric
from fbeta.losses import kernels
from fbeta.losses.counting import hard_decisions, soft_decisions
from fbeta.losses.kernels.formula import evaluate
from fbeta.losses.kernels.plain import PlainRows, SoftScore
from fbeta.losses.pricing import Pricing
from fbeta.losses.running import Decay
from fbeta.losses.surrogate import AnchorTerms, SurrogateElements
from fbeta.losses.tangent import TangentElements
from fbeta.losses.task import convert

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")

N = 10_007
DTYPES = [torch.float32, torch.float64, torch.bfloat16]
TARGETS = {
    "float": lambda: (torch.rand(N, device="cuda") < 0.1).float(),
    "bool": lambda: torch.rand(N, device="cuda") < 0.3,
    "int": lambda: torch.randint(0, 2, (N,), device="cuda"),
    "byte": lambda: torch.randint(0, 2, (N,), device="cuda", dtype=torch.uint8),
    "soft": lambda: torch.rand(N, device="cuda"),
}
SURROGATES = [
    (FBeta(1), 0.1, 0.0),
    (FBeta(2), 0.01, 0.4),
    (Kappa(), 0.1, 0.0),
    (Kappa(), 0.49, 0.0),
    (Kappa(), 0.5, 0.0),
    (Kappa(), 0.8, 0.3),
    (GMean(), 0.1, 0.0),
    (Accuracy(), 0.2, 0.0),
]
ELEMENTS = {
    **{
        f"surrogate {m} {p} {q}": lambda m=m, p=p, q=q: SurrogateElements(AnchorTerms(m, p, q).cuda(), (1.1, 10.0))
        for m, p, q in SURROGATES
    },
    **{f"tangent {q}": lambda q=q: TangentElements((0.3, 0.7, q)) for q in (0.0, 0.5, 1.0)},
    "tangent on the device": lambda: TangentElements(torch.tensor([0.3, 0.7, 0.2], device="cuda").double()),
}


def logits(dtype):
    torch.manual_seed(0)
    z = 4 * torch.randn(N, device="cuda", dtype=torch.float64)
    z[:6] = torch.tensor([1e4, -1e4, 88.0, -88.0, 0.0, -0.0])
    return z.to(dtype)


def tolerance(dtype):
    digits = {torch.float64: 1e-10, torch.float32: 2e-5, torch.bfloat16: 1e-2}[dtype]
    return {"rtol": digits, "atol": digits}


def exact(z, y, w, ignore_index):
    """The same rows in plain torch and double precision."""
    w = None if w is None else w.double()
    return PlainRows(convert(z.detach().double().requires_grad_(), y, w, ignore_index=ignore_index))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", ELEMENTS)
@pytest.mark.parametrize("kind", ["plain", "weighted", "ignored"])
def test_a_pass_is_that_of_plain_torch(dtype, name, kind):
    elements = ELEMENTS[name]()
    for target, make in TARGETS.items():
        z, y = logits(dtype).requires_grad_(), make()
        w = torch.rand(N, device="cuda") if kind != "plain" else None
        ignore = None
        if kind == "ignored":
            ignore = 1 if y.dtype == torch.bool else 255 if y.dtype == torch.uint8 else -100
            if y.dtype != torch.bool:
                y[::5] = ignore
        for counting in (hard_decisions, soft_decisions):
            if counting is soft_decisions and elements.kernel == "surrogate":
                continue  # it is never asked for counts
            rows = kernels.compiled_rows(z, y, w, ignore)
            assert type(rows).__name__ == "CudaRows"
            scale = 1.0 / rows.known if rows.known else 0.5
            counts = counting if elements.kernel == "tangent" else None
            part = rows.weigh(elements, counts, scale if rows.known else 1.0)
            plain = exact(z, y, w, ignore)
            wanted = plain.weigh(elements, counts)
            size = 1e-5 if dtype != torch.float64 else 1e-11
            torch.testing.assert_close(part.sums, wanted.sums, rtol=size, atol=size * N, msg=target)
            (gradient,) = torch.autograd.grad(part.loss(scale), z)
            (expected,) = torch.autograd.grad(wanted.loss(scale), plain.batch.logits)
            assert gradient.dtype == dtype
            torch.testing.assert_close(gradient.double(), expected, **tolerance(dtype))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("kind", ["plain", "weighted", "ignored"])
def test_soft_counts_and_their_gradient_are_those_of_plain_torch(dtype, kind):
    for make in TARGETS.values():
        z, y = logits(dtype).requires_grad_(), make()
        w = torch.rand(N, device="cuda") if kind == "weighted" else None
        ignore = 0 if kind == "ignored" else None
        rows, plain = kernels.compiled_rows(z, y, w, ignore), exact(z, y, w, ignore)
        found, wanted = rows.count(soft_decisions), plain.count(soft_decisions)
        size = 1e-5 if dtype != torch.float64 else 1e-11
        torch.testing.assert_close(found.cells, wanted.cells, rtol=size, atol=size)
        score = SoftScore(FBeta(2))
        for population in (None, torch.tensor(0.2, dtype=torch.float64, device="cuda")):
            value, expected = (x.loss(score, population, None) for x in (found, wanted))
            torch.testing.assert_close(value.double(), expected, rtol=size, atol=size)
            (gradient,) = torch.autograd.grad(3 * value, z, retain_graph=True)
            (slope,) = torch.autograd.grad(3 * expected, plain.batch.logits, retain_graph=True)
            torch.testing.assert_close(gradient.double(), slope, rtol=tolerance(dtype)["rtol"], atol=1e-7)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("case", LOSSES, ids=str)
def test_infinite_logits_give_the_limit_of_plain_torch(case, dtype, monkeypatch):
    z = torch.tensor([math.inf, -math.inf, 0.5, -0.5], device="cuda", dtype=dtype)
    for target in ([1.0, 0.0, 1.0, 0.0], [0.0, 1.0, 1.0, 0.0], [1.0, 1.0, 1.0, 0.0]):
        y = torch.tensor(target, device="cuda")
        found = []
        for enabled in (True, False):
            monkeypatch.setattr(kernels, "ENABLED", enabled)
            a = z.clone().requires_grad_()
            value = case.make().cuda()(a, y)
            value.backward()
            found.append((value, a.grad))
        digits = 1e-2 if dtype == torch.bfloat16 else 1e-4
        torch.testing.assert_close(found[0], found[1], rtol=digits, atol=1e-5, equal_nan=True)


@pytest.mark.parametrize("case", LOSSES, ids=str)
def test_empty_and_strided_batches(case):
    z, y = batch(64, dtype=torch.float32)
    wide = torch.stack([z, -z], 1).cuda().requires_grad_()
    value = case.make().cuda()(wide[:, 0], y.cuda())
    torch.testing.assert_close(value.cpu(), case.make()(z, y), rtol=2e-5, atol=2e-6)
    value.backward()
    assert (wide.grad[:, 1] == 0).all()
    nothing = torch.zeros(0, device="cuda", requires_grad=True)
    loss = case.make().cuda()
    value = loss(nothing, torch.zeros(0, device="cuda"))
    value.backward()
    assert value == 0


@pytest.mark.parametrize("case", LOSSES, ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_modules_equal_the_plain_path(case, dtype, weighted, monkeypatch):
    one, two = case.make().cuda(), case.make().cuda()
    for seed in range(4):
        z, y = (x.cuda() for x in batch(3000, seed=seed, dtype=dtype))
        w = torch.rand(3000, device="cuda", dtype=dtype) if weighted else None
        a, b = (z.clone().requires_grad_() for _ in range(2))
        value = one(a, y, w)
        (2 * value).backward()
        with monkeypatch.context() as patch:
            patch.setattr(kernels, "ENABLED", False)
            plain = two(b, y, w)
            (2 * plain).backward()
        torch.testing.assert_close(value, plain, rtol=2e-5, atol=2e-6)
        torch.testing.assert_close(a.grad, b.grad, rtol=1e-4, atol=1e-7)
    for key, state in two.state_dict().items():
        torch.testing.assert_close(one.state_dict()[key], state, rtol=1e-6, atol=1e-4)


@pytest.mark.parametrize("case", LOSSES, ids=str)
def test_no_host_read_and_cuda_graphs(case):
    loss, reference = case.make().cuda(), case.make().cuda()
    z, y = (x.cuda() for x in batch(dtype=torch.float32))
    static = z.clone().requires_grad_()
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        case.make().cuda()(static, y).backward()
        torch.cuda.synchronize()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch calls this mode a prototype
            torch.cuda.set_sync_debug_mode("error")
        try:
            loss(static, y).backward()
        finally:
            torch.cuda.set_sync_debug_mode("default")
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    static.grad = None
    with torch.cuda.graph(graph):
        out = loss(static, y)
        out.backward()
    reference.load_state_dict(loss.state_dict())
    for seed in range(3):
        with torch.no_grad():
            static.copy_(batch(seed=seed, dtype=torch.float32)[0])
        graph.replay()
        expected = reference(static.detach().clone().requires_grad_(), y)
        torch.testing.assert_close(out, expected)
    for key, state in reference.state_dict().items():
        torch.testing.assert_close(loss.state_dict()[key], state, rtol=1e-6, atol=1e-4)


def test_retained_graphs_and_second_derivatives():
    z, y = (x.cuda() for x in batch(dtype=torch.float64))
    for loss in (TangentLoss(FBeta(1)), SoftLoss(FBeta(1))):
        loss = loss.cuda().eval()
        assert torch.autograd.gradgradcheck(lambda z, loss=loss: loss(z, y[:8]), z[:8].clone().requires_grad_())
        a = z.clone().requires_grad_()
        value = loss(a, y)
        first = torch.autograd.grad(value, a, retain_graph=True)[0].clone()
        torch.testing.assert_close(torch.autograd.grad(3 * value, a)[0], 3 * first)


@pytest.mark.parametrize("m", TRAINABLE, ids=str)
def test_formulas_are_the_same_on_the_device(m):
    """Costs, scores and steps of the running counts: written out for Triton, and as floats on the host."""

    def numbers(*values):
        return torch.tensor(values[0] if len(values) == 1 else values, dtype=torch.float64)

    fresh, population, q = numbers(0.3, 0.7), numbers(0.1), numbers(0.2)
    for counts in ([50, 20, 30, 400], [0, 0, 10, 90], [0, 0, 0, 0], [5, 0, 0, 95], [0, 0, 0, 3]):
        c, seen = numbers(*counts), numbers(40, 40, 30, 30)
        for formula, arguments in (
            (SoftScore(m), (c, None)),
            (SoftScore(m), (c, population)),
            (Pricing(m, 20.0, 1e-4, False, False), (c, seen, fresh, None, None, q)),
            (Pricing(m, 0.0, 1e-4, False, False), (c, seen, fresh, population, None, q)),
            (Pricing(m, 20.0, 1e-4, False, False), (c, seen, fresh, population, numbers(0.4), q)),
            (Decay(0.5), (seen, c, numbers(500.0))),
            (Decay(0.5), (seen, c * math.nan, None)),
        ):
            there = evaluate(formula, *(x if x is None else x.cuda() for x in arguments))
            here = numbers(*evaluate(formula, *arguments))
            torch.testing.assert_close(torch.stack(list(there)).cpu(), here, rtol=1e-10, atol=1e-12, equal_nan=True)


def test_running_counts_advance_in_one_kernel():
    running, same = RunningConfusion(memory=30).cuda(), RunningConfusion(memory=30)
    for seed in range(5):
        z, y = batch(seed=seed)
        running(z.cuda(), y.cuda())
        same(z, y)
    torch.testing.assert_close(running.counts.cpu(), same.counts)


def test_a_formula_that_branches_is_left_to_torch():
    mine = metric(lambda tp, fp, fn, tn: 2 * tp / (2 * tp + fp + fn))
    z, y = (x.cuda() for x in batch(dtype=torch.float32))
    torch.testing.assert_close(SoftLoss(mine).cuda()(z, y), SoftLoss(FBeta(1)).cuda()(z, y), rtol=1e-6, atol=1e-6)
