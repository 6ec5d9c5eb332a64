"""A fitted booster on disk: a folder with the library's own model files and one small JSON."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fbeta.boosting.learner import Model
from fbeta.decisions import Rule
from fbeta.metrics import Custom
from fbeta.metrics import metric as read_metric
from fbeta.sklearn.labels import Labels

if TYPE_CHECKING:
    from fbeta.boosting.classifier import BoosterClassifier

NAME = "fbeta.json"
FORMAT = "fbeta booster 1"
#: Kinds of labels that survive JSON: booleans, whole numbers, reals, strings.
KINDS = "biufU"


def save(estimator: BoosterClassifier, folder: Path) -> None:
    """Write a folder; an old model in it is replaced."""
    metric = read_metric(estimator.metric)
    if isinstance(metric, Custom):
        raise ValueError(
            f"{metric} is a plain function, which no file can hold without code; subclass Metric and import that class "
            "before you load."
        )
    classes = _plain_classes(estimator.classes_)
    about: dict[str, Any] = {
        "format": FORMAT,
        "library": estimator._library,
        "metric": str(metric),
        "classes": classes.tolist(),
        "classes_dtype": classes.dtype.str,
        "costs": list(estimator.costs_),
        "cut": float(estimator.cuts_[0]),
        "slope": float(estimator._slope[0]),
        "offset": float(estimator._offset[0]),
        "offsets": [model.offset for model in estimator.models_],
        "n_rounds": int(estimator.n_rounds_),
        "n_features": int(estimator.n_features_in_),
        "feature_names": getattr(estimator, "feature_names_in_", np.array([])).tolist(),
        "params": _plain_params(estimator),
    }
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file; save_model writes a folder, so give it a name of its own.")
    json.dumps(about, allow_nan=False)  # what cannot be written must not cost the model that is there
    folder.mkdir(parents=True, exist_ok=True)
    # The JSON goes first and comes last: a folder that was left half written has none, and is refused.
    (folder / NAME).unlink(missing_ok=True)
    for old in folder.glob("booster-*"):
        old.unlink()
    for k, model in enumerate(estimator.models_):
        model.booster.save_model(_booster_file(estimator, folder, k))
    about["sha256"] = [_digest(_booster_file(estimator, folder, k)) for k in range(len(estimator.models_))]
    (folder / NAME).write_text(json.dumps(about, indent=1, allow_nan=False), encoding="utf-8")


def load(estimator: BoosterClassifier, folder: Path) -> None:
    """Read a folder into an estimator, which stays as it was if anything is wrong."""
    about = read(folder)
    if about.get("library") != estimator._library:
        raise ValueError(
            f"{folder} holds a model of {about.get('library')}, which {type(estimator).__name__} cannot read; use the "
            "other class."
        )
    try:
        metric = read_metric(str(about["metric"]))
    except (KeyError, ValueError) as error:
        raise ValueError(
            f"{folder} names a metric that is not known ({error}); import the module that defines it first."
        ) from error
    try:
        params, fitted = _params(estimator, about), _fitted(about)
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        raise ValueError(f"{folder / NAME} is damaged ({error!r}); save the model again.") from error
    fitted["models_"] = [
        Model(_read_booster(estimator, folder, k, digest), float(offset))
        for k, (digest, offset) in enumerate(zip(about["sha256"], about["offsets"], strict=True))
    ]
    estimator.set_params(**params, metric=str(metric))
    if hasattr(estimator, "feature_names_in_"):
        del estimator.feature_names_in_
    for name, value in fitted.items():
        setattr(estimator, name, value)


def _params(estimator: BoosterClassifier, about: dict[str, Any]) -> dict[str, Any]:
    """Constructor arguments that this version knows."""
    known = estimator.get_params(deep=False)
    return {name: value for name, value in about["params"].items() if name in known}


def _fitted(about: dict[str, Any]) -> dict[str, Any]:
    """What a fit would have left, but for the boosters."""
    kind = str(about["classes_dtype"])
    if kind[1:2] not in tuple(KINDS) or not kind[2:].isdigit():
        raise ValueError(f"labels of type {kind}")
    classes = np.array(about["classes"], dtype=np.dtype(kind))
    numbers = {name: float(about[name]) for name in ("cut", "slope", "offset")}
    costs = tuple(float(c) for c in about["costs"])
    whole = {"n_rounds_": int(about["n_rounds"]), "n_features_in_": int(about["n_features"])}
    if classes.shape != (2,) or len(costs) != 2 or not np.isfinite([*numbers.values(), *costs]).all():
        raise ValueError("two classes, two costs and finite numbers are needed")
    if not about["offsets"] or len(about["offsets"]) != len(about["sha256"]):
        raise ValueError("each booster needs an offset and a sum")
    names = [str(name) for name in about["feature_names"]]
    return {
        "classes_": classes,
        "labels_": Labels("binary", classes),
        "costs_": costs,
        "thresholds_": [],
        "history_": (),
        "cuts_": np.array([numbers["cut"]]),
        "_slope": np.array([numbers["slope"]]),
        "_offset": np.array([numbers["offset"]]),
        **whole,
        **({"feature_names_in_": np.array(names, dtype=object)} if names else {}),
    }


def _read_booster(estimator: BoosterClassifier, folder: Path, k: int, digest: Any) -> Any:
    """A booster whose file is the one that was written: some damaged ones end the whole process inside the library."""
    path = _booster_file(estimator, folder, k)
    if not path.is_file():
        raise FileNotFoundError(f"There is no {path.name} in {folder}; save the model again.")
    if _digest(path) != digest:
        raise ValueError(f"{path} is not the file that save_model wrote (another sum); save the model again.")
    return estimator._read_booster(path)


def read(folder: Path) -> dict[str, Any]:
    """Read the small JSON, or say what is wrong with the folder."""
    path = folder / NAME
    if not path.is_file():
        raise FileNotFoundError(f"There is no {NAME} in {folder}; give the folder that save_model wrote.")
    try:
        about = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is not JSON ({error}); save the model again.") from error
    if not isinstance(about, dict) or about.get("format") != FORMAT:
        found = about.get("format") if isinstance(about, dict) else about
        raise ValueError(
            f"{path} says format {found!r}, and this version reads {FORMAT!r}; save the model again."
        )
    return about


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _booster_file(estimator: BoosterClassifier, folder: Path, k: int) -> Path:
    return folder / f"booster-{k}.{estimator._suffix}"


def _plain_classes(classes: NDArray[Any]) -> NDArray[Any]:
    """Labels as an array that JSON can hold; objects must all be strings."""
    if classes.dtype.kind == "O" and all(isinstance(x, str) for x in classes):
        classes = classes.astype(str)
    if classes.dtype.kind not in KINDS:
        raise ValueError(
            f"Labels of type {classes.dtype} cannot be written to JSON; train with strings or numbers."
        )
    return classes


def _plain_params(estimator: BoosterClassifier) -> dict[str, Any]:
    """Constructor arguments that JSON can hold: a loaded model predicts; it need not fit as before."""
    given = {name: v for name, v in estimator.get_params(deep=False).items() if name != "metric"}
    if isinstance(given["rule"], Rule):
        given["rule"] = str(given["rule"])
    if isinstance(given["pos_label"], np.generic):
        given["pos_label"] = given["pos_label"].item()
    kept = {}
    for name, value in given.items():
        try:
            json.dumps(value, allow_nan=False)
        except (TypeError, ValueError):
            continue
        kept[name] = value
    return kept
