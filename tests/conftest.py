from types import SimpleNamespace

import pytest
import torch

from range_server import serve
from tiny_data import tiny_cifar, tiny_fashion

# Two workers on two cores: threads of their own would only fight.
torch.set_num_threads(1)


@pytest.fixture
def own_cache(monkeypatch, tmp_path):
    """A cache of data sets for one test, which must not meet that of the person who runs it."""
    monkeypatch.setenv("FBETA_DATA", str(tmp_path / "cache"))
    monkeypatch.setattr("pooch.core.time", SimpleNamespace(sleep=lambda seconds: None))  # between two tries


@pytest.fixture
def server():
    with serve() as server:
        yield server


@pytest.fixture
def fashion(monkeypatch, tmp_path):
    return tiny_fashion(monkeypatch, tmp_path)


@pytest.fixture
def cifar(monkeypatch):
    return tiny_cifar(monkeypatch)
