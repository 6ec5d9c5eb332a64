"""Tables inside documents: written between two comments, so that a test can tell whether they are still true."""

from __future__ import annotations

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


def write(document: str, name: str, block: str) -> None:
    """Replace what stands between the comments."""
    path = DOCS / document
    before, start, rest = path.read_text().partition(f"<!-- {name}:start -->\n")
    _, end, after = rest.partition(f"<!-- {name}:end -->")
    if not (start and end):
        raise ValueError(f"{path} has no place for {name}: it needs <!-- {name}:start --> and <!-- {name}:end -->.")
    path.write_text(f"{before}{start}{block}\n{end}{after}")
