"""The written reproduction: claim by claim what the paper says, what was measured, and the verdict."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from fbeta import writing
from fbeta.numerals import fixed
from fbeta_reproduction.figures import Item, catalogue
from fbeta_reproduction.naming import dataset_name, loss_name, median, score_name
from fbeta_reproduction.protocol import BETAS
from fbeta_reproduction.results import correlation
from fbeta_reproduction.results.correlation import CORRELATIONS
from fbeta_reproduction.results.folder import Results, read
from fbeta_reproduction.results.run_result import LAST, PLATEAU
from fbeta_reproduction.verdicts import Claim, claims
from fbeta_reproduction.write_up.blocks import Block, Bullets, DataTable, Heading, Picture, Text, markdown
from fbeta_reproduction.write_up.machine_table import machines
from fbeta_reproduction.write_up.path_tables import gradients, label_noise
from fbeta_reproduction.write_up.plateau_table import plateau_tables
from fbeta_reproduction.write_up.protocol_table import protocol_table
from fbeta_reproduction.write_up.reading_answers import answers
from fbeta_reproduction.write_up.score_tables import final_scores, matrices, precision
from fbeta_reproduction.write_up.tangent_table import tangent
from fbeta_reproduction.write_up.variant_tables import readings, remedies


def write(folder: Path, path: Path, pictures: Path | None = None) -> None:
    """Write the document from a results folder; the figures are in `pictures`, or in a folder of that name beside it.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write(Path(folder), Path(folder, "report.md"))
    ...     Path(folder, "report.md").read_text(encoding="utf-8").splitlines()[0]
    '# The paper, reproduced'
    """
    link = Path(os.path.relpath(pictures or path.parent / "pictures", path.parent)).as_posix()
    writing.write(path, markdown(document(read(folder)), link).encode())


def document(results: Results) -> list[Block]:
    """Everything that is said about the results, as blocks.

    >>> [block.text for block in document(Results(())) if isinstance(block, Heading)][:3]
    ['The paper, reproduced', 'What holds', 'Claim 1: The surrogate loss is linearly correlated with F_β for every β']
    """
    items, judged = catalogue(results), claims(results)
    return [
        Heading("The paper, reproduced", 1),
        Text(_INTRODUCTION),
        Heading("What holds"),
        DataTable(("", "the paper’s claim", "verdict"), tuple(_line(c) for c in judged), left=3),
        Text(_HOW_TO_READ),
        *(block for claim in judged for block in _claim(claim, items)),
        Heading("Loss against score in numbers"),
        Text(
            "Training split, epoch by epoch; −1 means that the loss falls exactly as the score rises. Median "
            "[lowest, highest] of the repeats that left the plateau."
        ),
        *_pictures(items, "surrogate", "soft"),
        *matrices(results),
        Heading("Final scores"),
        *_pictures(items, "convergence", "cuts"),
        *final_scores(results),
        Heading("The plateau"),
        *_pictures(items, "survival", "share"),
        *plateau_tables(results),
        Heading("Protocol"),
        Text("What the paper says in its section 5.1, and what was done; where it is silent, the choice is ours."),
        DataTable(("", "paper", "here"), protocol_table(), left=3),
        Heading("Other readings of the text"),
        *readings(results),
        *answers(results),
        Heading("Remedies for the plateau"),
        *remedies(results),
        Heading("The tangent loss without a cut"),
        *tangent(results),
        Heading("Label noise"),
        *label_noise(results),
        Heading("Gradients along training"),
        *gradients(results),
        Heading("Precision"),
        *precision(results),
        Heading("Time and machine"),
        *machines(results),
        Heading("What was not compared"),
        Bullets(_NOT_COMPARED),
    ]


def terminal(results: Results) -> str:
    """Verdicts and the matrices of loss against score, as plain text.

    >>> terminal(Results(())).splitlines()[0]
    '1  The surrogate loss is linearly correlated with F_β for every β: not measured yet'
    """
    lines = [f"{c.number}  {c.title}: {c.summary}" for c in claims(results)]
    for dataset in results.datasets:
        groups = results.of(dataset, "faithful", "beside")
        if groups:
            lines += ["", f"{dataset_name(dataset)}: training loss against training score, median of the repeats"]
            lines.append(" " * 30 + "".join(f"{name:<30}" for name in CORRELATIONS).rstrip())
            lines.append(f"{'loss (left the plateau)':<30}" + _scores().rstrip())
        for g in groups:
            tables = ([median(cell) for cell in correlation.table(g, name)] for name in CORRELATIONS)
            cells = "  ".join("".join(f"{fixed(x, 2):<7}" for x in table) for table in tables)
            lines.append(f"{f'{loss_name(g.run)} ({g.left}/{len(g.results)})':<30}{cells}".rstrip())
    return "\n".join(lines)


def _scores() -> str:
    return "  ".join("".join(f"{score_name(b):<7}" for b in BETAS) for _ in CORRELATIONS)


_INTRODUCTION = (
    "Lee, Yang and Yoo (2021), [A Surrogate Loss Function for Optimization of F_β Score in Binary "
    "Classification with Imbalanced Data](https://arxiv.org/abs/2104.01459), section 5, run again. Every "
    "number and verdict here is written by `fbeta paper figures` from the result files (`reproduction/results`), a "
    "verdict by a rule that is stated with it."
)
_NOT_COMPARED = (
    "**No plotted value of Figures 2 to 7.** The paper gives its results as pictures and sentences, without a table "
    "or a number; no value was read off its curves. What is judged are the sentences; our pictures are drawn alike.",
    "**No run of the authors.** There is no code, seed, log or weight to compare with.",
    "**No other p.** Both data sets have one positive row in ten, as in the paper; claim 10 is about β alone.",
    "**The gradient of F_β itself** does not exist on finitely many rows. As in the paper, the smoothed proportions "
    "stand for the true ones: claim 11 compares with the gradient of macro soft F_β.",
    "**No time.** The paper names its card (an RTX 2080 Ti), but no duration.",
)
_HOW_TO_READ = (
    f"A final score is the mean of a run’s last {LAST} epochs; a cell shows the median over repeats and "
    "[lowest, highest], because runs that stay on the plateau and runs that leave it have no mean worth "
    "showing. Scores are at the cut ½ unless they say otherwise. A run is **on the plateau** while it calls "
    f"(nearly) everything positive: more than {100 * PLATEAU:.0f} % of the training split."
)


def _line(claim: Claim) -> tuple[str, ...]:
    return str(claim.number), claim.title, f"**{claim.summary}**"


def _claim(claim: Claim, items: Sequence[Item]) -> list[Block]:
    found: list[Block] = []
    for f in claim.findings:
        found.append(Text(f"**{dataset_name(f.dataset)}: {f}.**"))
        found += [Bullets(f.sentences)] if f.sentences else []
    return [
        Heading(f"Claim {claim.number}: {claim.title}"),
        Text(f"The paper: {claim.paper}."),
        Text(f"Rule: {claim.criterion}"),
        *found,
        *_pictures(items, *claim.figures),
    ]


def _pictures(items: Sequence[Item], *names: str) -> list[Block]:
    chosen = (item for name in names for item in items if item.name.startswith(name))
    return [Picture(item.file, item.title, item.caption) for item in chosen]
