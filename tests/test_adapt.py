"""Following the population: the share of positives found without labels, in decisions, sketches, estimators, files."""

import json
import os

import numpy as np
import polars as pl
import pytest
from scipy.special import expit, logit
from sklearn.datasets import make_multilabel_classification
from sklearn.linear_model import LogisticRegression
from typer.testing import CliRunner

from fbeta import MCC, Confusion, Cost, Decision, FBeta, Recall, artifact, tune
from fbeta.artifact import predicting
from fbeta.cli import app
from fbeta.decisions import Platt, Prevalence, Sketch
from fbeta.sklearn import MetricClassifier, ThresholdClassifier
from made_up_model import fitted, frame

D = 2.0  # how far the classes' normal scores are apart


def drawn(n, share, seed=0, d=D):
    """Scores that are the log odds at a share of 0.1, whatever the share is."""
    rng = np.random.default_rng(seed)
    y = rng.random(n) < share
    return d * rng.normal(d * y) - d * d / 2 + logit(0.1), y


def decision(n=4000, metric="f1", seed=0, **options):
    z, y = drawn(n, 0.1, seed)
    return Decision.fit(z, y, metric, kind="logit", **options)


def f1(d, z, y, metric=None):
    return float((metric or FBeta(1))(Confusion.from_predictions(d.decide(z) * 1.0, y)))


@pytest.mark.parametrize("share", [0.01, 0.03, 0.3, 0.6])
def test_the_share_is_found_and_the_cut_is_that_of_the_population(share):
    d, (z, y) = decision(20_000), drawn(20_000, share, 1)
    new = d.adapt(z)
    (found,) = new.prevalences
    assert new.moved
    assert new.remark is None
    assert found.interval[0] < share < found.interval[1]
    assert found.estimate == pytest.approx(y.mean(), rel=0.15, abs=0.004)
    assert found.counted == pytest.approx(y.mean(), rel=0.25, abs=0.006)
    best = tune(z, y, FBeta(1)).score
    assert f1(new, z, y) > best - 0.025
    assert f1(new, z, y) > f1(d, z, y) + 0.005
    # The scores are the log odds at 0.1; so the true probabilities are known.
    truth = expit(z + logit(share) - logit(0.1))
    assert np.abs(new.probability(z) - truth).mean() < 0.012
    assert np.abs(new.probability(z) - truth).mean() < np.abs(d.probability(z) - truth).mean() / 2


def test_where_nothing_moved_nothing_changes():
    d, alarms = decision(), 0
    for seed in range(100):
        z, _ = drawn(1000, 0.1, 10 + seed)
        new = d.adapt(z)
        alarms += new.moved
        if not new.moved:
            assert new.cuts == d.cuts
            assert np.array_equal(new.probability(z), d.probability(z))
            assert new.prevalence == d.prevalence == pytest.approx(0.1, abs=0.02)
    assert alarms <= 6


def test_the_interval_holds_the_share():
    held = 0
    for seed in range(60):
        d = decision(1500, seed=2 * seed)
        z, _ = drawn(400, 0.3, 2 * seed + 1)
        low, high = d.adapt(z).prevalences[0].interval
        held += low <= 0.3 <= high
    assert 53 <= held <= 60


def test_a_known_share_is_exactly_a_tuned_one():
    """Few distinct scores: the rows remembered are all of them, so the cut is that of `tune`."""
    z, y = drawn(3000, 0.1)
    z = np.round(z)
    for metric in ("f1", "f2", MCC(), Cost(fp=1, fn=5)):
        for rule in ("exact", "plugin", "shrunk"):
            d = Decision.fit(z, y, metric, kind="logit", calibration="none", rule=rule)
            for share in (0.02, 0.4):
                new = d.adapt(at_prevalence=share)
                wanted = tune(expit(z), y, metric, kind="probability", rule=rule, prevalence=share)
                assert new.prevalence == share
                assert np.array_equal(new.decide(z), expit(z) >= wanted.value)
                assert new.cut.score == pytest.approx(wanted.score)
                moved = logit(new.probability(z)) - logit(d.probability(z))
                np.testing.assert_allclose(moved, logit(share) - logit(y.mean()), atol=1e-6)
                if rule == "exact":  # and the interval knows no more rows than there are
                    assert new.cut.interval.score == pytest.approx(wanted.interval.score, abs=0.02)


