"""The way to the hub, on loopback: a name, a connection, a certificate and an answer, and each of
them wrong.
"""

from __future__ import annotations

import http.server
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest

from provision.agent.probe.catalogue import select_checks
from provision.agent.probe.context import ObserverContext
from provision.agent.probe.expectations import parse_expectations
from provision.agent.probe.judging import judge
from provision.agent.probe.model import ObservationLog
from provision.agent.probe.observing.network import observe_hub
from tests.agent.probe.bench import Environment, checks

HUB = [{"name": "huggingface-hub", "version": "2.4.0"}]
Document = Callable[..., dict[str, Any]]


class Answer(http.server.BaseHTTPRequestHandler):
    status, ahead_s = 200, 0.0

    def do_HEAD(self) -> None:
        self.server.asked.append((self.path, self.headers["Host"]))  # type: ignore[attr-defined]
        self.send_response_only(self.status)
        self.send_header("Date", formatdate(time.time() + self.ahead_s, usegmt=True))
        self.end_headers()

    def do_CONNECT(self) -> None:
        self.server.asked.append((self.path, "CONNECT"))  # type: ignore[attr-defined]
        self.send_error(407)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def serve() -> Iterator[Callable[..., str]]:
    servers: list[http.server.HTTPServer] = []

    def start(certificate: Path | None = None, **answer: Any) -> str:
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), type("Told", (Answer,), answer))
        server.asked = []  # type: ignore[attr-defined]
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(
            target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True
        ).start()
        servers.append(server)
        return f"{'https' if certificate else 'http'}://localhost:{server.server_port}"

    start.servers = servers  # type: ignore[attr-defined]
    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    def made(name: str) -> Path:
        both = tmp_path_factory.mktemp("tls") / "both.pem"
        command = [
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-days",
            "2",
            "-subj",
            f"/CN={name}",
            "-addext",
            f"subjectAltName=DNS:{name}",
        ]
        subprocess.run(
            [
                *command,
                "-keyout",
                str(both.with_name("key.pem")),
                "-out",
                str(both.with_name("crt.pem")),
            ],
            check=True,
            capture_output=True,
        )
        both.write_bytes(
            both.with_name("key.pem").read_bytes() + both.with_name("crt.pem").read_bytes()
        )
        return both

    return made


def reached(document: Document, folder: Path, endpoint: str, **environ: str) -> dict[str, Any]:
    return observe_hub(
        ObserverContext(
            parse_expectations(document(packages=HUB)),
            folder,
            environ={"HF_ENDPOINT": endpoint, "NO_PROXY": "", **environ},
        )
    )


def judged(document: Document, id_: str, seen: dict[str, Any]) -> tuple[str, str]:
    expected = parse_expectations(document(packages=HUB, tier="deep"))
    one = next(one for one in select_checks(expected) if one.id == id_)
    judgement = judge(
        one,
        expected,
        {"clock.behind": False, "_clock.ahead_s": -1.0, **seen},
        ObservationLog(set({id_})),
    )
    return judgement.status.value, judgement.message


def test_a_hub_that_answers_passes_and_tells_the_time(
    document: Document, tmp_path: Path, serve: Callable[..., str]
) -> None:
    seen = reached(document, tmp_path, serve())

    assert (seen["net.reached"], seen["net.status"], seen["net.problem"]) == ("answer", 200, None)
    assert abs(seen["net.skew_s"]) <= 2
    assert judged(document, "X02", seen) == ("pass", "localhost returned status 200")
    assert judged(document, "H09", seen)[0] == "pass"


@pytest.mark.parametrize(
    ("ahead", "says"), [(4000.0, "behind the Hub's"), (-4000.0, "ahead of the Hub's")]
)
def test_a_clock_that_differs_from_the_hubs_fails(
    document: Document, tmp_path: Path, serve: Callable[..., str], ahead: float, says: str
) -> None:
    status, message = judged(document, "H09", reached(document, tmp_path, serve(ahead_s=ahead)))

    assert (status, says in message) == ("fail", True), message


def test_an_answer_that_is_an_error_is_a_warning(
    document: Document, tmp_path: Path, serve: Callable[..., str]
) -> None:
    seen = reached(document, tmp_path, serve(status=503))

    assert judged(document, "X01", seen)[0] == "pass"
    assert judged(document, "X02", seen) == ("warn", "localhost returned status 503")


