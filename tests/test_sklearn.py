"""The estimators: decisions, labels, probabilities, weights, and how they fit into scikit-learn."""

import importlib
import pickle
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("sklearn")
import sklearn
import torch
from scipy import sparse
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_breast_cancer, make_classification, make_multilabel_classification
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss, f1_score, fbeta_score, roc_auc_score
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    RepeatedStratifiedKFold,
    StratifiedKFold,
    StratifiedShuffleSplit,
    TimeSeriesSplit,
    cross_val_predict,
    cross_val_score,
    train_test_split,
)
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from threadpoolctl import threadpool_limits

from fbeta import losses
from fbeta.decisions.calibration import logit
from fbeta.decisions.classes import best_gains
from fbeta.metrics import metric as read_metric
from fbeta.sklearn import MetricClassifier, TangentMetaClassifier, ThresholdClassifier, metric_score, scorer
from fbeta.sklearn.scoring import metric_of

ROOT = Path(__file__).resolve().parents[1]
F1, F2 = "fbeta:beta=1", "fbeta:beta=2"


@pytest.fixture(autouse=True)
def one_thread():
    with threadpool_limits(1):
        yield


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return train_test_split(X, 1 - y, random_state=0, stratify=y)  # 1 is malignant, the rarer


@pytest.fixture(scope="module")
def rare():
    X, y = make_classification(4000, 8, n_informative=4, weights=[0.93], class_sep=0.8, flip_y=0.02, random_state=0)
    return train_test_split(X, y, random_state=0, stratify=y, test_size=0.5)


def logistic():
    return make_pipeline(StandardScaler(), LogisticRegression())


def estimators(metric=F2, **options):
    options = {"random_state": 0, **options}
    return [
        ThresholdClassifier(logistic(), metric, **options),
        TangentMetaClassifier(logistic(), metric, **options),
        MetricClassifier(metric, max_epochs=15, **options),
        MetricClassifier(metric, "mlp", hidden=(8,), max_epochs=8, **options),
    ]


@pytest.mark.parametrize("estimator", estimators(), ids=lambda e: str(e)[:40])
def test_decision_is_positive_where_predict_is(estimator, rare):
    X, Z, y, t = rare
    fitted = estimator.fit(X, y)
    decision = fitted.decision_function(Z)
    assert decision.shape == (len(Z),)
    assert ((decision > 0) == (fitted.predict(Z) == 1)).all()
    p = fitted.predict_proba(Z)
    assert np.allclose(p.sum(1), 1)
    assert (np.argsort(p[:, 1], kind="stable") == np.argsort(decision, kind="stable")).mean() > 0.99
    # F₂ wants more alarms than ½ gives, and the metric is what `score` tells.
    assert fitted.predict(Z).sum() > (p[:, 1] >= 0.5).sum()
    assert fitted.score(Z, t) == pytest.approx(fbeta_score(t, fitted.predict(Z), beta=2))


@pytest.mark.parametrize("estimator", estimators(), ids=lambda e: str(e)[:40])
def test_the_metrics_decision_beats_a_half(estimator, rare):
    X, Z, y, t = rare
    fitted = estimator.fit(X, y)
    at_half = fitted.predict_proba(Z)[:, 1] >= 0.5
    assert fitted.score(Z, t) > fbeta_score(t, at_half, beta=2) + 0.03


@pytest.mark.parametrize("pos_label", [None, "ill", "well"])
@pytest.mark.parametrize("estimator", estimators(), ids=lambda e: str(e)[:40])
def test_string_labels(estimator, pos_label, cancer):
    X, Z, y, t = cancer
    names = np.array(["ill", "well"])  # in order "well" is the later
    fitted = clone(estimator).set_params(pos_label=pos_label).fit(X, names[y])
    positive = "well" if pos_label is None else pos_label  # the rarer
    assert fitted.classes_.tolist() == ["ill", "well"]
    assert fitted.positive_ == positive
    assert set(fitted.predict(Z)) == set(names)
    assert ((fitted.decision_function(Z) > 0) == (fitted.predict(Z) == "well")).all()
    sure = fitted.predict_proba(Z)[:, names.tolist().index(positive)] > 0.9
    assert (sure <= (fitted.predict(Z) == positive)).all()
    assert roc_auc_score(names[t], fitted.predict_proba(Z)[:, 1]) > 0.9
    assert roc_auc_score(names[t], fitted.decision_function(Z)) > 0.9
    truth = names[t] == positive
    assert fitted.score(Z, names[t]) == pytest.approx(fbeta_score(truth, fitted.predict(Z) == positive, beta=2))


def test_which_class_is_positive_changes_the_answer_only_by_name(cancer):
    X, Z, y, _ = cancer
    for estimator in estimators(F1):
        one = clone(estimator).fit(X, y).decision_function(Z)
        other = clone(estimator).set_params(pos_label=0).fit(X, 1 - y).decision_function(Z)
        assert np.allclose(one, -other, rtol=1e-6)  # the later class is the other one


