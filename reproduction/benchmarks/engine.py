"""0.0820 s per run-epoch with evaluation (0.0820–0.0820, n=7), ResNet-18, 50 at once, NVIDIA H200, torch 2.11.0, bf16.

Run from the root of the repository, `python reproduction/benchmarks/engine.py` and one of

    --write     on a GPU: measures, writes results/engine.{json,md} and the line above
    --quick     on a GPU: less of everything, writes nothing
    --render    writes the table and the line above again from results/engine.json

Without a GPU it takes tiny networks, to see that it runs; these are not results.

The engine for many runs against the loop that anyone would write, in one process, and against two floors: the
memory traffic of the weights at the speed of a copy, and the arithmetic at the speed of a large matrix product.
Images are random: what a step does, and so its time, does not depend on what they show. The engine is timed on an
epoch of a fifth of the rows, the plain loops on windows of some steps, and both are scaled to a whole epoch; what
is paid once (compiling, recording, starting workers) is left out, and printed for the engine.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from fbeta import FBeta, SurrogateLoss
from fbeta_reproduction.engine.augmentation import Holdout
from fbeta_reproduction.engine.image_stack import ImageStack, Member
from fbeta_reproduction.engine.layout import Layout, Window
from fbeta_reproduction.engine.loss_sum import LossSum
from fbeta_reproduction.engine.resnet import ARCHITECTURES, Architecture, ResNet, initial_weights
from fbeta_reproduction.protocol import SETTINGS, faithful
from fbeta_reproduction.readings.run_loss import loss_of

RESULTS = Path(__file__).parent / "results"
RATE, BATCH, SIZE, PAD = 0.1, 100, 32, 4
#: What the faithful 100 runs may take in minutes, and what they should.
LIMIT, GOAL = 45, 30
#: Bytes that a step moves for a weight. Weight and velocity are read and written, the gradient is written and
#: read; the way forward and the way back read the weight, in bf16 from a copy that is written anew.
TRAFFIC = {"bf16": 16 + 8 + (2 + 2 * 2), "fp32": 16 + 8 + 2 * 4}
#: The plain loop as most would write it, whose rows are the unit of the ratios.
LOADER = "DataLoader"


@dataclass(frozen=True)
class Workload:
    """One data set of the paper as a benchmark sees it: sizes."""

    dataset: str
    architecture: Architecture
    train: int
    test: int
    image: int
    colours: int

    @property
    def network(self) -> Layout:
        """The engine's layout."""
        return Layout(self.architecture, SIZE)

    @property
    def steps(self) -> int:
        """Steps of an epoch, which leaves a tenth of the rows for validation."""
        return round(0.9 * self.train) // BATCH

    def images(self, part: int = 1) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """Random images and targets: rows to train and validate on, then those to test on."""
        rng = np.random.default_rng(0)
        rows = self.train // part + self.test // part
        images = rng.integers(0, 256, (rows, self.image, self.image, self.colours), dtype=np.uint8)
        return images, (rng.random(rows) < RATE).astype(np.int64)


PAPER = [
    Workload("fashion-mnist", ARCHITECTURES[SETTINGS["fashion-mnist"].network], 60_000, 10_000, 28, 1),
    Workload("cifar10", ARCHITECTURES[SETTINGS["cifar10"].network], 50_000, 10_000, 32, 3),
]
# Two batches to train on.
TINY = [replace(s, architecture=Architecture((1, 1, 1, 1), width=8), train=222, test=28) for s in PAPER]


@dataclass(frozen=True)
class Effort:
    """How much is measured."""

    part: int  # the engine's epoch has the rows of one part of so many
    repeats: int  # timed epochs, and timed windows of a plain loop
    window: int  # steps of a plain loop
    warmup: int  # steps before the first window
    workers: int
    cases: tuple[tuple[int, str], ...]  # runs at once, precision


# Parts that leave whole batches, to train on and to evaluate: else a second graph would be recorded.
FULL = Effort(5, 7, 60, 30, 4, ((1, "bf16"), (16, "bf16"), (50, "bf16"), (16, "fp32")))
QUICK = Effort(10, 3, 20, 20, 4, ((1, "bf16"), (16, "bf16")))
SMOKE = Effort(1, 2, 2, 1, 0, ((1, "fp32"), (2, "bf16")))


