"""The mean over rows: the common cut against every cut, a decision that learns how rows are decided, estimators."""

import json

import numpy as np
import pytest
import torch
from sklearn.datasets import make_multilabel_classification
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score

from fbeta import Decision, FBeta, decide_rows, losses, tune
from fbeta.decisions import Threshold, row_scores, size_weights
from fbeta.sklearn import MetricClassifier, ThresholdClassifier, metric_score


def rows(n=400, k=5, seed=0, never_empty=True):
    """Labels of which each row has at least one, and their probabilities as independent ones."""
    rng = np.random.default_rng(seed)
    p = rng.beta(0.6, 1.8, size=(n, k))
    y = rng.random(p.shape) < p
    kept = y.any(1) | (not never_empty)
    return p[kept], y[kept]


@pytest.mark.parametrize("metric", ["f1", "f2", "jaccard", "mcc", "cost:fp=1,fn=3"])
@pytest.mark.parametrize("empty", [0.0, 1.0])
@pytest.mark.parametrize("digits", [1, 6])
@pytest.mark.parametrize("weighted", [False, True])
def test_no_common_cut_is_better(metric, empty, digits, weighted):
    rng = np.random.default_rng(1)
    s = rng.random((30, 5)).round(digits)
    y = rng.random(s.shape) < 0.6 * s
    w = rng.exponential(size=30) if weighted else None
    cut = tune(s, y, metric, w, average="samples", empty=empty)

    def mean(at):
        return np.average(row_scores(s >= at, y, metric, empty=empty), weights=w)

    assert cut.score == pytest.approx(max(map(mean, [np.inf, *np.unique(s), -np.inf])), abs=1e-12)
    assert mean(cut.value) == pytest.approx(cut.score, abs=1e-12)
    assert cut.n_positive == (s >= cut.value).sum()
    low, high = cut.interval.score
    assert low <= cut.score <= high
    assert cut.interval.cut[0] <= cut.value <= cut.interval.cut[1]


def test_a_weight_of_two_is_a_row_twice():
    p, y = rows(60)
    twice = np.arange(len(p)) < 20
    cut = tune(p, y, "f1", 1.0 + twice, average="samples")
    again = tune(np.r_[p, p[twice]], np.r_[y, y[twice]], "f1", average="samples")
    assert (cut.value, cut.score) == pytest.approx((again.value, again.score))
    w = size_weights(p, y, 1.0 + twice)
    assert (w > 0).all()
    assert w[0] < 0.5  # no row is empty
    assert size_weights(p, y, np.full(len(p), 7.0)) == pytest.approx(size_weights(p, y))


@pytest.mark.slow
@pytest.mark.parametrize("n", [20, 60, 300])
def test_the_interval_holds_the_score_of_the_population(n):
    everybody, truth = rows(50_000, never_empty=False)
    rng, held = np.random.default_rng(0), 0
    for _ in range(300):
        some = rng.choice(len(truth), n, False)
        cut = tune(everybody[some], truth[some], "f1", average="samples")
        low, high = cut.interval.score
        held += low <= row_scores(everybody >= cut.value, truth, "f1").mean() <= high
    assert held / 300 >= 0.95 - 3 * (0.95 * 0.05 / 300) ** 0.5  # the noise of 300 draws


def test_rows_that_are_all_right_are_not_certain():
    y = np.eye(4)[np.arange(12) % 4]
    cut = tune(y, y, "f1", average="samples")
    low, high = cut.interval.score
    assert cut.score == high == 1
    assert 0.7 < low < 1


def test_a_common_cut_as_plain_data():
    cut = tune(*rows(50), "f1", average="samples")
    again = Threshold.from_dict(json.loads(json.dumps(cut.to_dict())))
    assert again == cut
    assert again.interval == cut.interval
    with pytest.raises(ValueError, match="shift moves one cut"):
        cut.shift(0.2)


def test_cuts_of_tensors_hold_in_their_own_type():
    p, y = rows(80)
    for dtype in (torch.float16, torch.float32):
        s = torch.from_numpy(p).to(dtype)
        cut = tune(s, y, "f1", average="samples")
        assert row_scores(cut.decide(s), torch.from_numpy(y), "f1").mean().item() == pytest.approx(cut.score)


def test_a_decision_learns_that_no_row_is_empty():
    p, y = rows(3000)
    later, truth = rows(3000, seed=1)
    decision = Decision.fit(p, y, "f1", kind="probability", average="samples")
    assert decision.rows.one_by_one
    assert decision.rows.sizes[0] < 0.05
    found = row_scores(decision.decide(later), truth, "f1").mean()
    assert found > row_scores(decision.cuts[0].decide(decision.probability(later)), truth, "f1").mean() + 0.01
    assert found > row_scores(decide_rows(later, "f1"), truth, "f1").mean() + 0.01
    assert "one by one" in decision.explain()


