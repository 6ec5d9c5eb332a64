"""Classes that exclude each other: which one is called, by gains or by probability alone, whichever did better."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from fbeta.decisions.class_scores import (
    cells_of,
    check_size,
    class_shares,
    prices_of,
    read_classes,
    read_probabilities,
    score_table,
    table_of,
)
from fbeta.decisions.classes import Gains, gains_by_rule
from fbeta.decisions.inputs import Vector, read_array
from fbeta.decisions.problem import few_positives
from fbeta.decisions.rules import as_rule
from fbeta.decisions.steps import score_cells
from fbeta.decisions.threshold import Threshold
from fbeta.metrics import Metric, Recall, as_metric, title
from fbeta.numerals import between, fixed

#: Rules are judged on rows that they were not found on, in so many folds, of at most so many rows.
FOLDS, ROWS = 5, 100_000
#: What is asked of a cut cannot be asked of a choice among classes.
NO_CUT = (
    "subject_to, budget, prevalence and abstain are about one cut; among classes that exclude each other there is "
    "none. Pick a class, for example scores[:, 1] and target == 1, or leave them out."
)
#: Draws of the interval, and what each cell of the table counts before any row.
DRAWS, PRIOR = 4000, 0.5


@dataclass(frozen=True, eq=False)
class ClassRule:
    r"""How rows of K classes that exclude each other are decided: the class that is worth most to the metric.

    .. math:: \hat y = \arg\max_j \Big(\sum_i p_i G_{ij} - b_j\Big)

    `gains` hold G and b. Where they were learnt, rows that took no part in it say whether they do better than the most
    probable class; if not, that one is called. `held_out` are the scores there of the most probable class and of what
    decides. `score`: on all rows, so a little too good. `table`: the rows held out, by true and called class. `cuts`:
    what each class would be cut at on its own, and its score among the others.

    Shape: `table` ``(K, K)``.

    >>> p = [[0.6, 0.3, 0.1], [0.5, 0.4, 0.1], [0.2, 0.7, 0.1], [0.5, 0.1, 0.4]] * 20
    >>> rule = ClassRule.fit(p, [0, 1, 1, 2] * 20, "f1", rule="exact")
    >>> rule.score, rule.decide([[0.5, 0.42, 0.08], [0.6, 0.0, 0.4]]).tolist()
    (1.0, [1, 2])
    """

    gains: Gains
    score: float
    held_out: tuple[float, float]
    table: Vector
    metric: Metric | None = None
    average: str = "macro"
    rule: str = "exact"
    cuts: tuple[Threshold, ...] = ()

    @classmethod
    def fit(
        cls,
        probabilities: Any,
        target: Any,
        metric: Any,
        weight: Any = None,
        *,
        rule: Any = "shrunk",
        average: str = "macro",
    ) -> Self:
        """Find gains by a rule, see `gains_by_rule`, and keep what did best on rows held out.

        Shape: `probabilities` ``(n, K)``; `target` ``(n,)``, numbers of classes, or ``(n, K)``; `weight` ``(n,)``.
        """
        goal, p = as_metric(metric), read_probabilities(probabilities)
        if p.ndim != 2 or len(p) == 0:
            raise ValueError(f"probabilities must be (n, K), one column per class; got {p.shape}.")
        y = read_classes(target, p.shape)
        w = None if weight is None else read_array("weight", weight, np.float64)
        if w is not None and (w.shape != (len(p),) or not ((w >= 0) & np.isfinite(w)).all() or not w.any()):
            raise ValueError(f"weight is one number per row, finite, from 0 and not all 0; got shape {w.shape}.")
        class_shares(average, y.sum(0))
        found = gains_by_rule(p, y, goal, w, rule, average)
        tables = _held_out(p, y, goal, w, rule, average, len(found))
        scores = score_table(goal, tables, average)
        best = int(np.argmax(scores[1:]))  # the first of equals is the safest
        gains = found[best]
        table = table_of(gains(p).argmax(1), y.argmax(1), p.shape[1], w)
        return cls(
            gains,
            float(score_table(goal, table, average)),
            (float(scores[0]), float(scores[1:][best])),
            tables[1:][best],
            goal,
            average,
            str(as_rule(rule)),
            _cuts(gains, table, goal, y.sum(0)),
        )

    @cached_property
    def interval(self) -> tuple[float, float]:
        """Where the score lies in the population, with 95 %: from tables drawn as the one of rows held out.

        Each cell counts half a row more, shared by the row of the table. None of the draws knows that the rule was
        chosen by the same rows, nor that on all rows it is a little better.
        """
        if self.metric is None:
            raise ValueError("The metric of this rule is not known: it was a user's function.")
        shape = self.table + PRIOR / len(self.table)
        drawn = np.random.default_rng(0).standard_gamma(shape, (DRAWS, *shape.shape))
        low, high = np.quantile(score_table(self.metric, drawn, self.average), [0.025, 0.975])
        return float(low), float(high)

    def values(self, probabilities: Any) -> Vector:
        """What it is worth to call each class; shape ``(*, K)``."""
        return self.gains(read_probabilities(probabilities, len(self.gains.offset)))

    def decide(self, probabilities: Any) -> Any:
        """The number of the class that is called; an array for arrays, a tensor for tensors.

        Shape: ``(*, K)`` to ``(*)``.
        """
        found: NDArray[np.int64] = self.values(probabilities).argmax(-1)
        if hasattr(probabilities, "detach"):
            return probabilities.new_tensor(found.tolist()).long()
        return found

    @property
    def warning(self) -> str | None:
        """What speaks against trusting it, in words, or None."""
        return " ".join(f"Class {k}: {c.warning}" for k, c in enumerate(self.cuts) if c.warning is not None) or None

    @property
    def plain(self) -> bool:
        """Whether the most probable class is called."""
        return self.gains.gain.ndim == 1 and not np.ptp(self.gains.gain) and not np.ptp(self.gains.offset)

    def explain(self) -> str:
        """What decides, how well on rows held out, and what calling the most probable class scores there.

        >>> p = [[0.6, 0.3, 0.1], [0.2, 0.7, 0.1], [0.4, 0.1, 0.5]] * 20
        >>> print(ClassRule.fit(p, [0, 1, 2] * 20, "f1").explain())
        The most probable class is called: macro F₁ 1.000 on rows held out (95 % interval 0.940 to 1.000).
        """
        flat, here = map(fixed, self.held_out)
        if self.metric is None:
            said = f"{here} on rows held out"
        else:
            name = title(self.metric) if prices_of(self.metric) is not None else f"{self.average} {title(self.metric)}"
            said = f"{name} {here} on rows held out (95 % interval {between(*self.interval)})"
        if self.plain:
            return f"The most probable class is called: {said}."
        return f"The class worth most to the metric is called: {said}; the most probable class has {flat} there."

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "gains": [self.gains.gain.tolist(), self.gains.offset.tolist()],
            "score": self.score,
            "held_out": list(self.held_out),
            "table": self.table.tolist(),
            "metric": None if self.metric is None else str(self.metric),
            "average": self.average,
            "rule": self.rule,
            "cuts": [cut.to_dict() for cut in self.cuts],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read `to_dict` back; ValueError for anything else. A user's function as metric comes back as None."""
        try:
            gains = Gains(*(np.array(x, dtype=np.float64) for x in data["gains"]))
            table = np.array(data["table"], dtype=np.float64)
            cuts = tuple(map(Threshold.from_dict, data["cuts"]))
            flat, here = map(float, data["held_out"])
            score, average, rule = float(data["score"]), str(data["average"]), str(data["rule"])
            spec = data["metric"]
        except (KeyError, TypeError, AttributeError, OverflowError) as error:
            raise ValueError(f"this is no rule for classes ({error!r:.80})") from error
        classes = (len(cuts),)
        if gains.offset.shape != classes or gains.gain.shape not in (classes, classes * 2) or len(cuts) < 2:
            raise ValueError("its gains do not fit its classes")
        if table.shape != classes * 2 or not ((table >= 0) & np.isfinite(table)).all():
            raise ValueError("its table does not fit its classes")
        if not all(np.isfinite(x).all() for x in (gains.gain, gains.offset, [flat, here, score])):
            raise ValueError("its gains or scores are no numbers")
        class_shares(average, table.sum(1))
        try:
            metric = None if spec is None else as_metric(str(spec))
        except ValueError:
            metric = None
        if metric is not None and (prices := prices_of(metric)) is not None:
            check_size(prices, len(cuts))
        return cls(gains, score, (flat, here), table, metric, average, rule, cuts)


