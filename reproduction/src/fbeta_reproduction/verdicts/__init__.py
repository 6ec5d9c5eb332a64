"""The paper's claims, each with a criterion in numbers: the verdict follows from the result files."""

from __future__ import annotations

from fbeta_reproduction.results.folder import Results
from fbeta_reproduction.verdicts import correlation_claims, gradient_claims, noise_claims, score_claims, training_claims
from fbeta_reproduction.verdicts.claim import Claim as Claim


def claims(results: Results) -> list[Claim]:
    """Judge every claim of the paper that runs can judge.

    >>> [claim.verdict for claim in claims(Results(()))] == ["not measured yet"] * 12
    True
    """
    return [
        correlation_claims.surrogate(results),
        correlation_claims.soft(results),
        training_claims.bce_fails(results),
        training_claims.later(results),
        training_claims.faster(results),
        score_claims.best_f1(results),
        score_claims.best_accuracy(results),
        score_claims.base_rate(results),
        training_claims.large_beta(results),
        score_claims.control(results),
        gradient_claims.gradient_paths(results),
        noise_claims.label_noise(results),
    ]
