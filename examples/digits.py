"""BCE, the paper's loss and the tangent loss on scikit-learn's digits: is it a '0' (one row in ten)?

On all 64 pixels any loss is nearly perfect, so a small network sees only the first two principal components,
in which the '0' overlaps with other digits. A quarter of the rows trains, a quarter tunes the cut, half tests.

Run: python examples/digits.py          prints the table, draws build/roc.png
     python examples/digits.py --write  rewrites docs/digits.json, docs/roc.png and the table in README.md
"""

from __future__ import annotations

import argparse
import json
import platform
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import mean, stdev
from typing import Any, NamedTuple

import numpy as np
import sklearn
import torch
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import track
from rich.table import Table
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import Tensor, nn

from fbeta import Confusion, FBeta, SurrogateLoss, TangentLoss, tune
from fbeta.decisions import curve
from fbeta.metrics import Pole

ROOT = Path(__file__).resolve().parents[1]
METRICS = {"F½": FBeta(0.5), "F₁": FBeta(1), "F₂": FBeta(2)}
COLOURS = {"BCE": "#0072B2", "surrogate": "#D55E00", "tangent": "#009E73"}  # Okabe and Ito: colour-blind safe
SEEDS, EPOCHS, BATCH, RATE, HIDDEN = 10, 40, 128, 0.03, 32
FITS = 1 + 2 * len(METRICS)  # models a seed: BCE does not know beta


def marks(name: str) -> tuple[str, str]:
    """What stands before and after a block of a document that a program writes."""
    return f"<!-- {name}:start -->", f"<!-- {name}:end -->"


START, END = marks("digits")


class Rows(NamedTuple):
    """Features and labels of one part of the data."""

    x: Tensor
    y: Tensor


class Run(NamedTuple):
    """One trained model under one score: its logits on the test rows, and where two cuts put it."""

    seed: int
    loss: str
    score: str
    logits: NDArray[np.float32]
    target: NDArray[np.float32]
    half: Confusion
    tuned: Confusion


def load(seed: int) -> tuple[Rows, Rows, Rows]:
    pixels, digit = load_digits(return_X_y=True)
    y = (digit == 0).astype(np.float32)
    seen, test = train_test_split(np.arange(len(y)), test_size=0.5, stratify=y, random_state=seed)
    train, validation = train_test_split(seen, test_size=0.5, stratify=y[seen], random_state=seed)
    # Components and scales come from the training rows alone, as they would have to in earnest.
    x = make_pipeline(PCA(2), StandardScaler()).fit(pixels[train]).transform(pixels).astype(np.float32)
    first, second, third = (Rows(torch.tensor(x[i]), torch.tensor(y[i])) for i in (train, validation, test))
    return first, second, third


def network() -> nn.Module:
    return nn.Sequential(nn.Linear(2, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, 1), nn.Flatten(0))