def test_probabilities_in_closed_form():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6000, 3))
    y = (rng.random(6000) < 1 / (1 + np.exp(3 - X @ [1.5, 1.0, 0.0]))).astype(int)
    X, Z, y, t = X[::2], X[1::2], y[::2], y[1::2]
    plain = brier_score_loss(t, logistic().fit(X, y).predict_proba(Z)[:, 1])
    for estimator in (
        TangentMetaClassifier(logistic(), F2),
        MetricClassifier(F2),
        MetricClassifier(F2, loss="bce"),
        MetricClassifier(F2, loss_options={"q": 0.3}),
    ):
        p = estimator.fit(X, y).predict_proba(Z)[:, 1]
        assert brier_score_loss(t, p) < 1.02 * plain, estimator
        assert p.mean() == pytest.approx(t.mean(), rel=0.1)


@pytest.mark.parametrize("loss", losses.names())
def test_every_loss_trains(loss, cancer):
    X, Z, y, t = cancer
    fitted = MetricClassifier(F1, loss=loss, max_epochs=10).fit(X, y)
    assert fitted.score(Z, t) > 0.9
    # Out-of-fold calibration where the loss has no probabilities of its own.
    assert brier_score_loss(t, fitted.predict_proba(Z)[:, 1]) < 0.08


@pytest.mark.parametrize(
    "learner",
    [
        RandomForestClassifier(20, random_state=0),
        HistGradientBoostingClassifier(max_iter=15),
        make_pipeline(StandardScaler(), SVC()),
        make_pipeline(StandardScaler(), LinearSVC()),
        GaussianNB(),
    ],
    ids=lambda e: type(e).__name__,
)
def test_any_classifier_with_weights(learner, cancer):
    X, Z, y, t = cancer
    X, Z = X[:, ::6], Z[:, ::6]
    for estimator in (
        TangentMetaClassifier(learner, F1, cv=3, rounds=2),
        TangentMetaClassifier(learner, F1, cv=3, rounds=2, rule="shrunk"),
        ThresholdClassifier(learner, F1, cv=3),
    ):
        fitted = estimator.fit(X, y)
        assert fitted.score(Z, t) > 0.8
        p = fitted.predict_proba(Z)
        assert p.shape == (len(Z), 2)
        assert brier_score_loss(t, p[:, 1]) < 0.1
        assert ((fitted.decision_function(Z) > 0) == (fitted.predict(Z) == 1)).all()


def test_tangent_meta_at_its_own_boundary(rare):
    X, Z, y, _ = rare
    fitted = TangentMetaClassifier(LogisticRegression(), F2, rule="own").fit(X, y)
    (point,) = fitted.fixed_points_
    c0, c1 = fitted.costs_[0]
    assert (c0, c1) == point.costs
    assert c0 == pytest.approx(point.score / 5, rel=0.1)
    inner = fitted.estimators_[0][0]
    assert (inner.predict(Z) == fitted.predict(Z)).all()
    odds = inner.predict_proba(Z)[:, 1] / inner.predict_proba(Z)[:, 0] * c0 / c1
    assert np.allclose(fitted.predict_proba(Z)[:, 1], odds / (1 + odds), rtol=1e-6)


def test_averaging_the_folds(rare):
    X, Z, y, t = rare
    for estimator in estimators(F1, ensemble=True):
        fitted = estimator.fit(X, y)
        assert fitted.score(Z, t) > 0.3
    assert len(ThresholdClassifier(logistic(), ensemble=True, cv=3).fit(X, y).models_) == 3
    for estimator in estimators(F1, ensemble="yes"):
        with pytest.raises(ValueError, match="ensemble must be True or False"):
            estimator.fit(X, y)
    fitted = logistic().fit(X, y)
    with pytest.raises(ValueError, match="prefit=True fits none; leave one of them out"):
        ThresholdClassifier(fitted, prefit=True, ensemble=True).fit(Z, t)


@pytest.mark.parametrize("rule", ["exact", "plugin", "shrunk", "shrunk:half=10", "constant", "own"])
def test_rules(rule, rare):
    X, Z, y, t = rare
    if rule != "own":
        assert len(ThresholdClassifier(logistic(), F1, rule=rule).fit(X, y).cuts_) == 1
    fitted = MetricClassifier(F1, rule=rule, max_epochs=15).fit(X, y)
    p = fitted.predict_proba(Z)[:, 1]
    if rule == "constant":
        assert ((p >= 0.5) == (fitted.predict(Z) == 1)).all()
    assert fitted.score(Z, t) > (0 if rule == "constant" else 0.3)


def test_constraints_and_another_rate(rare, cancer):
    X, Z, y, _ = cancer
    wide = ThresholdClassifier(logistic(), "specificity", rule="exact", subject_to={"recall": 0.99}).fit(X, y)
    sure = ThresholdClassifier(logistic(), "recall", rule="exact", subject_to={"precision": 1.0}).fit(X, y)
    assert (wide.predict(Z) >= sure.predict(Z)).all()
    assert wide.predict(Z).sum() > sure.predict(Z).sum()
    X, Z, y, _ = rare
    often = ThresholdClassifier(logistic(), F1).fit(X, y)
    seldom = ThresholdClassifier(logistic(), F1, prevalence=0.005).fit(X, y)
    assert seldom.predict(Z).sum() < often.predict(Z).sum()
    for estimator in (TangentMetaClassifier(logistic(), F1), MetricClassifier(F1)):
        here = clone(estimator).fit(X, y).predict(Z).sum()
        assert clone(estimator).set_params(prevalence=0.005).fit(X, y).predict(Z).sum() < here


