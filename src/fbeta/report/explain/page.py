"""The page of an explanation: text, tables and three pictures, one HTML file that needs no network."""

from __future__ import annotations

from fbeta.report import shell
from fbeta.report.explain import Explanation, charts, outline
from fbeta.report.svg import sample, svg


def page(e: Explanation) -> str:
    """Compose the page; every string is escaped."""
    body = shell.fill(
        shell.resource("explanation.html"),
        e=e,
        sections=outline.sections(e),
        charts=[charts.roc_space(e), *charts.loss_panels(e)],
        svg=svg,
        sample=sample,
    )
    return shell.page(f"{e.spec} at prevalence {e.prevalence:g}", body)
