"""Models of the reader's own: anything with scikit-learn's interface is compared as the others are."""

import re
import sys
from dataclasses import replace
from importlib.util import find_spec
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

pytest.importorskip("sklearn")
from scipy.stats import loguniform
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC, LinearSVC

from fbeta import artifact, compare
from fbeta.cli import app
from fbeta.comparison import fit, parts
from fbeta.comparison.methods import methods_for, writable
from fbeta.comparison.plan import Plan
from fbeta.learners import Goal, Rows, models
from fbeta.learners.classifiers import Own
from fbeta.learners.searched import Searched
from fbeta.metrics import FBeta
from fbeta.report.method_rows import protocol
from fbeta.tables.reading import read_frame

ASKED = {"metric": "f1", "losses": "bce", "splits": 2, "folds": 3}


def frame(rows=240):
    """Positive where two numbers have one sign, which no line shows."""
    chance = np.random.default_rng(0)
    x = chance.normal(size=(rows, 2))
    y = (x.prod(1) > 0) ^ (chance.random(rows) < 0.05)
    return pl.DataFrame({"a": x[:, 0], "b": x[:, 1], "y": np.where(y, "yes", "no")})


@pytest.fixture(scope="module")
def table():
    return read_frame(frame(), "y", "yes", name="crossed")


def rows_of(table):
    X = table.features.to_numpy().astype(np.float32)
    return Rows(X, table.y.astype(np.int64)[:, None], np.arange(len(X)) % 3)


def test_a_model_of_ones_own_is_compared_with_those_by_name(table):
    found = compare(table, models={"mine": SVC(random_state=0), "linear": None}, **ASKED)
    assert [c.name for c in found.candidates] == ["mine, own", "linear, bce"]
    assert (found.baseline, found.winner, found.verdict) == ("linear, bce", "mine, own", "better")
    assert found.candidates[0].score.mean > 0.8


@pytest.mark.parametrize(
    "estimator",
    [
        LogisticRegression(),
        LinearSVC(),
        make_pipeline(StandardScaler(), LogisticRegression()),
        RandomForestClassifier(5),
    ],
    ids=lambda x: type(x).__name__,
)
def test_scores_are_those_of_clones_that_did_not_see_the_row(table, estimator):
    rows = rows_of(table)
    (found,) = Own("mine", estimator).fit_folds(rows, Goal(FBeta(1)), ["own"], seed=3).values()
    assert found.scores.shape == (len(rows.y), 1)
    held = rows.fold == 1
    by_hand = Own("mine", estimator).classifier(3).fit(rows.X[~held], rows.y[~held, 0])
    if hasattr(by_hand, "predict_proba"):
        p = by_hand.predict_proba(rows.X[held])[:, 1].clip(1e-9, 1 - 1e-9)
        np.testing.assert_allclose(found.scores[held, 0], np.log(p / (1 - p)), rtol=1e-6, atol=1e-6)
    else:
        np.testing.assert_array_equal(found.scores[held, 0], by_hand.decision_function(rows.X[held]))
    assert not hasattr(estimator, "classes_")  # the reader's own object stays as it was


@pytest.mark.parametrize("name", ["hist-gradient-boosting", "catboost"])
def test_boosters_by_name_are_their_own_classes(table, name):
    if name == "catboost":
        pytest.importorskip("catboost")
    found = compare(table, models=[name, "linear"], **ASKED)
    assert found.winner == f"{name}, bce"
    assert found.candidate(found.winner).score.mean > 0.8
    rows, learner = rows_of(table), models.get(name)
    (fitted,) = learner.fit_folds(rows, Goal(FBeta(1)), ["bce"], seed=1).values()
    p = learner.classifier(1).fit(rows.X, rows.y[:, 0]).predict_proba(rows.X)[:, 1]
    np.testing.assert_allclose(1 / (1 + np.exp(-fitted.model(rows.X)[:, 0])), p, atol=1e-8)


