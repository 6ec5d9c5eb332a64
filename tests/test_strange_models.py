"""Model files from strangers, with a right checksum: each is refused in one sentence, or decides as it says."""

import hashlib
import io
import json
import re
import zipfile

import numpy as np
import pytest
from scipy.sparse import csr_array
from typer.testing import CliRunner

from fbeta import tune
from fbeta.boosting import LGBMMetricClassifier, XGBMetricClassifier
from fbeta.cli import app
from fbeta.learners.trees import DEEPEST
from fbeta.sealed import DAMAGED, read_json, seal
from made_up_model import changed, content, frame, members

BOTH = [XGBMetricClassifier, LGBMMetricClassifier]


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    path = tmp_path_factory.mktemp("rows") / "rows.csv"
    frame(20).write_csv(path)
    return path


def refused(sealed, words, rows, folder):
    """`fbeta predict` says one sentence and ends with 2."""
    (folder / "x.fbeta").write_bytes(sealed)
    result = CliRunner().invoke(app, ["predict", str(folder / "x.fbeta"), str(rows), "-o", str(folder / "out.csv")])
    assert result.exit_code == 2, result.output
    (said,) = result.stderr.splitlines()
    assert said.startswith("fbeta: ")
    assert words in said
    assert not (folder / "out.csv").exists()


# --- XGBoost ---------------------------------------------------------------------------------------------------------


def model(said):
    return said["learner"]["gradient_booster"]["model"]


def tree(key, place, value):
    """Another number in the first tree."""
    return lambda said: model(said)["trees"][0][key].__setitem__(place, value)


def fact(**values):
    return lambda said: said["learner"]["learner_model_param"].update(values)


def chain(levels):
    """A tree whose left children are leaves: as deep as it has splits."""

    def put(said):
        nodes = 2 * levels + 1
        left, right = ([i + k if i % 2 == 0 and i < nodes - 1 else -1 for i in range(nodes)] for k in (1, 2))
        names = ("split_indices", "default_left", "split_type", "split_conditions", "base_weights")
        made = dict.fromkeys((*names, "loss_changes", "sum_hessian"), [0] * nodes)
        param = {"num_nodes": str(nodes), "size_leaf_vector": "1"}
        model(said)["trees"][0] = made | {"left_children": left, "right_children": right, "tree_param": param}

    return put


