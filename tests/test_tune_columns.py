"""Cuts of several columns, each for itself and together."""

import itertools
import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalogue import tune
from fbeta import MCC, Accuracy, Confusion, Cost, FBeta, Jaccard, Recall
from fbeta.decisions import rules
from fbeta.decisions.rules.pooled import draw_together

LEVELS = [0.0, 0.25, 0.5, 1.0]


def columns(n=400, k=3, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.random((n, k)) < [0.5, 0.2, 0.05][:k]
    z = rng.normal(size=(n, k)) + y * [1.0, 2.0, 3.0][:k] - 1
    return 1 / (1 + np.exp(-z)), y


@pytest.mark.parametrize("rule", sorted({*rules.names()} - {"pooled"}))  # which is there to see all of them
def test_macro_tunes_each_column_for_itself(rule):
    s, y = columns()
    w = np.random.default_rng(1).random(len(s))
    cut = tune(s, y, FBeta(1), w, rule=rule)
    each = [tune(s[:, k], y[:, k], FBeta(1), w, rule=rule) for k in range(3)]
    assert cut.value.tolist() == [c.value for c in each]
    assert cut.columns == tuple(each)
    assert cut.score == pytest.approx(np.mean([c.score for c in each]))
    assert cut.n_positive == sum(c.n_positive for c in each) == cut.decide(s).sum()
    low, high = cut.interval.score
    assert low < cut.score
    assert low < high
    assert ((cut.interval.cut[0] <= cut.value) & (cut.value <= cut.interval.cut[1])).all() or rule != "exact"


def test_macro_takes_a_prevalence_for_all_or_for_each():
    s, y = columns()
    one, each = tune(s, y, FBeta(1), prevalence=0.1), tune(s, y, FBeta(1), prevalence=[0.1, 0.1, 0.3])
    assert one.value[:2].tolist() == each.value[:2].tolist()
    assert one.value[2] != each.value[2]
    with pytest.raises(ValueError, match=r"one number, or one per column; got \(2,\) for 3 columns"):
        tune(s, y, FBeta(1), prevalence=[0.1, 0.2])


def test_warnings_name_the_column():
    s, y = columns(200)
    assert "Column 2: Only" in tune(s, y, FBeta(1)).warning


@settings(max_examples=300 if os.environ.get("CI") else 80)
@given(
    data=st.integers(1, 6).flatmap(
        lambda n: st.lists(
            st.lists(
                st.tuples(st.sampled_from(LEVELS), st.booleans(), st.sampled_from([0.0, 1.0, 2.0])),
                min_size=3,
                max_size=3,
            ),
            min_size=n,
            max_size=n,
        )
    ),
    m=st.sampled_from([FBeta(0.5), FBeta(2), Jaccard(), Accuracy(), Cost(fp=1, fn=3)]),
    weighted=st.booleans(),
)
def test_micro_equals_brute_force_for_ratios_of_linear_forms(data, m, weighted):
    s, y, w = np.moveaxis(np.array(data, dtype=float), -1, 0)
    w = w if weighted else None
    cut = tune(s, y, m, w, average="micro")

    def pooled(cuts):
        return m(Confusion.from_predictions((s >= np.array(cuts)) * 1.0, y, w))

    best = max(map(pooled, itertools.product([*LEVELS, 2.0], repeat=3)))
    assert cut.score == pytest.approx(best, abs=1e-9)
    assert m(Confusion.from_predictions(cut.decide(s) * 1.0, y, w)) == pytest.approx(best, abs=1e-9)


@pytest.mark.parametrize("m", [MCC(), FBeta(1)], ids=str)
def test_no_single_cut_of_micro_can_be_moved_to_advantage(m):
    s, y = columns(60)
    cut = tune(s, y, m, average="micro", subject_to={"recall": 0.7}, budget=80)
    assert Recall()(cut.counts) >= 0.7
    assert cut.n_positive <= 80
    for k in range(3):
        for value in s[:, k]:
            cuts = cut.value.copy()
            cuts[k] = value
            c = Confusion.from_predictions((s >= cuts) * 1.0, y)
            meets = Recall()(c) >= 0.7 and c.tp + c.fp <= 80
            assert not meets or m(c) <= cut.score + 1e-9


def test_micro_beats_macro_at_its_own_game_and_the_other_way_round():
    s, y = columns()
    micro, macro = (tune(s, y, FBeta(1), average=a) for a in ("micro", "macro"))
    of_micro = FBeta(1)(Confusion.from_predictions(macro.decide(s) * 1.0, y))
    of_macro = np.mean([FBeta(1)(Confusion.from_scores(s[:, k], y[:, k], micro.value[k])) for k in range(3)])
    assert micro.score > of_micro
    assert macro.score > of_macro
    low, high = micro.interval.score
    assert low < micro.score
    assert high - low < 0.2


@pytest.mark.parametrize("rule", ["plugin", "shrunk", "constant"])
def test_micro_by_other_rules(rule):
    s, y = columns(4000)
    cut = tune(s, y, FBeta(1), rule=rule, average="micro")
    assert cut.value.shape == (3,)
    best = tune(s, y, FBeta(1), average="micro").score
    assert best - (0.2 if rule == "constant" else 0.02) < cut.score <= best
    assert cut.score == pytest.approx(FBeta(1)(Confusion.from_predictions(cut.decide(s) * 1.0, y)))
    with pytest.raises(ValueError, match="constraints|rule='exact'|No cuts were found"):
        tune(s, y, FBeta(1), rule=rule, average="micro", subject_to={"recall": 0.9}, budget=3)


def test_micro_finds_cuts_that_meet_constraints_between_the_corners_of_the_hull():
    """Recall 0.6 within 14 alerts can be had, but at no corner of the merged hull."""
    s = np.array(
        [[1, 3, 2], [1, 3, 0], [2, 3, 0], [1, 0, 1], [0, 0, 2], [2, 2, 0], [0, 3, 2], [0, 2, 3], [1, 2, 0], [1, 1, 1]]
    )
    y = np.array(
        [[0, 0, 1], [1, 0, 1], [0, 1, 1], [0, 0, 1], [1, 0, 1], [0, 0, 0], [0, 0, 1], [1, 1, 0], [0, 1, 0], [0, 1, 0]]
    )
    cut = tune(s, y, FBeta(1), average="micro", subject_to={"recall": 0.6}, budget=14)
    assert Recall()(cut.counts) >= 0.6
    assert cut.n_positive <= 14
    with pytest.raises(ValueError, match="No cuts were found that have recall ≥ 0.6 and at most 3 alerts: .* Ask"):
        tune(s, y, FBeta(1), average="micro", subject_to={"recall": 0.6}, budget=3)


def test_micro_has_no_one_prevalence():
    s, y = columns()
    with pytest.raises(ValueError, match="no one prevalence to shift to"):
        tune(s, y, FBeta(1), average="micro").columns[0].shift(0.1)
    with pytest.raises(ValueError, match="average='macro'"):
        tune(s, y, FBeta(1), average="micro", prevalence=0.1)


def alike(k=12, n=300, positives=6, seed=0, shift=1.5):
    """Columns whose best cuts are nearly the same: logits, and few positives in each."""
    rng = np.random.default_rng(seed)
    y = np.arange(n)[:, None] < np.full(k, positives)
    return rng.normal(y * 2.0 + shift * rng.normal(size=k) * 0.2), y


def test_estimates_are_drawn_as_far_as_their_variances_say():
    """The model it assumes: cuts that vary by 0.3 around a line, seen with an error of their own."""
    rng = np.random.default_rng(0)
    expected, variance = rng.normal(size=400), rng.choice([0.01, 1.0], 400)
    truth = 0.5 + 0.8 * expected + 0.3 * rng.normal(size=400)
    own = truth + np.sqrt(variance) * rng.normal(size=400)
    found, weight = draw_together(own, variance, expected)
    assert weight[variance == 0.01].mean() == pytest.approx(0.9, abs=0.03)
    assert weight[variance == 1.0].mean() == pytest.approx(0.083, abs=0.03)
    error = [np.mean((x - truth) ** 2) for x in (found, own, expected)]
    assert error[0] < 0.1 * error[1]
    assert error[0] < 0.2 * error[2]
    best = (0.09 * own + variance * (0.5 + 0.8 * expected)) / (0.09 + variance)
    assert np.abs(found - best).mean() < 0.03


def test_what_is_certain_stays_and_what_is_chance_goes():
    own, expected = np.array([0.0, 1.0, 5.0]), np.array([0.1, 0.7, 4.0])
    assert draw_together(own, np.zeros(3), expected)[0] == pytest.approx(own, abs=0.1)
    assert draw_together(own, np.full(3, 1e6), expected)[1].tolist() == [0, 0, 0]
    assert draw_together(own, np.full(3, 1e6), own)[0] == pytest.approx(own)  # nothing apart: the plug-in as it is
    assert draw_together(own, np.zeros(3), own)[0].tolist() == own.tolist()
    for few in ([1.0], [1.0, 1.0]):
        assert np.isfinite(draw_together(np.array(few), np.ones(len(few)), np.zeros(len(few)))[0]).all()


def test_pooled_columns_vary_less_and_score_more_in_the_population():
    """Twelve columns of six positives: the population's score is known from many other rows."""
    later, truth = alike(n=20_000, positives=400, seed=99, shift=0.0)
    gain, spread = [], []
    for seed in range(4):
        s, y = alike(seed=seed, shift=0.0)
        exact, pooled = (tune(s, y, FBeta(1), rule=rule).value for rule in ("exact", "pooled"))
        here, there = (
            np.mean(FBeta(1)(Confusion.from_predictions((later >= c) * 1.0, truth, axis=0))) for c in (exact, pooled)
        )
        gain.append(there - here)
        spread.append(np.std(pooled) / np.std(exact))
    assert np.mean(gain) > 0.01
    assert np.mean(spread) < 0.85


def test_pooled_does_not_depend_on_the_order_of_columns_nor_on_where_logits_begin():
    s, y = alike()
    cut, order = tune(s, y, FBeta(1), rule="pooled"), np.random.default_rng(0).permutation(12)
    assert tune(s[:, order], y[:, order], FBeta(1), rule="pooled").value == pytest.approx(cut.value[order])
    moved = tune(3 * s + 2, y, FBeta(1), rule="pooled", kind="logit").value
    assert moved == pytest.approx(3 * cut.value + 2, abs=1e-6)
    p = tune(1 / (1 + np.exp(-s)), y, FBeta(1), rule="pooled").value
    assert np.log(p / (1 - p)) == pytest.approx(cut.value, abs=0.02)  # middles of logits are not those of probabilities
    assert tune(s, y, FBeta(1), np.full(len(s), 7.0), rule="pooled").value == pytest.approx(cut.value, abs=0.2)


def test_a_column_without_positives_is_cut_where_the_others_are():
    s, y = alike()
    cut = tune(s[:, :11], y[:, :11], FBeta(1), rule="pooled")
    y[:, 11] = False
    with_it = tune(s, y, FBeta(1), rule="pooled")
    assert with_it.value[:11] == pytest.approx(cut.value)
    assert with_it.value[11] == pytest.approx(cut.value.mean())
    assert "There are no positives among the rows" in with_it.columns[11].warning
    assert with_it.columns[11].warning.endswith("Its cut is the mean of the other columns' cuts.")
    assert np.isfinite(with_it.columns[11].interval.score).all()
    lone = np.arange(12) == 3
    alone = [tune(s, y & lone, FBeta(1), rule=rule) for rule in ("pooled", "shrunk")]
    assert np.array_equal(alone[0].value, alone[1].value)


def test_without_others_to_learn_from_pooled_is_shrunk():
    s, y = alike(positives=40)
    for few in (s[:, 0], s[:, :1]):
        target = y[:, 0] if few.ndim == 1 else y[:, :1]
        assert np.array_equal(*(tune(few, target, FBeta(2), rule=rule).value for rule in ("pooled", "shrunk")))
    assert np.array_equal(*(tune(s, y, FBeta(2), rule=rule, average="micro").value for rule in ("pooled", "shrunk")))


def test_pooled_cuts_meet_constraints_of_each_column():
    s, y = alike(positives=20)
    cut = tune(s, y, FBeta(1), rule="pooled", subject_to={"recall": 0.9}, budget=200)
    for column in cut.columns:
        assert float(Recall()(column.counts)) >= 0.9
        assert column.n_positive <= 200
    assert tune(s, y, FBeta(1), rule="pooled", prevalence=0.5).value.mean() < cut.value.mean() + 5
