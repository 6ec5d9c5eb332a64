"""`fbeta paper run` as people use it: from end to end on digits, killed, stopped, shared, and given nonsense."""

import hashlib
import json
import math
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from fbeta import data
from fbeta.cli import app
from fbeta_reproduction import protocol
from fbeta_reproduction.engine.augmentation import Holdout
from fbeta_reproduction.engine.image_stack import ImageStack
from fbeta_reproduction.engine.loop import resume
from fbeta_reproduction.images import binary_images
from fbeta_reproduction.protocol import Run, faithful, plateau
from fbeta_reproduction.records import ledger
from fbeta_reproduction.runner import capacity, execution, run_stack, session
from waiting import until

processes = pytest.mark.xdist_group("paper run")
EPOCHS = 3
LONG = session.LONG


def few(dataset, repeats=1, epochs=EPOCHS):
    """Three of the faithful runs."""
    wanted = {"surrogate-b1", "soft-b1", "balanced-bce"}
    return (run for run in faithful(dataset, repeats, epochs) if run.label in wanted)


def small(name):
    """Every fourth image."""
    whole = data.load(name)
    arrays = ("train", "train_labels", "test", "test_labels")
    return replace(whole, **{part: np.ascontiguousarray(getattr(whole, part)[::4]) for part in arrays})


@pytest.fixture(autouse=True)
def _little_to_do(monkeypatch):
    make_little(monkeypatch)


def make_little(patch):
    patch.setitem(protocol.PRESETS, "few", few)
    patch.setattr(binary_images, "load_images", small)
    patch.setattr(session, "LONG", math.inf)  # a busy machine may need long for the step that is timed


def fbeta(*arguments, code=0):
    result = CliRunner().invoke(app, list(map(str, arguments)))
    assert isinstance(result.exception, SystemExit | None), result.exception
    assert result.exit_code == code, result.output
    return result


def train(results, *arguments, code=0):
    return fbeta("paper", "run", "--dataset", "digits", "--preset", "few", "--results", results, *arguments, code=code)


def refused(*arguments):
    """The sentence on standard error, which must be all that is said."""
    result = fbeta("paper", "run", *arguments, code=2)
    assert result.stdout == ""
    assert result.stderr.startswith("fbeta: ")
    assert result.stderr.count("\n") == 1, result.stderr
    return result.stderr


def content(folder):
    """All results, without what differs from machine to machine and from time to time."""
    found = {}
    for id, record in ledger.records(folder):
        header = {k: v for k, v in record.header.items() if k != "machine"}
        columns = {k: v.tolist() for k, v in record.columns.items() if k != "seconds"}
        found[id] = json.dumps([header, columns])  # NaN equals NaN as text
    return found


def epochs(folder):
    return {id.removeprefix("digits/"): record.epochs for id, record in ledger.records(folder)}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """What an uninterrupted run gives."""
    folder = tmp_path_factory.mktemp("whole") / "results"
    with pytest.MonkeyPatch.context() as patch:
        make_little(patch)
        train(folder)
    found = content(folder)
    assert len(found) == 3
    return found


# From end to end


DIGITS = ["paper", "run", "--dataset", "digits", "--epochs", 3]


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    """The command of the README, with one repeat in place of five."""
    folder = tmp_path_factory.mktemp("digits") / "results"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(session, "LONG", math.inf)
        fbeta(*DIGITS, "--repeats", 1, "--results", folder)
    return folder


@processes
def test_from_nothing_to_scores(digits):
    assert list(epochs(digits).values()) == [3] * 10
    assert not list((digits / ".checkpoints").glob("*"))
    rows = json.loads(fbeta("paper", "status", "--results", digits, "--json").stdout)
    done = {row["label"]: row for row in rows if row["state"] == "done"}
    assert len(done) == 10
    assert done["balanced-bce"]["tuned_f1"] > 0.5  # calling all positive scores 0.18
    assert all(row["seconds"] > 0 for row in done.values())


