"""What a comparison says in words; it is not allowed to oversell."""

from __future__ import annotations

from fbeta.metrics import FBeta, Metric
from fbeta.results import Candidate, Difference


def title(metric: Metric) -> str:
    """The name of a metric, short.

    >>> title(FBeta(2)), title(FBeta(0.5)), title(FBeta(1.5))
    ('F₂', 'F½', 'F(β=1.5)')
    """
    if not isinstance(metric, FBeta):
        return str(metric)
    short = {0.5: "½"} | {float(i): "₀₁₂₃₄₅₆₇₈₉"[i] for i in range(1, 10)}
    return f"F{short.get(float(metric.beta), f'(β={metric.beta:g})')}"


def recommendation(title: str, winner: Candidate, baseline: Candidate) -> str:
    """One sentence: what to take, by how much it was better on rows without a say, and whether that is noise."""
    cut = f"{winner.rule} cut"
    if winner.name == baseline.name:
        return (
            f"Take {baseline.name} with the {cut}, {title} {winner.score.mean:.3f} on test rows: of the methods tried, "
            "none did better on the rows that methods are chosen by."
        )
    found = winner.difference
    assert found is not None
    better = f"{title} {winner.score.mean:.3f} against {baseline.score.mean:.3f} of {baseline.name}"
    if found.mean > 0 and found.p < 0.05:
        return f"Take {winner.name} with the {cut}: {better} on test rows, {_apart(found)}."
    if found.mean < 0 and found.p < 0.05:
        return (
            f"Stay with {baseline.name}: {winner.name} looked best on the rows that methods are chosen by, but on test "
            f"rows it is worse, {better}, {_apart(found)}."
        )
    return (
        f"{winner.name} looked best on the rows that methods are chosen by, but on test rows its difference to "
        f"{baseline.name} is within noise ({better}, {_apart(found)}): take whichever is simpler for you."
    )


def _apart(found: Difference) -> str:
    said = f"difference {found.mean:+.3f} ({found.low:+.3f} to {found.high:+.3f}), p = {found.p:.2g}"
    return said.replace("-0.", "−0.")


def collapse(shares: list[float], epochs: int) -> str:
    """Whether a model gave up, from the share it calls positive after each epoch at its own boundary.

    >>> collapse([0.4, 1.0, 1.0], 3)
    'predicts everything positive since epoch 2'
    >>> collapse([0.4, 0.2, 0.1], 3)
    ''
    """
    for extreme, word in ((1.0, "everything positive"), (0.0, "nothing positive")):
        stuck = 0
        for share in reversed(shares[:epochs]):
            if abs(share - extreme) > 0.001:
                break
            stuck += 1
        if stuck and stuck >= min(2, epochs):
            return f"predicts {word} since epoch {epochs - stuck + 1}"
    return ""
