"""The HTML shell of every page: one file that needs no network, in light and dark, with every string escaped."""

import base64
import hashlib
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

try:
    from jinja2 import Environment, Template
    from jinja2.utils import htmlsafe_json_dumps
    from markupsafe import Markup as Markup
except ImportError as error:
    raise ImportError("A page needs jinja2: pip install 'fbeta[report]'") from error

from fbeta.numerals import clean
from fbeta.writing import replacing


def page(title: str, body: str, *, footer: str = "", style: str = "", script: str = "", data: Any = None) -> str:
    """Compose a page that may fetch nothing and runs `page.js` and `script` alone, which finds `data` as JSON."""
    style, script = resource("page.css") + style, resource("page.js") + script
    policy = f"default-src 'none'; img-src data:; script-src {_hash(script)}; style-src {_hash(style)}"
    packed = None if data is None else htmlsafe_json_dumps(data, separators=(",", ":"), allow_nan=False)
    ours = {"policy": policy, "style": Markup(style), "script": Markup(script), "data": packed}
    return str(fill(resource("page.html"), title=title, body=body, footer=footer, **ours))


def write(text: str, path: str | Path) -> None:
    """Write a page to a file, whole or not at all."""
    with replacing(Path(path)) as part:
        part.write_text(text, encoding="utf-8")


def fill(template: str, **values: Any) -> Markup:
    """Fill a jinja2 template; what is no `Markup` may come from the data, so it is cleaned and escaped."""
    return Markup(_compiled(template).render(values))


def table(head: Iterable[str], rows: Iterable[Iterable[str]], left: int) -> Markup:
    """A table whose first `left` columns are text and the others numbers; a wide one scrolls by itself."""
    return fill(resource("table.html"), rows=[head, *rows], left=left)


def resource(name: str) -> str:
    """The text of a file that lies beside this one."""
    return files("fbeta.report").joinpath(name).read_text(encoding="utf-8")


@cache
def _compiled(template: str) -> Template:
    def shown(x: Any) -> Any:
        return clean(x) if isinstance(x, str) and not isinstance(x, Markup) else x

    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True, finalize=shown)
    return environment.from_string(template)


def _hash(text: str) -> str:
    """What a browser compares before it runs or applies our text; it refuses any other."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
