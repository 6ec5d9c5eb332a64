"""Bad tables: each is refused in one sentence that says what is wrong and what to do."""

import contextlib
import errno
import gzip
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import zipfile
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from fbeta.cli import app
from fbeta.data import load_table
from fbeta.tables import Column, Encoder, TableError, claims, formats, read_frame, read_table, split, stream
from fbeta.tables.table import digest

GOOD = "a,b,y\n1,x,0\n2,y,1\n3,x,0\n"


def parquet(tmp_path, frame=None):
    path = tmp_path / "good.parquet"
    (pl.DataFrame({"a": range(1000), "y": [0, 1] * 500}) if frame is None else frame).write_parquet(path)
    return path.read_bytes()


def arrow(tmp_path):
    path = tmp_path / "good.arrow"
    pl.DataFrame({"a": range(1000), "y": [0, 1] * 500}).write_ipc(path)
    return path.read_bytes()


def npz(tmp_path, **arrays):
    np.savez(tmp_path / "good.npz", **arrays)
    return (tmp_path / "good.npz").read_bytes()


BAD_FILES = {
    "empty": ("x.csv", b"", "x.csv is empty"),
    "blank": ("x.csv", b" \n\n", "x.csv is empty"),
    "only commas": ("x.csv", b",,\n,,\n", "all fields are blank"),
    "empty gzip": ("x.csv.gz", gzip.compress(b""), "x.csv.gz is empty"),
    "binary": ("x.csv", bytes(range(256)) * 9, "is a binary file"),
    "picture": ("x.csv", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "is a binary file"),
    "excel": ("x.xlsx", b"PK\x03\x04abc", "Excel workbook or a zip archive: save its sheet as CSV"),
    "excel as csv": ("x.csv", b"PK\x03\x04abc", "Excel workbook"),
    "pdf": ("x.csv", b"%PDF-1.7 ...", "a PDF"),
    "xz": ("x.csv.xz", b"\xfd7zXZ\0\0", "compressed by xz"),
    "one column": ("x.csv", b"a b y\n1 2 0\n", "has one column only ('a b y'): separate its fields by comma"),
    "header only": ("x.csv", b"a,b,y\n", "has a header ('a', 'b', 'y') but no rows"),
    "header only gzip": ("x.csv.gz", gzip.compress(b"a,b,y\n"), "but no rows"),
    "no header": ("x.csv", b"1.5,2,0\n2,3,1\n", "begins with numbers ('1.5', '2', '0'): give it a first line"),
    "truncated gzip": ("x.csv.gz", gzip.compress(GOOD.encode() * 999)[:-30], "truncated or damaged gzip: copy"),
    "damaged gzip": ("x.csv.gz", b"\x1f\x8b\x08" + b"x" * 99, "truncated or damaged gzip"),
    "no parquet": ("x.parquet", GOOD.encode(), "is no parquet file, whatever its name says"),
    "old feather": ("x.feather", b"FEA1abcdefgh", "Feather of version 1"),
    "no npz": ("x.npz", b"PK\x03\x04abc", "truncated or damaged NPZ"),
}


@pytest.mark.parametrize("case", BAD_FILES)
def test_bad_files(tmp_path, case):
    name, content, words = BAD_FILES[case]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(TableError, match=re.escape(words)) as error:
        read_table(tmp_path / name, "y")
    assert "\n" not in str(error.value)
    assert str(tmp_path / name) in str(error.value)


@pytest.mark.parametrize("cut", [-1, -9, -40, 60, 10])
@pytest.mark.parametrize("make", [parquet, arrow])
def test_truncated_binary_files(tmp_path, make, cut):
    path = tmp_path / f"cut.{make.__name__}"
    path.write_bytes(make(tmp_path)[:cut])
    with pytest.raises(TableError, match=r"truncated or damaged (Parquet|Arrow) \(.*\): copy or export it again"):
        read_table(path, "y")


