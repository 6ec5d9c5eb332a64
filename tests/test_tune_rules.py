"""Rules for a cut, constraints on it, and another prevalence."""

import math

import numpy as np
import pytest
from scipy.special import expit
from scipy.special import logit as log_odds

from catalogue import tune
from fbeta import MCC, Cost, FBeta, Precision, Recall, Threshold, metric
from fbeta.decisions import Platt, Rule, Steps, rules
from fbeta.decisions import as_rule as read_rule


def calibrated(n, rng, slope=1.0, offset=-2.0):
    z = rng.normal(size=n) * 2 + offset
    return z, rng.random(n) < expit(slope * z)


def test_rules_have_names_and_specs():
    assert {"constant", "exact", "plugin", "shrunk"} <= set(rules.names())
    for name in rules.names():
        assert read_rule(str(read_rule(name))) == read_rule(name)
    assert read_rule("shrunk:half=7,calibrate=0") == read_rule(str(read_rule("shrunk:half=7,calibrate=0")))
    with pytest.raises(ValueError, match="Unknown rule 'shrink'. Did you mean 'shrunk'"):
        read_rule("shrink")
    with pytest.raises(ValueError, match="shrunk takes half, calibrate; got 'n=3'"):
        read_rule("shrunk:n=3")
    with pytest.raises(ValueError, match="half of shrunk must be a number; got 'few'"):
        read_rule("shrunk:half=few")
    with pytest.raises(ValueError, match="half of shrunk is"):
        read_rule("shrunk:half=-1")
    with pytest.raises(TypeError, match="A rule is a name"):
        read_rule(3)


def test_a_rule_of_ones_own_is_found_by_name():
    class Everything(Rule):
        def choose(self, problem):
            return -math.inf

    try:
        assert tune([0.2, 0.4], [0, 1], FBeta(1), rule="everything").n_positive == 2
        with pytest.raises(ValueError, match="one column at a time"):
            tune([[0.2], [0.4]], [[0], [1]], FBeta(1), rule="everything", average="micro")
    finally:
        del Rule.registry["everything"]


def test_a_rule_cannot_take_a_name_over():
    with pytest.raises(ValueError, match="'exact' exists already"):
        type("Exact", (Rule,), {})


def test_shrunk_tells_tiny_probabilities_apart():
    """Saturated scores: the exact cut at 1e-20 must not be rounded to something that calls fewer rows."""
    s = np.concatenate([np.full(500, 1e-30), np.full(500, 1e-10)])
    y = np.arange(1000) >= 500
    assert tune(s, y, FBeta(1), rule="shrunk").score == 1


def test_plugin_finds_the_best_rule_of_a_known_population():
    """On calibrated scores the plug-in cut is the metric's own rule δ at its operating point."""
    rng = np.random.default_rng(0)
    z, y = calibrated(200_000, rng)
    p = expit(z)
    for m in (FBeta(0.5), FBeta(2), MCC(), Cost(fp=1, fn=9)):
        for s, to in ((p, float), (z, expit)):
            cut = tune(s, y, m, rule="plugin")
            assert to(cut.value) == pytest.approx(m.best_cut(cut.counts), abs=0.01)
        assert tune(p, y, m, rule="plugin:calibrate=0").value == pytest.approx(
            tune(p, y, m, rule="plugin").value, abs=0.01
        )


def test_plugin_hardly_looks_at_targets():
    """Over many small samples its cut varies less than the exact one's."""
    rng = np.random.default_rng(0)
    exact, plugin, shrunk = (
        np.std([log_odds(np.clip(tune(expit(z), y, FBeta(1), rule=r).value, 1e-3, 0.999)) for z, y in samples])
        for samples in [[calibrated(150, rng) for _ in range(60)]]
        for r in ("exact", "plugin", "shrunk")
    )
    assert plugin < 0.7 * exact
    assert plugin < shrunk < exact


