"""compare, fit, predict and tune at the command line: what they say, and every bad input in one sentence."""

import gzip
import io
import json
import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner

from fbeta.artifact import load
from fbeta.artifact.model_file import ABOUT, seal
from fbeta.cli import app, main, parameters
from fbeta.comparison.result import Comparison
from fbeta.comparison.run import compare, fit
from fbeta.data import load_table
from fbeta.report.console import plain, show

pl = pytest.importorskip("polars")
pytest.importorskip("safetensors")
FBETA = str(Path(sys.executable).parent / "fbeta")
FEW = ["--models", "linear", "--losses", "bce", "--folds", "2"]


def frame(n=200, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.random(n) < 0.25
    x = rng.normal(size=(n, 2)) + 1.5 * y[:, None]
    shops = rng.choice(["a", "b", "c"], n)
    return pl.DataFrame({"x0": x[:, 0], "x1": x[:, 1], "shop": shops, "fraud": np.where(y, "yes", "no")})


def call(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def done(*words):
    result = call(*words)
    assert result.exit_code == 0, result.output
    return result


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """A folder with a table, a model of it, and scores."""
    folder = tmp_path_factory.mktemp("shop")
    frame().write_csv(folder / "shops.csv")
    done("fit", folder / "shops.csv", "--target", "fraud", *FEW, "-o", folder / "model.fbeta")
    done(*("predict", folder / "model.fbeta", folder / "shops.csv", "--keep", "fraud"), *("-o", folder / "scores.csv"))
    return folder


def test_ctrl_c_is_answered_from_the_first_line_on(monkeypatch, capsys):
    def stopped():
        raise KeyboardInterrupt

    monkeypatch.setattr("fbeta.cli.prepare", stopped)
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 130
    assert "stopped; nothing was written" in capsys.readouterr().err


def test_fit_promises_and_leaves_rows_to_a_person(shop, tmp_path):
    out, asked = tmp_path / "m.fbeta", ["--subject-to", "recall=0.5", "--confidence", "0.9", "--abstain", "0.1"]
    said = done("fit", shop / "shops.csv", "--target", "fraud", *FEW, "-o", out, *asked).stdout
    assert "Promise: with 90 % confidence recall ≥ 0.5" in said
    assert "A person decides from" in said
    told = done("predict", out, shop / "shops.csv", "-o", tmp_path / "p.csv").stdout
    assert "rows are for a person: their decision is 'ask'" in told


def test_fit_says_what_it_did_and_does_not_oversell(shop, tmp_path):
    out = tmp_path / "m.fbeta"
    asked = ["fit", shop / "shops.csv", "--target", "fraud", "--metric", "fbeta:beta=2", *FEW, "-o", out]
    said = done(*asked).stdout
    assert "positive is fraud 'yes', the rarer value" in said
    assert "Trained linear, bce, on all 200 rows of shops.csv." in said
    assert ": F₂ 0." in said
    assert "95 % interval" in said
    assert "a little optimistic" in said
    assert f"fbeta predict {out}" in said
    facts = json.loads(done(*asked, "--json").stdout)
    model = load(out)
    assert facts["cut"]["value"] == model.cut.value
    assert facts["written"] == str(out)
    assert len(facts["provenance"]["sha256"]) == 64
    assert facts["columns"] == ["x0", "x1", "shop"]


def test_compare_then_fit_what_is_advised(shop, tmp_path):
    asked = ["compare", shop / "shops.csv", "--target", "fraud", "--metric", "fbeta:beta=2", *FEW]
    asked += ["--drop", "x1", "--splits", "5", "--results", tmp_path / "parts", "--json"]
    asked += ["--fit", tmp_path / "one.fbeta"]
    result = done(*asked)
    found = Comparison.from_json(result.stdout)
    assert load(tmp_path / "one.fbeta").name == found.advised
    assert "Written" in result.stderr
    (tmp_path / "found.json").write_text(result.stdout)
    again = ["fit", shop / "shops.csv", "--from", tmp_path / "found.json", "-o", tmp_path / "two.fbeta"]
    said = done(*again).stdout
    assert found.recommendation.split(":")[0][:20] in said
    one, two = load(tmp_path / "one.fbeta"), load(tmp_path / "two.fbeta")
    assert (one.cut, one.metric) == (two.cut, two.metric)
    assert [c.name for c in two.columns] == ["x0", "shop"]  # what was dropped stays so
    frame(150).write_csv(tmp_path / "fewer.csv")
    other = done("fit", tmp_path / "fewer.csv", *again[2:]).stdout
    assert "the comparison saw 200 rows" in " ".join(other.split())


def test_fit_leaves_out_what_a_comparison_in_python_left_out(tmp_path):
    rng = np.random.default_rng(1)
    leak = (frame()["fraud"] == "yes").cast(pl.Float64).alias("leak")
    who = pl.Series("who", rng.integers(0, 90, 200) * 1.5)
    frame().with_columns(leak, who).write_csv(tmp_path / "t.csv")
    few = {"models": ["linear"], "losses": ["bce"], "seeds": 2, "folds": 2}
    found = compare(tmp_path / "t.csv", "fraud", group="who", drop=["leak"], **few)
    (tmp_path / "found.json").write_text(found.to_json())
    asked = ["fit", tmp_path / "t.csv", "--from", tmp_path / "found.json", "-o", tmp_path / "m.fbeta"]
    done(*asked)
    assert [c.name for c in load(tmp_path / "m.fbeta").columns] == ["x0", "x1", "shop"]
    done(*asked, "--drop", "shop")  # beside what was dropped already
    assert [c.name for c in load(tmp_path / "m.fbeta").columns] == ["x0", "x1"]
    assert [c.name for c in fit(tmp_path / "t.csv", comparison=found).columns] == ["x0", "x1", "shop"]
    with pytest.raises(ValueError, match="did not learn from 'leak', 'who': leave it out of this table"):
        fit(load_table(tmp_path / "t.csv", "fraud"), comparison=found)


def test_predict_to_every_place(shop, tmp_path):
    asked = ["predict", shop / "model.fbeta", shop / "shops.csv"]
    shown = done(*asked)
    assert shown.stdout.splitlines()[0] == "probability,decision"
    assert len(shown.stdout.splitlines()) == 201
    assert "200 rows" in shown.stderr
    said = done(*asked, "-o", tmp_path / "out.parquet", "--score", "--keep", "shop").stdout
    assert "true positives" in said
    assert "200 called fraud 'yes'" in done(*asked, "-o", tmp_path / "all.csv", "--cut", "0").stdout
    assert pl.read_parquet(tmp_path / "out.parquet").columns == ["shop", "probability", "decision"]
    facts = json.loads(done(*asked, "-o", tmp_path / "out.csv", "--score", "--json").stdout)
    assert facts["rows"] == sum(facts["counts"]) == 200
    assert facts["positives"] == sum(facts["counts"][:2])
    refused = call(*asked, "--json")
    assert refused.exit_code == 2
    assert "say with -o where" in refused.stderr


ODD = {
    "time spans": pl.Series([timedelta(1)] * 200),
    "bytes": pl.Series([b"\xff"] * 200),
    "lists": pl.Series([[1]] * 200),
    "structures": pl.Series([{"a": 1}] * 200),
}


@pytest.mark.parametrize("kind", ODD)
def test_columns_of_odd_types_are_a_sentence_wherever_they_are_used(kind, shop, tmp_path):
    rows, out = pl.read_csv(shop / "shops.csv"), tmp_path / "out.csv"
    for name, words in (("shop", "the model learnt categories"), ("fraud", "leave --score out"), ("odd", "no text")):
        rows.with_columns(ODD[kind].alias(name)).write_parquet(tmp_path / "x.parquet")
        asked = ["predict", shop / "model.fbeta", tmp_path / "x.parquet", "-o", out, "--score"]
        one_sentence(call(*asked, *(["--keep", "odd"] if name == "odd" else [])), words)
        assert not out.exists()
    asked[4] = tmp_path / "out.parquet"
    done(*asked, "--keep", "odd")
    assert pl.read_parquet(asked[4])["odd"].to_list() == ODD[kind].to_list()


def test_a_terminal_without_columns_is_shown_all(monkeypatch):
    shown = done("data", "list").stdout
    monkeypatch.setenv("COLUMNS", "0")
    assert done("data", "list").stdout == shown
    show(plain("whole"), console := Console(file=io.StringIO()))
    assert console.file.getvalue() == "whole\n"


def test_tune_says_the_cut(shop):
    asked = ["tune", shop / "scores.csv", "--target", "fraud", "--score", "probability"]
    said = done(*asked, "--metric", "fbeta:beta=2").stdout
    for words in ("Cut 0.", "95 % interval", "true positives", "At ½ F₂ is"):
        assert words in said
    facts = json.loads(done(*asked, "--json", "--rule", "shrunk", "--budget", "20").stdout)
    assert facts["n_positive"] <= 20
    assert facts["rule"] == "shrunk"
    assert facts["positive"] == "yes"
    least = json.loads(done(*asked, "--json", "--metric", "precision", "--subject-to", "recall=0.9").stdout)
    tp, _, fn, _ = least["counts"]
    assert tp / (tp + fn) >= 0.9
    other = json.loads(done(*asked, "--json", "--prevalence", "0.01").stdout)
    assert other["at_half"] is None
    for wrong, words in (
        (["--subject-to", "recall"], "as recall=0.9; got 'recall'"),
        (["--subject-to", "recall=1.5"], "reaches 1"),
        (["--prevalence", "2"], "prevalence must lie strictly between 0 and 1"),
        (["--rule", "exakt"], "Did you mean 'exact'"),
        (["--metric", "fbta"], "Did you mean 'fbeta'"),
        (["--positive", "maybe"], "never 'maybe'"),
        (["--weight", "w"], "has no weight column 'w'"),
    ):
        refused = call(*asked, *wrong)
        assert refused.exit_code == 2, (wrong, refused.output)
        assert words in refused.stderr


def test_promises_and_rows_for_a_person_at_the_command_line(shop, tmp_path):
    asked = ["tune", shop / "scores.csv", "--target", "fraud", "--score", "probability"]
    promise = ["--subject-to", "recall=0.7", "--confidence", "0.9"]
    assert "Promise: with 90 % confidence recall ≥ 0.7 among rows" in done(*asked, *promise).stdout
    facts = json.loads(done(*asked, *promise, "--abstain", "0.1", "--json").stdout)
    assert facts["promise"] == {"asked": [["recall", 0.7]], "confidence": 0.9, "abstains": True}
    assert 0 < facts["asking"]["rows"] <= 20
    fit_it = ["fit", shop / "shops.csv", "--target", "fraud", *FEW]
    for wrong, words in (
        (["--subject-to", "recall=0.99", "--confidence", "0.95"], "No cut can promise recall ≥ 0.99"),
        (["--subject-to", "f2=0.5", "--confidence", "0.95"], "No exact promise can be made of fbeta:beta=2"),
        (["--subject-to", "recall=0.9", "--confidence", "95"], "between 0 and 1, such as 0.95; got 95.0"),
        (["--confidence", "0.9"], "confidence is that of subject_to"),
        (["--abstain", "2"], "a share of rows from 0, below 1; got 2.0"),
        (["--abstain", "promise"], "give subject_to and confidence, too"),
        (["--abstain", "few"], "or 'promise'; got 'few'"),
    ):
        for command in (asked, [*fit_it, "-o", tmp_path / "none.fbeta"]):
            refused = call(*command, *wrong)
            assert refused.exit_code == 2, (wrong, refused.output)
            assert words in refused.stderr
    assert not (tmp_path / "none.fbeta").exists()
    made = tmp_path / "made.fbeta"
    assert "Promise: with 90 % confidence" in done(*fit_it, *promise, "--abstain", "0.1", "-o", made).stdout
    use = ["predict", made, shop / "shops.csv", "-o", tmp_path / "out.csv", "--score"]
    assert "rows are for a person: their decision is 'ask'" in done(*use).stdout
    facts = json.loads(done(*use, "--json").stdout)
    decision = pl.read_csv(tmp_path / "out.csv")["decision"]
    assert set(decision) == {"yes", "no", "ask"}
    assert (decision == "ask").sum() == facts["asked"] == 200 - sum(facts["counts"])
    assert facts["promise"]["asked"] == [["recall", 0.7]]
    assert set(load(made).decide(frame())) == {"yes", "no", "ask"}


def test_a_comparison_under_a_promise(shop, tmp_path):
    asked = ["compare", shop / "shops.csv", "--target", "fraud", *FEW, "--seeds", "2", "--results", tmp_path / "kept"]
    promise = ["--subject-to", "recall=0.7", "--confidence", "0.9"]
    said = done(*asked, *promise, "--html", tmp_path / "page.html").stdout
    assert "Asked of every cut: recall ≥ 0.7 in the population, with 90 % confidence." in " ".join(said.split())
    assert "Asked of every cut: recall ≥ 0.7" in (tmp_path / "page.html").read_text()
    assert Comparison.from_json(done(*asked, *promise, "--json").stdout).promise.endswith(".")
    helped = done(*asked, "--abstain", "0.1", "--json").stdout
    found = Comparison.from_json(helped)
    assert 0 < found.candidates[0].outcomes[0].asked < 0.3
    assert "A person decides some test rows" in found.promise
    plain = Comparison.from_json(done(*asked, "--json").stdout)
    assert plain.promise == ""
    assert found.candidates[0].score.mean > plain.candidates[0].score.mean
    refused = call(*asked, "--subject-to", "recall=0.99", "--confidence", "0.9")
    assert refused.exit_code == 2
    assert "linear, bce, split 1: No cut can promise recall ≥ 0.99 with 90 % confidence" in refused.stderr
    refused = call(*asked, "--subject-to", "mcc=0.5", "--confidence", "0.9")
    assert "No exact promise can be made of mcc" in refused.stderr


def test_logits_have_no_half(shop, tmp_path):
    scores = pl.read_csv(shop / "scores.csv")
    logit = scores.with_columns(z=(pl.col("probability") / (1 - pl.col("probability"))).log())
    logit.write_csv(tmp_path / "z.csv")
    said = done("tune", tmp_path / "z.csv", "--target", "fraud", "--score", "z").stdout
    assert "At ½" not in said


# The bad inputs. A table is given by its bytes; the target is `fraud` everywhere.

GOOD = frame().write_csv().encode()


def parquet(tmp_path):
    frame().write_parquet(tmp_path / "whole.parquet")
    content = (tmp_path / "whole.parquet").read_bytes()
    (tmp_path / "whole.parquet").unlink()
    return content


def with_column(name, value):
    return frame().with_columns(pl.lit(value).alias(name)).write_csv().encode()


TABLES = {
    "missing": ("x.csv", None, "there is no file"),
    "empty": ("x.csv", b"", "x.csv is empty"),
    "truncated text": ("x.csv", GOOD[: GOOD.rindex(b",") - 3], "ends in the middle of a row"),
    "a field too many": ("x.csv", GOOD.replace(b"\n", b",1\n", 3).replace(b",1\n", b"\n", 2), "line 3 has 5 fields"),
    "a blank line": ("x.csv", GOOD.replace(b"\n", b"\n\n", 3), "line 2 is blank"),
    "truncated gzip": ("x.csv.gz", gzip.compress(GOOD)[:-40], "truncated or damaged gzip"),
    "truncated parquet": ("x.parquet", lambda path: parquet(path)[:-40], "truncated or damaged Parquet"),
    "binary": ("x.csv", bytes(range(256)) * 9, "is a binary file"),
    "picture": ("x.csv", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "is a binary file"),
    "excel": ("x.xlsx", b"PK\x03\x04abc", "Excel workbook or a zip archive: save its sheet as CSV"),
    "wrong delimiter": ("x.csv", GOOD.replace(b",", b" "), "one column only"),
    "wrong encoding": ("x.csv", GOOD.decode().encode("utf-16")[2:], "is a binary file"),
    "header only": ("x.csv", GOOD.splitlines()[0] + b"\n", "but no rows"),
    "header only parquet": ("x.parquet", None, "but no rows"),
    "no target": ("x.csv", GOOD.replace(b"fraud", b"fruad"), "Did you mean 'fruad'?"),
    "one value": ("x.csv", GOOD.replace(b"yes", b"no"), "in all 200 rows: learning needs both classes"),
    "three values": ("x.csv", GOOD + b"1,1,a,maybe\n", "say which is positive, such as --positive maybe"),
    "all missing": ("x.csv", b"a,b,fraud\n" + b",,yes\n,,no\n" * 9, "has no column to learn from"),
    "constant": ("x.csv", b"a,b,fraud\n" + b"1,x,yes\n1,x,no\n" * 9, "has no column to learn from"),
}
# A model does not ask for the target, and tune learns nothing.
ONLY_LEARNING = {"no target", "one value", "three values", "all missing", "constant"}
COMMANDS = ["compare", "fit", "predict", "tune"]
CASES = [
    (command, case)
    for command in COMMANDS
    for case in TABLES
    if not (case in ONLY_LEARNING and command == "predict")
    and not (case in ("all missing", "constant") and command == "tune")
]


def one_sentence(result, words):
    assert result.exit_code == 2, result.output
    lines = [line for line in result.stderr.splitlines() if line.strip()]
    assert [line[:7] for line in lines] == ["fbeta: "], result.stderr
    assert words in lines[0]
    assert "Traceback" not in result.output
    assert result.stdout == ""


def write_case(case, folder):
    name, content, words = TABLES[case]
    path = folder / name
    if case == "header only parquet":
        frame()[:0].write_parquet(path)
    elif content is not None:
        path.write_bytes(content(folder) if callable(content) else content)
    return path, words


def words_of(command, path, shop, out):
    target = ["--target", "fraud"]
    return {
        "compare": ["compare", path, *target, *FEW, "--html", out, "--results", out.parent / "parts", "--json"],
        "fit": ["fit", path, *target, *FEW, "-o", out, "--json"],
        "predict": ["predict", shop / "model.fbeta", path, "-o", out],
        "tune": ["tune", path, *target, "--score", "x0", "--json"],
    }[command]


@pytest.mark.parametrize(("command", "case"), CASES)
def test_bad_tables(command, case, shop, tmp_path):
    path, words = write_case(case, tmp_path)
    (tmp_path / "out").mkdir()
    result = call(*words_of(command, path, shop, tmp_path / "out" / "out.csv"))
    one_sentence(result, words)
    assert not list((tmp_path / "out").iterdir())


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (frame().with_columns(shop=pl.lit("z")).write_csv(), "new categories ('z') that the model has not learnt"),
        (frame().rename({"x1": "x_1"}).write_csv(), "lacks the column 'x1' that the model learnt from: add it."),
        (frame().drop("x0", "x1").write_csv(), "lacks the columns 'x0', 'x1'"),
        (frame().with_columns(x1=pl.lit("many")).write_csv(), "'x1' is 'many' in row 1, but the model learnt numbers"),
    ],
)
def test_new_rows_that_do_not_fit(content, words, shop, tmp_path):
    (tmp_path / "x.csv").write_text(content)
    one_sentence(call("predict", shop / "model.fbeta", tmp_path / "x.csv", "-o", tmp_path / "out.csv"), words)
    assert not (tmp_path / "out.csv").exists()
    if "categories" in words:
        done("predict", shop / "model.fbeta", tmp_path / "x.csv", "-o", tmp_path / "out.csv", "--new", "other")


