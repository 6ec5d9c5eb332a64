"""The tangent loss at ½ against cross entropy with a tuned cut: what the library's front page says of it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fbeta.comparison.statistics import mean_interval
from fbeta.numerals import fixed, series
from fbeta_reproduction.naming import dataset_name, score_name, spread
from fbeta_reproduction.protocol import BETAS, PAPER
from fbeta_reproduction.results.folder import Repeats, Results
from fbeta_reproduction.write_up.blocks import Block, DataTable, Text
from fbeta_reproduction.write_up.cells import NOT_YET, score_cell


def tangent(results: Results) -> list[Block]:
    """Both by data set and score, the difference in each repeat, and the sentence."""
    rows = []
    for ours, plain, beta, found in _differences(results):
        both = (score_cell(ours, beta), score_cell(plain, beta), score_cell(plain, beta, tuned=True))
        name = dataset_name(ours.run.dataset)
        rows.append((name, score_name(beta), f"{len(found)}", *both, spread(list(found.values()))))
    if not rows:
        return [NOT_YET]
    heading = (
        "data set", "score", "n", "tangent, at ½", "plain BCE, at ½", "plain BCE, cut tuned", "first − last, by repeat",
    )  # fmt: skip
    return [DataTable(heading, tuple(rows), left=2), Text(sentence(results)), Text(_WORDS)]


_WORDS = (
    "Test rows; cuts are tuned on validation rows. Student’s t over the repeats of a data set: the four scores of one "
    "share a network of plain BCE and its split. All repeats are judged on the same test rows and share most of their "
    "training rows, so that an interval is about training again on this data set; two sets say little about a third."
)


def sentence(results: Results) -> str:
    """The difference in one sentence, which the library's README repeats."""
    repeats: dict[str, dict[int, list[float]]] = {}
    for ours, _, _, found in _differences(results):
        for repeat, difference in found.items():
            repeats.setdefault(ours.run.dataset, {}).setdefault(repeat, []).append(difference)
    said = []
    for dataset, blocks in repeats.items():
        over = mean_interval([float(np.mean(block)) for block in blocks.values()], 0.0)
        said.append(f"{fixed(over.mean)} ({fixed(over.low)} to {fixed(over.high)}) on {dataset_name(dataset)}")
    every = [x for blocks in repeats.values() for block in blocks.values() for x in block]
    return (
        "`TangentLoss` decided at ½ minus cross entropy decided at a tuned cut, after 120 epochs on the paper’s image "
        f"sets: in F {series(said)} (95 % intervals), higher in {sum(x > 0 for x in every)} of {len(every)} pairs."
    )


def _differences(results: Results) -> Iterator[tuple[Repeats, Repeats, float, dict[int, float]]]:
    """For each data set and β both groups and their difference by repeat, of runs that are finished."""
    for dataset in PAPER:
        plain = results.find(dataset, "bce")
        for beta in BETAS:
            ours = results.find(dataset, "tangent", beta)
            if plain is None or ours is None:
                continue
            cut = {r.run.repeat: r.final(r.score("test", beta, tuned=True)) for r in plain.results if r.finished}
            found = {
                r.run.repeat: r.final(r.score("test", beta)) - cut[r.run.repeat]
                for r in ours.results
                if r.finished and r.run.repeat in cut
            }
            if found:
                yield ours, plain, beta, found