def test_a_decision_fitted_on_balanced_rows_is_corrected():
    z, y = drawn(40_000, 0.1)
    kept = y | (np.random.default_rng(3).random(y.size) < 1 / 9)
    corrected = Decision.fit(z[kept], y[kept], "f1", kind="logit").adapt(at_prevalence=y.mean())
    natural = Decision.fit(z, y, "f1", kind="logit")
    assert np.abs(corrected.probability(z) - natural.probability(z)).mean() < 0.01
    assert f1(corrected, z, y) > f1(natural, z, y) - 0.01
    weighted = Decision.fit(z, y, "f1", np.where(y, 9.0, 1.0), kind="logit").adapt(at_prevalence=y.mean())
    assert np.abs(weighted.probability(z) - natural.probability(z)).mean() < 0.01


def test_weights_are_no_evidence():
    z, y = drawn(3000, 0.1)
    new, _ = drawn(1000, 0.3, 1)
    plain = Decision.fit(z, y, "f1", kind="logit").adapt(new).prevalences[0]
    scaled = Decision.fit(z, y, "f1", np.full(3000, 1e-3), kind="logit").adapt(new).prevalences[0]
    assert scaled.interval == pytest.approx(plain.interval, rel=1e-6)
    assert scaled.moved


def test_adapting_starts_from_the_labelled_rows_each_time():
    d = decision()
    there, back = drawn(4000, 0.5, 1)[0], drawn(4000, 0.1, 2)[0]
    moved = d.adapt(there)
    again = Decision.from_dict(json.loads(json.dumps(moved.to_dict())))
    assert again.to_dict() == moved.to_dict()
    assert again.adapt(there).cut.value == moved.adapt(there).cut.value == moved.cut.value
    assert again.adapt(there).prevalences[0].interval == moved.prevalences[0].interval
    meant = decision(prevalence=0.3).adapt(at_prevalence=0.3)  # the cut is there already, probabilities are not
    assert meant.probability(back).mean() > 1.5 * d.probability(back).mean()
    returned = again.adapt(back)
    assert not returned.moved
    z = drawn(500, 0.1, 3)[0]
    np.testing.assert_allclose(returned.probability(z), d.probability(z), atol=1e-12)
    assert np.mean(returned.decide(z) != d.decide(z)) < 0.01


def test_rule_and_constraints_are_those_of_the_fit():
    d = decision(subject_to={"recall": 0.9})
    z, y = drawn(4000, 0.4, 1)
    new = d.adapt(z)
    assert Recall()(new.cut.counts) >= 0.9
    assert f1(new, z, y, Recall()) > 0.87
    half = decision(rule="constant:at=0.5").adapt(z)
    assert half.cut.value == pytest.approx(0.5, abs=0.02)  # a policy about probabilities, which moved
    assert half.cut.rule == "constant:at=0.5"


def test_a_population_that_changed_otherwise_is_remarked_upon():
    d = decision()
    z, _ = drawn(4000, 0.1, 1)
    assert d.adapt(z).remark is None
    for other in (z * 1.4, z / 2, np.where(np.arange(4000) % 3, z, 1.0)):
        found = d.adapt(other)
        assert found.remark.startswith("More than the share of positives changed: above the cut")
        assert found.remark in found.explain()


def test_scores_that_say_nothing_move_nothing():
    z, y = drawn(500, 0.1)
    d = Decision.fit(-z, y, "f1", kind="score")  # they fall where they should rise
    found = d.adapt(-drawn(500, 0.4, 1)[0])
    assert not found.moved
    assert "hardly tell the classes apart" in found.remark
    assert found.prevalences[0].interval == (0.0, 1.0)


