"""Data sets that lie inside scikit-learn, so that there is nothing to fetch."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from fbeta.datasets.dataset import Content, DataError, Dataset, DownloadProgress


@dataclass(frozen=True, kw_only=True)
class Bundled(Dataset[Content]):
    """A data set in one file of scikit-learn's."""

    file: str
    origins = ("scikit-learn",)

    @property
    def size(self) -> int:  # noqa: D102
        return self.path().stat().st_size if self.here() else 0

    def here(self) -> bool:  # noqa: D102
        return self._file() is not None

    def path(self) -> Path:  # noqa: D102
        if (file := self._file()) is None:
            raise DataError(f"{self.name} lies inside scikit-learn, which is not installed: pip install 'fbeta[data]'.")
        return file

    def fetch(self, source: str = "auto", progress: DownloadProgress | None = None) -> Path:  # noqa: D102
        self.check_source(source)
        return self.path()

    def _file(self) -> Path | None:
        spec = find_spec("sklearn")  # finds it without the second that its import takes
        if spec is None or not spec.submodule_search_locations:
            return None
        file = Path(spec.submodule_search_locations[0], "datasets", "data", self.file)
        return file if file.is_file() else None


def verify(name: str, content: bytes, sha256: str) -> None:
    """Refuse content of another scikit-learn: the same name must mean the same rows everywhere."""
    if hashlib.sha256(content).hexdigest() != sha256:
        raise DataError(f"{name} of this scikit-learn is not that of 1.9.1: pip install scikit-learn==1.9.1.")
