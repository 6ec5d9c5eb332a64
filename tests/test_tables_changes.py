"""Columns that nearly give the answer away, that moved with time, and new rows that are unlike the old ones."""

import numpy as np
import polars as pl
import pytest
from sklearn.metrics import roc_auc_score

from fbeta.artifact.predicting import predict
from fbeta.comparison.run import fit
from fbeta.tables import Column, Encoder, read_frame
from fbeta.tables.drift import CHANGED, stability_index
from fbeta.tables.leaks import near_leaks
from fbeta.tables.new_rows import NewRows


def noted(table, words):
    return [note for note in table.notes if words in note]


# Nearly the answer


def test_areas_are_those_of_scikit_learn():
    rng = np.random.default_rng(0)
    y = (rng.random(2000) < 0.1).astype(np.int8)
    x = np.round(rng.normal(size=2000) / 2 + 3 * y, 1)
    found = near_leaks(pl.DataFrame({"up": x, "down": -x, "noise": rng.normal(size=2000)}), y)
    area = roc_auc_score(y, x)
    assert area > 0.99
    assert found == {"up": pytest.approx(area), "down": pytest.approx(area)}


def test_a_missing_value_is_one_more_value():
    rng = np.random.default_rng(0)
    y = np.arange(1000) % 10 == 0
    closed = [
        float(v) if positive else None
        for v, positive in zip(rng.normal(size=1000), y ^ (y & (rng.random(1000) < 0.01)), strict=True)
    ]
    assert near_leaks(pl.DataFrame({"closed": closed}), y.astype(np.int8)) == {
        "closed": pytest.approx(0.995, abs=0.005)
    }


def test_categories_are_judged_by_the_other_half():
    rng = np.random.default_rng(0)
    y = (np.arange(4000) % 10 == 0).astype(np.int8)
    wrong = rng.random(4000) < 0.002
    frame = pl.DataFrame(
        {
            "state": np.where((y == 1) ^ wrong, "closed", np.where(rng.random(4000) < 0.5, "open", "new")),
            "name": [f"n{i}" for i in range(4000)],
            "pair": [f"n{i // 2}" for i in range(4000)],
            "town": rng.choice([f"t{i}" for i in range(300)], 4000),
        }
    )
    assert list(near_leaks(frame, y)) == ["state"]
    assert near_leaks(frame[:150], y[:150]) == {}  # fifteen positives


def test_near_leaks_are_noted_and_exact_ones_not_twice():
    rng = np.random.default_rng(0)
    y = np.arange(1000) % 10 == 0
    near = rng.normal(size=1000) + 5 * y
    frame = pl.DataFrame({"near": near, "copy": 3.0 * y + 1, "fair": rng.normal(size=1000) + y, "y": y})
    table = read_frame(frame, "y")
    (note,) = noted(table, "AUC above 0.99")
    assert note.startswith("one column alone ranks nearly all rows rightly (AUC above 0.99): 'near' (0.99")
    assert len(noted(table, "'copy'")) == 1


def test_chance_does_not_rank_so_well():
    rng = np.random.default_rng(0)
    for _ in range(5):
        y = (np.arange(60) % 3 == 0).astype(np.int8)
        frame = pl.DataFrame({f"x{i}": rng.normal(size=60) for i in range(200)} | {"c": rng.choice([*"abcdefgh"], 60)})
        assert near_leaks(frame, y) == {}


# Time


def test_chance_is_no_drift_and_drift_is_found():
    rng = np.random.default_rng(0)
    alike = [stability_index(*(pl.Series(rng.normal(size=n)) for n in (200, 50))) for _ in range(200)]
    assert np.mean(np.array(alike) > 0) < 0.02
    assert max(alike) < CHANGED
    moved = stability_index(pl.Series(rng.normal(size=2000)), pl.Series(rng.normal(1, 1, 500)))
    assert moved == pytest.approx(0.9, abs=0.3)  # of two normal distributions one deviation apart it is 1
    assert stability_index(pl.Series(["a", "b"] * 500), pl.Series(["c"] * 200)) > CHANGED
    assert stability_index(pl.Series([None, 1.0] * 500), pl.Series([1.0] * 200)) > CHANGED
    assert stability_index(pl.Series([1.0] * 500), pl.Series([1.0] * 200)) <= 0


