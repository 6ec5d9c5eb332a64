"""What a comparison says in words; it is not allowed to oversell."""

from __future__ import annotations

from fbeta.comparison.result import Candidate, Choice, Difference

#: A difference with a p value from here on is called noise.
LEVEL = 0.05


def recommendation(title: str, winner: Candidate, baseline: Candidate, choice: Choice) -> str:
    """One sentence: what to take, by how much choosing so was better on rows without a say, and whether that is noise.

    The winner is chosen on out-of-fold rows of all splits, which are test rows of one another: its own test score is a
    little too good. So what counts is `choice`, made afresh in each split without a look at its test rows.
    """
    cut = f"{winner.rule} cut"
    if winner.name == baseline.name:
        return (
            f"Take {baseline.name} with the {cut}, {title} {winner.score.mean:.3f} on test rows: of the methods tried, "
            f"none did better on the rows that methods are chosen by{_but(winner)}."
        )
    found = choice.difference
    better = f"{title} {choice.score.mean:.3f} against {baseline.score.mean:.3f} of {baseline.name}"
    times = choice.picks.count(winner.name)
    if times < len(choice.picks):  # the numbers are not the winner's alone
        better = (
            f"choosing afresh in each split, which took it in {times} of {len(choice.picks)}, gave {better}"
        )
    if found.mean > 0 and found.p < LEVEL:
        return f"Take {winner.name} with the {cut}: {better} on test rows, {_apart(found)}{_but(winner)}."
    if found.mean < 0 and found.p < LEVEL:
        return (
            f"Stay with {baseline.name}: {winner.name} looked best on the rows that methods are chosen by, but on test "
            f"rows it was worse, {better}, {_apart(found)}."
        )
    simple = "take whichever is simpler for you" if found.mean > 0 else f"stay with {baseline.name}"
    return (
        f"{winner.name} looked best on the rows that methods are chosen by, but on test rows its difference to "
        f"{baseline.name} is within noise ({better}, {_apart(found)}): {simple}."
    )


def advised(winner: Candidate, baseline: Candidate, choice: Choice) -> str:
    """The method that the recommendation leaves one with: the baseline where choosing gained nothing on test rows."""
    return winner.name if choice.difference.mean > 0 else baseline.name


def _but(winner: Candidate) -> str:
    """What is odd about a method that is recommended all the same: its cut makes up for it."""
    return f"; without that cut it {winner.collapse}" if winner.collapse else ""


def _apart(found: Difference) -> str:
    said = f"difference {found.mean:+.3f} ({found.low:+.3f} to {found.high:+.3f}), p = {found.p:.2g}"
    return said.replace("-", "−")