def test_columns_follow_each_on_its_own():
    z, y = drawn(6000, 0.1)
    Z, Y = z.reshape(-1, 2), y.reshape(-1, 2)
    d = Decision.fit(Z, Y, "f1", kind="logit")
    new = np.stack([drawn(2000, 0.1, 1)[0], drawn(2000, 0.5, 2)[0]], axis=1)
    found = d.adapt(new)
    assert [p.moved for p in found.prevalences] == [False, True]
    assert found.cuts[0] == d.cuts[0]
    single = Decision.fit(Z[:, 1], Y[:, 1], "f1", kind="logit").adapt(new[:, 1])
    assert found.cuts[1].value == single.cut.value
    assert found.prevalence == pytest.approx([d.prevalence[0], single.prevalence])
    assert d.adapt(at_prevalence=[0.2, 0.3]).prevalence == pytest.approx([0.2, 0.3])
    assert "Column" not in (single.remark or "")


@pytest.mark.parametrize(
    ("scores", "options", "says"),
    [
        (np.zeros(49), {}, "needs 50 rows at least; got 49. If it is known, give at_prevalence="),
        (np.full(60, 0.3), {}, "All 60 scores are equal, so they say nothing of the share"),
        (np.r_[np.nan, np.zeros(60)], {}, "scores hold NaN"),
        (np.linspace(50, 60, 80), {}, "100.00 % of the scores lie outside of all that were seen"),
        (np.zeros((60, 2)), {}, r"scores must be \(n,\); got \(60, 2\)"),
        (None, {}, "takes scores of new rows, or at_prevalence="),
        (np.zeros(60), {"at_prevalence": 0.1}, "takes scores of new rows, or at_prevalence="),
        (None, {"at_prevalence": 1.5}, "strictly between 0 and 1"),
        (
            None,
            {"at_prevalence": [0.1, 0.2]},
            r"at_prevalence is one number, or one per column, .* 1; got shape \(2,\)",
        ),
        (None, {"at_prevalence": "few"}, "at_prevalence must hold numbers"),
        (Sketch(kind="logit"), {}, "a Sketch of probabilities"),
        (["a"] * 60, {}, "must hold numbers"),
    ],
)
def test_bad_input(scores, options, says):
    with pytest.raises(ValueError, match=says):
        decision(400).adapt(scores, **options)


def test_what_has_no_one_share():
    z, y = drawn(900, 0.3)
    Z, Y = z.reshape(-1, 3), y.reshape(-1, 3)
    classes = Z.argmax(1)[:, None] == np.arange(3)
    for d in (
        Decision.fit(Z, Y, "f1", kind="logit", average="micro"),
        Decision.fit(Z, classes, "f1", kind="logit", exclusive=True),
    ):
        assert d.prevalence is None
        with pytest.raises(ValueError, match="adapt moves the share of positives of columns that were cut one by one"):
            d.adapt(Z)


#: Rows whose number is beyond any number.
ENDLESS = {"scores": [1.0], "ends": [], "tp": [0, 1e90], "fp": [0, 1], "called": [0, 2], "rows_per_weight": [1e250, 1]}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"rows": [], "seen": []}, "other columns"),
        ({"rows": [{"scores": [1.0], "ends": [2.0], "tp": [0, 1], "fp": [0, 1], "called": [0, 2]}]}, "no decision"),
        ({"rows": [{"scores": [], "ends": [], "tp": [0], "fp": [0], "called": [0]}]}, "no decision|no such shape"),
        ({"rows": [ENDLESS]}, "do not rise"),
        ({"budget": -3}, "zero or more"),
        ({"seen": [[1.0, 0.0]]}, "no range"),
        ({"seen": []}, "no range"),
    ],
)
def test_what_are_no_kept_rows(change, says):
    data = decision(400).to_dict()
    data["kept"] |= change
    with pytest.raises(ValueError, match=says):
        Decision.from_dict(data)


