"""Made-up tables of every format through `predict`, `tune`, `fit`, `compare`: one sentence, or each row as it stands.

Where a text file is predicted, the ids that come out are those that Python's own reader of CSV finds in it.
"""

import csv
import gzip
import io
from datetime import date, datetime, timedelta
from decimal import Decimal

import numpy as np
import polars as pl

from attack.commands import PATIENCE, aside, run  # noqa: F401
from attack.mutants import CELLS, of_bytes, of_table

ROWS = 30
#: Delimited texts: the delimiter, how it is encoded, whether it is packed.
TEXTS = [(d, e, z) for d in ",;\t|" for e, z in (("utf-8", False), ("utf-8-sig", False), ("latin-1", False))]
TEXTS += [(",", "utf-16", False), ("\t", "utf-8", True), (",", "utf-8", True)]
SMALL = ("--models", "linear", "--losses", "bce", "--folds", "2")
ODD = [
    lambda n: pl.Series([[i] for i in range(n)]),
    lambda n: pl.Series([{"a": i} for i in range(n)]),
    lambda n: pl.Series([Decimal(i) / 7 for i in range(n)]),
    lambda n: pl.Series([bytes([i % 256]) for i in range(n)]),
    lambda n: pl.Series([timedelta(i) for i in range(n)]),
    lambda n: pl.Series([date(1, 1, 1) + timedelta(i) for i in range(n)]),
    lambda n: pl.Series([datetime(9999, 1, 1 + i % 28) for i in range(n)]),
    lambda n: pl.Series([datetime(1970, 1, 1).time()] * n),
    lambda n: pl.Series([None] * n),
    lambda n: pl.Series([None] * n, dtype=pl.Float32),
    lambda n: pl.Series([str(i % 3) for i in range(n)], dtype=pl.Categorical),
    lambda n: pl.Series([2**63 + i for i in range(n)], dtype=pl.UInt64),
    lambda n: pl.Series([2**100 + i for i in range(n)], dtype=pl.Int128),
    lambda n: pl.Series([float("nan"), float("inf"), -1e308] * n)[:n],
    lambda n: pl.Series([True, False, None] * n)[:n],
    lambda n: pl.Series(CELLS * n)[:n],
    lambda n: pl.Series([i % 2 for i in range(n)], dtype=pl.Int8),
    lambda n: pl.Series([[[1.0]] * (i % 3) for i in range(n)]),
]
WRITERS = {
    "parquet": pl.DataFrame.write_parquet,
    "arrow": pl.DataFrame.write_ipc,
    "stream": pl.DataFrame.write_ipc_stream,
}


def table():
    """The rows that all tables are made of: those that models of `made_up_model` take, an id, and a score."""
    from made_up_model import frame

    rows = frame(ROWS)
    return rows.with_columns(
        id=pl.Series([f"r{i}" for i in range(ROWS)]), score=pl.Series(np.linspace(0, 1, ROWS).round(3))
    )


def prepare():
    """A model, and the rows as text."""
    from made_up_model import content

    return {"model": content("linear", "bce"), "text": table().write_csv()}


def attempt(made, luck, folder):
    """One table, one command."""
    form = luck.choice(["text"] * 4 + [*WRITERS] + ["npz"])
    name, ids = write(form, made["text"], luck, folder)
    (folder / "m.fbeta").write_bytes(made["model"])
    what = luck.choice(["tune", "tune", "fit", "compare"] + ["predict"] * 3 * (form != "npz"))
    truth = luck.choice(["y" if form == "npz" else "fraud"] * 9 + ["id", "x0", "score"])
    words = {
        "predict": ("predict", "m.fbeta", name, "-o", "p.csv", "--keep", "id"),
        "tune": ("tune", name, "--target", truth, "--score", "x0", "--kind", "score"),
        "fit": ("fit", name, "--target", truth, *SMALL, "-o", "f.fbeta"),
        "compare": (
            "compare",
            name,
            "--target",
            truth,
            *SMALL,
            "--seeds",
            "2",
            "--results",
            "kept",
            "--html",
            "c.html",
        ),
    }[what]
    stdin = "/dev/null"
    if luck.random() < 0.1 and form == "text":
        words, stdin = tuple("-" if word == name else word for word in words), name
    ended = run(*words, folder=folder, stdin=stdin)
    verdict = ended.judged()
    if what == "predict":
        check_rows(folder, verdict, ids)
    elif what == "compare" and verdict == "done":
        assert b"<script>alert(1)" not in (folder / "c.html").read_bytes()
    assert b"\x1b" not in ended.out
    return f"{form}, {what}: {verdict}"


