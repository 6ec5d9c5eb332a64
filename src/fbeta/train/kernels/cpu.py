"""The kernels in plain PyTorch: they run anywhere, and the Triton ones are held against them."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn import grad

from fbeta.train.kernels import EPSILON, MOMENTUM, Learning
from fbeta.train.layers import Conv


class Statistics(NamedTuple):
    """What a normalisation computed from a batch: mean, 1/σ, and the line scale·h + shift; each ``(R, C)``."""

    mean: Tensor
    inverse: Tensor
    scale: Tensor
    shift: Tensor


def augment(
    images: Tensor, order: Tensor, mean: Tensor, shape: tuple[int, int, int], border: int, dtype: torch.dtype
) -> Tensor:
    """Cut, flip and centre images, and lay them out for the stem.

    `order` packs row, vertical and horizontal offset and flip (`fbeta.train.batches.pack`); pixels outside of
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
    pixels = images[
        row[..., None, None].long(), y.clamp(0, h - 1)[..., :, None], x.clamp(0, w - 1)[..., None, :]
    ]
    bright = torch.where(inside[..., None], pixels.to(mean.dtype) / 255, 0.0) - mean[:, None]
    out = torch.zeros(runs, batch, *shape, dtype=dtype, device=images.device)
    out[:, :, border : border + size, border : border + size, :3] = bright.expand(
        *bright.shape[:-1], 3 if colours == 1 else colours
    )
    return out


def conv_norm(
    x: Tensor, w: Tensor, c: Conv, gamma: Tensor, beta: Tensor, running: Tensor
) -> tuple[Tensor, Statistics]:
    """Convolve, and find the result's mean and 1/σ by channel; `running` ``(R, 2, C)`` follows them."""
    out = _conv(x, w, c)
    h = _up(out).flatten(1, 3)
    mean, var = _by_run(lambda x: x.mean(0), h), _by_run(lambda x: x.var(0, unbiased=False), h)
    count = h.shape[1]
    running[:, 0].lerp_(mean, MOMENTUM)
    running[:, 1].lerp_(var * (count / max(count - 1, 1)), MOMENTUM)
    inverse = (var + EPSILON).rsqrt()
    scale = gamma * inverse
    return out, Statistics(mean, inverse, scale, beta - mean * scale)


def conv_line(
    x: Tensor, w: Tensor, c: Conv, scale: Tensor, shift: Tensor, around: Tensor | None, relu: bool
) -> Tensor:
    """Convolve and apply a line per channel, as a network in evaluation does."""
    out = _conv(x, w, c) * _wide(scale) + _wide(shift)
    out = out if around is None else out + around
    return (F.relu(out) if relu else out).to(x.dtype)


def activate(
    h: Tensor, s: Statistics, around: Tensor | None = None, around_s: Statistics | None = None
) -> Tensor:
    """relu(scale·h + shift + what goes around)."""
    out = _up(h) * _wide(s.scale) + _wide(s.shift)
    if around is not None:
        out = out + (around if around_s is None else around * _wide(around_s.scale) + _wide(around_s.shift))
    return F.relu(out).to(h.dtype)


def pool(h: Tensor, s: Statistics | None) -> tuple[Tensor, Tensor]:
    """Activate (if statistics are given) and take the largest of 3×3, every second pixel; and which one it was."""
    a = h if s is None else activate(h, s)
    flat = _up(a.flatten(0, 1).permute(0, 3, 1, 2))
    out, where = F.max_pool2d(flat, 3, 2, 1, return_indices=True)
    back = [t.permute(0, 2, 3, 1).contiguous().view(*h.shape[:2], *t.shape[2:], -1) for t in (out, where)]
    return back[0].to(h.dtype), back[1]


def pool_back(d: Tensor, where: Tensor, h: Tensor, s: Statistics) -> Tensor:
    """The gradient before the activation, from the one after the pool."""
    runs, batch, high, wide, channels = h.shape
    out = torch.zeros(runs, batch, high * wide, channels, dtype=_up(h).dtype)
    out.scatter_add_(2, where.flatten(2, 3), _up(d.flatten(2, 3)))
    alive = _up(h) * _wide(s.scale) + _wide(s.shift) > 0
    return (out.view_as(h) * alive).to(h.dtype)


def norm_back(
    d: Tensor, alive: Tensor | None, h: Tensor, s: Statistics, gamma: Tensor, d_gamma: Tensor, d_beta: Tensor
) -> Tensor:
    """The gradient before a normalisation; `alive` is the activation after it (positive where it passes)."""
    g = _up(d) if alive is None else _up(d) * (alive > 0)
    hat = (_up(h) - _wide(s.mean)) * _wide(s.inverse)
    d_beta.copy_(_by_run(lambda x: x.flatten(0, 2).sum(0), g))
    d_gamma.copy_(_by_run(lambda x: x.flatten(0, 2).sum(0), g * hat))
    count = h[0].numel() // h.shape[-1]
    inner = g - _wide(d_beta / count) - hat * _wide(d_gamma / count)
    return (inner * _wide(gamma * s.inverse)).to(h.dtype)


