"""Compare methods on a table, and fit the one that is chosen or best on all rows."""

import datetime
import hashlib
import inspect
import math
import platform
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from fbeta.artifact import Model
from fbeta.comparison import parts
from fbeta.comparison.choosing import better_constant, chosen, constant_name, simplest_first
from fbeta.comparison.folder import Folder
from fbeta.comparison.inference import TESTS, ByRows, Calls, JudgedRows
from fbeta.comparison.judging import Judged, compared, decision_for, held_calls, judge, masses
from fbeta.comparison.methods import Method, ModelChoice, Names, check
from fbeta.comparison.parts import Progress
from fbeta.comparison.plan import Plan, versions
from fbeta.comparison.promised import check_limits, for_one_of, told
from fbeta.comparison.result import Comparison
from fbeta.comparison.time_budget import most_finished, shortened
from fbeta.comparison.verdict import BETTER, NO_SIGNAL, judged_together
from fbeta.data import load_table, root
from fbeta.learners.classifiers import Own, unwritten
from fbeta.learners.ensemble import Ensemble, check_ensemble
from fbeta.metrics import Metric, as_metric, title
from fbeta.numerals import fixed
from fbeta.spelling import did_you_mean, unknown
from fbeta.tables import Table
from fbeta.tables.errors import listed
from fbeta.tables.table import digest


def _aloud(sentence: str) -> None:
    print(sentence, file=sys.stderr, flush=True)


def compare(
    data: Any,
    target: str | None = None,
    *,
    metric: Metric | str | Any = "fbeta:beta=1",
    models: ModelChoice = None,
    losses: Names = None,
    trials: int = 1,
    splits: int = 5,
    folds: int = 5,
    rule: str = "shrunk",
    margin: float = 0.01,
    test: str = "rows",
    subject_to: Mapping[Any, float] | None = None,
    confidence: float | None = None,
    abstain: float | str | None = None,
    ensemble: bool = False,
    seed: int = 0,
    device: str = "cpu",
    folder: Path | str | None = None,
    jobs: int | None = 1,
    minutes: float | None = None,
    train: bool = True,
    tick: Progress = lambda done, of: None,
    say: Callable[[str], None] = _aloud,
    seeds: int | None = None,
    **options: Any,
) -> Comparison:
    """Compare losses and cuts on a table: which is best, by how much, and is that more than noise?

    What it found has a `verdict`: the chosen method is "better" than the baseline, "equivalent" within the margin, or
    that is "undecided"; with "no signal", nothing is better than calling all rows positive, or none.

    - `data`: a `Table`, a data frame, a path, or the name of a set; `options` are those of `fbeta.data.load_table`.
    - `models`, `losses`: names; the usual models that are installed, and six common losses, unless given. Models of
      your own are a dict, ``{"mine": RandomForestClassifier(), "xgboost": None}``: anything with scikit-learn's `fit`,
      and `predict_proba` or `decision_function`; None is the model that is known by the name.
    - `trials`: settings of each model, its own and others drawn at random, of which out-of-fold rows choose in every
      split. Models of your own have some to draw if they come as a pair, ``(estimator, distributions)``.
    - `splits`: outer splits, five to a deal, in which every row is tested once; `seeds` is their old name.
    - `folds`: inner folds, shared by all methods. `rule`: how the cut is chosen.
    - `margin`: a difference of the metric that does not matter.
    - `test`: "rows" pools the test rows and looks at the influence of each, or of blocks of time where the table has
      times; "splits" is the corrected resampled t-test over splits.
    - `subject_to`, `confidence`, `abstain`: what every cut must reach, on its rows or as a promise, and the rows for a
      person, which are not scored: see `tune`.
    - `ensemble`: judge the mean of the folds' models, not one model of all rows.
    - `folder`: keeps finished parts, so that a killed comparison goes on and ends with the same numbers; processes
      that share one divide the work.
    - `jobs`: processes to train in; None is as many as there are cores where the table is small. Other backends of
      joblib take over inside ``joblib.parallel_config(…)``.
    - `minutes`: nothing is begun after that. All methods get one split before any gets two; what is left out is said,
      and with a `folder` the next call goes on.
    - `train`: False takes the splits that the folder holds whole, and trains nothing.
    - `tick`: is told how many of how many epochs are done (a booster counts as ten). `say`: of what goes wrong.

    >>> from fbeta.data import load_table
    >>> found = compare(load_table("breast-cancer"), models=["linear"], losses=["tangent"], splits=2, folds=2)
    >>> [candidate.name for candidate in found.candidates], found.advised
    (['linear, bce', 'linear, tangent'], 'linear, bce')

    Reference: [bayle2020], [nadeau2003]
    """
    began = time.perf_counter()
    _check_options(compare, options)
    splits = splits if seeds is None else seeds
    if test not in TESTS:
        raise unknown("test", test, TESTS)
    if not 0 < margin < math.inf:
        raise ValueError(f"margin must be a number above 0; got {margin!r}. It is a difference that does not matter.")
    until = math.inf if minutes is None else minutes
    if not until > 0:
        raise ValueError(f"minutes must be a number above 0; got {minutes!r}.")
    goal, methods = check(metric, models, losses, rule=rule, device=device, trials=trials)
    limits = check_limits(subject_to, confidence, abstain)
    table = data if isinstance(data, Table) else load_table(data, target, **options)
    plan = Plan.make(table, goal, methods, splits, folds, seed, rule, check_ensemble(ensemble))
    kept = None if folder is None else Folder(folder, say)
    if train:
        scores = parts.train(plan, table, device=device, folder=kept, jobs=jobs, tick=tick, say=say, minutes=until)
    else:
        read = ((part, kept.read(part)) for part in plan.parts) if kept is not None else ()
        scores = ((part, found) for part, found in read if found is not None)
    y = table.y.astype(np.int64)
    judged: dict[int, dict[Method, Judged]] = {k: {} for k in range(splits)}
    for part, found in scores:
        for loss, x in found.items():
            method = Method(part.model, loss)
            try:
                judged[part.split][method] = judge(x, y, plan.splits[part.split], goal, rule, table.weight, **limits)
            except ValueError as error:
                if not limits:
                    raise
                raise ValueError(f"{method.name}, split {part.split + 1}: {error}") from error
    there = methods if minutes is None else most_finished(methods, judged)
    whole = {k: found for k, found in judged.items() if found.keys() >= set(there)}
    if not whole or not there:
        raise ValueError("no split is finished by all methods yet; train first, or ask for fewer methods.")
    finished = replace(plan, methods=tuple(there), splits=tuple(plan.splits[k] for k in whole))
    version = torch.__version__.partition("+")[0]
    machine = f"{platform.machine()}, {torch.get_num_threads()} threads, torch {version}"
    seconds = time.perf_counter() - began
    made: dict[str, Any] = {"seconds": seconds, "machine": machine, "trials": trials}
    short = "" if minutes is None else shortened(methods, there, splits, len(whole))
    result = compared(table, finished, list(whole.values()), margin=margin, test=test, short=short, **made)
    return replace(result, promise=told(result, limits))


