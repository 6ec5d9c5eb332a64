"""Rows of several labels, decided one by one or by one cut, on Mulan's sets: see decisions.py.

A set is FOLDER/NAME.npz with X (n, d) and Y (n, K) of 0 and 1.
"""

from __future__ import annotations

import warnings
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
from decisions_tables import Floats, over_sources
from doc_block import hundredths, table
from scipy.sparse import csr_matrix
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold
from sklearn.preprocessing import MaxAbsScaler

from fbeta import Confusion, Decision, FBeta, Jaccard, Metric, decide_rows, tune
from fbeta.decisions import row_scores

METRICS: dict[str, Metric] = {"F1": FBeta(1), "F2": FBeta(2), "Jaccard": Jaccard()}
OURS, CUT = "decision", "common cut"
#: The names of metrics for the package rankseg, which knows no others.
THEIRS = {"F1": "dice", "Jaccard": "IoU"}
#: The share of rows to learn from, the folds for their scores, and the positives that a label needs among them.
LEARN, FOLDS, POSITIVES = 0.67, 5, 5


def probabilities(path: Path, repeat: int, cache: Path | None, most: int | None = None) -> dict[str, Any]:
    """Logistic regressions, one per label: of the rows to learn from (O, out of fold) and of later rows (T).

    `most`: learn from at most so many rows.
    """
    held = cache / f"{path.stem}-{repeat}{f'-{most}' if most else ''}.npz" if cache else None
    if held is not None and held.exists():
        return dict(np.load(held))
    data = np.load(path, allow_pickle=True)
    x, y = MaxAbsScaler().fit_transform(data["X"].astype(float)), data["Y"].astype(int)
    x = csr_matrix(x) if np.mean(x != 0) < 0.2 else x
    order = np.random.default_rng(repeat).permutation(len(y))
    learn, later = np.split(order, [int(LEARN * len(y))])
    learn = learn[:most]
    y = y[:, y[learn].sum(0) >= POSITIVES]
    inner, outer = np.zeros((len(learn), y.shape[1])), np.zeros((len(later), y.shape[1]))
    folds = list(KFold(FOLDS, shuffle=True, random_state=repeat).split(learn))
    for k in range(y.shape[1]):
        for some, rest in folds:
            inner[rest, k] = _fitted(x[learn[some]], y[learn[some], k], x[learn[rest]])
        outer[:, k] = _fitted(x[learn], y[learn, k], x[later])
    found = {"O": inner, "T": outer, "ytr": y[learn], "yte": y[later]}
    if held is not None:
        held.parent.mkdir(parents=True, exist_ok=True)
        np.savez(held, **found)
    return found