@processes
def test_nothing_is_touched_where_nothing_is_left_to_do(digits):
    before = {path: path.read_bytes() for path in digits.rglob("*.csv")}
    fbeta(*DIGITS, "--repeats", 1, "--results", digits)
    assert before == {path: path.read_bytes() for path in digits.rglob("*.csv")}


@processes
def test_from_scores_to_figures(digits, tmp_path):
    page, doc = tmp_path / "page.html", tmp_path / "reproduction.md"
    fbeta("paper", "figures", "--results", digits, "--out", tmp_path, "--html", page, "--doc", doc)
    assert page.stat().st_size > 10_000
    assert len(list(tmp_path.glob("*.png"))) >= 7


@pytest.mark.slow
@processes
def test_without_a_gpu_the_whole_pipeline_runs(tmp_path):
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    for arguments in (["run", "--dataset", "digits", "--epochs", "3", "--yes"], ["figures", "--out", "figures"]):
        line = [Path(sys.executable).with_name("fbeta"), "paper", *arguments, "--results", "results"]
        subprocess.run(line, cwd=tmp_path, env=environment, check=True, capture_output=True)
    assert list(epochs(tmp_path / "results").values()) == [3] * 50


def test_a_run_is_the_same_in_any_company(tmp_path, whole):
    train(tmp_path / "alone", "--at-once", 1)
    assert content(tmp_path / "alone") == whole


def test_a_seed_gives_the_same_split_and_weights_everywhere():
    """Numbers from one machine: another one, or another NumPy, must draw them too."""
    split = Holdout.draw(60_000, 0.1, (run_stack.SPLIT, 3))
    rows = np.concatenate([split.train, split.val]).astype("<i8").tobytes()
    assert hashlib.sha256(rows).hexdigest()[:16] == "493bc66bf9a973cd"
    weights = run_stack.weights_of(run_stack.layout_of(Run("fashion-mnist", "bce")), 3)
    first = weights["conv1.weight"].flatten()[:3].tolist()
    assert first == pytest.approx([0.015057899, -0.03475675, -0.04949269], rel=1e-6)
    assert weights["layer4.1.conv2.weight"].double().square().sum().item() == pytest.approx(1022.98617)
    assert weights["fc.weight"].double().sum().item() == pytest.approx(0.60232527, abs=1e-6)


# Stopped and resumed

SCRIPT = """
import functools, sys
import torch
from fbeta.cli import app
from fbeta_reproduction.engine.image_stack import ImageStack
from fbeta_reproduction.runner import execution
from test_runner import make_little, pytest
torch.set_num_threads(1)
make_little(pytest.MonkeyPatch())
execution.train = functools.partial(execution.train, every={every})
inner, train_epoch = execution._train_stack, ImageStack.train_epoch
def stack(runs, *rest):
    print(*(run.id for run in runs), flush=True)
    if {meet}:
        sys.stdin.readline()
    return inner(runs, *rest)
def epoch(self):
    train_epoch(self)
    if self.epoch == {halt}:
        print("halt", flush=True)
        sys.stdin.read()
execution._train_stack, ImageStack.train_epoch = stack, epoch
sys.argv = ["fbeta", "paper", "run", "--dataset", "digits", "--preset", "few", "--yes", *{arguments!r}]
app()
"""


def start(folder, *arguments, every=math.inf, halt=0, meet=False):
    """The same command in a process of its own.

    It stops for ever after the steps of epoch `halt`, before that is told; with `meet` it waits for a line on standard
    input before every stack.
    """
    every = "float('inf')" if every == math.inf else every
    code = SCRIPT.format(every=every, halt=halt, meet=meet, arguments=["--results", str(folder), *arguments])
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "OMP_NUM_THREADS": "1"}
    pipe = subprocess.PIPE
    line = [sys.executable, "-c", code]
    return subprocess.Popen(line, stdin=pipe, stdout=pipe, stderr=pipe, text=True, env=environment)


