"""Promises kept and broken, and rows handed to a person, beside MAPIE's controller: see decisions.py.

Scores of a known population, so that what a cut does there is a formula and not an estimate: positives are normal with
mean 1.8, negatives with mean 0, and one row in ten is positive.
"""

from __future__ import annotations

import importlib
import time
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from decisions_tables import Floats, over_sources
from doc_block import hundredths, table
from scipy.stats import beta, norm

from fbeta import tune

control: Any = None
with suppress(ImportError):
    control = importlib.import_module("mapie.risk_control")

SHARE, APART, CONFIDENCE = 0.1, 1.8, 0.95
DRAWS, MAPIE_DRAWS = 2000, 200
#: Positives to expect, what is promised, and the metric that chooses among the cuts that pass.
CASES: dict[str, tuple[int, dict[str, float], str]] = {
    "recall ≥ 0.7": (10, {"recall": 0.7}, "precision"),
    "recall ≥ 0.8": (100, {"recall": 0.8}, "precision"),
    "recall ≥ 0.9": (1000, {"recall": 0.9}, "precision"),
    "precision ≥ 0.4": (100, {"precision": 0.4}, "recall"),
    "precision ≥ 0.6": (1000, {"precision": 0.6}, "recall"),
    "recall ≥ 0.8, precision ≥ 0.28": (1000, {"recall": 0.8, "precision": 0.28}, "f1"),
}
#: With a person: of these, recall counts positives that are decided negative for missed.
ASKED = (1000, {"recall": 0.8, "precision": 0.5})
#: Pairs of cuts that MAPIE tries then, and how many thresholds it tries else.
PAIRS, STARTS = 20, 10
#: Rules that choose the rows for a person.
HANDED = ("exact", "shrunk", "plugin")
OURS, PLAIN = "fbeta", "plain constraint"
LARGE = 10_000_000


#: Probabilities, targets, what is asked and the metric; a cut, if anything can be promised.
Way = Callable[[Floats, Any, Mapping[str, float], str], float | None]


def draw(rows: int, seed: int) -> tuple[Floats, Any]:
    """Probabilities, exactly calibrated, and targets."""
    rng = np.random.default_rng(seed)
    y = rng.random(rows) < SHARE
    x = rng.normal(size=rows) + APART * y
    return 1 / (1 + np.exp(-(APART * x - APART**2 / 2 + np.log(SHARE / (1 - SHARE))))), y


def population(cut: float) -> dict[str, float]:
    """Recall, precision, F₁ and the share of rows called, of a cut of these probabilities."""
    cut = min(max(cut, 0.0), 1.0)  # all and none are ±inf
    with np.errstate(divide="ignore"):
        x = (np.log(cut) - np.log1p(-cut) - np.log(SHARE / (1 - SHARE)) + APART**2 / 2) / APART
    tp, fp = SHARE * norm.sf(x - APART), (1 - SHARE) * norm.sf(x)
    found = {"recall": tp / SHARE, "precision": tp / (tp + fp) if tp + fp else 0.0, "called": tp + fp}
    return {name: float(value) for name, value in found.items()} | {"f1": float(2 * tp / (tp + fp + SHARE))}


def ours(p: Floats, y: Any, asked: Mapping[str, float], metric: str) -> float | None:
    """The cut of `tune`, if anything can be promised."""
    try:
        return float(tune(p, y, metric, subject_to=asked, confidence=CONFIDENCE).value)
    except ValueError:
        return None


def plain(p: Floats, y: Any, asked: Mapping[str, float], metric: str) -> float | None:
    """The cut that meets the constraints on the rows at hand."""
    try:
        return float(tune(p, y, metric, subject_to=asked).value)
    except ValueError:
        return None


