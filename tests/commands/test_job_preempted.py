"""A reclaimed machine of a job, by the real command against the emulated Vertex AI."""

from __future__ import annotations

from pathlib import Path

import pytest

from provision.sandbox.lifecycle import Delays
from provision.sandbox.serve import serve
from tests.commands.test_job_run import CODE, RUN, prepare
from tests.commands.test_vertex_job import APPLY, SPEC, assert_nothing_costs, jobs, logs
from tests.rig import Bench
from tests.support import running

pytest.importorskip("google.cloud.notebooks_v2")

FAULT = "worker-preempted:workerpool1-0"
SAVING = """\
import os, pathlib, signal, sys, time
rank = int(os.environ["RANK"])
folder = pathlib.Path(os.environ["PROVISION_PATH_CHECKPOINTS"])
saved = folder / f"{rank}.txt"
step = int(saved.read_text()) if saved.exists() else 0
def save(number, frame):
    print(f"machine {rank} is stopped at step {step}", flush=True)
    saved.write_text(str(step))
    sys.exit(0)
signal.signal(signal.SIGTERM, save)
print(f"machine {rank} begins at step {step}", flush=True)
while not saved.exists() and rank == STOPPED:  # until it is stopped
    step += 1
    time.sleep(0.1)
while rank != STOPPED and not (folder / "done.txt").exists():
    time.sleep(0.1)
(folder / "done.txt").touch()
print(f"machine {rank} is done", flush=True)
"""


@pytest.mark.long
@pytest.mark.parametrize("rank", [0, 1])
def test_a_reclaimed_machine_saves_and_its_replacement_resumes(
    bench: Bench, tmp_path: Path, rank: int
) -> None:
    kept, name = tmp_path / "kept", f"workerpool{rank}-0"
    folder = f"    capacity: spot\n    restarts: 2\npaths: {{checkpoints: {kept}}}\n"
    prepare(bench, SPEC + folder + CODE, SAVING.replace("STOPPED", str(rank)))
    fault = f"worker-preempted:{name}"
    done = bench.run(*RUN, "--fault", fault, "--rank", "all", "--", "python", "train.py")
    assert done.returncode == 0, done.stderr + logs(bench)
    step = int((kept / f"{rank}.txt").read_text())
    shown = [line.partition("] ")[2] for line in done.stdout.splitlines() if name in line]
    assert step > 0
    assert shown == [
        f"machine {rank} begins at step 0",
        f"machine {rank} is stopped at step {step}",
        f"machine {rank} begins at step {step}",
        f"machine {rank} is done",
    ]
    assert f"{name}: started again" in done.stderr
    (job,) = jobs(bench)
    assert job["state"] == "JOB_STATE_SUCCEEDED"
    assert job["jobSpec"]["scheduling"]["strategy"] == "SPOT"
    assert_nothing_costs(bench)


@pytest.mark.long
def test_a_reclaimed_machine_that_ignores_it_is_killed_and_fails_the_job_without_restarts(
    bench: Bench, tmp_path: Path
) -> None:
    program = (
        "import os, signal, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "print('working', flush=True)\n"
        "time.sleep(600)\n"
    )
    name = f"{tmp_path.name}.py"
    prepare(bench, SPEC + CODE)
    (bench.folder / name).write_text(program)
    with serve(bench.folder / ".provision/sandbox", (FAULT,), boot=False, delays=Delays(grace=1)):
        done = bench.run(*RUN, "--", "python", name)
        assert done.returncode == 2, done.stderr + logs(bench)
        text = done.stderr.replace("\n  ", " ")
        assert "the program on the job's machines did not finish" in text
        assert "workerpool1-0 exited with a non-zero status of 137" in text
        assert "if a machine was lost, set `restarts: 3` on the target and resume" in text
        assert running(name) == []
        assert_nothing_costs(bench)


@pytest.mark.long
def test_a_machine_that_is_reclaimed_while_it_verifies_leaves_the_target_unverified(
    bench: Bench,
) -> None:
    bench.spec(SPEC)
    done = bench.run(*APPLY, "--fault", FAULT)
    assert done.returncode == 3, done.stderr + logs(bench)
    text = done.stderr.replace("\n  ", " ")
    assert "workerpool1-0 exited with a non-zero status of 143" in text
    assert "the machine was stopped, as Spot machines can be: run the same command again" in text
    assert_nothing_costs(bench)
