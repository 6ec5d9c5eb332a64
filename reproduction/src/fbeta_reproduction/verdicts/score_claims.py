"""Claims 6 to 8 and 10: what the losses reach, and whether β decides which score it is."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from fbeta.numerals import fixed, series
from fbeta_reproduction.naming import beta_name, loss_name, median, score_name, spread
from fbeta_reproduction.protocol import BETAS, PAPER
from fbeta_reproduction.results import correlation
from fbeta_reproduction.results.folder import Repeats, Results
from fbeta_reproduction.results.run_result import RunResult, Split
from fbeta_reproduction.verdicts.claim import Claim, Finding, judge, unmeasured

#: Accuracy this close to that of calling everything negative is 'the base rate'.
BASE = 0.01

Finals = Callable[[Repeats], Sequence[float]]


def best_f1(results: Results) -> Claim:
    """Claim 6: on CIFAR-10 the surrogate reaches the best validation F₁.

    >>> best_f1(Results(())).verdict
    'not measured yet'
    """
    return Claim(
        6,
        "On CIFAR-10 the surrogate reaches the best validation F₁",
        "“the surrogate F_β loss achieves the best F₁ score on validation set” (Figure 5b)",
        "Holds if the highest median of the final validation F₁ at ½ among the paper’s ten losses is a surrogate’s.",
        (_first(_alive(results), "surrogate", "Best validation F₁ at ½", lambda g: g.scores("val")),),
    )


def best_accuracy(results: Results) -> Claim:
    """Claim 7: on CIFAR-10 macro soft F_β has the best test accuracy.

    >>> best_accuracy(Results(())).verdict
    'not measured yet'
    """
    groups = _alive(results)
    return Claim(
        7,
        "On CIFAR-10 macro soft F_β has the best test accuracy",
        "“the macro soft F_β loss achieves the best accuracy on test set” (Figure 5c)",
        "Holds if the highest median of the final test accuracy at ½ among the paper’s ten losses is a macro soft "
        "one’s. Losses that are NaN in every run are left out.",
        (_first(groups, "soft", "Best test accuracy", _accuracies),),
    )


def base_rate(results: Results) -> Claim:
    """Claim 8: on CIFAR-10 the accuracy of macro soft F_β is the base rate.

    >>> base_rate(Results(())).verdict
    'not measured yet'
    """
    soft = [g for g in _alive(results) if g.run.loss == "soft"]
    found = unmeasured("cifar10")
    if soft:
        top = max(soft, key=lambda g: median(_accuracies(g)))
        base = top.first.base_rate()
        each = [f"{score_name(g.run.beta or 1.0)} {fixed(median(_accuracies(g)) - base)}" for g in soft]
        off = median(_accuracies(top)) - base
        found = judge(
            "cifar10",
            soft,
            "holds" if abs(off) <= BASE else "does not hold",
            f"The best of them, macro soft {score_name(top.run.beta or 1.0)}, has {spread(_accuracies(top))}, "
            f"{fixed(abs(off))} {'above' if off >= 0 else 'below'} the base rate {fixed(base)}, with "
            f"{spread(top.finals(lambda r: r.share('test')))} of the test rows predicted positive.",
            f"Accuracy above the base rate by β: {series(each)}.",
            _weighted(results, base),
        )
    return Claim(
        8,
        "On CIFAR-10 the accuracy of macro soft F_β is the base rate 0.9",
        "“but the accuracy of 0.9 is the base accuracy value for the imbalanced data set” (Figure 5c)",
        f"Holds if the highest median of the macro soft losses is within {BASE:g} of calling everything negative.",
        (found,),
    )


def _weighted(results: Results, base: float) -> str:
    """The same of macro soft with class weights inside, which is what the text says to the letter."""
    groups = results.family("cifar10", "soft-weighted")
    each = [f"{score_name(g.run.beta or 1.0)} {fixed(median(_accuracies(g)) - base)}" for g in groups]
    return f"The same with class weights inside: {series(each)}." if each else ""


def _alive(results: Results) -> list[Repeats]:
    """The paper's losses on CIFAR-10; a broken network predicts nothing, and would be as accurate as the base rate."""
    return [g for g in results.of("cifar10", "faithful") if any(r.alive[-1] for r in g.results)]


def _accuracies(g: Repeats) -> list[float]:
    return g.finals(RunResult.accuracy)


