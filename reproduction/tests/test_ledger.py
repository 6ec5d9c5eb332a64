"""Results, claims and checkpoints under what happens to them: kills, races, torn lines, other people's files."""

import json
import os
import pickle
import random
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fbeta_reproduction.records import ledger
from fbeta_reproduction.records.checkpoint import remove, save
from fbeta_reproduction.records.leases import DiskClock, Owner, owner
from fbeta_reproduction.records.ledger import Ledger, NotHeldError, read, shard
from waiting import until

PROTOCOL = {"protocol": "test", "version": 1, "betas": (0.5, 1)}
HEADER = {"run": {"loss": "bce", "beta": None, "epochs": 3}, "machine": {"device": "cpu"}}
COLUMNS = ["epoch", "loss", "tp"]
RUN = "digits/bce-r0"
processes = pytest.mark.xdist_group("ledger")


def value(id, epoch):
    """A row that only this run and epoch have."""
    return f"{epoch},{sum(id.encode()) / epoch:.6g},{epoch * len(id)}"


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "results"


@pytest.fixture
def book(folder):
    with Ledger(folder, PROTOCOL) as book:
        book.claim([RUN])
        yield book


# The file of a run


WHOLE = f"# {json.dumps(HEADER)}\n{','.join(COLUMNS)}\n1,0.5,3\n2,nan,0\n3,inf,-1e-3\n".encode()


def test_read(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(WHOLE)
    record = read(path)
    assert record.header == HEADER
    assert record.epochs == 3
    assert list(record.columns) == COLUMNS
    np.testing.assert_array_equal(record.columns["loss"], [0.5, np.nan, np.inf])
    assert all(c.dtype == np.float64 and c.flags.c_contiguous for c in record.columns.values())
    path.write_bytes(WHOLE.replace(b"\n", b"\r\n"))
    assert list(read(path).columns) == COLUMNS


def test_a_file_cut_off_anywhere_keeps_its_complete_rows(tmp_path):
    path = tmp_path / "a.csv"
    for length in range(len(WHOLE) + 1):
        path.write_bytes(WHOLE[:length])
        lines = WHOLE[:length].count(b"\n")
        if lines < 2:
            with pytest.raises(ValueError, match=r"a\.csv is damaged: .*header.*; delete it"):
                read(path)
        else:
            assert read(path).columns["epoch"].tolist() == list(range(1, lines - 1))


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        (b"# {", b"{", "first line"),
        (b'"machine"', b"machine", "first line"),
        (b"# {", b"# [{", "first line"),
        (b"epoch,", b"time,", "second line"),
        (b"loss,tp", b"loss,loss", "second line"),
        (b"loss,tp", b"loss,", "second line"),
        (b"2,nan,0", b"2,nan", "line 4 is not epoch 2 with 3 numbers"),
        (b"2,nan,0\n", b"", "line 4 is not epoch 2"),
        (b"2,nan,0\n", b"1,0.5,3\n", "line 4 is not epoch 2"),
        (b"2,nan,0\n", b"2,nan,\x00\x00\n", "line 4"),
        (b"3,inf", b"3,\xff\xfe", "line 5"),
        (b"1,0.5,3\n", b"1,0.5,3\n\n", "line 4"),
    ],
)
def test_damage_is_named(tmp_path, old, new, why):
    path = tmp_path / "a.csv"
    path.write_bytes(WHOLE.replace(old, new))
    with pytest.raises(ValueError, match=f"damaged: .*{why}.*; delete it, or restore it"):
        read(path)


@given(st.binary() | st.binary().map(lambda b: WHOLE[:70] + b) | st.binary().map(lambda b: WHOLE + b))
def test_no_file_gives_any_other_error(data):
    try:
        record = ledger.parse(data, "a.csv")
    except ValueError:
        with pytest.raises(ValueError, match=r"a\.csv is damaged"):
            ledger.parse(data, "a.csv")
    else:
        assert {len(c) for c in record.columns.values()} == {record.epochs}


# The folder


