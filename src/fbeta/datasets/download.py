"""One file over HTTP, by pooch: tried again where a connection breaks, limited in size, one sentence on failure."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

#: Seconds without a byte after which a connection is given up, and how often a broken download is begun.
TIMEOUT, TRIES = 30.0, 3
_CHUNK = 1 << 18
#: Called with what is being downloaded, the bytes so far and the bytes in all (0: unknown).
DownloadProgress = Callable[[str, int, int], None]


class DataError(RuntimeError):
    """Data that is missing, damaged or out of reach; the message says how to get it."""


def download(url: str, folder: Path, tell: DownloadProgress, limit: int) -> Path:
    """Download a file of at most `limit` bytes into `folder`, named once it is complete; DataError says why not."""
    pooch = need_pooch()
    import requests

    name, host = os.path.basename(urlsplit(url).path), urlsplit(url).netloc
    headers = {"User-Agent": "fbeta", "Accept-Encoding": "identity"}  # a .gz must arrive as it lies there
    bar = _Bar(name, tell, limit)
    ask = pooch.HTTPDownloader(bar, _CHUNK, headers=headers, timeout=TIMEOUT)

    def answered(url: str, file: str, store: object) -> None:
        bar.reset()
        try:
            ask(url, file, store)
        except requests.HTTPError as error:  # not a broken connection: another try would get the same answer
            answer = error.response
            assert answer is not None
            raise DataError(f"{host} answered {answer.status_code} {answer.reason} for {url}") from error

    store = pooch.Pooch(folder, "", {name: None}, {name: url}, retry_if_failed=TRIES - 1)
    try:
        return Path(store.fetch(name, downloader=answered))
    except (requests.ConnectionError, requests.Timeout) as error:
        raise DataError(f"cannot reach {host}: {_reason(error)}") from error
    except (requests.RequestException, ValueError) as error:
        raise DataError(f"the download from {host} failed {TRIES} times: {_reason(error)}") from error


def need_pooch() -> Any:
    """Import pooch, without its log: `DownloadProgress` is told what happens."""
    try:
        import pooch
    except ImportError as error:
        raise DataError("fetching data needs pooch: pip install 'fbeta[data]'.") from error
    pooch.get_logger().setLevel("WARNING")
    return pooch


class _Bar:
    """What pooch takes for a progress bar: reports how far a download is, and ends one that is too large."""

    total = 0  # set by pooch: what the server announced, or 0

    def __init__(self, what: str, tell: DownloadProgress, limit: int) -> None:
        self.what, self.tell, self.limit, self.done = what, tell, limit, 0

    def update(self, step: int) -> None:
        """Add a chunk; pooch counts the last one as a whole, too."""
        self.done += step
        total = max(self.total, 0)  # a server may say anything
        if max(total, self.done - _CHUNK) > self.limit:
            raise DataError(f"{self.what} is larger than the limit of {self.limit} bytes")
        if step > 0:
            self.tell(self.what, min(self.done, total or self.done), total)

    def reset(self) -> None:
        """Begin again."""
        self.done = 0

    def close(self) -> None:
        """Nothing is left open."""


def _reason(error: BaseException) -> str:
    """The first cause of an error, in its own words."""
    while error.__context__ is not None:
        error = error.__context__
    return getattr(error, "strerror", None) or str(error) or repr(error)
