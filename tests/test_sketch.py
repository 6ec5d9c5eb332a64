"""The sketch: merged in any order it is the same, and it loses no more than it says."""

import json
import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit

from catalogue import METRICS, tune
from fbeta import FBeta, metric
from fbeta.decisions import Sketch

RISING = [m for m in METRICS if type(m).__name__ != "Custom"]
row = st.tuples(st.floats(0, 1, width=32), st.booleans())
part = st.lists(row, min_size=1, max_size=30)


def read(rows):
    s, y = zip(*rows, strict=True)
    return np.array(s), np.array(y)


@settings(max_examples=60)
@given(parts=st.lists(part, min_size=3, max_size=3), bins=st.sampled_from([8, 64, 4096]))
def test_merging_is_associative_and_commutative(parts, bins):
    a, b, c = (Sketch(bins).add(*read(p)) for p in parts)
    whole = Sketch(bins).add(*read([r for p in parts for r in p]))
    for other in (a.merge(b).merge(c), a.merge(b.merge(c)), c.merge(a, b), a + b + c, Sketch(bins) + c + b + a):
        np.testing.assert_array_equal(other.counts, whole.counts)


@settings(max_examples=400 if os.environ.get("CI") else 150)
@given(rows=part, bins=st.sampled_from([8, 64, 4096]), m=st.sampled_from(RISING))
def test_no_more_is_lost_than_it_says(rows, bins, m):
    s, y = read(rows)
    sketch = Sketch(bins).add(s, y)
    cut, best, lost = sketch.tune(m), tune(s, y, m).score, sketch.lost(m)
    assert 0 <= best - cut.score + 1e-9
    assert best - cut.score <= lost + 1e-9
    # The cut is the sketch's own, and on the scores themselves it counts what the sketch says.
    assert cut.decide(s).sum() == cut.n_positive
    assert tune(s, y, m, rule=f"constant:at={cut.value!r}").score == pytest.approx(cut.score, abs=1e-9)


def test_by_default_hardly_anything_is_lost():
    rng = np.random.default_rng(0)
    y = rng.random(300_000) < 0.02
    z = rng.normal(size=y.size) + 2 * y - 3
    for s, sketch in ((expit(z), Sketch()), (z, Sketch(kind="logit"))):
        for half in np.array_split(np.arange(y.size), 7):
            sketch = sketch.add(s[half], y[half])
        for m in (FBeta(0.5), FBeta(2), metric("mcc")):
            best = tune(s, y, m)
            cut = sketch.tune(m)
            assert cut.score == pytest.approx(best.score, abs=1e-3)
            assert best.score - cut.score <= sketch.lost(m) < 0.01


@pytest.mark.parametrize("rule", ["plugin", "shrunk", "constant"])
def test_rules_constraints_and_prevalence_work_on_a_sketch(rule):
    rng = np.random.default_rng(0)
    z = rng.normal(size=20_000) * 2 - 3
    y = rng.random(z.size) < expit(z)
    s, w = expit(z), rng.choice([1.0, 2.0], z.size)
    sketch = Sketch().add(s, y, w)
    cut, exact = sketch.tune(FBeta(2), rule=rule), tune(s, y, FBeta(2), w, rule=rule)
    assert cut.score == pytest.approx(exact.score, abs=2e-3)
    assert cut.decide(s).sum() == cut.n_positive
    assert cut.interval.score == pytest.approx(exact.interval.score, abs=5e-3)
    if rule != "constant":
        held = sketch.tune(FBeta(1), rule=rule, subject_to={"recall": 0.9}, prevalence=0.05)
        assert held.counts.tpr >= 0.9 - 1e-12
    assert sketch.tune("recall", budget=500).counts.tp <= 500


def test_rules_meet_constraints_at_the_ends_of_bins():
    """The end nearest to a rule's wish, not the wish, is what constraints are about."""
    rng = np.random.default_rng(1)
    met = 0
    for _ in range(150):
        z = rng.normal(size=60) * 2 - 1
        y = rng.random(60) < expit(z)
        sketch = Sketch(12, low=-4, high=4).add(expit(z), y)
        for rule in ("shrunk", "constant:at=0.4"):
            try:
                cut = sketch.tune(FBeta(1), rule=rule, subject_to={"precision": 0.7})
            except ValueError:
                continue
            met += 1
            assert metric("precision")(cut.counts) >= 0.7 - 1e-9
    assert met > 100


def test_a_sketch_travels_as_json():
    sketch = Sketch(100, -10, 10).add([0.1, 0.5, 0.9], [0, 1, 1], [1, 2, 0.5])
    back = Sketch.from_dict(json.loads(json.dumps(sketch.to_dict(), allow_nan=False)))
    np.testing.assert_array_equal(back.counts, sketch.counts)
    assert back.tune(FBeta(1)) == sketch.tune(FBeta(1))


def test_memory_is_constant():
    sketch = Sketch()
    size = sketch.counts.nbytes
    assert sketch.add(np.random.default_rng(0).random(100_000), np.arange(100_000) % 2).counts.nbytes == size < 200_000


def test_a_metric_that_falls_has_no_bound():
    sketch = Sketch().add([0.1, 0.5, 0.9], [0, 1, 1])
    assert np.isnan(sketch.lost(lambda tp, fp, fn, tn: fp / (tp + fp + fn + tn)))
    assert np.isnan(sketch.lost(lambda tp, fp, fn, tn: tp * np.nan))


def test_bad_input():
    with pytest.raises(ValueError, match="bins must be"):
        Sketch(2)
    with pytest.raises(ValueError, match="bins must be"):
        Sketch(100.0)
    written = Sketch().add([0.5], [1]).to_dict()
    for damaged in ({"bins": 8}, {**written, "filled": [9999]}, {**written, "counts": [[1.0]]}):
        with pytest.raises(ValueError, match=r"not what Sketch\.to_dict wrote|counts must be"):
            Sketch.from_dict(damaged)
    empty = {"filled": [*written["filled"], 0], "counts": [[*part, 0.0] for part in written["counts"]]}
    for damaged in ({"bins": 10**12}, {"bins": float("inf")}, {"filled": [10**30]}, {"low": 10**400}, empty):
        with pytest.raises(ValueError, match=r"not what Sketch\.to_dict wrote"):
            Sketch.from_dict(written | damaged)
    for part, x in ((0, 1e308), (0, 3.0), (2, 0.0), (3, 1e-320)):
        counts = [[x] if k == part else list(row) for k, row in enumerate(written["counts"])]
        with pytest.raises(ValueError, match="weights that no rows have"):
            Sketch.from_dict(written | {"counts": counts})
    with pytest.raises(ValueError, match="low < high"):
        Sketch(low=3, high=-3)
    with pytest.raises(ValueError, match="same bins merge"):
        Sketch(8).merge(Sketch(16))
    with pytest.raises(ValueError, match=r"Sketch\(kind='logit'\)"):
        Sketch().add([3.0], [1])
    with pytest.raises(ValueError, match="no rows"):
        Sketch().tune(FBeta(1))
    with pytest.raises(ValueError, match="NaN"):
        Sketch().add([np.nan], [1])
    with pytest.raises(ValueError, match="counts must be"):
        Sketch(8, counts=np.ones((4, 9)))
