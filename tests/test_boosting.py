"""The boosters' estimators: decisions, probabilities, files, scikit-learn's own checks, bad input."""

import json
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_classifiers_train, parametrize_with_checks

from fbeta import Confusion, FBeta, learners, tune
from fbeta.boosting import LGBMMetricClassifier, XGBMetricClassifier
from fbeta.learners import machine
from fbeta.sealed import seal, unseal
from fbeta.tables.folds import folds

BOTH = [XGBMetricClassifier, LGBMMetricClassifier]
SMALL = {"n_estimators": 15, "n_jobs": 1, "random_state": 0}


def raw_scores(model, X):
    """Before calibration, where 0 is the loss's own cut."""
    return model._scores(X)[:, 0]


@pytest.fixture(scope="module")
def table():
    X, y = make_classification(3000, 10, n_informative=4, weights=[0.93], flip_y=0.05, random_state=1)
    return train_test_split(X, y, stratify=y, random_state=0)


FEW = "its 10 rows have 3 positives, too few for two folds with two in each"
BY_ROWS = "folds are dealt by rows: a row of weight 2 is in one fold, two rows may be in two"
EXPECTED = {
    "check_fit2d_1feature": FEW,
    "check_sample_weight_equivalence_on_dense_data": BY_ROWS,
    "check_sample_weight_equivalence_on_sparse_data": BY_ROWS,
}
ONLY_XGB = {"check_classifiers_train": "it wants a cut at probability ½; predict cuts where the metric does"}


@parametrize_with_checks(
    # Leaves of one row: the checks' tables are smaller than LightGBM's default leaf.
    [
        XGBMetricClassifier(n_estimators=10, n_jobs=1),
        LGBMMetricClassifier(n_estimators=10, n_jobs=1, min_child_samples=1, min_child_weight=1e-3),
    ],
    expected_failed_checks=lambda estimator: EXPECTED | (ONLY_XGB if type(estimator) is XGBMetricClassifier else {}),
)
@pytest.mark.filterwarnings("ignore:Positive is")  # the checks leave to chance which it is
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


@pytest.mark.filterwarnings("ignore:Positive is")
def test_with_a_cut_at_one_half_the_last_check_passes_too():
    for readonly in (False, True):
        check_classifiers_train(
            "XGBMetricClassifier",
            XGBMetricClassifier(n_estimators=10, n_jobs=1, rule="constant"),
            readonly_memmap=readonly,
        )


@pytest.mark.parametrize("cls", BOTH)
@pytest.mark.parametrize("loss", ["tangent", "bce", "surrogate"])
@pytest.mark.parametrize("rule", ["shrunk", "exact", "plugin", "own"])
def test_decision_probability_and_label_agree(cls, loss, rule, table):
    X, test, y, _ = table
    model = cls("fbeta:beta=2", loss=loss, rule=rule, cv=3, **SMALL).fit(X, y)
    decision, p = model.decision_function(test), model.predict_proba(test)
    np.testing.assert_array_equal(model.predict(test) == 1, decision > 0)
    np.testing.assert_allclose(p.sum(1), 1.0)
    # Probabilities rise with the decision, and the cut is one probability for all rows.
    order = np.argsort(decision, kind="stable")
    assert (np.diff(p[order, 1]) >= 0).all()
    if rule == "own":
        scores = raw_scores(model, test)
        np.testing.assert_array_equal(decision > 0, scores >= 0)


@pytest.mark.parametrize("cls", BOTH)
def test_costs_are_the_metrics_slopes_at_out_of_fold_counts(cls, table):
    X, _, y, _ = table
    model = cls("fbeta:beta=2", cv=3, rounds=8, **SMALL).fit(X, y)
    last = model.history_[-1]
    assert model.costs_[0] == last.delta
    assert last.wanted == pytest.approx(last.score / 5)
    # Rows that are being fitted would look far better, and ask for other costs.
    fitted = raw_scores(model, X)
    assert FBeta(2)(Confusion.from_scores(fitted, y, 0.0)) > last.score + 0.02


