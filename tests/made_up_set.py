"""A data set of two files that nobody else has, with two sources: a server's .gz files, and a folder."""

import gzip
import hashlib
import random
from pathlib import Path

from fbeta import datasets
from fbeta.datasets.archives import pieces
from fbeta.datasets.dataset import Dataset, File
from fbeta.datasets.download import DataError

NAME = "made-up"
CONTENT = {name: random.Random(name).randbytes(size) for name, size in (("a.bin", 60_000), ("b.bin", 700))}


def gunzip(file, name):
    with gzip.open(file) as stream:
        yield from pieces(stream, name)


def described(content):
    return {name: File(len(c), hashlib.sha256(c).hexdigest()) for name, c in content.items()}


class MadeUp:
    """The set, known by its name for one test; `folder` and `server` are what its sources take files from."""

    def __init__(self, monkeypatch, server, folder: Path):
        self.server, self.folder, self.monkeypatch = server, folder, monkeypatch
        server.files |= {f"{name}.gz": gzip.compress(c, 1, mtime=7) for name, c in CONTENT.items()}
        self.install(CONTENT)

    def install(self, content):
        dataset = Dataset(
            name=NAME,
            about="bytes",
            train=0,
            test=0,
            shape=(1,),
            classes=("0", "1"),
            files=described(content),
            sources={"upstream": self.upstream, "folder": self.copied},
            read=lambda folder: {name: (folder / name).read_bytes() for name in content},
            offline=f"go online and run `fbeta data fetch {NAME}` again",
        )
        self.monkeypatch.setitem(datasets._SETS, NAME, dataset)

    def upstream(self, job):
        for name in job.wanted:
            with job.download(f"{self.server.url}{name}.gz") as file:
                job.put(name, gunzip(file, name))

    def copied(self, job):
        if not self.folder.is_dir():
            raise DataError("the folder is not there")
        for name in job.wanted:
            if (self.folder / name).is_file():
                job.put(name, [(self.folder / name).read_bytes()])

    def fill(self, *names):
        self.folder.mkdir()
        for name in names or CONTENT:
            (self.folder / name).write_bytes(CONTENT[name])
