"""What lies in the cache: verified, healed, never half a file."""

import hashlib
import json
import os
import stat
import sys
import threading
from pathlib import Path

import pytest

from fbeta import data
from fbeta.datasets import cached
from fbeta_reproduction.images import fashion_mnist
from tiny_data import cli, install, on_disk, write_cache
from tiny_images import debian_folder, fashion_upstream

pytestmark = pytest.mark.usefixtures("own_cache")


def test_missing_data_says_how_to_fetch_it(fashion):
    for call in (data.path, data.load):
        with pytest.raises(data.DataError, match="run `fbeta data fetch fashion-mnist`"):
            call("fashion-mnist")
    result = cli("path", "fashion-mnist")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "run `fbeta data fetch fashion-mnist`" in result.stderr
    assert not (data.root()).exists()


@pytest.mark.parametrize("fault", ["changed", "shorter", "gone"])
def test_damaged_data_is_found_and_healed(monkeypatch, server, fashion, fault):
    place, name = write_cache("fashion-mnist", fashion), "t10k-images-idx3-ubyte"
    data.path("fashion-mnist")
    content = fashion[name]
    if fault == "gone":
        (place / name).unlink()
    else:
        (place / name).write_bytes(
            bytes([content[0] ^ 1]) + content[1:] if fault == "changed" else content[:-1]
        )
    assert data.get("fashion-mnist").here() == (fault == "changed")  # a glance sees no more than sizes
    with pytest.raises(
        data.DataError, match=f"{name} .*: run `fbeta data fetch fashion-mnist` to replace it"
    ):
        data.load("fashion-mnist")
    fashion_upstream(monkeypatch, server, fashion)
    assert on_disk(data.fetch("fashion-mnist", "upstream")) == fashion
    assert [path for path, _ in server.seen] == [f"first/{name}.gz"]
    data.load("fashion-mnist")


def test_verified_once_and_again_after_a_change(monkeypatch, fashion):
    place, name = write_cache("fashion-mnist", fashion), "t10k-images-idx3-ubyte"
    read = []
    digest = hashlib.file_digest
    monkeypatch.setattr(
        hashlib, "file_digest", lambda f, kind: read.append(Path(f.name).name) or digest(f, kind)
    )
    data.path("fashion-mnist")
    assert sorted(read) == sorted(fashion)
    data.load("fashion-mnist")
    assert len(read) == 4
    os.utime(place / name, ns=(1, 1))
    data.load("fashion-mnist")
    assert read[4:] == [name]
    for stamp in ("no JSON", "[1]", json.dumps({key: [0, 0, "x"] for key in fashion})):
        (place / ".verified.json").write_text(stamp)
        read.clear()
        data.load("fashion-mnist")
        assert sorted(read) == sorted(fashion)


def test_a_stamp_of_other_checksums_is_not_believed(monkeypatch, fashion):
    place = write_cache("fashion-mnist", fashion)
    data.path("fashion-mnist")
    others = {name: c[:-1] + bytes([c[-1] ^ 1]) for name, c in fashion.items()}
    install(monkeypatch, fashion_mnist, others)
    with pytest.raises(data.DataError, match="SHA-256"):
        data.path("fashion-mnist")
    assert on_disk(place) == fashion


def test_fetch_finds_what_the_stamp_cannot_see(fashion):
    place, name = write_cache("fashion-mnist", fashion), "t10k-images-idx3-ubyte"
    data.path("fashion-mnist")
    before = (place / name).stat()
    (place / name).write_bytes(b"\0" * before.st_size)
    os.utime(place / name, ns=(before.st_atime_ns, before.st_mtime_ns))
    debian_folder(fashion)
    assert on_disk(data.fetch("fashion-mnist")) == fashion


def test_an_interrupt_leaves_no_half_file(monkeypatch, server, fashion):
    fashion_upstream(monkeypatch, server, fashion)
    unpack = fashion_mnist.gunzip

    def interrupted(file, name):
        yield next(unpack(file, name))[:100]
        raise KeyboardInterrupt

    monkeypatch.setattr(fashion_mnist, "gunzip", interrupted)
    with pytest.raises(KeyboardInterrupt):
        data.fetch("fashion-mnist", "upstream")
    place = data.root() / "fashion-mnist"
    assert not on_disk(place).keys() & fashion.keys()
    assert not list(place.glob(".tmp-*"))
    monkeypatch.setattr(fashion_mnist, "gunzip", unpack)
    assert on_disk(data.fetch("fashion-mnist", "upstream")) == fashion
    size = len(server.files["first/train-images-idx3-ubyte.gz"])
    assert server.seen[1] == ("first/train-images-idx3-ubyte.gz", f"bytes={size}-")  # it was complete


def test_a_full_disk_leaves_no_half_file_and_keeps_the_download(monkeypatch, server, fashion):
    fashion_upstream(monkeypatch, server, fashion)
    with monkeypatch.context() as patch:

        def full(*paths):
            raise OSError(28, "No space left on device")

        patch.setattr(os, "replace", full)
        with pytest.raises(data.DataError, match="No space left on device.*set FBETA_DATA to another folder"):
            data.fetch("fashion-mnist", "upstream")
    assert not on_disk(data.root() / "fashion-mnist").keys() & fashion.keys()
    assert on_disk(data.fetch("fashion-mnist", "upstream")) == fashion
    assert server.seen[1][1] is not None  # it was complete


def test_what_a_killed_fetch_left_is_swept(fashion):
    place = data.root() / "fashion-mnist"
    (place / ".tmp-folder").mkdir(parents=True)
    (place / ".tmp-folder" / "train-images-idx3-ubyte").write_bytes(b"half")
    (place / "..verified.json.0123abcd").write_bytes(b"half")
    (place / "train-images-idx3-ubyte.gz-0.part").write_bytes(b"half")
    (place / "train-images-idx3-ubyte.gz-0.tag").write_text("1")
    debian_folder(fashion)
    data.fetch("fashion-mnist")
    assert sorted(p.name for p in place.iterdir()) == sorted([".lock", ".verified.json", *fashion])


@pytest.mark.skipif(cached.fcntl is None, reason="needs locks")
def test_two_fetches_at_once_download_once(monkeypatch, server, fashion):
    fashion_upstream(monkeypatch, server, fashion)
    server.stall.clear()
    said = []
    threads = [
        threading.Thread(target=data.fetch, args=("fashion-mnist", "upstream", lambda *s: said.append(s)))
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for _ in range(500):
        if ("waiting for another fetch", 0, 0) in said:
            break
        threads[0].join(0.01)
    server.stall.set()
    for thread in threads:
        thread.join()
    assert ("waiting for another fetch", 0, 0) in said
    assert len(server.seen) == len(fashion)
    assert on_disk(data.root() / "fashion-mnist") == fashion


@pytest.mark.skipif(os.name != "posix", reason="needs POSIX rights")
def test_a_folder_that_one_may_only_read_is_enough(monkeypatch, fashion):
    place = write_cache("fashion-mnist", fashion)

    def refuse(*arguments, **options):
        raise PermissionError(13, "Permission denied", str(place))

    monkeypatch.setattr(Path, "write_text", refuse)  # root may write everywhere, so rights alone would not do
    monkeypatch.setattr(cached, "_locked", refuse)
    place.chmod(stat.S_IRUSR | stat.S_IXUSR)
    assert data.path("fashion-mnist") == data.fetch("fashion-mnist") == place
    place.chmod(stat.S_IRWXU)


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
