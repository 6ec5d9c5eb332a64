"""Tables: every format gives the same table, kinds and missing values are found, nothing is guessed in silence."""

import cProfile
import gzip
import re
import subprocess
import sys
from collections import Counter

import numpy as np
import polars as pl
import pytest

from fbeta import data
from fbeta.tables import Column, Roles, TableError, delimited, read_frame, read_table, stream
from fbeta.tables.errors import listed
from fbeta.tables.leaks import leaks
from fbeta.tables.scored_rows import read_scores
from fbeta.tables.table import digest
from fbeta.tables.target import choose_classes, rarer_class
from fbeta.tables.values import class_names, is_number

CSV = """amount,land,member,day,city,is_fraud
1.5,DE,yes,2024-01-31,Köln,0
,FR,no,2024-02-01,Paris,0
3,DE,NA,2024-02-02,?,0
NaN,ES,yes,,Köln,1
2e1,null,no,2024-02-04,Paris,0
"""


@pytest.fixture
def file(tmp_path):
    def write(name, content):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


def kinds(table):
    return {column.name: column.kind for column in table.columns}


def said(table, words):
    return [note for note in table.notes if words in note]


# Formats


def as_format(name, tmp_path):
    """The same table, in every format that can hold it."""
    path = tmp_path / name
    frame = pl.read_csv(CSV.encode(), infer_schema=False, null_values=["NA", "NaN", "?", "null"])
    typed = frame.with_columns(
        pl.col("amount").cast(pl.Float64),
        pl.col("is_fraud").cast(pl.Int64),
        pl.col("member") == "yes",
        pl.col("day").str.to_date(),
    )
    match name.partition(".")[2]:
        case "csv":
            path.write_text(CSV, encoding="utf-8")
        case "bom.csv":
            path.write_text(CSV, encoding="utf-8-sig")
        case "latin.csv":
            path.write_text(CSV, encoding="latin-1")
        case "utf16.csv":
            path.write_text(CSV, encoding="utf-16")
        case "dos.csv":
            path.write_bytes(CSV.replace("\n", "\r\n").encode())
        case "semicolon.csv":
            path.write_text(CSV.replace(",", ";"))
        case "decimal.csv":
            path.write_text(CSV.replace(",", ";").replace("1.5", "1,5"))
        case "bar.txt":
            path.write_text(CSV.replace(",", "|"))
        case "tsv":
            path.write_text(CSV.replace(",", "\t"))
        case "csv.gz":
            path.write_bytes(gzip.compress(CSV.encode()))
        case "tsv.gz":
            path.write_bytes(gzip.compress(CSV.replace(",", "\t").encode()))
        case "blanks.csv":
            path.write_text(CSV.replace(",", ", "))
        case "quoted.csv":
            frame.write_csv(path, quote_style="always")
        case "parquet":
            typed.write_parquet(path)
        case "text.parquet":
            frame.write_parquet(path)
        case "category.parquet":
            typed.with_columns(pl.col("land", "city").cast(pl.Categorical)).write_parquet(path)
        case "arrow" | "feather":
            typed.write_ipc(path)
        case "stream.arrow":
            typed.write_ipc_stream(path)
    return path


@pytest.mark.parametrize(
    "ending",
    [
        *("csv", "bom.csv", "latin.csv", "utf16.csv", "dos.csv", "semicolon.csv", "decimal.csv", "blanks.csv"),
        *("quoted.csv", "bar.txt", "tsv", "csv.gz", "tsv.gz", "parquet", "text.parquet", "category.parquet"),
        *("arrow", "feather", "stream.arrow"),
    ],
)
def test_every_format_gives_the_same_table(tmp_path, ending):
    table = read_table(as_format(f"x.{ending}", tmp_path), "is_fraud")
    assert kinds(table) == {
        "amount": "number",
        "land": "category",
        "member": "boolean",
        "day": "date",
        "city": "category",
    }
    assert table.y.tolist() == [0, 0, 0, 1, 0]
    assert table.features["amount"].to_list() == [1.5, None, 3.0, None, 20.0]
    assert table.features["land"].cast(pl.String).to_list() == ["DE", "FR", "DE", "ES", None]
    assert table.features["member"].to_list() == [True, False, None, True, False]
    assert table.features["day"].dt.to_string("%d.%m.").to_list() == ["31.01.", "01.02.", "02.02.", None, "04.02."]
    assert table.features["city"].cast(pl.String).to_list() == ["Köln", "Paris", None, "Köln", "Paris"]
    assert table.features["amount"].dtype == pl.Float32
    assert (table.positive, table.negative) == ("1", ("0",))
    assert bool(said(table, "Latin-1")) == (ending == "latin.csv")


