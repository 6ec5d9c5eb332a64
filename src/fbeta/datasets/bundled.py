"""Data sets that lie inside scikit-learn, so that there is nothing to fetch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from fbeta.datasets.dataset import DataError, Dataset, Kind, Progress


@dataclass(frozen=True, kw_only=True)
class Bundled(Dataset[Kind]):
    """A data set in one file of scikit-learn's."""

    file: str
    read: Callable[..., Kind]

    @property
    def origins(self) -> tuple[str, ...]:  # noqa: D102
        return ("scikit-learn",)

    @property
    def size(self) -> int:  # noqa: D102
        file = self._file()
        return file.stat().st_size if file else 0

    def here(self) -> bool:  # noqa: D102
        return self._file() is not None

    def path(self) -> Path:  # noqa: D102
        file = self._file()
        if file is None:
            raise DataError(
                f"{self.name} lies inside scikit-learn, which is not installed: pip install 'fbeta[data]'."
            )
        return file

    def fetch(self, source: str = "auto", progress: Progress | None = None) -> Path:  # noqa: D102
        self.check_source(source)
        return self.path()

    def load(self, **options: Any) -> Kind:  # noqa: D102
        self.path()
        with self.reading():
            return self.read(**options)

    def _file(self) -> Path | None:
        spec = find_spec("sklearn")  # finds it without the second that its import takes
        if spec is None or not spec.submodule_search_locations:
            return None
        file = Path(spec.submodule_search_locations[0]) / "datasets" / "data" / self.file
        return file if file.is_file() else None