def test_prefit_keeps_the_classifier(rare):
    X, Z, y, t = rare
    half = len(X) // 2
    model = logistic().fit(X[:half], y[:half])
    cut = ThresholdClassifier(model, F2, prefit=True).fit(X[half:], y[half:])
    assert cut.estimator_ is model
    assert cut.score(Z, t) > fbeta_score(t, model.predict(Z), beta=2)
    with pytest.raises(sklearn.exceptions.NotFittedError, match="promises a fitted Pipeline.*FrozenEstimator"):
        ThresholdClassifier(logistic(), F2, prefit=True).fit(X, y)
    for labels, words in (
        (np.where(y, "a", "b"), r"y holds \['a', 'b'\], but the fitted classifier's classes are \[0, 1\]"),
        (np.arange(len(y)) % 3, "classes are"),
        (0 * y, "are none of it: y .* one class only"),
        (0 * y + 1, "are all of it: y .* one class only"),
    ):
        with pytest.raises(ValueError, match=words):
            ThresholdClassifier(model, prefit=True).fit(X, labels)
    frozen = ThresholdClassifier(FrozenEstimator(model), F2, prefit=True)
    assert cross_val_score(frozen, Z, t, cv=3).mean() > 0.3


@pytest.mark.parametrize("metric", [F1, F2])
def test_calls_among_classes_beat_the_most_probable_one(metric):
    X, y = make_classification(
        3000, 8, n_informative=5, n_classes=4, weights=[0.7, 0.15, 0.1], class_sep=0.8, random_state=0
    )
    X, Z, y, t = train_test_split(X, y, random_state=0, stratify=y)
    plain = metric_score(t, logistic().fit(X, y).predict(Z), metric=metric, average="macro")
    for estimator in (
        ThresholdClassifier(logistic(), metric, average="macro"),
        TangentMetaClassifier(logistic(), metric, average="macro"),
        MetricClassifier(metric, average="macro", max_epochs=15),
    ):
        fitted = estimator.fit(X, y)
        assert fitted.score(Z, t) > plain + 0.04
        p, cut = fitted.predict_proba(Z), np.array([cut.value for cut in fitted.cuts_])
        assert ((fitted.decision_function(Z) > 0) == (p > cut)).all()
        assert fitted.cuts_[0].score > 0.5
    called = ThresholdClassifier(logistic(), metric, rule="constant", average="macro").fit(X, y).predict(Z)
    assert (called == logistic().fit(X, y).predict(Z)).all()
    for option in ({"prevalence": 0.1}, {"subject_to": {"recall": 0.5}}):
        with pytest.raises(ValueError, match="about one decision; y has 4 classes.*Pick one"):
            ThresholdClassifier(logistic(), metric, average="macro", **option).fit(X, y)
    for estimator in (TangentMetaClassifier(logistic(), average="macro"), MetricClassifier(average="macro")):
        with pytest.raises(ValueError, match="prevalence is about one decision"):
            estimator.set_params(prevalence=0.1).fit(X, y)


def test_exact_calls_are_hard_to_beat_by_brute_force():
    """Two classes have one cut: the best of many cuts is about what the iteration may at most reach."""
    rng = np.random.default_rng(0)
    for metric in (F1, F2, "gmean", "mcc", "accuracy"):
        gaps = []
        for _ in range(4):
            y = rng.random(2000) < 0.2
            x = rng.normal(size=2000) + 2 * y
            p = 1 / (1 + np.exp(2 - np.log(0.25) - 2 * x))  # calibrated
            both, target = np.column_stack([1 - p, p]), np.column_stack([~y, y]).astype(float)

            def score(called, target=target, metric=metric):
                return metric_of(read_metric(metric), np.eye(2)[called], target, None, "macro")

            best = max(score((p >= cut).astype(int)) for cut in np.linspace(0, 1, 50))
            found = score(best_gains(both, target, read_metric(metric), None, "exact")(both).argmax(1))
            assert score((p > 0.5).astype(int)) <= found + 1e-12  # never behind the most probable class
            gaps.append(best - found)
        assert np.mean(gaps) < 0.02, metric


def test_several_classes():
    X, y = make_classification(900, 6, n_informative=4, n_classes=3, weights=[0.8, 0.15], class_sep=1.2, random_state=0)
    names = np.array(["a", "b", "c"])[y]
    X, Z, names, t = train_test_split(X, names, random_state=0, stratify=y)
    for estimator in [*estimators(F1, average="macro"), ThresholdClassifier(KNeighborsClassifier(), average="macro")]:
        fitted = estimator.fit(X, names)
        decision = fitted.decision_function(Z)
        assert decision.shape == (len(Z), 3)
        assert (fitted.classes_[decision.argmax(1)] == fitted.predict(Z)).all()
        assert np.allclose(fitted.predict_proba(Z).sum(1), 1)
        assert fitted.score(Z, t) == pytest.approx(f1_score(t, fitted.predict(Z), average="macro"))
        assert fitted.score(Z, t) > 0.6
        assert len(fitted.cuts_) == 3
        # A part of the rows without one of the classes, as scikit-learn scores it.
        part = (t != "c") & (fitted.predict(Z) != "c")
        assert fitted.score(Z[part], t[part]) == pytest.approx(
            f1_score(t[part], fitted.predict(Z[part]), average="macro")
        )