def test_all_missing_and_constant_columns_beside_good_ones_are_said(shop, tmp_path):
    (tmp_path / "x.csv").write_bytes(with_column("empty", None))
    said = done("fit", tmp_path / "x.csv", "--target", "fraud", *FEW, "-o", tmp_path / "m.fbeta").stdout
    assert "without any value: 'empty' dropped" in said
    (tmp_path / "x.csv").write_bytes(with_column("same", "a"))
    said = done("fit", tmp_path / "x.csv", "--target", "fraud", *FEW, "-o", tmp_path / "m.fbeta").stdout
    assert "with one value only: 'same' dropped" in said
    assert [c.name for c in load(tmp_path / "m.fbeta").columns] == ["x0", "x1", "shop"]


def test_a_model_that_is_none(shop, tmp_path):
    whole = (shop / "model.fbeta").read_bytes()
    for content, words in (
        (None, "there is no file"),
        (b"", "is empty"),
        (GOOD, "is no model of fbeta"),
        (whole[:-7], "is truncated"),
        (whole[:99] + b"\0" + whole[100:], "is damaged"),
        (seal({ABOUT: b'{"format": "fbeta model", "version": 9, "fbeta": "3.1"}'}), "newer fbeta (3.1, format 9"),
    ):
        path = tmp_path / "bad.fbeta"
        if content is not None:
            path.write_bytes(content)
        one_sentence(call("predict", path, shop / "shops.csv", "-o", tmp_path / "out.csv"), words)
        assert not (tmp_path / "out.csv").exists()


