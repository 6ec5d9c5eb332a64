"""Amounts as people write them, and words in any letters: one reading for a column, said, kept and used again."""

import numpy as np
import polars as pl
import pytest

from fbeta.artifact import model_file
from fbeta.artifact.predicting import predict
from fbeta.comparison.run import fit
from fbeta.tables import Column, TableError, read_frame, read_table, stream
from fbeta.tables.amounts import STYLES, Reading, read_amounts
from fbeta.tables.scored_rows import read_scores
from fbeta.tables.target import choose_classes


def table_of(values):
    rows = len(values)
    return read_frame(pl.DataFrame({"x": values, "z": [i * i for i in range(rows)], "y": [*"ab"] * (rows // 2)}), "y")


@pytest.mark.parametrize(
    ("values", "numbers", "how"),
    [
        (["1,234.56", "12", "-1,000", "+.5"], [1234.56, 12, -1000, 0.5], "1,234.56"),
        (["$1,200", "$5", "-$7.50", "$-3"], [1200, 5, -7.5, -3], "$1,234.56"),
        (["(1,200)", "($12.5)", "7-", "US$ 1"], None, ""),  # two units
        (["(1,200)", "($12.5)", "7-", "$ 1"], [-1200, -12.5, -7, 1], "$1,234.56"),
        (["€ 3.499,00", "12,5 €", "€7", "1.000.000"], [3499, 12.5, 7, 1e6], "€1.234,56"),
        (["45 %", "3%", "-1.5 %", "(2 %)"], [0.45, 0.03, -0.015, -0.02], "1,234.56%"),
        (["45,5 %", "3%", "1.045,25 %", "0 %"], [0.455, 0.03, 10.4525, 0], "1.234,56%"),
        (["45 %", "3", "7 %", "9 %"], None, ""),  # are these 3 %?
        (["1 234,5", "2\u00a0000", "3\u202f000", "4"], [1234.5, 2000, 3000, 4], "1.234,56"),
        (["1'234.50", "2’000", "3", "4"], [1234.5, 2000, 3, 4], "1,234.56"),
        (["12,34,567", "1,00,000", "5", "1.5"], [1234567, 100000, 5, 1.5], "1,234.56"),
        (["EUR 1,50", "2 EUR", "1.000 EUR", "3"], [1.5, 2, 1000, 3], "EUR1.234,56"),
        (["1,2,3", "4,5,6", "1", "2"], None, ""),
        (["1,23", "1,234", "0,5", "2"], [1.23, 1.234, 0.5, 2], "1.234,56"),
        (["5 kg", "1,200 kg", "2 kg", "3"], None, ""),
        (["12-34", "1,234", "5", "6"], None, ""),
        (["SKU 100", "SKU 200", "SKU 100", "SKU 300"], None, ""),
    ],
)
def test_amounts(values, numbers, how):
    table = table_of(values)
    (column, _) = table.columns
    assert (column.kind, column.format) == ("category" if numbers is None else "number", how)
    if numbers is not None:
        np.testing.assert_allclose(table.features["x"].to_list(), numbers, rtol=1e-6)
        assert Column.from_dict(column.to_dict()) == column
        assert [note for note in table.notes if "'x' has" in note]


@pytest.mark.parametrize(
    ("values", "first", "said"),
    [
        (["1,234", "12,500", "7", "9"], 1234, "sets off thousands is a guess"),
        (["1,234", "12,500", "1,234,567", "9"], 1234, ""),
        (["1,234", "12,5", "7", "9"], 1.234, ""),
        (["1,234", "12.5", "7", "9"], 1234, ""),
        (["€ 1.234", "€ 12.500", "€ 7", "9"], 1234, "sets off thousands is a guess"),
        (["1.234 %", "12.500 %", "1.000 %", "9 %"], 0.01234, "is of decimals is a guess"),
        (["1.234", "12.500", "7", "9"], 1.234, None),  # plain numbers
        (["1.234", "12.500", "7.000.000", "9"], 1234, ""),
    ],
)
def test_separators_are_understood_by_the_whole_column_or_said(values, first, said):
    table = table_of(values)
    assert table.features["x"][0] == pytest.approx(first)
    notes = [note for note in table.notes if "written like" in note]
    assert (said is None and not notes) or (("guess" in notes[0]) == bool(said) and said in notes[0])


def test_late_amounts_and_texts_among_them(tmp_path):
    rows = [f'"{i}",{"ab"[i % 2]}' for i in range(1, 999)] + [f'"1,{i:03d}",a' for i in range(999)] + ["unknown,b"]
    (path := tmp_path / "x.csv").write_text("x,y\n" + "\n".join(rows))
    table = read_table(path, "y", "a")
    assert table.features["x"].max() == 1998
    assert table.columns[0] == Column("x", "number", "1,234.56", ("unknown",))


def test_a_file_with_decimal_commas_sets_off_thousands_by_dots(tmp_path):
    (path := tmp_path / "x.csv").write_text("x;z;y\n1.234;1,5;a\n999;2,5;b\n12.500;3;a\n1;4;b\n")
    table = read_table(path, "y", "a")
    assert table.features["x"].to_list() == [1234, 999, 12500, 1]
    assert table.features["z"].to_list() == [1.5, 2.5, 3, 4]
    assert any("is a guess" in note for note in table.notes)


def test_several_units_are_said():
    (note,) = (note for note in table_of(["$5", "€6", "$7", "€8"]).notes if "units" in note)
    assert note == "'x' has amounts in several units ('$', '€'): convert them to one."


def test_a_model_reads_new_amounts_as_it_read_the_old(tmp_path):
    rng = np.random.default_rng(0)
    income = rng.integers(500, 5000, 200)
    frame = pl.DataFrame({"income": [f"${x:,}" for x in income], "rate": [f"{x % 90} %" for x in income]})
    frame = frame.with_columns(pl.Series("bad", np.where(income + rng.normal(0, 300, 200) < 1500, "yes", "no")))
    frame.write_csv(path := tmp_path / "old.csv")
    model = model_file.from_bytes(model_file.to_bytes(fit(path, "bad", models="linear", losses="bce", folds=2)), "m")
    assert [column.format for column in model.columns] == ["$1,234.56", "1,234.56%"]
    predict(model, path, tmp_path / "one.csv")
    plain = frame.with_columns(income=pl.Series(income), rate=pl.Series(income % 90) / 100)
    plain.write_parquet(tmp_path / "plain.parquet")
    predict(model, tmp_path / "plain.parquet", tmp_path / "two.csv")
    assert (tmp_path / "one.csv").read_text() == (tmp_path / "two.csv").read_text()
    for text, words in (("€5", "amounts in $ written like 1,234.56"), ("1.234,5", "amounts in")):
        (new := tmp_path / "new.csv").write_text(f'income,rate\n"{text}",5 %\n')
        with pytest.raises(TableError, match="row 1, but the model learnt") as error:
            list(stream(new, model.columns))
        assert words in str(error.value)
    new.write_text("income,rate\n5,5\n")
    with pytest.raises(TableError, match="learnt percentages written like"):
        list(stream(new, model.columns))


@pytest.mark.parametrize("form", ["x", "1,234.567", "\\1,234.56", "[1,234.56", "$$$1,234.56", "1,234.56%%", "0" * 99])
def test_a_made_up_reading_is_refused(form):
    with pytest.raises(TableError, match="unknown format"):
        Column.from_dict(Column("x", "number").to_dict() | {"format": form})


def test_every_amount_is_read_back():
    rng = np.random.default_rng(0)
    numbers = np.round(rng.normal(size=500) * 10 ** rng.integers(0, 9, 500), 2)
    for unit in ("", "$", "CHF", "€"):
        for style in STYLES:
            swap = str.maketrans(",.", style[1] + style[-3])
            texts = [f"{unit} {number:,.2f}".strip().translate(swap) for number in numbers]
            read = pl.select(read_amounts(pl.lit(pl.Series(texts)), str(Reading(unit, style, False)))).to_series()
            np.testing.assert_array_equal(read.to_numpy(), numbers)


def test_scores_as_percentages(tmp_path):
    (path := tmp_path / "s.csv").write_text("p,y\n45 %,1\n5 %,0\n50 %,1\n")
    rows = read_scores(path, "y", "p", "1")
    np.testing.assert_allclose(rows.score, [0.45, 0.05, 0.5])
    assert "'p' has percentages written like 1,234.56: '45 %' is 0.45." in rows.notes


# Words


def test_words_are_one_in_the_target():
    found = choose_classes("y", {"yes": 5, "Yes": 2, "YES": 1, "No": 30, "no": 4})
    assert (found.positive, found.negative, set(found.spellings)) == ("yes", ("No",), {"yes", "Yes", "YES"})
    assert found.note.endswith("8 of 42 rows. Spellings are one word: 'yes', 'Yes', 'YES', 'No', 'no'.")
    assert choose_classes("y", {"Y": 5, "y": 2, "N": 30}).spellings == ("Y", "y")
    assert choose_classes("y", {"T": 5, "t": 30}).negative == ("t",)
    assert choose_classes("y", {"Oak": 5, "oak": 30}).negative == ("oak",)
    assert choose_classes("y", {"Yes": 5, "No": 30}).note == "positive is y 'Yes', the rarer value: 5 of 35 rows."
    assert choose_classes("y", {"YES": 50, "Yes": 2, "no": 9}, positive="yes").positive == "YES"


def test_words_are_one_in_categories(tmp_path):
    table = table_of(["yes", "Yes", "YES", "no", "maybe", "Maybe"])
    assert table.features["x"].to_list() == ["yes", "yes", "yes", "no", "maybe", "Maybe"]
    assert table.columns[0] == Column("x", "category", "one spelling")
    (note,) = (note for note in table.notes if "spells" in note)
    assert note == "'x' spells words in several ways ('YES', 'Yes', 'no', 'yes'): yes, Yes and YES are one."
    (path := tmp_path / "new.csv").write_text("x,z\nYES,1\n")
    assert next(stream(path, table.columns))[0]["x"].to_list() == ["yes"]
    assert not [note for note in table_of(["yes", "no", "maybe", "no"]).notes if "spells" in note]


def test_a_score_understands_another_spelling(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.normal(size=80)
    frame = pl.DataFrame({"x": x, "y": np.where(x + rng.normal(size=80) > 0.5, "Yes", "No")})
    model = fit(frame, "y", models="linear", losses="bce", folds=2, force=True)
    new = frame.with_columns(pl.col("y").str.to_uppercase())
    new.write_csv(tmp_path / "new.csv")
    done = predict(model, tmp_path / "new.csv", tmp_path / "out.csv", score=True)
    assert done.counts is not None
    assert float(done.counts.tp + done.counts.fn) == (frame["y"] == "Yes").sum()
