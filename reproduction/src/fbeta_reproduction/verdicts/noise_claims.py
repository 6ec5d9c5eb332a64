"""Claim 12: whether the q form bears label noise."""

from __future__ import annotations

from collections.abc import Iterator

from fbeta_reproduction.naming import loss_name, median, spread
from fbeta_reproduction.protocol import NOISE, PAPER, Q_NOISE
from fbeta_reproduction.protocol import noise as planned
from fbeta_reproduction.results.folder import Repeats, Results
from fbeta_reproduction.verdicts.claim import Claim, Finding, unmeasured


def label_noise(results: Results) -> Claim:
    """Claim 12: q makes the surrogate robust to label noise.

    >>> label_noise(Results(())).verdict
    'not measured yet'
    """
    return Claim(
        12,
        "The q form of the surrogate is robust to label noise",
        "“can be extended to a generalized cross entropy to cope with noisy labels”, q “controls the level of noise "
        "robustness” (section 6, without an experiment)",
        "Labels to train and validate on are turned around at random, test labels are true. Holds if with "
        f"q = {Q_NOISE:g} the final test F₁ at ½ is above that of the surrogate without q in every repeat at every "
        "share of noise; in part if the median difference is above 0 at one share or more.",
        tuple(_robust(results, d) for d in PAPER),
    )


def _robust(results: Results, dataset: str) -> Finding:
    found = list(differences(results, dataset, "surrogate"))
    if not found:
        return unmeasured(dataset)
    always = all(min(values) > 0 for _, values in found)
    partly = any(median(values) > 0 for _, values in found)
    said = [
        f"{100 * share:g} % noise: with q the surrogate is {spread(values)} above itself without. Off the plateau: "
        f"{_off(results, dataset, share, Q_NOISE)} runs with q, {_off(results, dataset, share, 0.0)} without."
        for share, values in found
    ]
    for other in ("gce", "balanced-gce", "bce", "balanced-bce"):
        rows = list(differences(results, dataset, other))
        if rows:
            name = loss_name(next(run for run in planned(dataset) if run.loss == other))
            cells = "; ".join(f"{spread(values)} at {100 * share:g} %" for share, values in rows)
            said.append(f"The q form minus {name}, by repeat: {cells}.")
    missing = [f"{100 * share:g} %" for share in NOISE if share not in dict(found)]
    told = f"preliminary: without {', '.join(missing)} noise" if missing else ""
    return Finding(dataset, "holds" if always else "holds in part" if partly else "does not hold", tuple(said), told)


def differences(results: Results, dataset: str, other: str) -> Iterator[tuple[float, list[float]]]:
    """How much more the q form reaches than another loss in each repeat, by share of noise."""
    for share in NOISE:
        ours = results.find(dataset, "surrogate", 1.0, q=Q_NOISE, noise=share)
        theirs = noisy(results, dataset, other, share)
        if ours is not None and theirs is not None:
            scores = dict(zip((r.run.repeat for r in theirs.results), theirs.scores("test"), strict=True))
            pairs = zip(ours.results, ours.scores("test"), strict=True)
            values = [x - scores[r.run.repeat] for r, x in pairs if r.run.repeat in scores]
            if values:
                yield share, values


def _off(results: Results, dataset: str, share: float, q: float) -> str:
    """How many runs of the surrogate are off the plateau in the end."""
    g = noisy(results, dataset, "surrogate", share, q)
    return "0 of 0" if g is None else f"{sum(not r.on_plateau[-1] for r in g.results)} of {len(g.results)}"


def noisy(results: Results, dataset: str, loss: str, share: float, q: float = 0.0) -> Repeats | None:
    """The runs of a loss of the preset `noise`, under a share of noise."""
    return results.find(
        dataset, loss, 1.0 if loss == "surrogate" else None, q=Q_NOISE if loss.endswith("gce") else q, noise=share
    )
