"""An explanation in the terminal."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table

from fbeta.report.console import heading, indented, plain, table
from fbeta.report.explain import Explanation
from fbeta.report.explain.outline import Section, sections


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