def test_npz(tmp_path):
    x, y = np.array([[1.0, 2], [3, np.nan], [5, 7]], np.float32), np.array([0, 1, 0])
    np.savez(tmp_path / "x.npz", X=x, y=y)
    table = read_table(tmp_path / "x.npz", "y")
    assert table.features.columns == ["x0", "x1"]
    np.testing.assert_array_equal(table.features.to_numpy(), x)
    np.savez(tmp_path / "named.npz", X=x, y=y, features=np.array(["a", "b"]))
    assert read_table(tmp_path / "named.npz", "y").features.columns == ["a", "b"]


def test_a_delimiter_inside_quotes_and_one_that_is_told(file):
    table = read_table(file("x.csv", 'a,text,y\n1,"x, y",0\n2,"x; y",1\n3,"a ""b""",0\n'), "y")
    assert table.features["text"].cast(pl.String).to_list() == ["x, y", "x; y", 'a "b"']
    table = read_table(file("x.txt", "a^b^y\n1^2,5^0\n2^3,5^1\n4^3,5^0\n"), "y", delimiter="^")
    assert table.features["b"].to_list() == [2.5, 3.5, 3.5]


# Kinds


def column(values, **options):
    rows = len(values)
    frame = pl.DataFrame({"x": values, "other": [i * i for i in range(rows)], "y": [i % 2 for i in range(rows)]})
    return read_frame(frame, "y", **options)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["1", "2.5", "-3e2", ".4", "+1", " 7"], "number"),
        (["true", "FALSE", "True", "false", "?"], "boolean"),
        (["y", "n", "n", "y"], "boolean"),
        (["y", "n", "maybe", "y"], "category"),
        (["0", "1", "1", "0"], "number"),
        (["2024-01-31", "2023-12-01", "null"], "date"),
        (["2024-01-31 12:00:00", "2023-12-01 01:02:03.5"], "date"),
        (["2024-01-31T12:00:00Z", "2023-12-01T01:02:03Z"], "date"),
        (["2024-01-31T12:00:00+01:00", "2023-12-01T01:02:03-02:00"], "date"),
        (["31.01.2024", "01.12.2023"], "date"),
        (["12/31/2024", "1/2/2023"], "date"),
        (["31/12/2024", "1/2/2023"], "date"),
        (["2024-01-31", "2024-13-31"], "category"),
        (["1.2.3", "1.2.4"], "category"),
        (["a", "b", "a"], "category"),
    ],
)
def test_kinds(values, kind):
    assert kinds(column(values))["x"] == kind


def test_dates_have_their_values():
    def days(values):
        return column(values).features["x"].dt.to_string("%Y-%m-%d %H").to_list()

    assert days(["31/12/2024", "1/2/2023"]) == ["2024-12-31 00", "2023-02-01 00"]
    assert days(["12/31/2024", "1/2/2023"]) == ["2024-12-31 00", "2023-01-02 00"]
    assert days(["2024-01-31T12:00:00+01:00", "2023-12-01T01:02:03-02:00"]) == ["2024-01-31 11", "2023-12-01 03"]
    assert said(column(["2/1/2024", "1/2/2023"]), "month/day/year")
    assert not said(column(["12/31/2024", "1/2/2023"]), "month/day/year")


def test_a_late_text_makes_a_column_text_even_after_ten_thousand_numbers(file):
    rows = [f"{i % 977},{i % 2}" for i in range(12_000)]
    table = read_table(file("x.csv", "\n".join(["x,y", *rows, "oak,1", "3,0"]) + "\n"), "y", "1")
    (known,) = table.columns
    assert (known.kind, known.missing) == ("number", ("oak",))
    assert said(table, "'oak'")
    assert table.features["x"].null_count() == 1
    half = [f"{'oak' if i > 10_500 else i % 9},{i % 2}" for i in range(12_000)]
    assert kinds(read_table(file("z.csv", "\n".join(["x,y", *half])), "y", "1")) == {"x": "category"}


