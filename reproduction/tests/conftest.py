import pytest
import torch

from tiny_images import tiny_cifar, tiny_fashion

# Two workers on two cores: threads of their own would only fight.
torch.set_num_threads(1)


@pytest.fixture
def fashion(monkeypatch, tmp_path):
    return tiny_fashion(monkeypatch, tmp_path)


@pytest.fixture
def cifar(monkeypatch):
    return tiny_cifar(monkeypatch)
