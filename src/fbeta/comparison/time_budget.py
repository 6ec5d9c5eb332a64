"""A comparison that ran out of time: what of it can be judged, and what is said."""

from collections.abc import Mapping, Sequence

from fbeta import numerals
from fbeta.comparison.judging import Judged
from fbeta.comparison.methods import Method


def most_finished(methods: Sequence[Method], judged: Mapping[int, Mapping[Method, Judged]]) -> list[Method]:
    """The methods that were finished on the split that most of them were finished on."""
    most = max(judged.values(), key=len)
    return [method for method in methods if method in most]


def shortened(methods: Sequence[Method], there: Sequence[Method], splits: int, judged: int) -> str:
    """What time was too short for, in a sentence."""
    without = [method.name for method in methods if method not in there]
    if judged == splits and not without:
        return ""
    left = f", without {numerals.series(without)}" if without else ""
    return f"The time was up: judged on {judged} of {splits} splits{left}; the same command goes on from here."
