"""A real HTTP server for downloads: it resumes, breaks off, forgets and lies as it is told."""

import contextlib
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class RangeServer(ThreadingHTTPServer):
    """Serves `files` (path to bytes). `cuts` are the bytes after which the next answers break off."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.files = {}
        self.cuts = []
        self.etag = '"1"'
        self.ranges = True
        self.wrong_start = False
        self.stall = threading.Event()  # set: nobody waits
        self.stall.set()
        self.seen = []  # (path, Range header or None)

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}/"


class Handler(BaseHTTPRequestHandler):
    server: RangeServer

    def do_GET(self):
        server, span = self.server, self.headers.get("Range")
        server.seen.append((self.path[1:], span))
        content = server.files.get(self.path[1:])
        if content is None:
            self.send_error(404)
            return
        start = 0
        if span and server.ranges and self.headers.get("If-Range") == server.etag:
            start = int(span.removeprefix("bytes=").removesuffix("-"))
            if start >= len(content):
                self.send_response(416)
                self.send_header("Content-Range", f"bytes */{len(content)}")
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            start = 0 if server.wrong_start else start
            self.send_response(206)
            first = start + 1 if server.wrong_start else start
            self.send_header("Content-Range", f"bytes {first}-{len(content) - 1}/{len(content)}")
        else:
            self.send_response(200)
        self.send_header("Content-Length", str(len(content) - start))
        if server.etag:
            self.send_header("ETag", server.etag)
        self.end_headers()
        cut = server.cuts.pop(0) if server.cuts else len(content)
        with contextlib.suppress(OSError):  # the other side may be gone
            self.wfile.write(content[start : start + cut])
            self.wfile.flush()
            server.stall.wait(30)

    def log_message(self, *args):
        pass


@contextlib.contextmanager
def serve():
    server = RangeServer()
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.stall.set()
        server.shutdown()
        thread.join()
        server.server_close()
