"""An explanation as one HTML file that needs no network: text, tables and three pictures to hover over."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

try:
    import plotly.graph_objects as go
    from plotly.offline import get_plotlyjs
except ImportError as error:
    raise ImportError("A page needs plotly: pip install 'fbeta[plot]'") from error

from fbeta.explain import Explanation
from fbeta.explain.shapes import (
    BLUE,
    ORANGE,
    VERMILION,
    Curve,
    exits,
    figure_1,
    is_near,
    levels,
    roc,
    surface,
    title,
    top_of,
    view,
)
from fbeta.explain.terminal import verdict_on_half
from fbeta.explain.words import number
from fbeta.writing import replacing

COLOURS = {"bce": BLUE, "mae": ORANGE, "own": VERMILION, "sibling": "#999999"}
GREY = "#8a8a8a"  # legible on white and on black

STYLE = """
:root { color-scheme: light dark; --ink: #1b1b1b; --soft: #5f5f5f; --paper: #fff; --line: #dcdcdc; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #ececec; --soft: #a9a9a9; --paper: #16181b; --line: #3a3d42; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 72rem; padding: 1rem; background: var(--paper); color: var(--ink);
  font: 1rem/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5rem; margin: .5rem 0 0; overflow-wrap: anywhere; }
h2 { font-size: 1.1rem; margin: 2rem 0 .25rem; }
p, dd { overflow-wrap: anywhere; }
.soft, th { color: var(--soft); font-weight: normal; }
.soft { margin: 0 0 .5rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .3rem 1rem; }
dt { color: var(--soft); } dd { margin: 0; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; }
th, td { text-align: right; padding: .2rem 1.2rem .2rem 0; border-bottom: 1px solid var(--line); white-space: nowrap; }
th.l, td.l { text-align: left; }
.two { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 26rem), 1fr)); gap: 0 1.5rem; }
.plot { width: 100%; min-width: 0; height: 22rem; } .plot.tall { height: 36rem; max-width: 52rem; }
@media (max-width: 40rem) { .plot.tall { height: 27rem; } dl { grid-template-columns: 1fr; gap: 0; }
  dd { margin-bottom: .5rem; } th, td { padding-right: .6rem; font-size: .92rem; } }
.js-plotly-plot .infolayer text, .js-plotly-plot .xaxislayer-above text, .js-plotly-plot .yaxislayer-above text
  { fill: var(--ink) !important; }
"""


def save(e: Explanation, path: Path) -> None:
    """Write an explanation as an HTML file.

    >>> import tempfile
    >>> from fbeta.explain import explain
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(explain("mcc", prevalence=0.1), Path(folder, "mcc.html"))
    ...     Path(folder, "mcc.html").read_text(encoding="utf-8")[:15]
    '<!doctype html>'
    """
    with replacing(path) as part, part.open("w", encoding="utf-8") as file:
        file.write(page(e))


def page(e: Explanation) -> str:
    """Compose the page. Every string is escaped, and a policy in the head forbids the network.

    >>> from fbeta.explain import explain
    >>> "<title>mcc at prevalence 0.1</title>" in page(explain("mcc", prevalence=0.1))
    True
    """
    head = f"{escape(e.spec)} at prevalence {e.prevalence:g}"
    a, b = panels = figure_1(e)
    top = top_of(panels)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'unsafe-inline'; \
style-src 'unsafe-inline'; img-src data: blob:">
<title>{head}</title>
<style>{STYLE}</style>
<script>{get_plotlyjs()}</script>
</head>
<body>
<h1>{head}</h1>
<p class="soft">{escape(e.about)}</p>
{_facts(e)}
<h2>{escape(title(e))}</h2>
<p class="soft">Blue: ROC curves of two normal classes. Touch or hover for the score at a point.</p>
{_plot(_space(e), "plot tall")}
<h2>What each loss makes of the two kinds of error</h2>
<p class="soft">Class-balanced means, shifted to be 0 without errors (the paper’s Figure 1).{_own(e)}</p>
<div class="two">
{_plot(_losses(a, "share of positives missed", top), "plot")}
{_plot(_losses(b, "share of negatives flagged", top), "plot")}
</div>
<h2>Where gradients balance</h2>
<p class="soft">q₀ = 1 − TPR, q₁ = FPR, ′ the gradient in the weights. dt/du: the slope each asks of the ROC curve,
here at the metric’s best point for AUC {e.populations[1].auc:.2f}. BCE and MAE are class-balanced.</p>
{_conditions(e)}
<div class="two">
<div><h2>Where to cut calibrated probabilities</h2>{_populations(e)}</div>
<div><h2>δ at some operating points</h2>{_points(e)}</div>
</div>
<h2>Losses that train for it</h2>
{_training(e)}
</body>
</html>
"""