def test_rare_labels_are_cut_together():
    X, y = make_multilabel_classification(300, 10, n_classes=4, n_labels=1, random_state=0)
    y[(np.cumsum(y[:, 0]) > 8), 0] = 0
    model, alone = (
        ThresholdClassifier(LogisticRegression(), F1, average="macro", rule=rule, random_state=0).fit(X, y)
        for rule in ("pooled", "shrunk")
    )
    assert [cut.rule for cut in model.cuts_] == ["pooled"] * 4
    assert model.cuts_[0].value != alone.cuts_[0].value
    assert np.array_equal(model.predict(X), model.decision_function(X) > 0)
    assert model.adapt(at_prevalence=0.3).cuts_[0].value != model.cuts_[0].value


@pytest.mark.parametrize("average", ["macro", "micro"])
def test_several_labels(average):
    X, y = make_multilabel_classification(500, 10, n_classes=4, n_labels=1, random_state=0)
    X, Z, y, t = train_test_split(X, y, random_state=0)
    found = estimators(F1, average=average)
    found += [
        ThresholdClassifier(RandomForestClassifier(20, random_state=0), F1, average=average, cv=3),
        ThresholdClassifier(MultiOutputClassifier(logistic()), F1, average=average, cv=3),
        ThresholdClassifier(ClassifierChain(logistic(), random_state=0), F1, average=average, cv=3),
        ThresholdClassifier(MultiOutputClassifier(logistic()).fit(X, y), F1, average=average, prefit=True),
    ]
    with pytest.raises(TypeError, match="hand it the one inside MultiOutputClassifier"):
        TangentMetaClassifier(MultiOutputClassifier(logistic()), average="macro").fit(X, y)
    for estimator in found:
        if average == "micro" and isinstance(estimator, TangentMetaClassifier):
            with pytest.raises(ValueError, match="average='macro'; for 'micro' use ThresholdClassifier"):
                estimator.fit(X, y)
            continue
        fitted = estimator.fit(X, y)
        assert fitted.score(Z, sparse.csr_array(t)) == fitted.score(Z, t)
        assert fitted.predict(Z).shape == t.shape
        assert ((fitted.decision_function(Z) > 0) == fitted.predict(Z)).all()
        assert fitted.predict_proba(Z).shape == t.shape
        assert fitted.score(Z, t) == pytest.approx(f1_score(t, fitted.predict(Z), average=average, zero_division=0))
        assert fitted.score(Z, t) > 0.5
        if average == "micro":
            assert len(set(fitted.cuts_)) == 1


def test_sparse_rows(cancer):
    X, Z, y, t = cancer
    for estimator in (MetricClassifier(F1), MetricClassifier(F1, solver="adam", max_epochs=20)):
        dense, thin = clone(estimator).fit(X, y), clone(estimator).fit(sparse.csr_array(X), y)
        assert abs(dense.score(Z, t) - thin.score(sparse.csc_array(Z), t)) < 0.1
        assert (thin.predict(Z) == thin.predict(sparse.csr_array(Z))).all()
    with pytest.raises(TypeError, match="[Ss]parse"):
        MetricClassifier(F1, "mlp").fit(sparse.csr_array(X), y)


def test_a_weight_of_zero_is_no_row(cancer):
    X, Z, y, _ = cancer
    kept = np.arange(len(X)) % 4 > 0
    for estimator in estimators():
        weighted = clone(estimator).fit(X, y, sample_weight=kept.astype(float))
        fewer = clone(estimator).fit(X[kept], y[kept])
        assert np.allclose(weighted.decision_function(Z), fewer.decision_function(Z), rtol=1e-5, atol=1e-6)


def test_weights_move_the_decision(rare):
    X, Z, y, _ = rare
    for estimator in estimators(F1):
        plain = clone(estimator).fit(X, y).predict_proba(Z)[:, 1].mean()
        heavy = clone(estimator).fit(X, y, sample_weight=1 + 9 * y).predict_proba(Z)[:, 1].mean()
        assert heavy > plain + 0.1


def test_coefficients_of_a_linear_model(cancer):
    X, Z, y, _ = cancer
    fitted = MetricClassifier(F1, loss="bce", patience=None, max_epochs=40).fit(X, y)
    by_hand = (Z @ fitted.coef_.T + fitted.intercept_)[:, 0]
    assert np.allclose(by_hand - logit(fitted.cuts_[0].value), fitted.decision_function(Z))
    # With cross entropy it is scikit-learn's logistic regression: the same penalty, the same optimum.
    # (Its own default tolerance stops 3e-3 away from that.)
    other = make_pipeline(StandardScaler(), LogisticRegression(tol=1e-10, max_iter=10_000)).fit(X, y)
    raw = other[-1].coef_ / other[0].scale_
    assert np.allclose(fitted.coef_, raw, atol=2e-4 * np.abs(raw).max())
    assert np.allclose(fitted.predict_proba(Z), other.predict_proba(Z), atol=1e-4)
    with pytest.raises(AttributeError, match="linear"):
        _ = MetricClassifier(F1, "mlp", max_epochs=1).fit(X, y).coef_


