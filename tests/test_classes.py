"""Classes that exclude each other: gains, exact moves of one class, cost matrices, what did better on rows held out."""

import itertools
import json
import re

import numpy as np
import pytest
import torch
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import confusion_matrix, f1_score

from fbeta import Accuracy, Confusion, Cost, Decision, FBeta, Threshold, as_metric, tune
from fbeta.decisions import ClassRule, score_table
from fbeta.decisions.class_scores import table_of
from fbeta.decisions.class_steps import ClassSteps
from fbeta.decisions.classes import Gains, best_gains
from fbeta.sklearn import MetricClassifier, TangentMetaClassifier, ThresholdClassifier, metric_score

CELLS = Confusion(tp=5, fp=10, fn=1, tn=84)
PRICES = [[0.0, 1.0, 4.0], [2.0, 0.0, 1.0], [9.0, 5.0, -1.0]]


def rows(n=400, shares=(0.7, 0.2, 0.1), seed=0, apart=1.2):
    """Calibrated probabilities of classes, and the classes."""
    rng, prior = np.random.default_rng(seed), np.array(shares)
    y = rng.choice(prior.size, n, p=prior)
    z = rng.normal(size=(n, prior.size))
    z[np.arange(n), y] += apart
    p = prior * np.exp(apart * z)
    return p / p.sum(1, keepdims=True), y


def score(called, y, metric, average="macro", weight=None, classes=3):
    return float(score_table(as_metric(metric), table_of(called, y, classes, weight), average))


def test_scores_are_those_of_scikit_learn():
    p, y = rows()
    called, weight = p.argmax(1), np.random.default_rng(1).random(len(y))
    assert (table_of(called, y, 3, None) == confusion_matrix(y, called)).all()
    for average in ("macro", "weighted"):
        expected = f1_score(y, called, average=average, sample_weight=weight)
        assert score(called, y, "f1", average, weight) == pytest.approx(expected)
        named = metric_score(y, called, metric="f1", average=average, sample_weight=weight)
        assert named == pytest.approx(expected)
    many = np.stack([table_of(called, y, 3, None), np.eye(3)])
    assert score_table(FBeta(1), many) == pytest.approx([score(called, y, "f1"), 1.0])


@pytest.mark.parametrize("metric", ["f1", "f2", "mcc", "accuracy", lambda tp, fp, fn, tn: tp / (tp + fp + fn + 1)])
@pytest.mark.parametrize("average", ["macro", "weighted"])
@pytest.mark.parametrize("ties", [False, True])
def test_a_move_of_one_class_is_the_best_of_all(metric, average, ties):
    for seed in range(3):
        p, y = rows(60, seed=seed)
        p = np.round(p, 1) if ties else p
        weight = None if seed == 0 else np.random.default_rng(seed).integers(0, 4, len(y)).astype(float)
        steps = ClassSteps(y, weight, as_metric(metric), average)
        for k in range(3):
            shift, best = steps.best_shift(np.ascontiguousarray(p.T), k)
            one = np.eye(3)[k]
            assert score((p + shift * one).argmax(1), y, metric, average, weight) == pytest.approx(best)
            places = np.delete(p, k, 1).max(1) - p[:, k]
            tried = [*(places + 1e-9), places.min() - 1]
            found = max(score((p + t * one).argmax(1), y, metric, average, weight) for t in tried)
            assert best == pytest.approx(found, abs=1e-12)


def test_the_exact_rule_is_best_on_the_rows_for_moves_of_each_class():
    p, y = rows(300)
    target = np.eye(3)[y]
    gains = best_gains(p, target, FBeta(1), None, "exact")
    found = score(gains(p).argmax(1), y, "f1")
    for rule in ("constant", "plugin", "shrunk"):
        assert score(best_gains(p, target, FBeta(1), None, rule)(p).argmax(1), y, "f1") <= found + 1e-12
    steps = ClassSteps.of(target, None, FBeta(1))
    assert all(steps.best_shift(np.ascontiguousarray(gains(p).T), k)[1] <= found + 1e-12 for k in range(3))


