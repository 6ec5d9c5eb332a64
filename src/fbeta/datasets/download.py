"""One file over HTTP: taken up where a connection breaks, limited in size and in patience, one sentence on failure."""

import contextlib
import io
import os
import queue
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

#: Seconds in which the next `_CHUNK` of bytes must come, and how often a broken download is asked for.
TIMEOUT, TRIES = 30.0, 3
_CHUNK = 1 << 14
#: Called with what is being downloaded, the bytes so far and the bytes in all (0: unknown).
DownloadProgress = Callable[[str, int, int], None]


class DataError(RuntimeError):
    """Data that is missing, damaged or out of reach; the message says how to get it."""


def download(url: str, folder: Path, tell: DownloadProgress, limit: int) -> Path:
    """Download a file of at most `limit` bytes into `folder`, named once it is complete; DataError says why not."""
    pooch = need_pooch()
    import requests

    name, host = os.path.basename(urlsplit(url).path), urlsplit(url).netloc
    part = folder / f"{name}.part"

    def get(url: str, file: str, store: object) -> None:
        done = part.stat().st_size if part.exists() else 0
        chunks = _watched(_asked(url, done))
        answer = next(chunks)
        code, said = answer.status_code, answer.headers
        more = code == 206 and done > 0 and said.get("Content-Range", "").startswith(f"bytes {done}-")
        if done and not more and code != 200:
            part.unlink()  # the next try begins anew
            raise requests.RequestException(f"asked for the rest of {name}, it answered {code} {answer.reason}")
        if not more and code != 200:  # not a broken connection: another try would get the same answer
            raise DataError(f"{host} answered {code} {answer.reason} for {url}")
        # Of a chunk with a negative length http.client reads all there is, so chunks are refused.
        length = said.get("Transfer-Encoding") or said.get("Content-Length", "0")
        if not length.isdecimal() or len(length) > 99:
            raise DataError(f"{host} gives {name} the length {length[:20]!r}, which no file has")
        done = done if more else 0
        total = done + int(length) if int(length) else 0
        too_large = DataError(f"{name} is larger than the limit of {limit} bytes")
        if total > limit:
            raise too_large
        with open(part, "ab" if more else "wb") as out:
            for chunk in chunks:
                done += len(chunk)
                if done > limit:
                    raise too_large
                out.write(chunk)
                tell(name, done, total)
        os.replace(part, file)

    store = pooch.Pooch(folder, "", {name: None}, {name: url}, retry_if_failed=TRIES - 1)
    try:
        return Path(store.fetch(name, downloader=get))
    except (requests.ConnectionError, requests.Timeout) as error:
        raise DataError(f"cannot reach {host}: {_reason(error)}") from error
    except (requests.RequestException, ValueError) as error:
        raise DataError(f"the download from {host} failed {TRIES} times: {_reason(error)}") from error
    finally:
        part.unlink(missing_ok=True)


def need_pooch() -> Any:
    """Import pooch, without its log: `DownloadProgress` is told what happens."""
    try:
        import pooch
    except ImportError as error:
        raise DataError("fetching data needs pooch: pip install 'fbeta[data]'.") from error
    pooch.get_logger().setLevel("WARNING")
    return pooch


def _asked(url: str, start: int) -> Iterator[Any]:
    """The answer of a server that is asked for a file from a byte on, then the content, as it lies there."""
    import requests

    def bare(answer: requests.Response, **options: Any) -> None:
        answer.raw.headers.discard("Content-Encoding")  # nothing is unpacked on the way
        if answer.is_redirect:  # requests would read its body into memory, however long
            answer.raw.close()
            answer.raw = io.BytesIO()

    headers = {"User-Agent": "fbeta", "Accept-Encoding": "identity"}
    if start:
        headers["Range"] = f"bytes={start}-"
    try:
        answer = requests.get(url, headers=headers, timeout=TIMEOUT, stream=True, hooks={"response": bare})
    except (requests.TooManyRedirects, requests.exceptions.InvalidSchema, requests.exceptions.InvalidURL) as error:
        raise DataError(f"{urlsplit(url).netloc} redirects to an address that cannot be used: {error}") from error
    with answer:
        yield answer
        yield from answer.iter_content(_CHUNK)


def _watched(items: Iterator[Any]) -> Iterator[Any]:
    """The same items, made in a thread: a time-out of requests begins anew with every byte, and this one does not."""
    import requests

    made: queue.Queue[Any] = queue.Queue(1)
    ended = threading.Event()

    def make() -> None:
        try:
            for item in items:
                made.put(item)
                if ended.is_set():
                    return
            made.put(None)
        except Exception as error:
            made.put(error)

    threading.Thread(target=make, daemon=True).start()
    try:
        while (item := made.get(timeout=TIMEOUT)) is not None:
            if isinstance(item, Exception):
                raise item
            yield item
    except queue.Empty:
        raise requests.RequestException(f"less than {_CHUNK} bytes came in {TIMEOUT:g} seconds") from None
    finally:
        ended.set()
        with contextlib.suppress(queue.Empty):
            made.get_nowait()  # it may wait for room


def _reason(error: BaseException) -> str:
    """The first cause of an error, in its own words."""
    while cause := error.__cause__ or (None if error.__suppress_context__ else error.__context__):
        error = cause
    return getattr(error, "strerror", None) or str(error).strip() or repr(error)
