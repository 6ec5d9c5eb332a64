"""The steps from what people do today to what was chosen, and what each adds: the cut, the loss, the model."""

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from fbeta.comparison.choosing import chosen, simplest_first
from fbeta.comparison.inference import ByRows, Calls, Inference
from fbeta.comparison.methods import Method, plain_of
from fbeta.comparison.result import Difference, Step
from fbeta.comparison.verdict import judged_together


class Learned(NamedTuple):
    """One split's rows to choose by, held out while methods learned: as each decides them with its cut, and at ½."""

    inference: ByRows
    decided: Mapping[Method, Calls]
    at_half: Mapping[Method, Calls]


def defaults(learned: Sequence[Learned], methods: Sequence[Method], base: Method) -> list[Method]:
    """What people do today, in each split: of the models with plain cross entropy the one that is best at ½.

    As always it is chosen by rows held out, and the baseline is kept where none is better by one standard error.
    """
    order = simplest_first(plain_of(methods), base)
    return [chosen(rows.inference, {m: rows.at_half[m] for m in order}, order) for rows in learned]


def best_losses(learned: Sequence[Learned], methods: Sequence[Method], today: Sequence[Method]) -> list[Method]:
    """The loss to take, in each split, without another model."""
    found = []
    for rows, start in zip(learned, today, strict=True):
        order = simplest_first([m for m in methods if m.model == start.model], start)
        found.append(chosen(rows.inference, {m: rows.decided[m] for m in order}, order))
    return found


def steps(inference: Inference, path: Sequence[tuple[str, Sequence[Method], Calls]]) -> tuple[Step, ...]:
    """Each step with what it adds to the one before it on the same test rows; all of them are tested together.

    `path`: what changes, and in each split the method and its decisions of the test rows.
    """
    calls = [decided for _, _, decided in path]
    apart = [inference.difference(after, before) for before, after in itertools.pairwise(calls)]
    gains: list[Difference | None] = [None, *judged_together(apart)]
    found = []
    for (what, picks, decided), gain in zip(path, gains, strict=True):
        names = tuple(method.name for method in picks)
        ((method, _),) = Counter(names).most_common(1)
        positive = np.concatenate([inference.rows.y[tested] for tested in inference.rows.tested]) == 1
        called = np.concatenate(decided)
        cells = [positive & called, ~positive & called, positive & ~called, ~positive & ~called]
        counts = (float(cell.sum()) for cell in cells)
        found.append(Step(what, method, names, inference.score(decided), gain, *counts))
    return tuple(found)
