"""Ways to train and decide, judged by one score over seeds: paired differences, a table and a plain verdict.

An example gives tasks: data, network, losses, score. Every loss gets the setting (normalisation, batch, rate) that
suits it best on validation rows of splits that are not reported, so that none is judged by a setting made for
another; `--search` finds them and keeps them in examples/settings.json. Every cross entropy is judged twice: with
its plain decision, and with the best decision that validation rows teach.
"""

from __future__ import annotations

import argparse
import json
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from pathlib import Path
from statistics import mean, stdev
from typing import Any, NamedTuple

import torch
from digits import ROOT, Rows, fit, markdown, publish, show, versions
from rich.console import Console
from rich.progress import track
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, one_hot

from fbeta import Confusion, Metric
from fbeta.comparison.statistics import corrected_t
from fbeta.losses import tangent_costs
from fbeta.losses.argmax import argmax_rule

PAGE = ROOT / "docs" / "tasks.md"
SETTINGS = Path(__file__).with_name("settings.json")
SEARCH_SEEDS = range(100, 103)


class Setting(NamedTuple):
    """How a loss is trained; what the search may choose."""

    norm: bool
    batch: int
    rate: float


class Result(NamedTuple):
    """What one way to train and decide scores on the test rows of one seed."""

    score: str
    method: str
    baseline: bool  # cross entropy, in one of its guises
    value: float


class Task(ABC):
    """A data set with a network, the losses to compare and the metric that judges them."""

    score: str
    metric: Metric
    decisions: tuple[str, str]  # the plain one, and the one that validation rows teach
    batches: tuple[int, ...]
    rates = 0.003, 0.01, 0.03
    tested: float  # for each image trained on; splits of one data set overlap, and intervals have to know how much

    @abstractmethod
    def load(self, seed: int) -> tuple[Rows, Rows, Rows]:
        """Training, validation and test rows."""

    @abstractmethod
    def network(self, norm: bool) -> nn.Module:
        """A fresh network, with batch normalisation or without."""

    @abstractmethod
    def losses(self, train: Rows) -> dict[str, nn.Module]:
        """Fresh losses (they remember), plain cross entropy first."""

    def outputs(self, model: nn.Module, rows: Rows) -> Rows:
        """Logits and targets of all that counts, a row each."""
        return Rows(model(rows.x), rows.y)

    @abstractmethod
    def judge(self, rows: Rows, tuned_on: Rows | None = None) -> float:
        """The score of logits and targets, decided plainly or as other rows teach."""

    def fit(self, loss: str, setting: Setting, train: Rows, seed: int, epochs: int) -> nn.Module:
        """Train the network with one of the losses."""
        norm, batch, rate = setting
        module = self.losses(train)[loss]
        return fit(module, train, seed, lambda: self.network(norm), epochs, batch, rate, decay=True)

    @torch.no_grad()
    def results(self, loss: str, model: nn.Module, validation: Rows, test: Rows) -> Iterator[Result]:
        """A result for each decision."""
        baseline, rows = is_baseline(loss), self.outputs(model, test)
        plain, taught = self.decisions
        yield Result(self.score, f"{loss}, {plain}", baseline, self.judge(rows))
        if baseline:
            value = self.judge(rows, tuned_on=self.outputs(model, validation))
            yield Result(self.score, f"{loss}, {taught}", baseline, value)


def is_baseline(loss: str) -> bool:
    """Whether a loss is a cross entropy; fbeta's are named after their classes."""
    return not loss.endswith("Loss")


def counts(called: Tensor, target: Tensor, classes: int) -> Confusion:
    """The cells of each class against the rest."""
    return Confusion.from_predictions(one_hot(called, classes), one_hot(target, classes), axis=0)


def macro(metric: Metric, called: Tensor, target: Tensor, classes: int) -> float:
    return float(metric(counts(called, target, classes)).mean())


