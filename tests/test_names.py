"""Names are data: of columns, classes, categories and files, through every reader and every command."""

import json
import os
import unicodedata

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from fbeta.artifact import load
from fbeta.cli import app, parameters
from fbeta.tables import Encoder, read_table, stream
from fbeta.tables.scored_rows import read_scores

RNG = np.random.default_rng(0)
POSITIVE = RNG.random(60) < 0.4
ROWS = {
    "amount": (RNG.normal(size=60) + 1.5 * POSITIVE).round(4),
    "land": RNG.choice(["u", "v", "w"], 60),
    "other": RNG.normal(size=60).round(4),
    "day": [f"2024-{1 + i // 28:02d}-{1 + i % 28:02d}" for i in range(60)],
    "who": [f"g{i // 2}" for i in range(60)],
    "left": RNG.normal(size=60).round(4),
    "y": np.where(POSITIVE, "yes", "no"),
}
FEATURES, ROLES = ["amount", "land", "other"], {"target": "y", "group": "who", "time": "day"}
# What polars takes for patterns or calls its own columns, what we do, what a terminal, rich or CSV would obey.
NAMES = [
    *(
        "*",
        "^a$",
        "^.*$",
        "n",
        "len",
        "count",
        "literal",
        "index",
        "level",
        "value",
        "values",
        "row",
        "x",
        "y",
        "group",
    ),
    *("\0y", "\0row", "\0group", "time", "\0", "", " ", "rate [/s]", "[red]", "[/]", "{0}", "%s", "$a$", "a,b", 'a"b'),
    *("a\nb", "a\rb", "\t", "\x1b[31mred", "\x9b31m", "\u202eabc", "\u2028", "\u200b", "\x7f", "😀", "x" * 10_000),
]


def written(folder, ending, columns):
    path, frame = folder / f"x.{ending}", pl.DataFrame(columns)
    frame.write_csv(path) if ending == "csv" else frame.write_parquet(path)
    return path


def renamed(role, name):
    """The rows with another name for one column, and what each column is called then."""
    called = {column: name if column == role else column for column in ROWS}
    if name in ROWS and name != role:
        called[name] = "spare"
    return {called[column]: values for column, values in ROWS.items()}, called


@pytest.mark.parametrize(
    ("role", "ending"), [*((role, "parquet") for role in ROWS if role != "other"), ("land", "csv"), ("y", "csv")]
)
def test_a_name_is_nothing_but_a_name(ending, role, tmp_path):
    def read(path, called):
        roles = {what: called[column] for what, column in ROLES.items()}
        table = read_table(path, **roles, drop=[called["left"]])
        ((features, kept),) = stream(path, table.columns, keep=[called[role]])
        scored = read_scores(path, called["y"], called["amount"], weight=called["left"])
        X = Encoder.fit(table.features, table.columns).transform(features)
        names = [called[column] for column in FEATURES]
        assert (table.features.columns, kept.columns) == (names, [called[role]])
        values = [
            kept.to_series().to_list(),
            table.y,
            table.group,
            table.time,
            X,
            scored.score,
            scored.y,
            scored.weight,
        ]
        return [*map(list, table.features.iter_columns()), *map(np.ndarray.tolist, map(np.asarray, values))]

    rows = ROWS | {"left": np.abs(ROWS["left"]) + 1}
    expected = read(written(tmp_path, ending, rows), {column: column for column in ROWS})
    for name in NAMES:
        if ending == "csv" and ("\0" in name or not name.strip()):  # which CSV cannot hold, or calls "column 1"
            continue
        columns, called = renamed(role, name)
        columns[called["left"]] = rows["left"]
        assert read(written(tmp_path, ending, columns), called) == expected, name


def call(*words):
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    for said in (result.stdout, result.stderr):
        assert not {x for x in said if unicodedata.category(x) in ("Cc", "Cf", "Cs", "Zl", "Zp")} - {"\n"}, said
    return result


HOSTILE = ["\x1b[31m\x9b31m\u202e[red]a[/red]\nfbeta: b", "[/]", "^a$", "*", "n" * 10_000]


