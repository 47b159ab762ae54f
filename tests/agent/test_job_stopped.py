"""A machine of a job that receives SIGTERM: its program saves what it can, and the replica ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from provision.verification.device_files import job_zipapp
from tests.agent.workbench.bench import Cloud
from tests.support import running

NONCE = "nonce-0001"
FOLDER = f"gs://my-bucket/provision/{NONCE}/"
OWN = f"{FOLDER}workerpool0-0/"
LIMIT_S = 60
SAVES = """\
import os, signal, sys, time
def save(number, frame):
    print("saving", flush=True)
    while not os.path.exists(sys.argv[1]):
        time.sleep(0.02)
    print("saved", flush=True)
    sys.exit(0)
signal.signal(signal.SIGTERM, save)
print("working", flush=True)
time.sleep(600)
"""
IGNORES = """\
import signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: print("ignored", flush=True))
print("working", flush=True)
while True:
    time.sleep(1)
"""


@contextmanager
def program(folder: Path, code: str) -> Iterator[tuple[Cloud, subprocess.Popen[str], Path]]:
    """Run a program in the image's own Python, by the program of a replica; yield at its output."""
    (folder / "cloud").mkdir()
    with Cloud(folder / "cloud") as cloud:
        setup = cloud.document(NONCE)
        saved = folder / "saved.txt"
        request = {
            "argv": ["python3", "-c", code, str(saved)],
            "processes": 0,
            "restarts": 1,
            "about": {},
        }
        document = {
            "schema": "provision.agent.job/1",
            "folder": FOLDER,
            "join_timeout_s": 60,
            "environment": "baked",
            "setup": setup,
            "program": request,
        }
        file, work = folder / "document.json", folder / "work"
        file.write_text(json.dumps(document))
        work.mkdir()
        device = folder / "device.pyz"
        device.write_bytes(job_zipapp())
        words = ["run", "--document", str(file), "--work", str(work)]
        words += ["--metadata", f"{cloud.address}/computeMetadata/v1", "--storage", cloud.address]
        replica = subprocess.Popen(
            [sys.executable, "-I", str(device), *words],
            env={"PATH": os.environ["PATH"], "HOME": str(folder)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        try:
            await_output(cloud, replica, "working")
            yield cloud, replica, saved
        finally:
            replica.kill()


def output(cloud: Cloud) -> str:
    """What the program has written, as the bucket has it."""
    parts = sorted(name for name in cloud.objects if name.startswith(f"{OWN}output-001-"))
    return "".join(cloud.text(name) for name in parts)


def await_output(cloud: Cloud, replica: subprocess.Popen[str], line: str) -> None:
    deadline = time.monotonic() + LIMIT_S
    while line not in output(cloud):
        assert (time.monotonic() < deadline, replica.poll()) == (True, None), replica.communicate()
        time.sleep(0.02)


def test_a_program_saves_when_its_machine_is_stopped(tmp_path: Path) -> None:
    with program(tmp_path, SAVES) as (cloud, replica, saved):
        replica.send_signal(signal.SIGTERM)
        await_output(cloud, replica, "saving")  # it is sent while the program saves
        saved.touch()
        shown, _ = replica.communicate(timeout=LIMIT_S)
        assert replica.returncode == 143, shown
        assert output(cloud) == "working\nsaving\nsaved\n"
        status = json.loads(cloud.text(f"{OWN}status.json"))
        assert (status["s"], status["p"]) == ("running", "program"), "the program has not ended"
        assert status["w"] == ["the machine was stopped (SIGTERM) before the program ended"]


@pytest.mark.long
def test_a_program_that_ignores_the_signal_is_killed(tmp_path: Path) -> None:
    with program(tmp_path, IGNORES) as (cloud, replica, saved):
        began = time.monotonic()
        replica.send_signal(signal.SIGTERM)
        shown, _ = replica.communicate(timeout=LIMIT_S)
        assert replica.returncode == 143, shown
        assert 11 < time.monotonic() - began < 15, "12 s, of the 15 s that a container has"
        assert output(cloud) == "working\nignored\n"
        assert running(str(saved)) == []
