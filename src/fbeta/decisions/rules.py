"""Rules for a cut. A new rule is a subclass of `Rule`, found by the name of its class."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np

from fbeta.decisions.calibration import MARGIN, Platt, logit, sigmoid
from fbeta.decisions.interval import Evidence
from fbeta.decisions.pooling import pool
from fbeta.decisions.problem import Constraints, Problem
from fbeta.decisions.steps import Steps, score_cells
from fbeta.decisions.threshold import Threshold
from fbeta.metrics import Confusion
from fbeta.spelling import did_you_mean, read_options, register

#: Where a model itself would cut its scores.
USUAL = {"probability": 0.5, "logit": 0.0}
#: The smallest probability that a finite cut is told apart from 0 at.
TINY = 1e-300


@dataclass(frozen=True)
class Rule(ABC):
    """How a cut is chosen. Subclass it, write `choose`, and ``tune(…, rule="name")`` finds it.

    >>> from fbeta.decisions import rules
    >>> rules.names()
    ['constant', 'exact', 'plugin', 'shrunk']
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

    def follows(self, problem: Problem) -> float:
        """How far the cut follows the targets of the rows, from 0 to 1: by so much its score on them is optimistic."""
        return 1.0

    @property
    def needs_kind(self) -> bool:
        """Whether the cut depends on what the scores are: probabilities, logits or any numbers."""
        return True

    def threshold(self, problem: Problem, cut: float | None = None) -> Threshold:
        """Choose a cut (or take one that was chosen): its counts, its score, and what speaks against it."""
        steps = problem.steps
        cut = steps.snap(self.choose(problem) if cut is None else cut)
        i = steps.index(cut)
        counts = Confusion(*map(float, steps.confusion(i)))
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
            evidence=Evidence.of(problem, i, self.follows(problem)),
        )

    def __str__(self) -> str:
        """Write the spec that `as_rule` reads: the name, and options that are not the default."""
        options = {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) != f.default}
        given = ",".join(f"{name}={float(value)!r}".removesuffix(".0") for name, value in options.items())
        return type(self).__name__.lower() + (f":{given}" if given else "")


@dataclass(frozen=True)
class Constant(Rule):
    """A cut that does not look at the rows: `at`, or ½ for probabilities and 0 for logits.

    >>> from fbeta import tune
    >>> tune([0.9, 0.8, 0.3], [1, 0, 0], "f1", rule="constant:at=0.7").value
    0.7
    """

    at: float | None = None

    def __post_init__(self) -> None:
        if self.at is not None and np.isnan(self.at):
            raise ValueError("The constant cut is NaN; give a number, or ±inf for none or all.")

    def choose(self, problem: Problem) -> float:
        """The constant."""
        if self.at is None and problem.steps.kind not in USUAL:
            raise ValueError(
                "Scores that are neither probabilities nor logits have no usual cut; name one, as rule='constant:at=3'."
            )
        cut = problem.steps.snap(USUAL[problem.steps.kind] if self.at is None else self.at)
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

    @property
    def needs_kind(self) -> bool:
        """Only where no cut was given."""
        return self.at is None


@dataclass(frozen=True)
class Exact(Rule):
    r"""The best cut on the rows: every distinct score is tried.

    .. math:: \hat c = \arg\max_c M(\text{counts of } s \ge c)

    It has no bias, but with few positives the argmax varies a lot.

    >>> from fbeta import tune
    >>> tune([0.9, 0.8, 0.3], [1, 0, 0], "f1", rule="exact").value
    0.8500000000000001

    Reference: [lipton2014]
    """

    def counts(self, problem: Problem) -> Steps:
        """The counts whose best cut is sought."""
        return problem.steps

    def choose(self, problem: Problem) -> float:
        """The argmax."""
        return problem.steps.cut(problem.best(self.counts(problem)))

    def choose_together(self, problems: Sequence[Problem], constraints: Constraints) -> list[float]:
        """The argmax over all columns; constraints hold for these counts."""
        columns = [self.counts(p) for p in problems]
        best = pool(columns, problems[0].metric, constraints)
        return [c.cut(i) for c, i in zip(columns, best, strict=True)]

    @property
    def needs_kind(self) -> bool:
        """No: only the order of the scores counts."""
        return False


