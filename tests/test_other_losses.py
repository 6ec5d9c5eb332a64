"""The losses people compare with: each against its published formula, its limits and its neighbours."""

import math

import pytest
import torch
import torch.nn.functional as F

from catalogue import LOSSES, OTHERS, TRAINABLE, batch
from fbeta import (
    MCC,
    Accuracy,
    BalancedAccuracy,
    Confusion,
    FBeta,
    FowlkesMallows,
    GMean,
    Kappa,
    SoftLoss,
    SurrogateLoss,
    losses,
)
from fbeta.losses import asymmetric_loss, bce_loss, focal_loss, ldam_loss, mae_loss, tangent_loss

same = torch.testing.assert_close
COUNTS = (900, 100)


def sigmoid(z):
    return 1 / (1 + math.exp(-z))


def naive_asymmetric(p, y, gamma_neg, gamma_pos, m):
    shifted = max(p - m, 0)
    return -((1 - p) ** gamma_pos) * math.log(p) if y else -(shifted**gamma_neg) * math.log(1 - shifted)


def naive_ldam(z, y, counts, max_margin, s):
    """The two-class softmax of the paper on the scores (0, z)."""
    margins = [n**-0.25 for n in counts]
    margins = [max_margin * d / max(margins) for d in margins]
    scores = [0.0, z]
    scores[y] -= margins[y]
    return -math.log(math.exp(s * scores[y]) / sum(math.exp(s * x) for x in scores))


# name, options, the published formula of one row in (z, f_y, y); written out, not imported
ROWS = [
    ("bce", {}, lambda z, fy, y: -math.log(fy)),
    ("balanced-bce", {"class_counts": COUNTS}, lambda z, fy, y: -1000 / COUNTS[y] * math.log(fy)),
    ("balanced-bce", {"prevalence": 0.2}, lambda z, fy, y: -math.log(fy) / (0.2 if y else 0.8)),
    ("mae", {}, lambda z, fy, y: 2 - 2 * fy),
    ("balanced-mae", {"class_counts": COUNTS}, lambda z, fy, y: 1000 / COUNTS[y] * (2 - 2 * fy)),
    ("balanced-mae", {"weighting": (3.0, 5.0)}, lambda z, fy, y: (5 if y else 3) * (2 - 2 * fy)),
    ("gce", {}, lambda z, fy, y: (1 - fy**0.7) / 0.7),
    ("gce", {"q": 0.3}, lambda z, fy, y: (1 - fy**0.3) / 0.3),
    ("focal", {}, lambda z, fy, y: -((1 - fy) ** 2) * math.log(fy)),
    ("focal", {"gamma": 0.5, "alpha": 0.25}, lambda z, fy, y: -(0.25 if y else 0.75) * (1 - fy) ** 0.5 * math.log(fy)),
    ("asymmetric", {}, lambda z, fy, y: naive_asymmetric(sigmoid(z), y, 4, 1, 0.05)),
    (
        "asymmetric",
        {"gamma_neg": 1.5, "gamma_pos": 0, "clip": 0.3},
        lambda z, fy, y: naive_asymmetric(sigmoid(z), y, 1.5, 0, 0.3),
    ),
    ("ldam", {"class_counts": COUNTS}, lambda z, fy, y: naive_ldam(z, y, COUNTS, 0.5, 30)),
    ("ldam", {"class_counts": (5, 80), "max_margin": 2, "scale": 1}, lambda z, fy, y: naive_ldam(z, y, (5, 80), 2, 1)),
]


@pytest.mark.parametrize(("name", "options", "formula"), ROWS, ids=lambda x: x if isinstance(x, str) else "")
def test_rows_are_the_published_formula(name, options, formula):
    z, y = batch()
    expected = [formula(a, sigmoid(a if b else -a), int(b)) for a, b in zip(z.tolist(), y.tolist(), strict=True)]
    got = losses.get(name, reduction="none", **options)(z, y)
    same(got, torch.tensor(expected, dtype=torch.float64))


def naive_cosine(p, mu, delta):
    if p < mu - delta:
        return 0.0
    if p > mu + delta:
        return 1.0
    return 0.5 * (1 + (p - mu) / delta + math.sin(math.pi * (p - mu) / delta) / math.pi)


