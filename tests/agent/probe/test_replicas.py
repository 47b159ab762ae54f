"""The machines of a job as the real probe sees them: two processes that meet on loopback."""

from __future__ import annotations

import json
import os
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from provision.agent.core.shared_marks import mark_folder, mark_text
from provision.agent.probe.report_json import expand
from tests.agent.probe.bench import Environment, checks
from tests.agent.probe.rows_replicas import DDP

NAMES = ["workerpool0-0", "workerpool1-0"]
SAME = {"environment": "e", "python": "3.11.7", "clock_offset_s": 0.0, "shm_bytes": 2**30}
NONCE = "0123456789abcdef"


def job(rank: int = 0, port: int = 3333, **changes: Any) -> dict[str, Any]:
    place = {"rank": rank, "chief": "127.0.0.1", "port": port, "address": "127.0.0.1"}
    reports = [{**SAME, "name": name} for name in NAMES]
    return {"count": 2, "names": NAMES, "reports": reports, "rendezvous": place, **changes}


def statuses(report: dict[str, Any]) -> dict[str, str]:
    return {name: row["status"] for name, row in checks(report).items() if name.startswith("G")}


def test_machines_that_share_a_folder(environment: Environment, tmp_path: Path) -> None:
    folder = Path(mark_folder(str(tmp_path), NONCE))
    folder.mkdir()
    for name in NAMES:
        (folder / name).write_text(mark_text(NONCE, name))
    shared = {"replicas": job(), "paths": {"checkpoints": str(tmp_path), "output": "/nowhere"}}
    _, report, said = environment.verify(**shared)
    assert statuses(report) == {"G01": "pass", "G06": "pass", "G07": "pass", "G08": "pass"}, said
    (folder / NAMES[1]).write_text(mark_text(NONCE, NAMES[1])[:-1])
    code, report, _ = environment.verify(**shared)
    assert (code, statuses(report)["G07"]) == (1, "fail")
    assert "cannot read what workerpool1-0 wrote" in checks(report)["G07"]["message"]


def test_a_machine_that_is_another_or_there_twice(environment: Environment) -> None:
    reports = [{**SAME, "name": NAMES[0]}, {**SAME, "name": NAMES[0]}]
    _, report, _ = environment.verify(replicas=job(reports=reports))
    assert statuses(report)["G01"] == "fail"
    reports = [{**SAME, "name": NAMES[0]}, {**SAME, "name": NAMES[1], "python": "3.12.1"}]
    _, report, _ = environment.verify(replicas=job(reports=reports))
    assert statuses(report)["G06"] == "fail"
    assert (
        "differ in python: workerpool0-0: 3.11.7, workerpool1-0: 3.12.1"
        in (checks(report)["G06"]["message"])
    )


LIAR = """import os, torch
from torch import distributed
distributed.init_process_group("gloo")
distributed.barrier()
for count in (1 << 10, 1 << 20, 1 << 24):
    distributed.all_reduce(torch.zeros(count))  # its share is missing
os._exit(0)
"""


def start(
    hf_python: str, probe: Path, folder: Path, promised: dict[str, Any], **variables: str
) -> subprocess.Popen[str]:
    folder.mkdir()
    (folder / "expectations.json").write_text(json.dumps(promised))
    command = [hf_python, str(probe), "verify", "--expectations", str(folder / "expectations.json")]
    command += ["--out", str(folder / "report.json")]
    command += [word for name in ("G02", "G03", "G04", "G05") for word in ("--only", name)]
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=folder,
        env={**os.environ, **variables},
    )