def fit(
    loss: nn.Module,
    rows: Rows,
    seed: int,
    network: Callable[[], nn.Module] = network,
    epochs: int = EPOCHS,
    batch: int = BATCH,
    rate: float = RATE,
    decay: bool = False,  # of the rate, in a straight line to zero
) -> nn.Module:
    torch.manual_seed(seed)  # every loss starts from the same weights and sees the same batches
    model = network()
    optimiser = torch.optim.Adam(model.parameters(), lr=rate)
    steps = epochs * -(-len(rows.y) // batch)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: 1 - step / steps if decay else 1.0)
    for _ in range(epochs):
        for i in torch.split(torch.randperm(len(rows.y)), batch):
            optimiser.zero_grad()
            loss(model(rows.x[i]), rows.y[i]).backward()
            optimiser.step()
            schedule.step()
    return model.eval()


def fits(train: Rows, seed: int) -> Iterator[tuple[str, list[str], nn.Module]]:
    """Each trained model, with its loss and the scores it is judged by."""
    yield "BCE", list(METRICS), fit(nn.BCEWithLogitsLoss(), train, seed)
    prevalence, positives = train.y.mean().item(), train.y.sum().item()
    counts = len(train.y) - positives, positives
    for score, metric in METRICS.items():
        yield "surrogate", [score], fit(SurrogateLoss(metric, prevalence=prevalence), train, seed)
        yield "tangent", [score], fit(TangentLoss(metric, class_counts=counts), train, seed)


@torch.no_grad()
def judge(seed: int, loss: str, score: str, model: nn.Module, validation: Rows, test: Rows) -> Run:
    cut = tune(model(validation.x).numpy(), validation.y.numpy(), METRICS[score]).value
    logits, target = model(test.x).numpy(), test.y.numpy()
    half = Confusion.from_scores(logits, target, cut=0.0)  # logit 0 is probability ½
    return Run(seed, loss, score, logits, target, half, Confusion.from_scores(logits, target, cut=cut))


def experiment() -> Iterator[list[Run]]:
    """Train model after model; each gives a run for every score it is judged by."""
    for seed in range(SEEDS):
        train, validation, test = load(seed)
        for loss, scores, model in fits(train, seed):
            yield [judge(seed, loss, score, model, validation, test) for score in scores]


def versions() -> dict[str, str]:
    """What the numbers were made with; torch's version is a string class of its own otherwise."""
    return {"Python": platform.python_version(), "scikit-learn": sklearn.__version__, "torch": str(torch.__version__)}


def summary(runs: list[Run]) -> dict[str, Any]:
    """Everything that the table shows, as plain data."""
    table: list[dict[str, Any]] = []
    for score, metric in METRICS.items():
        for loss in COLOURS:
            here = [r for r in runs if (r.loss, r.score) == (loss, score)]
            row: dict[str, Any] = {"score": score, "loss": loss, "runs": len(here)}
            for cut in ("half", "tuned"):
                values = [float(metric(getattr(r, cut))) for r in here]
                row[cut] = {"mean": round(mean(values), 4), "std": round(stdev(values), 4)}
            table.append(row | {"all_positive": sum(r.half.predicted == 1 for r in here)})
    command = "python examples/digits.py --write"
    return {"command": command, "seeds": SEEDS, "versions": versions(), "table": table}


def cells(results: dict[str, Any]) -> list[list[str]]:
    """The table as text, heading first."""
    lines = [["score", "trained with", "cut at ½", "cut tuned", "all positive at ½"]]
    for r in results["table"]:
        half, tuned = (f"{r[cut]['mean']:.3f} ± {r[cut]['std']:.3f}" for cut in ("half", "tuned"))
        lines.append([r["score"], r["loss"], half, tuned, f"{r['all_positive']} of {r['runs']}"])
    return lines


def markdown(lines: list[list[str]], results: dict[str, Any]) -> str:
    """A table, heading first, and a caption that says where the numbers come from."""
    heading, *body = (f"| {' | '.join(line)} |" for line in lines)
    versions = ", ".join(f"{name} {version}" for name, version in results["versions"].items())
    caption = (
        f"Test rows, mean ± standard deviation over {results['seeds']} seeds, each with its own split and initial "
        f"weights. Made by `{results['command']}` ({versions})."
    )
    return "\n".join([heading, f"|{'---|' * len(lines[0])}", *body, "", caption])


def render(results: dict[str, Any]) -> str:
    """The README's table, from nothing but the numbers in docs/digits.json."""
    return markdown(cells(results), results)


def show(lines: list[list[str]], title: str, console: Console) -> None:
    """Print a table, with a rule where the first column changes."""
    heading, *body = lines
    table = Table(*heading, title=title)
    for line, following in zip(body, [*body[1:], heading], strict=True):
        table.add_row(*line, end_section=line[0] != following[0])
    console.print(table)


def publish(name: str, results: dict[str, Any], page: Path, text: str) -> None:
    """Keep results in docs/, and put what they look like between their marks in a page."""
    stored = json.dumps(results, indent=1, ensure_ascii=False)
    (ROOT / "docs" / f"{name}.json").write_text(stored + "\n", encoding="utf-8")
    start, end = marks(name)
    before, rest = page.read_text(encoding="utf-8").split(start)
    after = rest.split(end)[1]
    page.write_text(f"{before}{start}\n{text}\n{end}{after}", encoding="utf-8")


def level_lines(ax: Any, pole: Pole, levels: list[float], right: float) -> None:
    """Draw lines of equal F₁ from the pole to the edge of a panel, and write the level where they leave it."""
    for level in levels:
        start = level / (2 - level)  # at u = 0 there is no false positive, and F₁ = 2t/(1 + t)
        slope = pole.ray(0.0, start)
        u = min(right, pole.x + (1 - pole.y) / slope)
        t = pole.y + slope * (u - pole.x)
        ax.plot([pole.x, 0], [pole.y, start], color="0.5", lw=0.9, ls=(0, (1, 2)), zorder=1)
        ax.plot([0, u], [start, t], color="0.5", lw=0.9, zorder=1)
        out = {"xytext": (0, 4), "ha": "center"} if u < right else {"xytext": (4, 0), "va": "center"}
        text = f"F₁ = {level:g}" if level == levels[0] else f"{level:g}"
        ax.annotate(text, (u, t), textcoords="offset points", color="0.3", fontsize=9, **out)


def draw_space(ax: Any, pole: Pole, prevalence: float, box: tuple[float, float]) -> None:
    """All of ROC space, shaded by F₁, with the pole to its left and a box around the corner of interest."""
    u, t = np.meshgrid(np.linspace(0, 1, 300), np.linspace(0, 1, 300))
    score = METRICS["F₁"](Confusion.from_rates(u, t, prevalence))
    ax.pcolormesh(u, t, score, cmap="Greys", vmin=0, vmax=2.2, shading="gouraud", zorder=0)
    level_lines(ax, pole, [0.2, 0.1, 0.3, 0.4, 0.6, 0.8], 1.0)
    ax.plot(*pole, "o", color="black", ms=8)
    where = f"pole ({pole.x:.2f}, {pole.y:g})".replace("-", "−")
    ax.annotate(where, tuple(pole), xytext=(-5, -17), textcoords="offset points", fontweight="bold")
    ax.add_patch(Rectangle((0, box[1]), box[0], 1 - box[1], fill=False, lw=1.5, zorder=6))
    ax.set(xlim=(-0.2, 1.03), ylim=(-0.1, 1), xticks=[0, 0.5, 1], yticks=[0, 0.5, 1])
    ax.spines[["left", "bottom"]].set_bounds(0, 1)
    ax.spines[["top", "right"]].set_visible(False)
    ax.set_title("F₁ is constant along the lines through its pole", pad=22, fontsize=11)


def draw_corner(ax: Any, pole: Pole, runs: list[Run], box: tuple[float, float]) -> None:
    """The corner in which trained models operate, with the points that two cuts give them."""
    right, bottom = box
    level_lines(ax, pole, [0.9, 0.95, 0.85, 0.8, 0.75], right)
    for run, size in zip(runs, (12, 9.5, 7), strict=True):  # nested, as the curves are
        colour = COLOURS[run.loss]
        for point, marker, face in ((run.half, "o", colour), (run.tuned, "D", "none")):
            ax.plot(point.fpr, point.tpr, marker, ms=size, mfc=face, mec=colour, mew=2, zorder=5)
    ax.plot([], [], "o", ms=9, color="0.3", label="cut at ½")
    ax.plot([], [], "D", ms=8, mfc="none", mec="0.3", mew=2, label="cut tuned on validation rows")
    ax.set(xlim=(0, right), ylim=(bottom, 1), xticks=[0, right / 2, right], yticks=[bottom, 0.8, 0.9, 1])
    ax.spines[:].set_linewidth(1.5)
    ax.legend(loc="lower right", framealpha=1)
    ax.set_title("Inside the box: three models, two cuts each", pad=22, fontsize=11)


def picture(runs: list[Run], path: Path) -> None:
    prevalence = float(runs[0].half.prevalence)
    pole = METRICS["F₁"].pole(prevalence)
    assert pole is not None
    figure = Figure(figsize=(14 / 1.5, 6.5 / 1.5), dpi=150, layout="constrained")
    space, corner = figure.subplots(1, 2)
    for ax in (space, corner):
        # Where curves coincide the thinner one lies on top, so that all three stay visible.
        for run, width in zip(runs, (4.0, 2.8, 1.6), strict=True):
            _, c = curve(run.logits, run.target)
            ax.plot(c.fpr, c.tpr, color=COLOURS[run.loss], lw=width, label=run.loss, zorder=3)
        ax.set(xlabel="false positive rate", ylabel="true positive rate")
    box = 0.04, 0.7  # its right and lower edge
    draw_space(space, pole, prevalence, box)
    draw_corner(corner, pole, runs, box)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Software": None})  # no version inside: the same picture is the same file


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--write", action="store_true", help="rewrite docs/ and the table in README.md")
    options = parser.parse_args()
    torch.set_num_threads(1)  # on tensors this small threads only wait for each other
    console = Console()
    models = track(experiment(), "Training", total=SEEDS * FITS, console=console)
    runs = [run for model in models for run in model]
    results = summary(runs)
    show(cells(results), "'0' against the other digits: test rows, mean ± std over seeds", console)
    path = ROOT / "docs" / "roc.png" if options.write else Path("build", "roc.png")
    # The first seed, not the prettiest.
    picture([r for r in runs if (r.seed, r.score) == (0, "F₁")], path)
    console.print(f"Picture: {path}")
    if options.write:
        publish("digits", results, ROOT / "README.md", render(results))


if __name__ == "__main__":
    main()
