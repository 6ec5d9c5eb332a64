"""The reproduction as one HTML file that needs no network: text, tables and pictures."""

from __future__ import annotations

import base64
import re
from html import escape
from pathlib import Path

from fbeta.writing import write
from fbeta_reproduction.figures import catalogue, draw
from fbeta_reproduction.results.folder import Results
from fbeta_reproduction.write_up.blocks import Block, Heading, html, inline
from fbeta_reproduction.write_up.contents import document

STYLE = """
:root { color-scheme: light dark; --ink: #1b1b1b; --soft: #5f5f5f; --paper: #fff; --line: #dcdcdc; --code: #f1f1f1; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #ececec; --soft: #a9a9a9; --paper: #16181b; --line: #3a3d42; --code: #25282c; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 68rem; padding: 1rem; background: var(--paper); color: var(--ink);
  font: 1rem/1.55 system-ui, sans-serif; }
h1 { font-size: 1.6rem; margin: .5rem 0; }
h2 { font-size: 1.25rem; margin: 2.5rem 0 .5rem; border-top: 1px solid var(--line); padding-top: 1.2rem; }
sub { line-height: 0; }
h3 { font-size: 1rem; margin: 1.5rem 0 .25rem; }
p, li { max-width: 52rem; overflow-wrap: anywhere; }
a { color: inherit; }
code { background: var(--code); padding: .05rem .3rem; border-radius: .2rem; font-size: .92em; }
nav { column-width: 22rem; font-size: .92rem; } nav a { display: block; color: var(--soft); padding: .1rem 0; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .88rem; font-variant-numeric: tabular-nums; }
th { color: var(--soft); font-weight: normal; vertical-align: bottom; }
th, td { padding: .25rem .9rem .25rem 0; border-bottom: 1px solid var(--line); }
th.r, td.r { text-align: right; } th.l, td.l { text-align: left; min-width: 5.5rem; } td.r { white-space: nowrap; }
figure { margin: 1.2rem 0; } figcaption { color: var(--soft); font-size: .9rem; max-width: 52rem; }
img { display: block; width: 100%; max-width: 60rem; height: auto; background: #fff; border-radius: .4rem;
  padding: .4rem; }
"""


def save(results: Results, path: Path, pictures: Path | None = None) -> None:
    """Write the reproduction as an HTML file; figures come from the PNG files in `pictures`, or are drawn.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(Results(()), Path(folder, "page.html"))
    ...     Path(folder, "page.html").read_text(encoding="utf-8")[:15]
    '<!doctype html>'
    """
    text = page(results, pictures)
    write(path, text.encode())


def page(results: Results, pictures: Path | None = None) -> str:
    """Compose the page; a policy in its head forbids the network.

    >>> "<title>The paper, reproduced</title>" in page(Results(()))
    True
    """
    blocks = document(results)
    data = {item.file: _address(_png(results, item.file, pictures)) for item in catalogue(results)}
    title = next(b.text for b in blocks if isinstance(b, Heading))
    body = "\n".join(_block(block, data) for block in blocks[1:])
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<title>{escape(title)}</title>
<style>{STYLE}</style>
</head>
<body>
<h1>{inline(title)}</h1>
{_contents(blocks)}
{body}
</body>
</html>
"""


def _block(block: Block, data: dict[str, str]) -> str:
    if isinstance(block, Heading) and block.level == 2:
        return f'<h2 id="{_anchor(block)}">{inline(block.text)}</h2>'
    return html(block, data)


def _contents(blocks: list[Block]) -> str:
    heads = [b for b in blocks if isinstance(b, Heading) and b.level == 2]
    links = "\n".join(f'<a href="#{_anchor(b)}">{inline(b.text)}</a>' for b in heads)
    return f"<nav>\n{links}\n</nav>"


def _anchor(heading: Heading) -> str:
    return re.sub(r"\W+", "-", heading.text.lower()).strip("-")


def _png(results: Results, file: str, pictures: Path | None) -> bytes:
    if pictures is not None and (pictures / file).is_file():
        return (pictures / file).read_bytes()
    from fbeta_reproduction.figures.style import png

    return png(draw(next(item for item in catalogue(results) if item.file == file), results))


def _address(png: bytes) -> str:
    return f"data:image/png;base64,{base64.b64encode(png).decode('ascii')}"
