"""Tables of what the losses reach: final scores, how closely each follows each score, and single precision."""

from __future__ import annotations

from fbeta_reproduction.naming import dataset_name, loss_name, score_name, spread
from fbeta_reproduction.protocol import BETAS
from fbeta_reproduction.results import correlation
from fbeta_reproduction.results.folder import Results
from fbeta_reproduction.results.run_result import RunResult
from fbeta_reproduction.write_up.blocks import Block, DataTable, Heading
from fbeta_reproduction.write_up.cells import (
    NOT_YET,
    accuracy_cell,
    learned_cell,
    of_kind,
    runs_cell,
    score_cell,
    share_cell,
)


def final_scores(results: Results) -> list[Block]:
    """Test scores of every loss, at ½ and at the cut tuned on the validation rows."""
    blocks: list[Block] = []
    for dataset in results.datasets:
        groups = results.of(dataset, "faithful", "beside")
        if not groups:
            continue
        names = tuple(score_name(b) for b in BETAS)
        half = [
            (loss_name(g.run), runs_cell(g), *(score_cell(g, b) for b in BETAS), accuracy_cell(g), share_cell(g))
            for g in groups
        ]
        tuned = [(loss_name(g.run), runs_cell(g), *(score_cell(g, b, tuned=True) for b in BETAS)) for g in groups]
        blocks += [
            Heading(f"{dataset_name(dataset)}, cut at ½", 3),
            DataTable(("loss", "n", *names, "accuracy", "predicted positive"), tuple(half)),
            Heading(f"{dataset_name(dataset)}, cut tuned on validation rows", 3),
            DataTable(("loss", "n", *names), tuple(tuned)),
        ]
    return blocks or [NOT_YET]


def matrices(results: Results) -> list[Block]:
    """Three tables for each data set: how closely each loss follows each score."""
    blocks: list[Block] = []
    for dataset in results.datasets:
        groups = results.of(dataset, "faithful", "beside")
        for name in correlation.CORRELATIONS if groups else ():
            rows = []
            for g in groups:
                cells = [spread(cell, 2) for cell in correlation.table(g, name)]
                rows.append((loss_name(g.run), f"{g.left} of {len(g.results)}", *cells))
            heading = ("loss", "left the plateau", *(score_name(b) for b in BETAS))
            blocks += [Heading(f"{dataset_name(dataset)}: {name}", 3), DataTable(heading, tuple(rows))]
    return blocks or [NOT_YET]


def precision(results: Results) -> list[Block]:
    """Runs in single precision beside those in bfloat16, repeat by repeat where both are there."""
    rows = []
    for g in of_kind(results, "precision"):
        base = results.find(g.run.dataset, g.run.loss, g.run.beta, q=g.run.q)
        if base is None:
            continue
        base = base.until(g.reached)
        finals = {r.run.repeat: _final_f1(r) for r in base.results}
        differences = [_final_f1(r) - finals[r.run.repeat] for r in g.results if r.run.repeat in finals]
        rows.append(
            (
                dataset_name(g.run.dataset),
                f"{loss_name(g.run)}, {g.run.precision}",
                runs_cell(g),
                score_cell(g, 1.0),
                learned_cell(g),
                runs_cell(base),
                score_cell(base, 1.0),
                learned_cell(base),
                spread(differences),
            )
        )
    heading = (
        "data set",
        "loss",
        "n",
        "test F₁ at ½",
        "learned",
        "n in bf16",
        "test F₁ at ½ in bf16",
        "learned in bf16",
        "fp32 − bf16, same repeat",
    )
    return [DataTable(heading, tuple(rows), left=2)] if rows else [NOT_YET]


def _final_f1(r: RunResult) -> float:
    return r.final(r.score("test", 1.0))
