"""What never ends, or ends late: bounded waits on Google Cloud, and credentials that are missing or
over.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any, NamedTuple

import pytest

from provision.adapters import RealSystem
from provision.adapters.google.retry import RetryPolicy
from provision.cli import console
from provision.commands.apply import ApplyOptions, apply
from provision.commands.shared.load import load_spec
from provision.commands.shared.sandbox_spec import build_sandbox_spec
from provision.errors import ProvisionError
from provision.sandbox.serve import serve
from provision.sandbox.store import Store
from tests.commands.test_workbench_texts import SPEC, known, left
from tests.rig import Bench

BRIEF = RetryPolicy(
    first_pause_s=0.01,
    max_pause_s=0.05,
    retry_limit_s=1.5,
    first_poll_s=0.01,
    max_poll_s=0.05,
    operation_s=0.4,
    boot_s=0.4,
    visible_s=0.4,
)
"""Waits as short as a test may have them; 1.5 s lets a Retry-After of one second pass once."""


class Told(NamedTuple):
    """How an apply ended: exit code, and what a person reads."""

    code: int
    text: str
    lines: list[str]


@contextmanager
def sandboxed(bench: Bench, *faults: str) -> Iterator[Store]:
    """A sandbox whose devices stay silent."""
    bench.spec(SPEC.format(more="nat: true"))
    with serve(bench.folder / ".provision/sandbox", faults) as running:
        assert running.store is not None
        yield running.store


def applied(bench: Bench, capsys: pytest.CaptureFixture[str], pace: RetryPolicy = BRIEF) -> Told:
    """Apply with short waits at the sandbox that is at work; the device is not waited for."""
    endpoints = json.loads((bench.folder / ".provision/sandbox/endpoints.json").read_text())
    world, lines = RealSystem(bench.environment(), endpoints=endpoints, pace=pace), list[str]()
    loaded = build_sandbox_spec(load_spec(bench.folder / "spec.yaml", world), world)
    capsys.readouterr()
    try:
        code = apply(
            loaded, ("wb",), ApplyOptions(detach=True), world, lambda *_: None, lines.append
        ).exit_code
    except ProvisionError as error:
        console.print_error(error)
        code = error.exit_code
    return Told(code, capsys.readouterr().err, lines)


class Wait(NamedTuple):
    """A fault that does not pass (a script, or an error as a file has it), what is told, what comes
    next, how many instances are left.
    """

    fault: str | dict[str, Any]
    what: str
    why: str
    following: tuple[str, ...]
    left: int = 0


AGAIN = "run the same command again"
MAY_COST = "may exist and be costing money: gcloud workbench instances describe provision-spec-wb-"
WAITS = {
    "an operation that never ends": Wait(
        "hang",
        "create has not finished after",
        "operation projects/my-project/locations/us-central1-a/operations/",
        (f"{AGAIN} to wait for it", MAY_COST),
        1,
    ),
    "stays PROVISIONING": Wait(
        "stuck-provisioning",
        "is still PROVISIONING after",
        "the operation has finished, but the instance does not become ACTIVE",
        (
            "gcloud compute instances get-serial-port-output provision-spec-wb-",
            "gcloud workbench instances diagnose provision-spec-wb-",
            MAY_COST,
        ),
        1,
    ),
    "lastingly busy": Wait(
        "busy:1000",
        "another operation on the instance is still running",
        "unable to queue the operation",
        (AGAIN, MAY_COST),
    ),
    "429 that stays": Wait(
        "rate:1000",
        "Google Cloud limits the rate of requests",
        "gave up after 2 attempts",
        (AGAIN,),
    ),
    "500 that stays": Wait(
        "error-500:1000",
        "Google Cloud failed to answer the request",
        "Internal error encountered",
        (AGAIN,),
    ),
    "503 that stays": Wait(
        "unavailable:1000",
        "Google Cloud failed to answer the request",
        "currently unavailable",
        (AGAIN,),
    ),
    "500 at the creation": Wait(
        {"at": "create", "code": 13, "message": "Internal error encountered."},
        "Google Cloud failed to answer the request",
        "gave up after",
        (AGAIN, MAY_COST),
    ),
    "the rate of Compute Engine": Wait(
        {
            "at": "create",
            "code": 7,
            "http": 403,
            "reason": "rateLimitExceeded",
            "message": "Rate Limit Exceeded",
        },
        "Google Cloud limits the rate of requests",
        "gave up after",
        (AGAIN, MAY_COST),
    ),
    "exists, and is not shown": Wait(
        {
            "at": "create",
            "code": 6,
            "message": "Resource 'projects/my-project/locations/us-central1-a/instances/i' already "
            "exists",
            "reason": "alreadyExists",
        },
        "an instance with this name exists, but Google Cloud does not list it",
        "already exists, but did not list it",
        (AGAIN, MAY_COST),
    ),
}


@pytest.mark.long(after=1)
@pytest.mark.parametrize("name", WAITS)
def test_a_wait_that_is_bounded(
    bench: Bench, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    wait = WAITS[name]
    script = wait.fault if isinstance(wait.fault, str) else f"error:{bench.folder / 'error.json'}"
    (bench.folder / "error.json").write_text(json.dumps(wait.fault))
    with sandboxed(bench, script):
        done = applied(bench, capsys)
    told(done, wait)
    assert len(left(bench)) == wait.left
    assert left(bench) <= known(bench)


def told(done: Told, wait: Wait) -> None:
    what, _, rest = done.text.partition("\n  why: ")
    why, _, following = rest.partition("\n  help: ")
    assert done.code == 2
    assert wait.what in what
    assert wait.why in why
    assert [words for words in wait.following if words not in following] == []


def test_the_console_says_why_an_instance_stays_provisioning(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    with sandboxed(bench, "stuck-provisioning") as store:
        applied(bench, capsys)
        (name,) = left(bench)
        # DataBiosphere/terra-workspace-manager#848
        store.append_serial(
            name,
            "notebook c2d-startup[431]: Proxy Registration failed. Unable to get Service "
            "Account from VM\n",
        )
        store.append_serial(
            name,
            "notebook c2d-startup[431]: Required 'compute.instances.get' permission for "
            "'projects/my-project/zones/z/instances/i'\n",
        )
        done = applied(bench, capsys)
    told(
        done,
        Wait(
            "",
            "is still PROVISIONING after",
            "could not register with the JupyterLab proxy",
            ("roles/notebooks.runner", "Private Google Access"),
        ),
    )
    assert (
        "its console: notebook c2d-startup[431]: Required 'compute.instances.get' permission"
        in done.text
    )
    assert left(bench) == {name} == known(bench)


@pytest.mark.long(after=2)
@pytest.mark.parametrize(
    "fault",
    [
        "rate:1",
        "error-500:3",
        "unavailable:3",
        "busy:3",
        "token-expiry:2",
        "lost-operation",
        "hidden:3",
    ],
)
def test_what_passes_by_itself_ends_with_one_instance(
    bench: Bench, capsys: pytest.CaptureFixture[str], fault: str
) -> None:
    with sandboxed(bench, fault):
        done = applied(bench, capsys)
    assert done.code == 3, done.text
    assert len(left(bench)) == 1
    assert left(bench) == known(bench)


def test_a_zone_that_the_service_names_comes_first(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    metadata = {
        "vmType": "n1-standard-4",
        "zone": "us-central1-a",
        "attachment": "",
        "zonesAvailable": "us-central1-c,us-central1-f",
    }
    info = {
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "reason": "resource_availability",
        "domain": "compute.googleapis.com",
        "metadata": metadata,
    }
    message = (
        "The zone 'projects/my-project/zones/us-central1-a' does not have enough resources "
        "available to fulfill the request."
    )
    error = {
        "at": "operation",
        "zone": "us-central1-a",
        "code": 8,
        "message": message,
        "details": [info],
    }
    (bench.folder / "error.json").write_text(json.dumps(error))
    with sandboxed(bench, f"error:{bench.folder / 'error.json'}"):
        bench.spec(
            SPEC.format(more="nat: true").replace("us-central1-b]", "us-central1-b, us-central1-c]")
        )
        done = applied(bench, capsys)
    assert done.code == 3, done.text
    assert any(
        "us-central1-a: capacity: the zone currently has no capacity for this machine" in line
        for line in done.lines
    )
    assert [name.split("/")[3] for name in left(bench)] == ["us-central1-c"]
    assert left(bench) == known(bench)


def test_a_retry_after_is_waited_for(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    waits: list[float] = []
    with sandboxed(bench, "rate:1"):
        applied(bench, capsys, RetryPolicy(sleep=waits.append, jitter=lambda: 0.0))
    assert max(waits) == 1.0


def test_the_key_that_an_update_may_not_touch(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    """The instance is there and stays as it was, and the state knows it."""
    # hashicorp/terraform-provider-google#19342
    message = (
        'failed updating GCE instance projects/p: metadata key "title" is protected by '
        "Workbench Notebooks, invalid argument"
    )
    (bench.folder / "error.json").write_text(
        json.dumps({"at": "update", "code": 3, "message": message})
    )
    with sandboxed(bench, f"error:{bench.folder / 'error.json'}"):
        assert applied(bench, capsys).code == 3
        bench.spec(SPEC.format(more="nat: true\n    labels: {team: ours}"))
        done = applied(bench, capsys)
    told(
        done,
        Wait(
            "",
            "metadata key title is reserved by Workbench",
            message,
            ("remove title from the target's `metadata`",),
        ),
    )
    assert len(left(bench)) == 1
    assert left(bench) == known(bench)


NOBODY = {
    "NO_GCE_CHECK": "true",
    "GOOGLE_APPLICATION_CREDENTIALS": "",
    "CLOUDSDK_CONFIG": "nowhere",
}


@pytest.mark.parametrize("verb", [("plan",), ("apply", "--yes"), ("orphans",)])
def test_no_credentials_at_all(bench: Bench, verb: tuple[str, ...]) -> None:
    bench.spec(SPEC.format(more="nat: true"))
    done = bench.run(verb[0], "spec.yaml", *verb[1:], **NOBODY)
    assert done.returncode == 2
    assert "error: no credentials for Google Cloud were found" in done.stderr
    assert "help: gcloud auth application-default login" in done.stderr
    assert "GOOGLE_APPLICATION_CREDENTIALS" in done.stderr
    assert not (bench.own / "state.json").exists()


class Over(BaseHTTPRequestHandler):
    """A token server that gives no token any more."""

    def do_POST(self) -> None:
        body = b'{"error": "invalid_grant", "error_description": "Bad Request"}'
        self.send_response(400)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        return


def test_credentials_that_are_over(bench: Bench) -> None:
    bench.spec(SPEC.format(more="nat: true"))
    with HTTPServer(("127.0.0.1", 0), Over) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        (bench.folder / "subject").write_text("canary-canary-canary")
        key = {
            "type": "external_account",
            "audience": "//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/p"
            "/providers/p",
            "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
            "token_url": f"http://127.0.0.1:{server.server_address[1]}/token",
            "credential_source": {"file": str(bench.folder / "subject")},
        }
        (bench.folder / "key.json").write_text(json.dumps(key))
        done = bench.run(
            "apply",
            "spec.yaml",
            "--yes",
            **{**NOBODY, "GOOGLE_APPLICATION_CREDENTIALS": str(bench.folder / "key.json")},
        )
        server.shutdown()
    assert done.returncode == 2
    assert "error: your Google Cloud credentials are no longer valid" in done.stderr
    assert "help: gcloud auth application-default login" in done.stderr
    assert "canary" not in done.stdout + done.stderr
    assert "Traceback" not in done.stderr