def test_a_parquet_file_that_is_damaged_inside(tmp_path):
    content = bytearray(parquet(tmp_path))
    content[8:400] = b"\xff" * 392
    (tmp_path / "x.parquet").write_bytes(content)
    with pytest.raises(TableError, match="damaged"):
        read_table(tmp_path / "x.parquet", "y")


#: Reads a small file of a format again and again, with one number in it changed: polars ends the process for some.
CHANGED = """
import sys
from pathlib import Path
import polars as pl
from fbeta.tables import TableError, read_table
path, kind, size = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
frame = pl.DataFrame({"x": [1.5, 2.5, 3.5] * 4, "y": ["yes, and more than twelve letters", "no"] * 6})
how = {} if kind == "write_ipc_stream" else {"compression": "uncompressed" if kind == "write_parquet" else "zstd"}
getattr(frame, kind)(path, **how)
whole, refused = path.read_bytes(), 0
number, step = (b"\x6d", 1) if kind == "write_parquet" else ((1 << 50).to_bytes(8, "little"), 8)
for at in range(4 if step == 1 else 8, min(size, len(whole)) - step, step):
    path.write_bytes(whole[:at] + number + whole[at + step :])
    try:
        read_table(path, "y")
    except TableError:
        refused += 1
print(refused)
"""


