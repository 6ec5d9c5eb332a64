"""State, reduction, weights and everything PyTorch does to a module."""

import contextlib
import copy
import io
import math
import pickle

import pytest
import torch

import catalogue
from catalogue import COUNTING, LOSSES, STATEFUL, batch
from fbeta import MCC, Confusion, FBeta, RunningConfusion, SoftLoss, SurrogateLoss, TangentLoss, metric
from fbeta.losses import surrogate_loss, tangent_loss


@pytest.fixture(params=[torch.float64, torch.float32], ids=["plain", "fused"], autouse=True, scope="module")
def both_paths(request):
    """Everything here holds in double precision, on the plain path, and in single, where kernels take over."""
    catalogue.DTYPE = request.param
    yield
    catalogue.DTYPE = torch.float64


def state_of(loss):
    return {k: v.clone() for k, v in loss.state_dict().items()}


def assert_same_state(a, b):
    assert a.keys() == b.keys()
    for key in a:
        torch.testing.assert_close(a[key], b[key])


@pytest.mark.parametrize("case", STATEFUL, ids=str)
def test_state_advances_in_training_with_gradients_only(case):
    z, y = batch()
    loss = case.make()
    loss(z.requires_grad_(), y)
    before = state_of(loss)
    assert any(v.any() for v in before.values())
    loss.eval()
    loss(z, y)
    loss.train()
    with torch.no_grad():
        loss(z, y)
    assert_same_state(state_of(loss), before)
    loss(z, y)
    assert any(not torch.equal(v, before[k]) for k, v in state_of(loss).items())


@pytest.mark.parametrize("case", LOSSES, ids=str)
def test_copies_pickles_and_state_dicts_continue_alike(case):
    loss = case.make()
    batches = [batch(seed=s) for s in range(4)]

    def run(loss, part):
        return [loss(z.clone().requires_grad_(), y).item() for z, y in part]

    run(loss, batches[:2])
    fresh = case.make()
    file = io.BytesIO()
    torch.save(loss.state_dict(), file)
    file.seek(0)
    fresh.load_state_dict(torch.load(file, weights_only=True))
    twins = [copy.deepcopy(loss), fresh, pickle.loads(pickle.dumps(loss))]
    after = run(loss, batches[2:])
    for twin in twins:
        assert run(twin, batches[2:]) == after
        assert_same_state(state_of(twin), state_of(loss))


@pytest.mark.parametrize("case", LOSSES, ids=str)
def test_numbers_survive_half_and_to(case):
    z, y = batch(dtype=torch.float32)
    loss, other = case.make(), case.make().half().to(torch.bfloat16).to("cpu")
    for _ in range(3):
        torch.testing.assert_close(other(z.clone().requires_grad_(), y), loss(z.clone().requires_grad_(), y))


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("q", lambda value: TangentLoss(FBeta(1), q=value)),
        ("blend", lambda value: SurrogateLoss(FBeta(1), prevalence=0.1, blend=value)),
    ],
)
@pytest.mark.parametrize("assign", [False, True])
def test_a_resumed_run_goes_on_with_what_was_scheduled(name, make, assign):
    loss, fresh = make(1.0), make(1.0)
    setattr(loss, name, 0.25)
    # As part of a model, where names have a prefix.
    model, other = torch.nn.ModuleDict({"loss": loss}), torch.nn.ModuleDict({"loss": fresh})
    other.load_state_dict(copy.deepcopy(model.state_dict()), assign=assign)
    assert getattr(fresh, name) == 0.25
    z, y = batch()
    torch.testing.assert_close(fresh(z, y), loss(z, y))
    setattr(fresh, name, 0.5)
    assert getattr(fresh, name) == 0.5


