"""Fit, predict, tune: the same decision as in a comparison, on all rows; streams equal wholes."""

from dataclasses import replace

import numpy as np
import pytest

from fbeta import Confusion, Decision, FBeta
from fbeta.artifact import load, predict, save
from fbeta.artifact.model_file import to_bytes
from fbeta.comparison import compare, judging
from fbeta.comparison.choosing import chosen
from fbeta.comparison.inference import ByRows, JudgedRows
from fbeta.comparison.methods import Method, methods_for
from fbeta.comparison.parts import LoadedPart
from fbeta.comparison.plan import Part, Split
from fbeta.comparison.result import Comparison
from fbeta.comparison.run import digest_of_file, fit
from fbeta.learners import Goal, Rows, models
from fbeta.tables import Encoder, TableError, read_frame, read_table, split
from fbeta.tables.scored_rows import read_scores
from fbeta.writing import OutputError

pl = pytest.importorskip("polars")


def frame(n=400, seed=0, spread=1.2):
    rng = np.random.default_rng(seed)
    y = rng.random(n) < 0.2
    x = rng.normal(size=(n, 3)) + spread * y[:, None]
    columns = {f"x{i}": x[:, i] for i in range(3)} | {"shop": rng.choice(["a", "b", "c"], n)}
    return pl.DataFrame(columns | {"id": np.arange(n) * 7 % n, "fraud": np.where(y, "yes", "no")})


def table(**options):
    return read_frame(frame(), "fraud", "yes", name="shops", drop=["id"], **options)


@pytest.fixture(scope="module")
def model():
    return fit(table(), metric="fbeta:beta=2", models="linear", losses="tangent", folds=3)


def test_it_trains_on_all_rows_and_cuts_by_those_out_of_fold(model):
    held = table()
    fold = split(held, 3, 1000).ids
    X, y = Encoder.fit(held.features, held.columns).transform(held.features), held.y.astype(np.int64)
    rows = Rows(X, y[:, None], fold)
    fitted = models.get("linear").fit_folds(rows, Goal(FBeta(2)), ["tangent"], seed=0)["tangent"]
    known = fitted.calibration
    decision = Decision.fit(fitted.scores[:, 0], y, FBeta(2), kind="logit", rule="shrunk", calibration=known)
    assert model.decision.to_dict() == decision.to_dict()
    assert np.array_equal(model.scorer.weights[0], fitted.model.weights[0])
    # Judged by its own rows, which a fit has no others than, a comparison takes the same decision.
    everything = np.arange(len(held))
    where, part = Split(everything, everything, fold, 0), Part("linear", ("tangent",), 0, 0)
    scores = LoadedPart(part, X, y, where, FBeta(2)).train()["tangent"]
    judged = judging.judge(scores, y, where, FBeta(2), "shrunk")
    assert judged.outcome.cut == model.cut.value
    assert model.of_features(held.features) == pytest.approx(judged.probability, abs=1e-9)


def test_the_same_seed_gives_the_same_model(model):
    again = fit(table(), metric="fbeta:beta=2", models="linear", losses="tangent", folds=3)
    for one in (model, again):
        one.provenance.update(date="", seconds=0.0)
    assert to_bytes(again) == to_bytes(model)
    other = fit(table(), metric="fbeta:beta=2", models="linear", losses="tangent", folds=3, seed=1)
    assert other.cut.value != model.cut.value  # other folds


def test_of_several_the_best_out_of_fold_is_kept():
    names = ["bce", "surrogate", "focal"]
    alone = {name: fit(table(), models="linear", losses=name, folds=3) for name in names}
    best = fit(table(), models=["linear"], losses=names, folds=3)
    assert best.cut.score == pytest.approx(alone[best.loss].cut.score)
    assert best.cut.value == pytest.approx(alone[best.loss].cut.value, abs=1e-6)
    y, fold = table().y.astype(np.int64), split(table(), 3, 1000).ids
    X = Encoder.fit(table().features, table().columns).transform(table().features)
    fitted = models.get("linear").fit_folds(Rows(X, y[:, None], fold), Goal(FBeta(1)), names)
    held = {
        Method("linear", name): [judging.held_calls(x.scores[:, 0], y, fold, x.calibration, FBeta(1), "shrunk")]
        for name, x in fitted.items()
    }
    inference = ByRows(FBeta(1), JudgedRows(y, table().group, [np.arange(len(y))], [0]))
    assert best.loss == chosen(inference, held, list(held)).loss
    assert best.provenance["tried"] == [f"linear, {name}" for name in names]