@processes
@pytest.mark.parametrize("every", [pytest.param(math.inf, marks=pytest.mark.slow), -1])
def test_killed_in_the_middle_it_goes_on_as_if_nothing_had_happened(tmp_path, whole, monkeypatch, every):
    """Without a checkpoint (so that it starts again), and with one after every epoch."""
    folder = tmp_path / "results"
    victim = start(folder, every=every, halt=2)
    try:
        said = [victim.stdout.readline().split() for _ in range(2)]
        until(lambda: list(epochs(folder).values()) == [1] * 3 or victim.poll())  # another thread writes them down
    finally:
        victim.send_signal(signal.SIGKILL)
        victim.communicate()
    assert list(map(sorted, said)) == [sorted(whole), ["halt"]]
    assert list(epochs(folder).values()) == [1] * 3
    assert len(list(folder.glob(".checkpoints/*.safetensors"))) == (every < 0)
    starts = []
    monkeypatch.setattr(execution, "resume", lambda *given: starts.append(resume(*given)) or starts[-1])
    train(folder)
    assert starts[0] == (every < 0)
    assert content(folder) == whole
    assert not list((folder / ".checkpoints").glob("*"))


def test_a_time_limit_stops_it_and_the_same_command_goes_on(tmp_path, whole):
    folder = tmp_path / "results"
    for epoch in range(1, EPOCHS):
        said = train(folder, "--minutes", 0, code=3).stderr
        assert "The time limit is reached; run the same command again to go on." in said
        assert set(epochs(folder).values()) == {epoch}
    train(folder, "--minutes", 0)
    assert content(folder) == whole
    assert not list((folder / ".checkpoints").glob("*"))


def test_a_time_limit_between_stacks(tmp_path, whole):
    folder = tmp_path / "results"
    for count in (1, 2):
        train(folder, "--minutes", 0, "--at-once", 1, "--epochs", 1, code=3)
        assert list(epochs(folder).values()) == [1] * count
    train(folder, "--minutes", 0, "--at-once", 1, "--epochs", 1)
    train(folder)  # more epochs of the same runs
    assert content(folder) == whole


def test_a_stopped_stack_goes_on_as_it_was_whatever_is_asked_for_at_once(tmp_path, whole):
    folder = tmp_path / "results"
    train(folder, "--minutes", 0, code=3)
    train(folder, "--minutes", 0, "--at-once", 1, code=3)
    assert set(epochs(folder).values()) == {2}
    train(folder, "--at-once", 1)
    assert content(folder) == whole


def test_a_checkpoint_dies_when_a_run_of_it_starts_afresh(tmp_path, whole):
    folder = tmp_path / "results"
    train(folder, "--minutes", 0, code=3)
    (note,) = (folder / ".checkpoints").glob("*.json")
    first = json.loads(note.read_text())[0]
    with ledger.Ledger(folder, protocol.PROTOCOL) as other:
        other.claim([first])  # so that the stack cannot go on as it was
        said = train(folder, code=3).stderr
        assert "The last run is being trained by others" in said
    assert sorted(epochs(folder).values()) == [1, EPOCHS, EPOCHS]
    assert not list((folder / ".checkpoints").glob("*"))
    train(folder)
    assert content(folder) == whole


def test_progress_counts_every_epoch_once(tmp_path):
    plan = session.plan(["digits"], ["few"], None, None, "fp32", "cpu")
    told = []
    device = torch.device("cpu")
    assert not execution.execute(plan, tmp_path / "r", device, limit=0, say=told.append, tick=told.append)
    assert [x for x in told if isinstance(x, int)] == [3]
    told.clear()
    assert execution.execute(plan, tmp_path / "r", device, tick=told.append)
    assert told == [6, 3]
    told.clear()
    assert execution.execute(plan, tmp_path / "r", device, tick=told.append)
    assert told == [3, 3, 3]


# Shared


@processes
def test_two_processes_divide_the_work(tmp_path, whole):
    folder = tmp_path / "results"
    both = [start(folder, "--at-once", "1", meet=True) for _ in range(2)]
    first = [process.stdout.readline().split() for process in both]
    assert all(first), "each has something to train"
    said = [process.communicate("\n" * 3) for process in both]
    assert {process.returncode for process in both} <= {0, 3}, said
    trained = [begun + out.split() for begun, (out, _) in zip(first, said, strict=True)]
    assert sorted(trained[0] + trained[1]) == sorted(whole)
    for process, (_, errors) in zip(both, said, strict=True):
        assert (process.returncode == 3) == ("The last run is being trained by others" in errors)
    train(folder)
    assert content(folder) == whole


