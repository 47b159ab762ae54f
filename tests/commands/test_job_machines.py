"""What the machines of a job show each other, by the real command against the emulated Vertex AI.

Each machine is a host in network namespaces.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from provision.sandbox.serve import serve
from remaking.index import PipIndex
from tests.commands.test_vertex_job import (
    APPLY,
    LIMIT_S,
    SPEC,
    check_statuses,
    ended,
    logs,
    reports,
)
from tests.rig import Bench
from tests.sandbox.test_custom_jobs import require_hosts
from tests.support import require

pytest.importorskip("google.cloud.notebooks_v2")


@pytest.mark.long
def test_checkpoints_on_the_disk_of_each_machine_fail(bench: Bench, tmp_path: Path) -> None:
    """/dev/shm is not shared by the hosts of the emulator; the folder of this test is."""
    require_hosts(tmp_path)
    bench.spec(SPEC + "paths: {checkpoints: /dev/shm/checkpoints}\n")
    done = bench.run(*APPLY)
    assert done.returncode == 1, done.stderr + logs(bench)
    assert "/dev/shm/checkpoints: this machine cannot read what" in " ".join(done.stdout.split())
    assert check_statuses(reports(bench)["workerpool1-0"])["G07"] == "fail"
    shared = tmp_path / "shared"
    bench.spec(SPEC + f"paths: {{checkpoints: {shared}}}\n")
    done = bench.run(*APPLY)
    assert done.returncode == 0, done.stderr + logs(bench)
    assert check_statuses(reports(bench)["workerpool1-0"])["G07"] == "pass"
    assert list(shared.iterdir()) == [], "the files of the check are removed"


def test_a_machine_that_differs_or_is_there_twice_fails_the_job(bench: Bench) -> None:
    """The second machine is forged: it has the name of the first one, and another Python."""
    bench.spec(SPEC)
    faults = ("replica-missing:workerpool1-0",)
    with serve(bench.folder / ".provision/sandbox", faults, boot=False) as sandbox:
        store = sandbox.store
        assert store is not None
        running = bench.start(*APPLY)

        def await_object(ending: str, state: str = "") -> tuple[str, dict[str, Any]]:
            end = time.monotonic() + LIMIT_S
            while True:
                assert (time.monotonic() < end, running.poll()) == (True, None)
                for name in store.snapshot()["buckets"].get("my-bucket", {}).get("objects", ()):
                    stored = store.object("my-bucket", name) if name.endswith(ending) else None
                    document = json.loads(stored.content) if stored else {}
                    if document.get("s", "") == state and document:
                        return name.removesuffix(ending), document
                time.sleep(0.05)

        def put(folder: str, name: str, document: dict[str, Any]) -> None:
            store.put_object(
                "my-bucket", f"{folder}workerpool1-0/{name}", json.dumps(document).encode()
            )

        folder, ready = await_object("workerpool0-0/ready.json")
        put(folder, "ready.json", {**ready, "python": "3.9.1"})
        _, status = await_object("workerpool0-0/status.json", "done")
        report = store.object("my-bucket", f"{folder}workerpool0-0/report.json")
        assert report is not None
        store.put_object("my-bucket", f"{folder}workerpool1-0/report.json", report.content)
        put(folder, "status.json", status)
        returned, errors = ended(running)
    assert returned == 1, errors + logs(bench)
    found = check_statuses(reports(bench)["workerpool0-0"])
    assert (found["G01"], found["G06"]) == ("fail", "fail")


def package_sources() -> dict[str, str]:
    """Variables with which packages, torch too, come from where this machine has them."""
    links, cert = os.environ.get("PIP_FIND_LINKS", ""), os.environ.get("PIP_CERT", "")
    require("index", bool(links), "torch is installed from the folder in PIP_FIND_LINKS")
    sources = {"PIP_FIND_LINKS": links, "PROVISION_INDEX_PYPI": PipIndex().url}
    return {**sources, **({"PIP_CERT": cert} if cert else {})}


@pytest.mark.long(minutes=True)
def test_a_throttled_link_of_four_machines_names_its_host(bench: Bench, tmp_path: Path) -> None:
    require_hosts(tmp_path)
    spec = SPEC.replace("[alpha]", '["torch==2.13.0"]').replace("replicas: 2", "replicas: 4")
    bench.spec(spec + "training: {framework: torch, precision: fp32, strategy: ddp}\n")
    fault = ("--fault", "slow-link:workerpool1-1")
    done = bench.run(*APPLY, *fault, **package_sources())
    assert done.returncode == 1, done.stderr + logs(bench)
    for name, report in reports(bench).items():
        found = {row["id"]: row for row in report["checks"]}
        assert found["G04"]["status"] == "fail", name
        assert found["G04"]["message"].startswith("workerpool1-1: every link is slow"), name
        assert (found["G02"]["status"], found["G03"]["status"]) == ("pass", "warn")


@pytest.mark.long(minutes=True)
def test_two_machines_train_a_step_and_a_program_is_distributed(
    bench: Bench, tmp_path: Path, hf_python: str
) -> None:
    """The packages are those of the environment that other tests train in."""
    require_hosts(tmp_path)
    code = (
        "from importlib.metadata import distributions as d\n"
        "print(*{i.metadata['Name'] + '==' + i.version for i in d()}, sep='\\n')"
    )
    listed = subprocess.run([hf_python, "-c", code], capture_output=True, text=True, check=True)
    versions = dict(line.split("==") for line in listed.stdout.split())
    names = ("torch", "transformers", "accelerate")
    own = ", ".join(f'"{name}=={versions[name].partition("+")[0]}"' for name in names)
    spec = SPEC.replace("[alpha]", f"[{own}]") + "training: {strategy: ddp}\ncode: src\n"
    bench.spec(spec)
    (bench.folder / "src").mkdir()
    (bench.folder / "src/train.py").write_text(TRAINER_PROGRAM)
    done = bench.run(*APPLY, **package_sources())
    assert done.returncode == 0, done.stderr + logs(bench)
    for name in ("workerpool0-0", "workerpool1-0"):
        found = {row["id"]: row for row in reports(bench)[name]["checks"]}
        assert found["G05"]["status"] == "pass", found["G05"]
    program = ("run", "spec.yaml", "--sandbox", "--rank", "all", "--", "python", "train.py")
    done = bench.run(*program, **package_sources())
    assert done.returncode == 0, done.stderr + logs(bench)
    for rank in (0, 1):
        assert f"process {rank} of 2: distributed" in done.stdout + done.stderr


TRAINER_PROGRAM = """\
from transformers import TrainingArguments

