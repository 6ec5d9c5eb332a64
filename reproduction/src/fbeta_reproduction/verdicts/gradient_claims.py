"""Claim 11: whether the surrogate's gradient points where that of F_β does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fbeta.numerals import NONE, fixed
from fbeta_reproduction.naming import LOSS_NAMES, beta_name, median, spread
from fbeta_reproduction.protocol import BETAS, PAPER
from fbeta_reproduction.results.folder import Results
from fbeta_reproduction.results.gradients import GradientPaths
from fbeta_reproduction.verdicts.claim import Claim, Finding, Verdict, unmeasured

#: Two gradients are 'approximately the same' from this cosine on: 26 degrees.
ALIGNED = 0.9
#: A β is judged by at least so many points off the plateau, and a data set by at least half of the β.
LEAST = 3
#: The loss whose networks are hardly ever on the plateau.
LEARNS = "balanced-bce"


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
        "the surrogate’s own training that are off the plateau: on it all outputs are alike, and whatever moves them "
        f"together has the same direction. Holds if its median is at least {fixed(ALIGNED, 1)} for every β that has "
        f"{LEAST} such points; in part if for half of them; not measured if fewer than half of the β have so many.",
        tuple(found.get(d) or unmeasured(d) for d in datasets),
    )


def _aligned(paths: GradientPaths) -> Finding:
    own = {beta: paths.cosines(f"surrogate-b{beta:g}", beta, learning=True) for beta in BETAS}
    judged = [values for values in own.values() if len(values) >= LEAST]
    hits = sum(median(values) >= ALIGNED for values in judged)
    verdict: Verdict = (
        "holds" if hits == len(judged) else "holds in part" if 2 * hits >= len(judged) else "does not hold"
    )
    others = []
    for loss in ("balanced-bce", "balanced-mae", "bce"):
        theirs = {b: paths.cosines(loss, b, along=f"surrogate-b{b:g}", learning=True) for b in BETAS}
        pairs = [pair for beta in BETAS for pair in zip(own[beta], theirs[beta], strict=False)]
        others.append(
            f"{LOSS_NAMES[loss]} {', '.join(_middle(values) for values in theirs.values())} (the surrogate is "
            f"closer at {sum(a > b for a, b in pairs)} of {len(pairs)})"
        )
    everywhere = {beta: paths.cosines(f"surrogate-b{beta:g}", beta) for beta in BETAS}
    elsewhere = {b: paths.cosines(f"surrogate-b{b:g}", b, along=LEARNS, learning=True) for b in BETAS}
    rows = [f"β = {beta_name(beta)}: {spread(values, 2)} ({len(values)} points)" for beta, values in own.items()]
    return Finding(
        paths.dataset,
        verdict if 2 * len(judged) >= len(BETAS) else "not measured yet",
        (
            f"Cosine off the plateau, median and range over {paths.repeats} repeats and the epochs {paths.when}: "
            f"{'; '.join(rows)}; at least {fixed(ALIGNED, 1)} for {hits} of {len(judged)}.",
            f"With the points on the plateau: {_middles(everywhere)}. At networks that learn, on the way of "
            f"{LOSS_NAMES[LEARNS]}: {_middles(elsewhere)}.",
            f"At the same points off the plateau losses that do not know β, for β = ½, 1, 2, 3: {'; '.join(others)}.",
            *_gaps(paths),
        ),
    )


def _middle(values: Sequence[float]) -> str:
    return fixed(median(values), 2) if values else NONE


def _middles(cosines: Mapping[float, Sequence[float]]) -> str:
    return ", ".join(f"{_middle(values)} for β = {beta_name(beta)}" for beta, values in cosines.items())


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
