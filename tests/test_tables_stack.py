"""Many networks on one table: each as it would be alone, as plain PyTorch would train it, and after an interruption."""

import itertools

import numpy as np
import pytest
import torch

from fbeta import losses
from fbeta.learners.tables import TableMember, TableStack, _stream
from fbeta.train.checkpoint import load, save

N, D = 300, 5
CHANCE = np.random.default_rng(3)
X = CHANCE.normal(size=(N, D)).astype(np.float32)
Y = (X[:, 0] + CHANCE.normal(size=N) > 1.4).astype(np.int64)
WHOLE, SOME = np.arange(N), np.arange(0, N, 2)


def members():
    made = []
    for seed in range(3):
        for loss in sorted(losses.names()):
            for beta in (1, 2):
                rows = WHOLE if seed else SOME
                made.append(TableMember(rows, loss, f"fbeta:beta={beta}", (7, seed), (8, seed)))
    return made


@pytest.mark.parametrize("hidden", [(), (16, 8)])
def test_alone_as_beside_others(hidden):
    runs = members()
    together = TableStack(X, Y, runs, hidden=hidden, batch=32)
    for _ in range(3):
        together.train_epoch()
    found = together.margins()
    assert len(runs) == len(found) == 84
    for i in range(0, len(runs), 5):
        alone = TableStack(X, Y, [runs[i]], hidden=hidden, batch=32)
        for _ in range(3):
            alone.train_epoch()
        # The library may choose other kernels for one matrix than for many: rounding, nothing more.
        assert torch.allclose(alone.margins()[0], found[i], atol=1e-5, rtol=1e-4), runs[i].kind


@pytest.mark.parametrize("loss", ["bce", "tangent", "surrogate", "soft"])
def test_as_plain_pytorch(loss):
    member = TableMember(SOME, loss, "fbeta:beta=2", (1,), (2,))
    stack = TableStack(X, Y, [member], hidden=(16, 8), batch=25, rate=1e-2, decay=0.1)
    sizes = [D, 16, 8, 1]
    layers = [torch.nn.Linear(a, b) for a, b in itertools.pairwise(sizes)]
    with torch.no_grad():
        for layer, weight, bias in zip(layers, stack.weights, stack.biases, strict=True):
            layer.weight.copy_(weight[0].T)
            layer.bias.copy_(bias[0, 0])
    net = torch.nn.Sequential(layers[0], torch.nn.ReLU(), layers[1], torch.nn.ReLU(), layers[2])
    y = Y[SOME]
    criterion = losses.get(loss, metric="fbeta:beta=2", class_counts=((y == 0).sum(), (y == 1).sum()))
    decayed = [
        {"params": [x.weight for x in layers], "weight_decay": 0.1},
        {"params": [x.bias for x in layers]},
    ]
    optimiser = torch.optim.Adam(decayed, lr=1e-2)
    for epoch in range(4):
        stack.train_epoch()
        order = _stream(SOME, epoch * 12 * 25, 12 * 25, (2,)).reshape(12, 25)
        assert stack.steps == 12
        for rows in order:
            optimiser.zero_grad()
            criterion(net(torch.from_numpy(X[rows]))[:, 0], torch.from_numpy(Y[rows]).float()).backward()
            optimiser.step()
    with torch.no_grad():
        assert torch.allclose(net(torch.from_numpy(X))[:, 0], stack.margins()[0], atol=2e-4, rtol=1e-3)


def test_averaged_weights_are_the_mean_of_an_epoch_and_change_no_step():
    member = TableMember(WHOLE, "bce", "fbeta:beta=1")
    plain, averaged = (TableStack(X, Y, [member], batch=50, rate=0.1, averaged=a) for a in (False, True))
    seen = []
    for step in range(6):  # one epoch, step by step
        plain._step(plain._order()[step])
        seen.append(plain.weights[0].clone())
    averaged.train_epoch()
    assert torch.equal(averaged.weights[0], plain.weights[0])
    assert torch.allclose(averaged.models[0][0], torch.stack(seen).mean(0), atol=1e-6)
    assert not torch.allclose(averaged.margins(), plain.margins(), atol=1e-3)


@pytest.mark.parametrize("averaged", [False, True])
def test_resumed_ends_the_same(tmp_path, averaged):
    def fresh():
        return TableStack(X, Y, members(), hidden=(8,), batch=32, averaged=averaged)

    straight, first = fresh(), fresh()
    for _ in range(4):
        straight.train_epoch()
    for _ in range(2):
        first.train_epoch()
    save(tmp_path / "half.safetensors", first.state(), {"epoch": first.epoch})
    later = fresh()
    tensors, meta = load(tmp_path / "half.safetensors")
    later.restore(tensors)
    later.epoch = meta["epoch"]
    for _ in range(2):
        later.train_epoch()
    assert torch.equal(later.margins(), straight.margins())


def test_a_stream_takes_every_row_once_a_turn():
    rows = np.array([5, 7, 9])
    found = np.concatenate([_stream(rows, 0, 4, (1,)), _stream(rows, 4, 8, (1,))])
    assert [sorted(found[i : i + 3]) for i in range(0, 12, 3)] == [[5, 7, 9]] * 4
    assert len({tuple(found[i : i + 3]) for i in range(0, 12, 3)}) > 1


def test_it_learns():
    stack = TableStack(X, Y, [TableMember(WHOLE, "bce", "fbeta:beta=1")], hidden=(16,), batch=32, rate=1e-2)
    for _ in range(20):
        stack.train_epoch()
    z = stack.margins()[0]
    y = torch.from_numpy(Y).float()
    prior = torch.logit(y.mean()).expand(N)
    log_loss = torch.nn.functional.binary_cross_entropy_with_logits
    assert log_loss(z, y) < 0.75 * log_loss(prior, y)


@pytest.mark.parametrize("loss", losses.names())
def test_columns_of_each_are_losses_of_their_own(loss):
    counts = np.array([80, 50, 20]), np.array([20, 50, 80])
    options = {"metric": "fbeta:beta=2", "check": False}
    reduction = "none" if "none" in losses.Loss.registry[loss].reductions else "mean"
    joint = losses.get(
        loss,
        task="multilabel",
        num_labels=3,
        average="each",
        class_counts=counts,
        reduction=reduction,
        **options,
    )
    single = [
        losses.get(loss, class_counts=(counts[0][k], counts[1][k]), reduction=reduction, **options)
        for k in range(3)
    ]
    chance = torch.Generator().manual_seed(0)
    for _ in range(4):  # states move apart
        z = torch.randn(16, 3, generator=chance, dtype=torch.float64)
        y = (torch.rand(16, 3, generator=chance) < torch.tensor([0.2, 0.5, 0.8])).double()
        found = joint(z, y)
        apart = torch.stack([one(z[:, k], y[:, k]) for k, one in enumerate(single)], dim=-1)
        assert torch.allclose(found, apart if reduction == "none" else apart.mean())
