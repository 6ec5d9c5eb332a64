"""What lies in the cache: verified, healed, never half a file, from whichever source works."""

import gzip
import os
import shutil
import stat
import sys
import threading
from pathlib import Path

import pytest

from fbeta import data
from fbeta.datasets import dataset
from made_up_set import CONTENT, NAME, MadeUp
from tiny_data import cli, on_disk, write_cache
from waiting import until

pytestmark = pytest.mark.usefixtures("own_cache")
COMMAND = f"run `fbeta data fetch {NAME}`"


@pytest.fixture
def made_up(monkeypatch, server, tmp_path):
    return MadeUp(monkeypatch, server, tmp_path / "folder")


def load():
    return data.get(NAME).load()


def test_missing_data_says_how_to_fetch_it(made_up):
    for call in (lambda: data.path(NAME), load):
        with pytest.raises(data.DataError, match=COMMAND):
            call()
    result = cli("path", NAME)
    assert (result.exit_code, result.stdout) == (2, "")
    assert COMMAND in result.stderr
    assert not (data.root()).exists()


# Sources


@pytest.mark.parametrize("source", ["upstream", "folder"])
def test_the_same_bytes_from_every_source(made_up, source):
    made_up.fill()
    place = data.fetch(NAME, source)
    assert on_disk(place) == load() == CONTENT
    assert data.path(NAME) == place == data.root() / NAME
    assert data.get(NAME).here()
    assert bool(made_up.server.seen) == (source == "upstream")


def test_auto_takes_the_first_source_that_works(made_up):
    made_up.fill()
    assert on_disk(data.fetch(NAME)) == CONTENT
    assert len(made_up.server.seen) == 2
    shutil.rmtree(data.root())
    made_up.server.files.clear()
    assert on_disk(data.fetch(NAME)) == CONTENT


def test_a_source_that_has_only_a_part_is_completed_by_the_next(made_up):
    made_up.fill("a.bin")
    with pytest.raises(data.DataError, match=r"from folder \(not all files were in it\): go online"):
        data.fetch(NAME, "folder")
    assert on_disk(data.root() / NAME) == {"a.bin": CONTENT["a.bin"]}
    assert on_disk(data.fetch(NAME)) == CONTENT
    assert [path for path, _ in made_up.server.seen] == ["b.bin.gz"]
    made_up.server.seen.clear()
    data.fetch(NAME)
    assert made_up.server.seen == []


def test_offline_says_what_to_do(made_up):
    made_up.server.server_close()
    result = cli("fetch", NAME)
    assert (result.exit_code, result.stdout) == (2, "")
    said = " ".join(result.stderr.split())
    assert said.startswith(f"fbeta: cannot fetch {NAME} from upstream (cannot reach 127.0.0.1:")
    assert said.endswith(f"), nor from folder (the folder is not there): go online and {COMMAND} again.")


def test_without_pooch_no_source_is_blamed(monkeypatch, made_up):
    monkeypatch.setitem(sys.modules, "pooch", None)
    result = cli("fetch", NAME)
    assert (result.exit_code, result.stdout) == (2, "")
    assert " ".join(result.stderr.split()) == "fbeta: fetching data needs pooch: pip install 'fbeta[data]'."


@pytest.mark.parametrize("fault", ["other bytes", "longer", "shorter", "cut", "no gzip", "bad sum", "very long"])
def test_wrong_content_is_refused(made_up, fault):
    name = "a.bin"
    content, packed = CONTENT[name], made_up.server.files[f"{name}.gz"]
    made_up.server.files[f"{name}.gz"] = {
        "other bytes": gzip.compress(content[:-1] + bytes([content[-1] ^ 1])),
        "longer": gzip.compress(content + b"\0" * 10_000_000),
        "shorter": gzip.compress(content[:-1]),
        "cut": packed[:-100],
        "no gzip": b"<html>Please sign in</html>",
        "bad sum": packed[:-8] + b"\0" * 8,
        "very long": packed * 4,
    }[fault]
    result = cli("fetch", NAME, "--source", "upstream")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "Traceback" not in result.stderr
    said = result.stderr
    assert name in said
    words = {"cut": "is damaged", "no gzip": "is damaged", "bad sum": "is damaged", "very long": "is larger than"}
    assert words.get(fault, "wrong content") in said
    assert ("more than its" in said) == (fault == "longer")  # it stops there: an archive may unpack to anything
    assert name not in on_disk(data.root() / NAME)
    made_up.server.files[f"{name}.gz"] = packed
    assert on_disk(data.fetch(NAME, "upstream")) == CONTENT


# What is here


@pytest.mark.parametrize("fault", ["changed", "shorter", "gone"])
def test_damaged_data_is_found_and_healed(made_up, fault):
    place, name = write_cache(NAME, CONTENT), "a.bin"
    data.path(NAME)
    content = CONTENT[name]
    if fault == "gone":
        (place / name).unlink()
    else:
        (place / name).write_bytes(bytes([content[0] ^ 1]) + content[1:] if fault == "changed" else content[:-1])
    assert data.get(NAME).here() == (fault == "changed")  # a glance sees no more than sizes
    with pytest.raises(data.DataError, match=f"{name} .*: {COMMAND} to replace it"):
        load()
    assert on_disk(data.fetch(NAME, "upstream")) == CONTENT
    assert [path for path, _ in made_up.server.seen] == [f"{name}.gz"]
    load()


