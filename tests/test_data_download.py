"""Downloads against a real server that breaks off, changes its files and forgets what it can do."""

import random
import signal
import subprocess
import sys
import time

import pytest

from fbeta.data import DataError
from fbeta.datasets import download

CONTENT = random.Random(0).randbytes(3_000_000)


@pytest.fixture
def server(own_cache, server):
    server.files["x.bin"] = CONTENT
    return server


def quiet(what, done, total):
    pass


def spans(server):
    return [span for _, span in server.seen]


def get(server, part, tell=quiet):
    download.download(f"{server.url}x.bin", part, tell)


def test_whole(server, tmp_path):
    steps = []
    get(server, tmp_path / "x.part", lambda *step: steps.append(step))
    assert (tmp_path / "x.part").read_bytes() == CONTENT
    assert steps[-1] == ("x.bin", len(CONTENT), len(CONTENT))
    assert [done for _, done, _ in steps] == sorted(done for _, done, _ in steps)
    assert spans(server) == [None]


def test_goes_on_by_itself_after_a_break(server, tmp_path):
    server.cuts = [1_000_000, 500_000]
    get(server, tmp_path / "x.part")
    assert (tmp_path / "x.part").read_bytes() == CONTENT
    assert spans(server) == [None, "bytes=1000000-", "bytes=1500000-"]


def test_gives_up_and_resumes_in_the_next_run(server, tmp_path):
    server.cuts = [1_000_000] + [0] * download.TRIES
    with pytest.raises(
        DataError, match=r"broke after 1000000 bytes: .*; the same command goes on from there"
    ):
        get(server, tmp_path / "x.part")
    server.seen.clear()
    get(server, tmp_path / "x.part")
    assert spans(server) == ["bytes=1000000-"]
    assert (tmp_path / "x.part").read_bytes() == CONTENT


def test_resumes_after_a_kill(server, tmp_path):
    part = tmp_path / "x.part"
    server.cuts, server.stall = [1_000_000], type(server.stall)()
    code = (
        "import sys, pathlib; from fbeta.datasets.download import download;"
        "download(sys.argv[1], pathlib.Path(sys.argv[2]), lambda *step: None)"
    )
    with subprocess.Popen([sys.executable, "-c", code, f"{server.url}x.bin", str(part)]) as process:
        deadline = time.monotonic() + 30
        while not (part.exists() and part.stat().st_size > 100_000) and time.monotonic() < deadline:
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
    have = part.stat().st_size
    assert 100_000 < have < len(CONTENT)
    server.stall.set()
    get(server, part)
    assert part.read_bytes() == CONTENT
    assert spans(server)[-1] == f"bytes={have}-"


def test_a_file_that_changed_starts_again(server, tmp_path):
    part = tmp_path / "x.part"
    server.cuts = [1_000_000] + [0] * download.TRIES
    with pytest.raises(DataError):
        get(server, part)
    server.etag, server.files["x.bin"] = '"2"', CONTENT[::-1]
    get(server, part)
    assert part.read_bytes() == CONTENT[::-1]


@pytest.mark.parametrize("etag", ["", 'W/"weak"'])
def test_without_a_version_nothing_is_resumed(server, tmp_path, etag):
    server.etag, server.cuts = etag, [1_000_000] + [0] * download.TRIES
    with pytest.raises(DataError, match="cannot resume"):
        get(server, tmp_path / "x.part")
    get(server, tmp_path / "x.part")
    assert set(spans(server)) == {None}
    assert (tmp_path / "x.part").read_bytes() == CONTENT


def test_a_part_without_its_version_is_not_believed(server, tmp_path):
    (tmp_path / "x.part").write_bytes(b"\0" * 1000)
    get(server, tmp_path / "x.part")
    assert (tmp_path / "x.part").read_bytes() == CONTENT


@pytest.mark.parametrize("fault", ["ignores ranges", "starts elsewhere"])
def test_servers_that_cannot_resume(server, tmp_path, fault):
    server.cuts = [1_000_000]
    server.ranges, server.wrong_start = fault != "ignores ranges", fault == "starts elsewhere"
    get(server, tmp_path / "x.part")
    assert (tmp_path / "x.part").read_bytes() == CONTENT


def test_a_complete_part_is_not_downloaded_again(server, tmp_path):
    get(server, tmp_path / "x.part")
    steps = []
    get(server, tmp_path / "x.part", lambda *step: steps.append(step))
    assert steps == []
    assert spans(server) == [None, f"bytes={len(CONTENT)}-"]


def test_a_part_that_is_too_long_starts_again(server, tmp_path):
    get(server, tmp_path / "x.part")
    with open(tmp_path / "x.part", "ab") as out:
        out.write(b"more")
    get(server, tmp_path / "x.part")
    assert (tmp_path / "x.part").read_bytes() == CONTENT


def test_answers_that_are_no_file(server, tmp_path):
    with pytest.raises(DataError, match=r"127.0.0.1:\d+ answered 404 Not Found for http://.*/y.bin"):
        download.download(f"{server.url}y.bin", tmp_path / "y.part", quiet)
    assert list(tmp_path.iterdir()) == []


def test_offline(server, tmp_path):
    url = server.url
    server.server_close()
    with pytest.raises(DataError, match="cannot reach 127.0.0.1:.*: Connection refused"):
        download.download(f"{url}x.bin", tmp_path / "x.part", quiet)
