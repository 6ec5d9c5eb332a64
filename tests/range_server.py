"""A real HTTP server for downloads: it breaks off, stalls and lies about lengths as it is told."""

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
        self.length = None  # what it says instead of the true Content-Length; empty: nothing
        self.flow = threading.Event()  # not set: every answer stops in its middle and waits
        self.flow.set()
        self.seen = []  # (path, Range header or None)

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}/"


class Handler(BaseHTTPRequestHandler):
    server: RangeServer

    def do_GET(self):
        server = self.server
        server.seen.append((self.path[1:], self.headers.get("Range")))
        content = server.files.get(self.path[1:])
        if content is None:
            self.send_error(404)
            return
        self.send_response(200)
        length = str(len(content)) if server.length is None else server.length
        if length:
            self.send_header("Content-Length", length)
        self.end_headers()
        cut = server.cuts.pop(0) if server.cuts else len(content)
        with contextlib.suppress(OSError):  # the other side may be gone
            self.wfile.write(content[: cut // 2])
            self.wfile.flush()
            server.flow.wait()
            self.wfile.write(content[cut // 2 : cut])

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
        server.flow.set()
        server.shutdown()
        thread.join()
        server.server_close()