def mapie(method: str) -> Way:
    """The controller's cut on its grid of 100; cuts are in the order that suits the promise, from the safe end."""

    def found(p: Floats, y: Any, asked: Mapping[str, float], metric: str) -> float | None:
        grid = np.linspace(0, 0.99, 100)
        several = len(asked) > 1
        names, levels = (list(x) for x in (asked, asked.values()))
        how: Any = method
        if method == "fixed_sequence":
            grid = grid if names == ["recall"] else grid[::-1]
            how = method if names == ["recall"] else control.fwer_control.FWERFixedSequenceTesting(n_starts=STARTS)
        choose = {"f1": "precision"}.get(metric, metric)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made = control.BinaryClassificationController(
                lambda x: np.c_[1 - x[:, 0], x[:, 0]],
                names if several else names[0],
                levels if several else levels[0],
                confidence_level=CONFIDENCE,
                best_predict_param_choice=choose,
                list_predict_params=grid,
                fwer_method=how,
            )
            made.calibrate(p[:, None], y.astype(int))
        return None if made.best_predict_param is None else float(made.best_predict_param)

    return found


def judged(cuts: list[float | None], asked: Mapping[str, float], metric: str) -> dict[str, Any]:
    """How often a promise was given and broken, and how useful the cuts are: no promise is all called, or nothing."""
    there = [None if cut is None else population(cut) for cut in cuts]
    broken = [x is not None and any(x[name] < least for name, least in asked.items()) for x in there]
    else_ = population(0.0 if "precision" not in asked else 1.0)[metric]
    useful = [else_ if x is None else x[metric] for x in there]
    kept = {name: [x[name] for x in there if x is not None] for name in ("recall", "precision")}
    wrong = int(sum(broken))
    return {
        "draws": len(cuts),
        "given": float(np.mean([x is not None for x in there])),
        "broken": wrong / len(cuts),
        "broken_interval": [
            float(beta.ppf(0.025, wrong, len(cuts) - wrong + 1)) if wrong else 0.0,
            float(beta.ppf(0.975, wrong + 1, len(cuts) - wrong)) if wrong < len(cuts) else 1.0,
        ],
        "useful": float(np.mean(useful)),
        "each": useful,
        **{name: float(np.mean(values)) if values else None for name, values in kept.items()},
    }


def compared(name: str) -> dict[str, Any]:
    """All ways to a cut on the same draws."""
    positives, asked, metric = CASES[name]
    rows = round(positives / SHARE)
    ways: dict[str, tuple[Way, int]] = {OURS: (ours, DRAWS), PLAIN: (plain, MAPIE_DRAWS)}
    if control is not None:
        ways["MAPIE, default"] = mapie("bonferroni_holm"), MAPIE_DRAWS
        if len(asked) == 1:  # it refuses sequences for more
            ways["MAPIE, fixed sequence"] = mapie("fixed_sequence"), MAPIE_DRAWS
    cuts: dict[str, list[float | None]] = {way: [] for way in ways}
    for seed in range(DRAWS):
        p, y = draw(rows, seed)
        for way, (find, most) in ways.items():
            if seed < most:
                cuts[way].append(find(p, y, asked, metric))
    found = {way: judged(each, asked, metric) for way, each in cuts.items()}
    mine = found[OURS]["each"]
    for each in found.values():
        gap = np.array(mine[: each["draws"]]) - np.array(each.pop("each"))
        each["ours_above"] = float(gap.mean())
        each["ours_above_error"] = float(gap.std(ddof=1) / np.sqrt(gap.size))
    return {"positives": positives, "asked": asked, "metric": metric, "ways": found}