def _own(e: Explanation) -> str:
    if not e.trainable:
        return " No loss trains for this metric."
    tangent = e.anchors is None and e.slope is None
    return " There is no surrogate; the tangent loss is drawn at the metric’s best point." if tangent else ""


def _table(heading: Iterable[str], rows: Iterable[Iterable[str]], left: tuple[int, ...] = (0,)) -> str:
    def cells(tag: str, row: Iterable[str]) -> str:
        sides = ("l" if i in left else "r" for i in range(99))
        pairs = zip(row, sides, strict=False)
        return "".join(f'<{tag} class="{side}">{escape(text)}</{tag}>' for text, side in pairs)

    body = "\n".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    return f'<div class="wide"><table>\n<tr>{cells("th", heading)}</tr>\n{body}\n</table></div>'


def _facts(e: Explanation) -> str:
    facts = [("formula", e.formula or "your own function of (tp, fp, fn, tn)")]
    facts += [("with numbers", e.numbers)] if e.numbers else []
    facts += [
        ("pole", e.pole_text),
        ("level lines", e.level_lines),
        ("best rule", f"positive where η = Pr(y=1|x) ≥ δ. {e.rule.text}"),
        ("the cut ½", e.half),
    ]
    return "<dl>\n" + "\n".join(f"<dt>{name}</dt><dd>{escape(text)}</dd>" for name, text in facts) + "\n</dl>"


def _conditions(e: Explanation) -> str:
    rows = [(c.name, c.numbers, number(c.slope, 3)) for c in e.conditions]
    general = e.conditions[0].text
    return _table(("for", "condition at a critical point", "dt/du"), rows, left=(0, 1)) + (
        f'<p class="soft">The first line in general: {escape(general)}</p>'
    )


def _populations(e: Explanation) -> str:
    rows = [
        (f"{p.auc:.2f}", *(number(x, 3) for x in (p.cut, p.best.score, p.half.score, p.lost)))
        for p in e.populations
    ]
    return _table(("AUC", "best cut δ*", "score", "score at ½", "lost"), rows)


def _points(e: Explanation) -> str:
    rows = [
        (
            f"{p.fpr:g}",
            f"{p.tpr:g}",
            number(p.score, 3),
            number(p.delta, 3),
            "–" if p.delta is None else verdict_on_half(p.delta),
        )
        for p in e.points
    ]
    return _table(("FPR", "TPR", "score", "δ", "so ½ is"), rows)


def _training(e: Explanation) -> str:
    if not e.trainable:
        return f"<p>None. {escape(e.training[0].why)}</p>"
    lines = (f"<dt>{t.loss}</dt><dd>{'' if t.possible else 'no: '}{escape(t.why)}</dd>" for t in e.training)
    return f"<dl>{''.join(lines)}</dl>"


def _plot(figure: Any, kind: str) -> str:
    html: str = figure.to_html(
        full_html=False,
        include_plotlyjs=False,
        default_width="100%",
        default_height="100%",
        config={"responsive": True, "displaylogo": False, "displayModeBar": False, "scrollZoom": False},
    )
    return f'<div class="{kind}">{html}</div>'


def _figure(**layout: Any) -> Any:
    axis = {"gridcolor": "rgba(138,138,138,.25)", "zeroline": False, "linecolor": GREY, "fixedrange": True}
    return go.Figure(
        layout={
            "template": "none",
            "paper_bgcolor": "rgba(0,0,0,0)",
            "plot_bgcolor": "rgba(0,0,0,0)",
            "font": {"family": "system-ui, sans-serif", "size": 13, "color": GREY},
            "margin": {"l": 56, "r": 40, "t": 24, "b": 48},
            "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
            "hoverlabel": {"bgcolor": "#222", "font": {"color": "#fff"}},
            "xaxis": axis | layout.pop("xaxis"),
            "yaxis": axis | {"automargin": True} | layout.pop("yaxis"),
        }
        | layout
    )