class GainRule:
    """The multi-class counterpart of a tuned cut: calibrate, then find gain and offset, all on validation rows.

    A temperature makes softmax honest. Then the rule is applied, counted and replaced by the best one at these
    counts, again and again; of all rules met the one with the best validation score stays.
    """

    def __init__(self, logits: Tensor, target: Tensor, metric: Metric, steps: int = 20) -> None:
        classes = logits.shape[1]
        temperatures = torch.logspace(-0.5, 1, 31)
        self.temperature = min(temperatures, key=lambda t: float(cross_entropy(logits / t, target)))
        self.gain, self.offset = torch.ones(classes), torch.zeros(classes)
        best, rule = -1.0, (self.gain, self.offset)
        for _ in range(steps):
            called = argmax_rule((logits / self.temperature).softmax(1), *rule)
            if (score := macro(metric, called, target, classes)) > best:
                best, (self.gain, self.offset) = score, rule
            offset, right = tangent_costs(metric, counts(called, target, classes))
            gain, scale = offset + right, (offset + right).mean()
            # Half a step: a full one may jump to and fro between two rules.
            rule = (rule[0] + gain / scale) / 2, (rule[1] + offset / scale) / 2

    def decide(self, logits: Tensor) -> Tensor:
        """Call a class for each row."""
        return argmax_rule((logits / self.temperature).softmax(1), self.gain, self.offset)


class ClassTask(Task):
    """One class of many, judged by a macro average."""

    classes: int

    def judge(self, rows: Rows, tuned_on: Rows | None = None) -> float:
        """Decide by the largest score, or by gains."""
        z, y = rows
        called = z.argmax(1) if tuned_on is None else GainRule(*tuned_on, self.metric).decide(z)
        return macro(self.metric, called, y, self.classes)


def search(task: Task, epochs: int) -> Iterator[tuple[str, Setting]]:
    """The setting of each loss with the best mean validation score; cross entropy with its better decision."""
    splits = [(seed, *task.load(seed)[:2]) for seed in SEARCH_SEEDS]

    @torch.no_grad()
    def found(loss: str, model: nn.Module, validation: Rows) -> float:
        rows = task.outputs(model, validation)
        return task.judge(rows, tuned_on=rows if is_baseline(loss) else None)

    for loss in task.losses(splits[0][1]):
        grid = [Setting(*choice) for choice in product((False, True), task.batches, task.rates)]
        scores = {
            setting: mean(
                found(loss, task.fit(loss, setting, train, seed, epochs), validation)
                for seed, train, validation in splits
            )
            for setting in track(grid, f"{task.score}, {loss}")
        }
        yield f"{task.score}, {loss}", max(scores, key=lambda setting: scores[setting])


def experiment(tasks: Sequence[Task], settings: dict[str, Any], seeds: int, epochs: int) -> Iterator[list[Result]]:
    """All ways to train and decide, seed after seed."""
    for seed in range(seeds):
        found: list[Result] = []
        for task in tasks:
            train, validation, test = task.load(seed)
            for loss in task.losses(train):
                setting = Setting(**settings[f"{task.score}, {loss}"])
                found += task.results(loss, task.fit(loss, setting, train, seed, epochs), validation, test)
        yield found


def summary(found: Iterable[Result], seeds: int, command: str, tested: float) -> dict[str, Any]:
    """Every seed's score, as plain data."""
    table: dict[tuple[str, str], dict[str, Any]] = {}
    for score, method, baseline, value in found:
        row = {"score": score, "method": method, "baseline": baseline, "values": []}
        table.setdefault((score, method), row)["values"].append(round(value, 4))
    ordered = sorted(table.values(), key=lambda row: str(row["score"]))
    return {"command": command, "seeds": seeds, "tested": tested, "versions": versions(), "table": ordered}


def paired(ours: list[float], theirs: list[float], tested: float) -> tuple[float, float, float]:
    """Mean difference over seeds, and its 95 % interval by the corrected resampled t-test."""
    found = corrected_t([a - b for a, b in zip(ours, theirs, strict=True)], tested)
    return found.mean, found.low, found.high