def test_resamplers_in_a_pipeline_change_learning_rows_only(table):
    imblearn = pytest.importorskip("imblearn.pipeline")
    from imblearn.under_sampling import RandomUnderSampler

    seen = []

    class Counts(DummyClassifier):
        def fit(self, X, y, sample_weight=None):
            seen.append(np.bincount(y))
            return super().fit(X, y)

    y = np.arange(240) % 8 == 0
    rows = Rows(np.zeros((240, 2)), y[:, None].astype(int), np.arange(240) // 8 % 3)
    own = Own("mine", imblearn.make_pipeline(RandomUnderSampler(), Counts()))
    (found,) = own.fit_folds(rows, Goal(FBeta(1)), ["own"]).values()
    assert [list(x) for x in seen] == [[20, 20], [20, 20], [20, 20], [30, 30]]
    assert np.isfinite(found.scores).all()
    assert len(found.scores) == 240


def test_chance_comes_from_the_seed_of_the_split():
    own = Own("mine", make_pipeline(FunctionTransformer(), RandomForestClassifier(5)))
    assert own.classifier(7)[-1].random_state == 7
    assert Own("mine", RandomForestClassifier(random_state=1)).classifier(7).random_state == 1


def test_weights_reach_the_estimator_or_are_refused(table):
    rows = rows_of(table)
    weighted = Rows(rows.X, rows.y, rows.fold, np.where(rows.y[:, 0] == 1, 5.0, 1.0))
    own = Own("mine", make_pipeline(StandardScaler(), LogisticRegression()))
    one, other = (own.fit_folds(x, Goal(FBeta(1)), ["own"])["own"].scores for x in (rows, weighted))
    assert (other > one + 0.5).all()

    class Plain(ClassifierMixin, BaseEstimator):
        def fit(self, X, y):
            return self

        def predict_proba(self, X):
            return np.full((len(X), 2), 0.5)

    assert Own("mine", Plain()).fit_folds(rows, Goal(FBeta(1)), ["own"])["own"].scores.max() == 0
    with pytest.raises(ValueError, match="mine fails: ValueError: it takes no weights of rows"):
        Own("mine", Plain()).fit_folds(weighted, Goal(FBeta(1)), ["own"])


@pytest.mark.parametrize(
    ("models", "said"),
    [
        ({"mine": RandomForestRegressor()}, r"mine \(RandomForestRegressor\) is no classifier with fit"),
        ({"mine": LogisticRegression}, r"mine is a class: give an object, LogisticRegression\(…\)"),
        ({"mine": 3}, r"mine \(int\) is no classifier"),
        ({"linear": LogisticRegression()}, "'linear' is the name of another model already"),
        ({"over+mine": LogisticRegression()}, "is the name of another model"),
        ({"a,b": LogisticRegression()}, "needs a name without a comma; got 'a,b'"),
        ({"mine": None}, "Unknown model 'mine'"),
        ([LogisticRegression()], "models are names; models of your own come with one"),
        (LogisticRegression(), "models are names; models of your own come with one"),
    ],
)
def test_what_is_no_model_is_said(models, said):
    with pytest.raises((TypeError, ValueError), match=said):
        methods_for(models, None, FBeta(1))


def key(table, estimator):
    return Plan.make(table, FBeta(1), methods_for({"mine": estimator}, None, FBeta(1)), 1, 2, 0).parts[0]


def test_parts_are_kept_by_all_parameters(table, tmp_path):
    pipe = make_pipeline(StandardScaler(), LogisticRegression())
    same = make_pipeline(StandardScaler(), LogisticRegression())
    other = make_pipeline(StandardScaler(), LogisticRegression(C=2.0))
    assert key(table, pipe).key == key(table, same).key != key(table, other).key
    assert key(table, pipe).key != key(table, LogisticRegression()).key
    one, two = (compare(table, models={"mine": pipe}, folder=tmp_path, **ASKED) for _ in range(2))
    assert one.candidates == two.candidates
    assert len(list(tmp_path.glob("mine-own*.scores"))) == 2


def test_what_a_parameter_does_not_say_is_never_kept(table, tmp_path):
    class Mine(LogisticRegression):
        pass

    for estimator in (make_pipeline(FunctionTransformer(np.abs), LogisticRegression()), Mine()):
        assert not Own("mine", estimator).cached
        compare(table, models={"mine": estimator}, folder=tmp_path, **ASKED)
    assert not list(tmp_path.glob("*.scores"))


def test_processes_and_what_cannot_be_sent_to_them(table):
    said = []

    class Stays(LogisticRegression):
        def __reduce__(self):
            raise TypeError("it stays")

    found = compare(table, models={"mine": Stays()}, jobs=2, say=said.append, **ASKED)
    assert said == ["mine cannot be sent to other processes, so all is trained in this one."]
    alone = compare(table, models={"mine": LogisticRegression()}, **ASKED)
    assert [c.score for c in found.candidates] == [c.score for c in alone.candidates]


def test_a_fit_stays_in_python(table, tmp_path):
    model = fit(table, models={"mine": SVC(random_state=0)}, metric="f1", folds=3)
    assert (model.decide(frame()) == frame()["y"].to_numpy()).mean() > 0.9
    with pytest.raises(ValueError, match="mine cannot be written to a model file.*ThresholdClassifier"):
        artifact.save(model, tmp_path / "m.fbeta")
    methods = methods_for({"mine": SVC(), "linear": None}, "bce", FBeta(1))
    assert writable(methods) == ["linear"]
    found = compare(table, models={"mine": SVC(random_state=0), "linear": None}, **ASKED)
    assert fit(table, comparison=found, models={"mine": SVC(random_state=0)}).name == "mine, own"
    with pytest.raises(ValueError, match="advises mine, a model of your own"):
        fit(table, comparison=found)


def test_nothing_is_imported_because_a_file_names_it(table):
    found = compare(table, models="linear", **ASKED)
    (best,) = found.candidates
    evil = replace(found, candidates=(replace(best, model="readers_evil:x"),))
    with pytest.raises(ValueError, match="Unknown model 'readers_evil:x'"):
        fit(table, comparison=evil, force=True)


MODULE = """
from sklearn.svm import SVC
from sklearn.linear_model import Ridge
mine = SVC(random_state=0)
def made(): return SVC(random_state=0)
def fails(): raise KeyError("x")
ridge = Ridge()
"""


def run(*arguments):
    return CliRunner().invoke(app, [str(x) for x in arguments])


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "readers_own.py").write_text(MODULE)
    (tmp_path / "readers_fault.py").write_text("import nothing_like_it")
    frame().write_csv("rows.csv")
    return tmp_path


