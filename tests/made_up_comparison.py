"""A comparison that nobody ran, of generated scores; its counts, cuts and scores are real ones."""

from __future__ import annotations

import math
import statistics

import numpy as np

import fbeta
from fbeta.comparison.result import (
    Calibration,
    Candidate,
    ColumnSegments,
    Comparison,
    Difference,
    Estimate,
    NoSkill,
    Operating,
    Outcome,
    Segment,
    Step,
    TableFacts,
)
from fbeta.learners.learner import Course

METHODS = (  # name, model, loss, how far the classes lie apart, how far the probabilities are off
    ("BCE, linear", "linear", "bce", 1.9, 0.0),
    ("tangent, linear", "linear", "tangent", 2.0, 0.9),
    ("BCE, mlp", "mlp", "bce", 2.2, 0.1),
    ("tangent, mlp", "mlp", "tangent", 2.45, 1.0),
    ("surrogate, mlp", "mlp", "surrogate", 0.3, 4.0),
    ("BCE, xgboost", "xgboost", "bce", 2.3, 0.2),
)


def interval(values):
    mean = statistics.fmean(values)
    half = 2.776 * statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else 0.0
    return Estimate(mean, mean - half, mean + half)


def operating(scores, target):
    """Every distinct score is a cut."""
    order = np.argsort(-scores, kind="stable")
    s, y = scores[order], target[order]
    last = np.append(np.flatnonzero(np.diff(s)), len(s) - 1)
    tp = np.cumsum(y)[last]
    return Operating(
        tuple(s[last].tolist()),
        tuple(map(float, tp)),
        tuple(map(float, last + 1 - tp)),
        float(y.sum()),
        float(len(y) - y.sum()),
    )


def calibration(scores, target, bins=10):
    parts = np.array_split(np.argsort(scores), bins)
    return Calibration(
        tuple(float(scores[p].mean()) for p in parts),
        tuple(float(target[p].mean()) for p in parts),
        tuple(len(p) for p in parts),
    )


def course(apart, rng, epochs=20):
    e = np.arange(1, epochs + 1)
    held = 0.25 + 0.23 * apart * (1 - np.exp(-e / 4)) + 0.006 * rng.standard_normal(epochs)
    loss = 0.2 + 0.5 * np.exp(-e / 5) + 0.006 * rng.standard_normal(epochs)
    return Course(tuple(loss.tolist()), tuple((held + 0.02).tolist()), tuple(held.tolist()))


