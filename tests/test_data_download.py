"""Downloads against a real server that breaks off, is gone, or lies about the length of its files."""

import random

import pytest

from fbeta.data import DataError
from fbeta.datasets import download

CONTENT = random.Random(0).randbytes(3_000_000)
LIMIT = 10_000_000


@pytest.fixture
def server(own_cache, server):
    server.files["x.bin"] = CONTENT
    return server


def get(server, folder, tell=lambda *step: None, limit=LIMIT, name="x.bin"):
    return download.download(f"{server.url}{name}", folder, tell, limit)


def test_whole(server, tmp_path):
    steps = []
    file = get(server, tmp_path, lambda *step: steps.append(step))
    assert file == tmp_path / "x.bin"
    assert file.read_bytes() == CONTENT
    assert steps[-1] == ("x.bin", len(CONTENT), len(CONTENT))
    done = [done for _, done, _ in steps]
    assert done == sorted(done)
    assert len(set(done)) > 5
    assert len(server.seen) == 1


def test_begins_again_after_a_break(server, tmp_path):
    server.cuts = [1_000_000, 500_000]
    assert get(server, tmp_path, limit=len(CONTENT)).read_bytes() == CONTENT
    assert [span for _, span in server.seen] == [None] * 3


def test_gives_up_in_the_end_and_leaves_nothing(server, tmp_path):
    server.cuts = [1_000_000] * download.TRIES
    with pytest.raises(DataError, match=r"the download from 127.0.0.1:\d+ failed 3 times: .*[Ii]ncomplete"):
        get(server, tmp_path)
    assert len(server.seen) == download.TRIES
    assert list(tmp_path.iterdir()) == []
    assert get(server, tmp_path).read_bytes() == CONTENT


def test_answers_that_are_no_file_are_not_asked_for_again(server, tmp_path):
    with pytest.raises(DataError, match=r"127.0.0.1:\d+ answered 404 Not Found for http://.*/y.bin"):
        get(server, tmp_path, name="y.bin")
    assert len(server.seen) == 1
    assert list(tmp_path.iterdir()) == []


def test_offline(server, tmp_path):
    server.server_close()
    with pytest.raises(DataError, match="cannot reach 127.0.0.1:.*: Connection refused"):
        get(server, tmp_path)


@pytest.mark.parametrize("length", [None, ""])
def test_a_file_that_is_too_long_is_ended(server, tmp_path, length):
    server.length = length
    with pytest.raises(DataError, match="x.bin is larger than the limit of 1000000 bytes"):
        get(server, tmp_path, limit=1_000_000)
    assert len(server.seen) == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("length", ["", "-5"])
def test_a_server_that_says_no_length(server, tmp_path, length):
    steps, server.length = [], length
    assert get(server, tmp_path, lambda *step: steps.append(step)).read_bytes() == CONTENT
    assert {total for _, _, total in steps} == {0}


@pytest.mark.parametrize("length", ["many", "3000001", "1e9"])
def test_a_length_that_is_wrong(server, tmp_path, length):
    server.length = length
    with pytest.raises(DataError, match="the download from .* failed 3 times|cannot reach"):
        get(server, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_without_pooch(monkeypatch, server, tmp_path):
    monkeypatch.setitem(__import__("sys").modules, "pooch", None)
    with pytest.raises(DataError, match=r"fetching data needs pooch: pip install 'fbeta\[data\]'"):
        get(server, tmp_path)
