"""Machines of custom jobs: each replica is a folder and a process of its container's command.

The replicas share this machine's network: the names in CLUSTER_SPEC are loopback addresses, and the
port that the replicas meet at is a free one, in the variable that names it on Vertex AI.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, NamedTuple

_FOREIGN = ("PYTHON", "VIRTUAL_ENV", "CONDA", "JUPYTER", "IPYTHON", "GOOGLE_", "PROVISION_")
_END_S, _POLL_S = 5.0, 0.05
_MAX_RESTARTS = 5
"""Restarts of a replica in the same machine (Vertex AI documentation, Understand the training
service).
"""
_KILL_AFTER_S = 1.0
_DEFAULT_TIMEOUT_S = 7 * 86400.0
_TAIL_LINES = 5
_LAUNCH = """import os, sys
from provision.agent.core.process import die_with_parent
die_with_parent()
os.execvp(sys.argv[1], sys.argv[1:])
"""
_PROJECT_NUMBER = "123456789012"


class RunningJob(NamedTuple):
    """A job to run: its spec, and the addresses of the services that its replicas use.

    `killed` and `missing` are names of replicas, such as workerpool1-0.
    """

    name: str
    spec: Mapping[str, Any]
    storage: str
    metadata: str
    secrets: str
    killed: frozenset[str]
    missing: frozenset[str]


class JobEnd(NamedTuple):
    """The end of a job; `error` is "" if its primary replica ended with 0."""

    error: str


class _Replica(NamedTuple):
    """A replica: its pool and its number in it, its container, and its folder."""

    pool: int
    number: int
    container: Mapping[str, Any]
    folder: Path

    @property
    def task(self) -> str:
        return f"workerpool{self.pool}-{self.number}"


class ReplicaMachines:
    """The machines of the running jobs; they end with this process."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder.resolve() / "replicas"
        self._stopped: dict[str, threading.Event] = {}
        self._threads: dict[str, threading.Thread] = {}

    def start(
        self, job: RunningJob, started: Callable[[], None], ended: Callable[[JobEnd], None]
    ) -> None:
        """Run a job in the background. `ended` is not called for a job that is stopped."""
        stopped = threading.Event()
        self._stopped[job.name] = stopped

        def run() -> None:
            end = self._run(job, started, stopped)
            if end is not None:
                ended(end)

        thread = threading.Thread(target=run, daemon=True)
        self._threads[job.name] = thread
        thread.start()

    def stop(self, name: str) -> None:
        """End the replicas of a job, and wait for it."""
        if name in self._stopped:
            self._stopped[name].set()
        thread = self._threads.get(name)
        if thread is not None and thread is not threading.current_thread():
            thread.join(2 * _END_S)

    def close(self) -> None:
        """End all machines."""
        for name in list(self._stopped):
            self.stop(name)

    def _run(
        self, job: RunningJob, started: Callable[[], None], stopped: threading.Event
    ) -> JobEnd | None:
        replicas: list[_Replica] = []
        processes: dict[str, subprocess.Popen[bytes]] = {}
        try:
            replicas = self._make_replicas(job)
            variables = _make_variables(job, replicas)
            for replica in replicas:
                if replica.task not in job.missing:
                    processes[replica.task] = _start(replica, variables[replica.task])
            started()
            return _watch(job, replicas, variables, processes, stopped)
        except OSError as problem:
            return JobEnd(f"the machines of the job were not created: {problem}")
        finally:
            for process in processes.values():
                _end(process)
            for replica in replicas:  # the logs stay
                for part in ("root", "tmp"):
                    shutil.rmtree(replica.folder / part, ignore_errors=True)

    def _make_replicas(self, job: RunningJob) -> list[_Replica]:
        """Return the replicas with new folders, without those of earlier jobs of this name."""
        prefix = f"{sha256(job.name.encode()).hexdigest()[:16]}-"
        for earlier in self._folder.glob(f"{prefix}*"):
            shutil.rmtree(earlier, ignore_errors=True)
        self._folder.mkdir(parents=True, exist_ok=True)
        folder = Path(mkdtemp(prefix=prefix, dir=self._folder))
        replicas = []
        for number, pool in enumerate(job.spec["workerPoolSpecs"]):
            for index in range(int(pool.get("replicaCount", 0))):
                own = folder / f"workerpool{number}-{index}"
                for part in ("root", "bin", "tmp"):
                    (own / part).mkdir(parents=True)
                # The Python of the image: this machine's, without the packages of our environment.
                python = own / "bin/python3"
                base = getattr(sys, "_base_executable", sys.executable)
                python.write_text(f'#!/bin/sh\nexec "{base}" "$@"\n', encoding="utf-8")
                python.chmod(0o755)
                _bring_uv(own)
                replicas.append(_Replica(number, index, pool["containerSpec"], own))
        return replicas


