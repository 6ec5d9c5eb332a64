"""What a comparison says in words: of each difference, of the whole, and what to do."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from fbeta.comparison.result import Candidate, Choice, Difference, NoSkill, Word
from fbeta.comparison.statistics import LEVEL, holm
from fbeta.numerals import between, fixed, p_value, short, signed

BETTER: Final = "better"
WORSE: Final = "worse"
EQUIVALENT: Final = "equivalent"
UNDECIDED: Final = "undecided"
NO_SIGNAL: Final = "no signal"
#: With fewer positives than this, every number is said to rest on few.
FEW = 50


def judged_together(found: Sequence[Difference]) -> list[Difference]:
    """Differences that are tested side by side, with p values adjusted for that (Holm) and a word for each."""
    tested = zip(found, holm([d.p for d in found]), holm([d.equal for d in found]), strict=True)
    adjusted = (replace(d, p=p, equal=equal) for d, p, equal in tested)
    return [replace(d, word=word(d)) for d in adjusted]


def word(found: Difference) -> Word:
    """What a difference is; one that is surely below the margin is equivalent, whatever its sign.

    >>> word(Difference(0.03, 0.01, 0.05, p=0.004, test="t", equal=0.9))
    'better'
    """
    if found.equal < 1 - LEVEL:
        return EQUIVALENT
    if found.p < 1 - LEVEL:
        return BETTER if found.mean > 0 else WORSE
    return UNDECIDED


@dataclass(frozen=True)
class Verdict:
    """The word for the whole, the method that follows from it (none without a signal), and the sentences."""

    word: str
    advised: str
    recommendation: str


@dataclass(frozen=True)
class Findings:
    """What a verdict rests on; `others` are the differences of all methods to the baseline."""

    title: str
    winner: Candidate
    baseline: Candidate
    choice: Choice
    constant: NoSkill
    others: Sequence[Difference]
    positives: int
    margin: float

    @property
    def verdict(self) -> Verdict:
        """Is there a signal, and if so, is what was chosen better than the baseline?"""
        skilled, same = self.constant.baseline.word == BETTER, self.winner.name == self.baseline.name
        chosen = self.constant.choice.word == BETTER and self.winner.score.mean > self.constant.score.mean
        if not skilled and (same or not chosen):
            return Verdict(NO_SIGNAL, "", self._said(self._no_signal()))
        found = self.choice.difference.word
        if same:
            beaten = all(d.word in (EQUIVALENT, WORSE) for d in self.others)
            verdict = EQUIVALENT if self.others and beaten else UNDECIDED
            return Verdict(verdict, self.baseline.name, self._said(self._baseline(verdict)))
        if found == BETTER and chosen:
            return Verdict(BETTER, self.winner.name, self._said(self._better()))
        verdict = EQUIVALENT if found == EQUIVALENT else UNDECIDED
        if not skilled:
            return Verdict(verdict, self.winner.name, self._said(self._only_skilled()))
        return Verdict(verdict, self.baseline.name, self._said(self._stay()))

    def _said(self, sentence: str) -> str:
        """The sentence, and what else must be known to read it."""
        few = f" Only {self.positives} positives: every number here rests on few rows." if self.positives < FEW else ""
        return sentence + few

    def _no_signal(self) -> str:
        found = self.constant.choice
        return (
            f"No signal: nothing that was tried is reliably better on test rows than calling {self.constant.name}, "
            f"{self.title} {fixed(self.constant.score.mean)}; {self.winner.name}, which looked best on the rows that "
            f"methods are chosen by, comes to a difference of {_apart(found)}. Take none of these."
        )

    def _baseline(self, verdict: str) -> str:
        score = f"{self.title} {fixed(self.baseline.score.mean)} on test rows"
        cut = f"the {self.baseline.rule} cut{_but(self.baseline)}"
        found = "no other method was better by more than one standard error on the rows that methods are chosen by"
        if verdict == EQUIVALENT:
            found = f"on test rows, no other method is better by {short(self.margin)} or more"
        return f"Take {self.baseline.name} with {cut}, {score}: {found}."

    def _better(self) -> str:
        return f"Take {self.winner.name} with the {self.winner.rule} cut{_but(self.winner)}: {self._measured()}."

    def _stay(self) -> str:
        found = self.choice.difference
        looked = f"{self.winner.name} looked best on the rows that methods are chosen by"
        if found.word == WORSE:
            return f"Stay with {self.baseline.name}: {looked}, but on test rows it was worse; {self._measured()}."
        if found.word == EQUIVALENT:
            return (
                f"Stay with {self.baseline.name}: {looked}, but on test rows the difference is below "
                f"{short(self.margin)} either way, so they are equivalent; {self._measured()}."
            )
        shown = fixed(found.detectable) if math.isfinite(found.detectable) else ""
        reach = f"; a difference of {shown} or more would probably have been found" if shown else ""
        return (
            f"Undecided, so stay with {self.baseline.name}: {looked}, but on test rows its difference to "
            f"{self.baseline.name} is within noise; {self._measured()}{reach}."
        )

    def _only_skilled(self) -> str:
        return (
            f"Take {self.winner.name} with the {self.winner.rule} cut{_but(self.winner)}: it is better than "
            f"calling {self.constant.name}, and {self.baseline.name} is not reliably so; {self._measured()}."
        )

    def _measured(self) -> str:
        """What choosing so scored, on rows that had no say: the winner's own score is a little too good."""
        choice, name = self.choice, self.winner.name
        better = f"{self.title} {fixed(choice.score.mean)} against {fixed(self.baseline.score.mean)} of "
        better += f"{self.baseline.name}, difference {_apart(choice.difference)}"
        times = choice.picks.count(name)
        if times < len(choice.picks):
            minority = "only " if 2 * times < len(choice.picks) else ""
            took = f"which took {name} in {minority}{times} of {len(choice.picks)}"
            return f"choosing afresh in each split, {took}, gave {better}"
        return better


def _but(method: Candidate) -> str:
    """What is odd about a method that is recommended all the same: its cut makes up for it."""
    return f" (without it, it {method.collapse})" if method.collapse else ""


def _apart(found: Difference) -> str:
    p = p_value(found.p)
    ends = between(found.low, found.high, sign=True)
    return f"{signed(found.mean)} ({ends}), p {p if p.startswith('<') else f'= {p}'}"