def _check_options(call: Callable[..., Any], options: Mapping[str, Any]) -> None:
    """Refuse a misspelt option, which would go on to `load_table`."""
    known = {name for function in (call, load_table) for name in inspect.signature(function).parameters}
    for name in options.keys() - known:
        raise TypeError(f"{call.__name__}() has no option {name!r}.{did_you_mean(name, known)}")


def usual_folder(table: Table) -> Path:
    """Where the finished parts of a table are kept by default."""
    return root() / "compare" / digest(table)[:16]


def fit(
    data: Any,
    target: str | None = None,
    *,
    metric: Metric | str | Any = None,
    models: ModelChoice = None,
    losses: Names = None,
    trials: int | None = None,
    comparison: Comparison | None = None,
    folds: int | None = None,
    rule: str | None = None,
    subject_to: Mapping[Any, float] | None = None,
    confidence: float | None = None,
    abstain: float | str | None = None,
    ensemble: bool | None = None,
    seed: int = 0,
    device: str = "cpu",
    force: bool = False,
    sha256: str = "",
    tick: Progress = lambda done, of: None,
    **options: Any,
) -> Model:
    """Train on all rows of a table, and cut where the out-of-fold rows say.

    - `data`: a `Table`, a data frame, a path, or the name of a set; `options` are those of `fbeta.data.load_table`.
    - `models`, `losses`: what to train. Of several methods the simplest is kept whose out-of-fold score is within one
      standard error of the best.
    - `comparison`: take the method it advises instead, with its metric, rule, folds, ensemble and roles of columns
      unless others are given; `models` are then those that it was about, if some are your own.
    - `trials`: as in `compare`; as many as the comparison had, or 1.
    - `folds`: 5, for calibration, cut and early stopping. `rule`: how the cut is chosen, "shrunk".
    - `subject_to`, `confidence`, `abstain`: what the cut must reach, and the rows for a person: see `tune`. Where the
      best of several methods is kept, each must promise more, so that the promise holds for the one that is.
    - `ensemble`: keep the models of the folds, which answer by their mean, not one of all rows.
    - `force`: fit even without a signal: where nothing is reliably better than calling all rows positive, or none.
    - `sha256`: of the file that the rows come from, to be kept in the model. `tick`: is told how far it is.

    >>> model = fit("breast-cancer", metric="fbeta:beta=2", models="linear", losses="tangent", folds=2)
    >>> model.name, model.decision.cut.score > 0.9
    ('linear, tangent', True)
    """
    began = time.perf_counter()
    _check_options(fit, options)
    limits = check_limits(subject_to, confidence, abstain)
    if comparison is not None:
        metric, models, losses, rule, folds, ensemble = _asked(
            comparison, metric, models, losses, rule, folds, ensemble, force
        )
        options = comparison.reading(target=target, **options)
        target, trials = options.pop("target"), trials or comparison.trials
    rule, folds = rule or "shrunk", folds or 5
    given = "fbeta:beta=1" if metric is None else metric
    goal, methods = check(given, models, losses, rule=rule, device=device, baseline=False, trials=trials or 1)
    table = data if isinstance(data, Table) else load_table(data, target, **options)
    if comparison is not None:
        was = comparison.table
        left = {*was.drop, was.group, was.time, was.weight}
        if more := [column.name for column in table.columns if column.name in left]:
            raise ValueError(f"the comparison did not learn from {listed(more)}: leave it out of this table (drop=).")
    plan = Plan.whole(table, goal, methods, folds, seed, rule, check_ensemble(ensemble or False))
    split, y = plan.splits[0], table.y.astype(np.int64)
    inside, truth, fold = split.fold >= 0, y[split.held], split.fold[split.fold >= 0]
    weight = table.weight_of(split.held)
    scores = parts.train(plan, table, device=device, tick=tick)
    found = {Method(part.model, loss): x for part, of_part in scores for loss, x in of_part.items()}
    fitted = [method for method in methods if found[method].fitted is not None]
    if not fitted:
        raise ValueError(
            f"training diverged ({', '.join(m.name for m in methods)}): its scores are not finite; choose another "
            "model or loss."
        )
    called: dict[Method, NDArray[np.bool_] | None] = {
        method: held_calls(
            found[method].inner[inside],
            truth,
            fold,
            found[method].calibration,
            goal,
            rule,
            weight,
            limits.get("subject_to"),
        )
        for method in fitted
    }
    held: dict[Method, Calls] = {method: [calls] for method, calls in called.items() if calls is not None}
    inference = ByRows(goal, JudgedRows(y, table.group, [split.held], [0], table.weight), held=1 / folds)
    # Where no cut of some folds meets what is asked, that of all rows may, or says why not.
    method = chosen(inference, held, simplest_first(list(held))) if held else fitted[0]
    if comparison is None and held and not force:
        _need_signal(inference, held, method)
    trained = found[method]
    assert trained.fitted is not None
    decision = decision_for(
        trained.inner[inside], truth, trained.calibration, goal, rule, weight, **for_one_of(methods, limits)
    )
    about = {
        "data": table.name,
        "sha256": sha256,
        "rows": len(table),
        "positives": int(table.y.sum()),
        "title": title(goal),
        "folds": folds,
        "ensemble": isinstance(trained.fitted[1], Ensemble),
        "seed": seed,
        "tried": [m.name for m in methods],
        "epochs": trained.rounds,
        "collapse": trained.remark,
        "seconds": round(time.perf_counter() - began, 1),
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "versions": versions("numpy", "polars", "torch", method.learner.package),
        "notes": list(table.notes),
    }
    named: dict[str, Any] = {"target": table.target, "positive": table.positive, "negative": table.negative}
    return Model(*trained.fitted, decision, goal, **named, model=method.model, loss=method.loss, provenance=about)


