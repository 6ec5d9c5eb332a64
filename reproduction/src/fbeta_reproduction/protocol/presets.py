"""The presets: the paper's runs, other losses, other readings of its text, and remedies."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Literal

from fbeta.spelling import unknown
from fbeta_reproduction.protocol.runs import BETAS, PAPER, SETTINGS, Run

#: What a run is for; see `kind`.
Kind = Literal["faithful", "beside", "reading", "remedy", "noise", "precision"]

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
    """Other formulas that the text allows, which could explain claims that the plain ones do not support.

    Single precision is slow, and gets a quarter of the epochs.

    >>> sorted({run.label for run in readings("digits")})
    ['soft-batch-b1', 'soft-both-b1', 'twice-bce', 'twice-surrogate-b1', 'unclamped-bce']
    """
    runs = [Run(dataset, f"soft-{how}", 1.0) for how in ("both", "batch")]
    runs += [Run(dataset, "twice-surrogate", 1.0), Run(dataset, "twice-bce")]
    slow = Run(dataset, "unclamped-bce", precision="fp32")
    for repeat in range(repeats):
        yield from (replace(run, repeat=repeat, epochs=epochs) for run in runs)
        yield replace(slow, repeat=repeat, epochs=max(1, epochs // 4))


def weighted(dataset: str, repeats: int = 5, epochs: int = 120) -> Iterator[Run]:
    """The literal reading of "all the loss functions were class-balanced": macro soft F_β with weights n/n_y inside.

    >>> len(list(weighted("cifar10")))
    20
    """
    for repeat, beta in itertools.product(range(repeats), BETAS):
        yield Run(dataset, "soft-weighted", beta, repeat=repeat, epochs=epochs)


def _compared(dataset: str) -> list[Run]:
    """One loss of each family, in which a setting that the paper does not name is changed."""
    return [Run(dataset, "surrogate", 1.0), Run(dataset, "soft", 1.0), Run(dataset, "balanced-bce")]


def rates(dataset: str, repeats: int = 5, epochs: int = 120) -> Iterator[Run]:
    """Other learning rates: class weights that are normalised in another way amount to them.

    >>> len(list(rates("cifar10")))
    45
    """
    for repeat, run, rate in itertools.product(range(repeats), _compared(dataset), (0.001, 0.003, 0.03)):
        yield replace(run, learning_rate=rate, repeat=repeat, epochs=epochs)


def stems(dataset: str, repeats: int = 5, epochs: int = 30) -> Iterator[Run]:
    """A 3×3 stem without max-pool; images stay 16 times as large through the network, so that it gets fewer epochs.

    >>> len(list(stems("cifar10")))
    15
    """
    for repeat, run in itertools.product(range(repeats), _compared(dataset)):
        yield replace(run, stem="cifar", repeat=repeat, epochs=epochs)


#: Shares of labels that are turned around, and the q of the losses that are meant to bear them, as Zhang and Sabuncu
#: have it.
NOISE, Q_NOISE = (0.1, 0.2, 0.4), 0.7


def noise(dataset: str, repeats: int = 3, epochs: int = 60) -> Iterator[Run]:
    """What the q form is for: labels turned around at random, against the generalised and the plain cross entropy.

    Without noise only what no other preset trains.

    >>> len(list(noise("fashion-mnist")))
    60
    """
    bounded = [Run(dataset, loss, q=Q_NOISE) for loss in ("gce", "balanced-gce")]
    others = [Run(dataset, "bce"), Run(dataset, "balanced-bce"), Run(dataset, "surrogate", 1.0)]
    others += [Run(dataset, "surrogate", 1.0, q=Q_NOISE)]
    runs = [replace(run, noise=share) for share in NOISE for run in (*bounded, *others)] + bounded
    for repeat, run in itertools.product(range(repeats), runs):
        yield replace(run, repeat=repeat, epochs=epochs)


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
    "weighted": weighted,
    "rates": rates,
    "stems": stems,
    "remedies": remedies,
    "noise": noise,
    "precision": precision,
}


def kind(run: Run) -> Kind:
    """What a run is for: the paper's own setting, beside it, another reading of it, a remedy, label noise, a precision.

    >>> kind(Run("cifar10", "soft", 1.0)), kind(Run("cifar10", "soft", 1.0, precision="fp32"))
    ('faithful', 'precision')
    >>> kind(Run("cifar10", "bce", noise=0.2)), kind(Run("cifar10", "gce", q=0.7))
    ('noise', 'noise')
    >>> kind(Run("cifar10", "bce", learning_rate=0.03, precision="fp32"))
    'reading'
    """
    if run.noise or run.loss.endswith("gce"):
        return "noise"
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
