"""How long a training step takes with the systems that the paper cites, against cross entropy, in one process.

    python benchmarks/systems.py            # 64, 10,000 and 1,000,000 rows
    python benchmarks/systems.py --n 64

A step is forward, loss, backward and Adam of a network of 30, 64 and 1 units; the loss alone is forward and backward on
logits. Times are those of the processor, of one thread, so that other work on the machine does not count. Cases take
turns within each round, and a ratio is taken inside a round. The table goes to benchmarks/results/systems.{json,md},
unless `--dry`.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from losses import RATE, Batch, machine, write
from torch import Tensor

from fbeta import losses

UNITS = (30, 64)
#: Of fewer rows a case is called so often in a round that it sees as many.
LEAST = 1 << 13
CASES: dict[str, dict[str, Any]] = {
    "eban": {"metric": "f1"},
    "eban, hard": {"metric": "f1", "counts": "hard"},
    "eban, recall": {"at": {"recall": 0.9}},
    "stamp": {"metric": "f1"},
    "spade": {"metric": "gmean"},
    "duple": {"metric": "f1"},
    "kar": {"metric": "f1"},
}


def makers() -> dict[str, Callable[[Tensor, Tensor], Tensor]]:
    """Every loss, cross entropy with pos_weight first."""
    weight = torch.tensor((1 - RATE) / RATE)
    found: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
        "bce": lambda z, y: F.binary_cross_entropy_with_logits(z, y, pos_weight=weight)
    }
    return found | {name: losses.get(name.split(",")[0], **options) for name, options in CASES.items()}


def runs(n: int) -> dict[tuple[str, str], Callable[[], None]]:
    """The loss alone and a step, of every loss."""
    found: dict[tuple[str, str], Callable[[], None]] = {}
    batch, x = Batch.make(n, "cpu"), torch.randn(n, UNITS[0])
    for name, loss in makers().items():

        def alone(loss: Any = loss) -> None:
            z = batch.logits.detach().requires_grad_()
            loss(z, batch.target).backward()

        model = torch.nn.Sequential(torch.nn.Linear(*UNITS), torch.nn.ReLU(), torch.nn.Linear(UNITS[1], 1))
        optimiser = torch.optim.Adam(model.parameters())

        def step(loss: Any = loss, model: Any = model, optimiser: Any = optimiser) -> None:
            optimiser.zero_grad()
            loss(model(x).squeeze(1), batch.target).backward()
            optimiser.step()

        found[name, "alone"], found[name, "step"] = alone, step
    return found


def measure(n: int, repeats: int, warmup: int = 2) -> list[dict[str, Any]]:
    """Median times and ratios of all cases at a number of rows."""
    calls, work = max(1, LEAST // n), runs(n)
    took: dict[tuple[str, str], list[float]] = {key: [] for key in work}
    for turn in range(warmup + repeats):
        for key, run in work.items():
            start = time.process_time()
            for _ in range(calls):
                run()
            if turn >= warmup:
                took[key].append((time.process_time() - start) / calls)
    rows = []
    for (name, part), times in took.items():
        ratios = [a / b for a, b in zip(times, took["bce", part], strict=True)]
        low, middle, high = statistics.quantiles(ratios, n=4)
        times_ms = statistics.median(times) * 1e3
        rows.append({"rows": n, "case": name, "part": part, "ms": times_ms, "ratio": middle, "quartiles": [low, high]})
    return rows


def render(result: dict[str, Any]) -> str:
    """A result as Markdown."""
    lines = [
        f"{result['machine']}; processor time of one thread; python {result['python']}, torch {result['torch']}; "
        f"medians of rounds, and the quartiles of a step's ratio. Network {UNITS[0]}, {UNITS[1]}, 1; Adam.",
        "",
        f"`{result['command']}`",
        "",
        "| rows | loss | a step, ms | × bce | quartiles | the loss alone, ms | × bce |",
        "|---|---|---|---|---|---|---|",
    ]
    by = {(row["rows"], row["case"], row["part"]): row for row in result["rows"]}
    for n, case, part in by:
        if part == "step":
            step, alone = by[n, case, "step"], by[n, case, "alone"]
            low, high = step["quartiles"]
            lines.append(
                f"| {n:,} | {case} | {step['ms']:.3g} | {step['ratio']:.2f} | {low:.2f}–{high:.2f} "
                f"| {alone['ms']:.3g} | {alone['ratio']:.2f} |"
            )
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure, print, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--n", type=int, nargs="+", default=[64, 10_000, 1_000_000], help="rows")
    parser.add_argument("--dry", action="store_true", help="write no table")
    given = parser.parse_args()
    torch.set_num_threads(1)
    rows = [row for n in given.n for row in measure(n, repeats=5 if n > 100_000 else 31)]
    result = {
        "machine": machine(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "command": "python benchmarks/systems.py",
        "rows": rows,
    }
    write("systems", result, render(result), given.dry)


if __name__ == "__main__":
    main()
