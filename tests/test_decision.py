"""One decision for estimators, comparisons and model files; and scores that say what they are."""

import json
import warnings

import numpy as np
import pytest
import torch
from scipy.special import expit

from catalogue import batch
from fbeta import Confusion, Decision, FBeta, Threshold, tune
from fbeta.decisions import Platt, Steps, rules


def rows(n=600, seed=0):
    z, y = batch(n=n, seed=seed, dtype=torch.float64)
    return z.numpy(), y.numpy()


@pytest.mark.parametrize("rule", rules.names())
def test_the_same_rows_said_as_logits_or_as_probabilities_are_cut_alike(rule):
    z, y = rows()
    of_logits = tune(z, y, "f2", rule=rule, kind="logit")
    of_probabilities = tune(expit(z), y, "f2", rule=rule, kind="probability")
    assert of_logits.n_positive == of_probabilities.n_positive
    assert (of_logits.kind, of_probabilities.kind) == ("logit", "probability")


@pytest.mark.parametrize("rule", ["plugin", "shrunk", "constant"])
def test_logits_that_happen_to_lie_in_the_unit_interval_are_logits_if_that_is_said(rule):
    z, y = rows()
    inside = (z - z.min()) / (z.max() - z.min())  # the same order, all in [0, 1]
    if rule == "constant":
        assert tune(inside, y, "f1", rule=rule, kind="logit").value == 0.0
        assert tune(inside, y, "f1", rule=rule, kind="probability").value == 0.5
        return
    # A shift takes them out of [0, 1], and may not change who is called.
    here, there = (tune(s, y, "f1", rule=rule, kind="logit") for s in (inside, inside + 3.0))
    assert here.n_positive == there.n_positive
    assert there.value == pytest.approx(here.value + 3.0)


def test_what_is_assumed_is_said_aloud_where_it_matters():
    z, y = rows()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for scores in (z, expit(z)):  # only the order of the scores counts, so nothing is assumed
            assert tune(scores, y, "f1").kind == "score"
        moved = [tune(s, y, "f1").shift(0.05).n_positive for s in (z, 3 * z + 1, z / 100 + 0.5)]
        assert moved == moved[:1] * 3
        tune(expit(z), y, "f1", rule="constant:at=0.3")
    for scores, words in ((expit(z), r"taken for probabilities, because all of them lie in \[0, 1\]"),
                          (z, r"taken for logits, because not all of them lie")):  # fmt: skip
        for rule in ("shrunk", "plugin", "constant"):
            with pytest.warns(UserWarning, match=words) as said:
                tune(scores, y, "f1", rule=rule)
            assert said[0].filename == __file__  # the line to mend
            with pytest.warns(UserWarning, match=words):
                Decision.fit(scores, y, "f1", rule=rule)


def test_kinds_that_cannot_be():
    z, y = rows()
    with pytest.raises(ValueError, match=r"Scores from -\S+ to \S+ are no probabilities; say kind='logit'"):
        tune(z, y, "f1", kind="probability")
    with pytest.raises(
        ValueError, match="kind must be one of probability, logit, score; got 'logits'. Did you mean 'logit'"
    ):
        tune(z, y, "f1", kind="logits")
    with pytest.raises(ValueError, match="have no usual cut; name one"):
        tune(z, y, "f1", kind="score", rule="constant")
    with pytest.raises(ValueError, match="no boundary of their own"):
        Decision.fit(z, y, "f1", kind="score", rule="own")
    with pytest.raises(ValueError, match="no probabilities yet"):
        Decision.fit(z, y, "f1", kind="score", calibration="none")
    with pytest.raises(ValueError, match="calibration must be"):
        Decision.fit(z, y, "f1", kind="logit", calibration="isotonic")
    with pytest.raises(ValueError, match="scores hold NaN"):
        Decision.fit(np.where(z > 0, np.nan, z), y, "f1", kind="probability")
    with pytest.raises(ValueError, match="There are no scores"):
        Decision.fit(z[:0], y[:0], "f1", kind="logit")
    of_probabilities = Decision.fit(expit(z), y, "f1", kind="probability")
    for asked in (of_probabilities.decide, of_probabilities.probability, of_probabilities.adapt):
        with pytest.raises(ValueError, match="fitted to probabilities; got scores from -"):
            asked(z)