def test_command_imports_a_model(folder):
    short = ["--target", "y", "--positive", "yes", "--losses", "bce", "--splits", 2, "--folds", 3, "--results", "kept"]
    more = ["--models", "linear", "--model", "readers_own:mine", "--jobs", 1]
    done = run("compare", "rows.csv", *short, *more)
    assert done.exit_code == 0
    assert "readers_own:mine, own" in done.output
    again = run("compare", "rows.csv", *short, *more, "--fit", "m.fbeta", "--force")
    assert again.exit_code == 0, again.output
    said = " ".join(again.output.split())
    assert "readers_own:mine cannot be written to a model file" in said
    assert "Fitted instead: the best of linear." in said
    assert artifact.load("m.fbeta").model == "linear"


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("readers_own:ridge", r"readers_own:ridge \(Ridge\) is no classifier"),
        ("readers_own:min", "has no 'min'. Did you mean 'mine'?"),
        ("readers_own:fails", r"fails\(\) without arguments fails: KeyError: 'x'"),
        ("readers_fault:x", "cannot be imported: ModuleNotFoundError: No module named 'nothing_like_it'"),
        ("not_there:x", "there is no module 'not_there' in"),
    ],
)
def test_command_says_what_is_wrong_with_an_import(folder, spec, said):
    done = run("compare", "rows.csv", "--target", "y", "--model", spec)
    assert done.exit_code == 2
    assert len(done.stderr.strip().splitlines()) == 1
    assert re.search(said, done.stderr)


def test_command_refuses_early_to_write_what_no_file_can_hold(folder):
    for command in (["fit", "-o", "m.fbeta"], ["compare", "--fit", "m.fbeta"]):
        done = run(command[0], "rows.csv", "--target", "y", "--model", "readers_own:made", *command[1:])
        assert done.exit_code == 2
        assert "readers_own:made cannot be written to a model file" in done.stderr


# A budget of time