@pytest.mark.parametrize("assign", [False, True])
def test_a_state_from_before_blend_was_kept_leaves_it(assign):
    loss = SurrogateLoss(FBeta(1), prevalence=0.1, blend=0.25)
    old = SurrogateLoss(FBeta(1), prevalence=0.1).state_dict()
    assert old == {}
    torch.nn.ModuleDict({"loss": loss}).load_state_dict(old, assign=assign)
    assert loss.load_state_dict(old, assign=assign).missing_keys == []
    assert loss.blend == 0.25
    assert old == {}, "what was handed in stays as it was"
    loss.blend = 0.5
    assert loss.blend == 0.5


def test_vmap_of_the_functions():
    z = torch.randn(5, 20, dtype=torch.float64)
    y = (torch.rand(5, 20) < 0.3).double()
    deltas = torch.linspace(0.1, 0.9, 5).double()
    q = torch.tensor([0.0, 0.2, 0.5, 0.9, 1.0]).double()
    many = torch.func.vmap(lambda z, y, d, q: tangent_loss(z, y, (d, 1 - d), q))(z, y, deltas, q)
    for i in range(5):
        alone = tangent_loss(z[i], y[i], (float(deltas[i]), 1 - float(deltas[i])), float(q[i]))
        torch.testing.assert_close(many[i], alone)
    anchors = FBeta(2).anchors(0.1)
    many = torch.func.vmap(lambda z, y: surrogate_loss(z, y, anchors))(z, y)
    torch.testing.assert_close(many, surrogate_loss(z, y, anchors))
    grads = torch.func.vmap(torch.func.grad(lambda z, y: surrogate_loss(z, y, anchors).sum()))(z, y)
    assert grads.shape == z.shape


@pytest.mark.parametrize("case", LOSSES, ids=str)
def test_grad_scaler_and_autocast(case):
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 1)
    loss = case.make()
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.01)
    x, y = torch.randn(64, 4), (torch.rand(64) < 0.3).float()
    for _ in range(3):
        optimiser.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            value = loss(model(x).squeeze(1), y)
        assert value.dtype == torch.float32
        scaler.scale(value).backward()
        scaler.step(optimiser)
        scaler.update()
    assert all(p.isfinite().all() for p in model.parameters())


PER_ELEMENT = [c for c in LOSSES if c.per_element]


@pytest.mark.parametrize("case", PER_ELEMENT, ids=str)
def test_reductions(case):
    z, y = batch(30)
    w = torch.rand(30, dtype=z.dtype)
    none, total, mean = (case.make(reduction=r)(z, y, w) for r in ("none", "sum", "mean"))
    torch.testing.assert_close(none.sum(), total)
    torch.testing.assert_close(total / w.sum(), mean)
    torch.testing.assert_close(case.make(reduction="none")(z, y) * w, none)


@pytest.mark.parametrize("case", LOSSES, ids=str)
def test_weight_two_is_the_row_twice(case):
    z, y = batch(30)
    w = torch.ones(30, dtype=z.dtype)
    w[::3] = 2
    again = torch.cat([z, z[::3]]), torch.cat([y, y[::3]])
    one, two = case.make(), case.make()
    for _ in range(2):
        a, b = one(z.clone().requires_grad_(), y, w), two(again[0].clone().requires_grad_(), again[1])
    torch.testing.assert_close(a, b)
    if case.id != "kar-memory":  # it keeps rows, and one of weight 2 in one place
        assert_same_state(state_of(one), state_of(two))


@pytest.mark.parametrize("case", LOSSES, ids=str)
@pytest.mark.parametrize("integer", [False, True], ids=["float", "int"])
def test_ignored_elements_are_as_if_absent(case, integer):
    z, y = batch(30)
    z_more, y_more = (torch.cat([z, torch.tensor([torch.nan, 3.0])]), torch.cat([y, torch.tensor([-100.0, -100])]))
    one, two = case.make(ignore_index=-100), case.make()
    for _ in range(2):
        a = z_more.clone().requires_grad_()
        with_ignored = one(a, y_more.long() if integer else y_more)
        without = two(z.clone().requires_grad_(), y)
    torch.testing.assert_close(with_ignored, without)
    with_ignored.backward()
    assert (a.grad[-2:] == 0).all()
    assert_same_state(state_of(one), state_of(two))