def test_only_plain_decimal_numbers_are_numbers(file):
    plain = ["1", "-2.5", "+3", ".5", "5.", "1e5", "1E-5", "007"]
    strange = ["1_0", "20_30", "１", "٣", "0x10", "1e5_0", "1,5,5", "½", "1d5", "--1", "1e", "."]
    assert [text for text in plain + strange if is_number(text)] == plain
    assert not any(map(is_number, ("nan", "inf", " 1", "")))
    spellings = {"1.0": "1", "1": "1", "TRUE": "true", "Oak": "Oak", "20_30": "20_30"}
    assert class_names(spellings) == spellings
    assert kinds(column(plain))["x"] == "number"
    for text in strange:
        for values in ([text, "oak"], [text, "1"]):
            assert kinds(column(values))["x"] == "category"
        table = read_table(file("x.csv", f'x,z,y\n"{text}",1,0\n"{text}",2,1\nb,5,0\n'), "y")
        assert table.features["x"].cast(pl.String).to_list() == [text, text, "b"]
    numbers = read_table(file("inf.csv", "x,z,y\n1,1,0\ninf,2,1\n-Infinity,5,0\n2,nan,0\n"), "y")
    assert numbers.features["x"].to_list() == [1, None, None, 2]
    assert numbers.features["z"].to_list() == [1, 2, 5, None]
    header = read_table(file("names.csv", "1_0,2_0,3_0\n1,5,0\n2,7,1\n4,7,0\n"), "3_0")
    assert header.features.columns == ["1_0", "2_0"]


def test_a_column_of_infinite_values_has_no_values(file):
    for values in ("inf", '" inf"', "-Infinity"):
        table = read_table(file("x.csv", f"x,z,y\n{values},1,0\n{values},2,1\n?,5,0\n"), "y")
        assert kinds(table) == {"z": "number"}
        assert said(table, "a column without any value: 'x' dropped.")


def test_infinite_values_are_missing():
    table = column(["1", "inf", "2", "-inf", "3"])
    assert table.features["x"].to_list() == [1, None, 2, None, 3]
    assert said(table, "infinite values of 'x' count as missing: 2.")


def test_precision_is_double_only_where_single_merges_values():
    whole = column([1_700_000_000 + i * 3 for i in range(10)])
    assert whole.features["x"].n_unique() == 10
    assert [c.wide for c in whole.columns] == [True, False]
    assert column([1_000_000.001 + i / 1000 for i in range(10)]).features["x"].n_unique() == 10


def test_columns_without_use_are_dropped_aloud():
    rows = 200
    frame = pl.DataFrame(
        {
            "row": range(rows),
            "id": [f"{i:x}-{i * 7919 % 1000}" for i in range(rows)],
            "none": [None] * rows,
            "blank": ["?"] * rows,
            "one": ["x"] * rows,
            "uno": ["1.0" if i % 2 else "1" for i in range(rows)],
            "list": [[i] for i in range(rows)],
            "town": [f"t{i % 60}" for i in range(rows)],
            "x": [i % 17 for i in range(rows)],
            "y": [i % 3 == 0 for i in range(rows)],
        }
    )
    table = read_frame(frame, "y")
    assert kinds(table) == {"town": "category", "x": "number"}
    notes = "\n".join(table.notes)
    assert "2 columns without any value: 'none', 'blank' dropped." in notes
    assert "2 columns with one value only: 'one', 'uno' dropped." in notes
    assert "like a name or an id: 'id' dropped." in notes
    assert "only counts the rows: 'row' dropped." in notes
    assert "of a type that cannot be learnt from: 'list' dropped." in notes
    assert re.search(r"'town' has about (59|60|61) values: the 32 most frequent count", notes)


def test_missing_values_are_reported():
    table = column(["1", "?", None, "4"] * 10)
    assert said(table, "missing in 1 of 2 columns ('x' 50 %)")


# The target