def clock(monkeypatch):
    """A minute goes by between any two looks at the clock."""
    looks = iter(range(0, 10**6, 60))
    monkeypatch.setattr(parts, "time", SimpleNamespace(monotonic=lambda: next(looks)))


@pytest.mark.parametrize(
    ("minutes", "names", "judged"), [(1.5, ["linear, bce"], 1), (3.5, ["mine, own", "linear, bce"], 1), (4.5, [], 2)]
)
def test_minutes_are_kept_and_what_was_left_out_is_said(table, tmp_path, monkeypatch, minutes, names, judged):
    own = {"mine": LogisticRegression(C=0.01), "linear": None}
    asked = ASKED | {"splits": 3, "models": own}
    clock(monkeypatch)
    found = compare(table, folder=tmp_path, minutes=minutes, **asked)
    assert ([c.name for c in found.candidates], found.seeds) == (names or ["mine, own", "linear, bce"], judged)
    without = ", without mine, own" if len(names) == 1 else ""
    assert f"The time was up: judged on {judged} of 3 splits{without}; the same" in found.recommendation
    assert len(list(tmp_path.glob("*.scores"))) == int(minutes)
    whole = compare(table, folder=tmp_path, minutes=1000, **asked)
    assert whole.recommendation == compare(table, **asked).recommendation
    assert [c.score for c in whole.candidates] == [c.score for c in compare(table, **asked).candidates]


def test_no_time_at_all_is_said(table, monkeypatch):
    clock(monkeypatch)
    with pytest.raises(ValueError, match="no split is finished"):
        compare(table, models="linear", minutes=0.5, **ASKED)
    for minutes in (0, -1, float("nan")):
        with pytest.raises(ValueError, match="minutes must be a number above 0"):
            compare(table, models="linear", minutes=minutes, **ASKED)


# Weights of rows


def test_weights_that_are_all_alike_change_nothing():
    asked = ASKED | {"models": ["linear", "xgboost"], "losses": "tangent"}
    one = compare(frame(), "y", positive="yes", **asked)
    same = compare(frame().with_columns(w=pl.lit(7.0)), "y", positive="yes", weight="w", **asked)
    for mine, other in zip(one.candidates, same.candidates, strict=True):
        assert mine.score.mean == pytest.approx(other.score.mean, abs=1e-6)
        assert mine.score.low == pytest.approx(other.score.low, abs=1e-6)
        assert mine.outcomes[0].cut == pytest.approx(other.outcomes[0].cut, abs=1e-4)
    assert (one.verdict, one.advised) == (same.verdict, same.advised)
    assert same.reading()["weight"] == same.table.weight == "w"


def test_weights_reach_training_cut_and_judging():
    """Where rows below 0 hardly count, it is as if they were not there."""
    chance = np.random.default_rng(1)
    x = chance.normal(size=(300, 2))
    y = np.where(x[:, 0] > 0, x[:, 1] > 0.5, x[:, 1] < -0.5)
    w = np.where(x[:, 0] > 0, 1.0, 1e-6)
    rows = pl.DataFrame({"a": x[:, 0], "b": x[:, 1], "w": w, "y": np.where(y, "yes", "no")})
    asked = {"metric": "f1", "models": "linear", "losses": "bce", "splits": 5, "folds": 3}
    alike, weighted = (compare(rows, "y", positive="yes", **asked, **how) for how in ({"drop": ["w"]}, {"weight": "w"}))
    assert weighted.candidates[0].score.mean > 0.9 > 0.8 > alike.candidates[0].score.mean
    cells = sum(o.tp + o.fn + o.fp + o.tn for o in weighted.candidates[0].outcomes)
    assert cells == pytest.approx(300)  # a mean of 1
    positives = weighted.candidates[0].operating.positives
    assert positives == pytest.approx(300 * w[y].sum() / w.sum())
    model = fit(rows, "y", comparison=weighted)
    assert [column.name for column in model.columns] == ["a", "b"]
    assert (model.decide(rows) == rows["y"].to_numpy())[x[:, 0] > 0].mean() > 0.95


