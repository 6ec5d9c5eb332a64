"""How results are shown: pages, pictures and text for the terminal, of a comparison and of a metric (`explain`).

A page is one HTML file that needs no network (`shell`). Its pictures are small SVGs (`chart`): they stay in the file
when it is printed or read without scripts, and their colours follow the page from light to dark.
"""

from typing import TYPE_CHECKING

from fbeta.spelling import on_first_use

if TYPE_CHECKING:
    from fbeta.report.comparison_page import page as page
    from fbeta.report.comparison_page import write as write
    from fbeta.report.comparison_printout import terminal as terminal

__all__ = ["page", "terminal", "write"]
_HOME = {"page": "comparison_page", "terminal": "comparison_printout", "write": "comparison_page"}
__getattr__, __dir__ = on_first_use(__name__, _HOME)