def test_the_common_cut_decides_where_it_scored_more():
    rng = np.random.default_rng(0)
    # One cause for all labels of a row, which each label's own probability does not know.
    p = rng.uniform(0.15, 0.5, size=(2000, 12))
    y = rng.random((2000, 1)) < p
    scores = (1.0, 0.9)
    decision = Decision.fit(p, y, "f1", kind="probability", average="samples", empty=0.0)
    assert decision.rows.one_by_one == (decision.rows.scores[1] > decision.rows.scores[0])
    common = Decision.from_dict(
        decision.to_dict() | {"rows": decision.rows.to_dict() | {"one_by_one": False, "scores": scores}}
    )
    assert (common.decide(p) == common.cuts[0].decide(common.probability(p))).all()
    assert common.explain().startswith("One common cut: positive from")


@pytest.mark.parametrize("one_by_one", [True, False])
def test_margins_and_plain_data_decide_alike(one_by_one):
    p, y = rows(300)
    made = Decision.fit(p, y, "jaccard", kind="probability", average="samples")
    plain = json.loads(json.dumps(made.to_dict()))
    plain["rows"]["one_by_one"] = one_by_one
    decision = Decision.from_dict(plain)
    called = decision.decide(p)
    assert ((decision.margin(p) > 0) == called).all()
    assert np.isfinite(decision.margin(p)).all()
    assert (Decision.from_dict(decision.to_dict()).decide(p) == called).all()
    assert (decision.decide(torch.from_numpy(p)).numpy() == called).all()
    assert (decision.decide(p[0]) == called[0]).all()
    assert decision.decide(p[:0]).shape == (0, 5)


def test_weights_of_rows_count_in_a_decision():
    p, y = rows(300)
    twice = np.arange(len(p)) < 100
    a = Decision.fit(p, y, "f1", 1.0 + twice, kind="probability", average="samples", calibration="platt")
    b = Decision.fit(
        np.r_[p, p[twice]], np.r_[y, y[twice]], "f1", kind="probability", average="samples", calibration="platt"
    )
    assert a.cuts[0].score == pytest.approx(b.cuts[0].score, abs=0.01)
    assert (a.decide(p) == b.decide(p)).mean() > 0.97


def test_more_labels_than_sizes_are_learnt_for():
    rng = np.random.default_rng(0)
    p = rng.beta(0.05, 1.0, size=(40, 230))
    y = rng.random(p.shape) < p
    decision = Decision.fit(p, y, "f1", kind="probability", average="samples", calibration="none")
    assert decision.rows.sizes is None
    assert (Decision.from_dict(decision.to_dict()).decide(p) == decision.decide(p)).all()


def data(n=500):
    x, y = make_multilabel_classification(n, 12, n_classes=5, n_labels=2, allow_unlabeled=False, random_state=0)
    return x[::2], y[::2], x[1::2], y[1::2]


def test_estimators_decide_rows():
    x, y, new, truth = data()
    model = ThresholdClassifier(LogisticRegression(), "f1", average="samples", random_state=0).fit(x, y)
    called = model.predict(new)
    assert called.shape == truth.shape
    assert ((model.decision_function(new) > 0) == called).all()
    expected = f1_score(truth, called, average="samples", zero_division=1)
    assert model.score(new, truth) == pytest.approx(expected)
    assert metric_score(truth, called, metric="f1", average="samples") == pytest.approx(expected)
    macro = ThresholdClassifier(LogisticRegression(), "f1", average="macro", random_state=0).fit(x, y)
    assert expected > f1_score(truth, macro.predict(new), average="samples", zero_division=1)
    with pytest.raises(ValueError, match="samples"):
        model.adapt(new)


def test_a_linear_model_decides_rows():
    x, y, new, truth = data(300)
    model = MetricClassifier("f1", loss="bce", average="samples", random_state=0).fit(x, y)
    assert model.decision_.rows is not None
    assert model.score(new, truth) > 0.7


P, Y = rows(40)


