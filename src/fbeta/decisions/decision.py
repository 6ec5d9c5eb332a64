"""From scores to probabilities and decisions: a calibration and a cut, learned together and kept as plain data."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fbeta.decisions.calibration import Platt, logit, sigmoid
from fbeta.decisions.classes import Gains, best_gains
from fbeta.decisions.inputs import KINDS, Vector, read_array, read_kind
from fbeta.decisions.rules import Constant, Rule
from fbeta.decisions.rules.constant import USUAL
from fbeta.decisions.steps import Steps, count_columns
from fbeta.decisions.threshold import Threshold
from fbeta.decisions.tuning import tune
from fbeta.metrics import Metric, as_metric, title
from fbeta.numerals import between, fixed, short

#: What rising scores are worth at least, in log odds per standard deviation: scores without any use keep their order.
FLAT = 1e-6
#: Log odds that stand for a cut that calls all or none, where a margin must be finite.
FAR = 1e9
#: No slope and no offset that was learnt comes near; log odds stay finite.
MOST = 1e100


@dataclass(frozen=True, eq=False)
class Decision:
    r"""How scores become probabilities and decisions, learned from rows that the model did not see.

    .. math:: p = \operatorname{sigmoid}(a x + b), \qquad \text{positive where } p \ge c

    x is the score itself, or its logit if scores are probabilities; `calibration` holds a and b, `cuts` holds c and
    what is known about it (a `Threshold` of probabilities), one of each per column. Among several classes that
    exclude each other the one with the largest value to the metric is called, see `Gains`.

    Shape: fitted on scores ``(n,)`` it takes and gives ``(n,)``, fitted on ``(n, K)`` it takes and gives ``(n, K)``.

    >>> d = Decision.fit([0.9, 0.8, 0.3, 0.1], [1, 1, 0, 0], "f1", kind="probability")
    >>> d.decide([0.95, 0.2]), bool(d.probability(0.9) > 0.5)
    (array([ True, False]), True)
    >>> Decision.from_dict(d.to_dict()).decide([0.95, 0.2])
    array([ True, False])

    Reference: [platt1999], [lipton2014]
    """

    kind: str
    calibration: tuple[Platt, ...]
    cuts: tuple[Threshold, ...]
    metric: Metric | None = None
    gains: Gains | None = None
    several: bool = False

    @classmethod
    def fit(
        cls,
        scores: ArrayLike,
        target: ArrayLike,
        metric: Metric | str | Any,
        weight: ArrayLike | None = None,
        *,
        kind: str | None = None,
        rule: Rule | str = "shrunk",
        calibration: str | Sequence[Platt] = "platt",
        average: str = "macro",
        exclusive: bool = False,
        **constraints: Any,
    ) -> Self:
        """Calibrate, then cut.

        - `kind`, `rule`: as in `tune`; the rule "own" is the model's own boundary, a logit of 0 or a probability of ½.
          `constraints`: `subject_to`, `budget` and `prevalence` of `tune`.
        - `calibration`: "platt" learns it from the rows, "none" takes probabilities and logits as they are; or what
          is known already, one `Platt` per column.
        - `average`: each column has its own cut ("macro"), or all share one, for the pooled counts ("micro").
        - `exclusive`: the columns are classes, of which each row has exactly one.

        Shape: `scores` and `target` ``(n,)`` or ``(n, K)``, `weight` ``(n,)``.
        """
        s = read_array("scores", scores, np.float64)
        y = read_array("target", target)
        if s.shape != y.shape or s.ndim not in (1, 2) or s.size == 0:
            raise ValueError(f"scores and target must be alike, (n,) or (n, K); got {s.shape} and {y.shape}.")
        several = s.ndim == 2
        s, y = (s, y) if several else (s[:, None], y[:, None])
        kind = read_kind(kind, float(s.min()), float(s.max()), matters=True)
        goal, w = as_metric(metric), None if weight is None else read_array("weight", weight)
        platts = _calibrated(calibration, s, y, w, kind)
        made = cls(kind, platts, (), goal, None, True)
        p = made.probability(s)
        own = isinstance(rule, str) and rule == "own"
        if exclusive and not own:  # boundaries against the rest do not say which class to call
            p = _normalised(p)
            gains = best_gains(p, y.astype(np.float64), goal, w, rule)
            return cls(kind, platts, _cuts_of_classes(gains, p, y, goal, w), goal, gains, True)
        if average == "micro" and not own:  # one cut for all columns: what micro averages pool
            wide = None if w is None else np.repeat(w, s.shape[1])
            cut = tune(p.ravel(), y.ravel(), goal, wide, kind="probability", rule=rule, **constraints)
            return cls(kind, platts, (cut,) * s.shape[1], goal, None, several)
        cuts = []
        for platt, column, truth in zip(platts, p.T, y.T, strict=True):
            each = _own(platt, kind) if own else rule
            cuts.append(tune(column, truth, goal, w, kind="probability", rule=each, **constraints))
        return cls(kind, platts, tuple(cuts), goal, None, several)

    @property
    def cut(self) -> Threshold:
        """The cut of the only column."""
        (only,) = self.cuts
        return only

    def log_odds(self, scores: Any) -> Vector:
        """Calibrated log odds, which no cut changes."""
        s = read_array("scores", scores, np.float64)
        if self.several and s.shape[-1:] != (len(self.calibration),):
            raise ValueError(f"There are {len(self.calibration)} columns; got scores of shape {s.shape}.")
        lines = np.array([(c.slope, c.offset) for c in self.calibration])
        slope, offset = lines.T if self.several else lines[0]
        found: Vector = slope * (logit(s) if self.kind == "probability" else s) + offset
        return found

    def probability(self, scores: Any) -> Vector:
        """Calibrated probabilities; those of classes that exclude each other sum to one."""
        p: Vector = sigmoid(self.log_odds(scores))
        return p if self.gains is None else _normalised(p)

    def decide(self, scores: Any) -> Any:
        """Which rows are positive; for classes that exclude each other, which class is called.

        An array of booleans for arrays, a tensor for tensors.
        """
        p = self.probability(scores)
        if self.gains is not None:
            found = self.gains(p).argmax(-1)[..., None] == np.arange(p.shape[-1])
        elif self.several:
            found = np.stack([cut.decide(p[..., k]) for k, cut in enumerate(self.cuts)], axis=-1)
        else:
            found = self.cut.decide(p)
        if not hasattr(scores, "detach"):
            return found
        return scores.new_tensor(found.tolist(), dtype=(scores == scores).dtype)

    def margin(self, scores: Any) -> Vector:
        """How far above the cut log odds are: positive exactly where `decide` says so.

        For classes that exclude each other it is the value of calling each: the largest is called.
        """
        if self.gains is not None:
            return self.gains(self.probability(scores))
        cuts = np.array([float(cut.value) for cut in self.cuts])
        # A cut that calls all or none is infinitely far away; margins stay finite.
        there = np.where((cuts > 0) & (cuts < 1), logit(cuts, 1e-300), np.where(cuts > 0, FAR, -FAR))
        margin = self.log_odds(scores) - (there if self.several else there[0])
        tiny = np.finfo(np.float64).tiny
        called = self.decide(np.asarray(scores))
        found: Vector = np.where(called, np.maximum(margin, tiny), np.minimum(margin, -tiny))
        return found

    def explain(self) -> str:
        """One sentence per column: where it cuts, and what the rows that it was fitted on say of that.

        >>> print(Decision.fit([0.9, 0.8, 0.3, 0.1] * 9, [1, 1, 0, 0] * 9, "f1", kind="probability").explain())
        Positive from a probability of 0.507 on: F₁ 1.000 on the rows that chose the cut (95 % interval 0.901 to 1.000).
        """
        said = []
        for k, cut in enumerate(self.cuts):
            where, known = f"positive from a probability of {short(cut.value, 3)} on", ""
            if math.isinf(cut.value):
                where = "never positive" if cut.value > 0 else "always positive"
            if cut.metric is not None:
                sure = cut.interval
                ends = "" if sure is None else f" (95 % interval {between(*sure.score)})"
                known = f": {title(cut.metric)} {fixed(cut.score)} on the rows that chose the cut{ends}"
            said.append(f"Column {k}: {where}{known}." if self.several else f"{where.capitalize()}{known}.")
        return "\n".join(said)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "kind": self.kind,
            "calibration": [{"slope": c.slope, "offset": c.offset} for c in self.calibration],
            "cuts": [cut.to_dict() for cut in self.cuts],
            "metric": None if self.metric is None else str(self.metric),
            "gains": None if self.gains is None else [self.gains.gain.tolist(), self.gains.offset.tolist()],
            "several": self.several,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read `to_dict` back; ValueError for anything else. A user's function as metric comes back as None."""
        try:
            kind, several = str(data["kind"]), bool(data["several"])
            of_logits = kind == "probability"
            lines = [(float(c["slope"]), float(c["offset"])) for c in data["calibration"]]
            cuts = tuple(Threshold.from_dict(c) for c in data["cuts"])
            gains = data.get("gains")
            values = None if gains is None else Gains(*(np.array(x, dtype=np.float64) for x in gains))
        except (KeyError, TypeError, AttributeError, OverflowError) as error:
            raise ValueError(f"this is no decision ({error!r:.80})") from error
        if kind not in KINDS or len(lines) != len(cuts) or not cuts or (len(cuts) > 1 and not several):
            raise ValueError("its decision is incomplete")
        if not all(0 <= a <= MOST and abs(b) <= MOST for a, b in lines):
            raise ValueError("its calibration is no rising line")
        if any(np.ndim(cut.value) or math.isnan(cut.value) for cut in cuts):
            raise ValueError("its cut is no number")
        if values is not None and not (several and values.gain.shape == values.offset.shape == (len(cuts),)):
            raise ValueError("its gains do not fit its classes")
        platts = tuple(Platt(a, b, of_logits) for a, b in lines)
        return cls(kind, platts, cuts, cuts[0].metric, values, several)


