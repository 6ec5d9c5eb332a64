"""The benchmark of the paper's protocol: it runs, its floors are floors, and what is kept is what it would write."""

import importlib.util
import json
import sys
from itertools import accumulate, count
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from fbeta_reproduction.engine.layout import Layout
from fbeta_reproduction.engine.resnet import ARCHITECTURES, Architecture, ResNet

# The measurement that most tests look at is made once.
pytestmark = pytest.mark.xdist_group("benchmark of the engine")
PATH = Path(__file__).resolve().parents[1] / "benchmarks" / "engine.py"


@pytest.fixture(scope="module")
def benchmark():
    spec = importlib.util.spec_from_file_location("benchmark_of_the_engine", PATH)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    # A clock that goes on by itself, a little further at each look: no number depends on how busy the machine is.
    module.time = SimpleNamespace(perf_counter=accumulate(count(1e-3, 1e-3)).__next__)
    yield module
    del sys.modules[spec.name]


@pytest.fixture(scope="module")
def smoke(benchmark):
    return benchmark.measure(benchmark.TINY, benchmark.SMOKE, torch.device("cpu"), "")


def as_if_measured(benchmark, smoke):
    """The numbers of the smoke run under the names of a real one."""
    real = json.loads(json.dumps(smoke)) | {"device": "cuda", "machine": "NVIDIA H200", "matmul_rate": 7e14}
    for found in real["settings"]:
        found["kernels"] = [{"kernel": f"_k{i}", "launches": i, "us": 20.0 - i} for i in range(14)]
    return real


def test_without_a_gpu_it_runs_and_says_that_these_are_no_results(benchmark, smoke):
    text = benchmark.render(smoke)
    assert text.startswith("Tiny networks on a CPU: these are not results.")
    assert "minutes" not in text
    for found in smoke["settings"]:
        assert {row["case"] for row in found["plain"]} == {benchmark.LOADER, "data on the device"}
        assert [(row["runs"], row["precision"]) for row in found["engine"]] == [(1, "fp32"), (2, "bf16")]
        for row in found["engine"]:
            assert 0 < row["train"]["low"] <= row["train"]["s"] <= row["train"]["high"]
            assert row["train"]["s"] < row["whole"]["s"]


def test_a_real_result_has_ratios_floors_kernels_and_minutes(benchmark, smoke):
    real = as_if_measured(benchmark, smoke)
    text = benchmark.render(real)
    found = real["settings"][0]
    live, every, _ = benchmark.floors(real, found, "bf16")
    assert live == pytest.approx(30 * found["live"] * found["steps"] / real["copy_rate"])
    assert every > live
    rates = [benchmark.headline(f)["whole"]["s"] for f in real["settings"]]
    assert benchmark.minutes(real) == pytest.approx(50 * 120 * sum(rates) / 60)
    assert f"{benchmark.minutes(real):.1f} minutes by these rates (limit 45, goal 30)" in text
    assert "`_k11`" in text
    assert "`_k12`" not in text


def test_results_are_written_with_the_claim_on_top(benchmark, smoke, tmp_path, monkeypatch):
    real = as_if_measured(benchmark, smoke)
    source = tmp_path / "engine.py"
    source.write_text(PATH.read_text())
    monkeypatch.setattr(benchmark, "__file__", str(source))
    monkeypatch.setattr(benchmark, "RESULTS", tmp_path / "results")
    benchmark.write(real)
    benchmark.main(["--render"])
    assert json.loads((tmp_path / "results" / "engine.json").read_text()) == real
    assert (tmp_path / "results" / "engine.md").read_text() == benchmark.render(real)
    first, _, rest = source.read_text().partition("\n")
    assert first == f'"""{benchmark.claim(real)}'
    assert len(first) <= 120
    assert rest == PATH.read_text().partition("\n")[2]


def test_what_is_kept_is_what_it_would_write(benchmark):
    first = PATH.read_text().partition("\n")[0]
    kept = benchmark.RESULTS / "engine.json"
    if not kept.exists():
        assert "no results yet" in first
        return
    result = json.loads(kept.read_text())
    assert first == f'"""{benchmark.claim(result)}'
    assert (benchmark.RESULTS / "engine.md").read_text() == benchmark.render(result)


@pytest.mark.parametrize("arguments", [["--device", "cpu", "--write"], ["--quick", "--write"]])
def test_a_smoke_run_is_not_kept(benchmark, arguments, capsys):
    with pytest.raises(SystemExit):
        benchmark.main(arguments)
    assert "only the whole measurement on a GPU" in capsys.readouterr().err


@pytest.mark.parametrize(
    "architecture",
    [ARCHITECTURES["resnet18"], Architecture((1, 2, 1, 1), width=8, stem="cifar")],
    ids=["imagenet", "cifar"],
)
def test_multiply_adds_are_those_that_meet_a_pixel(benchmark, architecture):
    met = {}

    def count(name):
        # Ones times ones: every multiply-add that meets a pixel, and no other, adds one.
        def hook(conv, inputs, output):
            x = torch.ones_like(inputs[0])
            weight = torch.ones_like(conv.weight)
            out = torch.nn.functional.conv2d(x, weight, None, conv.stride, conv.padding)
            met[name] = int(out.double().sum())

        return hook

    model = ResNet(architecture).eval()
    for name, part in model.named_modules():
        if isinstance(part, torch.nn.Conv2d):
            part.register_forward_hook(count(name))
    with torch.no_grad():
        model(torch.zeros(1, 3, 32, 32))
    assert benchmark.multiply_adds(Layout(architecture)) == 3 * sum(met.values()) - met["conv1"]


def test_both_plain_feeds_cut_the_same_pictures(benchmark):
    image = torch.arange(28 * 28).remainder(251).to(torch.uint8).view(1, 1, 28, 28)
    images, target = image.repeat(100, 1, 1, 1), torch.ones(100)
    pictures = benchmark.AugmentedImages(images, target)
    key = {x.numpy().tobytes() for x, _ in (pictures[0] for _ in range(2000))}
    assert len(key) == 50  # 5 × 5 places, flipped or not
    x, y = benchmark.from_device(images, target, torch.device("cpu"))()
    assert x.shape == (100, 3, 32, 32)
    assert y.shape == (100,)
    assert {one.contiguous().numpy().tobytes() for one in x} <= key
