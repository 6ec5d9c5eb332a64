"""The paper's claims, each with a criterion in numbers: the verdict follows from the result files."""

from __future__ import annotations

from fbeta.paper.results import Results
from fbeta.paper.verdicts import correlated, trained
from fbeta.paper.verdicts.claim import Claim as Claim


def claims(results: Results) -> list[Claim]:
    """Judge every claim of the paper's section 5.

    >>> [claim.verdict for claim in claims(Results(()))] == ["not measured yet"] * 6
    True
    """
    return [
        correlated.surrogate(results),
        correlated.soft(results),
        trained.bce_fails(results),
        trained.faster_and_best(results),
        trained.accuracy(results),
        trained.large_beta(results),
    ]