def test_the_positive_class(file):
    def positive(values, **options):
        table = read_frame(pl.DataFrame({"x": range(0, len(values) * 3, 3), "t": values}), "t", **options)
        return table.positive, int(table.y.sum()), table.notes[0]

    assert positive(["no", "no", "yes"]) == ("yes", 1, "positive is t 'yes', the rarer value: 1 of 3 rows.")
    assert positive(["no", "yes", "yes"])[:2] == ("no", 1)
    assert positive(["no", "yes", "yes"], positive="yes")[2] == "positive is t 'yes', as asked: 2 of 3 rows."
    assert positive([0.0, 1.0, 0.0], positive="1")[:2] == ("1", 1)
    assert positive(["1", "1.0", "0", "0", "0"])[:2] == ("1", 2)
    assert positive([True, False, False])[:2] == ("true", 1)
    assert positive([True, False, False], positive="True")[:2] == ("true", 1)
    assert positive(["a", "b", "c", "b"], positive="b")[2].startswith("positive is t 'b' against 2 other values")
    for tie in (["0", "1"], ["no", "yes"], ["negative", "positive"], ["f", "t"]):
        assert positive(tie)[0] == tie[1]
        assert positive(tie[::-1])[0] == tie[1]
        assert "equally frequent" in positive(tie)[2]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("20_30", "30_40"),
        ("1_0", "10"),
        ("１", "1"),
        ("inf", "Infinity"),
        ("1e400", "1e500"),
        ("0x10", "16"),
        ("9007199254740993", "9007199254740992"),
        ("0.1", "0.10000000000000000001"),
    ],
)
def test_classes_that_are_not_the_same_number_are_two(file, one, other):
    path = file("x.csv", f"x,age\n1,{one}\n5,{other}\n7,{other}\n")
    table = read_table(path, "age")
    assert (table.positive, table.negative, table.y.tolist()) == (one, (other,), [1, 0, 0])
    assert read_table(path, "age", positive=other).positive == other


def test_classes_that_are_the_same_number_are_one(file):
    path = file("x.csv", "x,y\n1,1\n2,1.0\n3,+1\n4,10e-1\n5,01\n7,0\n8,-0.0\n9,0\n9,0\n1,0\n2,0\n")
    table = read_table(path, "y")
    assert (table.positive, table.negative, int(table.y.sum())) == ("1", ("0",), 5)
    with pytest.raises(TableError, match="the target 'y' has no values"):
        read_table(file("x.csv", "x,y\n1,nan\n2,NaN\n"), "y")


def test_the_classes_of_a_target():
    classes = choose_classes("is_fraud", {"0": 990, "1": 10})
    assert (classes.positive, classes.note) == ("1", "positive is is_fraud '1', the rarer value: 10 of 1,000 rows.")
    assert choose_classes("class", {"a": 5, "b": 4, "c": 3}, positive="b").negative == ("a", "c")
    equal = "positive is y '1', though both values are equally frequent: 5 of 10 rows."
    assert rarer_class({"1": 5, "0": 5}, "y") == ("1", equal)


def test_the_rarer_class_for_everybody():
    assert rarer_class({"no": 990, "yes": 10}) == ("yes", "positive is 'yes', the rarer value: 10 of 1,000 rows.")
    for names in (("1", "0"), ("true", "false"), ("yes", "no"), ("pos", "neg"), ("b", "a")):
        for counts in (dict.fromkeys(names, 4), dict.fromkeys(names[::-1], 4)):
            chosen, sentence = rarer_class(counts, "y")
            assert chosen == names[0]
            assert sentence == f"positive is y {chosen!r}, though both values are equally frequent: 4 of 8 rows."
    code = "import sys; from fbeta.tables.target import rarer_class; print({'polars', 'numpy'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_a_table_knows_what_its_columns_are_for(file):
    path = file("x.csv", "who,when,leak,x,y\na,1,0,1,no\na,2,1,4,yes\nb,3,0,2,no\n")
    roles = {"group": "who", "time": "when", "drop": ["leak"]}
    expected = Roles("y", "yes", ("no",), "who", "when", ("leak",))
    for table in (read_table(path, "y", **roles), data.load_table(path, "y", **roles)):
        assert (table.roles, table.source) == (expected, str(path))
        assert (table.target, table.positive, table.negative) == ("y", "yes", ("no",))
        assert table.take(table.y == 1).roles == expected
    frame = read_frame(pl.read_csv(path), "y", **roles)
    assert (frame.roles, frame.source) == (expected, "")
    named = data.load_table("breast-cancer")
    assert named.roles == Roles("diagnosis", "malignant", ("benign",))
    assert named.source == "breast-cancer"


