"""How a run on a Colab machine is judged, whoever hands out the machines: only a report of this
very run counts, and every ending gives the machine back.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from provision.adapters.colab import runs
from provision.adapters.google.report_polling import DeviceFailed, ReportUnavailable
from provision.effects.colab import RunOnColab
from provision.effects.system import ProgressCallback
from provision.errors import ExternalError
from provision.facts import load_facts as load_facts

NONCE, LOCK = "0123456789abcdef" * 2, "sha256:" + "1" * 64


def status(outcome: str, nonce: str = NONCE, **more: Any) -> dict[str, Any]:
    return {
        "nonce": nonce,
        "stage": "report",
        "outcome": outcome,
        "message": "",
        "hint": "",
        **more,
    }


def report(nonce: str = NONCE, lock: str = LOCK) -> dict[str, Any]:
    return {"subject": {"nonce": nonce}, "lock": {"digest": lock}}


@dataclass
class Scripted:
    """Machines whose cells leave, turn after turn, what the script says; `taken` are those that
    run.
    """

    turns: list[tuple[Any, Any]] = field(default_factory=list)
    ends: bool = True
    deaf: int = 0
    during: Callable[[], None] = lambda: None
    taken: list[str] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)

    def balance(self) -> str:
        return "3 compute units left"

    def take(self, session: str, gpu: str, *, high_memory: bool) -> None:
        self.taken.append(session)

    def run(self, session: str, cell: bytes, timeout_s: int, tell: ProgressCallback) -> bool:
        self.calls.append("run")
        self.during()
        return self.ends

    def restart(self, session: str) -> None:
        self.calls.append("restart")
        self.turns.pop(0)

    def fetch(self, session: str, name: str) -> bytes | None:
        told = self.turns[0][0 if name == "status.json" else 1]
        return told if told is None or isinstance(told, bytes) else json.dumps(told).encode()

    def give_back(self, session: str, tell: ProgressCallback) -> None:
        self.calls.append("give back")
        if self.deaf:
            self.deaf -= 1
            raise ExternalError("it could not be stopped")
        if session in self.taken:
            self.taken.remove(session)


def run(
    machines: Scripted, folder: Path, lines: list[str] | None = None, *, keep: bool = False
) -> bytes:
    path = folder / "report.json"
    effect = RunOnColab("provision-1", "T4", False, b"pass", NONCE, LOCK, folder, path, 60, keep)
    runs.perform_run(effect, machines, (lines if lines is not None else []).append)
    return path.read_bytes()


def test_report_of_this_run_is_filed(tmp_path: Path) -> None:
    machines = Scripted([(status("failed"), report())])
    assert json.loads(run(machines, tmp_path)) == report()
    assert machines.taken == []


def test_as_many_restarts_as_the_cell_asks_for(tmp_path: Path) -> None:
    asks = (status("restart-needed", message="numpy\x1b[2J"), None)
    machines, lines = Scripted([asks, asks, (status("verified"), report())]), []
    run(machines, tmp_path, lines)
    assert machines.calls == ["run", "restart", "run", "restart", "run", "give back"]
    assert r"Colab: restarting the kernel (numpy\x1b[2J)" in lines


def test_restarts_come_to_an_end(tmp_path: Path) -> None:
    asks = (status("restart-needed"), report())
    machines = Scripted([asks] * 9)
    with pytest.raises(ReportUnavailable, match="after 2 restarts") as caught:
        run(machines, tmp_path)
    assert (machines.taken, caught.value.exit_code, caught.value.still_running) == ([], 3, ())


REFUSED: dict[str, tuple[Any, Any, type[ReportUnavailable], str]] = {
    "another run's nonce": (
        status("verified"),
        report(nonce="f" * 32),
        ReportUnavailable,
        "belongs to a different run",
    ),
    "a different lock": (
        status("verified"),
        report(lock="sha256:" + "2" * 64),
        ReportUnavailable,
        "for a different lock",
    ),
    "no JSON": (status("verified"), b"{", ReportUnavailable, "belongs to a different run"),
    "no object": (status("verified"), b"[1]", ReportUnavailable, "belongs to a different run"),
    "nothing": (None, None, ReportUnavailable, "did not write a report"),
    "status of another run": (
        status("stopped", nonce="f" * 32),
        None,
        ReportUnavailable,
        "did not write a report",
    ),
    "stopped": (
        status("stopped", stage="check", message="the GPU is Tesla T4, not L4"),
        None,
        DeviceFailed,
        "stopped at stage check",
    ),
    "stopped beside an older report": (
        status("stopped"),
        report(),
        DeviceFailed,
        "stopped at stage report",
    ),
    "unverified and no report": (
        status("unverified"),
        None,
        ReportUnavailable,
        "stopped at stage report",
    ),
    "a status that is none": (b"\xff", None, ReportUnavailable, "did not write a report"),
    "an endless status": (
        b'"' + b"x" * 2**17 + b'"',
        None,
        ReportUnavailable,
        "did not write a report",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_nothing_else_is_a_report(tmp_path: Path, case: str) -> None:
    told, found, kind, words = REFUSED[case]
    machines = Scripted([(told, found)])
    with pytest.raises(ReportUnavailable, match=words) as caught:
        run(machines, tmp_path)
    assert type(caught.value) is kind
    assert (machines.taken, caught.value.still_running) == ([], ())
    assert not (tmp_path / "report.json").exists()


def test_cell_that_did_not_end(tmp_path: Path) -> None:
    machines = Scripted([(status("stopped", stage="install"), report())], ends=False)
    with pytest.raises(ReportUnavailable, match="did not finish") as caught:
        run(machines, tmp_path)
    assert "last stage: install" in caught.value.why
    assert machines.taken == []


@pytest.mark.parametrize("ending", [KeyboardInterrupt, SystemExit, OSError, ExternalError])
def test_every_ending_gives_the_machine_back(tmp_path: Path, ending: type[BaseException]) -> None:
    def ends() -> None:
        raise ending("now")

    machines = Scripted(during=ends)
    with pytest.raises(ending):
        run(machines, tmp_path, keep=True)
    assert machines.taken == []


def test_giving_back_is_tried_again(tmp_path: Path) -> None:
    machines = Scripted([(status("verified"), report())], deaf=1)
    run(machines, tmp_path)
    assert machines.taken == []


@pytest.mark.long
@pytest.mark.thorough
def test_error_stays_the_one_that_is_told_when_giving_back_fails_too(tmp_path: Path) -> None:
    machines, lines = Scripted([(None, None)], deaf=9), []
    with pytest.raises(ReportUnavailable, match="did not write a report") as caught:
        run(machines, tmp_path, lines)
    assert caught.value.still_running is None
    assert any("may still be running and costing money" in line for line in lines)


def test_kept_only_where_a_report_came(tmp_path: Path) -> None:
    machines = Scripted([(status("failed"), report())])
    run(machines, tmp_path, keep=True)
    assert machines.taken == ["provision-1"]
    lost = Scripted([(None, None)])
    with pytest.raises(ReportUnavailable):
        run(lost, tmp_path, keep=True)
    assert lost.taken == []


@pytest.mark.parametrize(
    ("gpu", "high"),
    [("V100", False), ("t4", False), ("--tpu", False), ("H100", True), ("T4\x1b", False)],
)
def test_machines_that_colab_does_not_have(gpu: str, high: bool) -> None:
    with pytest.raises(ExternalError, match="Colab has no machine with") as caught:
        runs.refuse_unknown_machine(gpu, high_memory=high)
    assert "\x1b" not in caught.value.what


def test_machines_that_colab_has() -> None:
    for shape in load_facts().shapes:
        runs.refuse_unknown_machine(shape.colab, high_memory=shape.shape == "high")