# name, options, how much of a row with logit z is called positive
DECISIONS = [
    ("sigmoid-f1", {}, lambda z: 1 / (1 + math.exp(-10 * (z + 1)))),
    ("sigmoid-f1", {"slope": 2.5, "offset": -0.5}, lambda z: 1 / (1 + math.exp(-2.5 * (z - 0.5)))),
    ("anyloss", {}, lambda z: 1 / (1 + math.exp(-73 * (sigmoid(z) - 0.5)))),
    ("anyloss", {"L": 5}, lambda z: 1 / (1 + math.exp(-5 * (sigmoid(z) - 0.5)))),
    ("score-oriented", {}, lambda z: naive_cosine(sigmoid(z), 0.5, 0.1)),
    ("score-oriented", {"mu": 0.3, "delta": 0.25}, lambda z: naive_cosine(sigmoid(z), 0.3, 0.25)),
    ("score-oriented", {"prior": "uniform"}, sigmoid),
]


@pytest.mark.parametrize("m", TRAINABLE, ids=str)
@pytest.mark.parametrize(("name", "options", "called"), DECISIONS, ids=lambda x: x if isinstance(x, str) else "")
def test_counts_are_the_published_formula(name, options, called, m):
    z, y = batch()
    tp = fp = fn = tn = 0.0
    for a, b in zip(z.tolist(), y.tolist(), strict=True):
        s = called(a)
        tp, fp, fn, tn = tp + b * s, fp + (1 - b) * s, fn + b * (1 - s), tn + (1 - b) * (1 - s)
    assert losses.get(name, metric=m, **options)(z, y).item() == pytest.approx(1 - m(Confusion(tp, fp, fn, tn)))


def test_sigmoid_f1_is_macro_over_labels():
    """Its formula 1 − mean over labels of 2tp/(2tp + fn + fp), and the authors' b = −S, η = E."""
    z = torch.randn(40, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) - 1
    y = (torch.rand(40, 3, generator=torch.Generator().manual_seed(1)) < 0.3).double()
    s = 1 / (1 + torch.exp(-10 * (z + 1)))
    tp, fp, fn = (s * y).sum(0), (s * (1 - y)).sum(0), ((1 - s) * y).sum(0)
    expected = (1 - 2 * tp / (2 * tp + fn + fp)).mean()
    same(losses.SigmoidF1Loss(FBeta(1), task="multilabel", num_labels=3)(z, y), expected)


def test_known_values():
    z, y = torch.zeros(2), torch.tensor([1.0, 0.0])
    log2 = math.log(2)
    for name, options, value in (
        ("bce", {}, log2),
        ("balanced-bce", {"prevalence": 0.2}, log2 * (5 + 1.25) / 2),
        ("mae", {}, 1.0),
        ("balanced-mae", {"prevalence": 0.2}, (5 + 1.25) / 2),
        ("gce", {"q": 0.5}, 2 - math.sqrt(2)),
        ("focal", {}, log2 / 4),
        ("focal", {"gamma": 1, "alpha": 1.0}, log2 / 4),
        ("asymmetric", {"gamma_neg": 1, "clip": 0.25}, (log2 / 2 + 0.25 * math.log(4 / 3)) / 2),
        ("ldam", {"class_counts": (16, 1), "scale": 1}, (math.log1p(math.e**0.5) + math.log1p(math.e**0.25)) / 2),
        ("sigmoid-f1", {"metric": Accuracy(), "offset": 0}, 0.5),
        ("anyloss", {"metric": FBeta(1)}, 0.5),
        ("score-oriented", {"metric": FBeta(1)}, 0.5),
    ):
        assert losses.get(name, **options)(z, y).item() == pytest.approx(value, rel=1e-6), name


def test_cross_entropy_is_torchs():
    z, y = batch()
    soft = 0.9 * y + 0.05
    for target in (y, soft):
        same(losses.BCELoss()(z, target), F.binary_cross_entropy_with_logits(z, target))
    weight = torch.where(y == 1, 10.0, 10 / 9).double()
    same(losses.BalancedBCELoss(prevalence=0.1)(z, y), F.binary_cross_entropy_with_logits(z, y, weight=weight))


