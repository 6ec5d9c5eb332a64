"""What torch's compiler makes of a loss: one graph, no waiting for the device, nothing compiled twice."""

import contextlib

import pytest
import torch
from torch._subclasses.fake_tensor import DataDependentOutputException, FakeTensorMode

from catalogue import COSTLY, LOSSES, batch
from fbeta import FBeta, SurrogateLoss, TangentLoss


@pytest.mark.parametrize("dtype", [torch.float32, pytest.param(torch.float64, marks=pytest.mark.slow)], ids=str)
@pytest.mark.parametrize("case", COSTLY, ids=str)
def test_compiles_in_one_graph_and_agrees(case, dtype):
    """Compiled it takes the plain path, uncompiled that of the kernels, where the type is theirs."""
    torch._dynamo.reset()
    loss, plain = case.make(), case.make()
    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
    for seed in range(3):
        z, y = batch(seed=seed, dtype=dtype)
        a, b = (z.clone().requires_grad_() for _ in range(2))
        one, two = compiled(a, y), plain(b, y)
        one.backward()
        two.backward()
        torch.testing.assert_close(one, two)
        torch.testing.assert_close(a.grad, b.grad)
    torch.testing.assert_close(loss.state_dict(), plain.state_dict())


@contextlib.contextmanager
def compiled_once(loss):
    torch._dynamo.reset()
    compiled = torch.compile(loss, fullgraph=True, backend="eager")
    z, y = batch()
    compiled(z.requires_grad_(), y)
    with torch._dynamo.config.patch(error_on_recompile=True):
        yield compiled, z, y


def test_scheduling_q_does_not_recompile():
    loss = TangentLoss(FBeta(1), prevalence=0.1)
    with compiled_once(loss) as (compiled, z, y):
        for q in (0.1, 0.5, 1.0, 0.0):
            loss.q = q
            compiled(z, y)


def test_scheduling_blend_does_not_recompile():
    loss = SurrogateLoss(FBeta(1), prevalence=0.1, blend=0.5)
    with compiled_once(loss) as (compiled, z, y):
        for blend in (0.1, 0.5, 1.0, 0.0):
            loss.blend = blend
            torch.testing.assert_close(compiled(z, y), loss(z, y))


@pytest.mark.slow
@pytest.mark.parametrize("case", [LOSSES[1], LOSSES[13], LOSSES[-1]], ids=str)
def test_compiles_with_inductor(case):
    torch._dynamo.reset()
    z, y = batch(dtype=torch.float32)
    compiled = torch.compile(case.make(), fullgraph=True)
    torch.testing.assert_close(compiled(z.requires_grad_(), y), case.make()(z, y))


@pytest.mark.parametrize("case", LOSSES, ids=str)
@pytest.mark.parametrize("task", ["binary", "multilabel"])
def test_nothing_waits_for_the_device(case, task):
    """Fake tensors have no values: any read of one by the host is an error."""
    options = {"task": task, "num_labels": 3} if task == "multilabel" else {}
    loss = case.make(check=False, **options)
    shape = (8, 3) if task == "multilabel" else (8,)
    with FakeTensorMode(allow_non_fake_inputs=True):
        z = torch.empty(shape, requires_grad=True)
        y, w = torch.empty(shape), torch.empty(shape)
        with pytest.raises(DataDependentOutputException):
            bool(z.sum() > 0)
        for module in loss.modules():
            for name, buffer in module._buffers.items():
                if buffer is not None:
                    module._buffers[name] = torch.empty(buffer.shape, dtype=buffer.dtype)
        for _ in range(2):
            loss(z, y, w).backward()
