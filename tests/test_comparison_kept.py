"""Finished parts of a comparison: kept, shared, refused where they do not belong, mended; kills lose none."""

import json
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch

from fbeta import metric
from fbeta.comparison import boosters, networks
from fbeta.comparison.crew import cores, crew
from fbeta.comparison.kept import Kept, fingerprint
from fbeta.comparison.learned import Learned
from fbeta.comparison.methods import plan
from fbeta.comparison.parts import parts
from fbeta.comparison.result import Comparison
from fbeta.comparison.run import _Work, compare
from fbeta.tables import read_frame
from fbeta.train.ledger import Ledger, NotHeldError, read
from test_comparison import FEW, table, timeless

pl = pytest.importorskip("polars")
ASKED = {"metric": "fbeta:beta=2", **FEW}
processes = pytest.mark.xdist_group("comparison")


@pytest.fixture(scope="module")
def found():
    return compare(table(), **ASKED)


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "kept"


def scores(folder):
    """Finished parts, and when they were written."""
    return {
        str(p.relative_to(folder)): p.stat().st_mtime_ns for p in folder.glob("*-*/seed*/scores.safetensors")
    }


def test_finished_parts_are_read_and_change_nothing(found, folder):
    kept = compare(table(), folder=folder, **ASKED)
    assert timeless(kept) == timeless(found)
    before = scores(folder)
    assert len(before) == 2
    again = compare(table(), folder=folder, **ASKED)
    assert again.candidates == kept.candidates  # their seconds, too
    more = compare(table(), folder=folder, **ASKED | {"seeds": 3, "rule": "exact"})
    assert {k: v for k, v in scores(folder).items() if k in before} == before
    for exact, shrunk in zip(more.candidates, kept.candidates, strict=True):
        assert exact.outcomes[0].cut != shrunk.outcomes[0].cut  # the rule is applied to what is there
        assert exact.outcomes[0].brier == shrunk.outcomes[0].brier
    assert not list((folder / ".claims").glob("*~*"))
    assert not list((folder / ".checkpoints").rglob("*.safetensors"))


def test_a_run_is_written_down_as_the_papers_are(found, folder):
    compare(table(), folder=folder, **ASKED)
    record = read(next(folder.glob("linear-*/seed0-split1/tangent.csv")))
    assert record.header["run"] == {"model": "linear", "loss": "tangent", "seed": 0, "split": 1}
    assert record.header["machine"]["torch"]
    assert list(record.columns) == ["epoch", "loss", "score", "held"]
    outcome = found.candidate("linear, tangent").outcomes[1]
    assert record.header["end"]["rounds"] == outcome.epochs == 1 + record.columns["held"].argmax()


# What finished parts depend on


def frame():
    rng = np.random.default_rng(0)
    y = rng.random(200) < 0.4
    x = rng.normal(size=200) + y
    shop, day = rng.choice(["1", "2", "3"], 200), rng.permutation(200).astype(float)
    return pl.DataFrame({"x": x, "shop": shop, "day": day, "y": np.where(y, "yes", "no")})


def of(data, positive="yes", name="fbeta:beta=2", folds=3, **options):
    return fingerprint(read_frame(data, "y", positive, **options), metric(name), folds)


SAME = frame()
OTHERS = {
    "a value": lambda: of(SAME.with_columns(x=pl.when(pl.col("day") == 7).then(0.1).otherwise("x"))),
    "a missing value": lambda: of(SAME.with_columns(x=pl.when(pl.col("day") == 7).then(None).otherwise("x"))),
    "a category": lambda: of(SAME.with_columns(shop=pl.col("shop").str.replace("3", "2"))),
    "the order of rows": lambda: of(SAME.reverse()),
    "a target": lambda: of(
        SAME.with_columns(y=pl.when(pl.col("day") == 7).then(pl.lit("no")).otherwise("y"))
    ),
    "the positive class": lambda: of(SAME, "no"),
    "groups": lambda: of(SAME, group="shop"),
    "time": lambda: of(SAME, time="day"),
    "a dropped column": lambda: of(SAME, drop=("day",)),
    "the kind of a column": lambda: of(SAME.with_columns(shop="s" + pl.col("shop"))),
    "the metric": lambda: of(SAME, name="fbeta:beta=1"),
    "the metric a little": lambda: of(SAME, name="fbeta:beta=2.0001"),
    "folds": lambda: of(SAME, folds=4),
}


