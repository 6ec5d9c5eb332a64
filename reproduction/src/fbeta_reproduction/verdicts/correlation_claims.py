"""Claims 1 and 2: whether a loss falls in a straight line as the score rises."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from fbeta.numerals import fixed, series
from fbeta_reproduction.naming import loss_name, median
from fbeta_reproduction.protocol import BETAS, PAPER
from fbeta_reproduction.results import correlation
from fbeta_reproduction.results.folder import Repeats, Results
from fbeta_reproduction.verdicts.claim import Claim, Finding, Verdict, judge, unmeasured

#: A loss and a score are linearly correlated from here on: the line explains 81 % of the variance.
LINEAR = -0.9


def surrogate(results: Results) -> Claim:
    """Claim 1: the surrogate loss is linearly correlated with F_β, whatever the β.

    >>> surrogate(Results(())).verdict
    'not measured yet'
    """

    def verdict(linear: int, measured: int) -> Verdict:
        if linear == measured == len(BETAS) ** 2:
            return "holds"
        return "holds in part" if 2 * linear >= measured else "does not hold"

    def finding(dataset: str) -> Finding:
        groups = results.family(dataset, "surrogate")
        linear, measured = _pairs(groups)
        if not measured:
            return unmeasured(dataset, *_stuck(groups))
        said = (*_numbers(groups), _as_well(results, dataset))
        return judge(dataset, groups, verdict(linear, measured), *said)

    return Claim(
        1,
        "The surrogate loss is linearly correlated with F_β for every β",
        "“the surrogate F_β loss is linearly correlated with the F_β score over all choices of the β values” "
        "(Figures 3 and 6)",
        "Holds if, for all sixteen pairs of a loss and a score, the median over repeats of Pearson’s r on "
        f"the training split is at most {fixed(LINEAR, 1)}; in part if for half of the pairs that can be "
        "measured. Runs that never left the plateau have nothing to correlate and are left out; if none of a "
        "β left it, its pairs are not measured.",
        tuple(finding(d) for d in PAPER),
        ("figure-3", "figure-6", "correlation"),
    )


def soft(results: Results) -> Claim:
    """Claim 2: the macro soft F_β loss is not, except for a few β.

    >>> soft(Results(())).verdict
    'not measured yet'
    """

    def verdict(linear: int, measured: int) -> Verdict:
        if 2 * linear <= measured:
            return "holds"
        return "holds in part" if linear < measured else "does not hold"

    def finding(dataset: str) -> Finding:
        groups = results.family(dataset, "soft")
        linear, measured = _pairs(groups)
        if not measured:
            return unmeasured(dataset, *_stuck(groups))
        return judge(dataset, groups, verdict(linear, measured), *_numbers(groups), _weighted(results, dataset))

    return Claim(
        2,
        "The macro soft F_β loss is not, except for a few β",
        "“the macro soft F_β loss is not linearly correlated with the F_β score except a few cases of β values” "
        "(Figures 4 and 7)",
        f"Holds if the median r is at most {fixed(LINEAR, 1)} for no more than half of the measured pairs of "
        "a loss and a score; in part if for fewer than all.",
        tuple(finding(d) for d in PAPER),
        ("figure-4", "figure-7"),
    )


def _pairs(
    groups: Sequence[Repeats], table: Callable[[Repeats], list[list[float]]] = correlation.table
) -> tuple[int, int]:
    """How many pairs of loss and score are linear, and how many could be measured."""
    medians = [median(cell) for g in groups for cell in table(g)]
    return sum(r <= LINEAR for r in medians), sum(not math.isnan(r) for r in medians)


def _numbers(groups: Sequence[Repeats]) -> list[str]:
    linear, measured = _pairs(groups)
    off = _pairs(groups, correlation.off_plateau)
    cells = [(g.run.beta == b, c) for g in groups for b, c in zip(BETAS, correlation.table(g), strict=True)]
    own, other = ([median(c) for same, c in cells if same is which] for which in (True, False))
    first = [r for g in groups for b in BETAS if not math.isnan(r := correlation.of_run(g.first, b))]
    steps = [median(c) for g in groups for c in correlation.table(g, "r of steps")]
    return [
        f"r is at most {fixed(LINEAR, 1)} for {linear} of {measured} measured pairs: {_reach(own)} with the "
        f"loss’s own β, {_reach(other)} with another.",
        f"In the first repetition alone: {sum(r <= LINEAR for r in first)} of {len(first)}.",
        f"Over the epochs off the plateau alone, in runs with at least {correlation.ENOUGH} of them: {off[0]} of "
        f"{off[1]} pairs.",
        f"From one epoch to the next (r of steps): {_reach(steps)}.",
        *_stuck(groups),
    ]


def _weighted(results: Results, dataset: str) -> str:
    """The literal reading of "all the loss functions were class-balanced", if it was run."""
    linear, measured = _pairs(results.family(dataset, "soft-weighted"))
    return f"With class weights inside: r is that low for {linear} of {measured} pairs." if measured else ""


def _stuck(groups: Sequence[Repeats]) -> list[str]:
    runs = sum(len(g.results) for g in groups)
    stuck = runs - sum(g.left for g in groups)
    return [f"{stuck} of {runs} runs never left the plateau."] if stuck else []


def _reach(values: Sequence[float]) -> str:
    kept = [v for v in values if not math.isnan(v)]
    # Three digits: what misses −0.9 by less than a hundredth must not look like it.
    ends = dict.fromkeys(fixed(x) for x in (min(kept), max(kept))) if kept else {"–": None}
    return " to ".join(ends)


def _as_well(results: Results, dataset: str) -> str:
    """What the losses that know nothing of F_β do by the same measure."""
    said = []
    for g in filter(None, (results.find(dataset, loss) for loss in ("balanced-bce", "balanced-mae", "bce"))):
        medians = [r for cell in correlation.table(g) if not math.isnan(r := median(cell))]
        if medians:
            hits = sum(r <= LINEAR for r in medians)
            said.append(f"{loss_name(g.run)} {hits} of {len(medians)} scores ({_reach(medians)})")
    return f"By the same measure losses that do not know β: {series(said)}." if said else ""