def _held_out(p: Vector, y: Vector, metric: Metric, w: Vector | None, rule: Any, average: str, count: int) -> Vector:
    """Tables of rows held out: of the most probable class, and of each of the gains that a rule gives; in that order.

    Shape: ``(1 + count, K, K)``.
    """
    rng = np.random.default_rng(0)
    order = rng.permutation(len(p))[:ROWS]
    label = y.argmax(1)
    order = order[np.argsort(label[order], kind="stable")]  # all folds have rows of all classes
    fold = np.arange(len(order)) % min(FOLDS, len(order))
    tables = np.zeros((1 + count, p.shape[1], p.shape[1]))
    for name in range(min(FOLDS, len(order))):
        held, rest = order[fold == name], order[fold != name]
        found = [Gains.flat(p.shape[1])] * count
        part = None if w is None else w[rest]
        if len(rest) and (part is None or part.any()):
            found = gains_by_rule(p[rest], y[rest], metric, part, rule, average)
        for place, gains in enumerate([Gains.flat(p.shape[1]), *found]):
            tables[place] += table_of(gains(p[held]).argmax(1), label[held], p.shape[1], None if w is None else w[held])
    return tables


def _cuts(gains: Gains, table: Vector, metric: Metric, rows: Vector) -> tuple[Threshold, ...]:
    """What each class would be cut at on its own, and its score among the others; for a cost matrix its recall."""
    goal = Recall() if prices_of(metric) is not None else metric
    with np.errstate(divide="ignore", invalid="ignore"):
        # Where a call depends on all probabilities, no cut of one says anything.
        values = gains.offset / gains.gain if gains.gain.ndim == 1 else np.full(len(table), 1 / len(table))
    absent = "it does not occur among the rows, so nothing is known about calling it."
    said = [few_positives(float(n)) if n else absent for n in rows]
    each = zip(np.nan_to_num(values), score_cells(goal, cells_of(table)), table.sum(0), said, strict=True)
    return tuple(
        Threshold(float(v), float(s), round(float(n)), "probability", metric=goal, warning=w) for v, s, n, w in each
    )
