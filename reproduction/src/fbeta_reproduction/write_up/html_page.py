"""The reproduction as one HTML file that needs no network: text, tables and pictures in the shell of every page."""

from __future__ import annotations

import base64
import re
from pathlib import Path

from fbeta.report.shell import Markup, fill, table
from fbeta.report.shell import page as in_shell
from fbeta.writing import write
from fbeta_reproduction.figures import catalogue, draw
from fbeta_reproduction.results.folder import Results
from fbeta_reproduction.write_up.blocks import Block, Bullets, DataTable, Heading, Picture, Text
from fbeta_reproduction.write_up.contents import document

#: What only this page has: contents, much text, and pictures, which stay light on dark paper and legible on a phone.
STYLE = """
nav { column-width: 22rem; font-size: .9rem; margin: .8rem 0; } nav a { display: block; padding: .15rem 0; }
a { color: var(--accent); } sub { line-height: 0; }
main p { margin: .6rem 0; } h3 { font-size: 1rem; margin: 1.4rem 0 .2rem; } .plain { font-size: .85rem; }
.plain td.l + td.l { min-width: min(10rem, 30vw); } .plain td:first-child:has(+ .r) { white-space: nowrap; }
@media (min-width: 36rem) { .plain td:first-child { white-space: nowrap; } }
figure { margin: 1.4rem 0; max-width: 60rem; } figcaption { max-width: 46rem; }
img { display: block; width: 100%; min-width: 38rem; height: auto; padding: .4rem; background: #fff; }
"""


def save(results: Results, path: Path, pictures: Path | None = None) -> None:
    """Write the reproduction as an HTML file; figures come from the PNG files in `pictures`, or are drawn.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(Results(()), Path(folder, "page.html"))
    ...     Path(folder, "page.html").read_text(encoding="utf-8")[:15]
    '<!doctype html>'
    """
    write(path, page(results, pictures).encode())


def page(results: Results, pictures: Path | None = None) -> str:
    """Compose the page; a policy in its head forbids the network.

    >>> "<title>The paper, reproduced</title>" in page(Results(()))
    True
    """
    blocks = document(results)
    images = {item.file: _address(_png(results, item.file, pictures)) for item in catalogue(results)}
    title, *heads = [b for b in blocks if isinstance(b, Heading) and b.level < 3]
    contents = [(_anchor(head), inline(head.text)) for head in heads]
    parts = [html(block, images) for block in blocks if block is not title]
    return in_shell(title.text, fill(_BODY, title=title.text, contents=contents, parts=parts), style=STYLE)


_BODY = """<header><h1>{{ title }}</h1></header>
<nav aria-label="Contents">
{% for anchor, text in contents %}
<a href="#{{ anchor }}">{{ text }}</a>
{% endfor %}
</nav>
<main>
{{ parts | join("\n") }}
</main>"""


def html(block: Block, images: dict[str, str]) -> Markup:
    """Write a block as HTML; `images` has the address of each picture's file, and the others are left out.

    >>> print(html(Text("**F_β** < 1, `code`"), {}))
    <p><b>F<sub>β</sub></b> &lt; 1, <code>code</code></p>
    """
    match block:
        case Heading(text, level):
            return Markup('<h{0} id="{1}">{2}</h{0}>').format(level, _anchor(block), inline(text))
        case Text(text):
            return Markup("<p>{}</p>").format(inline(text))
        case Bullets(items):
            lines = (Markup("<li>{}</li>\n").format(inline(item)) for item in items)
            return Markup("<ul>\n{}</ul>").format(Markup("").join(lines))
        case DataTable(heading, rows, left):
            return table(map(inline, heading), (map(inline, row) for row in rows), left)
        case Picture(file, title, caption) if file in images:
            words = Markup("<b>{}.</b> {}").format(inline(title), inline(caption))
            image = Markup('<img src="{}" alt="{}" loading="lazy">').format(images[file], title)
            frame = Markup('<figure><figcaption>{}</figcaption><div class="scroll">{}</div></figure>')
            return frame.format(words, image)
        case _:
            return Markup("")


def inline(text: str) -> Markup:
    """Escape a sentence and turn its few marks into HTML; a link to a file beside the document loses its address.

    >>> print(inline("see [here](a.md) or [there](https://x.org)"))
    see here or <a href="https://x.org">there</a>
    """
    text = str(Markup.escape(text)).replace("F_β", "F<sub>β</sub>")
    text = re.sub(r"\[([^]]+)\]\((https?://[^)\s]+)\)", r'<a href="\2">\1</a>', text)
    text = re.sub(r"\[([^]]+)\]\([^)\s]+\)", r"\1", text)
    text = re.sub(r"\*\*(.+?)\*\*", r"<b>\1</b>", text)
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", text))


def _anchor(heading: Heading) -> str:
    return re.sub(r"\W+", "-", heading.text.lower()).strip("-")


def _png(results: Results, file: str, pictures: Path | None) -> bytes:
    if pictures is not None and (pictures / file).is_file():
        return (pictures / file).read_bytes()
    from fbeta_reproduction.figures.style import png

    return png(draw(next(item for item in catalogue(results) if item.file == file), results))


def _address(png: bytes) -> str:
    return f"data:image/png;base64,{base64.b64encode(png).decode('ascii')}"