def test_the_name_in_the_certificate_is_checked(
    document: Document,
    tmp_path: Path,
    serve: Callable[..., str],
    certificate: Callable[[str], Path],
    environment: Environment,
) -> None:
    right, wrong = certificate("localhost"), certificate("other.example")

    def asked_in_a_process(endpoint: str, trusted: Path) -> dict[str, dict[str, Any]]:
        # OpenSSL reads SSL_CERT_FILE of its own process.
        environ = {"HF_ENDPOINT": endpoint, "SSL_CERT_FILE": str(trusted)}
        _, report, said = environment.verify(
            "--only", "X02", environ=environ, tier="deep", packages=HUB
        )
        assert report, said
        return checks(report)

    good = asked_in_a_process(serve(right), right)
    other_name = asked_in_a_process(serve(wrong), wrong)
    untrusted = reached(document, tmp_path, serve(right))

    assert (good["X01"]["status"], good["X02"]["status"]) == ("pass", "pass"), good
    assert other_name["X01"]["status"] == "warn"
    assert "the certificate is not accepted: Hostname mismatch" in other_name["X01"]["message"]
    assert untrusted["net.reached"] == "tls"
    assert "self" in untrusted["net.problem"]


def test_a_connection_that_says_nothing_is_no_proof(document: Document, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as sink:
        port = sink.getsockname()[1]
        began = time.monotonic()
        silent = reached(document, tmp_path, f"https://localhost:{port}")
        assert time.monotonic() - began < 12

    assert silent["net.reached"] == "tls"
    assert judged(document, "X01", silent)[0] == "warn"
    assert "no response within 3 s" in silent["net.problem"]


def test_nobody_who_listens_and_a_name_that_nobody_knows(
    document: Document, tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        port = gone.getsockname()[1]

    refused = reached(document, tmp_path, f"http://localhost:{port}")
    nameless = reached(document, tmp_path, "https://nobody.invalid")
    garbled = reached(document, tmp_path, "hub.example")
    assert (
        reached(document, tmp_path, "https://hub.example:port")["net.problem"]
        == garbled["net.problem"]
    )

    assert (refused["net.reached"], "no connection" in refused["net.problem"]) == (
        "connection",
        True,
    )
    assert (nameless["net.reached"], "the name cannot be resolved" in nameless["net.problem"]) == (
        "name",
        True,
    )
    assert "not an http(s) URL" in garbled["net.problem"]
    assert {judged(document, "X01", seen)[0] for seen in (refused, nameless, garbled)} == {"warn"}
    assert judged(document, "X02", refused)[0] == "skip"


def test_a_proxy_is_used_and_named(
    document: Document, tmp_path: Path, serve: Callable[..., str]
) -> None:
    proxy = serve()

    seen = reached(document, tmp_path, "https://hub.example", HTTPS_PROXY=proxy)

    assert (seen["net.proxy"], seen["net.reached"]) == (True, "connection")
    assert "407" in seen["net.problem"]
    assert serve.servers[0].asked == [("hub.example:443", "CONNECT")]  # type: ignore[attr-defined]
    assert "through the proxy" in judged(document, "X01", seen)[1]


@pytest.mark.parametrize(
    "changes", [{"packages": []}, {"packages": HUB, "env": {"HF_HUB_OFFLINE": "1"}}]
)
def test_nothing_is_asked_where_nothing_needs_the_hub(
    document: Document, tmp_path: Path, serve: Callable[..., str], changes: dict[str, Any]
) -> None:
    endpoint = serve()

    seen = observe_hub(
        ObserverContext(
            parse_expectations(document(**changes)), tmp_path, environ={"HF_ENDPOINT": endpoint}
        )
    )

    assert seen["net.reached"] == ""
    assert serve.servers[0].asked == []  # type: ignore[attr-defined]
    assert judged(document, "X01", seen)[0] == "skip"


def test_without_the_hubs_library_its_address_is_not_known(
    document: Document, tmp_path: Path
) -> None:
    seen = observe_hub(
        ObserverContext(parse_expectations(document(packages=HUB)), tmp_path, environ={})
    )

    assert judged(document, "X01", seen)[0] == "unknown"


def test_the_cheaper_tiers_ask_nobody(environment: Environment, serve: Callable[..., str]) -> None:
    endpoint = serve()

    _, report, _ = environment.verify(environ={"HF_ENDPOINT": endpoint}, packages=HUB)

    assert "X01" not in checks(report)
    assert serve.servers[0].asked == []  # type: ignore[attr-defined]