def test_a_folder_keeps_its_protocol(folder):
    Ledger(folder, PROTOCOL)
    Ledger(folder, PROTOCOL)
    with pytest.raises(ValueError, match=r"another protocol \(version is 1 there and 2 here\); .* --results") as e:
        Ledger(folder, {**PROTOCOL, "version": 2})
    assert str(folder) in str(e.value)
    with pytest.raises(ValueError, match='new is "absent" there and 5 here'):
        Ledger(folder, {**PROTOCOL, "new": 5})
    assert json.loads((folder / "protocol.json").read_text())["version"] == 1


def test_other_folders_are_refused(tmp_path):
    (tmp_path / "thesis.doc").touch()
    with pytest.raises(ValueError, match=r"holds other things \(thesis.doc, .* --results"):
        Ledger(tmp_path, PROTOCOL)
    assert [x.name for x in tmp_path.iterdir()] == ["thesis.doc"]
    with pytest.raises(ValueError, match="is a file"):
        Ledger(tmp_path / "thesis.doc", PROTOCOL)
    folder = tmp_path / "cut"
    folder.mkdir()
    (folder / ".hidden").touch()
    Ledger(folder, PROTOCOL)
    (folder / "protocol.json").write_text('{"protocol"')
    with pytest.raises(ValueError, match="protocol.json is damaged"):
        Ledger(folder, PROTOCOL)


@pytest.mark.parametrize("id", ["../x", "/etc/x", ".claims/x", "a/../b", "a//b", "", "a b", "a~b", "a\nb", "a/"])
def test_a_name_stays_inside_the_folder(folder, id):
    book = Ledger(folder, PROTOCOL)
    for call in (book.path, book.epochs, book.checkpoint_path, lambda id: book.claim([id])):
        with pytest.raises(ValueError, match="A run's name"):
            call(id)


# Writing


def test_begin_append_and_go_on(book, folder):
    assert book.epochs(RUN) == 0
    assert book.begin(RUN, HEADER, COLUMNS) == 0
    assert book.epochs(RUN) == 0
    book.append(RUN, value(RUN, 1))
    assert book.epochs(RUN) == 1
    book.append(RUN, [value(RUN, 2), value(RUN, 3)])
    assert book.done(RUN, 3)
    assert not book.done(RUN, 4)
    book.sync()
    book.release([RUN])
    with Ledger(folder, PROTOCOL) as other:
        assert other.claim([RUN]) == [RUN]
        assert other.begin(RUN, HEADER, COLUMNS) == 3
        other.append(RUN, value(RUN, 4))
    ((id, record),) = book.records()
    assert id == RUN
    assert record.header == HEADER
    assert record.columns["tp"].tolist() == [len(RUN) * e for e in (1, 2, 3, 4)]


def test_a_torn_line_is_gone_before_the_next_is_written(book, folder):
    book.begin(RUN, HEADER, COLUMNS)
    book.append(RUN, [value(RUN, 1), value(RUN, 2)])
    path = book.path(RUN)
    os.truncate(path, path.stat().st_size - 3)
    with pytest.raises(NotHeldError, match="changed by somebody else"):
        book.append(RUN, value(RUN, 3))
    assert book.begin(RUN, HEADER, COLUMNS) == 1
    book.append(RUN, value(RUN, 2))
    assert read(path).epochs == 2


def test_another_run_in_the_file_is_refused(book):
    book.begin(RUN, HEADER, COLUMNS)
    book.append(RUN, value(RUN, 1))
    before = book.path(RUN).read_bytes()
    other = {**HEADER, "run": {**HEADER["run"], "beta": 2.0}}
    with pytest.raises(ValueError, match=r"another run \(run.beta is null there and 2.0 here\); delete it"):
        book.begin(RUN, other, COLUMNS)
    with pytest.raises(ValueError, match="columns is"):
        book.begin(RUN, HEADER, [*COLUMNS, "fp"])
    with pytest.raises(ValueError, match="first column must be 'epoch'"):
        book.begin(RUN, HEADER, ["loss"])
    assert book.path(RUN).read_bytes() == before


def test_another_machine_may_go_on_for_longer(book):
    book.begin(RUN, HEADER, COLUMNS)
    book.append(RUN, value(RUN, 1))
    longer = {"run": {**HEADER["run"], "epochs": 9}, "machine": {"device": "gpu", "torch": "3"}}
    assert book.begin(RUN, longer, COLUMNS) == 1
    assert read(book.path(RUN)).header == longer
    book.append(RUN, value(RUN, 2))
    assert book.epochs(RUN) == 2