TORCH = [{"name": "torch", "version": "2.13.0"}]
HF = [*TORCH, *({"name": name, "version": "1"} for name in ("transformers", "accelerate"))]
TAMPERER = """import runpy, sys
import torch
from torch.optim import optimizer

def spoil(own, *_):
    with torch.no_grad():
        for group in own.param_groups:
            for weights in group["params"]:
                weights.add_(0.05)

optimizer.register_optimizer_step_post_hook(spoil)
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probing:
        return int(probing.getsockname()[1])


def read_report(folder: Path) -> dict[str, Any]:
    return expand(json.loads((folder / "report.json").read_text()))


@pytest.mark.hf
@pytest.mark.long
def test_two_probes_add_up_and_a_process_that_lies_is_found(
    hf_python: str, probe: Path, tmp_path: Path, document: Callable[..., dict[str, Any]]
) -> None:
    def promise(rank: int, port: int) -> dict[str, Any]:
        return document(packages=TORCH, flavour="cpu", replicas=job(rank, port))

    port = free_port()
    running = [
        start(hf_python, probe, tmp_path / str(rank), promise(rank, port)) for rank in (0, 1)
    ]
    for rank, process in enumerate(running):
        said, _ = process.communicate(timeout=300)
        report = read_report(tmp_path / str(rank))
        expected = {"G01": "pass", "G02": "pass", "G03": "pass"}
        assert statuses(report) == {**expected, "G04": "skip", "G05": "skip"}, said
        assert checks(report)["G05"]["message"] == "transformers is not in the lock"
        assert "between 2 machines (gloo)" in checks(report)["G03"]["message"]
    honest = start(hf_python, probe, tmp_path / "honest", promise(0, port))
    (tmp_path / "liar.py").write_text(LIAR)
    words = ["--nnodes=2", "--node-rank=1", "--master-addr=127.0.0.1", f"--master-port={port}"]
    liar = subprocess.Popen(
        [hf_python, "-m", "torch.distributed.run", *words, str(tmp_path / "liar.py")],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    said, _ = honest.communicate(timeout=300)
    liar.wait(60)
    found = checks(read_report(tmp_path / "honest"))["G02"]
    assert found["status"] == "fail", said


@pytest.mark.hf
@pytest.mark.long
def test_two_probes_train_and_a_process_with_other_weights_is_found(
    hf_python: str, probe: Path, tmp_path: Path, document: Callable[..., dict[str, Any]]
) -> None:
    def promise(rank: int, port: int) -> dict[str, Any]:
        return document(packages=HF, flavour="cpu", replicas=job(rank, port), **DDP)

    port, on_cpu = free_port(), {"ACCELERATE_USE_CPU": "true"}
    running = [
        start(hf_python, probe, tmp_path / str(rank), promise(rank, port), **on_cpu)
        for rank in (0, 1)
    ]
    for rank, process in enumerate(running):
        said, _ = process.communicate(timeout=300)
        found = checks(read_report(tmp_path / str(rank)))["G05"]
        assert found["status"] == "pass", (said, found)
        assert found["message"] == (
            "a step with ddp and with fsdp leaves 2 processes with equal weights"
        )
    honest = start(hf_python, probe, tmp_path / "honest", promise(0, port), **on_cpu)
    folder = tmp_path / "tamperer"
    folder.mkdir()
    task = {"steps": 1, "save_at": 2, "batch": 2, "dropout": 0.0}
    (folder / "training.json").write_text(json.dumps(task))
    (folder / "tamperer.py").write_text(TAMPERER)
    words = ["--nnodes=2", "--node-rank=1", "--master-addr=127.0.0.1", f"--master-port={port}"]
    words += ["--local-addr=127.0.0.1", str(folder / "tamperer.py"), str(probe)]
    words += ["rank", "gloo", str(folder), str(1 << 20), str(1 << 22)]
    tamperer = subprocess.Popen(
        [hf_python, "-m", "torch.distributed.run", *words],
        env={**os.environ, "OMP_NUM_THREADS": "1", "ACCELERATE_USE_CPU": "true"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    said, _ = honest.communicate(timeout=300)
    tamperer.wait(60)
    report = checks(read_report(tmp_path / "honest"))
    assert (report["G02"]["status"], report["G05"]["status"]) == ("pass", "fail"), said
    message = report["G05"]["message"]
    assert "with ddp, weights of rank 1 differ from those of rank 0" in message
    assert "with fsdp, weights differ from those of a single process by 0." in message


@pytest.mark.hf
@pytest.mark.long
def test_two_probes_find_that_a_program_would_train_alone(
    hf_python: str, probe: Path, tmp_path: Path, document: Callable[..., dict[str, Any]]
) -> None:
    """The probe trains with `use_cpu`; without it and its variable, Trainer ignores torchrun."""
    port, running = free_port(), []
    for rank in (0, 1):
        promised = document(packages=HF, flavour="cpu", replicas=job(rank, port), **DDP)
        folder = tmp_path / str(rank)
        running.append(start(hf_python, probe, folder, promised, ACCELERATE_USE_CPU="false"))
    for rank, process in enumerate(running):
        said, _ = process.communicate(timeout=300)
        found = checks(read_report(tmp_path / str(rank)))["G05"]
        assert found["status"] == "fail", (said, found)
        assert found["message"] == (
            "a program with Trainer trains on each of the 2 machines alone: its parallel mode is "
            "not_parallel"
        )
