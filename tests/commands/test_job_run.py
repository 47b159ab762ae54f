"""`provision run` on a job, by the real command against the emulated Vertex AI: the program runs on
all replicas, its output is followed, and its exit code is that of the primary one.
"""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from provision.sandbox.serve import serve
from provision.sandbox.store import Store
from tests.commands.test_code_repository import URL, commit, repository  # noqa: F401
from tests.commands.test_enterprise_killed import run as run_killed
from tests.commands.test_vertex_job import SPEC, TWO_REGIONS, assert_nothing_costs, jobs, logs
from tests.rig import Bench

pytest.importorskip("google.cloud.notebooks_v2")

CODE = "code: .\n"
PROGRAM = """\
import os, sys, time
import alpha
rank = int(os.environ["RANK"])
print(f"machine {rank} of {os.environ['WORLD_SIZE']}, alpha from {alpha.__name__}", flush=True)
held = bytearray((rank + 1) * 30_000_000)
time.sleep(float(sys.argv[1]))
print(f"done {rank}", flush=True)
sys.exit(int(sys.argv[2]) if rank == 0 else 0)
"""
RUN = ("run", "spec.yaml", "--sandbox")
LIMIT_S = 600


def prepare(bench: Bench, spec: str = SPEC + CODE, program: str = PROGRAM) -> None:
    """Write the spec, its lock and the program."""
    bench.spec(spec)
    (bench.folder / "train.py").write_text(program)
    locked = bench.run("lock", "spec.yaml")
    assert locked.returncode == 0, locked.stderr
    # The spec is for a CPU and for this Python: a sandbox locks the same.
    state = bench.folder / ".provision/sandbox/state"
    state.mkdir(parents=True, exist_ok=True)
    (state / "spec.lock").write_bytes((bench.folder / "spec.lock").read_bytes())


def ended(running: subprocess.Popen[str]) -> tuple[int, str, str]:
    output, errors = running.communicate(timeout=LIMIT_S)
    return running.returncode, output, errors


def test_a_program_runs_on_all_machines_and_its_exit_code_is_returned(bench: Bench) -> None:
    prepare(bench)
    done = bench.run(*RUN, "--rank", "all", "--", "python", "train.py", "2", "7")
    assert done.returncode == 7, done.stderr + logs(bench)
    assert sorted(done.stdout.splitlines()) == [
        "[workerpool0-0] done 0",
        "[workerpool0-0] machine 0 of 2, alpha from alpha",
        "[workerpool1-0] done 1",
        "[workerpool1-0] machine 1 of 2, alpha from alpha",
    ]
    (job,) = jobs(bench)
    assert job["state"] == "JOB_STATE_FAILED"
    assert job["jobSpec"]["scheduling"]["disableRetries"] is True
    (path,) = (bench.folder / ".provision/sandbox/state/reports").glob("*/runs/*.json")
    record = json.loads(path.read_bytes())
    peaks = {name: row["peaks"]["ram_bytes"] for name, row in record["replicas"].items()}
    assert 60e6 < record["peaks"]["ram_bytes"] == peaks["workerpool1-0"], peaks
    assert peaks["workerpool0-0"] < peaks["workerpool1-0"]
    assert (record["program"]["script"], record["ended"]["code"]) == ("train.py", 7)
    shown = bench.run("fit", "spec.yaml", "--run", str(path), "--output-format", "json")
    assert str(record["peaks"]["ram_bytes"]) in shown.stdout, shown.stdout + shown.stderr
    assert_nothing_costs(bench)


@contextmanager
def running(bench: Bench, *faults: str, seconds: str = "60") -> Iterator[tuple[Any, Store]]:
    """Yield a followed program whose first line was shown, and the store of the services."""
    prepare(bench)
    with serve(bench.folder / ".provision/sandbox", faults, boot=False) as sandbox:
        assert sandbox.store is not None
        followed = bench.start(*RUN, "--", "python", "train.py", seconds, "3")
        line = followed.stdout.readline()
        assert line.startswith("machine 0 of 2"), line + followed.communicate()[1]
        yield followed, sandbox.store


def states(store: Store) -> list[str]:
    return [job["state"] for job in store.snapshot()["custom_jobs"].values()]


def test_an_interrupt_leaves_the_program_running_and_attach_follows_it(bench: Bench) -> None:
    with running(bench, seconds="6") as (followed, store):
        followed.send_signal(signal.SIGINT)
        code, _, errors = ended(followed)
        assert code == 130, errors
        assert (
            "keeps running and costs money; run provision attach spec.yaml --sandbox to follow"
            in errors
        )
        assert states(store) == ["JOB_STATE_RUNNING"]
        again = bench.run(*RUN, "--", "python", "train.py", "1", "0")
        assert again.returncode == 2
        assert "is already running for" in again.stderr
        assert bench.run("orphans", "spec.yaml", "--sandbox").returncode == 0
        attached = bench.run("attach", "spec.yaml", "--sandbox", "--rank", "1")
        assert attached.returncode == 3, attached.stderr + logs(bench)
        assert attached.stdout == "machine 1 of 2, alpha from alpha\ndone 1\n"
        assert "peak RAM" in attached.stderr