def test_it_finds_the_best_of_a_small_case_by_brute_force():
    """All ways to shift two of three classes, on a grid as fine as the rows are."""
    gaps = []
    for seed in range(4):
        p, y = rows(25, seed=seed)
        grid = np.linspace(-0.8, 0.8, 33)
        best = max(score((p + np.array([0, a, b])).argmax(1), y, "f1") for a, b in itertools.product(grid, grid))
        gaps.append(best - tune(p, y, "f1", exclusive=True).score)
    assert np.mean(gaps) < 0.01


def test_calls_on_new_rows_beat_the_most_probable_class():
    p, y = rows(3000, apart=0.8)
    q, u = rows(20_000, seed=1, apart=0.8)
    plain = score(q.argmax(1), u, "f1")
    for rule in ("shrunk", "plugin", "exact"):
        found = tune(p, y, "f1", exclusive=True, rule=rule)
        new = score(found.decide(q), u, "f1")
        assert new > plain + 0.03
        assert found.interval[0] < new < found.interval[1]
        assert found.held_out[1] > found.held_out[0]
    heavy = tune(p, y, "f1", exclusive=True, average="weighted", rule="shrunk")
    assert score(heavy.decide(q), u, "f1", "weighted") > score(q.argmax(1), u, "f1", "weighted")


def test_without_evidence_the_most_probable_class_is_called():
    rng = np.random.default_rng(0)
    p, y = rows(60, shares=(1 / 3, 1 / 3, 1 / 3))
    for rule in ("shrunk", "plugin"):
        kept = ClassRule.fit(p, y, "accuracy", rule=rule)
        assert kept.plain
        assert kept.explain().startswith("The most probable class is called: macro")
    noise = ClassRule.fit(rng.dirichlet(np.ones(3), 30), rng.integers(0, 3, 30), "f1")
    assert noise.held_out[1] >= noise.held_out[0]
    for rule in ("constant", "exact"):
        assert ClassRule.fit(p, y, "f1", rule=rule).plain == (rule == "constant")


def test_a_cost_matrix_is_decided_by_least_expected_cost():
    p, y = rows()
    metric = Cost(matrix=PRICES)
    found = tune(p, y, metric, exclusive=True)
    assert (found.decide(p) == (p @ np.array(PRICES)).argmin(1)).all()
    assert found.score == pytest.approx(-np.array(PRICES)[y, found.decide(p)].mean())
    assert found.score > -np.array(PRICES)[y, p.argmax(1)].mean()
    assert tune(p, y, metric, exclusive=True, rule="constant").plain
    again = ClassRule.from_dict(json.loads(json.dumps(found.to_dict())))
    assert (again.decide(p) == found.decide(p)).all()
    assert again.metric == metric
    zero_one = Cost(matrix=1 - np.eye(3))
    assert (tune(p, y, zero_one, exclusive=True).decide(p) == p.argmax(1)).all()
    # Of two classes the matrix is the four prices.
    two = Cost(matrix=[[0, 1], [20, 0]])
    assert (two.fp, two.fn, two.tp, two.tn) == (1, 20, 0, 0)
    assert as_metric(str(two)) == two
    both = np.stack([1 - p[:, 0], p[:, 0]], 1)
    cut = Cost(fp=1, fn=20).best_cut(CELLS)
    assert (tune(both, y == 0, two, exclusive=True).decide(both) == (both[:, 1] >= cut)).all()


@pytest.mark.parametrize(
    "matrix",
    [[[0, 1, 2], [1, 0, 2]], [[0, 1], [1]], [[0.0]], [[0, np.nan], [1, 0]], [[0, np.inf], [1, 0]], 3, "0 a;1 0", []],
)
def test_what_is_no_cost_matrix(matrix):
    with pytest.raises(ValueError, match="a finite price for each true class .* so it is square"):
        Cost(matrix=matrix)


