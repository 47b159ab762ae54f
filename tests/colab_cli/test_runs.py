"""Runs on Colab machines through Google's own program against a stand-in of the service: what comes
home, and that nothing is left running.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from provision.adapters import RealSystem
from provision.adapters.google.report_polling import ReportUnavailable
from provision.effects.colab import RunOnColab, StopColabSession
from provision.errors import ExternalError, NetworkError
from tests.colab_cli import cells
from tests.colab_cli.rig import Account

NAME = "provision-0123456789ab"


@dataclass
class Runs:
    """A folder of ours, and an account."""

    account: Account
    folder: Path
    lines: list[str] = field(default_factory=list)

    def effect(self, cell: str, **more: Any) -> RunOnColab:
        told = {"gpu": "T4", "high_memory": False, "timeout_s": 60, **more}
        return RunOnColab(
            NAME,
            cell=cell.encode(),
            nonce=cells.NONCE,
            lock_digest=cells.LOCK,
            folder=self.folder,
            report=self.folder / "report.json",
            **told,
        )

    def run(
        self, cell: str, *, environment: dict[str, str] | None = None, **more: Any
    ) -> dict[str, Any]:
        self.world(environment).perform(self.effect(cell, **more), self.lines.append)
        return dict(json.loads((self.folder / "report.json").read_text()))

    def stop(self) -> None:
        self.world().perform(StopColabSession(NAME, self.folder), self.lines.append)

    def world(self, environment: dict[str, str] | None = None) -> RealSystem:
        return RealSystem({**os.environ, **self.account.variables(), **(environment or {})})

    @property
    def running(self) -> int:
        return len(self.account.plane.running)


@pytest.fixture
def runs(account: Account, tmp_path: Path) -> Runs:
    return Runs(account, tmp_path / "colab")


@pytest.mark.long
def test_report_fetched_after_a_restart_and_the_machine_given_back(runs: Runs) -> None:
    found = runs.run(cells.restarting(1), gpu="T4", high_memory=True)
    assert found["subject"]["nonce"] == cells.NONCE
    (asked,) = runs.account.plane.granted
    assert (asked["variant"], asked["accelerator"], asked["shape"]) == ("GPU", "T4", "hm")
    assert (len(runs.account.plane.returned), runs.running) == (1, 0)
    assert "Colab account: 42.50 compute units left" in runs.lines
    assert "Colab: restarting the kernel (numpy is loaded in an older version)" in runs.lines
    assert "  stage install: 2 of 2 packages" in runs.lines
    assert not any("base64" in line or "QUJD" in line for line in runs.lines)
    assert sorted(path.name for path in runs.folder.iterdir()) == [
        "report.json",
        "sessions.json",
        "sessions.json.lock",
    ]
    assert (
        runs.folder.stat().st_mode & 0o777,
        (runs.folder / "report.json").stat().st_mode & 0o777,
    ) == (0o700, 0o600)
    assert "token" not in (runs.folder / "sessions.json").read_text()


@pytest.mark.long
def test_cell_that_raises_ends_with_0_and_is_no_report(runs: Runs) -> None:
    with pytest.raises(ReportUnavailable, match="did not write a report") as caught:
        runs.run(
            "print('\\x1b[31mred\\x1b[0m ya29.aaaaaaaaaaaaaaaaaaaaaaaaaaa')\nraise "
            "RuntimeError('no')",
            gpu="",
        )
    assert caught.value.still_running == ()
    assert (runs.account.plane.granted[0]["variant"], runs.running) == ("DEFAULT", 0)
    assert any(
        r"\x1b[31mred" in line and "***" in line and "ya29" not in line for line in runs.lines
    )


@pytest.mark.long
def test_cell_that_does_not_end_is_left(runs: Runs) -> None:
    began = time.monotonic()
    with pytest.raises(ReportUnavailable, match="did not finish"):
        runs.run("import time\ntime.sleep(600)", timeout_s=1)
    assert time.monotonic() - began < 120
    assert runs.running == 0


@pytest.mark.long(minutes=True)
def test_refusals_of_the_service(runs: Runs) -> None:
    runs.account.plane.running["m-s-of-someone"] = {}
    for status, words in (
        (412, "too many running sessions"),
        (400, "not allowed to use this GPU"),
        (503, "returned status 503"),
        (500, "Internal Server Error"),
    ):
        runs.account.plane.refuse = status
        with pytest.raises(ExternalError) as caught:
            runs.run("pass")
        told = f"{caught.value.what} {caught.value.why} {caught.value.hint}"
        assert words in told
        assert "\x1b" not in told
        assert caught.value.still_running == ()
        # Some machine runs whose answer may have been lost, where the service did not clearly say
        # no.
        assert ("this account has 1 other session on Colab" in told) is (status in (503, 500))


@pytest.mark.long
def test_service_out_of_reach(runs: Runs) -> None:
    with pytest.raises(NetworkError) as caught:
        runs.run("pass", environment={"COLAB_STAND_IN": "http://127.0.0.1:9"})
    assert "Max retries exceeded" in caught.value.why


@pytest.mark.long(after=1)
@pytest.mark.parametrize("auth", ["adc", "oauth2"])
def test_nobody_signed_in(runs: Runs, auth: str) -> None:
    with pytest.raises(ExternalError, match="not signed in") as caught:
        runs.run(
            "pass", environment={"GOOGLE_APPLICATION_CREDENTIALS": "", "PROVISION_COLAB_AUTH": auth}
        )
    assert ("gcloud auth application-default login --scopes=" in caught.value.hint) is (
        auth == "adc"
    )
    assert caught.value.still_running == ()
    assert runs.account.plane.calls == []


@pytest.mark.long
@pytest.mark.parametrize("lacks", ["signed_in", "scoped"])
def test_credentials_that_are_refused(runs: Runs, lacks: str) -> None:
    setattr(runs.account.plane, lacks, False)
    with pytest.raises(ExternalError, match="not signed in to Colab") as caught:
        runs.run("pass")
    assert "colaboratory" in caught.value.hint
    assert "PROVISION_COLAB_AUTH=oauth2" in caught.value.hint
    assert "compute-unit" not in caught.value.why


@pytest.mark.long(minutes=True)
def test_giving_back_that_fails_is_told_and_done_later(runs: Runs) -> None:
    runs.account.plane.deaf = True
    with pytest.raises(ExternalError, match="could not be stopped") as caught:
        runs.run(cells.writing(cells.status("verified"), cells.report()))
    assert caught.value.still_running is None
    assert "Manage sessions" in caught.value.hint
    runs.account.plane.deaf = False
    runs.stop()
    assert runs.running == 0
    runs.stop()  # nothing is there any more


def test_no_program(tmp_path: Path) -> None:
    effect = RunOnColab(
        NAME,
        "T4",
        False,
        b"pass",
        cells.NONCE,
        cells.LOCK,
        tmp_path / "colab",
        tmp_path / "report.json",
        60,
    )
    with pytest.raises(ExternalError, match="the `colab` program was not found") as caught:
        RealSystem({"PATH": str(tmp_path)}).perform(effect, print)
    assert "uv tool install google-colab-cli" in caught.value.hint
    assert caught.value.still_running == ()


@pytest.mark.parametrize(
    ("gpu", "high"), [("V100", False), ("t4", False), ("--tpu", False), ("H100", True)]
)
def test_unknown_machines_are_refused_before_anything_is_called(
    tmp_path: Path, gpu: str, high: bool
) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "colab").write_text(f"#!/bin/sh\necho called >> {tmp_path}/called\n")
    (programs / "colab").chmod(0o755)
    effect = RunOnColab(
        NAME,
        gpu,
        high,
        b"pass",
        cells.NONCE,
        cells.LOCK,
        tmp_path / "colab",
        tmp_path / "report.json",
        60,
    )
    with pytest.raises(ExternalError, match="Colab has no machine with"):
        RealSystem({"PATH": f"{programs}:{os.environ['PATH']}"}).perform(effect, print)
    assert not (tmp_path / "called").exists()


def test_unknown_way_to_sign_in(tmp_path: Path) -> None:
    with pytest.raises(ExternalError, match="PROVISION_COLAB_AUTH"):
        RealSystem({"PATH": str(tmp_path), "PROVISION_COLAB_AUTH": "gcloud"}).perform(
            StopColabSession(NAME, tmp_path), print
        )


BESIDE = """\
import os, sys
sys.path.insert(0, {root!r})
from pathlib import Path
from provision.adapters import RealSystem
from provision.cli.signals import raise_on_signals
raise_on_signals()
from tests.colab_cli.test_runs import Runs, NAME
from tests.colab_cli import cells
from provision.effects.colab import RunOnColab
cell = b"import time; print('asleep', flush=True); time.sleep(100)"
report = Path("r.json")
effect = RunOnColab(
    NAME, "T4", False, cell, cells.NONCE, cells.LOCK, Path({folder!r}), report, 60
)
RealSystem().perform(effect, lambda line: print(line, flush=True))
"""


def beside(runs: Runs, tmp_path: Path) -> subprocess.Popen[str]:
    """Perform a run in a process of its own."""
    code = BESIDE.format(root=str(Path(__file__).parents[2]), folder=str(runs.folder))
    environment = {**os.environ, **runs.account.variables()}
    return subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def await_that(holds: Callable[[], bool], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.mark.long
def test_sigterm_while_the_cell_runs(runs: Runs, tmp_path: Path) -> None:
    process = beside(runs, tmp_path)
    assert process.stdout is not None
    for line in process.stdout:
        if "asleep" in line:
            break
    assert runs.running == 1
    process.terminate()
    process.communicate(timeout=600)
    assert runs.running == 0


@pytest.mark.long
@pytest.mark.parametrize("number", [2, 9])
def test_ended_while_a_machine_is_asked_for(runs: Runs, tmp_path: Path, number: int) -> None:
    """The program goes on: it learns the machine's name, and whoever stops the session waits for
    that.
    """
    runs.account.plane.hold = threading.Event()
    process = beside(runs, tmp_path)
    runs.account.plane.arrived.wait(300)
    await_that(lambda: runs.running == 1)
    process.send_signal(number)
    threading.Timer(2, runs.account.plane.hold.set).start()
    said, _ = process.communicate(timeout=600)
    if number == 9:
        assert runs.running == 1
        runs.stop()
        said = "\n".join(runs.lines)
    assert "waiting for Colab's response" in said
    assert runs.running == 0
    assert len(runs.account.plane.returned) == 1
