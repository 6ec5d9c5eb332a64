"""Cells that several tables have: medians over repeats with their range, and counts of runs."""

from __future__ import annotations

from fbeta_reproduction.naming import spread
from fbeta_reproduction.protocol import Kind
from fbeta_reproduction.results.folder import Repeats, Results
from fbeta_reproduction.results.run_result import RunResult
from fbeta_reproduction.write_up.blocks import Text

NOT_YET = Text("Not run yet.")


def of_kind(results: Results, kind: Kind) -> list[Repeats]:
    """The groups of one kind, data set by data set."""
    return [g for dataset in results.datasets for g in results.of(dataset, kind)]


def runs_cell(g: Repeats) -> str:
    """How many runs there are, and how far they are if not finished."""
    short = "" if all(r.finished for r in g.results) else f" (epoch {g.reached} of {g.run.epochs})"
    return f"{len(g.results)}{short}"


def score_cell(g: Repeats, beta: float, *, tuned: bool = False) -> str:
    """Final F_β on test rows, at ½ or at the cut tuned on validation rows."""
    return spread(g.scores("test", beta, tuned=tuned))


def accuracy_cell(g: Repeats) -> str:
    """Final accuracy on test rows."""
    return spread(g.finals(RunResult.accuracy))


def share_cell(g: Repeats) -> str:
    """Final share of test rows predicted positive."""
    return spread(g.finals(lambda r: r.share("test")))


def learned_cell(g: Repeats) -> str:
    """How many runs learned something."""
    return f"{g.learned} of {len(g.results)}"


def nan_cell(g: Repeats) -> str:
    """How many runs went NaN, and from which epoch on."""
    since = g.nan_epochs
    return f"{len(since)} of {len(g.results)}, from epoch {min(since)}" if since else "–"