XGBOOST = {
    "another class": (lambda s: model(s).update(tree_info=[5] * len(model(s)["trees"])), "not all of the one class"),
    "a child far away": (tree("left_children", 0, 10**6), "a child of a node lies outside its tree"),
    "a child before all": (tree("right_children", 0, -7), "right_children is not from -1 to"),
    "a cycle": (tree("left_children", 1, 0), "a child of a node lies outside its tree"),
    "a cycle beside the tree": (
        lambda s: [tree(k, i, v)(s) for i, v in ((0, -1), (1, 1), (2, 1)) for k in ("left_children", "right_children")],
        "two parents, or none",
    ),
    "two parents": (tree("left_children", 0, 2), "two parents, or none"),
    "one child": (tree("left_children", 0, -1), "a node of a tree has one child"),
    "a feature beyond": (tree("split_indices", 0, 10), "a feature beyond the 10 columns"),
    "a feature before": (tree("split_indices", 0, -1), "split_indices is not from 0"),
    "no root": (tree("split_indices", 0, 2**31 - 1), "a tree has no root"),
    "a huge threshold": (tree("split_conditions", 0, 1e39), "split_conditions is not finite"),
    "a huge leaf": (tree("split_conditions", -1, 1e31), "a leaf is larger than 1e+30"),
    "a text": (tree("split_conditions", 0, "0.5"), "is damaged"),
    "a list in a list": (tree("left_children", 0, [1]), "is damaged"),
    "half a node": (tree("left_children", 0, 1.5), "is damaged"),
    "a split by categories": (tree("split_type", 0, 1), "split_type is not from 0 to 0"),
    "a side of missing values": (tree("default_left", 0, 7), "default_left is not from 0 to 1"),
    "a short array": (lambda s: model(s)["trees"][0]["split_conditions"].pop(), "arrays of several lengths"),
    "lying nodes": (lambda s: model(s)["trees"][0]["tree_param"].update(num_nodes="9999"), "arrays of several lengths"),
    "many values": (
        lambda s: model(s)["trees"][0]["tree_param"].update(size_leaf_vector="3"),
        "leaves of several values",
    ),
    "no nodes": (
        lambda s: (
            [x.clear() for x in model(s)["trees"][0].values() if isinstance(x, list)]
            + [model(s)["trees"][0]["tree_param"].update(num_nodes="0")]
        ),
        "a tree has no node",
    ),
    "too deep": (chain(DEEPEST + 1), f"more than {DEEPEST:,} levels"),
    "no trees": (lambda s: model(s).update(trees=[]), "it has no trees"),
    "no tree a round": (
        lambda s: model(s)["gbtree_model_param"].update(num_parallel_tree="0"),
        "as many in each round",
    ),
    "rounds without end": (lambda s: model(s)["iteration_indptr"].__setitem__(-1, 10**6), "as many in each round"),
    "rounds backwards": (lambda s: model(s)["iteration_indptr"].reverse(), "as many in each round"),
    "lying trees": (lambda s: model(s)["gbtree_model_param"].update(num_trees="1000"), "not all there"),
    "many classes": (fact(num_class="3"), "several classes or targets"),
    "many targets": (fact(num_target="2"), "several classes or targets"),
    "no probability": (fact(base_score="[1E0]"), "its first score is no probability"),
    "a huge first score": (fact(base_score="1E39"), "its first score is no probability"),
    "no number": (fact(base_score="[nan]"), "'[nan]' is no number"),
    "absurd columns": (fact(num_feature="9" * 12), "is no count"),
    "other columns": (fact(num_feature="11"), "the model takes 11 features, and the encoder makes 10"),
    "softmax": (lambda s: s["learner"]["objective"].update(name="multi:softmax"), "no 'gbtree' of 'multi:softmax'"),
    "linear": (lambda s: s["learner"]["gradient_booster"].update(name="gblinear"), "holds trees of binary:logistic"),
    "dart without weights": (lambda s: s["learner"]["gradient_booster"].update(name="dart"), "no 'gbtree'"),
}


@pytest.mark.parametrize("case", XGBOOST)
def test_trees_of_xgboost(case, rows, tmp_path):
    change, words = XGBOOST[case]
    refused(changed(content("xgboost", "bce"), "booster.json", change), words, rows, tmp_path)


def test_a_tree_may_be_as_deep_as_the_limit(rows, tmp_path):
    (tmp_path / "x.fbeta").write_bytes(changed(content("xgboost", "bce"), "booster.json", chain(DEEPEST)))
    said = CliRunner().invoke(app, ["predict", str(tmp_path / "x.fbeta"), str(rows)])
    assert said.exit_code == 0, said.output


@pytest.mark.parametrize(
    "data", [b"", b"{}", b"[" * 10**6, b'{"learner":' * 10**5, b"binf" + b"\xff" * 99, b"{L\x7f" + b"\xff" * 7, b"\xff"]
)
@pytest.mark.parametrize(("name", "member"), [("xgboost", "booster.json"), ("lightgbm", "booster.txt")])
def test_no_booster_at_all(name, member, data, rows, tmp_path):
    refused(seal(members(content(name, "bce")) | {member: data}), "is damaged", rows, tmp_path)


# --- LightGBM --------------------------------------------------------------------------------------------------------

