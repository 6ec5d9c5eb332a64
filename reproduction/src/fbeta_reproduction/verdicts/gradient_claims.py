"""Claim 11: whether the surrogate's gradient points where that of F_β does."""

from __future__ import annotations

from fbeta.numerals import fixed
from fbeta_reproduction.naming import LOSS_NAMES, beta_name, median, spread
from fbeta_reproduction.protocol import BETAS, PAPER
from fbeta_reproduction.results.folder import Results
from fbeta_reproduction.results.gradients import GradientPaths
from fbeta_reproduction.verdicts.claim import Claim, Finding, Verdict, unmeasured

#: Two gradients are 'approximately the same' from this cosine on: 26 degrees.
ALIGNED = 0.9


def gradient_paths(results: Results) -> Claim:
    """Claim 11: the gradient paths of the surrogate approximate those of F_β.

    >>> gradient_paths(Results(())).verdict
    'not measured yet'
    """
    found = {paths.dataset: _aligned(paths) for paths in results.gradients}
    datasets = (*PAPER, *(d for d in found if d not in PAPER))
    return Claim(
        11,
        "The gradient paths of the surrogate loss approximate those of F_β",
        "“the gradient paths of the proposed loss function are approximately same to the gradient paths of the F_β "
        "score” (contribution 3)",
        "The cosine between the gradients of the surrogate and of macro soft F_β with the same β (the smoothed "
        "proportions stand for the true ones, as in the paper), over all parameters of the network, at points along "
        f"the surrogate’s own training. Holds if its median is at least {fixed(ALIGNED, 1)} for all four β; in part if "
        "for half of them.",
        tuple(found.get(d) or unmeasured(d) for d in datasets),
    )


def _aligned(paths: GradientPaths) -> Finding:
    own = {beta: paths.cosines(f"surrogate-b{beta:g}", beta) for beta in BETAS}
    hits = sum(median(values) >= ALIGNED for values in own.values())
    verdict: Verdict = "holds" if hits == len(BETAS) else "holds in part" if 2 * hits >= len(BETAS) else "does not hold"
    others = []
    for loss in ("balanced-bce", "balanced-mae", "bce"):
        theirs = {beta: paths.cosines(loss, beta, along=f"surrogate-b{beta:g}") for beta in BETAS}
        pairs = [pair for beta in BETAS for pair in zip(own[beta], theirs[beta], strict=False)]
        others.append(
            f"{LOSS_NAMES[loss]} {', '.join(fixed(median(values), 2) for values in theirs.values())} (the surrogate is "
            f"closer at {sum(a > b for a, b in pairs)} of {len(pairs)})"
        )
    rows = [f"β = {beta_name(beta)}: {spread(values, 2)}" for beta, values in own.items()]
    return Finding(
        paths.dataset,
        verdict,
        (
            f"Cosine, median and range over {paths.repeats} repeats and the epochs {paths.when}: "
            f"{'; '.join(rows)}; at least {fixed(ALIGNED, 1)} for {hits} of {len(BETAS)}.",
            f"At the same points losses that do not know β, for β = ½, 1, 2, 3: {'; '.join(others)}.",
            *_gaps(paths),
        ),
    )


def _gaps(paths: GradientPaths) -> list[str]:
    """What Jensen's inequality leaves of the approximation in eq. surrogate_cbloss."""
    place, way = BETAS.index(1.0), paths.along("surrogate-b1")
    missed, alarmed = ([p["missed"] for p in way], [p["alarmed"][place] for p in way])
    over = sum(m > a for m, a in zip(missed, alarmed, strict=True))
    return [
        f"Jensen’s gap of the approximation, β = 1: {spread(missed)} on positives, which makes the loss larger, and "
        f"{spread(alarmed)} on negatives, which makes it smaller: the loss lies above its approximation at {over} of "
        f"{len(way)} points; in theory it is a bound of neither kind."
    ]
