"""`fbeta tune`."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fbeta.cli.answers import answering, echo_json, say
from fbeta.cli.parameters import (
    Abstain,
    AsJson,
    Confidence,
    MetricSpec,
    Positive,
    RuleSpec,
    Sheet,
    SubjectTo,
    constraints,
)

if TYPE_CHECKING:
    from fbeta.decisions import Threshold
    from fbeta.metrics import Confusion


def tune(
    scores: Annotated[Path, typer.Argument(metavar="SCORES", help="A table with scores and the truth.")],
    target: Annotated[str, typer.Option(help="The column with the truth.")],
    score: Annotated[
        str,
        typer.Option(
            help="The column with scores: probabilities, logits, or any that are higher for likelier positives."
        ),
    ],
    metric: MetricSpec = "fbeta:beta=1",
    kind: Annotated[
        str | None,
        typer.Option(
            help="What the scores are: probability, logit or score; assumed from their range, and said, if not given."
        ),
    ] = None,
    rule: RuleSpec = "exact",
    subject_to: SubjectTo = None,
    confidence: Confidence = None,
    abstain: Abstain = None,
    budget: Annotated[float | None, typer.Option(help="The most alerts allowed on these rows.")] = None,
    positive: Positive = None,
    prevalence: Annotated[
        float | None, typer.Option(help="Share of positives where the cut will be used, if not that of these rows.")
    ] = None,
    weight: Annotated[str | None, typer.Option(help="The column with a weight per row.")] = None,
    sheet: Sheet = None,
    as_json: AsJson = False,
) -> None:
    """Find the best cut for the scores of any model: what it scores, how sure that is, and what it calls positive."""
    with answering():
        from fbeta.decisions import tune as find
        from fbeta.decisions.inputs import read_kind
        from fbeta.metrics import Confusion
        from fbeta.tables.scored_rows import read_scores

        rows = read_scores(scores, target, score, positive, weight, sheet)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            kind = read_kind(kind, rows.score.min(), rows.score.max(), matters=True)  # for the score at ½, too
            limits = constraints(subject_to, confidence, abstain) | {"budget": budget}
            how: dict[str, Any] = {"kind": kind, "rule": rule, "prevalence": prevalence, **limits}
            cut = find(rows.score, rows.y, metric, rows.weight, **how)
        notes = [*rows.notes, *(str(x.message) for x in said)]
        half = None
        if prevalence is None and cut.kind == "probability":
            half = Confusion.from_predictions((rows.score >= 0.5) * 1.0, rows.y * 1.0, rows.weight)
        if as_json:
            assert cut.metric is not None
            at_half = None if half is None else float(cut.metric(half))
            echo_json(cut.to_dict() | {"at_half": at_half, "positive": rows.positive, "notes": notes})
            return
        say(*notes, *_said(cut, len(rows.y), half))


def _said(cut: Threshold, rows: int, half: Confusion | None) -> list[str]:
    from fbeta import numerals
    from fbeta.metrics import title

    assert cut.metric is not None
    name, interval = title(cut.metric), cut.interval
    sure = near = ""
    if interval is not None:
        low, high = (numerals.cut(x, 4) for x in interval.cut)
        near = f"; cuts from {low} to {high} do about as well"
        sure = f" (95 % interval {numerals.between(*interval.score)})"
    called = f"{numerals.count(cut.n_positive)} of {numerals.count(rows)} rows are called positive"
    score = f"{name} {numerals.fixed(cut.score)}{sure} on these rows"
    lines = [
        f"Cut {numerals.cut(cut.value)} by the rule {cut.rule}: {called}{near}.",
        f"{score}; that they chose the cut is allowed for in the interval.",
    ]
    if cut.counts is not None:
        lines.append(f"{numerals.cells(cut.counts)}.")
    if half is not None:
        lines.append(f"At ½ {name} is {numerals.fixed(float(cut.metric(half)))}.")
    return [*lines, *cut.remarks()]
