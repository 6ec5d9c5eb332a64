"""How closely a training loss follows each score: one number for each run, loss and β."""

from __future__ import annotations

from fbeta.paper.protocol import BETAS
from fbeta.paper.results import Group, Result
from fbeta.paper.statistics import CORRELATIONS

#: A run that was off the plateau for fewer epochs says nothing about them.
ENOUGH = 10


def of_run(r: Result, beta: float, name: str = "Pearson’s r") -> float:
    """Correlation over epochs of the run's loss with F_β, both on the training split; NaN if one is constant."""
    return CORRELATIONS[name](r.loss, r.score("train", beta))


def table(g: Group, name: str = "Pearson’s r") -> list[list[float]]:
    """The correlation with each of the four scores, for each repeat that left the plateau.

    A run that never left has nothing but rounding to correlate.
    """
    return [[of_run(r, beta, name) for r in g.results if r.left is not None] for beta in BETAS]


def off_plateau(g: Group) -> list[list[float]]:
    """Pearson's r over the epochs off the plateau alone: with those on it, two clusters make any r large."""
    rows = [r for r in g.results if (~r.on_plateau).sum() >= ENOUGH]
    pearson = CORRELATIONS["Pearson’s r"]
    return [
        [pearson(r.loss[~r.on_plateau], r.score("train", beta)[~r.on_plateau]) for r in rows]
        for beta in BETAS
    ]
