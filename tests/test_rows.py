"""Rows decided one by one: against all sets, against all outcomes, in NumPy and torch, and what is refused."""

import itertools

import numpy as np
import pytest
import torch

from fbeta import FBeta, Jaccard, as_metric, decide_rows
from fbeta.decisions import large_rows, row_scores, rows, size_weights
from fbeta.decisions.expected_scores import Sums, exact_values, falling, law_of_count, second_order

METRICS = ["fbeta:beta=0.5", "f1", "f2", "jaccard", "mcc", "kappa", "gmean", "cost:fp=1,fn=3", "accuracy"]


def outcomes(k):
    return np.array(list(itertools.product([0, 1], repeat=k)))


def chances(p, sizes=None):
    y = outcomes(len(p))
    found = np.where(y == 1, p, 1 - p).prod(1)
    if sizes is not None:
        found = found * sizes[y.sum(1)]
    return found / found.sum()


def expected(p, metric, empty=1.0, sizes=None):
    """The expected score of every set, over every outcome."""
    y = outcomes(len(p))
    scores = [row_scores(np.broadcast_to(s, y.shape), y, metric, empty=empty) for s in y]
    return y, np.array(scores) @ chances(p, sizes)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("empty", [1.0, 0.0])
@pytest.mark.parametrize("tilted", [False, True])
def test_no_set_has_a_higher_expected_score(metric, empty, tilted):
    rng = np.random.default_rng(3)
    for p in rng.beta(0.6, 1.0, size=(12, 5)):
        sizes = rng.gamma(1.0, size=6) if tilted else None
        sets, values = expected(p, metric, empty, sizes)
        found = decide_rows(p[None], metric, empty=empty, sizes=sizes)[0]
        mine = values[(sets == found).all(1)]
        assert mine == pytest.approx(values.max(), abs=1e-12)


def test_score_of_an_empty_row_is_what_was_said():
    p = [[0.3, 0.1]]
    assert decide_rows(p, "f1", empty=1).sum() == 0
    assert decide_rows(p, "f1", empty=0).sum() == 1


@pytest.mark.parametrize("metric", ["f1", "f2", "jaccard", "mcc"])
@pytest.mark.parametrize("positives", [0.5, 3, 9, 12, 30])
def test_maps_lose_less_than_a_thousandth(metric, positives, monkeypatch):
    goal, k = as_metric(metric), 180
    p = np.random.default_rng(0).beta(0.1, 0.1 * (k / positives - 1), size=(20, k))
    value = exact_values(falling(p), None, k, goal, 1.0, None)
    monkeypatch.setattr(rows, "EXACT", 10)
    found = decide_rows(p, goal)
    assert (value.max(1) - value[np.arange(len(p)), found.sum(1)]).max() < 1e-3
    assert (decide_rows(torch.from_numpy(p), goal).numpy() == found).all()


def test_exact_values_are_those_of_draws():
    rng = np.random.default_rng(5)
    p = rng.beta(0.3, 1.5, size=40)
    y = rng.random((50_000, 40)) < p
    value = exact_values(falling(p[None]), None, 40, FBeta(1), 1.0, None)[0]
    order = np.argsort(-p)
    for k in (0, 3, 8):
        decided = np.zeros(40, bool)
        decided[order[:k]] = True
        drawn = row_scores(np.broadcast_to(decided, y.shape), y, "f1")
        assert value[k] == pytest.approx(drawn.mean(), abs=1e-4 + 4 * drawn.std() / len(drawn) ** 0.5)


def test_shapes_and_types():
    p = np.random.default_rng(0).random((2, 3, 16, 18))
    found = decide_rows(p, "f1")
    assert found.shape == p.shape
    assert found.dtype == bool
    assert (found[1, 2] == decide_rows(p[1, 2][None], "f1")[0]).all()
    for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.float16):
        tensor = torch.from_numpy(p).to(dtype)
        mine = decide_rows(tensor, Jaccard())
        assert mine.dtype == torch.bool
        assert (mine.numpy() == decide_rows(tensor.double().numpy(), Jaccard())).all()


def test_equal_probabilities_are_called_as_often_as_it_pays():
    p = np.full((1, 6), 0.5)
    sets, values = expected(p[0], "f1")
    best = sets[values >= values.max() - 1e-12].sum(1).min()
    assert decide_rows(p, "f1").sum() == best


