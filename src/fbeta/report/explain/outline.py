"""What an explanation says, in order and as plain text: the page and the terminal show the same."""

from __future__ import annotations

import math
from dataclasses import dataclass

from fbeta.report.explain import Explanation
from fbeta.report.numerals import NONE, short


@dataclass(frozen=True)
class Section:
    """A table whose first `left` columns are words and the others numbers; without a head, a list of facts."""

    title: str
    rows: tuple[tuple[str, ...], ...]
    head: tuple[str, ...] = ()
    left: int = 1
    note: str = ""
    remark: str = ""


def sections(e: Explanation) -> list[Section]:
    """The facts, gradient conditions, best cuts of known populations, δ at some operating points, and losses.

    >>> from fbeta.report.explain import explain
    >>> [section.title for section in sections(explain("accuracy", prevalence=0.1))][2:4]
    ['Where to cut calibrated probabilities', 'δ at some operating points']
    """
    return [_facts(e), _conditions(e), _populations(e), _points(e), _losses(e)]


def _facts(e: Explanation) -> Section:
    pole = "none"
    if e.pole is not None:
        pole = f"({short(e.pole[0])}, {short(e.pole[1])}) in ROC space (FPR, TPR)"
    elif e.slope is not None:
        pole = f"at infinity, in the direction of slope {short(e.slope)}"
    rows = (
        ("formula", e.formula or "your own function of (tp, fp, fn, tn)"),
        ("with numbers", e.numbers),
        ("pole", pole),
        ("level lines", e.level_lines),
        ("best rule", f"positive where η = Pr(y=1|x) ≥ δ. {e.rule.text}"),
        ("the cut ½", e.half),
    )
    return Section("", tuple(row for row in rows if row[1]))


def _conditions(e: Explanation) -> Section:
    letters = "q₀ = 1 − TPR, q₁ = FPR, ′ the gradient in the weights"
    if e.kind in ("curved", "one-sided"):
        letters += ", s_t and s_u the slopes of the score in TPR and in 1 − FPR"
    own = e.conditions[0]
    general = f" The first line in general: {own.text}." if own.text != own.numbers else ""
    return Section(
        "Where gradients balance",
        tuple((c.name, c.numbers, short(c.slope, 3)) for c in e.conditions),
        ("for", "condition at a critical point", "dt/du"),
        left=2,
        note=letters,
        remark="dt/du: the slope that each asks of the ROC curve, here at the metric's best point for AUC "
        f"{e.populations[1].auc:.2f}. BCE and MAE are class-balanced.{general}",
    )


def _populations(e: Explanation) -> Section:
    numbers = [(p.separation, p.auc, p.cut, p.best.score, p.half.score, p.lost) for p in e.populations]
    return Section(
        "Where to cut calibrated probabilities",
        tuple(tuple(short(x, 3) for x in row) for row in numbers),
        ("d′", "AUC", "best cut δ*", "score", "score at ½", "lost"),
        note="two normal classes d′ apart",
    )


def _points(e: Explanation) -> Section:
    rows = []
    for p in e.points:
        off = math.nan if p.delta is None else p.delta - 0.5
        half = "right" if abs(off) < 0.005 else "too high" if off < 0 else "too low" if off > 0 else NONE
        rows.append((*(short(x, 3) for x in (p.fpr, p.tpr, p.score, p.delta)), half))
    return Section(
        "δ at some operating points",
        tuple(rows),
        ("FPR", "TPR", "score", "δ", "so ½ is"),
        note="rows with probability δ or more are best called positive",
    )


def _losses(e: Explanation) -> Section:
    rows = tuple((t.loss, t.why if t.possible else f"no: {t.why}") for t in e.training)
    return Section("Losses that train for it", rows if e.trainable else (("none", e.training[0].why),))