@pytest.mark.parametrize("case", LOSSES, ids=str)
@pytest.mark.parametrize("kind", ["empty", "ignored"])
def test_nothing_to_learn_from_is_zero_and_counted_nowhere(case, kind):
    loss = case.make(ignore_index=-1)
    z, y = batch()
    loss(z.requires_grad_(), y)
    before = state_of(loss)
    z = torch.zeros(0 if kind == "empty" else 5, dtype=torch.float64, requires_grad=True)
    value = loss(z, torch.full_like(z, -1.0).detach())
    value.backward()
    assert value == 0
    assert (z.grad == 0).all()
    assert_same_state(state_of(loss), before)


@pytest.mark.parametrize("case", LOSSES, ids=str)
def test_any_shape_and_row_order(case):
    z, y = batch(24)
    flat = case.make()(z, y)
    torch.testing.assert_close(case.make()(z.reshape(2, 3, 4), y.reshape(2, 3, 4)), flat)
    torch.testing.assert_close(case.make()(z[:, None], y[:, None]), flat)
    order = torch.randperm(24)
    torch.testing.assert_close(case.make()(z[order], y[order]), flat)
    torch.testing.assert_close(case.make()(z, y.bool()), flat)
    torch.testing.assert_close(case.make()(z, y.int()), flat)


@pytest.mark.parametrize("case", PER_ELEMENT, ids=str)
@pytest.mark.parametrize("manual", [False, True], ids=["accumulate", "step"])
def test_micro_batches_are_one_step(case, manual):
    z, y = batch(120)
    k = 4
    stateful = case in COUNTING
    one = case.make()
    many = case.make(**({"accumulate": None if manual else k} if stateful else {}))
    for _ in range(3):
        a, b = (z.clone().requires_grad_() for _ in range(2))
        whole = one(a, y)
        whole.backward()
        parts = 0.0
        for zs, ys in zip(b.split(30), y.split(30), strict=True):
            part = many(zs, ys) / k
            part.backward()
            parts += part.item()
        if stateful and manual:
            many.step()
        assert parts == pytest.approx(whole.item(), abs=1e-9 if z.dtype == torch.float64 else 1e-5)
        torch.testing.assert_close(a.grad, b.grad)
    assert_same_state(state_of(one), state_of(many))


def test_unequal_micro_batches_are_exact_with_sums():
    z, y = batch(100)
    one, many = TangentLoss(FBeta(1), reduction="sum"), TangentLoss(FBeta(1), reduction="sum", accumulate=3)
    for _ in range(2):
        a, b = (z.clone().requires_grad_() for _ in range(2))
        (one(a, y) / 100).backward()
        for zs, ys in zip(b.split([10, 60, 30]), y.split([10, 60, 30]), strict=True):
            (many(zs, ys) / 100).backward()
        torch.testing.assert_close(a.grad, b.grad)
    assert_same_state(state_of(one), state_of(many))


def test_state_dict_in_the_middle_of_a_step():
    z, y = batch(60)
    one = TangentLoss(FBeta(1), accumulate=2)
    one(z.requires_grad_(), y)
    two = TangentLoss(FBeta(1), accumulate=2)
    two.load_state_dict(one.state_dict())
    for loss in (one, two):
        loss(z, y)
    assert_same_state(state_of(one), state_of(two))
    assert float(two.operating_point.total) == 120


