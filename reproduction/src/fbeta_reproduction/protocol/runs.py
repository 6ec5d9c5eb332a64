"""One training run, and what all runs have in common: the paper's section 5."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

#: The four scores that the paper reports.
BETAS = (0.5, 1.0, 2.0, 3.0)

#: The data sets of the paper, in its order.
PAPER = ("fashion-mnist", "cifar10")

#: What every run has in common; results of another protocol are not mixed with these.
PROTOCOL: dict[str, Any] = {
    "protocol": "fbeta paper",
    "version": 2,  # 1: costs of the tangent loss summed to one
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

    `loss` is a name of `fbeta.losses`, or one of `readings.alternatives.READINGS`. `repeat` fixes the split, the
    initial weights and the order of the batches, the same for every loss: losses can be compared pair by pair.
    `precision` is the data set's if not given: a GPU's mixed one, or single for the small one that is meant for a CPU.
    `noise` is the share of labels that are turned around on the rows to train and validate on; test labels stay.

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
    noise: float = 0.0

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
        parts += [f"noise{self.noise:g}"] if self.noise else []
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
