"""Bad input: a sentence that says what was expected, what came and what to do; never a silent number."""

import math

import numpy as np
import pytest
import torch

from fbeta import (
    MCC,
    FBeta,
    FowlkesMallows,
    Precision,
    Recall,
    RunningConfusion,
    SoftLoss,
    Specificity,
    SurrogateLoss,
    TangentLoss,
    losses,
    metric,
)

EVERY = [SurrogateLoss, TangentLoss, SoftLoss]
z, y = torch.zeros(4), torch.tensor([1.0, 0, 0, 1])


@pytest.mark.parametrize("make", EVERY)
@pytest.mark.parametrize("rate", [0, 1, -0.5, 2, math.nan, math.inf, "half"])
def test_prevalence_must_lie_inside(make, rate):
    with pytest.raises(ValueError, match=r"prevalence must lie strictly between 0 and 1.*y_train\.mean\(\)"):
        make(FBeta(1), prevalence=rate)


@pytest.mark.parametrize("make", EVERY)
def test_prevalence_takes_what_means_return(make):
    for rate in (np.float32(0.25), torch.tensor(0.25), np.array(0.25)):
        assert float(make(FBeta(1), prevalence=rate).prevalence) == 0.25


def test_prevalence_missing_where_it_is_needed():
    with pytest.raises(ValueError, match=r"needs prevalence \(or class_counts\): it places the anchors"):
        SurrogateLoss(FBeta(1))
    with pytest.raises(ValueError, match="needs prevalence"):
        SoftLoss(FBeta(1), form="log")


@pytest.mark.parametrize("make", EVERY)
@pytest.mark.parametrize(
    ("task", "logits", "target", "says"),
    [
        ("binary", (4, 1), (4,), r"use logits.squeeze\(1\)"),
        ("binary", (4, 2), (4,), "use task='softmax2'"),
        ("binary", (4, 1, 5, 6), (4, 5, 6), r"use logits.squeeze\(1\)"),
        ("binary", (4,), (4, 1), r"use target.squeeze\(1\)"),
        ("binary", (4, 2, 5, 6), (4, 5, 6), "use task='softmax2'"),
        ("binary", (4, 7), (4,), "use task='multiclass', num_labels=7"),
        ("binary", (4,), (3,), r"one shape; got \(4,\) and \(3,\)"),
        ("binary", (), (3,), "one shape"),
        ("softmax2", (4,), (4,), "task='binary'"),
        ("softmax2", (4, 3), (4,), r"logits \(N, 2\)"),
        ("multilabel", (4, 2), (4, 2), r"\(N, 3\); got \(4, 2\)"),
        ("multilabel", (4, 3), (4,), r"\(N, 3\)"),
        ("multilabel", (4, 3, 5, 6), (4, 3, 5, 6), r"movedim\(1, -1\).reshape\(-1, 3\)"),
    ],
)
def test_shapes_must_fit_the_task(make, task, logits, target, says):
    loss = make(FBeta(1), prevalence=0.1, task=task, num_labels=3 if task == "multilabel" else None)
    with pytest.raises(ValueError, match=says):
        loss(torch.zeros(logits), torch.zeros(target).long())


@pytest.mark.parametrize("make", EVERY)
def test_weight_has_the_targets_shape(make):
    with pytest.raises(ValueError, match=r"weight must have the target's shape \(4,\); got \(1,\)"):
        make(FBeta(1), prevalence=0.1)(z, y, torch.ones(1))
    with pytest.raises(ValueError, match="weight must be finite and zero or more"):
        make(FBeta(1), prevalence=0.1)(z, y, torch.tensor([1.0, -1, 1, 1]))


@pytest.mark.parametrize("make", EVERY)
@pytest.mark.parametrize("bad", [2.0, -1.0, math.nan])
def test_targets_outside_zero_and_one(make, bad):
    # No ignore_index equals NaN, so there the remedy is another one.
    says = "target holds NaN.*nan=-1" if bad != bad else rf"target must lie in \[0, 1\]; got {bad}.*ignore_index"
    with pytest.raises(ValueError, match=says):
        make(FBeta(1), prevalence=0.1)(z, torch.tensor([1.0, 0, bad, 1]))
    make(FBeta(1), prevalence=0.1, check=False)(z, torch.tensor([1.0, 0, bad, 1]))


@pytest.mark.parametrize("make", EVERY)
def test_class_targets_must_be_integers(make):
    loss = make(FBeta(1), prevalence=0.1, task="softmax2")
    with pytest.raises(TypeError, match=r"integer class targets \(0 or 1\); got torch.float32"):
        loss(torch.zeros(4, 2), y)
    with pytest.raises(ValueError, match="got 2"):
        loss(torch.zeros(4, 2), torch.tensor([0, 1, 2, 0]))


@pytest.mark.parametrize("make", EVERY)
def test_logits_must_be_floats(make):
    with pytest.raises(TypeError, match=r"logits must be floating point; got torch.int64"):
        make(FBeta(1), prevalence=0.1)(z.long(), y)