def _first(groups: Sequence[Repeats], loss: str, what: str, finals: Finals) -> Finding:
    """Whether a loss is first, and how far the next or the best other is from it."""
    own, others = ([g for g in groups if (g.run.loss == loss) is which] for which in (True, False))
    if not (own and others):
        return unmeasured("cifar10")
    ours, theirs = (max(some, key=lambda g: median(finals(g))) for some in (own, others))
    wins = median(finals(ours)) > median(finals(theirs))
    best, rival = (ours, theirs) if wins else (theirs, ours)
    return judge(
        "cifar10",
        groups,
        "holds" if wins else "does not hold",
        f"{what}: {loss_name(best.run)} with {spread(finals(best))}; "
        f"the best {'other' if wins else 'of those named'} is {loss_name(rival.run)} with "
        f"{spread(finals(rival))}, by repeat {_difference(best, rival, finals)}.",
    )


def _difference(a: Repeats, b: Repeats, finals: Finals) -> str:
    """How much more a reaches than b under the same split and initial weights."""
    pairs = dict(zip((r.run.repeat for r in b.results), finals(b), strict=True))
    differences = [x - pairs[r.run.repeat] for r, x in zip(a.results, finals(a), strict=True) if r.run.repeat in pairs]
    return f"{spread(differences)} less" if differences else "not comparable"


def control(results: Results) -> Claim:
    """Claim 10: the surrogate's β decides which score it is best for.

    >>> control(Results(())).verdict
    'not measured yet'
    """
    return Claim(
        10,
        "β and p control the F_β score",
        "“the additional parameters β and p for the surrogate loss possess the same roles as in the F_β score, and "
        "they can be utilized to control the F_β score of the trained neural network models” (section 4)",
        "(a) For each of the four scores the surrogate with the β of the score has the highest median final validation "
        "score at ½ among the four β. (b) Each surrogate’s value follows the score with its own β most closely, by the "
        "median of Pearson’s r on the training split. Holds if both are so for all four β, in part if one is for at "
        "least half of them. p is that of the data throughout: the loss knows β and p only as β²p/(1−p), so that "
        "another β does what another p would.",
        tuple(_controlled(results, d) for d in PAPER),
    )


def _controlled(results: Results, dataset: str) -> Finding:
    groups = {float(g.run.beta or 1.0): g for g in results.family(dataset, "surrogate")}
    if len(groups) < len(BETAS):
        return unmeasured(dataset)
    best, tuned = ({beta: _best(groups, beta, tuned=how) for beta in BETAS} for how in (False, True))
    rows = {beta: [median(cell) for cell in correlation.table(g)] for beta, g in groups.items()}
    follows = {beta: BETAS[row.index(min(row))] for beta, row in rows.items() if not any(map(math.isnan, row))}
    hits = [sum(found == beta for beta, found in pairs.items()) for pairs in (best, follows)]
    lost = [median(groups[best[b]].scores("val", b)) - median(groups[b].scores("val", b)) for b in BETAS]
    shares = [f"β = {beta_name(b)}: {spread(g.finals(lambda r: r.share('test')))}" for b, g in groups.items()]
    return judge(
        dataset,
        list(groups.values()),
        "holds" if min(hits) == len(BETAS) else "holds in part" if 2 * max(hits) >= len(BETAS) else "does not hold",
        f"(a) The best β of the surrogate: {_pairs(best)}; the β of the score is best for {hits[0]} of {len(BETAS)}. "
        f"It falls short of the best one by {series([fixed(x) for x in lost])}.",
        f"At the cut tuned on validation rows, on test rows: {_pairs(tuned)}.",
        f"(b) The score that its value follows best: "
        f"{series([f'{score_name(f)} for β = {beta_name(b)}' for b, f in follows.items()])}; its own for {hits[1]} of "
        f"{len(follows)}.",
        f"Share of test rows predicted positive at ½: {'; '.join(shares)}; one in ten is.",
    )


def _best(groups: dict[float, Repeats], score: float, *, tuned: bool) -> float:
    """The β whose runs are best by the F of another: on validation rows at ½, or on test rows at the tuned cut."""
    split: Split = "test" if tuned else "val"
    return max(groups, key=lambda beta: median(groups[beta].scores(split, score, tuned=tuned)))


def _pairs(best: dict[float, float]) -> str:
    return series([f"{beta_name(found)} for {score_name(beta)}" for beta, found in best.items()])