@pytest.mark.long
def test_destroy_ends_the_program_that_another_command_follows(bench: Bench) -> None:
    with running(bench) as (followed, store):
        destroyed = bench.run("destroy", "spec.yaml", "--sandbox", "--yes")
        assert destroyed.returncode == 0, destroyed.stderr
        assert states(store) == ["JOB_STATE_CANCELLED"]
        code, _, errors = ended(followed)
        assert code == 2, errors
        assert "was ended by another command" in errors
        assert not any(bucket["objects"] for bucket in store.snapshot()["buckets"].values())


Case = tuple[str, str, tuple[str, ...], int, str]
FAILURES: list[Case] = [
    ("cancelled", SPEC, ("cancelled-by-other",), 2, "was cancelled, but not by this command"),
    ("lost", SPEC, ("worker-lost:workerpool1-0",), 2, "exited with a non-zero status of 137"),
    (
        "stockout",
        TWO_REGIONS,
        ("stockout:us-central1", "stockout:europe-west4"),
        2,
        "europe-west4: the region has no capacity for the job",
    ),
    ("no write", SPEC, ("no-bucket-write",), 2, "roles/storage.objectUser"),
    ("no logs", SPEC, ("no-logs",), 4, "roles/storage.objectViewer"),
    ("other region", TWO_REGIONS, ("stockout:us-central1",), 4, "us-central1: the region has no"),
]


@pytest.mark.long
@pytest.mark.parametrize(
    ("spec", "faults", "code", "words"),
    [case[1:] for case in FAILURES],
    ids=[case[0] for case in FAILURES],
)
def test_failures_say_why_and_leave_nothing_that_costs(
    bench: Bench, spec: str, faults: tuple[str, ...], code: int, words: str
) -> None:
    prepare(bench, spec + CODE)
    options = (word for fault in faults for word in ("--fault", fault))
    done = bench.run(*RUN, *options, "--", "python", "train.py", "1", "4")
    assert done.returncode == code, done.stderr + logs(bench)
    assert words in done.stderr.replace("\n  ", " "), done.stderr
    assert_nothing_costs(bench)


REFUSED = {
    "there is no machine with this rank": ("--rank", "2", "--", "python", "train.py"),
    "lost.py is not part of the code": ("--", "python", "lost.py"),
    "only torchrun can start the processes": ("--", "python", "train.py"),
}


def test_programs_that_cannot_run_are_refused_before_a_job_exists(bench: Bench) -> None:
    prepare(bench, SPEC + CODE + "training: {strategy: ddp, launcher: accelerate}\n")
    for words, arguments in REFUSED.items():
        done = bench.run(*RUN, *arguments)
        assert done.returncode == 2, done.stderr
        assert words in done.stderr
    bench.spec(SPEC)
    done = bench.run(*RUN, "--", "python", "train.py")
    assert (done.returncode, "add `code: .` to the spec" in done.stderr) == (2, True), done.stderr
    assert not (bench.folder / ".provision/sandbox/replicas").exists()


@pytest.mark.long
def test_the_verification_has_the_code_and_runs_its_command_on_every_machine(bench: Bench) -> None:
    prepare(bench, SPEC + CODE + "verify: {command: [python, train.py, '0', '0']}\n")
    done = bench.run("apply", "spec.yaml", "--sandbox", "--yes")
    assert done.returncode == 1, done.stderr + logs(bench)  # RANK is not set: no program of a job
    (folder,) = (bench.folder / ".provision/sandbox/state/reports").iterdir()
    for name in ("workerpool0-0", "workerpool1-0"):
        report = json.loads((folder / f"{name}.json").read_bytes())
        statuses = {row["id"]: row["status"] for row in report["checks"]}
        assert (statuses["V01"], statuses["V02"]) == ("pass", "fail"), report["checks"]


@pytest.mark.long
def test_the_code_of_a_commit_runs_on_the_machines(repository: Bench) -> None:  # noqa: F811
    commit(repository, train_py=PROGRAM)
    code = f"code: {{git: '{URL}', rev: main, subdirectory: src}}\n"
    prepare(repository, SPEC + code)
    done = repository.run(*RUN, "--", "python", "train.py", "0", "0")
    assert done.returncode == 0, done.stderr + logs(repository)
    assert done.stdout == "machine 0 of 2, alpha from alpha\ndone 0\n"