@pytest.mark.parametrize("name", HOSTILE, ids=lambda name: ascii(name)[:20])
def test_a_name_through_every_command(name, tmp_path):
    """The target, its positive class, a category and the file are called so."""
    columns = ROWS | {"land": np.where(ROWS["land"] == "u", name, ROWS["land"])}
    columns[name] = np.where(columns.pop("y") == "yes", name, "no")
    file = name.replace("/", "|")[:99]
    path = written(tmp_path, "parquet", columns).rename(tmp_path / f"{file}.parquet")
    few = ["--models", "linear", "--losses", "bce", "--folds", "2", "--group=who", "--time=day", "--drop=left"]
    few += ["--force"]  # so few rows have no signal
    model, page = tmp_path / f"m{file}", tmp_path / f"p{file}"
    asked = ["compare", path, f"--target={name}", *few, "--seeds", "1", "--results", tmp_path / "parts"]
    shown = call(*asked, "--html", page, "--fit", model)
    found = call(*asked, "--json")
    assert (shown.exit_code, found.exit_code) == (0, 0), shown.stderr + found.stderr
    assert "[red]a[/red]" in shown.stdout or "[red]" not in name
    assert json.loads(found.stdout)["table"]["target"] == name
    assert not {x for x in page.read_text() if unicodedata.category(x) in ("Cc", "Cf", "Cs")} - {"\n"}
    (tmp_path / "found.json").write_text(found.stdout)
    for words in (["fit", path, f"--target={name}", *few], ["fit", path, "--from", tmp_path / "found.json", "--force"]):
        assert call(*words, "-o", model).exit_code == 0
    assert json.loads(call(*words, "-o", model, "--json").stdout)["target"] == load(model).target == name
    out = tmp_path / f"o{file}"
    asked = ["predict", model, path, "-o", out]
    assert call(*asked, f"--keep={name}", "--score").exit_code == 0
    assert {*pl.read_csv(out, glob=False)["decision"]} <= {name, "no"}
    assert json.loads(call(*asked, "--json").stdout)["written"] == str(out)
    tuned = ["tune", path, f"--target={name}", "--score=amount", "--positive"]
    assert call(*tuned, name).exit_code == 0
    assert json.loads(call(*tuned, name, "--json").stdout)["positive"] == name
    pl.DataFrame(columns | {"land": f"new {name}"}).write_parquet(tmp_path / "new.parquet")
    for words in (
        [*tuned, f"no {name}"],
        ["tune", path, f"--target=no {name}", "--score=amount"],
        ["predict", model, tmp_path / "new.parquet"],
        ["predict", model, tmp_path / f"no {file}"],
        ["predict", model, path, "-o", tmp_path / "no" / file],
    ):
        refused = call(*words)
        assert (refused.exit_code, refused.stderr.count("\n")) == (2, 1), refused.stderr
        assert refused.stderr.startswith("fbeta: ")


@pytest.mark.parametrize("role", ["land", "amount", "day"])
def test_a_feature_through_every_command(role, tmp_path):
    """Columns of texts, numbers and dates, which commands go through one by one."""
    for name in ("^a$", "*", "^.*$", "value", "\x1b[31m"):
        columns, _ = renamed(role, name)
        columns["y"] = columns["y"].tolist()
        path = written(tmp_path, "parquet", columns)
        few = ["--target=y", "--models", "linear", "--losses", "bce", "--folds", "2", "--force"]
        model = tmp_path / "m.fbeta"
        compared = call("compare", path, *few, "--seeds=1", "--results", tmp_path / "parts", "--fit", model)
        assert compared.exit_code == 0, compared.output
        assert name in {column.name for column in load(model).columns}
        assert call("predict", model, path, "-o", tmp_path / "o.csv", "--score").exit_code == 0


def test_a_file_whose_name_is_no_text(tmp_path):
    path = written(tmp_path, "csv", ROWS).rename(tmp_path / os.fsdecode(b"\xff.csv"))
    model, out = tmp_path / os.fsdecode(b"\xff.fbeta"), tmp_path / os.fsdecode(b"\xff.parquet")
    asked = ["--target=y", "--models", "linear", "--losses", "bce", "--folds", "2", "--force"]
    assert call("fit", path, *asked, "-o", model).exit_code == 0
    assert json.loads(call("predict", model, path, "-o", out, "--json").stdout)["written"] == str(out)
    compared = call("compare", path, *asked, "--seeds=1", "--results", tmp_path / "parts", "--html", tmp_path / "page")
    assert "�.csv" in compared.stdout
    assert "�.csv" in (tmp_path / "page").read_text()


def test_columns_with_commas_and_blanks_in_their_names():
    assert parameters.columns(["a, b", "c"]) == ["a", "b", "c"]
    assert parameters.columns(['"a, b",c," d"']) == ["a, b", "c", " d"]
    assert parameters.columns(None) == []
