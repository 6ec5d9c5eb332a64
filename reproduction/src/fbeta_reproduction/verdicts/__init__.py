"""The paper's claims, each with a criterion in numbers: the verdict follows from the result files."""

from __future__ import annotations

from fbeta_reproduction.results.folder import Results
from fbeta_reproduction.verdicts import correlation_claims, training_claims
from fbeta_reproduction.verdicts.claim import Claim as Claim


def claims(results: Results) -> list[Claim]:
    """Judge every claim of the paper's section 5.

    >>> [claim.verdict for claim in claims(Results(()))] == ["not measured yet"] * 6
    True
    """
    return [
        correlation_claims.surrogate(results),
        correlation_claims.soft(results),
        training_claims.bce_fails(results),
        training_claims.faster_and_best(results),
        training_claims.accuracy(results),
        training_claims.large_beta(results),
    ]
