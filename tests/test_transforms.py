"""What torch does to a loss: forward mode, batched gradients, vmap, export, views; compiled kernels as plain torch."""

import collections
import math
import sys

import pytest
import torch
import torch.autograd.forward_ad as forward_ad

from catalogue import LOSSES, batch
from fbeta import Confusion, FBeta, RunningConfusion, SoftLoss, SurrogateLoss, TangentLoss, losses, tune
from fbeta.losses import kernels
from fbeta.spelling import import_modules

same = torch.testing.assert_close


@pytest.fixture(params=["fused", "plain"])
def path(request, monkeypatch):
    """Everything here holds with compiled kernels and without."""
    monkeypatch.setattr(kernels, "ENABLED", request.param == "fused")


def single(n=40):
    z, y = batch(n, dtype=torch.float32)
    return z.requires_grad_(), y


def reference(case, z, y):
    """Value and gradient in double precision."""
    exact = z.detach().double().requires_grad_()
    value = case.make().eval()(exact, y.double())
    (gradient,) = torch.autograd.grad(value, exact)
    return value.detach(), gradient


@pytest.mark.parametrize("case", LOSSES, ids=str)
def test_forward_mode(case, path):
    z, y = single()
    tangent = torch.linspace(-1, 1, len(z))
    loss = case.make().eval()
    value, gradient = reference(case, z, y)
    wanted = (gradient * tangent).sum()
    with forward_ad.dual_level():
        found = forward_ad.unpack_dual(loss(forward_ad.make_dual(z.detach(), tangent), y))
    same(found.primal.double(), value, rtol=1e-5, atol=1e-6)
    same(found.tangent.double(), wanted, rtol=1e-4, atol=1e-6)
    primal, slope = torch.func.jvp(lambda z: loss(z, y), (z.detach(),), (tangent,))
    same((primal.double(), slope.double()), (value, wanted), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("case", LOSSES, ids=str)
def test_batched_gradients(case, path):
    z, y = single()
    loss = case.make().eval()
    _, gradient = reference(case, z, y)
    upstream = torch.tensor([1.0, -2.0, 0.5])
    (found,) = torch.autograd.grad(loss(z, y), z, upstream, is_grads_batched=True)
    same(found.double(), upstream[:, None] * gradient, rtol=1e-4, atol=1e-7)
    rows = torch.func.vmap(torch.func.grad(lambda z, y: loss(z, y)))(torch.stack([z, z]), torch.stack([y, y]))
    same(rows.double(), torch.stack([gradient] * 2), rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("case", LOSSES, ids=str)
def test_vmap_over_targets(case, path):
    """Targets that are batched have no values that could be looked at."""
    z, y = single()
    loss = case.make().eval()
    targets = torch.stack([y, 1 - y, 0.5 * y])
    many = torch.func.vmap(lambda y: loss(z.detach(), y))(targets)
    same(many, torch.stack([loss(z.detach(), t) for t in targets]), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("case", LOSSES, ids=str)
def test_a_target_that_changes_after_the_loss_is_never_used(case, path):
    """As with torch's own losses: the gradient is the old one, or an error says that it cannot be had."""
    z, y = single()
    weight = torch.ones_like(y)
    loss = case.make().eval()
    value = loss(z, y, weight)
    (first,) = torch.autograd.grad(value, z, retain_graph=True)
    y.fill_(1.0)
    weight.fill_(3.0)
    try:
        (second,) = torch.autograd.grad(value, z, retain_graph=True)
    except RuntimeError as error:
        if "modified by an inplace operation" not in str(error):
            raise
    else:
        same(second, first)


@pytest.mark.parametrize("case", LOSSES, ids=str)
def test_views_with_torchs_negative_bit(case, path):
    z, y = batch(40, dtype=torch.float32)
    one = torch.complex(torch.zeros_like(z), -z).conj().imag  # strided, as users get it
    for turned in (one, torch._neg_view(-z)):
        assert turned.is_neg()
        same(case.make()(turned, y), case.make()(z, y))
    same(case.make()(z, torch._neg_view(-y)), case.make()(z, y))
    same(case.make()(z, y, torch._neg_view(-y)), case.make()(z, y, y))


def test_cuts_of_views_with_torchs_negative_bit():
    z, y = batch(40, dtype=torch.float32)
    turned = torch._neg_view(-z)
    assert tune(turned, y, "f1") == tune(z, y, "f1")
    assert Confusion.from_scores(turned, y.tolist(), cut=0.0) == Confusion.from_scores(z.numpy(), y, cut=0.0)


@pytest.mark.parametrize("loss", [SurrogateLoss, TangentLoss, SoftLoss])
def test_made_in_inference_mode(loss):
    with torch.inference_mode():
        made = loss(FBeta(1), prevalence=0.1)
    z, y = batch(40, dtype=torch.float32)
    same(made(z, y), loss(FBeta(1), prevalence=0.1)(z, y))


# Limits of the losses where a logit is infinite: what C and Triton give, torch gives too.
INFINITE = torch.tensor([math.inf, -math.inf, 0.5, -0.5])


def at_infinity(case, target, dtype, enabled, monkeypatch):
    monkeypatch.setattr(kernels, "ENABLED", enabled)
    z, y = INFINITE.to(dtype, copy=True).requires_grad_(), torch.tensor(target, dtype=dtype)
    value = case.make()(z, y)
    value.backward()
    return value.detach().double(), z.grad.double()


@pytest.mark.parametrize("case", LOSSES, ids=str)
def test_infinite_logits_on_the_right_side(case, monkeypatch):
    """They cost what the limit costs, and every gradient is finite."""
    target = [1.0, 0.0, 1.0, 0.0]
    value, gradient = at_infinity(case, target, torch.float64, False, monkeypatch)
    assert value.isfinite()
    assert gradient.isfinite().all()
    near = INFINITE.double().clamp(-700, 700).requires_grad_()
    limit = case.make()(near, torch.tensor(target).double())
    same(value, limit.detach(), rtol=1e-9, atol=1e-9)
    same(gradient, torch.autograd.grad(limit, near)[0], rtol=1e-9, atol=1e-9)
    for dtype in (torch.float32, torch.float64):
        for enabled in (False, True):
            found = at_infinity(case, target, dtype, enabled, monkeypatch)
            same(found, (value, gradient), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("target", [[0.0, 1.0, 1.0, 0.0], [1.0, 1.0, 0.0, 0.0], [0.5, 0.0, 1.0, 1.0]], ids=str)
@pytest.mark.parametrize("case", [c for c in LOSSES if "soft-log" not in c.id], ids=str)
def test_infinite_logits_on_the_wrong_side(case, target, monkeypatch):
    """The value may be infinite, but is never NaN; the gradient is that of the limit, where there is one."""
    value, gradient = at_infinity(case, target, torch.float64, False, monkeypatch)
    assert not value.isnan()
    near = INFINITE.double().clamp(-700, 700).requires_grad_()
    (limit,) = torch.autograd.grad(case.make()(near, torch.tensor(target).double()), near)
    if not case.id.startswith(("focal", "asymmetric")):  # their factors grow and fade at once
        same(gradient, limit, rtol=1e-9, atol=1e-9)
    for dtype in (torch.float32, torch.float64):
        for enabled in (False, True):
            found = at_infinity(case, target, dtype, enabled, monkeypatch)
            same(found, (value, gradient), rtol=1e-5, atol=1e-6, equal_nan=True)


@pytest.mark.parametrize("task", ["binary", "softmax2", "multilabel"])
def test_probabilities_export(task):
    shape = {"binary": (6,), "softmax2": (6, 2), "multilabel": (6, 3)}[task]
    options = {"num_labels": 3} if task == "multilabel" else {}
    loss = TangentLoss(FBeta(2), prevalence=0.1, task=task, **options)

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.loss = loss

        def forward(self, logits):
            return self.loss.probability(logits)

    logits = torch.randn(shape)
    program = torch.export.export(Model(), (logits,))
    same(program.module()(logits), loss.probability(logits))
    loss.q = 1.0  # an exported program cannot raise on a number, so it has no answer
    assert torch.export.export(Model(), (logits,)).module()(logits).isnan().all()


def test_names_are_taken_once():
    with pytest.raises(ValueError, match=r"A loss named 'bce' exists already \(fbeta.losses.cross_entropy\)"):

        class Mine(losses.RowLoss, name="bce"):
            pass

    assert losses.Loss.registry["bce"] is losses.BCELoss

    def define():  # running a cell of a notebook twice is no mistake
        class Again(losses.RowLoss, name="again"):
            uses_metric = False

            def elements(self):
                return lambda z, y: (torch.sigmoid(z) - y) ** 2

        return Again

    try:
        first, second = define(), define()
        assert losses.Loss.registry["again"] is second is not first
        assert losses.get("again")(torch.zeros(2), torch.ones(2)) == 0.25
    finally:
        del losses.Loss.registry["again"]


def test_a_file_in_the_folder_is_found_by_name(tmp_path, monkeypatch):
    (tmp_path / "brier.py").write_text(
        "from fbeta.losses.module import RowLoss\n"
        "class BrierLoss(RowLoss, name='brier'):\n"
        "    uses_metric = False\n"
        "    def elements(self):\n"
        "        return lambda z, y: (z.sigmoid() - y) ** 2\n"
    )
    found = losses.Loss.registry
    before = dict(found)
    monkeypatch.setattr(losses, "__path__", [*losses.__path__, str(tmp_path)])
    try:
        import_modules("fbeta.losses", losses.__path__)
        assert losses.get("brier")(torch.zeros(2), torch.ones(2)) == 0.25
    finally:
        sys.modules.pop("fbeta.losses.brier", None)
        found.clear()
        found.update(before)


def test_counts_by_class():
    y = [0] * 90 + [1] * 10
    for counts in (collections.Counter(y), {1: 10, 0: 90}, {True: 10, False: 90}, {1.0: 10, 0.0: 90}):
        loss = SurrogateLoss(FBeta(1), class_counts=counts)
        assert loss.class_counts == (90, 10)
        assert float(loss.prevalence) == 0.1
    many = TangentLoss(FBeta(1), class_counts={2: 5, 0: 80, 1: 15}, task="multiclass", num_labels=3)
    assert many.prevalence.tolist() == [0.8, 0.15, 0.05]
    with pytest.raises(ValueError, match="class_counts is a pair"):
        SurrogateLoss(FBeta(1), class_counts={90, 10})  # a set has no order
    labels = {"task": "multilabel", "num_labels": 2}
    assert SoftLoss(FBeta(1), class_counts={0: [9, 8], 1: [1, 2]}, **labels).prevalence.tolist() == [0.1, 0.2]


@pytest.mark.parametrize(
    ("counts", "options"),
    [
        (collections.Counter(["no", "yes"]), {}),
        ({1: 10}, {}),
        ({0: 90, 1: 5, 2: 5}, {}),
        ({}, {}),
        ({0: 80, 1: 20}, {"task": "multiclass", "num_labels": 3}),
    ],
    ids=str,
)
def test_counts_of_unknown_classes_are_refused(counts, options):
    with pytest.raises(ValueError, match="class_counts as a mapping has one count for each class 0 .*; got the keys"):
        TangentLoss(FBeta(1), class_counts=counts, **options)


@pytest.mark.parametrize("average", ["macro", "micro"])
def test_rates_of_classes_sum_to_one(average):
    many = {"task": "multiclass", "num_labels": 3, "average": average}
    for make in (TangentLoss, SoftLoss, SurrogateLoss):
        with pytest.raises(ValueError, match="which sum to 1; got 1.5"):
            make(FBeta(1), prevalence=[0.5, 0.5, 0.5], **many)
        make(FBeta(1), prevalence=[0.33, 0.33, 0.33], **many)  # rounded


def test_values_are_checked_by_the_pass_itself(path):
    """What a compiled kernel notices, and what plain torch looks for, ends in the same sentence."""
    z = torch.zeros(3)
    for target in ([0, 1, 2], [0, 1, -1], [0.0, 1.0, math.nan], [0, 1, 2**40 + 1], [0, 1, 2**32]):
        with pytest.raises(ValueError, match="target (must lie in|holds NaN)"):
            TangentLoss(FBeta(1))(z, torch.tensor(target))
        SoftLoss(FBeta(1), check=False)(z, torch.tensor(target))
    for weight in (-1.0, math.inf, math.nan):
        for loss in (TangentLoss(FBeta(1)), SoftLoss(FBeta(1)), losses.get("bce")):
            with pytest.raises(ValueError, match="weight must be finite and zero or more"):
                loss(z, torch.ones(3), torch.tensor([1.0, weight, 1.0]))
    loss = TangentLoss(FBeta(1), ignore_index=2)
    loss(z.requires_grad_(), torch.tensor([0, 1, 2]))
    before = loss.running.counts.clone()
    with pytest.raises(ValueError, match="got 3"):
        loss(z, torch.tensor([0, 1, 3]))
    same(loss.running.counts, before)  # a batch that is refused is counted nowhere


def test_a_loss_counts_in_training_alone_though_its_counter_would_always():
    z, y = single()
    loss = TangentLoss(FBeta(1))
    with torch.no_grad():
        loss(z, y)
        loss.running(z, y)
    assert loss.running.confusion.total == len(z)
    assert RunningConfusion(memory=None).eval()(z, y).total == len(z)
