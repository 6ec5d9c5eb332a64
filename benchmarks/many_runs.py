"""A hundred networks on one table: all at once, against one after another in plain PyTorch, in one process.

    python benchmarks/many_runs.py            # some ten minutes on two cores
    python benchmarks/many_runs.py --plain 10 # only ten of the hundred plain runs, the rest by the rule of three

MLP 64-64, Adam, 10,000 rows × 30 columns, 20 epochs; five losses × twenty seeds. The plain loop is a good one: tensors
in memory, no DataLoader, the same loss modules (in their one-column kernels), PyTorch's own number of threads.
"""

from __future__ import annotations

import argparse
import json
import platform
import resource
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from fbeta import losses
from fbeta.learners.solvers import Adam
from fbeta.learners.stack import Run, Stack

RESULTS = Path(__file__).parent / "results"
LOSSES = ("bce", "balanced-bce", "tangent", "surrogate", "soft")
ROWS, COLUMNS, HIDDEN, EPOCHS, RUNS = 10_000, 30, (64, 64), 20, 100
METRIC = "fbeta:beta=2"


def table() -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Rows with one positive in ten."""
    chance = np.random.default_rng(0)
    X = chance.normal(size=(ROWS, COLUMNS)).astype(np.float32)
    y = (X[:, :5].sum(1) + chance.logistic(size=ROWS) > 4.2).astype(np.int64)
    return X, y


def plain(X: Any, y: Any, loss: str, seed: int, batch: int) -> torch.Tensor:
    """One run as it is usually written, from the stack's initial weights."""
    torch.manual_seed(seed)
    start = Stack(X, y[:, None], [Run(np.arange(ROWS), loss, (0, seed))], METRIC, hidden=HIDDEN)
    X, y = torch.from_numpy(X), torch.from_numpy(y).float()
    a, b = HIDDEN
    layers = torch.nn.Linear(COLUMNS, a), torch.nn.Linear(a, b), torch.nn.Linear(b, 1)
    net = torch.nn.Sequential(layers[0], torch.nn.ReLU(), layers[1], torch.nn.ReLU(), layers[2])
    with torch.no_grad():
        for layer, weight, bias in zip(layers, start.weights, start.biases, strict=True):
            layer.weight.copy_(weight[0].T)
            layer.bias.copy_(bias[0, 0])
    criterion = losses.get(loss, metric=METRIC, class_counts=(int((y == 0).sum()), int(y.sum())), check=False)
    optimiser = torch.optim.Adam(net.parameters(), lr=1e-3)
    for _ in range(EPOCHS):
        for rows in torch.split(torch.randperm(ROWS)[: ROWS // batch * batch], batch):
            optimiser.zero_grad()
            criterion(net(X[rows])[:, 0], y[rows]).backward()
            optimiser.step()
    with torch.no_grad():
        found: torch.Tensor = net(X)[:, 0]
    return found


def stacked(X: Any, y: Any, batch: int) -> torch.Tensor:
    """All runs at once."""
    rows = np.arange(ROWS)
    seeds = range(RUNS // len(LOSSES))
    runs = [Run(rows, loss, (0, s), (1, s)) for loss in LOSSES for s in seeds]
    stack = Stack(X, y[:, None], runs, METRIC, hidden=HIDDEN)
    solver = Adam(stack, batch=batch, steps=ROWS // batch, rate=1e-3)
    for _ in range(EPOCHS):
        solver.epoch()
    return torch.stack([stack.scores(run)[:, 0] for run in range(RUNS)])


def memory() -> float:
    """The most that this process has held, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(batch: int, some: int) -> dict[str, Any]:
    """Seconds of both, and whether they learn the same."""
    X, y = table()
    before, began = memory(), time.perf_counter()
    together = stacked(X, y, batch)
    at_once = time.perf_counter() - began
    held = memory() - before
    pairs = [(loss, seed) for seed in range(RUNS // len(LOSSES)) for loss in LOSSES][:some]
    began = time.perf_counter()
    alone = {pair: plain(X, y, *pair, batch) for pair in pairs}
    one_by_one = (time.perf_counter() - began) * RUNS / len(pairs)
    per = RUNS // len(LOSSES)
    best = {}
    for i, loss in enumerate(LOSSES):
        mine = [best_score(z, y) for z in together[i * per : (i + 1) * per]]
        other = [best_score(z, y) for (name, _), z in alone.items() if name == loss]
        best[loss] = [float(np.mean(mine)), float(np.mean(other))]
    found = {
        "batch": batch,
        "plain runs timed": len(pairs),
        "plain seconds": one_by_one,
        "stacked seconds": at_once,
        "ratio": one_by_one / at_once,
        "MB held": held,
        "F2 at the best cut, stacked and plain": best,
    }
    print(found, flush=True)
    return found


def best_score(z: torch.Tensor, y: Any) -> float:
    """F₂ on the training rows at its best cut: did it learn?"""
    from fbeta import tune

    return tune(z.double().numpy(), y, METRIC).score


def render(result: dict[str, Any]) -> str:
    """The numbers as a page."""
    lines = [
        "# A hundred networks on one table",
        "",
        f"MLP 64-64, Adam, {ROWS:,} rows × {COLUMNS} columns, {EPOCHS} epochs, five losses × twenty seeds; "
        f"{result['machine']}. `python benchmarks/many_runs.py`",
        "",
        "| batch | one after another | all at once | ratio |",
        "|---|---|---|---|",
    ]
    lines += [
        f"| {r['batch']} | {r['plain seconds']:.0f} s | {r['stacked seconds']:.1f} s | **{r['ratio']:.1f} ×** |"
        for r in result["rows"]
    ]
    # The larger batch goes first, and what it took serves the smaller one.
    most = max(r["MB held"] for r in result["rows"])
    lines += ["", f"The hundred at once raise the peak memory of the process by {most:.0f} MB."]
    timed = result["rows"][0]["plain runs timed"]
    if timed < RUNS:
        lines += ["", f"One after another: {timed} runs were timed, the rest is the rule of three."]
    lines += ["", "They learn the same: F₂ on the training rows at the best cut, stacked and plain.", ""]
    lines += ["| batch | " + " | ".join(LOSSES) + " |", "|---" * (1 + len(LOSSES)) + "|"]
    for r in result["rows"]:
        both = r["F2 at the best cut, stacked and plain"].values()
        lines.append(f"| {r['batch']} | " + " | ".join(f"{a:.3f}, {b:.3f}" for a, b in both) + " |")
    return "\n".join([*lines, ""])


def main() -> None:
    """Measure, print, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--plain", type=int, default=RUNS, help="plain runs that are timed")
    parser.add_argument("--dry", action="store_true", help="write no table")
    given = parser.parse_args()
    threads = torch.get_num_threads()
    machine = f"{platform.machine()}, {threads} threads, PyTorch {torch.__version__.partition('+')[0]}"
    result = {"machine": machine, "rows": [measure(batch, given.plain) for batch in (128, 32)]}
    text = render(result)
    print(text)
    if not given.dry:
        (RESULTS / "many-runs.json").write_text(json.dumps(result, indent=1) + "\n")
        (RESULTS / "many-runs.md").write_text(text)


if __name__ == "__main__":
    main()
