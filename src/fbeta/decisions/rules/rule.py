"""What a rule for a cut is, and how rules are found by name."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar

from fbeta.decisions.abstention import Asking, best_ends, decided
from fbeta.decisions.calibration import Calibrator
from fbeta.decisions.calibration_choice import calibrate
from fbeta.decisions.interval import Evidence
from fbeta.decisions.problem import Constraints, Problem
from fbeta.decisions.steps import Steps, score_cells
from fbeta.decisions.threshold import Threshold
from fbeta.metrics import Confusion
from fbeta.spelling import read_options, register, unknown


@dataclass(frozen=True)
class Rule(ABC):
    """How a cut is chosen. Subclass it, write `choose`, and ``tune(…, rule="name")`` finds it.

    >>> from fbeta.decisions import rules
    >>> {"constant", "exact", "plugin", "shrunk"} <= set(rules.names())
    True
    """

    registry: ClassVar[dict[str, type[Rule]]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        register(Rule.registry, cls.__name__.lower(), cls, "rule")

    @abstractmethod
    def choose(self, problem: Problem) -> float:
        """The cut: scores at or above it are positive."""

    def choose_together(self, problems: Sequence[Problem], constraints: Constraints) -> list[float]:
        """Cuts of several columns for the metric of their pooled counts."""
        raise ValueError(
            f"The rule {type(self).__name__.lower()!r} tunes one column at a time; use average='macro', or write its "
            "choose_together."
        )

    def thresholds(self, problems: Sequence[Problem]) -> list[Threshold]:
        """Cuts of several columns, each for itself; a rule that learns from all of them writes its own."""
        return [self.threshold(p) for p in problems]

    def calibrations(self, columns: Iterable[Steps]) -> Sequence[Calibrator]:
        """Calibrations of several columns, each for itself."""
        return [calibrate(steps) for steps in columns]

    def follows(self, problem: Problem) -> float:
        """How far the cut follows the targets of the rows, from 0 to 1: by so much its score on them is optimistic."""
        return 1.0

    @property
    def needs_kind(self) -> bool:
        """Whether the cut depends on what the scores are: probabilities, logits or any numbers."""
        return True

    def threshold(self, problem: Problem, cut: float | None = None, follows: float | None = None) -> Threshold:
        """Choose a cut (or take one that was chosen): its counts, its score, and what speaks against it."""
        steps, low = problem.steps, None
        if problem.constraints.abstain is not None:
            i, low = best_ends(problem, self.counts(problem))
            cut = steps.cut(i)
        else:
            cut = steps.snap(self.choose(problem) if cut is None else cut)
            i = steps.index(cut)
            if problem.constraints.confidence is not None and not (problem.allowed is not None and problem.allowed[i]):
                raise ValueError(f"The cut {cut:g} of the rule {self} keeps no promise; use rule='shrunk' or 'exact'.")
        counts = Confusion(*map(float, decided(steps, i, i if low is None else low)))
        return Threshold(
            cut,
            float(score_cells(problem.metric, counts)),
            int(steps.called[i]),
            kind=steps.kind,
            rule=str(self),
            metric=problem.metric,
            counts=counts,
            prevalence=problem.prevalence,
            warning=problem.warning(i, str(self)),
            evidence=Evidence.of(problem, i, self.follows(problem) if follows is None else follows, low=low),
            promise=problem.constraints.promise,
            asking=None if low is None else Asking.of(steps, i, low),
        )

    def counts(self, problem: Problem) -> Steps:
        """The counts that rows for a person are chosen by: those of the rows."""
        return problem.steps

    def __str__(self) -> str:
        """Write the spec that `as_rule` reads: the name, and options that are not the default."""
        options = {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) != f.default}
        given = ",".join(f"{name}={float(value)!r}".removesuffix(".0") for name, value in options.items())
        return type(self).__name__.lower() + (f":{given}" if given else "")


def names() -> list[str]:
    """The names of all rules."""
    return sorted(Rule.registry)


def as_rule(spec: Rule | str) -> Rule:
    """Read a rule: an instance, or a spec such as "shrunk" or "shrunk:half=30".

    >>> as_rule("shrunk:half=30")
    Shrunk(half=30.0, calibrate=True)
    """
    if isinstance(spec, Rule):
        return spec
    if not isinstance(spec, str):
        raise TypeError(f"A rule is a name ({', '.join(names())}) or an instance; got {spec!r}.")
    name, _, options = spec.strip().lower().partition(":")
    if name not in Rule.registry:
        raise unknown("rule", name, names())
    cls = Rule.registry[name]
    return cls(**read_options(cls, options))