@dataclass(frozen=True)
class Plugin(Exact):
    r"""The best cut of the metric that calibrated probabilities lead us to expect.

    .. math:: \hat c = \arg\max_c M(\mathbb E\,\text{counts}), \qquad \mathbb E\,TP = \sum_{s_i \ge c} p_i,\quad
              \mathbb E\,FP = \sum_{s_i \ge c} (1 - p_i)

    Targets enter only through the calibration, so it varies little; it is as wrong as the probabilities are.
    `calibrate`: whether p comes from Platt scaling of (scores, target), or is the score itself.

    >>> from fbeta import tune
    >>> tune([0.9, 0.8, 0.3], [1, 0, 0], "f1", rule="plugin", kind="probability").rule
    'plugin'

    Reference: [ye2012]
    """

    calibrate: bool = True

    def counts(self, problem: Problem) -> Steps:
        """What the probabilities lead us to count."""
        observed = problem.observed
        if not self.calibrate and observed.kind != "probability":
            raise ValueError(
                f"calibrate=False takes the scores for probabilities, and they are of kind {observed.kind!r}; leave it "
                "out, or hand in probabilities with kind='probability'."
            )
        p = Platt.fit(observed)(observed.scores) if self.calibrate else observed.scores
        expected = observed.expected(np.clip(p, MARGIN, 1 - MARGIN))
        return expected if problem.prevalence is None else expected.at_prevalence(problem.prevalence)

    def follows(self, problem: Problem) -> float:
        """Not at all: two numbers of a calibration hardly make a cut optimistic."""
        return 0.0

    @property
    def needs_kind(self) -> bool:
        """Yes: it is calibrated."""
        return True


@dataclass(frozen=True)
class Shrunk(Rule):
    r"""Between the exact cut and the plug-in, in logit: the exact one weighs more, the more positives there are.

    .. math:: x = w\,x_{\text{exact}} + (1 - w)\,x_{\text{plugin}}, \qquad
              w = \frac12 + \frac12 \cdot \frac{n_1}{n_1 + h}

    x is the logit of a probability, and the score itself for logits and other scores. The argmax of few positives
    varies, the plug-in is biased; halfway there is little of either. The plug-in never outweighs the exact cut,
    because its calibration comes from the same few positives.

    `half`: h, the number of positives at which w has come halfway from ½ to 1. Chosen by `benchmarks/cuts.py`, where
    anything from 100 to 800 does as well. `calibrate`: as in `Plugin`.

    >>> from fbeta import tune
    >>> tune([0.9, 0.8, 0.3], [1, 0, 0], "f1", rule="shrunk", kind="probability").rule
    'shrunk'
    """

    half: float = 200.0
    calibrate: bool = True

    def __post_init__(self) -> None:
        if not (np.isfinite(self.half) and self.half >= 0):
            raise ValueError(f"half of shrunk is a number of positives from 0; got {self.half!r}.")

    def choose(self, problem: Problem) -> float:
        """The mean of two cuts."""
        steps, allowed = problem.steps, problem.allowed
        exact, plugin = Exact().choose(problem), Plugin(self.calibrate).choose(problem)
        cut = steps.snap(self._between(problem, exact, plugin))
        if allowed is None or allowed[steps.index(cut)]:
            return cut
        # Between two cuts that meet the constraints there may be one that does not: take the nearest that does.
        meets = np.flatnonzero(allowed)
        return steps.cut(int(meets[np.argmin(np.abs(meets - steps.index(cut)))]))

    def choose_together(self, problems: Sequence[Problem], constraints: Constraints) -> list[float]:
        """The means of the cuts that are best together and those expected to be; constraints are not pooled."""
        if constraints:
            raise ValueError("Cuts between two that meet pooled constraints may not; use rule='exact'.")
        exact = Exact().choose_together(problems, constraints)
        plugin = Plugin(self.calibrate).choose_together(problems, constraints)
        return [self._between(*each) for each in zip(problems, exact, plugin, strict=True)]

    def follows(self, problem: Problem) -> float:
        """The weight of the exact cut."""
        return self.weight_of_exact(problem.observed.positive_rows)

    def weight_of_exact(self, positives: float) -> float:
        """w for so many positives."""
        total = positives + self.half
        return 0.5 + 0.5 * (positives / total if total > 0 else 1.0)

    def _between(self, problem: Problem, exact: float, plugin: float) -> float:
        if exact == plugin:
            return exact
        steps, w = problem.steps, self.follows(problem)
        probabilities = steps.kind == "probability"

        def place(cut: float) -> float:
            # 'All' and 'none' are infinitely far away: the outermost scores stand in for them.
            end = min(max(cut, float(steps.scores[-1])), float(steps.scores[0]))
            return float(logit(end, MARGIN if np.isinf(cut) else TINY)) if probabilities else end

        x = w * place(exact) + (1 - w) * place(plugin)
        return float(sigmoid(x)) if probabilities else x


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
        hint = did_you_mean(name, names())
        raise ValueError(f"Unknown rule {name!r}.{hint} Choices: {', '.join(names())}.")
    cls = Rule.registry[name]
    return cls(**read_options(cls, options))