def test_a_cost_matrix_where_there_are_no_classes():
    p, y = rows()
    metric = as_metric("cost:matrix=0 1 4;2 0 1;9 5 -1")
    assert metric == Cost(matrix=PRICES)
    assert hash(metric) == hash(Cost(matrix=np.array(PRICES)))
    for call in (lambda: tune(p[:, 0], y == 0, metric), lambda: metric(CELLS)):
        with pytest.raises(ValueError, match="of 3 classes, so four cells do not have a cost. Decide among classes"):
            call()
    with pytest.raises(ValueError, match="The cost matrix is of 3 classes, and there are 2"):
        tune(p[:, :2] / p[:, :2].sum(1, keepdims=True), np.minimum(y, 1), metric, exclusive=True)


def test_targets_of_every_form_and_tensors():
    p, y = rows(200)
    numbers = tune(p, y, "f1", rule="shrunk")
    assert isinstance(numbers, ClassRule)
    for target in (np.eye(3)[y], np.eye(3)[y] > 0, y.astype(float), torch.as_tensor(y)):
        other = tune(p, target, "f1", exclusive=True, rule="shrunk")
        assert (other.gains(p) == numbers.gains(p)).all()
    called = numbers.decide(torch.as_tensor(p))
    assert called.dtype == torch.int64
    assert (called.numpy() == numbers.decide(p)).all()
    assert numbers.decide(p.reshape(2, 100, 3)).shape == (2, 100)
    assert isinstance(tune(p, np.eye(3)[y], "f1"), Threshold)
    twice = tune(np.repeat(p, 2, 0), np.repeat(y, 2), "f1", exclusive=True)
    weighed = tune(p, y, "f1", np.full(len(y), 2.0), exclusive=True)
    assert (twice.decide(p) == weighed.decide(p)).all()


P, Y = rows(50)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"scores": P * 0.5}, "sum to one in each row; row 0 sums to 0.5. Divide each row by its sum"),
        ({"scores": P * 3 - 1}, r"lie in \[0, 1\]; got .* Take a softmax of logits"),
        ({"scores": np.where(P == P[3, 1], np.nan, P)}, "hold NaN"),
        ({"scores": P[:, :1] * 0 + 1}, "one column of probabilities per class"),
        ({"scores": P[:0], "target": Y[:0]}, r"must be \(n, K\), one column per class; got \(0, 3\)"),
        ({"target": Y + 1}, "Classes are numbered from 0 to 2, as the columns of probabilities; got 3"),
        ({"target": Y - 0.5}, "Classes are numbered from 0 to 2"),
        ({"target": np.where(Y == 0, np.nan, Y)}, "Classes are numbered from 0 to 2"),
        ({"target": Y[:-1]}, "target holds the class of each row"),
        ({"target": np.array(["a", "b", "c"])[Y]}, "must hold numbers"),
        ({"target": np.ones_like(P)}, "not one 1 in each row"),
        ({"weight": -np.ones(50)}, "weight is one number per row"),
        ({"weight": np.ones(49)}, "weight is one number per row"),
        ({"kind": "logit"}, "decided by probabilities; got kind='logit'"),
        ({"average": "micro"}, "micro F of classes that exclude each other is accuracy: tune for 'accuracy'"),
        ({"average": "mean"}, "average of classes must be 'macro' or 'weighted'"),
        ({"subject_to": {"recall": 0.9}}, "about one cut; among classes .* Pick a class"),
        ({"budget": 3}, "about one cut"),
        ({"prevalence": 0.1}, "about one cut"),
        ({"metric": Cost(matrix=1 - np.eye(4))}, "The cost matrix is of 4 classes, and there are 3"),
        ({"metric": lambda tp, fp, fn, tn: (tp - tp) / (fp - fp)}, "is NaN for some counts"),
    ],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_bad_input(change, words):
    given = {"scores": P, "target": Y, "metric": "f1", "exclusive": True} | change
    with pytest.raises(ValueError, match=words):
        tune(**given)


