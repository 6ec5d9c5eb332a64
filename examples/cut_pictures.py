"""What one cut does, drawn from scikit-learn's digits: is it an 8? For docs/decisions.md, see decision_pictures.py.

Every model is a logistic regression, and every score of a row is from a model that did not see it. Where later rows are
needed, samples are drawn from all rows with replacement, so that all rows are the population, in which the score of a
cut is known.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline

from fbeta import Confusion, Cost, Decision, FBeta, Metric, Recall, tune
from fbeta.decisions import curve
from fbeta.report.png import BLUE, ORANGE, VERMILION

Floats = NDArray[np.float64]
GREY, DARK = "0.6", "0.2"
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
def eights() -> tuple[Floats, NDArray[np.bool_]]:
    """Probabilities that a digit is an 8, from its 12 principal components, and whether it is: one row in ten."""
    x, digit = load_digits(return_X_y=True)
    model = make_pipeline(PCA(12, random_state=0), LogisticRegression(max_iter=1000))
    p: Floats = cross_val_predict(model, x / 16, digit == 8, cv=10, method="predict_proba")[:, 1]
    return p, digit == 8


def score(metric: Metric, p: Floats, y: NDArray[np.bool_], cut: float) -> float:
    """What a cut scores on rows."""
    return float(metric(Confusion.from_scores(p, y, cut)))


def one_cut() -> Figure:
    """F½ and F₂ at every cut."""
    p, y = eights()
    figure, ax = sheet("Each metric has a best cut of its own")
    for beta, name, colour, right, aside in ((0.5, "F½", VERMILION, 0, 32), (2.0, "F₂", BLUE, 52, -30)):
        cuts, counts = curve(p, y)
        ax.plot(cuts, FBeta(beta)(counts), color=colour, lw=2.2)
        best = tune(p, y, FBeta(beta), kind="probability")
        half = score(FBeta(beta), p, y, 0.5)
        ax.plot(0.5, half, "o", ms=9, mfc="white", mec=colour, mew=2, zorder=5)
        ax.plot(best.value, best.score, "D", ms=9, color=colour, zorder=6)
        text = f"{name} {best.score:.2f} at {best.value:.2f}"
        say(ax, text, (best.value, best.score), right, 15, ha="center", color=colour, fontweight="bold")
        say(ax, f"{half:.2f} at ½", (0.5, half), aside, -16, ha="center", color=colour)
    ax.set(xlabel="called an 8 from this probability on", ylabel="score", xlim=(0, 1), ylim=(0, 0.92))
    return figure


def few_positives() -> Figure:
    """What cuts from 20 positives are worth among all rows."""
    p, y = eights()
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
        f1 = np.array(found[rule])
        ax.plot(f1, 1 - i + rng.uniform(-0.22, 0.22, DRAWS), "o", ms=4, alpha=0.45, color=colour, mec="none")
        ax.plot([f1.mean()] * 2, [1 - i - 0.32, 1 - i + 0.32], color=DARK, lw=2.5, zorder=6)
        worst = f"mean {f1.mean():.3f}, one in ten below {np.quantile(f1, 0.1):.3f}"
        say(ax, worst, (f1.mean(), 1 - i + 0.4), ha="right")
    best = tune(p, y, FBeta(1), kind="probability").score
    ax.axvline(best, color=GREY, lw=1.5, ls=(0, (1, 2)))
    say(ax, "best possible", (best, -0.42), -4, ha="right", color="0.35")
    ax.set(yticks=[1, 0], yticklabels=['"exact"', '"shrunk"'], ylim=(-0.55, 1.6), xlabel="F₁ of the cut among all rows")
    ax.set_xlim(right=best + 0.01)
    return figure


def share_moves() -> Figure:
    """F₁ where positives are rarer or more frequent than in the rows that chose the cut."""
    p, y = eights()
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


def promises() -> Figure:
    """Recall among all rows of cuts that had recall 0.8 on the rows that chose them, and of cuts that promise it."""
    p, y = eights()
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
    p, y = eights()
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


def budgets_and_costs() -> Figure:
    """What all rows cost over the number of alerts."""
    p, y = eights()
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