@pytest.mark.parametrize("size", [80, pytest.param(10_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", ["write_parquet", "write_ipc", "write_ipc_stream"])
def test_no_number_in_a_file_ends_the_process(kind, size, tmp_path):
    size = size if kind == "write_parquet" else 10 * size
    words = [sys.executable, "-c", CHANGED, str(tmp_path / "x"), kind, str(size)]
    done = subprocess.run(
        words, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    )
    assert done.returncode == 0, done.stderr[:300]
    assert int(done.stdout) > 9


def test_sizes_that_files_claim():
    """Files of all kinds that polars writes are as large as they say; see above for those that are not."""
    frame = pl.DataFrame({"x": [1.5, None] * 900, "y": ["yes", "no"] * 900, "z": [[1], []] * 900})
    frame = frame.with_columns(c=pl.col("y").cast(pl.Categorical), s=pl.struct("x", "y"), n=pl.lit(None))
    for write in (pl.DataFrame.write_ipc, pl.DataFrame.write_ipc_stream, pl.DataFrame.write_parquet):
        for compression in ("uncompressed", "lz4", "zstd"):
            write(frame, stream := io.BytesIO(), compression=compression)
            held = stream.getvalue()
            check = claims.checked_parquet if held.startswith(b"PAR1") else claims.checked_arrow
            with tempfile.NamedTemporaryFile() as file:
                Path(file.name).write_bytes(held)
                assert check(Path(file.name)) == Path(file.name)
    with pytest.raises(ValueError, match="larger than it can be"):
        claims.checked_parquet(Path(__file__))


def test_a_file_that_changes_while_it_is_read(tmp_path):
    path = tmp_path / "x.csv"
    lines = "".join(f"{i},x,{i % 2}\n" for i in range(300_000))
    path.write_text("a,b,y\n" + lines)
    pieces = stream(path, [Column("a", "number")], rows=1000)
    next(pieces)
    path.write_text("a,b,y\n" + lines[:3000])
    with pytest.raises(TableError, match="was changed while it was read"):
        list(pieces)


def test_a_field_of_any_length_is_one_sentence(tmp_path):
    (tmp_path / "x.csv").write_text(f"a,y\n1,0\n{'x' * 10**6},1\n")
    with pytest.raises(TableError, match="the model learnt numbers") as error:
        list(stream(tmp_path / "x.csv", [Column("a", "number")]))
    assert len(str(error.value)) < 2000


def test_more_folds_than_rows(tmp_path):
    (tmp_path / "x.csv").write_text(GOOD)
    with pytest.raises(TableError, match="too few for 1,000,000,000 folds"):
        split(read_table(tmp_path / "x.csv", "y"), 10**9)


def test_a_parquet_file_without_rows(tmp_path):
    parquet(tmp_path, pl.DataFrame({"a": [], "y": []}))
    with pytest.raises(TableError, match="has 2 columns but no rows"):
        read_table(tmp_path / "good.parquet", "y")


def test_bad_npz(tmp_path):
    good = {"X": np.zeros((3, 2)), "y": np.array([0, 1, 0])}
    for change, words in (
        ({"X": None}, "must hold numbers X"),
        ({"X": np.zeros((2, 2))}, "must hold numbers X"),
        ({"X": np.zeros(3)}, "must hold numbers X"),
        ({"X": np.full((3, 2), "a")}, "must hold numbers X"),
        ({"y": np.array([0, "a", None], object)}, "Python objects, which can run code"),
        ({"X": np.zeros((0, 2)), "y": np.zeros(0)}, "has 2 columns but no rows"),
        ({"features": np.array(["a"])}, "names its 2 columns by 1 features"),
        ({"features": np.array(["a", "y"])}, "names its 2 columns"),
        ({"features": np.array([["a", "b"], ["c", "d"]])}, "names its 2 columns by 4 features"),
        ({"features": np.array("ab")}, "names its 2 columns by 1 features"),
        ({"X": np.zeros((3, 2), np.longdouble)}, "must hold numbers X"),
        ({"y": np.zeros(3, "M8[s]")}, "must hold numbers X"),
        ({"y": np.zeros(3, complex)}, "must hold numbers X"),
    ):
        npz(tmp_path, **{k: v for k, v in (good | change).items() if v is not None})
        with pytest.raises(TableError, match=words):
            read_table(tmp_path / "good.npz", "y")


@pytest.mark.parametrize(
    ("array", "shape"),
    [("X", x) for x in [(3, 2), (6, 1), (6, 3), (6, 10**13), (2**62, 2**62), (-6, -2), (-1, 2), (6.0, 2), (True, 12)]]
    + [("y", (3,)), ("y", (10**13,)), ("features", (10**13,)), ("features", None)],
)
def test_an_npz_file_that_lies(array, shape, tmp_path):
    """A shape that is not that of the content, or letters that are none."""
    arrays = {"X": np.arange(12.0).reshape(6, 2), "y": np.arange(6) % 2, "features": np.array(["a", "b"])}
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        for name, held in arrays.items():
            header = {"descr": held.dtype.str, "fortran_order": False, "shape": held.shape}
            content = held.tobytes()
            if name == array and shape is None:
                content = np.array([0x7FFFFFFF, 0xD800], "<u4").tobytes()
            elif name == array:
                header["shape"] = shape
            np.lib.format.write_array_header_1_0(out := io.BytesIO(), header)
            archive.writestr(f"{name}.npy", out.getvalue() + content)
    with pytest.raises(TableError, match="x.npz is truncated or damaged NPZ: copy or save it again.$"):
        read_table(tmp_path / "x.npz", "y")


def npy(kind, shape, content=b"", header=None):
    """An array's file, whatever is true of it."""
    text = header or str({"descr": kind, "fortran_order": False, "shape": shape})
    return np.lib.format.magic(1, 0) + len(text).to_bytes(2, "little") + text.encode() + content


@pytest.mark.parametrize(
    "members",
    [
        *([("X", npy("<f8", (10**12, 0))), ("y", npy(kind, (10**12,)))] for kind in ("|S0", "<U0", "|V0")),
        [("X", npy("<f8", (2, 1), bytes(16))), ("y", npy("|S0", (2,)))],
        [("X", npy("", (), header="(" * 9000)), ("y", npy("|i1", (2,), b"ab"))],
        [("X", npy("", (), header="-" * 9000 + "1")), ("y", npy("|i1", (2,), b"ab"))],
        [("X", npy("<f8", (2, 1), bytes(16))), ("y", npy("|i1", (2,), b"ab")), ("y", npy("|i1", (2,), b"ba"))],
    ],
)
@pytest.mark.filterwarnings("ignore:Duplicate name")  # of the writer
def test_an_npz_file_of_a_stranger(members, tmp_path):
    """Rows without a byte, headers of brackets alone, one name twice: none ends the process, none is guessed at."""
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        for name, content in members:
            archive.writestr(f"{name}.npy", content)
    with pytest.raises(TableError, match="x.npz is truncated or damaged NPZ: copy or save it again.$"):
        read_table(tmp_path / "x.npz", "y")


def test_no_such_file(tmp_path):
    (tmp_path / "fraud.csv").write_text(GOOD)
    with pytest.raises(TableError, match=r"there is no file .*fruad.csv: check its name. Did you mean 'fraud.csv'\?"):
        read_table(tmp_path / "fruad.csv", "y")
    with pytest.raises(TableError, match="there is no file"):
        read_table(tmp_path / "nowhere" / "x.csv", "y")
    with pytest.raises(TableError, match="is a folder"):
        read_table(tmp_path, "y")


def test_links_and_pipes_and_devices(tmp_path):
    (tmp_path / "loop.csv").symlink_to("loop.csv")
    (tmp_path / "nowhere.csv").symlink_to("none.csv")
    for name in ("loop.csv", "nowhere.csv"):
        with pytest.raises(TableError, match=f"{name} is a link that leads to no file: check its name.$"):
            read_table(tmp_path / name, "y")
    with pytest.raises(TableError, match="/dev/zero is neither a file nor a pipe: give one."):
        read_table("/dev/zero", "y")


@pytest.mark.parametrize(
    "pack", [str.encode, lambda text: gzip.compress(text.encode()), lambda text: text.encode("utf-16")]
)
def test_a_pipe_is_read_as_a_file_is(pack, tmp_path, monkeypatch):
    (tmp_path / "x.csv").write_text(GOOD)
    expected = read_table(tmp_path / "x.csv", "y")
    os.mkfifo(pipe := tmp_path / "pipe")
    writer = threading.Thread(target=pipe.write_bytes, args=[pack(GOOD)])
    writer.start()
    found = load_table(str(pipe), "y")
    writer.join()
    assert (digest(found), found.name) == (digest(expected), "pipe")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(pack(GOOD))))
    found = load_table("-", "y")
    assert (digest(found), found.name) == (digest(expected), "the standard input")
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(TableError, match="the standard input is closed: give a file."):
        load_table("-", "y")


def test_what_cannot_be_read_is_not_called_unwritable(tmp_path, monkeypatch):
    def refuse(*arguments, **options):
        raise PermissionError(errno.EACCES, "Permission denied", "x.csv")

    (tmp_path / "x.csv").write_text(GOOD)
    with monkeypatch.context() as patch:
        patch.setattr(os, "listdir", refuse)  # of the folder, to find a name like it
        with pytest.raises(TableError, match="there is no file .*y.csv: check its name"):
            read_table(tmp_path / "y.csv", "y")
    with monkeypatch.context() as patch:
        patch.setattr(pl, "scan_csv", refuse)
        result = CliRunner().invoke(app, ["fit", str(tmp_path / "x.csv"), "--target", "y"])
        assert (result.exit_code, "write" in result.stderr) == (2, False)
        assert f"cannot read {tmp_path / 'x.csv'}: Permission denied." in result.stderr
    for name in ("x" * 300, "x" * 300 + ".csv", "~nobody-has-this-name/x.csv"):
        for call in (load_table, read_table):
            with pytest.raises(ValueError, match="cannot read|there is no file|Unknown data set"):
                call(name, "y")
        result = CliRunner().invoke(app, ["compare", name, "--target", "y"])
        assert (result.exit_code, "write" in result.stderr) == (2, False)


def test_no_room_to_unpack(tmp_path, monkeypatch):
    monkeypatch.setattr(formats, "nameless", lambda folder: contextlib.nullcontext("/dev/full"))
    (tmp_path / "x.csv.gz").write_bytes(gzip.compress(GOOD.encode()))
    with pytest.raises(TableError, match="no room for .* set TMPDIR to another folder"):
        read_table(tmp_path / "x.csv.gz", "y")


def test_a_delimiter_that_is_wrong(tmp_path):
    (tmp_path / "x.csv").write_text(GOOD)
    with pytest.raises(TableError, match="one column only .*: leave the delimiter out"):
        read_table(tmp_path / "x.csv", "y", delimiter=";")
    with pytest.raises(TableError, match="a delimiter is one ASCII character"):
        read_table(tmp_path / "x.csv", "y", delimiter="ab")


def table(**columns):
    return pl.DataFrame(columns)


@pytest.mark.parametrize(
    ("frame", "options", "words"),
    [
        (table(a=[1, 2], is_fraud=[0, 1]), {"target": "is_fruad"}, "'is_fruad'. Did you mean 'is_fraud'?"),
        (table(a=[1, 2], Class=[0, 1]), {"target": "class"}, "Did you mean 'Class'?"),
        (table(a=[1, 2], y=[0, 1]), {"target": "zzz"}, "no target column 'zzz'. It has 'a', 'y'."),
        (table(a=[1, 2], y=[0, 1]), {"group": "user"}, "no group column 'user'"),
        (table(a=[1, 2], y=[0, 1]), {"time": "b"}, "no time column 'b'"),
        (table(a=[1, 2], y=[0, 1]), {"drop": ["b"]}, "no dropped column 'b'"),
        (table(a=[1, 2], y=[0, 1]), {"group": "y"}, "must differ"),
        (table(a=[1, 2], y=[0, 1]), {"group": "a", "drop": ["a"]}, "must differ"),
        (table(a=[1, 2], y=[1, 1]), {}, "the target 'y' is '1' in all 2 rows: learning needs both classes"),
        (table(a=[1, 2], y=[None, "?"]), {}, "the target 'y' has no values"),
        (table(a=[1, 2, 3], y=["u", "v", "w"]), {}, "('u', 'v', 'w'): say which is positive, such as --positive w"),
        (table(a=range(99), y=range(99)), {}, "choose a column of two classes, or say which value is positive"),
        (table(a=[1, 2], y=["no", "yes"]), {"positive": "yess"}, "never 'yess' but 'no', 'yes': choose"),
        (table(a=[1, 2], y=["no", "yes"]), {"positive": 5}, "never 5 but 'no', 'yes': choose"),
        (table(a=[1, 1], b=[None, None], y=[0, 1]), {}, "no column to learn from: a column without any value: 'b'"),
        (table(y=[0, 1]), {}, "has no column to learn from: add features."),
        (table(a=[1, 2], t=["early", "late"], y=[0, 1]), {"time": "t"}, "'t' is neither a date nor a number ('early')"),
        (table(a=[1, 2, 4], t=[1, None, 2], y=[0, 1, 0]), {"time": "t"}, "'t' is missing in 1 of 3 rows"),
    ],
)  # fmt: skip
def test_bad_columns(frame, options, words):
    with pytest.raises(TableError, match=re.escape(words)) as error:
        read_frame(frame, **{"target": "y"} | options)
    assert "\n" not in str(error.value)


# New rows for a model

LEARNT = [Column("age", "number"), Column("on", "boolean"), Column("day", "date", "%Y-%m-%d"), Column("c", "category")]
ROW = {"age": "1", "on": "yes", "day": "2024-01-01", "c": "u"}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"age": None}, "lacks the column 'age' that the model learnt from: add it."),
        ({"age": None, "AGE ": "1"}, "Is it 'AGE'?"),
        ({"age": None, "on": None}, "lacks the columns 'age', 'on'"),
        ({"age": "old"}, "column 'age' is 'old' in row 3, but the model learnt numbers from it: correct it"),
        ({"on": "2"}, "column 'on' is '2' in row 3, but the model learnt true or false"),
        ({"day": "1.1.2024"}, "column 'day' is '1.1.2024' in row 3, but the model learnt dates"),
    ],
)
def test_bad_new_rows(tmp_path, change, words):
    bad = {k: v for k, v in (ROW | change).items() if v is not None}
    good = [str(ROW.get(name, "1")) for name in bad]
    lines = [",".join(line) for line in (list(bad), good, good, list(bad.values()), good)]
    (tmp_path / "new.csv").write_text("\n".join(lines) + "\n")
    with pytest.raises(TableError, match=re.escape(words)):
        list(stream(tmp_path / "new.csv", LEARNT, rows=2))


