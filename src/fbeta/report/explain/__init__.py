"""What a metric looks like in ROC space and where to cut by it, as plain data; the modules beside show it."""

import inspect
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal

from fbeta.metrics import Anchors, Confusion, Custom, FBeta, Metric, Pole, as_metric, check_prevalence
from fbeta.numerals import clean, short
from fbeta.report.explain import sentences
from fbeta.report.explain.population import SEPARATIONS, point, population

#: Operating points of the table, from few positives to many.
EXAMPLES = ((0.01, 0.4), (0.05, 0.7), (0.1, 0.8), (0.2, 0.9), (0.5, 0.98))

Kind = Literal["pencil", "parallel", "separable", "curved", "one-sided"]


@dataclass(frozen=True)
class LossVerdict:
    """Whether a loss can train for the metric, and why or why not."""

    loss: str
    possible: bool
    why: str


class Explanation:
    """Everything that `fbeta explain` says about a metric, as plain data.

    `pole` and `anchors` are pairs (x₀, y₀), None where there are none or where they lie at infinity; then
    `slope` is the dt/du of the parallel level lines. `siblings` are the anchors x₀ of F_β for other β.

    >>> e = explain("fbeta:beta=2", prevalence=0.1)
    >>> e.kind, e.rule.fit, Explanation.from_json(e.to_json()) == e
    ('pencil', (0.0, 0.2, 0.0), True)
    """

    def __init__(self, metric: Metric, prevalence: float) -> None:
        anchors, unanchored, pole = None, "", metric.pole(prevalence)
        try:
            anchors = metric.anchors(prevalence)
        except ValueError as error:
            unanchored = clean(str(error))
        numbers, points = sentences.formula(metric), [point(metric, u, t, prevalence) for u, t in EXAMPLES]
        populations = [population(metric, prevalence, d) for d in SEPARATIONS]
        finite = anchors is not None and not anchors.at_infinity
        self.metric, self.prevalence, self.about = metric, prevalence, _about(metric)
        self.formula = metric.formula or numbers
        self.numbers = numbers if fields(metric) and numbers != metric.formula != "" else ""
        self.kind, self.level_lines = _level_lines(metric, prevalence, anchors, pole)
        self.pole = (pole.x, pole.y) if pole is not None and not pole.at_infinity else None
        self.anchors = (anchors.negative, anchors.positive) if anchors is not None and finite else None
        self.slope = anchors.slope if anchors is not None and not finite else None
        self.conditions = sentences.conditions(metric, anchors, populations[1].best, prevalence)
        self.rule = sentences.best_rule(points, prevalence)
        self.half = sentences.half(populations)
        self.points, self.populations = points, populations
        self.training = _training(metric, prevalence, unanchored, self.kind == "parallel")
        betas = (0.5, 1.0, 2.0, 3.0) if isinstance(metric, FBeta) else ()
        self.siblings = [(beta, FBeta(beta).anchors(prevalence).negative) for beta in betas]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Explanation) and vars(self) == vars(other)

    @property
    def spec(self) -> str:
        """The metric's spec, or a function's name; printable characters only."""
        return clean(str(self.metric))

    @property
    def trainable(self) -> bool:
        """Whether any loss takes the metric."""
        return any(t.possible for t in self.training)

    def to_json(self) -> str:
        """Write as JSON, the metric as its spec."""
        return json.dumps(vars(self) | {"metric": self.spec}, indent=1, allow_nan=False, default=asdict)

    @staticmethod
    def from_json(text: str) -> "Explanation":
        """Read back what `to_json` wrote: all follows from the first two; a function as metric has no spec to read."""
        data = json.loads(text)
        return explain(data["metric"], data["prevalence"])


def explain(metric: Metric | str | Callable[[Any, Any, Any, Any], Any], prevalence: float) -> Explanation:
    r"""Explain a metric at a prevalence: formula, pole, gradient conditions, best rule, where ½ is wrong.

    .. math:: -\frac{q_0'}{1 - q_0 - y_0} = \frac{q_1'}{q_1 - x_0}, \qquad \eta(x) \ge \delta^* =
              \frac{g_0}{g_0 + g_1}

    >>> e = explain("fbeta:beta=2", prevalence=0.1)
    >>> e.conditions[0].numbers
    '−q₀′/(1 − q₀) = q₁′/(0.4444 + q₁)'
    >>> e.rule.text
    'δ = M*/5, where M* is the best achievable score.'

    Reference: [lee2021], sections 3 and 4
    """
    return Explanation(as_metric(metric), check_prevalence(prevalence))


def _about(m: Metric) -> str:
    """First line of the docstring of the metric, or of the function it was made from."""
    source = m.function if isinstance(m, Custom) else type(m)
    text = (inspect.getdoc(source) or "").partition("\n")[0]
    written = not text.startswith(f"{type(m).__name__}(")  # dataclasses write a signature where there is none
    return clean(text) if written else ""


def _level_lines(m: Metric, p: float, anchors: Anchors | None, pole: Pole | None) -> tuple[Kind, str]:
    if pole is not None and pole.at_infinity:
        return "parallel", f"parallel straight lines of slope {short(pole.slope)}"
    if pole is not None:
        return "pencil", "straight lines, all through the pole"
    if anchors is not None:
        pair = f"x₀ = {short(anchors.negative)} and y₀ = {short(anchors.positive)}"
        return "separable", f"curved, but the two rates separate, with anchors {pair}"
    slopes = [m.slopes(Confusion.from_rates(u, t, p)) for u, t in EXAMPLES]
    if all(by_u == 0 for _, by_u in slopes):
        return "one-sided", "horizontal: false positives do not count"
    if all(by_t == 0 for by_t, _ in slopes):
        return "one-sided", "vertical: missed positives do not count"
    return "curved", "curved; they do not meet in one point"


def _training(m: Metric, p: float, unanchored: str, parallel: bool) -> tuple[LossVerdict, ...]:
    distance = "the absolute error, as the pole is at infinity" if parallel else "the log distance to the anchors"
    verdicts = (
        LossVerdict("TangentLoss", True, "cross entropy whose class costs follow the metric's slopes"),
        LossVerdict("SoftLoss", True, "the metric itself on soft counts; needs large batches"),
        LossVerdict("SurrogateLoss", not unanchored, unanchored or f"the paper's loss: {distance}"),
    )
    refusal = clean(m.refusal(p) or "")
    return tuple(LossVerdict(v.loss, False, refusal) for v in verdicts) if refusal else verdicts
