"""JSON lines and Excel: the same table as from CSV, and a sentence for all that is none."""

import datetime
import gzip
import json
import re
import sys
import zipfile

import polars as pl
import pytest

from fbeta.tables import TableError, read_table, stream, text_copy
from fbeta.tables.scored_rows import read_scores

ROWS = [
    {"amount": 1.5, "land": "DE", "day": "2024-01-31", "ok": True, "y": "no"},
    {"amount": 3, "land": "FR", "ok": False, "y": "no"},
    {"land": 'a,"b"\nc', "day": "2024-02-02", "amount": -2e300, "y": "yes"},
    {"amount": None, "day": "2024-02-03", "ok": True, "y": "no", "late": 7},
    {},
]


def lines(rows, path):
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return path


def values(table):
    return table.features.with_columns(pl.selectors.categorical().cast(pl.String)).rows()


# JSON lines


def test_json_lines_are_the_table_of_a_csv(tmp_path):
    path = lines(ROWS, tmp_path / "x.jsonl")
    (tmp_path / "x.ndjson.gz").write_bytes(gzip.compress(path.read_bytes()))
    (tmp_path / "mark").write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n\r\n"))
    names = ["amount", "land", "day", "ok", "y", "late"]
    frame = pl.DataFrame(
        [{name: row.get(name) for name in names} for row in ROWS], infer_schema_length=None, orient="row"
    )
    frame.write_csv(tmp_path / "x.csv")
    wanted = read_table(tmp_path / "x.csv", "y")
    for name in ("x.jsonl", "x.ndjson.gz", "mark"):
        found = read_table(tmp_path / name, "y")
        assert (found.columns, found.notes, values(found)) == (wanted.columns, wanted.notes, values(wanted))
    assert [column.kind for column in wanted.columns] == ["number", "category", "date", "boolean", "number"]


def test_a_model_reads_json_lines_of_any_order(tmp_path):
    table = read_table(lines(ROWS * 9, tmp_path / "x.jsonl"), "y")
    new = lines([dict(reversed(row.items())) for row in ROWS], tmp_path / "new.jsonl")
    ((features, kept),) = stream(new, table.columns, keep=["y"])
    assert kept["y"].to_list() == ["no", "no", "yes", "no", None]
    assert features["amount"].to_list()[:2] == [1.5, 3]


def test_whole_numbers_of_any_size_keep_their_digits(tmp_path):
    ids = [2**70 + i * 10**17 for i in range(5)]
    rows = [{"x": x, "z": i * i, "far": int("9" * (300 + 9 * i)), "y": i % 2} for i, x in enumerate(ids)]
    table = read_table(lines(rows, tmp_path / "x.jsonl"), "y", "1")
    assert table.features["x"].to_list() == list(map(float, ids))
    assert table.features["far"].null_count() == 4  # beyond 1e308
    assert any("infinite values of 'far'" in note for note in table.notes)
    ((_, kept),) = stream(tmp_path / "x.jsonl", [], keep=["x"])
    assert kept["x"].to_list() == list(map(str, ids))


def test_what_is_nested_is_left_out_aloud(tmp_path):
    rows = [{"x": i * i, "y": i % 2, "tags": ["a"], "home": {"town": i} if i else "none"} for i in range(6)]
    table = read_table(lines(rows, tmp_path / "x.jsonl"), "y", "1")
    assert table.features.columns == ["x"]
    (note,) = (note for note in table.notes if "lists or objects" in note)
    assert note.startswith("2 columns hold lists or objects: 'tags', 'home' dropped")


