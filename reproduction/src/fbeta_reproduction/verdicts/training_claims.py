"""Claims 3 to 5 and 9: which losses train, and how fast."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from scipy import stats

from fbeta.numerals import fixed, series
from fbeta_reproduction.naming import beta_name, full_name, loss_name, median, spread
from fbeta_reproduction.protocol import PAPER
from fbeta_reproduction.results.folder import Repeats, Results
from fbeta_reproduction.results.run_result import RunResult
from fbeta_reproduction.verdicts.claim import Claim, Finding, Verdict, judge, unmeasured

#: Runs of one kind take longer than those of another: in this share of all pairs; 'in part' from the second number.
LONGER = (0.75, 0.6)
#: A training F₁ half way between calling everything positive (0.18) and what cross entropy reaches.
LEVEL = 0.5

_VERDICTS: dict[float, Verdict] = {1.0: "holds", 0.5: "holds in part", 0.0: "does not hold"}
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
        clean = results.of(dataset, "faithful", "beside", "reading", "precision")
        others = [o for o in clean if "bce" in o.run.loss and o is not g]
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


def later(results: Results) -> Claim:
    """Claim 4: on CIFAR-10 the surrogate needs more epochs to start.

    >>> later(Results(())).verdict
    'not measured yet'
    """

    def finding(ours: Sequence[Repeats], others: Sequence[Repeats]) -> Finding:
        point, text = _longer(ours, others, lambda r: r.left or math.inf)
        stuck = [(g, len(g.results) - g.left) for g in ours]
        stay = [f"{n} of {len(g.results)} with β = {beta_name(g.run.beta or 1.0)}" for g, n in stuck if n]
        return judge(
            "cifar10",
            [*ours, *others],
            _VERDICTS[point],
            f"The surrogate leaves the plateau later {text}.",
            f"Surrogate runs that never left the plateau: {series(stay)}." if stay else "",
        )

    return Claim(
        4,
        "On CIFAR-10 the surrogate needs more epochs to start",
        "“even if they require more epochs to find good initial weights” (Figure 5)",
        f"Holds if in at least {_HIGH} of all pairs of a surrogate run and another loss’s run the surrogate leaves the "
        f"plateau later; in part from {_LOW}.",
        (_opposed(results, finding),),
        ("figure-5",),
    )


def faster(results: Results) -> Claim:
    """Claim 5: on CIFAR-10 the surrogate, once started, converges faster.

    >>> faster(Results(())).verdict
    'not measured yet'
    """

    def finding(ours: Sequence[Repeats], others: Sequence[Repeats]) -> Finding:
        slow = [g for g in others if (g.run.loss, g.run.beta) != ("soft", 1.0)] or others
        own, own_text = _longer(slow, ours, lambda r: _after_leaving(r, r.converged))
        same, same_text = _longer(slow, ours, lambda r: _after_leaving(r, r.reached(LEVEL)))
        groups = (*ours, *others)
        there = [f"{loss_name(g.run)} {n} of {len(g.results)}" for g in groups if (n := _arrived(g))]
        verdict: Verdict = "holds" if min(own, same) == 1 else "holds in part" if max(own, same) else "does not hold"
        return judge(
            "cifar10",
            groups,
            verdict,
            f"To 90 % of its own final F₁ another loss needs more epochs {own_text}.",
            f"To a training F₁ of {LEVEL:g}, the same for all, another loss needs more epochs {same_text}.",
            f"Runs that reach {LEVEL:g}: {series(there)}; no other." if there else f"No run reaches {LEVEL:g}.",
        )

    return Claim(
        5,
        "On CIFAR-10 the surrogate then converges faster",
        "“converge relatively fast than the other loss functions”, “other loss functions except for the macro soft "
        "F₁ loss converge relatively slowly with respect to the F₁ score” (Figure 5)",
        "Epochs from leaving the plateau (a) to 90 % of the run’s own final training F₁, which is soon reached by a "
        f"run that ends low, and (b) to a training F₁ of {LEVEL:g}, which is the same for all and leaves least time to "
        "runs that start last. A run that never gets there needs ∞; in (a) one that leaves with the last epochs has no "
        f"time to converge and counts as fast. Each is met if in at least {_HIGH} of pairs (without macro soft F₁, as "
        f"in the paper) the other loss needs more, in part from {_LOW}. Holds if both are met, in part if one is at "
        "least in part.",
        (_opposed(results, finding),),
    )


def _opposed(results: Results, finding: Callable[[Sequence[Repeats], Sequence[Repeats]], Finding]) -> Finding:
    """The surrogate's runs on CIFAR-10 against those of the paper's other losses, if both are there."""
    ours = results.family("cifar10", "surrogate")
    others = [g for loss in ("soft", "balanced-bce", "balanced-mae") for g in results.family("cifar10", loss)]
    return finding(ours, others) if ours and others else unmeasured("cifar10")


def _after_leaving(r: RunResult, epoch: float) -> float:
    return epoch - (r.left or 0) if math.isfinite(epoch) and r.left else math.inf


def _arrived(g: Repeats) -> int:
    return sum(math.isfinite(r.reached(LEVEL)) for r in g.results)


def _longer(slow: Sequence[Repeats], fast: Sequence[Repeats], time: Callable[[RunResult], float]) -> tuple[float, str]:
    """Whether runs of `slow` take longer than runs of `fast` (1, ½ or 0), and the numbers."""
    a, b = ([time(r) for g in groups for r in g.results] for groups in (slow, fast))
    share = superiority(a, b)
    medians = " against ".join(fixed(median(times), 0) for times in (a, b))
    text = f"in {fixed(100 * share, 1)} % of pairs, {_beside(share)} (medians {medians} epochs)"
    return (1.0 if share >= LONGER[0] else 0.5 if share >= LONGER[1] else 0.0), text


def _beside(share: float) -> str:
    """How far a share is from what is asked.

    >>> _beside(0.98), _beside(0.36)
    ('23.0 points more than asked', '39.0 points less than asked')
    """
    off = share - LONGER[0]
    return f"{fixed(100 * abs(off), 1)} points {'more' if off >= 0 else 'less'} than asked"


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


def large_beta(results: Results) -> Claim:
    """Claim 9: the surrogate needs more epochs with β = 2 and 3.

    >>> large_beta(Results(())).verdict
    'not measured yet'
    """
    return Claim(
        9,
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
    times = [f"β = {beta_name(b)}: {spread([r.converged for r in g.results], 0)}" for b, g in groups.items()]
    return judge(
        dataset,
        [*large, *small],
        _VERDICTS[point],
        f"β = 2 and 3 take longer than ½ and 1 {text}.",
        f"Epochs to converge, ∞ where nothing was learned: {'; '.join(times)}.",
    )
