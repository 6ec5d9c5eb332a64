"""The networks: torchvision's where that is installed, and its numbers where it is not."""

import numpy as np
import pytest
import torch

from fbeta_reproduction.engine.resnet import ARCHITECTURES, Architecture, ResNet, initial_weights


@pytest.fixture(scope="module")
def torchvision_models():
    try:
        from torchvision import models
    except (ImportError, RuntimeError) as error:  # its compiled part does not load beside every build of torch
        pytest.skip(f"torchvision does not import here ({type(error).__name__})")
    return models


@pytest.mark.parametrize("name", list(ARCHITECTURES))
def test_forward_is_torchvision_s(torchvision_models, name):
    torch.manual_seed(0)
    theirs = getattr(torchvision_models, name)(num_classes=2)
    ours = ResNet(ARCHITECTURES[name])
    assert list(theirs.state_dict()) == list(ours.state_dict())
    ours.load_state_dict(theirs.state_dict())
    x = torch.randn(4, 3, 32, 32)
    torch.testing.assert_close(ours(x), theirs(x))
    for model in (ours, theirs):
        model.eval()
    torch.testing.assert_close(ours(x), theirs(x))


# torchvision's own counts for 1,000 classes are 11,689,512 and 21,797,672; a class has 513 parameters.
@pytest.mark.parametrize(("name", "count"), [("resnet18", 11_689_512), ("resnet34", 21_797_672)])
def test_number_of_parameters(name, count):
    model = ResNet(ARCHITECTURES[name])
    assert sum(p.numel() for p in model.parameters()) == count - 998 * 513


def test_initial_weights_have_torchvision_s_spread():
    model = ResNet(ARCHITECTURES["resnet18"])
    weights = initial_weights(model, np.random.Generator(np.random.Philox(0)))
    assert set(weights) == {name for name, _ in model.named_parameters()}
    conv = weights["layer3.0.conv1.weight"]
    assert conv.std().item() == pytest.approx((2 / (9 * 256)) ** 0.5, rel=0.01)
    assert abs(conv.mean().item()) < 1e-3
    assert weights["fc.weight"].abs().max().item() == pytest.approx(512**-0.5, rel=0.01)
    assert (weights["bn1.weight"] == 1).all()
    assert (weights["bn1.bias"] == 0).all()


def test_the_same_seed_gives_the_same_weights_everywhere():
    """Numbers that NumPy's generator has given since 1.17, written down."""
    weights = initial_weights(ResNet(Architecture((1, 1, 1, 1), width=8)), np.random.Generator(np.random.Philox(7)))
    first = weights["conv1.weight"].flatten()[:3].tolist()
    assert first == pytest.approx([-0.03588383, 0.03620324, 0.14423919], abs=1e-7)


def test_a_stem_has_one_of_two_names():
    with pytest.raises(ValueError, match="imagenet"):
        Architecture((1, 1, 1, 1), stem="small")


def test_small_stem_keeps_the_resolution():
    model = ResNet(Architecture((1, 1, 1, 1), width=8, stem="cifar"))
    assert model.pool(model.conv1(torch.zeros(1, 3, 32, 32))).shape == (1, 8, 32, 32)