GOOD = '{"x": 1, "y": 2}\n'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            GOOD + '{"x":1,,}\n',
            "line 2 is no JSON object (Expecting property name enclosed in double quotes at letter 8)",
        ),
        (GOOD + "\n" + '{"x":1', "line 3 is no JSON object"),
        (GOOD + '{"x":1} {"x":2}', "line 2 is no JSON object (Extra data"),
        ('{"x": 1, "y": 2, "x": 3}', "line 1 has the key 'x' twice: keep one"),
        ('{\n  "x": 1\n}\n', "line 1 is no JSON object"),
        ('[{"x": 1, "y": 2}]', "line 1 is no object: write one per line"),
        (GOOD + "[1, 2]\n", "line 2 is no object"),
        (GOOD + "7\n", "line 2 is no object"),
        (GOOD + '{"x": ' + "[" * 100_000, "line 2 has lists or objects nested too deep"),
        (GOOD + '{"x": "\\ud800"}', "line 2 has half of a letter"),
        (GOOD + '{"x": "\\u0000"}', "line 2 has a zero byte inside"),
        ('{"y": 1}\n', "has one column only ('y')"),
        ("{}\n{}\n", "has no column of plain values"),
        ('{"y": {"a": 1}}\n', "has no column of plain values"),
        ('{"x": 1, " x": 2, "y": 1}', "several columns of one name ('x')"),
        ('{"x": 1, "z": 2}', "has no target column 'y'"),
    ],
)
def test_bad_lines(text, words, tmp_path):
    (path := tmp_path / "x.jsonl").write_text(text)
    with pytest.raises(TableError, match=re.escape(words)) as error:
        read_table(path, "y")
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)


def test_a_key_of_its_own_in_every_line_does_not_fill_the_disk(tmp_path, monkeypatch):
    monkeypatch.setattr(text_copy, "FREE", 1 << 16)
    path = lines([{f"k{i}": 1, "y": i % 2} for i in range(5000)], tmp_path / "x.jsonl")
    with pytest.raises(TableError, match="has 5,001 columns, and nearly all of their fields are empty"):
        read_table(path, "y")


# Excel


