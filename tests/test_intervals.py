"""Intervals of cuts: they are intervals whatever the rows, and hold the population's score as often as they say."""

import math

import numpy as np
import pytest
from cuts_coverage import Population
from hypothesis import example, given, settings
from hypothesis import strategies as st

from catalogue import tune
from fbeta import MCC, FBeta, Kappa, metric
from fbeta.decisions import Sketch, rules

METRICS = ["fbeta:beta=1", "fbeta:beta=2", "mcc", "jaccard", "gmean", "kappa", "accuracy", "precision", "recall"]


@st.composite
def rows(draw):
    """Few rows or many, with ties, weights that differ by 10¹², and perhaps one class only."""
    n = draw(st.sampled_from([1, 2, 3, 5, 30, 300]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    y = rng.random(n) < draw(st.sampled_from([0.0, 0.05, 0.3, 0.5, 1.0]))
    s = rng.normal(size=n).round(draw(st.sampled_from([0, 1, 6]))) + y * draw(st.sampled_from([-1.0, 0.0, 1.0, 5.0]))
    sizes = draw(
        st.sampled_from([[1], [0, 1], [0, 1, 2, 1e6, 1e-6], [1e-300, 1e-310], [1e150], ["positives", "negatives"]])
    )
    if sizes[0] == "positives":  # a class that weighs next to nothing beside the other
        return s, y, np.where(y == draw(st.booleans()), draw(st.sampled_from([5e-324, 1e-300, 1e-90])), 1.0)
    return s, y, rng.choice(np.array(sizes, dtype=float), n) if sizes != [1] else None


LIMITS = st.fixed_dictionaries(
    {},
    optional={
        "subject_to": st.dictionaries(
            st.sampled_from(["recall", "precision", "specificity", "accuracy"]), st.sampled_from([0, 0.1, 0.5, 1.0])
        ),
        "budget": st.sampled_from([0, 0.5, 1, 10, 1000]),
    },
)


@pytest.mark.parametrize("rule", rules.names())
@settings(max_examples=60, deadline=None)
@given(
    rows(),
    st.sampled_from(METRICS),
    st.sampled_from([None, 1e-9, 1e-4, 0.01, 0.5, 0.9, 1 - 1e-6]),
    LIMITS,
    st.booleans(),
)
@example((np.array([0.8, 0.2, 1.8]), np.array([0, 1, 0]), np.array([1e90, 1e-300, 1e90])), "mcc", 0.9, {}, False)
def test_an_interval_is_one_and_holds_its_own_score(rule, drawn, name, prevalence, limits, sketched):
    s, y, w = drawn
    options = {"rule": rule, "prevalence": prevalence, **limits}
    try:
        if sketched:
            cut = Sketch(kind="logit").add(s, y, w).tune(metric(name), **options)
        else:
            cut = tune(s, y, metric(name), w, kind="logit", **options)
    except ValueError:  # such as no weight at all, or limits that no cut meets
        return
    for metric_of, least in limits.get("subject_to", {}).items():
        assert float(metric(metric_of)(cut.counts)) >= least - 1e-9
    if "budget" in limits:
        assert cut.counts.tp + cut.counts.fp <= limits["budget"] * (1 + 1e-9) + 1e-9
    low, high = cut.interval.score
    assert low <= high
    smallest = -1.0 if name in ("mcc", "kappa") else 0.0
    if not math.isnan(cut.score):
        assert smallest - 1e-12 <= low <= cut.score + 1e-12
        assert cut.score - 1e-12 <= high <= 1 + 1e-12
    below, above = cut.interval.cut
    assert below <= above


def coverage(population, m, n, rule, runs, seed=0):
    """How often the interval holds the score that the chosen cut has in the population."""
    rng = np.random.default_rng(seed)
    return np.mean([population.covers(population.draw(rng, n), m, rule) for _ in range(runs)])


CASES = [
    (m, d, n, rate)
    for m in (FBeta(0.5), FBeta(1), FBeta(2), MCC())
    for d in (1.0, 2.0)
    for n, rate in ((100, 0.1), (400, 0.05), (200, 0.25))  # 10, 20 and 50 positives
]


@pytest.mark.parametrize(("m", "d", "n", "rate"), CASES[::12], ids=str)
def test_interval_covers_the_population_score(m, d, n, rate):
    assert 0.90 <= coverage(Population(d, rate), m, n, "exact", 200) <= 0.98


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["exact", "shrunk", "plugin"])
@pytest.mark.parametrize(("m", "d", "n", "rate"), CASES, ids=str)
def test_interval_covers_the_population_score_everywhere(m, d, n, rate, rule):
    assert 0.90 <= coverage(Population(d, rate), m, n, rule, 500) <= 0.985


@pytest.mark.parametrize("prevalence", [0.01, *(pytest.param(p, marks=pytest.mark.slow) for p in (None, 0.5))])
@pytest.mark.parametrize(("grid", "weights"), [(0.5, "none"), (0.0, "rows"), (0.0, "classes"), (0.5, "both")])
def test_interval_covers_with_prevalence_weights_and_ties(prevalence, grid, weights):
    population = Population(1.5, grid=grid, weights=weights, prevalence=prevalence)
    assert coverage(population, FBeta(1), 300, "exact", 100) >= 0.87


@pytest.mark.slow
@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    st.builds(
        Population,
        st.sampled_from([1.0, 1.5, 2.0]),
        st.sampled_from([0.1, 0.25]),
        st.sampled_from([0.0, 0.1, 0.5]),
        st.sampled_from(["none", "rows", "classes", "both"]),
        st.sampled_from([None, 0.01, 0.1, 0.5]),
    ),
    st.sampled_from([FBeta(0.5), FBeta(1), FBeta(2), MCC(), Kappa()]),
    st.sampled_from([200, 1000]),
    st.sampled_from(["exact", "shrunk"]),
)
@example(Population(1.5, prevalence=0.01), FBeta(2), 200, "exact")
def test_interval_covers_in_drawn_populations(population, m, n, rule):
    assert coverage(population, m, n, rule, 200) >= 0.87


