"""`data fetch` from a hostile server on this machine: the true files, or one sentence, and nothing half.

Its answers are those of `range_server`, in any order, and lines, lengths and bodies changed at random.
"""

import gzip
import os
from types import SimpleNamespace

import pytest

from attack.commands import PATIENCE, run  # noqa: F401
from attack.mutants import of_bytes
from made_up_set import CONTENT, NAME, MadeUp
from range_server import answer, hostile, serve, slow

CODES = [100, 200, 200, 200, 206, 206, 204, 301, 302, 304, 400, 404, 416, 429, 500, 503, 999, 0, -1, "x"]
VALUES = [
    "",
    "0",
    "-1",
    "1",
    "60000",
    "99999999999",
    "many",
    "bytes 0-",
    "bytes 16384-59999/60000",
    "gzip",
    "chunked",
    "/a.bin.gz",
    "é",
    "\t",
]
NAMES = [
    "Content-Length",
    "Content-Range",
    "Content-Encoding",
    "Transfer-Encoding",
    "Location",
    "Connection",
    "ETag",
    "",
    "X",
]


def prepare():
    """Nothing: everything is made in the process that fetches."""
    return


def attempt(made, luck, folder):
    """One fetch, of two files."""
    ended = run("data", "fetch", NAME, "--source", "upstream", folder=folder, before=lambda: serve_there(luck, folder))
    verdict = ended.judged()
    kept = folder / "cache" / NAME
    there = {name: (kept / name).read_bytes() for name in (os.listdir(kept) if kept.exists() else ())}
    whole = {name: data for name, data in there.items() if not name.startswith(".")}
    assert all(data == CONTENT[name] for name, data in whole.items()), "a file with another content"
    assert len(whole) == len(there), f"{sorted(there)} are left"
    assert verdict != "done" or whole == CONTENT
    return verdict


def serve_there(luck, folder):
    """In the process that fetches: a server, the set that it has, and little patience."""
    os.environ["FBETA_DATA"] = str(folder / "cache")
    patch = pytest.MonkeyPatch()
    server = serve().__enter__()
    MadeUp(patch, server, folder / "nowhere")
    patch.setattr("pooch.core.time", SimpleNamespace(sleep=lambda seconds: None))
    patch.setattr("fbeta.datasets.download.TIMEOUT", 1.0)
    packed = server.files["a.bin.gz"]
    known = [*(hostile(packed) | slow(packed)).values()]
    for _ in range(luck.choice([1, 1, 2, 3, 5])):
        server.answers += luck.choice(known) if luck.random() < 0.4 else [made_up(packed, luck)]
    server.cuts = [luck.randrange(len(packed)) for _ in range(luck.choice([0, 0, 1, 4]))]
    server.ranges = luck.random() < 0.8


def made_up(content, luck):
    """An answer of random lines."""
    version = luck.choice(["HTTP/1.1", "HTTP/1.0", "HTTP/9", "http/1.1", ""])
    lines = [f"{version} {luck.choice(CODES)} {luck.choice(['OK', ''])}"]
    for _ in range(luck.choice([0, 1, 2, 5])):
        lines.append(f"{luck.choice(NAMES)}: {luck.choice([*VALUES, str(len(content))])}")
    body = luck.choice([content, content[: luck.randrange(len(content))], b"", bytes(99), gzip.compress(bytes(10**6))])
    if luck.random() < 0.3 and body:
        body = of_bytes(body, luck)
    return answer(*lines, body=body, endless=luck.random() < 0.1 and bool(body))
