"""Downloads that go on where they stopped: on a slow line the CIFAR-10 archive takes half an hour."""

from __future__ import annotations

import http.client
import os
import re
import ssl
import time
import urllib.error
import urllib.request
from pathlib import Path
from urllib.parse import urlsplit

from fbeta.datasets.dataset import DataError, Progress

#: Seconds without a byte after which a connection is given up, and between two tries.
TIMEOUT, PAUSE = 30.0, 1.0
#: Broken connections in a row that brought nothing new.
TRIES = 3
_CHUNK = 1 << 18


def download(url: str, part: Path, tell: Progress) -> None:
    """Download `url` into `part`, from where an earlier download stopped if the server still has that file.

    Whatever stops it leaves the bytes so far in `part`, and beside it the server's name for that version of the
    file (ETag or date), without which nothing is resumed.
    """
    idle = 0
    while True:
        before = _length(part)
        try:
            if _go_on(url, part, tell):
                return
            reason = "the connection closed early"
        except urllib.error.HTTPError as error:
            error.close()
            raise DataError(f"{_host(url)} answered {error.code} {error.reason} for {url}") from error
        except urllib.error.URLError as error:
            raise DataError(f"cannot reach {_host(url)}: {_words(error.reason)}") from error
        except (http.client.HTTPException, ConnectionError, TimeoutError, ssl.SSLError) as error:
            reason = _words(error)
        idle = 0 if _length(part) > before else idle + 1
        if idle >= TRIES:
            raise DataError(
                f"the download from {_host(url)} broke after {_length(part)} bytes: {reason}; "
                + ("the same command goes on from there" if _known(part) else "this server cannot resume it")
            )
        time.sleep(PAUSE)


def _go_on(url: str, part: Path, tell: Progress) -> bool:
    """One connection; whether the file is complete now."""
    tag = part.with_suffix(".tag")
    known = _known(part)
    have = _length(part) if known else 0
    headers = {"User-Agent": "fbeta", "Accept-Encoding": "identity"}
    if have:
        headers |= {"Range": f"bytes={have}-", "If-Range": known}
    try:
        answer = urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=TIMEOUT)
    except urllib.error.HTTPError as error:
        if error.code != 416 or not have:
            raise
        error.close()
        if error.headers.get("Content-Range", "") == f"bytes */{have}":
            return True  # it was complete; the work that comes after it was interrupted
        _forget(part, tag)
        return False
    with answer:
        start = _start(answer) if answer.status == 206 else 0
        if start not in (0, have):
            _forget(part, tag)
            return False
        length = answer.headers.get("Content-Length")
        total = start + int(length) if length else 0
        if start == 0:
            _forget(part, tag)
            tag.write_text(_version(answer))
        with open(part, "ab") as out:
            done = start
            while chunk := answer.read(_CHUNK):
                out.write(chunk)
                done += len(chunk)
                tell(os.path.basename(urlsplit(url).path), done, total)
    return done == total or not total


def _version(answer: http.client.HTTPResponse) -> str:
    """What `If-Range` takes: a strong ETag, or the date of the last change; empty if the server gives neither."""
    etag: str = answer.headers.get("ETag", "")
    return etag if etag and not etag.startswith("W/") else answer.headers.get("Last-Modified", "")


def _start(answer: http.client.HTTPResponse) -> int:
    found = re.match(r"bytes (\d+)-", answer.headers.get("Content-Range", ""))
    return int(found[1]) if found else -1


def _known(part: Path) -> str:
    tag = part.with_suffix(".tag")
    return tag.read_text() if tag.exists() else ""


def _forget(part: Path, tag: Path) -> None:
    tag.unlink(missing_ok=True)
    part.unlink(missing_ok=True)


def _length(part: Path) -> int:
    return part.stat().st_size if part.exists() else 0


def _host(url: str) -> str:
    return urlsplit(url).netloc


def _words(error: object) -> str:
    return (error.strerror if isinstance(error, OSError) and error.strerror else str(error)) or repr(error)
