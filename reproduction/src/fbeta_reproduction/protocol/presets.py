"""The presets: the paper's runs, other losses, other readings of its text, and remedies."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Literal

from fbeta.spelling import unknown
from fbeta_reproduction.protocol.runs import BETAS, PAPER, SETTINGS, Run

#: What a run is for; see `kind`.
Kind = Literal["faithful", "beside", "reading", "remedy", "precision"]

#: Losses in the order of tables; others are readings of the text.
LOSSES = ("surrogate", "soft", "balanced-bce", "balanced-mae", "bce", "tangent")


def faithful(dataset: str, repeats: int = 5, epochs: int = 120) -> Iterator[Run]:
    """The ten class-balanced losses of the paper.

    >>> len(list(faithful("cifar10")))
    50
    """
    losses: list[tuple[str, float | None]] = [("surrogate", b) for b in BETAS]
    losses += [("soft", b) for b in BETAS] + [("balanced-bce", None), ("balanced-mae", None)]
    for repeat, (loss, beta) in itertools.product(range(repeats), losses):
        yield Run(dataset, loss, beta, repeat=repeat, epochs=epochs)


def beside(dataset: str, repeats: int = 5, epochs: int = 120) -> Iterator[Run]:
    """What the paper leaves out: plain BCE, the tangent loss, and its own noise-robust form.

    >>> len(list(beside("cifar10")))
    35
    """
    for repeat in range(repeats):
        runs = [Run(dataset, "bce"), *(Run(dataset, "tangent", b) for b in BETAS)]
        runs += [Run(dataset, "surrogate", 1.0, q=q) for q in (0.3, 0.7)]
        yield from (replace(run, repeat=repeat, epochs=epochs) for run in runs)


def plateau(dataset: str, repeats: int = 64, epochs: int = 5) -> Iterator[Run]:
    """Many seeds of the surrogate loss for a few epochs: how often does it fall onto the all-positive plateau?

    The seeds are others than those of the faithful runs.

    >>> len(list(plateau("cifar10")))
    256
    """
    for repeat, beta in itertools.product(range(repeats), BETAS):
        yield Run(dataset, "surrogate", beta, repeat=100 + repeat, epochs=epochs)


def readings(dataset: str, repeats: int = 1, epochs: int = 120) -> Iterator[Run]:
    """Readings of the text that could explain claims that the plain one does not support.

    The small stem keeps images 16 times as large through the network, and single precision is slow: they get a
    quarter of the epochs.

    >>> sorted({run.label for run in readings("cifar10")})[:4]
    ['balanced-bce-cifar-stem', 'balanced-bce-lr0.001', 'balanced-bce-lr0.003', 'balanced-bce-lr0.03']
    """
    plain = [Run(dataset, "surrogate", 1.0), Run(dataset, "soft", 1.0), Run(dataset, "balanced-bce")]
    runs = [replace(run, learning_rate=rate) for run in plain for rate in (0.001, 0.003, 0.03)]
    runs += [Run(dataset, f"soft-{how}", 1.0) for how in ("both", "batch", "weighted")]
    runs += [Run(dataset, "twice-surrogate", 1.0), Run(dataset, "twice-bce")]
    slow = [*(replace(run, stem="cifar") for run in plain), Run(dataset, "unclamped-bce", precision="fp32")]
    for repeat in range(repeats):
        yield from (replace(run, repeat=repeat, epochs=epochs) for run in runs)
        yield from (replace(run, repeat=repeat, epochs=max(1, epochs // 4)) for run in slow)


#: What could make the published loss leave its plateau, or never fall onto it; see `readings.remedies`.
REMEDIES = ("prior-bias", "warm-start", "anneal", "mix", "rate-warm-up")
#: The q of the noise-robust form as a remedy; that of the runs beside the paper's is another.
Q_REMEDY = 0.5


def remedies(dataset: str, repeats: int = 3, epochs: int = 60) -> Iterator[Run]:
    """The surrogate loss with each remedy, where it is stuck most (β = 2) and least (β = 1), and its q form.

    >>> len(list(remedies("cifar10")))
    36
    """
    for repeat, beta in itertools.product(range(repeats), (1.0, 2.0)):
        runs = [Run(dataset, "surrogate", beta, remedy=remedy) for remedy in REMEDIES]
        runs += [Run(dataset, "surrogate", beta, q=Q_REMEDY)]
        yield from (replace(run, repeat=repeat, epochs=epochs) for run in runs)


def precision(dataset: str, repeats: int = 1, epochs: int = 40) -> Iterator[Run]:
    """Single precision throughout, beside the same runs in mixed precision.

    >>> [run.label for run in precision("cifar10")][:2]
    ['surrogate-b1-fp32', 'surrogate-b2-fp32']
    """
    runs = [Run(dataset, "surrogate", 1.0), Run(dataset, "surrogate", 2.0), Run(dataset, "soft", 1.0)]
    runs += [Run(dataset, "balanced-bce"), Run(dataset, "bce"), Run(dataset, "tangent", 1.0)]
    for repeat in range(repeats):
        yield from (replace(run, precision="fp32", repeat=repeat, epochs=epochs) for run in runs)


#: Presets by name: (data set, repeats, epochs) → runs.
PRESETS: dict[str, Callable[[str, int, int], Iterator[Run]]] = {
    "faithful": faithful,
    "beside": beside,
    "plateau": plateau,
    "readings": readings,
    "remedies": remedies,
    "precision": precision,
}


def kind(run: Run) -> Kind:
    """What a run is for: the paper's own setting, beside it, another reading of its text, a remedy, a precision.

    >>> kind(Run("cifar10", "soft", 1.0)), kind(Run("cifar10", "soft", 1.0, precision="fp32"))
    ('faithful', 'precision')
    >>> kind(Run("cifar10", "bce", learning_rate=0.03, precision="fp32"))
    'reading'
    """
    if run.remedy or run.q == Q_REMEDY:
        return "remedy"
    if run.loss not in LOSSES or run.learning_rate != 0.01 or run.stem != "imagenet":
        return "reading"
    if not run.usual:
        return "precision"
    return "beside" if run.q or run.loss in ("bce", "tangent") else "faithful"


def plan(
    datasets: Sequence[str] | None = None,
    presets: Sequence[str] | None = None,
    repeats: int | None = None,
    epochs: int | None = None,
    precision: str | None = None,
) -> list[Run]:
    """The runs of some presets on some data sets, each once; the paper's own if nothing is said.

    >>> len(plan(["digits"], ["faithful", "beside"], repeats=2, epochs=3))
    34
    """
    runs: dict[str, Run] = {}
    named = {"repeats": repeats, "epochs": epochs}
    given = {name: value for name, value in named.items() if value is not None}
    for dataset in datasets or PAPER:
        for preset in presets or ["faithful"]:
            make = PRESETS[_one_of("preset", preset, list(PRESETS))]
            for run in make(_one_of("dataset", dataset, list(SETTINGS)), **given):  # type: ignore[call-arg]
                run = replace(run, precision=precision) if precision and run.usual else run
                runs[run.id] = run
    return list(runs.values())


def whole_plan(datasets: Iterable[str] = PAPER) -> list[Run]:
    """Every run of every preset, each once.

    >>> [run.id for run in whole_plan(["cifar10"])][:2]
    ['cifar10/surrogate-b0.5-r0', 'cifar10/surrogate-b1-r0']
    """
    return plan(list(datasets), list(PRESETS))


def _one_of(what: str, name: str, choices: list[str]) -> str:
    if name not in choices:
        raise unknown(what, name, choices)
    return name