def test_a_promise_holds_for_the_method_that_is_kept():
    """Of two methods each promises with half the chance of an error."""
    asked = {"subject_to": {"recall": 0.6}, "confidence": 0.9}
    made = fit(table(), models="linear", losses=["bce", "tangent"], folds=2, **asked)
    assert made.cut.promise.confidence == pytest.approx(0.95)
    assert fit(table(), models="linear", losses="bce", folds=2, **asked).cut.promise.confidence == 0.9
    with pytest.raises(ValueError, match="confidence is that of subject_to"):
        fit(table(), models="linear", losses="bce", confidence=0.9)


def test_boosters_and_networks_in_one_plan():
    pytest.importorskip("lightgbm")
    seen = []
    fit(table(), models=["linear", "lightgbm"], losses=["bce"], folds=2, tick=lambda a, b: seen.append((a, b)))
    assert seen[0] == (0, 110)
    assert seen[-1] == (110, 110)
    assert sorted(seen) == seen


def test_what_a_comparison_advises():
    found = compare(table(), metric="fbeta:beta=2", models=["linear"], losses=["tangent"], seeds=2, folds=2)
    made = fit(table(), comparison=found)
    assert made.name == found.advised
    assert made.metric == FBeta(2)
    assert (made.provenance["folds"], made.cut.rule) == (2, "shrunk")
    other = next(c.name for c in found.candidates if c.name != found.advised)
    assert fit(table(), comparison=replace(found, advised=other)).name == other
    with pytest.raises(ValueError, match="the comparison is about fbeta:beta=2, not mcc"):
        fit(table(), comparison=found, metric="mcc")
    with pytest.raises(ValueError, match="leave models and losses out"):
        fit(table(), comparison=found, models="linear")


def test_an_ensemble_is_judged_as_it_is_fitted():
    made = {mean: fit(table(), models="linear", losses="bce", folds=3, ensemble=mean) for mean in (True, False)}
    assert [made[mean].provenance["ensemble"] for mean in made] == [True, False]
    assert len(made[True].scorer.members) == 3
    found = compare(table(), models=["linear"], losses=["bce"], seeds=1, folds=3, ensemble=True)
    assert found.candidates[0].ensemble
    assert Comparison.from_json(found.to_json()).candidates[0].ensemble
    one = compare(table(), models=["linear"], losses=["bce"], seeds=1, folds=3)
    assert found.candidates[0].outcomes[0].inner == one.candidates[0].outcomes[0].inner  # of the same out-of-fold rows
    assert found.candidates[0].brier != one.candidates[0].brier
    assert fit(table(), comparison=found, force=True).provenance["ensemble"]
    assert not fit(table(), comparison=found, ensemble=False, force=True).provenance["ensemble"]
    with pytest.raises(ValueError, match="ensemble must be True or False"):
        fit(table(), models="linear", losses="bce", ensemble="yes")


def test_plans_are_what_was_asked_and_no_more():
    asked = methods_for("linear", ["tangent"], FBeta(1), baseline=False)
    assert [m.name for m in asked] == ["linear, tangent"]
    usual = methods_for(["linear"], None, FBeta(1), baseline=False)
    assert set(usual) == set(methods_for(["linear"], None, FBeta(1)))
    with pytest.raises(ValueError, match="Did you mean 'mlp'"):
        fit(table(), models="mpl")
    with pytest.raises(ValueError, match="Did you mean 'exact'"):
        fit(table(), models="linear", rule="exakt")
    pytest.importorskip("xgboost")
    with pytest.raises(ValueError, match="xgboost cannot be trained with focal: it has tangent, bce, surrogate"):
        fit(table(), models="xgboost", losses="focal")


@pytest.mark.parametrize("spec", ["mcc", "precision"])
def test_losses_that_refuse_a_metric_are_left_out_unless_asked_for(spec):
    made = fit(table(), metric=spec, models="linear", folds=2)
    assert "linear, surrogate" not in made.provenance["tried"]
    with pytest.raises(ValueError, match="SurrogateLoss|anchors|corner"):
        fit(table(), metric=spec, models="linear", losses="surrogate", folds=2)


