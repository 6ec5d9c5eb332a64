"""Gradients along training: the network taken out of the engine, cosines that are known, gaps that are Jensen's."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from fbeta.cli import app
from fbeta_reproduction import protocol
from fbeta_reproduction.images import binary_images
from fbeta_reproduction.images.binary_images import BinaryImages
from fbeta_reproduction.protocol import BETAS, Run
from fbeta_reproduction.results.gradients import read_gradients
from fbeta_reproduction.runner import gradient_paths
from fbeta_reproduction.runner.run_stack import RunStack, turned
from test_runner import small

COUNTS = (90, 10)


@pytest.fixture(autouse=True)
def _few_images(monkeypatch):
    monkeypatch.setattr(binary_images, "load_images", small)


def test_a_run_taken_out_of_the_engine_says_the_same():
    images = BinaryImages.load("digits")
    work = RunStack([Run("digits", "bce"), Run("digits", "soft", 1.0, repeat=1)], images, torch.device("cpu"))
    work.stack.train_epoch()
    margins = work.stack.margins()
    for i in range(2):
        model = gradient_paths.network(work.stack, i)
        with torch.no_grad():
            logits = model(gradient_paths.pixels(work.stack, i, images.images))
        torch.testing.assert_close(logits[:, 1] - logits[:, 0], margins[i], rtol=1e-3, atol=1e-3)


def test_cosines_are_those_of_the_formulas():
    """A linear model in NumPy: gradients by hand."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(200, 5)), (np.arange(200) % 10 == 0).astype(float)
    w = torch.tensor(rng.normal(size=5), requires_grad=True)
    found = gradient_paths.cosines(torch.tensor(x) @ w, torch.tensor(y), [w], "digits", COUNTS)
    f = 1 / (1 + np.exp(-x @ w.detach().numpy()))
    means = [((f * (1 - f))[y == label, None] * x[y == label]).mean(0) for label in (0, 1)]
    u, t = (f[y == label].mean() for label in (0, 1))

    def cosine(a, b):
        return a @ b / np.sqrt(a @ a * (b @ b))

    for place, beta in enumerate(BETAS):
        soft = -means[1] / t + means[0] / (beta**2 / 9 + u)  # of −log F̃
        a = beta**2 / 9
        surrogate = -((1 - f)[y == 1, None] * x[y == 1]).mean(0)
        surrogate += ((f * (1 - f) / (a + f))[y == 0, None] * x[y == 0]).mean(0)
        assert found[f"soft-b{beta:g}"][place] == pytest.approx(1, abs=1e-5)
        assert found[f"surrogate-b{beta:g}"][place] == pytest.approx(cosine(surrogate, soft), abs=2e-5)
        assert found["balanced-mae"][place] == pytest.approx(cosine(means[0] - means[1], soft), abs=2e-5)


def test_jensens_gaps_lead_from_the_approximation_to_the_loss():
    z, y = torch.tensor([3.0, -1.0, 0.5, -4.0, 2.0]), torch.tensor([1.0, 1.0, 0.0, 0.0, 0.0])
    found = gradient_paths.jensen(z, y, COUNTS)
    f = torch.sigmoid(z.double())
    one, zero = f[y == 1], f[y == 0]
    for beta, alarmed in zip(BETAS, found["alarmed"], strict=True):
        a = beta**2 / 9
        loss = (a + zero).log().mean() - one.log().mean()
        bound = (a + zero.mean()).log() - one.mean().log()
        assert found["missed"] - alarmed == pytest.approx((loss - bound).item(), abs=2e-5)
        assert alarmed > 0
    bce = -one.log().mean() - (1 - zero).log().mean() + one.mean().log() + (1 - zero).mean().log()
    assert found["missed"] + found["alarmed_bce"] == pytest.approx(bce.item(), abs=2e-5)


def test_from_the_command_to_a_file(tmp_path, monkeypatch):
    faithful = list(protocol.faithful("digits", 2, 3))
    wanted = {"surrogate-b1", "soft-b1"}
    monkeypatch.setattr(
        protocol.presets,
        "PRESETS",
        protocol.PRESETS | {"faithful": lambda *_, **__: (r for r in faithful if r.label in wanted)},
    )
    arguments = ["paper", "gradients", "--dataset", "digits", "--results", str(tmp_path), "--device", "cpu", "--json"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    (found,) = read_gradients(tmp_path)
    assert json.loads(result.stdout)["written"] == str(tmp_path / "gradients" / "digits.json")
    assert (found.dataset, found.repeats, found.measured) == ("digits", 2, [1, 2])
    assert found.cosines("soft-b1", 1.0) == pytest.approx([1.0] * 4)
    assert len(found.cosines("surrogate-b1", 2.0, along="soft-b1")) == 4


def test_turned_labels_are_trained_on_and_true_ones_tested_on():
    images = BinaryImages.load("digits")
    run = Run("digits", "bce", noise=0.4)
    wrong = turned(run, images.trained)
    assert wrong.max() < images.trained
    assert abs(len(wrong) / images.trained - 0.4) < 0.1
    work = RunStack([run, replace(run, noise=0.0)], images, torch.device("cpu"))
    differs = np.flatnonzero((work.stack.target[0] != work.stack.target[1]).numpy())
    assert differs.tolist() == wrong.tolist()
    assert np.array_equal(work.stack.target[1].numpy(), images.target)
    header = work.header(run)
    train = work.rows(run)["train"]
    assert header["counts"]["train"] == [len(train), int(work.target(run)[train].sum())]
    assert header["counts"]["test"][1] == images.target[images.trained :].sum()
