"""A small threaded HTTP server on loopback: routes by pattern, JSON, and errors in the form of
Google's.
"""

from __future__ import annotations

import json
import re
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

from provision.sandbox.api_errors import ApiError, StatusCode, invalid_argument

MAX_BODY_BYTES = 1 << 30
_HOSTS = frozenset(("127.0.0.1", "localhost"))
_PARAMETER = re.compile(r"\{(\w+)(\*?)\}")


class Request(NamedTuple):
    """What was asked: `path` as it was sent (still quoted), the query's last value of each name,
    header names in lower case.
    """

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes = b""

    def json(self) -> dict[str, Any]:
        """Return the body as a JSON object; {} for an empty one. Raises Failure (400) when it is
        none.
        """
        try:
            body = json.loads(self.body) if self.body.strip() else {}
        except (ValueError, RecursionError):
            raise invalid_argument("Invalid JSON payload received. Parsing error.") from None
        if not isinstance(body, dict):
            raise invalid_argument(
                'Invalid JSON payload received. Unknown name "": Root element must be a message.'
            )
        return body


class Response(NamedTuple):
    """What is answered."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = {}


Handler = Callable[..., Response]
"""Called with the request and the unquoted parameters of its pattern, by name."""


def json_response(
    value: Any, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """Return `value` as a JSON answer."""
    return Response(
        status,
        json.dumps(value, indent=2).encode() + b"\n",
        {"Content-Type": "application/json; charset=UTF-8", **(headers or {})},
    )


def error_response(failure: ApiError) -> Response:
    """Return the answer that tells of a failure."""
    return (
        Response(304)
        if failure.http_status == 304
        else json_response(failure.to_rest_body(), failure.http_status, failure.headers)
    )


class Router:
    """Which handler answers which method and path. `{name}` is one part of a path, up to a slash or
    colon; `{name*}` all that is left.
    """

    def __init__(self) -> None:
        self._routes: list[tuple[str, re.Pattern[str], Handler]] = []

    def add(self, method: str, pattern: str, handler: Handler) -> None:
        """Let `handler` answer `method` on paths of `pattern`; the first pattern that fits counts."""  # noqa: E501
        self._routes.append((method, _compiled(pattern), handler))

    def route(self, request: Request) -> Response:
        """Return the answer. Raises Failure where a service refuses, and where no pattern fits."""
        known = False
        for method, pattern, handler in self._routes:
            if (match := pattern.fullmatch(request.path)) is None:
                continue
            known = True
            if method == request.method:
                return handler(
                    request, **{name: unquote(value) for name, value in match.groupdict().items()}
                )
        if known:
            raise ApiError(
                StatusCode.UNIMPLEMENTED,
                f"{request.method} is not offered for {request.path}",
                http=405,
                reason="httpMethodNotAllowed",
            )
        raise ApiError(
            StatusCode.NOT_FOUND,
            f"The sandbox has no method {request.method} {request.path}",
            reason="notFound",
        )


@contextmanager
def run_http_server(router: Router, port: int = 0) -> Iterator[int]:
    """Serve on a loopback port (0: a free one) while the block runs; yields the port."""
    server = _Server(("127.0.0.1", port), router)
    thread = threading.Thread(
        target=server.serve_forever,
        kwargs={"poll_interval": 0.02},
        name="sandbox-http",
        daemon=True,
    )
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _compiled(pattern: str) -> re.Pattern[str]:
    parts, end = [], 0
    for match in _PARAMETER.finditer(pattern):
        parts.append(re.escape(pattern[end : match.start()]))
        parts.append(f"(?P<{match[1]}>{'.+' if match[2] else '[^/:]+'})")
        end = match.end()
    return re.compile("".join(parts) + re.escape(pattern[end:]))


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], router: Router) -> None:
        self.router = router
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        super().__init__(address, _Conversation)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a connection in a thread, and remember it."""
        with self._lock:
            self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Close a connection."""
        with self._lock:
            self._open.discard(request)
        super().shutdown_request(request)

    def server_close(self) -> None:
        """Stop listening, and hang up: a client that keeps its connection must not go on with a
        store that is somebody else's by then.
        """
        super().server_close()
        with self._lock:
            for connection in self._open:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hung up is no event."""


class _Conversation(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    server: _Server

    def _serve(self) -> None:
        response = self._answer()
        self.send_response(response.status)
        for name, value in response.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(response.body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(response.body)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = _serve  # noqa: N815

    def _answer(self) -> Response:
        try:
            return self.server.router.route(self._request())
        except ApiError as failure:
            return error_response(failure)
        except Exception as error:  # noqa: BLE001
            return error_response(
                ApiError(
                    StatusCode.INTERNAL, f"the sandbox failed: {type(error).__name__}: {error}"
                )
            )

    def _request(self) -> Request:
        headers = {name.lower(): value for name, value in self.headers.items()}
        # A page in a browser must not reach this server, by its own origin or by a name that
        # resolves to loopback.
        if "origin" in headers or headers.get("host", "127.0.0.1").rsplit(":", 1)[0] not in _HOSTS:
            self.close_connection = True
            raise ApiError(
                StatusCode.PERMISSION_DENIED, "the sandbox answers programs on this machine only"
            )
        body = self._body(headers)
        parts = urlsplit(self.path)
        return Request(
            self.command,
            parts.path,
            dict(parse_qsl(parts.query, keep_blank_values=True)),
            headers,
            body,
        )

    def _body(self, headers: Mapping[str, str]) -> bytes:
        length = headers.get("content-length", "0")
        if "transfer-encoding" in headers or not length.isdecimal():
            self.close_connection = True
            raise ApiError(StatusCode.INVALID_ARGUMENT, "a body needs a Content-Length", http=411)
        if int(length) > MAX_BODY_BYTES:
            self.close_connection = True
            raise ApiError(StatusCode.INVALID_ARGUMENT, "the body is too large", http=413)
        return self.rfile.read(int(length))

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Say nothing: the terminal is not ours."""