def test_shards_merged_are_the_whole(tmp_path, whole):
    for part in ("1-2", "2-2"):
        train(tmp_path / part, "--shard", part.replace("-", "/"))
        assert 0 < len(content(tmp_path / part)) < 3
        shutil.copytree(tmp_path / part, tmp_path / "merged", dirs_exist_ok=True)
    assert content(tmp_path / "merged") == whole


def test_a_lost_claim_is_a_sentence(tmp_path, monkeypatch):
    folder = tmp_path / "results"
    inner = ImageStack.train_epoch

    def slept(self):
        for claim in folder.glob(".claims/*/*"):
            claim.unlink()
        inner(self)

    monkeypatch.setattr(ImageStack, "train_epoch", slept)
    said = train(folder, code=2).stderr
    assert "is not claimed by this process" in said
    assert "Start again" in said


# Memory


def test_too_little_memory_means_fewer_at_once_and_is_said(tmp_path, whole, monkeypatch):
    monkeypatch.setattr(execution, "fit_at_once", lambda wanted, layout, device: min(wanted, 2))
    said = train(tmp_path).stderr
    assert said.count("The GPU's free memory is enough for 2 runs at once, not 3.") == 1
    assert content(tmp_path) == whole
    assert {r.header["machine"]["runs at once"] for _, r in ledger.records(tmp_path)} == {1, 2}


def out_of_memory(monkeypatch, more_than):
    inner = ImageStack.train_epoch

    def train_epoch(self):
        if len(self.members) > more_than:
            raise torch.cuda.OutOfMemoryError("CUDA out of memory.")
        inner(self)

    monkeypatch.setattr(ImageStack, "train_epoch", train_epoch)


@pytest.mark.parametrize("begun", [False, True])
def test_out_of_memory_means_fewer_at_once_and_is_said(tmp_path, whole, monkeypatch, begun):
    if begun:
        train(tmp_path, "--minutes", 0, code=3)
    with monkeypatch.context() as patch:
        out_of_memory(patch, more_than=1)
        said = train(tmp_path).stderr
    assert said.count("The GPU's memory was not enough; going on with 1 run at once.") == 1
    assert content(tmp_path) == whole
    assert not list((tmp_path / ".checkpoints").glob("*"))


def test_no_memory_for_a_single_run_is_a_sentence(tmp_path, monkeypatch):
    out_of_memory(monkeypatch, more_than=0)
    said = train(tmp_path, "--yes", code=2).stderr
    assert "fbeta: the GPU's memory is not enough for one run; free some, or use --device cpu." in said


# Bad input


def test_results_of_another_protocol_are_refused(tmp_path):
    (tmp_path / "protocol.json").write_text(json.dumps(protocol.PROTOCOL | {"batch": 128}))
    said = train(tmp_path, code=2).stderr
    assert "holds results of another protocol (batch is 128 there and 100 here)" in said
    assert "--results" in said
    assert said.count("\n") == 1  # no bar before it
    assert [x.name for x in tmp_path.iterdir()] == ["protocol.json"]


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--preset", "fathful"], "Unknown preset 'fathful'. Did you mean 'faithful'? Choices: faithful,"),
        (["--dataset", "fashion_mnist"], "Unknown dataset 'fashion_mnist'. Did you mean 'fashion-mnist'?"),
        (["--precision", "fp16"], "precision must be one of fp64, fp32, bf16; got 'fp16'."),
        (["--device", "tpu"], "device must be auto, cuda or cpu; got 'tpu'."),
        (["--shard", "3/2"], "A shard is written 2/3, the second of three parts; got '3/2'."),
    ],
)
def test_nonsense_is_answered_in_a_sentence(tmp_path, arguments, why):
    folder = tmp_path / "results"
    assert why in refused("--dataset", "digits", *arguments, "--results", folder)
    assert not folder.exists()


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_gpu_that_is_not_there(tmp_path):
    assert "there is no GPU that PyTorch can use here" in refused("--dataset", "digits", "--device", "cuda")


