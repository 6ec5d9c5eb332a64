"""Tables inside documents: written between two comments, so that a test can tell whether they are still true."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parents[1] / "docs"


def read(document: str, name: str) -> str:
    """What stands between the comments."""
    text = (DOCS / document).read_text()
    return text.partition(f"<!-- {name}:start -->\n")[2].partition(f"<!-- {name}:end -->")[0].strip()


def hundredths(x: dict[str, Any]) -> str:
    """A mean difference and its interval in hundredths; what rounds to zero has no sign."""
    mean, low, high = (
        f"{100 * value:+.2f}".replace("+0.00", "0.00").replace("-0.00", "0.00").replace("-", "−")
        for value in (x["mean"], *x["interval"])
    )
    return f"{mean} ({low} to {high})"


def table(heading: Sequence[str], rows: Iterable[Iterable[object]]) -> str:
    """A table of Markdown."""
    lines = [heading, ["---"] * len(heading), *([str(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def write(document: str, name: str, block: str) -> None:
    """Replace what stands between the comments."""
    path = DOCS / document
    before, start, rest = path.read_text().partition(f"<!-- {name}:start -->\n")
    _, end, after = rest.partition(f"<!-- {name}:end -->")
    if not (start and end):
        raise ValueError(f"{path} has no place for {name}: it needs <!-- {name}:start --> and <!-- {name}:end -->.")
    path.write_text(f"{before}{start}{block}\n{end}{after}")