def _losses(curves: list[Curve], rate: str, top: float) -> Any:
    figure = _figure(
        xaxis={"title": {"text": rate}, "range": [0, 1], "tickvals": [0, 0.25, 0.5, 0.75, 1]},
        yaxis={"title": {"text": "loss", "standoff": 12}, "range": [0, top]},
    )
    widths = {"bce": 5, "mae": 2.5, "own": 2.5, "sibling": 1.2}
    for c in curves:
        figure.add_scatter(
            x=c.x.round(4),
            y=c.y.round(4),
            name=c.label,
            mode="lines",
            line={"color": COLOURS[c.role], "width": widths[c.role], "simplify": False},
            hovertemplate="q = %{x:.2f}: %{y:.3f}",
            showlegend=c.role != "sibling",
        )
        at = np.flatnonzero(c.y <= top)[-1]
        if c.role == "sibling" and c.x[at] > 0.15:
            ends = (
                {"xanchor": "right", "yanchor": "bottom"}
                if c.x[at] > 0.99
                else {"xanchor": "left", "yanchor": "top"}
            )
            figure.add_annotation(
                x=c.x[at], y=c.y[at], text=c.label, showarrow=False, font={"size": 11}, **ends
            )
    return figure


def _space(e: Explanation) -> Any:
    left, right, bottom, top = view(e)
    ticks = {"tickvals": [0, 0.5, 1]}
    figure = _figure(
        xaxis={"title": {"text": "false positive rate u"}, "range": [left, right]} | ticks,
        yaxis={"title": {"text": "true positive rate t", "standoff": 12}, "range": [bottom, top]} | ticks,
    )
    grid = np.linspace(0, 1, 101)
    u, t = np.meshgrid(grid, grid)
    score = surface(e.metric, u, t, e.prevalence)
    figure.add_heatmap(
        x=grid.round(2),
        y=grid.round(2),
        z=[[None if not np.isfinite(x) else float(f"{x:.4g}") for x in row] for row in score],
        colorscale=[[0, "rgba(138,138,138,0)"], [1, "rgba(138,138,138,.5)"]],
        showscale=False,
        hovertemplate="u = %{x:.2f}, t = %{y:.2f}<br>score %{z:.4g}<extra></extra>",
    )
    _draw_levels(figure, e)
    for p, width in zip(e.populations, (1.3, 2.2, 3.2), strict=True):
        x, y = roc(p.separation)
        line = {"color": BLUE, "width": width, "simplify": False}
        name = f"AUC {p.auc:.2f}"
        figure.add_scatter(x=x.round(4), y=y.round(4), mode="lines", name=name, line=line, hoverinfo="skip")
    for which, name, symbol, colour in (
        ("half", "cut at ½", "circle", ORANGE),
        ("best", "best cut", "diamond", VERMILION),
    ):
        at = [getattr(p, which) for p in e.populations]
        cuts = [number(0.5 if which == "half" else p.cut, 3) for p in e.populations]
        text = [
            f"{name} ({cut}), AUC {p.auc:.2f}<br>score {number(x.score, 3)}"
            for x, cut, p in zip(at, cuts, e.populations, strict=True)
        ]
        figure.add_scatter(
            x=[x.fpr for x in at],
            y=[x.tpr for x in at],
            mode="markers",
            name=name,
            text=text,
            hovertemplate="%{text}<extra></extra>",
            marker={"symbol": symbol, "size": 12, "color": colour, "line": {"color": "white", "width": 1}},
            cliponaxis=False,
        )
    return figure


def _draw_levels(figure: Any, e: Explanation) -> None:
    thin = {"mode": "lines", "hoverinfo": "skip", "showlegend": False}
    lines = levels(e)
    seen = e.pole is not None and is_near(e.pole)
    for line in lines:
        figure.add_scatter(x=line.x, y=line.y, line={"color": GREY, "width": 1}, **thin)
        if e.pole is not None and seen:
            start = 0 if e.pole[0] <= 0 else -1
            ray = {"color": GREY, "width": 1, "dash": "dot"}
            figure.add_scatter(x=[e.pole[0], line.x[start]], y=[e.pole[1], line.y[start]], line=ray, **thin)
    for row, side in zip(exits(lines), ({"yanchor": "bottom"}, {"xanchor": "left"}), strict=True):
        for _, line in row:
            at = {"x": line.x[-1], "y": line.y[-1]} | side
            figure.add_annotation(text=number(line.score, 3), showarrow=False, font={"size": 11}, **at)
    if e.pole is not None and seen:
        x, y = e.pole
        marker = {"color": "#fff", "size": 11, "line": {"color": "#000", "width": 3}}
        where = f"pole ({number(x, 3)}, {number(y, 3)})"
        figure.add_scatter(
            x=[x], y=[y], mode="markers", marker=marker, hovertext=where, hoverinfo="text", showlegend=False
        )
        figure.add_annotation(
            x=x,
            y=y,
            text=f"<b>{where}</b>",
            showarrow=False,
            yshift=-18 if x < 0.5 else 18,
            xanchor="left" if x < 0.5 else "right",
        )
