"""Promises hold in the population as often as they say, and no less would do; a person gets the rows that help most."""

import itertools
import json

import numpy as np
import pytest
import torch
from scipy.stats import binom, norm

from fbeta import Decision, FBeta, Threshold, as_metric, tune
from fbeta.decisions import Rule, Sketch
from fbeta.decisions.abstention import Asking
from fbeta.decisions.binomial import binomial_tail, least_successes
from fbeta.decisions.promise import Share
from fbeta.metrics import Confusion


def draw(n, seed, share=0.1, apart=1.8):
    rng = np.random.default_rng(seed)
    y = rng.random(n) < share
    return rng.normal(size=n) + apart * y, y


def recall(cut, apart=1.8):
    return norm.sf(cut - apart)


def precision(cut, share=0.1):
    return share * recall(cut) / (share * recall(cut) + (1 - share) * norm.sf(cut))


@pytest.mark.parametrize("most", [1, 7, 1000, 10**6])
@pytest.mark.parametrize("share", [1e-3, 0.1, 0.5, 0.9, 0.999])
def test_tails_are_those_of_scipy(most, share):
    rng = np.random.default_rng(most)
    n = rng.integers(1, most + 1, 60)
    k = np.clip(np.round(n * share + 2 * rng.normal(size=60) * np.sqrt(n * share * (1 - share))), 0, n + 1)
    np.testing.assert_allclose(binomial_tail(k, n, share), binom.sf(k - 1, n, share), atol=1e-8)


def test_ends_of_tails():
    assert binomial_tail([0, 1, 3, 4], 3, 1.0).tolist() == [1, 1, 1, 0]
    assert binomial_tail([0, 1], 3, 0.0).tolist() == [1, 0]
    assert [least_successes(n, 0.9, 0.05) for n in (0, 28, 29, 46)] == [1, 29, 29, 45]


@pytest.mark.parametrize("name", ["recall", "precision", "specificity", "accuracy", "jaccard", "f1", "cost:fp=2,fn=2"])
def test_a_metric_reaches_its_value_where_the_share_is_large_enough(name):
    metric, least = as_metric(name), -0.4 if name.startswith("cost") else 0.6
    share = Share.of(metric, least)
    for cells in np.random.default_rng(0).integers(1, 50, (200, 4)).astype(float):
        right, wrong = (sum(cells[k] for k in kind) for kind in (share.right, share.wrong))
        assert (metric(Confusion(*cells)) >= least) == (right >= share.needed * (right + wrong) - 1e-9)


@pytest.mark.parametrize("name", ["f2", "mcc", "kappa", "gmean", "balanced-accuracy", "cost:fp=1,fn=20"])
def test_what_is_no_share_is_refused(name):
    with pytest.raises(ValueError, match="No exact promise can be made of .* Promise recall, precision"):
        tune(*draw(200, 0), "f1", subject_to={name: -0.5 if "cost" in name else 0.5}, confidence=0.9)


def test_a_function_is_no_share():
    with pytest.raises(ValueError, match="No exact promise"):
        tune(*draw(200, 0), "f1", subject_to={lambda tp, fp, fn, tn: tp / (tp + fn): 0.5}, confidence=0.9)


@pytest.mark.parametrize(("n", "least", "confidence"), [(40, 0.7, 0.9), (300, 0.9, 0.95), (1000, 0.8, 0.99)])
def test_recall_is_promised_exactly_and_no_more_cautiously_than_that(n, least, confidence):
    """So many positives may lie below the cut as the binomial allows: one more would break it too often."""
    x, y = draw(n, 1, share=0.5)
    cut = tune(x, y, "precision", subject_to={"recall": least}, confidence=confidence)
    positives, missed = int(y.sum()), int((x[y] < cut.value).sum())
    assert binom.cdf(missed, positives, 1 - least) <= 1 - confidence
    highest = tune(x, y, "specificity", subject_to={"recall": least}, confidence=confidence)
    missed = int((x[y] < highest.value).sum())
    assert binom.cdf(missed, positives, 1 - least) <= 1 - confidence < binom.cdf(missed + 1, positives, 1 - least)


