"""Fashion-MNIST: 70,000 grey pictures of clothes, 28x28, from Zalando (Xiao, Rasul and Vollgraf 2017)."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from fbeta.datasets.archives import run
from fbeta.datasets.dataset import Dataset, File, Job
from fbeta.datasets.download import DataError
from fbeta.datasets.images import Images
from fbeta_reproduction.images.archives import gunzip, members

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

PACKAGE = "dataset-fashion-mnist"
FOLDER = Path("/usr/share/datasets/fashion-mnist")
UPSTREAM = (
    "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/",
    "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
)

#: The IDX files, decompressed: Debian's and upstream's .gz differ in their headers only.
FILES = {
    "train-images-idx3-ubyte": File(47_040_016, "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888"),
    "train-labels-idx1-ubyte": File(60_008, "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9"),
    "t10k-images-idx3-ubyte": File(7_840_016, "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b"),
    "t10k-labels-idx1-ubyte": File(10_008, "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34"),
}


def debian(job: Job) -> None:
    """Take the files of Debian's package where it is installed, or out of the package as apt downloads it."""
    if FOLDER.is_dir():
        for name in job.wanted:
            if (FOLDER / f"{name}.gz").is_file():
                job.put(name, gunzip(FOLDER / f"{name}.gz", f"{FOLDER / name}.gz"))
        return
    apt, dpkg = shutil.which("apt-get"), shutil.which("dpkg-deb")
    if apt is None or dpkg is None:
        raise DataError(f"{FOLDER} is not there, and apt is not installed")
    job.tell(f"apt-get download {PACKAGE}", 0, 0)
    paths = {f".{FOLDER.as_posix()}/{name}.gz": name for name in job.wanted}
    with job.scratch() as folder:
        run(apt, "download", PACKAGE, folder=folder)  # needs no rights, and installs nothing
        package = next(folder.glob("*.deb"), None)
        if package is None:
            raise DataError(f"apt-get download {PACKAGE} left no package")
        run(dpkg, "--fsys-tarfile", str(package), folder=folder, output=folder / "package.tar")
        for path, stream in members(folder / "package.tar", paths):
            job.put(paths[path], gunzip(stream, path))


def upstream(job: Job) -> None:
    """Download Zalando's files, each from the first place that has it."""
    for name in job.wanted:
        reasons = []
        for base in UPSTREAM:
            try:
                with job.download(f"{base}{name}.gz") as part:
                    job.put(name, gunzip(part, f"{base}{name}.gz"))
                break
            except DataError as error:
                reasons.append(str(error))
        else:
            raise DataError("; ".join(reasons))


def read(folder: Path) -> Images:
    """Read the four files."""
    import numpy as np

    train, train_labels, test, test_labels = (_idx(folder / name) for name in FILES)
    return Images(
        "fashion-mnist",
        train[..., None],
        train_labels.astype(np.int64),
        test[..., None],
        test_labels.astype(np.int64),
        DATASET.classes,
    )


def _idx(path: Path) -> NDArray[np.uint8]:
    """An IDX file: two zeros, the type 8 (bytes), the number of dimensions, each as four bytes, the content."""
    import numpy as np

    content = np.fromfile(path, dtype=np.uint8)
    dimensions = int(content[3])
    shape = content[4 : 4 + 4 * dimensions].view(">u4").astype(int)
    return content[4 + 4 * dimensions :].reshape(shape)


DATASET = Dataset(
    name="fashion-mnist",
    about="pictures of clothes",
    train=60_000,
    test=10_000,
    shape=(28, 28, 1),
    classes=("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"),
    files=FILES,
    sources={"upstream": upstream, "debian": debian},
    read=read,
    offline=f"go online and run `fbeta data fetch fashion-mnist` again, or `apt install {PACKAGE}`",
)