@pytest.mark.parametrize("what", OTHERS)
def test_other_data_or_settings_are_another_comparison(what):
    assert of(frame()) == of(SAME)
    assert of(SAME, time="day") != of(SAME, time="day", group="shop")
    assert OTHERS[what]() != of(SAME)


def test_functions_of_one_name_are_told_apart():
    data = read_frame(SAME, "y", "yes")
    one, same, other = (fingerprint(data, metric(f), 3) for f in (
        lambda tp, fp, fn, tn: tp / (tp + fp + fn),
        lambda tp, fp, fn, tn: tp / (fn + fp + tp),
        lambda tp, fp, fn, tn: tp / (tp + 2 * fp + fn),
    ))  # fmt: skip
    assert one["metric"] == other["metric"] == "<lambda>"
    assert one == same != other


@pytest.mark.parametrize("name", ["RECIPES", "ROUNDS", "PATIENCE"])
def test_other_recipes_are_another_comparison(name, monkeypatch):
    before = of(SAME)
    if name == "RECIPES":
        monkeypatch.setitem(networks.RECIPES, "mlp", replace(networks.RECIPES["mlp"], rate=1e-4))
    else:
        monkeypatch.setattr(boosters, name, 7)
    assert of(SAME) != before


def test_another_seed_and_other_company_are_other_parts(found, folder):
    """Split 1 of seed 0 and split 0 of seed 1 have the same sum, and other rows."""
    compare(table(), folder=folder, **ASKED)
    other = compare(table(), folder=folder, seed=1, **ASKED)
    assert timeless(other) == timeless(compare(table(), seed=1, **ASKED))
    assert timeless(other).candidates != timeless(found).candidates
    three = compare(table(), folder=folder, **ASKED | {"losses": ["tangent", "focal"]})
    assert timeless(three) == timeless(compare(table(), **ASKED | {"losses": ["tangent", "focal"]}))
    assert len(scores(folder)) == 6