@pytest.mark.parametrize(
    ("n", "asked", "given"),
    [
        (100, {"recall": 0.7}, 0.6),
        (1000, {"recall": 0.8}, 1.0),
        (1000, {"precision": 0.4}, 0.9),
        (4000, {"recall": 0.7, "precision": 0.3}, 0.9),
    ],
)
def test_promises_are_broken_as_rarely_as_they_say(n, asked, given):
    made, broken, draws = 0, 0, 150
    for seed in range(draws):
        try:
            cut = tune(*draw(n, seed), "f1", subject_to=asked, confidence=0.95).value
        except ValueError:
            continue
        made += 1
        broken += recall(cut) < asked.get("recall", 0) or precision(cut) < asked.get("precision", 0)
    assert made >= given * draws
    assert binom.sf(broken - 1, draws, 0.05) > 0.001


@pytest.mark.slow
def test_what_is_promised_beside_ties_and_other_metrics():
    """Scores rounded to tenths, and every kind of share, at a confidence that is often used up."""
    population = Confusion(*(np.array(x) for x in _rounded()))
    for name, least in (("accuracy", 0.9), ("f1", 0.5), ("specificity", 0.9), ("jaccard", 0.33)):
        broken = 0
        values = np.asarray(as_metric(name)(population))
        for seed in range(300):
            x, y = draw(1500, seed)
            try:
                cut = tune(np.round(x, 1), y, "f2", subject_to={name: least}, confidence=0.9).value
            except ValueError:
                continue
            broken += values[np.searchsorted(_tenths(), cut)] < least
        assert binom.sf(broken - 1, 300, 0.1) > 0.001, (name, broken)


def _tenths():
    return np.round(np.arange(-60, 80) / 10, 1)


def _rounded():
    hit, miss = (share * norm.sf(_tenths() - 0.05 - at) for share, at in ((0.1, 1.8), (0.9, 0.0)))
    return hit, miss, 0.1 - hit, 0.9 - miss


def test_all_that_pass_hold_and_the_metric_chooses():
    x, y = draw(4000, 3)
    asked = {"subject_to": {"recall": 0.8}, "confidence": 0.9}
    cuts = [tune(x, y, metric, **asked).value for metric in ("recall", "f1", "precision", "specificity")]
    assert cuts[0] < cuts[1] <= cuts[3]
    assert cuts[0] < cuts[2] <= cuts[3]
    shrunk = tune(x, y, "f2", rule="shrunk", kind="score", **asked)
    assert shrunk.value <= cuts[3]
    both = tune(x, y, "f2", subject_to={"recall": 0.8, "precision": 0.2}, confidence=0.9, budget=2000)
    assert both.n_positive <= 2000
    assert both.promise.asked == (("recall", 0.8), ("precision", 0.2))


def test_what_can_be_promised_is_said():
    x, y = np.arange(40.0), np.arange(40) >= 20
    with pytest.raises(ValueError, match="20 positives among 40 rows") as error:
        tune(x, y, "f1", subject_to={"recall": 0.9}, confidence=0.95)
    assert "recall ≥ 0.86 can be promised. It would take about 30 positives." in str(error.value)
    assert tune(x, y, "f1", subject_to={"recall": 0.86}, confidence=0.95).score == 1
    with pytest.raises(ValueError, match="More rows like these would not do"):
        tune(x, y, "f1", subject_to={"recall": 1.0}, confidence=0.95)
    with pytest.raises(ValueError, match="while the rest is promised"):
        tune(*draw(300, 0), "f1", subject_to={"recall": 0.8, "precision": 0.3}, confidence=0.95)
    assert tune(x, y, "f1", subject_to={"recall": 0.0}, confidence=0.95).score == 1


def test_another_share_of_positives():
    x, y = draw(3000, 5)
    asked = {"subject_to": {"recall": 0.8}, "confidence": 0.95}
    here, there = (tune(x, y, "specificity", prevalence=p, **asked).value for p in (None, 0.01))
    assert here == there
    with pytest.raises(ValueError, match="precision depends on the share of positives"):
        tune(x, y, "f1", subject_to={"precision": 0.3}, confidence=0.95, prevalence=0.2)