own = TrainingArguments(output_dir="/tmp/provision-out", report_to="none")
print(f"process {own.process_index} of {own.world_size}: {own.parallel_mode.value}")
"""
TRAINING = """\
import os, pathlib, signal, time
import torch
from torch import distributed
from torch.nn.parallel import DistributedDataParallel

def kill_machine():
    # From the device program down; their group is that of a process outside of the namespace.
    pids = [os.getpid()]
    while b"--document" not in pathlib.Path(f"/proc/{pids[-1]}/cmdline").read_bytes():
        stat = pathlib.Path(f"/proc/{pids[-1]}/stat").read_text()
        pids.append(int(stat.rpartition(")")[2].split()[1]))
    for pid in reversed(pids):
        os.kill(pid, signal.SIGKILL)


rank, folder = int(os.environ["RANK"]), pathlib.Path(os.environ["PROVISION_PATH_CHECKPOINTS"])
saved, lost = folder / "model.pt", folder / "lost.txt"
distributed.init_process_group("gloo")
model = DistributedDataParallel(torch.nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
first = 0
if saved.exists():
    state = torch.load(saved)
    model.module.load_state_dict(state["model"])
    first = state["step"]
if lost.exists():
    gone = time.time() - float(lost.read_text())
    print(f"rank {rank} is back at step {first} after {gone:.1f} s", flush=True)
for step in range(first, 6):
    if rank == 1 and step == 3 and not lost.exists():
        lost.write_text(str(time.time()))
        kill_machine()
    model(torch.ones(2, 4)).sum().backward()
    optimizer.step()
    if rank == 0:
        torch.save({"model": model.module.state_dict(), "step": step + 1}, f"{saved}.new")
        os.replace(f"{saved}.new", saved)
    distributed.barrier()
print(f"rank {rank} is done", flush=True)
"""


@pytest.mark.long(minutes=True)
def test_a_lost_machine_is_back_in_training_within_30_s(bench: Bench, tmp_path: Path) -> None:
    require_hosts(tmp_path)
    own = f"    restarts: 3\npaths: {{checkpoints: {tmp_path / 'kept'}}}\ncode: .\n"
    own += "training: {framework: torch, precision: fp32, strategy: ddp}\n"
    bench.spec(SPEC.replace("[alpha]", '["torch==2.13.0"]') + own)
    (bench.folder / "train.py").write_text(TRAINING)
    sources = package_sources()
    words = ("run", "spec.yaml", "--sandbox", "--rank", "all", "--", "python", "train.py")
    locked = bench.run("lock", "spec.yaml", **sources)
    assert locked.returncode == 0, locked.stderr
    state = bench.folder / ".provision/sandbox/state"
    state.mkdir(parents=True, exist_ok=True)
    (state / "spec.lock").write_bytes((bench.folder / "spec.lock").read_bytes())
    done = bench.run(*words, **sources)
    assert done.returncode == 0, done.stderr + logs(bench)
    assert "workerpool1-0: started again" in done.stderr
    back = dict(re.findall(r"rank (\d) is back at step 3 after ([\d.]+) s", done.stdout))
    assert set(back) == {"0", "1"}, done.stdout
    assert max(map(float, back.values())) <= 30, done.stdout
    assert done.stdout.count("is done") == 2
