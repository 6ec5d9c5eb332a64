"""Claims 3 to 6: which losses train, how fast, and what they reach."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from scipy import stats

from fbeta.numerals import fixed, series
from fbeta_reproduction.naming import beta_name, full_name, loss_name, median, score_name, spread
from fbeta_reproduction.protocol import PAPER
from fbeta_reproduction.results.folder import Repeats, Results
from fbeta_reproduction.results.run_result import RunResult
from fbeta_reproduction.verdicts.claim import Claim, Finding, Verdict, judge, unmeasured

#: Runs of one kind take longer than those of another: in this share of all pairs; 'in part' from the second number.
LONGER = (0.75, 0.6)
#: Accuracy this close to that of calling everything negative is 'the base rate'.
BASE = 0.01

_WORD = {1.0: "yes", 0.5: "in part", 0.0: "no"}
_HIGH, _LOW = (f"{100 * x:.0f} %" for x in LONGER)


def bce_fails(results: Results) -> Claim:
    """Claim 3: the class-balanced BCE improves nothing on Fashion-MNIST.

    >>> bce_fails(Results(())).verdict
    'not measured yet'
    """
    dataset = "fashion-mnist"
    g = results.find(dataset, "balanced-bce")
    found = unmeasured(dataset)
    if g is not None:
        failed = len(g.results) - g.learned
        verdict: Verdict = "holds" if failed == len(g.results) else "holds in part" if failed else "does not hold"
        others = [o for o in results.of(dataset) if "bce" in o.run.loss and o is not g]
        fine = [o for o in others if o.learned == len(o.results)]
        found = judge(
            dataset,
            [g],
            verdict,
            f"Balanced BCE learned nothing in {failed} of {len(g.results)} runs; validation F₁ at ½ "
            f"{spread(g.scores('val'))}, where calling everything positive gives {fixed(g.first.trivial('val'))}.",
            *(f"{_quoted(o)} learned nothing in {_failures(o)}." for o in others if o not in fine),
            f"Every run of these learned: {series([_quoted(o) for o in fine])}." if fine else "",
        )
    return Claim(
        3,
        "BCE fails on Fashion-MNIST",
        "“the models trained by the BCE loss function failed to achieve any improvement in performance, maybe "
        "because the class-balanced BCE loss requires a larger number of epochs greater than 120” (section 5.2)",
        "A run learned nothing if its training F₁ (mean of the last five epochs) is less than 0.05 above "
        "that of calling everything positive, or its loss is NaN. Holds if that is so for every run of the "
        "class-balanced BCE; in part if for some.",
        (found,),
        ("figure-2",),
    )


def _quoted(g: Repeats) -> str:
    return f"“{full_name(g.run)}”"


def _failures(g: Repeats) -> str:
    text = f"{len(g.results) - g.learned} of {len(g.results)} runs"
    return text + (f", NaN loss in {len(g.nan_epochs)}" if g.nan_epochs else "")


def faster_and_best(results: Results) -> Claim:
    """Claim 4: on CIFAR-10 the surrogate starts later, then converges faster, to the best validation F₁.

    >>> faster_and_best(Results(())).verdict
    'not measured yet'
    """
    ours = results.family("cifar10", "surrogate")
    others = [g for loss in ("soft", "balanced-bce", "balanced-mae") for g in results.family("cifar10", loss)]
    return Claim(
        4,
        "On CIFAR-10 the surrogate starts later, then converges faster, to the best validation F₁",
        "“converge relatively fast than the other loss functions, even if they require more epochs to find "
        "good initial weights”, “the surrogate F_β loss achieves the best F₁ score on validation set” "
        "(Figure 5)",
        f"(a) In at least {_HIGH} of all pairs of a surrogate run and another loss’s run the surrogate leaves "
        f"the plateau later. (b) In at least {_HIGH} of pairs (without macro soft F₁, as in the paper) the "
        "other needs more epochs from there to 90 % of its final training F₁; a run that never learns needs "
        "∞, one that leaves with the last epochs has no time to converge and counts as fast. (c) The highest "
        "median of the final validation F₁ is a surrogate’s. (a) and (b) are met in part "
        f"from {_LOW}. The claim holds if all three are met, in part if one is at least in part.",
        (_raced(ours, others) if ours and others else unmeasured("cifar10"),),
        ("figure-5",),
    )


def _raced(ours: Sequence[Repeats], others: Sequence[Repeats]) -> Finding:
    slow = [g for g in others if (g.run.loss, g.run.beta) != ("soft", 1.0)] or others
    late, late_text = _longer(ours, others, lambda r: r.left or math.inf)
    faster, fast_text = _longer(slow, ours, _after_leaving)
    best = max((*ours, *others), key=lambda g: median(g.scores("val")))
    rival = max(others if best in ours else ours, key=lambda g: median(g.scores("val")))
    points = [late, faster, float(best in ours)]
    verdict: Verdict = "holds" if min(points) == 1 else "holds in part" if max(points) else "does not hold"
    stuck = [(g, len(g.results) - g.left) for g in ours]
    stay = [f"{n} of {len(g.results)} with β = {beta_name(g.run.beta or 1.0)}" for g, n in stuck if n]
    return judge(
        "cifar10",
        [*ours, *others],
        verdict,
        f"(a) More epochs to start, {_WORD[late]}: the surrogate leaves the plateau later {late_text}.",
        f"(b) Then faster, {_WORD[faster]}: another loss needs more epochs from there {fast_text}.",
        f"(c) Best validation F₁ at ½, {_WORD[points[2]]}: {loss_name(best.run)} with {spread(best.scores('val'))}; "
        f"the best {'other' if best in ours else 'surrogate'} is {loss_name(rival.run)} with "
        f"{spread(rival.scores('val'))}, by repeat {_difference(best, rival)}.",
        f"Surrogate runs that never left the plateau: {series(stay)}." if stay else "",
    )


def _after_leaving(r: RunResult) -> float:
    return r.converged - (r.left or 0) if math.isfinite(r.converged) else math.inf


def _longer(slow: Sequence[Repeats], fast: Sequence[Repeats], time: Callable[[RunResult], float]) -> tuple[float, str]:
    """Whether runs of `slow` take longer than runs of `fast` (1, ½ or 0), and the numbers."""
    a, b = ([time(r) for g in groups for r in g.results] for groups in (slow, fast))
    share = superiority(a, b)
    medians = " against ".join(fixed(median(times), 0) for times in (a, b))
    text = f"in {fixed(100 * share, 0)} % of pairs (medians {medians} epochs)"
    return (1.0 if share >= LONGER[0] else 0.5 if share >= LONGER[1] else 0.0), text


def superiority(x: Sequence[float], y: Sequence[float]) -> float:
    r"""Probability that one of `x` is larger than one of `y`, equal ones counting half.

    .. math:: \Pr(X > Y) + \tfrac12 \Pr(X = Y)

    Infinity is a time whose end was not seen: two of them are equal.

    >>> superiority([3, 4], [1, 2]), superiority([math.inf], [math.inf])
    (1.0, 0.5)

    Reference: Mann and Whitney (1947)
    """
    if not x or not y:
        return math.nan
    wins = stats.mannwhitneyu(x, y, method="asymptotic").statistic
    return float(wins / (len(x) * len(y)))


def _difference(a: Repeats, b: Repeats) -> str:
    """How much more a reaches than b under the same split and initial weights."""
    pairs = dict(zip((r.run.repeat for r in b.results), b.scores("val"), strict=True))
    differences = [
        x - pairs[r.run.repeat] for r, x in zip(a.results, a.scores("val"), strict=True) if r.run.repeat in pairs
    ]
    return f"{spread(differences)} less" if differences else "not comparable"


def accuracy(results: Results) -> Claim:
    """Claim 5: on CIFAR-10 macro soft F_β has the best test accuracy, and that is the base rate.

    >>> accuracy(Results(())).verdict
    'not measured yet'
    """
    # A broken network predicts nothing, and would be as accurate as the base rate.
    groups = [g for g in results.of("cifar10", "faithful") if any(r.alive[-1] for r in g.results)]
    soft = [g for g in groups if g.run.loss == "soft"]
    return Claim(
        5,
        "On CIFAR-10 macro soft F_β has the best test accuracy, which is the base rate 0.9",
        "“the macro soft F_β loss achieves the best accuracy on test set, but the accuracy of 0.9 is the "
        "base accuracy value” (Figure 5c)",
        "(a) The highest median of the final test accuracy among the paper’s ten losses is a macro soft one’s; "
        f"(b) that of the best macro soft loss is within {BASE:g} of calling everything negative. Holds if "
        "both, in part if one. Losses that are NaN in every run are left out.",
        (_accurate(soft, groups) if soft and len(groups) > len(soft) else unmeasured("cifar10"),),
    )


def _accurate(soft: Sequence[Repeats], groups: Sequence[Repeats]) -> Finding:
    def finals(g: Repeats) -> list[float]:
        return g.finals(RunResult.accuracy)

    best, top = (max(some, key=lambda g: median(finals(g))) for some in (groups, soft))
    base = top.first.base_rate()
    off = median(finals(top)) - base
    wins, at_base = best in soft, abs(off) <= BASE
    rank = sorted(groups, key=lambda g: -median(g.scores("val"))).index(best) + 1
    return judge(
        "cifar10",
        groups,
        "holds" if wins and at_base else "holds in part" if wins or at_base else "does not hold",
        f"(a) Best accuracy, {'yes' if wins else 'no'}: {loss_name(best.run)} with {spread(finals(best))}"
        + (
            "."
            if wins
            else f"; the best macro soft loss is {score_name(top.run.beta or 1.0)} with {spread(finals(top))}."
        ),
        f"(b) At the base rate {fixed(base)}, {'yes' if at_base else 'no'}: {fixed(abs(off))} "
        f"{'above' if off >= 0 else 'below'} it, with {spread(top.finals(lambda r: r.share('test')))} of the "
        "test rows predicted positive.",
        f"The loss with the best accuracy is number {rank} of {len(groups)} by validation F₁.",
    )


def large_beta(results: Results) -> Claim:
    """Claim 6: the surrogate needs more epochs with β = 2 and 3.

    >>> large_beta(Results(())).verdict
    'not measured yet'
    """
    return Claim(
        6,
        "A large β needs more epochs",
        "“the surrogate F_β loss with a large β value, i.e., β=3 or β=2, requires a relatively larger number "
        "of epoch for convergence, which is partly due to the relatively small increment rate of the loss "
        "function” (section 5.2, on Fashion-MNIST; Figure 1b)",
        "Epochs to 90 % of the final training F₁, ∞ for a run that learns nothing. Holds if a run with β = 2 "
        f"or 3 takes longer than one with β = ½ or 1 in at least {_HIGH} of all pairs, equal times counting "
        f"half; in part from {_LOW}.",
        tuple(_slowed(results, d) for d in PAPER),
        ("figure-1",),
    )


def _slowed(results: Results, dataset: str) -> Finding:
    groups = {float(g.run.beta or 1.0): g for g in results.family(dataset, "surrogate")}
    large, small = ([groups[b] for b in bs if b in groups] for bs in ((2.0, 3.0), (0.5, 1.0)))
    if not (large and small):
        return unmeasured(dataset)
    point, text = _longer(large, small, lambda r: r.converged)
    verdicts: dict[float, Verdict] = {1.0: "holds", 0.5: "holds in part", 0.0: "does not hold"}
    times = [f"β = {beta_name(b)}: {spread([r.converged for r in g.results], 0)}" for b, g in groups.items()]
    return judge(
        dataset,
        [*large, *small],
        verdicts[point],
        f"β = 2 and 3 take longer than ½ and 1 {text}.",
        f"Epochs to converge, ∞ where nothing was learned: {'; '.join(times)}.",
    )
