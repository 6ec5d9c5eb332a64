"""What a comparison found, as plain data: JSON in, JSON out, nothing to import."""

import json
import math
import statistics
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, Self

from fbeta.learners.learner import Course
from fbeta.plain_data import from_plain, to_plain
from fbeta.sealed import LARGEST

VERSION = 2
#: What a difference is, and what a step changes.
Word = Literal["", "better", "worse", "equivalent", "undecided"]
Changed = Literal["default", "cut", "loss", "model"]


@dataclass(frozen=True)
class TableFacts:
    """The table that was learned from; `group`, `time`, `weight`, `drop`, `categorical`: columns as somebody asked."""

    name: str
    target: str
    positive: str
    rows: int
    positives: int
    columns: int
    notes: tuple[str, ...] = ()
    group: str | None = None
    time: str | None = None
    drop: tuple[str, ...] = ()
    weight: str | None = None
    categorical: tuple[str, ...] = ()


@dataclass(frozen=True)
class Outcome:
    """One method on one outer split: judged by test rows that had no say in anything.

    `inner` is the score of the out-of-fold rows, which methods are chosen by; `collapse` says if the model gave up;
    `asked` is the share of test rows that a person decides, and score and cells are of the others.
    """

    seed: int
    score: float
    at_half: float
    cut: float
    tp: float
    fp: float
    fn: float
    tn: float
    inner: float
    brier: float
    seconds: float
    epochs: int = 0
    collapse: str = ""
    asked: float = 0.0


@dataclass(frozen=True)
class Estimate:
    """A mean and its 95 % interval, which ends where the metric does; NaN where there is nothing to say."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class Difference(Estimate):
    """A method's score minus another's on the same test rows, with the p value of a test that they are equal.

    `error` is its standard error, `equal` the p value of a test that they differ by the margin or more; both p values
    are adjusted where several are tested (Holm). `detectable` is the smallest difference that would be found four times
    in five, and `word` what follows: better, worse, equivalent or undecided.
    """

    p: float
    test: str
    error: float = math.nan
    equal: float = math.nan
    detectable: float = math.nan
    word: Word = ""


@dataclass(frozen=True)
class Operating:
    """Test rows of all splits together, at falling cuts: at or above ``cut[i]`` lie ``tp[i]`` and ``fp[i]``."""

    cut: tuple[float, ...]
    tp: tuple[float, ...]
    fp: tuple[float, ...]
    positives: float
    negatives: float


@dataclass(frozen=True)
class Calibration:
    """Test rows in bins of their probability: its mean, the share of positives, how many rows."""

    predicted: tuple[float, ...]
    observed: tuple[float, ...]
    rows: tuple[int, ...]


@dataclass(frozen=True)
class Candidate:
    """One method: a model trained with a loss, and cut by a rule; `epochs` are means over splits.

    `difference` is to the baseline, `beside` to the plain loss of the same model. `ensemble`: the mean of the folds'
    models was judged, not one model of all rows.
    """

    name: str
    model: str
    loss: str
    rule: str
    outcomes: tuple[Outcome, ...]
    score: Estimate
    at_half: Estimate
    difference: Difference | None
    operating: Operating
    calibration: Calibration
    epochs: Course = field(default_factory=Course)
    ensemble: bool = False
    beside: Difference | None = None

    @property
    def inner(self) -> float:
        """The mean score of out-of-fold rows: what a winner may be chosen by."""
        return sum(o.inner for o in self.outcomes) / len(self.outcomes)

    @property
    def brier(self) -> float:
        """The mean Brier score of test rows."""
        return sum(o.brier for o in self.outcomes) / len(self.outcomes)

    @property
    def seconds(self) -> float:
        """Time over all splits."""
        return sum(o.seconds for o in self.outcomes)

    @property
    def collapse(self) -> str:
        """What went wrong with it in some split, in words; empty if nothing."""
        return next((o.collapse for o in self.outcomes if o.collapse), "")


@dataclass(frozen=True)
class Choice:
    """What choosing is worth: in every split the method that its inner rows like best, judged by its own test rows."""

    picks: tuple[str, ...]
    score: Estimate
    difference: Difference


@dataclass(frozen=True)
class Step:
    """A step from what people do today, a model's default decided at ½, to what was chosen.

    `change` is "default", "cut", "loss" or "model"; `picks` are the methods that each split's held-out rows chose, and
    `method` is the most frequent. `gain` is what it adds to the step before it on the same test rows, which the cells
    count.
    """

    change: Changed
    method: str
    picks: tuple[str, ...]
    score: Estimate
    gain: Difference | None
    tp: float
    fp: float
    fn: float
    tn: float


@dataclass(frozen=True)
class Segment:
    """Test rows of one group of a column, as the advised method decides them."""

    name: str
    tp: float
    fp: float
    fn: float
    tn: float


@dataclass(frozen=True)
class ColumnSegments:
    """A column's groups; `p` is of a test that recall and precision are the same in all, adjusted for all columns."""

    column: str
    segments: tuple[Segment, ...]
    p: float