def test_certain_rows_are_called_as_they_are():
    y = np.random.default_rng(0).random((50, 7)) < 0.3
    assert (decide_rows(y.astype(float), "f1") == y).all()
    large = np.random.default_rng(0).random((4, 300)) < 0.2
    assert (decide_rows(large.astype(float), "f1") == large).all()


def test_weights_of_sizes_give_the_sizes_that_rows_have():
    rng = np.random.default_rng(1)
    p = rng.beta(1, 3, size=(4000, 5))
    y = rng.random(p.shape) < p
    none = y.sum(1) == 0
    p, y = p[~none], y[~none]  # no row is without a label
    w = size_weights(p, y)
    law = law_of_count(p) * w
    found = (law / law.sum(1, keepdims=True)).sum(0)
    assert w[0] < 0.05
    assert found == pytest.approx(np.bincount(y.sum(1), minlength=6), abs=12)
    better = row_scores(decide_rows(p, "f1", sizes=w), y, "f1").mean()
    assert better > row_scores(decide_rows(p, "f1"), y, "f1").mean() + 0.01


def test_row_scores_are_scikit_learns():
    from sklearn.metrics import f1_score, jaccard_score

    rng = np.random.default_rng(0)
    d, y = rng.random((2, 300, 5)) < 0.3
    for metric, theirs in (("f1", f1_score), ("jaccard", jaccard_score)):
        for empty in (0.0, 1.0):
            mine = row_scores(d, y, metric, empty=empty).mean()
            assert mine == pytest.approx(theirs(y, d, average="samples", zero_division=empty))
    tensors = row_scores(torch.from_numpy(d), torch.from_numpy(y), "f1")
    assert tensors.numpy() == pytest.approx(row_scores(d, y, "f1"))


@pytest.mark.parametrize(
    ("p", "options", "why"),
    [
        ([[0.5, 1.2]], {}, r"must lie in \[0, 1\]"),
        ([[0.5, float("nan")]], {}, r"must lie in \[0, 1\]"),
        ([0.5, 0.2], {}, r"must be rows \(N, K\)"),
        (np.zeros((0, 3)), {}, r"must be rows \(N, K\)"),
        ([[0.5, 0.2]], {"empty": 2}, "from 0 to 1"),
        ([[0.5, 0.2]], {"sizes": [1, 2]}, "3 weights"),
        ([[0.5, 0.2]], {"sizes": [0, 0, 0]}, "not all 0"),
        (np.full((1, 300), 0.2), {"sizes": np.ones(301)}, "up to 200 labels"),
    ],
)
def test_what_is_refused(p, options, why):
    with pytest.raises(ValueError, match=why):
        decide_rows(p, "f1", **options)


def test_cells_of_large_maps_stay_counts():
    seen = []

    def watch(tp, fp, fn, tn):
        seen.append(min(float(np.min(x)) for x in (tp, fp, fn, tn)))
        return 2 * tp / (2 * tp + fp + fn + (tp + fp + fn == 0))

    decide_rows(np.random.default_rng(0).random((3, 400)), watch)
    assert min(seen) > -1e-9


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("metric", ["f1", "f2", "jaccard", "mcc", "accuracy"])
def test_bins_find_what_sorting_finds(metric, dtype):
    rng, goal = np.random.default_rng(0), as_metric(metric)
    p = np.concatenate(
        [
            rng.beta(0.1, 0.5, size=(3, 3000)),
            rng.beta(0.05, 20.0, size=(2, 3000)),  # few positives
            rng.random((1, 3000)).round(1),  # ties
            np.full((1, 3000), 0.3),
            -np.zeros((1, 3000)),
            np.ones((1, 3000)),
        ]
    ).astype(dtype)
    found = decide_rows(p, metric)
    sorts = large_rows.decide_large(torch.from_numpy(p), goal, 1.0).numpy()  # as a GPU does
    q = falling(p)
    value = second_order(Sums.of(q), goal, 1.0)
    rows = np.arange(len(p))
    assert value[rows, found.sum(1)] == pytest.approx(value[rows, sorts.sum(1)], abs=1e-9)
    for called, likely in zip(found, p, strict=True):
        assert not called.any() or likely[called].min() >= likely[~called].max(initial=0.0)
