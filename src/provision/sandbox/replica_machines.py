"""Machines of custom jobs: each replica is a folder and a process of its container's command.

Each replica has its own host in network namespaces (replica_network.py). If this machine has none,
the replicas share its network: the names in CLUSTER_SPEC are loopback addresses, and the port that
the replicas meet at is a free one, in the variable that names it on Vertex AI.
"""

from __future__ import annotations

import json
import os
import shlex
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

from provision.sandbox.replica_network import SERVICE_PORTS, ReplicaNetwork, find_ports

_FOREIGN = ("PYTHON", "VIRTUAL_ENV", "CONDA", "JUPYTER", "IPYTHON", "GOOGLE_", "PROVISION_")
_END_S, _POLL_S = 5.0, 0.05
_MAX_RESTARTS = 5
"""Restarts of a replica in the same machine (Vertex AI documentation, Understand the training
service).
"""
_KILL_AFTER_S = 1.0
_DEFAULT_TIMEOUT_S = 7 * 86400.0
_TAIL_LINES = 5
_LAUNCH = """import os, signal, sys
from provision.agent.core.process import die_with_parent
die_with_parent()
if sys.argv[1] == "nsenter":  # it ends when the replica has: only the replica gets the signal
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
os.execvp(sys.argv[1], sys.argv[1:])
"""
IMAGE_PYTHON = "PROVISION_SANDBOX_IMAGE_PYTHON"
"""The variable that names the `python3` of emulated images."""
_TRAINING_PORT = str(SERVICE_PORTS[1])
_PROJECT_NUMBER = "123456789012"


class RunningJob(NamedTuple):
    """A job to run: its spec, and the addresses of the services that its replicas use.

    `killed` and the fields after it are names of replicas, such as workerpool1-0; `texts` are
    documents with addresses that the replicas use.
    """

    name: str
    spec: Mapping[str, Any]
    storage: str
    metadata: str
    secrets: str
    killed: frozenset[str]
    missing: frozenset[str]
    silent: frozenset[str]
    slow: frozenset[str]
    texts: tuple[str, ...]


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
        self._is_isolated = True
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
        network: ReplicaNetwork | None = None
        try:
            replicas = self._make_replicas(job)
            network = self._make_network(job, replicas)
            variables = _make_variables(job, replicas, network)

            def start(replica: _Replica) -> None:
                processes[replica.task] = _start(replica, variables[replica.task], network)

            for replica in replicas:
                if replica.task not in job.missing:
                    start(replica)
            started()
            return _watch(job, replicas, start, processes, network, stopped)
        except OSError as problem:
            return JobEnd(f"the machines of the job were not created: {problem}")
        finally:
            for task, process in processes.items():
                if task in job.silent:  # it is stopped, and so is nsenter
                    _signal(process, signal.SIGKILL)
                _end(process)
            if network is not None:
                network.close()
            for replica in replicas:  # the logs stay
                for part in ("root", "tmp"):
                    shutil.rmtree(replica.folder / part, ignore_errors=True)

    def _make_network(self, job: RunningJob, replicas: list[_Replica]) -> ReplicaNetwork | None:
        """Return the hosts of the replicas, or None, after a notice, if they share this machine's.

        Raises:
            OSError: a fault needs hosts.
        """
        if not self._is_isolated:
            return None
        folder = replicas[0].folder.parent
        variables = (f"{key}={text}" for key, text in _inherit_variables().items())
        texts = (*job.texts, *variables, job.storage, f"http://{job.metadata}", job.secrets)
        tasks, key = [replica.task for replica in replicas], folder.name[:10]
        try:
            return ReplicaNetwork(folder, tasks, key, find_ports("\n".join(texts)), job.slow)
        except OSError as problem:
            if job.slow:
                raise OSError(f"the slow-link fault needs network namespaces: {problem}") from None
            self._is_isolated = False
            sys.stderr.write(
                "SANDBOX: the machines of jobs share the network of this machine, because it "
                f"cannot isolate them: {problem}\n"
            )
            return None

    def _make_replicas(self, job: RunningJob) -> list[_Replica]:
        """Return the replicas with new folders, without those of earlier jobs of this name."""
        prefix = f"{sha256(job.name.encode()).hexdigest()[:16]}-"
        for earlier in self._folder.glob(f"{prefix}*"):
            shutil.rmtree(earlier, ignore_errors=True)
        self._folder.mkdir(parents=True, exist_ok=True)
        folder = Path(mkdtemp(prefix=prefix, dir=self._folder))
        replicas, python = [], _find_python()
        for number, pool in enumerate(job.spec["workerPoolSpecs"]):
            for index in range(int(pool.get("replicaCount", 0))):
                own = folder / f"workerpool{number}-{index}"
                for part in ("root", "bin", "tmp"):
                    (own / part).mkdir(parents=True)
                program = own / "bin/python3"
                program.write_text(f'#!/bin/sh\nexec {shlex.quote(python)} "$@"\n', "utf-8")
                program.chmod(0o755)
                _bring_uv(own)
                replicas.append(_Replica(number, index, pool["containerSpec"], own))
        return replicas