def test_a_folder_that_cannot_be_is_a_sentence(tmp_path):
    (tmp_path / "file").touch()
    said = train(tmp_path / "file" / "results", code=2).stderr
    assert f"cannot keep results in {tmp_path / 'file' / 'results'}" in said


@pytest.mark.parametrize("first", [[], ["--dataset", "digits"]])
def test_missing_data_is_said_before_anything_is_trained(tmp_path, monkeypatch, first):
    monkeypatch.setenv("FBETA_DATA", str(tmp_path / "empty"))
    folder = tmp_path / "results"
    said = refused(*first, "--dataset", "fashion-mnist", "--results", folder)
    assert "run `fbeta data fetch fashion-mnist`" in said
    assert not folder.exists()


# Without a GPU


@pytest.fixture
def slow_machine(monkeypatch):
    """Every epoch would take ten seconds; what is started is noted, not done."""
    started = []
    monkeypatch.setattr(session, "LONG", LONG)
    monkeypatch.setattr(data, "path", lambda name: Path(name))
    monkeypatch.setattr(session.BinaryImages, "load", lambda name: name)
    monkeypatch.setattr(session, "seconds_per_epoch", lambda run, images, device: 10.0)
    monkeypatch.setattr(session, "execute", lambda runs, *rest, **named: started.append(len(runs)) or True)
    return started


def test_without_a_gpu_the_time_is_told_first(tmp_path, slow_machine):
    arguments = ["--device", "cpu", "--results", tmp_path / "results"]
    said = refused(*arguments)
    assert "without a GPU these 100 runs take about 33 hours here" in said
    assert "add --yes to start" in said
    assert "these 25 runs take about 8 hours" in refused(*arguments, "--shard", "3/4")
    assert not slow_machine
    fbeta("paper", "run", *arguments, "--yes")
    fbeta("paper", "run", *arguments, "--repeats", 1, "--epochs", 4)
    fbeta("paper", "run", *arguments, "--dataset", "digits", "--epochs", 3)
    assert "these 50 runs take about 17 hours" in refused(*arguments, "--dataset", "digits")
    assert slow_machine == [100, 20, 50]


def test_what_is_done_takes_no_time(tmp_path, slow_machine):
    plan = session.plan(["fashion-mnist"], None, 4, None, "fp32", "cpu")
    with ledger.Ledger(tmp_path, protocol.PROTOCOL) as book:
        for run in plan[1:]:
            book.claim([run.id])
            book.begin(run.id, {"run": run.to_dict()}, ["epoch"])
            book.append(run.id, map(str, range(1, run.epochs + 1)))
    fbeta("paper", "run", "--device", "cpu", "--dataset", "fashion-mnist", "--repeats", 4, "--results", tmp_path)
    assert slow_machine == [40]


def test_the_guess_is_measured(tmp_path, monkeypatch):
    """By a clock on which the step takes two seconds, and the look at 120 images three."""
    monkeypatch.setattr(capacity, "time", SimpleNamespace(perf_counter=iter([0.0, 2.0, 5.0, 8.0]).__next__))
    monkeypatch.setattr(session, "LONG", LONG)
    images = binary_images.BinaryImages.load("digits")
    hours = 50 * 120 * (2 * 0.9 * images.trained / 100 + 3 * len(images.target) / 120) / 3600
    said = refused("--device", "cpu", "--dataset", "digits", "--results", tmp_path / "results")
    assert f"these 50 runs take about {hours:.0f} hours here" in said


# Plans


def test_stacks_keep_the_order_of_the_plan():
    plan = [*faithful("fashion-mnist"), *plateau("fashion-mnist", repeats=3), *faithful("cifar10")]
    parts = list(execution.stacks(plan, at_once=40))
    assert [len(part) for part in parts] == [40, 10, 12, 40, 10]
    assert [run for part in parts for run in part] == plan
    assert all(len({(run.dataset, run.epochs) for run in part}) == 1 for part in parts)