@pytest.mark.long(minutes=True)
def test_a_start_that_is_killed_at_any_call_leaves_one_job_that_is_known(
    bench: Bench, tmp_path: Path
) -> None:
    log = tmp_path / "calls.txt"
    start = (*RUN, "--detach", "--", "python", "train.py", "60", "0")
    prepare(bench)
    with serve(bench.folder / ".provision/sandbox", ("pending-job",), boot=False) as sandbox:
        assert sandbox.store is not None
        for _ in range(2):  # what is written once is there before the calls are counted
            log.write_text("")
            assert run_killed(bench, log, 0, *start).returncode == 0
            assert bench.run("destroy", "spec.yaml", "--sandbox", "--yes").returncode == 0
            prepare(bench)
        calls = log.read_text().splitlines()
        assert sum("customJobs" in call for call in calls) == 1, calls
        for number in range(1, len(calls) + 1):
            assert bench.run("destroy", "spec.yaml", "--sandbox", "--yes").returncode == 0
            prepare(bench)
            with sandbox.store.edit_data() as data:
                data["custom_jobs"].clear()
            about = f"killed at {number}: {calls[number - 1]}"
            killed = run_killed(bench, log, number, *start)
            assert killed.returncode == -9, (about, killed.stderr)
            orphans = bench.run("orphans", "spec.yaml", "--sandbox")
            assert orphans.returncode == 0, (about, orphans.stdout)
            again = run_killed(bench, log, 0, *start)
            assert again.returncode in (0, 2), (about, again.stderr)
            if again.returncode:
                assert "is already running" in again.stderr, about
            assert states(sandbox.store) == ["JOB_STATE_PENDING"], (about, again.stderr)


RESUMING = """\
import os, pathlib, signal, time
rank = int(os.environ["RANK"])
saved = pathlib.Path(os.environ["PROVISION_PATH_CHECKPOINTS"], f"{rank}.txt")
first = int(saved.read_text()) if saved.exists() else 0
print(f"machine {rank} begins at step {first}", flush=True)
for step in range(first, 8):
    if rank == 1 and step == 3 and first == 0:
        os.killpg(0, signal.SIGKILL)  # with all processes of its machine
    time.sleep(0.3)
    saved.write_text(str(step + 1))
while rank == 0 and not saved.with_name("done.txt").exists():
    time.sleep(0.1)
saved.with_name("done.txt").touch() if rank == 1 else None
print(f"machine {rank} is done", flush=True)
"""


@pytest.mark.long
def test_a_program_that_does_not_exist_is_not_repeated(bench: Bench, tmp_path: Path) -> None:
    folder = f"    restarts: 2\npaths: {{checkpoints: {tmp_path / 'kept'}}}\n"
    prepare(bench, SPEC + folder + CODE)
    done = bench.run(*RUN, "--", "nowhere")
    assert done.returncode == 127, done.stderr + logs(bench)
    line = "provision: the program nowhere is neither in the environment nor in the image\n"
    assert done.stdout == line
    assert "started again" not in done.stderr


@pytest.mark.long
def test_a_machine_that_is_lost_too_often_fails_the_job(bench: Bench, tmp_path: Path) -> None:
    folder = f"    restarts: 1\npaths: {{checkpoints: {tmp_path / 'kept'}}}\n"
    program = RESUMING.replace("rank == 1 and step == 3 and first == 0", "rank == 1 and step == 3")
    prepare(bench, SPEC + folder + CODE, program)
    done = bench.run(*RUN, "--", "python", "train.py")
    assert done.returncode == 2, done.stderr + logs(bench)
    words = "was restarted 5 times, and `restarts` is 1; its last phase"
    assert words in done.stderr.replace("\n  ", " ")
    assert_nothing_costs(bench)


@pytest.mark.long
def test_a_lost_machine_resumes_from_its_checkpoint(bench: Bench, tmp_path: Path) -> None:
    folder = f"    restarts: 2\npaths: {{checkpoints: {tmp_path / 'kept'}}}\n"
    prepare(bench, SPEC + folder + CODE, RESUMING)
    began = time.monotonic()
    done = bench.run(*RUN, "--rank", "all", "--", "python", "train.py")
    assert done.returncode == 0, done.stderr + logs(bench)
    shown = [line.partition("] ")[2] for line in done.stdout.splitlines() if "1-0" in line]
    assert shown[-2:] == ["machine 1 begins at step 3", "machine 1 is done"]
    # What a machine has not uploaded yet is lost with it.
    assert shown[:-2] in ([], ["machine 1 begins at step 0"])
    assert "workerpool1-0: started again" in done.stderr
    assert time.monotonic() - began < LIMIT_S
    (job,) = jobs(bench)
    assert job["state"] == "JOB_STATE_SUCCEEDED"
    assert "disableRetries" not in job["jobSpec"]["scheduling"]
    assert_nothing_costs(bench)