@pytest.mark.parametrize("cls", BOTH)
@pytest.mark.parametrize(("loss", "q"), [("tangent", 0.0), ("tangent", 0.3), ("surrogate", 0.0), ("bce", 0.0)])
def test_the_first_score_is_the_best_constant(cls, loss, q, table):
    """A booster that hardly learns shows where it begins: at the log odds, moved by the costs."""
    X, _, y, _ = table
    model = cls(loss=loss, q=q, n_estimators=1, learning_rate=1e-9, cv=3, n_jobs=1).fit(X, y)
    scores = raw_scores(model, X)
    c0, c1 = model.costs_
    assert scores == pytest.approx((np.log(y.mean() / (1 - y.mean())) + np.log(c1 / c0)) / (1 - q), abs=1e-4)


@pytest.mark.parametrize("cls", BOTH)
def test_out_of_fold_rows_are_never_the_fitted_ones(cls, table, monkeypatch):
    X, _, y, _ = table
    fitted, scored = [], []
    learner = cls._learner.engine
    fit, score = learner.fit, learner.score
    monkeypatch.setattr(learner, "fit", lambda self, rows, *a: (fitted.append(set(rows)), fit(self, rows, *a))[1])
    monkeypatch.setattr(
        learner, "score", lambda self, model, rows: (scored.append(set(rows)), score(self, model, rows))[1]
    )
    cls(cv=3, rounds=2, **SMALL).fit(X, y)
    assert len(fitted) == len(scored) + 1  # the last fit is on all rows, and nothing is counted there
    assert all(not a & b for a, b in zip(fitted, scored, strict=False))
    assert len(fitted[-1]) == len(y)


@pytest.mark.parametrize("cls", BOTH)
def test_cut_and_costs_beat_the_plain_booster_on_f2(cls, table):
    X, test, y, truth = table

    def f2(**options):
        return cls("fbeta:beta=2", **SMALL, **options).fit(X, y).score(test, truth)

    plain = f2(loss="bce", rule="own")
    assert f2() > plain + 0.02
    assert f2(ensemble=True) > plain + 0.02


@pytest.mark.parametrize("cls", BOTH)
def test_probabilities_are_as_good_as_the_plain_boosters(cls, table):
    X, test, y, truth = table

    def brier(**options):
        return np.mean((cls("fbeta:beta=2", **SMALL, **options).fit(X, y).predict_proba(test)[:, 1] - truth) ** 2)

    assert brier() < 1.05 * brier(loss="bce", rule="own")


@pytest.mark.parametrize("cls", BOTH)
def test_no_leaf_runs_away_from_rare_positives(cls):
    rng = np.random.default_rng(0)
    y = (np.arange(20_000) % 500 == 0).astype(int)
    X = rng.normal(size=(20_000, 4)) + 6.0 * y[:, None]  # forty rows far from all others

    def first_tree(params):
        model = cls(loss="bce", n_estimators=1, n_jobs=1, cv=2, learning_rate=1.0, params=params).fit(X, y)
        return np.ptp(raw_scores(model, X))

    assert first_tree({"max_delta_step": 0}) > 15  # of log odds, in one step
    assert first_tree(None) <= 6.001


@pytest.mark.parametrize("cls", BOTH)
def test_folds_averaged(cls, table):
    X, test, y, _ = table
    model = cls(cv=4, ensemble=True, **SMALL).fit(X, y)
    assert len(model.models_) == 4
    mean = np.mean([m(model._table(test, reset=False))[:, 0] for m in model.models_], 0)
    np.testing.assert_allclose(model.predict_proba(test)[:, 1], model.decision_.probability(mean))