def test_weights():
    x, y = draw(1000, 6)
    asked = {"subject_to": {"recall": 0.8}, "confidence": 0.9}
    plain = tune(x, y, "f1", **asked).value
    assert tune(x, y, "f1", np.full(1000, 3.0), **asked).value == plain
    by_class = np.where(y, 9.0, 1.0)
    assert tune(x, y, "specificity", by_class, **asked).value == tune(x, y, "specificity", **asked).value
    for wrong, target in ((np.linspace(1, 2, 1000), y), (None, np.clip(y, 0.1, 0.9))):
        with pytest.raises(ValueError, match="takes no weights that differ within a class, and no targets between"):
            tune(x, target, "f1", wrong, **asked)
    with pytest.raises(ValueError, match="depends on the share of positives"):
        tune(x, y, "f1", by_class, subject_to={"precision": 0.3}, confidence=0.9)


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        *(({"subject_to": {"recall": 0.9}, "confidence": c}, "between 0 and 1") for c in (0, 1, -1, 1.5, "much", True)),
        ({"confidence": 0.9}, "confidence is that of subject_to"),
        *(({"abstain": a}, "a share of rows from 0, below 1") for a in (1, -0.1, float("nan"), True)),
        ({"abstain": "some"}, "a share of rows such as 0.05, or 'promise'"),
        ({"abstain": "promise"}, "give subject_to and confidence"),
        ({"abstain": 0.1, "budget": 5}, "leave it out"),
        ({"rule": "constant:at=9", "subject_to": {"recall": 0.5}, "confidence": 0.9}, "does not meet the constraints"),
        ({"abstain": 0.1, "rule": "constant:at=1"}, "cannot say which a person should decide"),
        ({"abstain": 0.1, "subject_to": {"accuracy": 0.5}, "confidence": 0.9}, "errors on both sides"),
        *(({"subject_to": {"recall": v}, "confidence": 0.9}, "promised of recall lies from 0 to 1") for v in (-1, 1.5)),
    ],
)
def test_bad_questions(asked, says):
    with pytest.raises(ValueError, match=says):
        tune(*draw(300, 0), "f1", kind="score", **asked)


@pytest.mark.parametrize("target", [np.zeros(50), np.ones(50)])
def test_one_class_promises_nothing(target):
    with pytest.raises(ValueError, match="there are no (positives|negatives) among the rows; bring rows of both"):
        tune(np.arange(50.0), target, "f1", subject_to={"recall": 0.9, "specificity": 0.5}, confidence=0.9)


def test_a_rule_that_looks_at_no_constraints_keeps_no_promise():
    class Careless(Rule):
        needs_kind = False

        def choose(self, problem):
            return np.inf

    try:
        with pytest.raises(ValueError, match="The cut inf of the rule careless keeps no promise"):
            tune(*draw(300, 0), "f1", rule=Careless(), subject_to={"recall": 0.5}, confidence=0.9)
    finally:
        del Rule.registry["careless"]


def test_a_sketch_promises():
    x, y = draw(5000, 8)
    asked = {"subject_to": {"recall": 0.8}, "confidence": 0.95}
    rough = Sketch(kind="logit").add(x, y).tune("specificity", **asked)
    exact = tune(x, y, "specificity", **asked)
    assert rough.value <= exact.value < rough.value + 0.02
    assert rough.promise == exact.promise


@pytest.mark.parametrize("metric", ["f1", "f2", "jaccard", "accuracy"])
@pytest.mark.parametrize("seed", range(5))
def test_a_person_gets_the_rows_that_help_most(metric, seed):
    """Against all pairs of cuts: if that person is right, all rows score highest."""
    x, y = draw(40, seed, share=0.4, apart=1.0)
    x = np.round(x, 1)
    found = tune(x, y, metric, abstain=0.2)
    ends = [np.inf, *((np.unique(x)[1:] + np.unique(x)[:-1]) / 2), -np.inf]
    best = 0.0
    for high, low in itertools.product(ends, ends):
        if low <= high and ((x >= low) & (x < high)).sum() <= 8:
            called = np.where((x >= low) & (x < high), y, x >= high)
            best = max(best, as_metric(metric)(Confusion.from_predictions(called, y)))
    assert found.helped == pytest.approx(best, abs=1e-12)
    assert found.asking.rows <= 8
    outcome = found.outcome(x)
    assert (outcome == -1).sum() == found.asking.rows
    assert np.array_equal(outcome == 1, found.decide(x))
    cells = [((outcome == c) & (y == t)).sum() for c, t in ((1, 1), (1, 0), (0, 1), (0, 0))]
    assert list(found.counts) == cells