@dataclass(frozen=True)
class Spread:
    """Median and quartiles."""

    s: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """Of two values or more."""
        low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
        return cls(middle, low, high)


def clock(act: Callable[[], object], device: torch.device) -> float:
    """Seconds until the device has done what `act` asks of it."""
    _wait(device)
    start = time.perf_counter()
    act()
    _wait(device)
    return time.perf_counter() - start


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def _free(device: torch.device) -> None:
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()


def say(text: str) -> None:
    """Print at once: a measurement that is cut off has then shown what it had."""
    print(text, flush=True)


# The loops that anyone would write

Feed = Callable[[], tuple[Tensor, Tensor]]


class AugmentedImages(Dataset[tuple[Tensor, Tensor]]):
    """Images in memory, each padded, cropped, flipped and centred in Python when it is asked for."""

    def __init__(self, images: Tensor, target: Tensor) -> None:
        self.images, self.target = images, target
        self.mean = torch.full((images.shape[1], SIZE, SIZE), 0.5)

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, row: int) -> tuple[Tensor, Tensor]:
        x = F.pad(self.images[row], (PAD, PAD, PAD, PAD))
        top, left = torch.randint(x.shape[-1] - SIZE + 1, (2,)).tolist()
        x = x[:, top : top + SIZE, left : left + SIZE]
        if torch.rand(()) < 0.5:
            x = x.flip(2)
        return (x.float() / 255 - self.mean).expand(3, -1, -1), self.target[row]


def from_loader(images: Tensor, target: Tensor, workers: int, device: torch.device) -> Feed:
    """Batches from worker processes through pinned memory."""
    loader = DataLoader(
        AugmentedImages(images, target),
        BATCH,
        shuffle=True,
        num_workers=workers,
        pin_memory=device.type == "cuda",
        drop_last=True,
    )

    def forever() -> Iterator[tuple[Tensor, Tensor]]:
        while True:
            yield from loader

    batches = forever()

    def feed() -> tuple[Tensor, Tensor]:
        x, y = next(batches)
        return x.to(device, non_blocking=True), y.to(device, non_blocking=True)

    return feed


def from_device(images: Tensor, target: Tensor, device: torch.device) -> Feed:
    """Batches of rows drawn at random from images on the device, cropped and flipped there."""
    padded, target = F.pad(images, (PAD, PAD, PAD, PAD)).to(device), target.to(device)
    along = torch.arange(SIZE, device=device)
    places = padded.shape[-1] - SIZE + 1

    def feed() -> tuple[Tensor, Tensor]:
        rows = torch.randint(len(padded), (BATCH, 1, 1), device=device)
        top, left = torch.randint(places, (2, BATCH, 1), device=device)
        flip = torch.rand(BATCH, 1, device=device) < 0.5
        down, right = top + along, left + torch.where(flip, SIZE - 1 - along, along)
        # Indices on both sides of a slice: its axis, the colours, comes last.
        x = padded[rows, :, down[:, :, None], right[:, None, :]].permute(0, 3, 1, 2)
        return (x.float() / 255 - 0.5).expand(-1, 3, -1, -1), target[rows[:, 0, 0]]

    return feed


def plain_step(architecture: Architecture, feed: Feed, half: bool, device: torch.device) -> Callable[[], None]:
    """A step of PyTorch as it comes, or with autocast to bf16."""
    model = ResNet(architecture).to(device)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)
    # Random targets cannot be learnt: a warning about the plateau would say nothing.
    loss = SurrogateLoss(FBeta(1), prevalence=RATE, watch=False).to(device)

    def step() -> None:
        x, y = feed()
        with torch.autocast(device.type, torch.bfloat16, enabled=half):
            logits = model(x)
        z = (logits[:, 1] - logits[:, 0]).float()
        optimiser.zero_grad()
        loss(z, y).backward()
        optimiser.step()

    return step