BAD_ROWS = ["2,0.5,1", "1,0.5", "1,0.5,1,1", "1,x,1", "1,0.5,1\n", "1,0.5,1\n2,0.5,1", "", "1, 0.5,1"]


@pytest.mark.parametrize("row", BAD_ROWS)
def test_a_row_that_could_not_be_read_is_not_written(book, row):
    book.begin(RUN, HEADER, COLUMNS)
    before = book.path(RUN).read_bytes()
    with pytest.raises(ValueError, match="Epoch 1 of digits/bce-r0 must be a line of 3 numbers"):
        book.append(RUN, row)
    with pytest.raises(ValueError, match="Epoch"):
        book.append(RUN, [value(RUN, 1), "nonsense"])
    assert book.path(RUN).read_bytes() == before


def test_truncate(book):
    book.begin(RUN, HEADER, COLUMNS)
    book.append(RUN, [value(RUN, e) for e in (1, 2, 3, 4, 5)])
    book.truncate(RUN, 5)
    book.truncate(RUN, 2)
    assert book.epochs(RUN) == 2
    book.append(RUN, value(RUN, 3))
    assert read(book.path(RUN)).columns["epoch"].tolist() == [1, 2, 3]
    with pytest.raises(ValueError, match="has 3 epochs and cannot go back to epoch 4; delete the checkpoint"):
        book.truncate(RUN, 4)
    book.truncate(RUN, 0)
    assert read(book.path(RUN)).header == HEADER
    assert book.epochs(RUN) == 0


def test_only_a_claimed_run_is_written(folder, book):
    with Ledger(folder, PROTOCOL) as other:
        for call in (
            lambda: other.begin(RUN, HEADER, COLUMNS),
            lambda: other.append(RUN, "1,2,3"),
            lambda: other.truncate(RUN, 0),
        ):
            with pytest.raises(NotHeldError, match=f"not claimed by this process .*held by .* {os.getpid()}"):
                call()
    with pytest.raises(NotHeldError, match="call begin first"):
        book.append(RUN, "1,2,3")


def test_what_was_not_written_is_not_there(folder):
    """A real limit on file sizes cuts a row in the middle, as a full disk does."""
    code = f"""
import resource, sys
from fbeta_reproduction.records.ledger import Ledger
book = Ledger({str(folder)!r}, {PROTOCOL!r}); book.claim(["a"]); book.begin("a", {HEADER!r}, {COLUMNS!r})
book.append("a", "1,2,3")
size = book.path("a").stat().st_size
resource.setrlimit(resource.RLIMIT_FSIZE, (size + 4, size + 4))
try:
    book.append("a", "2,2,3")
except OSError as error:
    print(error.filename, book.path("a").stat().st_size == size)
"""
    assert python(code).split() == [str(folder / "a.csv"), "True"]


def test_ids_leave_hidden_files_alone(folder, book):
    book.begin(RUN, HEADER, COLUMNS)
    for name in (".checkpoints/a.csv", "digits/.bce-r1.csv.12ab", "digits/.x.csv"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).touch()
    (folder / "a-b1.5-r0.csv").write_bytes(WHOLE)
    assert ledger.ids(folder) == ["a-b1.5-r0", RUN]


def test_a_folder_can_be_read_while_others_claim(folder, book):
    book.begin(RUN, HEADER, COLUMNS)
    stop = threading.Event()

    def churn():
        with Ledger(folder, PROTOCOL) as other:
            while not stop.is_set():
                other.release(other.claim([f"a/x-r{i}" for i in range(20)]))

    worker = threading.Thread(target=churn)
    worker.start()
    try:
        assert {tuple(ledger.ids(folder)) for _ in range(300)} == {(RUN,)}
    finally:
        stop.set()
        worker.join()


# Leases


SAME_PATH = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


def python(code):
    line = [sys.executable, "-c", code]
    return subprocess.run(line, capture_output=True, text=True, check=True, env=SAME_PATH).stdout