def test_damage_that_keeps_size_and_time_is_found(made_up):
    place, name = write_cache(NAME, CONTENT), "a.bin"
    data.path(NAME)
    before = (place / name).stat()
    (place / name).write_bytes(b"\0" * before.st_size)
    os.utime(place / name, ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(data.DataError, match="has SHA-256"):
        load()
    made_up.fill()
    assert on_disk(data.fetch(NAME)) == CONTENT


def test_other_checksums_refuse_the_files_of_before(made_up):
    place = write_cache(NAME, CONTENT)
    data.path(NAME)
    made_up.install({name: c[:-1] + bytes([c[-1] ^ 1]) for name, c in CONTENT.items()})
    with pytest.raises(data.DataError, match="SHA-256"):
        data.path(NAME)
    assert on_disk(place) == CONTENT


def test_what_cannot_be_read_is_said_so(monkeypatch, made_up):
    write_cache(NAME, CONTENT)

    def refuse(*arguments, **options):
        raise PermissionError(13, "Permission denied", "a.bin")

    with monkeypatch.context() as patch:
        patch.setattr(dataset.hashlib, "file_digest", refuse)
        result = cli("path", NAME)
        assert (result.exit_code, "write" in result.stderr) == (2, False)
        assert f"cannot read {NAME} (a.bin: Permission denied)" in result.stderr
    monkeypatch.setattr(Path, "read_bytes", refuse)
    with pytest.raises(data.DataError, match=f"cannot read {NAME}"):
        load()


# Never half a file


def test_an_interrupt_leaves_no_half_file(monkeypatch, made_up):
    def interrupted(file, name):
        yield CONTENT[name][:100]
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("made_up_set.gunzip", interrupted)
        with pytest.raises(KeyboardInterrupt):
            data.fetch(NAME, "upstream")
    assert list((data.root() / NAME).iterdir()) == []
    assert on_disk(data.fetch(NAME, "upstream")) == CONTENT


def test_a_full_disk_leaves_no_half_file(monkeypatch, made_up):
    with monkeypatch.context() as patch:

        def full(*paths):
            raise OSError(28, "No space left on device")

        patch.setattr(shutil, "move", full)
        with pytest.raises(data.DataError, match="No space left on device.*set FBETA_DATA to another folder"):
            data.fetch(NAME, "upstream")
    assert not on_disk(data.root() / NAME).keys() & CONTENT.keys()
    assert on_disk(data.fetch(NAME, "upstream")) == CONTENT


def test_what_a_killed_fetch_left_is_swept_a_day_later(made_up):
    place = data.root() / NAME
    for name in ("tmpold_____", "tmpnew_____"):  # folders and files that tempfile could have named
        (place / name).mkdir(parents=True)
        (place / name / "a.bin.gz").write_bytes(b"half")
        (place / f"{name[:-1]}2").write_bytes(b"half")
    for path in place.glob("tmpold*"):
        os.utime(path, (0, 0))
    data.fetch(NAME)
    assert sorted(p.name for p in place.iterdir()) == ["a.bin", "b.bin", "tmpnew____2", "tmpnew_____"]


def test_two_fetches_at_once_do_no_harm(made_up):
    made_up.server.flow.clear()
    results = []

    def fetch():
        data.fetch(NAME, "upstream")
        results.append(load())

    threads = [threading.Thread(target=fetch) for _ in range(2)]
    for thread in threads:
        thread.start()
    until(lambda: len(made_up.server.seen) == 2)  # both are in the middle of their first file
    assert len({path for path, _ in made_up.server.seen}) == 1
    made_up.server.flow.set()
    for thread in threads:
        thread.join()
    assert results == [CONTENT] * 2
    assert on_disk(data.root() / NAME) == CONTENT


@pytest.mark.skipif(os.name != "posix", reason="needs POSIX rights")
def test_files_are_for_whom_the_folder_is(made_up):
    before = os.umask(0o022)
    try:
        place = data.fetch(NAME)
    finally:
        os.umask(before)
    assert {stat.S_IMODE(file.stat().st_mode) for file in place.iterdir()} == {0o644}


@pytest.mark.skipif(os.name != "posix", reason="needs POSIX rights")
def test_a_folder_that_one_may_only_read_is_enough(made_up):
    place = write_cache(NAME, CONTENT)
    place.chmod(stat.S_IRUSR | stat.S_IXUSR)
    assert data.path(NAME) == data.fetch(NAME) == place
    assert load() == CONTENT
    place.chmod(stat.S_IRWXU)


def test_a_folder_that_cannot_be_written(monkeypatch, tmp_path, made_up):
    made_up.fill()
    (tmp_path / "file").write_text("x")
    monkeypatch.setenv("FBETA_DATA", str(tmp_path / "file"))
    result = cli("fetch", NAME)
    assert result.exit_code == 2
    assert "set FBETA_DATA to another folder" in result.stderr


def test_the_cache_folder(monkeypatch):
    monkeypatch.setenv("FBETA_DATA", "~/somewhere")
    assert data.root() == Path.home() / "somewhere"
    monkeypatch.setenv("FBETA_DATA", "")
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", "/xdg")
    assert data.root() == Path("/xdg/fbeta")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert data.root() == Path.home() / ".cache" / "fbeta"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert data.root() == Path.home() / "Library" / "Caches" / "fbeta"
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", "/local")
    assert data.root() == Path("/local/fbeta/Cache")