LIGHTGBM = {
    "a feature beyond": (r"^split_feature=\S+", "split_feature=10", "a feature beyond the 10 columns"),
    "a feature before": (r"^split_feature=\S+", "split_feature=-1", "a feature beyond the 10 columns"),
    "a child far away": (r"^left_child=\S+", "left_child=1000000", "a child of a node lies outside its tree"),
    "a leaf far away": (r"^left_child=\S+", "left_child=-1000000", "a child of a node lies outside its tree"),
    "a leaf as a split": (r"^(num_leaves=(\d+)\n(?:.*\n)*?left_child=)\S+", r"\g<1>\2", "lies outside its tree"),
    "a cycle": (r"^left_child=\S+", "left_child=0", "a child of a node lies outside its tree"),
    "two parents": (r"^left_child=\S+ \S+", "left_child=-1 -1", "two parents, or none"),
    "many leaves": (r"^num_leaves=.*", "num_leaves=1000000", "not as many numbers of left_child"),
    "no leaves": (r"^num_leaves=.*", "num_leaves=0", "num_leaves is not from 1"),
    "few leaves": (r"^num_leaves=.*", "num_leaves=2", "not as many numbers of left_child"),
    "a short list": (r"^threshold=\S+ ", "threshold=", "not as many numbers of threshold"),
    "categories": (r"^num_cat=0", "num_cat=1", "neither splits by categories nor linear trees"),
    "a split by categories": (r"^decision_type=2", "decision_type=1", "in a way that is not known"),
    "a kind of missing values": (r"^decision_type=2", "decision_type=12", "in a way that is not known"),
    "linear trees": (r"^is_linear=0", "is_linear=1", "neither splits by categories nor linear trees"),
    "no tree a round": (
        r"^num_tree_per_iteration=1",
        "num_tree_per_iteration=0",
        "no trees of LightGBM 4 for one class",
    ),
    "many classes": (r"^num_class=1", "num_class=3", "no trees of LightGBM 4 for one class"),
    "another version": (r"^version=v4", "version=v9", "no trees of LightGBM 4 for one class"),
    "another loss": (r"^objective=.*", "objective=multiclass num_class:3", "objective binary, no 'multiclass"),
    "absurd columns": (r"^max_feature_idx=9", "max_feature_idx=2147483646", "not as many as their names"),
    "other columns": (
        r"^max_feature_idx=9\n((?:.*\n)*feature_names=)",
        r"max_feature_idx=10\n\1more ",
        "takes 11 features",
    ),
    "no number": (r"^threshold=\S+", "threshold=nan", "holds something else"),
    "an infinite one": (r"^leaf_value=\S+", "leaf_value=1e999", "leaf_value is not finite"),
    "a huge leaf": (r"^leaf_value=\S+", "leaf_value=1e31", "a leaf is larger than 1e+30"),
    "other digits": (r"^leaf_value=\S+", "leaf_value=1_0", "holds something else"),
    "said twice": (r"^(leaf_value=.*)", r"\1\n\1", "it says something twice"),
    "not said": (r"^leaf_value=.*\n", "", "no 'leaf_value'"),
    "no trees": (r"^Tree=0(.*\n)*end of trees", "end of trees", "it has no trees"),
    "another order": (r"^Tree=1$", "Tree=2", "not one after another"),
    "a flat loss": (r"sigmoid:1", "sigmoid:0", "sigmoid is not above 0"),
    "a loss that falls": (r"sigmoid:1", "sigmoid:-1", "sigmoid is not above 0"),
    "no end": (r"^end of trees", "end", "no trees of LightGBM 4 for one class"),
}


@pytest.mark.parametrize("case", LIGHTGBM)
def test_trees_of_lightgbm(case, rows, tmp_path):
    pattern, to, words = LIGHTGBM[case]
    parts = members(content("lightgbm", "bce"))
    text = parts["booster.txt"].decode()
    new = re.sub(pattern, to, text, count=1, flags=re.MULTILINE)
    assert new != text
    refused(seal(parts | {"booster.txt": new.encode()}), words, rows, tmp_path)


# --- what estimators write -------------------------------------------------------------------------------------------


