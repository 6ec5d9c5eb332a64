"""A results folder with made-up counts, in the format of real ones: to test figures and verdicts, nothing else.

A run slides onto the plateau or not, leaves it or not, then moves towards an operating point; all by a seed.
"""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np

from fbeta_reproduction.protocol import BETAS, PROTOCOL, Run, beside, faithful, noise
from fbeta_reproduction.results import gradients

ROWS = {
    "fashion-mnist": {"train": (54_000, 5_400), "val": (6_000, 600), "test": (10_000, 1_000)},
    "cifar10": {"train": (45_000, 4_500), "val": (5_000, 500), "test": (10_000, 1_000)},
    "digits": {"train": (1_293, 128), "val": (144, 14), "test": (360, 36)},
}
MACHINE = {"device": "made up", "torch": "0.0.0", "fbeta": "0.1.0", "runs at once": 50}
SPLITS = ("train", "val", "test")
COLUMNS = ["epoch", "loss", *(f"{s}_{c}" for s in SPLITS for c in ("tp", "fp"))]
COLUMNS += [f"cut{b:g}{end}" for b in BETAS for end in ("", "_tp", "_fp")] + ["seconds"]


def path_of(run, rng, *, stay, goal, speed):
    """False and true positive rates by epoch: (1, 1) for `stay` epochs, then from the diagonal towards `goal`."""
    e = np.arange(run.epochs)
    way = 1 - np.exp(-np.maximum(e + 1 - stay, 0) / speed)
    wobble = 0.01 * rng.normal(size=(2, run.epochs)) * (way > 0)
    u = np.where(e < stay, 1.0, 0.6 + (goal[0] - 0.6) * way + 0.5 * wobble[0])
    t = np.where(e < stay, 1.0, 0.8 + (goal[1] - 0.8) * way + wobble[1])
    return np.clip(u, 0.001, 1), np.clip(t, 0.01, 1)


def loss_of(run, u, t):
    q0, p = 1 - 0.97 * t, 0.1
    if run.loss == "surrogate":
        return -np.log(1 - q0) + np.log(run.beta**2 * p / (1 - p) + u)
    if run.loss == "soft":
        b2 = run.beta**2
        return 1 - (1 + b2) * p * (1 - q0) / (p * (b2 + 1 - q0 - u) + u)
    return 2 * q0 + 2 * u if "mae" in run.loss else -np.log(1 - q0) - np.log1p(-0.9 * u)


def table_of(run, rng):
    hard = run.dataset == "cifar10"
    chance = {"surrogate": 0.6, "soft": 0.1}.get(run.loss, 0.0) * (0.3 if run.remedy or run.q else 1.0)
    stay = int(rng.exponential(60 if hard else 25)) + 2 if rng.random() < chance else 0
    goal = {"surrogate": (0.045, 0.93), "soft": (0.02, 0.8), "bce": (0.01, 0.84), "tangent": (0.015, 0.88)}.get(
        run.loss, (0.05, 0.95)
    )
    goal = (goal[0] * (run.beta or 1.0), goal[1] - (0.15 if hard else 0.0))
    u, t = path_of(run, rng, stay=stay, goal=goal, speed=(12 if hard else 4) * (run.beta or 1.5) ** 0.5)
    columns = {"epoch": np.arange(1, run.epochs + 1), "loss": loss_of(run, u, t)}
    for i, split in enumerate(SPLITS):
        n, positives = ROWS[run.dataset][split]
        worse = 0.02 * i * (t < 1)
        columns[f"{split}_tp"] = np.round(positives * np.clip(t - worse, 0, 1))
        columns[f"{split}_fp"] = np.round((n - positives) * np.clip(u + 0.2 * worse, 0, 1))
    n, positives = ROWS[run.dataset]["test"]
    for b in BETAS:
        columns[f"cut{b:g}"] = rng.normal(size=run.epochs)
        columns[f"cut{b:g}_tp"] = np.round(positives * np.clip(t - 0.04 + 0.02 * b, 0, 1))
        columns[f"cut{b:g}_fp"] = np.round((n - positives) * np.clip(u * (0.5 + 0.15 * b), 0, 1))
    columns["seconds"] = np.full(run.epochs, 0.21)
    return columns


def write_run(folder, run, *, epochs=None, nan_from=None, columns=None):
    """One run's file; `epochs` stops it early, from `nan_from` on its loss is NaN and it predicts nothing."""
    rng = np.random.default_rng([*run.id.encode()])
    columns = columns or table_of(run, rng)
    path = Path(folder, run.id + ".csv")
    path.parent.mkdir(parents=True, exist_ok=True)
    header = {"run": run.to_dict(), "counts": ROWS[run.dataset], "machine": MACHINE}
    lines = [f"# {json.dumps(header)}", ",".join(COLUMNS)]
    for i in range(epochs or run.epochs):
        row = {name: float(columns[name][i]) for name in COLUMNS}
        if nan_from is not None and i + 1 >= nan_from:
            row |= {k: 0.0 if k.endswith(("_tp", "_fp")) else np.nan for k in row if k not in ("epoch", "seconds")}
        lines.append(",".join(f"{row[name]:.6g}" for name in COLUMNS))
    path.write_text("\n".join(lines) + "\n")


def write_gradients(folder, dataset, surrogate=0.95, others=0.5, plateau=()):
    """Two repeats of two epochs: the surrogate at one cosine with every soft loss, all other losses at another.

    `plateau`: losses whose networks call everything positive; there all cosines are 1.
    """
    losses = [run.label for run in faithful(dataset, 1)] + ["bce"]
    points = [
        {
            "loss": run.label,
            "repeat": run.repeat,
            "epoch": epoch,
            "cosine": {name: [surrogate if name.startswith("surrogate") else others] * 4 for name in losses},
            "missed": 0.02 * epoch,
            "alarmed": [0.3, 0.2, 0.1, 0.05],
            "alarmed_bce": 0.4,
        }
        | ({"cosine": dict.fromkeys(losses, [1.0] * 4), "alarmed": [0.0] * 4} if run.label in plateau else {})
        for run in faithful(dataset, 2)
        for epoch in (1, 2)
    ]
    gradients.save(Path(folder), dataset, 2, MACHINE, points)


def write_all(folder, *, datasets=("fashion-mnist", "cifar10"), repeats=5, epochs=120):
    """Everything that the reproduction plans, in little: readings, remedies, noise, gradients, fp32, short runs too."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    Path(folder, "protocol.json").write_text(json.dumps(PROTOCOL))
    for dataset in datasets:
        noisy = noise(dataset, min(3, repeats), max(1, epochs // 2))
        own = faithful(dataset, repeats, epochs)
        for run in (*own, *beside(dataset, min(3, repeats), epochs), *noisy):
            write_run(folder, run)
        write_gradients(folder, dataset)
        for repeat in range(2):
            one = Run(dataset, "surrogate", 1.0, repeat=repeat, epochs=epochs)
            for other in (
                replace(one, precision="fp32"),
                replace(one, learning_rate=0.03, precision="fp32"),
                replace(one, stem="cifar", precision="fp32"),
                replace(one, remedy="bias-4"),
                replace(one, beta=2.0, remedy="anneal20"),
            ):
                write_run(folder, other)
        write_run(folder, Run(dataset, "bce-unclamped", epochs=epochs, precision="fp32"), nan_from=max(2, epochs // 20))
        for beta in BETAS:
            for repeat in range(repeats, repeats + 20):
                write_run(folder, Run(dataset, "surrogate", beta, repeat=repeat, epochs=min(3, epochs - 1)))