@pytest.mark.parametrize("name", ["tp", "scores", "ends", "called"])
def test_kept_rows_that_do_not_count(name):
    data = decision(400).to_dict()
    rows = data["kept"]["rows"][0]
    more = [[*rows[name][:-1], 1e60]] if name == "called" else []  # no whole number of rows
    for values in (rows[name][::-1], [*rows[name][:-1], float("nan")], rows[name][1:], *more):
        with pytest.raises(ValueError, match="rows it kept"):
            Decision.from_dict(data | {"kept": data["kept"] | {"rows": [rows | {name: values}]}})
    with pytest.raises(ValueError, match="share of positives is none"):
        Prevalence.from_dict(Prevalence(0.1, 1.5, (0.0, 1.0)).to_dict())


def test_a_sketch_says_what_the_rows_do():
    (z, y), (later, _) = drawn(20_000, 0.1), drawn(20_000, 0.4, 1)
    d = Decision.fit(z, y, "f1", kind="logit")
    whole = d.adapt(later)
    parts = [Sketch().add(d.probability(later[i::3])) for i in range(3)]
    merged = d.adapt(parts[2].merge(parts[0], parts[1]))
    assert merged.prevalence == pytest.approx(whole.prevalence, rel=0.01)
    assert merged.cut.value == pytest.approx(whole.cut.value, abs=0.02)
    labelled = Sketch(kind="logit").add(z, y)
    found = labelled.adapt(Sketch(kind="logit").add(later))
    assert found.estimate == pytest.approx(whole.prevalences[0].estimate, rel=0.05)
    assert not labelled.adapt(Sketch(kind="logit").add(drawn(20_000, 0.1, 2)[0])).moved
    with pytest.raises(ValueError, match="needs 50 rows at least; got 0"):
        d.adapt(Sketch())
    with pytest.raises(ValueError, match="same bins"):
        labelled.adapt(Sketch().add(expit(later)))


def rows_of(n, share, seed):
    rng = np.random.default_rng(seed)
    y = rng.random(n) < share
    return rng.normal(size=(n, 3)) + 1.3 * y[:, None], y


@pytest.mark.parametrize("kind", ["threshold", "metric"])
@pytest.mark.parametrize("names", [("fraud", "good"), ("good", "bad")])
def test_estimators_follow(kind, names):
    X, y = rows_of(2000, 0.1, 0)
    later, truth = rows_of(2000, 0.5, 1)
    labels = np.where(y, *names)
    options = {"pos_label": names[0], "random_state": 0}
    made = ThresholdClassifier(LogisticRegression(), "f1", **options) if kind == "threshold" else None
    model = (made or MetricClassifier("f1", "linear", "bce", **options)).fit(X, labels)
    before = model.predict(later)
    moved = model.adapt(later)
    assert type(moved) is type(model)
    assert moved.decision_.prevalence == pytest.approx(0.5, abs=0.05)
    assert np.array_equal(model.predict(later), before)  # the model itself stays as it is
    wanted = np.where(truth, *names)
    assert (moved.predict(later) == wanted).mean() > (before == wanted).mean()
    column = list(moved.classes_).index(names[0])
    assert moved.predict_proba(later)[:, column].mean() == pytest.approx(0.5, abs=0.05)
    assert moved.adapt(at_prevalence=0.1).decision_.prevalence == 0.1
    assert moved.cuts_[0].value != model.cuts_[0].value


def test_estimators_of_labels_follow():
    X, Y = make_multilabel_classification(900, n_classes=3, random_state=0)
    model = ThresholdClassifier(LogisticRegression(max_iter=500), "f1", average="macro", random_state=0).fit(X, Y)
    kept = np.flatnonzero((Y[:, 0] == 1) | (np.arange(900) % 10 == 0))
    found = model.adapt(X[kept]).decision_
    assert found.prevalences[0].moved
    assert found.prevalence.shape == (3,)