@pytest.mark.parametrize("cls", BOTH)
@pytest.mark.parametrize("options", [{}, {"loss": "surrogate"}, {"early_stopping_rounds": 3}, {"ensemble": True}])
def test_the_numbers_are_the_same_however_many_work_at_once(cls, options, table, monkeypatch):
    X, test, y, _ = table
    found = []
    for small, jobs in ((machine.SMALL, 1), (machine.SMALL, 3), (0, 1), (0, 7)):  # 0: every table is a large one
        monkeypatch.setattr(machine, "SMALL", small)
        model = cls(n_estimators=15, cv=3, random_state=0, n_jobs=jobs, **options).fit(X, y)
        found.append((model.out_of_fold_, model.decision_function(test), model.n_rounds_))
    for other in found[1:]:
        for one, two in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("cls", BOTH)
def test_what_goes_wrong_in_a_fold_ends_the_others(cls, table, monkeypatch):
    X, _, y, _ = table
    engine, grown, many = cls._learner.engine, [], 30_000
    train, others = engine.train, threading.Event()

    def first_fails(self, rows, weight):
        if not others.is_set():
            others.set()
            raise KeyboardInterrupt
        grown.append(train(self, rows, weight)[0])
        return grown[-1], 0.0

    monkeypatch.setattr(engine, "train", first_fails)
    with pytest.raises(KeyboardInterrupt):
        cls(loss="bce", n_estimators=many, n_jobs=2, cv=2, max_depth=2).fit(X[:300], y[:300])
    rounds = [each.num_boosted_rounds() if cls is XGBMetricClassifier else each.current_iteration() for each in grown]
    assert all(count < many for count in rounds)


@pytest.mark.parametrize("cls", BOTH)
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"n_jobs": 0}, "n_jobs must be an integer from 1, −1 or None for all cores; got 0"),
        ({"n_jobs": -2}, "n_jobs must be"),
        ({"n_jobs": 1.5}, "n_jobs must be"),
        ({"n_jobs": True}, "n_jobs must be"),
        ({"ensemble": "yes"}, "ensemble must be True or False; got 'yes'"),
        ({"ensemble": 5}, "ensemble must be"),
    ],
)
def test_bad_numbers_of_cores_and_bad_ensembles(cls, options, words, table):
    X, _, y, _ = table
    with pytest.raises(ValueError, match=words):
        cls(**options).fit(X, y)


@pytest.mark.parametrize("cls", BOTH)
@pytest.mark.parametrize("loss", ["tangent", "surrogate"])
def test_early_stopping_on_the_metric(cls, loss, table):
    X, test, y, truth = table
    model = cls(loss=loss, early_stopping_rounds=5, n_estimators=200, n_jobs=1, cv=3).fit(X, y)
    assert 1 <= model.n_rounds_ < 200
    booster = model.models_[0].native
    grown = booster.num_boosted_rounds() if cls is XGBMetricClassifier else booster.current_iteration()
    assert grown == model.n_rounds_
    assert model.score(test, truth) > 0.3


@pytest.mark.parametrize("cls", BOTH)
def test_the_round_to_stop_at_is_the_best_of_the_pooled_folds(cls, table):
    X, _, y, _ = table
    fold = folds(y, 3)
    learner = cls._learner(rounds=12, patience=12)
    params, X = learner.params_for(0, 1), X.astype(np.float32)
    rows = learners.Rows(X, y[:, None], fold)
    rounds, at = learner._stop_early(learner.engine(X, y, params, 12), rows, learners.Goal(FBeta(1)))
    found = []
    for k in range(1, 13):
        again = learner.engine(X, y, params, k)
        oof = learners.cross_fit(again.fit, again.score, np.arange(len(y)), y, fold)
        found.append(tune(oof.scores, y, "fbeta:beta=1").score)
    assert found[rounds - 1] == pytest.approx(max(found))
    assert FBeta(1)(at) == pytest.approx(max(found))


