"""How long loss and gradient take, against binary cross entropy with pos_weight, in one process.

    python benchmarks/losses.py                          # kernels and modules, on the CPU
    python benchmarks/losses.py --cases module-surrogate
    python benchmarks/losses.py --n 64                   # a step of 64 rows: what calls cost, not rows
    python benchmarks/losses.py --device cuda            # 64 Mi logits against the copy bandwidth

Cases take turns within each of `--repeats` rounds, and a ratio is taken inside a round, so that a busy machine
slows both. Peak memory and the first call are measured in a fresh process each. The table is written to
benchmarks/results/losses-<device>.{json,md} unless `--dry`, with the number of logits in the name if it was given.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import losses_cuda
import torch
import torch.nn.functional as F
from torch import Tensor

from fbeta import FBeta, SoftLoss, SurrogateLoss, TangentLoss
from fbeta.losses.kernels.cpu import CpuRows
from fbeta.losses.kernels.formula import evaluate
from fbeta.losses.kernels.plain import SoftScore
from fbeta.losses.surrogate import AnchorTerms, SurrogateElements
from fbeta.losses.tangent import TangentElements

RESULTS = Path(__file__).parent / "results"
RATE = 0.1
BASELINE = "bce"
METRIC = FBeta(1)
#: Of fewer logits a case is called so often in a round that it sees as many: one call would be too short to time.
LEAST = 1 << 13


@dataclass(frozen=True)
class Batch:
    """What a case works on."""

    logits: Tensor
    target: Tensor

    @classmethod
    def make(cls, n: int, device: str) -> Batch:
        """Random float32 logits, and targets at the rate of positives RATE."""
        made = torch.Generator(device=device).manual_seed(0)
        logits = torch.randn(n, generator=made, device=device)
        return cls(logits, (torch.rand(n, generator=made, device=device) < RATE).float())


Run = Callable[[], None]


def bce(batch: Batch) -> Run:
    """PyTorch's own loss, as a user of imbalanced data calls it."""
    weight = torch.tensor((1 - RATE) / RATE, device=batch.logits.device)

    def run() -> None:
        z = batch.logits.detach().requires_grad_()
        F.binary_cross_entropy_with_logits(z, batch.target, pos_weight=weight).backward()  # type: ignore[no-untyped-call]

    return run


def module(make: Callable[[], torch.nn.Module]) -> Callable[[Batch], Run]:
    """A loss as a user calls it: forward and backward."""

    def case(batch: Batch) -> Run:
        loss = make().to(batch.logits.device)

        def run() -> None:
            z = batch.logits.detach().requires_grad_()
            loss(z, batch.target).backward()

        return run

    return case


def kernel_surrogate(batch: Batch) -> Run:
    """The compiled surrogate: sums and gradient of the mean."""
    elements = SurrogateElements(AnchorTerms(METRIC, RATE), (1 / (1 - RATE), 1 / RATE))
    rows = CpuRows(batch.logits, batch.target, None, None)

    def run() -> None:
        rows.run(elements.kernel, elements.numbers, soft=False, factor=1 / batch.logits.numel(), gradient=True)

    return run


def kernel_tangent(batch: Batch) -> Run:
    """The compiled tangent loss: sums, counts and gradient of the mean."""
    elements = TangentElements((0.3, 0.7, 0.0))  # and q
    rows = CpuRows(batch.logits, batch.target, None, None)

    def run() -> None:
        rows.run(elements.kernel, elements.numbers, soft=False, factor=1 / batch.logits.numel(), gradient=True)

    return run


def kernel_soft(batch: Batch) -> Run:
    """The compiled soft counts, the metric's slopes at them, and the gradient."""
    rows = CpuRows(batch.logits, batch.target, None, None)

    def run() -> None:
        sums, _ = rows.run("tangent", (0.0, 0.0, 1.0), soft=True, factor=1.0, gradient=False)
        costs = evaluate(SoftScore(METRIC), sums[2:], None)[1:]
        rows.run("tangent", costs, soft=True, factor=1.0, gradient=True)

    return run


CASES: dict[str, Callable[[Batch], Run]] = {
    BASELINE: bce,
    "kernel-surrogate": kernel_surrogate,
    "kernel-tangent": kernel_tangent,
    "kernel-soft": kernel_soft,
    "module-surrogate": module(lambda: SurrogateLoss(METRIC, prevalence=RATE)),
    "module-tangent": module(lambda: TangentLoss(METRIC)),
    "module-soft": module(lambda: SoftLoss(METRIC)),
}
DEFAULT = {"cpu": [name for name in CASES if name != BASELINE]}


@dataclass(frozen=True)
class Row:
    """What was measured of one case; times in milliseconds, memory in MiB."""

    case: str
    ms: float
    ratio: float
    ratio_low: float  # quartiles of the ratio over the rounds
    ratio_high: float
    peak_mib: float
    first_call_ms: float


