"""Decisions about several columns, drawn from scikit-learn's digits and benchmarks/: see decision_pictures.py."""

from __future__ import annotations

import json

import numpy as np
from cut_pictures import DARK, GREY, say, sheet
from digits import ROOT
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import make_pipeline

from fbeta import Decision, tune
from fbeta.report.png import BLUE, VERMILION


def row_scores() -> Figure:
    """Which digits are on a card of one to three, laid over each other: two cards, decided by one cut and by row."""
    x, digit = load_digits(return_X_y=True)
    rng = np.random.default_rng(0)
    images, truth = [], []
    for part in np.array_split(rng.permutation(len(x)), 3):  # to learn from, to choose by, later ones: no digit in two
        cards = [rng.choice(part, size) for size in rng.choice([1, 2, 3], 1200, p=[0.5, 0.3, 0.2])]
        images.append(np.array([x[card].max(axis=0) for card in cards]) / 16)
        truth.append(np.array([np.isin(np.arange(10), digit[card]) for card in cards]))
    model = MultiOutputClassifier(LogisticRegression(max_iter=500)).fit(images[0], truth[0])
    chosen, later = (np.stack([q[:, 1] for q in model.predict_proba(part)], axis=1) for part in images[1:])
    decision = Decision.fit(chosen, truth[1], "f1", kind="probability", average="samples")
    q, y = decision.probability(later), truth[2]
    cut, alone = decision.cuts[0], decision.decide(later)
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
        small.imshow(images[2][row].reshape(8, 8), cmap="Greys")
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
