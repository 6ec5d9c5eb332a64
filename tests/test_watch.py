"""What losses say of a training that seems to go wrong, when they look, and when they are silent."""

import copy
import pickle
import warnings

import pytest
import torch

from catalogue import batch
from fbeta import FBeta, SoftLoss, SurrogateLoss, TangentLoss, losses
from fbeta.losses.watch import FIRST_LOOK

HIGH = torch.full((8,), 3.0, requires_grad=True)
ONE_OF_EIGHT = torch.tensor([1.0] + 7 * [0.0])
Y = torch.tensor(20 * [1.0] + 80 * [0.0])
SURE = (4 * Y - 2).requires_grad_()


def steps(loss, z, y, count=FIRST_LOOK):
    for _ in range(count):
        loss(z, y)


def said(loss, z, y, count=FIRST_LOOK):
    """The warnings of so many steps."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        steps(loss, z, y, count)
    return [str(w.message) for w in found]


@pytest.mark.parametrize("task", ["binary", "softmax2"])
@pytest.mark.parametrize("name", ["surrogate", "soft", "sigmoid-f1", "anyloss", "score-oriented"])
def test_a_plateau_is_said_aloud(task, name):
    z, y = HIGH, ONE_OF_EIGHT
    loss = losses.get(name, metric=FBeta(1), prevalence=0.1, task=task)
    if task == "softmax2":
        z, y = torch.stack([-z, z], 1), y.long()
    steps(loss, z, y, FIRST_LOOK - 1)  # a warning would be an error here
    remedy = "blend=0.5" if name == "surrogate" else "epochs of cross entropy"
    with pytest.warns(RuntimeWarning, match=f"After 250 steps of {type(loss).__name__} every row .* {remedy}") as found:
        loss(z, y)
    assert found[0].filename == __file__
    steps(loss, z, y, FIRST_LOOK - 1)
    with pytest.warns(RuntimeWarning, match="After 500 steps"):
        loss(z, y)


@pytest.mark.parametrize("average", ["macro", "micro"])
@pytest.mark.parametrize("name", ["surrogate", "soft"])
def test_columns_on_a_plateau_are_named(name, average):
    loss = losses.get(name, metric="f1", prevalence=0.1, task="multilabel", num_labels=3, average=average)
    y = torch.stack([ONE_OF_EIGHT] * 3, 1)
    some = torch.stack([HIGH, -HIGH, HIGH], 1)
    assert said(copy.deepcopy(loss), -some.abs(), y) == []
    if average == "macro":
        assert "positive in column 0, 2: it" in said(loss, some, y)[0]
    else:  # one pool
        assert said(copy.deepcopy(loss), some, y) == []
        assert "is called positive: it" in said(loss, some.abs(), y)[0]


def test_no_warning_without_a_plateau():
    z, y = batch()
    for loss, logits, target in [
        (SurrogateLoss(FBeta(1), prevalence=0.1), z, y),
        (SurrogateLoss(FBeta(1), prevalence=0.1), HIGH, torch.ones(8)),  # all positive, and rightly so
        (SurrogateLoss(FBeta(1), prevalence=0.9), HIGH, 1 - ONE_OF_EIGHT),  # nearly so
        (SurrogateLoss(FBeta(1), prevalence=0.1, watch=False), HIGH, torch.zeros(8)),
        (SurrogateLoss(FBeta(1), prevalence=0.1, blend=0.5), HIGH, torch.zeros(8)),
        (SurrogateLoss(FBeta(1), prevalence=0.1).eval(), HIGH, torch.zeros(8)),
        (SoftLoss(FBeta(1)), z, y),
        (SoftLoss(FBeta(1), watch=False), HIGH, ONE_OF_EIGHT),
        (SoftLoss(FBeta(1)).eval(), HIGH, ONE_OF_EIGHT),
    ]:
        assert said(loss, logits, target) == []


def test_a_network_that_fits_its_rows_is_told_once_to_tune():
    loss = TangentLoss(FBeta(2), prevalence=0.2)
    (message,) = said(loss, SURE, Y, 1000)
    assert message.startswith("After 250 steps of TangentLoss almost no error is left on the training rows.")
    assert "fbeta.tune(scores, target, metric)" in message


def flipped(count):
    z = SURE.detach().clone()
    z[:count] *= -1
    return z.requires_grad_()


@pytest.mark.parametrize(
    ("options", "z", "y"),
    [
        ({"watch": False}, SURE, Y),
        ({"counts": "given"}, SURE, Y),  # the point comes from other rows
        ({}, flipped(2), Y),  # two errors for twenty positives are one too many
        ({"memory": 5}, SURE[19:], Y[19:]),  # too few positives are remembered
        ({"class_counts": (200_000, 50_000)}, SURE, Y),  # no row was seen twice: separable, and no learning by heart
    ],
    ids=str,
)
def test_no_word_of_learning_by_heart(options, z, y):
    assert said(TangentLoss(FBeta(2), **options), z, y, 600) == []


def test_what_separates_in_its_second_epoch_may_be_learned_by_heart():
    loss = TangentLoss(FBeta(2), class_counts=(20_000, 5_000))
    assert said(loss, flipped(10), Y, 400) == []  # 25,000 rows are 250 steps
    (message,) = said(loss, SURE, Y, 700)
    assert "After 500 steps" in message or "After 1000 steps" in message


def test_columns_that_fit_count_together():
    y = torch.stack([Y, Y], 1)
    for z, expected in ((SURE, 1), (flipped(5), 0)):
        loss = TangentLoss(FBeta(2), prevalence=0.2, task="multilabel", num_labels=2)
        assert len(said(loss, torch.stack([SURE, z], 1), y)) == expected


@pytest.mark.parametrize("backend", ["eager", pytest.param("aot_eager", marks=pytest.mark.slow)])
def test_compiled_losses_look_too(backend):
    """In one graph, compiled once, and with the gradient that they have without."""
    y = torch.stack([ONE_OF_EIGHT] * 2, 1)
    columns = {"task": "multilabel", "num_labels": 2}
    for make, z, target, message in [
        (lambda: SurrogateLoss(FBeta(1), prevalence=0.1), HIGH, ONE_OF_EIGHT, "SurrogateLoss every row"),
        (lambda: SoftLoss(FBeta(1)), HIGH, ONE_OF_EIGHT, "SoftLoss every row"),
        (lambda: SoftLoss(FBeta(1), **columns), torch.stack([HIGH, -HIGH], 1), y, "in column 0: it"),
        (lambda: TangentLoss(FBeta(1), prevalence=0.2), SURE, Y, "almost no error"),
    ]:
        torch._dynamo.reset()
        loss = make()
        compiled = torch.compile(loss, fullgraph=True, backend=backend)
        assert said(compiled, z, target, 1) == []
        with torch._dynamo.config.patch(error_on_recompile=True):
            (found,) = said(compiled, z, target, FIRST_LOOK)
        assert message in found
        x, twin = (z.detach().clone().requires_grad_() for _ in range(2))
        loss.watch = None
        torch._dynamo.reset()
        with torch.enable_grad():
            watched = make()
            for one, at in ((torch.compile(watched, fullgraph=True, backend=backend), x), (make(), twin)):
                one(at, target).backward()
        torch.testing.assert_close(x.grad, twin.grad)


def test_copies_count_their_own_steps():
    loss = SoftLoss(FBeta(1))
    steps(loss, HIGH, ONE_OF_EIGHT, FIRST_LOOK - 1)
    for twin in (copy.deepcopy(loss), pickle.loads(pickle.dumps(loss))):
        assert twin.watch.number != loss.watch.number
        assert len(said(twin, HIGH, ONE_OF_EIGHT, 1)) == 1
    assert len(said(loss, HIGH, ONE_OF_EIGHT, 1)) == 1