def _fitted(x: Any, y: Any, new: Any) -> Floats:
    if not y.any():
        return np.full(new.shape[0], 1e-4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = LogisticRegression(max_iter=200, solver="liblinear").fit(x, y)
    found: Floats = model.predict_proba(new)[:, 1]
    return found


def ratio(p: Floats, metric: Metric) -> Any:
    """The heuristic: the metric of the expected cells, for the likeliest labels of each row."""
    order = np.argsort(-p, 1, kind="stable")
    tp = np.pad(np.take_along_axis(p, order, 1).cumsum(1), ((0, 0), (1, 0)))
    called, total = np.arange(p.shape[1] + 1.0), tp[:, -1:]
    value = metric(Confusion(tp, called - tp, total - tp, p.shape[1] - called - total + tp))
    places = np.argsort(order, 1)
    return places < np.argmax(value, 1)[:, None]


def rankseg(p: Any, metric: str, pruning: float, **options: Any) -> Any:
    """What that package calls; None where it is not installed or does not know the metric."""
    try:
        import torch
        from rankseg.functional import rankseg as decide
    except ImportError:
        return None
    if metric not in THEIRS:
        return None
    common: dict[str, Any] = {"metric": THEIRS[metric], "output_mode": "multilabel", "pruning_prob": pruning}
    found = decide(torch.as_tensor(p)[:, None], **common, **options)[:, 0]
    return found if found.is_cuda else found.numpy()


def ways(name: str, data: dict[str, Any]) -> tuple[dict[str, Any], Decision]:
    """The decisions on later rows by every way, and ours, which says how it decides."""
    metric, inner, later = METRICS[name], data["O"], data["T"]
    decision = Decision.fit(inner, data["ytr"], metric, kind="probability", average="samples")
    p = decision.probability(later)
    found = {
        "one half": later >= 0.5,
        CUT: tune(inner, data["ytr"], metric, average="samples").decide(later),
        "common cut, calibrated": decision.cuts[0].decide(p),
        "ratio": ratio(later, metric),
        "rankseg": rankseg(later, name, 0.5),
        "rankseg, unpruned": rankseg(later, name, 0.0),
        "rankseg, unpruned, calibrated": rankseg(p, name, 0.0),
        "independent, calibrated": decide_rows(p, metric),
        OURS: decision.decide(later),
    }
    return {way: called for way, called in found.items() if called is not None}, decision


def measure(folder: Path, rows: int, repeats: int, cache: Path | None, jobs: int) -> dict[str, Any]:
    """Every way on every set (of all its rows): the mean row score of later rows, mean over repeats."""
    del rows, jobs
    seen: dict[str, Any] = defaultdict(lambda: defaultdict(lambda: defaultdict(list)))
    about: dict[str, Any] = {}
    single: dict[str, dict[str, list[bool]]] = defaultdict(lambda: defaultdict(list))
    for path in sorted(folder.glob("*.npz")):
        for repeat in range(repeats):
            data = probabilities(path, repeat, cache)
            for name, metric in METRICS.items():
                found, decision = ways(name, data)
                assert decision.rows is not None
                single[name][path.stem].append(decision.rows.one_by_one)
                for way, called in found.items():
                    score = np.mean(row_scores(called, data["yte"], metric))
                    seen[name][path.stem][way].append(float(score))
            about[path.stem] = {"rows": len(data["ytr"]), "labels": data["ytr"].shape[1]}
        print(path.stem, flush=True)
    return {
        "repeats": repeats,
        "sets": about,
        "metrics": {
            name: {
                "scores": {s: {way: float(np.mean(x)) for way, x in by.items()} for s, by in sets.items()},
                "one by one": {s: float(np.mean(x)) for s, x in single[name].items()},
                "above": {
                    way: over_sources(np.mean(np.subtract(by[OURS], by[way])) for by in sets.values())
                    | {"least": min(float(np.mean(np.subtract(by[OURS], by[way]))) for by in sets.values())}
                    for way in next(iter(sets.values()))
                    if way != OURS
                },
            }
            for name, sets in seen.items()
        },
    }


def render(found: dict[str, Any]) -> list[str]:
    """One table per metric, one row per set."""
    lines = [
        "## Rows of several labels",
        "",
        f"Mulan's sets, logistic regression per label with at least {POSITIVES} positives, {found['repeats']} random "
        "splits (67 % to learn from, out-of-fold probabilities of these; 33 % later). The mean over later rows of the "
        "score of each row; a row without labels scores 1 if it is left empty. `decision` is "
        '`Decision.fit(…, average="samples")`; the common cut is the best one on the out-of-fold rows; `ratio` takes '
        "the metric of expected cells. `python benchmarks/decisions.py rows FOLDER --repeats 3`",
        "",
    ]
    for name, part in found["metrics"].items():
        every = list(next(iter(part["scores"].values())))
        lines += [f"### {name}", "", "| set (rows, labels) | " + " | ".join(every) + " | one by one |"]
        lines.append("|---|" + "---|" * (len(every) + 1))
        for stem, by in part["scores"].items():
            size = found["sets"][stem]
            shown = " | ".join(f"{by[way]:.3f}" for way in every)
            lines.append(f"| {stem} ({size['rows']:,}, {size['labels']}) | {shown} | {part['one by one'][stem]:.0%} |")
        lines += ["", "| `decision` above, in hundredths | mean over sets | least |", "|---|---|---|"]
        for way, gain in part["above"].items():
            lines.append(f"| {way} | {hundredths(gain)} | {100 * gain['least']:+.2f} |")
        lines.append("")
    return lines


def summary(found: dict[str, Any]) -> str:
    """What docs/decisions.md says."""
    parts = [found["metrics"][name]["above"] for name in ("F1", "Jaccard")]
    named = {
        "one half": "½",
        "common cut": "the best common cut",
        "rankseg, unpruned": "the package rankseg (without its pruning)",
        "rankseg, unpruned, calibrated": "rankseg on probabilities that we calibrated",
    }
    rows = ([name, *(hundredths(part[way]) for part in parts)] for way, name in named.items())
    least = f"{100 * parts[0]['common cut']['least']:+.2f}".replace("-", "−")
    return (
        f"**Measured** on later rows of {len(found['sets'])} sets of labels (Mulan), logistic regression per label; "
        'hundredths of the mean score of a row by which `average="samples"` is better:\n\n'
        + table(["above", "F₁", "Jaccard"], rows)
        + f"\n\nThe least gain over the common cut on a set is {least} (F₁; "
        "[decisions-rows.md](../benchmarks/results/decisions-rows.md))."
    )
