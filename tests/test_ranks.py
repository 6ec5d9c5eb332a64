"""Several ranks give the loss, gradient and state of one process: real gloo processes, real DDP."""

import tempfile
import time
from datetime import timedelta
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from fbeta import MCC, FBeta, RunningConfusion, SoftLoss, SurrogateLoss, TangentLoss, losses
from fbeta.losses import kernels, ranks
from rank_processes import end_rank, join, run_ranks

STEPS, FEATURES, LABELS = 4, 5, 3
WIDE = ("macro", "micro", "samples")
CASES = {
    "surrogate": lambda **k: SurrogateLoss(FBeta(2), prevalence=0.1, **k),
    "surrogate-sum": lambda **k: SurrogateLoss(FBeta(2), prevalence=0.1, reduction="sum", **k),
    "tangent": lambda **k: TangentLoss(FBeta(2), **k),
    "tangent-soft": lambda **k: TangentLoss(MCC(), counts="soft", q=0.3, **k),
    "tangent-macro": lambda **k: TangentLoss(FBeta(1), task="multilabel", num_labels=LABELS, **k),
    "tangent-micro": lambda **k: TangentLoss(FBeta(1), task="multilabel", num_labels=LABELS, average="micro", **k),
    "stamp": lambda **k: losses.get("stamp", "f2", stage=6, **k),
    "spade": lambda **k: losses.get("spade", "gmean", **k),
    "eban": lambda **k: losses.get("eban", "f1", **k),
    "eban-hard-macro": lambda **k: losses.get(
        "eban", at={"recall": 0.9}, counts="hard", task="multilabel", num_labels=LABELS, **k
    ),
    "eban-macro": lambda **k: losses.get("eban", "f1", task="multilabel", num_labels=LABELS, **k),
    "soft": lambda **k: SoftLoss(FBeta(1), **k),
    "soft-macro": lambda **k: SoftLoss(MCC(), task="multilabel", num_labels=LABELS, **k),
    "soft-samples": lambda **k: SoftLoss(FBeta(1), task="multilabel", num_labels=LABELS, average="samples", **k),
    "soft-memory": lambda **k: SoftLoss(FBeta(1), memory=30, **k),
    "soft-log": lambda **k: SoftLoss(FBeta(1), prevalence=0.1, form="log", **k),
    "soft-log-memory": lambda **k: SoftLoss(FBeta(1), prevalence=0.1, form="log", memory=30, **k),
}
SHARDS = {2: [37, 11], 4: [20, 3, 24, 1]}


def data(name, step, dtype=torch.float64):
    generator = torch.Generator().manual_seed(step)
    x = torch.randn(48, FEATURES, generator=generator, dtype=torch.float64)
    shape = (48, LABELS) if name.endswith(WIDE) else (48,)
    y = (torch.rand(shape, generator=generator) < 0.25).double()
    y[:20] = 0  # the first shard of four has no positive at all
    y[30] = 1
    w = torch.rand(shape, generator=generator, dtype=torch.float64)
    return x.to(dtype), y.to(dtype), w.to(dtype)


def model_for(name):
    torch.manual_seed(0)
    return nn.Linear(FEATURES, LABELS if name.endswith(WIDE) else 1).double()


def train(name, model, loss, part, dtype):
    """A few steps; the values, the last gradients, the weights and the state."""
    optimiser = torch.optim.SGD(model.parameters(), lr=0.5 if loss.reduction == "mean" else 0.002)
    values = []
    for step in range(STEPS):
        x, y, w = (t[part] for t in data(name, step, dtype))
        optimiser.zero_grad()
        z = model(x)
        value = loss(z if name.endswith(WIDE) else z.squeeze(1), y, w)
        value.backward()
        optimiser.step()
        values.append(value.detach())
    return {
        "values": torch.stack(values),
        "gradients": torch.cat([p.grad.flatten() for p in model.parameters()]),
        "weights": torch.cat([p.detach().flatten() for p in model.parameters()]),
        **{f"state {k}": v.double() for k, v in loss.state_dict().items()},
    }