@pytest.mark.slow
@pytest.mark.parametrize("d", [3.5, 5.0])
def test_interval_errs_on_the_wide_side_where_classes_are_all_but_apart(d):
    """With ten positives and a score near 1 the four cells cannot do better than a wide interval."""
    assert 0.90 <= coverage(Population(d), FBeta(1), 100, "exact", 400)


def test_interval_shrinks_with_rows_and_holds_the_score_of_other_rows():
    rng = np.random.default_rng(0)
    widths = []
    for n in (200, 20_000, 2_000_000):
        y = rng.random(n) < 0.2
        cut = tune(rng.normal(size=n) + 2 * y, y, FBeta(1))
        low, high = cut.interval.score
        assert low < cut.score
        below, above = cut.interval.cut
        assert below <= cut.value <= above
        widths.append((high - low, above - below))
    assert widths[0][0] > 5 * widths[1][0] > 25 * widths[2][0]
    assert widths[0][1] > widths[1][1] > widths[2][1]


def test_interval_under_weights_constraints_and_prevalence():
    rng = np.random.default_rng(0)
    y = rng.random(500) < 0.2
    s = rng.normal(size=500) + 2 * y
    plain, heavy = tune(s, y, FBeta(1)), tune(s, y, FBeta(1), np.full(500, 10.0))
    np.testing.assert_allclose(plain.interval.score, heavy.interval.score, atol=0.01)  # weight is no evidence
    rough = tune(s, y, FBeta(1), rng.choice([0.1, 10.0], 500)).interval.score
    assert rough[1] - rough[0] > 1.2 * (plain.interval.score[1] - plain.interval.score[0])
    cut = tune(s, y, metric("precision"), subject_to={"recall": 0.9})
    assert cut.interval.cut[1] <= np.quantile(s[y], 0.12)
    moved = tune(s, y, FBeta(1), prevalence=0.02)
    assert moved.interval.score[0] < moved.score < plain.score
    assert all(0 <= end <= 1 for end in (*moved.interval.score, *plain.interval.score))


@pytest.mark.parametrize("rule", rules.names())
@pytest.mark.parametrize("y", [[0, 0, 0], [1, 1, 1], [1, 0, 1]])
@pytest.mark.parametrize("s", [[0.5, 0.5, 0.5], [0.1, 0.2, 0.3]])
def test_interval_of_hardly_any_rows(s, y, rule):
    low, high = tune(s, y, FBeta(1), rule=rule).interval.score
    assert 0 <= low <= high <= 1