def start(code):
    """A process that ends at the latest when we do: then its standard input ends."""
    pipe = subprocess.PIPE
    return subprocess.Popen([sys.executable, "-c", code], stdin=pipe, stdout=pipe, text=True, env=SAME_PATH)


class Clock(DiskClock):
    """A clock that stands still until it is told to go on; who waits on it says until when."""

    def __init__(self):
        self.time, self.alarm = float(int(time.time())), 0.0  # whole seconds, which files keep exactly

    def now(self, folder):
        return self.time

    def stamp(self, path):
        os.utime(path, (self.time, self.time))

    def wait(self, stop, seconds):
        self.alarm = self.time + seconds
        until(lambda: stop.is_set() or self.time >= self.alarm)
        return stop.is_set()


def ledger_by(clock, folder):
    book = Ledger(folder, PROTOCOL)
    book.claims.clock = clock
    return book


def abandoned(folder, id, *, here=False, age=0.0, now=None):
    """A claim of a process that is not there any more, on this machine or on another."""
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    then = (now or time.time()) - age
    who = replace(Owner.here(int(then)), pid=gone.pid)
    who = who if here else replace(who, host="elsewhere", place="00000000")
    path = folder / ".claims" / id.replace("/", "~") / who.name
    path.parent.mkdir(parents=True)
    path.touch()
    os.utime(path, (then, then))
    return path


def test_a_claim_has_one_owner(folder):
    with Ledger(folder, PROTOCOL) as one, Ledger(folder, PROTOCOL) as two:
        assert one.claim(["a", "b/c"]) == ["a", "b/c"]
        assert one.claim(["a"]) == ["a"]
        assert two.claim(["a", "b/c", "b"]) == ["b"]
        assert one.beat() == []
        assert ledger.owners(folder, ["a", "b", "x"])["a"].pid == os.getpid()
        one.release(["a", "not mine"])
        assert two.claim(["a", "b/c"]) == ["a"]
    assert ledger.owners(folder, ["a", "b", "b/c"]) == {}


def test_claims_are_given_back_after_an_error(folder):
    def fail():
        with Ledger(folder, PROTOCOL) as book:
            book.claim([RUN])
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert Ledger(folder, PROTOCOL).claim([RUN]) == [RUN]


def test_a_forked_child_gives_nothing_back(folder):
    code = f"""
import os
from fbeta_reproduction.records.ledger import Ledger
with Ledger({str(folder)!r}, {PROTOCOL!r}) as book:
    book.claim(["a"])
    child = os.fork()
    if not child:
        book.__exit__(None, None, None)
        os._exit(0)
    os.waitpid(child, 0)
    print(book.beat(), Ledger({str(folder)!r}, {PROTOCOL!r}).claim(["a"]))
"""
    assert python(code).split() == ["[]", "[]"]


def test_stale_claims(folder):
    clock = Clock()
    book = ledger_by(clock, folder)
    abandoned(folder, "here", here=True)
    abandoned(folder, "young", age=600, now=clock.time)
    abandoned(folder, "old", age=601, now=clock.time)
    (folder / ".claims" / "empty").mkdir()
    assert book.claim(["here", "young", "old", "empty"]) == ["here", "old", "empty"]
    assert book.beat() == []
    (young,) = (folder / ".claims" / "young").iterdir()
    assert Owner.read(young.name).host == "elsewhere"


def test_only_a_living_claim_has_an_owner(folder):
    abandoned(folder, "young")
    abandoned(folder, "old", age=700)
    assert owner(folder / ".claims", "young").host == "elsewhere"
    assert owner(folder / ".claims", "old") is None


def test_the_loser_of_a_claim_learns_of_it_and_stops(folder):
    clock = Clock()
    sleeper, heir = ledger_by(clock, folder), ledger_by(clock, folder)
    sleeper.claim(["a", "b"])
    sleeper.begin("a", HEADER, COLUMNS)
    sleeper.append("a", value("a", 1))
    clock.time += 600
    assert heir.claim(["a"]) == []
    clock.time += 1
    assert heir.claim(["a"]) == ["a"]
    assert heir.begin("a", HEADER, COLUMNS) == 1
    with pytest.raises(NotHeldError, match="not claimed by this process"):
        sleeper.append("a", value("a", 2))
    assert sleeper.beat() == ["a"]
    assert sleeper.beat() == []
    sleeper.release()
    heir.append("a", value("a", 2))
    assert heir.beat() == []
    assert heir.epochs("a") == 2


