"""The CUDA half of losses.py: GPU time of forward and backward, in units of the copy bandwidth.

The unit is the time to read logits and targets once and write the gradient once at the bandwidth of a
device-to-device copy of as many bytes in the same process (for the soft loss two reads more). GPU time is that of
a replayed CUDA graph, which leaves out the host; `eager` is what a loop sees that does nothing but the loss, where
the host's launches are not hidden behind the model's work.
"""

from __future__ import annotations

import platform
import statistics
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from fbeta import FBeta, SoftLoss, SurrogateLoss, TangentLoss

RATE = 0.1
METRIC = FBeta(1)


def times(run: Callable[[], Any], repeats: int) -> list[float]:
    """Milliseconds of each call by CUDA events."""
    for _ in range(3):
        run()
    found = []
    for _ in range(repeats):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
        start.record()
        run()
        end.record()
        end.synchronize()
        found.append(start.elapsed_time(end))
    return found


def graphed(step: Callable[[], None], reset: Callable[[], None]) -> torch.cuda.CUDAGraph:
    """A CUDA graph of a step, after two calls to warm up."""
    side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(2):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    reset()
    with torch.cuda.graph(graph):
        step()
    return graph


def measure(n: int, repeats: int) -> dict[str, Any]:
    """All rows, and where and with what they were measured."""
    rows = []
    for dtype in (torch.float32, torch.bfloat16):
        z = torch.randn(n, device="cuda").to(dtype).requires_grad_()
        y = (torch.rand(n, device="cuda") < RATE).to(dtype)
        source = torch.empty(3 * n // 2, device="cuda", dtype=dtype)
        sink = torch.empty_like(source)
        unit = statistics.median(times(lambda s=source, k=sink: k.copy_(s), repeats))  # type: ignore[misc]
        weight = torch.tensor((1 - RATE) / RATE, device="cuda")

        def pos_weight(z: Tensor, y: Tensor, weight: Tensor = weight) -> Tensor:
            return F.binary_cross_entropy_with_logits(z, y, pos_weight=weight)

        losses: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
            "bce": F.binary_cross_entropy_with_logits,
            "bce pos_weight": pos_weight,
            "surrogate": SurrogateLoss(METRIC, prevalence=RATE).cuda(),
            "tangent": TangentLoss(METRIC).cuda(),
            "soft": SoftLoss(METRIC).cuda(),
        }
        for name, loss in losses.items():

            def step(loss: Any = loss, z: Tensor = z, y: Tensor = y) -> None:
                z.grad = None
                loss(z, y).backward()

            def reset(z: Tensor = z) -> None:
                z.grad = None

            eager = statistics.median(times(step, repeats))
            graph = graphed(step, reset)
            gpu = times(graph.replay, repeats)
            passes = 5 / 3 if name == "soft" else 1.0
            low, middle, high = (x / (passes * unit) for x in statistics.quantiles(gpu, n=4))
            rows.append(
                {
                    "dtype": str(dtype).removeprefix("torch."),
                    "case": name,
                    "gpu_ms": middle * passes * unit,
                    "ratio": middle,
                    "ratio_low": low,
                    "ratio_high": high,
                    "eager_ratio": eager / (passes * unit),
                    "unit_ms": passes * unit,
                }
            )
            del graph
    return {
        "device": "cuda",
        "machine": torch.cuda.get_device_name(),
        "versions": {"python": platform.python_version(), "torch": torch.__version__},
        "logits": n,
        "repeats": repeats,
        "metric": str(METRIC),
        "command": "python benchmarks/losses.py --device cuda",
        "rows": rows,
    }


def render(result: dict[str, Any]) -> str:
    """A result as Markdown."""
    versions = ", ".join(f"{name} {version}" for name, version in result["versions"].items())
    lines = [
        f"{result['logits'] / 2**20:g} Mi logits, forward and backward, {result['metric']}. {result['machine']}; "
        f"{versions}; n = {result['repeats']}, median and quartiles.",
        "The unit is the time to read logits and targets once and write the gradient once at the copy bandwidth of",
        "the same run; for the soft loss with two reads more. GPU time by graph replay; eager includes the host.",
        "",
        f"`{result['command']}`",
        "",
        "| type | case | GPU ms | × unit | quartiles | eager × unit |",
        "|---|---|---|---|---|---|",
    ]
    for row in result["rows"]:
        lines.append(
            f"| {row['dtype']} | {row['case']} | {row['gpu_ms']:.3f} | {row['ratio']:.2f} "
            f"| {row['ratio_low']:.2f}–{row['ratio_high']:.2f} | {row['eager_ratio']:.2f} |"
        )
    return "\n".join(lines) + "\n"