@pytest.mark.parametrize("make", EVERY)
def test_nan_logits_have_a_name_in_checked_mode(make):
    bad = torch.tensor([0.0, math.nan, 0, 0])
    assert make(FBeta(1), prevalence=0.1)(bad, y).isnan()
    with pytest.raises(FloatingPointError, match="logits hold 1 NaN of 4"):
        make(FBeta(1), prevalence=0.1, check=True)(bad, y)


@pytest.mark.parametrize("make", EVERY)
@pytest.mark.parametrize("beta", [0, -1, math.nan])
def test_beta(make, beta):
    with pytest.raises(ValueError, match="beta must be a finite number above 0"):
        make(FBeta(beta), prevalence=0.1)


@pytest.mark.parametrize("m", [MCC(), FowlkesMallows()], ids=str)
def test_metric_without_a_pole_names_the_alternatives(m):
    for make in (lambda: SurrogateLoss(m, prevalence=0.1), lambda: SoftLoss(m, prevalence=0.1, form="log")):
        with pytest.raises(ValueError, match="no anchors.*Use TangentLoss or SoftLoss"):
            make()


@pytest.mark.parametrize("make", EVERY)
def test_untrainable_metrics_say_why(make):
    with pytest.raises(ValueError, match=r"pole on the corner \(0, 0\).*one confident positive.*FBeta\(beta=0.1\)"):
        make(Precision(), prevalence=0.1)
    with pytest.raises(ValueError, match="'everything positive' is already its optimum"):
        make(Recall(), prevalence=0.1)
    with pytest.raises(ValueError, match="'everything negative' is already its optimum"):
        make(Specificity(), prevalence=0.1)
    with pytest.raises(ValueError, match="negative slope: at FPR"):
        make(metric(lambda tp, fp, fn, tn: fn / (tp + fn)), prevalence=0.1)
    with pytest.raises(ValueError, match="negative slope"):
        make("cost:fp=-1,fn=1", prevalence=0.1)


def test_untrainable_even_where_the_prevalence_is_unknown():
    for make in (TangentLoss, SoftLoss):
        with pytest.raises(ValueError, match="corner"):
            make(Precision())


@pytest.mark.parametrize("make", EVERY)
@pytest.mark.parametrize("counts", [(0, 10), (10, 0)])
def test_a_class_without_rows(make, counts):
    with pytest.raises(ValueError, match=r"class_counts has no (negatives|positives)"):
        make(FBeta(1), class_counts=counts)


@pytest.mark.parametrize("counts", [5, (1, 2, 3), "many", (1, -2), (math.nan, 1)])
def test_class_counts_are_a_pair(counts):
    with pytest.raises(ValueError, match="class_counts"):
        SurrogateLoss(FBeta(1), prevalence=0.1, class_counts=counts)


@pytest.mark.parametrize("weighting", ["effective", "weird", (1.0,), (1.0, -1.0), (1.0, math.nan)])
def test_weightings(weighting):
    says = "needs class_counts" if weighting == "effective" else "weighting"
    with pytest.raises(ValueError, match=says):
        SurrogateLoss(FBeta(1), prevalence=0.1, weighting=weighting)
    with pytest.raises(ValueError, match="effective_beta"):
        SurrogateLoss(FBeta(1), class_counts=(9, 1), weighting="effective", effective_beta=1.0)


@pytest.mark.parametrize("make", EVERY)
def test_reduction(make):
    with pytest.raises(ValueError, match="reduction must be one of mean, sum.*got 'average'"):
        make(FBeta(1), prevalence=0.1, reduction="average")


def test_a_set_has_no_elements():
    with pytest.raises(ValueError, match="A loss of a whole set has no elements"):
        SoftLoss(FBeta(1), reduction="none")


@pytest.mark.parametrize("q", [-0.1, 1.1, math.nan, "0.5"])
@pytest.mark.parametrize("make", [SurrogateLoss, TangentLoss])
def test_q(make, q):
    with pytest.raises(ValueError, match=r"q must lie in \[0, 1\]"):
        make(FBeta(1), prevalence=0.1, q=q)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"task": "multilabel"}, "needs num_labels"),
        ({"task": "trinary"}, "task must be one of binary, softmax2, multilabel"),
        ({"num_labels": 3}, "num_labels belongs to task='multilabel'"),
        ({"average": "weighted"}, "average must be one of macro, micro"),
        ({"task": "multilabel", "num_labels": 3, "prevalence": [0.1, 0.2]}, "3 of them"),
        ({"prevalence": [0.1, 0.2]}, "must be one number here; got 2"),
    ],
)
@pytest.mark.parametrize("make", EVERY)
def test_construction(make, options, says):
    with pytest.raises(ValueError, match=says):
        make(FBeta(1), **({"prevalence": 0.1} | options))


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"counts": "loud"}, "counts must be one of hard, soft, given"),
        ({"memory": 0}, "memory is a number of positives above 0"),
        ({"damping": 1.0}, "damping must lie in"),
        ({"epsilon": 0}, "epsilon must lie in"),
        ({"warmup": -1}, "warmup"),
        ({"accumulate": 0}, "accumulate is the number of micro-batches"),
    ],
)
def test_tangent_options(options, says):
    with pytest.raises(ValueError, match=says):
        TangentLoss(FBeta(1), **options)


