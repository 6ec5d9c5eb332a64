"""The paper's ResNets, as torchvision defines them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn


@dataclass(frozen=True)
class Architecture:
    """A residual network of basic blocks in numbers: what a module, and the engine for many runs, are built from.

    `stem`: "imagenet" is a 7×7 convolution of stride 2 and a max-pool (torchvision's), "cifar" a 3×3 one alone.

    >>> ARCHITECTURES["resnet34"].blocks
    (3, 4, 6, 3)
    """

    blocks: tuple[int, int, int, int]
    width: int = 64
    stem: str = "imagenet"
    outputs: int = 2

    def __post_init__(self) -> None:
        if self.stem not in ("imagenet", "cifar"):
            raise ValueError(f"stem must be 'imagenet' or 'cifar'; got {self.stem!r}.")


#: Networks by name.
ARCHITECTURES = {"resnet18": Architecture((2, 2, 2, 2)), "resnet34": Architecture((3, 4, 6, 3))}


class BasicBlock(nn.Module):
    r"""Two 3×3 convolutions and a way around them.

    .. math:: x \mapsto \operatorname{relu}(x + \operatorname{bn}(W_2 \operatorname{relu}(\operatorname{bn}(W_1 x))))

    Shape: ``(N, C, H, W)`` to ``(N, C', H/stride, W/stride)``.

    >>> BasicBlock(8, 16, stride=2)(torch.zeros(1, 8, 4, 4)).shape
    torch.Size([1, 16, 2, 2])

    Reference: [he2016]
    """

    def __init__(self, channels_in: int, channels: int, stride: int = 1) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels_in, channels, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)
        self.downsample: nn.Sequential | None = None
        if stride != 1 or channels_in != channels:
            self.downsample = nn.Sequential(
                nn.Conv2d(channels_in, channels, 1, stride, bias=False), nn.BatchNorm2d(channels)
            )

    def forward(self, x: Tensor) -> Tensor:
        """Add what two convolutions find to what came in."""
        around = x if self.downsample is None else self.downsample(x)
        out = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        return F.relu(out + around)


class ResNet(nn.Module):
    """A residual network whose parameters have torchvision's names, shapes and order.

    Shape: ``(N, 3, H, W)`` to ``(N, outputs)``.

    >>> ResNet(ARCHITECTURES["resnet18"])(torch.zeros(2, 3, 32, 32)).shape
    torch.Size([2, 2])

    Reference: [he2016]
    """

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        self.architecture = architecture
        width = architecture.width
        wide = architecture.stem == "imagenet"
        self.conv1 = nn.Conv2d(3, width, *((7, 2, 3) if wide else (3, 1, 1)), bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.pool = nn.MaxPool2d(3, 2, 1) if wide else nn.Identity()
        channels = width
        for stage, depth in enumerate(architecture.blocks):
            blocks = []
            for i in range(depth):
                stride = 2 if stage > 0 and i == 0 else 1
                blocks.append(BasicBlock(channels, width << stage, stride))
                channels = width << stage
            self.add_module(f"layer{stage + 1}", nn.Sequential(*blocks))
        self.fc = nn.Linear(channels, architecture.outputs)

    def forward(self, x: Tensor) -> Tensor:
        """Logits."""
        x = self.pool(F.relu(self.bn1(self.conv1(x))))
        for stage in range(4):
            x = self.get_submodule(f"layer{stage + 1}")(x)
        result: Tensor = self.fc(x.mean((2, 3)))
        return result


def initial_weights(model: ResNet, rng: np.random.Generator) -> dict[str, Tensor]:
    r"""Draw torchvision's initial weights from a generator that gives the same numbers on every machine.

    .. math:: W \sim N(0, 2/(k^2 C_{out})) \text{ for a convolution}, \qquad
              U(-1/\sqrt C, 1/\sqrt C) \text{ for the last layer}

    >>> w = initial_weights(ResNet(ARCHITECTURES["resnet18"]), np.random.Generator(np.random.Philox(0)))
    >>> w["fc.weight"].shape
    torch.Size([2, 512])

    Reference: [he2015]
    """
    drawn: dict[str, Tensor] = {}
    for name, p in model.named_parameters():
        if p.ndim == 4:
            fan_out = p.shape[0] * p.shape[2] * p.shape[3]
            values = rng.standard_normal(p.shape, dtype=np.float32) * np.float32((2 / fan_out) ** 0.5)
        elif name.startswith("fc."):
            bound = model.fc.in_features**-0.5
            values = rng.uniform(-bound, bound, p.shape).astype(np.float32)
        else:
            values = np.full(p.shape, name.endswith("weight"), dtype=np.float32)
        drawn[name] = torch.from_numpy(values)
    return drawn