@pytest.mark.parametrize("cls", BOTH)
def test_string_labels_pos_label_and_weights(cls, table):
    X, test, y, truth = table
    names = np.array(["fine", "fraud"])
    model = cls(cv=3, **SMALL).fit(X, names[y])
    plain = cls(cv=3, **SMALL).fit(X, y)
    np.testing.assert_array_equal(model.predict(test), names[plain.predict(test)])
    assert model.score(test, names[truth]) == plain.score(test, truth)
    flipped = cls(cv=3, pos_label="a", **SMALL).fit(X, np.array(["b", "a"])[y])
    assert flipped.classes_.tolist() == ["a", "b"]
    assert flipped.positive_ == "a"
    np.testing.assert_array_equal(flipped.predict(test) == "a", plain.predict(test) == 1)
    weight = np.random.default_rng(0).uniform(0, 2, len(y)).round()  # a third of the rows weigh nothing
    weighed = cls(cv=3, **SMALL).fit(X, y, sample_weight=weight)
    without = cls(cv=3, **SMALL).fit(X[weight > 0], y[weight > 0], sample_weight=weight[weight > 0])
    np.testing.assert_array_equal(weighed.predict(test), without.predict(test))


@pytest.mark.parametrize(
    ("cls", "ours", "theirs"),
    [
        (XGBMetricClassifier, "reg_lambda", "lambda"),
        (XGBMetricClassifier, "learning_rate", "eta"),
        (LGBMMetricClassifier, "reg_lambda", "reg_lambda"),
        (LGBMMetricClassifier, "learning_rate", "eta"),
    ],
)
def test_params_by_the_librarys_own_names_are_heard(cls, ours, theirs, table):
    X, test, y, _ = table
    plain, by_argument, by_params = (
        cls(cv=2, rounds=1, **SMALL, **options).fit(X, y).predict_proba(test)
        for options in ({}, {ours: 0.9}, {"params": {theirs: 0.9}})
    )
    np.testing.assert_array_equal(by_params, by_argument)
    assert (by_params != plain).any()


@pytest.mark.parametrize("cls", BOTH)
def test_groups_stay_together(cls, table):
    X, _, y, _ = table
    groups = np.arange(len(y)) // 5
    model = cls(cv=3, **SMALL).fit(X, y, groups=groups)
    assert model.n_rounds_ == 15


@pytest.mark.parametrize("cls", BOTH)
def test_clone_search_pipeline_and_one_against_rest(cls, table):
    X, test, y, truth = table
    model = cls(FBeta(2), cv=2, **SMALL)
    assert clone(model).get_params() == model.get_params()
    search = GridSearchCV(make_pipeline(StandardScaler(), model), {f"{cls.__name__.lower()}__max_depth": [2, 4]}, cv=2)
    search.fit(X, y)
    assert 0 < search.best_score_ < 1
    assert search.best_estimator_.score(test, truth) > 0.3
    three = np.digitize(X[:, 0], [-1, 1])
    with pytest.raises(ValueError, match="OneVsRestClassifier"):
        model.fit(X, three)
    many = OneVsRestClassifier(model.set_params(pos_label=1)).fit(X, three)
    assert (many.predict(X) == three).mean() > 0.9


@pytest.mark.parametrize("cls", BOTH)
@pytest.mark.parametrize("options", [{}, {"ensemble": True}, {"loss": "surrogate"}, {"rule": "own", "q": 0.3}])
def test_files_hold_everything_and_no_pickle(cls, options, table, tmp_path):
    X, test, y, _ = table
    names = np.array(["fine", "fraud"])
    model = cls("fbeta:beta=2", cv=3, max_depth=3, **SMALL, **options).fit(X, names[y])
    model.save_model(tmp_path / "model.fbeta")
    again = cls().load_model(tmp_path / "model.fbeta")
    np.testing.assert_array_equal(again.predict(test), model.predict(test))
    np.testing.assert_array_equal(again.decision_function(test), model.decision_function(test))
    np.testing.assert_array_equal(again.predict_proba(test), model.predict_proba(test))
    assert again.score(test, again.predict(test)) == 1.0
    assert again.get_params() == model.get_params()
    assert again.costs_ == model.costs_
    suffixes = {Path(name).suffix for name in unseal((tmp_path / "model.fbeta").read_bytes())}
    assert suffixes == ({".json"} if cls is XGBMetricClassifier else {".json", ".txt"})
    other = BOTH[1 - BOTH.index(cls)]
    with pytest.raises(ValueError, match="use the other class"):
        other().load_model(tmp_path / "model.fbeta")


