"""Made-up model files with a right checksum: does any end the process, hang it, or decide otherwise than its text?"""

import contextlib
import functools
import json
import tempfile
from pathlib import Path

import numpy as np

from attack import plain_scores
from attack.mutants import mutant

SAID = {
    "booster.json": plain_scores.of_xgboost,
    "booster.txt": plain_scores.of_lightgbm,
    "weights.safetensors": plain_scores.of_network,
    "trees.safetensors": plain_scores.of_forest,
}


def prepare():
    """Files that are right, by name: members of `fbeta fit`'s, and of `save_model`'s with rarer kinds of trees."""
    from fbeta.boosting import LGBMMetricClassifier, XGBMetricClassifier
    from made_up_model import content, members

    found = {name: members(content(name, "bce")) for name in ("xgboost", "lightgbm", "linear", "mlp")}
    found["forest"] = forest(found["linear"])
    rng = np.random.default_rng(0)
    X = np.where(rng.random((300, 5)) < 0.1, np.nan, rng.normal(size=(300, 5)))
    y = (np.nan_to_num(X[:, 0]) + np.nan_to_num(X[:, 1]) > 1).astype(int)
    rare = {
        "xgboost, dart": (XGBMetricClassifier, {"booster": "dart", "rate_drop": 0.5}),
        "xgboost, pruned": (XGBMetricClassifier, {"tree_method": "exact", "gamma": 2.0, "num_parallel_tree": 2}),
        "lightgbm, forest": (LGBMMetricClassifier, {"boosting": "rf", "bagging_freq": 1, "bagging_fraction": 0.5}),
        "lightgbm, zeros": (LGBMMetricClassifier, {"zero_as_missing": True}),
    }
    with tempfile.TemporaryDirectory() as folder:
        for name, (kind, params) in rare.items():
            model = kind(cv=2, n_estimators=6, max_depth=4, params=params, rounds=1, random_state=0).fit(X, y)
            model.save_model(path := Path(folder, "model.fbeta"))
            found[name] = members(path.read_bytes())
    return found


def forest(parts):
    """The members of another model, with a small forest in place of what it scores by."""
    from sklearn.ensemble import RandomForestClassifier

    from fbeta.learners.forest_trees import ForestTrees

    about = json.loads(parts["model.json"])
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, about["scorer"]["sizes"][0])), rng.integers(0, 2, 300)
    trees = ForestTrees.of(RandomForestClassifier(5, max_depth=4, random_state=0).fit(X, y))
    about |= {"model": "forest", "scorer": trees.about()}
    return {"model.json": json.dumps(about).encode(), **trees.files()}


def attempt(files, luck, folder):
    """What becomes of one mutant; AssertionError if it decides otherwise than it says."""
    name = luck.choice([*files])
    parts = mutant(files[name], luck)
    verdict = (try_estimator if "estimator.json" in parts else try_model)(parts, folder / "x.fbeta")
    return f"{name}: {verdict}"


def try_model(parts, path):
    """A file of `fbeta fit`: refused when it is read, or at the rows, or it decides as it says."""
    from fbeta.artifact import ArtifactError
    from fbeta.artifact.model_file import load
    from fbeta.sealed import seal
    from fbeta.tables.streaming import typed
    from made_up_model import frame

    path.write_bytes(seal(parts))
    try:
        model = load(path)
    except ArtifactError as error:
        check_sentence(error)
        return "refused"
    (file,) = set(parts) - {"model.json"}
    check_scores(model.scorer, parts[file], file)
    table = frame(40, seed=1)
    try:
        p, called = model.probability(table, "other"), model.decide(table, "other")
    except ValueError as error:
        check_sentence(error)
        return "refused at the rows"
    said = json.loads(parts["model.json"])["decision"]
    cut = float(said["cuts"][0]["value"])
    with np.errstate(all="ignore"):
        x = model.scorer(model.encoder.transform(typed(table, model.columns), "other"))[:, 0]
        if said["kind"] == "probability":
            x = np.clip(x, 1e-9, 1 - 1e-9)
            x = np.log(x) - np.log1p(-x)
        np.testing.assert_allclose(
            p, 1 / (1 + np.exp(-plain_scores.calibrated(said["calibration"][0], x))), rtol=1e-6, atol=1e-12
        )
    assert ((called == model.positive) == (p >= cut)).all()
    return "accepted"


def try_estimator(parts, path):
    """A file of `save_model`, in the same way."""
    from fbeta.boosting import LGBMMetricClassifier, XGBMetricClassifier
    from fbeta.sealed import seal

    file = "booster.json" if "0/booster.json" in parts else "booster.txt"
    estimator = (XGBMetricClassifier if file == "booster.json" else LGBMMetricClassifier)()
    path.write_bytes(seal(parts))
    try:
        estimator.load_model(path)
    except ValueError as error:
        check_sentence(error)
        return "refused"
    for k, model in enumerate(estimator.models_):
        check_scores(model, parts[f"{k}/{file}"], file)
    with contextlib.suppress(ValueError, UserWarning):  # names of features that rows have not
        estimator.predict(rows(estimator.n_features_in_))
    return "accepted"


def check_sentence(error):
    """One line, and not a long one."""
    assert "\n" not in str(error), error
    assert len(str(error)) < 500, error


def check_scores(scorer, data, file):
    """The scores of edgy rows are those of the plain text."""
    X = rows(scorer.inputs)
    X = np.nan_to_num(X) if file.endswith(".safetensors") else X  # encoders leave no missing value
    offset = getattr(scorer, "offset", 0.0)
    with np.errstate(all="ignore"):
        found = scorer(X)[:, 0] - offset
        expected, near = SAID[file](data, X)
        sound = np.abs(found - expected) <= near + 1e-12 * abs(offset)
    if file == "weights.safetensors":
        sound |= ~np.isfinite(found) | ~np.isfinite(near)  # it overflowed, and `predict` says so
    assert sound.all(), f"{found[~sound]} where the file says {expected[~sound]}"


@functools.cache
def rows(width):
    """Features at the edges: missing, zero, tiny, huge, and ordinary ones."""
    rng = np.random.default_rng(width)
    X = rng.normal(size=(24, width))
    X[:3] *= 1e-36
    X[3:6] *= 1e28
    X[rng.random(X.shape) < 0.1] = np.nan
    X[rng.random(X.shape) < 0.1] = 0.0
    return X.astype(np.float32)
