"""The kernels in plain PyTorch: they run anywhere, and the Triton ones are held against them."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn import grad

from fbeta_reproduction.engine.layout import Conv

#: torch.nn.BatchNorm2d's.
EPSILON = 1e-5
MOMENTUM = 0.1


class Statistics(NamedTuple):
    """What a normalisation computed from a batch: mean, 1/σ, and the line scale·h + shift; each ``(R, C)``."""

    mean: Tensor
    inverse: Tensor
    scale: Tensor
    shift: Tensor


class Learning(NamedTuple):
    """What torch.optim.SGD needs to take a step: weights ``(R, P)`` and their velocity, a copy of the weights in less
    precision (or None), a rate for every run ``(R,)``, momentum and weight decay.
    """

    weights: Tensor
    velocity: Tensor
    shadow: Tensor | None
    rate: Tensor
    momentum: float
    decay: float


def augment(
    images: Tensor, order: Tensor, mean: Tensor, shape: tuple[int, int, int], border: int, dtype: torch.dtype
) -> Tensor:
    """Cut, flip and centre images, and lay them out for the stem.

    `order` packs row, vertical and horizontal offset and flip (`augmentation.pack`); pixels outside of
    the picture are black, and the per-pixel mean is taken off afterwards, as the paper says.

    Shape: `images` ``(N, h, w, C)`` uint8, `order` ``(R, B)``, `mean` ``(R, S, S, C)``; result ``(R, B, *shape)``.
    """
    runs, batch = order.shape
    size, (h, w), colours = mean.shape[1], images.shape[1:3], images.shape[3]
    row, dy, dx, flip = order & 0xFFFFF, (order >> 20) & 31, (order >> 25) & 31, (order >> 30) & 1
    at = torch.arange(size, device=images.device)
    y = at + dy[..., None] - 16  # offsets are stored from −16
    x = torch.where(flip[..., None] > 0, size - 1 - at, at) + dx[..., None] - 16
    inside = ((y >= 0) & (y < h))[..., :, None] & ((x >= 0) & (x < w))[..., None, :]
    pixels = images[row[..., None, None].long(), y.clamp(0, h - 1)[..., :, None], x.clamp(0, w - 1)[..., None, :]]
    bright = torch.where(inside[..., None], pixels.to(mean.dtype) / 255, 0.0) - mean[:, None]
    out = torch.zeros(runs, batch, *shape, dtype=dtype, device=images.device)
    out[:, :, border : border + size, border : border + size, :3] = bright.expand(
        *bright.shape[:-1], 3 if colours == 1 else colours
    )
    return out


def conv_norm(x: Tensor, w: Tensor, c: Conv, gamma: Tensor, beta: Tensor, running: Tensor) -> tuple[Tensor, Statistics]:
    """Convolve, and find the result's mean and 1/σ by channel; `running` ``(R, 2, C)`` follows them."""

    def one(x: Tensor, w: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        out = _conv(x, w, c)
        h = _up(out).flatten(0, 2)
        mean = h.mean(0)
        return out, mean, (h - mean).square_().mean(0)  # torch's own variance is ten times slower

    out, mean, var = _by_run(one, x, w)
    count = x.shape[1] * c.rows.out * c.cols.out
    running[:, 0].lerp_(mean, MOMENTUM)
    running[:, 1].lerp_(var * (count / max(count - 1, 1)), MOMENTUM)
    inverse = (var + EPSILON).rsqrt()
    scale = gamma * inverse
    return out, Statistics(mean, inverse, scale, beta - mean * scale)


def conv_line(x: Tensor, w: Tensor, c: Conv, scale: Tensor, shift: Tensor, around: Tensor | None, relu: bool) -> Tensor:
    """Convolve and apply a line per channel, as a network in evaluation does."""

    def one(x: Tensor, w: Tensor, scale: Tensor, shift: Tensor, around: Tensor | None) -> Tensor:
        out = _line(_conv(x, w, c), scale, shift)
        out = out if around is None else out.add_(around)
        return (out.relu_() if relu else out).to(x.dtype)

    return _by_run(one, x, w, scale, shift, around)[0]


def activate(h: Tensor, s: Statistics, around: Tensor | None = None, around_s: Statistics | None = None) -> Tensor:
    """relu(scale·h + shift + what goes around)."""
    if around is not None and around_s is not None:
        around = _by_run(_line, around, around_s.scale, around_s.shift)[0]

    def one(h: Tensor, scale: Tensor, shift: Tensor, around: Tensor | None) -> Tensor:
        out = _line(h, scale, shift)
        return (out if around is None else out.add_(around)).relu_().to(h.dtype)

    return _by_run(one, h, s.scale, s.shift, around)[0]


def pool(h: Tensor, s: Statistics | None) -> tuple[Tensor, Tensor]:
    """Activate (if statistics are given) and take the largest of 3×3, every second pixel; and which one it was."""

    def one(a: Tensor) -> tuple[Tensor, Tensor]:
        out, where = F.max_pool2d(_first(_up(a)), 3, 2, 1, return_indices=True)
        return _last(out).to(h.dtype), _last(where)

    out, where = _by_run(one, h if s is None else activate(h, s))
    return out, where


def pool_back(d: Tensor, where: Tensor, h: Tensor, s: Statistics) -> Tensor:
    """The gradient before the activation, from the one after the pool."""

    def one(d: Tensor, where: Tensor, h: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
        out = _up(torch.zeros_like(h))
        out.flatten(1, 2).scatter_add_(1, where.flatten(1, 2), _up(d.flatten(1, 2)))
        return _where(_line(h, scale, shift), out).to(h.dtype)

    return _by_run(one, d, where, h, s.scale, s.shift)[0]


def norm_back(
    d: Tensor, alive: Tensor | None, h: Tensor, s: Statistics, gamma: Tensor, d_gamma: Tensor, d_beta: Tensor
) -> Tensor:
    """The gradient before a normalisation; `alive` is the activation after it (positive where it passes)."""

    def one(
        d: Tensor, alive: Tensor | None, h: Tensor, gamma: Tensor, mean: Tensor, inverse: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        g, x = _first(_where(alive, _up(d))), _first(_up(h))
        g, by_gamma, by_beta = torch.ops.aten.native_batch_norm_backward(
            g, x, gamma, None, None, mean, inverse, True, EPSILON, [True, True, True]
        )
        return _last(g).to(h.dtype), by_gamma, by_beta

    out, by_gamma, by_beta = _by_run(one, d, alive, h, gamma, s.mean, s.inverse)
    d_gamma.copy_(by_gamma)
    d_beta.copy_(by_beta)
    return out


def conv_back_data(
    d: Tensor, w: Tensor, c: Conv, add: Tensor | None = None, alive: Tensor | None = None, onto: Tensor | None = None
) -> Tensor:
    """The gradient before a convolution, plus `add` where `alive` is positive; or added `onto` a tensor."""
    shape = (d.shape[1], c.channels_in, c.rows.size, c.cols.size)

    def one(g: Tensor, w: Tensor, add: Tensor | None, alive: Tensor | None) -> Tensor:
        out = _last(grad.conv2d_input(shape, _kernel(w, c), _first(g), _stride(c), _pad(c)))  # type: ignore[no-untyped-call]
        return out if add is None else out.add_(_where(alive, add))

    if onto is not None:
        return onto.copy_(_by_run(one, d, w, onto, None)[0])
    return _by_run(one, d, w, add, alive)[0]


def conv_back_weight(x: Tensor, d: Tensor, c: Conv, out: Tensor) -> None:
    """The gradient of the weights, into `out` ``(R, taps, in, out)``; zero where a channel only fills up."""
    stride = _stride(c)
    if c.taps == 1:
        # Of a 1×1 convolution only the pixels that it reads: with stride 2, odd batches and 8 channels oneDNN 3.12
        # (torch 2.13) writes past the end of its memory on several threads.
        x, stride = x[:, :, :: c.rows.stride, :: c.cols.stride], (1, 1)
    for one, g, into in zip(x, d, out, strict=True):
        view = _kernel(into, c)
        view.copy_(grad.conv2d_weight(_image(one, c), view.shape, _first(g), stride, _pad(c)))  # type: ignore[no-untyped-call]
    if c.pixels:
        real = torch.zeros(c.channels_in // 4, 4, dtype=out.dtype)
        real[: c.pixels, :3] = 1
        out.mul_(real.flatten()[:, None])


def head(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    """The margin l₁ − l₀ of a two-column softmax over the mean of all positions: ``(R, B)``."""
    features = _up(x).mean((2, 3))
    return _by_run(torch.mv, features, w[:, 1] - w[:, 0])[0] + (b[:, 1] - b[:, 0])[:, None]


def head_back(d: Tensor, x: Tensor, w: Tensor, d_w: Tensor, d_b: Tensor) -> Tensor:
    """The gradient before the head; those of its weights into `d_w` and `d_b`."""
    features = _up(x).mean((2, 3))
    one, level = _by_run(lambda f, d: (torch.mv(f.T, d), d.sum()), features, d)
    d_w.copy_(torch.stack([-one, one], 1))
    d_b.copy_(torch.stack([-level, level], 1))
    share = d[..., None] * (w[:, 1] - w[:, 0])[:, None] / (x.shape[2] * x.shape[3])
    return share[:, :, None, None].expand_as(x).to(x.dtype).contiguous()


def learn(gradient: Tensor, step: Learning) -> None:
    """One step of torch.optim.SGD, every run with its own rate."""
    step.velocity.mul_(step.momentum).add_(gradient + step.decay * step.weights)
    step.weights.sub_(step.rate[:, None] * step.velocity)
    if step.shadow is not None:
        step.shadow.copy_(step.weights)


def _by_run(f: Callable[..., Tensor | tuple[Tensor, ...]], *stacked: Tensor | None) -> tuple[Tensor, ...]:
    """Put every run through the same calls by itself, and stack what they give; None is None for every run.

    Over all at once, the order of a sum would depend on their number; and what one run needs stays in the cache.
    """
    runs = next(len(t) for t in stacked if t is not None)
    parts = [[None] * runs if t is None else t.unbind() for t in stacked]
    results = [f(*one) for one in zip(*parts, strict=True)]
    columns = zip(*(r if isinstance(r, tuple) else (r,) for r in results), strict=True)
    return tuple(torch.stack(column) for column in columns)


def _up(x: Tensor) -> Tensor:
    """In at least single precision."""
    return x if x.dtype == torch.float64 else x.float()


def _line(x: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    """A line for every channel, in at least single precision and memory of its own."""
    return (_up(x) * scale).add_(shift)


def _where(alive: Tensor | None, d: Tensor) -> Tensor:
    """A gradient where the activation is positive, else zero, in one pass."""
    if alive is None:
        return d
    result: Tensor = torch.ops.aten.threshold_backward(d, alive.to(d.dtype), 0)
    return result


def _first(x: Tensor) -> Tensor:
    return x.permute(0, 3, 1, 2)


def _last(x: Tensor) -> Tensor:
    return x.permute(0, 2, 3, 1)


# A convolution as torch has it, live taps only. The stem's channels are pixels of four colours, laid over one another
# in memory (see `Layout`); torch would copy them apart, so here they are pixels and colours again.


def _stride(c: Conv) -> tuple[int, int]:
    return (c.rows.stride, c.rows.stride) if c.pixels else (c.rows.stride, c.cols.stride)


def _pad(c: Conv) -> tuple[int, int]:
    return c.rows.pad - c.rows.first, c.cols.pad - c.cols.first


def _kernel(w: Tensor, c: Conv) -> Tensor:
    """The view ``(out, in, taps, taps)`` of weights ``(taps, in, out)``."""
    inner = (-1, 4) if c.pixels else (c.cols.taps, c.channels_in)
    return w.view(c.rows.taps, *inner, c.channels_out).permute(3, 2, 0, 1)


def _image(x: Tensor, c: Conv) -> Tensor:
    """One run's images as ``(B, C, H, W)``."""
    if c.pixels:
        x = x[:, :, : (c.cols.out - 1) * c.rows.stride + c.channels_in // 4]
    return _first(x)


def _conv(x: Tensor, w: Tensor, c: Conv) -> Tensor:
    return _last(F.conv2d(_image(x, c), _kernel(w, c), None, _stride(c), _pad(c)))
