"""A document as data: headings, paragraphs, lists, tables and pictures, which Markdown and HTML are made from."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape


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


def html(block: Block, data: dict[str, str]) -> str:
    """Write a block as HTML; `data` has the address of each picture's file, and the others are left out.

    >>> html(Text("**F_β** < 1, `code`"), {})
    '<p><b>F<sub>β</sub></b> &lt; 1, <code>code</code></p>'
    """
    match block:
        case Heading(text, level):
            return f"<h{level}>{inline(text)}</h{level}>"
        case Text(text):
            return f"<p>{inline(text)}</p>"
        case Bullets(items):
            return "<ul>\n" + "\n".join(f"<li>{inline(item)}</li>" for item in items) + "\n</ul>"
        case DataTable(heading, rows, left):
            head = "".join(_cell("th", text, i < left) for i, text in enumerate(heading))
            body = "\n".join(
                "<tr>" + "".join(_cell("td", text, i < left) for i, text in enumerate(row)) + "</tr>" for row in rows
            )
            return f'<div class="wide"><table>\n<tr>{head}</tr>\n{body}\n</table></div>'
        case Picture(file, title, caption):
            if file not in data:
                return ""
            words = f"<b>{inline(title)}.</b> {inline(caption)}"
            image = f'<img src="{data[file]}" alt="{escape(title)}" loading="lazy">'
            return f"<figure>{image}<figcaption>{words}</figcaption></figure>"


def _cell(tag: str, text: str, left: bool) -> str:
    return f'<{tag} class="{"l" if left else "r"}">{inline(text)}</{tag}>'


def inline(text: str) -> str:
    """Escape a sentence and turn its few marks into HTML; a link to a file beside the document loses its address.

    >>> inline("see [here](a.md) or [there](https://x.org)")
    'see here or <a href="https://x.org">there</a>'
    """
    text = _beta(escape(text, quote=False))
    text = re.sub(r"\[([^]]+)\]\((https?://[^)\s]+)\)", r'<a href="\2">\1</a>', text)
    text = re.sub(r"\[([^]]+)\]\([^)\s]+\)", r"\1", text)
    text = re.sub(r"\*\*(.+?)\*\*", r"<b>\1</b>", text)
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", text)
