"""A document as data: headings, paragraphs, lists, tables and pictures; and as Markdown. `html_page` is its page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Heading:
    """A heading; level 1 is the title."""

    text: str
    level: int = 2


@dataclass(frozen=True)
class Text:
    """A paragraph; ``**bold**``, `` `code` `` and ``[a link](address)`` as in Markdown."""

    text: str


@dataclass(frozen=True)
class Bullets:
    """A list."""

    items: tuple[str, ...]


@dataclass(frozen=True)
class DataTable:
    """Rows under a heading; the first `left` columns are text."""

    heading: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    left: int = 1


@dataclass(frozen=True)
class Picture:
    """A file in the folder of pictures."""

    file: str
    title: str
    caption: str


Block = Heading | Text | Bullets | DataTable | Picture


def markdown(blocks: Sequence[Block], folder: str = ".") -> str:
    """Write blocks as Markdown; pictures lie in `folder`.

    >>> print(markdown([Heading("F_β"), DataTable(("a", "b"), (("x", "1"),)), Text("Done.")]), end="")
    ## F<sub>β</sub>
    <BLANKLINE>
    | a | b |
    |---|---:|
    | x | 1 |
    <BLANKLINE>
    Done.
    """
    return "\n\n".join(_markdown(block, folder) for block in blocks) + "\n"


def _markdown(block: Block, folder: str) -> str:
    match block:
        case Heading(text, level):
            return f"{'#' * level} {_beta(text)}"
        case Text(text):
            return _beta(text)
        case Bullets(items):
            return "\n".join(f"- {_beta(item)}" for item in items)
        case DataTable(heading, rows, left):
            rule = "|".join("---" if i < left else "---:" for i in range(len(heading)))
            lines = [_row(heading), f"|{rule}|", *(_row(row) for row in rows)]
            return "\n".join(lines)
        case Picture(file, title, caption):
            return f"![{title}]({folder}/{file})\n\n*{_beta(title)}.* {_beta(caption)}"


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(_beta(cell) for cell in cells)} |"


def _beta(text: str) -> str:
    return text.replace("F_β", "F<sub>β</sub>")