def asked_of_a_person() -> dict[str, Any]:
    """Rows that a person decides, so that two promises hold: their share, and how often a promise was broken."""
    positives, asked = ASKED
    rows = round(positives / SHARE)
    ends: dict[str, list[tuple[float, float] | None]] = {OURS: [], "MAPIE, default": []}
    levels = np.linspace(0.02, 0.7, PAIRS)
    pairs = np.array([(low, high) for low in levels for high in levels if low <= high])

    def decide(x: Floats, low: float, high: float) -> Floats:
        return np.where(x[:, 0] >= high, 1.0, np.where(x[:, 0] < low, 0.0, np.nan))

    for seed in range(DRAWS):
        p, y = draw(rows, seed)
        try:
            cut = tune(p, y, "f1", subject_to=asked, confidence=CONFIDENCE, abstain="promise")
            ends[OURS].append((cut.asking.start if cut.asking else float(cut.value), float(cut.value)))
        except ValueError:
            ends[OURS].append(None)
        if control is None or seed >= MAPIE_DRAWS // 4:
            continue
        missed = control.BinaryRisk(lambda y, d: d.ravel() != 0, lambda y, d: y.ravel() == 1, higher_is_better=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made = control.BinaryClassificationController(
                decide,
                [missed, control.precision],
                [asked["recall"], asked["precision"]],
                confidence_level=CONFIDENCE,
                best_predict_param_choice="abstention_rate",
                list_predict_params=pairs,
            )
            made.calibrate(p[:, None], y.astype(int))
        best = made.best_predict_param
        ends["MAPIE, default"].append(None if best is None else (float(best[0]), float(best[1])))
    found = {}
    for way, each in ends.items():
        if not each:
            continue
        given = [pair for pair in each if pair is not None]
        lows, highs = ([population(pair[k]) for pair in given] for k in (0, 1))
        wrong = [
            low["recall"] < asked["recall"] or high["precision"] < asked["precision"]
            for low, high in zip(lows, highs, strict=True)
        ]
        handed = [low["called"] - high["called"] for low, high in zip(lows, highs, strict=True)]
        found[way] = {
            "draws": len(each),
            "given": len(given) / len(each),
            "broken": sum(wrong) / len(each),
            "handed": float(np.mean(handed)) if handed else None,
        }
    return {"positives": positives, "asked": asked, "ways": found}


def handed_over() -> dict[str, Any]:
    """F₁ of all rows of the population if a person is right about 5 % of the rows, by how these are chosen."""
    found: dict[str, Any] = {}
    for positives in (30, 100, 1000):
        rows = round(positives / SHARE)
        scores: dict[str, list[float]] = {way: [] for way in (*HANDED, "evenly around the cut", "nobody")}
        for seed in range(DRAWS // 5):
            p, y = draw(rows, seed)
            for rule in HANDED:
                cut = tune(p, y, "f1", rule=rule, kind="probability", abstain=0.05)
                scores[rule].append(helped(cut.asking.start if cut.asking else float(cut.value), float(cut.value)))
            cut = tune(p, y, "f1", rule="shrunk", kind="probability")
            ordered, most, at = np.sort(p), round(0.05 * rows), int(np.searchsorted(np.sort(p), cut.value))
            low = min(max(at - most // 2, 0), rows - most - 1)
            scores["evenly around the cut"].append(helped(float(ordered[low]), float(ordered[low + most])))
            scores["nobody"].append(helped(float(cut.value), float(cut.value)))
        found[str(positives)] = {
            "scores": {way: float(np.mean(each)) for way, each in scores.items()},
            "shrunk above": {way: over_sources(np.subtract(scores["shrunk"], each)) for way, each in scores.items()},
        }
    return found


def helped(low: float, high: float) -> float:
    """F₁ of the population where a person is right between two probabilities."""
    missed, called = SHARE * (1 - population(low)["recall"]), population(high)
    wrong = called["called"] - SHARE * called["recall"]
    return float(2 * (SHARE - missed) / (2 * (SHARE - missed) + missed + wrong))


def by_a_sample() -> dict[str, Any]:
    """One exact bound (recall ≥ 0.8, 600 positives, 90 %), judged by the formula and by 400,000 rows drawn once."""
    p, y = draw(400_000, 99)
    held, wrong = np.sort(p[y]), np.zeros(2)
    for seed in range(DRAWS):
        p, y = draw(6000, seed)
        cut = float(tune(p, y, "specificity", subject_to={"recall": 0.8}, confidence=0.9).value)
        wrong += np.array([population(cut)["recall"], 1 - np.searchsorted(held, cut) / held.size]) < 0.8
    return {"draws": DRAWS, "by_formula": float(wrong[0]) / DRAWS, "by_sample": float(wrong[1]) / DRAWS}


def times(seconds: Callable[[], float] = time.perf_counter) -> dict[str, float]:
    """How much longer than `np.argsort` a promise takes, at ten million scores."""
    p, y = draw(LARGE, 0)

    def taken(call: Callable[[], Any]) -> float:
        best = np.inf
        for _ in range(3):
            began = seconds()
            call()
            best = min(best, seconds() - began)
        return float(best)

    sort = taken(lambda: np.argsort(p))
    asked: dict[str, dict[str, Any]] = {
        "cut": {},
        "recall": {"subject_to": {"recall": 0.9}, "confidence": CONFIDENCE},
        "both": {"subject_to": {"recall": 0.8, "precision": 0.3}, "confidence": CONFIDENCE},
        "abstain": {"abstain": 0.05},
    }
    return {name: taken(partial(tune, p, y, "f1", **how)) / sort for name, how in asked.items()}


def measure(folder: Path | None, rows: int, repeats: int, cache: Path | None, jobs: int) -> dict[str, Any]:
    """All cases; neither tables nor repeats are asked."""
    return {
        "confidence": CONFIDENCE,
        "cases": {name: compared(name) for name in CASES},
        "asked": asked_of_a_person(),
        "handed_over": handed_over(),
        "by_a_sample": by_a_sample(),
        "times": times(),
    }


def percent(x: float | None) -> str:
    """A share with one decimal."""
    return "–" if x is None else f"{100 * x:.1f} %"


def number(x: float | None) -> str:
    """Three decimals."""
    return "–" if x is None else f"{x:.3f}"


def render(result: dict[str, Any]) -> list[str]:
    """The page."""
    lines = [
        "## Promises",
        "",
        f"Positives are normal scores with mean {APART}, negatives with mean 0, {100 * SHARE:g} % are positive, and "
        "scores are turned into exact probabilities; what a cut does in the population is a formula. `tune(…, "
        f"subject_to=…, confidence={CONFIDENCE})` on {DRAWS:,} draws; MAPIE's `BinaryClassificationController` at the "
        f"same confidence on the first {MAPIE_DRAWS} of them, on its grid of 100 thresholds: its default "
        f"(Bonferroni–Holm) and fixed sequences from the safe end (for precision with {STARTS} starts; it has none for "
        "two promises). `useful` is the mean of the other score over all draws (precision where recall is promised, "
        "recall where precision is, F₁ where both are); a draw without a promise counts as 'all called' where recall "
        "is promised alone, else as 'nothing called'. `fbeta above` compares `useful` on the same draws. "
        "`python benchmarks/decisions.py promises`",
        "",
    ]
    for name, case in result["cases"].items():
        lines += [
            f"### {name}, about {case['positives']:,} positives",
            "",
            "| | draws | given | broken (95 % interval) | mean recall | mean precision | useful | fbeta above |",
            "|---|---|---|---|---|---|---|---|",
        ]
        for way, x in case["ways"].items():
            ends = " to ".join(f"{100 * end:.1f}" for end in x["broken_interval"])
            above = "" if way == OURS else f"{x['ours_above']:+.3f} ± {x['ours_above_error']:.3f}".replace("-", "−")
            row = [way, f"{x['draws']:,}", percent(x["given"]), f"{percent(x['broken'])} ({ends})"]
            row += [number(x["recall"]), number(x["precision"]), number(x["useful"]), above]
            lines.append(f"| {' | '.join(row)} |")
        lines.append("")
    handed = result["asked"]
    lines += [
        f"### Rows for a person: {', '.join(f'{k} ≥ {v:g}' for k, v in handed['asked'].items())}, about "
        f"{handed['positives']:,} positives",
        "",
        "No single cut keeps both. `abstain='promise'` hands over the fewest rows; positives that a person sees are "
        f"not missed. MAPIE tries {PAIRS * (PAIRS + 1) // 2} pairs of thresholds, with that recall as its own risk.",
        "",
        "| | draws | given | broken | rows handed over |",
        "|---|---|---|---|---|",
    ]
    for way, x in handed["ways"].items():
        lines.append(
            f"| {way} | {x['draws']:,} | {percent(x['given'])} | {percent(x['broken'])} | {percent(x['handed'])} |"
        )
    sample, taken, chosen = result["by_a_sample"], result["times"], result["handed_over"]
    ways = list(next(iter(chosen.values()))["scores"])
    lines += [
        "",
        f"`abstain=0.05`, {DRAWS // 5} draws: F₁ of all rows of the population if the person is right, by the rule "
        "that chooses the two cuts, with as many rows above the cut as below it, and with nobody:",
        "",
        f"| positives | {' | '.join(ways)} |",
        "|---" * (len(ways) + 1) + "|",
        *(f"| {n} | {' | '.join(number(each['scores'][way]) for way in ways)} |" for n, each in chosen.items()),
        "",
        "### What judges a bound",
        "",
        f"Recall ≥ 0.8 at 90 % on 6,000 rows, {sample['draws']:,} draws: broken in {percent(sample['by_formula'])} by "
        f"the formula, and in {percent(sample['by_sample'])} if 400,000 rows, drawn once, stand for the population: "
        "what their recall is off by is off in all draws.",
        "",
        f"At {LARGE:,} scores, times as long as `np.argsort`: "
        + ", ".join(f"{name} {x:.2f}" for name, x in taken.items())
        + ".",
        "",
    ]
    return lines


def summary(result: dict[str, Any]) -> str:
    """What docs/decisions.md says of promises."""
    rows = []
    for name, case in result["cases"].items():
        ways = case["ways"]
        theirs = [number(ways[way]["useful"]) for way in ways if way.startswith("MAPIE")]
        broken = f"{percent(ways[OURS]['broken'])} | {percent(ways[PLAIN]['broken'])}"
        rows.append([f"{name} ({case['positives']:,})", broken, number(ways[OURS]["useful"]), ", ".join(theirs)])
    worst = max((case["ways"][OURS] for case in result["cases"].values()), key=lambda way: way["broken"])
    ends = " to ".join(f"{100 * end:.1f}" for end in worst["broken_interval"])
    return (
        f"**Measured** on a known population, {DRAWS:,} draws, {100 * CONFIDENCE:g} % confidence; MAPIE's controllers "
        f"(default, fixed sequence) and the constraint on the rows on {MAPIE_DRAWS} of them. The other score is "
        "precision where recall is promised, recall where precision is, F₁ where both are:\n\n"
        + table(["promise (positives)", "broken", "constraint alone: broken", "other score", "MAPIE's"], rows)
        + f"\n\nThe largest share of broken promises lies in {ends} % (95 % interval) "
        "([decisions-promises.md](../benchmarks/results/decisions-promises.md))."
    )


def person(result: dict[str, Any]) -> str:
    """What docs/decisions.md says of rows for a person."""
    handed, given = result["asked"]["ways"], result["handed_over"]
    rows = (
        [
            f"{int(positives):,}",
            number(each["scores"]["shrunk"]),
            *(hundredths(each["shrunk above"][way]) for way in ("nobody", "evenly around the cut", "exact", "plugin")),
        ]
        for positives, each in given.items()
    )
    theirs = handed.get("MAPIE, default")
    beside = f" (MAPIE {percent(theirs['handed'])}, {theirs['draws']} draws)" if theirs else ""
    return (
        f"**Measured** on the same population, {DRAWS // 5} draws: F₁ of all rows where a person is right about 5 % of "
        "them, chosen by `shrunk`, and by how much (hundredths, 95 % interval over draws) it is above "
        "other choices. Probabilities are exact here, which suits `plugin`:\n\n"
        + table(["positives", "F₁", "nobody asked", "rows evenly around the cut", "`exact`", "`plugin`"], rows)
        + f"\n\nRecall ≥ 0.8 and precision ≥ 0.5 together take a person for {percent(handed[OURS]['handed'])} of the "
        f"rows{beside}, and are broken in {percent(handed[OURS]['broken'])} of {handed[OURS]['draws']:,} draws "
        "([decisions-promises.md](../benchmarks/results/decisions-promises.md))."
    )
