"""Many residual networks trained side by side as one: stacked weights and images, one graph of kernels per step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from fbeta_reproduction.engine import augmentation, kernels
from fbeta_reproduction.engine.augmentation import Holdout
from fbeta_reproduction.engine.kernels import EPSILON, Learning, Statistics
from fbeta_reproduction.engine.layout import Block, Conv, Layout, Norm
from fbeta_reproduction.engine.loss_sum import LossSum

#: What activations are stored in; weights, statistics and losses are of 32 bits (64 in fp64, for reference).
PRECISIONS = {"fp64": torch.float64, "fp32": torch.float32, "bf16": torch.bfloat16}


class Member(NamedTuple):
    """One run of a stack: its rows, its initial weights, the key of its random numbers, its learning rate (of each
    epoch, if it is a function), and the rows whose label is turned around, if there are any."""

    split: Holdout
    weights: dict[str, Tensor]
    key: tuple[int, ...]
    rate: float | Callable[[int], float]
    turned: Sequence[int] | NDArray[np.int64] = ()


class _Kept(NamedTuple):
    """What a block's way back needs."""

    x: Tensor
    h1: Tensor
    s1: Statistics
    a1: Tensor
    h2: Tensor
    s2: Statistics
    around: tuple[Tensor, Statistics] | None
    out: Tensor


