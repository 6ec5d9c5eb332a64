"""Tiny data sets in the true formats of their sources, and stand-ins for those sources."""

import io
import os
import tarfile
from dataclasses import replace

from typer.testing import CliRunner

from fbeta import data, datasets
from fbeta.cli import app
from made_up_set import described


def install(monkeypatch, module, content):
    """Stand a tiny set in for a real one: same code, other checksums."""
    tiny = replace(module.DATASET, files=described(content))
    monkeypatch.setitem(datasets._SETS, tiny.name, tiny)
    return content


def on_disk(folder):
    return {p.name: p.read_bytes() for p in folder.iterdir() if not p.name.startswith(".")}


def script(monkeypatch, tmp_path, name, body):
    """A program of that name, first on the path."""
    file = tmp_path / "bin" / name
    file.parent.mkdir(exist_ok=True)
    file.write_text(f"#!/bin/sh\n{body}\n")
    file.chmod(0o755)
    monkeypatch.setenv("PATH", f"{file.parent}{os.pathsep}{os.environ['PATH']}")


def no_programs(monkeypatch, tmp_path):
    (tmp_path / "empty").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))


def write_cache(name, content):
    folder = data.root() / name
    folder.mkdir(parents=True)
    for file, bytes_ in content.items():
        (folder / file).write_bytes(bytes_)
    return folder


def tar(content):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz", compresslevel=1) as archive:
        for name, c in content.items():
            info = tarfile.TarInfo(name)
            info.size = len(c)
            archive.addfile(info, io.BytesIO(c))
    return out.getvalue()


def cli(*arguments):
    result = CliRunner().invoke(app, ["data", *arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result
