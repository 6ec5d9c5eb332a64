"""The sentences of an explanation: formula, gradient condition, best rule. Numbers in, text out."""

import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass

from fbeta.metrics import Anchors, Confusion, Metric
from fbeta.numerals import clean, short
from fbeta.report.explain.population import OperatingPoint, Population, value_or_none

CELLS = ("TP", "FP", "FN", "TN")


@dataclass(frozen=True)
class Condition:
    """What gradients satisfy at a critical point, in letters and numbers; `slope` is the dt/du it asks of the ROC."""

    name: str
    text: str
    numbers: str
    slope: float | None


@dataclass(frozen=True)
class BestRule:
    """Best decision: positive where η ≥ δ. `fit` holds A, B, C of δ = (A + B·M)/(1 + C·M) where δ is such."""

    text: str
    fit: tuple[float, float, float] | None


def times(x: float, digits: int = 4) -> str:
    """Write a factor; one goes without saying."""
    return "" if math.isclose(x, 1, rel_tol=1e-9) else f"{short(x, digits)}·"


def formula(metric: Metric) -> str:
    """The metric's formula, with its parameters filled in where the ratio is linear in the cells."""
    unit = [[float(i == j) for j in range(4)] for i in range(4)]
    probe = (3.0, 5.0, 7.0, 11.0)
    try:
        *columns, whole = [tuple(map(float, metric.ratio(Confusion(*cells)))) for cells in (*unit, probe)]
    except (ArithmeticError, ValueError, TypeError, AttributeError):
        return metric.formula
    parts = []
    for weights, value in zip(zip(*columns, strict=True), whole, strict=True):
        if not math.isclose(sum(map(operator.mul, weights, probe)), value, rel_tol=1e-9):
            return metric.formula
        parts.append(_linear(weights))
    return " / ".join(parts)


def conditions(metric: Metric, anchors: Anchors | None, at: OperatingPoint, prevalence: float) -> tuple[Condition, ...]:
    """The conditions [lee2021] on the gradients of q₀ = 1 − t and q₁ = u of the metric, class-balanced BCE and MAE."""
    c = Confusion.from_rates(at.fpr, at.tpr, prevalence)
    by_t = value_or_none(lambda: metric.slopes(c)[0])
    by_u = value_or_none(lambda: metric.slopes(c)[1])
    slope = value_or_none(lambda: by_u / by_t) if by_t and by_u is not None else None
    if anchors is None:
        text, numbers = "−s_t·q₀′ = s_u·q₁′", f"−{short(by_t)}·q₀′ = {short(by_u)}·q₁′"
    elif anchors.at_infinity:
        text, numbers = "−q₀′ = m·q₁′", f"−q₀′ = {times(anchors.slope)}q₁′"
    else:
        x0, y0 = anchors.negative, anchors.positive
        text = "−q₀′/|1 − q₀ − y₀| = q₁′/|q₁ − x₀|"
        near = f"{short(1 - y0)} − q₀" if y0 <= 0 else f"{_plus(y0 - 1)}q₀"
        far = "q₁" if x0 == 0 else f"({_plus(-x0)}q₁)" if x0 < 0 else f"({short(x0)} − q₁)"
        numbers = f"−q₀′/({near}) = q₁′/{far}"
    bce, mae = "−q₀′/(1 − q₀) = q₁′/(1 − q₁)", "−q₀′ = q₁′"
    return (
        Condition(clean(str(metric)), text, numbers, slope),
        Condition("BCE", bce, bce, at.tpr / (1 - at.fpr) if at.fpr < 1 else None),
        Condition("MAE", mae, mae, 1.0),
    )


def best_rule(points: Sequence[OperatingPoint], prevalence: float) -> BestRule:
    """Read off a handful of operating points how δ follows from the score, if it does [ye2012], [narasimhan2015]."""
    known = [(p.score, p.delta) for p in points if p.score is not None and p.delta is not None]
    fit = _fit(known)
    if fit is None:
        return BestRule("δ = g₀/(g₀ + g₁) at the best operating point; no formula in the score alone.", None)
    a, b, c = fit
    if b == 0:
        return BestRule(_constant(a, prevalence), fit)
    if a == 0 and c == 0 and math.isclose(1 / b, round(1 / b, 4)):
        delta = "M*" if b == 1 else f"M*/{short(1 / b, 6)}"  # 1 + β² of F_β is the familiar number
    else:
        above = f"{_plus(a)}{times(b)}M*" if b > 0 else f"{short(a)} − {times(-b)}M*"
        below = f"1 {'+' if c > 0 else '−'} {times(abs(c))}M*"
        delta = above if c == 0 else f"{above}/({below})" if a == 0 else f"({above})/({below})"
    return BestRule(f"δ = {delta}, where M* is the best achievable score.", fit)