def test_a_comparison_that_is_none(shop, tmp_path):
    for content, words in (
        (None, "cannot read"),
        (b"{", "no comparison"),
        (b'{"version": 99}', "upgrade"),
        (b"\xff", "no comparison"),
    ):
        if content is not None:
            (tmp_path / "c.json").write_bytes(content)
        asked = ["fit", shop / "shops.csv", "--from", tmp_path / "c.json", "-o", tmp_path / "m.fbeta"]
        one_sentence(call(*asked), words)
        assert not (tmp_path / "m.fbeta").exists()


def test_an_endless_comparison(shop, tmp_path, monkeypatch):
    monkeypatch.setattr("fbeta.comparison.result.LARGEST", 1 << 20)
    said = call("fit", shop / "shops.csv", "--from", "/dev/zero", "-o", tmp_path / "m.fbeta")
    one_sentence(said, "larger than any comparison")


@pytest.mark.parametrize("command", ["compare", "compare --fit", "fit", "predict"])
def test_an_unwritable_output_is_said_before_any_work(command, shop, tmp_path, monkeypatch):
    def never(*_, **__):
        raise AssertionError("it should have looked first")

    monkeypatch.setattr("fbeta.data.load_table", never)
    (tmp_path / "file").write_text("")
    for out, words in (
        (tmp_path / "no" / "out.csv", "there is no folder"),
        (tmp_path / "file" / "out.csv", "cannot write"),
        (tmp_path, "it is a folder"),
    ):
        asked = words_of(command.split()[0], shop / "shops.csv", shop, out)
        if command == "compare --fit":
            asked[asked.index("--html")] = "--fit"
        if command == "predict" and out == tmp_path:
            words = "cannot write"
        one_sentence(call(*asked), words)


