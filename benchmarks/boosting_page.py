"""The tables of `benchmarks/boosting.py`, from its numbers."""

from __future__ import annotations

import statistics
from typing import Any

TODAY = ("default", "balanced", "TunedThresholdClassifierCV", "TunedThresholdClassifierCV, our step")
OURS = ("tangent, shrunk cut", "tangent, shrunk cut, folds averaged", "bce, shrunk cut")
SQUARE = ("bce, own cut", "bce, shrunk cut", "tangent, own cut", "tangent, shrunk cut")
EXTRA = ("bce, shrunk cut, folds averaged", "surrogate, shrunk cut")
BETAS = ("0.5", "1", "2")


def render(kept: dict[str, Any]) -> str:
    """Everything there is, as Markdown."""
    parts = []
    if "quality" in kept:
        parts += [_quality(kept["quality"])]
    if "speed" in kept:
        parts += [_speed(kept["speed"])]
    return "\n".join(parts)


def summary(kept: dict[str, Any]) -> str:
    """What docs/boosting.md says."""
    results = kept["quality"]["results"]
    sets = list(kept["quality"]["sets"])
    repeats = len(results["xgboost"][sets[0]])
    lines = [
        f"F on rows that nothing was fitted to, {', '.join(sets)}, F½, F₁ and F₂ ({len(sets) * len(BETAS)} cells, "
        f"{repeats} repeats each, the same rows and inner folds for all): mean difference over the cells, and cells "
        "won : lost.",
        "",
        "| | against its defaults | balanced classes | `TunedThresholdClassifierCV` | the same with our step |",
        "|---|---|---|---|---|",
    ]
    for library in results:
        for method in (*OURS, *EXTRA):
            cells = []
            for other in TODAY:
                means = [
                    statistics.fmean(_differences(results, library, name, method, other, beta))
                    for name in sets
                    for beta in BETAS
                ]
                won, lost = sum(m > 0 for m in means), sum(m < 0 for m in means)
                cells.append(f"{statistics.fmean(means):+.3f}, {won} : {lost}")
            lines.append(f"| {library}, {method} | {' | '.join(cells)} |")
    lines += ["", *_square_lines(results, sets)]
    worst = max(
        statistics.fmean(f[OURS[0]][beta][1] for f in results[library][name])
        / statistics.fmean(f["default, our step"][beta][1] for f in results[library][name])
        for library in results
        for name in sets
        for beta in BETAS
    )
    most = max(
        statistics.median(case["inside"]) / statistics.median(cases["built-in"]["seconds"])
        for cases in kept["speed"]["libraries"].values()
        for case in cases.values()
    )
    ratios = {
        f"{library}, {name}": case["ratio"]
        for library, cases in kept["speed"]["libraries"].items()
        for name, case in cases.items()
        if name != "built-in"
    }
    lines += [
        "",
        f"Brier score of the default estimator (tangent loss, calibrated) over that of plain cross entropy: at most "
        f"{worst:.2f}. Training time with a custom objective over the library's own logistic loss, "
        f"{kept['speed']['rows']:,} rows × {kept['speed']['columns']} columns × {kept['speed']['rounds']} rounds: "
        + ", ".join(f"{name} {ratio:.2f}" for name, ratio in ratios.items())
        + f". The objectives themselves take at most {most:.0%} of that time; the rest is that other gradients grow "
        "other trees.",
        "",
        "Every set and method: [benchmarks/results/boosting.md](../benchmarks/results/boosting.md).",
    ]
    return "\n".join(lines)


def rare(kept: dict[str, Any]) -> str:
    """What docs/boosting.md says of positives that are a few in a thousand."""
    quality, name = kept["quality"], "creditcard"

    def span(library: str, method: str) -> str:
        found = _scores(quality["results"], library, name, method, "1")
        return f"{min(found):.3f} to {max(found):.3f}"

    libraries = [
        f"{library} as it is has F₁ {span(library, 'default')}, and {span(library, 'default, our step')} with the bound"
        for library in quality["results"]
    ]
    rows, positives = quality["sets"][name]["rows"][0], quality["sets"][name]["positives"][0]
    return (
        f"On {name} ({rows:,} rows to learn from and {positives} frauds among them in the first repeat), from the "
        f"worst to the best repeat at the cut ½: {'; '.join(libraries)}."
    )