@pytest.mark.parametrize("kind", ["probability", "logit", "score"])
@pytest.mark.parametrize("rule", ["shrunk", "exact", "plugin"])
def test_calibration_and_cut(kind, rule):
    z, y = rows()
    scores = expit(2 * z) if kind == "probability" else 2 * z
    d = Decision.fit(scores, y, "f2", kind=kind, rule=rule)
    # Twice the logit is over-confident by a factor of two, which the calibration takes back.
    assert d.calibration[0].slope == pytest.approx(Platt.fit(Steps.of(z, y)).slope / 2, rel=1e-4)
    p = d.probability(scores)
    assert p.mean() == pytest.approx(y.mean(), abs=0.01)
    assert d.cut.value == tune(p, y, "f2", kind="probability", rule=rule).value
    assert np.array_equal(d.decide(scores), p >= d.cut.value)
    assert np.array_equal(d.margin(scores) > 0, d.decide(scores))
    assert np.allclose(expit(d.log_odds(scores)), p)


def test_known_calibrations_and_own_boundaries():
    z, y = rows()
    d = Decision.fit(z, y, "f2", kind="logit", rule="own", calibration=[Platt(1.0, -0.7)])
    assert np.array_equal(d.decide(z), z >= 0)
    assert d.probability(0.0) == pytest.approx(expit(-0.7))
    plain = Decision.fit(expit(z), y, "f2", kind="probability", rule="own", calibration="none")
    assert plain.cut.value == 0.5
    assert np.allclose(plain.probability(expit(z)), expit(z))


@pytest.mark.parametrize(
    ("metric", "options", "said"),
    [
        ("cost:fp=9,fn=1", {}, "Never positive: cost:fp=9,fn=1,tp=0,tn=0 −0.500 on the rows that chose the cut"),
        ("cost:fp=1,fn=9", {}, "Always positive: cost:fp=1,fn=9,tp=0,tn=0 −0.500 on the rows that chose the cut"),
        ("f1", {"rule": "constant:at=0.25"}, "Positive from a probability of 0.25 on: F₁ 0.667 on the rows that chose"),
    ],
)
def test_it_explains_itself(metric, options, said):
    rule = {"rule": "exact"} | options
    d = Decision.fit([0.5, 0.5], [0, 1], metric, kind="probability", calibration="none", **rule)
    assert d.explain().startswith(said)


def test_scores_without_any_use_keep_their_order():
    z, y = rows()
    d = Decision.fit(-z, y, "f1", kind="score")
    assert d.calibration[0].slope > 0
    assert (np.diff(d.log_odds(np.sort(z))) > 0).all()


def test_several_columns_and_classes():
    z, y = rows(900)
    Z, Y = z.reshape(-1, 3), y.reshape(-1, 3)
    macro = Decision.fit(Z, Y, "f1", kind="logit")
    for k in range(3):
        assert macro.cuts[k].value == Decision.fit(Z[:, k], Y[:, k], "f1", kind="logit").cut.value
    assert np.array_equal(macro.decide(Z), macro.probability(Z) >= [c.value for c in macro.cuts])
    micro = Decision.fit(Z, Y, "f1", kind="logit", average="micro")
    assert len({c.value for c in micro.cuts}) == 1
    kinds = Z.argmax(1)
    classes = Decision.fit(Z, kinds[:, None] == np.arange(3), "f1", kind="logit", exclusive=True)
    assert np.allclose(classes.probability(Z).sum(1), 1.0)
    assert (classes.decide(Z).sum(1) == 1).all()
    assert (classes.decide(Z).argmax(1) == kinds).mean() > 0.9
    with pytest.raises(ValueError, match="There are 3 columns"):
        macro.decide(z)
    with pytest.raises(ValueError, match="must be alike"):
        Decision.fit(Z, Y[:, 0], "f1", kind="logit")
    for d in (macro, micro, classes):
        again = Decision.from_dict(json.loads(json.dumps(d.to_dict())))
        assert np.array_equal(again.decide(Z), d.decide(Z))
        assert again.explain() == d.explain()