def test_a_context_beats_by_itself(folder):
    clock = Clock()
    book, other = ledger_by(clock, folder), ledger_by(clock, folder)
    with book:
        book.claim(["a"])
        for _ in range(30):  # three times the patience
            until(lambda: clock.alarm > clock.time)
            assert clock.alarm - clock.time == 60
            clock.time = clock.alarm
        until(lambda: clock.alarm > clock.time)
        assert other.claim(["a"]) == []
    until(lambda: "heartbeat" not in [t.name for t in threading.enumerate()])
    assert other.claim(["a"]) == ["a"]


RACE = """
import sys
from pathlib import Path
from fbeta_reproduction.records.ledger import Ledger
folder, go = Path({folder!r}), Path({go!r})
book = Ledger(folder, {protocol!r})
print("ready", flush=True)
while not go.exists():
    pass
print(*book.claim({ids!r}), flush=True)
sys.stdin.read()
"""


@processes
@pytest.mark.parametrize("before", ["free", "stale", "dead", "empty"])
def test_of_racing_processes_exactly_one_wins(folder, tmp_path, before):
    ids = [f"set/run-r{i}" for i in range(60)]
    if before == "empty":
        for id in ids:
            (folder / ".claims" / id.replace("/", "~")).mkdir(parents=True)
    if before in ("stale", "dead"):
        path = abandoned(folder, ids[0], here=before == "dead", age=700)
        for id in ids[1:]:
            other = path.parent.with_name(id.replace("/", "~")) / path.name
            other.parent.mkdir()
            other.touch()
            os.utime(other, (path.stat().st_mtime,) * 2)
    go = tmp_path / "go"
    racers = [start(RACE.format(folder=str(folder), go=str(go), protocol=PROTOCOL, ids=ids)) for _ in range(5)]
    try:
        assert all(racer.stdout.readline() == "ready\n" for racer in racers)
        go.touch()
        won = [racer.stdout.readline().split() for racer in racers]
    finally:
        for racer in racers:
            racer.kill()
            racer.communicate()
    assert sorted(id for some in won for id in some) == sorted(ids)
    # All are dead now: their claims are free at once.
    assert Ledger(folder, PROTOCOL).claim(ids) == ids


WORKER = """
import random
from fbeta_reproduction.records.ledger import Ledger
from waiting import die_at
ids, epochs = {ids!r}, {epochs}
with Ledger({folder!r}, {protocol!r}) as book:
    if {steps}:
        die_at({steps})
    while left := [id for id in ids if not book.done(id, epochs)]:
        for id in book.claim(random.sample(left, min(3, len(left)))):
            for epoch in range(book.begin(id, {header!r}, {columns!r}) + 1, epochs + 1):
                book.append(id, f"{{epoch}},{{sum(id.encode())}},{{epoch * len(id)}}")
                if random.random() < 0.005:
                    book.truncate(id, epoch // 2)
                    break
            book.release([id])
print("end", flush=True)
"""


@processes
def test_killed_workers_leave_nothing_that_others_cannot_finish(folder):
    """Workers share a folder, go back to checkpoints and die at any work on files; then new ones come to the end."""
    ids, epochs, deaths, at_most = [f"set/run-r{i}" for i in range(12)], 400, 6, 700
    assert deaths * at_most < len(ids) * epochs  # a step writes one epoch at most, so that all of them die at work
    facts = {"folder": str(folder), "ids": ids, "epochs": epochs} | {"header": HEADER, "columns": COLUMNS}
    Ledger(folder, PROTOCOL)
    chance = random.Random(0)
    victims = [WORKER.format(steps=chance.randint(1, at_most), protocol=PROTOCOL, **facts) for _ in range(deaths)]
    workers = [start(code) for code in victims[:3]]
    try:
        for code in (*victims[3:], None, None, None):
            dead = workers.pop(0)
            dead.communicate()
            assert dead.returncode == -signal.SIGKILL
            workers += [start(code)] if code else []
        reached = sum(record.epochs for _, record in ledger.records(folder))
        workers = [start(WORKER.format(steps=0, protocol=PROTOCOL, **facts)) for _ in range(3)]
        assert [worker.communicate()[0].split() for worker in workers] == [["end"]] * 3
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()
    assert 0 < reached < len(ids) * epochs
    assert ledger.ids(folder) == sorted(ids)
    for id, record in ledger.records(folder):
        wanted = [[e, sum(id.encode()), e * len(id)] for e in range(1, epochs + 1)]
        np.testing.assert_array_equal(np.stack(list(record.columns.values()), axis=1), wanted)
    assert Ledger(folder, PROTOCOL).claim(ids) == ids