def test_bad_files(table, tmp_path):
    X, _, y, _ = table
    path = tmp_path / "model.fbeta"
    with pytest.raises(FileNotFoundError, match="no file .*give the one that save_model wrote"):
        XGBMetricClassifier().load_model(path)
    for content, words in (
        (b"", "is empty; save the model again"),
        (b"{", "is no file that fbeta wrote"),
        (seal({}), "no 'estimator.json'|no file that fbeta wrote"),
        (seal({"estimator.json": b"{"}), "holds no booster"),
        (seal({"estimator.json": b"[1]"}), "holds no booster"),
        (seal({"estimator.json": b'{"format": "x", "library": "xgboost"}'}), "says format 'x'"),
    ):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=words):
            XGBMetricClassifier().load_model(path)
    with pytest.raises(NotFittedError):
        XGBMetricClassifier().save_model(tmp_path / "a")
    plain = XGBMetricClassifier(lambda tp, fp, fn, tn: (tp + tn) / (tp + fp + fn + tn), cv=2, **SMALL).fit(X, y)
    with pytest.raises(ValueError, match="plain function"):
        plain.save_model(tmp_path / "b")
    with pytest.raises(ValueError, match="is a folder"):
        plain.set_params(metric="f1").save_model(tmp_path)


@pytest.fixture(scope="module", params=BOTH)
def saved(request, table, tmp_path_factory):
    X, _, y, _ = table
    path = tmp_path_factory.mktemp("saved") / "model.fbeta"
    model = request.param(cv=2, ensemble=True, **SMALL).fit(X, y)
    model.save_model(path)
    return model, path


def changed(path, to, **values):
    """A file with a right checksum and other values; None takes one out."""
    members = unseal(path.read_bytes())
    about = json.loads(members["estimator.json"])
    about = {k: v for k, v in {**about, **values}.items() if v is not None}
    (to / "changed.fbeta").write_bytes(seal({**members, "estimator.json": json.dumps(about).encode()}))
    return to / "changed.fbeta"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("costs", None),
        ("costs", [1]),
        ("decision", {"kind": "logit"}),
        ("decision", None),
        ("classes", ["a", "b", "c"]),
        ("classes_dtype", "O"),
        ("classes_dtype", "f8,f8"),
        ("positive", 2),
        ("params", [1]),
        ("boosters", []),
        ("boosters", {}),
        ("boosters", [{"kind": "ensemble", "members": []}] * 2),
        ("boosters", [{"kind": "xgboost", "offset": 0.0}] * 3),
        ("boosters", [{"kind": "xgboost", "offset": "low"}] * 2),
        ("n_features", None),
        ("n_features", 3),
    ],
)
def test_a_damaged_file_is_refused_and_leaves_the_estimator_alone(key, value, saved, tmp_path):
    model, path = saved
    fresh_one = type(model)(max_depth=7)
    with pytest.raises(ValueError, match="is damaged .*save the model again"):
        fresh_one.load_model(changed(path, tmp_path, **{key: value}))
    assert fresh_one.max_depth == 7
    assert not hasattr(fresh_one, "classes_")


