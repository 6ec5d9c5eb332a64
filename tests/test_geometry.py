import math

import numpy as np
import pytest
import torch
from sklearn.metrics import confusion_matrix

from fbeta.metrics import Anchors, Confusion, Pole, divide, root

rng = np.random.default_rng(0)
PREDICTED = rng.integers(0, 2, 300)
TARGET = rng.integers(0, 2, 300)
WEIGHT = rng.random(300)


@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["plain", "weighted"])
def test_from_predictions_counts_as_scikit_learn(weight):
    tn, fp, fn, tp = confusion_matrix(TARGET, PREDICTED, sample_weight=weight).ravel()
    c = Confusion.from_predictions(PREDICTED, TARGET, weight)
    assert tuple(c) == pytest.approx((tp, fp, fn, tn))


@pytest.mark.parametrize("kind", [list, np.asarray, torch.as_tensor, lambda x: np.asarray(x, dtype=bool)])
def test_every_kind_of_array_counts_alike(kind):
    c = Confusion.from_predictions(kind(PREDICTED), kind(TARGET))
    assert [float(x) for x in c] == [float(x) for x in Confusion.from_predictions(PREDICTED, TARGET)]


def test_tensor_and_array_mix():
    c = Confusion.from_predictions(torch.as_tensor(PREDICTED), TARGET)
    assert float(c.total) == 300


def test_ties_at_the_cut_are_positive():
    assert Confusion.from_scores([0.5, 0.49], [1, 1], cut=0.5).tp == 1


def test_columns_stay_apart():
    c = Confusion.from_predictions(np.ones((4, 2)), np.array([[1, 0], [1, 0], [0, 0], [0, 1]]), axis=0)
    assert c.tp.tolist() == [2, 1]
    t = Confusion.from_predictions(torch.ones(4, 2), torch.tensor([[1, 0], [1, 0], [0, 0], [0, 1]]), axis=0)
    assert t.tp.tolist() == [2, 1]


def test_soft_targets_and_predictions():
    c = Confusion.from_predictions([0.25], [0.5])
    assert tuple(c) == (0.125, 0.125, 0.375, 0.375)


def test_many_rows_keep_every_count():
    """Single precision stops counting at 2^24."""
    assert Confusion.from_predictions(torch.ones(2**24 + 3), torch.ones(2**24 + 3)).tp.item() == 2**24 + 3


def test_rates_and_back():
    c = Confusion(tp=8, fp=2, fn=4, tn=86)
    again = Confusion.from_rates(c.fpr, c.tpr, c.prevalence)
    assert tuple(again) == pytest.approx([x / 100 for x in c])
    assert tuple(c.at_prevalence(c.prevalence)) == pytest.approx(tuple(c.shares()))
    assert c.predicted == 0.1


def test_empty_matrix_has_rates_of_zero():
    c = Confusion.from_predictions([], [])
    assert (c.prevalence, c.tpr, c.fpr, c.total) == (0, 0, 0, 0)
    assert tuple(c.shares()) == (0, 0, 0, 0)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: Confusion.from_predictions([1, 0], [1]), r"one shape; got predicted \(2,\), target \(1,\)"),
        (lambda: Confusion.from_predictions([1, 0], [1, 2]), r"target must lie in \[0, 1\]"),
        (lambda: Confusion.from_predictions([0.3, 7], [1, 1]), "from_scores"),
        (lambda: Confusion.from_predictions(["a"], [1]), "must hold numbers"),
        (lambda: Confusion.from_predictions([1], [1], weight=[-1]), "zero or more"),
        (lambda: Confusion.from_scores([math.nan], [1], 0.5), "NaN"),
    ],
)
def test_bad_input_says_what_is_wrong(call, says):
    with pytest.raises((ValueError, TypeError), match=says):
        call()


def test_divide_and_root_have_no_nan_gradient_at_zero():
    x = torch.zeros(2, dtype=torch.float64, requires_grad=True)
    (divide(x, x).sum() + root(x).sum()).backward()
    assert x.grad.tolist() == [0, 0]


def test_anchor_scale_is_one_for_the_paper_and_grows_with_both_distances():
    assert Anchors(-9.0, 0.0).scale == 1.0
    assert Anchors(-0.1, -0.1).scale == 1.0
    assert Anchors(-24.5, -24.5).scale == pytest.approx(24.5)
    assert Anchors(25.5, 25.5).scale == pytest.approx(24.5)
    assert Anchors(math.inf, math.inf, 1.0).scale == 1.0


def test_pole_rays():
    assert Pole(math.inf, math.inf, slope=1.0).ray(0.25, 0.75) == 0.5
    assert Pole(math.inf, math.inf, slope=1.0).at_infinity


def test_harmonic_scale_of_unequal_distances():
    assert Anchors(-2.0, -6.0).scale == pytest.approx(3.0)
    assert Anchors(3.0, 7.0).scale == pytest.approx(3.0)
