"""What the tests of the library and of the reproduction share."""

from importlib.util import find_spec
from types import SimpleNamespace

import pytest

from range_server import serve

# Doctests of modules that need Triton are collected only where it is installed.
NEED_TRITON = [
    "src/fbeta/losses/kernels/cuda.py",
    "src/fbeta/losses/kernels/cuda_formula.py",
    "src/fbeta/losses/kernels/cuda_kernels.py",
    "reproduction/src/fbeta_reproduction/engine/kernels/accelerated.py",
    "reproduction/src/fbeta_reproduction/engine/kernels/convolution.py",
]
collect_ignore = [] if find_spec("triton") else NEED_TRITON


@pytest.fixture
def own_cache(monkeypatch, tmp_path):
    """A cache of data sets for one test, which must not meet that of the person who runs it."""
    monkeypatch.setenv("FBETA_DATA", str(tmp_path / "cache"))
    monkeypatch.setattr("pooch.core.time", SimpleNamespace(sleep=lambda seconds: None))  # between two tries


@pytest.fixture
def server():
    """A server of files that breaks off, forgets and lies as it is told."""
    with serve() as server:
        yield server
