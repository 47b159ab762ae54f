"""A server on loopback that answers what a test says, one answer after another, and keeps what it
was asked.
"""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit


class Asked(NamedTuple):
    """One request."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes


class Reply(NamedTuple):
    """One answer; `cut`: the connection ends in the body, `drop`: before any of it."""

    status: int = 200
    body: Any = None
    headers: Mapping[str, str] = {}
    cut: bool = False
    drop: bool = False


@contextmanager
def answering(*replies: Reply) -> Iterator[tuple[str, list[Asked]]]:
    """Answer the requests with `replies`, the last one again and again. Gives http://HOST:PORT and
    what was asked.
    """
    asked: list[Asked] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _answer(self) -> None:
            parts = urlsplit(self.path)
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            asked.append(
                Asked(
                    self.command, parts.path, dict(parse_qsl(parts.query)), dict(self.headers), body
                )
            )
            reply = replies[min(len(asked), len(replies)) - 1]
            if reply.drop:
                self.close_connection = True
                return
            content = (
                reply.body
                if isinstance(reply.body, bytes)
                else json.dumps(reply.body if reply.body is not None else {}).encode()
            )
            self.send_response(reply.status)
            for key, value in reply.headers.items():
                self.send_header(key, value)
            self.send_header("Content-Length", str(len(content) + (10 if reply.cut else 0)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)
            self.close_connection = reply.cut

        do_GET = do_HEAD = do_POST = do_PATCH = do_DELETE = _answer  # noqa: N815

        def log_message(self, *_: object) -> None:
            return

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
    ).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", asked
    finally:
        server.shutdown()
        server.server_close()