def test_scores_that_cannot_be_decided():
    rule = tune(P, Y, "f1", exclusive=True)
    for bad, words in ((P[:, :2], "one column of probabilities per class, 3"), (P * np.nan, "NaN"), (P * 2, "lie in")):
        with pytest.raises(ValueError, match=words):
            rule.decide(bad)
    assert rule.decide(P[0]).shape == ()
    assert rule.decide(np.round(P, 3)).shape == (50,)  # as they are printed


def test_a_class_without_rows_is_said():
    p, y = rows(200)
    rule = tune(p, np.minimum(y, 1), "f1", exclusive=True)
    assert "Class 2: it does not occur among the rows" in rule.warning
    few = tune(p[:30], y[:30], "f1", exclusive=True, rule="shrunk")
    assert re.search(r"Class \d: Only \d+ positives: the best cut on such rows is mostly chance", few.warning)
    many = ClassRule.fit(*rows(3000), "f1")
    assert many.warning is None
    assert len(ClassRule.fit(p[:1], y[:1], "f1").decide(p)) == 200


def test_it_is_plain_data():
    p, y = rows(300)
    for metric in ("f1", lambda tp, fp, fn, tn: tp / (tp + fp + fn + 1)):
        rule = ClassRule.fit(p, y, metric)
        again = ClassRule.from_dict(json.loads(json.dumps(rule.to_dict())))
        assert again.metric is None or again.to_dict() == rule.to_dict()
        assert (again.decide(p) == rule.decide(p)).all()
    data = ClassRule.fit(p, y, "f1").to_dict()
    for change, words in (
        ({"gains": [[1.0], [0.0]]}, "do not fit its classes"),
        ({"gains": [[1.0, 1.0, float("nan")], [0.0] * 3]}, "no numbers"),
        ({"table": [[1.0]]}, "table does not fit"),
        ({"table": [[-1.0] * 3] * 3}, "table does not fit"),
        ({"average": "micro"}, "average of classes must be"),
        ({"cuts": None}, "no rule for classes"),
        ({"held_out": [1]}, "not enough values"),
        ({"metric": str(Cost(matrix=1 - np.eye(4)))}, "cost matrix is of 4 classes"),
    ):
        with pytest.raises(ValueError, match=words):
            ClassRule.from_dict(data | change)


def test_decisions_of_classes():
    p, y = rows(600)
    for metric, average in (("f1", "macro"), ("f1", "weighted"), (Cost(matrix=PRICES), "macro")):
        options = {"kind": "probability", "calibration": "none", "exclusive": True}
        d = Decision.fit(p, np.eye(3)[y], metric, average=average, **options)
        rule = ClassRule.fit(d.probability(p), y, metric, average=average)
        assert (d.decide(p).argmax(1) == rule.decide(d.probability(p))).all()
        assert (d.margin(p).argmax(1) == d.decide(p).argmax(1)).all()
        again = Decision.from_dict(json.loads(json.dumps(d.to_dict())))
        assert (again.decide(p) == d.decide(p)).all()
        assert again.explain() == d.explain()
        assert "on rows held out (95 % interval" in d.explain()
    with pytest.raises(ValueError, match="about one cut; among classes .* Pick a class"):
        Decision.fit(p, np.eye(3)[y], "f1", kind="probability", exclusive=True, subject_to={"recall": 0.9})


