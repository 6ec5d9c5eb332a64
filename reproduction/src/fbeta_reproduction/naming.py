"""Names of runs and scores in tables, figures and sentences; numbers are written by `fbeta.numerals`."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from fbeta.metrics import FBeta, title
from fbeta.numerals import NONE, fixed
from fbeta_reproduction.protocol import Run

DATASET_NAMES = {"fashion-mnist": "Fashion-MNIST", "cifar10": "CIFAR-10", "digits": "digits"}
LOSS_NAMES = {
    "surrogate": "surrogate",
    "soft": "macro soft",
    "balanced-bce": "balanced BCE",
    "balanced-mae": "balanced MAE",
    "bce": "plain BCE",
    "gce": "GCE",
    "balanced-gce": "balanced GCE",
    "tangent": "tangent",
    "soft-both": "macro soft over both columns,",
    "soft-batch": "macro soft with the prevalence of the batch,",
    "soft-weighted": "macro soft with class weights inside,",
    "twice-surrogate": "surrogate of a softmax of the softmax,",
    "twice-bce": "balanced BCE of a softmax of the softmax",
    "unclamped-bce": "balanced BCE, its logarithm not clamped",
}


def dataset_name(dataset: str) -> str:
    """The data set as the paper writes it.

    >>> dataset_name("cifar10")
    'CIFAR-10'
    """
    return DATASET_NAMES.get(dataset, dataset)


def beta_name(beta: float) -> str:
    """A β as people write it.

    >>> beta_name(0.5), beta_name(2.0)
    ('½', '2')
    """
    return "½" if beta == 0.5 else f"{beta:g}"


def score_name(beta: float) -> str:
    """The score with this β.

    >>> score_name(0.5), score_name(3.0)
    ('F½', 'F₃')
    """
    return title(FBeta(beta))


def loss_name(run: Run) -> str:
    """The loss of a run, with its β.

    >>> loss_name(Run("digits", "soft", 2.0)), loss_name(Run("digits", "surrogate", 1.0, q=0.3))
    ('macro soft F₂', 'surrogate F₁, q = 0.3')
    """
    name = LOSS_NAMES.get(run.loss, run.loss)
    name += f" {score_name(run.beta)}" if run.beta is not None else ""
    return name + (f", q = {run.q:g}" if run.q else "")


def change_name(run: Run) -> str:
    """How a run differs from the paper, apart from its loss.

    >>> change_name(Run("cifar10", "bce", learning_rate=0.03, precision="fp32"))
    'learning rate 0.03, fp32'
    >>> change_name(Run("digits", "bce"))
    ''
    """
    parts = [f"learning rate {run.learning_rate:g}"] if run.learning_rate != 0.01 else []
    parts += [f"{run.stem} stem"] if run.stem != "imagenet" else []
    parts += [run.remedy] if run.remedy else []
    parts += [f"{100 * run.noise:g} % noise"] if run.noise else []
    parts += [run.precision] if not run.usual else []
    return ", ".join(parts)


def full_name(run: Run) -> str:
    """The loss of a run, and how it differs from the paper otherwise.

    >>> full_name(Run("cifar10", "soft", 1.0, learning_rate=0.03))
    'macro soft F₁, learning rate 0.03'
    """
    return ", ".join(filter(None, (loss_name(run), change_name(run))))


def median(values: Sequence[float]) -> float:
    """The median, with infinities in their place; NaN of nothing.

    >>> median([1.0, float("inf"), float("inf")]), median([2.0, 3.0])
    (inf, 2.5)
    """
    kept = [v for v in values if not math.isnan(v)]
    return float(np.median(kept)) if kept else math.nan


def spread(values: Sequence[float], digits: int = 3) -> str:
    """Median and range of the repeats, without those that have no number.

    >>> spread([0.1, 0.25, 0.2]), spread([0.5]), spread([])
    ('0.200 [0.100, 0.250]', '0.500', '–')
    """
    kept = [v for v in values if not math.isnan(v)]
    if not kept:
        return NONE
    middle, low, high = (fixed(x, digits) for x in (median(kept), min(kept), max(kept)))
    return middle if len(kept) == 1 else f"{middle} [{low}, {high}]"
