"""Numbers and folds of tables: known values, training rows only, both classes, copies and groups whole, time."""

import json

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fbeta.data import load_table
from fbeta.tables import Column, Encoder, Roles, Table, TableError, read_frame, split
from fbeta.tables import folds as folds_module

NUMBER, CATEGORY, BOOLEAN, DATE = (Column("x", kind) for kind in ("number", "category", "boolean", "date"))


def encoded(values, column, new=None):
    """Fit on `values` alone, and encode these or others."""
    frame = pl.DataFrame({"x": values})
    encoder = Encoder.fit(frame, [column])
    out = encoder.transform(frame if new is None else pl.DataFrame({"x": new}, schema=frame.schema))
    assert out.dtype == np.float32
    assert out.flags.c_contiguous
    assert out.shape[1] == len(encoder.columns)
    return encoder, out


def test_numbers_are_filled_marked_and_scaled():
    encoder, out = encoded([1.0, None, 2.0, 6.0], NUMBER, new=[None, 2.0])
    filled = np.array([1, 2, 2, 6])
    assert encoder.columns == ("x", "x missing")
    expected = (2 - filled.mean()) / filled.std()
    np.testing.assert_allclose(out, [[expected, 1], [expected, 0]], rtol=1e-6)
    assert encoded([1.0, 2.0], NUMBER, new=[None, 1.0])[0].columns == ("x",)


def test_large_numbers_keep_their_differences():
    values = [1.7e9 + i for i in range(10)]
    _, out = encoded(values, NUMBER)
    np.testing.assert_allclose(out[:, 0], (np.arange(10) - 4.5) / np.std(np.arange(10)), atol=1e-6)


def test_absurd_numbers_stay_finite():
    _, out = encoded([1.0, 2.0, 1e200, 4.0], NUMBER, new=[1e99, -1e300, 3.0])
    assert np.isfinite(out).all()


def test_categories_are_one_hot():
    encoder, out = encoded(["b", "a", "b", None], CATEGORY, new=["a", "b", None, "new"])
    assert encoder.columns == ("x = b", "x = a", "x missing")
    assert out.tolist() == [[0, 1, 0], [1, 0, 0], [0, 0, 1], [0, 0, 0]]


def test_the_most_frequent_levels_count():
    values = [f"l{i:02d}" for i in range(40) for _ in range(40 - i)]
    encoder, out = encoded(values, CATEGORY, new=["l00", "l31", "l32", "new"])
    assert len(encoder.columns) == 33
    assert encoder.columns[0] == "x = l00"
    assert encoder.columns[-1] == "x other"
    assert out.argmax(axis=1).tolist() == [0, 31, 32, 32]
    assert (out.sum(axis=1) == 1).all()


def test_booleans_and_dates():
    assert encoded([True, False, None], BOOLEAN)[0].columns == ("x", "x missing")
    days = pl.Series(["2024-01-01 06:00:00", "2023-07-03 00:00:00", None]).str.to_datetime()
    encoder, out = encoded(days, DATE)
    assert encoder.columns == ("x seconds", "x missing", "x year", "x month", "x hour")  # both are Mondays
    assert out[:, 1].tolist() == [0, 0, 1]
    assert np.isfinite(out).all()
    assert encoded(days.dt.truncate("1d"), DATE)[0].columns == ("x seconds", "x missing", "x year", "x month")


def test_columns_that_do_not_vary_make_no_feature_and_are_named():
    frame = pl.DataFrame(
        {"x": [1.0, 1.0], "z": [1.0, 2.0], "c": ["a", "a"], "n": pl.Series([None, None], dtype=pl.Float32)}
    )
    columns = [NUMBER, Column("z", "number"), Column("c", "category"), Column("n", "number")]
    encoder = Encoder.fit(frame, columns)
    assert encoder.columns == ("z",)
    assert encoder.notes == ("columns that do not vary in the training rows: 'x', 'c', 'n' dropped.",)
    assert encoded([1.0, None, 1.0], NUMBER)[0].columns == ("x missing",)


def test_an_encoder_survives_json():
    table = read_frame(
        pl.DataFrame(
            {
                "n": [1.5, None, 3.0, 9.0],
                "c": ["u", "v", None, "u"],
                "b": [True, False, True, None],
                "d": ["2024-01-01", "2024-02-03", "2024-01-01", "2023-01-01"],
                "y": [0, 1, 0, 0],
            }
        ),
        "y",
    )
    encoder = Encoder.fit(table.features, table.columns)
    again = Encoder.from_dict(json.loads(json.dumps(encoder.to_dict())))
    assert again == encoder
    np.testing.assert_array_equal(again.transform(table.features), encoder.transform(table.features))


def test_only_training_rows_are_learnt_from():
    table = load_table("breast-cancer")
    folds = split(table, 5)
    train = table.features[folds.train(0)]
    one = Encoder.fit(train, table.columns).transform(table.features)
    spoilt = table.features.with_columns(pl.all().mul(1000))
    mixed = pl.concat([train, spoilt])
    other = Encoder.fit(mixed[: len(train)], table.columns).transform(table.features)
    np.testing.assert_array_equal(one, other)
    np.testing.assert_allclose(one[folds.train(0)].mean(axis=0), 0, atol=1e-5)
    np.testing.assert_allclose(one[folds.train(0)].std(axis=0), 1, atol=1e-4)


# Folds