def _need_signal(inference: ByRows, held: Mapping[Method, Calls], method: Method) -> None:
    """Refuse to fit what out-of-fold rows do not tell from calling all rows positive, or none."""
    rows, tested = inference.rows, inference.rows.tested[0]
    y = rows.y[tested]
    everything = better_constant(inference.metric, *masses(y, None if rows.weight is None else rows.weight[tested]))
    called = [np.full(len(y), everything)]
    beside = judged_together([inference.difference(mine, called) for mine in held.values()])
    if dict(zip(held, beside, strict=True))[method].word != BETTER:
        scores = [f"{title(inference.metric)} {fixed(inference.score(x).mean)}" for x in (held[method], called)]
        raise ValueError(
            f"no signal: {method.name} has {scores[0]} on out-of-fold rows, which is not reliably better than "
            f"{scores[1]} of calling {constant_name(everything)}: bring more rows or better columns, or fit all "
            "the same (--force, force=True)."
        )


def digest_of_file(path: Path | str) -> str:
    """The SHA-256 of a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _asked(
    comparison: Comparison,
    metric: Any,
    models: ModelChoice,
    losses: Any,
    rule: str | None,
    folds: int | None,
    ensemble: bool | None,
    force: bool,
) -> tuple[Any, ModelChoice, str, str, int, bool]:
    own = models if isinstance(models, Mapping) else {}
    if losses or (models and not own):
        raise ValueError("a comparison says which method is fitted: leave models and losses out.")
    if metric is not None and as_metric(metric) != as_metric(comparison.metric):
        raise ValueError(
            f"the comparison is about {comparison.metric}, not {as_metric(metric)}: leave the metric out, or compare "
            "again."
        )
    if comparison.verdict == NO_SIGNAL and not force:
        raise ValueError(
            "the comparison found no signal, so nothing is fitted: bring more rows or better columns, or fit all "
            "the same (--force, force=True)."
        )
    try:
        best = comparison.candidate(comparison.advised or comparison.winner)
    except KeyError as error:
        raise ValueError("the comparison advises no method: compare again.") from error
    given = metric if metric is not None else comparison.metric
    mean = best.ensemble if ensemble is None else ensemble
    if best.model not in own and best.loss in Own.losses:
        raise ValueError(f"the comparison advises {best.model}, a model of your own. {unwritten(best.model)}")
    only = {best.model: own.get(best.model)}
    return given, only, best.loss, rule or best.rule, folds or comparison.folds or 5, mean