def test_rows_without_a_target_are_left_out(file):
    table = read_table(file("x.csv", "x,y\n1,0\n,\n5,?\n4,1\n2,0\n"), "y")
    assert table.features["x"].to_list() == [1, 4, 2]
    assert said(table, "rows without a value of 'y' were left out: 2.")


# Rows that belong together


def test_equal_rows_share_a_group(file):
    table = read_table(file("x.csv", "a,b,y\n1,x,0\n2,x,1\n1,x,1\n1.0,x,0\n?,x,0\n,x,0\n"), "y", "1")
    assert table.group.tolist() == [0, 1, 0, 0, 2, 2]
    assert said(table, "5 rows have the same features")
    assert said(table, "3 rows have the features of a row of the other class")
    apart = read_table(file("x.csv", "a,b,y\n1,x,0\n1,x,1\n2,y,0\n"), "y", duplicates=False)
    assert apart.group.tolist() == [0, 1, 2]
    assert not said(apart, "together")


def test_groups_and_copies_are_chained():
    frame = pl.DataFrame({"g": ["a", "a", "b", "c", None, None], "x": [1, 2, 2, 3, 4, 5], "y": [0, 1, 0, 0, 1, 0]})
    table = read_frame(frame, "y", "1", group="g")
    assert table.group.tolist() == [0, 0, 0, 1, 2, 3]
    assert [c.name for c in table.columns] == ["x"]
    assert said(table, "rows without a value of 'g' are groups of their own: 2.")


@pytest.mark.parametrize("seed", range(5))
def test_groups_are_connected_components(seed):
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    from fbeta.tables.folds import joined

    rng = np.random.default_rng(seed)
    one, other = rng.integers(0, 60, (2, 80))
    graph = coo_array((np.ones(80), (one, other + 60)), shape=(120, 120))
    labels = connected_components(graph, directed=False)[1][one]
    assert joined(np.array([0, 0, 1, 2]), np.array([0, 1, 1, 2])).tolist() == [0, 0, 0, 1]
    ours = joined(one, other)
    assert len(set(zip(labels, ours, strict=True))) == len(set(labels)) == len(set(ours))


def test_small_parts(file):
    assert (listed(["a", "b"]), listed("abcdefg")) == ("'a', 'b'", "'a', 'b', 'c', 'd', 'e' and 2 more")
    assert delimited.sniff("name;size, cm\nx;1,5\n") == ";"
    frame = pl.DataFrame({"paid": [1.0, 2, 3, 4, 5] * 2, "refused on": [None] * 5 + ["Monday"] * 5})
    assert leaks(frame, np.array([0] * 5 + [1] * 5, np.int8)) == ["refused on"]
    scores = read_scores(file("x.csv", "p,fraud\n0.9,yes\n0.2,no\n0.1,no\n"), "fraud", "p")
    assert scores.score.tolist() == [0.9, 0.2, 0.1]


def test_a_digest_is_of_the_content():
    table = data.load_table("breast-cancer")
    assert digest(table) == digest(table.take(np.arange(569))) != digest(table.take(np.arange(568)))


def test_time_is_a_number_that_grows():
    frame = pl.DataFrame({"t": ["2024-01-02", "2024-01-01"], "x": [1, 2], "y": [0, 1]})
    assert (np.diff(read_frame(frame, "y", time="t").time) == -86_400).all()
    assert read_frame(frame.with_columns(t=pl.Series([16_777_217, 3])), "y", time="t").time.tolist() == [16_777_217, 3]


# New rows for a model