def recorded(step: Callable[[], None]) -> Callable[[], None]:
    """The step as a CUDA graph."""
    side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay


def plain(setting: Workload, effort: Effort, device: torch.device) -> Iterator[dict[str, Any]]:
    """Time the plain loops; seconds of an epoch of training, without evaluation."""
    numbers, labels = setting.images()
    images = torch.from_numpy(numbers).permute(0, 3, 1, 2).contiguous()
    target = torch.from_numpy(labels).float()
    feeds: dict[str, Callable[[], Feed]] = {
        LOADER: lambda: from_loader(images, target, effort.workers, device),
        "data on the device": lambda: from_device(images, target, device),
    }
    if device.type == "cuda":
        feeds["data on the device, one CUDA graph"] = feeds["data on the device"]
    for name, feed in feeds.items():
        for half in (False, True):
            step = plain_step(setting.architecture, feed(), half, device)
            # A graph writes into the tensors of the step that it recorded: both live until they are timed.
            act = recorded(step) if name.endswith("graph") else step
            row = {"case": name, "precision": "bf16 autocast" if half else "fp32"}
            yield row | asdict(time_plain(act, setting.steps, effort, device))
            del step, act
            _free(device)


def time_plain(step: Callable[[], None], steps: int, effort: Effort, device: torch.device) -> Spread:
    """Seconds of an epoch from windows of a few steps."""

    def some(count: int) -> None:
        for _ in range(count):
            step()

    some(effort.warmup)
    windows = [clock(lambda: some(effort.window), device) for _ in range(effort.repeats)]
    return Spread.of([steps * seconds / effort.window for seconds in windows])


# The engine


