"""A claim of the paper: what it says, by which numbers it is decided, what was found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from fbeta_reproduction.naming import dataset_name
from fbeta_reproduction.results.folder import Repeats

Verdict = Literal["holds", "holds in part", "does not hold", "not measured yet"]

#: What counts as finished: the paper's repeats and epochs.
REPEATS, EPOCHS = 5, 120


@dataclass(frozen=True)
class Finding:
    """What was measured on one data set, and what it says about the claim."""

    dataset: str
    verdict: Verdict
    sentences: tuple[str, ...] = ()
    preliminary: str = ""

    def __str__(self) -> str:
        return self.verdict + (f" ({self.preliminary})" if self.preliminary else "")


@dataclass(frozen=True)
class Claim:
    """What the paper says, how it is decided, what was found; `figures` are the names that show it."""

    number: int
    title: str
    paper: str
    criterion: str
    findings: tuple[Finding, ...]
    figures: tuple[str, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """The verdict over all data sets that were measured: their common one, or 'holds in part'.

        >>> Claim(1, "", "", "", (Finding("a", "holds"), Finding("b", "not measured yet"))).verdict
        'holds'
        """
        measured = {f.verdict for f in self.findings} - {"not measured yet"}
        if not measured:
            return "not measured yet"
        return measured.pop() if len(measured) == 1 else "holds in part"

    @property
    def summary(self) -> str:
        """The verdict in a word, by data set where they differ, and whether it is final.

        >>> Claim(1, "", "", "", (Finding("cifar10", "holds"), Finding("digits", "does not hold"))).summary
        'CIFAR-10: holds; digits: does not hold'
        """
        if len({str(f) for f in self.findings}) == 1:
            return str(self.findings[0])
        return "; ".join(f"{dataset_name(f.dataset)}: {f}" for f in self.findings)


def judge(dataset: str, groups: Sequence[Repeats], verdict: Verdict, *sentences: str) -> Finding:
    """A finding from some groups; it is preliminary until they have the paper's five repeats of 120 epochs."""
    repeats, reached = min(len(g.results) for g in groups), min(g.reached for g in groups)
    missing = [f"{repeats} of {REPEATS} repeats"] if repeats < REPEATS else []
    missing += [f"{reached} of {EPOCHS} epochs"] if reached < EPOCHS else []
    said = "preliminary: " + ", ".join(missing) if missing else ""
    return Finding(dataset, verdict, tuple(s for s in sentences if s), said)


def unmeasured(dataset: str, *sentences: str) -> Finding:
    """A finding that was not measured yet.

    >>> str(unmeasured("cifar10"))
    'not measured yet'
    """
    return Finding(dataset, "not measured yet", sentences)
