"""The page of an explanation: text, tables and three pictures, one HTML file that needs no network."""

from __future__ import annotations

from fbeta.report import shell
from fbeta.report.explain import Explanation, charts, printout
from fbeta.report.svg import sample, svg


def page(e: Explanation) -> str:
    """Compose the page; every string is escaped."""
    drawn = [charts.roc_space(e), *charts.loss_panels(e)]
    template = shell.resource("explanation.html")
    body = shell.fill(template, e=e, sections=printout.sections(e), charts=drawn, svg=svg, sample=sample)
    return shell.page(f"{e.spec} at prevalence {e.prevalence:g}", body)