def stack_of(setting: Workload, runs: int, precision: str, part: int, device: torch.device) -> ImageStack:
    """The first of the faithful runs, as `fbeta paper run` would train them, on random images."""
    images, target = setting.images(part)
    chosen = list(faithful(setting.dataset))[:runs]
    repeats = {run.repeat for run in chosen}
    splits = {r: Holdout.draw(setting.train // part, 0.1, (0, r)) for r in repeats}
    rng = {r: np.random.Generator(np.random.Philox(r)) for r in repeats}
    weights = {r: initial_weights(ResNet(setting.architecture), rng[r]) for r in repeats}
    counts = int((1 - target).sum()), int(target.sum())
    return ImageStack(
        setting.network,
        images,
        target,
        [Member(splits[run.repeat], weights[run.repeat], (2, run.repeat), 0.01) for run in chosen],
        LossSum([loss_of(run, counts) for run in chosen]),
        batch=BATCH,
        pad=PAD,
        precision=precision,
        device=device,
    )


def engine(setting: Workload, effort: Effort, device: torch.device) -> Iterator[dict[str, Any]]:
    """Time the engine; seconds of an epoch by run, of training alone and with evaluation."""
    for runs, precision in effort.cases:
        stack = stack_of(setting, runs, precision, effort.part, device)

        def look(stack: ImageStack = stack) -> Tensor:
            return stack.margins().cpu()  # where `fbeta paper run` counts, beside the next epoch

        first = clock(stack.train_epoch, device) + clock(look, device)
        train, whole = [], []
        for _ in range(effort.repeats):
            train.append(clock(stack.train_epoch, device) * effort.part / runs)
            whole.append(train[-1] + clock(look, device) * effort.part / runs)
        yield {
            "runs": runs,
            "precision": precision,
            "first_s": first,
            "train": asdict(Spread.of(train)),
            "whole": asdict(Spread.of(whole)),
        }
        del stack, look
        _free(device)


def kernels(stack: ImageStack) -> list[dict[str, Any]]:
    """Launches and microseconds of each kernel in one recorded step, the longest first."""
    stack.train_epoch()
    stack.cursor.zero_()  # the epoch has run it to the end of the rows
    torch.cuda.synchronize()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as seen:
        stack._graphs["step", stack.batch].replay()
        torch.cuda.synchronize()
    found: dict[str, list[float]] = defaultdict(list)
    for event in seen.events() or []:
        if event.device_type.name == "CUDA":
            found[kernel_name(event.name)].append(event.time_range.elapsed_us())
    order = sorted(found, key=lambda name: -sum(found[name]))
    return [{"kernel": name, "launches": len(found[name]), "us": sum(found[name])} for name in order]


def kernel_name(full: str) -> str:
    """A kernel's name without what its template was filled with."""
    return full.removeprefix("void ").partition("<")[0].partition("(")[0][:60] or full[:60]


# The floors


def copy_rate(device: torch.device, repeats: int) -> float:
    """Bytes a second that a copy reads and writes."""
    count = 2**30 if device.type == "cuda" else 2**22
    source = torch.zeros(count, dtype=torch.uint8, device=device)
    sink = torch.zeros_like(source)

    def copies() -> None:
        for _ in range(10):
            sink.copy_(source)

    copies()
    return 20 * count / statistics.median(clock(copies, device) for _ in range(repeats))


def matmul_rate(device: torch.device, repeats: int) -> float:
    """Operations a second, of which a multiply-add is two, of a large matrix product in bf16."""
    n = 8192 if device.type == "cuda" else 256
    a, b = (torch.randn(n, n, device=device).bfloat16() for _ in range(2))

    def products() -> None:
        for _ in range(10):
            torch.mm(a, b)

    products()
    return 10 * 2 * n**3 / statistics.median(clock(products, device) for _ in range(repeats))


def multiply_adds(network: Layout) -> int:
    """Those of a training step for one image: all convolutions, forwards and both gradients.

    Only taps that meet a pixel count, position by position. The images need no gradient.
    """
    first = network.stem
    window = Window.of(network.image, network.kernel, first.rows.stride, network.pad)
    stem = _met(window) ** 2 * 3 * first.channels_out
    others = sum(
        _met(c.rows) * _met(c.cols) * c.channels_in * c.channels_out for c in network.convs() if c is not first
    )
    return 2 * stem + 3 * others


def _met(w: Window) -> int:
    """Pairs of an output and a tap that meet a pixel."""
    taps = range(w.first, w.first + w.taps)
    return sum(0 <= o * w.stride + t - w.pad < w.size for o in range(w.out) for t in taps)


# All of it


def measure(settings: Sequence[Workload], effort: Effort, device: torch.device, command: str) -> dict[str, Any]:
    """All rows, and where, with what and how they were measured."""
    cuda = device.type == "cuda"
    result: dict[str, Any] = {
        "device": device.type,
        "machine": torch.cuda.get_device_name(device) if cuda else platform.machine(),
        "cores": os.cpu_count(),
        "versions": {"python": platform.python_version(), "torch": torch.__version__},
        "command": f"python reproduction/benchmarks/engine.py {command}".strip(),
        "effort": asdict(effort),
        "copy_rate": copy_rate(device, effort.repeats),
        "matmul_rate": matmul_rate(device, effort.repeats),
        "settings": [],
    }
    _free(device)
    for setting in settings:
        network = setting.network
        found: dict[str, Any] = {
            "dataset": setting.dataset,
            "network": f"ResNet-{2 + 2 * sum(setting.architecture.blocks)}",
            "steps": setting.steps,
            "weights": sum(p.numel() for p in ResNet(setting.architecture).parameters()),
            "live": network.kernels + network.small,
            "multiply_adds": multiply_adds(network),
            "plain": [],
            "engine": [],
            "kernels": [],
        }
        say(f"{found['network']}, {setting.dataset}, seconds of a run's epoch:")
        for row in plain(setting, effort, device):
            found["plain"].append(row)
            say(f"  {row['case']}, {row['precision']}: {row['s']:.4g} ({row['low']:.4g}–{row['high']:.4g})")
        for row in engine(setting, effort, device):
            found["engine"].append(row)
            train, whole = row["train"]["s"], row["whole"]["s"]
            say(
                f"  engine, {row['runs']} at once, {row['precision']}: {train:.4g}, with evaluation {whole:.4g} "
                f"(all runs' first short epoch {row['first_s']:.3g} s)"
            )
        result["settings"].append(found)
    return result


def profile(result: dict[str, Any], settings: Sequence[Workload], device: torch.device) -> None:
    """Add the kernels of a step. After all is timed: a profiler that was there once may slow what follows."""
    for setting, found in zip(settings, result["settings"], strict=True):
        runs = headline(found)["runs"]
        found["kernels"] = kernels(stack_of(setting, runs, "bf16", result["effort"]["part"], device))
        _free(device)


def headline(found: dict[str, Any]) -> dict[str, Any]:
    """The engine's row with the most runs at once in bf16."""
    rows = [row for row in found["engine"] if row["precision"] == "bf16"]
    return max(rows, key=lambda row: int(row["runs"]))


def floors(result: dict[str, Any], found: dict[str, Any], precision: str) -> tuple[float, float, float]:
    """Seconds of an epoch: traffic of the live weights, of all weights, and arithmetic (by the rate of bf16)."""
    traffic = TRAFFIC[precision] * found["steps"] / result["copy_rate"]
    operations = 2 * found["multiply_adds"] * BATCH * found["steps"]
    return traffic * found["live"], traffic * found["weights"], operations / result["matmul_rate"]


def minutes(result: dict[str, Any]) -> float:
    """What the faithful runs take in all, with evaluation."""
    seconds = 0.0
    for found in result["settings"]:
        seconds += headline(found)["whole"]["s"] * sum(run.epochs for run in faithful(found["dataset"]))
    return seconds / 60


def claim(result: dict[str, Any]) -> str:
    """The result in one sentence: time, spread, n, hardware, versions."""
    found = result["settings"][0]
    row = headline(found)
    whole, version = row["whole"], result["versions"]["torch"].partition("+")[0]
    return (
        f"{whole['s']:.4f} s per run-epoch with evaluation ({whole['low']:.4f}–{whole['high']:.4f}, "
        f"n={result['effort']['repeats']}), {found['network']}, {row['runs']} at once, "
        f"{result['machine']}, torch {version}, bf16."
    )


def render(result: dict[str, Any]) -> str:
    """A result as Markdown."""
    effort = result["effort"]
    versions = ", ".join(f"{name} {version}" for name, version in result["versions"].items())
    lines = [] if result["device"] == "cuda" else ["Tiny networks on a CPU: these are not results.", ""]
    lines += [
        f"Seconds of an epoch for one run, batch {BATCH}. {result['machine']}, {result['cores']} cores; {versions}; "
        f"n = {effort['repeats']}, median and quartiles.",
        f"Random images of the right sizes. Engine: the faithful losses, epochs of 1/{effort['part']} of the rows; "
        f"plain loops: windows of {effort['window']} steps, {effort['workers']} workers; scaled to a whole epoch.",
        f"A copy moves {result['copy_rate'] / 1e12:.3g} TB/s, a matrix product in bf16 does "
        f"{result['matmul_rate'] / 1e12:.3g} TFLOP/s. A plain loop in fp32 has PyTorch's defaults: on a GPU its "
        f"convolutions are of TF32.",
        "",
        f"`{result['command']}`",
    ]
    for found in result["settings"]:
        lines += _section(result, found)
    if result["device"] != "cuda":
        return "\n".join(lines) + "\n"  # minutes of the whole protocol would look like a result
    at_once = headline(result["settings"][0])["runs"]
    lines += [
        "",
        "## The faithful protocol",
        "",
        f"2 data sets × 50 runs × 120 epochs with evaluation, {at_once} runs at once in bf16: "
        f"{minutes(result):.1f} minutes by these rates (limit {LIMIT}, goal {GOAL}).",
    ]
    return "\n".join(lines) + "\n"


def _section(result: dict[str, Any], found: dict[str, Any]) -> list[str]:
    """The tables of one data set."""
    live, every, arithmetic = floors(result, found, "bf16")
    unit = min(row["s"] for row in found["plain"] if row["case"] == LOADER)
    lines = [
        "",
        f"## {found['network']}, sizes of {found['dataset']}, {found['steps']} steps",
        "",
        "| plain loop | precision | s | quartiles |",
        "|---|---|---|---|",
    ]
    lines += [
        f"| {row['case']} | {row['precision']} | {row['s']:.3f} | {row['low']:.3f}–{row['high']:.3f} |"
        for row in found["plain"]
    ]
    lines += [
        "",
        "| engine: runs at once | precision | s | quartiles | s with evaluation | quartiles "
        "| DataLoader ÷ engine | engine ÷ floor, live weights | engine ÷ floor, all weights "
        "| first short epoch of all runs, s |",
        "|" + "---|" * 10,
    ]
    for row in found["engine"]:
        train, whole = row["train"], row["whole"]
        low, high, _ = floors(result, found, row["precision"])
        lines.append(
            f"| {row['runs']} | {row['precision']} | {train['s']:.4f} | {train['low']:.4f}–{train['high']:.4f} "
            f"| {whole['s']:.4f} | {whole['low']:.4f}–{whole['high']:.4f} | {unit / train['s']:.1f} "
            f"| {train['s'] / low:.2f} | {train['s'] / high:.2f} | {row['first_s']:.1f} |"
        )
    best = headline(found)
    lines += [
        "",
        f"Floors in bf16, {TRAFFIC['bf16']} bytes per weight and step ({TRAFFIC['fp32']} in fp32): {live:.4f} s for "
        f"the {found['live'] / 1e6:.1f} M live weights that the engine keeps, {every:.4f} s for all "
        f"{found['weights'] / 1e6:.1f} M (taps that never meet a pixel included). A single run's weights may stay in "
        f"the cache: for it this is not a strict floor.",
        f"Arithmetic: {found['multiply_adds'] / 1e6:.1f} M multiply-adds for an image take {arithmetic:.4f} s; "
        f"{best['runs']} at once in bf16 take {best['train']['s'] / arithmetic:.1f} times as long.",
        "Ratios are of training alone, and to the faster of the two DataLoader loops, which do not evaluate either.",
    ]
    total = sum(row["us"] for row in found["kernels"])
    if total:
        lines += [
            "",
            f"One recorded step of {best['runs']} runs in bf16, share of the kernels' summed time "
            f"({total / 1e3:.2f} ms; losses run side by side, so that a step takes less):",
            "",
            "| kernel | launches | share |",
            "|---|---|---|",
        ]
        lines += [
            f"| `{row['kernel']}` | {row['launches']} | {row['us'] / total:.1%} |" for row in found["kernels"][:12]
        ]
    return lines


def write(result: dict[str, Any]) -> None:
    """Keep the numbers, the table beside them, and the claim in the first line of this file."""
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "engine.json").write_text(json.dumps(result, indent=1) + "\n")
    (RESULTS / "engine.md").write_text(render(result))
    source = Path(__file__)
    _, _, rest = source.read_text().partition("\n")
    source.write_text(f'"""{claim(result)}\n{rest}')


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print, and write the table."""
    arguments = sys.argv[1:] if arguments is None else arguments
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--device", choices=["cpu", "cuda"], help="(default: cuda if there is one)")
    parser.add_argument("--quick", action="store_true", help="measure less")
    parser.add_argument("--write", action="store_true", help="keep the results")
    parser.add_argument("--render", action="store_true", help="measure nothing, write the kept results again")
    given = parser.parse_args(arguments)
    if given.render:
        write(json.loads((RESULTS / "engine.json").read_text()))
        return
    device = torch.device(given.device or ("cuda" if torch.cuda.is_available() else "cpu"))
    if device.type == "cuda" and not torch.cuda.is_available():
        parser.error("there is no CUDA device here; --device cpu shows that the benchmark runs.")
    if given.write and (given.quick or device.type != "cuda"):
        parser.error("--write keeps results, and only the whole measurement on a GPU gives them.")
    settings, effort = (PAPER, QUICK if given.quick else FULL) if device.type == "cuda" else (TINY, SMOKE)
    if device.type == "cpu":
        torch.set_num_threads(1)  # several would only wait for one another in networks this small
    result = measure(settings, effort, device, " ".join(arguments))
    if given.write:
        write(result)
    if device.type == "cuda":
        profile(result, settings, device)
    say(render(result))
    if given.write:
        write(result)


if __name__ == "__main__":
    main()