# Shards


@given(st.lists(st.text("ab/-r01", min_size=1), max_size=30), st.integers(1, 7))
def test_shards_are_parts_of_a_whole(ids, n):
    parts = [shard(ids, f"{i}/{n}") for i in range(1, n + 1)]
    assert sorted(x for part in parts for x in part) == sorted(ids)
    assert all(set(a).isdisjoint(b) for i, a in enumerate(parts) for b in parts[:i])
    sizes = [len(set(part)) for part in parts]
    assert max(sizes) - min(sizes) <= 1
    assert [set(shard(ids[::-1], f"{i}/{n}")) for i in range(1, n + 1)] == [set(part) for part in parts]


@pytest.mark.parametrize("part", ["", "1", "0/3", "4/3", "a/b", "-1/3", "1/0", "1/3/5", "1.0/2"])
def test_a_wrong_shard_says_how_it_is_written(part):
    with pytest.raises(ValueError, match="A shard is written 2/3"):
        shard(["a"], part)


# Checkpoints


def test_checkpoints_keep_every_bit(book):
    flat = torch.arange(12.0)
    tensors = {
        "flat": flat,
        "view": flat[3:7],
        "same": flat,
        "turned": flat.view(3, 4).T,
        "bf16": torch.tensor([1.5, float("nan")], dtype=torch.bfloat16),
        "step": torch.tensor(7),
        "flags": torch.tensor([True, False]),
        "empty": torch.empty(0, 3),
        "weight": torch.nn.Parameter(torch.ones(2)),
    }
    path = book.checkpoint_path("digits/stack-0")
    assert ".checkpoints" in path.parts
    meta = {"epoch": 4, "ids": [RUN], "β": 0.1}
    ledger.save(path, tensors, meta)
    ledger.save(path, tensors, meta)
    loaded, said = ledger.load(path)
    assert said == meta
    assert loaded.keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert loaded[name].dtype == tensor.dtype
        torch.testing.assert_close(loaded[name], tensor.detach(), rtol=0, atol=0, equal_nan=True)
    assert [x.name for x in path.parent.iterdir()] == [path.name]