class TestRunningConfusion:
    def test_exact_over_batches(self):
        z, y = batch(500)
        running = RunningConfusion(memory=None)
        for zs, ys in zip(z.split(37), y.split(37), strict=True):
            running(zs, ys)
        expected = Confusion.from_scores(z, y, cut=0.0)
        assert [x.item() for x in running.confusion] == [x.item() for x in expected]

    def test_counts_columns(self):
        y = torch.tensor([[1, 0], [1, 1], [0, 0]])
        z = torch.tensor([[1.0, 1.0], [-1.0, 1.0], [-1.0, -1.0]])
        macro = RunningConfusion(memory=None, task="multilabel", num_labels=2)
        assert macro(z, y).tp.tolist() == [1, 1]
        micro = RunningConfusion(memory=None, task="multilabel", num_labels=2, average="micro")
        assert micro(z, y).tp.item() == 2

    def test_forgets_by_positives(self):
        running = RunningConfusion(memory=10, damping=0.0)
        running(torch.ones(5), torch.ones(5))
        running(-torch.ones(100), torch.zeros(100))
        assert running.confusion.tp.item() == 5, "negatives alone push nothing out"
        running(torch.ones(10), torch.ones(10))
        assert running.confusion.tp.item() == pytest.approx(10 + 5 * torch.e**-1)

    def test_reset_and_set(self):
        running = RunningConfusion()
        running.set(Confusion(1, 2, 3, 4))
        assert running.confusion.fn.item() == 3
        running.reset()
        assert running.confusion.total.item() == 0

    @pytest.mark.parametrize("mode", ["eval", "no_grad", "inference"])
    @pytest.mark.parametrize("options", [{}, {"task": "multilabel", "num_labels": 4}], ids=["rows", "labels"])
    def test_a_call_counts_in_evaluation_too(self, mode, options):
        """A validation loop that calls it wants its counts."""
        z, y = (x.reshape(-1, 4) if options else x for x in batch(400))
        running = RunningConfusion(memory=None, **options)
        running.train(mode != "eval")
        context = {"eval": contextlib.nullcontext, "no_grad": torch.no_grad, "inference": torch.inference_mode}
        with context[mode]():
            for zs, ys in zip(z.split(37), y.split(37), strict=True):
                running(zs, ys)
        expected = Confusion.from_scores(z, y, cut=0.0, axis=0 if options else None)
        for found, wanted in zip(running.confusion, expected, strict=True):
            torch.testing.assert_close(found, wanted)
        running.add(torch.ones_like(running.counts))
        assert running.confusion.total.sum() == 400 + running.counts.numel()


def test_softmax2_and_multilabel_shapes_of_none():
    z = torch.randn(6, 2)
    assert SurrogateLoss(FBeta(1), prevalence=0.3, task="softmax2", reduction="none")(
        z, torch.tensor([0, 1, 0, 0, 1, 0])
    ).shape == (6,)
    loss = SurrogateLoss(FBeta(1), prevalence=[0.3, 0.1], task="multilabel", num_labels=2, reduction="none")
    assert loss(z, (z > 0).float()).shape == (6, 2)


def test_per_label_prevalence_is_each_labels_own_loss():
    z = torch.randn(50, 2, dtype=torch.float64)
    y = (torch.rand(50, 2) < 0.3).double()
    both = SurrogateLoss(FBeta(2), prevalence=[0.3, 0.05], task="multilabel", num_labels=2, reduction="none")(z, y)
    for k, p in enumerate((0.3, 0.05)):
        alone = SurrogateLoss(FBeta(2), prevalence=p, reduction="none")(z[:, k], y[:, k])
        torch.testing.assert_close(both[:, k], alone)
    pooled = SurrogateLoss(FBeta(2), prevalence=[0.3, 0.1], task="multilabel", num_labels=2, average="micro")
    torch.testing.assert_close(pooled(z, y), SurrogateLoss(FBeta(2), prevalence=0.2)(z.flatten(), y.flatten()))


def test_two_prevalences_of_the_surrogate():
    """Class weights from the stream, the anchor from the population."""
    z, y = batch(rate=0.5)
    f = torch.sigmoid(z)
    expected = (2 * (-y * torch.log(f) + (1 - y) * torch.log(0.01 / 0.99 + f))).mean()
    torch.testing.assert_close(SurrogateLoss(FBeta(1), prevalence=0.01, class_counts=(500, 500))(z, y), expected)
    only = SurrogateLoss(FBeta(1), class_counts=(900, 100))
    torch.testing.assert_close(only(z, y), SurrogateLoss(FBeta(1), prevalence=0.1)(z, y))