def _own(platt: Platt, kind: str) -> Constant:
    if kind not in USUAL:
        raise ValueError("Scores of kind 'score' have no boundary of their own; use another rule.")
    return Constant(float(platt(USUAL[kind])))


def _calibrated(
    calibration: str | Sequence[Platt], s: Vector, y: NDArray[Any], w: NDArray[Any] | None, kind: str
) -> tuple[Platt, ...]:
    of_logits = kind == "probability"
    if not isinstance(calibration, str):
        return tuple(Platt(c.slope, c.offset, of_logits) for c in calibration)
    if calibration == "none":
        if kind == "score":
            raise ValueError("Scores of kind 'score' are no probabilities yet; use calibration='platt'.")
        return (Platt(1.0, 0.0, of_logits),) * len(s.T)
    if calibration != "platt":
        raise ValueError(f"calibration must be 'platt', 'none' or a Platt per column; got {calibration!r}.")
    found = []
    for column, target in zip(s.T, y.T, strict=True):
        platt = Platt.fit(Steps.of(column, target, w, kind=kind))
        spread = float(np.std(logit(column) if of_logits else column))
        found.append(Platt(max(platt.slope, FLAT / max(spread, FLAT)), platt.offset, of_logits))
    return tuple(found)


def _cuts_of_classes(
    gains: Gains, p: Vector, y: NDArray[Any], metric: Metric, w: NDArray[Any] | None
) -> tuple[Threshold, ...]:
    """What each class would be cut at on its own, and its score among the others."""
    called = gains(p).argmax(1)[:, None] == np.arange(p.shape[1])
    scores = np.asarray(metric(count_columns(called, y, w)))
    values = gains.offset / gains.gain
    each = zip(values, scores, called.sum(0), strict=True)
    return tuple(Threshold(float(v), float(s), int(n), "probability", metric=metric) for v, s, n in each)


def _normalised(p: Vector) -> Vector:
    # A row that no class wants has probability nowhere; then all are as likely.
    shared: Vector = (p + 1e-300) / (p + 1e-300).sum(-1, keepdims=True)
    return shared
