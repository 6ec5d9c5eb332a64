"""An explanation in the terminal."""

from __future__ import annotations

import sys
from io import TextIOWrapper

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from fbeta.explain import Explanation
from fbeta.explain.words import number


def show(explanation: Explanation, console: Console | None = None) -> None:
    """Print an explanation; plain text where the output is no terminal.

    >>> from fbeta.explain import explain
    >>> show(explain("accuracy", prevalence=0.1), Console(width=100))  # doctest: +ELLIPSIS
    accuracy at prevalence 0.1
    Share of right decisions.
    ...
    """
    console = console or Console(highlight=False)
    if console.file is sys.stdout and isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal without δ shows ? rather than a traceback
    console.print(render(explanation))


def render(e: Explanation) -> RenderableType:
    """Lay out an explanation. Every string of the user is a `Text`, so that markup in it stays text.

    >>> from fbeta.explain import explain
    >>> type(render(explain("mcc", prevalence=0.1))).__name__
    'Group'
    """
    fair = e.populations[1]
    where = f"at the metric's best point for AUC {fair.auc:.2f}"
    letters = "q₀ = 1 − TPR, q₁ = FPR, ′ the gradient in the weights"
    if e.kind in ("curved", "one-sided"):
        letters += ", s_t and s_u the climb of the score with TPR and with 1 − FPR"
    return Group(
        Text.assemble((e.spec, "bold"), f" at prevalence {e.prevalence:g}"),
        Text(e.about, "dim"),
        "",
        _facts(e),
        "",
        _heading("Where gradients balance", letters),
        _conditions(e),
        _note(f"dt/du: the slope each asks of the ROC curve, here {where}. BCE and MAE are class-balanced."),
        "",
        _heading("Where to cut calibrated probabilities", "two normal classes d′ apart"),
        _populations(e),
        "",
        _heading("δ at some operating points", "a row is worth calling positive from δ on"),
        _points(e),
        "",
        _heading("Losses that train for it", ""),
        _training(e),
    )


def _heading(title: str, note: str) -> Text:
    return Text.assemble((title, "bold"), (f"  {note}" if note else "", "dim"))


def _note(text: str) -> RenderableType:
    return Padding(Text(text, "dim"), (0, 0, 0, 2), expand=False)


def _table(*columns: str) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", pad_edge=False)
    for i, column in enumerate(columns):
        table.add_column(column, justify="left" if i == 0 else "right")
    return table


def _indented(table: Table) -> RenderableType:
    return Padding(table, (0, 0, 0, 2), expand=False)


def _facts(e: Explanation) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold", no_wrap=True)
    table.add_column()
    table.add_row("formula", Text(e.formula or "your own function of (tp, fp, fn, tn)"))
    if e.numbers:
        table.add_row("", Text(f"= {e.numbers}"))
    table.add_row("pole", Text(e.pole_text))
    table.add_row("level lines", Text(e.level_lines))
    table.add_row("best rule", Text(f"positive where η = Pr(y=1|x) ≥ δ. {e.rule.text}"))
    table.add_row("the cut ½", Text(e.half))
    return table


def _conditions(e: Explanation) -> RenderableType:
    table = _table("for", "dt/du", "condition at a critical point")
    table.columns[2].justify = "left"
    for c in e.conditions:
        table.add_row(Text(c.name), number(c.slope, 3), Text(c.numbers))
    own = e.conditions[0]
    if own.text != own.numbers:
        table.add_row("", "", Text(f"first line in general: {own.text}", "dim"))
    return _indented(table)


def _populations(e: Explanation) -> RenderableType:
    table = _table("d′", "AUC", "best cut δ*", "score", "score at ½", "lost")
    for p in e.populations:
        scores = (number(x, 3) for x in (p.best.score, p.half.score, p.lost))
        table.add_row(f"{p.separation:g}", f"{p.auc:.2f}", number(p.cut, 3), *scores)
    return _indented(table)


def _points(e: Explanation) -> RenderableType:
    table = _table("FPR", "TPR", "score", "δ", "so ½ is")
    for p in e.points:
        verdict = "–" if p.delta is None else verdict_on_half(p.delta)
        table.add_row(f"{p.fpr:g}", f"{p.tpr:g}", number(p.score, 3), number(p.delta, 3), verdict)
    return _indented(table)


def verdict_on_half(delta: float) -> str:
    """Compare the usual cut with δ.

    >>> verdict_on_half(0.1), verdict_on_half(0.5)
    ('too high', 'right')
    """
    return "right" if abs(delta - 0.5) < 0.005 else "too high" if delta < 0.5 else "too low"


def _training(e: Explanation) -> RenderableType:
    if not e.trainable:
        return _note(f"none: {e.training[0].why}")
    table = Table.grid(padding=(0, 2))
    for t in e.training:
        table.add_row(
            Text(t.loss, "green" if t.possible else "red"), Text(f"{'' if t.possible else 'no: '}{t.why}")
        )
    return _indented(table)
