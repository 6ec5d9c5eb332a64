"""Downloads against a real server that breaks off, is gone, or lies about the length of its files."""

import random
import re

import pytest

from fbeta import data
from fbeta.data import DataError
from fbeta.datasets import download
from made_up_set import CONTENT as CONTENTS
from made_up_set import NAME, MadeUp
from range_server import answer, hostile, slow
from tiny_data import cli, on_disk

CONTENT = random.Random(0).randbytes(3_000_000)
LIMIT = 10_000_000
#: What is said of some attacks.
SAID = {
    "an endless body": "a.bin.gz is larger than the limit of",
    "a length that is too small": "a.bin is damaged",
    "a length that is too large": "failed 3 times",
    "a length that is larger than the limit": "a.bin.gz is larger than the limit of",
    "a length below zero": "gives a.bin.gz the length '-5', which no file has",
    "a huge length": "a.bin.gz is larger than the limit of",
    "a length of 5,000 digits": "gives a.bin.gz the length '9{20}', which no file has",
    "a length in words": "the length 'many'",
    "chunks of a length below zero": "the length 'chunked'",
    "a small file that unpacks to a large one": "a.bin has the wrong content: more than its 60000 bytes",
    "a redirect in a circle": "redirects to an address that cannot be used: Exceeded 30 redirects",
    "a redirect to a file": "redirects to an address that cannot be used: .*'file:///etc/passwd'",
    "a part that nobody asked for": "answered 206",
    "a rest from another place": "failed 3 times",
    "no rest": "failed 3 times",
    "another rest": "wrong content|is damaged",
    "an endless rest": "a.bin.gz is larger than the limit of",
    "a byte at a time": "failed 3 times: less than 16384 bytes came in 0.1 seconds",
    "a header at a time": "failed 3 times: less than 16384 bytes came in 0.1 seconds",
}


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


@pytest.mark.parametrize("ranges", [True, False])
def test_goes_on_after_a_break(server, tmp_path, ranges):
    """From the byte where it stopped, or from the first where the server knows no ranges."""
    steps, server.cuts, server.ranges = [], [1 << 20, 1 << 19], ranges
    assert get(server, tmp_path, lambda *step: steps.append(step), len(CONTENT)).read_bytes() == CONTENT
    places = ["bytes=1048576-", "bytes=1572864-" if ranges else "bytes=524288-"]
    assert [span for _, span in server.seen] == [None, *places]
    assert {total for _, _, total in steps} == {len(CONTENT)}
    assert list(tmp_path.iterdir()) == [tmp_path / "x.bin"]


@pytest.mark.parametrize(
    "rest", [("HTTP/1.0 416 No",), ("HTTP/1.0 206 Part", "Content-Range: bytes 7-"), ("HTTP/1.0 500 No",)]
)
def test_begins_again_where_the_rest_is_refused(server, tmp_path, rest):
    server.cuts = [1 << 20]
    server.answers = [lambda handler: handler.send_file(None), answer(*rest, body=b"other")]
    assert get(server, tmp_path).read_bytes() == CONTENT
    assert [span for _, span in server.seen] == [None, "bytes=1048576-", None]


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


def test_a_server_that_says_no_length(server, tmp_path):
    steps, server.length = [], ""
    assert get(server, tmp_path, lambda *step: steps.append(step)).read_bytes() == CONTENT
    assert {total for _, _, total in steps} == {0}


def test_a_limit_is_kept_to_the_byte(server, tmp_path):
    assert get(server, tmp_path, limit=len(CONTENT)).read_bytes() == CONTENT
    sizes, server.length = [], ""
    (tmp_path / "x.bin").unlink()
    with pytest.raises(DataError, match="larger than the limit"):
        get(server, tmp_path, lambda *step: sizes.append(step[1]), limit=len(CONTENT) - 1)
    assert max(sizes) < len(CONTENT)


@pytest.mark.parametrize("attack", [*hostile(b""), *slow(b"")])
def test_a_hostile_server(monkeypatch, server, tmp_path, attack):
    """One sentence, nothing that a later download could trip over, and an honest server serves."""
    MadeUp(monkeypatch, server, tmp_path / "folder")
    packed = server.files["a.bin.gz"]
    server.answers = (hostile(packed) | slow(packed))[attack]
    with monkeypatch.context() as patch:
        if attack in slow(packed):
            patch.setattr(download, "TIMEOUT", 0.1)
        result = cli("fetch", NAME, "--source", "upstream")
    assert (result.exit_code, result.stdout) == (2, "")
    said = " ".join(result.stderr.split())
    assert re.fullmatch(
        rf"fbeta: cannot fetch {NAME} from upstream \(.*({SAID.get(attack, '')}).*\): go online .* again\.", said
    ), said
    assert "Traceback" not in said
    assert list((data.root() / NAME).iterdir()) == []
    server.answers.clear()
    assert on_disk(data.fetch(NAME, "upstream")) == CONTENTS


def test_without_pooch(monkeypatch, server, tmp_path):
    monkeypatch.setitem(__import__("sys").modules, "pooch", None)
    with pytest.raises(DataError, match=r"fetching data needs pooch: pip install 'fbeta\[data\]'"):
        get(server, tmp_path)