def check_rows(folder, verdict, ids):
    """All rows were predicted, in their order, or none: `ids` are those of the file, None where it is not known."""
    out = folder / "p.csv"
    assert out.exists() == (verdict == "done")
    if verdict == "done" and ids is not None:
        found = [row["id"] for row in csv.DictReader(io.StringIO(out.read_bytes().decode(), newline=""))]
        assert found == ids, f"{len(found)} rows {found[:9]}… where there are {len(ids)} {ids[:9]}…"


def write(form, text, luck, folder):
    """A file of that format: its name, and the ids of its rows where an independent reader knows them."""
    if form == "text":
        return write_text(text, luck, folder)
    if form == "npz":
        return write_npz(luck, folder), None
    return aside(lambda: write_frame(form, text, luck, folder))


def write_frame(form, text, luck, folder):
    frame = strange(pl.read_csv(io.StringIO(text)), luck)
    path = folder / f"t.{luck.choice(['parquet', 'arrow', 'feather', 'csv', 'x'])}"
    try:
        WRITERS[form](frame, path)
    except BaseException:  # polars may panic: what it cannot write nobody reads
        pl.DataFrame({"id": []}).write_parquet(path)
    if luck.random() < 0.7:
        path.write_bytes(of_bytes(path.read_bytes(), luck))
        return path.name, None
    ids = frame["id"].to_list() if "id" in frame.columns and frame["id"].dtype == pl.String else None
    return path.name, None if ids is None else ["" if x is None else x for x in ids]


def strange(frame, luck):
    """The same with odd columns, odd names, or no rows."""
    for _ in range(luck.choice([0, 1, 2])):
        name = luck.choice([*frame.columns, *CELLS])
        frame = frame.with_columns(luck.choice(ODD)(frame.height).alias(name))
    if luck.random() < 0.2:
        old, new = luck.choice(frame.columns), luck.choice(CELLS)
        frame = frame if new in frame.columns else frame.rename({old: new})
    return frame.head(luck.choice([frame.height] * 8 + [0, 1]))


def write_text(text, luck, folder):
    delimiter, encoding, packed = luck.choice(TEXTS)
    text = text.replace(",", delimiter)
    if luck.random() < 0.9:
        text = of_table(text, delimiter, luck)
    data = text.encode(encoding, "replace")
    if luck.random() < 0.2:
        data = of_bytes(data, luck)
    path = folder / f"t.{luck.choice(['csv', 'tsv', 'txt'])}{'.gz' if packed else ''}"
    path.write_bytes(gzip.compress(data, 1) if packed else data)
    return path.name, ids_of(data, delimiter)


def ids_of(data, delimiter):
    """The ids of a text, read by Python; None where it cannot be sure."""
    for encoding in ("utf-16",) if data[:2] in (b"\xff\xfe", b"\xfe\xff") else ("utf-8-sig", "latin-1"):
        try:
            text = data.decode(encoding)
            break
        except UnicodeDecodeError:
            continue
    else:
        return None
    if "\n" not in text:
        text = text.replace("\r", "\n")
    try:
        rows = list(csv.reader(io.StringIO(text, newline="\n"), delimiter=delimiter, strict=True))
    except csv.Error:
        return None
    rows = [row for row in rows if any(map(str.strip, row))]
    header = [name.strip() for name in rows[0]] if rows else []
    if header.count("id") != 1 or any(len(row) != len(header) for row in rows):
        return None
    return [row[header.index("id")] for row in rows[1:]]


def write_npz(luck, folder):
    """Arrays of odd types and shapes, or plain ones with bytes changed."""
    rng = np.random.default_rng(luck.randrange(2**32))
    arrays = {"X": rng.normal(size=(ROWS, 3)), "y": rng.integers(0, 2, ROWS), "features": np.array(["x0", "x1", "x2"])}
    if luck.random() < 0.6:
        name = luck.choice([*arrays])
        kind = luck.choice(
            ["f2", "f4", "f8", "f16", "i1", "u8", "b", "c16", "M8[D]", "m8[s]", "U3", "S3", ">f8", ">i4", "V4"]
        )
        shape = luck.choice([(), (0,), (ROWS,), (ROWS, 0), (ROWS, 3), (3, ROWS), (ROWS, 3, 1), (1,) * 9])
        arrays[name] = np.zeros(shape, kind) if luck.random() < 0.5 else rng.integers(0, 3, shape).astype(kind)
    if luck.random() < 0.2:
        arrays["features"] = np.array([luck.choice(CELLS) for _ in range(3)])
    path = folder / "t.npz"
    (np.savez if luck.random() < 0.7 else np.savez_compressed)(path, **arrays)
    if luck.random() < 0.5:
        path.write_bytes(of_bytes(path.read_bytes(), luck))
    return path.name