def _scores(results: dict[str, Any], library: str, name: str, method: str, beta: str) -> list[float]:
    return [found[method][beta][0] for found in results[library][name]]


def _quality(quality: dict[str, Any]) -> str:
    results = quality["results"]
    # What is half done says nothing yet: a set counts with the same repeats by both libraries.
    sets = {
        name: about
        for name, about in quality["sets"].items()
        if len({len(found.get(name, ())) for found in results.values()}) == 1 and results["xgboost"][name]
    }
    if len(results) < 2 or not sets:
        return ""
    repeats = len(results["xgboost"][next(iter(sets))])
    lines = [
        "# Boosters for F½, F₁ and F₂",
        "",
        f"`python benchmarks/boosting.py quality`: {repeats} repeats, five inner folds shared by all methods that have "
        f"any, 100 rounds, all other settings the library's; {quality['seconds']:.0f} s. {_machine(quality)}",
        "",
        "| set | rows to learn from (positives) | rows to be judged by (positives) | columns |",
        "|---|---|---|---|",
    ]
    for name, about in sets.items():
        (n, m), (a, b) = about["rows"], about["positives"]
        lines.append(f"| {name} | {n:,} ({a:,}) | {m:,} ({b:,}) | {about['columns']} |")
    lines += [
        "",
        "First repeat. creditcard: five dates, learn before and be judged by the next 30 % of rows, so repeats "
        "overlap. The others: five outer folds.",
        "",
        "## Against the same booster as it is used today",
        "",
        "Test score, mean over repeats; after ± the standard deviation. *ours* is the estimator's default: tangent "
        "loss at the out-of-fold costs, shrunk cut. *averaged*: with the fold models in place of one more fit. *our "
        "step*: the peer with `max_delta_step=3`, our estimators' default, so that only loss and cut differ.",
    ]
    for library in results:
        lines += _against(results, library, list(sets))
    lines += _summary(results, list(sets))
    lines += _square(results, list(sets))
    lines += _brier(results, list(sets))
    return "\n".join(lines) + "\n"


def _against(results: dict[str, Any], library: str, sets: list[str]) -> list[str]:
    heads = ["set", "β", "default", "balanced", "Tuned", "Tuned, our step", "ours", "ours, averaged", "bce, shrunk"]
    lines = ["", f"**{library}**", "", f"| {' | '.join([*heads, 'ours − tuned, our step'])} |", "|---" * 10 + "|"]
    for name in sets:
        for beta in BETAS:
            cells = [_mean(_scores(results, library, name, m, beta)) for m in (*TODAY, *OURS)]
            pairs = _differences(results, library, name, OURS[0], TODAY[3], beta)
            lines.append(f"| {name} | {beta} | {' | '.join(cells)} | {_signed(pairs)} |")
    return lines


def _differences(results: Any, library: str, name: str, one: str, other: str, beta: str) -> list[float]:
    a, b = (_scores(results, library, name, m, beta) for m in (one, other))
    return [x - y for x, y in zip(a, b, strict=True)]


def _summary(results: dict[str, Any], sets: list[str]) -> list[str]:
    lines = [
        "",
        "## Wins and losses",
        "",
        "Mean difference in F over sets and repeats [smallest, largest mean of a set], and in how many of the cells "
        "(set × β) the mean over repeats is higher : lower.",
        "",
        "| library | method | against | F½ | F₁ | F₂ | cells |",
        "|---|---|---|---|---|---|---|",
    ]
    ours = (*OURS, EXTRA[0], EXTRA[1])
    for library in results:
        for method in ours:
            for other in TODAY:
                cells, counts = [], [0, 0]
                for beta in BETAS:
                    means = [
                        statistics.fmean(_differences(results, library, name, method, other, beta)) for name in sets
                    ]
                    counts[0] += sum(m > 0 for m in means)
                    counts[1] += sum(m < 0 for m in means)
                    cells.append(f"{statistics.fmean(means):+.3f} [{min(means):+.3f}, {max(means):+.3f}]")
                lines.append(f"| {library} | {method} | {other} | {' | '.join(cells)} | {counts[0]} : {counts[1]} |")
    return lines