def work(rank, world, folder, dtype):
    join(rank, world, folder)
    ends = torch.tensor([0, *SHARDS[world]]).cumsum(0).tolist()
    part = slice(ends[rank], ends[rank + 1])
    results = {}
    for name, make in CASES.items():
        loss = make()
        results[name] = train(name, DistributedDataParallel(model_for(name).to(dtype)), loss, part, dtype)
        # an evaluation pass, alone on one rank: hangs nothing, changes nothing
        if rank == 0:
            before = {k: v.clone() for k, v in loss.state_dict().items()}
            x, y, w = data(name, 99, dtype)
            z = model_for(name).to(dtype)(x)
            z = z if name.endswith(WIDE) else z.squeeze(1)
            loss.eval()(z, y, w)
            with torch.no_grad():
                loss.train()(z, y, w)
            assert all(torch.equal(v, before[k]) for k, v in loss.state_dict().items())
    torch.save(results, f"{folder}/rank{rank}.pt")
    end_rank()


@pytest.mark.xdist_group("ranks")
@pytest.mark.parametrize(
    ("world", "dtype"), [(2, torch.float64), (4, torch.float64), (2, torch.float32)], ids=["2", "4", "2-fused"]
)
def test_ranks_equal_one_process(world, dtype):
    tolerance = 1e-6 if dtype == torch.float64 else 1e-5
    with tempfile.TemporaryDirectory() as folder:
        run_ranks(work, world, folder, dtype)
        got = [torch.load(Path(folder) / f"rank{r}.pt") for r in range(world)]
    for name, make in CASES.items():
        expected = train(name, model_for(name).to(dtype), make(), slice(None), dtype)
        for rank in range(world):
            assert got[rank][name].keys() == expected.keys()
            for what, value in expected.items():
                torch.testing.assert_close(
                    got[rank][name][what],
                    value,
                    atol=tolerance,
                    rtol=tolerance,
                    msg=lambda m, what=what, rank=rank, name=name: f"{name}, rank {rank}, {what}: {m}",
                )


def work_micro(rank, world, folder):
    """Two ranks with two micro-batches each, one of them with synchronisation switched off in DDP."""
    join(rank, world, folder)
    loss = TangentLoss(FBeta(2), accumulate=2)
    model = DistributedDataParallel(model_for("tangent"))
    for step in range(STEPS):
        x, y, _ = data("tangent", step)
        model.zero_grad()
        quarter = 2 * rank
        for k in range(2):
            part = slice(12 * (quarter + k), 12 * (quarter + k + 1))
            ones = torch.ones(12, dtype=torch.float64)
            if k == 0:
                with model.no_sync():
                    (loss(model(x[part]).squeeze(1), y[part], ones) / 2).backward()
            else:
                (loss(model(x[part]).squeeze(1), y[part], ones) / 2).backward()
        with torch.no_grad():
            for p in model.parameters():
                p -= 0.5 * p.grad
    torch.save((dict(model.module.state_dict()), loss.state_dict()), f"{folder}/rank{rank}.pt")
    end_rank()


@pytest.mark.xdist_group("ranks")
def test_ranks_and_micro_batches_together():
    with tempfile.TemporaryDirectory() as folder:
        run_ranks(work_micro, 2, folder)
        got = [torch.load(Path(folder) / f"rank{r}.pt") for r in range(2)]
    model, loss = model_for("tangent"), TangentLoss(FBeta(2))
    for step in range(STEPS):
        x, y, _ = data("tangent", step)
        model.zero_grad()
        loss(model(x).squeeze(1), y).backward()
        with torch.no_grad():
            for p in model.parameters():
                p -= 0.5 * p.grad
    for weights, state in got:
        torch.testing.assert_close(weights, dict(model.state_dict()), atol=1e-6, rtol=1e-6)
        torch.testing.assert_close(state, loss.state_dict(), atol=1e-6, rtol=1e-6)


def work_unequal(rank, world, folder):
    join(rank, world, folder)
    loss = TangentLoss(FBeta(1))
    z, y = torch.zeros(4, requires_grad=True), torch.tensor([1.0, 0, 0, 0])
    loss(z, y)
    said = Path(folder, "said")
    if rank == 0:  # one step more than the other rank
        ranks.PATIENCE = timedelta(seconds=1)
        try:
            loss(z, y)
        except RuntimeError as error:
            said.write_text(str(error))
    else:
        while not said.exists():
            time.sleep(0.05)
    end_rank(together=False)


@pytest.mark.xdist_group("ranks")
def test_a_rank_with_fewer_steps_is_an_error_that_says_so():
    with tempfile.TemporaryDirectory() as folder:
        run_ranks(work_unequal, 2, folder)
        said = Path(folder, "said").read_text()
    assert "a rank has fewer training steps" in said
    assert "drop_last=True" in said