def test_stream_gives_what_reading_gives(tmp_path):
    rows = 1000
    frame = pl.DataFrame(
        {
            "x": [f"{i / 7:.3f}" if i % 10 else "NA" for i in range(rows)],
            "c": ["abc"[i % 3] for i in range(rows)],
            "b": ["yes" if i % 4 else "no" for i in range(rows)],
            "d": [f"2024-01-{1 + i % 28:02d}" for i in range(rows)],
            "y": [i % 2 for i in range(rows)],
        }
    )
    for path, write in (("x.csv", frame.write_csv), ("x.parquet", frame.write_parquet)):
        write(tmp_path / path)
        table = read_table(tmp_path / path, "y")
        pieces = list(stream(tmp_path / path, table.columns[::-1], rows=300, keep=["y"]))
        assert [len(features) for features, _ in pieces] == [300, 300, 300, 100]
        typed = pl.concat([features for features, _ in pieces])
        assert typed.columns == ["d", "b", "c", "x"]
        assert typed.select(table.features.columns).equals(table.features)
        assert pl.concat([kept for _, kept in pieces])["y"].cast(pl.Int64).to_list() == frame["y"].to_list()


def test_stream_takes_real_types_for_text(tmp_path):
    columns = [Column("x", "number"), Column("b", "boolean"), Column("d", "date", "%Y-%m-%d"), Column("c", "category")]
    frame = pl.DataFrame({"c": ["u", "v"], "d": ["2024-01-02", None], "b": [True, None], "x": [1, 2]})
    frame.with_columns(pl.col("d").str.to_date()).write_parquet(tmp_path / "x.parquet")
    ((features, kept),) = stream(tmp_path / "x.parquet", columns)
    assert features.rows()[1] == (2.0, None, None, "v")
    assert kept.width == 0


# The door


def test_load_takes_names_and_paths(file):
    path = file("x.csv", CSV)
    assert repr(data.load(path, "is_fraud")) == repr(data.load(str(path), target="is_fraud"))
    assert isinstance(data.load("digits"), data.Images)
    assert data.load("digits", positive="3").positive == "3"
    assert data.load_table("digits").positive == "0"
    with pytest.raises(ValueError, match="Unknown data set 'digitz'. Did you mean 'digits'"):
        data.load("digitz")
    with pytest.raises(TableError, match="which column of .* is the target"):
        data.load(path)
    with pytest.raises(TableError, match="breast-cancer has its own target, 'diagnosis'"):
        data.load("breast-cancer", "mean radius")
    with pytest.raises(TableError, match="breast-cancer has its own columns and split: leave group, drop out"):
        data.load("breast-cancer", group="a", drop=["b"])
    with pytest.raises(ValueError, match="breast-cancer is a table"):
        data.load_images("breast-cancer")


