import itertools
import math
import warnings
from dataclasses import dataclass

import numpy as np
import pytest
import sklearn.metrics as sk
import torch

import fbeta
from catalogue import ANCHORED, CURVED, METRICS, TRAINABLE, steep_f1
from fbeta import (
    MCC,
    Accuracy,
    BalancedAccuracy,
    Confusion,
    Cost,
    FBeta,
    FowlkesMallows,
    GMean,
    Jaccard,
    Kappa,
    Metric,
    Precision,
    Recall,
    Specificity,
    Tversky,
    metric,
)

PREVALENCES = [1e-6, 0.01, 0.1, 0.3, 0.5, 0.8, 1 - 1e-6]
INSIDE = [(0.05, 0.6), (0.2, 0.9), (0.5, 0.7), (0.01, 0.3)]


def gmean(y, p, sample_weight):
    # Its binary form ignores weights in one of the two recalls; its default form knows no absent class.
    average = "multiclass" if len(set(y)) == 2 else "binary"
    score = pytest.importorskip("imblearn.metrics").geometric_mean_score
    return score(y, p, sample_weight=sample_weight, average=average)


REFERENCE = {
    FBeta(0.5): lambda y, p, w: sk.fbeta_score(y, p, beta=0.5, sample_weight=w),
    FBeta(2): lambda y, p, w: sk.fbeta_score(y, p, beta=2, sample_weight=w),
    Jaccard(): lambda y, p, w: sk.jaccard_score(y, p, sample_weight=w),
    Tversky(0.2, 0.8): lambda y, p, w: sk.fbeta_score(y, p, beta=2, sample_weight=w),
    Kappa(): lambda y, p, w: sk.cohen_kappa_score(y, p, sample_weight=w),
    MCC(): lambda y, p, w: sk.matthews_corrcoef(y, p, sample_weight=w),
    GMean(): gmean,
    BalancedAccuracy(): lambda y, p, w: sk.balanced_accuracy_score(y, p, sample_weight=w),
    Accuracy(): lambda y, p, w: sk.accuracy_score(y, p, sample_weight=w),
    FowlkesMallows(): lambda y, p, w: math.sqrt(
        sk.precision_score(y, p, sample_weight=w) * sk.recall_score(y, p, sample_weight=w)
    ),
    Precision(): lambda y, p, w: sk.precision_score(y, p, sample_weight=w),
    Recall(): lambda y, p, w: sk.recall_score(y, p, sample_weight=w),
    Specificity(): lambda y, p, w: sk.recall_score(y, p, pos_label=0, sample_weight=w),
    Cost(fp=2, fn=5): lambda y, p, w: -np.average(2 * (p > y) + 5 * (p < y), weights=w),
}


@pytest.mark.parametrize("m", REFERENCE, ids=str)
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_score_equals_scikit_learn(m, seed, weighted):
    rng = np.random.default_rng(seed)
    y = (rng.random(400) < 0.2).astype(int)
    p = np.where(rng.random(400) < 0.3, 1 - y, y)
    w = rng.random(400) if weighted else np.ones(400)
    assert m(Confusion.from_predictions(p, y, w)) == pytest.approx(REFERENCE[m](y, p, w), abs=1e-12)


# The documented table of 0/0, cell by cell: all one-sided matrices of a few rows.
ONE_SIDED = [
    ([0, 0, 0], [0, 0, 0]),
    ([1, 1, 1], [1, 1, 1]),
    ([0, 0, 0], [1, 1, 1]),
    ([1, 1, 1], [0, 0, 0]),
    ([0, 0, 0], [0, 1, 0]),
    ([1, 1, 1], [0, 1, 0]),
    ([0, 1, 0], [0, 0, 0]),
    ([0, 1, 0], [1, 1, 1]),
]


