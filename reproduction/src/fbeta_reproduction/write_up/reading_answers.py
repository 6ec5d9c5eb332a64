"""Whether another reading of the text gives what the paper reports and its plain reading does not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fbeta.numerals import fixed, series
from fbeta_reproduction.naming import change_name, dataset_name, full_name, median, spread
from fbeta_reproduction.protocol import PAPER
from fbeta_reproduction.results.folder import Repeats, Results
from fbeta_reproduction.results.run_result import RunResult
from fbeta_reproduction.verdicts.score_claims import BASE
from fbeta_reproduction.write_up.blocks import Block, Bullets, DataTable, Heading, Text

#: The losses that are compared, at β = 1, and their names in tables.
COMPARED = {"surrogate": "surrogate F₁", "soft": "macro soft F₁", "bce": "balanced BCE"}


def answers(results: Results) -> list[Block]:
    """The losses compared in every setting that several were run in, and what that says of the claims.

    >>> answers(Results(()))
    []
    """
    settings = [(d, name, group) for d in PAPER for name, group in _settings(results, d)]
    if not any(name for _, name, _ in settings):
        return []
    heading = (
        "data set",
        "reading",
        "epochs",
        "surrogate leaves the plateau",
        *(f"{name}, validation" for name in COMPARED.values()),
        "highest",
    )
    return [
        Heading("Does one of them give the paper’s figures?", 3),
        DataTable(heading, tuple(_row(*setting) for setting in settings), left=2),
        Text(
            "Each row compares runs after the same number of epochs. A run that was never on the plateau leaves it at "
            "epoch 1. The cifar stem is a 3×3 convolution without max-pool. Softmax twice: the loss takes the softmax "
            "of a softmax."
        ),
        Bullets(tuple(_sentences(results, settings))),
    ]


_Setting = tuple[str, str, dict[str, Repeats]]


def _settings(results: Results, dataset: str) -> Iterator[tuple[str, dict[str, Repeats]]]:
    """The paper's setting (``""``) and each other one that two losses share, with their groups by loss."""
    found: dict[str, dict[str, Repeats]] = {}
    for g in results.of(dataset, "faithful", "reading"):
        twice, loss = g.run.loss.startswith("twice-"), g.run.loss.removeprefix("twice-")
        loss = loss.removeprefix("balanced-")
        if loss in COMPARED and g.run.beta in (1.0, None):
            name = "softmax twice" if twice else change_name(g.run)
            found.setdefault(name, {})[loss] = g
    weighted = results.find(dataset, "soft-weighted", 1.0)
    if weighted is not None:
        found["class weights inside macro soft"] = found.get("", {}) | {"soft": weighted}
    for name, groups in sorted(found.items()):
        if len(groups) > 1:
            reached = min(g.reached for g in groups.values())
            yield name, {loss: g.until(reached) for loss, g in groups.items()}


def _row(dataset: str, name: str, groups: dict[str, Repeats]) -> tuple[str, ...]:
    surrogate = groups.get("surrogate")
    left = [r.left or float("inf") for r in surrogate.results] if surrogate else []
    scores = (spread(groups[loss].scores("val")) if loss in groups else "–" for loss in COMPARED)
    epochs = next(iter(groups.values())).reached
    return (dataset_name(dataset), name or "plain", f"{epochs}", spread(left, 0), *scores, COMPARED[_best(groups)])


def _best(groups: dict[str, Repeats]) -> str:
    return max(groups, key=lambda loss: median(groups[loss].scores("val")))


def _sentences(results: Results, settings: list[_Setting]) -> Iterator[str]:
    for dataset in PAPER:
        mine = {name: g for d, name, g in settings if d == dataset and name and "surrogate" in g}
        soft = {name: g for name, g in mine.items() if "soft" in g}
        above = [n for n, g in soft.items() if _best({k: g[k] for k in ("surrogate", "soft")}) == "surrogate"]
        if mine:
            yield (
                f"The surrogate is best (claim 6), {dataset_name(dataset)}: its validation F₁ is the highest in "
                f"{sum(_best(g) == 'surrogate' for g in mine.values())} of {len(mine)} other settings, and above "
                f"that of macro soft F₁ in {len(above)} of {len(soft)}{_after(above)}."
            )
    for dataset in PAPER:
        readings = [g for g in results.of(dataset, "reading") if "bce" in g.run.loss]
        failed = [g for g in readings if not g.learned]
        if readings:
            yield (
                f"BCE fails (claim 3), {dataset_name(dataset)}: in {len(failed)} of {len(readings)} other readings"
                f"{_after(full_name(g.run) for g in failed)}."
            )
    for dataset in PAPER:
        readings = [g for g in results.of(dataset, "faithful", "reading") if _is_soft(g)]
        at_base = [g for g in readings if abs(_above_base(g)) <= BASE]
        if readings:
            yield (
                f"Macro soft F₁ is as accurate as the base rate (claim 8), {dataset_name(dataset)}: within "
                f"{fixed(BASE, 2)} of it in {len(at_base)} of {len(readings)} readings, counting the plain one"
                f"{_after(full_name(g.run) for g in at_base)}."
            )


def _is_soft(g: Repeats) -> bool:
    return g.run.loss.startswith("soft") and g.run.beta == 1.0


def _above_base(g: Repeats) -> float:
    return median(g.finals(RunResult.accuracy)) - g.first.base_rate()


def _after(names: Iterable[str]) -> str:
    """Names in brackets at the end of a sentence, if there are any."""
    said = series([f"“{name}”" for name in names])
    return f" ({said})" if said else ""
