"""`fbeta explain`."""

from pathlib import Path
from typing import Annotated

import typer

from fbeta.cli.answers import answering, echo_json_text, say
from fbeta.cli.parameters import AsJson, MetricSpec


def explain(
    metric: MetricSpec = "fbeta:beta=1",
    prevalence: Annotated[float, typer.Option(help="Share of positives in the population.")] = 0.1,
    html: Annotated[
        Path | None, typer.Option(help="Write a page with pictures: one file that needs no network.")
    ] = None,
    png: Annotated[Path | None, typer.Option(help="Write a picture.")] = None,
    as_json: AsJson = False,
) -> None:
    """Explain a metric: formula, pole, gradient conditions, best decision rule, and where the cut ½ is wrong."""
    with answering():
        from fbeta.report import explain as report
        from fbeta.writing import check_outputs

        check_outputs((html, png))
        explanation = report.explain(metric, prevalence)
        if html is not None:
            from fbeta.report import shell
            from fbeta.report.explain.charts import page

            shell.write(page(explanation), html)
        if png is not None:
            from fbeta.report.explain.charts import figure
            from fbeta.report.png import save

            save(figure(explanation), png)
        if as_json:
            echo_json_text(explanation.to_json())
            return
        from fbeta.report.console import show
        from fbeta.report.explain.printout import layout

        show(layout(explanation))
        for path in filter(None, (html, png)):
            say(f"Written: {path}")