def test_shrunk_lies_between_and_leans_to_exact_with_many_positives():
    rng = np.random.default_rng(1)
    for n in (50, 500, 50_000):
        z, y = calibrated(n, rng, slope=0.6)
        for s, to in ((expit(z), log_odds), (z, float)):
            exact, plugin, shrunk = (to(tune(s, y, FBeta(2), rule=r).value) for r in ("exact", "plugin", "shrunk"))
            weight = 0.5 + 0.5 * y.sum() / (y.sum() + 200)
            assert shrunk == pytest.approx(weight * exact + (1 - weight) * plugin, abs=1e-6)
    assert tune(s, y, FBeta(2), rule="shrunk:half=0").value == tune(s, y, FBeta(2)).value


def test_shrunk_with_cuts_at_infinity():
    assert tune([0.5, 0.5], [1, 1], FBeta(1), rule="shrunk").decide([0.5]).all()
    rng = np.random.default_rng(0)
    y = rng.random(40) < 0.5
    cut = tune(rng.random(40), y, Recall(), rule="shrunk")  # 'all' is best on the rows and expected to be
    assert np.isfinite(cut.value) or cut.value == -math.inf
    assert 0 <= cut.score <= 1


def test_constant():
    assert tune([0.9, 0.2], [1, 0], FBeta(1), rule="constant").value == 0.5
    assert tune([3.0, -2.0], [1, 0], FBeta(1), rule="constant").value == 0.0
    cut = tune([0.9, 0.2], [1, 0], FBeta(1), rule="constant:at=0.1")
    assert (cut.value, cut.n_positive, cut.score) == (0.1, 2, pytest.approx(2 / 3))
    with pytest.raises(ValueError, match="constant cut 0.5 does not meet"):
        tune([0.9, 0.8], [1, 1], FBeta(1), rule="constant", budget=1)


def test_plugin_refuses_margins_as_probabilities():
    with pytest.raises(ValueError, match="of kind 'logit'; leave it out"):
        tune([3.0, -2.0], [1, 0], FBeta(1), rule="plugin:calibrate=0")


@pytest.mark.parametrize("r", ["plugin", "shrunk"])
def test_rules_keep_constraints(r):
    rng = np.random.default_rng(2)
    z, y = calibrated(400, rng)
    for call in ({"subject_to": {"recall": 0.95}}, {"subject_to": {"precision": 0.9}}, {"budget": 20}):
        cut = tune(expit(z), y, FBeta(1), rule=r, **call)
        assert Recall()(cut.counts) >= call.get("subject_to", {}).get("recall", 0) - 1e-12
        assert Precision()(cut.counts) >= call.get("subject_to", {}).get("precision", 0) - 1e-12
        assert cut.n_positive <= call.get("budget", 400)


def test_platt_finds_the_logistic_model():
    rng = np.random.default_rng(0)
    z, y = calibrated(100_000, rng, slope=0.5)
    found = Platt.fit(Steps.of(z, y))
    assert (found.slope, found.offset) == (pytest.approx(0.5, abs=0.02), pytest.approx(0.0, abs=0.06))
    of_probabilities = Platt.fit(Steps.of(expit(z), y, kind="probability"))
    assert of_probabilities.slope == pytest.approx(0.5, abs=0.02)
    np.testing.assert_allclose(of_probabilities(expit(z)), found(z), atol=1e-3)


@pytest.mark.parametrize("r", ["plugin", "shrunk"])
def test_the_scale_of_weights_is_no_evidence(r):
    """Weights that sum to one are not one row: calibration must not smooth them as such."""
    rng = np.random.default_rng(0)
    z, y = calibrated(300, rng)
    w = rng.uniform(0.5, 2, 300)
    cut = tune(z, y, FBeta(1), w, rule=r)
    for scale in (1 / w.sum(), 1e-50, 1e6):
        assert tune(z, y, FBeta(1), w * scale, rule=r).value == pytest.approx(cut.value, rel=1e-6)
    assert tune(z, y, FBeta(1), np.full(300, 1e-3), rule=r).value == pytest.approx(
        tune(z, y, FBeta(1), rule=r).value, rel=1e-6
    )


