"""What an explanation says, in order and as plain text, and how the terminal shows it; the page says the same."""

from typing import NamedTuple

from rich.console import Group, RenderableType
from rich.table import Table

from fbeta.numerals import NONE, short
from fbeta.report.console import heading, indented, plain, table
from fbeta.report.explain import Explanation
from fbeta.report.explain.population import OperatingPoint


class Section(NamedTuple):
    """A table whose first `left` columns are words and the others numbers; without a head, a list of facts."""

    title: str
    rows: tuple[tuple[str, ...], ...]
    head: tuple[str, ...] = ()
    left: int = 1
    note: str = ""
    remark: str = ""


def sections(e: Explanation) -> list[Section]:
    """The facts, gradient conditions, best cuts of known populations, δ at some operating points, and losses."""
    facts = (
        ("formula", e.formula or "your own function of (tp, fp, fn, tn)"),
        ("with numbers", e.numbers),
        ("pole", _pole(e)),
        ("level lines", e.level_lines),
        ("best rule", f"positive where η = Pr(y=1|x) ≥ δ. {e.rule.text}"),
        ("the cut ½", e.half),
    )
    letters = "q₀ = 1 − TPR, q₁ = FPR, ′ the gradient in the weights"
    if e.kind in ("curved", "one-sided"):
        letters += ", s_t and s_u the slopes of the score in TPR and in 1 − FPR"
    own = e.conditions[0]
    general = f" The first line in general: {own.text}." if own.text != own.numbers else ""
    cuts = [(p.separation, p.auc, p.cut, p.best.score, p.half.score, p.lost) for p in e.populations]
    losses = tuple((t.loss, t.why if t.possible else f"no: {t.why}") for t in e.training)
    return [
        Section("", tuple(fact for fact in facts if fact[1])),
        Section(
            "Where gradients balance",
            tuple((c.name, c.numbers, short(c.slope, 3)) for c in e.conditions),
            ("for", "condition at a critical point", "dt/du"),
            left=2,
            note=letters,
            remark="dt/du: the slope that each asks of the ROC curve, here at the metric's best point for AUC "
            f"{e.populations[1].auc:.2f}. BCE and MAE are class-balanced.{general}",
        ),
        Section(
            "Where to cut calibrated probabilities",
            tuple(tuple(short(x, 3) for x in row) for row in cuts),
            ("d′", "AUC", "best cut δ*", "score", "score at ½", "lost"),
            note="two normal classes d′ apart",
        ),
        Section(
            "δ at some operating points",
            tuple((*(short(x, 3) for x in (p.fpr, p.tpr, p.score, p.delta)), _half(p)) for p in e.points),
            ("FPR", "TPR", "score", "δ", "so ½ is"),
            note="rows with probability δ or more are best called positive",
        ),
        Section("Losses that train for it", losses if e.trainable else (("none", e.training[0].why),)),
    ]


def layout(e: Explanation) -> RenderableType:
    """Lay out an explanation for 80 columns or more."""
    parts: list[RenderableType] = [heading(e.spec, f"at prevalence {e.prevalence:g}"), plain(e.about, "dim")]
    for section in sections(e):
        if section.title:
            parts += ["", heading(section.title, section.note), indented(_table(section))]
        else:
            parts += ["", _table(section)]
        if section.remark:
            parts.append(indented(plain(section.remark, "dim")))
    return Group(*parts)


def _table(section: Section) -> Table:
    made = table(header=bool(section.head))
    for i, head in enumerate(section.head):
        made.add_column(head, justify="left" if i < section.left else "right")
    if not section.head:
        made.add_column(style="bold")
    for row in section.rows:
        made.add_row(*map(plain, row))
    return made


def _pole(e: Explanation) -> str:
    if e.pole is not None:
        return f"({short(e.pole[0])}, {short(e.pole[1])}) in ROC space (FPR, TPR)"
    return "none" if e.slope is None else f"at infinity, in the direction of slope {short(e.slope)}"


def _half(p: OperatingPoint) -> str:
    if p.delta is None:
        return NONE
    return "right" if abs(p.delta - 0.5) < 0.005 else "too high" if p.delta < 0.5 else "too low"