def test_weightings():
    z, y = batch()
    plain = SurrogateLoss(FBeta(1), prevalence=0.1, weighting=None, reduction="none")(z, y)

    def with_(weighting, **k):
        return SurrogateLoss(FBeta(1), prevalence=0.1, weighting=weighting, reduction="none", **k)(z, y)

    torch.testing.assert_close(with_((3.0, 5.0)), plain * (3 * (1 - y) + 5 * y))
    torch.testing.assert_close(with_("balanced"), plain * ((1 - y) / 0.9 + y / 0.1))
    b = 0.99
    w0, w1 = (1 - b) / (1 - b**900), (1 - b) / (1 - b**100)
    scale = 2 / (w0 + w1)
    effective = with_("effective", class_counts=(900, 100), effective_beta=b)
    torch.testing.assert_close(effective, plain * scale * (w0 * (1 - y) + w1 * y))


def test_memory_needs_its_device():
    for loss in (SoftLoss(MCC(), memory=10), TangentLoss(MCC())):
        with pytest.raises(RuntimeError, match=r"call loss.to\('meta'\)"):
            loss(torch.empty(3, device="meta", requires_grad=True), torch.empty(3, device="meta"))


class TestOddCorners:
    """Found by a review: combinations that nothing else runs through."""

    def test_numbers_of_no_dimension(self):
        for loss in (TangentLoss(FBeta(1)), SoftLoss(FBeta(1)), SurrogateLoss(FBeta(1), prevalence=0.1)):
            assert loss(torch.tensor(0.3, requires_grad=True), torch.tensor(1.0)).isfinite()

    def test_soft_keeps_its_digits_near_prevalence_one(self):
        z, y = torch.tensor([16.1181] * 8 + [-13.8155] * 8), torch.tensor([1.0] * 8 + [0.0] * 8)
        for p in (1e-6, 0.99953, 1 - 1e-6):
            for m in ("kappa", "mcc", "fbeta:beta=2"):
                single, double = (SoftLoss(m, prevalence=p)(z, y), SoftLoss(m, prevalence=p)(z.double(), y.double()))
                assert abs(single.item() - double.item()) <= 1e-6

    def test_log_memory_remembers_tiny_scores(self):
        values = []
        for dtype in (torch.float32, torch.float64):
            loss = SoftLoss(FBeta(1), prevalence=0.01, form="log", memory=500)
            for i in range(50):
                z = torch.full((32,), -3.0, dtype=dtype)
                y = torch.zeros(32, dtype=dtype)
                z[0], y[0] = -110.0, float(i % 3 == 0)
                value = loss(z.requires_grad_(), y)
            values.append(value.item())
        assert values[0] == pytest.approx(values[1], rel=1e-5)

    def test_zero_weights_give_zero_gradient_for_a_users_formula(self):
        z = torch.zeros(4, requires_grad=True)
        for memory in (None, 10):
            loss = SoftLoss(metric(lambda tp, fp, fn, tn: 2 * tp / (2 * tp + fp + fn)), memory=memory)
            (gradient,) = torch.autograd.grad(loss(z, torch.tensor([1.0, 0, 0, 0]), torch.zeros(4)), z)
            assert (gradient == 0).all()

    @pytest.mark.parametrize("dtype", [torch.int8, torch.uint8])
    def test_ignore_index_does_not_wrap(self, dtype):
        y = torch.tensor([1, 0, 1], dtype=dtype)
        y[2] = -1 if dtype == torch.int8 else 255
        other = 255 if dtype == torch.int8 else -1
        with pytest.raises(ValueError, match="target must lie"):
            TangentLoss(FBeta(1), ignore_index=other)(torch.zeros(3), y)

    def test_ignored_rows_may_hold_anything(self):
        z, y = torch.tensor([0.5, torch.nan]), torch.tensor([1.0, -1])
        w = torch.tensor([1.0, torch.nan])
        for make in (TangentLoss, SoftLoss):
            assert make(FBeta(1), ignore_index=-1, check=True)(z, y, w).isfinite()

    def test_steps_of_a_soft_memory(self):
        z, y = batch(60)
        loss = SoftLoss(FBeta(1), memory=100, accumulate=None)
        loss(z.requires_grad_(), y)
        assert loss.running.confusion.total.item() == 0
        loss.step()
        assert loss.running.confusion.total.item() == pytest.approx(60)
        twice = SoftLoss(FBeta(1), memory=100, accumulate=2)
        twice(z, y)
        assert twice.running.confusion.total.item() == 0

    def test_pooled_class_counts(self):
        micro = {"task": "multilabel", "num_labels": 2, "average": "micro"}
        loss = SurrogateLoss(FBeta(1), class_counts=([90, 60], [10, 40]), **micro)
        assert float(loss.prevalence) == 0.25
        for bad in ({"prevalence": [0.1, 0.2, 0.3]}, {"class_counts": ([9, 8, 7], [1, 2, 3])}):
            with pytest.raises(ValueError, match=r"one number or 2"):
                SurrogateLoss(FBeta(1), **bad, **micro)

    def test_running_counts_take_weights_and_ignore(self):
        running = RunningConfusion(memory=None, ignore_index=-1)
        c = running(torch.tensor([1.0, 1.0, 1.0]), torch.tensor([1.0, 0.0, -1.0]), torch.tensor([2.0, 3.0, 4.0]))
        assert (c.tp.item(), c.fp.item(), c.total.item()) == (2, 3, 5)

    def test_probability_of_two_columns(self):
        loss = TangentLoss(FBeta(1), prevalence=0.3, task="softmax2")
        one = TangentLoss(FBeta(1), prevalence=0.3)
        torch.testing.assert_close(loss.probability(torch.tensor([[0.5, 2.0]])), one.probability(torch.tensor([1.5])))
        maps = torch.randn(3, 2, 5, 2)
        torch.testing.assert_close(loss.probability(maps), one.probability(maps[:, 1] - maps[:, 0]))
        with pytest.raises(ValueError, match=r"\(N, 2, H, W\); got \(4,\)"):
            loss.probability(torch.zeros(4))
        wide = TangentLoss(FBeta(1), task="multilabel", num_labels=3)
        with pytest.raises(ValueError, match="3 columns"):
            wide.probability(torch.zeros(4, 2))

    def test_gradients_of_bounded_losses_keep_their_digits(self):
        z = torch.tensor([-18.0], requires_grad=True)
        tangent_loss(z, torch.ones(1), (0.5, 1.0), 1.0).backward()
        assert z.grad.item() == pytest.approx(-torch.sigmoid(torch.tensor(-18.0).double()).item(), rel=1e-5)

    def test_overflow_warning_knows_about_ignored_rows(self):
        z, y = torch.zeros(4, dtype=torch.float16), torch.tensor([1, -1, -1, -1.0]).half()
        with pytest.warns(RuntimeWarning, match="overflow"):
            SurrogateLoss(FBeta(1), prevalence=5e-6, ignore_index=-1)(z, y)

    @pytest.mark.parametrize("make", [TangentLoss, SoftLoss])
    def test_formulas_that_cannot_take_tensors_are_refused(self, make):
        for opaque in (
            lambda tp, fp, fn, tn: math.sqrt(tp / (tp + fn) * tn / (tn + fp)),
            lambda tp, fp, fn, tn: tp / (tp + fn) * math.sqrt(tn / (tn + fp)),
            lambda tp, fp, fn, tn: min(tp / (tp + fn), tn / (tn + fp)),
        ):
            with pytest.raises(ValueError, match="in place of math.sqrt"):
                make(metric(opaque))

    def test_losses_can_be_made_without_gradients(self):
        with torch.no_grad():
            assert TangentLoss(FBeta(1)).metric == FBeta(1)