def _find_python() -> str:
    """Return the Python of the image: this machine's, without the packages of our environment.

    Raises:
        OSError: the one that PROVISION_SANDBOX_IMAGE_PYTHON names is not a program.
    """
    named = os.environ.get(IMAGE_PYTHON)
    if not named:
        return str(getattr(sys, "_base_executable", sys.executable))
    if not Path(named).is_file() or not os.access(named, os.X_OK):
        raise OSError(f"{IMAGE_PYTHON} does not name a program: {named}")
    return str(Path(named).absolute())


def _inherit_variables() -> dict[str, str]:
    return {key: text for key, text in os.environ.items() if not key.startswith(_FOREIGN)}


def _make_variables(
    job: RunningJob, replicas: list[_Replica], network: ReplicaNetwork | None
) -> dict[str, dict[str, str]]:
    """Return the variables of each replica, by its task.

    Source: Vertex AI documentation, Distributed training; RANK and its like, and those with the
    ports, are in logs of jobs in public repositories.
    """
    names = dict.fromkeys((replica.task for replica in replicas), "127.0.0.1")
    if network is not None:
        names = {task: host.service_name for task, host in network.hosts.items()}
    cluster: dict[str, list[str]] = {}
    for replica in replicas:
        cluster.setdefault(f"workerpool{replica.pool}", []).append(f"{names[replica.task]}:2222")
    port = str(_free_port()) if network is None else _TRAINING_PORT
    variables = {}
    for rank, replica in enumerate(replicas):
        task = {"type": f"workerpool{replica.pool}", "index": replica.number}
        document = {"cluster": cluster, "environment": "cloud", "task": task, "job": job.spec}
        own = {
            variable["name"]: variable.get("value", "")
            for variable in replica.container.get("env", ())
        }
        variables[replica.task] = {
            **_inherit_variables(),
            "CLUSTER_SPEC": json.dumps(document),
            "CLOUD_ML_PROJECT_ID": _PROJECT_NUMBER,
            "CLOUD_ML_JOB_ID": job.name.rpartition("/")[2],
            "RANK": str(rank),
            "WORLD_SIZE": str(len(replicas)),
            "MASTER_ADDR": names[replicas[0].task],
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


def _start(
    replica: _Replica, variables: Mapping[str, str], network: ReplicaNetwork | None
) -> subprocess.Popen[bytes]:
    container, folder = replica.container, replica.folder / "root"
    entering: tuple[list[str], tuple[int, ...]] = ([], ())
    if network is not None:
        entering = network.get_command(replica.task, folder)
    with (replica.folder / "log.txt").open("ab") as log:
        return subprocess.Popen(
            [
                sys.executable,
                "-P",
                "-c",
                _LAUNCH,
                *entering[0],
                *container["command"],
                *container.get("args", ()),
            ],
            cwd=folder,
            pass_fds=entering[1],
            env=dict(variables),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def _watch(
    job: RunningJob,
    replicas: list[_Replica],
    start: Callable[[_Replica], None],
    processes: dict[str, subprocess.Popen[bytes]],
    network: ReplicaNetwork | None,
    stopped: threading.Event,
) -> JobEnd | None:
    """Wait until the primary replica has ended, or another one has failed for good."""
    scheduling = job.spec.get("scheduling", {})
    limit_s = float(scheduling.get("timeout", f"{_DEFAULT_TIMEOUT_S}s")[:-1])
    began, lost = time.monotonic(), {*job.killed, *job.silent}
    restarts = dict.fromkeys(processes, 0)
    while not stopped.wait(_POLL_S):
        waited = time.monotonic() - began
        if waited > limit_s:
            return JobEnd(f"The job did not end within its timeout of {limit_s:.0f} seconds.")
        for task in sorted(lost & processes.keys() if waited > _KILL_AFTER_S else ()):
            lost.discard(task)
            if task in job.silent:
                _silence(task, processes[task], network)
            else:
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
            start(replica)
    return None


def _silence(task: str, process: subprocess.Popen[bytes], network: ReplicaNetwork | None) -> None:
    """Let a host vanish: its connections stay open, and its process is not seen to end."""
    if network is not None:
        network.silence(task)
    _signal(process, signal.SIGSTOP)


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