def test_columns_of_group_and_time_are_not_learnt_from():
    rows = frame().with_columns(when=pl.arange(0, 400), who=pl.arange(0, 400) // 4)
    held = read_frame(rows, "fraud", "yes", group="who", time="when", drop=["id"])
    made = fit(held, models="linear", losses="bce", folds=2)
    assert [c.name for c in made.columns] == ["x0", "x1", "x2", "shop"]
    assert made.probability(rows.drop("when", "who")).shape == (400,)


def test_provenance(tmp_path):
    frame().write_csv(tmp_path / "shops.csv")
    made = fit(tmp_path / "shops.csv", "fraud", models="linear", losses="bce", folds=2, sha256="ab", drop=["id"])
    about = made.provenance
    assert (about["data"], about["rows"], about["sha256"]) == ("shops.csv", 400, "ab")
    assert about["positives"] == int((frame()["fraud"] == "yes").sum())
    assert made.cut.interval.score[0] < made.cut.score <= 1
    assert about["versions"]["torch"]
    assert (
        digest_of_file(tmp_path / "shops.csv") == digest_of_file(tmp_path / "shops.csv") != digest_of_file("/dev/null")
    )


ENDINGS = [".csv", ".tsv", ".parquet", ".arrow", ".feather"]


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_stream_is_the_whole(model, tmp_path, ending):
    """More rows than a piece has, read and written in every format."""
    rows = pl.concat([frame(40_000, seed=k) for k in range(4)])
    source = tmp_path / f"new{ending}"
    if ending in (".csv", ".tsv"):
        rows.write_csv(source, separator="\t" if ending == ".tsv" else ",")
    else:
        (rows.write_parquet if ending == ".parquet" else rows.write_ipc)(source)
    out = tmp_path / f"out{ending}"
    done = predict(model, source, out, keep=["id"], score=True)
    read = {".csv": pl.read_csv, ".parquet": pl.read_parquet}.get(ending, pl.read_ipc)
    found = pl.read_csv(out, separator="\t") if ending == ".tsv" else read(out)
    assert found.columns == ["id", "probability", "decision"]
    assert found["id"].cast(pl.String).to_list() == rows["id"].cast(pl.String).to_list()
    whole = model.probability(rows)
    assert found["probability"].to_numpy() == pytest.approx(whole, abs=1e-6)
    assert done.rows == len(rows)
    assert done.positives == int((found["decision"] == "yes").sum())
    counts = Confusion.from_predictions(
        (found["decision"] == "yes").to_numpy() * 1.0, (rows["fraud"] == "yes").to_numpy() * 1.0
    )
    assert tuple(done.counts) == tuple(map(float, counts))
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([source.name, out.name])


def test_an_error_in_the_middle_leaves_nothing(model, tmp_path):
    rows = pl.concat([frame(40_000, seed=k) for k in range(4)]).with_columns(pl.col("x1").cast(pl.String))
    strange = rows.with_row_index().with_columns(
        x1=pl.when(pl.col("index") == 150_000).then(pl.lit("many")).otherwise("x1")
    )
    strange.write_csv(tmp_path / "new.csv")
    for ending in ENDINGS:
        with pytest.raises(TableError, match="'x1' is 'many' in row 150001, but the model learnt numbers"):
            predict(model, tmp_path / "new.csv", tmp_path / f"out{ending}")
    assert [p.name for p in tmp_path.iterdir()] == ["new.csv"]


def test_an_old_output_stays_until_the_new_one_is_whole(model, tmp_path):
    frame().with_columns(shop=pl.lit("z")).write_csv(tmp_path / "new.csv")
    (tmp_path / "out.csv").write_text("old\n")
    with pytest.raises(TableError, match="--new other"):
        predict(model, tmp_path / "new.csv", tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text() == "old\n"
    assert predict(model, tmp_path / "new.csv", tmp_path / "out.csv", new="other").rows == 400


def test_what_predict_refuses(model, tmp_path):
    frame().write_csv(tmp_path / "new.csv")
    for out, words in (("out.xlsx", "end its name in .csv, .tsv"), ("no/out.csv", "there is no folder")):
        with pytest.raises(OutputError, match=words):
            predict(model, tmp_path / "new.csv", tmp_path / out)
    with pytest.raises(TableError, match="has no kept column 'idd'. Did you mean 'id'?"):
        predict(model, tmp_path / "new.csv", tmp_path / "out.csv", keep=["idd"])
    with pytest.raises(TableError, match="as one of the results: rename it"):
        predict(model, tmp_path / "new.csv", tmp_path / "out.csv", keep=["decision"])
    frame().with_columns(fraud=pl.lit("maybe")).write_csv(tmp_path / "odd.csv")
    with pytest.raises(TableError, match="is 'maybe' in some row, which is none of the classes"):
        predict(model, tmp_path / "odd.csv", tmp_path / "out.csv", score=True)


def test_a_named_set(tmp_path):
    made = fit("breast-cancer", models="linear", losses="bce", folds=2)
    save(made, tmp_path / "m.fbeta")
    done = predict(load(tmp_path / "m.fbeta"), "breast-cancer", tmp_path / "out.csv", score=True)
    assert done.counts.tp + done.counts.fn == 212
    assert made.metric(done.counts) > 0.9


def test_targets_are_compared_as_they_were_learnt(tmp_path):
    """A target of 0 and 1 that stands as 0.0 and 1.0 in the new file, with some rows that do not say."""
    rows = frame().with_columns(fraud=(pl.col("fraud") == "yes").cast(pl.Int64))
    rows.write_csv(tmp_path / "old.csv")
    made = fit(tmp_path / "old.csv", "fraud", models="linear", losses="bce", folds=2, drop=["id"])
    later = rows.with_columns(fraud=pl.when(pl.col("id") > 9).then(pl.col("fraud").cast(pl.Float64)))
    later.write_parquet(tmp_path / "new.parquet")
    done = predict(made, tmp_path / "new.parquet", tmp_path / "out.csv", score=True)
    assert sum(done.counts) == 390
    assert done.rows == 400


def test_scores_of_a_table(tmp_path):
    y = np.array([1, 0, 1, 0, 0])
    text = "p;w;fraud\n0,9;1;yes\n0,2;2;no\n0,7;1;yes\n0,8;1;no\n0,1;1;no\n0,5;1;\n"
    (tmp_path / "x.csv").write_text(text)
    rows = read_scores(tmp_path / "x.csv", "fraud", "p", weight="w")
    assert rows.score.tolist() == [0.9, 0.2, 0.7, 0.8, 0.1]
    assert rows.y.tolist() == y.tolist()
    assert rows.weight.tolist() == [1, 2, 1, 1, 1]
    assert any("left out: 1" in note for note in rows.notes)
    pl.DataFrame({"p": [3, -1, 2], "y": [True, False, True]}).write_parquet(tmp_path / "x.parquet")
    assert read_scores(tmp_path / "x.parquet", "y", "p").score.tolist() == [3, -1, 2]
    assert read_scores(tmp_path / "x.parquet", "y", "p", positive="true").positive == "true"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("p,y\n0.5,1\nnan,0\n", "column 'p' is nan in row 2, and in 1 of 2 rows no finite number"),
        ("p,y\n0.5,1\n,0\n,0\n", "missing in row 2, and in 2 of 3 rows"),
        ("p,y\n0.5,1\ninf,0\n", "'p' is inf in row 2"),
        ("p,y\n0.5,1\nhigh,0\n", "'p' is 'high', no number, in row 2"),
        ("p,y\n0.5,1\n0.4,1\n", "is '1' in all 2 rows"),
        ("q,y\n0.5,1\n0.4,0\n", "has no score column 'p'"),
        ("p,z\n0.5,1\n0.4,0\n", "has no target column 'y'"),
    ],
)
def test_bad_scores(tmp_path, text, words):
    (tmp_path / "x.csv").write_text(text)
    with pytest.raises(TableError) as error:
        read_scores(tmp_path / "x.csv", "y", "p")
    assert words in str(error.value)
    (tmp_path / "x.csv").write_text("p,y\n1,1\n")
    with pytest.raises(TableError, match="must be different columns"):
        read_scores(tmp_path / "x.csv", "p", "p")


def test_fit_from_a_path_reads_as_compare_does(tmp_path):
    frame().write_csv(tmp_path / "shops.csv")
    made = fit(tmp_path / "shops.csv", "fraud", models="linear", losses="bce", folds=2)
    assert {c.name for c in made.encoder.schema} == {
        c.name for c in read_table(tmp_path / "shops.csv", "fraud").columns
    }