def test_scores_whose_squares_overflow():
    for r in ("plugin", "shrunk"):
        assert 0 <= tune([1.7e308, -1.7e308, 1e200], [1, 0, 1], FBeta(1), rule=r).score <= 1


def test_platt_stays_finite_and_never_turns_scores_round():
    apart = Platt.fit(Steps.of([3.0, 2.0, -2.0, -3.0], [1, 1, 0, 0]))
    assert 0 < apart.slope < 10
    backward = Platt.fit(Steps.of([3.0, 2.0, -2.0, -3.0], [0, 0, 1, 1]))
    assert backward.slope == 0
    assert Platt.fit(Steps.of([1.0, 1.0], [1, 0]))([1.0]) == pytest.approx(0.5)
    for y in ([0, 0], [1, 1]):
        assert 0 < Platt.fit(Steps.of([2.0, 1.0], y))([1.5])[0] < 1
    assert Platt.fit(Steps.of([1e9, -1e9, 1e-9], [1, 0, 1]))([1e12]).tolist() == [1.0]


# Constraints


def test_constraints_take_metrics_specs_and_several():
    rng = np.random.default_rng(3)
    z, y = calibrated(500, rng)
    asked = {Recall(): 0.8, "precision": 0.3, "fbeta:beta=2": 0.5}
    cut = tune(z, y, Precision(), subject_to=asked)
    assert all(metric(m)(cut.counts) >= v for m, v in asked.items())


def test_budget_counts_weight_and_prevalence():
    s, y = [0.9, 0.8, 0.7, 0.1], [1, 0, 1, 0]
    assert tune(s, y, Recall(), budget=2).n_positive == 1  # the second row brings no recall
    assert tune(s, y, Recall(), budget=3).n_positive == 3
    assert tune(s, y, Recall(), [2, 1, 1, 1], budget=3).n_positive == 1
    # at a rate of 0.1 a positive stands for 0.2 rows, a negative for 1.8: three rows are 2.2 alerts
    assert tune(s, y, Recall(), budget=2.2, prevalence=0.1).n_positive == 3
    assert tune(s, y, Recall(), budget=2.1, prevalence=0.1).n_positive == 1


@pytest.mark.parametrize(
    ("call", "says"),
    [
        ({"subject_to": {"precision": 0.9}}, r"No cut has precision ≥ 0.9: precision reaches 0.5\. Ask"),
        (
            {"subject_to": {"recall": 1, "precision": 0.6}},
            "recall ≥ 1 and precision ≥ 0.6: recall reaches .* rest is met|precision reaches 0.5",
        ),
        ({"subject_to": {"recall": 1}, "budget": 2}, "recall reaches 0.5.*, alerts go down to 4 while the rest"),
        ({"subject_to": {"nonsense": 1}}, "Unknown metric 'nonsense'"),
        ({"subject_to": {"recall": "most"}}, "least recall must be a finite number; got 'most'"),
        ({"subject_to": {"recall": math.nan}}, "finite number; got nan"),
        ({"budget": -1}, "zero or more; got -1"),
        ({"budget": math.inf}, "budget must be a finite number"),
    ],
)
def test_constraints_that_cannot_be(call, says):
    with pytest.raises(ValueError, match=says):
        tune([0.9, 0.8, 0.7, 0.1], [0, 1, 0, 1], FBeta(1), **call)


def test_the_nearest_value_can_be_met():
    s, y = np.arange(7.0)[::-1], [0, 1, 0, 1, 1, 0, 0]
    with pytest.raises(ValueError, match="reaches") as error:
        tune(s, y, FBeta(1), subject_to={"precision": 0.99})
    nearest = float(str(error.value).split("reaches ")[1].split(". ")[0])
    assert Precision()(tune(s, y, FBeta(1), subject_to={"precision": nearest}).counts) >= nearest


