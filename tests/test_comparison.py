"""Comparing methods on a table: honest statistics, shared folds, true words, plain data."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from fbeta import MCC, Confusion, Decision, FBeta, metric
from fbeta.comparison.choosing import chosen, simplest_first
from fbeta.comparison.folder import SplitScores
from fbeta.comparison.gains import Change, Learned, best_losses, defaults
from fbeta.comparison.gains import steps as steps_of
from fbeta.comparison.inference import ByBlocks, ByRows, BySplits, JudgedRows, blocks
from fbeta.comparison.influence import influence, pooled, spread
from fbeta.comparison.judging import held_calls, judge
from fbeta.comparison.methods import Method, baseline_of, methods_for
from fbeta.comparison.parts import load_parts
from fbeta.comparison.plan import Plan, Split
from fbeta.comparison.result import Choice, Comparison, Estimate, NoSkill
from fbeta.comparison.run import compare, fit
from fbeta.comparison.segments import segments
from fbeta.comparison.statistics import corrected_t, holm, mean_interval, reach, student
from fbeta.comparison.verdict import Findings, judged_together, word
from fbeta.learners import Rows, models
from fbeta.learners.training import collapse
from fbeta.report import method_rows
from fbeta.tables import read_frame

pl = pytest.importorskip("polars")
FEW = {"models": ["linear"], "losses": ["tangent"], "seeds": 2, "folds": 2}


def table(n=400, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.random(n) < 0.2
    x = rng.normal(size=(n, 3)) + 1.2 * y[:, None]
    columns = {f"x{i}": x[:, i] for i in range(3)} | {"shop": rng.choice(["a", "b", "c"], n)}
    frame = pl.DataFrame(columns | {"fraud": np.where(y, "yes", "no")})
    return read_frame(frame, "fraud", "yes", name="shops")


@pytest.fixture(scope="module")
def found():
    return compare(table(), metric="fbeta:beta=2", **FEW)


def splits(data, count, folds, rows=None):
    """Every split of a table with its rows (or those of another one) as they are encoded for it."""
    plan = Plan.make(data, FBeta(1), [Method("linear", "bce")], count, folds, 0)
    parts = load_parts(plan.parts, plan, rows or data)
    return [(part.split, part.X) for part in parts]


def timeless(comparison):
    def still(candidate):
        outcomes = tuple(replace(o, seconds=0.0) for o in candidate.outcomes)
        return replace(candidate, outcomes=outcomes)

    return replace(comparison, seconds=0.0, candidates=tuple(still(c) for c in comparison.candidates))


@pytest.mark.parametrize("call", [compare, fit])
def test_a_misspelt_option_is_answered_by_the_one_that_exists(call):
    with pytest.raises(TypeError, match=rf"^{call.__name__}\(\) has no option 'metrc'\. Did you mean 'metric'\?$"):
        call(table(), metrc="f2")
    with pytest.raises(TypeError, match=rf"^{call.__name__}\(\) has no option 'grup'\. Did you mean 'group'\?$"):
        call("digits", grup="day")


def test_without_overlap_it_is_the_usual_t_test():
    values = [0.03, 0.01, 0.02, -0.01, 0.04]
    usual = stats.ttest_1samp(values, 0.0)
    mine = corrected_t(values, share=0.0)
    assert mine.p == pytest.approx(usual.pvalue)
    assert [mine.low, mine.high] == pytest.approx(list(usual.confidence_interval(0.95)))
    wider = corrected_t(values, share=0.25)
    assert wider.p > mine.p
    # Nadeau and Bengio: the variance is (1/J + share) s² in place of s²/J.
    assert (wider.high - wider.low) / (mine.high - mine.low) == pytest.approx(np.sqrt((0.2 + 0.25) / 0.2))


def test_equal_methods_do_not_differ():
    assert corrected_t([0.0, 0.0, 0.0], share=0.25).p == 1.0
    assert np.isnan(mean_interval([0.5], share=0.25).low)


def test_an_interval_ends_where_the_metric_does():
    narrow = mean_interval([0.80, 0.81, 0.82], 0.25, (0.0, 1.0))
    assert narrow == mean_interval([0.80, 0.81, 0.82], 0.25)
    wide = mean_interval([0.3, 0.99, 1.0], 0.25)
    assert wide.low < 0 < 1 < wide.high
    assert mean_interval([0.3, 0.99, 1.0], 0.25, (0.0, 1.0)) == Estimate(wide.mean, 0.0, 1.0)
    apart = corrected_t([-0.1, 0.9], 0.25, (0.0, 1.0))
    assert (apart.low, apart.high) == (-1.0, 1.0)
    ends = mean_interval([-0.9, 0.9], 0.25, reach(MCC(), 30, 70))
    assert (ends.low, ends.high) == pytest.approx((-1.0, 1.0))
    assert reach(metric("cost:fp=1,fn=5"), 10, 90) == pytest.approx((-1.4, 0.0))
    assert reach(metric(lambda tp, fp, fn, tn: tp / (tp + fp)), 10, 90) == (0.0, 1.0)  # 0/0 in a corner
    never = metric(lambda tp, fp, fn, tn: math.sqrt(-1))
    with pytest.raises(ValueError, match="math domain"):
        reach(never, 10, 90)


def dealt_rows(y, unit=None, folds=5, deals=1):
    """Rows of so many deals of folds, dealt at random."""
    n, rng, rows = len(y), np.random.default_rng(3), []
    for _ in range(deals):
        rows += np.array_split(rng.permutation(n), folds)
    return JudgedRows(y.astype(np.int64), np.arange(n) if unit is None else unit, rows, np.arange(len(rows)) // folds)


def of_splits(rows, decided):
    return [decided[part] for part in rows.tested]


def noisy(n=500, seed=1, rates=(0.05, 0.1)):
    rng = np.random.default_rng(seed)
    y = rng.random(n) < 0.2
    return y, *(y ^ (rng.random(n) < rate) for rate in rates)


def score(metric, decided, target):
    return metric(Confusion.from_predictions(decided * 1.0, target * 1.0))


@pytest.mark.parametrize("spec", ["f1", "mcc", "cost:fp=1,fn=5", lambda tp, fp, fn, tn: math.sqrt(tp / (tp + fp + fn))])
def test_the_influence_of_a_row_is_what_the_score_loses_without_it(spec):
    y, one, _ = noisy()
    goal, rows = metric(spec), dealt_rows(y)
    counts = rows.counts(of_splits(rows, one))
    found = influence(goal, counts)[0]
    assert pooled(goal, counts) == pytest.approx(score(goal, one, y))
    assert found.sum() == pytest.approx(0.0, abs=1e-4)
    for i in range(20):
        kept = np.arange(len(y)) != i
        assert found[i] == pytest.approx(score(goal, one, y) - score(goal, one[kept], y[kept]), abs=2e-4)


def test_the_error_of_a_difference_is_that_of_resampled_rows():
    y, one, other = noisy()
    rows, f1, rng = dealt_rows(y), FBeta(1), np.random.default_rng(0)
    found = ByRows(f1, rows).difference(of_splits(rows, one), of_splits(rows, other))
    drawn = [rng.integers(0, len(y), len(y)) for _ in range(2000)]
    spread_of = np.std([score(f1, one[i], y[i]) - score(f1, other[i], y[i]) for i in drawn])
    assert found.mean == pytest.approx(score(f1, one, y) - score(f1, other, y))
    assert found.error == pytest.approx(spread_of, rel=0.08)
    blockwise = ByBlocks(f1, rows).difference(of_splits(rows, one), of_splits(rows, other))
    assert (blockwise.mean, blockwise.error) == pytest.approx((found.mean, found.error), rel=0.08)
    assert [blockwise.low, blockwise.high] == pytest.approx([found.low, found.high], abs=0.012)
    for way in (ByRows(f1, rows), ByBlocks(f1, rows), BySplits(f1, rows, 0.25)):
        same = way.difference(of_splits(rows, one), of_splits(rows, one))
        assert (same.mean, same.p) == (0.0, 1.0)


def test_rows_of_a_group_are_no_evidence_of_their_own():
    """Every row ten times over: groups say what the rows said once, rows alone are too sure."""
    y, one, other = noisy(300)
    once, group = dealt_rows(y), np.repeat(np.arange(300), 10)
    many = [x.repeat(10) for x in (y, one, other)]
    grouped, naive = dealt_rows(many[0], group), dealt_rows(many[0])

    def error(rows, a, b):
        return ByRows(FBeta(1), rows).difference(of_splits(rows, a), of_splits(rows, b)).error

    assert error(grouped, *many[1:]) == pytest.approx(error(once, one, other))
    assert error(naive, *many[1:]) < 0.5 * error(once, one, other)


def test_a_row_that_was_tested_in_several_deals_is_one_row():
    y, one, other = noisy()
    single, triple = dealt_rows(y), dealt_rows(y, deals=3)
    once, thrice = (
        ByRows(FBeta(1), rows).difference(of_splits(rows, one), of_splits(rows, other)) for rows in (single, triple)
    )
    assert (thrice.mean, thrice.error) == pytest.approx((once.mean, once.error))


def test_the_error_allows_for_learning_and_knows_how_many_rows_count():
    influences = np.random.default_rng(0).normal(size=(1, 400)) / 400
    assert spread(influences, held=0.21)[0] == pytest.approx(1.1 * spread(influences)[0])
    assert spread(influences)[1] > 100
    few = np.zeros((1, 400))
    few[0, :6] = 0.01, -0.01, 0.01, -0.01, 0.01, -0.01
    assert spread(few)[1] < 15  # six rows are few, among however many


def test_holm_and_the_words():
    p = [0.01, 0.04, 0.03, 0.005, math.nan]
    assert holm(p)[:4] == pytest.approx([0.04, 0.09, 0.09, 0.025])
    assert math.isnan(holm(p)[4])
    found = {
        "better": student(0.05, 0.01, 500, 0.01, "t"),
        "worse": student(-0.05, 0.01, 500, 0.01, "t"),
        "equivalent": student(0.004, 0.001, 500, 0.01, "t"),  # surely above zero, and surely too small to matter
        "undecided": student(0.01, 0.01, 500, 0.01, "t"),
    }
    assert {name: word(d) for name, d in found.items()} == {name: name for name in found}
    many = judged_together([student(0.024, 0.01, 500, 0.01, "t")] * 10)
    assert word(student(0.024, 0.01, 500, 0.01, "t")) == "better"
    assert {d.word for d in many} == {"undecided"}
    # What could be shown is found four times in five.
    shown = student(0.0, 0.01, 500, 0.01, "t").detectable
    drawn = np.random.default_rng(0).normal(shown, 0.01, 4000)
    assert np.mean([student(x, 0.01, 500, 0.01, "t").p < 0.05 for x in drawn]) == pytest.approx(0.8, abs=0.02)


def test_blocks_of_time_stay_within_a_window_and_keep_groups():
    time, group = np.arange(100.0)[::-1], np.arange(100)
    windows = [np.arange(40), np.arange(40, 90)]
    found = blocks(time, group, windows)
    assert set(found[90:]) == {-1}
    assert not set(found[:40]) & set(found[40:90])
    _, sizes = np.unique(found[:90], return_counts=True)
    assert (sizes.max(), sizes.sum()) == (5, 90)  # about the cube root of 90
    assert np.all(np.diff(found[:40]) <= 0)  # neighbours in time
    group[[0, 60]] = 7
    assert len({*blocks(time, group, windows)[[0, 7, 60]]}) == 1


def test_choosing_takes_the_simplest_within_one_standard_error():
    y, good, bad = noisy(2000, rates=(0.05, 0.2))
    rng = np.random.default_rng(0)
    hardly = good ^ (rng.random(2000) < 0.001)
    rows = dealt_rows(y)
    inference = ByRows(FBeta(1), rows)
    linear, mlp, booster = (Method(name, "bce") for name in ("linear", "mlp", "xgboost"))

    def taken(*decided):
        held = {m: of_splits(rows, d) for m, d in zip((linear, mlp, booster), decided, strict=True)}
        return chosen(inference, held, simplest_first(list(held), booster))

    assert simplest_first([mlp, booster, linear], booster) == [booster, linear, mlp]
    assert taken(hardly, good, bad) == linear
    assert taken(bad, good, hardly) == booster
    assert taken(bad, good, bad) == mlp


def test_steps_lead_from_the_default_to_the_choice(found):
    """Their gains add up, their ends are the default at ½ and the choice, and the cells are those of the test rows."""
    steps, base = found.steps, found.candidate(found.baseline)
    assert [step.change for step in steps] == ["default", "cut", "loss"]  # of one model there is none to choose
    assert (steps[0].score, steps[1].score, steps[-1].score) == (base.at_half, base.score, found.choice.score)
    assert steps[-1].picks == found.choice.picks
    assert sum(step.gain.mean for step in steps[1:]) == pytest.approx(steps[-1].score.mean - steps[0].score.mean)
    for step in steps:
        assert step.method in step.picks
        assert FBeta(2)(Confusion(step.tp, step.fp, step.fn, step.tn)) == pytest.approx(step.score.mean)
    assert found.gain.mean == pytest.approx(base.score.mean - base.at_half.mean)  # of the advice, which is the baseline
    assert found.gain.word in ("better", "equivalent", "undecided")
    beside = found.candidate("linear, tangent").beside
    assert beside.mean == pytest.approx(found.candidate("linear, tangent").score.mean - base.score.mean)
    assert base.beside is None


def test_a_step_takes_what_rows_held_out_say():
    y, good, bad = noisy(2000, rates=(0.05, 0.2))
    rows, xgboost = dealt_rows(y), Method("xgboost", "bce")
    linear, tangent = Method("linear", "bce"), Method("linear", "tangent")
    methods = [linear, tangent, xgboost]

    def learned(decided, at_half):
        each = ({m: of_splits(rows, d) for m, d in zip(methods, x, strict=True)} for x in (decided, at_half))
        return [Learned(ByRows(FBeta(1), rows), *each)]

    assert defaults(learned((good, good, bad), (good, good, bad)), methods, xgboost) == [linear]
    assert defaults(learned((good, good, bad), (bad, good, bad)), methods, xgboost) == [xgboost]
    assert best_losses(learned((bad, good, good), (bad, bad, bad)), methods, [linear]) == [tangent]
    assert best_losses(learned((good, good, good), (bad, bad, bad)), methods, [linear]) == [linear]
    path = [("default", [linear], of_splits(rows, bad)), ("loss", [tangent], of_splits(rows, good))]
    first, second = steps_of(ByRows(FBeta(1), rows), [Change(what, m * 5, calls) for what, m, calls in path])
    assert first.gain is None
    assert second.gain.word == "better"


def test_segments_find_the_column_that_decides_who_is_found():
    rng = np.random.default_rng(0)
    n = 2000
    y, kind = rng.random(n) < 0.3, rng.choice(["a", "b", "c", "d", "e"], n, p=[0.4, 0.3, 0.2, 0.05, 0.05])
    columns = {"kind": kind, "x": rng.normal(size=n), "other": rng.normal(size=n), "y": y.astype(int)}
    columns["x"][:40] = np.nan
    data = read_frame(pl.DataFrame(columns, nan_to_null=True), "y", "1")
    called = y & ((kind != "b") | (rng.random(n) < 0.4))
    part = np.arange(n) % 5
    halves = [Split(np.flatnonzero(part != k), np.flatnonzero(part == k), np.zeros(1), 0) for k in range(5)]
    whole = [called[split.test] for split in halves]
    first, *others = segments(data, halves, whole)
    assert first.column == "kind"
    assert first.p < 0.001 < min([1.0, *(each.p for each in others)])
    assert [s.name for s in first.segments] == ["a", "b", "c", "others"]
    for s in first.segments:
        mine = np.isin(kind, ["d", "e"]) if s.name == "others" else kind == s.name
        assert (s.tp, s.fn, s.fp, s.tn) == tuple(
            (mine & a & b).sum() for a, b in ((y, called), (y, ~called), (~y, called), (~y, ~called))
        )
    twice = segments(data, [*halves, *(replace(s, deal=1) for s in halves)], [*whole, *whole])
    assert [each.p for each in twice] == [each.p for each in (first, *others)]  # a row tested again is no new row
    found = y & ~(columns["x"] > 0)
    (by_x, *_) = segments(data, halves, [found[split.test] for split in halves])
    assert [s.name.split()[0] for s in by_x.segments[::3]] == ["up", "above"]
    missing = by_x.segments[-1]
    assert (missing.name, missing.tp + missing.fp + missing.fn + missing.tn) == ("missing", 40)
    assert by_x.segments[3].tp == 0 == by_x.segments[0].fn


def test_one_split_has_an_interval_from_its_test_rows():
    found = compare(table(), metric="fbeta:beta=2", **FEW | {"seeds": 1})
    for candidate in found.candidates:
        assert 0 <= candidate.score.low < candidate.score.mean < candidate.score.high <= 1
        assert candidate.score.mean == pytest.approx(candidate.outcomes[0].score)
    assert found.candidate("linear, tangent").difference.test == "influence of rows"
    assert found.choice.picks == (found.winner,)


def test_the_test_over_splits_is_an_option():
    by_rows, by_splits = (compare(table(), metric="fbeta:beta=2", test=test, **FEW) for test in ("rows", "splits"))
    (candidate,) = (c for c in by_splits.candidates if c.difference)
    base = by_splits.candidate(by_splits.baseline).outcomes
    apart = [o.score - b.score for o, b in zip(candidate.outcomes, base, strict=True)]
    assert candidate.difference.test == "corrected resampled t-test"
    assert candidate.difference.mean == pytest.approx(np.mean(apart))
    for c in by_rows.candidates:
        pooled_counts = Confusion(*(sum(getattr(o, cell) for o in c.outcomes) for cell in ("tp", "fp", "fn", "tn")))
        assert c.score.mean == pytest.approx(FBeta(2)(pooled_counts))
    with pytest.raises(ValueError, match="Did you mean 'splits'"):
        compare(table(), test="split", **FEW)
    with pytest.raises(ValueError, match="margin must be a number above 0; got -1"):
        compare(table(), margin=-1, **FEW)


def test_levels_that_only_some_splits_have():
    """A level, or a whole column, that the learning rows of a split do not have makes no feature of it."""
    rng = np.random.default_rng(0)
    n = 300
    y = rng.random(n) < 0.3
    shop = np.array(["a", "b"])[rng.integers(0, 2, n)].astype(object)
    shop[:4] = ["rare0", "rare1", "rare2", "rare3"]
    odd = np.zeros(n)
    odd[7] = 1.0
    frame = pl.DataFrame({"x": rng.normal(size=n) + 2 * y, "shop": shop.tolist(), "odd": odd, "y": y.astype(int)})
    rare = read_frame(frame, "y", "1")
    widths = set()
    for k, (split, X) in enumerate(splits(rare, 5, 3)):
        widths.add(X.shape[1])
        assert np.isfinite(X).all()
        # No leak: whatever the test rows are, the features of the learning rows stay.
        tested = pl.Series(np.isin(np.arange(n), split.test))
        other = frame.with_columns(x=pl.when(tested).then(pl.col("x") + 1e6).otherwise(pl.col("x")))
        _, changed = splits(rare, 5, 3, read_frame(other, "y", "1"))[k]
        assert np.array_equal(changed[split.train], X[split.train])
    assert len(widths) > 1
    found = compare(rare, models=["linear", "mlp"], losses=["tangent"], seeds=5, folds=3)
    assert all(c.score.mean > 0.6 for c in found.candidates)


def test_collapse_is_said_only_where_it_is_so():
    assert collapse([0.4, 0.0, 0.0], 3) == "predicts nothing positive since epoch 2"
    assert collapse([0.4, 0.0], 2) == ""  # once may be chance
    assert collapse([0.0], 1) == "predicts nothing positive since epoch 1"
    assert collapse([0.0005, 0.0005], 2) == ""  # 57 of 115,000 rows: of a rare class that may be all
    assert collapse([], 0) == ""
    y = np.array([1, 0, 0, 0] * 10)
    split = Split(np.arange(40), np.arange(40), np.arange(40) // 20, 0)
    rising = y + np.linspace(0, 1, 40)

    def said(scores):
        return judge(SplitScores(scores, scores), y, split, FBeta(1), "exact").outcome.collapse

    assert said(rising - 0.9) == ""
    assert said(rising + 1) == "predicts everything positive"
    assert said(rising - 5) == "predicts nothing positive"
    assert said(-rising) == "ranks rows no better than chance"


def test_noise_is_not_flattered_by_a_cut_of_its_own():
    rng = np.random.default_rng(0)
    y, fold = (rng.random(400) < 0.05).astype(np.int64), np.arange(400) % 5
    own, held = [], []
    for _ in range(30):
        scores = rng.normal(size=400)
        own.append(Decision.fit(scores, y, FBeta(1), kind="logit", rule="exact").cut.score)
        held.append(score(FBeta(1), held_calls(scores, y, fold, None, FBeta(1), "exact"), y))
    everything = 2 * y.mean() / (1 + y.mean())  # what scores without any information are good for
    assert np.mean(own) > everything + 0.02
    assert np.mean(held) < everything + 0.01


def test_a_score_that_is_no_number_wins_nothing():
    """A formula of one's own may be 0/0 where nothing is called positive."""

    def picky(tp, fp, fn, tn):
        return tp / (tp + fp) if tp + fp > 0 else math.nan

    found = compare(table(), metric=picky, models=["linear"], losses=["bce", "focal"], seeds=2, folds=2)
    winner = found.candidate(found.winner)
    assert not math.isnan(winner.inner)
    assert Comparison.from_json(found.to_json()).winner == found.winner


