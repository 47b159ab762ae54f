"""A small threaded HTTP server on loopback: routes by pattern, JSON and Google's error bodies."""

from __future__ import annotations

import json
import re
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

from provision.sandbox.api_errors import ApiError, StatusCode, invalid_argument, not_found

MAX_BODY_BYTES = 1 << 30
_HOSTS = frozenset(("127.0.0.1", "localhost"))
_PARAMETER = re.compile(r"\{(\w+)(\*?)\}")


class Request(NamedTuple):
    """A request: `path` as sent (quoted), the last query value of each name, lower-case headers."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes = b""

    def json(self) -> dict[str, Any]:
        """Return the body as a JSON object, {} if it is empty; raises ApiError (400) otherwise."""
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
    """The response to a request."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = {}


Handler = Callable[..., Any]
"""Called with the request and the unquoted parameters of its pattern, by name.

Returns a Response, or a value for a JSON response.
"""
Route = tuple[str, str, Handler]
"""HTTP method, pattern of the path, and handler.

In a pattern, `{name}` is one part of a path, up to a slash or colon; `{name*}` is the rest of it.
"""


def json_response(
    value: Any, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """Return a value as a JSON response."""
    return Response(
        status,
        json.dumps(value, indent=2).encode() + b"\n",
        {"Content-Type": "application/json; charset=UTF-8", **(headers or {})},
    )


class Router:
    """Routes requests by method and path; the first matching pattern wins.

    Requests are answered after `delay_s` seconds.
    """

    def __init__(self, routes: Iterable[Route], *, delay_s: float = 0.0) -> None:
        self._delay_s = delay_s
        self._routes = [(method, _compile(pattern), handler) for method, pattern, handler in routes]

    def route(self, request: Request) -> Response:
        """Return the response; raises ApiError if a service refuses or no pattern matches."""
        time.sleep(self._delay_s)
        path_exists = False
        for method, pattern, handler in self._routes:
            if (match := pattern.fullmatch(request.path)) is None:
                continue
            path_exists = True
            if method == request.method:
                parameters = {name: unquote(value) for name, value in match.groupdict().items()}
                answer = handler(request, **parameters)
                return answer if isinstance(answer, Response) else json_response(answer)
        if path_exists:
            raise ApiError(
                StatusCode.UNIMPLEMENTED,
                f"{request.method} is not supported for {request.path}",
                http=405,
                reason="httpMethodNotAllowed",
            )
        raise not_found(f"The sandbox has no method {request.method} {request.path}")


@contextmanager
def run_http_server(router: Router, port: int = 0) -> Iterator[int]:
    """Serve on a loopback port (0: a free one) during the block, and yield the port."""
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


def _compile(pattern: str) -> re.Pattern[str]:
    return re.compile(
        _PARAMETER.sub(
            lambda match: f"(?P<{match[1]}>{'.+' if match[2] else '[^/:]+'})",
            pattern,
        )
    )


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], router: Router) -> None:
        self.router = router
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        super().__init__(address, _Conversation)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a connection in a thread, and remember the connection."""
        with self._lock:
            self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Close a connection."""
        with self._lock:
            self._open.discard(request)
        super().shutdown_request(request)

    def server_close(self) -> None:
        """Stop listening and close all connections.

        A client with an open connection must not continue with a store that another process uses.
        """
        super().server_close()
        with self._lock:
            for connection in self._open:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that disconnected."""


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
        except ApiError as error:
            failure = error
        except Exception as error:  # noqa: BLE001
            message = f"the sandbox failed: {type(error).__name__}: {error}"
            failure = ApiError(StatusCode.INTERNAL, message)
        if failure.http_status == 304:
            return Response(304)
        return json_response(failure.to_rest_body(), failure.http_status, failure.headers)

    def _request(self) -> Request:
        headers = {name.lower(): value for name, value in self.headers.items()}
        # A page in a browser must not reach this server, by its own origin or by a name that
        # resolves to loopback.
        if "origin" in headers or headers.get("host", "127.0.0.1").rsplit(":", 1)[0] not in _HOSTS:
            self.close_connection = True
            raise ApiError(
                StatusCode.PERMISSION_DENIED,
                "the sandbox accepts requests only from programs on this machine",
            )
        parts = urlsplit(self.path)
        query = dict(parse_qsl(parts.query, keep_blank_values=True))
        return Request(self.command, parts.path, query, headers, self._body(headers))

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
        """Print nothing: the terminal belongs to the command."""
