"""What `make demo` shows, kept for the README: the comparison, its table, and pictures of its page and of `explain`'s.

- ``python examples/demo.py --write`` compares, and rewrites docs/compare.json, the README's block, and the
  pictures of the page;
- ``--render`` writes the block and the pictures again, from docs/compare.json.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from digits import ROOT, marks
from rich.console import Console

from fbeta import report
from fbeta.comparison.result import Comparison
from fbeta.report import shell
from fbeta.report.explain import charts, explain

KEPT = ROOT / "docs" / "compare.json"
FIRST, CUT, EXPLAINED = (ROOT / "docs" / f"{name}.png" for name in ("compare", "compare-cut", "explain"))
README = ROOT / "README.md"
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]


def block(found: Comparison) -> str:
    """The table as a terminal of 100 columns shows it."""
    console = Console(width=100, record=True, file=sys.stderr, color_system=None)
    console.print(report.terminal(found))
    text = "\n".join(line.rstrip() for line in console.export_text().strip().splitlines())
    return f"```\n{text}\n```\n\n{found.seconds:.0f} seconds on {found.machine}."


def photograph(found: Comparison) -> None:
    """The first screen of the page, the part where the cut moves, and the page of `explain`, in a real browser."""
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as p:
        compared, explained = Path(folder, "compare.html"), Path(folder, "explain.html")
        report.write(found, compared)
        shell.write(charts.page(explain("fbeta:beta=2", prevalence=0.1)), explained)
        browser = p.chromium.launch(executable_path=chromium, args=FLAGS)
        view = browser.new_page(viewport={"width": 1200, "height": 860}, color_scheme="light")
        view.goto(compared.as_uri())
        view.screenshot(path=FIRST)
        view.set_viewport_size({"width": 1200, "height": 1500})
        view.locator("#move").screenshot(path=CUT)
        view.goto(explained.as_uri())
        view.screenshot(path=EXPLAINED)
        browser.close()


def write(found: Comparison) -> None:
    """Put the table and the pictures where the README shows them."""
    start, end = marks("compare")
    before, rest = README.read_text(encoding="utf-8").split(start)
    after = rest.split(end)[1]
    README.write_text(f"{before}{start}\n{block(found)}\n{end}{after}", encoding="utf-8")
    photograph(found)


def main() -> None:
    """Compare anew, or take what is kept."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    chosen = parser.add_mutually_exclusive_group(required=True)
    chosen.add_argument("--write", action="store_true", help="compare, and keep what is found")
    chosen.add_argument("--render", action="store_true", help="show what is kept")
    if parser.parse_args().write:
        # A folder of its own: parts that an earlier demo finished would make it look too fast.
        with tempfile.TemporaryDirectory() as folder:
            fbeta = Path(sys.executable).parent / "fbeta"
            command = [str(fbeta), "compare", "--results", f"{folder}/parts", "--json"]
            KEPT.write_bytes(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    write(Comparison.from_json(KEPT.read_text(encoding="utf-8")))


if __name__ == "__main__":
    main()