@pytest.mark.parametrize("m", REFERENCE, ids=str)
@pytest.mark.parametrize(("y", "p"), ONE_SIDED)
def test_zero_over_zero_follows_the_table(m, y, p):
    y, p = np.array(y), np.array(p)
    w = np.ones(3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scikit-learn warns here; the point is the value it returns
        expected = REFERENCE[m](y, p, w)
    if isinstance(m, Kappa) and math.isnan(expected):
        expected = 0.0  # the one deviation, documented
    got = m(Confusion.from_predictions(p, y))
    assert got == pytest.approx(expected)
    assert m(Confusion(*(np.array([x]) for x in Confusion.from_predictions(p, y)))) == pytest.approx(got)
    assert m(Confusion.from_predictions(torch.tensor(p), torch.tensor(y))).item() == pytest.approx(got)


def test_no_rows_at_all_score_zero():
    for m in REFERENCE:
        assert m(Confusion(0.0, 0.0, 0.0, 0.0)) == 0.0


@pytest.mark.parametrize("m", METRICS, ids=str)
def test_floats_arrays_and_tensors_agree(m):
    points = np.random.default_rng(0).random((4, 50)) + 0.01
    arrays = m(Confusion(*points))
    tensors = m(Confusion(*torch.tensor(points)))
    for i in range(50):
        assert m(Confusion(*points[:, i].tolist())) == pytest.approx(arrays[i])
    assert tensors.numpy() == pytest.approx(arrays)
    both = Confusion(*np.ones((2, 3, 1)), *np.ones((2, 1, 2)))
    assert np.broadcast_shapes(np.shape(m(both)), (3, 2)) == (3, 2)


@pytest.mark.parametrize("m", METRICS, ids=str)
@pytest.mark.parametrize("prevalence", [0.01, 0.1, 0.5, 0.9])
@pytest.mark.parametrize(("u", "t"), INSIDE)
def test_slopes_equal_autograd_and_differences(m, prevalence, u, t):
    ut = torch.tensor([u, t], dtype=torch.float64, requires_grad=True)
    (by_u, by_t) = torch.autograd.grad(m(Confusion.from_rates(ut[0], ut[1], prevalence)) + 0 * ut.sum(), ut)[0]
    c = Confusion.from_rates(u, t, prevalence)
    assert m.slopes(c) == pytest.approx((by_t.item(), -by_u.item()), rel=1e-9, abs=1e-12)
    g1, g0 = m._differences(c)
    assert (prevalence * g1, (1 - prevalence) * g0) == pytest.approx(m.slopes(c), rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("m", METRICS, ids=str)
def test_slopes_take_arrays_and_tensors(m):
    u, t = np.array(INSIDE).T
    c = Confusion.from_rates(u, t, 0.1)
    by_t, by_u = m.slopes(c)
    for i in range(len(INSIDE)):
        assert m.slopes(Confusion.from_rates(u[i], t[i], 0.1)) == pytest.approx((by_t[i], by_u[i]))
    tensors = m.slopes(Confusion(*(torch.tensor(x) for x in c)))
    assert tensors[0].numpy() == pytest.approx(by_t)


def homogeneous_pole(m, prevalence):
    """N × D from the three corners of ROC space, as in the theory: an independent derivation."""
    rows = []
    for part in (0, 1):
        at = [float(m.ratio(Confusion.from_rates(u, t, prevalence))[part]) for u, t in ((0, 0), (1, 0), (0, 1))]
        rows.append((at[1] - at[0], at[2] - at[0], at[0]))  # u, t, 1
    return np.cross(*rows)


RATIOS = [FBeta(0.5), FBeta(1), FBeta(2), Jaccard(), Tversky(0.3, 0.7), Accuracy(), Precision(), Cost(1, 20)]


@pytest.mark.parametrize("m", RATIOS, ids=str)
@pytest.mark.parametrize("prevalence", PREVALENCES)
def test_pole_is_the_cross_product_of_numerator_and_denominator(m, prevalence):
    x, y, w = homogeneous_pole(m, prevalence)
    pole = m.pole(prevalence)
    if pole.at_infinity:
        assert abs(w) < 1e-9 * abs(x)
        assert pole.slope == pytest.approx(y / x, rel=1e-9)
    else:
        assert tuple(pole) == pytest.approx((x / w, y / w), rel=1e-8, abs=1e-9)


@pytest.mark.parametrize("prevalence", PREVALENCES)
def test_poles_of_the_theory(prevalence):
    odds = prevalence / (1 - prevalence)
    for beta in (0.1, 0.5, 1, 2, 10):
        assert tuple(FBeta(beta).pole(prevalence)) == pytest.approx((-(beta**2) * odds, 0), rel=1e-7)
    assert tuple(Jaccard().pole(prevalence)) == pytest.approx(tuple(FBeta(1).pole(prevalence)), rel=1e-7)
    assert Tversky(0.3, 0.7).pole(prevalence).x == pytest.approx(-0.7 / 0.3 * odds, rel=1e-7)
    assert BalancedAccuracy().pole(prevalence).slope == pytest.approx(1)
    assert Accuracy().pole(prevalence).slope == pytest.approx(1 / odds)
    assert tuple(Precision().pole(prevalence)) == (0, 0)
    assert metric(lambda tp, fp, fn, tn: tn / (tn + fn)).pole(prevalence) == fbeta.metrics.Pole(1, 1)
    anchors = GMean().anchors(prevalence)
    assert (anchors.negative, anchors.positive) == (1, 0)
    assert GMean().pole(prevalence) is None
    kappa = Kappa().pole(prevalence)
    if prevalence == 0.5:
        assert kappa.at_infinity
        assert kappa.slope == pytest.approx(1)
    else:
        c = -prevalence / (1 - 2 * prevalence)
        assert tuple(kappa) == pytest.approx((c, c), rel=1e-6)
    for m in CURVED:
        assert m.pole(prevalence) is None


@pytest.mark.parametrize("m", [m for m in METRICS if m.pole(0.1) is not None], ids=str)
@pytest.mark.parametrize("prevalence", [0.01, 0.1, 0.5, 0.9])
def test_score_depends_only_on_the_ray_from_the_pole(m, prevalence):
    pole = m.pole(prevalence)
    for u, t in INSIDE:
        step = 0.05
        if pole.at_infinity:
            u2, t2 = u + step, t + step * pole.slope
        else:
            u2, t2 = u + step * (u - pole.x), t + step * (t - pole.y)
        assert pole.ray(u2, t2) == pytest.approx(pole.ray(u, t))
        here, there = (m(Confusion.from_rates(*p, prevalence)) for p in ((u, t), (u2, t2)))
        assert there == pytest.approx(here, abs=1e-9)


@pytest.mark.parametrize("beta", [0.3, 1, 2, 5])
def test_best_cut_of_fbeta_is_half_of_f_and_its_like(beta):
    for u, t, p in itertools.product((0.01, 0.2), (0.4, 0.95), (0.01, 0.3)):
        c = Confusion.from_rates(u, t, p)
        assert FBeta(beta).best_cut(c) == pytest.approx(FBeta(beta)(c) / (1 + beta**2))
        assert Jaccard().best_cut(c) == pytest.approx(FBeta(1)(c) / 2)
        assert Accuracy().best_cut(c) == pytest.approx(0.5)
        assert BalancedAccuracy().best_cut(c) == pytest.approx(p)
        assert Cost(fp=1, fn=19).best_cut(c) == pytest.approx(0.05)


@pytest.mark.parametrize("m", TRAINABLE, ids=str)
def test_best_cut_is_a_fixed_point_at_the_optimum(m):
    """At the best classifier that thresholds η, the rule δ given by its own operating point is that threshold."""
    eta = np.linspace(0.001, 0.999, 2000) ** 3
    # every threshold classifier of a population with these η, equally likely
    tp, fp = np.cumsum(eta[::-1]), np.cumsum(1 - eta[::-1])
    c = Confusion(tp, fp, tp[-1] - tp, fp[-1] - fp)
    best = int(np.argmax(m(c)))
    at = Confusion(*(float(x[best]) for x in c))
    assert m.best_cut(at) == pytest.approx(eta[::-1][best], abs=2e-3)


def test_user_function_gets_everything():
    mine = metric(steep_f1)
    c = Confusion(tp=8, fp=2, fn=4, tn=86)
    assert mine(c) == pytest.approx(FBeta(1)(c))
    assert tuple(mine.pole(0.1)) == pytest.approx(tuple(FBeta(1).pole(0.1)))
    assert mine.best_cut(c) == pytest.approx(FBeta(1).best_cut(c))
    assert (str(mine), repr(mine)) == ("steep_f1", "as_metric(steep_f1)")


def test_opaque_user_function_falls_back_to_differences():
    opaque = metric(lambda tp, fp, fn, tn: math.sqrt(tp / (tp + fn) * (tn / (tn + fp))))
    c = Confusion.from_rates(0.2, 0.7, 0.1)
    assert opaque.slopes(c) == pytest.approx(GMean().slopes(c), rel=1e-6)
    a = opaque.anchors(0.1)
    assert (a.negative, a.positive) == (1, 0)


def test_names_that_people_use():
    assert [metric(name) for name in ("f1", "F2", "f0.5", "f-2")] == [FBeta(1), FBeta(2), FBeta(0.5), FBeta(2)]
    assert (metric("dice"), metric("IoU")) == (FBeta(1), Jaccard())
    with pytest.raises(ValueError, match="beta must be a finite number above 0"):
        metric("f0")
    with pytest.raises(ValueError, match="Unknown metric 'f1'.*a colon, as in fbeta:beta=2"):
        metric("f1:beta=2")
    own = type("F1", (Metric,), {"ratio": lambda self, c: (c.tp, c.total)})
    assert isinstance(metric("f1"), own)  # a name of the user's own comes first
    del Metric.registry["f1"]


def test_user_class_is_read_by_name_and_names_are_guarded():
    @dataclass(frozen=True)
    class HalfAlarm(Metric):
        share: float = 0.5

        def ratio(self, c):
            return c.tp, c.tp + c.fn + self.share * c.fp

    assert metric("halfalarm:share=0.25") == HalfAlarm(0.25)
    del Metric.registry["halfalarm"]
    with pytest.raises(ValueError, match="exists already"):
        type("Recall", (Metric,), {"__module__": "elsewhere"})


@pytest.mark.parametrize("m", [m for m in METRICS if type(m).__name__ != "Custom"], ids=str)
def test_spec_round_trip(m):
    assert metric(str(m)) == m
    assert metric(str(m).upper().replace("BETA=", "beta=").lower()) == m


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("fbta:beta=2", "Did you mean 'fbeta'.*Choices: accuracy, balancedaccuracy"),
        ("nonsense", "Choices: accuracy"),
        ("fbeta:gamma=2", "fbeta takes beta; got 'gamma=2'"),
        ("fbeta:beta=two", "beta of fbeta must be a number; got 'two'"),
        ("mcc:beta=1", "mcc takes no options"),
        ("fbeta:beta=0", "beta must be a finite number above 0; got 0.0"),
        ("fbeta:beta=-1", "above 0"),
        ("fbeta:beta=nan", "finite"),
        (FBeta, r"Write FBeta\(\)"),
        (3, "A metric is a Metric"),
    ],
)
def test_bad_specs_say_what_is_expected(spec, says):
    with pytest.raises((ValueError, TypeError), match=says):
        metric(spec)