@pytest.fixture
def book(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")

    def write(rows=(), name="x.xlsx", start=1, **others):
        book = openpyxl.Workbook()
        for title, some in {"First": rows, **others}.items():
            sheet = book.active if title == "First" else book.create_sheet()
            sheet.title = title
            for i, row in enumerate(some, start):
                for j, value in enumerate(row, start):
                    sheet.cell(i, j).value = value
        book.save(tmp_path / name)
        return tmp_path / name

    return write


HEADER = ["amount", "land", "day", "when", "ok", "y"]
CELLS = [
    HEADER,
    [1.5, "DE", datetime.date(2024, 1, 31), datetime.datetime(2024, 1, 1, 12, 30), True, "no"],
    [0.1 + 0.2, "FR", None, datetime.datetime(2024, 1, 2), False, "no"],
    [None, 7, datetime.date(2024, 2, 2), datetime.datetime(2024, 1, 3, 0, 0, 5), True, "yes"],
    [1e-12, "#N/A", datetime.date(2024, 2, 3), None, None, "no"],
]


@pytest.mark.parametrize("start", [1, 4])
def test_a_workbook_is_read_as_its_csv(book, tmp_path, start):
    (tmp_path / "x.csv").write_text(
        "amount,land,day,when,ok,y\n1.5,DE,2024-01-31,2024-01-01 12:30:00,true,no\n"
        "0.30000000000000004,FR,,2024-01-02 00:00:00,false,no\n,7,2024-02-02,2024-01-03 00:00:05,true,yes\n"
        "1e-12,NA,2024-02-03,,,no\n"
    )
    wanted, found = read_table(tmp_path / "x.csv", "y"), read_table(book(CELLS, start=start), "y")
    assert (found.columns, found.notes, values(found)) == (wanted.columns, wanted.notes, values(wanted))


def test_sheets(book):
    other = [["x", "y"], *([i * i, i % 2] for i in range(9))]
    path = book(CELLS, Other=other, Blank=[])
    assert (
        "x.xlsx has several sheets: 'First' was read, not 'Other', 'Blank' (--sheet NAME)."
        in read_table(path, "y").notes
    )
    table = read_table(path, "y", "1", sheet="Other")
    assert len(table) == 9
    assert not [note for note in table.notes if "sheet" in note]
    ((features, _),) = stream(path, table.columns, sheet="Other")
    assert features.height == 9
    assert len(read_scores(path, "y", "x", "1", sheet="Other").score) == 9
    with pytest.raises(TableError, match="has no sheet 'other', but 'First', 'Other', 'Blank'. Did you mean 'Other'"):
        read_table(path, "y", sheet="other")
    with pytest.raises(TableError, match="the sheet 'Blank' of .* is empty: name another"):
        read_table(path, "y", sheet="Blank")


def test_merged_cells_blank_rows_and_notes_beside_the_table(book):
    rows = [["x", None, "y"], *([i * i, i % 3, i % 2] for i in range(8)), [], [], [8, 1, 0], []]
    table = read_table(book(rows), "y", "1")
    assert (len(table), table.features.columns) == (9, ["x", "column 2"])
    assert "x.xlsx has columns without a name, called 'column 2'; merged cells count as the first." in table.notes
    assert "blank rows were left out: 2." in table.notes
    with pytest.raises(TableError, match=r"has 'see below' in a column without a name: keep a table alone"):
        read_table(book([*rows, [1, 2, 0, "see below"]]), "y", "1")


def test_no_table_in_a_workbook(book, tmp_path):
    for rows, words in (
        ([["x", "y"]], "but no rows"),
        ([["y"], [1]], "has one column only"),
        ([["x", "x", "y"], [1, 2, 3]], "several columns of one name"),
    ):
        with pytest.raises(TableError, match=words):
            read_table(book(rows), "y")
    whole = book(CELLS).read_bytes()
    for damaged in (whole[:2000], whole[:-200], whole.replace(b"workbook", b"workbock")):
        (path := tmp_path / "bad.xlsx").write_bytes(damaged)
        with pytest.raises(TableError) as error:
            read_table(path, "y")
        assert "\n" not in str(error.value)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("xl/workbook.xml", "<nothing/>")
    with pytest.raises(TableError, match="is a damaged workbook"):
        read_table(path, "y")


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        ('<row r="999999999999"><c r="A999999999999"><v>1</v></c></row>', "a row is beyond 1,048,576"),
        ('<row r="1048576"><c r="XFD1048576"><v>1</v></c></row>', "in a column without a name"),
        ('<row r="9"><c r="A9"><v>&big;</v></c></row>', "is a damaged workbook"),
    ],
)
def test_a_workbook_of_a_stranger(book, tmp_path, cell, words):
    with zipfile.ZipFile(book(CELLS)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    sheet = members["xl/worksheets/sheet1.xml"].decode()
    nested = "".join(f'<!ENTITY b{i} "{10 * f"&b{i - 1};"}">' for i in range(1, 9))
    big = f'<!DOCTYPE x [<!ENTITY b0 "{99 * "a"}">{nested}<!ENTITY big "&b8;">]>'
    sheet = big + sheet[sheet.index("<worksheet") :].replace("</sheetData>", f"{cell}</sheetData>")
    with zipfile.ZipFile(tmp_path / "bad.xlsx", "w") as archive:
        for name, content in (members | {"xl/worksheets/sheet1.xml": sheet.encode()}).items():
            archive.writestr(name, content)
    with pytest.raises(TableError, match=words):
        read_table(tmp_path / "bad.xlsx", "y")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"\xd0\xcf\x11\xe0" + bytes(600), r"an old Excel workbook \(.xls\): save it as .xlsx"),
        (b"\xd0\xcf\x11\xe0" + bytes(600) + "EncryptedPackage".encode("utf-16-le"), "locked by a password"),
        ("xl/workbook.bin", "a binary one"),
        ("content.xml", "of LibreOffice"),
        ("any", "zip archive: save its sheet as CSV"),
    ],
)
def test_other_workbooks(content, words, tmp_path):
    path = tmp_path / "x.xls"
    if isinstance(content, str):
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr(content, "x")
    else:
        path.write_bytes(content)
    with pytest.raises(TableError, match=words):
        read_table(path, "y")


def test_without_the_extra_one_command_is_said(book, monkeypatch):
    path = book(CELLS)
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(TableError, match=r"needs openpyxl: pip install 'fbeta\[excel\]'$"):
        read_table(path, "y")


def test_a_sheet_of_what_has_none(tmp_path):
    path = lines(ROWS, tmp_path / "x.jsonl")
    with pytest.raises(TableError, match="is no Excel workbook, and has no sheet 'First': leave the sheet out"):
        read_table(path, "y", sheet="First")
