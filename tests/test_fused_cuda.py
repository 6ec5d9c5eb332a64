"""The Triton twin of the fused path; runs where there is a GPU, and says so where there is none."""

import warnings

import pytest
import torch

from catalogue import LOSSES, batch
from fbeta import Accuracy, FBeta, GMean, Kappa, SoftLoss, TangentLoss, metric
from fbeta.losses import kernels as fused
from fbeta.losses import surrogate_loss, tangent_loss
from fbeta.losses.running import cells, decisions
from fbeta.losses.surrogate import Reaches
from fbeta.losses.task import Batch

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")

N = 10_007
TARGETS = {
    "float": lambda: (torch.rand(N, device="cuda") < 0.1).float(),
    "bool": lambda: torch.rand(N, device="cuda") < 0.3,
    "int": lambda: torch.randint(0, 2, (N,), device="cuda"),
    "soft": lambda: torch.rand(N, device="cuda"),
}


@pytest.fixture(params=[torch.float32, torch.float64, torch.bfloat16], ids=str)
def logits(request):
    torch.manual_seed(0)
    z = 4 * torch.randn(N, device="cuda", dtype=torch.float64)
    z[:6] = torch.tensor([1e4, -1e4, 88.0, -88.0, 0.0, -0.0])
    return z.to(request.param)


def close(got, wanted, dtype):
    loose = {"rtol": 1e-2, "atol": 1e-2} if dtype == torch.bfloat16 else {"rtol": 2e-5, "atol": 2e-5}
    torch.testing.assert_close(got.double(), wanted, **loose)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize(
    ("m", "p", "q"),
    [
        (FBeta(1), 0.1, 0.0),
        (FBeta(2), 0.01, 0.4),
        (Kappa(), 0.1, 0.0),
        (Kappa(), 0.49, 0.0),
        (Kappa(), 0.5, 0.0),
        (Kappa(), 0.8, 0.3),
        (GMean(), 0.1, 0.0),
        (Accuracy(), 0.2, 0.0),
    ],
    ids=str,
)
def test_surrogate_kernel(logits, target, weighted, m, p, q):
    from fbeta.losses.kernels import cuda

    y, w = TARGETS[target](), torch.rand(N, device="cuda") if weighted else None
    reaches = Reaches(m, p, q)(torch.float32)
    z = logits.double().requires_grad_()
    weight = torch.ones_like(z) if w is None else w.double()
    total = (weight * surrogate_loss(z, y.double(), reaches, weights=(1.1, 10.0))).sum()
    sums, gradient = cuda.surrogate(logits, y, w, None, *reaches, (1.1, 10.0), 1.0)
    torch.testing.assert_close(sums[0], total.detach(), rtol=1e-5, atol=1e-3)
    torch.testing.assert_close(sums[1], weight.sum(), rtol=1e-6, atol=1e-6)
    close(gradient, torch.autograd.grad(total, z)[0], logits.dtype)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("q", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("soft", [False, True], ids=["hard", "soft"])
def test_tangent_kernel(logits, target, q, soft):
    from fbeta.losses.kernels import cuda

    y, w = TARGETS[target](), torch.rand(N, device="cuda")
    z = logits.double().requires_grad_()
    total = (w.double() * tangent_loss(z, y.double(), (0.3, 0.7), q)).sum()
    sums, gradient = cuda.tangent(logits, y, w, None, torch.tensor([0.3, 0.7, q], device="cuda"), 1.0, soft)
    torch.testing.assert_close(sums[0], total.detach(), rtol=1e-5, atol=1e-3)
    counted = cells(
        Batch(z.detach(), y.double(), w.double()), decisions(z.detach(), soft=soft), columns=False
    )
    torch.testing.assert_close(sums[2:], counted, rtol=1e-5, atol=1e-2)
    close(gradient, torch.autograd.grad(total, z)[0], logits.dtype)


@pytest.mark.parametrize("case", LOSSES, ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_modules_equal_the_plain_path(case, dtype, monkeypatch):
    one, two = case.make().cuda(), case.make().cuda()
    for seed in range(4):
        z, y = (x.cuda() for x in batch(3000, seed=seed, dtype=dtype))
        a, b = (z.clone().requires_grad_() for _ in range(2))
        value = one(a, y)
        (2 * value).backward()
        with monkeypatch.context() as patch:
            patch.setattr(fused, "ENABLED", False)
            plain = two(b, y)
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
        assert torch.autograd.gradgradcheck(
            lambda z, loss=loss: loss(z, y[:8]), z[:8].clone().requires_grad_()
        )
        a = z.clone().requires_grad_()
        value = loss(a, y)
        first = torch.autograd.grad(value, a, retain_graph=True)[0].clone()
        torch.testing.assert_close(torch.autograd.grad(3 * value, a)[0], 3 * first)


def test_a_formula_that_branches_is_left_to_torch():
    mine = metric(lambda tp, fp, fn, tn: 2 * tp / (2 * tp + fp + fn))
    z, y = (x.cuda() for x in batch(dtype=torch.float32))
    torch.testing.assert_close(
        SoftLoss(mine).cuda()(z, y), SoftLoss(FBeta(1)).cuda()(z, y), rtol=1e-6, atol=1e-6
    )
