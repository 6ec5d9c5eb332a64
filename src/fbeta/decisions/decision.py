"""From scores to probabilities and decisions: a calibration and a cut, learned together and kept as plain data."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fbeta.decisions.calibration import Calibrator, logit, sigmoid
from fbeta.decisions.calibration_choice import calibrate_columns
from fbeta.decisions.class_rule import NO_CUT, ClassRule
from fbeta.decisions.class_scores import read_classes
from fbeta.decisions.inputs import KINDS, Vector, read_array, read_kind
from fbeta.decisions.kept_rows import KeptRows
from fbeta.decisions.prevalence import Prevalence, check_seen
from fbeta.decisions.row_cut import cut_rows
from fbeta.decisions.row_rule import RowRule
from fbeta.decisions.rules import Constant, Rule, as_rule
from fbeta.decisions.rules.constant import USUAL
from fbeta.decisions.sketch import Sketch
from fbeta.decisions.threshold import Threshold
from fbeta.decisions.tuning import tune
from fbeta.metrics import Metric, as_metric, check_prevalence, title
from fbeta.numerals import between, fixed, short

#: Log odds that stand for a cut that calls all or none, where a margin must be finite.
FAR = 1e9


@dataclass(frozen=True, eq=False)
class Decision:
    r"""How scores become probabilities and decisions, learned from rows that the model did not see.

    .. math:: p = \operatorname{sigmoid} g(s), \qquad \text{positive where } p \ge c

    `calibration` is g, a rising curve of log odds, `cuts` holds c and what is known about it (a `Threshold` of
    probabilities), one of each per column. Among several classes that exclude each other the one with the largest
    value to the metric is called, see `ClassRule`; where the mean of row scores counts, `rows` decides, see `RowRule`.
    `kept` are the labelled rows in short, from which `adapt` chooses the cuts again for a population with another
    share of positives; what it found is in `prevalences`.

    Shape: fitted on scores ``(n,)`` it takes and gives ``(n,)``, fitted on ``(n, K)`` it takes and gives ``(n, K)``.

    >>> d = Decision.fit([0.9, 0.8, 0.3, 0.1], [1, 1, 0, 0], "f1", kind="probability")
    >>> d.decide([0.95, 0.2]), bool(d.probability(0.9) > 0.5)
    (array([ True, False]), True)
    >>> Decision.from_dict(d.to_dict()).decide([0.95, 0.2])
    array([ True, False])

    Reference: [platt1999], [lipton2014]
    """

    kind: str
    calibration: tuple[Calibrator, ...]
    cuts: tuple[Threshold, ...]
    metric: Metric | None = None
    classes: ClassRule | None = None
    several: bool = False
    kept: KeptRows | None = None
    prevalences: tuple[Prevalence, ...] = ()
    rows: RowRule | None = None

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
        calibration: str | Sequence[Calibrator] = "auto",
        average: str = "macro",
        exclusive: bool = False,
        empty: float = 1.0,
        **constraints: Any,
    ) -> Self:
        """Calibrate, then cut.

        - `kind`, `rule`: as in `tune`; the rule "own" is the model's own boundary, a logit of 0 or a probability of ½.
          `constraints`: `subject_to`, `budget`, `prevalence`, `confidence` and `abstain` of `tune`.
        - `calibration`: "auto" learns it from the rows, in the form that their log loss asks for (see `calibrate`; with
          the rule "pooled" columns with few positives share a line, see `calibrate_together`), "platt" a line; "none"
          takes probabilities and logits as they are; or what is known, one `Platt` per column.
        - `average`: each column has its own cut ("macro"), or all share one, for the pooled counts ("micro"); "samples"
          is the mean of the scores that rows have by themselves: each row gets the set with the highest expected score,
          or all rows one common cut where that scored more. But for "own", `rule` has no say in it.
        - `empty`: what a row without positives scores if nothing is called in it ("samples").
        - `exclusive`: the columns are classes, of which each row has exactly one; `average` is "macro" or "weighted" by
          the rows of each class, see `ClassRule`.

        Shape: `scores` and `target` ``(n,)`` or ``(n, K)``, `weight` ``(n,)``; for classes that exclude each other
        `target` is also ``(n,)``, the number of each row's class.
        """
        s = read_array("scores", scores, np.float64)
        y = read_array("target", target)
        if s.size == 0:
            raise ValueError("There are no scores to cut; got empty arrays.")
        y = read_classes(y, s.shape) if exclusive and s.ndim == 2 and y.ndim == 1 else y
        if s.shape != y.shape or s.ndim not in (1, 2):
            raise ValueError(f"scores and target must be alike, (n,) or (n, K); got {s.shape} and {y.shape}.")
        if average not in ("macro", "weighted", "micro", "samples"):
            raise ValueError(f"average must be 'macro', 'weighted', 'micro' or 'samples'; got {average!r}.")
        several = s.ndim == 2
        s, y = (s, y) if several else (s[:, None], y[:, None])
        kind = read_kind(kind, float(s.min()), float(s.max()), matters=True)
        constraints = {name: value for name, value in constraints.items() if value is not None}
        goal, w = as_metric(metric), None if weight is None else read_array("weight", weight)
        own = isinstance(rule, str) and rule == "own"
        chosen = Constant() if own else as_rule(rule)
        curves = calibrate_columns(calibration, s, y, w, kind, chosen.calibrations)
        made = cls(kind, curves, (), goal, None, True)
        p = made.probability(s)
        if average == "micro" and constraints.keys() & {"confidence", "abstain"}:
            raise ValueError("confidence and abstain are about single columns; use average='macro'.")
        if exclusive and not own:  # boundaries against the rest do not say which class to call
            if constraints:
                raise ValueError(NO_CUT)
            classes = ClassRule.fit(_normalised(p), y, goal, w, rule=rule, average=average)
            return cls(kind, curves, classes.cuts, goal, classes, True)
        if average == "micro" and not own:  # one cut for all columns: what micro averages pool
            wide = None if w is None else np.repeat(w, s.shape[1])
            cut = tune(p.ravel(), y.ravel(), goal, wide, kind="probability", rule=rule, **constraints)
            return cls(kind, curves, (cut,) * s.shape[1], goal, None, several)
        if average == "samples" and not own:
            if constraints or exclusive or not several:
                raise ValueError(
                    "average='samples' is for several labels (n, K), not exclusive, and takes no subject_to, budget, "
                    "prevalence or abstain; use average='macro' for these."
                )
            cut = cut_rows(p, y, goal, w, kind="probability", empty=empty)
            return cls(
                kind, curves, (cut,) * s.shape[1], goal, None, True, rows=RowRule.choose(p, y, goal, w, cut, empty)
            )
        how: dict[str, Any] = {"kind": "probability", **constraints}
        if own:
            each = zip(curves, p.T, y.T, strict=True)
            cuts = [tune(column, truth, goal, w, rule=_own(curve, kind), **how) for curve, column, truth in each]
        else:
            cuts = list(tune(p, y, goal, w, rule=chosen, **how).columns)
        return cls(kind, curves, tuple(cuts), goal, None, several, KeptRows.of(s, cuts, constraints))

    @property
    def cut(self) -> Threshold:
        """The cut of the only column."""
        (only,) = self.cuts
        return only

    def log_odds(self, scores: Any) -> Vector:
        """Calibrated log odds, which no cut changes."""
        s = read_array("scores", scores, np.float64)
        if self.kind == "probability" and ((s < 0) | (s > 1)).any():
            raise ValueError(
                f"This decision was fitted to probabilities; got scores from {np.nanmin(s):g} to {np.nanmax(s):g}. "
                "Give probabilities of the same model."
            )
        if self.several and s.shape[-1:] != (len(self.calibration),):
            raise ValueError(f"There are {len(self.calibration)} columns; got scores of shape {s.shape}.")
        if not self.several:
            return self.calibration[0].log_odds(s)
        return np.stack([curve.log_odds(s[..., k]) for k, curve in enumerate(self.calibration)], axis=-1)

    def probability(self, scores: Any) -> Vector:
        """Calibrated probabilities; those of classes that exclude each other sum to one."""
        p: Vector = sigmoid(self.log_odds(scores))
        return p if self.classes is None else _normalised(p)

    def decide(self, scores: Any) -> Any:
        """Which rows are positive; for classes that exclude each other, which class is called.

        An array of booleans for arrays, a tensor for tensors.
        """
        p = self.probability(scores)
        if self.classes is not None:
            found = self.classes.decide(p)[..., None] == np.arange(p.shape[-1])
        elif self.rows is not None and self.metric is not None:
            found = self.rows.decide(p, self.metric, self.cuts[0])
        elif self.several:
            found = np.stack([cut.decide(p[..., k]) for k, cut in enumerate(self.cuts)], axis=-1)
        else:
            found = self.cut.decide(p)
        if not hasattr(scores, "detach"):
            return found
        made = (scores == scores).cpu()
        made.numpy()[...] = found
        return made.to(scores.device)

    def outcome(self, scores: Any) -> NDArray[np.int64]:
        """Decide in three: 1 is positive, 0 negative, and −1 is for a person, see `Threshold.outcome`.

        Shape: as in `decide`.

        >>> scores, target = [0.9, 0.8, 0.6, 0.5, 0.3, 0.1], [1, 1, 0, 1, 0, 0]
        >>> Decision.fit(scores, target, "f1", kind="probability", rule="exact", abstain=0.4).outcome([0.85, 0.55, 0.2])
        array([ 1, -1,  0])
        """
        found = np.asarray(self.decide(np.asarray(read_array("scores", scores)))) * 1
        if all(cut.asking is None for cut in self.cuts):
            return found
        p = self.probability(scores)
        return (
            np.stack([c.outcome(p[..., k]) for k, c in enumerate(self.cuts)], -1)
            if self.several
            else self.cut.outcome(p)
        )

    def margin(self, scores: Any) -> Vector:
        """How far above the cut log odds are: positive exactly where `decide` says so.

        For classes that exclude each other it is the value of calling each: the largest is called.
        """
        if self.classes is not None:
            return self.classes.values(self.probability(scores))
        cuts = np.array([float(cut.value) for cut in self.cuts])
        # A cut that calls all or none is infinitely far away; margins stay finite.
        there = np.where((cuts > 0) & (cuts < 1), logit(cuts, 1e-300), np.where(cuts > 0, FAR, -FAR))
        odds, called = self.log_odds(scores), self.decide(np.asarray(scores))
        if self.rows is not None and self.rows.one_by_one:  # midway between what is called in the row and what is not
            low, high = odds.min(-1, keepdims=True), odds.max(-1, keepdims=True)
            last = np.where(called, odds, high).min(-1, keepdims=True)
            there = (last + np.where(called, low, odds).max(-1, keepdims=True)) / 2
        margin = odds - (there if self.several else there[0])
        tiny = np.finfo(np.float64).tiny
        found: Vector = np.where(called, np.maximum(margin, tiny), np.minimum(margin, -tiny))
        return found

    def adapt(self, scores: Any = None, *, at_prevalence: Any = None) -> Self:
        r"""Follow the population: a decision for rows with another share of positives, found without labels.

        .. math:: \log\frac{p'}{1 - p'} = \log\frac{p}{1 - p} + \log\frac{\pi'/(1-\pi')}{\pi/(1-\pi)}

        The share π' is estimated from the scores of new rows, see `find_prevalence`. Where it did not move by more
        than chance, nothing changes; else all probabilities move, and the cut is chosen again by the same rule and
        under the same constraints, for labelled rows weighed to that share. `moved`, `prevalence`, `remark` and
        `explain` say what was found. It takes the scores of each class for unchanged, and says so where they are not.

        - `scores`: of at least 50 new rows, as `decide` takes them; or, for one column, a `Sketch` of their
          probabilities by this decision.
        - `at_prevalence`: the share, where it is known, in place of scores; one number, or one per column. It also
          corrects a model and a cut that come from resampled or weighted rows.

        >>> rng = np.random.default_rng(0)
        >>> y = rng.random(4000) < 0.1
        >>> d = Decision.fit(rng.normal(2 * y), y, "f1", kind="score")
        >>> new = d.adapt(rng.normal(2 * (rng.random(4000) < 0.4)))
        >>> new.moved, abs(new.prevalence - 0.4) < 0.03, new.cut.value > d.cut.value
        (True, True, True)
        >>> d.adapt(at_prevalence=0.02).prevalence
        0.02

        Reference: [saerens2002]
        """
        if self.kept is None:
            raise ValueError(
                "adapt moves the share of positives of columns that were cut one by one; classes that exclude each "
                "other, cuts for pooled counts (micro) or for the mean over rows (samples) and cuts made by hand have "
                "none."
            )
        if any(cut.metric is None for cut in self.cuts):
            raise ValueError("adapt needs the metric of the cut, which is a function that no file holds: fit again.")
        if (scores is None) == (at_prevalence is None):
            raise ValueError("adapt takes scores of new rows, or at_prevalence=, the share of positives among them.")
        columns = range(len(self.cuts))
        if at_prevalence is not None:
            given = read_array("at_prevalence", at_prevalence, np.float64)
            if given.ndim and given.shape != (len(self.cuts),):
                raise ValueError(
                    f"at_prevalence is one number, or one per column, of which there are {len(self.cuts)}; got shape "
                    f"{given.shape}."
                )
            shares = np.broadcast_to(given, len(self.cuts))
            found = [self.kept.given(k, check_prevalence(float(shares[k]))) for k in columns]
        else:
            odds, weight = self._new_rows(scores)
            found = [self._find(k, odds[:, k], weight) for k in columns]
        curves, cuts = list(self.calibration), list(self.cuts)
        here = [self.kept.share(k) if cut.prevalence is None else cut.prevalence for k, cut in enumerate(cuts)]
        moved = [k for k in columns if (found[k].value, found[k].raised) != (here[k], self._raised(k))]
        again = self.kept.cuts(found, self.cuts) if moved else cuts
        for k in moved:
            curves[k], cuts[k] = curves[k].raised(found[k].raised - self._raised(k)), again[k]
        return replace(self, calibration=tuple(curves), cuts=tuple(cuts), prevalences=tuple(found))

    def _new_rows(self, scores: Any) -> tuple[Vector, Vector | None]:
        """Log odds ``(n, K)`` of new rows, and how many of each there are."""
        if isinstance(scores, Sketch):
            if len(self.cuts) > 1 or scores.kind != "probability":
                raise ValueError("adapt takes a Sketch of probabilities, for a decision of one column.")
            p, count = scores.rows
            return logit(p)[:, None], count
        s = read_array("scores", scores, np.float64)
        if s.ndim != 1 + self.several:
            raise ValueError(f"scores must be {'(n, K)' if self.several else '(n,)'}; got {s.shape}.")
        odds = self.log_odds(s)
        for column, seen in zip(s.T if self.several else [s], self.kept.seen if self.kept else (), strict=True):
            check_seen(np.array(seen), column, np.ones(column.size), self.kind)
        return (odds if self.several else odds[:, None]), None

    def _find(self, column: int, odds: Vector, weight: Vector | None) -> Prevalence:
        assert self.kept is not None
        try:
            return self.kept.find(column, odds, weight, self.cuts[column], self._raised(column))
        except ValueError as error:
            raise ValueError(f"Column {column}: {error}" if self.several else str(error)) from None

    def _raised(self, column: int) -> float:
        return self.prevalences[column].raised if self.prevalences else 0.0

    @property
    def moved(self) -> bool:
        """Whether `adapt` found another share of positives, in any column."""
        return any(population.moved for population in self.prevalences)

    @property
    def prevalence(self) -> Any:
        """The share of positives that is decided for: a number, or one per column; None where it is not known."""
        if not self.prevalences and self.kept is None:
            return None
        found = [p.value for p in self.prevalences]
        if not found and self.kept is not None:
            known = [self.kept.share(k) for k in range(len(self.cuts))]
            found = [k if c.prevalence is None else float(c.prevalence) for k, c in zip(known, self.cuts, strict=True)]
        return np.array(found) if self.several else found[0]

    @property
    def remark(self) -> str | None:
        """What speaks against what `adapt` found, in words, or None."""
        said = [(k, p.remark) for k, p in enumerate(self.prevalences) if p.remark is not None]
        return " ".join(f"Column {k}: {text}" if self.several else text for k, text in said) or None

    def explain(self) -> str:
        """Per column: where it cuts, what the rows that it was fitted on say of that, and what `adapt` found.

        >>> print(Decision.fit([0.9, 0.8, 0.3, 0.1] * 10, [1, 1, 0, 0] * 10, "f1", kind="probability").explain())
        Positive from a probability of 0.507 on: F₁ 1.000 on the rows that chose the cut (95 % interval 0.911 to 1.000).
        """
        if self.classes is not None:
            return "\n".join(filter(None, [self.classes.explain(), self.classes.warning]))
        said = []
        for k, cut in enumerate(self.cuts if self.rows is None else self.cuts[:1]):
            where, known = f"positive from a probability of {short(cut.value, 3)} on", ""
            if math.isinf(cut.value):
                where = "never positive" if cut.value > 0 else "always positive"
            if cut.metric is not None:
                sure = cut.interval
                ends = "" if sure is None else f" (95 % interval {between(*sure.score)})"
                known = f": {title(cut.metric)} {fixed(cut.score)} on the rows that chose the cut{ends}"
            if self.rows is not None and cut.metric is not None:
                said.append(self.rows.explain(cut.metric, where))
                continue
            said.append(f"Column {k}: {where}{known}." if self.several else f"{where.capitalize()}{known}.")
            said += cut.remarks()
            said += [self.prevalences[k].explain()] if self.prevalences else []
        return "\n".join(said)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "kind": self.kind,
            "calibration": [curve.to_dict() for curve in self.calibration],
            "cuts": [cut.to_dict() for cut in self.cuts],
            "metric": None if self.metric is None else str(self.metric),
            "classes": None if self.classes is None else self.classes.to_dict(),
            "several": self.several,
            "kept": None if self.kept is None else self.kept.to_dict(),
            "prevalences": [population.to_dict() for population in self.prevalences],
            "rows": None if self.rows is None else self.rows.to_dict(),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read `to_dict` back; ValueError for anything else. A user's function as metric comes back as None."""
        try:
            kind, several = str(data["kind"]), bool(data["several"])
            curves = tuple(Calibrator.from_dict(c) for c in data["calibration"])
            cuts = tuple(Threshold.from_dict(c) for c in data["cuts"])
            classes = None if data.get("classes") is None else ClassRule.from_dict(data["classes"])
            held, found = data.get("kept"), data.get("prevalences", ())
            kept = None if held is None else KeptRows.from_dict(held)
            prevalences = tuple(map(Prevalence.from_dict, found))
            rows = None if data.get("rows") is None else RowRule.from_dict(data["rows"], len(cuts))
        except (KeyError, TypeError, AttributeError, OverflowError) as error:
            raise ValueError(f"this is no decision ({error!r:.80})") from error
        if kind not in KINDS or len(curves) != len(cuts) or not cuts or (len(cuts) > 1 and not several):
            raise ValueError("its decision is incomplete")
        if any(curve.of_logits != (kind == "probability") for curve in curves):
            raise ValueError("its calibration is for other scores")
        if len(prevalences) not in (0, len(cuts)) or (kept is not None and len(kept.rows) != len(cuts)):
            raise ValueError("the rows it kept are of other columns")
        if any(np.ndim(cut.value) or math.isnan(cut.value) for cut in cuts):
            raise ValueError("its cut is no number")
        if classes is not None and not (several and len(classes.cuts) == len(cuts)):
            raise ValueError("its gains do not fit its classes")
        metric = cuts[0].metric if classes is None else classes.metric
        if rows is not None and (metric is None or classes is not None or not several):
            raise ValueError("its rows cannot be decided one by one: there is no metric, or no several labels")
        return cls(kind, curves, cuts, metric, classes, several, kept, prevalences, rows)


def _own(curve: Calibrator, kind: str) -> Constant:
    if kind not in USUAL:
        raise ValueError("Scores of kind 'score' have no boundary of their own; use another rule.")
    return Constant(float(curve(USUAL[kind])))


def _normalised(p: Vector) -> Vector:
    # A row that no class wants has probability nowhere; then all are as likely.
    shared: Vector = (p + 1e-300) / (p + 1e-300).sum(-1, keepdims=True)
    return shared
