"""A real HTTP server for downloads: it breaks off, stalls and lies as it is told."""

import contextlib
import gzip
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class RangeServer(ThreadingHTTPServer):
    """Serves `files` (path to bytes). `cuts` are the bytes after which the next answers break off.

    `answers` are what it says to the next questions instead: each a function of the handler, which may write anything.
    """

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.files = {}
        self.cuts = []
        self.answers = []
        self.length = None  # what it says instead of the true Content-Length; empty: nothing
        self.ranges = True  # whether it gives a part of a file that is asked for
        self.flow = threading.Event()  # not set: every answer stops in its middle and waits
        self.flow.set()
        self.over = threading.Event()  # set when the test is over: endless answers end
        self.seen = []  # (path, Range header or None)

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}/"


class Handler(BaseHTTPRequestHandler):
    server: RangeServer

    def do_GET(self):
        server, asked = self.server, self.headers.get("Range")
        server.seen.append((self.path[1:], asked))
        with contextlib.suppress(OSError):  # the other side may be gone
            if server.answers:
                server.answers.pop(0)(self)
            else:
                self.send_file(int(re.fullmatch(r"bytes=(\d+)-", asked)[1]) if asked and server.ranges else None)

    def send_file(self, start):
        server, content = self.server, self.server.files.get(self.path[1:])
        if content is None:
            self.send_error(404)
            return
        if start is not None and start >= len(content):
            self.send_error(416)
            return
        self.send_response(200 if start is None else 206)
        if start is not None:
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
            content = content[start:]
        length = str(len(content)) if server.length is None else server.length
        if length:
            self.send_header("Content-Length", length)
        self.end_headers()
        cut = server.cuts.pop(0) if server.cuts else len(content)
        self.wfile.write(content[: cut // 2])
        self.wfile.flush()
        server.flow.wait()
        self.wfile.write(content[cut // 2 : cut])

    def log_message(self, *args):
        pass


def answer(*lines, body=b"", drip=None, endless=False):
    """An answer of these lines and this body: repeated without end, or with `drip` seconds after each byte."""

    def give(handler):
        whole = "".join(f"{line}\r\n" for line in lines).encode() + b"\r\n" + body
        for byte in whole if drip else ():
            handler.wfile.write(bytes([byte]))
            handler.server.over.wait(drip)
        handler.wfile.write(b"" if drip else whole)
        while endless and not handler.server.over.is_set():
            handler.wfile.write(body)

    return give


def hostile(content):
    """What a server may say to whoever wants this content, by name: the answers to one question after the other."""
    ok, first = "HTTP/1.0 200 OK", content[: 1 << 14]  # a chunk: less is not kept
    span = f"Content-Range: bytes {len(first)}-{len(content) - 1}/{len(content)}"
    cut = answer(ok, f"Content-Length: {len(content)}", body=first)
    bomb = gzip.compress(bytes(10_000_000))

    def length(said, body=content):
        return [answer(ok, f"Content-Length: {said}", body=body)] * 3

    def sent_on(place, **body):
        return [answer("HTTP/1.1 302 Found", f"Location: {place}", **body)] * 40

    return {
        "an endless body": [answer(ok, body=bytes(100_000), endless=True)],
        "an endless body of a stated length": [answer(ok, "Content-Length: 99", body=bytes(100_000), endless=True)] * 3,
        "a length that is too small": length(len(first)),
        "a length that is too large": length(len(content) + 1),
        "a length that is larger than the limit": length(10**8),
        "a length below zero": length(-5),
        "a huge length": length(10**30),
        "a length of 5,000 digits": length("9" * 5000),
        "a length in words": length("many"),
        "a length with a sign": length(f"+{len(content)}"),
        "a length said twice": [answer(ok, "Content-Length: 9", "Content-Length: 9", body=content)] * 3,
        "no length, and a part of it": [answer(ok, body=first)] * 3,
        "chunks of a length below zero": [
            answer("HTTP/1.1 200 OK", "Transfer-Encoding: chunked", body=b"-1\r\n" + bytes(100_000), endless=True)
        ],
        "content packed once more": [answer(ok, "Content-Encoding: gzip", body=gzip.compress(bomb))] * 3,
        "a small file that unpacks to a large one": [answer(ok, body=bomb)] * 3,
        "a redirect in a circle": sent_on("/a.bin.gz"),
        "a redirect with an endless body": sent_on("/elsewhere", body=bytes(100_000), endless=True),
        "a redirect to a file": sent_on("file:///etc/passwd"),
        "a redirect to another protocol": sent_on("ftp://127.0.0.1/a.bin.gz"),
        "a redirect to data": sent_on("data:,a"),
        "a redirect to no address": sent_on("http://["),
        "a redirect to no host": sent_on("http://"),
        "a part that nobody asked for": [answer("HTTP/1.0 206 Partial Content", span, body=first)] * 3,
        "no content": [answer("HTTP/1.0 204 No Content")] * 3,
        "a server's own fault": [answer("HTTP/1.0 503 Service Unavailable")] * 3,
        "no HTTP": [answer("SSH-2.0-OpenSSH_9.2")] * 3,
        "nothing at all": [lambda handler: None] * 3,
        "headers without end": [answer(ok, *["X: y"] * 1000)] * 3,
        "a header without end": [answer(ok, "X: " + "y" * 100_000)] * 3,
        "a rest from another place": [
            cut,
            answer("HTTP/1.0 206 Partial Content", "Content-Range: bytes 9-", body=first),
        ]
        * 2,
        "a rest from nowhere": [cut, answer("HTTP/1.0 206 Partial Content", body=first)] * 2,
        "no rest": [cut, answer("HTTP/1.0 416 Range Not Satisfiable")] * 2,
        "another rest": [cut, answer("HTTP/1.0 206 Partial Content", span, body=bytes(len(content) - len(first)))] * 2,
        "an endless rest": [cut, answer("HTTP/1.0 206 Partial Content", span, body=bytes(100_000), endless=True)] * 2,
    }


def slow(content):
    """Answers that take forever."""
    ok = "HTTP/1.0 200 OK"
    return {
        "silence": [lambda handler: handler.server.over.wait()] * 3,
        "silence after the headers": [lambda h: (answer(ok)(h), h.server.over.wait())] * 3,
        "a byte at a time": [lambda h: (answer(ok)(h), answer(body=content, drip=0.01)(h))] * 3,
        "a header at a time": [answer(ok, "X: " + content.hex(), drip=0.01)] * 3,
        "an interim answer without end": [
            answer("HTTP/1.1 100 Continue", body=b"HTTP/1.1 100 Continue\r\n\r\n", endless=True)
        ]
        * 3,
    }


@contextlib.contextmanager
def serve():
    server = RangeServer()
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.over.set()
        server.flow.set()
        server.shutdown()
        thread.join()
        server.server_close()
