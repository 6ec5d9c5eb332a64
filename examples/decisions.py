"""The pictures of docs/decisions.md, drawn from real rows: scikit-learn's digits, and results of benchmarks/.

``python examples/decisions.py --write`` draws them into docs/decisions/; without it they go to build/decisions/.
``--only NAME`` draws one. Every model is a logistic regression, and every score of a row is from a model that did not
see it. Where later rows are needed, samples are drawn from all rows with replacement, so that all rows are the
population, in which the score of a cut is known.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from digits import ROOT
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import make_pipeline

from fbeta import Confusion, Cost, Decision, FBeta, Metric, Recall, tune
from fbeta.decisions import curve
from fbeta.report.png import BLUE, ORANGE, VERMILION, save

Floats = NDArray[np.float64]
GREY, DARK = "0.6", "0.2"
PURPLE = "#CC79A7"  # of Okabe and Ito's palette, too
DRAWS = 300


def sheet(title: str, columns: int = 1, rows: int = 1, **how: Any) -> tuple[Figure, Any]:
    """A figure that is readable on a phone, and its panels."""
    figure = Figure(figsize=(6, 3.6), dpi=120, layout="constrained")
    figure.suptitle(title, fontweight="bold", fontsize=13)
    panels = figure.subplots(rows, columns, **how)
    for ax in np.ravel(panels):
        ax.spines[["top", "right"]].set_visible(False)
        ax.tick_params(labelsize=11)
        ax.xaxis.label.set_size(12)
        ax.yaxis.label.set_size(12)
    return figure, panels


def say(ax: Any, text: str, at: tuple[float, float], right: float = 0, up: float = 0, **how: Any) -> None:
    """Words beside a point."""
    how = {"fontsize": 11, "color": DARK, "ha": "left", "va": "center"} | how
    ax.annotate(text, at, xytext=(right, up), textcoords="offset points", zorder=8, **how)


@cache
def eights(components: int | None = None) -> tuple[Floats, NDArray[np.bool_]]:
    """Probabilities that a digit is an 8, and whether it is: one row in ten."""
    x, digit = load_digits(return_X_y=True)
    model = LogisticRegression(max_iter=1000)
    kind = make_pipeline(PCA(components, random_state=0), model) if components else model
    p: Floats = cross_val_predict(kind, x / 16, digit == 8, cv=10, method="predict_proba")[:, 1]
    return p, digit == 8


def score(metric: Metric, p: Floats, y: NDArray[np.bool_], cut: float) -> float:
    """What a cut scores on rows."""
    return float(metric(Confusion.from_scores(p, y, cut)))


def one_cut() -> Figure:
    """F½ and F₂ at every cut."""
    p, y = eights(12)
    figure, ax = sheet("Each metric has a best cut of its own")
    for beta, name, colour, right, up in ((0.5, "F½", VERMILION, 0, 17), (2.0, "F₂", BLUE, 52, -16)):
        cuts, counts = curve(p, y)
        ax.plot(cuts, FBeta(beta)(counts), color=colour, lw=2.2)
        best = tune(p, y, FBeta(beta), kind="probability")
        half = score(FBeta(beta), p, y, 0.5)
        ax.plot(0.5, half, "o", ms=9, mfc="white", mec=colour, mew=2, zorder=5)
        ax.plot(best.value, best.score, "D", ms=9, color=colour, zorder=6)
        text = f"{name} {best.score:.2f} at {best.value:.2f}"
        say(ax, text, (best.value, best.score), right, 15, ha="center", color=colour, fontweight="bold")
        say(ax, f"{half:.2f} at ½", (0.5, half), -30, up, ha="center", color=colour)
    ax.set(xlabel="called an 8 from this probability on", ylabel="score", xlim=(0, 1), ylim=(0, 0.92))
    return figure


def few_positives() -> Figure:
    """What cuts from 20 positives are worth among all rows."""
    p, y = eights(12)
    rng = np.random.default_rng(0)
    found: dict[str, list[float]] = {"exact": [], "shrunk": []}
    yes, no = np.flatnonzero(y), np.flatnonzero(~y)
    for _ in range(DRAWS):
        rows = np.r_[rng.choice(yes, 20), rng.choice(no, 186)]
        for rule, values in found.items():
            cut = tune(p[rows], y[rows], FBeta(1), kind="probability", rule=rule).value
            values.append(score(FBeta(1), p, y, cut))
    figure, ax = sheet("Cuts from 20 positives: how good are they really?")
    for i, (rule, colour) in enumerate({"exact": VERMILION, "shrunk": BLUE}.items()):
        values = np.array(found[rule])
        ax.plot(values, 1 - i + rng.uniform(-0.22, 0.22, DRAWS), "o", ms=4, alpha=0.45, color=colour, mec="none")
        ax.plot([values.mean()] * 2, [1 - i - 0.32, 1 - i + 0.32], color=DARK, lw=2.5, zorder=6)
        worst = f"mean {values.mean():.3f}, one in ten below {np.quantile(values, 0.1):.3f}"
        say(ax, worst, (values.mean(), 1 - i + 0.4), ha="right")
    best = tune(p, y, FBeta(1), kind="probability").score
    ax.axvline(best, color=GREY, lw=1.5, ls=(0, (1, 2)))
    say(ax, "best possible", (best, -0.42), -4, ha="right", color="0.35")
    ax.set(yticks=[1, 0], yticklabels=['"exact"', '"shrunk"'], ylim=(-0.55, 1.6), xlabel="F₁ of the cut among all rows")
    ax.set_xlim(right=best + 0.01)
    return figure


def share_moves() -> Figure:
    """F₁ where positives are rarer or more frequent than in the rows that chose the cut."""
    p, y = eights(12)
    rng = np.random.default_rng(0)
    half = rng.random(y.size) < 0.5
    decision = Decision.fit(p[half], y[half], "f1", kind="probability")
    later, truth = p[~half], y[~half]
    yes, no = np.flatnonzero(truth), np.flatnonzero(~truth)
    shares = np.array([0.01, 0.02, 0.04, 0.097, 0.2, 0.4, 0.6])
    ways: dict[str, list[float]] = {"as fitted": [], "adapt": [], "share known": []}
    for share in shares:
        scores: dict[str, list[float]] = {way: [] for way in ways}
        for _ in range(30):
            n1 = rng.binomial(2000, share)
            rows = np.r_[rng.choice(yes, n1), rng.choice(no, 2000 - n1)]
            moved = {"as fitted": decision, "adapt": decision.adapt(later[rows])}
            moved["share known"] = decision.adapt(at_prevalence=float(share))
            for way, made in moved.items():
                called = made.decide(later[rows])
                scores[way].append(float(FBeta(1)(Confusion.from_scores(called * 1.0, truth[rows], 0.5))))
        for way, values in scores.items():
            ways[way].append(float(np.mean(values)))
    figure, ax = sheet("The share of positives moves: does the cut follow?")
    looks = {"share known": (GREY, "--", ""), "as fitted": (VERMILION, "-", "o"), "adapt": (BLUE, "-", "D")}
    for way, (colour, dash, mark) in looks.items():
        ax.plot(shares, ways[way], dash, marker=mark, color=colour, lw=2.2, ms=7, label=way)
    ax.axvline(y.mean(), color=GREY, lw=1, zorder=0)
    say(ax, "where it was fitted", (y.mean(), 0.02), 5, 6, color="0.35")
    ax.set(xscale="log", xticks=[0.01, 0.03, 0.1, 0.3, 0.6], xticklabels=["1 %", "3 %", "10 %", "30 %", "60 %"])
    ax.minorticks_off()
    ax.set(xlabel="share of positives among later rows", ylabel="F₁", ylim=(0, 1))
    ax.legend(fontsize=11, frameon=False, loc="upper left")
    return figure


def row_scores() -> Figure:
    """Which digits are on a card of one to three, laid over each other: two cards, decided by one cut and by row."""
    x, digit = load_digits(return_X_y=True)
    rng = np.random.default_rng(0)
    cards = [rng.choice(len(x), size) for size in rng.choice([1, 2, 3], 2400, p=[0.5, 0.3, 0.2])]
    images = np.array([x[card].max(axis=0) for card in cards]) / 16
    truth = np.array([np.isin(np.arange(10), digit[card]) for card in cards])
    model = MultiOutputClassifier(LogisticRegression(max_iter=500))
    each = cross_val_predict(model, images, truth, cv=4, method="predict_proba")
    p = np.stack([q[:, 1] for q in each], axis=1)
    decision = Decision.fit(p[:1200], truth[:1200], "f1", kind="probability", average="samples")
    q, y = decision.probability(p[1200:]), truth[1200:]
    cut, alone = decision.cuts[0], decision.decide(p[1200:])
    common = cut.decide(q)
    means = [float((2 * (m & y).sum(axis=1) / (m.sum(axis=1) + y.sum(axis=1))).mean()) for m in (common, alone)]
    right, apart = (alone == y).all(axis=1), alone.sum(axis=1) - common.sum(axis=1)
    gained = [int(np.argmax(apart * right)), int(np.argmin(apart * right))]  # most labels more, most labels fewer
    figure, panels = sheet("Which digits are on this card?", 2, sharey=True)
    words = [f"one cut calls {common[row].sum()}, by row {alone[row].sum()}" for row in gained]
    for ax, row, text in zip(panels, gained, words, strict=True):
        colours = [BLUE if called else "0.8" for called in alone[row]]
        ax.bar(range(10), q[row], color=colours, zorder=2)
        for label in np.flatnonzero(y[row]):
            ax.plot(label, q[row, label] + 0.06, "v", ms=9, color=DARK)
        ax.axhline(cut.value, color=VERMILION, lw=2, zorder=3)
        ax.set_title(text, fontsize=11)
        ax.set(xticks=range(10), xlabel="digit", ylim=(0, 1.08))
        small = ax.inset_axes((0.72, 0.62, 0.26, 0.34) if q[row, 7:].max() < 0.5 else (0.03, 0.62, 0.26, 0.34))
        small.imshow(images[1200 + row].reshape(8, 8), cmap="Greys")
        small.set(xticks=[], yticks=[])
    panels[0].set_ylabel("probability")
    handles = [Line2D([], [], color=VERMILION, lw=2, label=f"one cut (mean F₁ {means[0]:.3f})"),
               Patch(color=BLUE, label=f"called by row ({means[1]:.3f})"),
               Line2D([], [], color=DARK, marker="v", lw=0, ms=9, label="on the card")]  # fmt: skip
    figure.legend(handles=handles, loc="outside lower center", ncols=3, fontsize=10.5, frameon=False,
                  handlelength=1, columnspacing=1)  # fmt: skip
    return figure


def rare_labels() -> Figure:
    """F₁ of labels with at most 20 positives, by set."""
    found = json.loads((ROOT / "benchmarks" / "results" / "decisions-labels.json").read_text())
    scores = found["sizes"]["400 rows"]["F1"]["rare"]["scores"]
    figure, ax = sheet("Labels with at most 20 positives")
    for i, each in enumerate(reversed(scores.values())):
        ends = each["exact"], each["pooled"]
        ax.plot(ends, (i, i), color=GREY, lw=2, zorder=1)
        ax.plot(ends[0], i, "o", ms=10, mfc="white", mec=VERMILION, mew=2.2)
        ax.plot(ends[1], i, "D", ms=8.5, color=BLUE)
        say(ax, f"{100 * (ends[1] - ends[0]):+.1f}".replace("-", "−"), (max(ends), i), 10)
    ax.plot([], [], "o", ms=10, mfc="white", mec=VERMILION, mew=2.2, label='"exact": each by itself')
    ax.plot([], [], "D", ms=8.5, color=BLUE, label='"pooled": they learn from each other')
    ax.set(yticks=range(len(scores)), yticklabels=list(reversed(scores)), ylim=(-0.6, len(scores) - 0.4), xlim=(0, 0.8))
    ax.set_xlabel("mean F₁ of the rare labels (400 rows to learn from)")
    ax.legend(fontsize=10.5, frameon=False, loc="lower right")
    return figure


def several_classes() -> Figure:
    """Three digits, two of them rare: which is called at which probabilities, and what that scores on rows held out."""
    x, digit = load_digits(return_X_y=True)
    rng = np.random.default_rng(0)
    shares = {8: 170, 9: 45, 3: 25}
    rows = np.concatenate([rng.choice(np.flatnonzero(digit == k), n, False) for k, n in shares.items()])
    kind = np.repeat(np.arange(3), list(shares.values()))
    model = make_pipeline(PCA(3, random_state=0), LogisticRegression(max_iter=1000))
    p = cross_val_predict(model, x[rows] / 16, kind, cv=5, method="predict_proba")
    rule = tune(p, kind, "f1", exclusive=True, rule="shrunk")
    corners = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, 0.866]])
    u, v = np.meshgrid(np.linspace(0, 1, 300), np.linspace(0, 0.866, 260))
    grid = np.stack([1 - u - v / 1.732, u - v / 1.732, v / 0.866], axis=-1)
    inside, flat = (grid >= 0).all(axis=-1), grid.clip(1e-9).reshape(-1, 3)
    flat /= flat.sum(axis=1, keepdims=True)
    areas = {"most probable": flat.argmax(axis=1), "worth most to macro F₁": rule.decide(flat)}
    figure, panels = sheet("An 8, a 9 or a 3? Which is called where", 2)
    for ax, (way, area), value in zip(panels, areas.items(), rule.held_out, strict=True):
        shown = np.where(inside, area.reshape(u.shape), np.nan)
        colours = ListedColormap(["#9ecae1", "#f4b183", "#d9d9d9"])
        ax.imshow(shown, extent=(0, 1, 0, 0.866), origin="lower", cmap=colours, vmin=0, vmax=2)
        for k, (name, mark) in enumerate(zip(shares, "o^s", strict=True)):
            colour = (BLUE, VERMILION, DARK)[k]
            ax.plot(*(p[kind == k] @ corners).T, mark, ms=4.5, color=colour, mec="white", mew=0.4)
            at = tuple(corners[k] + [(-0.08, 0), (0.08, 0), (0.09, -0.02)][k])
            say(ax, str(name), at, ha="center", fontsize=14, fontweight="bold", color=colour)
        ax.set_title(f"{way}\nmacro F₁ {value:.2f}", fontsize=12)
        ax.set(xlim=(-0.14, 1.14), ylim=(-0.05, 0.9))
        ax.axis("off")
    return figure


def promises() -> Figure:
    """Recall among all rows of cuts that had recall 0.8 on the rows that chose them, and of cuts that promise it."""
    p, y = eights(12)
    rng = np.random.default_rng(0)
    ways = {"recall ≥ 0.8 on the rows": {}, "promised with 95 %": {"confidence": 0.95}}
    found: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(DRAWS):
        rows = rng.choice(y.size, 1000)
        for way, how in ways.items():
            asked: dict[str, Any] = {"kind": "probability", "subject_to": {"recall": 0.8}} | how
            found[way].append(score(Recall(), p, y, tune(p[rows], y[rows], "precision", **asked).value))
    figure, panels = sheet("Recall of at least 0.8: kept among all rows?", 1, 2, sharex=True)
    edges = np.arange(30, 51) / 50
    for ax, (way, values) in zip(panels, found.items(), strict=True):
        counts, _ = np.histogram(values, bins=edges)
        ax.bar(edges[:-1], counts, 0.018, align="edge", color=np.where(edges[:-1] < 0.79, VERMILION, BLUE))
        ax.axvline(0.799, color=DARK, lw=1.5)
        broken = 100 * np.mean(np.array(values) < 0.8)
        say(ax, f"{way}\nmissed in {broken:.0f} %", (0.6, counts.max() * 0.7), fontsize=12)
        ax.set(yticks=[])
        ax.spines["left"].set_visible(False)
    panels[1].set(xlabel="recall of the cut among all rows", xlim=(0.595, 1))
    return figure


def for_a_person() -> Figure:
    """Scores of both classes, and the band between the two cuts."""
    p, y = eights(12)
    plain = tune(p, y, "f1", kind="probability")
    cut = tune(p, y, "f1", kind="probability", abstain=0.05)
    asked = p[cut.outcome(p) == -1]
    figure, ax = sheet("The rows that a person decides")
    z, bins = np.log(p / (1 - p)), np.linspace(-8, 5, 53)
    middle = (bins[1:] + bins[:-1]) / 2
    for rows, side, colour, name in ((y, 1, BLUE, "eights"), (~y, -1, VERMILION, "others")):
        ax.bar(middle, side * np.histogram(z[rows], bins)[0], 0.22, color=colour, label=name, zorder=2)
    ends = [float(np.log(end / (1 - end))) for end in (asked.min(), asked.max())]
    ax.axvspan(*ends, color="0.86", zorder=0)
    ax.axhline(0, color=DARK, lw=0.8)
    say(ax, f"{asked.size} rows\nfor a person", (sum(ends) / 2, 21), ha="center", fontweight="bold")
    text = f"F₁ with one cut: {plain.score:.2f}", f"rows decided: {cut.score:.2f}", f"person right: {cut.helped:.2f}"
    for i, line in enumerate(text):
        say(ax, line, (1.1, -15 - 5 * i))
    ticks = range(-30, 21, 10)
    ax.set(ylim=(-30, 26), xlim=(-6, 5), yticks=ticks, yticklabels=[str(abs(tick)) for tick in ticks])
    ax.set(xlabel="log odds of an 8", ylabel="rows (cut off at 30)")
    ax.legend(fontsize=11, frameon=False, loc="upper left")
    return figure


def averaged_models() -> Figure:
    """What the mean of the folds' models gains over one fitted to all rows, by learner."""
    found = json.loads((ROOT / "benchmarks" / "results" / "decisions-ensemble.json").read_text())
    figure, ax = sheet("Averaging the folds' models: no sure gain")
    learners = dict(reversed(found["learners"].items()))
    for i, each in enumerate(learners.values()):
        gain = each["averaged"]["log odds"]["F"]
        ax.plot([100 * end for end in gain["interval"]], [i, i], color=BLUE, lw=2.5)
        ax.plot(100 * gain["mean"], i, "o", ms=9, color=BLUE)
    ax.axvline(0, color=DARK, lw=1.2)
    ax.set(yticks=range(len(learners)), yticklabels=list(learners), ylim=(-0.6, len(learners) - 0.4))
    ax.set_xlabel(f"gain in F, hundredths ({found['sources']} sources, 95 %)")
    return figure