def test_estimators_and_a_cost_matrix():
    X, y = make_classification(900, 6, n_informative=4, n_classes=3, weights=[0.7, 0.2], class_sep=0.8, random_state=0)
    names = np.array(["c", "a", "b"])[y]
    prices = np.array([[0, 1, 1], [20, 0, 20], [4, 4, 0]])
    metric, train = Cost(matrix=prices), slice(0, 600)
    fitted = ThresholdClassifier(LogisticRegression(), metric, average="macro").fit(X[train], names[train])
    p, truth = fitted.predict_proba(X[600:]), np.searchsorted(fitted.classes_, names[600:])
    assert (fitted.predict(X[600:]) == fitted.classes_[(p @ prices).argmin(1)]).all()
    called = np.searchsorted(fitted.classes_, fitted.predict(X[600:]))
    assert fitted.score(X[600:], names[600:]) == pytest.approx(-prices[truth, called].mean())
    assert fitted.score(X[600:], names[600:]) > -prices[truth, p.argmax(1)].mean()
    for other in (
        MetricClassifier(metric, average="macro"),
        TangentMetaClassifier(LogisticRegression(), metric, average="macro"),
    ):
        with pytest.raises(ValueError, match="four cells do not have a cost. Decide among classes"):
            other.fit(X[train], names[train])
    with pytest.raises(ValueError, match="cost matrix is of 2 classes, and there are 3"):
        ThresholdClassifier(LogisticRegression(), Cost(matrix=1 - np.eye(2)), average="macro").fit(X, names)
    heavy = ThresholdClassifier(LogisticRegression(), "f1", average="weighted").fit(X[train], names[train])
    expected = f1_score(names[600:], heavy.predict(X[600:]), average="weighted")
    assert heavy.score(X[600:], names[600:]) == pytest.approx(expected)


def test_prices_of_two_classes_are_in_sorted_order_whichever_is_rarer():
    X, y = make_classification(400, 4, weights=[0.2], class_sep=0.8, random_state=0)
    names, metric = np.array(["fraud", "good"])[y], Cost(matrix=[[0, 20], [1, 0]])  # frauds, called good, cost 20
    fitted = ThresholdClassifier(LogisticRegression(), metric).fit(X, names)
    called = fitted.predict(X)
    table = confusion_matrix(names, called)
    assert table[0, 1] < table[1, 0]
    assert fitted.positive_ == "good"
    paid = -(table * metric.matrix).sum() / len(y)
    assert fitted.score(X, names) == pytest.approx(paid)
    assert metric_score(names, called, metric=metric) == pytest.approx(paid)
    with pytest.raises(ValueError, match="classes in sorted order, 'fraud' and 'good', and the second is the positive"):
        ThresholdClassifier(LogisticRegression(), metric, pos_label="fraud").fit(X, names)


def test_a_decision_takes_numbers_of_classes_and_keeps_the_prices():
    p, y = rows(200)
    of_numbers = Decision.fit(p, y, Cost(matrix=PRICES), kind="probability", exclusive=True)
    of_columns = Decision.fit(p, np.eye(3)[y], Cost(matrix=PRICES), kind="probability", exclusive=True)
    assert of_numbers.to_dict() == of_columns.to_dict()
    again = Decision.from_dict(of_numbers.to_dict())
    assert again.metric == Cost(matrix=PRICES)
    assert again.to_dict() == of_numbers.to_dict()
    assert "minus the mean price −" in again.explain()
    with pytest.raises(ValueError, match="must hold numbers of classes, .* np.searchsorted"):
        tune(p, np.array(["a", "b", "c"])[y], "f1", exclusive=True)


def test_gains_are_one_idea():
    p, _ = rows(20)
    assert (Gains.flat(3)(p) == p).all()
    assert np.allclose(Gains(np.diag([1.0, 2.0, 3.0]), np.ones(3))(p), Gains(np.array([1.0, 2.0, 3.0]), np.ones(3))(p))
    assert np.allclose(Gains(-np.array(PRICES), np.zeros(3))(p), -(p @ np.array(PRICES)))
    assert tune(*rows(50), Accuracy(), exclusive=True).score >= 0