def test_absolute_error_is_twice_torchs():
    z, y = batch()
    same(losses.MAELoss()(z, y), 2 * F.l1_loss(torch.sigmoid(z), y))


def test_limits_at_cross_entropy_and_absolute_error():
    z, y = batch()
    bce, mae = bce_loss(z, y), mae_loss(z, y)
    one = (1.0, 1.0)
    same(tangent_loss(z, y, one, 1e-9), bce)
    same(losses.GCELoss(q=0, reduction="none")(z, y), bce)
    same(losses.GCELoss(q=1, reduction="none")(z, y), mae / 2)
    same(focal_loss(z, y, gamma=0), bce)
    same(focal_loss(z, y, gamma=0, alpha=0.5), bce / 2)
    same(asymmetric_loss(z, y, gamma_neg=0, gamma_pos=0, clip=0), bce)
    same(asymmetric_loss(z, y, gamma_neg=2, gamma_pos=2, clip=0), focal_loss(z, y))
    same(asymmetric_loss(z, y, clip=1e-12), asymmetric_loss(z, y, clip=0))
    same(ldam_loss(z, y, margins=(0.0, 0.0), scale=3.0), bce_loss(3 * z, y))
    same(losses.LDAMLoss(class_counts=COUNTS, max_margin=0, scale=1)(z, y), bce.mean())


@pytest.mark.parametrize("p", [0.1, 0.5, 0.8])
def test_surrogates_of_parallel_level_lines(p):
    """Theory: the G-mean's surrogate is balanced cross entropy; those of the accuracies are absolute errors."""
    z, y = batch()
    same(losses.BalancedBCELoss(prevalence=p)(z, y), SurrogateLoss(GMean(), prevalence=p)(z, y))
    balanced = SurrogateLoss(BalancedAccuracy(), prevalence=p)(z, y)
    same(losses.BalancedMAELoss(prevalence=p)(z, y), 2 * balanced)


def test_plain_absolute_error_is_the_surrogate_of_accuracy():
    z, y = batch()
    for p in (0.1, 0.5, 0.8):
        same(losses.MAELoss()(z, y), SurrogateLoss(Accuracy(), prevalence=p)(z, y))


@pytest.mark.parametrize("m", TRAINABLE, ids=str)
def test_neighbours_of_the_soft_loss(m):
    z, y = batch()
    soft = SoftLoss(m)(z, y)
    same(losses.ScoreOrientedLoss(m, prior="uniform")(z, y), soft)
    same(losses.SigmoidF1Loss(m, slope=1, offset=0)(z, y), soft)
    hard = 1 - m(Confusion.from_scores(z, y, cut=0.0))
    same(losses.AnyLoss(m, L=1e6)(z, y), hard)
    same(losses.ScoreOrientedLoss(m, delta=1e-6)(z, y), hard)
    same(losses.SigmoidF1Loss(m, slope=1e6, offset=0)(z, y), hard)


def test_sigmoid_f1_decides_at_minus_its_offset():
    z, y = batch()
    hard = 1 - FBeta(1)(Confusion.from_scores(z, y, cut=-1.0))
    same(losses.SigmoidF1Loss(FBeta(1), slope=1e6, offset=1)(z, y), hard)