def test_searches_and_scores(cancer):
    X, _, y, _ = cancer
    search = GridSearchCV(
        make_pipeline(StandardScaler(), ThresholdClassifier(LogisticRegression(), F2)),
        {"thresholdclassifier__estimator__C": [0.01, 1], "thresholdclassifier__rule": ["exact", "shrunk"]},
        scoring=scorer(F2),
        cv=3,
    ).fit(X, y)
    assert search.best_score_ > 0.9
    search = GridSearchCV(MetricClassifier(max_epochs=5, random_state=0), {"alpha": [0.001, 0.1]}, cv=3).fit(X, y)
    # Without scoring= the estimator's own score decides, which is the metric.
    assert search.best_score_ == pytest.approx(cross_val_score(search.best_estimator_, X, y, cv=3).mean())
    p = cross_val_predict(TangentMetaClassifier(logistic()), X, y, cv=3, method="predict_proba")
    assert brier_score_loss(y, p[:, 1]) < 0.05


def test_a_row_of_weight_two_is_the_row_twice(rare):
    """With the same folds, and the exact cut: the other rules count rows to know how sure a cut is."""
    X, Z, y, _ = rare
    X, y = X[:600], y[:600]
    weight = np.arange(600) % 3 + 1
    twice, fold = np.repeat(np.arange(600), weight), np.arange(600) % 4
    once = [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(4)]
    often = [(np.flatnonzero(fold[twice] != k), np.flatnonzero(fold[twice] == k)) for k in range(4)]
    tight = LogisticRegression(tol=1e-9, max_iter=1000)
    for estimator in (ThresholdClassifier(tight), TangentMetaClassifier(tight), MetricClassifier(max_epochs=5)):
        estimator.set_params(rule="exact")
        one = clone(estimator).set_params(cv=once).fit(X, y, sample_weight=weight)
        two = clone(estimator).set_params(cv=often).fit(X[twice], y[twice])
        assert np.allclose(one.decision_function(Z), two.decision_function(Z), atol=1e-6)


def test_training_stops_where_the_out_of_fold_metric_is_best(rare):
    X, _, y, _ = rare
    fitted = MetricClassifier(F2, "mlp", hidden=(8,), learning_rate=0.05, patience=3, max_epochs=60).fit(X, y)
    assert fitted.history_[fitted.n_iter_ - 1] == fitted.history_.max()
    assert len(fitted.history_) == fitted.n_iter_ + 3 < 60
    last = MetricClassifier(F2, "mlp", hidden=(8,), patience=None, max_epochs=5).fit(X, y)
    assert last.n_iter_ == len(last.history_) == 5


def test_another_rate_moves_decisions_and_no_probabilities(rare):
    X, Z, y, t = rare
    for loss in ("tangent", "bce", "soft"):
        fitted = MetricClassifier(F1, loss=loss, prevalence=0.005, max_epochs=15, random_state=0).fit(X, y)
        assert fitted.predict_proba(Z)[:, 1].mean() == pytest.approx(t.mean(), rel=0.25)


def test_the_mean_of_fold_forests_is_of_probabilities(cancer):
    X, Z, y, _ = cancer
    forest = RandomForestClassifier(5, random_state=0)
    for estimator in (ThresholdClassifier(forest, cv=3), TangentMetaClassifier(forest, cv=3, rounds=1)):
        fitted = estimator.set_params(ensemble=True).fit(X, y)
        models = [m for ms in getattr(fitted, "models_", getattr(fitted, "estimators_", None)) for m in ms]
        mean = np.mean([m.predict_proba(Z)[:, 1] for m in models], axis=0)
        assert np.allclose(fitted.predict_proba(Z)[:, 1], mean, atol=1e-6)


def test_missing_values_where_the_classifier_takes_them(cancer):
    X, Z, y, t = cancer
    X = np.where(np.arange(X.size).reshape(X.shape) % 7 == 0, np.nan, X)
    for estimator in (ThresholdClassifier, TangentMetaClassifier):
        fitted = estimator(HistGradientBoostingClassifier(max_iter=10), cv=2).fit(X, y)
        assert fitted.score(Z, t) > 0.8
        assert fitted.__sklearn_tags__().input_tags.allow_nan


def test_scores_that_are_no_numbers(cancer):
    class Odd(GaussianNB):
        def predict_proba(self, X):
            return super().predict_proba(X) * np.nan

    X, _, y, _ = cancer
    for estimator in (ThresholdClassifier(Odd()), TangentMetaClassifier(Odd())):
        with pytest.raises(ValueError, match="Odd.predict_proba gives NaN or infinite scores"):
            estimator.fit(X, y)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("loss", ["tangent", "bce", "soft"])
def test_the_same_on_a_gpu(loss, rare):
    X, Z, y, t = rare
    for model in ("linear", "mlp"):
        estimator = MetricClassifier(F1, model, loss, hidden=(8,), max_epochs=10, random_state=0)
        here = clone(estimator).fit(X, y)
        there = clone(estimator).set_params(device="cuda").fit(X, y)
        assert there.score(Z, t) == pytest.approx(here.score(Z, t), abs=0.02)
        assert np.allclose(there.predict_proba(Z), here.predict_proba(Z), atol=0.02)