def test_soft_and_running_options():
    with pytest.raises(ValueError, match="form must be one of plain, log"):
        SoftLoss(FBeta(1), form="cubic")
    with pytest.raises(ValueError, match="counts must be one of hard, soft"):
        RunningConfusion(counts="given")


def test_unknown_loss_names_the_nearest():
    with pytest.raises(
        ValueError, match="Unknown loss 'tangnet'. Did you mean 'tangent'.*Choices: .*soft, .*surrogate"
    ):
        losses.get("tangnet", metric=FBeta(1))
    assert isinstance(losses.get("tangent", metric="f" + "beta:beta=2"), TangentLoss)


@pytest.mark.parametrize("name", losses.names())
@pytest.mark.parametrize(
    ("keyword", "says"),
    [
        ("num_classes", "the number of classes is num_labels, with task='multiclass'"),
        ("label_smoothing", r"targets of binary tasks may be soft instead, in \[0, 1\]"),
        ("size_average", "use reduction='mean' or 'sum'"),
        ("reduce", "use reduction='mean', 'sum' or 'none'"),
        ("pos_weight", r"(class_counts=\(negatives, positives\) and the metric|weighting=\(1, w\))"),
        ("weight", r"rows are weighed in the call, loss\(logits, target, weight\), and .*(metric|weighting)"),
    ],
)
def test_names_that_torch_has_say_what_serves_here(name, keyword, says):
    cls = losses.Loss.registry[name].__name__
    with pytest.raises(TypeError, match=rf"^{cls} takes no {keyword}: {says}[^.]*\.$"):
        losses.get(name, FBeta(1), prevalence=0.1, class_counts=(9, 1), **{keyword: 1})


@pytest.mark.parametrize("name", losses.names())
def test_unknown_keywords_name_the_nearest_and_the_choices(name):
    cls = losses.Loss.registry[name].__name__
    with pytest.raises(TypeError, match=rf"^{cls} takes no 'reductoin'. Did you mean 'reduction'\? Choices: "):
        losses.get(name, FBeta(1), prevalence=0.1, reductoin="sum")
    with pytest.raises(TypeError, match=rf"^{cls} takes no 'xyz'. Choices: .*average, .*num_labels, .*task"):
        losses.get(name, FBeta(1), prevalence=0.1, xyz=1)


def test_choices_are_those_of_the_whole_family():
    with pytest.raises(TypeError, match="Did you mean 'memory'.*Choices: L, accumulate, .*damping"):
        losses.get("anyloss", FBeta(1), memry=10)
    with pytest.raises(TypeError, match="Did you mean 'weighting'.*Choices: .*blend, .*effective_beta, .*watch"):
        SurrogateLoss(FBeta(1), prevalence=0.1, weihgting=None)
    for choice in ("self", "options", "unknown"):
        with pytest.raises(TypeError, match=rf"Choices: (?!.*\b{choice}\b)"):
            TangentLoss(FBeta(1), xyz=1)


@pytest.mark.parametrize("make", EVERY)
def test_metric_specs_are_read(make):
    assert make("fbeta:beta=2", prevalence=0.1).metric == FBeta(2)
    with pytest.raises(ValueError, match="Unknown metric"):
        make("f-beta2", prevalence=0.1)


@pytest.mark.parametrize("make", EVERY)
def test_arrays_are_not_tensors(make):
    with pytest.raises(TypeError, match=r"logits must be a tensor; got ndarray. Use torch.as_tensor"):
        make(FBeta(1), prevalence=0.1)(np.zeros(4), y)
    with pytest.raises(TypeError, match=r"weight must be floating point; got torch.int64. Use weight.float"):
        make(FBeta(1), prevalence=0.1)(z, y, torch.ones(4).long())


@pytest.mark.parametrize("weighting", [5, ("a", "b"), (0, 0), (1.0, math.inf)])
def test_explicit_weightings(weighting):
    with pytest.raises(ValueError, match="explicit weighting"):
        SurrogateLoss(FBeta(1), prevalence=0.1, weighting=weighting)


def test_effective_needs_rows_not_rates():
    with pytest.raises(ValueError, match="numbers of rows, not rates"):
        SurrogateLoss(FBeta(1), class_counts=(0.9, 0.1), weighting="effective")


@pytest.mark.parametrize(
    "options", [{"memory": "500"}, {"accumulate": "2"}, {"accumulate": 2.5}, {"epsilon": None}, {"warmup": "x"}]
)
def test_options_of_another_type(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        TangentLoss(FBeta(1), **options)