@processes
def test_a_kill_at_any_step_of_saving_leaves_the_last_checkpoint_or_the_new_one(tmp_path):
    path = tmp_path / "a.safetensors"
    code = f"""
import itertools, os, signal, torch
from fbeta_reproduction.records.ledger import load, save
from waiting import die_at
torch.set_num_threads(1)
def save_epoch(epoch):
    save({str(path)!r}, {{"x": torch.full((1_000_000,), float(epoch))}}, {{"epoch": epoch}})
save_epoch(0)
for step in itertools.count(1):
    child = os.fork()
    if not child:
        die_at(step)
        save_epoch(step)
        os._exit(0)
    ended = os.waitpid(child, 0)[1]
    tensors, meta = load({str(path)!r})
    print(step, ended, meta["epoch"], (tensors["x"] == meta["epoch"]).all().item())
    if ended != signal.SIGKILL:
        break
"""
    *killed, last = [line.split() for line in python(code).splitlines()]
    assert all((ended, whole) == (str(int(signal.SIGKILL)), "True") for _, ended, _, whole in killed)
    new = [step == epoch for step, _, epoch, _ in killed]
    assert new == sorted(new)  # up to some step the old one is there, afterwards the new one
    assert set(new) == {False, True}
    assert {epoch for (_, _, epoch, _), is_new in zip(killed, new, strict=True) if not is_new} == {"0"}
    assert last == [last[0], "0", last[0], "True"]
    assert [x.name for x in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("place", [-1, -50, -2000])
def test_a_lost_bit_is_found(tmp_path, place):
    path = tmp_path / "a.safetensors"
    ledger.save(path, {"x": torch.ones(500), "n": torch.tensor(3)}, {"epoch": 1})
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(data)
    with pytest.raises(ValueError, match="its numbers are not those that were written"):
        ledger.load(path)


def test_a_full_disk_is_said_and_leaves_the_last_checkpoint(tmp_path):
    path = tmp_path / "a.safetensors"
    code = f"""
import resource, torch
from fbeta_reproduction.records.ledger import load, save
save({str(path)!r}, {{"x": torch.ones(9)}}, {{"epoch": 1}})
resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))
try:
    save({str(path)!r}, {{"x": torch.ones(9000)}}, {{"epoch": 2}})
except OSError as error:
    print(error.filename, bool(error.strerror), load({str(path)!r})[1]["epoch"])
"""
    assert python(code).split() == [str(path), "True", "1"]
    assert [x.name for x in tmp_path.iterdir()] == [path.name]


class Bomb:
    def __reduce__(self):
        return (pytest.fail, ("executed",))


def test_a_strangers_checkpoint_executes_nothing(tmp_path):
    path = tmp_path / "a.safetensors"
    ledger.save(path, {"x": torch.ones(9)}, {"epoch": 1})
    whole = path.read_bytes()
    torch.save({"x": torch.ones(9)}, tmp_path / "zip")
    for data in (b"", whole[:20], whole[:-1], pickle.dumps(Bomb()), (tmp_path / "zip").read_bytes()):
        path.write_bytes(data)
        with pytest.raises(ValueError, match="a.safetensors is not a checkpoint, or is damaged .* delete it"):
            ledger.load(path)
    with pytest.raises(FileNotFoundError, match="There is no checkpoint"):
        ledger.load(tmp_path / "b")


def test_a_file_of_others_without_our_meta_data_is_refused(tmp_path):
    from safetensors.torch import save_file

    save_file({"x": torch.ones(1)}, tmp_path / "a")
    with pytest.raises(ValueError, match="is not a checkpoint"):
        ledger.load(tmp_path / "a")


# Any history


@settings(max_examples=60)
@given(st.lists(st.tuples(st.sampled_from("abtk"), st.integers(0, 9)), max_size=20))
def test_a_file_is_what_was_written_to_it(tmp_path_factory, history):
    """Appends, kills that tear a line, resumes and returns to checkpoints, against a list."""
    book = Ledger(tmp_path_factory.mktemp("x") / "y", PROTOCOL)
    book.claim(["r"])
    book.begin("r", HEADER, COLUMNS)
    rows: list[str] = []
    for action, n in history:
        if action == "a":
            new = [f"{len(rows) + 1 + i},{n},{i}" for i in range(n)]
            book.append("r", new)
            rows += new
        elif action == "b":
            assert book.begin("r", HEADER, COLUMNS) == len(rows)
        elif action == "t":
            book.truncate("r", min(n, len(rows)))
            rows = rows[:n]
        elif rows:
            path = book.path("r")
            os.truncate(path, path.stat().st_size - 1 - n % len(rows[-1]))
            rows.pop()
            book.begin("r", HEADER, COLUMNS)
    table = np.stack(list(read(book.path("r")).columns.values()), axis=1)
    np.testing.assert_array_equal(table, np.array([r.split(",") for r in rows], float).reshape(-1, 3))


def test_a_removed_checkpoint_leaves_nothing_of_a_newer_one_that_a_kill_cut_off(tmp_path):
    path = tmp_path / "a.safetensors"
    save(path, {"x": torch.ones(1)}, {})
    (tmp_path / ".a.safetensors.part").mkdir()
    (tmp_path / ".a.safetensors.part" / "new").write_bytes(b"half")
    remove(path)
    assert not list(tmp_path.iterdir())
