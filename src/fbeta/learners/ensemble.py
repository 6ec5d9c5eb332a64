"""Several fitted models that answer as one: those of the folds, averaged."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fbeta.decisions.calibration import logit, sigmoid
from fbeta.learners.crossfit import Array

if TYPE_CHECKING:
    from fbeta.learners.learner import Learner, Scorer

KIND = "ensemble"
#: More members than this are no folds of anybody.
MOST = 1000


def check_ensemble(asked: Any) -> bool:
    """Whether the models of the folds are averaged; ValueError where that is no answer."""
    if not isinstance(asked, bool | np.bool_):
        raise ValueError(f"ensemble must be True or False; got {asked!r}.")
    return bool(asked)


def mean_of(scores: Sequence[Array], certain: bool = False) -> Array:
    r"""Scores of several models as one: the mean of log odds or margins.

    .. math:: z = \frac1K \sum_k z_k

    `certain`: the models may say 0 or 1, whose log odds would drown the others; the mean is that of probabilities.

    Shape: each of `scores` ``(*)``; result ``(*)``.

    >>> mean_of([np.array([1.0, -2.0]), np.array([3.0, 0.0])])
    array([ 2., -1.])
    """
    if len(scores) == 1:
        return scores[0]
    mean: Array = np.mean(sigmoid(scores) if certain else scores, axis=0)
    return logit(mean) if certain else mean


@dataclass(frozen=True, eq=False)
class Ensemble:
    """Models of the same features whose scores are averaged; itself a `Scorer`.

    >>> from fbeta.learners.network import Network
    >>> lines = [Network((np.array([[slope]]),), (np.zeros(1),)) for slope in (1.0, 3.0)]
    >>> Ensemble(tuple(lines))(np.array([[2.0]]))
    array([[4.]])
    """

    members: tuple["Scorer", ...]

    def __post_init__(self) -> None:
        if len({member.inputs for member in self.members}) != 1:
            raise ValueError("an ensemble has one model or more, all for the same number of features")

    def __call__(self, X: Any) -> Array:
        """Mean scores of rows."""
        return mean_of([member(X) for member in self.members])

    @property
    def inputs(self) -> int:
        """The number of features of a row."""
        return self.members[0].inputs

    def about(self) -> dict[str, Any]:
        """What each member says of itself."""
        return {"kind": KIND, "members": [member.about() for member in self.members]}

    def files(self) -> dict[str, bytes]:
        """The members' files, each with its number before it."""
        return {f"{k}/{name}": data for k, member in enumerate(self.members) for name, data in member.files().items()}


def read_ensemble(
    learner: "Learner | type[Learner]", members: Sequence[Mapping[str, Any]], files: Mapping[str, bytes]
) -> Ensemble:
    """The ensemble of a learner from what its members say of themselves, and `files()`; ValueError if there is none."""
    if not isinstance(members, list) or not 0 < len(members) <= MOST:
        raise ValueError("an ensemble needs a list of its members")
    parts = [{name: f"{k}/{name}" for name in learner.files} for k in range(len(members))]
    check_names(files, [name for part in parts for name in part.values()])
    own = ({name: files[numbered] for name, numbered in part.items()} for part in parts)
    return Ensemble(tuple(map(learner.read, members, own)))


def read_scorer(learner: "Learner", about: Mapping[str, Any], files: Mapping[str, bytes]) -> "Scorer":
    """The model of a learner, or the ensemble, from its `about()` and `files()`; ValueError where there is neither."""
    if about.get("kind") == KIND:
        return read_ensemble(learner, about["members"], files)
    check_names(files, learner.files)
    return learner.read(about, files)


def check_names(files: Mapping[str, bytes], expected: Sequence[str]) -> None:
    """Refuse files that lack something, or hold more."""
    lacking, more = sorted(set(expected) - set(files)), sorted(set(files) - set(expected))
    if lacking:
        raise ValueError(f"it lacks {', '.join(lacking[:3])}")
    if more:
        raise ValueError(f"it has an unknown member {more[0]!r:.60}")