def test_new_rows_of_another_type(tmp_path):
    good = pl.DataFrame({"age": [1], "on": [True], "day": ["2024-01-01"], "c": ["u"]})
    for name, value in (("age", [[1]]), ("on", [1.5]), ("day", [7]), ("c", [[1]])):
        good.with_columns(pl.Series(name, value)).write_parquet(tmp_path / "x.parquet")
        with pytest.raises(TableError, match=f"column '{name}' is of type .*, but the model learnt"):
            list(stream(tmp_path / "x.parquet", LEARNT))


def test_a_text_that_training_took_for_missing_is_missing_again(tmp_path):
    (tmp_path / "x.csv").write_text("a,b\noak,1\n3,1\n")
    ((features, _),) = stream(tmp_path / "x.csv", [Column("a", "number", missing=("oak",))])
    assert features["a"].to_list() == [None, 3]


def test_encoder_refuses_what_it_has_not_learnt():
    frame = pl.DataFrame({"c": ["u", "v"], "x": [1.0, 2.0]})
    encoder = Encoder.fit(frame, [Column("c", "category"), Column("x", "number")])
    new = pl.DataFrame({"c": ["w", "u"], "x": [1.0, 2.0]})
    assert encoder.transform(new)[:, :2].tolist() == [[0, 0], [1, 0]]
    with pytest.raises(TableError, match="column 'c' has new categories \\('w'\\)"):
        encoder.transform(new, new="error")
    with pytest.raises(TableError, match="column 'x' that the model learnt from is missing"):
        encoder.transform(new.drop("x"))
    with pytest.raises(TableError, match="column 'x' is of type String, but the model learnt a number"):
        encoder.transform(new.with_columns(pl.col("x").cast(pl.String)))
    with pytest.raises(TableError, match="no column varies"):
        Encoder.fit(frame[:1], encoder.schema)
    with pytest.raises(TableError, match="no rows"):
        Encoder.fit(frame[:0], encoder.schema)


