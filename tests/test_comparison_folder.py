"""Finished parts of a comparison: kept, shared, told apart by all they depend on; kills and damage lose none."""

import importlib.metadata
import json
import math
import os
import random
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import joblib
import numpy as np
import pytest
import torch
from filelock import FileLock

from fbeta import as_metric
from fbeta.comparison import parts
from fbeta.comparison.folder import NUMBERS, Folder, SplitScores
from fbeta.comparison.methods import Method
from fbeta.comparison.plan import Part, Plan
from fbeta.comparison.result import Comparison
from fbeta.comparison.run import compare
from fbeta.learners import models
from fbeta.learners.learner import Course
from fbeta.learners.models.mlp import MLP
from fbeta.losses.module import Loss, RowLoss
from fbeta.sealed import seal, unseal
from fbeta.tables import read_frame
from test_comparison import FEW, table, timeless
from waiting import until

pl = pytest.importorskip("polars")
ASKED = {"metric": "fbeta:beta=2", **FEW}
processes = pytest.mark.xdist_group("comparison")


@pytest.fixture(scope="module")
def found():
    return compare(table(), **ASKED)


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "kept"


def finished(folder):
    """Finished parts, and when they were written."""
    return {p.name: p.stat().st_mtime_ns for p in folder.glob("*.scores")}


def test_finished_parts_are_read_and_change_nothing(found, folder):
    kept = compare(table(), folder=folder, **ASKED)
    assert timeless(kept) == timeless(found)
    before = finished(folder)
    assert len(before) == 2
    again = compare(table(), folder=folder, **ASKED)
    assert again.candidates == kept.candidates  # their seconds, too
    more = compare(table(), folder=folder, **ASKED | {"seeds": 3, "rule": "exact"})
    assert {k: v for k, v in finished(folder).items() if k in before} == before
    for exact, shrunk in zip(more.candidates, kept.candidates, strict=True):
        assert exact.outcomes[0].cut != shrunk.outcomes[0].cut  # the rule is applied to what is there
        assert exact.outcomes[0].brier == shrunk.outcomes[0].brier


# What finished parts depend on


