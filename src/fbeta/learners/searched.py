"""Any model with settings drawn at random, of which rows held out choose."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from fbeta.learners.classifiers import plain
from fbeta.learners.learner import Fitted, Goal, Learner, Rows, Scorer, Tick


@dataclass(frozen=True)
class Searched(Learner):
    r"""A model that is trained with `trials` settings: its own, and others drawn from its `space`.

    .. math:: \hat\theta = \arg\max_{t \le T} M(\text{rows held out by the inner folds};\ \theta_t)

    Each loss takes the settings whose out-of-fold rows have the highest score at their best cut. Rows outside `rows`
    have no say, so a test row never does. `device`: of the model inside.

    >>> from fbeta.learners import models
    >>> tried = list(Searched(models.get("forest"), trials=3).drawn(seed=0))
    >>> tried[0].params, sorted(tried[1].params)
    ({}, ['max_features', 'min_samples_leaf'])

    Reference: [bergstra2012]
    """

    learner: Learner
    trials: int
    device: str = "cpu"

    def __post_init__(self) -> None:
        for name in ("name", "losses", "together", "package", "files", "rank", "usual"):  # those of the model inside
            object.__setattr__(self, name, getattr(self.learner, name))

    @property
    def steps(self) -> int:
        """Those of all trials."""
        return self.learner.steps * self.trials

    @property
    def settings(self) -> dict[str, Any]:
        """Those of the model inside, how many are tried, and where others are drawn from."""
        space = plain(self.learner.space) if self.cached else repr(self.learner.space)
        return {**self.learner.settings, "trials": self.trials, "space": space}

    @property
    def cached(self) -> bool:  # type: ignore[override]
        """Whether its settings say all."""
        try:
            plain(self.learner.space)
        except TypeError:
            return False
        return self.learner.cached

    def read(self, about: Mapping[str, Any], files: Mapping[str, bytes]) -> Scorer:  # type: ignore[override]
        """A fitted model, as the model inside reads it."""
        return self.learner.read(about, files)

    def drawn(self, seed: int) -> Iterator[Learner]:
        """The model inside with its own settings, and with others."""
        from sklearn.model_selection import ParameterSampler

        inside: Any = self.learner
        if hasattr(inside, "device"):
            inside = replace(inside, device=self.device)
        yield inside
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "The total space of parameters", UserWarning)  # fewer lists than trials
            others = list(ParameterSampler(dict(self.learner.space), self.trials - 1, random_state=seed))
        for settings in others:
            yield inside.having(settings)

    def fit_folds(
        self, rows: Rows, goal: Goal, losses: Sequence[str], *, seed: int = 0, tick: Tick = lambda done: None
    ) -> dict[str, Fitted]:
        """Train every loss with all settings, on all rows and on all but each fold; keep the best of each loss."""
        best: dict[str, tuple[float, Fitted]] = {}
        seconds = dict.fromkeys(losses, 0.0)
        for k, one in enumerate(self.drawn(seed)):
            ahead = partial(_ahead, tick, k * self.learner.steps)
            found = one.fit_folds(rows, goal, losses, seed=seed, tick=ahead)
            for loss, fitted in found.items():
                seconds[loss] += fitted.seconds
                score = goal.held_out_score(*rows.held_out(fitted.scores))
                if loss not in best or score > best[loss][0]:
                    best[loss] = score, fitted
        return {loss: replace(fitted, seconds=seconds[loss]) for loss, (_, fitted) in best.items()}


def _ahead(tick: Tick, before: int, done: int) -> None:
    tick(before + done)