@pytest.mark.parametrize(
    "damage",
    [
        lambda d: d.pop("parts"),
        lambda d: d["schema"][0].pop("kind"),
        lambda d: d["schema"][0].update(kind="oracle"),
        lambda d: d["parts"][1].update(deviation=0),
        lambda d: d["parts"][1].update(deviation="x"),
        lambda d: d["parts"][1].update(part="__class__"),
        lambda d: d["parts"][0].update(name="z"),
        lambda d: d.update(parts=3),
    ],
)
def test_a_damaged_encoder_is_refused(damage):
    frame = pl.DataFrame({"c": ["u", "v"], "x": [1.0, 2.0]})
    encoder = Encoder.fit(frame, [Column("c", "category"), Column("x", "number")])
    data = json.loads(json.dumps(encoder.to_dict()))
    assert Encoder.from_dict(data) == encoder
    damage(data)
    with pytest.raises(TableError, match="fit the model again"):
        Encoder.from_dict(data)


def test_splits_that_cannot_be():
    few = read_frame(table(a=range(0, 40, 2), y=[1, 1, 1] + [0] * 17), "y")
    with pytest.raises(TableError, match="into 5 folds: no positives .*a class has only 3 rows or groups"):
        split(few, 5)
    with pytest.raises(TableError, match="at least 2 folds"):
        split(few, 1)
    late = read_frame(table(a=range(0, 40, 2), t=range(20), y=[0] * 17 + [1, 1, 1]), "y", time="t")
    with pytest.raises(
        TableError, match="no positives among the test rows of fold 1. Ask for fewer windows, or split without the time"
    ):
        split(late, 4)