@pytest.mark.parametrize(
    ("weights", "said"),
    [
        ([1.0, 2.0, None, 1.0], "'w' is missing, or not above 0, in 1 of 4 rows"),
        ([1.0, 2.0, -1.0, 0.0], "in 2 of 4 rows: leave out rows"),
        (["a", "b", "c", "d"], "'w' holds no numbers .'a'.: a weight is one above 0"),
    ],
)
def test_bad_weights_are_said(weights, said):
    rows = pl.DataFrame({"a": [1.5, 2.5, 3.0, 9.0], "w": weights, "y": ["n", "y", "n", "y"]})
    with pytest.raises(ValueError, match=said):
        read_frame(rows, "y", "y", weight="w")
    with pytest.raises(ValueError, match="must differ"):
        read_frame(rows, "y", "y", weight="a", group="a")


def test_other_weights_are_other_parts():
    rows = frame().with_columns(w=pl.col("a").abs() + 1)
    keys = {
        Plan.make(read_frame(rows, "y", "yes", **how), FBeta(1), methods_for("linear", "bce", FBeta(1)), 1, 2, 0)
        .parts[0]
        .key
        for how in ({"weight": "w"}, {"drop": ["w"]}, {"time": "w"})
    }
    assert len(keys) == 3


# A search


def test_the_best_settings_by_rows_held_out_are_kept(table):
    rows, goal = rows_of(table), Goal(FBeta(1))
    pair = SVC(kernel="linear", random_state=0), {"kernel": ["rbf"], "C": [1.0]}
    searched = Searched(Own("mine", *pair), trials=3)
    (found,) = searched.fit_folds(rows, goal, ["own"]).values()
    each = [one.fit_folds(rows, goal, ["own"])["own"] for one in searched.drawn(0)]
    scores = [goal.held_out_score(*rows.held_out(x.scores)) for x in each]
    assert len(each) == 2  # there are no more in its lists
    assert scores[1] > scores[0] + 0.1
    np.testing.assert_array_equal(found.scores, each[1].scores)


def test_test_rows_have_no_say_in_a_search(table):
    """Other labels of test rows lead to the same scores."""
    methods = methods_for("linear", "bce", FBeta(1), trials=2)
    plan = Plan.make(table, FBeta(1), methods, 1, 3, 0)
    y = table.y.copy()
    y[plan.splits[0].test] ^= 1
    one, other = (next(iter(parts.train(plan, t)))[1]["bce"] for t in (table, replace(table, y=y)))
    np.testing.assert_array_equal(one.outer, other.outer)


@pytest.mark.parametrize("name", [n for n in models.names() if models.get(n).space])
def test_every_space_has_settings_that_its_model_takes(name):
    learner = models.get(name)
    first, second = Searched(learner, trials=2).drawn(1)
    assert first.settings == learner.settings != second.settings
    small = {"rounds": 3} if name in ("xgboost", "lightgbm") else {"epochs": 2} if name in ("linear", "mlp") else {}
    small = {"trees": 3} if "forest" in name else small
    chance = np.random.default_rng(0)
    rows = Rows(chance.normal(size=(60, 3)).astype(np.float32), chance.integers(0, 2, (60, 1)), np.arange(60) % 2)
    (found,) = second.having(small).fit_folds(rows, Goal(FBeta(1)), ["bce"]).values()
    assert np.isfinite(found.scores).all()


def test_trials_are_said_kept_and_fitted(table, tmp_path):
    asked = ASKED | {"models": ["over+linear", "linear"] if find_spec("imblearn") else ["mlp", "linear"]}
    found = compare(table, trials=2, folder=tmp_path, **asked)
    assert "tried with 2 of them in each split" in protocol(found)
    assert compare(table, trials=2, folder=tmp_path, **asked).candidates == found.candidates
    assert len(list(tmp_path.glob("*.scores"))) == 4
    own = {"mine": (LogisticRegression(), {"C": loguniform(0.01, 100)})}
    assert methods_for(own, None, FBeta(1), trials=2)[0].learner.cached
    with pytest.raises(ValueError, match="trials must be 1"):
        compare(table, trials=0, **asked)
    model = fit(table, comparison=found, force=True)
    artifact.save(model, tmp_path / "m.fbeta")
    same = artifact.load(tmp_path / "m.fbeta")
    np.testing.assert_array_equal(same.probability(frame()), model.probability(frame()))