@pytest.mark.parametrize("beta", [0, -2, math.inf, math.nan, "2", True, None])
def test_beta_must_be_a_positive_number(beta):
    with pytest.raises(ValueError, match="beta must be a finite number above 0"):
        FBeta(beta)


@pytest.mark.parametrize("prevalence", [0, 1, -0.1, math.nan, None, "often"])
def test_prevalence_must_lie_inside(prevalence):
    with pytest.raises(ValueError, match="strictly between 0 and 1"):
        FBeta(1).pole(prevalence)


@pytest.mark.parametrize("prevalence", [None, *PREVALENCES])
def test_refusals(prevalence):
    assert "pole on the corner (0, 0)" in Precision().refusal(prevalence)
    assert "right negative" in Recall().refusal(prevalence)
    assert "right positive" in Specificity().refusal(prevalence)
    assert "negative slope" in metric(lambda tp, fp, fn, tn: fp / (fp + tn)).refusal(prevalence)
    assert "counted twice" in metric(lambda tp, fp, fn, tn: tp - fp).refusal(prevalence)
    for m in TRAINABLE:
        assert m.refusal(prevalence) is None


def test_metric_without_anchors_names_the_alternatives():
    for m in CURVED:
        with pytest.raises(ValueError, match="Use TangentLoss or SoftLoss"):
            m.anchors(0.1)