def times(cases: list[str], batch: Batch, repeats: int, warmup: int = 3) -> dict[str, list[float]]:
    """Seconds per call of each case in each round; the cases take turns."""
    calls = max(1, LEAST // batch.logits.numel())
    runs = {name: CASES[name](batch) for name in cases}
    found: dict[str, list[float]] = {name: [] for name in cases}
    for turn in range(warmup + repeats):
        for name, run in runs.items():
            start = time.perf_counter()
            for _ in range(calls):
                run()
            took = (time.perf_counter() - start) / calls
            if turn >= warmup:
                found[name].append(took)
    return found


def child(what: str, case: str, n: int, device: str) -> float:
    """Measure in a fresh process: "memory" gives MiB, "first" milliseconds."""
    command = [sys.executable, __file__, "--child", what, "--cases", case, "--n", str(n), "--device", device]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def peak_memory(case: str, n: int, device: str) -> float:
    """By how many MiB a call raises the peak of the resident memory above its inputs."""
    CASES[case](Batch.make(100_000, device))()  # libraries and threads, which are paid once
    run = CASES[case](Batch.make(n, device))
    # Since Linux 4.0 this sets the peak back to what is resident now.
    Path("/proc/self/clear_refs").write_text("5")
    before = _status("VmHWM")
    run()
    return (_status("VmHWM") - before) / 1024


def first_call(case: str, n: int, device: str) -> float:
    """Milliseconds of a first call, after the imports."""
    batch = Batch.make(n, device)
    start = time.perf_counter()
    CASES[case](batch)()
    return (time.perf_counter() - start) * 1e3


def _status(field: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith(field)))


def measure(cases: list[str], n: int, device: str, repeats: int) -> dict[str, Any]:
    """All rows, and where, with what and how they were measured."""
    names = [BASELINE, *(name for name in cases if name != BASELINE)]
    load = os.getloadavg()[0]  # of others, before we add our own
    found = times(names, Batch.make(n, device), repeats)
    rows = []
    for name in names:
        ratios = [a / b for a, b in zip(found[name], found[BASELINE], strict=True)]
        low, middle, high = statistics.quantiles(ratios, n=4)
        rows.append(
            Row(
                name,
                ms=statistics.median(found[name]) * 1e3,
                ratio=middle,
                ratio_low=low,
                ratio_high=high,
                peak_mib=statistics.median(child("memory", name, n, device) for _ in range(3)),
                first_call_ms=statistics.median(child("first", name, n, device) for _ in range(3)),
            )
        )
    return {
        "device": device,
        "machine": machine(),
        "threads": torch.get_num_threads(),
        "load": round(load, 1),
        "versions": {"python": platform.python_version(), "torch": torch.__version__},
        "logits": n,
        "repeats": repeats,
        "metric": str(METRIC),
        "command": "python benchmarks/losses.py " + " ".join(sys.argv[1:]),
        "rows": [asdict(row) for row in rows],
    }


def machine() -> str:
    """The processor, its cores and its instructions."""
    model = platform.processor() or platform.machine()
    flags = ""
    if Path("/proc/cpuinfo").exists():
        lines = [line.partition(":") for line in Path("/proc/cpuinfo").read_text().splitlines()]
        fields = {name.strip(): value.strip() for name, _, value in lines}
        model = fields.get("model name", model)
        flags = ", AVX-512" if "avx512f" in fields.get("flags", "").split() else ""
    return f"{model}, {os.cpu_count()} cores{flags}"


def render(result: dict[str, Any]) -> str:
    """A result as Markdown."""
    versions = ", ".join(f"{name} {version}" for name, version in result["versions"].items())
    lines = [
        f"{result['logits']:,} float32 logits, forward and backward, {result['metric']}. "
        f"{result['machine']}; {result['threads']} threads, load {result['load']} before; {versions}; "
        f"n = {result['repeats']} rounds of all cases in turn; median and quartiles of the ratio within a round.",
        "A kernel writes the gradient of the mean and is called without autograd; a module is called as users do.",
        "",
        f"`{result['command'].strip()}`",
        "",
        f"| case | ms | × {BASELINE} (pos_weight) | quartiles | peak memory, MiB | first call, ms |",
        "|---|---|---|---|---|---|",
    ]
    for row in (Row(**row) for row in result["rows"]):
        lines.append(
            f"| {row.case} | {row.ms:.3g} | {row.ratio:.2f} | {row.ratio_low:.2f}–{row.ratio_high:.2f} "
            f"| {row.peak_mib:.0f} | {row.first_call_ms:.0f} |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure, print, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--cases", nargs="+", choices=list(CASES))
    parser.add_argument("--n", type=int, help="logits (default: 4 Mi on the CPU, 64 Mi on CUDA)")
    parser.add_argument("--repeats", type=int, default=31, help="rounds, 15 or more")
    parser.add_argument("--dry", action="store_true", help="write no table")
    parser.add_argument("--child", choices=["memory", "first"], help=argparse.SUPPRESS)
    given = parser.parse_args()
    name = f"losses-{given.device}" + (f"-{given.n}" if given.n else "")
    given.n = given.n or (2**26 if given.device == "cuda" else 2**22)
    if given.device == "cuda":
        result = losses_cuda.measure(given.n, given.repeats)
        write(name, result, losses_cuda.render(result), given.dry)
        return
    cases = given.cases or DEFAULT[given.device]
    if given.child:
        print({"memory": peak_memory, "first": first_call}[given.child](cases[0], given.n, given.device))
        return
    result = measure(cases, given.n, given.device, given.repeats)
    write(name, result, render(result), given.dry)


def write(name: str, result: dict[str, Any], text: str, dry: bool) -> None:
    """Print a table and keep it beside its numbers."""
    print(text, end="")
    if not dry:
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / f"{name}.json").write_text(json.dumps(result, indent=1) + "\n")
        (RESULTS / f"{name}.md").write_text(text)


if __name__ == "__main__":
    main()