def some(n=400):
    rng = np.random.default_rng(0)
    X = np.where(rng.random((n, 5)) < 0.1, np.nan, rng.normal(size=(n, 5)).round(2))
    return X, (np.nan_to_num(X[:, 0] + X[:, 1] * X[:, 2]) > 0.5).astype(int)


RARE = [
    (XGBMetricClassifier, {"booster": "dart", "rate_drop": 0.5}),
    (XGBMetricClassifier, {"tree_method": "exact", "gamma": 2.0}),  # pruned: nodes without a tree
    (XGBMetricClassifier, {"num_parallel_tree": 3, "subsample": 0.5}),
    (XGBMetricClassifier, {"grow_policy": "lossguide", "max_leaves": 60, "max_depth": 0}),
    (XGBMetricClassifier, {"min_child_weight": 1e9}),  # single leaves
    (LGBMMetricClassifier, {"boosting": "rf", "bagging_freq": 1, "bagging_fraction": 0.5}),
    (LGBMMetricClassifier, {"boosting": "dart"}),
    (LGBMMetricClassifier, {"zero_as_missing": True}),
    (LGBMMetricClassifier, {"sigmoid": 2.5}),
    (LGBMMetricClassifier, {"min_data_in_leaf": 10**6}),
]


@pytest.mark.parametrize(("kind", "params"), RARE)
def test_rarer_trees_are_kept_to_the_last_bit(kind, params, tmp_path):
    X, y = some()
    made = kind(cv=2, n_estimators=9, rounds=1, params=params, random_state=0).fit(X, y)
    made.save_model(tmp_path / "x.fbeta")
    read = kind().load_model(tmp_path / "x.fbeta")
    np.testing.assert_array_equal(read.decision_function(X), made.decision_function(X))
    before, after = made.models_[0].native, read.models_[0].native
    if kind is XGBMetricClassifier:
        assert after.get_score(importance_type="gain") == before.get_score(importance_type="gain")
        assert after.num_boosted_rounds() == before.num_boosted_rounds() == 9
    else:
        np.testing.assert_allclose(after.feature_importance("gain"), before.feature_importance("gain"), rtol=1e-5)
        np.testing.assert_array_equal(after.predict(X), before.predict(X))


@pytest.mark.filterwarnings("ignore::UserWarning")  # of parameters that are not used so
@pytest.mark.parametrize(
    ("kind", "params", "words"),
    [
        (XGBMetricClassifier, {"booster": "gblinear"}, "no 'gblinear' of 'binary:logistic'"),
        (LGBMMetricClassifier, {"linear_tree": True}, "neither splits by categories nor linear trees"),
        (LGBMMetricClassifier, {"categorical_feature": [4]}, "neither splits by categories nor linear trees"),
    ],
)
def test_what_a_file_cannot_hold_is_not_written(kind, params, words, tmp_path):
    X, y = some()
    X[:, 4] = 2 * y + (X[:, 3] > 0)  # four categories
    X = csr_array(np.nan_to_num(X)) if kind is XGBMetricClassifier else X
    made = kind(cv=2, n_estimators=3, rounds=1, params=params).fit(X, y)
    with pytest.raises(ValueError, match=rf"This booster cannot be saved \(.*{words}.*\); train it with other param"):
        made.save_model(tmp_path / "x.fbeta")
    assert not list(tmp_path.iterdir())