def test_progress_is_told_within_parts():
    told = []
    compare(table(), **FEW, tick=lambda done, of: told.append((done, of)))
    done, of = [x for x, _ in told], {x for _, x in told}
    assert of == {2 * models.get("linear").steps}
    assert done == sorted(done)
    assert (done[0], done[-1]) == (0, *of)
    assert len(set(done)) > 8  # every epoch, not every part


def test_a_method_scores_the_same_alone_and_in_company():
    alone = compare(table(), models="linear", losses="bce", seeds=2)
    beside = compare(table(), models="linear", losses=["bce", "surrogate", "focal", "tangent"], seeds=2)
    mine, theirs = (c.candidate("linear, bce") for c in (alone, beside))
    # Stacks of another size round otherwise: a cut may move past a row or two.
    assert [o.score for o in mine.outcomes] == pytest.approx([o.score for o in theirs.outcomes], abs=0.01)
    assert [o.epochs for o in mine.outcomes] == [o.epochs for o in theirs.outcomes]


def test_a_linear_model_of_few_rows_arrives_where_logistic_regression_does():
    t = table(300)
    ((split, X),) = splits(t, 1, 5)
    X, y = X[split.train], t.y[split.train]
    peer = log_loss(y, LogisticRegression(tol=1e-8).fit(X, y).predict_proba(X))
    mine = compare(t, models="linear", losses="bce", seeds=1).candidate("linear, bce").epochs.loss
    assert mine[-1] == pytest.approx(peer, rel=1e-3)
    assert len(mine) < 15