def _square(results: dict[str, Any], sets: list[str]) -> list[str]:
    return ["", "## Loss or cut: the 2×2", "", *_square_lines(results, sets)]


def _square_lines(results: dict[str, Any], sets: list[str]) -> list[str]:
    lines = [
        "Loss or cut? Mean F over sets and repeats. The own cut of bce is probability ½, that of the tangent loss its "
        "score 0.",
        "",
        f"| library | β | {' | '.join(SQUARE)} |",
        "|---" * 6 + "|",
    ]
    for library in results:
        for beta in BETAS:
            cells = [
                f"{statistics.fmean(v for name in sets for v in _scores(results, library, name, m, beta)):.3f}"
                for m in SQUARE
            ]
            lines.append(f"| {library} | {beta} | {' | '.join(cells)} |")
    return lines


def _brier(results: dict[str, Any], sets: list[str]) -> list[str]:
    methods = ("default", "balanced", *OURS, "surrogate, shrunk cut")
    lines = [
        "",
        "## Probabilities",
        "",
        "Brier score over that of the default booster with our step (plain cross entropy), mean over repeats; at most "
        "1.05 is wanted of ours.",
        "",
        f"| library | set | β | {' | '.join(methods)} |",
        "|---" * (3 + len(methods)) + "|",
    ]
    for library in results:
        for name in sets:
            for beta in BETAS:
                cells = []
                for method in methods:
                    pairs = [(f[method][beta][1], f["default, our step"][beta][1]) for f in results[library][name]]
                    cells.append(f"{statistics.fmean(a for a, _ in pairs) / statistics.fmean(b for _, b in pairs):.3f}")
                lines.append(f"| {library} | {name} | {beta} | {' | '.join(cells)} |")
    return lines


def _speed(speed: dict[str, Any]) -> str:
    lines = [
        "## Time",
        "",
        f"`python benchmarks/boosting.py speed`: {speed['rows']:,} rows × {speed['columns']} columns × "
        f"{speed['rounds']} rounds, {speed['threads']} threads, load {speed['load']:.1f} before; n = "
        f"{speed['repeats']} repeats of all cases in turn, median and range of the ratio within a repeat. "
        f"{_machine(speed)}",
        "",
        "| library | objective | seconds | of them in the objective | × built-in | range |",
        "|---|---|---|---|---|---|",
    ]
    for library, cases in speed["libraries"].items():
        for name, case in cases.items():
            low, high = min(case["ratios"]), max(case["ratios"])
            seconds = statistics.median(case["seconds"])
            inside = statistics.median(case["inside"])
            lines.append(
                f"| {library} | {name} | {seconds:.1f} | {inside:.2f} | {case['ratio']:.2f} | {low:.2f}–{high:.2f} |"
            )
    return "\n".join(lines) + "\n"


def _machine(part: dict[str, Any]) -> str:
    m = part["machine"]
    return f"python {m['python']}, xgboost {m['xgboost']}, lightgbm {m['lightgbm']}, numpy {m['numpy']}."


def _mean(values: list[float]) -> str:
    spread = statistics.stdev(values) if len(values) > 1 else 0.0
    return f"{statistics.fmean(values):.3f} ± {spread:.3f}"


def _signed(values: list[float]) -> str:
    spread = statistics.stdev(values) if len(values) > 1 else 0.0
    return f"{statistics.fmean(values):+.3f} ± {spread:.3f}"