def test_a_file_is_predicted_in_two_passes(tmp_path):
    model = fitted(loss="bce")
    assert np.isfinite(model.decision.kept.rows[0].scores).all()
    path = tmp_path / "model.fbeta"
    artifact.save(model, path)
    rng = np.random.default_rng(5)
    y = rng.random(3000) < 0.6
    x = rng.normal(size=(3000, 3)) + 1.2 * y[:, None]
    about = {"shop": rng.choice(["a", "b", "c"], 3000), "day": ["2024-01-01"] * 3000, "new": ["yes"] * 3000}
    pl.DataFrame({f"x{i}": x[:, i] for i in range(3)} | about).write_csv(tmp_path / "rows.csv")

    def predicted(*options):
        call = ["predict", str(path), str(tmp_path / "rows.csv"), "-o", str(tmp_path / "out.csv"), *options]
        result = CliRunner().invoke(app, call)
        assert result.exit_code == 0, result.output
        return pl.read_csv(tmp_path / "out.csv")["probability"].to_numpy(), " ".join(result.output.split())

    p, plain = predicted()
    q, said = predicted("--adapt")
    assert "The share of positives" not in plain
    assert "The share of positives moved from" in said
    assert abs(q.mean() - 0.6) < 0.08 < 0.6 - p.mean()
    r, given = predicted("--at-prevalence", "0.6")
    assert "taken for 60.00 %, as given" in given
    shift = logit(r) - logit(p)
    np.testing.assert_allclose(shift, shift[0], atol=1e-5)
    *_, facts = (json.loads(line) for line in [predicted("--adapt", "--json")[1]])
    assert facts["population"]["moved"] is True
    refused = CliRunner().invoke(
        app, ["predict", str(path), "-", "--adapt", "-o", str(tmp_path / "o.csv")], input="x\n"
    )
    assert refused.exit_code != 0
    assert "reads the rows twice" in refused.output


def test_what_cannot_be_read_twice_is_not_adapted_to(tmp_path, monkeypatch):
    model = fitted(loss="bce")
    artifact.save(model, tmp_path / "model.fbeta")
    frame(600, seed=1).write_csv(rows := tmp_path / "rows.csv")
    os.mkfifo(tmp_path / "pipe.csv")

    def said(source, *options):
        call = ["predict", str(tmp_path / "model.fbeta"), str(source), "-o", str(tmp_path / "o.csv"), *options]
        result = CliRunner().invoke(app, call)
        assert (result.exit_code, (tmp_path / "o.csv").exists()) == (2, False)
        return " ".join(result.output.split())

    assert "which the pipe" in said(tmp_path / "pipe.csv", "--adapt")
    assert "leave one of them out" in said(rows, "--adapt", "--at-prevalence", "0.5")
    assert "needs 50 rows" in said(frame(20).write_csv(tmp_path / "few.csv") or tmp_path / "few.csv", "--adapt")
    adapted = predicting._adapted

    def disturbed(*arguments):
        found = adapted(*arguments)
        frame(600, seed=2).write_csv(rows)
        return found

    monkeypatch.setattr(predicting, "_adapted", disturbed)
    assert "was changed between its two readings" in said(rows, "--adapt")


def test_a_cut_without_its_metric_is_not_adapted():
    data = decision(400).to_dict()
    for cut in data["cuts"]:
        cut["metric"] = None
    with pytest.raises(ValueError, match="a function that no file holds"):
        Decision.from_dict(data).adapt(at_prevalence=0.3)
    data["kept"]["budget"] = ["x" * 5000]
    with pytest.raises(ValueError, match="must be a finite number") as error:
        Decision.from_dict(data)
    assert len(str(error.value)) < 200


def test_scores_of_another_model_are_refused_whatever_the_calibration():
    """A calibration that hardly counts scores beyond its limits must not hide them."""
    z, y = drawn(4000, 0.1)
    d = Decision.fit(z, y, "f1", kind="logit", calibration=[Platt(1.0, 0.0, low=-6.0, high=2.0)])
    for other in (z + 40, -30 + z, expit(z) * 1e3):
        with pytest.raises(ValueError, match="lie outside of all that were seen"):
            d.adapt(other)
    assert not d.adapt(z).moved