@pytest.fixture(scope="module", params=BOTH)
def saved(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "x.fbeta"
    request.param(cv=2, n_estimators=5, rounds=1, random_state=0).fit(*some()).save_model(path)
    return request.param, path.read_bytes()


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"classes_dtype": "<U999999999", "classes": ["a", "b"]}, "labels of type <U999999999"),
        ({"classes": [1, 1]}, "two classes"),
        ({"classes": [1, 0]}, "two classes in order"),
        ({"classes_dtype": "<f8", "classes": ["nan", "nan"]}, "two classes in order"),
        ({"positive": True}, "positive should be int; got True"),
        ({"costs": ["1", 2]}, "costs[0] should be float; got '1'"),
        ({"n_features": 5.7}, "n_features should be int; got 5.7"),
        ({"feature_names": "abcde"}, "feature_names should be a list; got 'abcde'"),
        ({"feature_names": [1, 2, 3, 4, 5]}, "feature_names[0] should be str; got 1"),
        ({"feature_names": ["a"]}, "not one name per feature"),
        ({"boosters": [{"kind": "x", "offset": 1e31}]}, "not finite, or absurd"),
        ({"boosters": [{"kind": "x", "offset": 10**400}]}, "is damaged"),
        ({"n_features": 10**15}, "another number of features"),
        ({"n_features": 10**30}, "n_features is too large for a number"),
        ({"costs": [10**400, 1]}, "is damaged"),
    ],
)
def test_files_of_estimators(values, words, saved, tmp_path):
    kind, sealed = saved
    (tmp_path / "x.fbeta").write_bytes(changed(sealed, "estimator.json", lambda said: said.update(values)))
    with pytest.raises(ValueError, match=r"x.fbeta is damaged \(.*\); save the model again") as error:
        kind().load_model(tmp_path / "x.fbeta")
    assert words in str(error.value)


def test_parameters_do_not_speak_of_the_metric(saved, tmp_path):
    kind, sealed = saved
    strange = changed(sealed, "estimator.json", lambda said: said["params"].update(metric="recall", nonsense=1))
    (tmp_path / "x.fbeta").write_bytes(strange)
    assert kind().load_model(tmp_path / "x.fbeta").metric == "fbeta:beta=1"


def test_trees_and_members_of_estimators(saved, tmp_path, monkeypatch):
    kind, sealed = saved
    parts, path = members(sealed), tmp_path / "x.fbeta"
    damaged = {
        "0/booster.json": lambda text: text.replace(b'"tree_info":[0', b'"tree_info":[5'),
        "0/booster.txt": lambda text: text.replace(b"left_child=", b"left_child=1000000 ", 1),
    }
    (member,) = set(parts) & set(damaged)
    for strange in (seal(parts | {member: damaged[member](parts[member])}), seal(parts | {"run.py": b""})):
        assert strange != sealed
        path.write_bytes(strange)
        with pytest.raises(ValueError, match="is damaged .*; save the model again"):
            kind().load_model(path)
    monkeypatch.setattr("fbeta.boosting.files.LARGEST", 3)
    with pytest.raises(ValueError, match="is larger than any model of fbeta; save the model again"):
        kind().load_model(path)


# --- descriptions ----------------------------------------------------------------------------------------------------


def part(name, /, **values):
    """A part of the encoder that says something else; parts are x0, x1, x2, shop, day …, new."""

    def put(said):
        (found, *_) = (p for p in said["encoder"]["parts"] if p["name"] == name)
        found.update(values)

    return put


def column(name, /, **values):
    def put(said):
        (found,) = (c for c in said["encoder"]["schema"] if c["name"] == name)
        found.update(values)

    return put


def decision(**values):
    return lambda said: said["decision"].update(values)


def cut(**values):
    return lambda said: said["decision"]["cuts"][0].update(values)


def line(**values):
    return lambda said: said["decision"]["calibration"][0].update(values)