def opponents(results: dict[str, Any], score: str) -> list[dict[str, Any]]:
    """Plain cross entropy, and the best of its guises (with hindsight on the test rows: the hardest to beat)."""
    rows = [r for r in results["table"] if r["score"] == score and r["baseline"]]
    return [rows[0], max(rows, key=lambda r: mean(r["values"]))]


def cells(results: dict[str, Any]) -> list[list[str]]:
    """The table as text, heading first."""
    lines = [["score", "trained with, decided by", "test", "− plain cross entropy", "− best cross entropy"]]
    for r in results["table"]:
        line = [r["score"], r["method"], f"{mean(r['values']):.3f} ± {stdev(r['values']):.3f}"]
        for name, other in zip(("plain", "best"), opponents(results, r["score"]), strict=True):
            if r["baseline"]:
                line.append(name if r is other else "")
            else:
                difference, low, high = paired(r["values"], other["values"], results["tested"])
                line.append(f"{difference:+.3f} [{low:+.3f}, {high:+.3f}]".replace("-", "−"))
        lines.append(line)
    return lines


def verdict(results: dict[str, Any]) -> str:
    """Whether fbeta beat cross entropy: a sentence for each score and loss."""
    sentences = []
    for r in results["table"]:
        if not r["baseline"]:
            plain, best = opponents(results, r["score"])
            words = [_judged(r, other, results["tested"]) for other in (plain, best)]
            if plain is best:
                end = f"{words[0]} cross entropy"
            elif words[0] == words[1]:
                end = f"{words[0]} plain cross entropy, and the best one"
            else:
                end = f"{words[0]} plain cross entropy, and {words[1]} the best one"
            sentences.append(f"At {r['score']} {r['method'].split(',')[0]} {end}.")
    return " ".join(sentences)


def _judged(row: dict[str, Any], other: dict[str, Any], tested: float) -> str:
    # As far as the table shows it: an end that reads 0.000 is no win.
    _, low, high = (round(x, 3) for x in paired(row["values"], other["values"], tested))
    return "beat" if low > 0 else "lost to" if high < 0 else "was within noise of"


def render(results: dict[str, Any]) -> str:
    """The block of docs/tasks.md, from nothing but the numbers in its JSON file."""
    return f"{markdown(cells(results), results)}\n\n{verdict(results)}"


def run(name: str, tasks: Sequence[Task], seeds: int, epochs: int, write: bool = False) -> dict[str, Any]:
    """Train seed after seed, print the table and the verdict; `write` stores both in docs/."""
    torch.set_num_threads(1)  # on tensors this small threads only wait for each other
    console = Console()
    start = time.perf_counter()
    settings = json.loads(SETTINGS.read_text())[name]
    steps = track(experiment(tasks, settings, seeds, epochs), "Training", total=seeds, console=console)
    found = [result for step in steps for result in step]
    results = summary(found, seeds, f"python examples/{name}.py --write", tasks[0].tested)
    show(cells(results), f"{name}: test rows, mean ± std over seeds", console)
    console.print(f"{verdict(results)} ({time.perf_counter() - start:.0f} s)")
    if write:
        publish(name, results, PAGE, render(results))
    return results


def command_line(name: str, tasks: Sequence[Task], seeds: int, epochs: int) -> None:
    """Run an example, or search its settings."""
    parser = argparse.ArgumentParser(description=f"Compare losses: {name}")
    parser.add_argument("--write", action="store_true", help=f"rewrite docs/{name}.json and docs/tasks.md")
    parser.add_argument("--search", action="store_true", help="rewrite settings.json first (minutes)")
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.search:
        known = json.loads(SETTINGS.read_text()) if SETTINGS.exists() else {}
        known[name] = {key: setting._asdict() for task in tasks for key, setting in search(task, epochs)}
        SETTINGS.write_text(json.dumps(known, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    run(name, tasks, seeds, epochs, options.write)
