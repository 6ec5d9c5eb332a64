"""The tangent loss on made-up rows: the length of its steps, its memory, and networks that learn rows by heart.

    python benchmarks/tangent.py             # ten minutes on one core; writes results/tangent.json and tangent.md
    python benchmarks/tangent.py lengths     # only steps of SGD; shorter, memories or by_heart

Rows have 20 features, five of which differ between the classes, by little; the share of positives varies. Everything is
trained as one would train with cross entropy: SGD with momentum at a learning rate of 0.1, or 0.01, or Adam at 0.01.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from statistics import mean, median, stdev
from typing import Any

import doc_block
import torch
from torch import Tensor, nn

from fbeta import Confusion, FBeta, TangentLoss, tune

RESULT = Path(__file__).parent / "results" / "tangent.json"
FEATURES, TEST, BATCH = 20, 100_000, 128
SHIFT = torch.zeros(FEATURES)
SHIFT[:5] = torch.tensor([1.2, 1.0, 0.8, 0.6, 0.4])
#: A step that has nearly the F₁ that a linear model can have.
NEARLY = 0.95
Rows = tuple[Tensor, Tensor]
Make = Callable[[Rows, FBeta], nn.Module]


def draw(n: int, rate: float, chance: torch.Generator) -> Rows:
    """So many rows, of which exactly that share is positive."""
    y = (torch.randperm(n, generator=chance) < round(n * rate)).float()
    return torch.randn(n, FEATURES, generator=chance) + y[:, None] * SHIFT, y


def network(hidden: int, seed: int) -> nn.Module:
    """A linear model, or one hidden layer."""
    torch.manual_seed(seed)
    layers = [nn.Linear(FEATURES, hidden), nn.ReLU(), nn.Linear(hidden, 1)] if hidden else [nn.Linear(FEATURES, 1)]
    return nn.Sequential(*layers, nn.Flatten(0))


def steps(
    model: nn.Module, loss: nn.Module, rows: Rows, count: int, batch: int, seed: int, *, adam: bool = False, pace: float
) -> Iterator[int]:
    """Train by Adam, or by SGD with momentum, at the learning rate `pace`; the number of every step that was taken."""
    optimiser = (
        torch.optim.Adam(model.parameters(), pace) if adam else torch.optim.SGD(model.parameters(), pace, momentum=0.9)
    )
    chance, done = torch.Generator().manual_seed(seed), 0
    while True:
        for part in torch.split(torch.randperm(len(rows[1]), generator=chance), batch):
            optimiser.zero_grad()
            loss(model(rows[0][part]), rows[1][part]).backward()
            optimiser.step()
            done += 1
            yield done
            if done == count:
                return


@torch.no_grad()
def score(model: nn.Module, rows: Rows, metric: FBeta, cut: float = 0.0) -> float:
    """The metric of rows at a cut on logits."""
    return float(metric(Confusion.from_scores(model(rows[0]), rows[1], cut=cut)))


@torch.no_grad()
def tuned(model: nn.Module, rows: Rows, metric: FBeta) -> float:
    """The cut that validation rows choose."""
    return float(tune(model(rows[0]), rows[1], metric, rule="shrunk", kind="logit").value)


class SumOne(nn.Module):
    """The tangent loss on its old scale: costs that sum to one."""

    def __init__(self, loss: TangentLoss) -> None:
        super().__init__()
        self.loss = loss

    def forward(self, z: Tensor, y: Tensor) -> Tensor:
        """The loss, divided by what its costs sum to before the step."""
        scale = float(sum(self.loss.costs))
        value: Tensor = self.loss(z, y) / scale
        return value


def tangent(rows: Rows, metric: FBeta, told: str = "counts", **options: Any) -> TangentLoss:
    """The loss, told how many rows of each class there are, their share, or nothing."""
    positives = float(rows[1].sum())
    known: dict[str, dict[str, Any]] = {
        "counts": {"class_counts": (len(rows[1]) - positives, positives)},
        "share": {"prevalence": positives / len(rows[1])},
        "nothing": {},
    }
    return TangentLoss(metric, watch=False, **known[told], **options)


def bce(rows: Rows, metric: FBeta) -> nn.Module:
    """Cross entropy, which knows no metric."""
    return nn.BCEWithLogitsLoss()


def lengths(pace: float = 0.1, seeds: int = 5, most: int = 1500, n: int = 20_000) -> list[dict[str, Any]]:
    """Steps of SGD until a linear model is nearly as good as it gets, and the score it ends with."""
    found, metric = [], FBeta(1)
    losses: dict[str, Make] = {
        "cross entropy": bce,
        "tangent": tangent,
        "tangent, costs of sum one": lambda rows, m: SumOne(tangent(rows, m)),
    }
    for rate in (0.1, 0.01, 0.001):
        z, y = torch.zeros(n, requires_grad=True), draw(n, rate, torch.Generator())[1]
        plain = torch.autograd.grad(nn.BCEWithLogitsLoss()(z, y), z)[0].abs().sum()
        for name, make in losses.items():
            size = float(torch.autograd.grad(make((z, y), metric)(z, y), z)[0].abs().sum() / plain)
            taken, half, cut = [], [], []
            for seed in range(seeds):
                chance = torch.Generator().manual_seed(seed)
                train, validation, test = draw(n, rate, chance), draw(n, rate, chance), draw(TEST, rate, chance)
                model = network(0, seed)
                # The direction of the shift is the best linear model, with the best cut on the test rows themselves.
                direction = test[0] @ SHIFT
                goal = NEARLY * tune(direction, test[1], metric, rule="exact", kind="score").score
                reached = None
                for step in steps(model, make(train, metric), train, most, BATCH, seed, pace=pace):
                    if reached is None and (step % 25 == 0) and score(model, test, metric) >= goal:
                        reached = step
                taken.append(most + 1 if reached is None else reached)
                half.append(score(model, test, metric))
                cut.append(score(model, test, metric, tuned(model, validation, metric)))
            middle = median(taken)
            found.append(
                {"rate": rate, "loss": name, "gradient": size, "steps": None if middle > most else middle}
                | {"reached": sum(x <= most for x in taken), "half": half, "tuned": cut, "most": most}
            )
            print(found[-1]["rate"], name, size, middle, mean(half), mean(cut), flush=True)
    return found


#: Rows, positives, hidden units, Adam, epochs.
SMALL = [
    *((2000, 200, 0, True, 6), (2000, 40, 0, True, 10), (2000, 20, 0, False, 10)),
    *((1000, 100, 32, True, 6), (2000, 40, 32, True, 6), (5000, 50, 32, False, 6)),
]


def memories(seeds: int = 8) -> list[dict[str, Any]]:
    """Small sets: 500 positives remembered or those of an epoch, and what the loss is told."""
    found = []
    makes: dict[str, Make] = {
        "an epoch, class counts told": tangent,
        "an epoch, nothing told": lambda rows, m: tangent(rows, m, "nothing", memory=max(20.0, float(rows[1].sum()))),
        "500, share told": lambda rows, m: tangent(rows, m, "share"),
        "500, nothing told": lambda rows, m: tangent(rows, m, "nothing"),
    }
    for (n, positives, hidden, adam, epochs), beta in ((p, b) for p in SMALL for b in (1.0, 2.0)):
        metric = FBeta(beta)
        scores: dict[str, list[Any]] = {name: [] for name in makes}
        for seed in range(seeds):
            chance = torch.Generator().manual_seed(seed)
            train, test = draw(n, positives / n, chance), draw(TEST // 5, positives / n, chance)
            for name, make in makes.items():
                model = network(hidden, seed)
                for _ in steps(
                    model,
                    make(train, metric),
                    train,
                    epochs * -(-n // 64),
                    64,
                    seed,
                    adam=adam,
                    pace=0.01 if adam else 0.1,
                ):
                    pass
                scores[name].append(score(model, test, metric))
        rows = {"rows": n, "positives": positives, "hidden": hidden, "adam": adam, "epochs": epochs, "beta": beta}
        found.append({**rows, "half": scores})
        print(rows, {name: round(mean(x), 3) for name, x in scores.items()}, flush=True)
    return found


def by_heart(seeds: int = 10, n: int = 500) -> list[dict[str, Any]]:
    """A wide network on few rows, F₂: at ½ and at a cut from validation rows, as training goes on."""
    found, metric = [], FBeta(2)
    for name, make in {"cross entropy": bce, "tangent": tangent}.items():
        runs: dict[int, list[list[float]]] = {}
        for seed in range(seeds):
            chance = torch.Generator().manual_seed(seed)
            train, validation, test = (draw(k, 0.1, chance) for k in (n, n, TEST // 5))
            model = network(256, seed)
            for step in steps(model, make(train, metric), train, 1600, 32, seed, adam=True, pace=0.01):
                if step in (100, 400, 1600):
                    cut = tuned(model, validation, metric)
                    both = [score(model, test, metric), score(model, test, metric, cut)]
                    runs.setdefault(step, []).append([score(model, train, metric), *both])
        for step, scores in runs.items():
            train_, half, cut_ = map(list, zip(*scores, strict=True))
            found.append({"loss": name, "steps": step, "train": train_, "half": half, "tuned": cut_})
            print(name, step, *(round(mean(x), 3) for x in (train_, half, cut_)), flush=True)
    return found


def spread(x: list[float]) -> str:
    """Mean and standard deviation over seeds."""
    return f"{mean(x):.3f} ± {stdev(x):.3f}"


def render(result: dict[str, Any]) -> str:
    """The result as Markdown."""
    text = ["# The tangent loss on made-up rows", "", "Written by `python benchmarks/tangent.py`; test rows, mean ± "]
    text[-1] += "standard deviation over seeds."
    most, seeds = result["lengths"][0]["most"], len(result["lengths"][0]["half"])
    text += ["", f"## Steps of SGD until F₁ is {NEARLY:.0%} of the best linear model's", ""]
    text += [
        f"Linear model, 20,000 rows, batches of {BATCH}, SGD with momentum 0.9; median of {seeds} seeds. The gradient"
    ]
    text += ["is its size at the first step, relative to that of cross entropy."]
    for part, pace in (("lengths", 0.1), ("shorter", 0.01)):
        text += [
            "",
            f"| positives | loss, at {pace} | gradient | steps | reached it | F₁ at ½ in the end | F₁, cut tuned |",
        ]
        text += ["|---" * 7 + "|"]
        for r in result[part]:
            taken = f"over {most:,}" if r["steps"] is None else f"{r['steps']:,.0f}"
            text += [
                f"| {r['rate']:.1%} | {r['loss']} | {r['gradient']:.3f} | {taken} | {r['reached']} of {seeds} | "
                f"{spread(r['half'])} | {spread(r['tuned'])} |"
            ]
    names = list(result["memories"][0]["half"])
    text += ["", "## What is remembered, and what is told: F at ½ on small sets", ""]
    text += [
        f"| rows, positives | model, optimiser, epochs | β | {' | '.join(names)} |",
        "|---" * (3 + len(names)) + "|",
    ]
    for r in result["memories"]:
        how = f"{'one hidden layer' if r['hidden'] else 'linear'}, {'Adam' if r['adam'] else 'SGD'}, {r['epochs']}"
        scores = " | ".join(spread(r["half"][name]) for name in names)
        text += [f"| {r['rows']}, {r['positives']} | {how} | {r['beta']:g} | {scores} |"]
    text += ["", "## A network that learns its rows by heart: F₂ of 256 hidden units on 500 rows, 10 % positives", ""]
    text += ["| loss | steps | training rows, ½ | test rows, ½ | test rows, cut tuned |", "|---|---|---|---|---|"]
    for r in result["by_heart"]:
        text += [f"| {r['loss']} | {r['steps']:,} | {' | '.join(spread(r[k]) for k in ('train', 'half', 'tuned'))} |"]
    return "\n".join(text) + "\n"


def summary(result: dict[str, Any]) -> str:
    """What docs/losses.md says of it."""
    last = {r["loss"]: r for r in result["by_heart"]}
    half, cut, plain = last["tangent"]["half"], last["tangent"]["tuned"], last["cross entropy"]["tuned"]
    return (
        f"F₂ of 256 hidden units that fit 500 rows without an error: {spread(half)} at ½, {spread(cut)} at a cut from "
        f"as many validation rows; cross entropy with such a cut {spread(plain)}. Steps of SGD, small sets, and all "
        "numbers: [tangent.md](../benchmarks/results/tangent.md)."
    )


PARTS: dict[str, Callable[[], Any]] = {
    "lengths": lengths,
    "shorter": partial(lengths, 0.01),
    "memories": memories,
    "by_heart": by_heart,
}


def main() -> None:
    """Measure some parts or all, and write both files."""
    torch.set_num_threads(1)
    for part in sys.argv[1:] or PARTS:
        found = PARTS[part]()
        kept = json.loads(RESULT.read_text()) if RESULT.exists() else {}
        result = (
            {"torch": str(torch.__version__)} | {name: kept[name] for name in PARTS if name in kept} | {part: found}
        )
        RESULT.write_text(json.dumps(result, indent=1) + "\n")
        if result.keys() >= PARTS.keys():
            RESULT.with_suffix(".md").write_text(render(result))
            doc_block.write("losses.md", "tangent", summary(result))


if __name__ == "__main__":
    main()