def full(words, stdout=subprocess.PIPE, options=()):
    """A command whose files may have a kilobyte: a disk that fills up on the way."""
    code = f"""
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024))
from fbeta.cli import main
sys.argv = ["fbeta", *{[str(word) for word in words]!r}]
main()
"""
    return subprocess.run([sys.executable, *options, "-c", code], stdout=stdout, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize("command", ["predict", "explain"])
def test_a_full_disk_without_a_buffer(command, shop, tmp_path):
    """`python -u` and PYTHONUNBUFFERED: a write takes what fits, and the rest must not be lost in silence."""
    words = {"predict": ["predict", shop / "model.fbeta", shop / "shops.csv"], "explain": ["explain", "--json"]}
    with open(tmp_path / "out", "w") as out:
        result = full(words[command], out, ["-u"])
    assert (result.returncode, result.stderr.count("\n")) == (2, 1), result.stderr
    assert result.stderr.startswith("fbeta: cannot write the ")
    assert result.stderr.endswith("output: File too large.\n")


def test_closed_streams(shop, tmp_path):
    """What is closed is said; a file that is opened does not get its number, and what libraries print there."""
    asked = f"{FBETA} predict {shop}/model.fbeta"
    for redirected, rc, words in (
        (f"{shop}/shops.csv >&-", 2, "fbeta: the standard output is closed: send it to a file, or to /dev/null.\n"),
        (f"- -o {tmp_path}/out.csv <&-", 2, "fbeta: the standard input is closed: give a file.\n"),
        (f"{shop}/shops.csv -o {tmp_path}/out.csv 2>&- <&-", 0, ""),
    ):
        result = subprocess.run(f"{asked} {redirected}", shell=True, capture_output=True, text=True)
        assert (result.returncode, result.stderr) == (rc, words)
    assert len((tmp_path / "out.csv").read_text().splitlines()) == 201


@pytest.mark.parametrize("ending", ["csv", "parquet", "arrow"])
def test_a_full_disk_while_predicting(ending, shop, tmp_path):
    result = full(["predict", shop / "model.fbeta", shop / "shops.csv", "-o", tmp_path / f"out.{ending}"])
    assert result.returncode == 2, result.stderr
    assert result.stderr.startswith(f"fbeta: cannot write {tmp_path}/out.{ending}: File too large")
    assert result.stderr.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_a_full_disk_while_fitting(shop, tmp_path):
    result = full(["fit", shop / "shops.csv", "--target", "fraud", *FEW, "-o", tmp_path / "m.fbeta", "--json"])
    assert result.returncode == 2, result.stderr
    assert f"fbeta: cannot write {tmp_path}/m.fbeta: File too large." in result.stderr
    assert "Traceback" not in result.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_full_standard_output(shop):
    for words in (
        ["predict", shop / "model.fbeta", shop / "shops.csv"],
        ["tune", shop / "scores.csv", "--target", "fraud", "--score", "probability", "--json"],
        ["data", "list"],
        ["explain", "--json"],
        ["explain"],
        ["--version"],
        ["explain", "--help"],
    ):
        with open("/dev/full", "w") as nowhere:
            result = subprocess.run([FBETA, *map(str, words)], stdout=nowhere, stderr=subprocess.PIPE, text=True)
        assert result.returncode == 2, result.stderr
        assert result.stderr.startswith("fbeta: cannot write")
        assert "No space left on device.\n" in result.stderr
        assert result.stderr.count("\n") == 1
    one_sentence(
        call("predict", shop / "model.fbeta", shop / "shops.csv", "-o", "/dev/full"),
        "cannot write /dev/full: No space left on device.",
    )
    assert Path("/dev/full").is_char_device()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_full_stream_of_errors(shop, tmp_path):
    """What cannot be said is not: the result is whole, and the exit code stands."""
    asked = f"{FBETA} predict {shop}/model.fbeta {shop}/shops.csv"
    for words, rc in (
        (f"{asked} > {tmp_path}/out.csv", 0),
        (f"{asked} > /dev/full", 2),
        (f"{FBETA} predict {shop}/model.fbeta {tmp_path}/no.csv", 2),
        (f"{FBETA} fit {shop}/shops.csv --target fraud {' '.join(FEW)} -o {tmp_path}/m.fbeta --json > /dev/null", 0),
        (f"{FBETA} --nonsense", 2),
    ):
        assert subprocess.run(f"{words} 2> /dev/full", shell=True).returncode == rc, words
    assert len((tmp_path / "out.csv").read_text().splitlines()) == 201
    assert load(tmp_path / "m.fbeta").target == "fraud"


def test_a_reader_that_has_enough(shop):
    for asked, shown in (
        (f"predict {shop}/model.fbeta {shop}/shops.csv | head -1", "probability,decision\n"),
        ("explain | true", ""),
        ("explain --json | true", ""),
        ("--help | true", ""),
    ):
        result = subprocess.run(["bash", "-o", "pipefail", "-c", f"{FBETA} {asked}"], capture_output=True, text=True)
        assert (result.stdout, result.returncode) == (shown, 0), result.stderr
        assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    "asked",
    ["fit {t} --target fraud -o", pytest.param("compare {t} --target fraud --seeds 1 --fit", marks=pytest.mark.slow)],
)
def test_what_was_asked_for_is_written_though_nobody_reads_the_rest(asked, shop, tmp_path):
    words = f"{FBETA} {asked.format(t=shop / 'shops.csv')} {tmp_path}/m.fbeta {' '.join(FEW)} 2>/dev/null | true"
    env = {**os.environ, "FBETA_DATA": str(tmp_path / "cache")}
    assert subprocess.run(["bash", "-o", "pipefail", "-c", words], env=env).returncode == 0
    assert load(tmp_path / "m.fbeta").target == "fraud"


