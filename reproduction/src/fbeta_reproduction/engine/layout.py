"""A residual network laid out flat for many runs at once: where every weight lies, and what a convolution touches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import torch
from torch import Tensor

from fbeta_reproduction.engine.resnet import Architecture, ResNet

#: Parameters start at multiples of this, so that rows of weights can be read in whole vectors.
ALIGN = 16


@dataclass(frozen=True)
class Window:
    """One axis of a convolution: sizes, stride, padding, and the taps that ever meet a pixel.

    A 3-tap kernel on one pixel with a border of one multiplies only zeros with its outer taps: they have no
    effect and no gradient, so they are left out (in the last stage of the paper's networks 8 of 9).

    >>> Window.of(size=1, kernel=3, stride=1, pad=1)
    Window(size=1, out=1, stride=1, pad=1, first=1, taps=1)
    """

    size: int
    out: int
    stride: int
    pad: int
    first: int
    taps: int

    @classmethod
    def of(cls, size: int, kernel: int, stride: int, pad: int) -> Window:
        """Work out the output size and the live taps.

        >>> Window.of(size=2, kernel=3, stride=2, pad=1).taps
        2
        """
        out = (size + 2 * pad - kernel) // stride + 1
        live = [d for d in range(kernel) if any(0 <= o * stride + d - pad < size for o in range(out))]
        return cls(size, out, stride, pad, live[0], len(live))


@dataclass(frozen=True)
class Conv:
    """A convolution of channels-last images: its two axes, channels, and where its weights lie.

    Weights are ``(taps, channels_in, channels_out)``. `steps` are the distances of images, rows and columns in
    the input's memory; they may overlap (see `Layout.input_shape`). Where the channels are pixels of four colours,
    only the first `pixels` of them, and three colours, are real (0: all channels are).
    """

    name: str
    rows: Window
    cols: Window
    channels_in: int
    channels_out: int
    steps: tuple[int, int, int]
    offset: int
    pixels: int = 0

    @property
    def taps(self) -> int:
        """Live taps of both axes."""
        return self.rows.taps * self.cols.taps

    @property
    def size(self) -> int:
        """Number of weights."""
        return self.taps * self.channels_in * self.channels_out

    @property
    def out_shape(self) -> tuple[int, int, int]:
        """Height, width and channels of the output."""
        return self.rows.out, self.cols.out, self.channels_out

    def live(self, full: Tensor) -> Tensor:
        """The taps that are kept, of a kernel ``(out, in, k, k)``."""
        rows, cols = (slice(a.first, a.first + a.taps) for a in (self.rows, self.cols))
        return full[:, :, rows, cols]

    def weights(self, flat: Tensor) -> Tensor:
        """The view ``(R, taps, in, out)`` of flat parameters ``(R, P)``."""
        part = flat[:, self.offset : self.offset + self.size]
        return part.view(-1, self.taps, self.channels_in, self.channels_out)


@dataclass(frozen=True)
class Norm:
    """A batch normalisation: where its two vectors lie, and where its running statistics do."""

    name: str
    channels: int
    offset: int
    running: int

    def gamma(self, flat: Tensor) -> Tensor:
        """The view ``(R, C)`` of the scales."""
        return flat[:, self.offset : self.offset + self.channels]

    def beta(self, flat: Tensor) -> Tensor:
        """The view ``(R, C)`` of the shifts."""
        return flat[:, self.offset + self.channels : self.offset + 2 * self.channels]

    def statistics(self, running: Tensor) -> Tensor:
        """The view ``(R, 2, C)`` of running means and variances ``(R, 2, all)``."""
        return running[:, :, self.running : self.running + self.channels]


@dataclass(frozen=True)
class Block:
    """A basic block, with its way around where the shape changes."""

    conv1: Conv
    norm1: Norm
    conv2: Conv
    norm2: Norm
    around: tuple[Conv, Norm] | None


@dataclass
class Layout:
    """The flat layout of an architecture for square RGB images: kernels in one block, all else in a small one.

    >>> from fbeta_reproduction.engine.resnet import ARCHITECTURES
    >>> layout = Layout(ARCHITECTURES["resnet18"])
    >>> layout.kernels + layout.small  # of 11,177,538: the others meet no pixel at 32 × 32
    4235664
    """

    architecture: Architecture
    image: int = 32
    kernels: int = field(init=False, default=0)
    small: int = field(init=False, default=0)
    statistics: int = field(init=False, default=0)
    blocks: list[Block] = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        width = self.architecture.width
        kernel, stride, pad = (7, 2, 3) if self.architecture.stem == "imagenet" else (3, 1, 1)
        self.kernel, self.pad = kernel, pad
        # Pixels are stored as four numbers (the last is zero) inside a border of zeros. Then the pixels under
        # one row of the kernel are neighbours in memory, and the stem is a convolution over *rows* alone,
        # whose channels are those pixels: wide enough for matrix units, and copied nowhere.
        self.reach = 8 if kernel == 7 else 4
        high = self.image + 2 * pad
        wide = high + self.reach - kernel + 1
        self.input_shape = (high, wide, 4)
        rows = Window.of(high, kernel, stride, 0)
        cols = Window(rows.out, rows.out, 1, 0, 0, 1)
        steps = (high * wide * 4, wide * 4, stride * 4)
        self.stem = self._conv("conv1", rows, cols, 4 * self.reach, width, steps, pixels=kernel)
        self.stem_norm = self._norm("bn1", width)
        size = rows.out
        self.pooled = self.architecture.stem == "imagenet"
        if self.pooled:
            size = (size + 2 - 3) // 2 + 1
        channels = width
        for stage, depth in enumerate(self.architecture.blocks):
            for i in range(depth):
                self.blocks.append(self._block(f"layer{stage + 1}.{i}", channels, width << stage, size, stage, i))
                channels, size = width << stage, self.blocks[-1].conv1.rows.out
        self.channels, self.positions = channels, size * size
        self.head = self._take_small(self.architecture.outputs * (channels + 1))

    def _block(self, name: str, channels_in: int, channels: int, size: int, stage: int, i: int) -> Block:
        stride = 2 if stage > 0 and i == 0 else 1
        conv1 = self._square(f"{name}.conv1", channels_in, channels, size, 3, stride)
        norm1 = self._norm(f"{name}.bn1", channels)
        conv2 = self._square(f"{name}.conv2", channels, channels, conv1.rows.out, 3, 1)
        norm2 = self._norm(f"{name}.bn2", channels)
        around = None
        if stride != 1 or channels_in != channels:
            conv = self._square(f"{name}.downsample.0", channels_in, channels, size, 1, stride)
            around = conv, self._norm(f"{name}.downsample.1", channels)
        return Block(conv1, norm1, conv2, norm2, around)

    def _square(self, name: str, channels_in: int, channels: int, size: int, kernel: int, stride: int) -> Conv:
        window = Window.of(size, kernel, stride, kernel // 2)
        steps = (size * size * channels_in, size * channels_in, channels_in)
        return self._conv(name, window, window, channels_in, channels, steps)

    def _conv(
        self,
        name: str,
        rows: Window,
        cols: Window,
        inner: int,
        outer: int,
        steps: tuple[int, int, int],
        pixels: int = 0,
    ) -> Conv:
        conv = Conv(name, rows, cols, inner, outer, steps, self.kernels, pixels)
        self.kernels += -(-conv.size // ALIGN) * ALIGN
        return conv

    def _norm(self, name: str, channels: int) -> Norm:
        offset, running = self._take_small(2 * channels), self.statistics
        self.statistics += channels
        return Norm(name, channels, offset, running)

    def _take_small(self, count: int) -> int:
        start = self.small
        self.small += -(-count // ALIGN) * ALIGN
        return start

    def convs(self) -> Iterator[Conv]:
        """All convolutions, in order."""
        yield self.stem
        for block in self.blocks:
            yield block.conv1
            yield block.conv2
            if block.around is not None:
                yield block.around[0]

    def norms(self) -> Iterator[Norm]:
        """All normalisations, in order."""
        yield self.stem_norm
        for block in self.blocks:
            yield block.norm1
            yield block.norm2
            if block.around is not None:
                yield block.around[1]

    def head_weight(self, flat: Tensor) -> Tensor:
        """The view ``(R, outputs, C)`` of the last layer's weights."""
        n = self.architecture.outputs * self.channels
        return flat[:, self.head : self.head + n].view(-1, self.architecture.outputs, self.channels)

    def head_bias(self, flat: Tensor) -> Tensor:
        """The view ``(R, outputs)`` of the last layer's biases."""
        start = self.head + self.architecture.outputs * self.channels
        return flat[:, start : start + self.architecture.outputs]

    def pack(self, weights: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        """Lay a module's parameters (torchvision's names) out flat, live taps only: kernels, and all else."""
        flat, small = torch.zeros(1, self.kernels), torch.zeros(1, self.small)
        for conv in self.convs():
            full = weights[f"{conv.name}.weight"]
            if conv is self.stem:
                # (out, 3, k, k) → (k rows, reach columns × 4 colours, out)
                grid = torch.zeros(self.kernel, self.reach, 4, conv.channels_out)
                grid[:, : self.kernel, :3] = full.permute(2, 3, 1, 0)
                conv.weights(flat)[0] = grid.flatten(1, 2)
                continue
            live = conv.live(full)
            conv.weights(flat)[0] = live.permute(2, 3, 1, 0).flatten(0, 1)
        for norm in self.norms():
            norm.gamma(small)[0] = weights[f"{norm.name}.weight"]
            norm.beta(small)[0] = weights[f"{norm.name}.bias"]
        self.head_weight(small)[0] = weights["fc.weight"]
        self.head_bias(small)[0] = weights["fc.bias"]
        return flat[0], small[0]

    def unpack(self, flat: Tensor, small: Tensor, model: ResNet) -> dict[str, Tensor]:
        """A module's parameters from their flat layout; taps that never meet a pixel keep what the module has."""
        weights = {name: p.detach().clone() for name, p in model.named_parameters()}
        flat, small = flat[None], small[None]
        for conv in self.convs():
            full, own = weights[f"{conv.name}.weight"], conv.weights(flat)[0]
            if conv is self.stem:
                grid = own.reshape(self.kernel, self.reach, 4, conv.channels_out)
                full.copy_(grid[:, : self.kernel, :3].permute(3, 2, 0, 1))
                continue
            live = own.reshape(conv.rows.taps, conv.cols.taps, *own.shape[1:]).permute(3, 2, 0, 1)
            conv.live(full).copy_(live)
        for norm in self.norms():
            weights[f"{norm.name}.weight"] = norm.gamma(small)[0]
            weights[f"{norm.name}.bias"] = norm.beta(small)[0]
        weights["fc.weight"], weights["fc.bias"] = self.head_weight(small)[0], self.head_bias(small)[0]
        return weights
