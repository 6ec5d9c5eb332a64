"""What is run: the paper's section 5 as published, the losses beside it, and the other readings of its text."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

#: The four scores that the paper reports.
BETAS = (0.5, 1.0, 2.0, 3.0)

#: What every run has in common; results of another protocol are not mixed with these.
PROTOCOL: dict[str, Any] = {
    "protocol": "fbeta paper",
    "version": 1,
    "batch": 100,
    "optimiser": "SGD, momentum 0.9, weight decay 1e-4, constant rate",
    "images": "pad 4, random crop 32, flip, minus the mean pixel by pixel; evaluated on the centre",
    "validation": 0.1,
}


@dataclass(frozen=True)
class Setting:
    """One data set of the paper: which network, which class against the rest.

    >>> SETTINGS["cifar10"].network
    'resnet34'
    """

    network: str
    positive: int
    width: int = 64
    precision: str = "bf16"


#: `digits` is not in the paper: it is small, needs no download, and takes the whole pipeline through a CPU.
SETTINGS = {
    "fashion-mnist": Setting("resnet18", positive=0),
    "cifar10": Setting("resnet34", positive=0),
    "digits": Setting("resnet18", positive=0, width=8, precision="fp32"),
}


@dataclass(frozen=True)
class Run:
    """One training run; every default is the paper's.

    `loss` is a name of `fbeta.losses`, or one of `fbeta.paper.readings`. `repeat` fixes split, initial weights
    and the order of the batches, the same for every loss, so that losses can be compared pair by pair. `precision` is
    the data set's if not given: a GPU's mixed one, or single for the small one that is meant for a CPU.

    >>> Run("cifar10", "surrogate", beta=2.0, repeat=3).id
    'cifar10/surrogate-b2-r3'
    """

    dataset: str
    loss: str
    beta: float | None = None
    q: float = 0.0
    repeat: int = 0
    epochs: int = 120
    learning_rate: float = 0.01
    precision: str = ""
    stem: str = "imagenet"
    remedy: str | None = None

    def __post_init__(self) -> None:
        if not self.precision:
            object.__setattr__(self, "precision", SETTINGS[self.dataset].precision)

    @property
    def usual(self) -> bool:
        """Whether the precision is that of the data set's other runs.

        >>> Run("cifar10", "bce").usual, Run("cifar10", "bce", precision="fp32").usual
        (True, False)
        """
        return self.precision == SETTINGS[self.dataset].precision

    @property
    def label(self) -> str:
        """The run without its data set and its repeat.

        >>> Run("cifar10", "surrogate", beta=1.0, q=0.3, precision="fp32").label
        'surrogate-b1-q0.3-fp32'
        """
        parts = [self.loss]
        parts += [f"b{self.beta:g}"] if self.beta is not None else []
        parts += [f"q{self.q:g}"] if self.q else []
        parts += [f"lr{self.learning_rate:g}"] if self.learning_rate != 0.01 else []
        parts += [f"{self.stem}-stem"] if self.stem != "imagenet" else []
        parts += [self.remedy] if self.remedy else []
        parts += [self.precision] if not self.usual else []
        return "-".join(parts)

    @property
    def id(self) -> str:
        """A name that is a path and that no other run has, whatever its number of epochs.

        >>> Run("digits", "bce", repeat=1).id
        'digits/bce-r1'
        """
        return f"{self.dataset}/{self.label}-r{self.repeat}"

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for a results file.

        >>> Run(**Run("digits", "bce").to_dict()) == Run("digits", "bce")
        True
        """
        return asdict(self)


def faithful(dataset: str, repeats: int = 5, epochs: int = 120) -> Iterator[Run]:
    """The ten class-balanced losses of the paper.

    >>> len(list(faithful("cifar10")))
    50
    """
    losses: list[tuple[str, float | None]] = [("surrogate", b) for b in BETAS]
    losses += [("soft", b) for b in BETAS] + [("balanced-bce", None), ("balanced-mae", None)]
    for repeat, (loss, beta) in itertools.product(range(repeats), losses):
        yield Run(dataset, loss, beta, repeat=repeat, epochs=epochs)


def beside(dataset: str, repeats: int = 3, epochs: int = 120) -> Iterator[Run]:
    """What the paper leaves out: plain BCE, the tangent loss, and its own noise-robust form.

    >>> len(list(beside("cifar10")))
    21
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
    """Readings of the text that could explain claims which the plain one does not bear out.

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


#: What could make the published loss leave its plateau, or never fall onto it; see `fbeta.paper.objective`.
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