@pytest.mark.parametrize(
    ("call", "why"),
    [
        (lambda: tune(P[:, 0], Y[:, 0], "f1", average="samples"), r"scores and target are \(n, K\)"),
        (lambda: tune(P, Y[:-1], "f1", average="samples"), r"scores and target are \(n, K\)"),
        (lambda: tune(P, Y, "f1", np.ones(P.shape), average="samples"), "one number per row"),
        (lambda: tune(P, Y, "f1", np.zeros(len(P)), average="samples"), "not all 0"),
        (lambda: tune(P, Y, "f1", average="samples", empty=2), "from 0 to 1"),
        (lambda: tune(P, Y, "f1", average="samples", budget=3), "no subject_to, budget"),
        (lambda: tune(P, Y, "f1", average="samples", rule="plugin", kind="probability"), "or other rule"),
        (lambda: tune(np.where(P > 2, P, np.nan), Y, "f1", average="samples"), "NaN"),
        (lambda: tune(P, 3 * Y, "f1", average="samples"), r"target must lie in \[0, 1\]"),
        (lambda: tune(P, Y, "f1", average="rows"), "'samples'"),
        (lambda: tune(P, Y, lambda tp, fp, fn, tn: tp / (tp + fp), average="samples"), "NaN for some row"),
        (lambda: Decision.fit(P[:, 0], Y[:, 0], "f1", kind="probability", average="samples"), r"several labels"),
        (lambda: Decision.fit(P, Y, "f1", kind="probability", average="samples", budget=2), "takes no subject_to"),
        (lambda: Decision.fit(P, Y, "f1", kind="probability", average="samples", abstain=0.1), "or abstain"),
        (lambda: Decision.fit(P, Y * 0.5, "f1", kind="probability", average="samples"), "as 0 and 1"),
        (lambda: size_weights(P, np.where(Y, 1.0, np.nan)), "as 0 and 1"),
        (lambda: Decision.fit(P, Y, "f1", kind="probability", average="rows"), "average must be"),
        (lambda: size_weights(P, Y, np.ones(3)), "one number per row"),
        (lambda: ThresholdClassifier(LogisticRegression(), average="samples").fit(P, Y[:, 0]), "several labels"),
        (
            lambda: ThresholdClassifier(LogisticRegression(), average="samples", prevalence=0.2).fit(P, Y),
            "about single labels",
        ),
    ],
)
def test_what_is_refused(call, why):
    with pytest.raises(ValueError, match=why):
        call()


@pytest.mark.parametrize(
    "damage",
    [
        {"sizes": [1.0, 2.0]},
        {"sizes": [-1.0] * 6},
        {"sizes": [0.0] * 6},
        {"sizes": [float("nan")] * 6},
        {"sizes": ["a"] * 6},
        {"sizes": [1e300] * 6},
        {"empty": 3},
        {"empty": None},
        {"scores": [1.0]},
        {"scores": [float("inf"), 0.0]},
        {"gap": -1.0},
        {"gap": "x"},
    ],
)
def test_damaged_data_is_refused(damage):
    plain = Decision.fit(P, Y, FBeta(1), kind="probability", average="samples").to_dict()
    with pytest.raises(ValueError, match=r"\w"):
        Decision.from_dict(plain | {"rows": plain["rows"] | damage})
    with pytest.raises(ValueError, match="this is no decision"):
        Decision.from_dict(plain | {"rows": {}})
    with pytest.raises(ValueError, match="no metric"):
        Decision.from_dict(plain | {"cuts": [cut | {"metric": None} for cut in plain["cuts"]]})


@pytest.mark.parametrize("shape", [(6, 4), (6, 5, 7)])
@pytest.mark.parametrize("name", ["soft", "anyloss"])
def test_losses_of_rows_are_the_mean_of_each_rows_loss(name, shape):
    gen = torch.Generator().manual_seed(0)
    z = torch.randn(shape, generator=gen, dtype=torch.float64, requires_grad=True)
    y = (torch.rand(shape, generator=gen) < 0.4).double()
    task = {"task": "multilabel", "num_labels": 4} if len(shape) == 2 else {}
    made = losses.get(name, metric="f1", average="samples", **task)
    each = [losses.get(name, metric="f1")(a, b) for a, b in zip(z, y, strict=True)]
    assert made(z, y).item() == pytest.approx(torch.stack(each).mean().item())
    assert losses.get(name, metric="f1", average="samples", reduction="sum", **task)(z, y).item() == pytest.approx(
        torch.stack(each).sum().item()
    )
    assert torch.autograd.gradcheck(lambda x: made(x, y), z)
    kept = torch.ones_like(y)
    kept[0] = 0.0  # a row of no weight is no row
    assert made(z, y, kept).item() == pytest.approx(torch.stack(each[1:]).mean().item())


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"memory": 100.0}, "takes no memory"),
        ({"prevalence": 0.1}, "takes no memory, prevalence"),
        ({"task": "multiclass", "num_labels": 3}, "average must be"),
    ],
)
def test_losses_of_rows_refuse(options, why):
    with pytest.raises(ValueError, match=why):
        losses.SoftLoss("f1", average="samples", **options)
    with pytest.raises(ValueError, match="SoftLoss has it"):
        losses.TangentLoss("f1", average="samples")
    with pytest.raises(ValueError, match="rows of several elements"):
        losses.SoftLoss("f1", average="samples")(torch.zeros(3), torch.zeros(3))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("metric", ["f1", "f2", "jaccard"])
@pytest.mark.parametrize("share", [1e-4, 0.05])
def test_a_gpu_decides_as_the_processor_does(metric, share):
    p = torch.rand(4, 2, 96, 96, generator=torch.Generator().manual_seed(0)) ** (1 / share)
    mine, gpu = decide_rows(p, metric), decide_rows(p.cuda(), metric)
    assert gpu.is_cuda
    assert gpu.dtype == torch.bool
    # The number of calls may differ where two are worth the same to the last digits.
    assert (mine.sum((2, 3)) - gpu.cpu().sum((2, 3))).abs().max() <= 2