def test_clone_and_pickle(cancer):
    X, Z, y, _ = cancer
    for estimator in estimators():
        fitted = clone(estimator).fit(X, y)
        again = pickle.loads(pickle.dumps(fitted))
        assert (again.decision_function(Z) == fitted.decision_function(Z)).all()
        assert np.allclose(clone(fitted).fit(X, y).decision_function(Z), fitted.decision_function(Z))


def test_random_state(cancer):
    X, Z, y, _ = cancer
    one, same, other = (
        MetricClassifier(F1, "mlp", max_epochs=3, random_state=s).fit(X, y).decision_function(Z) for s in (1, 1, 2)
    )
    assert (one == same).all()
    assert not np.allclose(one, other)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_inside_a_pipeline_with_frames(library, cancer):
    frames = pytest.importorskip(library)
    X, Z, y, t = cancer
    frame, other = (frames.DataFrame({f"x{i}": x for i, x in enumerate(part.T)}) for part in (X, Z))
    pipe = make_pipeline(StandardScaler(), MetricClassifier(F1, max_epochs=5)).set_output(transform=library)
    pipe.fit(frame, frames.Series(y))
    assert pipe[-1].feature_names_in_.tolist() == list(frame.columns)
    assert pipe.score(other, t) > 0.9
    # Columns by name reach a pipeline inside, in every fold.
    inner = make_pipeline(make_column_transformer((StandardScaler(), ["x1", "x7"])), LogisticRegression())
    for estimator in (ThresholdClassifier(inner, F1), TangentMetaClassifier(inner, F1)):
        fitted = estimator.fit(frame, frames.Series(np.where(y, "ill", "healthy")))
        assert fitted.feature_names_in_.tolist() == list(frame.columns)
        assert fitted.score(other, np.where(t, "ill", "healthy")) > 0.8


def test_splitters_and_groups(rare):
    X, Z, y, t = rare
    hold_out = StratifiedShuffleSplit(1, test_size=0.3, random_state=0)
    group = np.arange(len(X)) // 4
    for estimator in estimators():
        for cv in (3, StratifiedKFold(3), hold_out, GroupKFold(3)):
            grouped = {"groups": group} if cv == 3 or isinstance(cv, GroupKFold) else {}
            fitted = clone(estimator).set_params(cv=cv).fit(X, y, **grouped)
            assert fitted.score(Z, t) > 0.3
        two = clone(estimator).fit(X, y, groups=np.arange(len(X)) % 2)  # no more folds than groups
        assert two.score(Z, t) > 0.3
    with pytest.raises(ValueError, match="overlap"):
        ThresholdClassifier(logistic(), cv=RepeatedStratifiedKFold(n_splits=3, n_repeats=2)).fit(X, y)
    with pytest.raises(ValueError, match="TimeSeriesSplit"):
        ThresholdClassifier(logistic(), cv=TimeSeriesSplit(3)).fit(X, y)


def test_metadata_goes_where_it_is_asked_for(rare):
    X, Z, y, _ = rare
    weight = 1 + 9.0 * y
    plain = ThresholdClassifier(LogisticRegression(), random_state=0).fit(X, y, sample_weight=weight)
    with sklearn.config_context(enable_metadata_routing=True):
        inner = LogisticRegression().set_fit_request(sample_weight=True)
        for outer in (ThresholdClassifier(inner), TangentMetaClassifier(inner)):
            outer.set_fit_request(sample_weight=True)
            fitted = outer.fit(X, y, sample_weight=weight)
            assert fitted.predict_proba(Z)[:, 1].mean() > 0.3
        assert np.allclose(
            ThresholdClassifier(inner, random_state=0).fit(X, y, sample_weight=weight).decision_function(Z),
            plain.decision_function(Z),
        )
        # Weights the classifier does not ask for go to the cut alone.
        unweighted = LogisticRegression().set_fit_request(sample_weight=False)
        fitted = ThresholdClassifier(unweighted).fit(X, y, sample_weight=weight)
        assert np.allclose(fitted.predict_proba(Z), LogisticRegression().fit(X, y).predict_proba(Z))
        assert fitted.cuts_[0] != ThresholdClassifier(unweighted).fit(X, y).cuts_[0]
        search = GridSearchCV(
            MetricClassifier(max_epochs=3).set_fit_request(sample_weight=True).set_score_request(sample_weight=True),
            {"alpha": [0.1]},
            cv=3,
        ).fit(X, y, sample_weight=weight)
        assert search.best_score_ > 0.5
        pipe = make_pipeline(
            StandardScaler().set_fit_request(sample_weight=False),
            MetricClassifier(max_epochs=3).set_fit_request(sample_weight=True),
        )
        pipe.fit(X, y, sample_weight=weight)
        with pytest.raises(TypeError, match="unexpected argument"):
            ThresholdClassifier(LogisticRegression()).fit(X, y, nonsense=1)


