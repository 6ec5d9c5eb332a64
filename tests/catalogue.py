"""The metrics and losses that every shared test runs over: add an instance here and it is tested."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
import torch

import fbeta
from fbeta import (
    MCC,
    Accuracy,
    BalancedAccuracy,
    Cost,
    FBeta,
    FowlkesMallows,
    GMean,
    Jaccard,
    Kappa,
    Metric,
    Precision,
    Recall,
    SoftLoss,
    Specificity,
    SurrogateLoss,
    TangentLoss,
    Tversky,
    losses,
    metric,
)


def steep_f1(tp, fp, fn, tn):
    """F1 written by a user as a plain function."""
    return 2 * tp / (2 * tp + fp + fn)


#: The type that `batch` gives by default. Single precision is what the fused path on the CPU takes, so
#: test_state.py runs in both.
DTYPE = torch.float64

METRICS: list[Metric] = [
    FBeta(0.5),
    FBeta(1),
    FBeta(2),
    Jaccard(),
    Tversky(0.3, 0.7),
    Kappa(),
    MCC(),
    GMean(),
    BalancedAccuracy(),
    Accuracy(),
    FowlkesMallows(),
    Precision(),
    Recall(),
    Specificity(),
    Cost(fp=1, fn=20),
    metric(steep_f1),
]
TRAINABLE = [m for m in METRICS if m.refusal(0.1) is None]
ANCHORED = [m for m in TRAINABLE if not isinstance(m, MCC | FowlkesMallows)]
CURVED = [MCC(), FowlkesMallows()]


@dataclass(frozen=True)
class LossCase:
    """A loss, by name, that takes (N,) logits at a prevalence near 0.1."""

    id: str
    make: Callable[..., torch.nn.Module]
    per_element: bool = True

    def __str__(self) -> str:
        return self.id


def named(name: str, label: str = "", **fixed) -> LossCase:
    """A case of the registry: a loss that needs no metric is given none."""
    cls = losses.Loss.registry[name]
    chosen = {"metric": FBeta(2)} if cls.uses_metric else {}
    per_element = "none" in cls.reductions
    return LossCase(f"{name}{label}", lambda **k: cls(**chosen, **fixed, **k), per_element)


#: The losses people compare with; each by name, with what it needs and nothing more.
OTHERS = [
    named("bce"),
    named("balanced-bce", prevalence=0.1),
    named("balanced-bce", "-effective", class_counts=(900, 100), weighting="effective"),
    named("effective-bce", class_counts=(900, 100)),
    named("mae"),
    named("balanced-mae", prevalence=0.1),
    named("gce"),
    named("gce", "-truncated", truncate=0.4),
    named("focal"),
    named("focal", "-alpha", gamma=0.5, alpha=0.25),
    named("asymmetric"),
    named("asymmetric", "-unclipped", gamma_neg=0.5, clip=0.0),
    named("ldam", class_counts=(900, 100)),
    named("sigmoid-f1"),
    named("anyloss"),
    named("anyloss", "-memory", memory=100),
    named("score-oriented"),
    named("score-oriented", "-uniform", prior="uniform", prevalence=0.1),
]
#: The systems that the paper cites (and `gce`, above).
SYSTEMS = [
    named("stamp", stage=8),
    named("stamp", "-known", stage=8, prevalence=0.1, q=0.5),
    named("amp", class_counts=(180, 20), passes=2),
    named("dame", stage=30),
    named("duple"),
    named("spade"),
    named("eban"),
    named("eban", "-recall", at={"recall": 0.9}, counts="hard"),
    named("eban", "-precision", at={"precision": 0.6}, bound="hinge"),
    named("kar", buffer=0),
    named("kar", "-memory", buffer=200),
]
LOSSES = [
    *(LossCase(f"surrogate-{m}", lambda m=m, **k: SurrogateLoss(m, prevalence=0.1, **k)) for m in ANCHORED),
    LossCase("surrogate-q", lambda **k: SurrogateLoss(FBeta(2), prevalence=0.1, q=0.4, **k)),
    LossCase("surrogate-blend", lambda **k: SurrogateLoss(FBeta(2), prevalence=0.1, blend=0.3, **k)),
    LossCase("surrogate-none", lambda **k: SurrogateLoss(FBeta(2), prevalence=0.1, weighting=None, **k)),
    *(LossCase(f"tangent-{m}", lambda m=m, **k: TangentLoss(m, prevalence=0.1, **k)) for m in TRAINABLE),
    LossCase("tangent-q", lambda **k: TangentLoss(FBeta(2), q=0.5, **k)),
    LossCase("tangent-mae", lambda **k: TangentLoss(FBeta(2), q=1.0, counts="soft", **k)),
    *OTHERS,
    *SYSTEMS,
    *(LossCase(f"soft-{m}", lambda m=m, **k: SoftLoss(m, **k), per_element=False) for m in TRAINABLE),
    LossCase("soft-at", lambda **k: SoftLoss(FBeta(1), prevalence=0.1, **k), per_element=False),
    LossCase("soft-log", lambda **k: SoftLoss(FBeta(1), prevalence=0.1, form="log", **k), per_element=False),
    LossCase("soft-log-kappa", lambda **k: SoftLoss(Kappa(), prevalence=0.7, form="log", **k), per_element=False),
    LossCase("soft-memory", lambda **k: SoftLoss(MCC(), memory=100, **k), per_element=False),
    LossCase(
        "soft-log-memory",
        lambda **k: SoftLoss(FBeta(2), prevalence=0.1, form="log", memory=100, **k),
        per_element=False,
    ),
]
#: One of each kind, for tests that take a second each: by default they run over these, in CI over all.
KINDS = {
    *("surrogate-fbeta:beta=2", "surrogate-blend", "tangent-fbeta:beta=2", "tangent-mcc", "tangent-mae", "bce"),
    *("balanced-bce-effective", "gce", "focal", "asymmetric", "ldam", "anyloss-memory", "score-oriented"),
    *("soft-fbeta:beta=1", "soft-mcc", "soft-log-memory", "stamp", "spade", "eban", "kar"),
}
COSTLY = [c if c.id in KINDS else pytest.param(c, marks=pytest.mark.slow) for c in LOSSES]
#: Row losses that count in training steps, and take `accumulate`.
COUNTING = [c for c in LOSSES if c.id.startswith("tangent") or (c in SYSTEMS and c.per_element)]
STATEFUL = [*COUNTING, *(c for c in LOSSES if "memory" in c.id)]


def batch(n=200, rate=0.1, seed=0, dtype=None):
    """Logits that carry some signal, and 0/1 targets with both classes in them; by default in DTYPE."""
    dtype = dtype or DTYPE
    rng = np.random.default_rng(seed)
    y = (np.arange(n) < max(1, round(rate * n))).astype(float)
    rng.shuffle(y)
    z = rng.normal(size=n) * 1.5 + 2 * y - 1.5
    return torch.tensor(z, dtype=dtype), torch.tensor(y, dtype=dtype)


def tune(scores, target, metric, *args, **options):
    """`fbeta.tune` for scores whose kind is said: those in [0, 1] are probabilities in these tests, others logits."""
    s = np.asarray(scores.detach().float() if hasattr(scores, "detach") else scores, dtype=float)
    inside = s.size > 0 and bool(s.min() >= 0 and s.max() <= 1)
    options.setdefault("kind", "probability" if inside else "logit")
    return fbeta.tune(scores, target, metric, *args, **options)