def conv_back_data(
    d: Tensor,
    w: Tensor,
    c: Conv,
    add: Tensor | None = None,
    alive: Tensor | None = None,
    onto: Tensor | None = None,
) -> Tensor:
    """The gradient before a convolution, plus `add` where `alive` is positive; or added `onto` a tensor."""
    shape = (d.shape[1], c.channels_in, c.rows.size, c.cols.size)

    def one(g: Tensor, k: Tensor) -> Tensor:
        out: Tensor = grad.conv2d_input(shape, _full(k, c), _first(g), _stride(c), _pad(c))  # type: ignore[no-untyped-call]
        return out

    out = _by_run(one, d, w).permute(0, 1, 3, 4, 2)
    if add is not None:
        out = out + (add if alive is None else add * (alive > 0))
    if onto is not None:
        return onto.add_(out)
    return out.to(d.dtype).contiguous()


def conv_back_weight(x: Tensor, d: Tensor, c: Conv, out: Tensor) -> None:
    """The gradient of the weights, into `out` ``(R, taps, in, out)``; zero where a channel only fills up."""
    shape = (c.channels_out, c.channels_in, *_kernel(c))
    for one, g, into in zip(x, d, out, strict=True):
        x_first, g_first = _image(one, c), _first(g)
        full = grad.conv2d_weight(x_first, shape, g_first, _stride(c), _pad(c))  # type: ignore[no-untyped-call]
        live = full[..., c.rows.first : c.rows.first + c.rows.taps, c.cols.first : c.cols.first + c.cols.taps]
        into.copy_(live.permute(2, 3, 1, 0).flatten(0, 1))
    if c.pixels:
        real = torch.zeros(c.channels_in // 4, 4, dtype=out.dtype)
        real[: c.pixels, :3] = 1
        out.mul_(real.flatten()[:, None])


def head(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    """The margin l₁ − l₀ of a two-column softmax over the mean of all positions: ``(R, B)``."""
    features = _up(x).mean((2, 3))
    return _by_run(torch.mv, features, w[:, 1] - w[:, 0]) + (b[:, 1] - b[:, 0])[:, None]


def head_back(d: Tensor, x: Tensor, w: Tensor, d_w: Tensor, d_b: Tensor) -> Tensor:
    """The gradient before the head; those of its weights into `d_w` and `d_b`."""
    features = _up(x).mean((2, 3))
    one, level = _by_run(torch.mv, features.mT, d), _by_run(torch.sum, d)
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


def _by_run(f: Callable[..., Tensor], *stacked: Tensor) -> Tensor:
    """Reduce every run by itself: over all at once, the order of a sum would depend on their number."""
    return torch.stack([f(*one) for one in zip(*stacked, strict=True)])


def _up(x: Tensor) -> Tensor:
    """In at least single precision."""
    return x if x.dtype == torch.float64 else x.float()


def _wide(per_channel: Tensor) -> Tensor:
    return per_channel[:, None, None, None]


def _first(x: Tensor) -> Tensor:
    return x.permute(0, 3, 1, 2)


def _stride(c: Conv) -> tuple[int, int]:
    return c.rows.stride, c.cols.stride


def _pad(c: Conv) -> tuple[int, int]:
    return c.rows.pad, c.cols.pad


def _kernel(c: Conv) -> tuple[int, int]:
    """The kernel's full size; it is symmetric about its padding, or starts at zero."""
    return tuple(2 * a.pad + 1 if a.pad else a.taps for a in (c.rows, c.cols))  # type: ignore[return-value]


def _full(w: Tensor, c: Conv) -> Tensor:
    full = w.new_zeros(c.channels_out, c.channels_in, *_kernel(c))
    live = w.reshape(c.rows.taps, c.cols.taps, *w.shape[1:]).permute(3, 2, 0, 1)
    full[..., c.rows.first : c.rows.first + c.rows.taps, c.cols.first : c.cols.first + c.cols.taps] = live
    return full


def _image(x: Tensor, c: Conv) -> Tensor:
    """One run's images as ``(B, C, H, W)``, along the steps that the convolution reads with."""
    shape = (x.shape[0], c.rows.size, c.cols.size, c.channels_in)
    return _first(x.as_strided(shape, (*c.steps, 1), x.storage_offset()))


def _conv(x: Tensor, w: Tensor, c: Conv) -> Tensor:
    def one(x: Tensor, w: Tensor) -> Tensor:
        return F.conv2d(_image(x, c), _full(w, c), None, _stride(c), _pad(c)).permute(0, 2, 3, 1)

    return _by_run(one, x, w)
