"""Rules for a cut, by name: exact, plugin, shrunk, constant."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np

from fbeta.decisions.calibration import MARGIN, Platt, logit, sigmoid
from fbeta.decisions.pooling import pool
from fbeta.decisions.problem import Constraints, Problem
from fbeta.decisions.steps import Steps
from fbeta.spelling import did_you_mean

#: The smallest probability that a finite cut is told apart from 0 at.
TINY = 1e-300


@dataclass(frozen=True)
class Rule(ABC):
    """How a cut is chosen. Subclass it, write `choose`, and `tune(…, rule="name")` finds it.

    >>> rules()
    ['constant', 'exact', 'plugin', 'shrunk']
    """

    registry: ClassVar[dict[str, type[Rule]]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        name = cls.__name__.lower()
        known = Rule.registry.get(name)
        if known is not None and (known.__module__, known.__qualname__) != (cls.__module__, cls.__qualname__):
            raise ValueError(f"A rule named {name!r} exists already ({known.__module__}); rename yours.")
        Rule.registry[name] = cls

    @abstractmethod
    def choose(self, problem: Problem) -> float:
        """The cut: scores at or above it are positive."""

    def choose_together(self, problems: Sequence[Problem], constraints: Constraints) -> list[float]:
        """Cuts of several columns for the metric of their pooled counts."""
        raise ValueError(
            f"The rule {type(self).__name__.lower()!r} tunes one column at a time; use average='macro', or write its "
            "choose_together."
        )

    def follows(self, problem: Problem) -> float:
        """How far the cut follows the targets of the rows, from 0 to 1; so far its score on them flatters it."""
        return 1.0

    def __str__(self) -> str:
        """Write the spec that `rule()` reads: the name, and options that are not the default."""
        options = [
            (f.name, getattr(self, f.name)) for f in fields(self) if getattr(self, f.name) != f.default
        ]
        given = ",".join(f"{name}={float(value)!r}".removesuffix(".0") for name, value in options)
        return type(self).__name__.lower() + (f":{given}" if given else "")


@dataclass(frozen=True)
class Exact(Rule):
    r"""The best cut on the rows: every distinct score is tried.

    .. math:: \hat c = \arg\max_c M(\text{counts of } s \ge c)

    No bias, but the argmax of few positives varies a lot.

    Reference: [lipton2014]
    """

    def choose(self, problem: Problem) -> float:
        """The argmax."""
        return problem.steps.cut(problem.best())

    def choose_together(self, problems: Sequence[Problem], constraints: Constraints) -> list[float]:
        """The argmax over all columns."""
        columns = [p.steps for p in problems]
        best = pool(columns, problems[0].metric, constraints)
        return [c.cut(i) for c, i in zip(columns, best, strict=True)]


@dataclass(frozen=True)
class Plugin(Rule):
    r"""The best cut of the metric that calibrated probabilities lead us to expect.

    .. math:: \hat c = \arg\max_c M(\mathbb E\,\text{counts}), \qquad \mathbb E\,TP = \sum_{s_i \ge c} p_i,\quad
              \mathbb E\,FP = \sum_{s_i \ge c} (1 - p_i)

    Targets enter only through the calibration, so it varies little; it is as wrong as the probabilities are.
    `calibrate`: whether p comes from Platt scaling of (scores, target), or is the score itself.

    Reference: [ye2012]
    """

    calibrate: bool = True

    def choose(self, problem: Problem) -> float:
        """The argmax of the expected metric."""
        return problem.steps.cut(problem.best(self.expected(problem)))

    def choose_together(self, problems: Sequence[Problem], constraints: Constraints) -> list[float]:
        """The argmax of the expected metric over all columns; constraints hold for what is expected."""
        columns = [self.expected(p) for p in problems]
        best = pool(columns, problems[0].metric, constraints)
        return [c.cut(i) for c, i in zip(columns, best, strict=True)]

    def follows(self, problem: Problem) -> float:
        """Two numbers of a calibration hardly flatter a cut."""
        return 0.0

    def expected(self, problem: Problem) -> Steps:
        """What the probabilities lead us to count."""
        observed = problem.observed
        p = Platt.fit(observed)(observed.scores) if self.calibrate else observed.scores
        if not self.calibrate and not observed.are_probabilities:
            raise ValueError(
                f"Scores between {observed.scores[-1]:g} and {observed.scores[0]:g} are no probabilities, so "
                "calibrate=False has nothing to go by; leave it out."
            )
        expected = observed.expected(np.clip(p, MARGIN, 1 - MARGIN))
        return expected if problem.prevalence is None else expected.at_prevalence(problem.prevalence)


@dataclass(frozen=True)
class Shrunk(Rule):
    r"""Between the exact cut and the plug-in, in logit: the exact one weighs more, the more positives there are.

    .. math:: x = w\,x_{\text{exact}} + (1 - w)\,x_{\text{plugin}}, \qquad
              w = \frac12 + \frac12 \cdot \frac{n_1}{n_1 + h}

    x is the logit of a probability, or the score itself where scores leave [0, 1] (they are taken for logits). The
    argmax of few positives varies, the plug-in is biased; halfway there is little of either. The plug-in never
    outweighs the exact cut, because its calibration comes from the same few positives.

    `half`: h, the number of positives at which w has come halfway from ½ to 1. Chosen by `benchmarks/cuts.py`, where
    anything from 100 to 800 does as well. `calibrate`: as in `Plugin`.
    """

    half: float = 200.0
    calibrate: bool = True

    def __post_init__(self) -> None:
        if not (np.isfinite(self.half) and self.half >= 0):
            raise ValueError(f"half of shrunk is a number of positives from 0; got {self.half!r}.")

    def choose(self, problem: Problem) -> float:
        """The mean of two cuts."""
        steps, allowed = problem.steps, problem.allowed
        between = self._between(problem, Exact().choose(problem), Plugin(self.calibrate).choose(problem))
        cut = steps.snap(between)
        if allowed is None or allowed[steps.index(cut)]:
            return cut
        # Between two cuts that meet the constraints there may be one that does not: take the nearest that does.
        meets = np.flatnonzero(allowed)
        return steps.cut(int(meets[np.argmin(np.abs(meets - steps.index(cut)))]))

    def choose_together(self, problems: Sequence[Problem], constraints: Constraints) -> list[float]:
        """The means of the cuts that are best together and those expected to be; constraints are not pooled."""
        if constraints:
            raise ValueError(
                "Cuts halfway between two that meet pooled constraints need not meet them; use rule='exact'."
            )
        exact = Exact().choose_together(problems, constraints)
        plugin = Plugin(self.calibrate).choose_together(problems, constraints)
        return [self._between(*each) for each in zip(problems, exact, plugin, strict=True)]

    def follows(self, problem: Problem) -> float:
        """The weight of the exact cut."""
        n1 = problem.observed.positives * problem.observed.rows_per_weight
        return 0.5 + 0.5 * (n1 / (n1 + self.half) if n1 + self.half > 0 else 1.0)

    def _between(self, problem: Problem, exact: float, plugin: float) -> float:
        if exact == plugin:
            return exact
        steps, w = problem.steps, self.follows(problem)

        def place(cut: float) -> float:
            # 'All' and 'none' are infinitely far away: the outermost scores stand in for them.
            end = min(max(cut, float(steps.scores[-1])), float(steps.scores[0]))
            if not steps.are_probabilities:
                return end
            return float(logit(end, MARGIN if np.isinf(cut) else TINY))

        x = w * place(exact) + (1 - w) * place(plugin)
        return float(sigmoid(x)) if steps.are_probabilities else x


@dataclass(frozen=True)
class Constant(Rule):
    """A cut that does not look at the rows: ½ for scores in [0, 1], else 0 (logits), or `at`."""

    at: float | None = None

    def __post_init__(self) -> None:
        if self.at is not None and np.isnan(self.at):
            raise ValueError("The constant cut is NaN; give a number, or ±inf for none or all.")

    def choose(self, problem: Problem) -> float:
        """The constant."""
        usual = 0.5 if problem.steps.are_probabilities else 0.0
        cut = problem.steps.snap(usual if self.at is None else self.at)
        if problem.allowed is not None and not problem.allowed[problem.steps.index(cut)]:
            raise ValueError(
                f"The constant cut {cut:g} does not meet the constraints; use rule='exact', which looks for one."
            )
        return float(cut)

    def choose_together(self, problems: Sequence[Problem], constraints: Constraints) -> list[float]:
        """The same for every column."""
        if constraints:
            raise ValueError("Constant cuts cannot be made to meet constraints; use rule='exact'.")
        return [self.choose(p) for p in problems]

    def follows(self, problem: Problem) -> float:
        """Not at all."""
        return 0.0


def rules() -> list[str]:
    """Names of all rules.

    >>> "shrunk" in rules()
    True
    """
    return sorted(Rule.registry)


def rule(spec: Rule | str) -> Rule:
    """Read a rule: an instance, or a spec such as "shrunk" or "shrunk:half=30".

    >>> rule("shrunk:half=30")
    Shrunk(half=30.0, calibrate=True)
    """
    if isinstance(spec, Rule):
        return spec
    if not isinstance(spec, str):
        raise TypeError(f"A rule is a name ({', '.join(rules())}) or an instance; got {spec!r}.")
    name, _, options = spec.strip().lower().partition(":")
    if name not in Rule.registry:
        hint = did_you_mean(name, rules())
        raise ValueError(f"Unknown rule {name!r}.{hint} Choices: {', '.join(rules())}.")
    cls = Rule.registry[name]
    given: dict[str, Any] = {}
    for part in filter(None, (x.strip() for x in options.split(","))):
        key, equals, value = (x.strip() for x in part.partition("="))
        names = [f.name for f in fields(cls)]
        if not equals or key not in names:
            raise ValueError(
                f"{name} takes {', '.join(names) or 'no options'}; got {part!r}. Write name=value."
            )
        try:
            given[key] = bool(float(value)) if key == "calibrate" else float(value)
        except ValueError:
            raise ValueError(f"{key} of {name} must be a number; got {value!r}.") from None
    return cls(**given)