def test_subject_to_is_a_mapping():
    with pytest.raises(TypeError, match="maps metrics to values"):
        tune([0.9, 0.1], [1, 0], FBeta(1), subject_to="recall")


# Another prevalence


def test_prevalence_is_the_same_as_drawing_rows_at_that_rate():
    rng = np.random.default_rng(0)
    y = rng.random(20_000) < 0.3
    s = rng.normal(size=y.size) + 2 * y
    keep = ~y | (rng.random(y.size) < 0.05)
    rate = y[keep].mean()
    drawn, moved = tune(s[keep], y[keep], FBeta(1)), tune(s, y, FBeta(1), prevalence=rate)
    assert moved.score == pytest.approx(drawn.score, abs=0.03)
    assert moved.value == pytest.approx(drawn.value, abs=0.3)
    assert moved.value > tune(s, y, FBeta(1)).value + 0.3
    assert moved.counts.prevalence == pytest.approx(rate)
    assert moved.prevalence == rate


def two_normals(n, rate, rng, d=2.0):
    y = rng.random(n) < rate
    x = rng.normal(size=n) + d * y
    return x * d - d * d / 2 + log_odds(rate), y  # the log odds of this population


@pytest.mark.parametrize(
    ("m", "near"),
    [
        (Cost(fp=1, fn=5), 1e-9),
        (metric("accuracy"), 1e-9),
        (metric("balanced-accuracy"), 1e-9),
        (FBeta(1), 0.12),
        (FBeta(2), 0.12),
        (MCC(), 0.4),
    ],
    ids=str,
)
def test_shift_in_closed_form(m, near):
    """Where δ does not hang on the classifier, shift moves the odds exactly; elsewhere it comes near."""
    rng = np.random.default_rng(0)
    z, y = two_normals(400_000, 0.2, rng)
    here = tune(expit(z), y, m, rule="plugin:calibrate=0")
    there = here.shift(0.1)
    if near < 1e-6:
        rate = float(here.counts.prevalence)
        delta = [m.best_cut(c) for c in (here.counts, here.counts.at_prevalence(0.1))]
        by = log_odds(rate) - log_odds(0.1) + log_odds(delta[1]) - log_odds(delta[0])
        assert log_odds(there.value) == pytest.approx(log_odds(here.value) + by, abs=1e-9)
    resolved = tune(expit(z), y, m, rule="plugin:calibrate=0", prevalence=0.1)
    assert log_odds(there.value) == pytest.approx(log_odds(resolved.value), abs=max(near, 0.05))
    best = tune(expit(z), y, m, prevalence=0.1).score
    assert best - (0.006 if m == MCC() else 0.004) <= there.score <= best + 1e-9
    assert here.shift(float(here.counts.prevalence)).value == pytest.approx(here.value)
    logits = tune(z, y, m, rule="plugin").shift(0.1)  # by the slope that Platt scaling finds, 1
    assert logits.value == pytest.approx(log_odds(there.value), abs=0.1)


def test_shift_says_what_it_lacks():
    with pytest.raises(ValueError, match="tuned for a metric"):
        Threshold(0.5, 0.8, 3).shift(0.1)
    cut = Threshold.from_dict(tune([3.0, 1.0, 2.0, -1.0], [1, 0, 1, 0], Cost(), kind="score").to_dict())
    with pytest.raises(ValueError, match="how the log odds rise with the score is not known; give slope="):
        cut.shift(0.1)
    logits = Threshold.from_dict(tune([3.0, 1.0, 2.0, -1.0], [1, 0, 1, 0], Cost(), kind="logit").to_dict())
    assert logits.shift(0.1).value == cut.shift(0.1, slope=1).value
    assert cut.shift(0.1, slope=1).value == pytest.approx(cut.value + log_odds(0.5) - log_odds(0.1))
    with pytest.raises(ValueError, match="strictly between 0 and 1"):
        cut.shift(1.5)
    all_of_them = tune([0.5, 0.5], [1, 0], Recall())
    assert all_of_them.shift(0.2).value == -math.inf