def _make_variables(job: RunningJob, replicas: list[_Replica]) -> dict[str, dict[str, str]]:
    """Return the variables of each replica, by its task.

    Source: Vertex AI documentation, Distributed training; RANK and its like, and those with the
    ports, are in logs of jobs in public repositories.
    """
    kept = {key: text for key, text in os.environ.items() if not key.startswith(_FOREIGN)}
    cluster: dict[str, list[str]] = {}
    for replica in replicas:
        cluster.setdefault(f"workerpool{replica.pool}", []).append("127.0.0.1:2222")
    port = str(_free_port())
    variables = {}
    for rank, replica in enumerate(replicas):
        task = {"type": f"workerpool{replica.pool}", "index": replica.number}
        document = {"cluster": cluster, "environment": "cloud", "task": task, "job": job.spec}
        own = {
            variable["name"]: variable.get("value", "")
            for variable in replica.container.get("env", ())
        }
        variables[replica.task] = {
            **kept,
            "CLUSTER_SPEC": json.dumps(document),
            "CLOUD_ML_PROJECT_ID": _PROJECT_NUMBER,
            "CLOUD_ML_JOB_ID": job.name.rpartition("/")[2],
            "RANK": str(rank),
            "WORLD_SIZE": str(len(replicas)),
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": "2222",
            "CMLE_TRAINING_WORKERPOOL0_0_SERVICE_PORT_TRAINING_PORT": port,
            "GCE_METADATA_HOST": job.metadata,
            "STORAGE_EMULATOR_HOST": job.storage,
            "PROVISION_SECRETS": job.secrets,
            **own,
            "HOME": str(replica.folder / "root"),
            "TMPDIR": str(replica.folder / "tmp"),
            "PATH": f"{replica.folder / 'bin'}:{os.environ.get('PATH', '/usr/bin:/bin')}",
        }
    return variables


def _bring_uv(folder: Path) -> None:
    """Let the emulated image contain this environment's uv, and this machine's cache of packages.

    Otherwise each replica of each job would download both again.
    """
    program = Path(sysconfig.get_path("scripts")) / "uv"
    if program.exists():
        (folder / "bin/uv").symlink_to(program)
    cache = Path(os.environ.get("UV_CACHE_DIR") or Path.home() / ".cache/uv").absolute()
    if cache.is_dir():
        (folder / "root/.provision").mkdir()
        (folder / "root/.provision/cache").symlink_to(cache)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _start(replica: _Replica, variables: Mapping[str, str]) -> subprocess.Popen[bytes]:
    container = replica.container
    with (replica.folder / "log.txt").open("ab") as log:
        return subprocess.Popen(
            [
                sys.executable,
                "-P",
                "-c",
                _LAUNCH,
                *container["command"],
                *container.get("args", ()),
            ],
            cwd=replica.folder / "root",
            env=dict(variables),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def _watch(
    job: RunningJob,
    replicas: list[_Replica],
    variables: Mapping[str, Mapping[str, str]],
    processes: dict[str, subprocess.Popen[bytes]],
    stopped: threading.Event,
) -> JobEnd | None:
    """Wait until the primary replica has ended, or another one has failed for good."""
    scheduling = job.spec.get("scheduling", {})
    limit_s = float(scheduling.get("timeout", f"{_DEFAULT_TIMEOUT_S}s")[:-1])
    began, to_kill = time.monotonic(), set(job.killed)
    restarts = dict.fromkeys(processes, 0)
    while not stopped.wait(_POLL_S):
        waited = time.monotonic() - began
        if waited > limit_s:
            return JobEnd(f"The job did not end within its timeout of {limit_s:.0f} seconds.")
        for task in sorted(to_kill if waited > _KILL_AFTER_S else ()):
            to_kill.discard(task)
            if task in processes:
                _signal(processes[task], signal.SIGKILL)
        for replica in replicas:
            code = processes[replica.task].poll() if replica.task in processes else None
            if code == 0 and (replica.pool, replica.number) == (0, 0):
                return JobEnd("")
            if code in (None, 0):
                continue
            if scheduling.get("disableRetries") or restarts[replica.task] == _MAX_RESTARTS:
                return JobEnd(_describe_failure(replica, code))
            restarts[replica.task] += 1
            processes[replica.task] = _start(replica, variables[replica.task])
    return None


def _describe_failure(replica: _Replica, code: int) -> str:
    """Return the service's text about a replica that failed, with the end of its output."""
    status = code if code > 0 else 128 - code
    log = (replica.folder / "log.txt").read_text(encoding="utf-8", errors="replace")
    tail = "\n".join(log.splitlines()[-_TAIL_LINES:])
    return (
        f"The replica {replica.task} exited with a non-zero status of {status}. Termination "
        f"reason: Error. {tail}\nTo find out more about why your job exited please check the logs: "
        f"https://console.cloud.google.com/logs/viewer?project={_PROJECT_NUMBER}&resource=ml_job"
    )


def _signal(process: subprocess.Popen[bytes], number: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, number)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the processes of a replica: the group of its command, and what is left of it."""
    _signal(process, signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        process.wait(_END_S)
    _signal(process, signal.SIGKILL)
    process.wait(_END_S)
