"""Servers that send a byte now and then: every call ends in its time, and says so."""

from __future__ import annotations

import hashlib
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from google.auth.credentials import AnonymousCredentials
from google.oauth2.credentials import Credentials

from provision.adapters.google.endpoints import Endpoints
from provision.adapters.google.errors import CloudError
from provision.adapters.google.notebooks_grpc import GrpcNotebooks
from provision.adapters.google.rest import RestClient
from provision.adapters.google.retry import RetryPolicy
from provision.adapters.uv.download import download_file
from provision.agent.core.timed_http import TimeLimits
from provision.agent.probe.observing.network import _request
from provision.agent.workbench.cloud import CloudClient
from provision.agent.workbench.cloud import ServiceCallFailed as DeviceError
from provision.effects.packages import IndexSource, SourceDistribution
from provision.errors import NetworkError
from tests.adapters.serving import CERTIFICATE
from tests.conftest import ROOT

SHORT_S = 0.3
PAUSE_S = 0.02
HANGS_S = 60
"""Nothing here takes as long, but with a call that has no limit as a whole."""
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
SERVERS = {
    "headers": (b"", HEAD + b"X-Long: " + b"x" * 60000 + b"\r\n\r\n{}"),
    "body": (HEAD + b"Content-Length: 100000\r\n\r\n", b"x" * 100000),
    "chunks": (HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n" * 20000),
    "body without length": (HEAD + b"Connection: close\r\n\r\n", b"x" * 100000),
    "redirections": (b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: /", b"again\r\n\r\n"),
}
"""What a server sends at once, and what it sends byte by byte."""


@contextmanager
def dripping(
    at_once: bytes, slowly: bytes, *, reads: bool = True, tls: bool = False
) -> Iterator[str]:
    """A server that answers each request so; its address, HOST:PORT. Without `reads` it takes no
    more of a request than the system keeps for it.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE)
    listener, over = socket.create_server(("127.0.0.1", 0)), threading.Event()

    def answer(client: socket.socket) -> None:
        end = time.monotonic() + HANGS_S
        with (
            suppress(OSError),
            context.wrap_socket(client, server_side=True) if tls else client as client,
        ):
            if not reads:
                over.wait(HANGS_S)
                return
            client.recv(2**16)
            client.sendall(at_once)
            for byte in slowly:
                if over.wait(PAUSE_S) or time.monotonic() > end:
                    return
                client.sendall(bytes([byte]))

    def serve() -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=answer, args=(listener.accept()[0],), daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield f"127.0.0.1:{listener.getsockname()[1]}"
    finally:
        over.set()
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


def ended(call: Callable[[], Any], error: type[Exception]) -> Any:
    """Return the error in which a call ends, long before the server has sent all."""
    began = time.monotonic()
    with pytest.raises(error) as caught:
        call()
    assert time.monotonic() - began < HANGS_S
    return caught.value


def source(url: str) -> SourceDistribution:
    return SourceDistribution("alpha-1.0.tar.gz", url, "0" * 64)


@pytest.mark.long(after=2)
@pytest.mark.parametrize("mode", SERVERS)
def test_a_file_of_an_index(mode: str, tmp_path: Path) -> None:
    with dripping(*SERVERS[mode]) as server:
        url = f"http://user:hunter2secret@{server}/alpha-1.0.tar.gz"
        error = ended(
            lambda: download_file(
                source(url),
                IndexSource("pypi", f"http://{server}"),
                {},
                tmp_path / "file",
                TimeLimits(SHORT_S),
            ),
            NetworkError,
        )
    assert "bytes in" in error.why
    assert server in error.why
    assert "hunter2secret" not in error.why + error.hint
    assert "try again later" in error.hint


@pytest.mark.parametrize("mode", ["headers", "body"])
def test_over_tls(mode: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(CERTIFICATE))
    with dripping(*SERVERS[mode], tls=True) as server:
        url, trusted = f"https://{server}/alpha-1.0.tar.gz", {"SSL_CERT_FILE": str(CERTIFICATE)}
        error = ended(
            lambda: download_file(
                source(url),
                IndexSource("pypi", url),
                trusted,
                tmp_path / "file",
                TimeLimits(SHORT_S),
            ),
            NetworkError,
        )
        failure = ended(lambda: rest(loopback=False).request_json("GET", url), CloudError).failure
    assert "bytes in" in error.why
    assert "bytes in" in failure.why


@pytest.mark.long
def test_a_file_that_comes_at_a_fair_rate_takes_as_long_as_it_needs(tmp_path: Path) -> None:
    content = bytes(120)
    with dripping(HEAD + b"Content-Length: 120\r\n\r\n", content) as server:
        began, file = (
            time.monotonic(),
            source(f"http://{server}/alpha-1.0.tar.gz")._replace(
                sha256=hashlib.sha256(content).hexdigest()
            ),
        )
        download_file(
            file, IndexSource("pypi", ""), {}, tmp_path / "file", TimeLimits(2.0, bytes_per_s=1)
        )
    assert (tmp_path / "file").read_bytes() == content
    assert time.monotonic() - began > 2


def rest(given: Any = None, *, loopback: bool = True) -> RestClient:
    return RestClient(
        given or AnonymousCredentials(),
        RetryPolicy(call_timeout_s=SHORT_S, retry_limit_s=0.0),
        loopback=loopback,
    )


@pytest.mark.long(after=2)
@pytest.mark.parametrize("mode", [mode for mode in SERVERS if mode != "redirections"])
def test_a_service_of_google(mode: str) -> None:
    with dripping(*SERVERS[mode]) as server:
        failure = ended(
            lambda: rest().request_json(
                "GET", f"http://{server}/v2/projects/p", {"key": "hunter2secret"}
            ),
            CloudError,
        ).failure
    assert failure.what == f"http://{server}/v2/projects/p responds too slowly"
    assert "too slow: received" in failure.why
    assert "hunter2secret" not in failure.why


def test_an_upload_that_is_not_read() -> None:
    with dripping(*SERVERS["body"], reads=False) as server:
        failure = ended(
            lambda: rest().send("POST", f"http://{server}/upload", body=bytes(2**25)), CloudError
        ).failure
    assert "responds too slowly" in failure.what
    assert "too slow: received 0 bytes in" in failure.why


@pytest.mark.parametrize("mode", ["headers", "body"])
def test_a_server_of_tokens(mode: str) -> None:
    with dripping(*SERVERS[mode]) as server:
        given = Credentials(
            None,
            refresh_token="r",
            token_uri=f"http://{server}/token",
            client_id="i",
            client_secret="hunter2secret",
        )
        error = ended(
            lambda: rest(given).request_json("GET", "http://127.0.0.1:9/v2/projects/p"), CloudError
        )
    assert "hunter2secret" not in str(error)


def test_a_service_over_grpc() -> None:
    with dripping(*SERVERS["headers"]) as server:
        root = f"http://{server}"
        policy = RetryPolicy(call_timeout_s=SHORT_S, retry_limit_s=0.0)
        rest = RestClient(AnonymousCredentials(), policy, loopback=True)
        over = GrpcNotebooks(rest, Endpoints(root, server, *[root] * 6, server), policy)
        ended(lambda: over.get("projects/p/locations/us-central1-a/instances/i"), CloudError)


@pytest.mark.long(after=1)
@pytest.mark.parametrize("mode", ["headers", "body", "chunks"])
def test_the_services_that_a_device_calls(mode: str) -> None:
    with dripping(*SERVERS[mode]) as server:
        cloud = CloudClient(
            f"http://{server}",
            f"http://{server}",
            f"http://{server}",
            sleep=lambda _: None,
            limits=TimeLimits(SHORT_S / 4),
        )
        assert cloud.read_metadata_attribute("provision-run") is None
        assert not cloud.write_guest_attribute("status", "x")
        error = ended(lambda: cloud.read_object("gs://bucket/name", "0" * 64), DeviceError)
    assert "bytes in" in str(error)


@pytest.mark.parametrize("mode", ["headers", "body"])
def test_the_payload_of_a_notebook(mode: str) -> None:
    cell: dict[str, Any] = {}
    exec((ROOT / "templates/colab-cell.py").read_text().rpartition("_provision_main()")[0], cell)
    with dripping(*SERVERS[mode]) as server:

        def fetch() -> None:
            content, why = cell["_provision_fetch"](f"http://{server}/payload", whole_s=SHORT_S)
            assert content == b""
            raise TimeoutError(why)

        error = ended(fetch, TimeoutError)
    assert str(error) == f"no complete response within {SHORT_S} s"


@pytest.mark.long
def test_the_hub_that_a_verification_calls() -> None:
    with dripping(*SERVERS["headers"]) as server:
        found = _request(urlsplit(f"http://{server}"), None)
    assert found["net.reached"] == "answer"
    assert found["net.problem"] == "no response: no response within 3 s"