TWO_CLASSES = tune([[0.9, 0.1], [0.2, 0.8]], [0, 1], "f1", exclusive=True).to_dict()
ONE_CLASS = TWO_CLASSES | {"gains": [[1.0], [0.0]], "cuts": TWO_CLASSES["cuts"][:1], "table": [[1.0]]}
DESCRIPTIONS = {
    "numbers of a category": (column("x0", kind="category"), "a Scaled part does not fit the column 'x0'"),
    "levels of a number": (column("shop", kind="number"), "a OneHot part does not fit the column 'shop'"),
    "a date of a number": (part("x0", part="year"), "a Scaled part does not fit the column 'x0'"),
    "a number of a date": (column("day", kind="number", format=""), "a Scaled part does not fit the column 'day'"),
    "a part of no column": (part("x0", name="x9"), "a Scaled part does not fit the column 'x9'"),
    "a part twice": (part("x1", name="x0"), "a column or a part of one twice"),
    "a column twice": (column("x1", name="x0"), "a column or a part of one twice"),
    "a level twice": (part("shop", levels=["a", "b", "a"]), "has a level twice"),
    "absurd levels": (part("shop", levels=[str(i) for i in range(10**5)]), "or more than 4,096"),
    "absurd mean": (part("x0", mean=1e101), "x0 cannot be scaled"),
    "huge fill": (part("x0", fill=10**400), "is damaged"),
    "a format of dates": (column("day", format="%Q" * 99), "column 'day' has the unknown format"),
    "a format of numbers": (column("x0", format="%Y-%m-%d"), "column 'x0' has the unknown format"),
    "a text for levels": (part("shop", levels="ab"), "part.levels should be a list; got 'ab'"),
    "numbers for levels": (part("shop", levels=[1, 2]), "part.levels[0] should be str; got 1"),
    "a text for yes": (part("x0", marked="no"), "part.marked should be bool; got 'no'"),
    "a number for no": (part("shop", other=0), "part.other should be bool; got 0"),
    "a text for a number": (part("x0", fill="1e3"), "part.fill should be float; got '1e3'"),
    "yes for a number": (part("x0", mean=True), "part.mean should be float; got True"),
    "a text for all missing": (column("x0", missing="1"), "column.missing should be a list; got '1'"),
    "a text for width": (column("x0", wide="false"), "column.wide should be bool; got 'false'"),
    "a text for classes": (lambda said: said.update(negative="no"), "negative should be a list; got 'no'"),
    "no features": (lambda said: said["encoder"].update(parts=[]), "the encoder makes 0"),
    "absurd slope": (line(slope=1e101), "no rising line"),
    "absurd offset": (line(offset=-1e101), "no rising line"),
    "huge slope": (line(slope=10**400), "this is no decision"),
    "gains of one class": (decision(classes=ONE_CLASS), "its gains do not fit its classes"),
    "classes of one column": (decision(classes=TWO_CLASSES), "its gains do not fit its classes"),
    "huge cut": (cut(value=10**400), "this is no cut"),
    "three cells": (cut(counts=[1, 2, 3]), "this is no cut"),
    "texts as cells": (cut(counts=[1, 2, 3, "x"]), "is damaged"),
    "half an interval": (cut(interval={"score": [0.1], "cut": [0, 1], "level": 0.9}), "is damaged"),
    "one class": (lambda said: said.update(positive="good"), "its positive class is a negative one, too"),
    "a name without end": (
        lambda said: said.update(metric=f"f{'9' * 10**6}x"),
        "names a metric that is not known here",
    ),
    "a huge version": (lambda said: said.update(version=10**400), "was written by a newer fbeta"),
    "half a character": (lambda said: said.update(target="\ud800"), "surrogates not allowed"),
    "half a character below": (lambda said: said.update(negative=["\udc00"]), "surrogates not allowed"),
}


@pytest.mark.parametrize("case", DESCRIPTIONS)
def test_descriptions(case, rows, tmp_path):
    change, words = DESCRIPTIONS[case]
    refused(changed(content(), "model.json", change), words, rows, tmp_path)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('"score"', '"score": 1e999, "x"', "1e999 is no finite number"),
        ('"score"', f'"score": {"9" * 5000}, "x"', "Exceeds the limit"),
        ('"target"', '"target": "a", "target"', "a name is there twice"),
        ('"rows"', f'"x": {"[" * 10**5}{"]" * 10**5}, "rows"', "is damaged (maximum recursion depth exceeded"),
    ],
)
def test_json_that_python_would_take(old, new, words, rows, tmp_path):
    parts = members(content())
    text = parts["model.json"].decode()
    assert old in text
    refused(seal(parts | {"model.json": text.replace(old, new, 1).encode()}), words, rows, tmp_path)


