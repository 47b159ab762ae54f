"""What the outside hears: few writes, short lines, no secrets; and how services are asked."""

from __future__ import annotations

import http.server
import json
import threading
from urllib.parse import quote

import pytest

from provision.agent.workbench.cloud import CloudClient as Services
from provision.agent.workbench.cloud import ServiceCallFailed
from provision.agent.workbench.status import MAX_STATUS_WRITES, PHASES, REDACTED, SecretRedactor
from tests.agent.workbench.bench import CANARY
from tests.agent.workbench.conftest import Bench


def test_a_run_of_all_phases_writes_no_more_than_it_may(bench: Bench) -> None:
    teller = bench.teller(bench.document("alpha"))
    for phase in PHASES * 3:
        teller.last_write = -1e9  # as if every phase had taken long
        teller.begin_phase(phase)
    teller.end_run()
    written = [value for key, value in bench.cloud.store.history if key == "provision/status"]
    assert len(written) == MAX_STATUS_WRITES
    assert json.loads(written[-1]) == {
        "n": "nonce-0001",
        "s": "done",
        "p": "report",
        "i": 0,
        "of": 1,
    }
    assert bench.console == [f"phase {phase}" for phase in PHASES * 3]


def test_of_phases_that_follow_each_other_at_once_the_first_and_the_long_ones_are_told(
    bench: Bench,
) -> None:
    teller = bench.teller(bench.document("alpha"))
    for phase in PHASES:
        teller.begin_phase(phase)
    assert [json.loads(value)["p"] for _, value in bench.cloud.store.history] == [
        "start",
        "packages",
        "verify",
    ]


def test_an_error_is_told_in_one_short_line_here_and_in_the_bucket(bench: Bench) -> None:
    teller = bench.teller(bench.document("alpha"))
    teller.begin_phase("packages")
    teller.end_run("no\nway \x1b[31m" + "x" * 1000)
    status = bench.cloud.store.status()
    assert status["s"] == "error"
    assert status["e"].startswith("no way  [31mxxx")
    assert len(status["e"]) == 300
    assert (
        json.loads(
            bench.cloud.text(
                "gs://my-bucket/provision/provision-spec-workbench/nonce-0001/status.json"
            )
        )
        == status
    )


def test_without_guest_attributes_the_bucket_has_the_status(bench: Bench) -> None:
    bench.cloud.refused["guest-attributes"] = 403
    teller = bench.teller(bench.document("alpha"))
    teller.end_run("why")
    assert bench.cloud.store.history == []
    assert "nonce-0001/status.json" in "".join(bench.cloud.objects)
    assert (bench.machine.work / "reported").exists()
    assert "cannot write the guest attribute provision/status" in bench.console


def test_who_hears_nothing_is_not_taken_for_told(bench: Bench) -> None:
    bench.cloud.refused |= {"guest-attributes": 403, "status.json": 403}
    bench.teller(bench.document("alpha")).end_run("why")
    assert not (bench.machine.work / "reported").exists()


@pytest.mark.parametrize(
    "text",
    [
        CANARY + "/+ x",
        json.dumps({"a": CANARY + "/+ x"}),
        quote(CANARY + "/+ x", safe=""),
        repr(CANARY + "/+ x"),
        "Authorization: Bearer ya29.abcdefghijklmnop",
        "hf_abcdefghijklmnopqrstuv",
        "https://jane:pass-w0rd@example.com/simple",
        "-----BEGIN RSA PRIVATE KEY-----\nMIIB\n-----END RSA PRIVATE KEY-----",
    ],
)
def test_secrets_do_not_come_through_the_cleaner(text: str) -> None:
    cleaner = SecretRedactor()
    cleaner.add_secrets([CANARY + "/+ x"])
    cleaned = cleaner.clean(f"before {text} after")
    assert REDACTED in cleaned
    for hidden in (CANARY, "abcdefghijklmnop", "pass-w0rd", "MIIB"):
        assert hidden not in cleaned
    assert cleaned.startswith("before ")
    assert cleaned.endswith(" after")


def test_plain_text_comes_through_the_cleaner_without_control_characters() -> None:
    assert SecretRedactor().clean("a\tb\nc\x1b[2J\r\u202e") == "a\tb\nc [2J  "


def test_a_service_that_recovers_is_asked_again_and_one_that_refuses_is_not(bench: Bench) -> None:
    class Once(http.server.BaseHTTPRequestHandler):
        asked: list[str] = []  # noqa: RUF012

        def do_GET(self) -> None:
            Once.asked.append(self.path)
            first = "late" in self.path and len(Once.asked) < 3
            self.send_response(
                503
                if first
                else 403
                if "never" in self.path
                else 302
                if "moved" in self.path
                else 200
            )
            self.send_header("Location", f"{bench.cloud.address}/stolen")
            self.end_headers()
            self.wfile.write(b"" if first else b"content")

        def log_message(self, *_: object) -> None:
            return

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Once)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    services = Services(
        bench.services.metadata_url,
        f"http://127.0.0.1:{server.server_address[1]}",
        "",
        sleep=lambda _: None,
    )
    right = "ed7002b439e9ac845f22357d822bac1444730fbdb6016d3ec9432297b9ec9f73"
    assert services.read_object("gs://b/late", right) == b"content"
    assert len(Once.asked) == 3
    with pytest.raises(ServiceCallFailed, match="HTTP 403"):
        services.read_object("gs://b/never", right)
    assert len(Once.asked) == 4
    with pytest.raises(ServiceCallFailed, match="HTTP 302"):
        services.read_object("gs://b/moved", right)
    assert "GET /stolen" not in bench.cloud.asked, "a token goes nowhere but where it was sent"
    with pytest.raises(ServiceCallFailed, match="does not have the announced sha256"):
        services.read_object("gs://b/x", "0" * 64)
    server.shutdown()
    server.server_close()


def test_no_token_is_an_error_that_says_so() -> None:
    services = Services("http://127.0.0.1:9", "http://127.0.0.1:9", "", sleep=lambda _: None)
    with pytest.raises(
        ServiceCallFailed, match="no response to instance/service-accounts/default/token"
    ):
        services.read_object("gs://b/x", "0" * 64)
    assert "access_token" not in repr(services)
