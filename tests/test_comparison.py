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
from fbeta.comparison.folder import SplitScores
from fbeta.comparison.judging import advised, held_score, judge, recommendation
from fbeta.comparison.methods import Method, baseline_of, methods_for
from fbeta.comparison.parts import load_parts
from fbeta.comparison.plan import Plan, Split
from fbeta.comparison.result import Choice, Comparison, Difference, Estimate
from fbeta.comparison.run import compare, fit
from fbeta.comparison.statistics import bootstrap_interval, corrected_t, mean_interval, paired_bootstrap, reach
from fbeta.learners import models
from fbeta.learners.training import collapse
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


def test_bootstrap_by_counts_is_bootstrap_by_rows():
    rng = np.random.default_rng(1)
    y = rng.random(500) < 0.2
    one, other = y ^ (rng.random(500) < 0.05), y ^ (rng.random(500) < 0.1)
    metric = FBeta(1)

    def score(decided, target):
        return metric(Confusion.from_predictions(decided * 1.0, target * 1.0))

    drawn = []
    for _ in range(2000):
        rows = rng.integers(0, 500, 500)
        drawn.append(score(one[rows], y[rows]) - score(other[rows], y[rows]))
    mine = paired_bootstrap(metric, y, one, other)
    assert mine.mean == pytest.approx(score(one, y) - score(other, y))
    assert [mine.low, mine.high] == pytest.approx(list(np.quantile(drawn, [0.025, 0.975])), abs=0.012)
    assert paired_bootstrap(metric, y, one, one).p == 1.0


def test_rows_of_a_group_are_no_evidence_of_their_own():
    """Every row ten times over: the bootstrap of groups is that of the rows once, that of rows is too sure."""
    rng = np.random.default_rng(2)
    y = rng.random(300) < 0.3
    one, other = y ^ (rng.random(300) < 0.1), y ^ (rng.random(300) < 0.15)
    once = paired_bootstrap(FBeta(1), y, one, other)
    group = np.repeat(np.arange(300), 10)
    many = [x.repeat(10) for x in (y, one, other)]
    grouped, naive = (paired_bootstrap(FBeta(1), *many, group=g) for g in (group, None))
    assert grouped.mean == pytest.approx(once.mean)
    assert grouped.high - grouped.low == pytest.approx(once.high - once.low, rel=0.1)
    assert naive.high - naive.low < 0.5 * (once.high - once.low)
    assert "groups" in grouped.test
    alone = bootstrap_interval(FBeta(1), y, one)
    together = bootstrap_interval(FBeta(1), *many[:2], group=group)
    assert together.mean == pytest.approx(alone.mean)
    assert together.high - together.low == pytest.approx(alone.high - alone.low, rel=0.1)


def test_one_split_has_an_interval_from_its_test_rows():
    found = compare(table(), metric="fbeta:beta=2", **FEW | {"seeds": 1})
    for candidate in found.candidates:
        assert 0 <= candidate.score.low < candidate.score.mean < candidate.score.high <= 1
        assert candidate.score.mean == pytest.approx(candidate.outcomes[0].score)
    apart = found.candidate("linear, tangent").difference
    assert apart.test == "paired bootstrap over test rows"
    assert found.choice.picks == (found.winner,)


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
        held.append(held_score(scores, y, fold, None, FBeta(1), "exact"))
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
    with pytest.raises(ValueError, match="reads up to 1: upgrade"):
        Comparison.from_json(json.dumps({"version": 2}))
    for bad in ("", "[]", "{}", '{"version": 1}', '{"version": 1, "table": 3}', "[" * 10**5):
        with pytest.raises(ValueError, match=r"no comparison|comparison"):
            Comparison.from_json(bad)