def comparison(
    metric="fbeta:beta=2",
    title="F₂",
    *,
    table="transactions.csv",
    target="is_fraud",
    note="3 rows occur twice; copies stay in one part of a split.",
    remark="calls everything positive since epoch 1",
    names=None,
    methods=METHODS,
    rows=1200,
    prevalence=0.08,
    seeds=5,
):
    """`methods` × `seeds` on a made-up table."""
    own = fbeta.metric(metric)
    drawn = {}
    for at, (_, _, _, apart, shift) in enumerate(methods):
        rng = np.random.default_rng(at)
        for seed in range(seeds):
            common = np.random.default_rng(1000 + seed)  # all methods see the same rows
            y = (common.random(2 * rows) < prevalence).astype(float)
            noise = 0.8 * common.standard_normal(2 * rows) + 0.6 * rng.standard_normal(2 * rows)
            logit = apart * (noise + apart * y - apart / 2) + math.log(prevalence / (1 - prevalence)) + shift
            scores = (1 / (1 + np.exp(-logit))).round(6)
            drawn[at, seed] = scores[:rows], y[:rows], scores[rows:], y[rows:]
    made, base = [], {}
    for at, (name, model, loss, apart, _) in enumerate(methods):
        outcomes = []
        for seed in range(seeds):
            inner, inner_y, test, y = drawn[at, seed]
            cut = fbeta.tune(inner, inner_y, own)
            c = fbeta.Confusion.from_scores(test, y, cut.value)
            outcomes.append(
                Outcome(
                    seed=seed,
                    score=float(own(c)),
                    at_half=float(own(fbeta.Confusion.from_scores(test, y, 0.5))),
                    cut=float(cut.value),
                    tp=c.tp,
                    fp=c.fp,
                    fn=c.fn,
                    tn=c.tn,
                    inner=float(cut.score),
                    brier=float(np.mean((test - y) ** 2)),
                    seconds=(0.4, 0.5, 6.1, 6.4, 6.2, 3.3)[at % 6] + 0.1 * seed,
                    epochs=0 if model == "xgboost" else 20,
                    collapse=remark if loss == "surrogate" and seed < 3 else "",
                )
            )
        base = base or {o.seed: o.score for o in outcomes}
        gaps = [o.score - base[o.seed] for o in outcomes]
        gap = interval(gaps)
        spread = statistics.stdev(gaps) if seeds > 1 else 0.0
        p = math.erfc(abs(gap.mean) / (spread or 1.0)) if at else math.nan
        test = np.concatenate([drawn[at, seed][2] for seed in range(seeds)])
        y = np.concatenate([drawn[at, seed][3] for seed in range(seeds)])
        made.append(
            Candidate(
                name=names[at] if names else name,
                model=model,
                loss=loss,
                rule="exact",
                outcomes=tuple(outcomes),
                score=interval([o.score for o in outcomes]),
                at_half=interval([o.at_half for o in outcomes]),
                difference=Difference(gap.mean, gap.low, gap.high, p, "corrected resampled t-test") if at else None,
                operating=operating(test, y),
                calibration=calibration(test, y),
                beside=Difference(0.031, 0.012, 0.05, 0.004, "t", 0.01, 1.0, 0.03, "better") if at in (1, 3) else None,
                epochs=Course() if model == "xgboost" else course(apart, np.random.default_rng(at)),
            )
        )
    steps = made_up_steps(made[0].name, made[3].name)
    winner = max(made, key=lambda c: c.inner)
    d = winner.difference
    gain = (
        "is the baseline" if d is None else f"scores {d.mean:+.3f} ({d.low:+.3f} to {d.high:+.3f}) against the baseline"
    )
    return Comparison(
        table=TableFacts(
            table, target, "1", 2 * rows, round(2 * rows * prevalence), 28, (note, "amount: 12 missing values.")
        ),
        metric=metric,
        title=title,
        candidates=tuple(made),
        baseline=made[0].name,
        winner=winner.name,
        recommendation=f"Take {winner.name} with the exact cut: it {gain}.",
        seeds=seeds,
        folds=5,
        advised=winner.name,
        verdict="undecided",
        seconds=137.0,
        machine="2 cores",
        constant=NoSkill("all rows positive", Estimate(0.3, 0.28, 0.32), steps[1].gain, steps[1].gain),
        steps=steps,
        gain=Difference(0.11, 0.07, 0.15, 0.001, "t", 0.02, 1.0, 0.06, "better"),
        segments=(ColumnSegments(note, (Segment(note, 10, 3, 5, 82), Segment("above 3", 40, 3, 5, 52)), 0.04),),
    )


def made_up_steps(first, last):
    """From the default at ½ to another method; its loss stays."""
    gain = Difference(0.08, 0.05, 0.11, 0.001, "t", 0.02, 1.0, 0.06, "better")
    same = Difference(0.0, 0.0, 0.0, 1.0, "t", 0.0, 0.0, 0.0, "equivalent")
    scores = [Estimate(x, x - 0.02, x + 0.02) for x in (0.5, 0.58, 0.58, 0.61)]
    names = (first, first, first, last)
    gains = (None, gain, same, Difference(0.03, -0.01, 0.07, 0.2, "t", 0.02, 0.9, 0.06, "undecided"))
    cells = ((400.0, 90.0, 560.0, 4950.0), (700.0, 500.0, 260.0, 4540.0))
    changes = ("default", "cut", "loss", "model")
    return tuple(
        Step(change, name, (name,) * 5, score, gain, *cells[at > 0])
        for at, (change, name, score, gain) in enumerate(zip(changes, names, scores, gains, strict=True))
    )
