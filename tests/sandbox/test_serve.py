"""A running sandbox: HTTP server, devices, two processes at one folder, and the command."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from provision.errors import ExternalError
from provision.extras import install_command
from provision.sandbox import http_server as sandbox_http
from provision.sandbox.booter import Booter
from provision.sandbox.faults import Faults
from provision.sandbox.http_server import Request, Router
from provision.sandbox.lifecycle import Delays
from provision.sandbox.serve import serve
from provision.sandbox.store import Store
from tests import fork_server
from tests.sandbox_rig import BODY, NAME, ZONE, Clients, clients


class Recording(Booter):
    """A booter that writes down what it is asked."""

    def __init__(self, *, ends: bool = False) -> None:
        self.calls: list[tuple[str, str]] = []
        self.endpoints: dict[str, str] = {}
        self._ends = ends

    def start(self, store: Store, name: str, endpoints: Mapping[str, str], faults: Faults) -> None:
        self.calls.append(("start", name))
        self.endpoints = dict(endpoints)
        assert store.instance(name) is not None
        if self._ends:
            store.note(name, booted=True)

    def close(self) -> None:
        return

    def stop(self, name: str) -> None:
        self.calls.append(("stop", name))


def test_devices_are_booted_and_ended(tmp_path: Path) -> None:
    booter = Recording()
    with clients(tmp_path, booter=booter) as sandbox:
        sandbox.made()
        assert booter.calls == [("start", NAME)]
        assert booter.endpoints == sandbox.running.endpoints
        for verb in ("reset", "stop", "start"):
            sandbox.done(getattr(sandbox.rest.instances(), verb)(name=NAME, body={}).execute())
            while (
                verb == "reset"
                and sandbox.rest.instances().get(name=NAME).execute()["state"] != "ACTIVE"
            ):
                pass
        sandbox.done(sandbox.rest.instances().delete(name=NAME).execute())
    assert [verb for verb, _ in booter.calls] == ["start", "stop", "start", "stop", "start", "stop"]


def test_a_device_that_booted_is_not_booted_by_the_next_process(tmp_path: Path) -> None:
    for booter, again in ((Recording(), [("start", NAME)]), (Recording(ends=True), [])):
        with clients(tmp_path / str(bool(again)), booter=booter) as sandbox:
            sandbox.made()
        later = Recording()
        with serve(tmp_path / str(bool(again)), booter=later):
            assert later.calls == again


def test_without_boot_nobody_is_asked(tmp_path: Path) -> None:
    booter = Recording()
    with clients(tmp_path, booter=booter, boot=False) as sandbox:
        sandbox.made()
    assert booter.calls == []


def test_an_operation_ends_while_the_sandbox_is_away(tmp_path: Path) -> None:
    booter = Recording()
    with clients(tmp_path, delays=Delays(operation=0.2)) as sandbox:
        sandbox.rest.instances().create(parent=ZONE, instanceId="one", body=BODY).execute()
    threading.Event().wait(0.3)
    with clients(tmp_path, booter=booter) as sandbox:
        assert booter.calls[0] == ("start", NAME)
        assert sandbox.rest.instances().get(name=NAME).execute()["state"] == "PROVISIONING"


def test_a_second_one_uses_the_first(tmp_path: Path) -> None:
    with serve(tmp_path) as first:
        with serve(tmp_path) as second:
            assert second.endpoints == first.endpoints
            assert second.store is None
            assert f"process {os.getpid()}: " in second.holder
        with (
            pytest.raises(
                ExternalError, match="another process is already running a sandbox"
            ) as caught,
            serve(tmp_path, ("hang",)),
        ):
            pass
        assert f"process {os.getpid()}: " in caught.value.why
    with serve(tmp_path) as third:
        assert third.store is not None


def test_a_port_that_is_taken(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        for ports in ((port, 0), (0, port)):
            with pytest.raises(ExternalError, match="cannot listen"), serve(tmp_path, ports=ports):
                pass
    with serve(tmp_path) as free:
        assert free.store is not None, "what failed has let go of the folder"


def test_a_missing_extra_names_the_way_out(tmp_path: Path) -> None:
    code = (
        "import sys, pathlib\nsys.modules['grpc'] = None\n"
        "from provision.sandbox.serve import serve\nfrom provision.errors import ExternalError\n"
        "try:\n    serve(pathlib.Path(sys.argv[1])).__enter__()\nexcept ExternalError as "
        "error:\n    print(error.hint)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, timeout=600
    )
    assert done.stdout == f"{install_command('sandbox')}\n", done.stderr


@pytest.mark.parametrize(
    ("method", "path", "headers", "status"),
    [
        ("GET", "/nothing", {}, 404),
        ("PUT", f"/v2/{ZONE}/instances", {}, 405),
        ("GET", f"/v2/{ZONE}/instances", {"Origin": "http://evil.example"}, 403),
        ("GET", f"/v2/{ZONE}/instances", {"Host": "evil.example"}, 403),
        ("GET", f"/v2/{ZONE}/instances?pageSize=x", {}, 400),
        ("POST", f"/v2/{ZONE}/instances?instanceId=one", {"Transfer-Encoding": "chunked"}, 411),
        ("POST", f"/v2/{ZONE}/instances?instanceId=one", {"Content-Length": "-1"}, 411),
        ("POST", f"/v2/{ZONE}/instances?instanceId=one", {"Content-Length": str(1 << 40)}, 413),
    ],
)
def test_requests_that_are_refused(
    sandbox: Clients, method: str, path: str, headers: dict[str, str], status: int
) -> None:
    connection = http.client.HTTPConnection(sandbox.root.removeprefix("http://"), timeout=600)
    connection.putrequest(method, path, skip_host="Host" in headers)
    for name, value in headers.items():
        connection.putheader(name, value)
    connection.endheaders()
    got = connection.getresponse()
    assert (got.status, json.loads(got.read())["error"]["code"]) == (status, status)
    connection.close()


def test_a_body_that_is_no_json(sandbox: Clients) -> None:
    status, body, _ = sandbox.http("POST", f"/v2/{ZONE}/instances?instanceId=one", b"{")
    assert (status, body["error"]["message"]) == (
        400,
        "Invalid JSON payload received. Parsing error.",
    )
    for odd in (b"[]", b"3", b'"x"'):
        assert sandbox.http("POST", f"/v2/{ZONE}/instances?instanceId=one", odd)[0] == 400
        assert sandbox.http("PATCH", f"/v2/{NAME}?updateMask=labels", odd)[0] in {400, 404}
        assert sandbox.http("POST", "/v1/projects/p/secrets/s:addVersion", odd)[0] == 400
        assert sandbox.http("POST", "/storage/v1/b?project=p", odd)[0] == 400


def test_a_connection_ends_with_the_sandbox(tmp_path: Path) -> None:
    with serve(tmp_path) as running:
        connection = http.client.HTTPConnection(
            running.endpoints["storage"].removeprefix("http://"), timeout=600
        )
        connection.request("GET", f"/v2/{ZONE}/instances")
        assert connection.getresponse().read() == b"{}\n"
    assert connection.sock.recv(1) == b""
    connection.close()


def test_a_bug_is_told_as_an_internal_error() -> None:
    def broken(request: Request) -> Any:
        raise ValueError("oh")

    router = Router(
        [
            ("GET", "/broken", broken),
            (
                "GET",
                "/echo/{one}/{rest*}",
                lambda request, one, rest: [one, rest, dict(request.query)],
            ),
        ]
    )
    with sandbox_http.run_http_server(router) as port:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
        connection.request("GET", "/broken")
        got = connection.getresponse()
        assert (got.status, json.loads(got.read())["error"]["message"]) == (
            500,
            "the sandbox failed: ValueError: oh",
        )
        connection.request("GET", "/echo/a%2Fb/c/d%20e?x=1&x=2&y=")
        assert json.loads(connection.getresponse().read()) == ["a/b", "c/d e", {"x": "2", "y": ""}]
        connection.close()


def test_the_messages_of_grpc_are_loaded_by_the_first_call_alone(tmp_path: Path) -> None:
    code = (
        "import sys, pathlib, http.client\nfrom provision.sandbox.serve import serve\n"
        "with serve(pathlib.Path(sys.argv[1])) as running:\n"
        "    asked = "
        "http.client.HTTPConnection(running.endpoints['storage'].removeprefix('http://'))\n"
        "    asked.request('GET', '/v2/projects/p/locations/-/instances')\n"
        "    assert asked.getresponse().status == 200\n"
        "print('google.cloud.notebooks_v2' in sys.modules, 'googleapiclient' in sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=600,
        check=True,
    )
    assert done.stdout == "False False\n"


def started(folder: Path, *words: str) -> tuple[subprocess.Popen[str], dict[str, Any]]:
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    argv = [*fork_server.ARGV, "sandbox", "up", "--output-format", "json", *words]
    process = fork_server.Process(
        argv, cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
    )
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line, process.communicate(timeout=600)[1]
    return process, json.loads(line)


@pytest.mark.parametrize(("ending", "code"), [(signal.SIGINT, 0), (signal.SIGTERM, 143)])
def test_the_command_runs_until_it_is_ended(
    tmp_path: Path, ending: signal.Signals, code: int
) -> None:
    process, told = started(tmp_path, "--fault", "quota-global")
    try:
        assert told["environment"]["STORAGE_EMULATOR_HOST"] == told["endpoints"]["storage"]
        other = fork_server.run(
            [*fork_server.ARGV, "sandbox", "up"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=600,
        )
        assert (other.returncode, "a sandbox is already running" in other.stderr) == (
            2,
            True,
        )
        with serve(tmp_path / ".provision/sandbox") as running:
            assert running.endpoints == told["endpoints"]
    finally:
        process.send_signal(ending)
        _, said = process.communicate(timeout=600)
    assert process.returncode == code, said
    assert "SANDBOX" in said
    assert not (tmp_path / ".provision/sandbox/endpoints.json").exists()


def test_a_killed_one_is_in_nobodys_way(tmp_path: Path) -> None:
    process, _ = started(tmp_path, "--folder", "local")
    process.kill()
    process.communicate(timeout=600)
    with serve(tmp_path / "local") as running:
        assert running.store is not None


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("up", "--fault", "stokout:x"), "did you mean stockout?"),
        (("up", "--port", "70000"), "70000"),
        (("down",), "down"),
    ],
)
def test_words_that_are_wrong(tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    done = fork_server.run(
        [*fork_server.ARGV, "sandbox", *words],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_faults_are_listed(tmp_path: Path) -> None:
    done = fork_server.run(
        [*fork_server.ARGV, "sandbox", "faults"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=600,
        check=True,
    )
    assert "stockout:ZONE" in done.stdout
    assert "busy[:N]" in done.stdout
    assert list(tmp_path.iterdir()) == []
