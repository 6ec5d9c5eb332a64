"""Rows of text are never read as other rows: what is no row is refused by its line, all else is read as it stands."""

import csv
import io
import random
import re

import pytest

from fbeta.tables import Column, TableError, fields, read_table, stream
from fbeta.tables.formats import opened
from fbeta.tables.scored_rows import read_scores

GOOD = "a,b,y\n0.5,u,0\n7,v,1\n3,w,0\n9,u,1\n"
READERS = {
    "fit, compare": lambda path: read_table(path, "y"),
    "predict": lambda path: list(stream(path, [Column("a", "number")])),  # the last column is not looked at
    "tune": lambda path: read_scores(path, "y", "a"),
}


def rows(path):
    with opened(path) as source:
        return [tuple(value or "" for value in row) for row in source.as_text().frame.collect().rows()]


def write(path, text):
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


MANY = 100_000  # rows before it: more than a piece
REFUSED = {
    "a field too many": (GOOD.replace("7,v,1", "7,v,1,9"), "line 3 has 4 fields, the header has 3: quote fields that"),
    "a delimiter too many": (GOOD.replace("7,v,1", "7,v,1,"), "line 3 has 4 fields"),
    "a field too few": (GOOD.replace("7,v,1", "7,v"), "line 3 has 2 fields, the header has 3: write a comma for each"),
    "one field": (GOOD.replace("7,v,1", "7"), "line 3 has 1 field, the header has 3"),
    "far below": (GOOD + "1,u,0\n" * MANY + "1,u\n" + "1,u,0\n" * MANY, f"line {MANY + 6} has 2 fields"),
    "a blank line": (GOOD.replace("3,w", "\n3,w"), "line 4 is blank, and no row: delete it"),
    "a line of blanks": (GOOD.replace("3,w", " \t\n3,w"), "line 4 is blank, and no row"),
    "a comment": (GOOD.replace("3,w", "# now w\n3,w"), "line 4 has 1 field"),
    "a comment first": ("# by me, today\n" + GOOD, "line 2 has 3 fields, the header has 2"),
    "a header too short": (GOOD.replace("a,b,y", "a,y"), "line 2 has 3 fields, the header has 2"),
    "a header too long": (GOOD.replace("a,b,y", "a,b,y,"), "line 2 has 3 fields, the header has 4"),
    "names twice": (GOOD.replace("a,b,y", "a,a,y"), "has several columns of one name ('a'): rename them"),
    "one carriage return": (GOOD.replace("7,v", "7\r,v"), "line 3 has a carriage return inside: end all lines alike"),
    "two line ends": (GOOD.replace("1\n3", "1\r3"), "line 3 has a carriage return inside"),
    "two line ends above": (GOOD.replace("y\n", "y\r"), "a carriage return stands inside of a line"),
    "returns doubled": (GOOD.replace("\n", "\r\r\n").replace("y\r\r", "y"), "line 2 has a carriage return inside"),
    "a quote that opens": (GOOD.replace("7,v", '7,"v'), "line 3 opens a quote that does not close"),
    "another far below": (GOOD.replace("7,v", '7,"v') + "1,u,0\n" * MANY + '1,"u",0\n', "line 3 has a quote that does"),
    "a quote inside": (GOOD.replace("7,v", '7,v"v'), "line 3 has a quote that does not enclose a whole field"),
    "quotes inside": (GOOD.replace("7,v", '7,v"v,v"'), "line 3 has a quote"),
    "a blank before a quote": (GOOD.replace("7,v", '7, "v,v"'), "line 3 has a quote"),
    "text behind a quote": (GOOD.replace("7,v", '7,"v"v'), "line 3 has a quote"),
    "blanks behind the last": (GOOD.replace(",y", ",z").replace("b", "y") + '1,1,"x" ', "line 6 has a quote"),
    "the end is missing": (GOOD[:-3], "ends in the middle of a row, so it is truncated"),
    "zeros": (GOOD + "1,u,0\n" * 20_000 + "1,\0,0\n", "has zero bytes inside"),
    "half a letter of UTF-16": (GOOD.encode("utf-16")[:-1], "is truncated or damaged UTF-16"),
    "half a character of UTF-16": (GOOD.encode("utf-16-le").join([b"\xff\xfe", b"\x00\xd8"]), "damaged UTF-16"),
    "two encodings": (GOOD.replace("u", "é").encode() + b"1,\xe9,0\n", "is in UTF-8 but for line 6: save all of it in"),
    "two encodings, the other first": (b"a,\xe9,y\n" + "1,éé,0\n2,u,1\n".encode(), "in UTF-8 but for line 1"),
    "a damaged letter": (GOOD.replace("v", "日日日本").encode().replace(b"\xac,", b",") + b"3,u,1\n", "but for line 3"),
    "a mark of UTF-8, and Latin-1": (b"\xef\xbb\xbf" + GOOD.replace("u", "éé").encode("latin-1"), "but for line 2"),
    "zeros in UTF-16": (GOOD.replace("7,v", "7,\0").encode("utf-16"), "has zero bytes inside"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_no_row_is_refused_by_every_reader(case, tmp_path):
    text, words = REFUSED[case]
    path = write(tmp_path / "x.csv", text)
    for read in READERS.values():
        with pytest.raises(TableError, match=re.escape(words)) as error:
            read(path)
        assert str(path) in str(error.value)


TRUE = [("0.5", "u", "0"), ("7", "v", "1"), ("3", "w", "0"), ("9", "u", "1")]


def with_field(field, value):
    return GOOD.replace("v", field), [TRUE[0], ("7", value, "1"), *TRUE[2:]]


ODD, LONG = "v\x0b\x0c\x1c\x85\u2028", "v\n" * 400_000
READ = {
    "as usual": (GOOD, TRUE),
    "of Latin-1": (GOOD.replace("v", "É» ü").encode("latin-1"), with_field("É» ü", "É» ü")[1]),
    "of UTF-16": (GOOD.replace("v", "😀").encode("utf-16"), with_field("😀", "😀")[1]),
    "of Windows": (GOOD.replace("\n", "\r\n"), TRUE),
    "of old Macs": (GOOD.replace("\n", "\r"), TRUE),
    "of old Macs in UTF-16": (GOOD.replace("\n", "\r").encode("utf-16"), TRUE),
    "of two systems": (GOOD.replace("\n", "\r\n", 3), TRUE),
    "with a mark": ("\ufeff" + GOOD, TRUE),
    "with a mark and quotes": ("\ufeff" + GOOD.replace("a,b,y", '"a","b","y"'), TRUE),
    "blank lines above": ("\n \n" + GOOD, TRUE),
    "blank lines below": (GOOD + "\n\r\n  \n\t", TRUE),
    "many blank lines below": (GOOD + "\n" * 300_000, TRUE),
    "no line end": (GOOD[:-1], TRUE),
    "a row of nothing": (GOOD + ",,\n", [*TRUE, ("", "", "")]),
    "a last field of tabs": (GOOD.replace(",", "\t") + "1\t\t\n", [*TRUE, ("1", "", "")]),
    "a line in a name": (GOOD.replace("b", '"b\nc"', 1), TRUE),
    "a return in a name": (GOOD.replace("b", '"b\rc"', 1), TRUE),
    "marks in quotes": with_field('"v,""\r\n,\r""\n"', 'v,"\r\n,\r"\n'),
    "other spaces": with_field(ODD, ODD),
    "a long line": with_field(LONG.replace("\n", "n"), LONG.replace("\n", "n")),
    "a long field of lines": with_field(f'"{LONG}"', LONG),
}


@pytest.mark.parametrize("case", READ)
def test_rows_are_read_as_they_stand(case, tmp_path):
    text, expected = READ[case]
    path = write(tmp_path / "x.csv", text)
    assert rows(path) == expected
    for read in READERS.values():
        read(path)
    assert sum(len(features) for features, _ in stream(path, [Column("a", "number")], rows=3)) == len(expected)


def made_up(rng):
    """Fields of all kinds, most of them right."""
    inside = ["a", ",", "\n", '""', "\r\n", "\r", " "]
    pieces = {
        "plain": lambda: rng.choice(["a", "1", "", "é", " "]),
        "quoted": lambda: f'"{"".join(rng.choices(inside, k=rng.randint(0, 4)))}"',
        "odd": lambda: "".join(rng.choices('a,"\n\r ', k=rng.randint(0, 3))),
    }
    end = rng.choice(["\n", "\r\n"])
    text = ""
    for _ in range(rng.randint(1, 6)):
        kinds = rng.choices(list(pieces), [10, 8, 1], k=rng.choice([3] * 20 + [2, 4]))
        text += ",".join(pieces[kind]() for kind in kinds) + rng.choice([end] * 20 + ["\n\n", "\r", ""])
    return text


def test_made_up_files_are_read_as_pythons_csv_reads_them_or_refused(tmp_path, monkeypatch):
    rng, read, path = random.Random(0), 0, tmp_path / "x.csv"
    for _ in range(200):
        monkeypatch.setattr(fields, "_PIECE", rng.choice([1, 3, 7, 1 << 18]))  # pieces end anywhere
        text = made_up(rng)
        write(path, f"p,q,r\n{text}")
        try:
            found = rows(path)
        except TableError:
            continue
        theirs = [tuple(row) for row in csv.reader(io.StringIO(text, newline=""), strict=True)]
        assert found == theirs[: len(found)], text
        assert not "".join(map("".join, theirs[len(found) :])).strip(), text
        read += 1
    assert read > 50


def test_a_row_that_is_refused_is_one_that_pythons_csv_finds_fault_with(tmp_path):
    rng, path, refused = random.Random(1), tmp_path / "x.csv", 0
    for _ in range(200):
        text = "".join(rng.choices(["a", ",", ",", '"', "\n", "\n"], k=rng.randint(3, 12))).strip()
        write(path, f"p,q\n{text}\n")
        try:
            faulty = any(len(row) != 2 for row in csv.reader(io.StringIO(text), strict=True))
        except csv.Error:
            faulty = True
        faulty |= bool(re.search(r'(^|[,\n])[^",\n]+"', re.sub(r'(?<![^,\n])"([^"]|"")*"', "q", text)))
        if faulty or not text:
            with pytest.raises(TableError):
                rows(path)
            refused += 1
        else:
            rows(path)
    assert 50 < refused < 200