def rezipped(pairs, before=b"", how=zipfile.ZIP_STORED):
    """A zip with a right checksum that `seal` would not write."""
    out = io.BytesIO(before)
    out.seek(0, 2)
    with zipfile.ZipFile(out, "w", how) as archive:
        for name, content in pairs:
            archive.writestr(name, content)
        archive.comment = b"sha256:" + b"0" * 64
    body = out.getvalue()[:-71]
    return body + b"sha256:" + hashlib.sha256(body).hexdigest().encode()


@pytest.mark.filterwarnings("ignore:Duplicate name")  # of the writer
@pytest.mark.parametrize(
    ("made", "words"),
    [
        (lambda parts: rezipped([*parts, ("model.json", b"{}")]), "two members of one name"),
        (lambda parts: rezipped([("model.json", b"{}"), *parts]), "two members of one name"),
        (lambda parts: rezipped([*parts, ("model.json\0x", b"")]), "two members of one name"),
        (lambda parts: rezipped([*parts, ("x", bytes(10**7))], how=zipfile.ZIP_DEFLATED), "members are compressed"),
        (lambda parts: rezipped([*parts, ("../../x", b"")]), "unknown member '../../x'"),
        (lambda parts: rezipped(parts, rezipped([("model.json", b"{}")])), "more or less in it than its members"),
        (lambda parts: rezipped(parts, b"PK\x03\x04" + b"#!/bin/sh\n" * 9), "more or less in it than its members"),
    ],
)
def test_zips_that_hold_something_else(made, words, rows, tmp_path):
    refused(made([*members(content()).items()]), words, rows, tmp_path)


def test_half_a_character_is_not_a_whole_one():
    assert read_json(b'{"a": "\\ud83d\\ude00"}') == {"a": "😀"}
    with pytest.raises(ValueError, match="surrogates"):
        read_json(b'{"a": ["\\ude00\\ud83d"]}')


def test_no_memory_and_no_depth_are_damage():
    assert issubclass(MemoryError, DAMAGED)
    assert issubclass(RecursionError, DAMAGED)


# --- weights ---------------------------------------------------------------------------------------------------------


def tensors(length=None, rest=b"", **changes):
    parts = members(content())
    data = parts["weights.safetensors"]
    end = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:end])
    header["weight.0"].update(changes)
    text = json.dumps(header).encode()
    size = len(text) if length is None else length
    return seal(parts | {"weights.safetensors": size.to_bytes(8, "little") + text + data[end:] + rest})


@pytest.mark.parametrize(
    "sealed",
    [
        lambda: tensors(length=2**63),
        lambda: tensors(length=2**64 - 1),
        lambda: tensors(length=10**8),
        lambda: tensors(shape=[2**40, 2**40]),
        lambda: tensors(shape=[2**63, 1]),
        lambda: tensors(shape=[0, 2**62], data_offsets=[0, 0]),
        lambda: tensors(shape=[-1, 1]),
        lambda: tensors(shape=[11, 1]),
        lambda: tensors(shape=[1] * 99),
        lambda: tensors(dtype="BF16"),
        lambda: tensors(dtype="F1"),
        lambda: tensors(data_offsets=[0, 2**62]),
        lambda: tensors(data_offsets=[40, 0]),
        lambda: tensors(rest=b"x"),
    ],
)
def test_lying_headers_of_weights(sealed, rows, tmp_path):
    refused(sealed(), "is damaged", rows, tmp_path)


def test_weights_that_overflow_give_no_decision(rows, tmp_path):
    from safetensors.numpy import load, save

    parts = members(content("mlp", "bce"))
    held = load(parts["weights.safetensors"])
    huge = {name: np.where(np.arange(x.size).reshape(x.shape) % 3, x, np.float32(1e38)) for name, x in held.items()}
    sealed = seal(parts | {"weights.safetensors": save(huge)})
    refused(sealed, "the model gives no probability for some of these rows: fit it again", rows, tmp_path)