def half(populations: Sequence[Population]) -> str:
    """Where the cut ½ on calibrated probabilities is wrong, and what it costs, in plain words."""
    offs = [p.cut - 0.5 for p in populations]
    if all(abs(off) < 0.005 for off in offs):
        return "½ is the right cut on calibrated probabilities."
    if all(off < 0.005 for off in offs):
        word = "½ is too high a cut: it misses positives worth finding"
    elif all(off > -0.005 for off in offs):
        word = "½ is too low a cut: it accepts too many false positives"
    else:
        word = "½ is too high or too low, depending on the classifier"
    worst = max(populations, key=lambda p: p.lost or 0.0)
    if not worst.lost or worst.lost < 5e-4 * abs(worst.best.score or 0.0):
        return f"{word}, but in the examples below that costs almost nothing."
    return (
        f"{word}. At AUC {worst.auc:.2f} the best cut is {short(worst.cut, 2)}, and ½ scores "
        f"{short(worst.half.score, 3)} instead of {short(worst.best.score, 3)}."
    )


def _constant(delta: float, prevalence: float) -> str:
    if delta == 0:
        return "δ = 0: call everything positive."
    if delta == 1:
        return "δ = 1: call nothing positive."
    if math.isclose(delta, 0.5, rel_tol=1e-6):
        return "δ = ½, at every operating point."
    which = ", the prevalence" if math.isclose(delta, prevalence, rel_tol=1e-6) else ""
    odds = short((1 - delta) / delta)
    return (
        f"δ = 1/(1 + {odds}) = {short(delta)}{which}, at every operating point: a false negative weighs as much as "
        f"{odds} false positives."
    )


def _fit(known: Sequence[tuple[float, float]]) -> tuple[float, float, float] | None:
    """A, B, C of δ = (A + B·M)/(1 + C·M), the simplest that goes through all points; None if none does."""
    if len(known) < 4:
        return None
    known = sorted(known)
    (m1, d1), (m2, d2), (m3, d3) = known[0], known[len(known) // 2], known[-1]
    tries = [(d2, 0.0, 0.0)]
    if m1 < m3:
        b = (d3 - d1) / (m3 - m1)
        tries.append((d1 - b * m1, b, 0.0))
    # δᵢ = A + B·Mᵢ − C·Mᵢδᵢ at three points: subtracting the first leaves two equations in B and C.
    (p, q, r), (s, t, u) = ((m - m1, m1 * d1 - m * d, d - d1) for m, d in ((m2, d2), (m3, d3)))
    det = p * t - q * s
    if det:
        b, c = (r * t - q * u) / det, (p * u - r * s) / det
        tries.append((d1 - b * m1 + c * m1 * d1, b, c))
    for a, b, c in tries:
        if all(math.isclose(d * (1 + c * m), a + b * m, rel_tol=1e-6, abs_tol=1e-12) for m, d in known):
            size = max(abs(d) for _, d in known)
            return _tidy(a, size), _tidy(b), _tidy(c)
    return None


def _tidy(x: float, size: float = 1.0) -> float:
    """Rounding noise removed."""
    return 0.0 if abs(x) < 1e-9 * size else float(f"{x:.9g}")


def _linear(weights: Sequence[float]) -> str:
    if all(w == weights[0] != 0 for w in weights):
        return f"{times(weights[0])}n"
    sign = -1.0 if all(w <= 0 for w in weights) and any(weights) else 1.0
    terms = [f"{times(sign * w)}{cell}" for w, cell in zip(weights, CELLS, strict=True) if w]
    text = " + ".join(terms).replace("+ −", "− ") or "0"
    return f"{'−' if sign < 0 else ''}({text})" if len(terms) > 1 else f"{'−' if sign < 0 else ''}{text}"


def _plus(x: float) -> str:
    return "" if x == 0 else f"{short(x)} + "