def test_asking_nobody():
    x, y = draw(500, 2)
    found, plain = tune(x, y, "f1", abstain=0.0), tune(x, y, "f1")
    assert found.asking.rows == 0
    assert "A person decides none of these rows." in found.remarks()
    assert found.score == plain.score
    assert np.array_equal(plain.outcome(x), plain.decide(x) * 1)
    assert set(found.outcome(x)) == {0, 1}
    assert torch.equal(found.outcome(torch.tensor(x)), torch.tensor(plain.decide(x) * 1))


def test_rows_for_a_person_are_said_by_weight_where_rows_have_weights():
    x, y = draw(500, 2)
    assert ", of which 3.00 % by weight are positive" in Asking(0.4, 20, 3.0, 97.0).explain()
    assert "by weight" in tune(x, y, "f1", abstain=0.1, prevalence=0.3).asking.explain()
    assert "by weight" not in tune(x, y, "f1", abstain=0.1).asking.explain()
    several = tune(np.c_[x, -x], np.c_[y, ~y], "f1", abstain=0.1)
    assert [text[:28] for text in several.remarks()] == ["Column 0: A person decides f", "Column 1: A person decides f"]


def test_as_few_rows_as_a_promise_needs():
    x, y = draw(4000, 4)
    asked = {"subject_to": {"recall": 0.85, "precision": 0.5}, "confidence": 0.9}
    with pytest.raises(ValueError, match="No cut can promise"):
        tune(x, y, "f1", **asked)
    found = tune(x, y, "f1", abstain="promise", **asked)
    # Each end for itself: at half the chance of an error.
    low = tune(x, y, "specificity", subject_to={"recall": 0.85}, confidence=0.95)
    high = tune(x, y, "recall", subject_to={"precision": 0.5}, confidence=0.95)
    assert (found.value, found.asking.start) == (high.value, low.value)
    assert "what a person decides is not counted as wrong" in found.promise.explain()
    assert found.helped > found.score > 0
    share = found.asking.rows / 4000
    with pytest.raises(ValueError, match=r"needs a person for .* %"):
        tune(x, y, "f1", abstain=share - 0.01, **asked)
    more = tune(x, y, "f1", abstain=share + 0.05, **asked)
    assert more.helped >= found.helped
    easy = {"subject_to": {"recall": 0.5}, "confidence": 0.9}
    assert tune(x, y, "f1", abstain="promise", **easy).asking.rows == 0


def test_constraints_on_the_rows_with_a_person():
    x, y = draw(2000, 9)
    found = tune(x, y, "f1", subject_to={"precision": 0.6, "recall": 0.55}, abstain=0.1)
    tp, fp, fn, _ = found.counts
    assert tp / (tp + fp) >= 0.6
    assert tp / (tp + fn) >= 0.55
    with pytest.raises(ValueError, match="No two cuts meet the constraints"):
        tune(x, y, "f1", subject_to={"precision": 0.9, "recall": 0.9}, abstain=0.01)


def test_the_interval_is_of_the_rows_that_are_decided():
    """In the population, for cuts that were tuned on other draws."""
    held = 0
    for seed in range(40):
        cut = tune(*draw(1000, seed), "f1", abstain=0.05)
        tp, fp = 0.1 * recall(cut.value), 0.9 * norm.sf(cut.value)
        low, high = cut.interval.score
        truth = FBeta(1)(Confusion(tp, fp, 0.1 * (1 - recall(cut.asking.start)), 0.0))
        held += low <= truth <= high
    assert held >= 34