def test_a_class_of_the_scorer_that_is_missing_in_a_part():
    assert metric_score([0, 0], [0, 0], metric="accuracy") == 1
    assert metric_score([1, 1], [1, 1]) == 1
    assert metric_score(["a", "a"], ["a", "a"], pos_label="a") == 1
    with pytest.raises(ValueError, match="give pos_label"):
        metric_score(["a", "a"], ["a", "a"])
    with pytest.raises(ValueError, match="one shape"):
        metric_score([0, 1], [0, 1, 1])
    with pytest.raises(ValueError, match="average='macro'"):
        metric_score([0, 1, 2], [0, 1, 1])
    y, p = np.array([0, 1, 2, 2, 1]), np.array([0, 2, 2, 2, 1])
    assert metric_score(y, p, average="macro") == pytest.approx(f1_score(y, p, average="macro"))
    for rows in ([1, 2, 3, 4], [2, 3], [4]):  # parts with two classes of three, or one
        assert metric_score(y[rows], p[rows], average="macro") == pytest.approx(
            f1_score(y[rows], p[rows], average="macro")
        )
    with pytest.raises(ValueError, match="average is 'macro'. Leave it None"):
        metric_score([0, 1], [0, 1], average="macro", pos_label=1)
    w = [1, 2, 3, 4, 5]
    assert metric_score(y > 0, p > 1, metric=F2, sample_weight=w, pos_label=True) == pytest.approx(
        fbeta_score(y > 0, p > 1, beta=2, sample_weight=w)
    )


@pytest.mark.parametrize("estimator", estimators(), ids=lambda e: str(e)[:40])
def test_bad_input(estimator, cancer):
    X, _, y, _ = cancer

    def fit(X=X, y=y, **options):
        return clone(estimator).set_params(**options).fit(X, y)

    for bad in (np.nan, np.inf):
        broken = X.copy()
        broken[3, 2] = bad
        with pytest.raises(ValueError, match="NaN|inf"):
            fit(X=broken)
    with pytest.raises(ValueError, match="one class only"):
        fit(y=np.ones_like(y))
    with pytest.raises(ValueError, match="Only binary .* average='macro'"):
        fit(y=np.arange(len(y)) % 3)
    with pytest.raises(ValueError, match="Only binary .* 2 labels, .* average='macro'"):
        fit(y=np.column_stack([y, 1 - y]))
    micro = "use ThresholdClassifier" if isinstance(estimator, TangentMetaClassifier) else "micro F1 is accuracy"
    with pytest.raises(ValueError, match=micro):
        fit(y=np.arange(len(y)) % 3, average="micro")
    with pytest.raises(ValueError, match="too few for 5 folds with 2 in each: use at most 3 folds"):
        fit(y=(np.arange(len(y)) < 7).astype(int), cv=5)
    with pytest.raises(ValueError, match="bring at least 4 such rows"):
        fit(y=(np.arange(len(y)) < 3).astype(int))
    with pytest.raises(ValueError, match="Did you mean 'fbeta'"):
        fit(metric="fbetta:beta=1")
    with pytest.raises(ValueError, match="is not a class of y"):
        fit(pos_label="nobody")
    with pytest.raises(ValueError, match="average must be one of"):
        fit(average="weighted")
    with pytest.raises(ValueError, match="Unknown rule"):
        fit(rule="shrunken")
    with pytest.raises(ValueError, match="Label 1 has 0 rows with it.*bring at least 4 such rows, or leave"):
        fit(y=np.column_stack([y, 0 * y]), average="macro")
    with pytest.raises(ValueError, match="other values than 0 and 1; fit one estimator per column"):
        fit(y=np.column_stack([y, np.arange(len(y)) % 3]), average="macro")
    with pytest.raises(ValueError, match="training part of cv lacks a class.*stratified"):
        fit(y=np.sort(y), cv=KFold(2))
    with pytest.raises(ValueError, match="sample_weight must be finite and zero or more"):
        clone(estimator).fit(X, y, sample_weight=-np.ones(len(y)))


def test_bad_options(cancer):
    X, _, y, _ = cancer
    with pytest.raises(ValueError, match="model must be one of linear, .*mlp.*; got 'forest'"):
        MetricClassifier(model="forest").fit(X, y)
    with pytest.raises(ValueError, match="Unknown loss 'tangnt'. Did you mean 'tangent'"):
        MetricClassifier(loss="tangnt").fit(X, y)
    with pytest.raises(ValueError, match="pole on the corner"):
        MetricClassifier("precision").fit(X, y)
    for option in ({"max_epochs": 0}, {"max_epochs": 1.5}, {"patience": 0}, {"batch_size": 0}, {"alpha": -1.0}):
        with pytest.raises(ValueError, match=f"{next(iter(option))} must be .* from .(, or 'auto')?; got"):
            MetricClassifier(**option).fit(X, y)
    with pytest.raises(ValueError, match="hidden must hold the units of each layer"):
        MetricClassifier(model="mlp", hidden=(0,)).fit(X, y)
    with pytest.raises(ValueError, match="device must be auto, cuda or cpu; got 'gpu'"):
        MetricClassifier(device="gpu").fit(X, y)
    with pytest.raises(TypeError, match="loss_options {'gamma': 2} do not fit the loss 'bce'"):
        MetricClassifier(loss="bce", loss_options={"gamma": 2}).fit(X, y)
    for estimator in (ThresholdClassifier, TangentMetaClassifier):
        with pytest.raises(TypeError, match="estimator must be a classifier, for example"):
            estimator(LogisticRegression).fit(X, y)
    with pytest.raises(TypeError, match="takes no sample_weight.*ThresholdClassifier"):
        TangentMetaClassifier(KNeighborsClassifier()).fit(X, y)
    with pytest.raises(TypeError, match="has no predict_proba or decision_function"):
        ThresholdClassifier(StandardScaler()).fit(X, y)
    with pytest.raises(ValueError, match="No cut has recall.*reaches.*Ask for that or less"):
        ThresholdClassifier(GaussianNB(), subject_to={"recall": 0.999, "precision": 0.999}).fit(X, y)
    with pytest.raises(ValueError, match="average must be one of"):
        scorer(F1, average="weighted")
    with pytest.raises(ValueError, match="response_method must be one of"):
        ThresholdClassifier(LogisticRegression(), response_method="predict").fit(X, y)