def test_it_is_plain_data():
    z, y = rows()
    d = Decision.fit(z, y, "f2", kind="logit")
    again = Decision.from_dict(json.loads(json.dumps(d.to_dict())))
    assert again.to_dict() == d.to_dict()
    assert np.array_equal(again.decide(z), d.decide(z))
    assert again.cut.interval == d.cut.interval
    assert d.explain().startswith("Positive from a probability of 0.")
    none = d.to_dict() | {"cuts": [Threshold(float("inf"), 0.0, 0).to_dict()]}
    assert not Decision.from_dict(none).decide([np.inf, 1e300]).any()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"calibration": [{"slope": "nan", "offset": 0}]}, "no rising line"),
        ({"calibration": [{"slope": -1.0, "offset": 0}]}, "no rising line"),
        ({"calibration": []}, "incomplete"),
        ({"cuts": []}, "incomplete"),
        ({"kind": "guess"}, "incomplete"),
        ({"cuts": None}, "no decision"),
        ({"calibration": [[1, 2]]}, "no decision"),
        ({"classes": {"gains": [[1.0, 2.0], [1.0, 2.0]]}}, "no rule for classes"),
    ],
)
def test_what_is_no_decision(change, words):
    data = Decision.fit(*rows(), "f2", kind="logit").to_dict() | change
    with pytest.raises(ValueError, match=words):
        Decision.from_dict(data)
    with pytest.raises(ValueError, match="no decision"):
        Decision.from_dict({})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"score": 10**400}, "int too large"),
        ({"value": {}}, "float"),
        ({"value": None}, "it has no value"),
        ({"counts": [1, 2, 3]}, "tn"),
        ({"counts": 3}, "int"),
        ({"columns": [None]}, "NoneType"),
        ({"columns": True}, "bool"),
        ({"interval": {"score": [0, 1]}}, "no 'cut'"),
        ({"interval": 3}, "int"),
    ],
)
def test_what_is_no_cut(change, words):
    data = tune([0.9, 0.8, 0.3, 0.1], [1, 0, 1, 0], "f1").to_dict() | change
    with pytest.raises(ValueError, match=rf"this is no cut \(.*{words}.*\)$"):
        Threshold.from_dict(data)
    for nothing in ({}, [], None):
        with pytest.raises(ValueError, match="this is no cut"):
            Threshold.from_dict(nothing)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32, torch.float64])
@pytest.mark.parametrize("rule", ["exact", "shrunk"])
def test_tensors_are_decided_as_tensors_and_as_a_comparison_would(dtype, rule):
    for seed in range(30):
        z, y = batch(n=200, seed=seed, dtype=torch.float64)
        z = z.to(dtype)
        cut = tune(z, y, FBeta(1), rule=rule, kind="logit")
        decided = cut.decide(z)
        assert decided.dtype == torch.bool
        assert torch.equal(decided, z >= cut.value)
        assert int(decided.sum()) == cut.n_positive
    both = tune(torch.stack([z, -z], 1), torch.stack([y, 1 - y], 1), FBeta(1), rule=rule, kind="logit")
    assert torch.equal(both.decide(torch.stack([z, -z], 1))[:, 0], decided)
    assert torch.equal(Decision.fit(z, y, "f1", kind="logit").decide(z).sum() >= 0, torch.tensor(True))


def test_an_infinite_cut_calls_nothing_wherever_it_is_counted():
    scores, y = [np.inf, 1.0, -np.inf], [1, 0, 0]
    for cut in (np.inf, Threshold(np.inf, 0.0, 0)):
        assert Confusion.from_scores(scores, y, cut) == Confusion(0.0, 0.0, 1.0, 2.0)
        assert Confusion.from_scores(torch.tensor(scores), torch.tensor(y), cut).tp == 0
    assert not Threshold(np.inf, 0.0, 0).decide(scores).any()
    assert Confusion.from_scores(scores, y, -np.inf) == Confusion(1.0, 2.0, 0.0, 0.0)