def test_a_damaged_booster_never_reaches_its_library(saved, tmp_path):
    """LightGBM ends the whole process on some of these."""
    model, path = saved
    whole, copy = path.read_bytes(), tmp_path / "copy.fbeta"
    for damaged in (b"", whole[: len(whole) // 2], whole[:-1], whole.replace(b"split", b"splat", 1)):
        copy.write_bytes(damaged)
        with pytest.raises(ValueError, match="(is empty|is truncated|is damaged .*); save the model again"):
            type(model)().load_model(copy)
    with pytest.raises(ValueError, match="import the module that defines it"):
        type(model)().load_model(changed(path, tmp_path, metric="mine:beta=3"))


def test_saving_and_loading_leave_nothing_of_the_model_before(saved, table, tmp_path):
    model, path = saved
    X, _, y, _ = table
    named, other = clone(model).set_params(ensemble=False), tmp_path / "other.fbeta"
    frame = pytest.importorskip("polars").DataFrame({f"x{k}": X[:, k] for k in range(X.shape[1])})
    named.fit(frame, y).save_model(other)
    again = type(model)().load_model(other)
    assert len(again.models_) == 1
    assert again.feature_names_in_.tolist() == frame.columns
    again.load_model(path)
    assert not hasattr(again, "feature_names_in_")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


@pytest.mark.parametrize("cls", BOTH)
def test_bad_input(cls, table):
    X, _, y, _ = table

    def refuses(message, X=X, y=y, error=ValueError, **options):
        with pytest.raises(error, match=message):
            cls(**{**SMALL, **options}).fit(X, y)

    refuses("Did you mean", metric="fbta")
    refuses("pole on the corner", metric="precision")
    refuses("tangent, bce, surrogate", loss="hinge")
    refuses("q must lie", q=-1)
    refuses("leave it 0", q=0.5, loss="bce")
    refuses("no anchors", metric="mcc", loss="surrogate")
    refuses("n_estimators must be an integer", n_estimators=0)
    refuses("early_stopping_rounds must be", early_stopping_rounds=1.5)
    refuses("sets objective itself", params={"objective": "rank"})
    refuses("Unknown rule", rule="best")
    refuses("encode categories", X=np.full((len(y), 2), "a", dtype=object))
    refuses(r"\(macro\) wrap it.*OneVsRest", y=np.arange(len(y)) % 3)
    refuses("infinity.*make it NaN", X=np.where(np.arange(X.size).reshape(X.shape) == 3, np.inf, X))
    refuses("one class only|1 class", y=np.zeros(len(y)))
    refuses("too few for 5 folds", cv=5, y=(np.arange(len(y)) < 9).astype(int))
    refuses("at least 4 such rows", y=(np.arange(len(y)) < 3).astype(int))
    refuses("not a class of y", pos_label="yes")
    missing = np.where(np.arange(X.size).reshape(X.shape) % 7 == 0, np.nan, X)
    assert cls(cv=2, **SMALL).fit(missing, y).predict(missing).shape == y.shape


def fresh(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_import_does_not_load_torch():
    code = (
        "import sys, fbeta.boosting as b; b.xgboost_objective; X, y = [[k] for k in range(40)], [0, 1] * 20\n"
        "for c in (b.XGBMetricClassifier, b.LGBMMetricClassifier): c(n_estimators=2, n_jobs=1).fit(X, y).predict(X)\n"
        "import fbeta.boosting.files, fbeta.learners, fbeta.decisions"
    )
    assert fresh(f"{code}; print('torch' in sys.modules)").strip() == "False"


def test_objectives_need_neither_library():
    heavy = {"sklearn", "xgboost", "lightgbm", "torch"}
    code = "import sys; from fbeta.boosting import xgboost_objective, lightgbm_objective"
    assert not heavy & set(fresh(f"{code}; print(*sys.modules)").split())


@pytest.mark.parametrize(
    ("library", "name"), [("xgboost", BOTH[0].__name__), ("lightgbm", BOTH[1].__name__), ("sklearn", BOTH[0].__name__)]
)
def test_a_missing_extra_says_how_to_get_it(library, name):
    code = f"""
import sys
sys.modules[{library!r}] = None
try:
    from fbeta.boosting import {name}
except ImportError as error:
    print(error)
"""
    assert "pip install 'fbeta[boosting]'" in fresh(code)


def test_the_page_runs(tmp_path):
    page = (Path(__file__).parents[1] / "docs" / "boosting.md").read_text()
    code = "\n".join(re.findall(r"```python\n(.*?)```", page, re.S))
    found = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert found.returncode == 0, found.stderr
    held = unseal((tmp_path / "fraud-booster.fbeta").read_bytes())
    assert set(held) == {"estimator.json", "0/booster.json"}