def frame():
    rng = np.random.default_rng(0)
    y = rng.random(200) < 0.4
    x = rng.normal(size=200) + y
    shop, day = rng.choice(["1", "2", "3"], 200), rng.permutation(200).astype(float)
    columns = {"x": x, "shop": shop, "day": day, "week": (day // 5).astype(int)}
    return pl.DataFrame(columns | {"y": np.where(y, "yes", "no")})


def key(data, positive="yes", metric="fbeta:beta=2", folds=3, model="linear", **options):
    made = read_frame(data, "y", positive, **options)
    return Plan.make(made, as_metric(metric), [Method(model, "bce")], 1, folds, 0).parts[0].key


SAME = frame()
OTHERS = {
    "a value": lambda: key(SAME.with_columns(x=pl.when(pl.col("day") == 7).then(0.1).otherwise("x"))),
    "a missing value": lambda: key(SAME.with_columns(x=pl.when(pl.col("day") == 7).then(None).otherwise("x"))),
    "a category": lambda: key(SAME.with_columns(shop=pl.col("shop").str.replace("3", "2"))),
    "the order of rows": lambda: key(SAME.reverse()),
    "a target": lambda: key(SAME.with_columns(y=pl.when(pl.col("day") == 7).then(pl.lit("no")).otherwise("y"))),
    "the positive class": lambda: key(SAME, "no"),
    "groups": lambda: key(SAME, group="week"),
    "time": lambda: key(SAME, time="day"),
    "a dropped column": lambda: key(SAME, drop=("day",)),
    "the kind of a column": lambda: key(SAME.with_columns(shop="s" + pl.col("shop"))),
    "the metric": lambda: key(SAME, metric="fbeta:beta=1"),
    "the metric a little": lambda: key(SAME, metric="fbeta:beta=2.0001"),
    "folds": lambda: key(SAME, folds=4),
    "the model": lambda: key(SAME, model="mlp"),
}


@pytest.mark.parametrize("what", OTHERS)
def test_other_data_or_settings_are_other_parts(what):
    assert key(frame()) == key(SAME)
    assert key(SAME, time="day") != key(SAME, time="day", group="week")
    assert OTHERS[what]() != key(SAME)


def test_functions_of_one_name_are_told_apart():
    one, same, other = (key(SAME, metric=f) for f in (
        lambda tp, fp, fn, tn: tp / (tp + fp + fn),
        lambda tp, fp, fn, tn: tp / (fn + fp + tp),
        lambda tp, fp, fn, tn: tp / (tp + 2 * fp + fn),
    ))  # fmt: skip
    assert one == same != other


def test_other_settings_of_a_model_are_other_parts(monkeypatch):
    before = key(SAME, model="mlp")
    linear = key(SAME)
    monkeypatch.setitem(models.Learner.registry, "mlp", lambda **k: MLP(rate=1e-4, **k))
    models.Learner.registry["mlp"].package = "torch"
    models.Learner.registry["mlp"].rank = 1
    models.Learner.registry["mlp"].together = True
    assert key(SAME, model="mlp") != before
    assert key(SAME) == linear


@pytest.mark.parametrize("package", ["fbeta", "numpy", "polars", "xgboost"])
def test_an_upgrade_makes_other_parts(package, monkeypatch):
    pytest.importorskip("xgboost")
    before, linear = key(SAME, model="xgboost"), key(SAME)
    if package == "fbeta":
        monkeypatch.setattr("fbeta.comparison.plan.__version__", "99")
    else:
        version = importlib.metadata.version
        monkeypatch.setattr(
            "importlib.metadata.version", lambda name: "99" if name.removesuffix("-cpu") == package else version(name)
        )
    assert key(SAME, model="xgboost") != before
    assert (key(SAME) == linear) == (package == "xgboost")  # a booster's upgrade costs the boosters alone


def test_an_edited_loss_makes_other_parts():
    def of(power):
        class Edited(RowLoss, name="edited"):
            uses_metric = False

            def elements(self):
                return lambda z, y: (torch.sigmoid(z) - y).abs() ** power

        return Plan.make(table(), as_metric("f1"), [Method("linear", "edited")], 1, 2, 0).parts[0].key

    try:
        assert of(2.0) == of(2.0) != of(3.0)
    finally:
        Loss.registry.pop("edited")


def test_another_seed_and_other_company_are_other_parts(found, folder):
    """Split 1 of seed 0 and split 0 of seed 1 have the same sum, and other rows."""
    compare(table(), folder=folder, **ASKED)
    other = compare(table(), folder=folder, seed=1, **ASKED)
    assert timeless(other) == timeless(compare(table(), seed=1, **ASKED))
    assert timeless(other).candidates != timeless(found).candidates
    three = compare(table(), folder=folder, **ASKED | {"losses": ["tangent", "focal"]})
    assert timeless(three) == timeless(compare(table(), **ASKED | {"losses": ["tangent", "focal"]}))
    assert len(finished(folder)) == 6


def flip(path):
    data = bytearray(path.read_bytes())
    data[-90] ^= 4
    path.write_bytes(data)


def cut_short(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def fill(path):
    path.write_bytes(b"\0" * path.stat().st_size)


def other_part(path):
    Folder(path.parent).write(Part("x", ("bce",), 0, 0), {"bce": SplitScores(np.zeros(1), np.zeros(1))})
    next(path.parent.glob("x-*.scores")).replace(path)


def swap(path):
    """A whole part of as many rows in the place of another."""
    path.write_bytes(next(other for other in path.parent.glob("*.scores") if other != path).read_bytes())


def no_numbers(path):
    """With a right checksum."""
    members = unseal(path.read_bytes())
    path.write_bytes(seal(members | {NUMBERS: members[NUMBERS].replace(b'"F64"', b'"F65"')}))


@pytest.mark.parametrize("harm", [flip, cut_short, fill, other_part, swap, no_numbers, Path.unlink])
def test_a_damaged_part_is_trained_again_and_said_so(harm, found, folder):
    compare(table(), folder=folder, **ASKED)
    before = finished(folder)
    victim = next(folder.glob("linear-*-split1-*.scores"))
    harm(victim)
    said = []
    again = compare(table(), folder=folder, say=said.append, **ASKED)
    assert timeless(again) == timeless(found)
    gone = harm is Path.unlink  # then it was never finished
    assert said == ([] if gone else [f"{victim} is damaged; what it held is trained again."])
    assert sum(finished(folder)[part] != when for part, when in before.items()) == 1
    said.clear()
    compare(table(), folder=folder, say=said.append, **ASKED)
    assert said == []


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="needs /dev/zero")
def test_a_part_without_end_is_not_read(folder):
    part, said = Part("x", ("bce",), 0, 0), []
    folder.mkdir()
    kept = Folder(folder, said.append)
    kept.file(part).symlink_to("/dev/zero")
    assert kept.read(part) is None
    assert said == [f"{kept.file(part)} is damaged; what it held is trained again."]


def test_stopped_half_way_finished_parts_stay(found, folder):
    epochs = models.get("linear").steps

    def stop(done, of):
        if done > epochs:  # in the second part
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compare(table(), folder=folder, tick=stop, **ASKED)
    before = finished(folder)
    assert len(before) == 1
    assert timeless(compare(table(), folder=folder, **ASKED)) == timeless(found)
    assert finished(folder) == finished(folder) | before


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

# A nursery has imported everything; each line on its stdin is answered with a forked child that compares for real.
# The child writes down what it trains. It may have to die in a part, after some steps of its training or, where that
# takes fewer, before the finished part has its name; and it may have to wait in its first parts for another child.
NURSERY = """
import json, math, os, signal, sys
from collections import Counter
from pathlib import Path
import torch
torch.set_num_threads(1)
sys.path.insert(0, {tests!r})
from test_comparison_folder import LONG, compare, long_table
from waiting import until
from fbeta import writing
from fbeta.comparison.folder import Folder
from fbeta.comparison.parts import LoadedPart
import fbeta.boosting, xgboost

part = steps = 0

def log(*words):
    at = os.open({log!r}, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(at, (" ".join(map(str, (os.getpid(), *words))) + "\\n").encode())
    os.close(at)

def logged(name, call, first=lambda: None):
    def logging(*a, **k):
        log("begin", name)
        first()
        found = call(*a, **k)
        log("end", name)
        return found
    return logging

def next_part():
    global part, steps
    part, steps = part + 1, 0
    if part <= order["meet"]:
        until(lambda: sum(n >= part for n in begun().values()) > 1)

def begun():
    words = map(str.split, Path({log!r}).read_text().splitlines())
    return Counter(who for who, *what in words if what == ["begin", "train"])

def die(after):
    if [part] == order["die"][:1] and after >= order["die"][1]:
        os.kill(os.getpid(), signal.SIGKILL)

def tick(done, of):
    global steps
    steps += 1
    die(after=steps)

def settle(*a, whole=writing.settle):
    die(after=math.inf)
    whole(*a)

LoadedPart.train = logged("train", LoadedPart.train, next_part)
Folder.write, writing.settle = logged("write", Folder.write), settle
for line in sys.stdin:
    order = json.loads(line)
    child = os.fork()
    if not child:
        made = compare(long_table(), folder=order["folder"], tick=tick, **LONG)
        open(order["out"], "w").write(made.to_json())
        os._exit(0)
    print(child, flush=True)
    print(os.waitpid(child, 0)[1], flush=True)
"""
LONG = {"models": ["linear", "mlp", "xgboost"], "losses": ["tangent", "soft"], "seeds": 5, "folds": 3}
PARTS = 5 * 4


def long_table():
    return table(1500)


class Nursery:
    def __init__(self, folder):
        self.log = folder / "log"
        code = NURSERY.format(tests=os.path.dirname(__file__), log=str(self.log))
        self.process = subprocess.Popen(
            [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def start(self, folder, out, *, die=(), meet=0):
        """Compare; `die` is (part, steps), both counted from its own start, `meet` how many parts not to do alone."""
        order = {"folder": str(folder), "out": str(out), "die": die, "meet": meet}
        self.process.stdin.write(f"{json.dumps(order)}\n")
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
    made.process.communicate()


def numbers(path):
    return timeless(Comparison.from_json(path.read_text())).candidates


@processes
@pytest.mark.slow
def test_killed_ten_times_while_training_it_loses_nothing_and_ends_the_same(nursery, tmp_path):
    """A kill comes after a random number of finished parts, a random number of steps into the next one."""
    nursery.start(tmp_path / "whole", tmp_path / "alone")
    assert nursery.wait() == 0
    folder, luck, seen = tmp_path / "kept", random.Random(0), {}
    for turn in range(10):
        wanted = luck.choice([0, 1, 1, 2])
        steps = luck.randint(1, 20) if turn % 3 else 10**9  # then it dies while it keeps the part
        child = nursery.start(folder, tmp_path / "never", die=(wanted + 1, steps))
        assert nursery.wait() == signal.SIGKILL, "it was done before the last kill"
        assert nursery.lines(child).count(("begin", "train")) == wanted + 1
        assert nursery.lines(child).count(("end", "write")) == wanted
        assert turn % 3 or nursery.lines(child)[-1] == ("begin", "write")
        now = finished(folder)
        assert now == now | seen, "a finished part was lost, or trained again"
        assert len(now) == len(seen) + wanted
        seen = now
    assert 3 <= len(seen) < PARTS
    end = nursery.start(folder, tmp_path / "end")
    assert nursery.wait() == 0
    assert finished(folder) == finished(folder) | seen
    assert len(finished(folder)) == PARTS
    assert numbers(tmp_path / "end") == numbers(tmp_path / "alone")
    # What was finished is not trained again.
    assert nursery.lines(end).count(("begin", "train")) == PARTS - len(seen)


@processes
@pytest.mark.slow
def test_processes_that_share_a_folder_divide_the_work(tmp_path):
    pytest.importorskip("xgboost")
    two = [Nursery(tmp_path), Nursery(tmp_path)]
    folder = tmp_path / "kept"
    try:
        children = [n.start(folder, tmp_path / str(i), meet=2) for i, n in enumerate(two)]
        assert [n.wait() for n in two] == [0, 0]
    finally:
        for n in two:
            n.process.communicate()
    written = [two[0].lines(child).count(("end", "write")) for child in children]
    assert sum(written) == len(finished(folder)) == PARTS  # nothing twice
    assert min(written) >= 2
    assert numbers(tmp_path / "0") == numbers(tmp_path / "1")
    assert numbers(tmp_path / "0") == timeless(compare(long_table(), **LONG)).candidates


@processes
@pytest.mark.slow
def test_ctrl_c_leaves_finished_parts_usable(tmp_path):
    file, folder = tmp_path / "shops.csv", tmp_path / "kept"
    data = table(2000)
    data.features.with_columns(fraud=pl.Series(np.where(data.y == 1, "yes", "no"))).write_csv(file)
    command = [str(Path(sys.executable).parent / "fbeta"), "compare", str(file), "--target", "fraud"]
    command += ["--models", "linear,mlp", "--losses", "tangent", "--seeds", "4", "--folds", "3"]
    command += ["--json", "--results"]
    alone = os.environ | {"OMP_NUM_THREADS": "1"}
    whole = subprocess.run([*command, str(tmp_path / "new")], capture_output=True, text=True, check=True, env=alone)
    names = sorted(finished(tmp_path / "new"))
    assert len(names) == 8
    folder.mkdir()
    command.append(str(folder))
    # One part is not to be had: however late the signal comes, the work is not done.
    with FileLock(folder / names[-1].replace(".scores", ".lock")):
        pipe = subprocess.PIPE
        work = subprocess.Popen([*command, "--jobs", "2"], stdout=pipe, stderr=pipe, text=True, env=alone)
        try:
            until(lambda: len(finished(folder)) >= 2 or work.poll() is not None)
            work.send_signal(signal.SIGINT)
            out, err = work.communicate()
        finally:
            work.kill()
            work.communicate()
    assert work.returncode == 130
    assert out == ""
    assert "Traceback" not in err
    before = finished(folder)
    assert 2 <= len(before) < 8
    again = subprocess.run(command, capture_output=True, text=True, check=True, env=alone)
    assert finished(folder) == finished(folder) | before
    assert sorted(finished(folder)) == names
    first, second = (timeless(Comparison.from_json(run.stdout)) for run in (again, whole))
    assert first.candidates == second.candidates


@processes
def test_two_processes_find_what_one_finds(found):
    assert timeless(compare(table(), jobs=2, **ASKED)) == timeless(found)


def test_other_backends_of_joblib_take_over(found, monkeypatch):
    seen = []
    with joblib.parallel_config("threading", n_jobs=2):
        monkeypatch.setattr(
            parts.LoadedPart, "finish", lambda *a: (seen.append(joblib.parallel.get_active_backend()), train(*a))[1]
        )
        assert timeless(compare(table(), jobs=None, **ASKED)) == timeless(found)
    assert len(seen) == 2


train = parts.LoadedPart.finish


def test_processes_are_for_what_is_worth_their_start(monkeypatch):
    def wanted(jobs=None, metric="mcc", device="cpu", count=9):
        return parts._processes(jobs, table(), as_metric(metric), device, count)

    assert wanted() == 1  # not worth the start
    monkeypatch.setattr(parts, "WORTH", 100)
    assert wanted() == min(joblib.cpu_count(), 9)
    assert wanted(count=1) == 1
    assert wanted(device="cuda") == 1
    assert wanted(jobs=3) == 3
    monkeypatch.setattr("fbeta.learners.machine.SMALL", 100)
    assert wanted() == 1  # its threads are busy


def test_a_function_does_not_travel():
    with pytest.raises(ValueError, match="leave jobs out"):
        compare(table(), **ASKED | {"metric": lambda tp, fp, fn, tn: tp / (tp + fp + fn)}, jobs=2)


def test_a_part_that_another_process_is_at_is_waited_for_at_the_end(found, folder):
    """A thread holds the first part's lock, as another process would, and finishes it late."""
    plan = Plan.make(
        table(), as_metric("fbeta:beta=2"), [Method("linear", "bce"), Method("linear", "tangent")], 2, 2, 0
    )
    kept, said, got, free = Folder(folder), [], threading.Event(), threading.Event()

    def other():
        with kept.lock(plan.parts[0]):
            got.set()
            free.wait()

    holder = threading.Thread(target=other)
    holder.start()
    got.wait()

    def say(sentence):
        said.append(sentence)
        free.set()

    try:
        made = compare(table(), folder=folder, say=say, **ASKED)
    finally:
        free.set()
        holder.join()
    assert said == ["Another process trains the rest; its results are waited for."]
    assert timeless(made) == timeless(found)


def test_what_a_part_holds_comes_back_as_it_was(tmp_path):
    part = Part("linear", ("bce", "soft"), 1, 0)
    one = SplitScores(np.array([0.1, -2.0]), np.array([3.0]), 0.5, 7, remark="predicts everything positive")
    other = replace(one, inner=np.array([1.0, 2.0]), course=Course((0.3, 0.2), (0.5, 0.6), (0.4, math.nan)))
    folder = Folder(tmp_path)
    assert folder.read(part) is None
    folder.write(part, {"bce": one, "soft": other})
    found = folder.read(part)
    for loss, was in (("bce", one), ("soft", other)):
        now = found[loss]
        assert np.array_equal(now.inner, was.inner)
        assert np.array_equal(now.outer, was.outer)
        assert (now.seconds, now.rounds, now.remark) == (was.seconds, was.rounds, was.remark)
        assert repr(now.course) == repr(was.course)
