"""A fitted booster's estimator on disk: one sealed file of the library's own models and one small JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fbeta.decisions import Decision, Rule
from fbeta.learners.ensemble import Ensemble, read_ensemble
from fbeta.metrics import Custom, as_metric
from fbeta.plain_data import from_plain
from fbeta.sealed import DAMAGED, LARGEST, in_short, read_json, seal, unseal
from fbeta.sklearn.labels import Labels
from fbeta.writing import write

if TYPE_CHECKING:
    from fbeta.boosting.classifier import BoosterClassifier

ABOUT = "estimator.json"
FORMAT = "fbeta booster 2"
#: Kinds of labels that survive JSON: booleans, whole numbers, reals, strings.
KINDS = "biufU"
_AGAIN = "save the model again"


def save(estimator: BoosterClassifier, path: Path) -> None:
    """Write one file, whole or not at all."""
    metric = as_metric(estimator.metric)
    if isinstance(metric, Custom):
        raise ValueError(
            f"{metric} is a plain function, which no file can hold without code; subclass Metric and import that class "
            "before you load."
        )
    if path.is_dir():
        raise ValueError(f"{path} is a folder; save_model writes a file, so give a name in it.")
    classes = estimator.classes_
    if classes.dtype.kind == "O" and all(isinstance(x, str) for x in classes):
        classes = classes.astype(str)
    if classes.dtype.kind not in KINDS:
        raise ValueError(f"JSON cannot hold labels of type {classes.dtype}; train with strings or numbers.")
    about: dict[str, Any] = {
        "format": FORMAT,
        "library": estimator._learner.engine.booster.library,
        "metric": str(metric),
        "classes": classes.tolist(),
        "classes_dtype": classes.dtype.str,
        "positive": estimator.labels_.positive,
        "costs": list(estimator.costs_),
        "decision": estimator.decision_.to_dict(),
        "boosters": [model.about() for model in estimator.models_],
        "n_rounds": int(estimator.n_rounds_),
        "n_features": int(estimator.n_features_in_),
        "feature_names": getattr(estimator, "feature_names_in_", np.array([])).tolist(),
        "params": _plain_params(estimator),
    }
    members = {ABOUT: json.dumps(about, indent=1, allow_nan=False).encode()}
    write(path, seal(members | Ensemble(tuple(estimator.models_)).files()))


def load(estimator: BoosterClassifier, path: Path) -> None:
    """Read a file into an estimator, which stays as it was if anything is wrong."""
    if not path.is_file():
        raise FileNotFoundError(f"There is no file {path}; give the one that save_model wrote.")
    try:
        if path.stat().st_size > LARGEST:
            raise ValueError("is larger than any model of fbeta")
        members = unseal(path.read_bytes())
    except ValueError as error:
        raise ValueError(f"{path} {error}; {_AGAIN}.") from error
    try:
        about = read_json(members[ABOUT])
        library, said = about["library"], about["format"]
    except DAMAGED as error:
        raise ValueError(f"{path} holds no booster ({in_short(error)}); {_AGAIN}.") from error
    if said != FORMAT:
        raise ValueError(f"{path} says format {said!r:.40}, and this version reads {FORMAT!r}; {_AGAIN}.")
    booster, name = estimator._learner.engine.booster, type(estimator).__name__
    if library != booster.library:
        raise ValueError(f"{path} holds a model of {library!r:.40}, not one of {name}; use the other class.")
    try:
        metric = as_metric(str(about["metric"]))
    except (KeyError, ValueError) as error:
        raise ValueError(
            f"{path} names a metric that is not known ({in_short(error)}); import the module that defines it first."
        ) from error
    try:
        known = set(estimator.get_params(deep=False)) - {"metric"}
        params = {name: value for name, value in about["params"].items() if name in known}
        fitted = _fitted(about)
        del members[ABOUT]
        found = read_ensemble(estimator._learner, about["boosters"], members)
        if found.inputs != fitted["n_features_in_"]:
            raise ValueError("its boosters are for another number of features")
        fitted["models_"] = list(found.members)
    except DAMAGED as error:
        raise ValueError(f"{path} is damaged ({in_short(error)}); {_AGAIN}.") from error
    estimator.set_params(**params, metric=str(metric))
    if hasattr(estimator, "feature_names_in_"):
        del estimator.feature_names_in_
    for name, value in fitted.items():
        setattr(estimator, name, value)


def _fitted(about: dict[str, Any]) -> dict[str, Any]:
    """What a fit would have left, but for the boosters."""
    kind = str(about["classes_dtype"])
    if kind[1:2] not in tuple(KINDS) or not kind[2:].isdigit() or len(kind) > 7:  # texts of 99,999 characters
        raise ValueError(f"labels of type {kind:.40}")
    classes = np.array(about["classes"], dtype=np.dtype(kind))
    costs = from_plain(tuple[float, ...], about["costs"], "costs")
    if classes.shape != (2,) or not classes[0] < classes[1] or len(costs) != 2 or not np.isfinite(costs).all():
        raise ValueError("two classes in order and two finite costs are needed")
    positive = from_plain(int, about["positive"], "positive")
    if positive not in (0, 1):
        raise ValueError("the positive class is neither the first nor the second")
    decision = Decision.from_dict(about["decision"])
    if decision.several:
        raise ValueError("its decision is of several columns")
    names = from_plain(tuple[str, ...], about["feature_names"], "feature_names")
    features, rounds = (from_plain(int, about[name], name) for name in ("n_features", "n_rounds"))
    if len(names) not in (0, features):
        raise ValueError("it has not one name per feature")
    return {
        "classes_": classes,
        "labels_": Labels("binary", classes, positive),
        "costs_": costs,
        "decision_": decision,
        "history_": (),
        "n_rounds_": rounds,
        "n_features_in_": features,
        **({"feature_names_in_": np.array(names, dtype=object)} if names else {}),
    }


def _plain_params(estimator: BoosterClassifier) -> dict[str, Any]:
    """Constructor arguments that JSON can hold: a loaded model predicts; it need not fit as before."""
    kept = {}
    given = estimator.get_params(deep=False)
    del given["metric"]  # it has a place of its own
    for name, value in given.items():
        plain = str(value) if isinstance(value, Rule) else value
        plain = plain.item() if name == "pos_label" and isinstance(plain, np.generic) else plain
        try:
            json.dumps(plain, allow_nan=False)
        except (TypeError, ValueError):
            continue
        kept[name] = plain
    return kept