def test_what_it_says_is_in_its_numbers(found):
    assert [c.name for c in found.candidates] == ["linear, bce", "linear, tangent"]
    assert found.baseline == "linear, bce"
    assert found.winner == max(found.candidates, key=lambda c: c.inner).name
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
def test_by_time_the_past_is_learned_from_and_every_row_of_it_is_held_once(model):
    if model == "xgboost":
        pytest.importorskip("xgboost")
    rng = np.random.default_rng(0)
    y = rng.random(600) < 0.2
    frame = pl.DataFrame({"x": rng.normal(size=600) + 1.5 * y, "when": np.arange(600), "y": y.astype(int)})
    dated = read_frame(frame, "y", "1", time="when")
    for split, _ in splits(dated, 5, 3):
        assert split.train.max() < split.test.min()
        assert sorted(np.unique(split.fold)) == [0, 1, 2]
    asked = {"models": [model], "losses": ["tangent"], "folds": 3}
    found = compare(dated, seeds=2, **asked)
    assert all(0.4 < c.score.mean <= 1 and 0.4 < c.inner <= 1 for c in found.candidates)
    with pytest.raises(ValueError, match="A table with times has 5 outer splits"):
        compare(dated, seeds=6, **asked)


def test_a_metric_of_ones_own():
    found = compare(table(), metric=lambda tp, fp, fn, tn: tp / (tp + fp + fn), **FEW)
    same = compare(table(), metric="jaccard", **FEW)
    assert [c.score for c in found.candidates] == [c.score for c in same.candidates]


def test_what_is_advised_is_what_the_words_say(found):
    one, other = found.candidates[1], found.candidates[0]
    assert found.advised in (one.name, other.name)
    for mean, name in ((0.02, one.name), (-0.02, other.name)):
        choice = Choice((one.name,) * 2, one.score, Difference(mean, mean - 0.01, mean + 0.01, 0.2, "test"))
        assert advised(one, other, choice) == name
        words = recommendation("F₂", one, other, choice)
        assert words.endswith("whichever is simpler for you." if mean > 0 else f"stay with {other.name}.")


def test_words_do_not_oversell(found):
    one, other = found.candidates[1], found.candidates[0]

    def said(mean, p, picks=(one.name, one.name), collapse=""):
        apart = Difference(mean, mean - 0.01, mean + 0.01, p, "test")
        outcomes = tuple(replace(o, collapse=collapse) for o in one.outcomes)
        choice = Choice(picks, one.score, apart)
        return recommendation("F₂", replace(one, outcomes=outcomes), other, choice)

    assert said(0.02, 0.001).startswith("Take linear, tangent")
    assert "choosing afresh" not in said(0.02, 0.001)
    assert "which took it in 1 of 2" in said(0.02, 0.001, (one.name, other.name))
    assert "within noise" in said(0.02, 0.2)
    assert said(-0.02, 0.2).endswith("−0.010), p = 0.20): stay with linear, bce.")
    assert said(-0.02, 1e-6).endswith("difference −0.020 (−0.030 to −0.010), p < 0.001.")
    assert "within noise" in said(math.nan, math.nan)
    assert said(-0.02, 0.001).startswith("Stay with linear, bce")
    assert "without that cut it predicts nothing" in said(0.02, 0.001, collapse="predicts nothing positive")
    assert "none did better" in recommendation("F₂", other, other, found.choice)
    for text in (said(0.02, 0.001), said(0.02, 0.2), said(-0.02, 0.001)):
        assert text.endswith(".")
        assert ". " not in text  # one sentence


def test_the_choice_of_a_split_never_sees_its_test_rows(found):
    """What the recommendation goes by: picks by inner scores, judged by the same split's test rows."""
    by_name = {c.name: c.outcomes for c in found.candidates}
    for k, pick in enumerate(found.choice.picks):
        assert by_name[pick][k].inner == max(o[k].inner for o in by_name.values())
    scores = [by_name[pick][k].score for k, pick in enumerate(found.choice.picks)]
    base = [o.score for o in by_name[found.baseline]]
    assert found.choice.score.mean == pytest.approx(np.mean(scores))
    assert found.choice.difference.mean == pytest.approx(np.mean(np.subtract(scores, base)))


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