def test_a_reader_that_leaves_in_the_middle(shop, tmp_path):
    many = frame(20_000)  # more than a pipe holds
    many.write_csv(tmp_path / "many.csv")
    words = f"{FBETA} predict {shop}/model.fbeta {tmp_path}/many.csv | head -1"
    result = subprocess.run(["bash", "-o", "pipefail", "-c", words], capture_output=True, text=True)
    assert (result.stdout, result.returncode) == ("probability,decision\n", 0), result.stderr


@pytest.mark.parametrize(
    ("command", "signal"), [("compare", "INT"), pytest.param("fit", "TERM", marks=pytest.mark.slow)]
)
def test_ctrl_c(command, signal, shop, tmp_path):
    asked = [command, shop / "shops.csv", "--target", "fraud"]
    asked += (
        ["--results", tmp_path / "parts", "--seeds", "20", "--jobs", "1"]
        if command == "compare"
        else ["-o", tmp_path / "m.fbeta"]
    )
    code = f"""
import signal, sys
import fbeta.learners.solvers as solvers
whole = solvers.LBFGS.epoch
def epoch(self):
    signal.raise_signal(signal.SIG{signal})  # to this thread, at once
    return whole(self)
solvers.LBFGS.epoch = epoch
from fbeta.cli import main
sys.argv = ["fbeta", *{[str(word) for word in asked]!r}]
main()
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.returncode == 130
    said = (
        "finished parts are kept, run the same command again to go on."
        if command == "compare"
        else "nothing was written."
    )
    assert [line for line in result.stderr.splitlines() if line.strip()] == [f"fbeta: stopped; {said}"]
    assert not (tmp_path / "m.fbeta").exists()


@pytest.mark.skipif(not hasattr(os, "O_TMPFILE"), reason="needs files without a name")
@pytest.mark.parametrize(
    ("ending", "signal", "rc"), [("csv", "KILL", -9), ("parquet", "KILL", -9), ("csv", "HUP", 130)]
)
def test_a_killed_prediction_leaves_nothing(ending, signal, rc, shop, tmp_path):
    """Neither beside the output nor where the input was unpacked."""
    (tmp_path / "unpacked").mkdir()
    (tmp_path / "x.csv.gz").write_bytes(gzip.compress(GOOD))
    (tmp_path / f"out.{ending}").write_text("old")
    before = sorted(tmp_path.rglob("*"))
    asked = ["predict", shop / "model.fbeta", tmp_path / "x.csv.gz", "-o", tmp_path / f"out.{ending}"]
    code = f"""