def test_ldam_is_the_softmax_form_on_two_columns():
    """The authors' way: subtract the margin from the true column, scale, cross entropy."""
    scores = torch.randn(60, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    y = (torch.arange(60) % 4 == 0).long()
    margins = torch.tensor(COUNTS, dtype=torch.float64) ** -0.25
    margins = 0.5 * margins / margins.max()
    moved = scores - margins * F.one_hot(y, 2)
    same(losses.LDAMLoss(class_counts=COUNTS, task="softmax2")(scores, y), F.cross_entropy(30 * moved, y))
    rare, common = losses.LDAMLoss(class_counts=(100, 900)).pair
    assert (rare, common) == pytest.approx((0.5, 0.5 / 9**0.25))


@pytest.mark.parametrize("name", ["balanced-bce", "balanced-mae", "ldam"])
def test_each_label_has_its_own_numbers(name):
    z = torch.randn(30, 2, dtype=torch.float64)
    y = (torch.rand(30, 2) < 0.4).double()
    counts = [(70, 95), (30, 5)]
    wide = {"class_counts": counts, "task": "multilabel", "num_labels": 2, "reduction": "none"}
    both = losses.get(name, **wide)(z, y)
    for k in range(2):
        own = tuple(n[k] for n in counts)
        same(both[:, k], losses.get(name, class_counts=own, reduction="none")(z[:, k], y[:, k]))
    pooled = losses.get(name, average="micro", **wide)(z, y)
    same(pooled, losses.get(name, class_counts=(165, 35), reduction="none")(z, y))


@pytest.mark.parametrize("case", OTHERS, ids=str)
def test_gradcheck(case):
    z, y = batch(12)
    soft = 0.8 * y + 0.1
    loss = case.make(**({"reduction": "none"} if case.per_element else {})).eval()
    z.mul_(0.3).requires_grad_()  # some rows inside the cosine, some outside
    assert torch.autograd.gradcheck(lambda z: loss(z, soft), z)
    assert torch.autograd.gradgradcheck(lambda z: loss(z, soft), z)


EXTREME = [-1e4, -300.0, -89.0, -20.0, -1.0, 0.0, 1.0, 20.0, 89.0, 300.0, 1e4]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("case", OTHERS, ids=str)
def test_loss_and_gradient_are_finite_everywhere(case, dtype):
    logits = torch.tensor(EXTREME, dtype=dtype)
    for target in (0.0, 1.0, 0.5):
        for z in (logits, logits[:1], logits[-1:]):
            z = z.clone().requires_grad_()
            value = case.make(reduction="sum")(z, torch.full_like(z, target))
            value.backward()
            assert value.isfinite()
            assert z.grad.dtype == dtype
            assert z.grad.isfinite().all()


@pytest.mark.parametrize("m", [FBeta(2), MCC(), FowlkesMallows(), Kappa(), GMean()], ids=str)
@pytest.mark.parametrize("name", ["sigmoid-f1", "anyloss", "score-oriented"])
def test_counts_of_zero_have_a_gradient(name, m):
    """Steep counts are exactly 0 long before soft ones are."""
    for z in (torch.full((6,), -1e4), torch.full((6,), 1e4), torch.tensor([-9.0, 9, -9, 9, -9, 9])):
        z.requires_grad_()
        y = torch.tensor([1.0, 0, 0, 1, 0, 1])
        value = losses.get(name, metric=m)(z, y)
        value.backward()
        assert value.isfinite()
        assert z.grad.isfinite().all()


@pytest.mark.parametrize("case", [c for c in OTHERS if c.per_element], ids=str)
def test_single_precision_is_the_double_result(case):
    """A naive 1 − sigmoid loses all digits here."""
    z = torch.linspace(-40, 40, 401)
    for target in (0.0, 1.0):
        loss = case.make(reduction="none")
        low, high = (loss(x, torch.full_like(x, target)) for x in (z, z.double()))
        assert ((low - high).abs() <= 2e-6 * high.abs().clamp(min=1)).all()


def test_focal_keeps_small_numbers():
    """A confident right answer: relative digits survive down to e^−90."""
    z = torch.tensor([30.0])
    exact = math.exp(-30 * 2) * math.exp(-30)  # (1 − p)^γ · −log p
    assert focal_loss(z, torch.ones(1)).item() == pytest.approx(exact, rel=1e-5)


def test_easy_negatives_are_dropped():
    z = torch.tensor([-4.0, -2.9], requires_grad=True)  # f = 0.018 and 0.052 around m = 0.05
    element = asymmetric_loss(z, torch.zeros(2), gamma_neg=0.5)
    element.sum().backward()
    assert element[0] == 0
    assert z.grad[0] == 0
    assert element[1] > 0
    assert z.grad[1] > 0


def test_every_name_takes_a_metric_and_counts():
    z, y = batch()
    for name in losses.names():
        loss = losses.get(name, metric="fbeta:beta=2", class_counts=COUNTS)
        assert loss.metric == FBeta(2)
        assert loss.name == name
        assert loss(z.clone().requires_grad_(), y).isfinite()
        if name not in ("ldam", "amp", "effective-bce"):  # these need numbers of rows
            losses.get(name, metric=FBeta(1), prevalence=0.1)


def test_catalogue_covers_the_registry():
    covered = {type(case.make()).__name__ for case in LOSSES}
    assert covered == {cls.__name__ for cls in losses.Loss.registry.values()}


@pytest.mark.parametrize("name", [n for n in losses.names() if not losses.Loss.registry[n].uses_metric])
def test_a_metric_that_is_only_remembered_is_not_judged(name):
    """Precision cannot be trained for; cross entropy does not try."""
    assert losses.get(name, metric="precision", class_counts=COUNTS).metric is not None
    assert losses.get(name, class_counts=COUNTS).metric is None


@pytest.mark.parametrize(
    ("name", "options", "says"),
    [
        ("balanced-bce", {}, r"BalancedBCELoss needs class_counts \(or prevalence\).*y_train.mean\(\)"),
        ("balanced-mae", {}, r"BalancedMAELoss needs class_counts \(or prevalence\)"),
        ("balanced-mae", {"weighting": "effective"}, "needs class_counts"),
        ("balanced-bce", {"weighting": ([1.0, 2.0], 1.0)}, "weighting must be one number here; got 2"),
        ("balanced-bce", {"weighting": "weird"}, "weighting must be 'balanced', 'effective'"),
        ("gce", {"q": 1.5}, r"q must lie in \[0, 1\]"),
        ("focal", {"gamma": -1}, "gamma must be finite and zero or more.*got -1"),
        ("focal", {"gamma": math.nan}, "gamma must be finite"),
        ("focal", {"alpha": 1.2}, r"alpha is the weight of positives in \[0, 1\], or None.*got 1.2"),
        ("asymmetric", {"gamma_neg": -1}, "gamma_neg must be finite and zero or more"),
        ("asymmetric", {"gamma_pos": math.inf}, "gamma_pos must be finite and zero or more"),
        ("asymmetric", {"clip": 1.0}, r"clip .* must lie in \[0, 1\); got 1.0"),
        ("asymmetric", {"clip": -0.1}, r"clip .* must lie in \[0, 1\)"),
        ("ldam", {}, r"LDAMLoss needs class_counts=\(negatives, positives\).*Count the targets"),
        ("ldam", {"prevalence": 0.1}, "LDAMLoss needs class_counts"),
        ("ldam", {"class_counts": COUNTS, "max_margin": -1}, "max_margin must be finite and zero or more"),
        ("ldam", {"class_counts": COUNTS, "scale": 0}, "scale must be a finite number above 0; got 0"),
        ("sigmoid-f1", {"metric": FBeta(1), "slope": -10}, "slope must be a finite number above 0.*got -10"),
        ("sigmoid-f1", {"metric": FBeta(1), "offset": math.inf}, "offset must be a finite number"),
        ("sigmoid-f1", {}, r"SigmoidF1Loss needs a metric, for example FBeta\(1\)"),
        ("anyloss", {"metric": FBeta(1), "L": 0}, "L must be a finite number above 0.*got 0"),
        ("anyloss", {"metric": FBeta(1), "reduction": "none"}, "A loss of a whole set has no elements"),
        ("score-oriented", {"metric": FBeta(1), "delta": 0}, r"delta > 0.*got mu=0.5, delta=0"),
        ("score-oriented", {"metric": FBeta(1), "mu": 0.95}, r"inside \[0, 1\].*got mu=0.95, delta=0.1"),
        ("score-oriented", {"metric": FBeta(1), "prior": "beta"}, "prior must be one of cosine, uniform"),
    ],
)
def test_bad_input(name, options, says):
    with pytest.raises(ValueError, match=says):
        losses.get(name, **options)


def test_unknown_name_lists_the_nearest():
    with pytest.raises(ValueError, match="Unknown loss 'balancedbce'. Did you mean 'balanced-bce'"):
        losses.get("balancedbce")