@dataclass(frozen=True)
class NoSkill:
    """Calling all rows positive, or none, whichever is better, and what the methods add to that.

    `baseline` and `choice` are the baseline's score, and that of choosing afresh in each split, minus its own.
    """

    name: str
    score: Estimate
    baseline: Difference
    choice: Difference


@dataclass(frozen=True)
class Comparison:
    """All methods on one table: the baseline was fixed beforehand, the winner chosen on inner rows.

    `verdict`: is the winner better than the baseline, equivalent within the margin, is that undecided, or is there "no
    signal", because nothing beats `constant`? `advised` is the method that follows: the winner, the baseline, or none.
    `steps` lead from today's default to what was chosen, and `gain` is what following the advice adds to that default.
    `segments` are the columns between whose groups the advised method differs most.
    `promise` says what was asked of every cut, and what it is on test rows.

    >>> table = TableFacts("fraud", "is_fraud", "1", 1000, 20, 5)
    >>> comparison = Comparison(table, "fbeta:beta=2", "F₂", (), "", "", "Nothing was run.")
    >>> comparison = Comparison.from_json(comparison.to_json())
    >>> comparison.table.positives
    20
    """

    table: TableFacts
    metric: str
    title: str
    candidates: tuple[Candidate, ...]
    baseline: str
    winner: str
    recommendation: str
    seeds: int = 0
    folds: int = 0
    seconds: float = 0.0
    machine: str = ""
    choice: Choice | None = None
    advised: str = ""
    verdict: str = ""
    margin: float = 0.01
    constant: NoSkill | None = None
    steps: tuple[Step, ...] = ()
    gain: Difference | None = None
    segments: tuple[ColumnSegments, ...] = ()
    promise: str = ""
    trials: int = 1
    version: int = VERSION

    @property
    def detectable(self) -> float:
        """The smallest difference to the baseline that this table could show, for the median method."""
        found = [c.difference.detectable for c in self.candidates if c.difference and c.difference.detectable > 0]
        return statistics.median(found) if found else math.nan

    def candidate(self, name: str) -> Candidate:
        """The method with this name."""
        for candidate in self.candidates:
            if candidate.name == name:
                return candidate
        raise KeyError(f"There is no method {name!r}; there are {', '.join(c.name for c in self.candidates)}.")

    def reading(self, **asked: Any) -> dict[str, Any]:
        """How `load_table` reads a table as this comparison did, but for what is asked; columns it dropped stay out."""
        names = ("target", "positive", "group", "time", "weight")
        roles = {name: asked.get(name) or getattr(self.table, name) for name in names}
        several = ("drop", "categorical")
        more = {name: tuple(dict.fromkeys([*getattr(self.table, name), *(asked.get(name) or ())])) for name in several}
        return asked | roles | more

    def told_of(self, table: Any) -> list[str]:
        """What is to be said before its advice is fitted on a table, which may be another than it was made on."""
        was, now = self.table, (len(table), int(table.y.sum()), len(table.columns))
        if now == (was.rows, was.positives, was.columns):
            return [self.recommendation]
        seen = f"{was.rows:,} rows, {was.positives:,} positives and {was.columns} columns"
        return [self.recommendation, f"the comparison saw {seen}, not these."]

    @classmethod
    def read(cls, path: Path) -> Self:
        """A comparison from the file of `fbeta compare --json`."""
        with open(path, "rb") as stream:
            data = stream.read(LARGEST + 1)
        try:
            if len(data) > LARGEST:
                raise ValueError("it is larger than any comparison.")
            return cls.from_json(data.decode())
        except UnicodeDecodeError as error:
            raise ValueError(f"{path} is no comparison: give what `fbeta compare --json` printed.") from error
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error

    def to_json(self) -> str:
        """JSON; numbers that it does not know (NaN, ±inf) are text."""
        return json.dumps(to_plain(asdict(self)), ensure_ascii=False, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read what `to_json` wrote."""
        try:
            data = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"This is no comparison: it is not JSON ({error}).") from None
        version = data.get("version") if isinstance(data, dict) else None
        if not isinstance(version, int) or isinstance(version, bool):
            raise ValueError("This is no comparison: it has no version; write one with `fbeta compare --json`.")
        if version > VERSION:
            raise ValueError(
                f"The comparison is of version {version}, and this fbeta reads up to {VERSION}: upgrade fbeta."
            )
        found: Self = from_plain(cls, data, "comparison")
        return found