import os, signal, sys
from fbeta import artifact
whole = artifact.Model.of_features
def twice(self, features, new):
    if hasattr(artifact, "begun"):
        os.kill(os.getpid(), signal.SIG{signal})
    artifact.begun = True
    return whole(self, features, new)
artifact.Model.of_features = twice
from fbeta.tables import streaming
streaming.stream.__kwdefaults__["rows"] = 50
from fbeta.cli import main
sys.argv = ["fbeta", *{[str(word) for word in asked]!r}]
main()
"""
    env = {**os.environ, "TMPDIR": str(tmp_path / "unpacked")}
    assert subprocess.run([sys.executable, "-c", code], env=env, capture_output=True).returncode == rc
    assert sorted(tmp_path.rglob("*")) == before
    assert (tmp_path / f"out.{ending}").read_text() == "old"


def test_what_is_unusual_about_new_rows_is_said(shop, tmp_path):
    (tmp_path / "x.csv").write_bytes(GOOD.replace(b"\n", b"\r"))
    asked = ["predict", shop / "model.fbeta", tmp_path / "x.csv", "-o", tmp_path / "out.csv"]
    note = "x.csv ends its lines by carriage returns alone, and was read so."
    assert done(*asked).stdout.startswith(f"{note}\n200 rows")
    assert json.loads(done(*asked, "--json").stdout)["notes"] == [note]
    shown = done(*asked[:3])
    assert shown.stdout == done("predict", shop / "model.fbeta", shop / "shops.csv").stdout
    assert shown.stderr.startswith(note)


def test_rows_from_the_standard_input(shop):
    asked = ["predict", shop / "model.fbeta"]
    piped = CliRunner().invoke(app, [*map(str, asked), "-"], input=GOOD)
    assert (piped.exit_code, piped.stdout) == (0, done(*asked, shop / "shops.csv").stdout)


def complete(*words):
    env = {
        **os.environ,
        "_FBETA_COMPLETE": "complete_bash",
        "COMP_WORDS": " ".join(["fbeta", *words]),
        "COMP_CWORD": str(len(words)),
    }
    code = (
        "import atexit, sys; from fbeta.cli import main\n"
        "atexit.register(lambda: print('torch' in sys.modules, file=sys.stderr)); sys.argv = ['fbeta']; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    return done.stdout.split(), done.stderr.split()[-1] == "True"


def test_the_shell_completes_names(shop):
    assert complete("compare", "--metric", "fb")[0] == ["fbeta:beta="]
    assert complete("compare", "--metric", "mc")[0] == ["mcc"]
    assert complete("fit", "--losses", "bce,tan")[0] == ["bce,tangent"]
    assert complete("compare", "--models", "l")[0] == ["linear", "lightgbm"]
    assert complete("tune", "--rule", "s")[0] == ["shrunk"]
    assert complete("data", "fetch", "c")[0] == ["cifar10", "creditcard"]
    assert complete("compare", f"{shop}/sh")[0] == [f"{shop}/shops.csv"]
    assert "breast-cancer" in complete("fit", "breast")[0]
    assert not complete("compare", "--losses", "t")[1]  # no torch behind it


def test_what_is_completed_is_what_there_is():
    from fbeta import losses
    from fbeta.decisions import rules
    from fbeta.learners import models

    assert parameters.losses("") == losses.names()
    assert parameters.models("") == models.names()
    assert parameters.rules("") == rules.names()


def test_every_command_speaks_json():
    import typer

    def leaves(command, path=()):
        for name, inner in getattr(command, "commands", {}).items():
            yield from leaves(inner, (*path, name))
        if not hasattr(command, "commands"):
            yield path, command

    found = dict(leaves(typer.main.get_command(app)))
    assert len(found) == 8
    for path, command in found.items():
        assert any("--json" in parameter.opts for parameter in command.params), path
    path = json.loads(done("data", "path", "digits", "--json").stdout)
    assert path == json.loads(done("data", "fetch", "digits", "--json").stdout)
    assert path["name"] == "digits"


def test_brackets_in_the_name_of_an_output(shop, tmp_path):
    out = tmp_path / "out[1].parquet"
    done("predict", shop / "model.fbeta", shop / "shops.csv", "-o", out)
    assert pl.read_parquet(out, glob=False).height == 200


@pytest.mark.parametrize("command", ["compare", "fit", "predict"])
def test_an_input_is_not_written_over(command, shop, tmp_path):
    frame().write_csv(tmp_path / "x.csv")
    before = (tmp_path / "x.csv").read_bytes()
    (tmp_path / "link.csv").symlink_to("x.csv")
    for out in ("x.csv", "link.csv"):
        one_sentence(call(*words_of(command, tmp_path / "x.csv", shop, tmp_path / out)), "would be lost")
        assert (tmp_path / "x.csv").read_bytes() == before


def test_no_output_is_written_over_a_model_a_folder_or_another_output(shop, tmp_path):
    model, out = tmp_path / "model", tmp_path / "out"  # a name without an ending is one of a table, too
    model.write_bytes((shop / "model.fbeta").read_bytes())
    for words in (
        ["predict", model, shop / "shops.csv", "-o", model],
        ["compare", shop / "shops.csv", "--target", "fraud", "--html", out, "--fit", out],
        ["compare", shop / "shops.csv", "--target", "fraud", "--html", out, "--results", out],
        ["explain", "--html", out, "--png", out],
    ):
        one_sentence(call(*words), "would be lost: give another name")
    asked = ["compare", shop / "shops.csv", "--target", "fraud", *FEW, "--results", model, "--json"]
    assert f"fbeta: cannot write {model}: File exists." in call(*asked).stderr
    assert load(model).target == "fraud"


def test_the_standard_streams_are_files_too(shop, tmp_path):
    """Neither a table nor a model is written over, or added to, through a redirection by the shell."""
    table, model = tmp_path / "x.csv", tmp_path / "x.fbeta"
    table.write_bytes(GOOD)
    model.write_bytes(before := (shop / "model.fbeta").read_bytes())
    for asked, words in (
        (f"predict {model} - -o {table} < {table}", f"cannot write {table}: it is given for something else"),
        (f"fit - --target fraud -o {table} < {table}", f"cannot write {table}: it is given for something else"),
        (f"predict {model} {table} >> {table}", f"{table} is where the standard output goes, and would be lost"),
        (f"predict {model} - < {table} >> {table}", "the standard input is where the standard output goes"),
        (f"tune {table} --target fraud --score x0 >> {table}", f"{table} is where the standard output goes"),
        (f"predict {model} {table} >> {model}", f"{model} is where the standard output goes, and would be lost"),
    ):
        result = subprocess.run(f"{FBETA} {asked}", shell=True, capture_output=True, text=True)
        assert (result.returncode, result.stderr.count("\n")) == (2, 1), result.stderr
        assert words in result.stderr
        assert (table.read_bytes(), model.read_bytes()) == (GOOD, before)


@pytest.mark.parametrize("command", ["compare", "fit"])
@pytest.mark.parametrize(
    ("option", "words"),
    [
        (("--metric", "nope"), "Unknown metric 'nope'"),
        (("--models", "lin"), "Did you mean 'linear'"),
        (("--losses", "bcee"), "Did you mean 'bce'"),
        (("--rule", "exakt"), "Did you mean 'exact'"),
        (("--device", "gpu"), "device must be"),
    ],
)
def test_what_is_misspelt_is_said_before_the_table_is_read(command, option, words):
    one_sentence(call(command, "a table that is not there.csv", "--target", "y", *option), words)


@pytest.mark.parametrize("command", ["compare", "fit"])
def test_a_seed_below_zero(command, shop):
    refused = call(command, shop / "shops.csv", "--target", "fraud", "--seed", "-1")
    assert refused.exit_code == 2
    assert "--seed" in refused.stderr


@pytest.mark.slow
def test_no_bar_where_nobody_looks(shop, tmp_path):
    asked = ["fit", shop / "shops.csv", "--target", "fraud", *FEW, "-o", tmp_path / "m.fbeta"]
    result = subprocess.run([FBETA, *map(str, asked)], capture_output=True, text=True, check=True)
    assert "fitting" not in result.stdout + result.stderr
    assert "Trained linear, bce" in result.stdout


def test_fit_from_a_comparison_asks_for_its_table(shop, tmp_path):
    asked = ["compare", shop / "shops.csv", "--target", "fraud", *FEW, "--seeds", "1", "--json"]
    (tmp_path / "found.json").write_text(done(*asked, "--results", tmp_path / "parts").stdout)
    one_sentence(
        call("fit", "--from", tmp_path / "found.json", "-o", tmp_path / "m.fbeta"),
        "is about shops.csv: name that table",
    )


def test_too_few_rows_of_a_class(tmp_path):
    def said(command, positives, *more):
        rows = frame(60).with_columns(fraud=pl.Series(["yes"] * positives + ["no"] * (60 - positives)))
        rows.write_csv(tmp_path / "x.csv")
        return call(command, tmp_path / "x.csv", "--target", "fraud", *FEW[:4], *more).stderr

    few = said("fit", 1, "-o", tmp_path / "m.fbeta")
    assert "only one row, or group of rows, which no folds can share: bring more" in few
    parts = ["--results", tmp_path / "parts"]
    assert "x.csv has a class of only 4 rows or groups of rows: a comparison needs 5" in said("compare", 4, *parts)
    assert "split 1 of x.csv learns from cannot be split into 5 folds" in said("compare", 5, *parts)
    assert not (tmp_path / "parts").exists()
    assert said("compare", 5, "--folds", "4", "--seeds", "1", *parts) == ""


def test_fit_says_without_the_cut_where_a_model_gave_up(tmp_path):
    rng = np.random.default_rng(0)
    noise = {"a": rng.normal(size=300), "b": rng.normal(size=300), "fraud": ["yes"] * 30 + ["no"] * 270}
    pl.DataFrame(noise).write_csv(tmp_path / "x.csv")
    asked = ["fit", tmp_path / "x.csv", "--target", "fraud", *FEW, "-o", tmp_path / "m.fbeta"]
    refused = call(*asked)
    assert (refused.exit_code, "fbeta: no signal: linear, bce has F₁" in refused.stderr) == (2, True)
    compared = done("compare", *asked[1:4], *FEW, "--results", tmp_path / "parts", "--fit", tmp_path / "m.fbeta").stdout
    assert "Nothing was fitted, because there is no signal; --force fits all the same." in compared
    assert not (tmp_path / "m.fbeta").exists()
    said = done(*asked, "--force").stdout
    assert "Without that cut it predicts nothing positive" in said


@pytest.mark.parametrize("command", ["compare", "fit"])
def test_usage_shows_once_that_a_table_may_be_left_out(command):
    assert f"{command} [OPTIONS] [DATA] " in done(command, "--help").stdout
