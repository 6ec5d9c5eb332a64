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

LEVELS = [0.0, 0.25, 0.5, 1.0]


def columns(n=400, k=3, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.random((n, k)) < [0.5, 0.2, 0.05][:k]
    z = rng.normal(size=(n, k)) + y * [1.0, 2.0, 3.0][:k] - 1
    return 1 / (1 + np.exp(-z)), y


@pytest.mark.parametrize("rule", rules.names())
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