def made(y, group=None, time=None):
    rows = len(y)
    group = np.arange(rows) if group is None else np.asarray(group)
    features = pl.DataFrame({"x": np.arange(rows, dtype=np.float32)})
    y = np.asarray(y, np.int8)
    return Table("made up", features, (NUMBER,), y, Roles("y", "1", ("0",)), group.astype(np.int64), time)


def spread(table, folds):
    counts = np.array([[np.sum(table.y[folds.test(k)] == c) for k in range(folds.n)] for c in (0, 1)])
    return counts.max(axis=1) - counts.min(axis=1)


@given(st.integers(2, 6), st.integers(6, 200), st.floats(0.1, 0.9), st.integers(0, 99))
@settings(max_examples=60)
def test_folds_of_single_rows_differ_by_one_row_at_most(n, rows, rate, seed):
    y = np.random.default_rng(seed).random(rows + 2 * n) < rate
    y[:n], y[n : 2 * n] = True, False
    table = made(y)
    folds = split(table, n, seed)
    assert (spread(table, folds) <= 1).all()
    for k in range(n):
        np.testing.assert_array_equal(np.sort(np.r_[folds.train(k), folds.test(k)]), np.arange(len(y)))


@given(st.integers(2, 5), st.integers(0, 10**6))
@settings(max_examples=60)
def test_groups_are_whole_and_classes_even(n, seed):
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 150, 600)
    table = made(rng.random(600) < 0.3, group)
    folds = split(table, n, seed)
    for k in range(n):
        assert not set(group[folds.train(k)]) & set(group[folds.test(k)])
    assert (spread(table, folds) <= 12).all()


def test_a_large_group_is_made_up_for_by_small_ones():
    table = made([1] * 500 + [1, 0] * 1000, [0] * 500 + list(range(1, 2001)))
    folds = split(table, 3)
    assert [int(table.y[folds.test(k)].sum()) for k in range(3)] == [500] * 3
    assert (spread(table, folds) <= 1).all()


def test_seeds_give_other_folds_and_one_seed_the_same():
    table = load_table("breast-cancer")
    one, again, other = split(table, 5, 1), split(table, 5, 1), split(table, 5, 2)
    assert (one.ids == again.ids).all()
    assert (one.ids != other.ids).mean() > 0.5
    assert one.ids[:10].tolist() == [0, 0, 0, 1, 2, 2, 2, 3, 3, 4]  # the same on every machine


def test_time_trains_on_the_past():
    rng = np.random.default_rng(0)
    time = rng.integers(0, 50, 400).astype(float)
    group = np.arange(400)
    group[np.argmin(time)] = group[np.argmax(time)]  # the oldest row is a copy of the newest
    table = made(rng.random(400) < 0.3, group, time)
    folds = split(table, 4)
    for k in range(4):
        train, test = folds.train(k), folds.test(k)
        assert time[train].max() < time[test].min()
        assert not set(group[train]) & set(group[test])
        assert 50 < len(test) < 110
    assert np.argmin(time) in folds.train(0)
    assert np.argmin(time) not in folds.train(3)
    assert (np.bincount(folds.ids + 1) > 50).all()
    assert split(table, 1).n == 1


def test_coarse_times_make_windows_that_are_not_empty():
    rng = np.random.default_rng(0)
    for sizes in ([100] * 6, [500, 20, 20, 20, 20], [20, 20, 20, 20, 500], [10, 300, 10, 300, 10, 10, 10, 10]):
        month = np.repeat(np.arange(len(sizes)), sizes).astype(float)
        table = made(rng.random(len(month)) < 0.5, time=month)
        for n in range(1, len(sizes)):
            folds = split(table, n)
            assert sorted({*folds.ids}) == list(range(-1, n))
            assert np.all(np.diff(folds.ids) >= 0)
            assert len({(i, m) for i, m in zip(folds.ids, month, strict=True)}) == len(sizes)  # no month is torn
        words = f"has only {len(sizes)} different times, too few for {len(sizes)} windows of later rows: ask for {n} at"
        with pytest.raises(TableError, match=words):
            split(table, len(sizes))


def test_inner_folds_of_some_rows():
    table = load_table("breast-cancer")
    inner = table.take(split(table, 5).train(0))
    assert len(inner) == len(inner.features) == len(inner.group)
    folds = split(inner, 3)
    assert max(folds.test(2)) < len(inner)
    with pytest.raises(ValueError, match="made up: group has 3 rows, y has 2"):
        made([0, 1], [0, 1, 2])


def test_without_a_seed_the_order_decides():
    assert folds_module.folds([0, 0, 0, 0, 1, 1, 1, 1], 2, seed=None).tolist() == [0, 1, 0, 1, 0, 1, 0, 1]
    counts = np.array([[4, 1], [3, 1], [1, 0], [0, 1]])
    assert folds_module._deal_groups(counts, 2, seed=None).tolist() == [0, 1, 1, 0]


def test_a_million_rows_are_dealt_by_the_kinds_of_their_groups(monkeypatch):
    calls, levelled = [], folds_module._levelled
    monkeypatch.setattr(folds_module, "_levelled", lambda *args: calls.append(args) or levelled(*args))
    rng = np.random.default_rng(0)
    table = made(rng.random(1_000_000) < 0.01, rng.integers(0, 700_000, 1_000_000))
    assert (spread(table, split(table, 5)) <= 2).all()
    assert len(calls) < 40  # not one for each of 500,000 groups