def budgets_and_costs() -> Figure:
    """What all rows cost over the number of alerts."""
    p, y = eights(12)
    metric = Cost(fp=1, fn=20)
    _, counts = curve(p, y)
    figure, ax = sheet("A miss costs 20 false alarms: where to cut?")
    ax.plot(counts.tp + counts.fp, -metric(counts) * y.size, color="0.35", lw=2.2)
    best, within = (tune(p, y, metric, kind="probability", budget=budget).value for budget in (None, 150))
    cuts = {"½": (0.5, ORANGE, "o", 10), "best": (best, BLUE, "D", -16), "150 alerts": (within, VERMILION, "s", 8)}
    for name, (cut, colour, mark, up) in cuts.items():
        at = Confusion.from_scores(p, y, cut)
        where = float(at.tp + at.fp), -float(metric(at)) * y.size
        ax.plot(*where, mark, ms=10, color=colour, zorder=5)
        say(ax, f"{name}: {where[1]:,.0f}", where, 11, up, fontweight="bold")
    ax.axvline(150, color=GREY, lw=1, zorder=0)
    ax.set(xlim=(0, 900), ylim=(0, 3600), xlabel=f"alerts, of {y.size:,} rows", ylabel="cost of misses and alarms")
    return figure


PICTURES: dict[str, Callable[[], Figure]] = {
    "one-cut": one_cut,
    "few-positives": few_positives,
    "share-moves": share_moves,
    "row-scores": row_scores,
    "rare-labels": rare_labels,
    "several-classes": several_classes,
    "promises": promises,
    "for-a-person": for_a_person,
    "averaged-models": averaged_models,
    "budgets-and-costs": budgets_and_costs,
}


def main() -> None:
    """Draw all pictures, or one."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--write", action="store_true", help="rewrite docs/decisions/")
    parser.add_argument("--only", choices=PICTURES)
    given = parser.parse_args()
    folder = ROOT / ("docs" if given.write else "build") / "decisions"
    folder.mkdir(parents=True, exist_ok=True)
    for name in [given.only] if given.only else PICTURES:
        save(PICTURES[name](), folder / f"{name}.png")


if __name__ == "__main__":
    main()