def test_pictures_need_no_polars(file):
    code = """
import sys
from collections import Counter
sys.modules["polars"] = None
from fbeta import data
print(data.load("digits").train.shape)
try:
    data.load("x.csv", "y")
except data.DataError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["(1438, 8, 8, 1)", "fbeta.tables needs polars: pip install 'fbeta[table]'."]


def test_a_header_longer_than_a_megabyte(file):
    names = [f"{i:05d}{'x' * 30_000}" for i in range(60)]
    rows = [[(i * i + k) % 11 for k in range(60)] for i in range(9)]
    lines = [[*names, "y"], *([*map(str, row), str(i % 2)] for i, row in enumerate(rows))]
    table = read_table(file("x.csv", "\n".join(map(",".join, lines)) + "\n"), "y")
    assert table.features.columns == names
    assert table.features.rows() == list(map(tuple, rows))


def test_neither_queries_nor_their_steps_grow_with_the_columns(monkeypatch, tmp_path):
    def steps(columns):
        rng, plans = np.random.default_rng(0), []
        numbers = [[*map(str, rng.normal(size=30)), *["odd"]] for _ in range(columns)]
        frame = pl.DataFrame(
            {f"x{i}": rng.normal(size=31) for i in range(columns)}
            | {f"c{i}": rng.choice(["u", "v"], 31) for i in range(columns)}
            | {f"b{i}": rng.choice(["yes", "no"], 31) for i in range(columns)}
            | {f"d{i}": [f"2024-01-{1 + (i + k) % 28:02d}" for k in range(31)] for i in range(columns)}
            | {f"o{i}": numbers[i] for i in range(columns)}
            | {"y": np.arange(31) % 2}
        )
        frame.write_csv(path := tmp_path / f"{columns}.csv")
        collect, schema = pl.LazyFrame.collect, pl.LazyFrame.collect_schema

        def collected(self, *args, **options):
            plan = self.show_graph(engine="streaming", plan_stage="physical", raw_output=True)
            plans.append(plan.count("[label=") if options.get("engine") == "streaming" else 1)
            return collect(self, *args, **options)

        def asked(self):
            plans.append("schema")
            return schema(self)

        with monkeypatch.context() as patch:
            patch.setattr(pl.LazyFrame, "collect", collected)
            patch.setattr(pl.LazyFrame, "collect_schema", asked)
            table = read_table(path, "y")
        with monkeypatch.context() as patch:
            patch.setattr(pl.LazyFrame, "collect_schema", asked)
            list(stream(path, table.columns))
        assert [column.kind for column in table.columns[::columns]] == [
            "number", "category", "boolean", "date", "number",
        ]  # fmt: skip
        return plans

    assert steps(2) == steps(20)


@pytest.mark.parametrize("name", ["f[12].parquet", "f[12].arrow", "f[12].csv"])
def test_a_name_is_no_pattern(name, tmp_path):
    frames = [pl.DataFrame({"x": np.arange(6) ** 2 + 100 * i, "y": [0, 1, 1, 0, 0, 0]}) for i in range(3)]
    ending = name.rpartition(".")[2]
    write = {"parquet": pl.DataFrame.write_parquet, "arrow": pl.DataFrame.write_ipc}
    for frame, file in zip(frames, (name, f"f1.{ending}", f"f2.{ending}"), strict=True):
        write.get(ending, pl.DataFrame.write_csv)(frame, tmp_path / file)
    table = read_table(tmp_path / name, "y")
    assert table.features["x"].to_list() == frames[0]["x"].to_list()


def test_types_that_cannot_be_learnt_from_are_named(tmp_path):
    frame = pl.DataFrame({"x": [3, 1, 4, 1, 5, 9], "y": [0, 1, 1, 0, 0, 0]}).with_columns(
        spent=pl.duration(hours=pl.col("x")), hour=pl.time(1, 2), raw=pl.lit(b"a")
    )
    table = read_frame(frame, "y")
    assert kinds(table) == {"x": "number"}
    assert said(table, "3 columns of a type that cannot be learnt from: 'spent', 'hour', 'raw' dropped.")
    with pytest.raises(TableError, match="'spent' is neither a date nor a number"):
        read_frame(frame, "y", time="spent")


def test_a_decimal_comma_is_said(file):
    text = "a\ty\n" + "".join(f"1,1{i:02d}\t{i % 3 == 0:d}\n" for i in range(9))
    table = read_table(file("t.tsv", text), "y")
    assert table.features["a"].max() < 2
    assert said(table, "it was read as the decimal sign, not as thousands")


def test_kept_columns_are_kept_as_they_stand(file):
    path = file("new.csv", "id,amount\nNA,1.5\nnull,?\n?,3\n")
    (features, kept), *_ = stream(path, [Column("amount", "number")], keep=["id"])
    assert kept["id"].to_list() == ["NA", "null", "?"]
    assert features["amount"].to_list() == [1.5, None, 3.0]


@pytest.mark.parametrize("dtype", [pl.Int64, pl.Float64, pl.Boolean, pl.Date, pl.Null])
def test_a_category_of_another_type_is_read_as_text(dtype, tmp_path):
    pl.DataFrame({"land": pl.Series([None] * 3 if dtype == pl.Null else [1, 0, None]).cast(dtype)}).write_parquet(
        tmp_path / "new.parquet"
    )
    ((features, _),) = stream(tmp_path / "new.parquet", [Column("land", "category")])
    assert features["land"].dtype == pl.Categorical
    assert features["land"].null_count() == (3 if dtype == pl.Null else 1)


def test_columns_that_give_the_answer_away_are_noted():
    rng = np.random.default_rng(0)
    y = np.arange(200) % 10 == 0
    columns = {
        "useful": rng.normal(size=200) + 2 * y,
        "many": [f"level {i // 2}" for i in range(200)],
        "copy": np.where(y, "bad", "good"),
        "number": 5.0 - 3 * y,
        "closed": [f"2024-01-{1 + i % 28:02d}" if bad else None for i, bad in enumerate(y)],
        "y": y.astype(int),
    }
    (note,) = said(read_frame(pl.DataFrame(columns), "y"), "to tell the classes apart")
    assert note.startswith("each of 3 columns is enough")
    assert "'copy', 'number', 'closed'; leave out (--drop)" in note
    nearly = pl.DataFrame(columns | {"copy": np.where(np.arange(200) % 10 < 2, "bad", "good")})
    assert not said(read_frame(nearly.drop("number", "closed"), "y"), "to tell the classes apart")
    between = np.where(y, "lost", np.where(np.arange(200) % 3, "closed", "open"))  # in the middle of the alphabet
    (note,) = said(read_frame(pl.DataFrame({"x": columns["useful"], "state": between, "y": y}), "y"), "tell the")
    assert "'state'" in note
    few = pl.DataFrame(columns).filter(~pl.Series(y) | (pl.int_range(200) < 40))  # four positives
    assert not said(read_frame(few, "y"), "to tell the classes apart")


def test_work_is_linear_in_columns(tmp_path, monkeypatch):
    """A query takes time for each column of each of its steps, so their number must not grow with the columns."""
    queries = Counter()

    def counted(name):
        real = getattr(pl.LazyFrame, name)

        def query(frame, *args, **kwargs):
            queries[name] += 1
            return real(frame, *args, **kwargs)

        return query

    for name in ("collect", "collect_schema", "collect_batches", "select", "with_columns"):
        monkeypatch.setattr(pl.LazyFrame, name, counted(name))
    seen, calls = [], []
    for width in (50, 200, 800):
        rows = np.random.default_rng(0).normal(size=(40, width)).round(3)
        frame = pl.DataFrame(rows, schema=[f"x{i}" for i in range(width)])
        frame = frame.with_columns(pl.Series("y", ["a", "b"] * 20), pl.col("x1").cast(pl.String) + "?")
        frame.write_csv(tmp_path / "wide.csv")
        queries.clear()
        profile = cProfile.Profile()
        table = profile.runcall(read_table, tmp_path / "wide.csv", "y")
        assert len(table.columns) == width
        list(stream(tmp_path / "wide.csv", table.columns))
        seen.append(dict(queries))
        calls.append(sum(entry.callcount for entry in profile.getstats()))
    assert seen[0] == seen[1] == seen[2]
    assert calls[2] - calls[1] < 1.1 * 4 * (calls[1] - calls[0])


@pytest.mark.parametrize("ending", ["csv", "parquet", "float.parquet"])
def test_numbers_that_are_codes(tmp_path, ending):
    codes = [10115, 80331, 20095, None] * 8
    kind = pl.Float64 if ending.startswith("float") else pl.Int64
    frame = pl.DataFrame({"zip": codes, "x": [i % 7 for i in range(32)], "y": ["a", "b", "b", "b"] * 8})
    frame = frame.with_columns(pl.col("zip").cast(kind))
    path = tmp_path / f"x.{ending}"
    frame.write_parquet(path) if "parquet" in ending else frame.write_csv(path)
    table = read_table(path, "y", categorical=["zip"])
    assert kinds(table) == {"zip": "category", "x": "number"}
    assert table.roles.categorical == ("zip",)
    assert table.features["zip"].cast(pl.String).to_list()[:4] == ["10115", "80331", "20095", None]
    frame.with_columns(pl.col("zip").cast(pl.Float64)).write_csv(tmp_path / "new.csv")  # 10115.0, as pandas writes it
    ((features, _),) = stream(tmp_path / "new.csv", table.columns)
    assert features["zip"].cast(pl.String).to_list() == table.features["zip"].cast(pl.String).to_list()
    (same,) = (column for column in table.columns if column.name == "zip")
    assert Column.from_dict(same.to_dict()) == same
    assert kinds(read_frame(frame, "y", categorical="zip")) == kinds(table)


def test_codes_keep_their_zeros_and_must_be_columns(file):
    path = file("x.csv", "zip,x,y\n01067,1,0\n1067,2,1\n80331,5,0\n")
    assert read_table(path, "y", categorical=["zip"]).features["zip"].cast(pl.String).to_list()[:2] == ["01067", "1067"]
    with pytest.raises(TableError, match="has no categorical column 'zap'. Did you mean 'zip'"):
        read_table(path, "y", categorical=["zap"])
    with pytest.raises(TableError, match="dropped and categorical columns must differ"):
        read_table(path, "y", categorical=["zip"], drop=["zip"])
