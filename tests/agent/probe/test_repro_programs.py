"""Programs for checks of the machine and its cards, with the fault and without it, as the real
probe has found it where it can be made here.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from provision.verification import Report
from provision.verification.repro import build_repro_program
from tests.agent.probe.bench import Environment
from tests.agent.probe.machines import SMI, make_program, told
from tests.agent.probe.test_repro import ends, found, runs

RECORDED = Path(__file__).parents[2] / "reports" / "recorded"
HUB = [{"name": "huggingface-hub", "version": "2.4.0"}]


def failed(
    identity: str,
    expected: Any = None,
    observed: Any = None,
    message: str = "",
    status: str = "fail",
    **readings: Any,
) -> Report:
    document = json.loads((RECORDED / "small-shm.json").read_bytes())
    document["checks"][0].update(
        id=identity, status=status, expected=expected, observed=observed, message=message
    )
    document["subject"]["proof"] = "hf-trainer"
    document["readings"] = [
        {"key": key.replace("__", "."), "value": value, "class": "context"}
        for key, value in readings.items()
    ]
    return Report(document)


# The place


@pytest.mark.long
def test_a_variable_that_keeps_the_hub_away(environment: Environment) -> None:
    environment.add("transformers")
    there = {"HF_HUB_OFFLINE": "1"}
    program = found(environment, "E03", there, tier="inventory")

    assert ends(environment, program, there)[0] == 1
    assert ends(environment, program, {"HF_HUB_OFFLINE": "0"})[0] == 0


@pytest.mark.long
def test_a_secret_that_is_not_there(environment: Environment) -> None:
    program = found(environment, "Y01", secrets=["HF_TOKEN"], tier="inventory")

    assert ends(environment, program)[0] == 1
    code, said = ends(environment, program, {"HF_TOKEN": "hf_something"})
    assert (code, "something" in said) == (0, False)


@pytest.mark.long(after=1)
@pytest.mark.parametrize(
    ("line", "declared"),
    [("export MODE=slow", {"MODE": "fast"}), ("export PYTHONPATH=/nowhere", {})],
)
def test_a_login_shell_that_sets_something_else(
    environment: Environment, tmp_path: Path, line: str, declared: dict[str, str]
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    for name in (".profile", ".bash_profile", ".zprofile"):
        (home / name).write_text(f"{line}\necho hello\n")
    there = {"HOME": str(home), **declared}
    program = found(environment, "W02", there, tier="deep", env=declared)

    assert ends(environment, program, there)[0] == 1
    for name in (".profile", ".bash_profile", ".zprofile"):
        (home / name).unlink()
    assert ends(environment, program, there)[0] == 0


def test_another_kind_of_place(environment: Environment) -> None:
    program = found(environment, "H11", target={"name": "colab", "kind": "colab"}, tier="inventory")

    assert ends(environment, program)[0] == 1
    assert ends(environment, program, {"COLAB_RELEASE_TAG": "release-colab_1"})[0] == 0


@pytest.mark.long
def test_a_clock_that_is_behind(environment: Environment) -> None:
    note = environment.root / "pyvenv.cfg"
    os.utime(note, (time.time() + 5000, time.time() + 5000))
    program = found(environment, "H09", tier="inventory")

    assert ends(environment, program)[0] == 1
    os.utime(note)
    assert ends(environment, program)[0] == 0


@pytest.fixture
def hub() -> Iterator[Callable[..., str]]:
    """Start a server that answers as it is told; its address."""
    servers: list[ThreadingHTTPServer] = []

    def start(status: int) -> str:
        class Answer(BaseHTTPRequestHandler):
            def do_HEAD(self) -> None:
                self.send_response_only(status)
                self.send_header("Date", formatdate(time.time(), usegmt=True))
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        servers.append(ThreadingHTTPServer(("127.0.0.1", 0), Answer))
        Thread(
            target=servers[-1].serve_forever, kwargs={"poll_interval": 0.05}, daemon=True
        ).start()
        return f"http://127.0.0.1:{servers[-1].server_port}"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.mark.long
def test_a_hub_that_does_not_answer(environment: Environment, hub: Callable[..., str]) -> None:
    package = next(environment.root.glob("lib/python*/site-packages")) / "huggingface_hub"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "constants.py").write_text('import os\nENDPOINT = os.environ["HF_ENDPOINT"]\n')
    well, ill = ({"HF_ENDPOINT": hub(status)} for status in (200, 503))
    nobody = {"HF_ENDPOINT": "http://127.0.0.1:9"}
    asked = {"tier": "deep", "packages": HUB}
    way, answer = (
        found(environment, "X01", nobody, **asked),
        found(environment, "X02", ill, **asked),
    )

    assert [ends(environment, way, one)[0] for one in (nobody, ill, well)] == [1, 0, 0]
    assert [ends(environment, answer, one)[0] for one in (nobody, ill, well)] == [2, 1, 0]


# The cards, which are not there


@pytest.mark.long(after=1)
@pytest.mark.parametrize(
    "wrong",
    [{"mig.mode.current": "Enabled"}, {"compute_mode": "Prohibited"}, {"power.limit": "60.00"}],
)
def test_a_card_that_is_set_up_otherwise(
    environment: Environment, tmp_path: Path, wrong: dict[str, str]
) -> None:
    there = {"PATH": f"{make_program(tmp_path)}:/usr/bin:/bin", "FAKE_SMI": told(SMI)}
    broken = {**there, "FAKE_SMI": told({**SMI, **wrong})}
    program = found(environment, "D09", broken, gpu={"type": "L4", "count": 1}, tier="inventory")

    assert ends(environment, program, broken)[0] == 1
    assert ends(environment, program, there)[0] == 0
    assert runs(environment.python, program, tmp_path, PATH="/nowhere")[0] == 2


def script(folder: Path, name: str, body: str) -> str:
    (folder / name).write_text(f"#!/bin/sh\n{body}\n")
    (folder / name).chmod(0o755)
    return f"{folder}:/usr/bin:/bin"


@pytest.mark.long
def test_what_nvidias_diagnosis_says(environment: Environment, tmp_path: Path) -> None:
    answer = {
        "DCGM Diagnostic": {
            "test_categories": [
                {
                    "tests": [
                        {
                            "name": "PCIe",
                            "results": [{"status": "Fail", "warnings": [{"warning": "slow"}]}],
                        }
                    ]
                }
            ]
        }
    }
    path = script(tmp_path, "dcgmi", f"echo '{json.dumps(answer)}'")
    program = found(
        environment, "D10", {"PATH": path}, gpu={"type": "L4", "count": 1}, tier="quick"
    )

    code, said = runs(environment.python, program, tmp_path, PATH=path)
    assert (code, "PCIe: Fail" in said) == (1, True)
    script(tmp_path, "dcgmi", f"echo '{json.dumps(answer).replace('Fail', 'Pass')}'")
    assert runs(environment.python, program, tmp_path, PATH=path)[0] == 0
    script(tmp_path, "dcgmi", "echo no")
    assert runs(environment.python, program, tmp_path, PATH=path)[0] == 2


def test_no_library_to_ask(environment: Environment, tmp_path: Path) -> None:
    program = build_repro_program(failed("D02", ">=580"), "D02", {})
    code, said = runs(environment.python, program, tmp_path)

    assert (code, "no NVIDIA driver" in said, "Traceback" in said) == (2, True, False)
