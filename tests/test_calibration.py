"""Calibrations: what they find, what outlying scores do to them, which one is chosen, and rules that rest on them."""

import json
import math

import numpy as np
import pytest
from scipy.special import expit, logit
from sklearn.isotonic import IsotonicRegression

from fbeta import MCC, Confusion, Cost, Decision, FBeta, tune
from fbeta.decisions import Calibrator, Platt, Steps, calibrate
from fbeta.decisions.calibration import LabelledRows, fit_platt
from fbeta.decisions.calibration_choice import Beta, Isotonic, deal, fit_beta, fit_isotonic, log_loss
from fbeta.decisions.shared_calibration import calibrate_together, fit_lines


def drawn(n, curve, seed=0):
    rng = np.random.default_rng(seed)
    z = rng.normal(-2, 2, n)
    return z, rng.random(n) < expit(curve(z))


def known(z, y, parts=1000, kind="logit"):
    return LabelledRows.of(Steps.of(z, y, kind=kind), parts)


def table(outlying, seed, n=4000, positives=60):
    """Few positives, scores that say little, and some negatives far above all others."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) < positives
    z = rng.normal(size=n) + y - 0.5 + logit(positives / n)
    z[n - outlying :] += 8
    return z, y


def test_beta_calibration_finds_its_two_slopes():
    z, y = drawn(200_000, lambda z: 0.5 * z + 1.0 * np.logaddexp(0, z) - 0.3)  # slopes ½ and 1½
    found = fit_beta(known(z, y))
    assert (found.slope, found.upper, found.offset) == pytest.approx((0.5, 1.5, -0.3), abs=0.1)
    of_probabilities = fit_beta(known(expit(z), y, kind="probability"))
    np.testing.assert_allclose(of_probabilities(expit(z[:99])), found(z[:99]), atol=1e-3)


def test_isotonic_is_the_one_of_scikit_learn():
    z, y = drawn(900, lambda z: z)
    steps = Steps.of(z, y, kind="logit")
    found = fit_isotonic(LabelledRows.of(steps, 10**6))
    peer = IsotonicRegression().fit(z, y).predict(z)
    # Ours draws each pool to the share of all rows by one row, and then lets none fall.
    pools = [peer == level for level in np.unique(peer)]
    shares = [(y[pool].sum() + y.mean()) / (pool.sum() + 1) for pool in pools]
    np.testing.assert_allclose(expit(found.odds), np.maximum.accumulate(shares), atol=1e-9)
    np.testing.assert_allclose(found.at, [z[pool].mean() for pool in pools])


@pytest.mark.parametrize(
    ("curve", "name"),
    [(lambda z: z, "platt"), (lambda z: 0.2 * z + 2.5 * np.logaddexp(0, z) - 1, "beta"), (np.floor, "isotonic")],
)
def test_the_form_that_rows_ask_for_is_chosen(curve, name):
    z, y = drawn(60_000, lambda z: 3 * curve(z / 3) if name == "isotonic" else curve(z))
    found = calibrate(Steps.of(z, y, kind="logit"))
    losses = {type(fit).__name__.lower(): log_loss(known(z, y), fit) for fit in (Platt.fit(Steps.of(z, y)), found)}
    assert type(found).__name__.lower() == name or losses["platt"] < losses[type(found).__name__.lower()] + 5
    assert np.abs(found(z) - expit(3 * np.floor(z / 3) if name == "isotonic" else curve(z))).mean() < 0.02


def test_folds_are_all_rows_once_and_the_same_every_time():
    z, y = drawn(500, lambda z: z)
    rows = known(np.round(z), y)
    folds = deal(rows)
    assert np.allclose(sum(held.hit for _, held in folds), rows.hit)
    assert np.allclose(sum(held.miss for _, held in folds), rows.miss)
    for learn, held in folds:
        np.testing.assert_allclose(learn.hit + held.hit, rows.hit)
        assert 0.1 < held.hit.sum() / rows.hit.sum() < 0.35
    assert all(np.array_equal(a.hit, b.hit) for (_, a), (_, b) in zip(folds, deal(rows), strict=True))


@pytest.mark.parametrize("share", [0.0, 0.01, 0.05])
def test_outlying_scores_do_not_bend_the_line_for_all(share):
    """Negatives far above all others: scores that count no more than the last with company keep the slope."""
    n = 20_000
    z, y = drawn(n, lambda z: z)
    rng = np.random.default_rng(1)
    far = rng.choice(np.flatnonzero(~y), round(share * n), False)
    z[far] = rng.normal(12, 1, far.size)
    rows = known(z, y)
    bulk = np.setdiff1d(np.arange(n), far)
    robust, plain = fit_platt(rows, rows.limits), fit_platt(rows)
    chosen = calibrate(Steps.of(z, y, kind="logit"))
    truth = expit(z[bulk])
    error = {name: np.abs(c(z[bulk]) - truth).mean() for name, c in [("r", robust), ("p", plain), ("c", chosen)]}
    assert error["c"] < 0.04
    if share:
        assert plain.slope < 0.75
        assert error["c"] < 0.7 * error["p"]
        assert chosen(13.0) < 0.99


@pytest.mark.parametrize("outlying", [1, 2, 5])
def test_a_few_outlying_scores_do_not_fool_a_rule(outlying):
    """MCC with 60 positives: Platt scaling of all scores called nothing in 23 to 30 of 30 draws, and had 0 to 0.03."""
    nothing, scores = {"plugin": 0, "shrunk": 0, "exact": 0}, {"plugin": [], "shrunk": [], "exact": []}
    for seed in range(6):
        z, y = table(outlying, seed)
        fresh, _ = table(0, 100 + seed)
        for rule in nothing:
            cut = tune(expit(z), y, MCC(), rule=rule, kind="probability")
            called = expit(fresh) >= cut.value
            nothing[rule] += not called.any()
            scores[rule].append(MCC()(Confusion.from_predictions(called * 1.0, y)))
    assert nothing["plugin"] + nothing["shrunk"] <= 1
    assert np.mean(scores["plugin"]) > np.mean(scores["exact"]) - 0.02
    assert np.mean(scores["shrunk"]) > np.mean(scores["exact"]) - 0.02


def test_a_rule_takes_nothing_where_the_evidence_does():
    """A costly false alarm, and scores that say nothing: the best cut is above all rows, and stays there."""
    rng = np.random.default_rng(0)
    y = rng.random(2000) < 0.1
    for metric in (Cost(fp=9, fn=1), MCC()):
        cut = tune(rng.normal(size=2000), y, metric, rule="plugin", kind="score")
        assert cut.score <= 0.05
    assert math.isinf(tune(rng.random(2000), y, Cost(fp=9, fn=1), rule="plugin", kind="probability").value)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e6])
@pytest.mark.parametrize("made", [fit_isotonic, fit_beta, lambda rows: fit_platt(rows, rows.limits)])
def test_curves_rise_everywhere_and_far_beyond(made, scale):
    z, y = drawn(3000, lambda z: z)
    curve = made(known(scale * z, y))
    x = scale * np.concatenate([np.sort(z), [1e3, 1e6]])
    assert (np.diff(curve.log_odds(np.unique(x))) > 0).all()
    assert np.array_equal(curve.log_odds([np.inf, -np.inf]), [np.inf, -np.inf])
    higher = curve.raised(0.7)
    np.testing.assert_allclose(higher.log_odds(x) - curve.log_odds(x), 0.7)
    assert Calibrator.from_dict(json.loads(json.dumps(curve.to_dict()))) == curve


def test_few_rows_one_class_and_equal_scores():
    for y in ([0, 0, 0], [1, 1, 1], [1, 0, 1]):
        for scores in ([0.1, 0.2, 0.3], [0.5, 0.5, 0.5]):
            p = calibrate(Steps.of(scores, y, kind="probability"))(scores)
            assert ((p > 0) & (p < 1)).all()


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ({"name": "beta", "slope": -1, "upper": 1, "offset": 0}, "no two rising slopes"),
        ({"name": "isotonic", "at": [0, 1], "odds": [1, 0]}, "no rising curve"),
        ({"name": "isotonic", "at": [0, 1], "odds": [0, float("nan")]}, "no rising curve"),
        ({"name": "platt", "slope": 1, "offset": 0, "low": 0}, "no two limits"),
    ],
)
def test_what_is_no_calibration(data, says):
    with pytest.raises(ValueError, match=says):
        Calibrator.from_dict(data)
    d = Decision.fit([0.9, 0.1], [1, 0], "f1", kind="logit", rule="exact").to_dict() | {"calibration": [data]}
    with pytest.raises(ValueError, match=says):
        Decision.from_dict(d)


def test_decisions_keep_whatever_was_chosen():
    z, y = drawn(4000, np.floor)
    d = Decision.fit(z, y, FBeta(1), kind="score")
    again = Decision.from_dict(json.loads(json.dumps(d.to_dict())))
    assert again.calibration == d.calibration
    assert np.array_equal(again.probability(z), d.probability(z))
    assert isinstance(fit_beta(known(-z, ~y)), Beta | Platt)
    assert isinstance(fit_isotonic(known(z, y)), Isotonic)


def test_few_positives_are_warned_about_in_the_same_words():
    z, y = table(0, 0, positives=7)
    said = "Only 7 positives: the best cut on such rows is mostly chance; bring more rows."
    d = Decision.fit(z, y, "f1", kind="logit")
    assert d.cut.warning == said
    assert said in d.explain()
    assert said in d.adapt(z).remark


def test_lines_are_drawn_to_a_common_one_as_far_as_the_columns_are_alike():
    """Known lines: slopes 0.5 ± 0.05, offsets that differ by 0.3; half of the columns have few positives."""
    rng = np.random.default_rng(0)
    slopes, offsets = rng.normal(0.5, 0.05, 30), rng.normal(-1, 0.3, 30)
    rows = [known(*drawn(2000 if k % 2 else 60, lambda z, k=k: slopes[k] * z + offsets[k], k), 256) for k in range(30)]
    together, alone = fit_lines(rows), [fit_platt(r) for r in rows]
    error = [
        np.mean([abs(line.slope - slope) for line, slope in zip(lines[::2], slopes[::2], strict=True)])
        for lines in (together, alone)
    ]
    assert error[0] < 0.07
    assert error[0] < error[1] / 2
    stayed = [abs(line.slope - own.slope) for line, own in zip(together[1::2], alone[1::2], strict=True)]
    assert np.mean(stayed) < 0.03  # those with many rows


def test_columns_that_share_a_line_may_hold_anything():
    z, y = drawn(300, lambda z: z, 0)
    columns = [(z, y), (z, np.zeros(300)), (np.zeros(300), y), (-z, y), (z * 1e6, y)]
    curves = calibrate_together([Steps.of(*c, kind="logit") for c in columns])
    for curve, (s, _) in zip(curves, columns, strict=True):
        assert np.isfinite(curve.log_odds(s)).all()
        curve.check()
    assert curves[1](z).mean() < 0.05
    assert calibrate_together([Steps.of(z, y)]) == [calibrate(Steps.of(z, y))]


def test_a_calibration_cannot_take_a_name_over():
    with pytest.raises(ValueError, match="A calibration named 'platt' exists already"):
        type("Platt", (Calibrator,), {})
    assert Calibrator.from_dict({"slope": 1.0, "offset": 0.0}) == Platt(1.0, 0.0)