def test_a_wrong_rule_is_found_before_training():
    told = []
    with pytest.raises(ValueError, match="Did you mean 'exact'"):
        compare(table(), rule="exakt", **FEW, tick=lambda done, of: told.append(done))
    assert not told


def test_what_columns_were_for_is_kept(tmp_path):
    rng = np.random.default_rng(0)
    y = rng.random(200) < 0.3
    columns = {"x": rng.normal(size=200) + y, "leak": y * 1.0, "who": np.arange(200) // 2, "y": y * 1}
    pl.DataFrame(columns).write_csv(tmp_path / "t.csv")
    found = compare(tmp_path / "t.csv", "y", group="who", drop=["leak"], **FEW)
    kept = Comparison.from_json(found.to_json()).table
    assert (kept.target, kept.group, kept.time, kept.drop) == ("y", "who", None, ("leak",))
    assert kept.columns == 1
    days = pl.DataFrame(columns | {"day": np.arange(200)})
    found = compare(read_frame(days, "y", "1", time="day", drop=["leak", "who"]), **FEW)
    assert (found.table.group, found.table.time, found.table.drop) == (None, "day", ("leak", "who"))


def test_a_comparison_is_plain_data(found):
    assert Comparison.from_json(found.to_json()) == found
    assert json.loads(found.to_json())["table"]["notes"]
    with pytest.raises(ValueError, match="reads up to 2: upgrade"):
        Comparison.from_json(json.dumps({"version": 3}))
    for bad in ("", "[]", "{}", '{"version": 1}', '{"version": 1, "table": 3}', "[" * 10**5):
        with pytest.raises(ValueError, match=r"no comparison|comparison"):
            Comparison.from_json(bad)


def test_what_it_says_is_in_its_numbers(found):
    assert [c.name for c in found.candidates] == ["linear, bce", "linear, tangent"]
    assert found.baseline == "linear, bce"
    assert found.advised in (found.winner, found.baseline)
    assert found.verdict in ("better", "equivalent", "undecided")
    assert json.loads(found.to_json())["verdict"] == found.verdict
    assert found.candidate("linear, bce").difference is None
    for candidate in found.candidates:
        for o in candidate.outcomes:
            assert o.score == pytest.approx(FBeta(2)(Confusion(o.tp, o.fp, o.fn, o.tn)))
        tested = sum(o.tp + o.fp + o.fn + o.tn for o in candidate.outcomes)
        assert candidate.operating.positives + candidate.operating.negatives == tested
        assert sum(candidate.calibration.rows) == tested
        assert candidate.score.mean > 0.5  # it learns
        assert len(candidate.epochs.loss) == len(candidate.epochs.held) > 2


def test_equal_rows_are_never_on_both_sides():
    rng = np.random.default_rng(0)
    some = rng.normal(size=60)
    frame = pl.DataFrame({"x": np.repeat(some, 5), "y": np.repeat(rng.random(60) < 0.3, 5).astype(int)})
    twice = read_frame(frame, "y", "1")
    for split, X in splits(twice, 3, 3):
        learned, judged = set(X[split.train, 0].tolist()), set(X[split.test, 0].tolist())
        assert not learned & judged
        for f in range(3):
            inside = set(X[split.train[split.fold == f], 0].tolist())
            assert not inside & set(X[split.train[split.fold != f], 0].tolist())


@pytest.mark.parametrize("model", ["linear", "xgboost"])
def test_by_time_the_past_is_learned_from_and_inner_folds_are_a_chain(model):
    if model == "xgboost":
        pytest.importorskip("xgboost")
    rng = np.random.default_rng(0)
    y = rng.random(600) < 0.2
    frame = pl.DataFrame({"x": rng.normal(size=600) + 1.5 * y, "when": np.arange(600), "y": y.astype(int)})
    dated = read_frame(frame, "y", "1", time="when")
    for split, _ in splits(dated, 5, 3):
        assert split.train.max() < split.test.min()
        assert sorted(np.unique(split.fold)) == [-1, 0, 1, 2]
        assert np.all(np.diff(split.fold) >= 0)  # the oldest rows are only learned from
        rows = Rows(np.zeros((len(split.fold), 1)), np.zeros((len(split.fold), 1)), split.fold, ordered=split.ordered)
        for f, part in enumerate(rows.parts[1:]):
            assert part.max() < np.flatnonzero(split.fold == f).min()
    asked = {"models": [model], "losses": ["tangent"], "folds": 3}
    found = compare(dated, seeds=2, **asked)
    assert all(0.4 < c.score.mean <= 1 and 0.4 < c.inner <= 1 for c in found.candidates)
    assert method_rows.windows(found)[0].startswith("Test windows, oldest first, ")
    fitted = fit(dated, **asked)
    assert fitted.cut.score > 0.4


@pytest.mark.parametrize("windows", [1, 2, 7])
def test_any_number_of_windows_the_newest_last_and_always_tested(windows):
    rng = np.random.default_rng(0)
    y, day = rng.random(600) < 0.3, rng.permutation(600) // 20
    frame = pl.DataFrame({"x": rng.normal(size=600) + 1.5 * y, "day": day, "y": y.astype(int)})
    dated = read_frame(frame, "y", "1", time="day")
    plan = Plan.make(dated, metric("f1"), [Method("linear", "bce")], windows, 2, 0)
    ends = [day[split.test].max() for split in plan.splits]
    assert ends == sorted({*ends})
    assert ends[-1] == day.max()
    for split in plan.splits:
        assert day[split.train].max() < day[split.test].min()
        assert not split.deal
    assert len({*np.concatenate([split.test for split in plan.splits])}) == sum(len(s.test) for s in plan.splits)
    more = Plan.make(dated, metric("f1"), [Method("linear", "bce")], windows + 1, 2, 0)
    assert not {part.key for part in plan.parts} & {part.key for part in more.parts}  # other rows to learn from


def test_a_chain_keeps_groups_and_gives_way_where_classes_are_too_rare():
    rng = np.random.default_rng(0)
    y = rng.random(600) < 0.2
    who = np.arange(600) // 7
    columns = {"x": rng.normal(size=600), "when": np.arange(600), "who": who, "y": y.astype(int)}
    dated = read_frame(pl.DataFrame(columns), "y", "1", time="when", group="who")
    whole = Plan.whole(dated, FBeta(1), [Method("linear", "bce")], 3, 0).splits[0]
    assert whole.ordered
    assert all(len(set(whole.fold[who == g])) == 1 for g in range(86))
    y[150:] = False
    rare = read_frame(pl.DataFrame(columns | {"y": y.astype(int)}), "y", "1", time="when", drop=["who"])
    assert not Plan.whole(rare, FBeta(1), [Method("linear", "bce")], 3, 0).splits[0].ordered


def test_a_metric_of_ones_own():
    found = compare(table(), metric=lambda tp, fp, fn, tn: tp / (tp + fp + fn), **FEW)
    same = compare(table(), metric="jaccard", **FEW)
    assert [c.score for c in found.candidates] == [c.score for c in same.candidates]


def verdict(found, difference, *, collapse="", picks=None, skill=(True, True), winner=1, positives=100, others=()):
    """What would be said had the choice come to this difference."""
    one, base = found.candidates[winner], found.candidates[0]
    one = replace(one, outcomes=tuple(replace(o, collapse=collapse) for o in one.outcomes))
    (apart,) = judged_together([difference])
    sure, unsure = student(0.3, 0.01, 100, 0.01, "t"), student(0.0, 0.1, 100, 0.01, "t")
    constant = NoSkill(
        "all rows positive", Estimate(0.2, 0.1, 0.3), *judged_together([sure if s else unsure for s in skill])
    )
    choice = Choice(picks or (one.name,) * 2, one.score, apart)
    return Findings("F₂", one, base, choice, constant, judged_together(others), positives, 0.01).verdict


def test_the_verdict_and_what_is_advised(found):
    one, base = found.candidates[1].name, found.candidates[0].name

    def said(mean, error, **other):
        made = verdict(found, student(mean, error, 200, 0.01, "t"), **other)
        assert made.recommendation.endswith(".")
        return made.word, made.advised, made.recommendation

    assert said(0.05, 0.01)[:2] == ("better", one)
    assert said(0.05, 0.01)[2].startswith("Take linear, tangent with the shrunk cut")
    assert "choosing afresh" not in said(0.05, 0.01)[2]
    assert "which took linear, tangent in 1 of 2" in said(0.05, 0.01, picks=(one, base))[2]
    assert "in only 1 of 3" in said(0.05, 0.01, picks=(one, base, base))[2]
    assert said(0.02, 0.02)[:2] == ("undecided", base)
    assert said(0.02, 0.02)[2].startswith("Undecided, so stay with linear, bce")
    assert "within noise" in said(0.02, 0.02)[2]
    assert "a difference of 0.056 or more would probably have been found" in said(0.02, 0.02)[2]
    assert said(0.001, 0.001)[:2] == ("equivalent", base)
    assert "so they are equivalent" in said(0.001, 0.001)[2]
    assert said(-0.05, 0.01)[:2] == ("undecided", base)
    assert "on test rows it was worse" in said(-0.05, 0.01)[2]
    assert said(math.nan, math.nan)[:2] == ("undecided", base)
    assert "without it, it predicts nothing" in said(0.05, 0.01, collapse="predicts nothing positive")[2]
    assert said(0.0, 0.0, winner=0)[:2] == ("undecided", base)
    assert "no other method was better" in said(0.0, 0.0, winner=0)[2]
    worse = student(-0.05, 0.01, 200, 0.01, "t")
    assert said(0.0, 0.0, winner=0, others=[worse])[:2] == ("equivalent", base)
    assert "Only 12 positives" in said(0.05, 0.01, positives=12)[2]


def test_without_skill_nothing_is_advised(found):
    one, base = found.candidates[1].name, found.candidates[0].name
    apart = student(0.02, 0.02, 200, 0.01, "t")
    nothing = verdict(found, apart, skill=(False, False))
    assert (nothing.word, nothing.advised) == ("no signal", "")
    assert "Take none of these" in nothing.recommendation
    assert verdict(found, apart, skill=(True, False)).advised == base
    assert verdict(found, apart, skill=(False, True)).advised == one  # the baseline may be no better than a constant
    assert "linear, bce is not reliably so" in verdict(found, apart, skill=(False, True)).recommendation
    assert verdict(found, apart, skill=(False, True), winner=0).word == "no signal"


def noise(seed=2, n=200):
    rng = np.random.default_rng(seed)
    frame = pl.DataFrame({f"x{i}": rng.normal(size=n) for i in range(3)} | {"y": (rng.random(n) < 0.2).astype(int)})
    return read_frame(frame, "y", "1", name="noise")


def test_noise_has_no_signal_and_is_not_fitted():
    found = compare(noise(), **FEW)
    assert (found.verdict, found.advised) == ("no signal", "")
    assert found.constant.name == "all rows positive"
    tested = found.candidates[0].outcomes
    positives, rows = sum(o.tp + o.fn for o in tested), sum(o.tp + o.fp + o.fn + o.tn for o in tested)
    assert found.constant.score.mean == pytest.approx(2 * positives / (rows + positives))
    with pytest.raises(ValueError, match=r"found no signal, so nothing is fitted.*\(--force, force=True\)"):
        fit(noise(), comparison=found)
    assert fit(noise(), comparison=found, force=True).name == found.winner
    with pytest.raises(ValueError, match=r"^no signal: linear, bce has F₁ .* of calling all rows positive"):
        fit(noise(), models="linear", losses="bce")
    assert fit(noise(), models="linear", losses="bce", force=True).name == "linear, bce"


def test_the_choice_of_a_split_never_sees_its_test_rows(found):
    """What the recommendation goes by: picks by inner scores, judged by the same split's test rows."""
    by_name = {c.name: c.outcomes for c in found.candidates}
    for k, pick in enumerate(found.choice.picks):
        best = max(by_name, key=lambda name: by_name[name][k].inner)
        assert pick in (best, found.baseline)
    picked = [by_name[pick][k] for k, pick in enumerate(found.choice.picks)]
    counts = Confusion(*(sum(getattr(o, cell) for o in picked) for cell in ("tp", "fp", "fn", "tn")))
    assert found.choice.score.mean == pytest.approx(FBeta(2)(counts))
    apart = found.choice.score.mean - found.candidate(found.baseline).score.mean
    assert found.choice.difference.mean == pytest.approx(apart)


def test_the_methods():
    f1 = FBeta(1)
    assert baseline_of(methods_for(["mlp", "linear"], None, f1)).name == "mlp, bce"
    assert [m.loss for m in methods_for(["linear"], ["focal"], f1)] == ["bce", "focal"]
    with pytest.raises(ValueError, match="Did you mean 'mlp'"):
        methods_for(["mpl"], None, f1)
    with pytest.raises(ValueError, match="Did you mean 'tangent'"):
        methods_for(None, ["tangnet"], f1)


def test_the_command(tmp_path):
    from typer.testing import CliRunner

    from fbeta.cli import app

    file = tmp_path / "shops.csv"
    table().features.with_columns(fraud=pl.Series(np.where(table().y == 1, "yes", "no"))).write_csv(file)
    asked = ["compare", str(file), "--metric", "fbeta:beta=2", "--models", "linear", "--losses", "tangent"]
    asked += ["--seeds", "2", "--folds", "2", "--results", str(tmp_path / "parts")]

    def call(*more):
        return CliRunner().invoke(app, [*asked, *more])

    done = call("--target", "fraud", "--json", "--html", str(tmp_path / "page.html"))
    assert done.exit_code == 0, done.output
    assert Comparison.from_json(done.stdout).title == "F₂"
    assert (tmp_path / "page.html").read_text().startswith("<!doctype html>")
    shown = call("--target", "fraud")
    assert "linear, tangent" in shown.stdout
    assert "positive is fraud 'yes'" in shown.stdout
    for wrong, said in [
        (("--target", "fruad"), "fraud"),
        ((), "--target"),
        (("--target", "fraud", "--models", "mpl"), "Did you mean 'mlp'"),
        (("--target", "fraud", "--metric", "fbeta:beta=x"), "beta"),
        (("--target", "fraud", "--rule", "exakt"), "Did you mean 'exact'"),
        (("--target", "fraud", "--device", "gpu"), "device must be auto, cuda or cpu"),
        (("--target", "fraud", "--html", str(tmp_path / "no" / "page.html")), "cannot write"),
    ]:
        refused = call(*wrong)
        assert refused.exit_code == 2, (wrong, refused.output)
        assert refused.stderr.startswith("fbeta: ")
        assert said in refused.stderr
        assert "Traceback" not in refused.stderr