def test_catalogue_covers_the_registry():
    assert {type(m) for m in METRICS} >= {
        c for c in Metric.registry.values() if c.__module__ == "fbeta.metrics.formulas"
    }
    assert len(ANCHORED) >= 11


def test_integer_cells_do_not_overflow():
    cells = [50000, 30000, 20000, 60000]
    for m in (Kappa(), MCC(), FBeta(2)):
        expected = m(Confusion(*map(float, cells)))
        assert m(Confusion(*np.array(cells, dtype=np.int32))) == pytest.approx(expected)
        assert m(Confusion(*torch.tensor(cells, dtype=torch.int32))).item() == pytest.approx(expected)
    assert FBeta(2)(Confusion(*np.array([200, 20, 30, 5], dtype=np.uint8))) == pytest.approx(
        FBeta(2)(Confusion(200, 20, 30, 5))
    )


@pytest.mark.parametrize("gap", [1e-13, 1e-12, 1e-9])
def test_kappa_has_anchors_however_near_one_half(gap):
    for p in (0.5 - gap, 0.5 + gap):
        a = Kappa().anchors(p)
        assert a.at_infinity or abs(a.negative) > 1e6


def test_opaque_parallel_and_singular_formulas():
    agreement = metric(lambda tp, fp, fn, tn: 1 - abs(fp + fn) / (tp + fp + fn + tn))
    assert agreement.pole(0.1).slope == pytest.approx(9, rel=1e-6)
    odds = metric(lambda tp, fp, fn, tn: tp * tn / (fp * fn))
    assert odds.pole(0.1) is None or odds.pole(0.1).at_infinity is False
    assert odds.refusal(0.1) is None or isinstance(odds.refusal(0.1), str)


def test_names_with_underscores():
    cls = type("My_Own", (Metric,), {"ratio": lambda self, c: (c.tp, c.tp + c.fp + c.fn)})
    assert isinstance(metric("my_own"), cls)
    del Metric.registry["myown"]


def test_sizes_that_would_overflow_are_refused():
    with pytest.raises(ValueError, match="beta must be"):
        FBeta(1e200)
