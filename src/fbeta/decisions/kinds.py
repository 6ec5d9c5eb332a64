"""What scores are: probabilities, logits, or any numbers that rise with the chance of a positive."""

from __future__ import annotations

import warnings

from fbeta.spelling import did_you_mean

KINDS = ("probability", "logit", "score")


def read_kind(kind: str | None, low: float, high: float, *, matters: bool, stacklevel: int = 3) -> str:
    """The kind that was said, checked; or the one assumed, which is said aloud where the answer `matters`.

    Scores from `low` to `high` inside [0, 1] are assumed to be probabilities, others logits.

    >>> read_kind("logit", 0.2, 0.7, matters=True), read_kind(None, 0.2, 0.7, matters=False)
    ('logit', 'probability')
    """
    inside = low >= 0 and high <= 1
    if kind is None:
        if matters:
            assumed, why = ("probabilities", "all") if inside else ("logits", "not all")
            warnings.warn(
                f"Nobody said what the scores are: they were taken for {assumed}, because {why} of them lie in [0, 1]. "
                "Say kind='probability', 'logit' or 'score'.",
                UserWarning,
                stacklevel=stacklevel,
            )
        return "probability" if inside else "logit"
    if kind not in KINDS:
        hint = did_you_mean(str(kind), KINDS)
        raise ValueError(f"kind must be one of {', '.join(KINDS)}; got {kind!r}.{hint}")
    if kind == "probability" and not inside:
        raise ValueError(
            f"Scores from {low:g} to {high:g} are no probabilities; say kind='logit' or kind='score'."
        )
    return kind