def work_apart(rank, world, folder):
    join(rank, world, folder)
    alone = TangentLoss(FBeta(1), sync=False)
    z, y = torch.zeros(4, requires_grad=True), torch.tensor([1.0, 0, 0, 0])
    for _ in range(rank + 1):  # not in step, and no matter
        alone(z, y)
    assert float(alone.operating_point.total) == pytest.approx(4 * (rank + 1), rel=0.01)
    pair = dist.new_group([0, 1])
    together = TangentLoss(FBeta(1), process_group=pair, memory=1e9)
    together(z, y)
    assert float(together.operating_point.total) == 8
    import copy
    import pickle

    assert copy.deepcopy(together).process_group is pair
    assert pickle.loads(pickle.dumps(together)).process_group is None
    end_rank()


@pytest.mark.xdist_group("ranks")
def test_groups_and_going_alone():
    with tempfile.TemporaryDirectory() as folder:
        run_ranks(work_apart, 2, folder)


# Ranks whose batches take different paths: compiled on one, plain on another, whatever they hold.
MIXED = {
    "bce": lambda: losses.get("bce"),
    "bce-sum": lambda: losses.get("bce", reduction="sum"),
    "focal": lambda: losses.get("focal"),
    **{name: CASES[name] for name in CASES if not name.endswith(WIDE)},
}
BATCHES = {  # rows of each rank, and which of them are strided
    "unequal": ({2: [37, 11], 4: [20, 3, 24, 1]}, ()),
    "empty": ({2: [48, 0], 4: [0, 30, 0, 18]}, ()),
    "strided": ({2: [37, 11], 4: [20, 3, 24, 1]}, (1, 3)),
    "empty and strided": ({2: [0, 48], 4: [0, 30, 10, 8]}, (1, 2)),
}


def mixed_step(loss, rows, strided):
    """The value of a step with some of the rows, and the gradient by all logits."""
    _, y, _ = data("tangent", 7, torch.float32)
    z = torch.linspace(-2, 2, 48).requires_grad_()
    wide = torch.stack([z, -z], 1)
    value = loss(wide[rows, 0] if strided else z[rows], y[rows])
    value.backward()
    return value.detach(), z.grad


def work_mixed(rank, world, folder):
    join(rank, world, folder)
    found = {}
    for kind, (sizes, strided) in BATCHES.items():
        ends = torch.tensor([0, *sizes[world]]).cumsum(0).tolist()
        rows = slice(ends[rank], ends[rank + 1])
        for plain in (None, 0, 1):  # the rank that has no compiled kernels
            kernels.ENABLED = plain != rank
            for name, make in MIXED.items():
                loss = make()
                for _ in range(2):
                    value, gradient = mixed_step(loss, rows, rank in strided)
                dist.all_reduce(gradient)
                state = {k: v.double() for k, v in loss.state_dict().items()}
                found[kind, plain, name] = value, gradient / world, state
    torch.save(found, f"{folder}/rank{rank}.pt")
    end_rank()


@pytest.mark.xdist_group("ranks")
@pytest.mark.parametrize("world", [2, 4])
def test_ranks_that_take_different_paths_agree(world):
    """Neither waits for the other, both report the loss of all rows, and DDP averages to its gradient."""
    with tempfile.TemporaryDirectory() as folder:
        run_ranks(work_mixed, world, folder)
        got = [torch.load(Path(folder) / f"rank{r}.pt") for r in range(world)]
    expected = {}
    for name, make in MIXED.items():
        loss = make()
        for _ in range(2):
            value, gradient = mixed_step(loss, slice(None), False)
        expected[name] = value, gradient, {k: v.double() for k, v in loss.state_dict().items()}
    for rank in range(world):
        for (kind, plain, name), found in got[rank].items():
            torch.testing.assert_close(
                found,
                expected[name],
                rtol=2e-5,
                atol=2e-6,
                msg=lambda m, case=(kind, plain, name, rank): f"{case}: {m}",
            )


def work_evaluation(rank, world, folder):
    """A validation loop with fewer batches on one rank: each counts its own rows, and nobody waits."""
    join(rank, world, folder)
    running = RunningConfusion(memory=None)
    with torch.no_grad():
        for _ in range(rank + 1):
            running(torch.ones(4), torch.tensor([1.0, 0, 0, 0]))
    assert float(running.confusion.total) == 4 * (rank + 1)
    dist.all_reduce(running.counts)
    assert float(running.confusion.total) == 12
    end_rank()


@pytest.mark.xdist_group("ranks")
def test_running_counts_of_a_validation_loop():
    with tempfile.TemporaryDirectory() as folder:
        run_ranks(work_evaluation, 2, folder)
