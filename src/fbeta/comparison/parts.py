"""What is trained as one: networks of a family on a split, or a booster."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from fbeta.comparison import boosters, networks
from fbeta.comparison.learned import Learned, Task
from fbeta.comparison.methods import Method

#: What a booster counts for in a bar of epochs.
STEPS = 10
#: Is told how many of how many epochs are done.
Tick = Callable[[int, int], None]


@dataclass(frozen=True)
class Part:
    """What is trained, kept and resumed as one: networks of one family on a split, or a booster.

    `split` is the number of the outer split; which rows it holds follows from it and `seed`.

    >>> Part((Method("xgboost", "tangent"),), split=3, seed=0).key
    'xgboost-tangent/seed0-split3'
    """

    methods: tuple[Method, ...]
    split: int
    seed: int

    @property
    def model(self) -> str:
        """The model that all of its methods share."""
        return self.methods[0].model

    @property
    def losses(self) -> list[str]:
        """The loss of each."""
        return [method.loss for method in self.methods]

    @property
    def key(self) -> str:
        """Its folder; runs that train together round together, so their company is part of the name."""
        alone = len(self.methods) == 1
        company = self.losses[0] if alone else hashlib.sha256(" ".join(self.losses).encode()).hexdigest()[:8]
        return f"{self.model}-{company}/seed{self.seed}-split{self.split}"

    @property
    def steps(self) -> int:
        """What it counts for in a bar of epochs."""
        return networks.RECIPES[self.model].epochs if self.model in networks.RECIPES else STEPS

    def train(
        self,
        task: Task,
        device: torch.device,
        checkpoint: Path | None = None,
        tick: Callable[[int], None] = lambda epoch: None,
    ) -> dict[str, Learned]:
        """Train it on its split; what each loss learned, by name."""
        if self.model not in networks.RECIPES:
            return {loss: boosters.train(task, self.model, loss) for loss in self.losses}
        recipe = networks.RECIPES[self.model]
        return networks.train(task, self.losses, recipe, device=device, checkpoint=checkpoint, tick=tick)

    @property
    def runs(self) -> dict[str, str]:
        """The id of every loss's run."""
        return {loss: f"{self.key}/{loss}" for loss in self.losses}


def parts(methods: Sequence[Method], splits: int, seed: int) -> list[Part]:
    """All the work, split by split: so that whole splits are finished first.

    >>> [part.key for part in parts([Method("xgboost", "bce"), Method("xgboost", "tangent")], 1, seed=7)]
    ['xgboost-bce/seed7-split0', 'xgboost-tangent/seed7-split0']
    """
    groups: list[tuple[Method, ...]] = []
    for model in dict.fromkeys(m.model for m in methods):
        same = tuple(m for m in methods if m.model == model)
        groups += [same] if model in networks.RECIPES else [(m,) for m in same]
    return [Part(group, split, seed) for split in range(splits) for group in groups]