def test_a_folder_of_something_else_is_refused(folder, tmp_path):
    compare(table(), folder=folder, **ASKED)
    before = scores(folder)
    note = folder / "protocol.json"
    whole = note.read_text()
    with pytest.raises(ValueError, match=r"another protocol \(data is .* give another folder with --results"):
        compare(table(seed=1), folder=folder, **ASKED)
    with pytest.raises(ValueError, match=r"folds is 2 there and 3 here"):
        compare(table(), folder=folder, **ASKED | {"folds": 3})
    for version in (1, 99):
        note.write_text(json.dumps(json.loads(whole) | {"version": version}))
        with pytest.raises(ValueError, match=f"version is {version} there and 3 here\\); give another"):
            compare(table(), folder=folder, **ASKED)
    for damage in ("", whole[: len(whole) // 2], "[]", '"x"', "\udcff"):
        note.write_text(damage, errors="surrogateescape")
        with pytest.raises(ValueError, match=r"protocol\.json is damaged|of another protocol"):
            compare(table(), folder=folder, **ASKED)
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "thesis.doc").touch()
    with pytest.raises(ValueError, match=r"holds other things \(thesis\.doc"):
        compare(table(), folder=tmp_path / "thesis", **ASKED)
    assert scores(folder) == before


def flip(path):
    data = bytearray(path.read_bytes())
    data[-9] ^= 4
    path.write_bytes(data)


def cut_short(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def fill(path):
    path.write_bytes(b"\0" * path.stat().st_size)


@pytest.mark.parametrize("harm", [flip, cut_short, fill, Path.unlink])
@pytest.mark.parametrize("file", ["scores.safetensors", "tangent.csv"])
def test_a_damaged_part_is_trained_again_and_said_so(file, harm, found, folder):
    compare(table(), folder=folder, **ASKED)
    before = scores(folder)
    victim = next(folder.glob(f"linear-*/seed0-split1/{file}"))
    harm(victim)
    said = []
    again = compare(table(), folder=folder, say=said.append, **ASKED)
    assert timeless(again) == timeless(found)
    gone = harm is Path.unlink and file.startswith("scores")  # then it was never finished
    assert said == ([] if gone else [f"{victim} is damaged; what it held is trained again."])
    assert sum(scores(folder)[part] != when for part, when in before.items()) == 1
    said.clear()
    compare(table(), folder=folder, say=said.append, **ASKED)
    assert said == []


@pytest.mark.parametrize("harm", [None, flip, cut_short, fill])
def test_half_way_it_goes_on_or_a_damaged_checkpoint_begins_again(harm, found, folder, monkeypatch):
    monkeypatch.setitem(networks.train.__kwdefaults__, "every", 0.0)  # a checkpoint after every epoch
    epochs = networks.RECIPES["linear"].epochs

    def stop(done, of):
        if done == epochs + 4:  # in the second part
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compare(table(), folder=folder, tick=stop, **ASKED)
    assert len(scores(folder)) == 1
    assert not list((folder / ".claims").glob("*~*"))
    checkpoint = next((folder / ".checkpoints").rglob("*.safetensors"))
    if harm:
        harm(checkpoint)
    said, told = [], []
    again = compare(table(), folder=folder, say=said.append, tick=lambda done, of: told.append(done), **ASKED)
    assert timeless(again) == timeless(found)
    assert said == ([f"{checkpoint} is damaged; what it held is trained again."] if harm else [])
    inside = [x - epochs for x in told if epochs < x < 2 * epochs]
    assert inside[0] == (1 if harm else 3)  # the epoch whose checkpoint was there
    assert not checkpoint.exists()


def test_what_is_finished_can_be_looked_at(found, folder):
    with pytest.raises(ValueError, match="no split is finished by all methods yet"):
        compare(table(), folder=folder, train=False, **ASKED)
    compare(table(), folder=folder, **ASKED)
    seen = compare(table(), folder=folder, train=False, **ASKED | {"seeds": 5})
    assert timeless(seen) == timeless(found)
    assert seen.seeds == 2
    wider = {"models": ["linear", "mlp"], "train": False}
    with pytest.raises(ValueError, match="no split is finished"):
        compare(table(), folder=folder, **ASKED | wider)


# Processes

# A nursery has imported everything; each word on its stdin is answered with a forked child that compares for real.
# The child writes down what it trains.
NURSERY = """
import os, sys, time, torch
torch.set_num_threads(1)
sys.path.insert(0, {tests!r})
from test_comparison_kept import LONG, compare, long_table
from fbeta.comparison import boosters, kept, networks
import fbeta.boosting, xgboost

def log(*words):
    at = os.open({log!r}, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(at, (" ".join(map(str, (os.getpid(), *words))) + "\\n").encode())
    os.close(at)

def logged(name, call):
    def logging(*a, **k):
        log("begin", name)
        found = call(*a, **k)
        log("end", name)
        return found
    return logging

networks.train.__kwdefaults__["every"] = 0.0  # a checkpoint after every epoch
networks.NetworkRuns.epoch = logged("epoch", networks.NetworkRuns.epoch)
boosters.train = logged("booster", boosters.train)
kept.Kept.write = logged("write", kept.Kept.write)
for line in sys.stdin:
    folder, out = line.split()
    child = os.fork()
    if not child:
        made = compare(long_table(), folder=folder, **LONG)
        open(out, "w").write(made.to_json())
        os._exit(0)
    print(child, flush=True)
    print(os.waitpid(child, 0)[1], flush=True)
"""
LONG = {"models": ["linear", "mlp", "xgboost"], "losses": ["tangent", "soft"], "seeds": 3, "folds": 3}


def long_table():
    return table(2500)


class Nursery:
    def __init__(self, folder):
        self.log = folder / "log"
        code = NURSERY.format(tests=os.path.dirname(__file__), log=str(self.log))
        self.process = subprocess.Popen(
            [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def start(self, folder, out):
        self.process.stdin.write(f"{folder} {out}\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

    def wait(self):
        return int(self.process.stdout.readline())

    def lines(self, pid=None):
        text = self.log.read_text() if self.log.exists() else ""
        rows = [line.split() for line in text.splitlines()]
        return [(what, name) for who, what, name in rows if pid in (None, int(who))]


@pytest.fixture
def nursery(tmp_path):
    pytest.importorskip("xgboost")
    made = Nursery(tmp_path)
    yield made
    made.process.communicate(timeout=30)


def numbers(path):
    return timeless(Comparison.from_json(path.read_text())).candidates


@processes
@pytest.mark.slow
def test_killed_ten_times_while_training_it_loses_nothing_and_ends_the_same(nursery, tmp_path):
    began = time.monotonic()
    # Undisturbed, but with checkpoints: kills are to be spread over what training takes with them.
    alone = nursery.start(tmp_path / "whole", tmp_path / "alone")
    assert nursery.wait() == 0
    takes = time.monotonic() - began
    epochs = nursery.lines(alone).count(("end", "epoch"))
    folder, luck = tmp_path / "kept", random.Random(0)
    seen, grown, in_training = {}, [], 0
    for _ in range(10):
        child = nursery.start(folder, tmp_path / "never")
        while not nursery.lines(child):  # until it trains
            time.sleep(0.005)
        time.sleep(takes * luck.uniform(0.01, 0.12))
        os.kill(child, signal.SIGKILL)
        assert nursery.wait() == signal.SIGKILL, "it was done before the last kill"
        last = nursery.lines(child)[-1]
        in_training += last[0] == "begin"
        now = scores(folder)
        assert now == now | seen, "a finished part was lost, or trained again"
        grown.append(len(now) - len(seen))
        seen = now
    assert in_training >= 8
    assert sum(n > 0 for n in grown) >= 3
    assert len(seen) < 3 * 4
    end = nursery.start(folder, tmp_path / "end")
    assert nursery.wait() == 0
    assert scores(folder) == scores(folder) | seen
    assert numbers(tmp_path / "end") == numbers(tmp_path / "alone")
    # A kill costs the epoch it hits, or the one that was not saved yet, and the booster it hits; no more.
    lines = nursery.lines()
    assert lines.count(("end", "epoch")) - 2 * epochs <= 10
    assert nursery.lines(end).count(("begin", "epoch")) < epochs
    assert lines.count(("begin", "booster")) <= 2 * 6 + 10


@processes
@pytest.mark.slow
def test_processes_that_share_a_folder_divide_the_work(tmp_path):
    pytest.importorskip("xgboost")
    two = [Nursery(tmp_path), Nursery(tmp_path)]
    folder = tmp_path / "kept"
    try:
        children = [n.start(folder, tmp_path / str(i)) for i, n in enumerate(two)]
        assert [n.wait() for n in two] == [0, 0]
    finally:
        for n in two:
            n.process.communicate(timeout=30)
    written = [two[0].lines(child).count(("end", "write")) for child in children]
    assert sum(written) == len(scores(folder)) == 12  # nothing twice
    assert min(written) >= 2
    assert numbers(tmp_path / "0") == numbers(tmp_path / "1")
    assert numbers(tmp_path / "0") == timeless(compare(long_table(), **LONG)).candidates


@processes
@pytest.mark.slow
def test_ctrl_c_leaves_finished_runs_usable(tmp_path):
    file, folder = tmp_path / "shops.csv", tmp_path / "kept"
    data = table(2000)
    data.features.with_columns(fraud=pl.Series(np.where(data.y == 1, "yes", "no"))).write_csv(file)
    command = [str(Path(sys.executable).parent / "fbeta"), "compare", str(file), "--target", "fraud"]
    command += ["--models", "linear,mlp", "--losses", "tangent", "--seeds", "4", "--folds", "3"]
    command += ["--results", str(folder), "--json"]
    alone = os.environ | {"OMP_NUM_THREADS": "1"}
    work = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=alone)
    try:
        deadline = time.monotonic() + 60
        while len(scores(folder)) < 2 and time.monotonic() < deadline:
            time.sleep(0.01)
        work.send_signal(signal.SIGINT)
        out, err = work.communicate(timeout=30)
    finally:
        work.kill()
        work.communicate()
    assert work.returncode == 130
    assert out == ""
    assert "Traceback" not in err
    before = scores(folder)
    assert 2 <= len(before) < 8
    assert not list((folder / ".claims").glob("*~*"))
    again = subprocess.run(command, capture_output=True, text=True, check=True, env=alone)
    assert scores(folder) == scores(folder) | before
    command[command.index(str(folder))] = str(tmp_path / "new")
    whole = subprocess.run(command, capture_output=True, text=True, check=True, env=alone)
    first, second = (timeless(Comparison.from_json(run.stdout)) for run in (again, whole))
    assert first.candidates == second.candidates


def _forever(file, alive):
    file.with_suffix(".part").write_text(f"{os.getpid()} {torch.get_num_threads()}")
    file.with_suffix(".part").replace(file)
    while True:
        alive()
        time.sleep(0.05)


def _wait_for(what, seconds=60):
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.05)


def _runs(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@processes
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at /proc")
def test_a_crew_ends_with_its_block_or_its_leader(tmp_path):
    file = tmp_path / "pid"
    with crew(1, partial(_forever, file)):
        _wait_for(file.exists)
        pid, threads = map(int, file.read_text().split())
        assert pid != os.getpid()
        assert threads == 1
    assert not _runs(pid)
    file.unlink()
    code = (
        f"import sys, time; sys.path.insert(0, {os.path.dirname(__file__)!r})\n"
        "from functools import partial; from pathlib import Path\n"
        "from fbeta.comparison.crew import crew; from test_comparison_kept import _forever\n"
        f"with crew(1, partial(_forever, Path({str(file)!r}))): time.sleep(100)"
    )
    leader = subprocess.Popen([sys.executable, "-c", code])
    _wait_for(file.exists)
    leader.kill()
    leader.wait()
    pid = int(file.read_text().split()[0])
    _wait_for(lambda: not _runs(pid))


@processes
def test_two_processes_find_what_one_finds(found, monkeypatch):
    assert timeless(compare(table(), jobs=2, **ASKED)) == timeless(found)
    work = _Work(table(), metric("mcc"), plan(["linear"], None), 5, 5, 0, torch.device("cpu"), print, print)
    assert work.deserves == 1  # not worth the start
    monkeypatch.setattr("fbeta.comparison.run.WORTH", 100)
    assert work.deserves == cores()
    monkeypatch.setattr("fbeta.learners.devices.SMALL", 100)
    assert work.deserves == 1  # its threads are busy


def test_a_process_that_lost_its_claim_deletes_nothing(folder):
    wanted = fingerprint(table(), metric("fbeta:beta=2"), 2)
    part = parts(plan(["linear"], ["tangent"]), 1, 0)[0]
    learned = {m.loss: Learned(np.zeros(3), np.zeros(2), 0.1, 7) for m in part.methods}
    sleeper, heir = (Kept(Ledger(folder, wanted, patience=0.2)) for _ in range(2))  # neither beats
    assert sleeper.take(part)
    time.sleep(0.5)
    assert heir.take(part)
    heir.write(part, learned, {})
    with pytest.raises(NotHeldError):
        sleeper.write(part, learned, {})
    assert heir.finished(part) is not None


def test_a_function_does_not_travel():
    with pytest.raises(ValueError, match="leave jobs out"):
        compare(table(), **ASKED | {"metric": lambda tp, fp, fn, tn: tp / (tp + fp + fn)}, jobs=2)


def _broken(alive):
    raise OSError("no space")


@processes
def test_a_member_that_fails_or_dies_is_not_waited_for(capfd):
    with crew(1, _broken):
        (member,) = multiprocessing.active_children()
        member.join(60)
    assert capfd.readouterr().err == ""  # its leader meets the same fault, and says it once