class ImageStack(nn.Module):
    """Runs of one architecture on one data set, trained together and apart: no run sees another.

    `objective` maps margins z = l₁ − l₀ and targets, both ``(R, B)``, to the *sum* of the runs' losses; it may have
    state of its own. Images stay on the device as they are; crops, flips and batches are made there. On a GPU a
    step is recorded once as a graph of kernels and played back.

    Shape: `images` ``(N, h, w, C)`` uint8 and `target` ``(N,)``: rows to train and validate on, then the others.

    >>> from fbeta_reproduction.engine.resnet import Architecture, ResNet, initial_weights
    >>> small = Architecture((1, 1, 1, 1), width=8)
    >>> weights = initial_weights(ResNet(small), np.random.Generator(np.random.Philox(0)))
    >>> member = Member(Holdout.draw(20, 0.1, (0,)), weights, (0,), rate=0.1)
    >>> loss = lambda z, y: nn.functional.softplus((1 - 2 * y) * z).mean(1).sum()
    >>> images, target = np.zeros((24, 28, 28, 1), np.uint8), np.arange(24) % 2
    >>> stack = ImageStack(Layout(small), images, target, [member], loss, batch=9, precision="fp32")
    >>> stack.train_epoch()
    >>> stack.margins().shape
    torch.Size([1, 24])
    """

    def __init__(
        self,
        layout: Layout,
        images: NDArray[np.uint8],
        target: NDArray[Any],
        members: Sequence[Member],
        objective: Callable[[Tensor, Tensor], Tensor],
        *,
        batch: int = 100,
        pad: int = 4,
        momentum: float = 0.9,
        decay: float = 1e-4,
        precision: str = "bf16",
        device: str | torch.device = "cpu",
        eval_batch: int = 500,
    ) -> None:
        super().__init__()
        self.layout, self.members, self.objective = layout, list(members), objective
        self.batch, self.pad, self.momentum, self.decay = batch, pad, momentum, decay
        self.device = torch.device(device)
        self.dtype = PRECISIONS[precision]
        self.kernels = kernels.choose(self.device)
        self.epoch = 0
        self.rows = len(self.members[0].split.train)
        if any(len(m.split.train) != self.rows for m in self.members):
            raise ValueError("The runs of a stack must train on equally many rows.")
        if isinstance(objective, nn.Module):
            objective.to(self.device)
        runs, size = len(self.members), layout.image
        self.image_size = images.shape[1]
        exact = torch.float64 if self.dtype == torch.float64 else torch.float32
        # By key: runs that share a split share its mean, and their batches.
        self._keys = {m.key: m.split for m in self.members}
        means = {k: augmentation.pixel_mean(images, s.train, size) for k, s in self._keys.items()}
        self.images = torch.from_numpy(np.ascontiguousarray(images)).to(self.device)
        labels = np.stack([np.asarray(target)] * runs)
        for own, m in zip(labels, self.members, strict=True):
            wrong = np.asarray(m.turned, dtype=np.int64)
            own[wrong] = 1 - own[wrong]
        self.target = torch.from_numpy(labels).to(self.device, exact)
        self.mean = torch.from_numpy(np.stack([means[m.key] for m in self.members])).to(self.device, exact)
        self.rate = torch.zeros(runs, dtype=exact, device=self.device)
        packed = [layout.pack(m.weights) for m in self.members]
        self.params, self.small = (torch.stack(part).to(self.device, exact) for part in zip(*packed, strict=True))
        self.velocity, self.small_velocity = torch.zeros_like(self.params), torch.zeros_like(self.small)
        self.grads, self.small_grads = torch.zeros_like(self.params), torch.zeros_like(self.small)
        self.shadow = self.params.to(self.dtype) if self.dtype != exact else None
        self.running = torch.zeros(runs, 2, layout.statistics, dtype=exact, device=self.device)
        self.running[:, 1] = 1
        self.cursor = torch.zeros((), dtype=torch.int64, device=self.device)
        self.order = torch.zeros(runs, self.rows, dtype=torch.int32, device=self.device)
        middle = augmentation.centre(np.arange(len(images)), self.image_size, size)
        self.middle = torch.from_numpy(middle).to(self.device)
        self.eval_batch = min(eval_batch, len(images))
        self.logits = torch.zeros(runs, len(images), dtype=exact, device=self.device)
        self.lines = [torch.zeros(2, runs, norm.channels, dtype=exact, device=self.device) for norm in layout.norms()]
        self._graphs: dict[tuple[str, int], torch.cuda.CUDAGraph] = {}
        self._pool: Any = None

    # What one step is

    def _weights(self, conv: Conv) -> Tensor:
        return conv.weights(self.params if self.shadow is None else self.shadow)

    def _conv_norm(self, x: Tensor, conv: Conv, norm: Norm) -> tuple[Tensor, Statistics]:
        gamma, beta = norm.gamma(self.small), norm.beta(self.small)
        return self.kernels.conv_norm(x, self._weights(conv), conv, gamma, beta, norm.statistics(self.running))

    def _augment(self, order: Tensor) -> Tensor:
        net = self.layout
        return self.kernels.augment(self.images, order, self.mean, net.input_shape, net.pad, self.dtype)

    def _step(self, batch: int) -> None:
        k, net = self.kernels, self.layout
        lanes = self.cursor + torch.arange(batch, device=self.device)
        order = self.order.index_select(1, lanes)
        y = self.target.gather(1, (order & 0xFFFFF).long())
        x = self._augment(order)
        h, s = self._conv_norm(x, net.stem, net.stem_norm)
        first, where = k.pool(h, s) if net.pooled else (k.activate(h, s), None)
        a, kept = first, []
        for block in net.blocks:
            kept.append(self._block(a, block))
            a = kept[-1].out
        z = k.head(a, net.head_weight(self.small), net.head_bias(self.small)).requires_grad_()
        with torch.enable_grad():
            (d,) = torch.autograd.grad(self.objective(z, y), z)
        d = k.head_back(
            d, a, net.head_weight(self.small), net.head_weight(self.small_grads), net.head_bias(self.small_grads)
        )
        for block in reversed(net.blocks):
            d = self._block_back(d, block, kept.pop())
        g, alive = (d, first) if where is None else (k.pool_back(d, where, h, s), None)
        g = self._norm_back(g, alive, h, s, net.stem_norm)
        k.conv_back_weight(x, g, net.stem, net.stem.weights(self.grads))
        options = self.rate, self.momentum, self.decay
        k.learn(self.grads, Learning(self.params, self.velocity, self.shadow, *options))
        k.learn(self.small_grads, Learning(self.small, self.small_velocity, None, *options))
        self.cursor += batch

    def _block(self, x: Tensor, block: Block) -> _Kept:
        h1, s1 = self._conv_norm(x, block.conv1, block.norm1)
        a1 = self.kernels.activate(h1, s1)
        h2, s2 = self._conv_norm(a1, block.conv2, block.norm2)
        around = None if block.around is None else self._conv_norm(x, *block.around)
        out = self.kernels.activate(h2, s2, x, None) if around is None else self.kernels.activate(h2, s2, *around)
        return _Kept(x, h1, s1, a1, h2, s2, around, out)

    def _norm_back(self, d: Tensor, alive: Tensor | None, h: Tensor, s: Statistics, norm: Norm) -> Tensor:
        gamma = norm.gamma(self.small)
        grads = norm.gamma(self.small_grads), norm.beta(self.small_grads)
        return self.kernels.norm_back(d, alive, h, s, gamma, *grads)

    def _block_back(self, d: Tensor, block: Block, kept: _Kept) -> Tensor:
        k = self.kernels
        g = self._norm_back(d, kept.out, kept.h2, kept.s2, block.norm2)
        k.conv_back_weight(kept.a1, g, block.conv2, block.conv2.weights(self.grads))
        g = k.conv_back_data(g, self._weights(block.conv2), block.conv2)
        g = self._norm_back(g, kept.a1, kept.h1, kept.s1, block.norm1)
        k.conv_back_weight(kept.x, g, block.conv1, block.conv1.weights(self.grads))
        same = {} if kept.around is not None else {"add": d, "alive": kept.out}
        out = k.conv_back_data(g, self._weights(block.conv1), block.conv1, **same)
        if block.around is not None and kept.around is not None:
            conv, norm = block.around
            g = self._norm_back(d, kept.out, *kept.around, norm)
            k.conv_back_weight(kept.x, g, conv, conv.weights(self.grads))
            k.conv_back_data(g, self._weights(conv), conv, onto=out)
        return out

    # What an evaluation is

    def _set_lines(self) -> None:
        """Turn every normalisation into the line that its running statistics make of it."""
        for norm, line in zip(self.layout.norms(), self.lines, strict=True):
            mean, var = norm.statistics(self.running).unbind(1)
            torch.mul(norm.gamma(self.small), (var + EPSILON).rsqrt(), out=line[0])
            line[1].copy_(norm.beta(self.small) - mean * line[0])

    def _look(self, batch: int) -> None:
        k, net = self.kernels, self.layout
        lines = ((line[0], line[1]) for line in self.lines)
        lanes = self.cursor + torch.arange(batch, device=self.device)
        order = self.middle[lanes].expand(len(self.members), -1).contiguous()
        a = k.conv_line(self._augment(order), self._weights(net.stem), net.stem, *next(lines), None, True)
        a = k.pool(a, None)[0] if net.pooled else a
        for block in net.blocks:
            line1, line2 = next(lines), next(lines)
            h = k.conv_line(a, self._weights(block.conv1), block.conv1, *line1, None, True)
            if block.around is not None:
                conv = block.around[0]
                a = k.conv_line(a, self._weights(conv), conv, *next(lines), None, False)
            a = k.conv_line(h, self._weights(block.conv2), block.conv2, *line2, a, True)
        z = k.head(a, net.head_weight(self.small), net.head_bias(self.small))
        self.logits.index_copy_(1, lanes, z)
        self.cursor += batch

    # How they are run

    def _do(self, name: str, act: Callable[[int], None], batch: int) -> None:
        """Run at once on a CPU; on a GPU replay the recorded graph, which is recorded the first time."""
        if self.device.type != "cuda":
            act(batch)
            return
        if (name, batch) not in self._graphs:
            self._graphs[name, batch] = self._record(act, batch)
        self._graphs[name, batch].replay()

    def _record(self, act: Callable[[int], None], batch: int) -> torch.cuda.CUDAGraph:
        # Kernels are compiled while they run for the first time, which a recording does not allow; what that
        # first run changes is put back.
        before = {key: value.clone() for key, value in self.state().items()}
        stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            act(batch)
        torch.cuda.current_stream().wait_stream(stream)
        self.restore(before)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self._pool):
            act(batch)
        self._pool = graph.pool()
        return graph

    def _walk(self, name: str, act: Callable[[int], None], rows: int, batch: int) -> None:
        self.cursor.zero_()
        with torch.no_grad():
            for start in range(0, rows, batch):
                self._do(name, act, min(batch, rows - start))

    def train_epoch(self) -> None:
        """Train all runs for one epoch, each in its own random order."""
        orders = {
            key: augmentation.epoch(split.train, self.image_size, self.layout.image, self.pad, *key, self.epoch)
            for key, split in self._keys.items()
        }
        order = np.stack([orders[m.key] for m in self.members])
        self.order.copy_(torch.from_numpy(order))
        rates: list[float] = [m.rate(self.epoch) if callable(m.rate) else m.rate for m in self.members]
        self.rate.copy_(torch.tensor(rates, dtype=torch.float64))
        if isinstance(self.objective, LossSum):
            self.objective.at_epoch(self.epoch)
        self._walk("step", self._step, self.rows, self.batch)
        self.epoch += 1

    def margins(self) -> Tensor:
        """The margins z of every row, from the centre of its image: ``(R, N)`` on the device."""
        self._set_lines()
        self._walk("look", self._look, len(self.images), self.eval_batch)
        return self.logits

    # What is kept

    def state(self) -> dict[str, Tensor]:
        """All that training changes, on the device."""
        own = {
            name: getattr(self, name) for name in ("params", "velocity", "small", "small_velocity", "running", "cursor")
        }
        if self.shadow is not None:
            own["shadow"] = self.shadow
        if isinstance(self.objective, nn.Module):
            own |= {f"objective.{name}": t for name, t in self.objective.state_dict(keep_vars=True).items()}
        return own

    def restore(self, state: dict[str, Tensor]) -> None:
        """Put back what `state` gave."""
        mine = self.state()
        if set(mine) != set(state):
            raise ValueError(f"A checkpoint of another stack: {sorted(set(mine) ^ set(state))[:3]} differ.")
        for name, value in mine.items():
            value.detach().copy_(state[name])