def test_drift_is_noted_where_the_table_has_times():
    rng = np.random.default_rng(0)
    rows = 1000
    frame = pl.DataFrame(
        {
            "when": rng.permutation(rows) // 50,
            "still": rng.normal(size=rows),
            "kind": rng.choice(["u", "v"], rows),
            "y": rng.integers(0, 2, rows),
        }
    )
    late = pl.col("when") >= 16
    frame = frame.with_columns(
        moved=pl.Series(rng.normal(size=rows)) + 3 * late,
        state=pl.when(late).then(pl.lit("new")).otherwise(pl.col("kind")),
    )
    (note,) = noted(read_frame(frame, "y", "1", time="when"), "stability")
    assert note.startswith("2 columns are distributed otherwise in the newest 20 % of the rows than before")
    assert "'state' (" in note
    assert "'moved' (" in note
    assert "still" not in note
    assert not noted(read_frame(frame, "y", "1", drop=["when"]), "stability")


# New rows

OLD = {
    "income": np.random.default_rng(0).normal(3000, 800, 300),
    "age": np.random.default_rng(1).normal(40, 10, 300),
    "land": np.random.default_rng(2).choice(["DE", "FR"], 300),
    "town": [f"t{i % 60}" for i in range(300)],
    "half": [None if i % 2 else float(i) for i in range(300)],
}
COLUMNS = [Column("income", "number"), Column("age", "number"), Column("land", "category"), Column("town", "category")]


def notes_on(size=10, **changed):
    frame = pl.DataFrame(OLD)
    watch = NewRows(Encoder.fit(frame, [*COLUMNS, Column("half", "number")]))
    new = frame.with_columns(**{name: pl.Series(name, values) for name, values in changed.items()})
    for i in range(0, new.height, size):
        watch.add(new[i : i + size])
    return watch.notes()


@pytest.mark.parametrize(
    ("changed", "note"),
    [
        ({}, None),
        (
            {"income": pl.Series([None] * 300, dtype=pl.Float64)},
            "without any value, though the model learned from some: 'income' are filled",
        ),
        (
            {"income": [None, None, 3000.0] * 100},
            "missing in most rows, and in none that the model learned from: 'income'",
        ),
        ({"half": [None, None, 150.0] * 100}, None),
        ({"income": OLD["income"] * 100}, "most values of 'income' are more than 3 deviations"),
        ({"age": OLD["age"] / 100 + 39}, "values of 'age' vary 20 times less"),
        ({"age": [44.0] * 300}, None),
        ({"land": ["IT", "ES", "DE"] * 100}, "most categories of 'land' are none of those"),
        ({"land": ["IT", "FR", "DE"] * 100}, None),
        ({"town": ["t0"] + ["x"] * 299}, None),  # there were others
        ({"town": ["x"] * 300}, "most categories of 'town'"),
    ],
)
def test_what_is_unlike_the_learned_rows_is_said(changed, note):
    found = notes_on(**changed)
    assert len(found) == (note is not None)
    assert note is None or found[0].startswith(note)
    assert notes_on(size=300, **changed) == found


def test_a_few_rows_are_never_strange():
    watch = NewRows(Encoder.fit(pl.DataFrame(OLD), COLUMNS))
    watch.add(pl.DataFrame(OLD)[:19].with_columns(income=pl.lit(1e9)))
    assert watch.notes() == []


def test_predict_says_it(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.normal(size=200)
    frame = pl.DataFrame({"x": x, "z": rng.normal(size=200), "y": np.where(x + rng.normal(size=200) > 0.5, "a", "b")})
    model = fit(frame, "y", positive="a", models="linear", losses="bce", folds=2, force=True)
    frame.with_columns(z=pl.col("z") * 1e4).write_csv(tmp_path / "new.csv")
    done = predict(model, tmp_path / "new.csv", tmp_path / "out.csv")
    assert any("most values of 'z' are more than 3 deviations" in note for note in done.notes)
    frame.write_csv(tmp_path / "new.csv")
    assert predict(model, tmp_path / "new.csv", tmp_path / "out.csv").notes == ()
