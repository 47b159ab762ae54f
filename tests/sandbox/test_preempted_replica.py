"""Replicas whose machine is reclaimed, and what is left of a replica that has ended."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from provision.sandbox.lifecycle import Delays
from tests.sandbox.test_custom_jobs import CustomJobs, body, require_hosts
from tests.sandbox_rig import clients
from tests.support import running

FAULT = "worker-preempted:workerpool1-0:step 2"
WORKER = """\
import os, pathlib, signal, subprocess, sys, time
own = pathlib.Path({folder!r})
if os.environ["RANK"] == "0":
    while not (own / "again").exists():
        time.sleep(0.02)
    sys.exit(0)
home = pathlib.Path.home()
if (own / "first").exists():
    left = [file.name for file in own.glob("child*") if (home / file.name).exists()]
    print("again, with", left, flush=True)
    (own / "again").touch()
    time.sleep(60)
child = (
    "import pathlib, signal, sys, time\\n"
    "def note(number, frame): pathlib.Path(sys.argv[1] + '-signalled').touch()\\n"
    "signal.signal(signal.SIGTERM, note)\\n"
    "pathlib.Path(sys.argv[1]).touch()\\n"
    "while True: time.sleep(1)\\n"
)
for number in (1, 2):  # the second one in a session of its own, as torchrun starts processes
    note = own / f"child{{number}}"
    command = [sys.executable, "-c", child, str(note)]
    subprocess.Popen(command, start_new_session=number == 2)
    while not note.exists():
        time.sleep(0.02)
    (home / note.name).touch()
def stop(number, frame):
    print("stopped", flush=True)
    if {ends}:
        sys.exit(143)
signal.signal(signal.SIGTERM, stop)
(own / "first").touch()
print("provision: phase program", flush=True)
for step in (1, 2):
    print("step", step, flush=True)
    time.sleep(0.5)
while True:
    time.sleep(1)
"""


@contextmanager
def preempted(folder: Path, *, ends: bool) -> Iterator[tuple[CustomJobs, str]]:
    """Run a job whose second replica is reclaimed; yield with what that replica has written."""
    delays = Delays(grace=1)
    with clients(folder / "sandbox", FAULT, delays=delays) as sandbox:
        jobs = CustomJobs(sandbox)
        own = folder / "own"
        own.mkdir()
        job = body(WORKER.format(folder=str(own), ends=ends), workers=1)
        job["jobSpec"]["scheduling"] = {"timeout": "60s"}
        done = jobs.run(job)
        assert done["state"] == "JOB_STATE_SUCCEEDED", (done, jobs.logs())
        yield jobs, jobs.logs()[-1]
        jobs.built.close()


@pytest.fixture(params=["hosts", pytest.param("shared network", marks=pytest.mark.long)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """A folder; with namespaces, and without them."""
    path = os.environ["PATH"]
    if request.param == "hosts":
        require_hosts(tmp_path)
    else:
        os.environ["PATH"] = str(tmp_path)  # without ip and nsenter
    try:
        yield tmp_path
    finally:
        os.environ["PATH"] = path


@pytest.mark.parametrize("ends", [True, False], ids=["ends", "ignores"])
def test_a_reclaimed_machine_is_replaced(place: Path, ends: bool) -> None:
    with preempted(place, ends=ends) as (_, log):
        lines = [line for line in log.splitlines() if not line.startswith("provision: ")]
        assert lines == ["step 1", "step 2", "stopped", "again, with []"], "on another disk"
        signalled = [file.name for file in (place / "own").glob("*-signalled")]
        assert signalled == [], "only the command of a container gets SIGTERM"
        assert running(str(place / "own/child")) == [], "a machine ends with all its processes"