def test_cuts_of_columns_are_counted_by_the_columns():
    z, y = rows(300)
    Z, Y = z.reshape(-1, 3), y.reshape(-1, 3)
    cut = tune(Z, Y, "f1")
    counted = Confusion.from_scores(Z, Y, cut, axis=0)
    assert np.allclose(counted.tp, [c.counts.tp for c in cut.columns])
    assert FBeta(1)(counted).mean() == pytest.approx(cut.score)
    for each in (cut.value, torch.tensor(cut.value), list(cut.columns)):
        for given in ((torch.tensor(Z), torch.tensor(Y)), (Z, Y)):
            assert Confusion.from_scores(*given, each, axis=0).tp.tolist() == counted.tp.tolist()
    for one in (torch.tensor(0.5), np.array(0.5), np.float32(0.5)):
        assert Confusion.from_scores(z, y, one) == Confusion.from_scores(z, y, 0.5)
    with pytest.raises(ValueError, match="There are 3 cuts, one per column; got scores of shape"):
        Confusion.from_scores(Z[:, :2], Y[:, :2], cut, axis=0)
    with pytest.raises(ValueError, match="cut is NaN"):
        Confusion.from_scores(Z, Y, [0.0, np.nan, 1.0], axis=0)


def labels(n=400, seed=0):
    """Five labels, two of them rare, one without any positive: logits twice too far apart."""
    rng = np.random.default_rng(seed)
    y = rng.random((n, 5)) < [0.4, 0.2, 0.1, 0.02, 0.0]
    return 2 * (rng.normal(1.5 * y) * 1.5 - 1.1 + np.log([0.7, 0.25, 0.1, 0.02, 0.02])), y


def test_a_pooled_decision_draws_rare_labels_to_the_others():
    s, y = labels()
    d = Decision.fit(s, y, "f1", kind="logit", rule="pooled")
    alone = Decision.fit(s, y, "f1", kind="logit")
    later, truth = labels(20_000, 1)
    loss = [
        -np.mean(np.where(truth, np.log(p), np.log1p(-p)), axis=0)
        for p in (d.probability(later), alone.probability(later))
    ]
    assert loss[0][3] < loss[1][3]
    assert loss[0][:2].tolist() == loss[1][:2].tolist()  # they have rows enough to ask for a form of their own
    assert 0 < d.probability(later)[:, 4].mean() < 0.05  # no positives were seen, but others say what scores mean
    assert "no positives" in d.cuts[4].warning
    assert {cut.rule for cut in d.cuts} == {"pooled"}
    again = Decision.from_dict(json.loads(json.dumps(d.to_dict())))
    assert np.array_equal(again.decide(later), d.decide(later))
    assert np.array_equal(again.margin(later) > 0, d.decide(later))


def test_a_pooled_decision_adapts_all_labels_together():
    s, y = (x[:, :4] for x in labels(2000))
    d = Decision.fit(s, y, "f1", kind="logit", rule="pooled")
    share = d.prevalence
    assert [c.value for c in d.adapt(at_prevalence=share).cuts] == [c.value for c in d.cuts]
    moved = d.adapt(at_prevalence=[0.8, *share[1:]])
    assert moved.cuts[0].value > d.cuts[0].value
    assert [c.value for c in moved.cuts[1:]] == [c.value for c in d.cuts[1:]]
    assert moved.cuts[0].rule == "pooled"
    told = Decision.from_dict(json.loads(json.dumps(d.to_dict()))).adapt(at_prevalence=[0.8, *share[1:]])
    assert told.cuts[0].value == pytest.approx(moved.cuts[0].value)
    alone = Decision.fit(s, y, "f1", kind="logit").adapt(at_prevalence=[0.8, *share[1:]])
    assert moved.cuts[0].value == pytest.approx(alone.cuts[0].value, abs=0.1)
    later, _ = labels(2000, 5)
    assert not d.adapt(later[:, :4]).moved


def test_pooled_of_one_column_and_of_classes_is_shrunk():
    z, y = rows()
    one, other = (Decision.fit(z, y, "f1", kind="logit", rule=rule) for rule in ("pooled", "shrunk"))
    assert one.cut.value == other.cut.value
    s, target = labels()
    target[:, 4] = ~target[:, :4].any(1)
    target = target & (np.cumsum(target, axis=1) == 1)
    known = [Platt(0.5, 0.0)] * 5
    classes = [
        Decision.fit(s, target, "f1", kind="logit", rule=rule, exclusive=True, calibration=known)
        for rule in ("pooled", "shrunk")
    ]
    assert np.array_equal(classes[0].decide(s), classes[1].decide(s))
