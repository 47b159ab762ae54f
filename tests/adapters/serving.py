"""Servers on loopback: an index behind a password or a certificate, one that gives nonsense, a
proxy that notes what it was asked, one that sends elsewhere.
"""

from __future__ import annotations

import base64
import functools
import http.server
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

CERTIFICATE = Path(__file__).with_name("loopback.pem")
"""The certificate (and key) of `certified`, which no authority has signed."""


@contextmanager
def certified(folder: Path) -> Iterator[str]:
    """Serve a folder by HTTPS and give host:port; who does not trust CERTIFICATE goes away."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE)
    with _at_work(functools.partial(_Quiet, directory=str(folder)), context) as place:
        yield place


@contextmanager
def answering(status: int, kind: str, body: bytes) -> Iterator[str]:
    """Answer every request alike and give host:port."""

    class Handler(_Quiet):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    with _at_work(functools.partial(Handler)) as place:
        yield place


@contextmanager
def behind_password(
    folder: Path, user: str, password: str, look: Callable[[], None] = lambda: None
) -> Iterator[str]:
    """Serve a folder to those who know the password and give host:port; `look` is called at each
    request, while the one who asks is at work.
    """
    wanted = "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()

    class Handler(_Quiet):
        def do_GET(self) -> None:
            look()
            if self.headers.get("Authorization") == wanted:
                super().do_GET()
                return
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="rig"')
            self.send_header("Content-Length", "0")
            self.end_headers()

    with _at_work(functools.partial(Handler, directory=str(folder))) as place:
        yield place


@contextmanager
def proxying(folder: Path, seen: list[str]) -> Iterator[str]:
    """Answer every request for any host, made to a proxy, from `folder`; each address asked for is
    added to `seen`. Gives host:port.
    """

    class Handler(_Quiet):
        def do_GET(self) -> None:
            seen.append(self.path)
            self.path = urlsplit(self.path).path
            super().do_GET()

    with _at_work(functools.partial(Handler, directory=str(folder))) as place:
        yield place


@contextmanager
def redirecting(address: str) -> Iterator[str]:
    """Send everyone who asks to another address. Gives host:port."""

    class Handler(_Quiet):
        def do_GET(self) -> None:
            self.send_response(302)
            self.send_header("Location", address)
            self.send_header("Content-Length", "0")
            self.end_headers()

    with _at_work(functools.partial(Handler, directory=".")) as place:
        yield place


def running() -> set[str]:
    """The command lines of all processes of this machine; empty where there is no /proc."""
    found = set()
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found.add(path.read_bytes().replace(b"\0", b" ").decode("utf-8", "replace"))
        except OSError:
            continue
    return found


def contents(folder: Path) -> set[bytes]:
    """What the files in a folder hold at this moment, links left out; other programs may be at work
    there.
    """
    found = set()
    for path in folder.rglob("*"):
        try:
            if path.is_file() and not path.is_symlink():
                found.add(path.read_bytes())
        except OSError:
            continue
    return found


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        return


class _Server(http.server.ThreadingHTTPServer):
    def handle_error(self, *_: object) -> None:
        return  # a caller that does not trust the certificate hangs up


@contextmanager
def _at_work(
    handler: functools.partial[_Quiet], context: ssl.SSLContext | None = None
) -> Iterator[str]:
    server = _Server(("127.0.0.1", 0), handler)
    if context is not None:
        server.socket = context.wrap_socket(
            server.socket, server_side=True, do_handshake_on_connect=False
        )
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
