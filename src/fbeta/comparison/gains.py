"""The steps from what people do today to what was chosen, and what each adds: the cut, the loss, the model."""

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from fbeta.comparison.choosing import chosen, simplest_first
from fbeta.comparison.inference import ByRows, Calls, Inference, JudgedRows
from fbeta.comparison.methods import Method, plain_of
from fbeta.comparison.plan import Split
from fbeta.comparison.result import Changed, Difference, Step
from fbeta.comparison.verdict import judged_together
from fbeta.metrics import Metric
from fbeta.tables import Table

if TYPE_CHECKING:
    from fbeta.comparison.judging import Judged


class Learned(NamedTuple):
    """Rows to choose by, held out while methods learned: as each decides them with its cut, and at ½.

    A method that meets what is asked with no cut decides none.
    """

    inference: ByRows
    decided: Mapping[Method, Calls]
    at_half: Mapping[Method, Calls]

    def chosen(self, order: Sequence[Method]) -> Method:
        """The first method within one standard error of the best, each with its cut."""
        able = [method for method in order if method in self.decided]
        return chosen(self.inference, self.decided, able) if able else order[0]


class Change(NamedTuple):
    """What is changed, the method of each split, and its decisions of the test rows."""

    what: Changed
    picks: Sequence[Method]
    calls: Calls


def learned_of(
    table: Table, metric: Metric, splits: Sequence[Split], judged: Sequence[Mapping[Method, "Judged"]]
) -> Learned:
    """The learning rows of some splits, each decided by models that did not see it."""
    tested, deal = [split.held for split in splits], [0] * len(splits)
    rows = JudgedRows(table.y.astype(np.int64), table.group, tested, deal, table.weight)
    held = {m: [calls for found in judged if (calls := found[m].held) is not None] for m in judged[0]}
    able = {m: calls for m, calls in held.items() if len(calls) == len(judged)}
    return Learned(ByRows(metric, rows), able, {m: [found[m].held_half for found in judged] for m in judged[0]})


def of_picks(picks: Sequence[Method], calls: Mapping[Method, Calls]) -> Calls:
    """In each split the decisions of the method that was picked there."""
    return [calls[method][k] for k, method in enumerate(picks)]


def beside_plain(inference: Inference, decided: Mapping[Method, Calls]) -> dict[Method, Difference]:
    """Each loss against the plain one of the same model."""
    plain = {method.model: method for method in plain_of(list(decided))}
    others = {m: plain[m.model] for m in decided if plain.get(m.model, m) != m}
    found = [inference.difference(decided[m], decided[other]) for m, other in others.items()]
    return dict(zip(others, judged_together(found), strict=True))


def defaults(learned: Sequence[Learned], methods: Sequence[Method], base: Method) -> list[Method]:
    """What people do today, in each split: of the models with plain cross entropy the one that is best at ½.

    As always it is chosen by rows held out, and the baseline is kept where none is better by one standard error.
    """
    order = simplest_first(plain_of(methods), base)
    return [chosen(rows.inference, {m: rows.at_half[m] for m in order}, order) for rows in learned]


def best_losses(learned: Sequence[Learned], methods: Sequence[Method], today: Sequence[Method]) -> list[Method]:
    """The loss to take, in each split, without another model."""
    return [
        rows.chosen(simplest_first([m for m in methods if m.model == start.model], start))
        for rows, start in zip(learned, today, strict=True)
    ]


def path_to(
    picks: Sequence[Method],
    learned: Sequence[Learned],
    decided: Mapping[Method, Calls],
    at_half: Mapping[Method, Calls],
    base: Method,
) -> list[Change]:
    """From today's default to what was picked in each split; what there is no choice of is no step."""
    methods = list(decided)
    today = defaults(learned, methods, base)
    path = [Change("default", today, of_picks(today, at_half)), Change("cut", today, of_picks(today, decided))]
    models = {method.model for method in methods}
    if len({method.loss for method in methods}) > 1:
        kept = best_losses(learned, methods, today) if len(models) > 1 else picks
        path.append(Change("loss", kept, of_picks(kept, decided)))
    if len(models) > 1:
        path.append(Change("model", picks, of_picks(picks, decided)))
    return path


def steps(inference: Inference, path: Sequence[Change]) -> tuple[Step, ...]:
    """Each step with what it adds to the one before it on the same test rows; all of them are tested together."""
    apart = [inference.difference(after.calls, before.calls) for before, after in itertools.pairwise(path)]
    gains: list[Difference | None] = [None, *judged_together(apart)]
    found = []
    for change, gain in zip(path, gains, strict=True):
        names = tuple(method.name for method in change.picks)
        ((method, _),) = Counter(names).most_common(1)
        cells = inference.rows.counts(change.calls).sum((0, 1)).tolist()
        found.append(Step(change.what, method, names, inference.score(change.calls), gain, *cells))
    return tuple(found)