def test_the_page_runs():
    page = (ROOT / "docs" / "estimators.md").read_text()
    exec("\n".join(re.findall(r"```python\n(.*?)```", page, re.S)), {})
    assert "(docs/estimators.md)" in (ROOT / "README.md").read_text()


def test_the_example_runs(monkeypatch, capsys):
    monkeypatch.syspath_prepend(ROOT / "examples")
    found = importlib.import_module("tables").main(splits=1)
    assert len(found) == 2
    assert all(0.8 < score < 1 for scores in found.values() for (score,) in scores.values())
    assert "Three labels: macro F₁" in capsys.readouterr().out


def run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_cuts_and_predictions_need_no_torch():
    code = """
import sys, numpy as np
from sklearn.linear_model import LogisticRegression
from fbeta.sklearn import ThresholdClassifier, TangentMetaClassifier, scorer
X = np.random.default_rng(0).normal(size=(60, 2)); y = (X[:, 0] > 0.3).astype(int)
for e in (ThresholdClassifier(LogisticRegression()), TangentMetaClassifier(LogisticRegression())):
    e.fit(X, y).predict(X)
print('torch' in sys.modules)
"""
    assert run(code).stdout.strip() == "False"


@pytest.mark.parametrize(
    ("missing", "code"),
    [
        ("sklearn", "import fbeta.sklearn"),
        ("torch", "from fbeta.sklearn import MetricClassifier; MetricClassifier().fit([[0.0]] * 8, [0, 1] * 4)"),
    ],
)
def test_an_extra_that_is_missing(missing, code):
    block = f"""
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == {missing!r}:
            raise ImportError(name)
sys.meta_path.insert(0, Missing())
"""
    error = run(block + code).stderr
    assert "ImportError" in error
    assert "pip install 'fbeta[sklearn]'" in error


@pytest.mark.parametrize("names", [("fraud", "ok"), (0, 1), (False, True)])
def test_the_rarer_class_is_positive_and_that_is_said(names):
    rng = np.random.default_rng(0)
    fraud = rng.random(300) < 0.2
    rare, usual = names
    X, y = rng.normal(size=(300, 2)) + fraud[:, None], np.where(fraud, rare, usual)
    model = ThresholdClassifier(LogisticRegression(), random_state=0)
    with pytest.warns(
        UserWarning, match=f"Positive is '{rare}', the rarer value: 58 of 300 rows.*or pos_label={usual!r} for"
    ):
        model.fit(X, y)
    assert model.positive_ == rare
    assert model.classes_.tolist() == [rare, usual]
    # Nothing is said where it was asked for, or where scikit-learn would take the same class.
    other = ThresholdClassifier(LogisticRegression(), pos_label=usual, random_state=0).fit(X, y)
    assert other.positive_ == usual
    assert ThresholdClassifier(LogisticRegression()).fit(X, fraud).positive_


def test_a_chosen_positive_class_changes_decisions_and_not_the_order_of_columns(rare):
    X, Z, y, t = rare
    names = np.array(["ok", "a fraud"])  # in order the rarer one comes first
    for estimator in (ThresholdClassifier(logistic(), F2), MetricClassifier(F2)):
        estimator.set_params(random_state=0)
        wanted = cross_val_score(estimator, X, y, scoring="roc_auc", cv=3)
        estimator.set_params(pos_label="a fraud")
        assert np.allclose(cross_val_score(estimator, X, names[y], scoring="roc_auc", cv=3), wanted)
        calibrated = CalibratedClassifierCV(estimator, cv=2).fit(X, names[y])
        assert (calibrated.predict(Z) == names[t]).mean() > 0.8


def test_one_weight_for_all_rows(cancer):
    X, Z, y, _ = cancer
    for estimator in estimators():
        weighted, plain = clone(estimator).fit(X, y, sample_weight=1.0), clone(estimator).fit(X, y)
        assert np.allclose(weighted.decision_function(Z), plain.decision_function(Z))
        assert plain.score(X, y, sample_weight=2.0) == pytest.approx(plain.score(X, y))
        with pytest.raises(ValueError, match="sample_weight holds numbers; got 'balanced'"):
            plain.score(X, y, sample_weight="balanced")


def test_chance_is_free_unless_it_is_fixed():
    for estimator in (MetricClassifier(), ThresholdClassifier(logistic()), TangentMetaClassifier(logistic())):
        assert estimator.random_state is None