def test_they_are_plain_data():
    x, y = draw(3000, 0)
    how = {"subject_to": {"recall": 0.8}, "confidence": 0.95, "abstain": 0.05}
    cut = tune(x, y, "f1", **how)
    again = Threshold.from_dict(json.loads(json.dumps(cut.to_dict())))
    assert (again.promise, again.asking) == (cut.promise, cut.asking)
    assert np.array_equal(again.outcome(x), cut.outcome(x))
    for wrong in (
        {"promise": {"asked": [["recall", 2]], "confidence": 2, "abstains": False}},
        {"asking": {"start": 0}},
    ):
        with pytest.raises(ValueError, match="this is no cut|confidence must lie"):
            Threshold.from_dict(cut.to_dict() | wrong)
    decision = Decision.fit(x, y, "f1", kind="score", **how)
    again = Decision.from_dict(json.loads(json.dumps(decision.to_dict())))
    assert np.array_equal(again.outcome(x), decision.outcome(x))
    assert again.explain() == decision.explain()
    assert "Promise: with 95 % confidence recall ≥ 0.8" in decision.explain()
    assert "A person decides from" in decision.explain()
    with pytest.raises(ValueError, match="two where a person decides"):
        cut.shift(0.2)


def test_several_columns_promise_each_for_itself():
    (x, y), (z, t) = draw(2000, 1), draw(2000, 2)
    how = {"subject_to": {"recall": 0.8}, "confidence": 0.9, "abstain": 0.1}
    both = tune(np.c_[x, z], np.c_[y, t], "f1", **how)
    each = [tune(x, y, "f1", **how), tune(z, t, "f1", **how)]
    assert np.array_equal(both.outcome(np.c_[x, z]), np.c_[each[0].outcome(x), each[1].outcome(z)])
    decision = Decision.fit(np.c_[x, z], np.c_[y, t], "f1", kind="score", **how)
    assert set(np.unique(decision.outcome(np.c_[x, z]))) == {-1, 0, 1}
    with pytest.raises(ValueError, match="single columns"):
        tune(np.c_[x, z], np.c_[y, t], "f1", average="micro", **how)
    with pytest.raises(ValueError, match="single columns"):
        Decision.fit(np.c_[x, z], np.c_[y, t], "f1", kind="score", average="micro", **how)


def test_following_the_population():
    """What holds within a class is promised again for another share; what does not is refused."""
    x, y = draw(4000, 7)
    decision = Decision.fit(x, y, "f1", kind="score", subject_to={"recall": 0.85}, confidence=0.95)
    moved = decision.adapt(at_prevalence=0.3)
    assert moved.cut.promise == decision.cut.promise
    missed = int((x[y] < np.sort(x[moved.decide(x)])[0]).sum())
    assert binom.cdf(missed, int(y.sum()), 0.15) <= 0.05
    precise = Decision.fit(x, y, "f1", kind="score", subject_to={"precision": 0.4}, confidence=0.95)
    with pytest.raises(ValueError, match="precision depends on the share of positives"):
        precise.adapt(at_prevalence=0.3)
    with_a_person = Decision.fit(x, y, "f1", kind="score", abstain=0.05)
    assert with_a_person.adapt(at_prevalence=0.3).cut.asking.rows <= 200


def test_estimators_ask():
    linear_model = pytest.importorskip("sklearn.linear_model")
    from fbeta.sklearn import ThresholdClassifier

    x, y = draw(2000, 3, share=0.3)
    model = linear_model.LogisticRegression()
    how = {"subject_to": {"recall": 0.85, "precision": 0.7}, "confidence": 0.9, "abstain": "promise"}
    found = ThresholdClassifier(model, "f1", random_state=0, **how).fit(x[:, None], y)
    asked = found.asks(x[:, None])
    assert 0.02 < asked.mean() < 0.5
    assert not (found.predict(x[:, None]) & asked).any()
    with pytest.raises(ValueError, match="confidence must lie between 0 and 1"):
        ThresholdClassifier(model, "f1", subject_to={"recall": 0.8}, confidence=5).fit(x[:, None], y)
    three = linear_model.LogisticRegression(), np.arange(2000) % 3
    with pytest.raises(ValueError, match="is about one decision"):
        ThresholdClassifier(three[0], "f1", average="macro", abstain=0.1).fit(x[:, None], three[1])
